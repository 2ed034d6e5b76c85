//! Actions of effectful hooks: performed after the last hook of their event, each on its own, and never twice.
//!
//! Starting a task enqueues as many of the hooks `one`, `two`, `three` of `w1` as a test needs.

use serde_json::{Value, json};

use super::script::{ScriptProject, default_rules};
use crate::decide::{EngineRules, HookPlan, ValidationScope};
use crate::effects::hook_batch::HookEffect;
use crate::effects::hook_outcome::{HookClass, HookFailurePolicy};
use crate::effects::hook_point::HookPoint;
use crate::log::event_type::EventType;
use crate::log::id::TaskId;
use crate::task::TaskState;
use crate::view::StateView;

fn hook_effect(hook: &str, class: HookClass) -> HookEffect {
    let (hook, point) = (hook.to_owned(), HookPoint::Event(EventType::TaskStarted));
    HookEffect { hook, point, class, on_failure: HookFailurePolicy::Ignore, send_backs: None }
}

fn rules_with_hooks(hooks: &[&str]) -> EngineRules {
    let hooks = hooks.iter().map(|hook| hook_effect(hook, HookClass::Other)).collect();
    let effects = HookPlan::for_all_tasks("hooks: {}", "w1".parse().unwrap(), [(EventType::TaskStarted, hooks)]);
    EngineRules { effects: Some(effects), ..default_rules() }
}

/// Returns a project in which T1 has begun, T2 is ready, T3 waits for T1 and T4 is blocked; `one` is pending because of T1.
fn project_with_pending_hook() -> ScriptProject {
    ScriptProject::after(
        rules_with_hooks(&["one"]),
        "add one\nadd two labels=a,b\nadd three after=T1\nadd four\nblock T4\nstart T1",
    )
}

/// Checks the events of a single hook's actions, after the hook's own end.
#[track_caller]
fn check_actions(asks: &str, expected: &[&str]) -> ScriptProject {
    let mut project = project_with_pending_hook();
    let answered = project.run_script(&format!("hook one asks={asks}"));
    assert_eq!(&answered[..2], ["T1 hook_started one 1 by w1", "T1 hook_finished one Success"]);
    assert_eq!(&answered[2..], expected, "{asks}");
    project.simulate_crash();
    project
}

