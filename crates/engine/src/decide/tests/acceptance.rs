//! Conditions that keep finished work from being accepted, and reports about work that is accepted.

use super::pipeline::{SESSION_IN_WORKTREE, pipeline_rules};
use super::script::ScriptProject;
use crate::effects::hook_batch::HookEffect;
use crate::effects::hook_outcome::{HookClass, HookFailurePolicy};
use crate::effects::hook_point::HookPoint;
use crate::log::event_type::EventType;
use crate::log::id::TaskId;
use crate::session::SessionEndKind;
use crate::task::TaskState;

/// The session may work in the user's tree or in a worktree, on a goal, a task or the graph. On the graph it ends with
/// tasks left.
#[test]
fn hook_that_escalates_after_the_gate_leaves_the_task_to_a_person() {
    let mut rules = pipeline_rules(&["pr"]);
    let (point, class, on_failure) = (HookPoint::PostIteration, HookClass::Other, HookFailurePolicy::Ignore);
    let note = HookEffect { hook: "note".to_owned(), point, class, on_failure, send_backs: None };
    rules.effects.as_mut().unwrap().hooks.entry(EventType::IterationCompleted).or_default().push(note.into());
    for begun in [
        "session a goal=mend",
        "add one\nsession a task=T1",
        "add one\nadd two\nsession a work=graph",
        "add one\nsession a task=T1 grounds=worktrees\nworkspace a",
        "add one\nsession a work=graph grounds=worktrees\nworkspace a",
    ] {
        let script = format!("{begun}\nturn-done a.1 says=complete\nhook note out=escalate message=look");
        let mut project = ScriptProject::after(rules.clone(), &script);
        let (task, session) = (project.find_task("T1"), project.find_session("a"));
        assert_eq!(
            (task.state, session.ending_kind()),
            (TaskState::Blocked, Some(SessionEndKind::Escalated)),
            "{begun}"
        );
        assert_eq!(task.blocked.unwrap().reason, "`note` asks for a person: look", "{begun}");
        assert_eq!(
            project.run_script("forced answer T1 approve").last().unwrap(),
            "T1 task_completed (forced)",
            "{begun}"
        );
        let mut project = ScriptProject::after(rules.clone(), &script);
        project.run_script("answer T1 continue");
        assert_eq!(project.find_task("T1").state, TaskState::Ready, "{begun}");
    }
}

#[test]
fn session_on_graph_goes_on_where_gate_escalates() {
    let begun = "add one\nadd two\nsession a work=graph\nturn-done a.1 says=complete";
    for hook in ["stop", "tests", "review"] {
        let script = format!("{begun}\nhook {hook} out=escalate message=look");
        let project = ScriptProject::after(pipeline_rules(&[hook]), &script);
        let (task, session) = (project.find_task("T1"), project.find_session("a"));
        assert_eq!(
            (task.state, session.ending_kind(), session.task),
            (TaskState::Blocked, None, Some(TaskId(2))),
            "{hook}"
        );
    }
}

/// Neither a step of git nor a skipped hook is a check.
#[test]
fn task_completed_without_a_check_is_counted() {
    let unchecked = |hooks_there: &[&str], script: &str| {
        let project = ScriptProject::after(pipeline_rules(hooks_there), script);
        assert_eq!(project.find_task("T1").state, TaskState::Completed, "{script}");
        project.find_session("a").unchecked
    };
    let done = format!("{SESSION_IN_WORKTREE}\nturn-done a.1 says=complete");
    let goal = "session a goal=mend\nturn-done a.1 says=complete";
    assert_eq!(unchecked(&[], goal), 1);
    assert_eq!(unchecked(&["stop"], &format!("{goal}\nhook stop")), 0);
    assert_eq!(unchecked(&["stop"], &format!("{goal}\nhook stop out=skip")), 1);
    let again = "session a goal=mend\nturn-done a.1\nhook stop\nturn-done a.2 says=complete\nhook stop out=skip";
    assert_eq!(unchecked(&["stop"], again), 1, "what was checked is the turn before");
    assert_eq!(unchecked(&["pr"], &format!("{done}\nwork a\nhook pr opens=http://x/1")), 1);
    assert_eq!(unchecked(&["tests"], &format!("{done}\nwork a\nhook tests")), 0);
    assert_eq!(unchecked(&["review"], &format!("{done}\nwork a\nhook review")), 0);
}

