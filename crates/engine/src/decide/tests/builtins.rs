//! The built-in hooks, with the examples of their specification.

use serde_json::json;

use super::script::{ScriptProject, check, check_with, default_rules};
use crate::command::limits::EngineLimits;
use crate::command::{Command, NewTask};
use crate::decide::EngineRules;
use crate::log::event_type::EventType;
use crate::task::EdgeKind;
use crate::task::graph::waiting_tasks;
use crate::view::{EdgeDirection, StateView};

fn research_task() -> NewTask {
    NewTask {
        goal: "Research graph patterns".to_owned(),
        labels: vec!["agent".to_owned(), "research".to_owned()],
        deliverables: vec!["Research doc".to_owned(), "Pattern catalog".to_owned()],
        priority: 1.try_into().unwrap(),
        ..NewTask::default()
    }
}

#[test]
fn completed_agent_task_spawns_review_task() {
    let mut project = ScriptProject::new(default_rules());
    project.commit_as_person(&Command::CreateTask(research_task())).unwrap();
    let answered = project.run_script("complete T1 Research complete");
    let expected = [
        "T1 task_completed",
        "T2 task_created",
        "T2 dependency_added spawned_by T1",
        "T2 task_ready",
        "T1 agent_metrics",
    ];
    assert_eq!(answered, expected);
    assert_eq!(project.event_data(EventType::TaskCompleted), json!({"result": "Research complete", "artifacts": []}));
    assert_eq!(
        project.event_data(EventType::TaskCreated),
        json!({
            "goal": "Review: Research graph patterns",
            "deliverables": ["Review completed", "Feedback provided"],
            "labels": ["review", "agent", "research"],
            "priority": 1,
            "report": {"reviews": "T1"},
        }),
    );
    let edges = project.memory.find_edges("T2".parse().unwrap(), EdgeDirection::From).unwrap();
    let edges: Vec<_> = edges.iter().map(|edge| (edge.kind, edge.to_id.to_string())).collect();
    assert_eq!(edges, [(EdgeKind::SpawnedBy, "T1".to_owned())]);
    assert_eq!(waiting_tasks(&project.memory, "T1".parse().unwrap()).unwrap(), [], "a review waits for no task");
}

#[test]
fn review_waits_for_task_that_is_not_completed() {
    check(
        "add code
         add look reviews=T1
         add look again reviews=T1 after=T1
         complete T1
         add look once more reviews=T1",
        "T1 task_created
         T1 task_ready
         T2 task_created
         T2 dependency_added depends_on T1
         T3 task_created
         T3 dependency_added depends_on T1
         T1 task_completed
         T2 task_ready
         T2 dependency_satisfied T1
         T3 task_ready
         T3 dependency_satisfied T1
         T4 task_created
         T4 task_ready",
    );
}

#[test]
fn review_task_records_completion_as_its_cause() {
    let project = ScriptProject::after(default_rules(), "add mend it labels=agent\ncomplete T1");
    let completed = project.log.iter().find(|record| record.kind() == EventType::TaskCompleted).unwrap();
    let review = project.log.iter().rfind(|record| record.kind() == EventType::TaskCreated).unwrap();
    assert_eq!(review.cause_position(), Some(completed.seq));
    assert_eq!((completed.envelope.metadata.depth, review.envelope.metadata.depth), (0, 1));
    assert_eq!(completed.cause_position(), None);
}

#[test]
fn review_task_inherits_most_urgent_priority() {
    let project = ScriptProject::after(default_rules(), "add put out the fire labels=agent prio=0\ncomplete T1");
    assert_eq!(project.find_task("T2").priority, 0.try_into().unwrap());
}

#[test]
fn completed_review_task_spawns_no_further_review() {
    check(
        "add mend it labels=agent
         complete T1
         --
         complete T2",
        "T2 task_completed
         T2 agent_metrics",
    );
}

#[test]
fn task_without_agent_label_gets_neither_review_nor_metrics() {
    check("add mend it labels=agents\n--\ncomplete T1", "T1 task_completed");
}

#[test]
fn task_becomes_ready_when_its_last_dependency_completes() {
    check(
        "add ten
         add fifteen
         add twenty after=T1,T2
         start T2
         --
         complete T1
         complete T2",
        "T1 task_completed
         T2 task_completed
         T3 task_ready
         T3 dependency_satisfied T2",
    );
    let project =
        ScriptProject::after(default_rules(), "add a\nadd b\nadd c after=T1,T2\nstart T2\ncomplete T1\ncomplete T2");
    assert_eq!(
        project.event_data(EventType::DependencySatisfied),
        json!({"dependentTaskId": "T3", "completedTaskId": "T2"}),
    );
}

