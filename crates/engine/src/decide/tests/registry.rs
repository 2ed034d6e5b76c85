//! Closures as pure hooks beside the built-in ones: their order, and the effects of their answers.

use super::script::{check_with, default_rules};
use crate::command::NewTask;
use crate::decide::EngineRules;
use crate::effects::action::{HookAction, TaskAction};
use crate::effects::registry::{PureHook, PureHookError};
use crate::log::event::{EventRecord, payload};
use crate::log::event_type::EventType;
use crate::view::StateView;

/// Returns a hook of started tasks that logs its own name: `name:priority`. After the name, `!` means that it fails, `?`
/// that it panics, and `-` that it is disabled.
fn naming_hook(word: &str) -> PureHook {
    let (name, priority) = word.split_once(':').unwrap_or((word, "100"));
    let bare = name.trim_matches(['!', '?', '-']).to_owned();
    let (fails, panics) = (name.contains('!'), name.contains('?'));
    let said = bare.clone();
    let hook = PureHook::new(bare, [EventType::TaskStarted], move |record, _| {
        assert!(!panics, "dizzy");
        if fails {
            return Err(PureHookError::failed("out of order"));
        }
        let event = payload::AutoLabelSuggestion { labels: vec![said.clone()], keywords: vec![] };
        Ok(vec![HookAction::Log { node: record.envelope.node, event: event.into() }])
    });
    let hook = hook.priority(priority.parse().unwrap());
    if name.ends_with('-') { hook.disabled() } else { hook }
}

fn rules_with_hooks(hooks: impl IntoIterator<Item = PureHook>) -> EngineRules {
    let mut rules = default_rules();
    hooks.into_iter().for_each(|hook| rules.registry.register(hook).unwrap());
    rules
}

/// Checks the lines that these hooks leave when a task is started: `a` for its answer, `a!` for its failure, `a?` for its
/// panic.
#[track_caller]
fn check_hook_lines(hooks: &str, expected: &str) {
    let lines: Vec<String> = expected
        .split_whitespace()
        .map(|word| match word.trim_end_matches(['!', '?']) {
            name if word.ends_with('!') => format!("T1 hook_error {name}: out of order"),
            name if word.ends_with('?') => format!("T1 hook_error {name}: it panicked: dizzy"),
            name => format!("T1 auto_label_suggestion {name}"),
        })
        .collect();
    let lines = format!("T1 task_started\n{}", lines.join("\n"));
    check_with(rules_with_hooks(hooks.split_whitespace().map(naming_hook)), "add one\n--\nstart T1", &lines);
}

#[test]
fn answers_come_in_the_order_of_the_hooks() {
    check_hook_lines("a b", "a b");
    check_hook_lines("b a", "b a");
    check_hook_lines("a:2 b:1", "b a");
    check_hook_lines("a b:0", "b a");
    check_hook_lines("a:-1 b:0 c:-2", "c a b");
    check_hook_lines("a b- c", "a c");
}

#[test]
fn closure_failures_are_recorded_first_and_others_run() {
    check_hook_lines("a! b", "a! b");
    check_hook_lines("a b!", "b! a");
    check_hook_lines("a b? c", "b? a c");
    check_hook_lines("a! b! c!", "a! b! c!");
    check_hook_lines("a? b! c d:1", "a? b! d c");
    check_hook_lines("a!:2 b!:1", "b! a!");
    check_hook_lines("a!- b", "b");
}

/// Every hook of an event sees the same state, and answers before the first action is performed.
#[test]
fn actions_are_carried_out_after_the_last_hook() {
    fn request_labels(record: &EventRecord, _: &dyn StateView) -> Result<Vec<HookAction>, PureHookError> {
        let task = record.envelope.node.task_id().unwrap();
        Ok(vec![HookAction::UpdateTask { task, action: TaskAction::AddLabels(vec!["hot".to_owned()]) }])
    }
    fn inspect_labels(record: &EventRecord, view: &dyn StateView) -> Result<Vec<HookAction>, PureHookError> {
        let task = view.find_task(record.envelope.node.task_id().unwrap())?.unwrap();
        let goal = if task.has_label("hot") { "saw it" } else { "saw nothing" };
        let new = NewTask { goal: goal.to_owned(), labels: vec![goal.replace(' ', "-")], ..NewTask::default() };
        Ok(vec![HookAction::CreateTask(new)])
    }
    let hooks = [
        PureHook::new("labels", [EventType::TaskStarted], request_labels).priority(1),
        PureHook::new("looks", [EventType::TaskStarted], inspect_labels).priority(2),
        PureHook::new("tells", [EventType::TaskCreated], |record, view| {
            let task = view.find_task(record.envelope.node.task_id().unwrap())?.unwrap();
            let event = payload::AutoLabelSuggestion { labels: task.labels, keywords: vec![] };
            Ok(vec![HookAction::Log { node: record.envelope.node, event: event.into() }])
        }),
    ];
    check_with(
        rules_with_hooks(hooks),
        "add one labels=cold\n--\nstart T1",
        "T1 task_started
         T1 task_updated
         T2 task_created
         T2 task_ready
         T2 auto_label_suggestion saw-nothing",
    );
}

#[test]
fn closure_hook_runs_in_priority_order_among_built_ins() {
    let says = |name: &'static str, priority| {
        let hook = PureHook::new(name, [EventType::TaskCompleted], move |record: &EventRecord, _: &dyn StateView| {
            let event = payload::AutoLabelSuggestion { labels: vec![name.to_owned()], keywords: vec![] };
            Ok(vec![HookAction::Log { node: record.envelope.node, event: event.into() }])
        });
        hook.priority(priority)
    };
    check_with(
        rules_with_hooks([says("after", 51), says("before", 9), says("between", 15), says("tie", 20)]),
        "add one labels=agent
         add two after=T1
         --
         complete T1",
        "T1 task_completed
         T1 auto_label_suggestion before
         T3 task_created
         T3 dependency_added spawned_by T1
         T3 task_ready
         T1 auto_label_suggestion between
         T2 task_ready
         T2 dependency_satisfied T1
         T1 auto_label_suggestion tie
         T1 agent_metrics
         T1 auto_label_suggestion after",
    );
}

/// A closure may keep state between its calls.
#[test]
fn closure_keeps_state_between_calls() {
    let seen = std::sync::atomic::AtomicU32::new(0);
    let counts = PureHook::new("counts", [EventType::TaskStarted], move |_, _| {
        Err(PureHookError::failed(1 + seen.fetch_add(1, std::sync::atomic::Ordering::Relaxed)))
    });
    check_with(
        rules_with_hooks([counts]),
        "add one\nadd two\n--\nstart T1\nstart T2",
        "T1 task_started\nT1 hook_error counts: 1\nT2 task_started\nT2 hook_error counts: 2",
    );
}
