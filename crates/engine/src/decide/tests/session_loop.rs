//! The session loop: the decisions of a session by itself, and its waits.
//!
//! `greet` runs at the start of a session, `ready` before each iteration, `check` and `lint` when a turn has ended (both
//! are gates; `lint` asks for a person when it fails), `note` after each iteration, `mourn` when one has failed, `bye` at
//! the end.

use super::script::{ScriptProject, check, check_with, default_rules, run_id};
use crate::command::{Command, TurnFailureReport};
use crate::decide::{EngineRules, HookPlan};
use crate::effects::hook_batch::HookEffect;
use crate::effects::hook_outcome::{HookClass, HookFailurePolicy};
use crate::log::event_type::EventType;
use crate::session::turn_failure::TurnFailure;
use crate::session::{NextAction, SessionStep};

pub(super) fn loop_rules(hooks: &[&str]) -> EngineRules {
    let owed = |hook: &str| {
        let (event, point, class, on_failure) = match hook {
            "greet" => (EventType::SessionStarted, "session_start", HookClass::Other, HookFailurePolicy::Ignore),
            "ready" => (EventType::IterationStarted, "pre_iteration", HookClass::Other, HookFailurePolicy::Ignore),
            "check" => (EventType::TurnFinished, "stop", HookClass::Gate, HookFailurePolicy::Ignore),
            "lint" => (EventType::TurnFinished, "stop", HookClass::Gate, HookFailurePolicy::Escalate),
            "ring" => (EventType::GateDecided, "notify", HookClass::Other, HookFailurePolicy::Ignore),
            "note" => (EventType::IterationCompleted, "post_iteration", HookClass::Other, HookFailurePolicy::Ignore),
            "edit" => (EventType::TaskUpdated, "task_updated", HookClass::Other, HookFailurePolicy::Ignore),
            "mourn" => (EventType::IterationFailed, "on_error", HookClass::Other, HookFailurePolicy::Ignore),
            "bye" => (EventType::SessionEnded, "session_end", HookClass::Other, HookFailurePolicy::Ignore),
            hook => panic!("no hook is called `{hook}`"),
        };
        (
            event,
            HookEffect {
                hook: hook.to_owned(),
                point: point.parse().expect("a hook point"),
                class,
                on_failure,
                send_backs: None,
            },
        )
    };
    let mut effects = HookPlan::for_all_tasks(super::script::SESSION_CONFIG, "w1".parse().unwrap(), []);
    for (event, hook) in hooks.iter().map(|hook| owed(hook)) {
        effects.hooks.entry(event).or_default().push(hook.into());
    }
    EngineRules { effects: Some(effects), ..default_rules() }
}

#[test]
fn session_without_hooks_completes_task_on_completion_promise() {
    check(
        "add one
         session a task=T1
         --
         turn-done a.1
         turn-done a.2 says=complete",
        "T1 turn_finished
         T1 gate_decided Pass: Continue
         T1 iteration_completed
         T1 iteration_started a.2
         T1 turn_started a.2 to work
         T1 turn_finished
         T1 promise_detected Complete
         T1 gate_decided Pass: Completed
         T1 iteration_completed
         T1 task_completed
         T1 session_ended Completed",
    );
}

#[test]
fn session_with_gate_completion_completes_without_promise() {
    check(
        "session a completion=gate\n--\nturn-done a.1",
        "system turn_finished
         system gate_decided Pass: Completed
         system iteration_completed
         system session_ended Completed",
    );
}

#[test]
fn session_that_never_completes_ends_at_iteration_limit() {
    check(
        "session a max=2
         --
         turn-done a.1
         turn-done a.2",
        "system turn_finished
         system gate_decided Pass: Continue
         system iteration_completed
         system iteration_started a.2
         system turn_started a.2 to work
         system turn_finished
         system gate_decided Pass: Continue
         system iteration_completed
         system session_ended Limit, 2 iterations are the limit",
    );
}

#[test]
fn agent_plea_ends_session_as_escalated() {
    for (says, why) in [("blocked", "the agent says it is blocked"), ("escalate", "the agent asks for a person")] {
        let mut project = ScriptProject::after(default_rules(), "session a");
        let answered = project.run_script(&format!("turn-done a.1 says={says}"));
        assert_eq!(answered.last().unwrap(), &format!("system session_ended Escalated, {why}"));
    }
}