#[test]
fn agent_metrics_record_duration_and_task_fields_on_completion() {
    let mut project = ScriptProject::new(default_rules());
    project.commit_as_person(&Command::CreateTask(research_task())).unwrap();
    project.run_script("start T1\nlater 9000s\ncomplete T1");
    assert_eq!(
        project.event_data(EventType::AgentMetrics),
        json!({
            "goal": "Research graph patterns",
            "labels": ["agent", "research"],
            "priority": 1,
            "durationMs": 9_000_000,
            "deliverables": ["Research doc", "Pattern catalog"],
        }),
    );
}

#[test]
fn agent_metrics_have_no_duration_for_unstarted_task() {
    let project = ScriptProject::after(default_rules(), "add mend it labels=agent\nlater 5s\ncomplete T1");
    assert_eq!(project.event_data(EventType::AgentMetrics)["durationMs"], json!(null));
}

#[test]
fn agent_metrics_measure_restarted_task_from_first_start() {
    let script = "add mend it labels=agent\nstart T1\nlater 5s\nrelease T1\nstart T1\nlater 5s\ncomplete T1";
    let project = ScriptProject::after(default_rules(), script);
    assert_eq!(project.event_data(EventType::AgentMetrics)["durationMs"], json!(10_000));
}

fn rules_with_auto_labels() -> EngineRules {
    let mut rules = default_rules();
    rules.registry.configure_hook("auto-label-by-keyword", true, None).unwrap();
    rules
}

#[test]
fn labels_are_suggested_only_where_that_is_switched_on() {
    check("add fix the slow start", "T1 task_created\nT1 task_ready");
    check_with(
        rules_with_auto_labels(),
        "add fix the slow start",
        "T1 task_created\nT1 task_ready\nT1 auto_label_suggestion bug,performance",
    );
}

#[test]
fn labels_are_suggested_by_whole_words() {
    let nothing = "T1 task_created\nT1 task_ready";
    check_with(rules_with_auto_labels(), "add add a prefix to the latest debugger", nothing);
    check_with(rules_with_auto_labels(), "add fix it labels=bug", nothing);
    check_with(rules_with_auto_labels(), "add (Bug): crash!", &format!("{nothing}\nT1 auto_label_suggestion bug"));
}

#[test]
fn builtin_hooks_are_ordered_by_priority() {
    let rules = default_rules();
    let hooks: Vec<_> = rules.registry.hooks().map(|hook| (&*hook.name, hook.priority, hook.enabled)).collect();
    assert_eq!(
        hooks,
        [
            ("auto-label-by-keyword", 5, false),
            ("auto-create-review-task", 10, true),
            ("check-dependency-satisfaction", 20, true),
            ("track-agent-task-lifecycle", 50, true),
        ],
    );
}

#[test]
fn review_is_created_for_task_at_goal_and_label_limits() {
    let mut project = ScriptProject::new(default_rules());
    let labels: Vec<_> = (1..EngineLimits::LABEL_COUNT).map(|number| format!("label-{number}")).collect();
    let goal = "ä".repeat(EngineLimits::GOAL_BYTES / 2);
    project.run_script(&format!("add {goal} labels=agent,{}", labels.join(",")));
    let answered = project.run_script("complete T1");
    assert!(answered.contains(&"T2 task_created".to_owned()), "{answered:?}");
}

#[test]
fn claim_makes_task_ready_where_built_in_is_disabled() {
    let mut rules = default_rules();
    rules.registry.configure_hook("check-dependency-satisfaction", false, None).unwrap();
    check_with(
        rules,
        "add one
         add two after=T1
         complete T1
         --
         start T2",
        "T2 task_ready
         T2 task_started",
    );
}

/// Checks the events after the completion of a task with these labels.
#[test]
fn labels_of_reviews_and_metrics_match_as_whole_words() {
    let review = "T2 task_created\nT2 dependency_added spawned_by T1\nT2 task_ready\nT1 agent_metrics";
    for (labels, expected) in [
        ("agent", review),
        ("agent,research", review),
        ("research,agent", review),
        ("agent,reviewed", review),
        ("agent,code-review", review),
        ("agent,Review", review),
        ("agent,review", "T1 agent_metrics"),
        ("review,agent", "T1 agent_metrics"),
        ("review", ""),
        ("agents", ""),
        ("Agent", ""),
        ("an-agent", ""),
        ("agent-x", ""),
    ] {
        let script = format!("add mend it labels={labels}\n--\ncomplete T1");
        check(&script, &format!("T1 task_completed\n{expected}"));
    }
}

