//! The commands of the person, as `windlass-app` executes them for every front end.

use windlass_app::answers::{AnswerRequest, submit_answer};
use windlass_app::caller::CallerContext;
use windlass_app::changes::merge_change;
use windlass_app::context::OpenedProject;
use windlass_app::person::ConcernedSessions;
use windlass_app::{Failure, FailureCode, execution};
use windlass_engine::{Authority, Command, Session};
use windlass_runner::MergeChecks;

use crate::event::StoreCommand;
use crate::view_loader::parse_task;

/// Executes a command, with its hooks.
pub fn run_store_command(opened: &mut OpenedProject, command: &StoreCommand) -> Result<(), Failure> {
    match command {
        StoreCommand::Answer { subject, answer, text } => {
            let answer = answer.parse().map_err(|_| {
                Failure::new(FailureCode::Usage, format!("`{answer}` is no answer that a person can give"))
            })?;
            submit_answer(opened, AnswerRequest { subject: subject.clone(), answer, text: text.clone() }).map(drop)
        }
        StoreCommand::Say { session, text } => {
            let session = opened.find_referenced_session(session)?;
            let command = Command::Say { session: session.name.clone(), text: text.clone() };
            execute_for_session(opened, &session, &command)
        }
        StoreCommand::CancelSession { session, reason } => {
            let session = opened.find_referenced_session(session)?;
            let command = Command::CancelSession { name: session.name.clone(), reason: reason.clone() };
            execute_for_session(opened, &session, &command)?;
            // The command is in the log before the owner is woken, because the owner reads it there.
            windlass_process::wake_owner(&opened.project.owner_directory(), session.owner.as_str());
            Ok(())
        }
        StoreCommand::MergeChange { task } => merge_change(opened, parse_task(task)?, MergeChecks::Run).map(drop),
    }
}

/// Executes a command about a session, unless its agent may have given it.
fn execute_for_session(opened: &mut OpenedProject, session: &Session, command: &Command) -> Result<(), Failure> {
    let inside = CallerContext::detect_for_person(opened, ConcernedSessions::Named(&session.name))?;
    execution::execute_with_caller(opened, inside, command, Authority::Person).map(drop)
}
