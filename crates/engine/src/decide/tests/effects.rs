//! Pending effects, and the table of recoveries.

use super::script::{Script, check_with, default_rules};
use crate::command::limits::Limits;
use crate::decide::{Effects, Rules};
use crate::effects::hook_batch::HookEffect;
use crate::effects::hook_outcome::{HookClass, OnFailure};
use crate::effects::outbox::{EffectKind, Recovery};
use crate::log::event_type::EventType;
use crate::view::View;

/// Returns rules in which starting a task, or a turn, enqueues one hook of `w1`.
fn owing(class: HookClass, on_failure: OnFailure) -> Rules {
    let hook = HookEffect {
        hook: "push".to_owned(),
        point: "pre_iteration".parse().expect("a hook point"),
        class,
        on_failure,
        send_backs: None,
    };
    let hooks = [EventType::TaskStarted, EventType::TurnStarted].map(|event| (event, vec![hook.clone()]));
    let effects = Effects::of("hooks: {}", "w1".parse().unwrap(), hooks);
    Rules { effects: Some(effects), ..default_rules() }
}

/// Returns a project in which the hook is pending as 4.0.
fn owed(class: HookClass, on_failure: OnFailure) -> Script {
    Script::after(owing(class, on_failure), "add one\nstart T1")
}

#[test]
fn an_effect_is_begun_once_by_its_owner_and_finished_once() {
    check_with(
        owing(HookClass::Other, OnFailure::Ignore),
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
         ! 4.0 is somebody else's
         T1 hook_started push 1 by w1
         ! 4.0 has begun already
         T1 hook_finished push Success
         ! nothing is owed under 4.0
         ! nothing is owed under 4.0
         ! nothing is owed under 4.0",
    );
}

#[test]
fn what_was_never_begun_is_run_whatever_it_is() {
    for class in [HookClass::Gate, HookClass::Vcs, HookClass::Webhook, HookClass::Idempotent, HookClass::Other] {
        let mut project = owed(class, OnFailure::Block);
        let effect = project.memory.next_effect(None).unwrap().unwrap();
        assert_eq!(effect.recovery(), Recovery::Run);
        assert_eq!(project.run("recover 4.0 by=w2"), ["T1 hook_started push 1 by w2"]);
        assert_eq!(project.run("begin 4.0 by=w2"), ["! 4.0 has begun already"]);
    }
}

#[test]
fn what_may_run_again_does_and_belongs_to_whoever_took_it_over() {
    let table = [
        (HookClass::Gate, Recovery::RunAgain),
        (HookClass::Idempotent, Recovery::RunAgain),
        (HookClass::Vcs, Recovery::LookThenAct),
        (HookClass::Webhook, Recovery::SendAgain),
    ];
    for (class, recovery) in table {
        let mut project = owed(class, OnFailure::Block);
        project.run("begin 4.0 by=w1");
        let effect = project.memory.next_effect(None).unwrap().unwrap();
        assert_eq!(effect.recovery(), recovery, "{class:?}");
        assert_eq!(project.run("recover 4.0 by=w2"), ["T1 hook_started push 2 by w2"]);
        let effect = project.memory.next_effect(None).unwrap().unwrap();
        assert_eq!((effect.attempts, effect.owner.as_str()), (2, "w2"));
        assert_eq!(project.run("finish 4.0 by=w1"), ["! 4.0 is somebody else's"]);
        assert_eq!(project.run("finish 4.0 by=w2"), ["T1 hook_finished push Success"]);
        assert_eq!(project.memory.next_effect(None).unwrap(), None);
    }
}

/// Two processes saw the same owner die: the second one is too late, because the effect belongs to the first one.
#[test]
fn a_debt_is_taken_over_from_whoever_was_seen_to_be_dead() {
    let mut project = owed(HookClass::Gate, OnFailure::Block);
    project.run("begin 4.0 by=w1");
    assert_eq!(project.run("recover 4.0 from=w1 by=w2"), ["T1 hook_started push 2 by w2"]);
    assert_eq!(project.run("recover 4.0 from=w1 by=w3"), ["! 4.0 is somebody else's"]);
    assert_eq!(project.run("recover 4.0 from=w2 by=w3"), ["T1 hook_started push 3 by w3"]);
}

#[test]
fn any_other_hook_is_recorded_as_interrupted_and_counts_as_it_says() {
    for on_failure in [OnFailure::Ignore, OnFailure::Block, OnFailure::Escalate] {
        let mut project = owed(HookClass::Other, on_failure);
        project.run("begin 4.0 by=w1");
        let effect = project.memory.next_effect(None).unwrap().unwrap();
        assert_eq!(effect.recovery(), Recovery::Record(on_failure));
        assert_eq!(project.run("recover 4.0 by=w2"), ["T1 hook_finished push Interrupted"]);
        assert_eq!(project.memory.next_effect(None).unwrap(), None);
    }
}

