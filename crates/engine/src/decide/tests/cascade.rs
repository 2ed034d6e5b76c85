//! Pure hooks that fail, ask for refused actions, or would run for ever.

use serde_json::{Value, json};

use super::script::{Script, check_with, default_rules};
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
const EVENTS: usize = EngineLimits::CASCADE_EVENTS as usize;

type Answer = Result<Vec<HookAction>, PureHookError>;
type Handle = fn(&EventRecord, &dyn StateView) -> Answer;

/// Returns the default rules with further hooks and their events.
fn rules<const N: usize>(hooks: [(&str, &[EventType], Handle); N]) -> EngineRules {
    let mut rules = default_rules();
    for (name, events, handler) in hooks {
        rules.registry.register(PureHook::new(name, events.iter().copied(), handler)).unwrap();
    }
    rules
}

fn create(goal: &str) -> HookAction {
    HookAction::CreateTask(NewTask { goal: goal.to_owned(), ..NewTask::default() })
}

fn note(node: EventSubject) -> HookAction {
    let event = payload::AutoLabelSuggestion { labels: vec!["seen".to_owned()], keywords: vec![] };
    HookAction::Log { node, event: event.into() }
}

fn fails(_: &EventRecord, _: &dyn StateView) -> Answer {
    Err(PureHookError::Failed("out of order".to_owned()))
}

fn panics(_: &EventRecord, _: &dyn StateView) -> Answer {
    panic!("dizzy")
}

fn notes(record: &EventRecord, _: &dyn StateView) -> Answer {
    Ok(vec![note(record.envelope.node)])
}

