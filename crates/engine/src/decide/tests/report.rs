//! Tasks that end with a report, and without a change.

use std::collections::BTreeSet;

use serde_json::json;

use super::pipeline::pipeline_rules;
use super::script::{ScriptProject, check_with};
use crate::decide::EngineRules;
use crate::log::event_type::EventType;
use crate::task::types::TaskTypes;

const REPORTING_SESSION: &str = "add one report=yes\nsession a task=T1 grounds=worktrees\nworkspace a";

#[test]
fn report_passes_both_gates_without_a_commit() {
    let mut project = ScriptProject::after(
        pipeline_rules(&["tests", "review"]),
        &format!("{REPORTING_SESSION}\nturn-done a.1 says=complete"),
    );
    assert_eq!(project.run_script("report a All is well."), ["T1 completion_claimed a.1", "T1 submission_started"],);
    project.run_script("hook tests");
    assert_eq!(
        project.run_script("hook review"),
        [
            "T1 hook_started review 1 by w1",
            "T1 hook_finished review Success",
            "T1 task_completed",
            "T1 session_ended Completed",
        ],
    );
    assert_eq!(project.event_data(EventType::TaskCompleted), json!({"result": "All is well.", "artifacts": []}));
}

#[test]
fn report_that_a_gate_does_not_pass_is_written_again() {
    check_with(
        pipeline_rules(&["tests"]),
        &format!(
            "{REPORTING_SESSION}\nturn-done a.1 says=complete\nreport a too short\n--\nhook tests out=block tells=more"
        ),
        "T1 hook_started tests 1 by w1
         T1 hook_finished tests Block
         T1 pipeline_failed tests Blocked: Remediate 1/3
         T1 feedback_queued more from tests
         T1 iteration_started a.2
         T1 turn_started a.2 to work more",
    );
    let again = "hook tests out=block tells=more\nturn-done a.2 says=complete\nreport a long enough\nhook tests";
    let script = format!("{REPORTING_SESSION}\nturn-done a.1 says=complete\nreport a too short\n{again}");
    let project = ScriptProject::after(pipeline_rules(&["tests"]), &script);
    assert_eq!(project.find_task("T1").result.as_deref(), Some("long enough"));
}

#[test]
fn empty_final_message_is_no_report() {
    let mut project =
        ScriptProject::after(pipeline_rules(&[]), &format!("{REPORTING_SESSION}\nturn-done a.1 says=complete"));
    let answered = project.run_script("report a");
    assert_eq!(answered[0], "T1 pipeline_failed report Conflicts: Remediate 1/3");
    assert!(answered[1].starts_with("T1 feedback_queued This task asks for a report"), "{answered:?}");
}

#[test]
fn report_in_place_is_the_result_of_its_task() {
    let script = "add one report=yes\nsession a task=T1\nturn-done a.1 says=complete";
    let mut project = ScriptProject::after(pipeline_rules(&[]), script);
    assert_eq!(
        project.run_script("report a All is well."),
        ["T1 completion_claimed a.1", "T1 task_completed", "T1 session_ended Completed"],
    );
    assert_eq!(project.event_data(EventType::TaskCompleted)["result"], "All is well.");
}

#[test]
fn type_asks_its_tasks_for_reports() {
    let review = "review".parse().unwrap();
    let types = TaskTypes::new([("review".parse().unwrap(), None)]).with_reports(BTreeSet::from([review]));
    let script = "add one type=review\nsession a task=T1 grounds=worktrees\nworkspace a\nturn-done a.1 says=complete";
    let mut project = ScriptProject::after(EngineRules { types, ..pipeline_rules(&[]) }, script);
    assert!(project.find_task("T1").report.is_some());
    project.run_script("report a done");
    assert_eq!(project.find_task("T1").result.as_deref(), Some("done"));
}

#[test]
fn task_that_leaves_a_type_with_reports_is_claimed_for_a_change() {
    let types = TaskTypes::new([("review".parse().unwrap(), None), ("plain".parse().unwrap(), None)])
        .with_reports(BTreeSet::from(["review".parse().unwrap()]));
    let script =
        "add one type=review\nsession a task=T1\nstop a\nturn-interrupted a.1\nretype T1 plain\nsession b task=T1";
    let project = ScriptProject::after(EngineRules { types, ..pipeline_rules(&[]) }, script);
    assert_eq!((project.find_task("T1").report, project.find_session("b").report), (None, false));
}

/// Commits are no report, and a report is no change.
#[test]
fn task_takes_nothing_but_what_it_asks_for() {
    let mut project =
        ScriptProject::after(pipeline_rules(&[]), &format!("{REPORTING_SESSION}\nturn-done a.1 says=complete"));
    assert_eq!(project.run_script("work a")[0], "T1 pipeline_failed report Conflicts: Remediate 1/3");
    let script = "add one\nsession a task=T1 grounds=worktrees\nworkspace a\nturn-done a.1 says=complete";
    let mut project = ScriptProject::after(pipeline_rules(&[]), script);
    assert_eq!(project.run_script("report a All is well.")[0], "T1 pipeline_failed no_changes Failed: GiveUp 1/3");
}
