//! Types of tasks, and the agents that may take their tasks.

use super::script::{ScriptProject, check, check_with, default_rules, run_id};
use crate::command::{Authority, Command, TaskPatch};
use crate::decide::{EngineRules, HookPlan, HookScope, PlannedHook};
use crate::effects::hook_batch::HookEffect;
use crate::effects::hook_outcome::{HookClass, HookFailurePolicy};
use crate::evaluation::NewIterationSeries;
use crate::log::event_type::EventType;
use crate::session::promise::Promise;
use crate::task::types::TaskTypes;

/// Returns types: `product` is for ann and bob, `infra` for ann, `closed` for no agent, `open` for all.
fn typed_rules() -> EngineRules {
    let list = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
    let types = [("product", list(&["ann", "bob"])), ("infra", list(&["ann"])), ("closed", list(&[])), ("open", None)];
    let types = TaskTypes::new(types.map(|(name, allowed)| (name.parse().unwrap(), allowed)));
    EngineRules { types, ..default_rules() }
}

#[test]
fn unknown_type_is_refused_when_task_is_created_or_retyped() {
    check_with(
        typed_rules(),
        "add one type=prodct
         add two type=legal
         add three type=open
         add four",
        "! there is no type `prodct`; did you mean `product`? There are closed, infra, open and product
         ! there is no type `legal`; there are closed, infra, open and product
         T1 task_created
         T1 task_ready
         T2 task_created
         T2 task_ready",
    );
    let mut project = ScriptProject::after(typed_rules(), "add one type=open");
    let retype = |kind: Option<&str>| {
        let kind = Some(kind.map(|kind| kind.parse().unwrap()));
        Command::UpdateTask { id: "T1".parse().unwrap(), patch: TaskPatch { kind, ..TaskPatch::default() } }
    };
    for authority in [Authority::Person, Authority::Forced] {
        let refusal = project.commit_as(authority, None, &retype(Some("infar"))).unwrap_err();
        assert!(refusal.to_string().starts_with("there is no type `infar`; did you mean `infra`?"), "{refusal}");
    }
    project.commit_as_person(&retype(Some("infra"))).unwrap();
    project.commit_as_person(&retype(None)).unwrap();
    // A task keeps a type that the configuration no longer has, and its other fields can change.
    let mut project = ScriptProject::after(default_rules(), "add one type=gone");
    project.rules = typed_rules();
    project.commit_as_person(&retype(Some("gone"))).unwrap();
    assert_eq!(project.run_script("reword T1 another"), ["T1 task_updated"]);
    assert_eq!(project.run_script("claim for=60s agent=cid")[0], "T1 task_claimed w1 epoch 1");
}

#[test]
fn project_without_types_accepts_any_type_and_any_agent() {
    check(
        "add one type=whatever
         claim for=60s agent=cid",
        "T1 task_created
         T1 task_ready
         T1 task_claimed w1 epoch 1
         T1 task_started",
    );
}

#[test]
fn claim_of_named_task_is_refused_for_unlisted_agent() {
    check_with(
        typed_rules(),
        "add one type=product
         add two type=closed
         add three type=open
         --
         claim T1 for=60s agent=cid
         claim T2 for=60s agent=ann
         claim T3 for=60s agent=cid
         claim T1 for=60s agent=bob",
        "! T1 is of the type `product`, on which `cid` may not work; only `ann` and `bob` may
         ! T2 is of the type `closed`, on which `ann` may not work; no agent may: its list of implementers is empty
         T3 task_claimed w1 epoch 1
         T3 task_started
         T1 task_claimed w1 epoch 1
         T1 task_started",
    );
}

#[test]
fn person_claims_any_named_task_but_is_offered_open_ones() {
    check_with(
        typed_rules(),
        "add one type=product prio=0
         add two prio=3
         --
         claim for=60s
         claim for=60s
         claim T1 for=60s",
        "T2 task_claimed w1 epoch 1
         T2 task_started
         ! nothing is ready that is open to all; T1 is of the type `product`, and only `ann` and `bob` may
         T1 task_claimed w1 epoch 1
         T1 task_started",
    );
}

