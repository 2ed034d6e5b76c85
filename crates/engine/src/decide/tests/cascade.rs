//! Pure hooks that fail, request refused actions, or would run without end.

use serde_json::{Value, json};

use super::script::{ScriptProject, check_with, default_rules};
use crate::command::NewTask;
use crate::command::limits::EngineLimits;
use crate::decide::EngineRules;
use crate::effects::action::{HookAction, TaskAction};
use crate::effects::registry::{PureHook, PureHookError};
use crate::log::event::{Event, EventRecord, EventSubject, payload};
use crate::log::event_type::EventType;
use crate::log::id::TaskId;
use crate::view::StateView;

/// The limit as the length of a list.
const MAX_EVENTS: usize = EngineLimits::CASCADE_EVENTS as usize;

type PureHookAnswer = Result<Vec<HookAction>, PureHookError>;
type PureHookFunction = fn(&EventRecord, &dyn StateView) -> PureHookAnswer;

/// Returns the default rules with further hooks and their events.
fn rules_with_hooks<const N: usize>(hooks: [(&str, &[EventType], PureHookFunction); N]) -> EngineRules {
    let mut rules = default_rules();
    for (name, events, handler) in hooks {
        rules.registry.register(PureHook::new(name, events.iter().copied(), handler)).unwrap();
    }
    rules
}

fn creation_action(goal: &str) -> HookAction {
    HookAction::CreateTask(NewTask { goal: goal.to_owned(), ..NewTask::default() })
}

fn log_action(node: EventSubject) -> HookAction {
    let event = payload::AutoLabelSuggestion { labels: vec!["seen".to_owned()], keywords: vec![] };
    HookAction::Log { node, event: event.into() }
}

fn fail_always(_: &EventRecord, _: &dyn StateView) -> PureHookAnswer {
    Err(PureHookError::Failed("out of order".to_owned()))
}

fn panic_always(_: &EventRecord, _: &dyn StateView) -> PureHookAnswer {
    panic!("dizzy")
}

fn log_note(record: &EventRecord, _: &dyn StateView) -> PureHookAnswer {
    Ok(vec![log_action(record.envelope.node)])
}

#[test]
fn failing_pure_hook_is_recorded_and_others_run() {
    let rules = rules_with_hooks([
        ("broken", &[EventType::TaskStarted], fail_always),
        ("sound", &[EventType::TaskStarted], log_note),
    ]);
    let mut project = ScriptProject::after(rules, "add one");
    let answered = project.run_script("start T1");
    assert_eq!(answered, ["T1 task_started", "T1 hook_error broken: out of order", "T1 auto_label_suggestion seen"]);
    assert_eq!(
        project.event_data(EventType::HookError),
        json!({
            "hookName": "broken",
            "error": "out of order",
            "originalEvent": {
                "timestamp": "2026-01-17T10:00:00.000Z",
                "type": "task_started",
                "nodeId": "T1",
                "data": {"context": null},
                "metadata": {"triggeredBy": "ada", "depth": 0},
            },
        }),
    );
}

#[test]
fn refused_action_is_recorded_and_next_is_performed() {
    fn request_actions(_: &EventRecord, _: &dyn StateView) -> PureHookAnswer {
        Ok(vec![
            HookAction::UpdateTask { task: TaskId(1), action: TaskAction::Ready { after: None } },
            creation_action(" "),
            HookAction::CreateTask(NewTask { depends_on: vec![TaskId(9)], goal: "x".to_owned(), ..NewTask::default() }),
            log_action(EventSubject::Task(TaskId(9))),
            log_action(EventSubject::Task(TaskId(1))),
        ])
    }
    let mut project =
        ScriptProject::after(rules_with_hooks([("asks", &[EventType::TaskStarted], request_actions)]), "add one");
    assert_eq!(
        project.run_script("start T1"),
        [
            "T1 task_started",
            "system action_error update_task: cannot move T1: it is active, and that is possible only from created",
            "system action_error create_task: the goal is empty",
            "system action_error create_task: there is no task T9",
            "system action_error log: there is no task T9",
            "T1 auto_label_suggestion seen",
        ],
    );
    assert_eq!(project.memory.tasks().count(), 1);
    let first = project.log.iter().find(|record| record.kind() == EventType::ActionError).unwrap();
    assert_eq!(serde_json::to_value(first).unwrap()["data"]["payload"], json!({"taskId": "T1", "action": "ready"}),);
}

#[test]
fn hook_log_action_refuses_state_changing_events() {
    fn log_state_change(record: &EventRecord, _: &dyn StateView) -> PureHookAnswer {
        let done = payload::TaskCompleted { result: None, artifacts: vec![] };
        let fake =
            payload::HookError { hook_name: "x".into(), error: "x".into(), original_event: Value::Null, effect: None };
        let events: [Event; 2] = [done.into(), fake.into()];
        Ok(events.into_iter().map(|event| HookAction::Log { node: record.envelope.node, event }).collect())
    }
    check_with(
        rules_with_hooks([("lies", &[EventType::TaskStarted], log_state_change)]),
        "add one
         --
         start T1",
        "T1 task_started
         system action_error log: a log action cannot make a `task_completed`: that event changes state
         system action_error log: a log action cannot make a `hook_error`: that event changes state",
    );
}

