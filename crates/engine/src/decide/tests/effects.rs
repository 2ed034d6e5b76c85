//! Pending effects, and the table of recoveries.

use super::script::{ScriptProject, check_with, default_rules};
use crate::command::limits::EngineLimits;
use crate::decide::{EngineRules, HookPlan};
use crate::effects::hook_batch::HookEffect;
use crate::effects::hook_outcome::{HookClass, HookFailurePolicy};
use crate::effects::outbox::{EffectKind, RecoveryAction};
use crate::log::event_type::EventType;
use crate::view::StateView;

/// Returns rules in which starting a task, or a turn, enqueues one hook of `w1`.
fn rules_with_hook(class: HookClass, on_failure: HookFailurePolicy) -> EngineRules {
    let hook = HookEffect {
        hook: "push".to_owned(),
        point: "pre_iteration".parse().expect("a hook point"),
        class,
        on_failure,
        send_backs: None,
    };
    let hooks = [EventType::TaskStarted, EventType::TurnStarted].map(|event| (event, vec![hook.clone()]));
    let effects = HookPlan::for_all_tasks("hooks: {}", "w1".parse().unwrap(), hooks);
    EngineRules { effects: Some(effects), ..default_rules() }
}

/// Returns a project in which the hook is pending as 4.0.
fn project_with_pending_hook(class: HookClass, on_failure: HookFailurePolicy) -> ScriptProject {
    ScriptProject::after(rules_with_hook(class, on_failure), "add one\nstart T1")
}

#[test]
fn effect_begins_and_finishes_once_and_only_by_its_owner() {
    check_with(
        rules_with_hook(HookClass::Other, HookFailurePolicy::Ignore),
        "add one
         start T1
         --
         finish 4.0 by=w1
         begin 4.0 by=w2
         begin 4.0 by=w1
         begin 4.0 by=w1
         finish 4.0 by=w1
         finish 4.0 by=w1
         begin 4.0 by=w1
         recover 4.0 by=w1",
        "! 4.0 has not begun
         ! 4.0 belongs to another process
         T1 hook_started push 1 by w1
         ! 4.0 has begun already
         T1 hook_finished push Success
         ! there is no pending effect 4.0
         ! there is no pending effect 4.0
         ! there is no pending effect 4.0",
    );
}

#[test]
fn effect_that_never_began_is_run_on_recovery() {
    for class in [HookClass::Gate, HookClass::Vcs, HookClass::Webhook, HookClass::Idempotent, HookClass::Other] {
        let mut project = project_with_pending_hook(class, HookFailurePolicy::Block);
        let effect = project.memory.next_pending_effect(None).unwrap().unwrap();
        assert_eq!(effect.recovery_action(), RecoveryAction::Run);
        assert_eq!(project.run_script("recover 4.0 by=w2"), ["T1 hook_started push 1 by w2"]);
        assert_eq!(project.run_script("begin 4.0 by=w2"), ["! 4.0 has begun already"]);
    }
}

#[test]
fn repeatable_effect_runs_again_for_new_owner() {
    let table = [
        (HookClass::Gate, RecoveryAction::RunAgain),
        (HookClass::Idempotent, RecoveryAction::RunAgain),
        (HookClass::Vcs, RecoveryAction::CheckThenRun),
        (HookClass::Webhook, RecoveryAction::SendAgain),
    ];
    for (class, recovery) in table {
        let mut project = project_with_pending_hook(class, HookFailurePolicy::Block);
        project.run_script("begin 4.0 by=w1");
        let effect = project.memory.next_pending_effect(None).unwrap().unwrap();
        assert_eq!(effect.recovery_action(), recovery, "{class:?}");
        assert_eq!(project.run_script("recover 4.0 by=w2"), ["T1 hook_started push 2 by w2"]);
        let effect = project.memory.next_pending_effect(None).unwrap().unwrap();
        assert_eq!((effect.attempts, effect.owner.as_str()), (2, "w2"));
        assert_eq!(project.run_script("finish 4.0 by=w1"), ["! 4.0 belongs to another process"]);
        assert_eq!(project.run_script("finish 4.0 by=w2"), ["T1 hook_finished push Success"]);
        assert_eq!(project.memory.next_pending_effect(None).unwrap(), None);
    }
}

/// Two processes saw the same owner die: the second one is too late, because the effect belongs to the first one.
#[test]
fn effect_is_taken_over_only_from_named_dead_owner() {
    let mut project = project_with_pending_hook(HookClass::Gate, HookFailurePolicy::Block);
    project.run_script("begin 4.0 by=w1");
    assert_eq!(project.run_script("recover 4.0 from=w1 by=w2"), ["T1 hook_started push 2 by w2"]);
    assert_eq!(project.run_script("recover 4.0 from=w1 by=w3"), ["! 4.0 belongs to another process"]);
    assert_eq!(project.run_script("recover 4.0 from=w2 by=w3"), ["T1 hook_started push 3 by w3"]);
}

#[test]
fn unrepeatable_hook_is_recorded_as_interrupted_on_recovery() {
    for on_failure in [HookFailurePolicy::Ignore, HookFailurePolicy::Block, HookFailurePolicy::Escalate] {
        let mut project = project_with_pending_hook(HookClass::Other, on_failure);
        project.run_script("begin 4.0 by=w1");
        let effect = project.memory.next_pending_effect(None).unwrap().unwrap();
        assert_eq!(effect.recovery_action(), RecoveryAction::Record(on_failure));
        assert_eq!(project.run_script("recover 4.0 by=w2"), ["T1 hook_finished push Interrupted"]);
        assert_eq!(project.memory.next_pending_effect(None).unwrap(), None);
    }
}

