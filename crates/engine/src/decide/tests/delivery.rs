//! Feedback that is pending when an agent declares its work done, and feedback that no turn has received when a session ends.

use super::script::{ScriptProject, check, check_with, default_rules};
use super::session_loop::loop_rules;
use crate::delivery::WorkspaceMode;
use crate::log::event::{Event, EventEnvelope, EventMetadata, EventRecord, EventSubject, payload};
use crate::log::id::{ConfigDigest, OwnerName, RunId, Seq, SessionName};
use crate::log::time::Timestamp;
use crate::session::message_author::MessageAuthor;
use crate::session::usage::AgentUsage;
use crate::session::{
    AfterIteration, GateDecision, GateVerdict, NextAction, SessionEnd, SessionEndKind, SessionTerms, TurnPurpose,
    WorkSource,
};
use crate::task::TaskState;
use crate::view::StateView;
use crate::view::memory::MemoryView;

/// A task whose work has passed its stop hook.
const PASSED_WORK: &str = "add one\nsession a task=T1\nturn-done a.1 says=complete\nhook check\n";

#[test]
fn delivery_turn_is_judged_before_task_completes() {
    check_with(
        loop_rules(&["check", "note"]),
        &format!("{PASSED_WORK}--\nhook note tells=by-the-way\nturn-done a.1 says=complete\nhook check\nhook note"),
        "T1 hook_started note 1 by w1
         T1 hook_finished note Success
         T1 feedback_queued by-the-way from note
         T1 turn_started a.1 to listen by-the-way
         T1 feedback_delivered by-the-way
         T1 turn_finished
         T1 promise_detected Complete
         T1 hook_started check 1 by w1
         T1 hook_finished check Success
         T1 gate_decided Pass: Completed
         T1 iteration_completed
         T1 hook_started note 1 by w1
         T1 hook_finished note Success
         T1 task_completed
         T1 session_ended Completed",
    );
}

#[test]
fn delivery_turn_that_breaks_work_is_sent_back() {
    check_with(
        loop_rules(&["check", "note"]),
        &format!(
            "{PASSED_WORK}hook note tells=by-the-way
             turn-done a.1 says=complete
             --
             hook check out=block tells=red
             turn-done a.1 says=complete
             hook check
             hook note"
        ),
        "T1 hook_started check 1 by w1
         T1 hook_finished check Block
         T1 feedback_queued red from check
         T1 gate_decided Block: send back 1
         T1 turn_started a.1 sent back red
         T1 feedback_delivered red
         T1 turn_finished
         T1 promise_detected Complete
         T1 hook_started check 1 by w1
         T1 hook_finished check Success
         T1 gate_decided Pass: Completed
         T1 iteration_completed
         T1 hook_started note 1 by w1
         T1 hook_finished note Success
         T1 task_completed
         T1 session_ended Completed",
    );
}

/// Work that passes at the limit of its send-backs is not sent back once more.
#[test]
fn work_that_passes_at_retry_limit_gets_no_delivery() {
    let script = "session a retries=1 limit=complete
         turn-done a.1 says=complete
         hook check out=block
         turn-done a.1 says=complete";
    let mut project = ScriptProject::after(loop_rules(&["check"]), script);
    let answered = project.run_script("hook check out=block tells=red");
    assert!(
        answered.last().unwrap().starts_with("system session_ended Completed, `check` still blocks"),
        "{answered:?}"
    );
}

/// A hook that comments on every iteration would otherwise keep the session from ending.
#[test]
fn output_of_post_iteration_after_delivery_stays_with_task() {
    let script =
        format!("{PASSED_WORK}hook note tells=first\nturn-done a.1 says=complete\nhook check\nhook note tells=second");
    let mut project = ScriptProject::after(loop_rules(&["check", "note"]), &script);
    assert_eq!(project.find_session("a").ending_kind(), Some(SessionEndKind::Completed));
    assert_eq!(
        (project.find_task("T1").state, project.find_task("T1").undelivered_feedback.len()),
        (TaskState::Completed, 1)
    );
    let again = project.run_script("forced reopen T1 red on main\nsession b task=T1");
    assert_eq!(again.last().unwrap(), "T1 turn_started b.1 to work second The task was reopened: red on main");
}

#[test]
fn delivery_turn_without_claim_completes_nothing() {
    let script = format!("{PASSED_WORK}hook note tells=by-the-way\nturn-done a.1\n--\nhook check\nhook note");
    check_with(
        loop_rules(&["check", "note"]),
        &script,
        "T1 hook_started check 1 by w1
         T1 hook_finished check Success
         T1 gate_decided Pass: Continue
         T1 iteration_completed
         T1 hook_started note 1 by w1
         T1 hook_finished note Success
         T1 iteration_started a.2
         T1 turn_started a.2 to work",
    );
}