#[test]
fn hook_may_log_system_event_without_task() {
    fn log_system_event(_: &EventRecord, _: &dyn StateView) -> PureHookAnswer {
        Ok(vec![log_action(EventSubject::System)])
    }
    check_with(
        rules_with_hooks([("tells", &[EventType::TaskStarted], log_system_event)]),
        "add one\n--\nstart T1",
        "T1 task_started\nsystem auto_label_suggestion seen",
    );
}

#[test]
fn hook_action_after_forced_command_is_not_forced() {
    fn spawn_task(_: &EventRecord, _: &dyn StateView) -> PureHookAnswer {
        Ok(vec![creation_action("more")])
    }
    check_with(
        rules_with_hooks([("spawns", &[EventType::TaskStarted], spawn_task)]),
        "add one\n--\nforced start T1",
        "T1 task_started (forced)\nT2 task_created\nT2 task_ready",
    );
}

#[test]
fn cascade_stops_at_depth_limit_with_one_error() {
    fn spawn_successor(_: &EventRecord, _: &dyn StateView) -> PureHookAnswer {
        Ok(vec![creation_action("another")])
    }
    let mut project = ScriptProject::new(rules_with_hooks([("breeds", &[EventType::TaskCreated], spawn_successor)]));
    let answered = project.run_script("add one");
    assert_eq!(project.memory.tasks().count(), 1 + usize::from(EngineLimits::CASCADE_DEPTH));
    let errors: Vec<_> = answered.iter().filter(|line| line.contains("error")).collect();
    assert_eq!(errors, ["system action_error create_task: a cascade of hooks may make 8 steps; the rest is refused"],);
    let deepest = project.log.iter().map(|record| record.envelope.metadata.depth).max();
    assert_eq!(deepest, Some(EngineLimits::CASCADE_DEPTH + 1), "only the error lies beyond");
}

#[test]
fn cascade_stops_at_event_limit_and_refuses_further_actions() {
    fn spawn_many(record: &EventRecord, _: &dyn StateView) -> PureHookAnswer {
        Ok(vec![log_action(record.envelope.node); MAX_EVENTS + 3])
    }
    let mut project =
        ScriptProject::after(rules_with_hooks([("floods", &[EventType::TaskStarted], spawn_many)]), "add one");
    let answered = project.run_script("start T1");
    assert_eq!(answered.iter().filter(|line| line.contains("suggestion")).count(), MAX_EVENTS);
    let errors: Vec<_> = answered.iter().filter(|line| line.contains("error")).collect();
    assert_eq!(errors, ["system action_error log: a cascade of hooks may make 256 events; the rest is refused"; 3]);
}

#[test]
fn panicking_hook_fails_alone() {
    let rules = rules_with_hooks([
        ("mad", &[EventType::TaskStarted], panic_always),
        ("sound", &[EventType::TaskStarted], log_note),
    ]);
    let answered = ScriptProject::after(rules, "add one").run_script("start T1");
    let expected = ["T1 task_started", "T1 hook_error mad: it panicked: dizzy", "T1 auto_label_suggestion seen"];
    assert_eq!(answered, expected);
}

#[test]
fn failing_hook_on_hook_errors_stops_at_depth_limit() {
    let rules = rules_with_hooks([("broken", &[EventType::TaskStarted, EventType::HookError], fail_always)]);
    let mut project = ScriptProject::after(rules, "add one");
    let answered = project.run_script("start T1");
    assert_eq!(answered.len(), 2 + usize::from(EngineLimits::CASCADE_DEPTH));
}

#[test]
fn hook_retrying_refused_actions_on_errors_stops_at_limit() {
    fn retry_actions(_: &EventRecord, _: &dyn StateView) -> PureHookAnswer {
        Ok(vec![creation_action(" "); 10])
    }
    let rules = rules_with_hooks([("insists", &[EventType::TaskStarted, EventType::ActionError], retry_actions)]);
    let mut project = ScriptProject::after(rules, "add one");
    let answered = project.run_script("start T1");
    assert!(answered.len() <= MAX_EVENTS * 11, "{} events", answered.len());
}

#[test]
fn hooks_that_repeat_their_own_event_end_at_limit() {
    fn repeat_event(record: &EventRecord, _: &dyn StateView) -> PureHookAnswer {
        let event = record.envelope.event.clone();
        Ok(vec![HookAction::Log { node: record.envelope.node, event }; 10])
    }
    let rules = rules_with_hooks([("echoes", &[EventType::DependencySatisfied], repeat_event)]);
    let mut project = ScriptProject::after(rules, "add one\nadd two after=T1");
    let answered = project.run_script("complete T1");
    assert!(answered.len() <= MAX_EVENTS * 11, "{} events", answered.len());
}