#[test]
fn claim_without_name_takes_first_task_allowed_for_agent() {
    check_with(
        typed_rules(),
        "add one type=product prio=0
         add two type=infra prio=1
         add three type=open prio=2
         --
         claim for=60s agent=cid
         claim for=60s agent=cid
         claim for=60s agent=bob
         claim for=60s agent=bob
         claim for=60s agent=ann
         claim for=60s agent=ann",
        "T3 task_claimed w1 epoch 1
         T3 task_started
         ! nothing is ready for `cid`; T1 is of the type `product`, and only `ann` and `bob` may
         T1 task_claimed w1 epoch 1
         T1 task_started
         ! nothing is ready for `bob`; T2 is of the type `infra`, and only `ann` may
         T2 task_claimed w1 epoch 1
         T2 task_started
         ! nothing is ready",
    );
}

#[test]
fn session_is_refused_for_task_closed_to_its_agent() {
    check_with(
        typed_rules(),
        "add one type=infra
         --
         session a task=T1 agent=bob
         session a task=T1 agent=ann",
        "! T1 is of the type `infra`, on which `bob` may not work; only `ann` may
         system config_recorded
         T1 session_started
         T1 task_claimed w1 epoch 1
         T1 task_started
         T1 iteration_started a.1
         T1 turn_started a.1 to work",
    );
}

#[test]
fn graph_session_skips_tasks_of_other_agents_and_reports_them() {
    let mut project = ScriptProject::after(
        typed_rules(),
        "add one type=infra prio=0
         add two type=product prio=1
         session a work=graph agent=bob",
    );
    assert_eq!(project.find_session("a").task.map(|id| id.0), Some(2));
    let lines = project.run_script("turn-done a.1 says=complete");
    let said = "T2 session_ended Completed, nothing is ready for `bob`; T1 is of the type `infra`, and only `ann` may";
    assert_eq!(lines.last().map(String::as_str), Some(said), "{lines:?}");
}

#[test]
fn task_retyped_for_other_agent_is_not_retaken() {
    let mut project = ScriptProject::after(typed_rules(), "add one type=product\nsession a task=T1 agent=bob");
    let patch = TaskPatch { kind: Some(Some("infra".parse().unwrap())), ..TaskPatch::default() };
    project.commit_as(Authority::Forced, None, &Command::UpdateTask { id: "T1".parse().unwrap(), patch }).unwrap();
    // The session that holds the task continues.
    assert!(project.find_session("a").ending_kind().is_none());
    project.run_script("forced release T1");
    let lines = project.run_script("turn-done a.1");
    let said = "T1 session_ended Cancelled, T1 is of the type `infra`, on which `bob` may not work; only `ann` may";
    assert_eq!(lines.last().map(String::as_str), Some(said), "{lines:?}");
}

#[test]
fn claim_during_turn_is_checked_against_agent_of_session() {
    let mut project = ScriptProject::after(
        typed_rules(),
        "add one type=product
         add two type=infra
         add three type=product
         session a task=T1 agent=bob",
    );
    let lines = project.run_script(
        "run=a.1 claim T2 for=60s
         run=a.1 claim T2 for=60s agent=ann
         run=a.1 start T2
         run=a.1 claim for=60s",
    );
    assert_eq!(
        lines,
        [
            "! T2 is of the type `infra`, on which `bob` may not work; only `ann` may",
            "! the agent of this session is `bob`, not `ann`",
            "! T2 is of the type `infra`, on which `bob` may not work; only `ann` may",
            "T3 task_claimed w1 epoch 1",
            "T3 task_started",
        ]
    );
}