#[test]
fn failing_pure_hook_is_recorded_and_others_run() {
    let rules = rules([("broken", &[EventType::TaskStarted], fails), ("sound", &[EventType::TaskStarted], notes)]);
    let mut project = Script::after(rules, "add one");
    let answered = project.run("start T1");
    assert_eq!(answered, ["T1 task_started", "T1 hook_error broken: out of order", "T1 auto_label_suggestion seen"]);
    assert_eq!(
        project.data(EventType::HookError),
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
fn a_refused_action_is_recorded_and_the_next_is_carried_out() {
    fn asks(_: &EventRecord, _: &dyn StateView) -> Answer {
        Ok(vec![
            HookAction::UpdateTask { task: TaskId(1), action: TaskAction::Ready { after: None } },
            create(" "),
            HookAction::CreateTask(NewTask { depends_on: vec![TaskId(9)], goal: "x".to_owned(), ..NewTask::default() }),
            note(EventSubject::Task(TaskId(9))),
            note(EventSubject::Task(TaskId(1))),
        ])
    }
    let mut project = Script::after(rules([("asks", &[EventType::TaskStarted], asks)]), "add one");
    assert_eq!(
        project.run("start T1"),
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
fn a_hook_cannot_log_what_bears_state() {
    fn lies(record: &EventRecord, _: &dyn StateView) -> Answer {
        let done = payload::TaskCompleted { result: None, artifacts: vec![] };
        let fake =
            payload::HookError { hook_name: "x".into(), error: "x".into(), original_event: Value::Null, effect: None };
        let events: [Event; 2] = [done.into(), fake.into()];
        Ok(events.into_iter().map(|event| HookAction::Log { node: record.envelope.node, event }).collect())
    }
    check_with(
        rules([("lies", &[EventType::TaskStarted], lies)]),
        "add one
         --
         start T1",
        "T1 task_started
         system action_error log: a log action cannot make a `task_completed`: that event changes state
         system action_error log: a log action cannot make a `hook_error`: that event changes state",
    );
}

#[test]
fn a_hook_may_log_about_no_task_at_all() {
    fn tells(_: &EventRecord, _: &dyn StateView) -> Answer {
        Ok(vec![note(EventSubject::System)])
    }
    check_with(
        rules([("tells", &[EventType::TaskStarted], tells)]),
        "add one\n--\nstart T1",
        "T1 task_started\nsystem auto_label_suggestion seen",
    );
}

#[test]
fn what_a_hook_leads_to_is_not_forced() {
    fn spawns(_: &EventRecord, _: &dyn StateView) -> Answer {
        Ok(vec![create("more")])
    }
    check_with(
        rules([("spawns", &[EventType::TaskStarted], spawns)]),
        "add one\n--\nforced start T1",
        "T1 task_started (forced)\nT2 task_created\nT2 task_ready",
    );
}

#[test]
fn a_cascade_ends_after_so_many_steps() {
    fn breeds(_: &EventRecord, _: &dyn StateView) -> Answer {
        Ok(vec![create("another")])
    }
    let mut project = Script::new(rules([("breeds", &[EventType::TaskCreated], breeds)]));
    let answered = project.run("add one");
    assert_eq!(project.memory.tasks().count(), 1 + usize::from(EngineLimits::CASCADE_DEPTH));
    let errors: Vec<_> = answered.iter().filter(|line| line.contains("error")).collect();
    assert_eq!(errors, ["system action_error create_task: a cascade of hooks may make 8 steps; the rest is refused"],);
    let deepest = project.log.iter().map(|record| record.envelope.metadata.depth).max();
    assert_eq!(deepest, Some(EngineLimits::CASCADE_DEPTH + 1), "only the error lies beyond");
}

#[test]
fn a_cascade_ends_after_so_many_events() {
    fn floods(record: &EventRecord, _: &dyn StateView) -> Answer {
        Ok(vec![note(record.envelope.node); EVENTS + 3])
    }
    let mut project = Script::after(rules([("floods", &[EventType::TaskStarted], floods)]), "add one");
    let answered = project.run("start T1");
    assert_eq!(answered.iter().filter(|line| line.contains("suggestion")).count(), EVENTS);
    let errors: Vec<_> = answered.iter().filter(|line| line.contains("error")).collect();
    assert_eq!(errors, ["system action_error log: a cascade of hooks may make 256 events; the rest is refused"; 3]);
}

#[test]
fn panicking_hook_fails_alone() {
    let rules = rules([("mad", &[EventType::TaskStarted], panics), ("sound", &[EventType::TaskStarted], notes)]);
    let answered = Script::after(rules, "add one").run("start T1");
    let expected = ["T1 task_started", "T1 hook_error mad: it panicked: dizzy", "T1 auto_label_suggestion seen"];
    assert_eq!(answered, expected);
}

#[test]
fn a_hook_for_errors_that_fails_comes_to_an_end() {
    let rules = rules([("broken", &[EventType::TaskStarted, EventType::HookError], fails)]);
    let mut project = Script::after(rules, "add one");
    let answered = project.run("start T1");
    assert_eq!(answered.len(), 2 + usize::from(EngineLimits::CASCADE_DEPTH));
}

#[test]
fn a_hook_for_errors_that_asks_for_the_impossible_comes_to_an_end() {
    fn insists(_: &EventRecord, _: &dyn StateView) -> Answer {
        Ok(vec![create(" "); 10])
    }
    let rules = rules([("insists", &[EventType::TaskStarted, EventType::ActionError], insists)]);
    let mut project = Script::after(rules, "add one");
    let answered = project.run("start T1");
    assert!(answered.len() <= EVENTS * 11, "{} events", answered.len());
}

#[test]
fn hooks_that_repeat_their_own_event_end_at_limit() {
    fn echoes(record: &EventRecord, _: &dyn StateView) -> Answer {
        let event = record.envelope.event.clone();
        Ok(vec![HookAction::Log { node: record.envelope.node, event }; 10])
    }
    let rules = rules([("echoes", &[EventType::DependencySatisfied], echoes)]);
    let mut project = Script::after(rules, "add one\nadd two after=T1");
    let answered = project.run("complete T1");
    assert!(answered.len() <= EVENTS * 11, "{} events", answered.len());
}