#[test]
fn work_that_resumes_at_a_gate_is_checked_if_it_was_before() {
    let resumed = |hooks_there: &[&str], judged: &str| {
        let failed = format!(
            "{SESSION_IN_WORKTREE}\nturn-done a.1 says=complete\n{judged}work a\nhook pr out=failure message=down"
        );
        let script =
            format!("{failed}\nsession b task=T1 grounds=worktrees\nworkspace b\nwork b\nhook pr opens=http://x/1");
        let project = ScriptProject::after(pipeline_rules(hooks_there), &script);
        assert_eq!(project.find_task("T1").state, TaskState::Completed, "{script}");
        project.find_session("b").unchecked
    };
    assert_eq!(resumed(&["pr"], ""), 1);
    assert_eq!(resumed(&["stop", "pr"], "hook stop\n"), 0);
}

#[test]
fn task_that_is_let_pass_at_the_limit_is_told_by_its_reason() {
    let script = "session a goal=mend retries=0 limit=complete\nturn-done a.1 says=complete\nhook stop out=block";
    let project = ScriptProject::after(pipeline_rules(&["stop"]), script);
    assert_eq!((project.find_task("T1").state, project.find_session("a").unchecked), (TaskState::Completed, 0));
}

/// The end of a session that works on the graph has no reason of its own.
#[test]
fn end_of_graph_session_names_waived_task() {
    let waived = "`stop` blocks, and may not send the agent back; `on_retry_limit: complete` lets it pass";
    for (options, work) in [("", ""), (" grounds=worktrees", "\nwork a\nhook tests")] {
        let opened = if options.is_empty() { "" } else { "\nworkspace a" };
        let begun = format!("add one\nadd two\nsession a work=graph retries=0 limit=complete{options}{opened}");
        let script = format!("{begun}\nturn-done a.1 says=complete\nhook stop out=block{work}{opened}");
        let hook_names: &[&str] = if work.is_empty() { &["stop"] } else { &["stop", "tests"] };
        let mut project = ScriptProject::after(pipeline_rules(hook_names), &script);
        let lines = project.run_script(&format!("turn-done a.2 says=complete\nhook stop{work}"));
        assert_eq!(lines.last().unwrap(), &format!("T2 session_ended Completed, T1: {waived}"), "{options}");
    }
}

#[test]
fn end_of_a_session_names_a_bounded_number_of_waivers() {
    let mut project = ScriptProject::new(pipeline_rules(&["stop"]));
    project.run_script(&format!("{}session a work=graph retries=0 limit=complete", "add one\n".repeat(9)));
    let turns: Vec<String> =
        (1..=9).map(|turn| format!("turn-done a.{turn} says=complete\nhook stop out=block")).collect();
    let lines = project.run_script(&turns.join("\n"));
    let end = lines.last().unwrap();
    assert!(
        end.contains("; T5: `stop`")
            && !end.contains("T6")
            && end.ends_with("; other tasks were accepted in the same way"),
        "{end}"
    );
}

/// The output of a hook before its timeout is not a verdict about the work.
#[test]
fn hook_that_times_out_before_a_merge_rejects_nothing() {
    let ended = |hook: &str, end: &str| {
        let script =
            format!("{SESSION_IN_WORKTREE}\nturn-done a.1 says=complete\nwork a\n--\nhook {hook} {end} tells=half");
        let lines = ScriptProject::new(pipeline_rules(&[hook])).run_script(&script);
        lines.into_iter().find_map(|line| Some(line.strip_prefix("T1 pipeline_failed ")?.to_owned())).unwrap()
    };
    assert_eq!(ended("review", "out=timed_out"), "review Failed: GiveUp 1/3");
    assert_eq!(ended("review", "out=failure"), "review Blocked: Reject 1/3");
    assert_eq!(ended("review", "out=failure unstarted=1"), "review Failed: GiveUp 1/3");
    assert_eq!(ended("review", "out=block unstarted=1"), "review Blocked: Reject 1/3");
    assert_eq!(ended("tests", "out=timed_out"), "tests Blocked: Remediate 1/3", "the agent may have made it hang");
    assert_eq!(ended("tests", "out=failure unstarted=1"), "tests Failed: GiveUp 1/3");
}

/// A person who unblocks a task has seen the findings.
#[test]
fn rejections_are_counted_anew_after_person_unblocks_task() {
    let rejected = "turn-done a.1 says=complete\nwork a\nhook review out=block";
    let script = format!("add one\nsession a task=T1 grounds=worktrees rejections=0\nworkspace a\n{rejected}");
    let mut project = ScriptProject::after(pipeline_rules(&["review"]), &script);
    assert_eq!((project.find_task("T1").state, project.find_task("T1").rejections), (TaskState::Blocked, 1));
    project.run_script("answer T1 continue");
    assert_eq!(project.find_task("T1").rejections, 0);
}