#[test]
fn hook_creating_task_of_unknown_type_records_action_error() {
    let mut project = ScriptProject::after(
        EngineRules { types: typed_rules().types, ..super::session_loop::loop_rules(&["check"]) },
        "add one\nsession a task=T1",
    );
    project.run_script("turn-done a.1 says=complete");
    let lines = project.run_script(r#"hook check asks=create_task:{"goal":"more","type":"prodct"}"#);
    assert!(lines.iter().any(|line| line.starts_with("system action_error")), "{lines:?}");
    assert!(!lines.iter().any(|line| line.contains("task_created")), "{lines:?}");
}

/// Returns the rules of `typed_rules`, where tasks of the type `open` have hooks of their own at these points.
fn gated_rules(points: &[(EventType, &str)]) -> EngineRules {
    let mut effects = HookPlan::for_all_tasks(super::script::SESSION_CONFIG, "w1".parse().unwrap(), []);
    for (event, point) in points {
        let hook = HookEffect {
            hook: format!("{point}[0]"),
            point: (*point).parse().expect("a hook point"),
            class: HookClass::Gate,
            on_failure: HookFailurePolicy::Block,
            send_backs: None,
        };
        let scope = HookScope::TaskType("open".parse().unwrap());
        effects.hooks.entry(*event).or_default().push(PlannedHook { scope, ..hook.into() });
    }
    EngineRules { effects: Some(effects), ..typed_rules() }
}

const GATE_POINTS: [(EventType, &str); 3] = [
    (EventType::TurnFinished, "stop"),
    (EventType::SubmissionStarted, "before_submit"),
    (EventType::MergeStarted, "before_merge"),
];

#[test]
fn agent_does_not_start_or_complete_gated_task_of_others() {
    let script = "add own
                  add gated type=open
                  add plain
                  session a task=T1 agent=ann
                  --
                  start T2 run=a.1
                  complete T2 run=a.1
                  forced complete T2 run=a.1
                  claim T2 for=60s by=w9 run=a.1
                  epoch=1 complete T2 run=a.1
                  start T3 run=a.1
                  complete T3 run=a.1
                  epoch=1 complete T2";
    let refused = |gates: &str| {
        format!(
            "! cannot start T2 from inside a session: tasks of the type `open` must pass their gates ({gates})
             ! cannot complete T2 from inside a session: tasks of the type `open` must pass their gates ({gates})
             ! cannot complete T2 from inside a session: tasks of the type `open` must pass their gates ({gates})
             T2 task_claimed w9 epoch 1
             T2 task_started
             ! cannot complete T2 from inside a session: tasks of the type `open` must pass their gates ({gates})
             T3 task_started
             T3 task_completed
             T2 task_completed"
        )
    };
    check_with(gated_rules(&GATE_POINTS), script, &refused("stop, before_submit, before_merge"));
    for gate in GATE_POINTS {
        check_with(gated_rules(&[gate]), script, &refused(gate.1));
    }
    let mut ruled = gated_rules(&[]);
    let rules = ruled.effects.as_mut().map(|effects| &mut effects.validation.types).unwrap();
    rules.insert("open".parse().unwrap(), true);
    check_with(ruled, script, &refused("validation"));
}

#[test]
fn agent_completes_ungated_task_of_type() {
    check_with(
        gated_rules(&[(EventType::TaskCompleted, "on_task_complete"), (EventType::TurnFinished, "turn_finished")]),
        "add own
         add other type=open
         session a task=T1 agent=ann
         --
         complete T2 run=a.1",
        "T2 task_completed",
    );
}

#[test]
fn agent_does_not_complete_task_for_other_implementers() {
    check_with(
        typed_rules(),
        "add own
         add infra type=infra
         add product type=product
         session a task=T1 agent=bob
         --
         complete T2 run=a.1
         complete T3 run=a.1
         complete T2",
        "! T2 is of the type `infra`, on which `bob` may not work; only `ann` may
         T3 task_completed
         T2 task_completed",
    );
}

#[test]
fn agent_neither_starts_nor_completes_series_on_gated_task() {
    let mut project = ScriptProject::after(
        gated_rules(&GATE_POINTS[..1]),
        "add own\nadd gated type=open\nsession a task=T1 agent=ann",
    );
    let task = "T2".parse().unwrap();
    let rules = vec![];
    let new =
        NewIterationSeries { max_iterations: 3, promises: vec![Promise::Complete], rules, breaker: 3, strict: false };
    let agent = || Some(run_id("a.1"));
    let start = Command::StartSeries { task, new };
    let refusal = project.commit_as(Authority::Person, agent(), &start).unwrap_err();
    assert!(refusal.to_string().starts_with("cannot start T2 from inside a session"), "{refusal}");
    project.commit_as_person(&start).unwrap();
    let series = project.find_task("T2").evaluation.series.unwrap().id;
    let complete = Command::CompleteSeries { task, series, promise: Promise::Complete };
    let refusal = project.commit_as(Authority::Person, agent(), &complete).unwrap_err();
    assert!(refusal.to_string().ends_with("must pass their gates (stop)"), "{refusal}");
    project.commit_as_person(&complete).unwrap();
}