#[test]
fn delivery_turn_that_does_not_finish_completes_nothing() {
    let begun = format!("{PASSED_WORK}hook note tells=by-the-way\n");
    for (line, over) in [
        ("turn-failed a.1\nlater 101s\nadvance a", "T1 iteration_failed"),
        ("turn-interrupted a.1", "T1 iteration_interrupted a.1"),
        ("turn-limited a.1 for=60s\nlater 61s\nadvance a", "T1 iteration_postponed"),
    ] {
        let mut project = ScriptProject::after(loop_rules(&["check", "note"]), &begun);
        let answered = project.run_script(line);
        assert!(answered[0].starts_with(over), "{answered:?}");
        assert_eq!(answered.last().unwrap(), "T1 turn_started a.2 to work by-the-way?");
        assert_eq!(project.find_task("T1").state, TaskState::Active);
    }
}

#[test]
fn delivery_at_iteration_limit_is_judged_and_may_complete() {
    let script = "add one\nsession a task=T1 max=1\nturn-done a.1\nhook note tells=red\n--\n";
    check_with(
        loop_rules(&["note"]),
        &format!("{script}turn-done a.1 says=complete\nhook note tells=green"),
        "T1 feedback_delivered red
         T1 turn_finished
         T1 promise_detected Complete
         T1 gate_decided Pass: Completed
         T1 iteration_completed
         T1 hook_started note 1 by w1
         T1 hook_finished note Success
         T1 feedback_queued green from note
         T1 task_completed
         T1 session_ended Completed",
    );
    check_with(
        loop_rules(&["note"]),
        &format!("{script}turn-done a.1\nhook note tells=green"),
        "T1 feedback_delivered red
         T1 turn_finished
         T1 gate_decided Pass: Continue
         T1 iteration_completed
         T1 hook_started note 1 by w1
         T1 hook_finished note Success
         T1 feedback_queued green from note
         T1 task_needs_continuation
         T1 session_ended Limit, one iteration is the limit",
    );
}

/// A turn after the merge would work on a branch that is about to be deleted.
#[test]
fn delivery_comes_before_submission_from_worktree() {
    let script = "add one\nsession a task=T1 grounds=worktrees\nworkspace a\nturn-done a.1 says=complete\nhook check\n";
    let mut project =
        ScriptProject::after(loop_rules(&["check", "note"]), &format!("{script}hook note tells=by-the-way"));
    assert!(matches!(project.find_session("a").next_action(), NextAction::Turn(_)));
    project.run_script("turn-done a.1 says=complete\nhook check\nhook note tells=again");
    assert_eq!(project.find_session("a").next_action(), NextAction::Work);
    let answered = project.run_script("work a");
    assert_eq!(answered.last().unwrap(), "T1 session_ended Completed");
    assert_eq!(project.find_task("T1").undelivered_feedback.len(), 1);
}

#[test]
fn used_up_budget_completes_passed_work_without_delivery() {
    let script = "add one\nsession a task=T1 tokens=5\nturn-done a.1 says=complete reads=9\n";
    let mut project = ScriptProject::after(loop_rules(&["note"]), script);
    let answered = project.run_script("hook note tells=by-the-way");
    assert_eq!(answered.last().unwrap(), "T1 session_ended Completed");
    assert_eq!(project.find_task("T1").undelivered_feedback.len(), 1);
}

#[test]
fn cancelled_session_keeps_feedback_with_task() {
    check_with(
        loop_rules(&["note"]),
        "add one
         session a task=T1
         turn-done a.1
         hook note tells=red
         say a use-tabs
         --
         stop a
         turn-interrupted a.2
         session b task=T1",
        "T1 session_stopping Cancelled
         T1 iteration_interrupted a.2
         T1 task_needs_continuation
         T1 session_ended Cancelled
         T1 session_started
         T1 task_claimed w1 epoch 2
         T1 task_started
         T1 iteration_started b.1
         T1 turn_started b.1 to work red? use-tabs",
    );
}

#[test]
fn every_ending_keeps_feedback_with_task() {
    let ends = [
        ("failures=1", "turn-failed a.2", "answer T1 continue", "red?"),
        ("tokens=5", "turn-done a.2 reads=9\nhook note tells=late", "", "late"),
        ("", "turn-done a.2 says=blocked\nhook note tells=late", "answer T1 continue", "late"),
        ("", "crash\nforced release T1 gone", "", "red?"),
    ];
    for (terms, end, back, heard) in ends {
        let script = format!("add one\nsession a task=T1 {terms}\nturn-done a.1\nhook note tells=red\n{end}\n{back}");
        let mut project = ScriptProject::after(loop_rules(&["note"]), &script);
        let begun = project.run_script("session b task=T1");
        assert_eq!(begun.last().unwrap(), &format!("T1 turn_started b.1 to work {heard}"), "{terms} {end}");
    }
}