#[test]
fn review_task_inherits_priority_labels_and_goal() {
    for priority in 0..=4_u8 {
        let script = format!("add mend it labels=agent,x prio={priority}\ncomplete T1");
        let project = ScriptProject::after(default_rules(), &script);
        let review = project.find_task("T2");
        assert_eq!(u8::from(review.priority), priority);
        assert_eq!(review.labels, ["review", "agent", "x"]);
        assert_eq!(review.goal, "Review: mend it");
    }
    let project = ScriptProject::after(default_rules(), "add mend it labels=agent\ncomplete T1");
    assert_eq!(u8::from(project.find_task("T2").priority), 2);
}

/// Checks the labels that a goal suggests.
#[test]
fn words_of_the_goal_and_labels() {
    for (goal, expected) in [
        ("fix", "bug"),
        ("FIX IT", "bug"),
        ("fix-up", "bug"),
        ("a_bug", "bug"),
        ("prefix", ""),
        ("fixture", ""),
        ("debug", ""),
        ("latest", ""),
        ("test", "test"),
        ("testing tests", "test"),
        ("contest", ""),
        ("review the docs", "docs,review"),
        ("docs, then review", "docs,review"),
        ("preview", ""),
        ("CVE-2026-1", "security"),
        ("slowly", ""),
        ("explore «performance»", "performance,research"),
        ("fix labels=bug", ""),
        ("fix labels=Bug", "bug"),
        ("fix labels=bug-report", "bug"),
        ("fix the docs labels=bug", "docs"),
    ] {
        let mut project = ScriptProject::new(rules_with_auto_labels());
        let answered = project.run_script(&format!("add {goal}"));
        let suggested = answered.iter().find_map(|line| line.strip_prefix("T1 auto_label_suggestion "));
        assert_eq!(suggested.unwrap_or_default(), expected, "{goal}");
    }
}

/// Checks which tasks become ready when T1 is completed.
#[test]
fn dependents_become_ready_once_and_in_order() {
    let satisfied = |ids: &[&str]| {
        ids.iter().map(|id| format!("{id} task_ready\n{id} dependency_satisfied T1\n")).collect::<String>()
    };
    for (graph, expected) in [
        ("add a\nadd b", satisfied(&[])),
        ("add a\nadd b after=T1", satisfied(&["T2"])),
        ("add a\nadd b after=T1,T1", satisfied(&["T2"])),
        ("add a\nadd b after=T1\nlink T1 blocks T2", satisfied(&["T2"])),
        ("add a\nadd b\nlink T1 blocks T2", satisfied(&["T2"])),
        ("add a\nadd b\nlink T2 references T1", satisfied(&[])),
        ("add a\nadd b parent=T1", satisfied(&[])),
        ("add a\nadd b after=T1\nadd c after=T1", satisfied(&["T2", "T3"])),
        ("add a\nadd b\nadd c after=T1,T2", satisfied(&[])),
        ("add a\nadd b\nadd c after=T1,T2\ncomplete T2", satisfied(&["T3"])),
        ("add a\nadd b after=T1\nadd c after=T2", satisfied(&["T2"])),
        ("add a\nadd b after=T1\nblock T2", satisfied(&[])),
        ("add a\nadd b after=T1\nforced start T2", satisfied(&[])),
        ("add a\nadd b after=T1\ndelete T2", satisfied(&[])),
        ("add a\nadd b after=T1\nunlink T2 depends_on T1", satisfied(&[])),
    ] {
        check(&format!("{graph}\n--\ncomplete T1"), &format!("T1 task_completed\n{expected}"));
    }
}

/// Checks the duration of an agent's task, by its history before the completion.
#[test]
fn agent_metrics_measure_duration_of_work() {
    for (script, millis) in [
        ("start T1", json!(0)),
        ("start T1\nlater 1s", json!(1_000)),
        ("later 60s\nstart T1\nlater 1s", json!(1_000)),
        ("later 60s", json!(null)),
        ("start T1\nlater 5s\nsubmit T1\nlater 5s", json!(10_000)),
        ("start T1\nlater 5s\nblock T1\nlater 5s\nunblock T1", json!(10_000)),
        ("start T1\nlater 5s\nfail T1\nreopen T1\nlater 7s\nstart T1\nlater 1s", json!(1_000)),
        ("start T1\nlater -5s", json!(null)),
    ] {
        let script = format!("add mend it labels=agent\n{script}\ncomplete T1");
        let project = ScriptProject::after(default_rules(), &script);
        assert_eq!(project.event_data(EventType::AgentMetrics)["durationMs"], millis, "{script}");
    }
}

#[test]
fn metrics_are_kept_only_at_the_end() {
    check("add mend it labels=agent\nstart T1", "T1 task_created\nT1 task_ready\nT1 task_started");
}
