//! Messages of a person during the delivery of finished work. The hooks are those of `pipeline.rs`.

use super::pipeline::pipeline_rules;
use super::script::{ScriptProject, check_with};
use crate::session::SessionEndKind;
use crate::task::TaskState;

const DONE_WORK: &str = "add one\nsession a task=T1 grounds=worktrees\nworkspace a\nturn-done a.1 says=complete";

#[test]
fn message_during_review_skips_merge_and_starts_next_turn() {
    check_with(
        pipeline_rules(&["tests", "review", "merge"]),
        &format!(
            "{DONE_WORK}\nwork a\nhook tests\nbegin review\nsay a not yet\n--\nfinish review\nturn-done a.2 says=complete"
        ),
        "T1 hook_finished review Success
         T1 hook_finished merge Skip
         T1 pipeline_failed say Said: Hear 0/0
         T1 iteration_started a.2
         T1 turn_started a.2 to work not yet
         T1 feedback_delivered not yet
         T1 turn_finished
         T1 promise_detected Complete
         T1 gate_decided Pass: Completed
         T1 iteration_completed",
    );
}

/// At every point before the merge begins, an agent works again before the task is completed.
#[test]
fn message_before_merge_begins_is_delivered_first() {
    let steps = ["work a", "begin tests", "finish tests", "begin told", "finish told", "begin review", "finish review"];
    for said in 0..=steps.len() {
        let mut project = ScriptProject::after(pipeline_rules(&["tests", "told", "review", "merge"]), DONE_WORK);
        steps[..said].iter().for_each(|step| drop(project.run_script(step)));
        project.run_script("say a wait");
        steps[said..].iter().for_each(|step| drop(project.run_script(step)));
        if project.find_session("a").current_turn().is_none() {
            project.run_script("advance a");
        }
        assert_eq!(project.run_script("begin merge"), ["! there is no pending effect 1.0"], "{said}");
        let turn = project.find_session("a").current_turn().cloned();
        assert!(
            turn.is_some_and(|turn| turn.run.iteration == 2 && turn.feedback.iter().all(|piece| piece.person)),
            "{said}"
        );
        assert_eq!(
            (project.find_task("T1").state, project.find_session("a").remediations),
            (TaskState::Active, 0),
            "{said}"
        );
    }
}

/// A merge that has begun continues: the message is delivered afterwards.
#[test]
fn started_merge_finishes_before_pending_message_is_delivered() {
    let script = format!("{DONE_WORK}\nwork a\nhook pr opens=http://x/1\nbegin merge\nsay a wait");
    let mut project = ScriptProject::after(pipeline_rules(&["pr", "merge", "last"]), &script);
    project.run_script("finish merge merges=def\nhook last");
    assert_eq!(project.find_task("T1").state, TaskState::Completed);
    // A failed merge is one more reason to deliver the message.
    let mut project = ScriptProject::after(pipeline_rules(&["pr", "merge", "last"]), &script);
    let answered = project.run_script("finish merge out=continue message=moved");
    assert_eq!(answered.last().unwrap(), "T1 turn_started a.2 to work wait");
}

/// The same applies to work in place and to work without gates.
#[test]
fn message_is_delivered_first_for_work_in_place() {
    let script = "add one\nsession a task=T1\nturn-done a.1 says=complete\nbegin tests\nsay a wait\n--";
    let mut project = ScriptProject::after(pipeline_rules(&["tests"]), script);
    assert_eq!(project.run_script("finish tests").last().unwrap(), "T1 turn_started a.2 to work wait");
}

#[test]
fn message_is_delivered_first_without_gates() {
    for go_on in ["work a", "advance a"] {
        let mut project = ScriptProject::after(pipeline_rules(&[]), &format!("{DONE_WORK}\nsay a wait"));
        assert_eq!(project.run_script(go_on), ["T1 iteration_started a.2", "T1 turn_started a.2 to work wait"]);
    }
}

/// A session at its limit leaves the work without accepting it.
#[test]
fn message_at_limit_leaves_work_unaccepted() {
    let script = "add one
        session a task=T1 grounds=worktrees tokens=5
        workspace a
        turn-done a.1 says=complete reads=9
        say a wait";
    let mut project = ScriptProject::after(pipeline_rules(&[]), script);
    project.run_script("advance a");
    assert_eq!(project.find_task("T1").state, TaskState::NeedsContinuation);
    assert_eq!(project.find_session("a").ending_kind(), Some(SessionEndKind::Limit));
    assert_eq!(project.find_task("T1").undelivered_feedback.len(), 1);
}

/// Hooks that the dead owner had not begun are not begun by the new owner.
#[test]
fn message_is_delivered_after_crash() {
    let script = format!("{DONE_WORK}\nwork a\nhook tests\nsay a wait\ncrash\nresume a by=w2");
    let mut project = ScriptProject::after(pipeline_rules(&["tests", "pr"]), &script);
    let answered = project.run_script("recover pr by=w2");
    assert_eq!(answered[0], "T1 hook_finished pr Skip");
    assert_eq!(answered.last().unwrap(), "T1 turn_started a.2 to work wait");
}

/// Only messages after the claim of completion delay the delivery.
#[test]
fn delivered_message_does_not_hold_work_back() {
    let script =
        "add one\nsession a task=T1 grounds=worktrees\nsay a be quick\nworkspace a\nturn-done a.1 says=complete";
    let mut project = ScriptProject::after(pipeline_rules(&["tests"]), &format!("{script}\nwork a"));
    project.run_script("hook tests");
    assert_eq!(project.find_task("T1").state, TaskState::Completed, "it was heard in the first turn");
    // A person who waives the block wants the work accepted, even with a message.
    let script =
        "add one\nsession a task=T1 grounds=worktrees retries=0 limit=ask\nworkspace a\nturn-done a.1 says=complete";
    let mut project =
        ScriptProject::after(pipeline_rules(&["stop", "tests"]), &format!("{script}\nhook stop out=block tells=no"));
    project.run_script(
        "tell a ignore so be it\nadvance a\nturn-done a.1 says=complete\nhook stop out=block\nwork a\nhook tests",
    );
    assert_eq!(project.find_task("T1").state, TaskState::Completed);
}