/// No attempt was running when the owner died, so nothing was interrupted.
#[test]
fn hook_whose_owner_dies_between_attempts_keeps_its_attempts() {
    for class in [HookClass::Other, HookClass::Gate, HookClass::Webhook] {
        let mut project = owed(class, OnFailure::Block);
        project.run("begin 4.0 by=w1\nrest 4.0 by=w1 after=busy");
        let effect = project.memory.next_effect(None).unwrap().unwrap();
        assert_eq!((effect.recovery(), effect.attempts), (Recovery::Run, 1), "{class:?}");
        assert_eq!(project.run("recover 4.0 by=w2"), ["T1 hook_started push 2 by w2 after busy"], "{class:?}");
        let effect = project.memory.next_effect(None).unwrap().unwrap();
        assert_eq!((effect.attempts, effect.resting.as_deref()), (2, None), "{class:?}");
        assert_eq!(project.run("finish 4.0 by=w2"), ["T1 hook_finished push Success"]);
    }
    let mut project = owed(HookClass::Other, OnFailure::Block);
    assert_eq!(project.run("rest 4.0 by=w1"), ["! 4.0 has not begun"]);
    project.run("begin 4.0 by=w1\nrest 4.0 by=w1 after=busy\nretry 4.0 by=w1 after=busy");
    assert_eq!(project.run("recover 4.0 by=w2"), ["T1 hook_finished push Interrupted"], "its second attempt ran");
}

#[test]
fn an_interrupted_turn_ends_and_the_next_takes_the_work_up() {
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
         ! 8.0 is somebody else's
         ! 8.0 is a turn of a session that has to be resumed first
         T1 session_resumed by w2
         T1 iteration_interrupted a.1
         T1 iteration_started a.2
         T1 turn_started a.2 to work
         ! the turn a.1.0000000000000007 is over; what it claims comes too late",
    );
}

#[test]
fn a_turn_and_the_hooks_of_its_beginning_are_owed_side_by_side() {
    let script = "session a by=w2 max=1";
    let mut project = Script::after(owing(HookClass::Gate, OnFailure::Block), script);
    let [turn, hook] = &project.effects()[..] else { panic!("{:?}", project.effects()) };
    assert!(matches!(turn.kind, EffectKind::Turn { .. }) && turn.id.index == 0, "{turn:?}");
    assert!(matches!(hook.kind, EffectKind::Hook(_)) && hook.id.index == 1, "{hook:?}");
    assert_eq!((turn.owner.as_str(), hook.owner.as_str()), ("w2", "w1"));
    assert_eq!(turn.id.seq, hook.id.seq);
    assert_eq!(project.session("a").owed, [], "the session waits for no hook of another owner");
    let answered = project.run("begin push\nturn-done a.1\nfinish push");
    let expected = [
        "system hook_started push 1 by w1",
        "system turn_finished",
        "system gate_decided Pass: Continue",
        "system iteration_completed",
        "system session_ended Limit, one iteration is the limit",
        "system hook_finished push Success",
    ];
    assert_eq!(answered, expected);
    assert_eq!(project.effects(), []);
}

#[test]
fn a_debt_names_the_configuration_and_the_task_that_it_came_from() {
    let project = owed(HookClass::Gate, OnFailure::Block);
    let effect = project.memory.next_effect(None).unwrap().unwrap();
    assert_eq!(project.memory.config(effect.config).unwrap().as_deref(), Some("hooks: {}"));
    assert_eq!(effect.task, Some("T1".parse().unwrap()));
    assert_eq!((effect.session, effect.iteration), (None, None));
    let script = "session a\nhook push\nturn-done a.1";
    let project = Script::after(owing(HookClass::Gate, OnFailure::Block), script);
    let effect = &project.effects()[1];
    assert_eq!((effect.session.as_ref().map(|name| name.as_str()), effect.iteration), (Some("a"), Some(2)));
}

/// A hook of `hook_finished` enqueues itself again, but each time one step deeper.
#[test]
fn hooks_that_owe_themselves_come_to_an_end() {
    let hook = HookEffect {
        hook: "echo".to_owned(),
        point: "hook_finished".parse().expect("a hook point"),
        class: HookClass::Other,
        on_failure: OnFailure::Ignore,
        send_backs: None,
    };
    let hooks = [EventType::TaskStarted, EventType::HookFinished].map(|event| (event, vec![hook.clone()]));
    let effects = Effects::of("hooks: {}", "w1".parse().unwrap(), hooks);
    let mut project = Script::after(Rules { effects: Some(effects), ..default_rules() }, "add one\nstart T1");
    let mut runs = 0;
    while let Some(effect) = project.memory.next_effect(None).unwrap() {
        project.run(&format!("begin {} by=w1\nfinish {} by=w1", effect.id, effect.id));
        runs += 1;
    }
    assert_eq!(runs, usize::from(Limits::DEPTH));
    let causes = project.log.iter().filter(|record| record.kind() == EventType::HookFinished);
    assert!(causes.clone().all(|record| record.cause().is_some_and(|cause| cause < record.seq)));
}
