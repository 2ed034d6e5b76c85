//! The rules of random histories: hooks that fail in every possible way, and effects of every class.

use windlass_engine::{
    EngineRules, Event, EventSubject, EventType, HookAction, HookClass, HookEffect, HookFailurePolicy, HookPlan,
    HookRegistry, HookScope, NewTask, PlannedHook, PureHook, PureHookError, TaskAction, TaskId, TypeName, payload,
};

/// The type of tasks with a gate of its own.
pub(crate) const GATED_TYPE: &str = "bug";

/// Returns the built-in rules, two hooks that fail in every way of a pure hook, and effects of every class.
pub fn rules() -> EngineRules {
    let mut registry = HookRegistry::with_builtins();
    for hook in [failing_hook(), demanding_hook()] {
        registry.register(hook).expect("the test hooks are well formed");
    }
    registry.configure_hook("auto-label-by-keyword", true, None).expect("a built-in");
    EngineRules { registry, effects: Some(effects()), ..EngineRules::default() }
}

/// Returns the built-in rules, and few hooks except those between done and accepted, and those that follow.
pub fn rules_of_gates() -> EngineRules {
    let hooks = [
        (
            EventType::SubmissionStarted,
            vec![
                owed("tests", "before_submit", HookClass::Gate, OnFailure::Block),
                owed("mild", "before_submit", HookClass::Idempotent, OnFailure::Ignore),
                owed("pr", "before_submit", HookClass::Vcs, OnFailure::Block),
            ],
        ),
        (EventType::TaskSubmitted, vec![owed("told", "after_submit", HookClass::Other, OnFailure::Ignore)]),
        (
            EventType::MergeStarted,
            vec![
                owed("review", "before_merge", HookClass::Gate, OnFailure::Block),
                owed("merge", "before_merge", HookClass::Vcs, OnFailure::Block),
                owed("last", "before_merge", HookClass::Other, OnFailure::Escalate),
            ],
        ),
        (EventType::ChangeMerged, vec![owed("after", "after_merge", HookClass::Other, OnFailure::Escalate)]),
        (EventType::PipelineFailed, vec![owed("sigh", "pipeline_failed", HookClass::Other, OnFailure::Ignore)]),
    ];
    let effects = HookPlan::for_all_tasks("hooks: {stop: []}", "w1".parse().expect("an owner's name"), hooks);
    EngineRules { registry: HookRegistry::with_builtins(), effects: Some(effects), ..EngineRules::default() }
}

/// Returns a hook that fails when a task is blocked.
fn failing_hook() -> PureHook {
    PureHook::new("fails", [EventType::TaskBlocked], |_, _| Err(PureHookError::failed("out of order")))
}

/// Returns a hook that requests refused actions when a task is updated.
fn demanding_hook() -> PureHook {
    PureHook::new("demands", [EventType::TaskUpdated], |record, _| {
        let Some(task) = record.envelope.node.task_id() else { return Ok(vec![]) };
        Ok(vec![
            Action::UpdateTask { task, action: TaskAction::Ready { after: None } },
            Action::Log { node: Node::Task(task), event: Event::TaskCompleted(no_result()) },
            Action::CreateTask(NewTask {
                depends_on: vec![TaskId(999)],
                goal: "never".to_owned(),
                ..NewTask::default()
            }),
        ])
    })
}

fn no_result() -> payload::TaskCompleted {
    payload::TaskCompleted { result: None, artifacts: vec![] }
}

fn owed(hook: &str, point: &str, class: HookClass, on_failure: HookFailurePolicy) -> HookEffect {
    HookEffect {
        hook: hook.to_owned(),
        point: point.parse().expect("a hook point"),
        class,
        on_failure,
        send_backs: None,
    }
}

/// Returns the effects of each event. Tasks of type `bug` have their own hooks at the start, and none at completion; one of the
/// agents adds a hook. Finished work passes one gate, with a second hook for worktrees, and tasks of type `bug` pass a second gate.
fn effects() -> HookPlan {
    let hooks = [
        (EventType::TaskCompleted, vec![owed("gate", "on_task_complete", HookClass::Gate, OnFailure::Block)]),
        (
            EventType::TaskStarted,
            vec![
                owed("push", "task_started", HookClass::Vcs, OnFailure::Ignore),
                owed("tell", "task_started", HookClass::Webhook, OnFailure::Ignore),
                owed("log", "task_started", HookClass::Other, OnFailure::Escalate),
            ],
        ),
        (EventType::IterationStarted, vec![owed("sweep", "pre_iteration", HookClass::Idempotent, OnFailure::Ignore)]),
        (
            EventType::TurnFinished,
            vec![
                HookEffect { send_backs: Some(1), ..owed("check", "stop", HookClass::Gate, OnFailure::Ignore) },
                owed("lint", "stop", HookClass::Gate, OnFailure::Escalate),
            ],
        ),
        (EventType::IterationCompleted, vec![owed("note", "post_iteration", HookClass::Other, OnFailure::Ignore)]),
        (EventType::IterationFailed, vec![owed("rue", "on_error", HookClass::Idempotent, OnFailure::Ignore)]),
        (EventType::IterationInterrupted, vec![owed("mourn", "on_error", HookClass::Other, OnFailure::Ignore)]),
        (EventType::SubmissionStarted, vec![owed("tests", "before_submit", HookClass::Gate, OnFailure::Block)]),
        (EventType::ChangeMerged, vec![owed("after", "after_merge", HookClass::Other, OnFailure::Escalate)]),
        (EventType::BridgeCalled, vec![owed("bridged", "stop", HookClass::Bridge, OnFailure::Ignore)]),
        (EventType::SessionEnded, vec![owed("bye", "session_end", HookClass::Other, OnFailure::Ignore)]),
        (EventType::ConfigRecorded, vec![owed("trust", "config_recorded", HookClass::Other, OnFailure::Ignore)]),
    ];
    let owner = "w1".parse().expect("an owner's name");
    let mut effects = HookPlan::for_all_tasks("hooks: {stop: []}", owner, hooks);
    let bug: TypeName = GATED_TYPE.parse().expect("a type's name");
    effects.overrides = ["task_started", "on_task_complete"]
        .map(|point| (bug.clone(), point.parse().expect("a hook point")))
        .into_iter()
        .collect();
    let mut also = |event, hook, scope| {
        effects.hooks.entry(event).or_default().push(PlannedHook { scope, ..PlannedHook::from(hook) })
    };
    let triage = owed("triage", "task_started", HookClass::Idempotent, HookFailurePolicy::Ignore);
    also(EventType::TaskStarted, triage, HookScope::TaskType(bug.clone()));
    let change = owed("pr", "before_submit", HookClass::Vcs, HookFailurePolicy::Block);
    also(EventType::SubmissionStarted, change, HookScope::Worktrees);
    let review = owed("review", "before_merge", HookClass::Gate, HookFailurePolicy::Block);
    also(EventType::MergeStarted, review, HookScope::TaskType(bug));
    let greet = owed("greet", "session_start", HookClass::Other, HookFailurePolicy::Escalate);
    also(EventType::SessionStarted, greet, HookScope::Agent("command:false".to_owned()));
    effects
}
