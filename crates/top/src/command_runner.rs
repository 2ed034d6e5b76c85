//! The commands of the person, as `windlass-app` executes them for every front end.

use windlass_app::Failure;
use windlass_app::answers::{AnswerRequest, submit_answer};
use windlass_app::changes::merge_change;
use windlass_app::context::OpenedProject;
use windlass_app::session_commands::{cancel_session, say_to_session};
use windlass_runner::MergeChecks;

use crate::event::StoreCommand;
use crate::view_loader::parse_task;

/// Executes a command, with its hooks. Returns what happens now, in a sentence.
pub fn run_store_command(opened: &mut OpenedProject, command: &StoreCommand) -> Result<String, Failure> {
    Ok(match command {
        StoreCommand::Answer { subject, answer, text } => {
            let request = AnswerRequest { subject: subject.clone(), answer: answer.0, text: text.clone() };
            submit_answer(opened, request)?.describe_outcome(opened)
        }
        StoreCommand::Say { session, text } => {
            let session = opened.find_referenced_session(session)?;
            say_to_session(opened, &session, text.clone())?.to_string()
        }
        StoreCommand::CancelSession { session, reason } => {
            let session = opened.find_referenced_session(session)?;
            cancel_session(opened, &session, reason.clone())?.to_string()
        }
        StoreCommand::MergeChange { task } => {
            let report = merge_change(opened, parse_task(task)?, MergeChecks::Run)?;
            match report.proof.is_some_and(|proof| !proof.was_merged) {
                true => format!("merged the change of {task}"),
                false => format!("recorded that the change of {task} is merged"),
            }
        }
    })
}