#[test]
fn failures_in_a_row_end_session_at_limit() {
    check_with(
        loop_rules(&["ready"]),
        "session a failures=2
         hook ready tells=first
         turn-failed a.1
         later 1s
         advance a
         hook ready
         turn-done a.2
         hook ready
         turn-failed a.3
         later 1s
         advance a
         hook ready tells=last
         --
         turn-failed a.4",
        "system iteration_failed
         system session_ended Escalated, circuit breaker: 2 iterations failed in a row, the last with: because",
    );
}

#[test]
fn stop_hook_sends_agent_back_until_it_passes() {
    check_with(
        loop_rules(&["check"]),
        "session a
         --
         turn-done a.1 says=complete
         hook check out=block tells=red
         turn-done a.1 says=complete
         hook check out=block tells=still-red
         turn-done a.1 says=complete
         hook check",
        "system turn_finished
         system promise_detected Complete
         system hook_started check 1 by w1
         system hook_finished check Block
         system feedback_queued red from check
         system gate_decided Block: send back 1
         system turn_started a.1 sent back red
         system feedback_delivered red
         system turn_finished
         system promise_detected Complete
         system hook_started check 1 by w1
         system hook_finished check Block
         system feedback_queued still-red from check
         system gate_decided Block: send back 2
         system turn_started a.1 sent back still-red
         system feedback_delivered still-red
         system turn_finished
         system promise_detected Complete
         system hook_started check 1 by w1
         system hook_finished check Success
         system gate_decided Pass: Completed
         system iteration_completed
         system session_ended Completed",
    );
}

#[test]
fn stop_hooks_that_never_pass_escalate() {
    check_with(
        loop_rules(&["check"]),
        "session a retries=1
         turn-done a.1 says=complete
         hook check out=block tells=red
         turn-done a.1 says=complete
         --
         hook check out=block tells=still-red",
        "system hook_started check 1 by w1
         system hook_finished check Block
         system feedback_queued still-red from check
         system gate_decided Block: Escalated, `check` still blocks after sending the agent back once
         system iteration_completed
         system session_ended Escalated, `check` still blocks after sending the agent back once",
    );
}

#[test]
fn stop_hooks_may_be_overruled_where_that_was_asked_for() {
    check_with(
        loop_rules(&["check"]),
        "session a retries=0 limit=complete
         turn-done a.1 says=complete
         --
         hook check out=block",
        "system hook_started check 1 by w1
         system hook_finished check Block
         system gate_decided Block: Completed, `check` blocks, and may not send the agent back; `on_retry_limit: complete` lets it pass
         system iteration_completed
         system session_ended Completed, `check` blocks, and may not send the agent back; `on_retry_limit: complete` lets it pass",
    );
}

#[test]
fn failed_stop_hook_prevents_completion_only_in_strict_session() {
    let script = "turn-done a.1 says=complete\n--\nhook check out=failure tells=broken";
    check_with(
        loop_rules(&["check"]),
        &format!("session a\n{script}"),
        "system hook_started check 1 by w1
         system hook_finished check Failure
         system feedback_queued broken from check
         system gate_decided Fail: Continue
         system iteration_completed
         system iteration_started a.2
         system turn_started a.2 to work broken",
    );
    check_with(
        loop_rules(&["check"]),
        &format!("session a strict=false\n{script}"),
        "system hook_started check 1 by w1
         system hook_finished check Failure
         system feedback_queued broken from check
         system gate_decided Fail: Completed
         system iteration_completed
         system turn_started a.1 to listen broken",
    );
}

#[test]
fn every_stop_hook_is_heard_and_the_strictest_decides() {
    let run = |check: &str, lint: &str| {
        let mut project =
            ScriptProject::after(loop_rules(&["check", "lint"]), "session a\nturn-done a.1 says=complete");
        let first = project.run_script(&format!("hook check out={check}"));
        assert_eq!(first.len(), 2, "the second is waited for: {first:?}");
        project.run_script(&format!("hook lint out={lint}"))[2].replace("system gate_decided ", "")
    };
    assert_eq!(run("success", "skip"), "Pass: Completed");
    assert_eq!(run("failure", "success"), "Fail: Continue");
    assert_eq!(run("block", "success"), "Block: send back 1");
    assert_eq!(run("success", "block"), "Block: send back 1");
    assert_eq!(run("failure", "block"), "Block: send back 1");
    assert_eq!(run("block", "timed_out"), "Escalate: Escalated, `lint` asks for a person");
}

