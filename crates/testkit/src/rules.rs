//! The rules of random histories: hooks that fail in every possible way, and effects of every class.

use windlass_engine::{
    EngineRules, Event, EventSubject, EventType, HookAction, HookClass, HookEffect, HookFailurePolicy, HookPlan,
    HookRegistry, HookScope, NewTask, PlannedHook, PureHook, PureHookError, TaskAction, TaskId, TypeName, payload,
};

/// The type of tasks with a gate of its own.
pub(crate) const GATED_TYPE: &str = "bug";

/// Returns the built-in rules, two hooks that fail in every way of a pure hook, and effects of every class.
pub fn test_rules() -> EngineRules {
    let mut registry = HookRegistry::with_builtins();
    for hook in [failing_hook(), demanding_hook()] {
        registry.register(hook).expect("the test hooks are well formed");
    }
    registry.configure_hook("auto-label-by-keyword", true, None).expect("a built-in");
    EngineRules { registry, effects: Some(hook_plan()), ..EngineRules::default() }
}

/// Returns the built-in rules, and few hooks except those between done and accepted, and those that follow.
pub fn gate_rules() -> EngineRules {
    let hooks = [
        (
            EventType::SubmissionStarted,
            vec![
                hook_effect("tests", "before_submit", HookClass::Gate, HookFailurePolicy::Block),
                hook_effect("mild", "before_submit", HookClass::Idempotent, HookFailurePolicy::Ignore),
                hook_effect("pr", "before_submit", HookClass::Vcs, HookFailurePolicy::Block),
            ],
        ),
        (
            EventType::TaskSubmitted,
            vec![hook_effect("told", "after_submit", HookClass::Other, HookFailurePolicy::Ignore)],
        ),
        (
            EventType::MergeStarted,
            vec![
                hook_effect("review", "before_merge", HookClass::Gate, HookFailurePolicy::Block),
                hook_effect("merge", "before_merge", HookClass::Vcs, HookFailurePolicy::Block),
                hook_effect("last", "before_merge", HookClass::Other, HookFailurePolicy::Escalate),
            ],
        ),
        (
            EventType::ChangeMerged,
            vec![hook_effect("after", "after_merge", HookClass::Other, HookFailurePolicy::Escalate)],
        ),
        (
            EventType::PipelineFailed,
            vec![hook_effect("sigh", "pipeline_failed", HookClass::Other, HookFailurePolicy::Ignore)],
        ),
    ];
    let plan = HookPlan::for_all_tasks("hooks: {stop: []}", "w1".parse().expect("an owner's name"), hooks);
    EngineRules { registry: HookRegistry::with_builtins(), effects: Some(plan), ..EngineRules::default() }
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
            HookAction::UpdateTask { task, action: TaskAction::Ready { after: None } },
            HookAction::Log { node: EventSubject::Task(task), event: Event::TaskCompleted(no_result()) },
            HookAction::CreateTask(NewTask {
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

fn hook_effect(hook: &str, point: &str, class: HookClass, on_failure: HookFailurePolicy) -> HookEffect {
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
fn hook_plan() -> HookPlan {
    let hooks = [
        (
            EventType::TaskCompleted,
            vec![hook_effect("gate", "on_task_complete", HookClass::Gate, HookFailurePolicy::Block)],
        ),
        (
            EventType::TaskStarted,
            vec![
                hook_effect("push", "task_started", HookClass::Vcs, HookFailurePolicy::Ignore),
                hook_effect("tell", "task_started", HookClass::Webhook, HookFailurePolicy::Ignore),
                hook_effect("log", "task_started", HookClass::Other, HookFailurePolicy::Escalate),
            ],
        ),
        (
            EventType::IterationStarted,
            vec![hook_effect("sweep", "pre_iteration", HookClass::Idempotent, HookFailurePolicy::Ignore)],
        ),
        (
            EventType::TurnFinished,
            vec![
                HookEffect {
                    send_backs: Some(1),
                    ..hook_effect("check", "stop", HookClass::Gate, HookFailurePolicy::Ignore)
                },
                hook_effect("lint", "stop", HookClass::Gate, HookFailurePolicy::Escalate),
            ],
        ),
        (
            EventType::IterationCompleted,
            vec![hook_effect("note", "post_iteration", HookClass::Other, HookFailurePolicy::Ignore)],
        ),
        (
            EventType::IterationFailed,
            vec![hook_effect("rue", "on_error", HookClass::Idempotent, HookFailurePolicy::Ignore)],
        ),
        (
            EventType::IterationInterrupted,
            vec![hook_effect("mourn", "on_error", HookClass::Other, HookFailurePolicy::Ignore)],
        ),
        (
            EventType::SubmissionStarted,
            vec![hook_effect("tests", "before_submit", HookClass::Gate, HookFailurePolicy::Block)],
        ),
        (
            EventType::ChangeMerged,
            vec![hook_effect("after", "after_merge", HookClass::Other, HookFailurePolicy::Escalate)],
        ),
        (EventType::BridgeCalled, vec![hook_effect("bridged", "stop", HookClass::Bridge, HookFailurePolicy::Ignore)]),
        (EventType::SessionEnded, vec![hook_effect("bye", "session_end", HookClass::Other, HookFailurePolicy::Ignore)]),
        (
            EventType::ConfigRecorded,
            vec![hook_effect("trust", "config_recorded", HookClass::Other, HookFailurePolicy::Ignore)],
        ),
    ];
    let owner = "w1".parse().expect("an owner's name");
    let mut plan = HookPlan::for_all_tasks("hooks: {stop: []}", owner, hooks);
    let gated_type: TypeName = GATED_TYPE.parse().expect("a type's name");
    plan.overrides = ["task_started", "on_task_complete"]
        .map(|point| (gated_type.clone(), point.parse().expect("a hook point")))
        .into_iter()
        .collect();
    let mut add_hook = |event, hook, scope| {
        plan.hooks.entry(event).or_default().push(PlannedHook { scope, ..PlannedHook::from(hook) })
    };
    let triage = hook_effect("triage", "task_started", HookClass::Idempotent, HookFailurePolicy::Ignore);
    add_hook(EventType::TaskStarted, triage, HookScope::TaskType(gated_type.clone()));
    let change = hook_effect("pr", "before_submit", HookClass::Vcs, HookFailurePolicy::Block);
    add_hook(EventType::SubmissionStarted, change, HookScope::Worktrees);
    let review = hook_effect("review", "before_merge", HookClass::Gate, HookFailurePolicy::Block);
    add_hook(EventType::MergeStarted, review, HookScope::TaskType(gated_type));
    let greet = hook_effect("greet", "session_start", HookClass::Other, HookFailurePolicy::Escalate);
    add_hook(EventType::SessionStarted, greet, HookScope::Agent("command:false".to_owned()));
    plan
}
