//! A series of iterations on a task that the loop of a session works on.

use super::evaluation::{FIRST_TASK, gate_findings, new_series};
use super::script::{ScriptProject, default_rules};
use super::session_loop::loop_rules;
use crate::command::Command;
use crate::evaluation::NewIterationSeries;
use crate::task::TaskState;

/// Returns a project with a session that works on a task with a series.
fn project_with_series(max_iterations: u32, breaker: u32) -> ScriptProject {
    let mut project = ScriptProject::after(default_rules(), "add one");
    project.start_series(NewIterationSeries { max_iterations, breaker, ..new_series(max_iterations) }).unwrap();
    project.run_script("release T1\nsession a task=T1");
    project
}

/// Records a finding as the loop does before the end of a turn is judged, and ends the turn.
fn end_turn(project: &mut ScriptProject, iteration: u32, passed: bool) -> Vec<String> {
    let judging = Box::new(gate_findings(iteration, passed));
    project.commit_as_person(&Command::RecordRuling { task: FIRST_TASK, judging }).unwrap();
    project.run_script(&format!("turn-done a.{iteration}"))
}

#[test]
fn series_advances_with_loop_up_to_its_maximum() {
    let mut project = project_with_series(2, 9);
    let answered = end_turn(&mut project, 1, false);
    assert!(answered.iter().any(|line| line.starts_with("T1 series_advanced")), "{answered:?}");
    let series = project.find_task("T1").evaluation.series.unwrap();
    assert_eq!((series.iteration, series.before.failed, series.judged), (2, 1, None));
    let answered = project.run_script("turn-done a.2");
    let ended = format!("Escalated, {} ends here, maximum: this was iteration 2 of 2", series.id);
    assert!(answered.iter().any(|line| line.ends_with(&ended)), "{answered:?}");
    assert_eq!(project.find_task("T1").state, TaskState::Blocked);
    assert_eq!(project.find_task("T1").evaluation.series.unwrap().iteration, 2);
}

#[test]
fn series_breaker_counts_iterations_of_loop() {
    let mut project = project_with_series(9, 2);
    for (iteration, passed) in [(1, false), (2, true), (3, false)] {
        end_turn(&mut project, iteration, passed);
        assert_eq!(project.find_task("T1").evaluation.series.unwrap().iteration, iteration + 1);
    }
    let answered = end_turn(&mut project, 4, false);
    let ended = "circuit breaker: validation failed in 2 iterations in a row";
    assert!(answered.iter().any(|line| line.ends_with(ended)), "{answered:?}");
    assert_eq!(project.find_task("T1").state, TaskState::Blocked);
}

#[test]
fn series_counts_neither_send_backs_nor_interrupted_iterations() {
    let mut project = ScriptProject::after(loop_rules(&["check"]), "add one");
    project.start_series(new_series(5)).unwrap();
    project.run_script("release T1\nsession a task=T1");
    let iteration = |project: &ScriptProject| project.find_task("T1").evaluation.series.unwrap().iteration;
    project.run_script("turn-done a.1\nhook check out=block tells=red");
    assert_eq!(iteration(&project), 1);
    project.run_script("turn-interrupted a.1");
    assert_eq!((project.find_session("a").iteration, iteration(&project)), (2, 1));
    project.run_script("turn-done a.2\nhook check");
    assert_eq!((project.find_session("a").iteration, iteration(&project)), (3, 2));
}

#[test]
fn series_at_its_maximum_lets_agent_hear_person_first() {
    let mut project = project_with_series(1, 9);
    project.run_script("say a look at the pump");
    project.run_script("turn-done a.1");
    assert_eq!((project.find_task("T1").state, project.find_session("a").iteration), (TaskState::Active, 2));
    project.run_script("turn-done a.2 says=complete");
    assert_eq!(project.find_task("T1").state, TaskState::Completed);
}

/// A judged iteration is over, for any reason of the loop.
#[test]
fn series_counts_iterations_after_a_repair_an_answer_and_a_failure() {
    let count = |script: &str| {
        let mut project = project_with_series(9, 9);
        project.run_script(script);
        project.find_task("T1").evaluation.series.unwrap().iteration
    };
    assert_eq!(count("turn-done a.1 says=blocked\nanswer T1 continue\nsession b task=T1"), 2);
    assert_eq!(count("turn-failed a.1\nlater 1s\nadvance a"), 1, "a failed turn is not judged");
    assert_eq!(count("turn-done a.1\nturn-failed a.2\nlater 1s\nadvance a"), 2);
}

/// The delivery turn belongs to the last iteration.
#[test]
fn series_advances_once_where_a_delivery_turn_ends_the_loop() {
    let mut project = ScriptProject::after(loop_rules(&["note"]), "add one");
    project.start_series(new_series(2)).unwrap();
    project.run_script("release T1\nsession a task=T1 max=1\nturn-done a.1\nhook note tells=noted");
    assert!(project.find_session("a").delivered);
    let ended = project.run_script("turn-done a.1\nhook note");
    assert!(ended.last().unwrap().contains("session_ended Limit"), "{ended:?}");
    assert_eq!(project.find_task("T1").evaluation.series.unwrap().iteration, 1);
}