#[test]
fn feedback_goes_into_one_finished_turn_in_order_with_what_was_said_last_at_the_end() {
    check_with(
        loop_rules(&["greet", "ready", "note"]),
        "session a max=2
         --
         hook greet tells=welcome
         hook ready tells=one
         turn-done a.1
         hook note tells=noted
         hook ready tells=two
         turn-done a.2
         hook note",
        "system hook_started greet 1 by w1
         system hook_finished greet Success
         system feedback_queued welcome from greet
         system iteration_started a.1
         system hook_started ready 1 by w1
         system hook_finished ready Success
         system feedback_queued one from ready
         system turn_started a.1 to work welcome one
         system feedback_delivered welcome one
         system turn_finished
         system gate_decided Pass: Continue
         system iteration_completed
         system hook_started note 1 by w1
         system hook_finished note Success
         system feedback_queued noted from note
         system iteration_started a.2
         system hook_started ready 1 by w1
         system hook_finished ready Success
         system feedback_queued two from ready
         system turn_started a.2 to work noted two
         system feedback_delivered noted two
         system turn_finished
         system gate_decided Pass: Continue
         system iteration_completed
         system hook_started note 1 by w1
         system hook_finished note Success
         system session_ended Limit, 2 iterations are the limit",
    );
}

/// Feedback that was in two unfinished turns stays marked; later feedback comes after it. Feedback for one iteration alone
/// is replaced by that for the next.
#[test]
fn feedback_of_interrupted_turn_is_redelivered_and_marked() {
    check_with(
        loop_rules(&["greet", "ready"]),
        "session a
         hook greet tells=one
         hook ready
         --
         turn-interrupted a.1
         hook ready tells=two
         turn-failed a.2
         later 1s
         advance a
         hook ready tells=three
         turn-done a.3",
        "system iteration_interrupted a.1
         system iteration_started a.2
         system hook_started ready 1 by w1
         system hook_finished ready Success
         system feedback_queued two from ready
         system turn_started a.2 to work one? two
         system iteration_failed
         system iteration_started a.3
         system hook_started ready 1 by w1
         system hook_finished ready Success
         system feedback_queued three from ready
         system turn_started a.3 to work one? three
         system feedback_delivered one three
         system turn_finished
         system gate_decided Pass: Continue
         system iteration_completed
         system iteration_started a.4",
    );
}

/// In a session of any length, hooks keep their depth below a person's command.
#[test]
fn depth_does_not_grow_with_the_iterations() {
    let mut project = ScriptProject::after(loop_rules(&["ready", "check", "note"]), "session a max=100");
    for iteration in 1..=100 {
        let script = format!("hook ready tells=go\nturn-done a.{iteration}\nhook check\nhook note tells=on");
        let refused: Vec<_> = project.run_script(&script).into_iter().filter(|line| line.starts_with('!')).collect();
        assert_eq!(refused, [""; 0], "{iteration}");
    }
    assert!(project.log.iter().all(|record| record.envelope.metadata.depth <= 1));
    assert!(
        matches!(project.find_session("a").next_step(), SessionStep::Wait(NextAction::Turn(_))),
        "what is left is to deliver"
    );
    project.run_script("turn-done a.100\nhook check\nhook note");
    assert_eq!(project.find_session("a").next_action(), NextAction::Nothing);
}

/// The same conversation would still be full in the next turn.
#[test]
fn full_conversation_is_replaced_by_new_one() {
    for (fault, goes_on) in [(TurnFailure::OutOfTokens, None), (TurnFailure::Failed, Some("talk"))] {
        let mut project = ScriptProject::after(default_rules(), "session a goal=mend failures=5\ntalks a.1 talk");
        let failing = TurnFailureReport { fault, ..TurnFailureReport::from_error("too much".to_owned()) };
        project.commit_as_person(&Command::FailTurn { run: run_id("a.1"), failing }).unwrap();
        assert_eq!(project.find_session("a").conversation.as_deref(), goes_on, "{fault:?}");
    }
}
