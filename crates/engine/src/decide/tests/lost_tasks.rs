//! Sessions that lose their task: the end of their waits, and the end of the sessions.

use super::script::{ScriptProject, check, check_with, default_rules};
use super::session_loop::loop_rules;
use crate::session::{NextAction, SessionPhase, TaskHold};

const ASKING_SESSION: &str =
    "session a goal=mend retries=0 limit=ask\nturn-done a.1 says=complete\nhook check out=block";

#[test]
fn lost_task_ends_question_to_person() {
    let ends = |how: &str, expected: &str| {
        check_with(
            loop_rules(&["check"]),
            &format!("{ASKING_SESSION}\nforced {how} T1\n--\ntell a ignore\nadvance a\nadvance a"),
            &format!(
                "! session `a` has lost its task, and no longer asks a question
                 T1 iteration_interrupted a.1
                 T1 session_ended Cancelled, T1 is {expected} now, changed outside this session
                 ! session `a` waits for something else"
            ),
        );
    };
    ends("complete", "completed");
    ends("delete", "deleted");
    ends("fail", "failed");
    ends("block", "blocked");
}

/// An earlier answer no longer counts.
#[test]
fn task_released_during_question_is_claimed_again_by_session() {
    for answered in ["", "tell a ignore\n"] {
        check_with(
            loop_rules(&["check"]),
            &format!("{ASKING_SESSION}\n{answered}forced release T1\ncrash\n--\nadvance a"),
            "T1 iteration_interrupted a.1
             T1 task_claimed w1 epoch 2
             T1 task_started
             T1 iteration_started a.2
             T1 turn_started a.2 to work",
        );
    }
}

#[test]
fn lost_task_ends_wait_for_agent() {
    let limited = "session a goal=mend\nturn-limited a.1 for=60s\n";
    check(
        &format!("{limited}forced complete T1\n--\nadvance a"),
        "T1 session_ended Cancelled, T1 is completed now, changed outside this session",
    );
    // The wait for the agent still applies.
    check(
        &format!("{limited}forced release T1\n--\nadvance a\nadvance a\ncrash\nlater 60s\nadvance a"),
        "T1 task_claimed w1 epoch 2
         T1 task_started
         ! session `a` waits for something else
         T1 iteration_started a.2
         T1 turn_started a.2 to work",
    );
    let script = "add one\nadd two\nsession a work=graph\nturn-limited a.1 for=60s\nforced fail T1\nadvance a";
    let project = ScriptProject::after(default_rules(), script);
    let session = project.find_session("a");
    assert!(matches!((session.hold, &session.phase), (TaskHold::Held(_), SessionPhase::Postponed(_))), "{session:?}");
    assert!(matches!(session.next_action(), NextAction::WaitUntil(_)));
}

/// A session that has lost its task has not completed it, even if its agent claims so.
#[test]
fn session_claiming_done_on_lost_task_ends_as_cancelled() {
    let ends = |how: &str, expected: &str| {
        let mut project = ScriptProject::after(default_rules(), &format!("session a goal=mend\nforced {how} T1"));
        let ended = project.run_script("turn-done a.1 says=complete");
        assert_eq!(ended.last().unwrap(), &format!("T1 session_ended {expected}"), "{how}");
    };
    ends("delete", "Cancelled, T1 is deleted now, changed outside this session");
    ends("fail", "Cancelled, T1 is failed now, changed outside this session");
    ends("block", "Cancelled, T1 is blocked now, changed outside this session");
    ends("release", "Cancelled, T1 is ready now, changed outside this session");
    ends("complete", "Completed");
}

/// The task is held or was completed by another session: this session then always ends in the same way.
#[test]
fn session_whose_task_was_taken_always_ends_as_cancelled() {
    let begun = "add one\nsession a task=T1 grounds=worktrees\nworkspace a\nexpire T1 epoch=1\nsession b task=T1 by=w2";
    let stays = "the work of this session stays on windlass/t1";
    for says in [" says=complete", " says=blocked", " says=escalate"] {
        let mut project = ScriptProject::after(default_rules(), begun);
        let ended = project.run_script(&format!("turn-done a.1{says}"));
        let expected = format!("T1 session_ended Cancelled, T1 was taken by session `b` (epoch 2); {stays}");
        assert_eq!(ended.last().unwrap(), &expected, "{says}");
        let mut project = ScriptProject::after(default_rules(), &format!("{begun}\nturn-done b.1 says=complete"));
        let ended = project.run_script(&format!("turn-done a.1{says}"));
        let taken = "T1 session_ended Cancelled, T1 was taken by session `b` (epoch 2), and is completed now";
        assert_eq!(ended.last().unwrap(), &format!("{taken}; {stays}"), "{says}");
    }
}

/// The session that has the task now has not received them yet.
#[test]
fn findings_outlast_turn_of_session_that_lost_task() {
    let found = "add one\nsession a task=T1\nturn-done a.1 says=complete\nhook pr out=failure message=unreachable";
    let mut project =
        ScriptProject::after(super::pipeline::pipeline_rules(&["pr"]), &format!("{found}\nsession b task=T1"));
    let begun = project.run_script("expire T1 epoch=2\nsession c task=T1 by=w2");
    let turn = begun.last().unwrap();
    assert!(turn.starts_with("T1 turn_started c.1 to work") && turn.ends_with('?'), "{turn}");
    project.run_script("turn-done b.1");
    assert_eq!(project.find_session("c").current_turn().unwrap().feedback.len(), 1);
}

#[test]
fn session_at_limit_still_reports_that_task_was_taken() {
    let begun = "add one\nsession a task=T1 max=1\nexpire T1 epoch=1\nsession b task=T1 by=w2";
    let mut project = ScriptProject::after(default_rules(), begun);
    let ended = project.run_script("turn-done a.1");
    assert_eq!(ended.last().unwrap(), "T1 session_ended Cancelled, T1 was taken by session `b` (epoch 2)");
}

/// A session with other tasks continues with those, and names the lost ones at its end.
#[test]
fn graph_session_names_tasks_taken_from_it_at_end() {
    let begun = "add one\nadd two\nsession a work=graph\nexpire T1 epoch=1\nsession b task=T1 by=w2";
    let mut project = ScriptProject::after(default_rules(), begun);
    let ended = project.run_script("turn-done a.1 says=complete\nturn-done a.2 says=complete");
    assert_eq!(ended.last().unwrap(), "T2 session_ended Cancelled, T1 was taken by session `b` (epoch 2)");
    // A task that comes back is not lost.
    let back = "add one\nsession a work=graph\nexpire T1 epoch=1\nturn-done a.1 says=complete";
    let mut project = ScriptProject::after(default_rules(), back);
    let ended = project.run_script("turn-done a.2 says=complete");
    assert_eq!(ended.last().unwrap(), "T1 session_ended Completed");
}
