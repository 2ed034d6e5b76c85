//! Abandoned and stopped sessions: the recovery by a new owner, and the end from every state.

use super::script::{ScriptProject, check_with, default_rules};
use super::session_loop::loop_rules;
use crate::log::event_type::EventType;
use crate::session::{NextAction, SessionStep};

#[test]
fn resumption_reruns_gate_and_records_other_hooks_as_interrupted() {
    check_with(
        loop_rules(&["check"]),
        "session a
         turn-done a.1 says=complete
         begin check
         --
         resume a by=w2
         recover check by=w2
         finish check
         finish check by=w2",
        "system session_resumed by w2
         system hook_started check 2 by w2
         ! 5.0 belongs to another process
         system hook_finished check Success
         system gate_decided Pass: Completed
         system iteration_completed
         system session_ended Completed",
    );
    check_with(
        loop_rules(&["ready"]),
        "session a
         begin ready
         --
         resume a by=w2
         recover ready by=w2
         finish ready",
        "system session_resumed by w2
         system hook_finished ready Interrupted
         system turn_started a.1 to work
         ! there is no pending effect 1.0",
    );
}

#[test]
fn interrupted_iteration_is_resumed_with_its_retry_count() {
    check_with(
        loop_rules(&["check"]),
        "session a retries=2 max=1
         turn-done a.1
         hook check out=block tells=red
         --
         resume a by=w1
         recover turn by=w1
         turn-done a.2
         hook check out=block tells=still-red
         turn-done a.2
         hook check out=block tells=red-again",
        "system session_resumed by w1
         system iteration_interrupted a.1
         system iteration_started a.2
         system turn_started a.2 to work red?
         system feedback_delivered red
         system turn_finished
         system hook_started check 1 by w1
         system hook_finished check Block
         system feedback_queued still-red from check
         system gate_decided Block: send back 2
         system turn_started a.2 sent back still-red
         system feedback_delivered still-red
         system turn_finished
         system hook_started check 1 by w1
         system hook_finished check Block
         system feedback_queued red-again from check
         system gate_decided Block: Escalated, `check` still blocks after sending the agent back 2 times
         system iteration_completed
         system session_ended Escalated, `check` still blocks after sending the agent back 2 times",
    );
}

/// The turn belongs to the new owner, even if others could not take it over from the old one.
#[test]
fn turn_belongs_to_session_owner() {
    let mut project = ScriptProject::after(default_rules(), "session a\nresume a by=w2\nrecover turn from=w1 by=w2");
    assert_eq!(project.pending_effects()[0].owner.as_str(), "w2");
    assert_eq!(project.run_script("recover turn from=w1 by=w3"), ["! 8.0 belongs to another process"]);
}

#[test]
fn stop_during_hook_waits_for_it_and_skips_remaining_hooks() {
    check_with(
        loop_rules(&["check", "lint", "bye"]),
        "session a
         turn-done a.1
         begin check
         --
         stop a
         finish check out=cancelled
         hook bye",
        "system session_stopping Cancelled
         system hook_finished check Cancelled
         system hook_finished lint Skip
         system iteration_interrupted a.1
         system session_ended Cancelled
         system hook_started bye 1 by w1
         system hook_finished bye Success",
    );
}

/// Hooks of the session's end are not deeper because another hook was skipped. Nothing waits for that hook's verdict any
/// more.
#[test]
fn gate_interrupted_by_crash_is_not_rerun_for_stopped_session() {
    check_with(
        loop_rules(&["check"]),
        "session a
         turn-done a.1 says=complete
         begin check
         stop a cancelled
         --
         resume a by=w2
         recover check by=w2",
        "system session_resumed by w2
         system hook_finished check Interrupted
         system iteration_interrupted a.1
         system session_ended Cancelled",
    );
}

#[test]
fn events_after_skipped_hook_keep_depth_of_stop() {
    let project = ScriptProject::after(loop_rules(&["ready", "bye"]), "session a\nstop a");
    let depths: Vec<_> =
        project.log.iter().map(|record| (record.kind().name(), record.envelope.metadata.depth)).collect();
    assert_eq!(
        depths[3..],
        [("session_stopping", 0), ("hook_finished", 1), ("iteration_interrupted", 0), ("session_ended", 0)],
    );
    assert_eq!(project.pending_effects()[0].depth, 1);
}

/// A hook that is enqueued and skipped in one commit would have no position: the store assigns positions later.
#[test]
fn stopping_session_enqueues_only_session_end_hooks() {
    let mut project = ScriptProject::after(loop_rules(&["check", "note", "bye"]), "add one\nsession a\nstop a");
    let effects = project.rules.effects.as_mut().unwrap();
    effects.hooks.insert(EventType::TaskUpdated, effects.hooks[&EventType::TurnFinished].clone());
    assert_eq!(project.run_script("run=a.1 reword T1 two"), ["T1 task_updated"]);
    assert!(
        matches!(project.find_session("a").next_step(), SessionStep::Wait(NextAction::Turn(_))),
        "{:?}",
        project.find_session("a")
    );
    assert_eq!(
        project.run_script("turn-done a.1"),
        ["system turn_finished", "system iteration_interrupted a.1", "system session_ended Cancelled"],
    );
    assert_eq!(project.pending_effects().len(), 1);
    assert_eq!(project.run_script("hook bye"), ["system hook_started bye 1 by w1", "system hook_finished bye Success"]);
}

#[test]
fn stop_during_turn_waits_until_turn_is_interrupted() {
    check_with(
        loop_rules(&["ready", "check", "bye"]),
        "session a
         hook ready tells=one
         --
         stop a
         turn-interrupted a.1",
        "system session_stopping Cancelled
         system iteration_interrupted a.1
         system session_ended Cancelled",
    );
}

#[test]
fn stop_before_first_turn_skips_hooks_and_ends_session() {
    check_with(
        loop_rules(&["greet"]),
        "session a\n--\nstop a error",
        "system session_stopping Error
         system hook_finished greet Skip
         system session_ended Error",
    );
    check_with(
        loop_rules(&["ready"]),
        "session a
         --
         stop a limit",
        "system session_stopping Limit
         system hook_finished ready Skip
         system iteration_interrupted a.1
         system session_ended Limit",
    );
}

/// The end of the session was requested before the crash, so a new owner runs the hooks of the end.
#[test]
fn hooks_of_requested_end_are_taken_over_after_crash() {
    check_with(
        loop_rules(&["bye"]),
        "session a
         cancel a
         turn-interrupted a.1
         --
         resume a by=w2
         recover bye by=w2",
        "system session_resumed by w2
         system hook_started bye 1 by w2",
    );
}
