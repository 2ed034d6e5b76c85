//! Windlass as a library: a program whose hooks are closures.
//!
//! ```text
//! cargo run -p windlass-example-closures -- [DIRECTORY]
//! ```
//!
//! It keeps its store in the directory, or in a temporary one, executes a few commands, and prints the resulting events.
//! `docs/library.md` explains it.

#![expect(clippy::print_stdout, reason = "a program prints")]

mod hooks;
mod project;
mod stopping;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use project::{Outcome, Project};
use windlass_engine::{Command, EventRecord, NewTask, TaskId, TaskPriority};

fn main() -> Outcome<()> {
    let temporary = tempfile::tempdir()?;
    let directory = std::env::args_os().nth(1).map_or_else(|| temporary.path().to_owned(), PathBuf::from);
    let mut project = Project::open(&directory, hooks::registry()?)?;
    for record in tour(&mut project)? {
        println!("{}", line(&record));
    }
    // The agent works on the plan of the next release.
    println!("{}", stopping::judged(stopping::tool_router(project, TaskId(2))?, "T2", &["plan.md"])?);
    Ok(())
}

/// Creates an urgent release and a task that waits for it, and completes the release.
fn tour(project: &mut Project) -> Outcome<Vec<EventRecord>> {
    let mut events = project.execute(&Command::CreateTask(NewTask {
        goal: "Release 1.0".to_owned(),
        labels: vec!["release".to_owned()],
        priority: TaskPriority::try_from(0)?,
        ..NewTask::default()
    }))?;
    let release = made(&events)?;
    events.extend(project.execute(&Command::CreateTask(NewTask {
        goal: "Plan 1.1".to_owned(),
        depends_on: vec![release],
        ..NewTask::default()
    }))?);
    let result = Some("shipped".to_owned());
    events.extend(project.execute(&Command::CompleteTask { id: release, result, artifacts: vec![] })?);
    Ok(events)
}

/// Returns the task that a command created: the subject of its first event.
fn made(events: &[EventRecord]) -> Outcome<TaskId> {
    Ok(events.first().and_then(|record| record.envelope.node.task_id()).ok_or("the command made no task")?)
}

/// Formats an event as one line: its position, its subject, its type, and the event that caused it.
fn line(record: &EventRecord) -> String {
    let cause = record.cause_position().map_or_else(String::new, |cause| format!("  because of {cause}"));
    format!("{}  {}  {}{cause}", record.seq, record.envelope.node, record.kind())
}