/// No attempt was running when the owner died, so nothing was interrupted.
#[test]
fn hook_whose_owner_dies_between_attempts_keeps_its_attempts() {
    for class in [HookClass::Other, HookClass::Gate, HookClass::Webhook] {
        let mut project = project_with_pending_hook(class, HookFailurePolicy::Block);
        project.run_script("begin 4.0 by=w1\nrest 4.0 by=w1 after=busy");
        let effect = project.memory.next_pending_effect(None).unwrap().unwrap();
        assert_eq!((effect.recovery_action(), effect.attempts), (RecoveryAction::Run, 1), "{class:?}");
        assert_eq!(project.run_script("recover 4.0 by=w2"), ["T1 hook_started push 2 by w2 after busy"], "{class:?}");
        let effect = project.memory.next_pending_effect(None).unwrap().unwrap();
        assert_eq!((effect.attempts, effect.resting.as_deref()), (2, None), "{class:?}");
        assert_eq!(project.run_script("finish 4.0 by=w2"), ["T1 hook_finished push Success"]);
    }
    let mut project = project_with_pending_hook(HookClass::Other, HookFailurePolicy::Block);
    assert_eq!(project.run_script("rest 4.0 by=w1"), ["! 4.0 has not begun"]);
    project.run_script("begin 4.0 by=w1\nrest 4.0 by=w1 after=busy\nretry 4.0 by=w1 after=busy");
    assert_eq!(
        project.run_script("recover 4.0 by=w2"),
        ["T1 hook_finished push Interrupted"],
        "its second attempt ran"
    );
}

#[test]
fn interrupted_turn_ends_on_resume_and_next_iteration_starts() {
    check_with(
        default_rules(),
        "add one
         session a task=T1
         --
         begin 8.0 by=w1
         finish 8.0 by=w1
         recover 8.0 from=w2 by=w2
         recover 8.0 by=w2
         resume a from=w1 by=w2
         recover 8.0 by=w2
         run=a.1 complete T1",
        "! 8.0 has begun already
         ! 8.0 is a turn, not a hook
         ! 8.0 belongs to another process
         ! 8.0 is a turn of a session that has to be resumed first
         T1 session_resumed by w2
         T1 iteration_interrupted a.1
         T1 iteration_started a.2
         T1 turn_started a.2 to work
         ! cannot claim completion: the turn a.1.0000000000000007 is over",
    );
}

#[test]
fn turn_and_its_start_hooks_are_pending_concurrently() {
    let script = "session a by=w2 max=1";
    let mut project = ScriptProject::after(rules_with_hook(HookClass::Gate, HookFailurePolicy::Block), script);
    let [turn, hook] = &project.pending_effects()[..] else { panic!("{:?}", project.pending_effects()) };
    assert!(matches!(turn.kind, EffectKind::Turn { .. }) && turn.id.index == 0, "{turn:?}");
    assert!(matches!(hook.kind, EffectKind::Hook(_)) && hook.id.index == 1, "{hook:?}");
    assert_eq!((turn.owner.as_str(), hook.owner.as_str()), ("w2", "w1"));
    assert_eq!(turn.id.seq, hook.id.seq);
    assert_eq!(project.find_session("a").pending_hooks, [], "the session waits for no hook of another owner");
    let answered = project.run_script("begin push\nturn-done a.1\nfinish push");
    let expected = [
        "system hook_started push 1 by w1",
        "system turn_finished",
        "system gate_decided Pass: Continue",
        "system iteration_completed",
        "system session_ended Limit, one iteration is the limit",
        "system hook_finished push Success",
    ];
    assert_eq!(answered, expected);
    assert_eq!(project.pending_effects(), []);
}

#[test]
fn effect_names_its_configuration_and_task() {
    let project = project_with_pending_hook(HookClass::Gate, HookFailurePolicy::Block);
    let effect = project.memory.next_pending_effect(None).unwrap().unwrap();
    assert_eq!(project.memory.find_config_text(effect.config).unwrap().as_deref(), Some("hooks: {}"));
    assert_eq!(effect.task, Some("T1".parse().unwrap()));
    assert_eq!((effect.session, effect.iteration), (None, None));
    let script = "session a\nhook push\nturn-done a.1";
    let project = ScriptProject::after(rules_with_hook(HookClass::Gate, HookFailurePolicy::Block), script);
    let effect = &project.pending_effects()[1];
    assert_eq!((effect.session.as_ref().map(|name| name.as_str()), effect.iteration), (Some("a"), Some(2)));
}

/// A hook of `hook_finished` enqueues itself again, but each time one step deeper.
#[test]
fn hooks_that_enqueue_themselves_end_at_limit() {
    let hook = HookEffect {
        hook: "echo".to_owned(),
        point: "hook_finished".parse().expect("a hook point"),
        class: HookClass::Other,
        on_failure: HookFailurePolicy::Ignore,
        send_backs: None,
    };
    let hooks = [EventType::TaskStarted, EventType::HookFinished].map(|event| (event, vec![hook.clone()]));
    let effects = HookPlan::for_all_tasks("hooks: {}", "w1".parse().unwrap(), hooks);
    let mut project =
        ScriptProject::after(EngineRules { effects: Some(effects), ..default_rules() }, "add one\nstart T1");
    let mut runs = 0;
    while let Some(effect) = project.memory.next_pending_effect(None).unwrap() {
        project.run_script(&format!("begin {} by=w1\nfinish {} by=w1", effect.id, effect.id));
        runs += 1;
    }
    assert_eq!(runs, usize::from(EngineLimits::CASCADE_DEPTH));
    let causes = project.log.iter().filter(|record| record.kind() == EventType::HookFinished);
    assert!(causes.clone().all(|record| record.cause_position().is_some_and(|cause| cause < record.seq)));
}