#[test]
fn update_task_performs_every_task_action() {
    let update = |rest: &str| format!("update_task:{{{rest}}}");
    let table = [
        (r#""taskId":"T2","action":"start""#, vec!["T2 task_started"]),
        (r#""task_id":"T2","action":"start","payload":{"context":{"why":"asked"}}"#, vec!["T2 task_started"]),
        (r#""taskId":"T2","action":"block","reason":"why""#, vec!["T2 task_blocked why"]),
        (
            r#""taskId":"T2","action":"block","payload":{"reason":"inner"},"reason":"outer""#,
            vec!["T2 task_blocked inner"],
        ),
        (r#""taskId":"T4","action":"unblock""#, vec!["T4 task_unblocked", "T4 task_ready"]),
        (r#""taskId":"T2","action":"fail","reason":"no""#, vec!["T2 task_failed"]),
        (
            r#""taskId":"T1","action":"complete","result":"done","artifacts":["a.txt"]"#,
            vec!["T1 task_completed", "T3 task_ready", "T3 dependency_satisfied T1"],
        ),
        (r#""taskId":"T1","action":"fail","reason":"no""#, vec!["T1 task_failed", "T3 task_blocked by T1"]),
    ];
    for (rest, expected) in table {
        check_actions(&update(rest), &expected);
    }
    let project = check_actions(
        &update(r#""taskId":"T2","action":"complete","result":"done","artifacts":["x"]"#),
        &["T2 task_completed"],
    );
    let task = project.find_task("T2");
    assert_eq!((task.result.as_deref(), &task.artifacts[..]), (Some("done"), &["x".to_owned()][..]));
}

/// The built-in hook that makes dependents ready is disabled: another hook may do it instead.
#[test]
fn update_task_accepts_both_names_of_ready() {
    for name in ["ready", "transition_to_ready", "transitionToReady", "transition-to-ready"] {
        let mut rules = rules_with_hooks(&["one"]);
        rules.registry.configure_hook("check-dependency-satisfaction", false, None).unwrap();
        let mut project = ScriptProject::after(rules, "add one\nadd two after=T1\nstart T1\ncomplete T1\nbegin one");
        assert_eq!(project.find_task("T2").state, TaskState::Created);
        let asks = format!(r#"update_task:{{"taskId":"T2","action":"{name}"}}"#);
        assert_eq!(
            project.run_script(&format!("finish one asks={asks}")),
            ["T1 hook_finished one Success", "T2 task_ready"]
        );
    }
    check_actions(
        r#"update_task:{"taskId":"T3","action":"ready"}"#,
        &["system action_error update_task: T3 waits for T1"],
    );
}

#[test]
fn label_actions_accept_every_spelling() {
    let table = [
        (["set_labels", "set-labels", "setLabels"], r#"["c"]"#, vec!["c"]),
        (["add_labels", "add-labels", "addLabels"], r#"["c","a"]"#, vec!["a", "b", "c"]),
        (["remove_labels", "remove-labels", "removeLabels"], r#"["a","z"]"#, vec!["b"]),
    ];
    for (names, labels, expected) in table {
        for name in names {
            let asks = format!(r#"update_task:{{"taskId":"T2","action":"{name}","labels":{labels}}}"#);
            assert_eq!(check_actions(&asks, &["T2 task_updated"]).find_task("T2").labels, expected, "{name}");
            let inner = format!(r#"update_task:{{"taskId":"T2","action":"{name}","payload":{{"labels":{labels}}}}}"#);
            assert_eq!(check_actions(&inner, &["T2 task_updated"]).find_task("T2").labels, expected, "{name}");
        }
    }
    check_actions(r#"update_task:{"taskId":"T2","action":"set_labels","labels":["a","b"]}"#, &[]);
}

#[test]
fn create_task_action_applies_all_given_fields() {
    let project = check_actions(
        r#"create_task:{"goal":"more","description":"at_length","labels":["x"],"priority":0,"parentTaskId":"T1","dependsOn":["T2"],"desiredDeliverables":["d"],"type":"bug"}"#,
        &["T5 task_created", "T5 dependency_added depends_on T2", "T5 dependency_added spawned_by T1"],
    );
    let task = project.find_task("T5");
    assert_eq!((u8::from(task.priority), task.body.as_deref()), (0, Some("at_length")));
    assert_eq!((&task.labels[..], &task.deliverables[..]), (&["x".to_owned()][..], &["d".to_owned()][..]));
    assert_eq!(task.kind.map(|kind| kind.to_string()).as_deref(), Some("bug"));
    let project = check_actions(r#"createTask:{"goal":"more","priority":null}"#, &["T5 task_created", "T5 task_ready"]);
    assert_eq!(u8::from(project.find_task("T5").priority), 2);
    let project = check_actions(
        r#"create_task:{"goal":"look","reviews":"T1"}"#,
        &["T5 task_created", "T5 dependency_added depends_on T1"],
    );
    assert_eq!(project.find_task("T5").report.and_then(|report| report.reviews), Some(TaskId(1)));
}

/// One error for each, with the type, the error and the payload of the request; the next action is performed.
#[test]
fn failed_action_records_one_error_and_next_is_performed() {
    let table = [
        ("create_task", json!({}), "missing field `goal`"),
        ("create_task", json!({"goal": "\t"}), "the goal is empty"),
        ("create_task", json!({"goal": 7}), "`goal`: invalid type: integer `7`, expected a string"),
        ("create_task", json!({"goal": "x", "labels": "y"}), "`labels`: "),
        ("create_task", json!({"goal": "x", "labels": [1]}), "`labels[0]`: "),
        ("create_task", json!({"goal": "x", "priority": "1"}), "`priority`: "),
        ("create_task", json!({"goal": "x", "priority": 5}), "`priority`: 5 is not a priority"),
        ("create_task", json!({"goal": "x", "priority": -1}), "`priority`: "),
        ("create_task", json!({"goal": "x", "priority": 1.5}), "`priority`: "),
        ("create_task", json!({"goal": "x", "parentTaskId": "T9"}), "there is no task T9"),
        ("create_task", json!({"goal": "x", "dependsOn": ["T9"]}), "there is no task T9"),
        ("create_task", json!({"goal": "x", "dependsOn": ["nine"]}), "`depends_on[0]`: `nine` is not a task id"),
        ("create_task", json!(["x"]), "the action cannot be read"),
        ("create_task", Value::Null, "the action cannot be read"),
        ("update_task", json!({"action": "start"}), "missing field `task_id`"),
        ("update_task", json!({"taskId": "T2"}), "missing field `action`"),
        ("update_task", json!({"taskId": "T9", "action": "start"}), "there is no task T9"),
        ("update_task", json!({"taskId": "T2", "action": "block"}), "`block`: missing field `reason`"),
        ("update_task", json!({"taskId": "T2", "action": "set_labels"}), "missing field `labels`"),
        ("update_task", json!({"taskId": "T2", "action": "merge"}), "unknown variant `merge`, expected one of `ready`"),
        ("update_task", json!({"taskId": "T2", "action": "unblock"}), "cannot unblock T2"),
        ("execute_workflow", json!({"workflowId": "w", "context": 1}), "`context`: "),
        ("execute_workflow", json!({"workflowId": "w", "taskId": "T9"}), "there is no task T9"),
        ("execute_workflow", json!({}), "missing field `workflow_id`"),
        (
            "log",
            json!({"type": "task_completed", "nodeId": "T2", "data": {}}),
            "cannot make a `task_completed`: write ",
        ),
        ("create_task", json!({"goal": "x", "prioity": 1}), "unknown field `prioity`, expected one of `goal`"),
        ("update_task", json!({"taskId": "T2", "action": "start", "labels": []}), "unknown field `labels`"),
        ("update_task", json!({"taskId": "T2", "action": "start", "payload": {"why": 1}}), "unknown field `why`"),
        ("execute_workflow", json!({"workflowId": "w", "with": {}}), "unknown field `with`"),
        ("log", json!({"type": "agent_metrics", "data": {"cost": 1}}), "no field `cost` in the data of"),
        ("log", json!({"type": "fact_logged"}), "a type with a namespace such as `review.passed`"),
        ("log", json!({"type": "Review.passed"}), "`Review.passed` is not an event type with a namespace"),
        ("dance", json!({"goal": "x"}), "`dance` is not known; it is one of create_task"),
    ];
    for (kind, payload, error) in table {
        let mut project = project_with_pending_hook();
        let asks = format!(r#"{kind}:{payload};create_task:{{"goal":"after"}}"#);
        let answered = project.run_script(&format!("hook one asks={asks}"));
        let [_, finished, failed, created, ready] = &answered[..] else { panic!("{kind} {payload}: {answered:#?}") };
        assert_eq!([finished, created, ready], ["T1 hook_finished one Success", "T5 task_created", "T5 task_ready"]);
        assert!(failed.contains(error), "{failed} does not say {error}");
        let recorded = project.event_data(EventType::ActionError);
        assert_eq!((&recorded["actionType"], &recorded["payload"]), (&json!(kind), &payload));
    }
}

#[test]
fn stateless_events_may_be_logged() {
    let suggestion = r#"{"labels":["x"],"keywords":[]}"#;
    let log = |rest: &str| format!(r#"log:{{"type":"auto_label_suggestion","data":{suggestion}{rest}}}"#);
    check_actions(&log(r#","nodeId":"T2""#), &["T2 auto_label_suggestion x"]);
    check_actions(&log(""), &["system auto_label_suggestion x"]);
    check_actions(&log(r#","nodeId":"T9""#), &["system action_error log: there is no task T9"]);
    check_actions(
        r#"log:{"type":"dependency_satisfied","nodeId":"T3","data":{"dependentTaskId":"T3","completedTaskId":"T1"}}"#,
        &["T3 dependency_satisfied T1"],
    );
    for (asked, why) in [
        (r#"log:{"type":"no_such_thing"}"#, "type"),
        (r#"log:{"type":"auto_label_suggestion","data":{"labels":7}}"#, "`data`"),
        (r#"log:{"data":{}}"#, "missing field `type`"),
    ] {
        let mut project = project_with_pending_hook();
        let answered = project.run_script(&format!("hook one asks={asked}"));
        assert!(answered.len() == 3 && answered[2].starts_with("system action_error log: "), "{answered:?}");
        assert!(answered[2].contains(why), "{answered:?}");
    }
}

#[test]
fn own_fact_logged_keeps_data_and_owes_hooks_of_its_type() {
    let at = |point: &str| HookEffect {
        point: point.parse().expect("a hook point"),
        ..hook_effect(point, HookClass::Other)
    };
    let points = ["review.passed", "review.failed", "fact_logged"].map(at).to_vec();
    let started = vec![hook_effect("one", HookClass::Other)];
    let events = [(EventType::TaskStarted, started), (EventType::FactLogged, points)];
    let effects = HookPlan::for_all_tasks("hooks: {}", "w1".parse().unwrap(), events);
    let mut project =
        ScriptProject::after(EngineRules { effects: Some(effects), ..default_rules() }, "add one\nstart T1");
    let fact = r#"log:{"type":"review.passed","nodeId":"T1","timestamp":"2025-01-01","data":{"score":3,"by":["ann"]}}"#;
    let answered = project.run_script(&format!("hook one asks={fact}"));
    assert_eq!(answered[2..], ["T1 fact_logged review.passed"]);
    let record = project.log.last().unwrap();
    let shown = serde_json::to_value(record).unwrap();
    assert_eq!((&shown["type"], &shown["data"]), (&json!("review.passed"), &json!({"score": 3, "by": ["ann"]})));
    let owed = record.envelope.metadata.owes.as_ref().unwrap();
    let owed: Vec<&str> = owed.hooks.iter().map(|hook| hook.point.name()).collect();
    assert_eq!(owed, ["review.passed", "fact_logged"]);
    project.simulate_crash();
}

#[test]
fn configured_validation_is_owed_before_hooks_of_stop() {
    let stop =
        vec![HookEffect { point: "stop".parse().expect("a hook point"), ..hook_effect("check", HookClass::Gate) }];
    let effects = HookPlan::for_all_tasks("hooks: {}", "w1".parse().unwrap(), [(EventType::TurnFinished, stop)]);
    let types = [("docs".parse().unwrap(), false)].into();
    let effects = HookPlan { validation: ValidationScope { project: true, types }, ..effects };
    for (kind, expected) in [("bug", vec!["validation", "check"]), ("docs", vec!["check"])] {
        let rules = EngineRules { effects: Some(effects.clone()), ..default_rules() };
        let script = format!("add one type={kind}\nsession a task=T1 by=w1\nturn-done a.1 says=complete");
        let project = ScriptProject::after(rules, &script);
        let turn = project.log.iter().rfind(|record| record.kind() == EventType::TurnFinished).unwrap();
        let owed = turn.envelope.metadata.owes.as_ref().unwrap();
        assert_eq!(owed.hooks.iter().map(|hook| hook.hook.as_str()).collect::<Vec<_>>(), expected, "{kind}");
    }
}

/// While a task is held, neither another person nor a hook moves it. Any caller may change its labels.
#[test]
fn hook_does_not_move_held_task() {
    let mut project = ScriptProject::after(rules_with_hooks(&["one"]), "add one\nclaim T1 by=w9 for=60s\nbegin one");
    assert_eq!(project.run_script("block T1"), ["! T1 is held by w9 (epoch 1)"]);
    let asked =
        project.run_script(r#"forced finish one asks=update_task:{"taskId":"T1","action":"block","reason":"why"}"#);
    let refused = "system action_error update_task: T1 is held by w9 (epoch 1)";
    assert_eq!(asked, ["T1 hook_finished one Success", refused]);
    let mut project = ScriptProject::after(rules_with_hooks(&["one"]), "add one\nclaim T1 by=w9 for=60s");
    project.run_script(r#"hook one asks=update_task:{"taskId":"T1","action":"add_labels","labels":["seen"]}"#);
    assert_eq!(project.find_task("T1").labels, ["seen"]);
}

// Several hooks of one event.

fn creation_request(goal: &str) -> String {
    format!(r#"create_task:{{"goal":"{goal}"}}"#)
}

/// Returns the goals of the tasks that hooks have created, in order.
fn created_goals(project: &ScriptProject) -> Vec<String> {
    project.memory.tasks().skip(1).map(|task| task.goal.clone()).collect()
}

/// Runs the lines with a crash before each, and returns the created tasks after each line.
fn created_goals_by_line(class: HookClass, script: &[String]) -> Vec<Vec<String>> {
    let mut rules = rules_with_hooks(&[]);
    let hooks = ["one", "two", "three"].map(|hook| hook_effect(hook, class).into());
    rules.effects.as_mut().unwrap().hooks.insert(EventType::TaskStarted, hooks.to_vec());
    let mut project = ScriptProject::after(rules, "add one\nstart T1");
    let each = script.iter().map(|line| {
        project.simulate_crash();
        let refused: Vec<_> = project.run_script(line).into_iter().filter(|line| line.starts_with('!')).collect();
        assert_eq!(refused, [""; 0], "{line}");
        created_goals(&project)
    });
    let each = each.collect();
    project.simulate_crash();
    assert_eq!(project.memory.next_pending_effect(None).unwrap(), None);
    each
}

#[track_caller]
fn check_created_goals(class: HookClass, script: &[&str], expected: &[&str]) {
    let lines: Vec<String> = script
        .iter()
        .map(|line| line.split("asks=").map(str::to_owned).collect::<Vec<_>>())
        .map(|parts| match &parts[..] {
            [line, goal] => format!("{line}asks={}", creation_request(goal)),
            _ => parts.concat(),
        })
        .collect();
    let each = created_goals_by_line(class, &lines);
    let (last, before) = each.split_last().unwrap();
    assert!(before.iter().all(Vec::is_empty), "before the last hook nothing is carried out: {before:?}");
    assert_eq!(last, expected);
}

#[test]
fn actions_are_performed_after_last_hook_in_order_of_requests() {
    check_created_goals(
        HookClass::Other,
        &["hook one asks=a", "hook two asks=b", "hook three asks=c"],
        &["a", "b", "c"],
    );
    check_created_goals(
        HookClass::Other,
        &["hook three asks=c", "hook one asks=a", "hook two asks=b"],
        &["c", "a", "b"],
    );
    check_created_goals(
        HookClass::Other,
        &["hook two asks=b", "hook three asks=c", "hook one asks=a"],
        &["b", "c", "a"],
    );
    check_created_goals(HookClass::Other, &["hook one asks=a", "hook two", "hook three"], &["a"]);
    check_created_goals(
        HookClass::Other,
        &["begin three", "begin one", "begin two", "finish two asks=b", "finish one", "finish three asks=c"],
        &["b", "c"],
    );
}

#[test]
fn actions_outlive_crash_of_hook_owner() {
    // The hook has not begun: another owner runs it.
    check_created_goals(
        HookClass::Other,
        &["hook one asks=a", "hook two", "recover three by=w2", "finish three by=w2 asks=c"],
        &["a", "c"],
    );
    // The hook has begun: the log records it as interrupted, or the new owner runs it again.
    check_created_goals(
        HookClass::Other,
        &["hook one asks=a", "hook two asks=b", "begin three", "recover three by=w2"],
        &["a", "b"],
    );
    check_created_goals(
        HookClass::Gate,
        &["hook one asks=a", "begin two", "recover two by=w2", "hook three asks=c", "finish two by=w2 asks=b"],
        &["a", "c", "b"],
    );
    check_created_goals(
        HookClass::Other,
        &["hook one asks=a", "begin two", "retry two after=flaky", "finish two asks=b", "hook three"],
        &["a", "b"],
    );
}

/// A failing hook may also request actions: only its answer counts.
#[test]
fn actions_count_for_every_hook_outcome() {
    for outcome in ["failure", "block", "escalate", "continue", "skip", "timed_out"] {
        let mut project = project_with_pending_hook();
        let answered = project.run_script(&format!("hook one out={outcome} asks={}", creation_request("more")));
        assert_eq!(answered[2..], ["T5 task_created", "T5 task_ready"], "{outcome}");
    }
}

/// The end of a session skips hooks that have not begun, and performs the actions that were asked for before.
#[test]
fn actions_outlive_end_of_session() {
    let mut rules = super::session_loop::loop_rules(&["check", "lint", "bye"]);
    let mut project =
        ScriptProject::after(rules.clone(), "session a\nturn-done a.1\nhook check asks=create_task:{\"goal\":\"a\"}");
    assert_eq!(
        project.run_script("stop a"),
        [
            "system session_stopping Cancelled",
            "system hook_finished lint Skip",
            "T1 task_created",
            "T1 task_ready",
            "system iteration_interrupted a.1",
            "system session_ended Cancelled",
        ],
    );
    let created = project.log.iter().find(|record| record.kind() == EventType::TaskCreated).unwrap();
    assert_eq!(created.envelope.session.as_ref().map(|name| name.as_str()), Some("a"));
    project.simulate_crash();
    assert_eq!(
        project.run_script("hook bye asks=create_task:{\"goal\":\"b\"}")[2..],
        ["T2 task_created", "T2 task_ready"]
    );
    assert_eq!(project.pending_effects(), []);
    // The hook has begun: the session waits for the owner of the hook.
    rules.effects.as_mut().unwrap().hooks.remove(&EventType::SessionEnded);
    let mut project = ScriptProject::after(
        rules,
        "session a\nturn-done a.1\nhook check asks=create_task:{\"goal\":\"a\"}\nbegin lint\nstop a",
    );
    assert_eq!(created_goals(&project), [""; 0]);
    project.run_script("finish lint out=cancelled asks=create_task:{\"goal\":\"b\"}");
    assert_eq!(project.memory.tasks().map(|task| task.goal.as_str()).collect::<Vec<_>>(), ["a", "b"]);
}

/// Hooks at the start of a turn are pending beside the turn itself, which asks for no actions.
#[test]
fn actions_do_not_wait_for_turn() {
    let hooks = ["one", "two"].map(|hook| hook_effect(hook, HookClass::Other)).to_vec();
    let effects = HookPlan::for_all_tasks("hooks: {}", "w1".parse().unwrap(), [(EventType::TurnStarted, hooks)]);
    let mut project =
        ScriptProject::after(EngineRules { effects: Some(effects), ..default_rules() }, "session a by=w2");
    let answered = project.run_script(&format!(
        "hook two asks={}\nhook one asks={}\ncrash",
        creation_request("b"),
        creation_request("a")
    ));
    assert_eq!(answered.iter().filter(|line| line.contains("task_created")).count(), 2);
    let goals: Vec<_> = project.memory.tasks().map(|task| task.goal.as_str()).collect();
    assert_eq!(goals, ["b", "a"]);
}

// Retries.

#[test]
fn attempts_are_counted_and_marked() {
    super::script::check_with(
        rules_with_hooks(&["one"]),
        "add one
         start T1
         --
         retry one after=flaky
         begin one
         retry one by=w2 after=flaky
         retry one after=flaky
         retry one after=again
         finish one",
        "! 4.0 has not begun
         T1 hook_started one 1 by w1
         ! 4.0 belongs to another process
         T1 hook_started one 2 by w1 after flaky
         T1 hook_started one 3 by w1 after again
         T1 hook_finished one Success",
    );
}