/// The next task does not receive feedback that waits with another task.
#[test]
fn feedback_of_left_task_does_not_reach_next_task() {
    let script = "add one\nadd two\nsession a work=graph\nturn-done a.1 says=blocked\n";
    let mut project = ScriptProject::after(loop_rules(&["note"]), script);
    let answered = project.run_script("hook note tells=red");
    assert_eq!(answered.last().unwrap(), "T2 turn_started a.2 to work");
    assert_eq!(project.find_task("T1").undelivered_feedback.len(), 1);
}

#[test]
fn reason_of_reopening_reaches_next_session() {
    check(
        "add one
         fail T1 no-key
         reopen T1 the-key-is-there
         --
         session a task=T1",
        "system config_recorded
         T1 session_started
         T1 task_claimed w1 epoch 1
         T1 task_started
         T1 iteration_started a.1
         T1 turn_started a.1 to work The task was reopened: the-key-is-there",
    );
}

#[test]
fn answered_reopening_is_told_once() {
    let mut project = ScriptProject::after(default_rules(), "add one\nfail T1 no-key\nanswer T1 retry use-mine");
    let begun = project.run_script("session a task=T1");
    assert_eq!(begun.last().unwrap(), "T1 turn_started a.1 to work use-mine");
}

/// Older versions delivered feedback after the work was accepted: their logs fold as before.
#[test]
#[expect(clippy::too_many_lines, reason = "a list of events")]
fn log_with_unjudged_delivery_still_folds() {
    let name: SessionName = "a".parse().unwrap();
    let run: RunId = "a.1.0000000000000007".parse().unwrap();
    let owner: OwnerName = "w1".parse().unwrap();
    let closing = || SessionEnd { ending: SessionEndKind::Completed, reason: None };
    let turn = |purpose, feedback| payload::TurnStarted { run: run.clone(), owner: owner.clone(), purpose, feedback };
    let events: Vec<Event> = vec![
        payload::SessionStarted {
            config: ConfigDigest::ZERO,
            protected: None,
            goal: None,
            work: WorkSource::Given,
            workspace_mode: WorkspaceMode::InPlace,
            agent: "command:true".to_owned(),
            terms: SessionTerms::default(),
            owner: owner.clone(),
            nonce: 7,
            keeps_feedback: false,
            fresh: false,
        }
        .into(),
        payload::IterationStarted { run: run.clone() }.into(),
        turn(TurnPurpose::Work, 0).into(),
        payload::TurnFinished {
            run: run.clone(),
            output: "Done.".to_owned(),
            leaky: false,
            record: None,
            usage: AgentUsage::default(),
            tree: None,
            unchanged: false,
        }
        .into(),
        payload::GateDecided {
            run: run.clone(),
            verdict: GateVerdict::Pass,
            decision: GateDecision::Next(AfterIteration::Close(closing())),
            retries: 0,
            max_retries: None,
            reason: None,
        }
        .into(),
        payload::IterationCompleted { run: run.clone(), used: AgentUsage::default() }.into(),
        payload::FeedbackQueued {
            source: "note".to_owned(),
            text: "late".to_owned(),
            voice: MessageAuthor::Hook,
            reason: None,
            own: None,
            passing: false,
        }
        .into(),
        turn(TurnPurpose::UnjudgedDelivery(closing()), 1).into(),
        payload::FeedbackDelivered { run: run.clone(), feedback: vec![Seq(7)] }.into(),
        payload::DeliveryFinished {
            run: run.clone(),
            output: "I see.".to_owned(),
            usage: AgentUsage::default(),
            leaky: false,
        }
        .into(),
        payload::SessionEnded { ending: SessionEndKind::Completed, reason: None, unchecked: 0 }.into(),
    ];
    let mut memory = MemoryView::default();
    for (seq, event) in (1..).map(Seq).zip(events) {
        let metadata = EventMetadata {
            triggered_by: "w1".to_owned(),
            cause: None,
            depth: 0,
            via: None,
            forced: false,
            owes: None,
        };
        let (timestamp, iteration) = (Timestamp::from_millis(0), Some(1));
        let envelope = EventEnvelope {
            timestamp,
            node: EventSubject::System,
            session: Some(name.clone()),
            iteration,
            event,
            metadata,
        };
        memory.apply_event(&EventRecord { seq, envelope }).unwrap();
    }
    assert_eq!(memory.find_session(&name).unwrap().unwrap().ending_kind(), Some(SessionEndKind::Completed));
}
