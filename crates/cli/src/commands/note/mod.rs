//! `windlass note …`: notes on a task for the next agent or person who works on it.

mod add;
mod list;

use clap::Subcommand;
use windlass_app::caller::CallerContext;
use windlass_app::context::{CommandContext, OpenedProject};
use windlass_app::{Failure, hints};
use windlass_engine::{NoteKind, StateView, TaskId};

use crate::output::{CommandResult, Output};
use crate::usage;

#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  windlass note add --task T3 \"the parser is generated: change grammar.y\"
  windlass note list --task T3")]
pub enum Command {
    /// Add a note to a task
    Add(add::Args),
    /// List notes, oldest first
    #[command(visible_alias = "ls")]
    List(list::Args),
}

pub fn run_note_command(context: &CommandContext, command: Command, out: &mut Output) -> CommandResult {
    match command {
        Command::Add(args) => add::run_note_add(context, args, out),
        Command::List(args) => list::run_note_list(context, &args, out),
    }
}

fn note_kind_parser() -> impl clap::builder::TypedValueParser<Value = NoteKind> {
    usage::name_parser(NoteKind::ALL.map(NoteKind::name))
}

/// Returns the task of the session in whose turn this command runs.
fn find_session_task(opened: &OpenedProject) -> Result<Option<TaskId>, Failure> {
    let Some(run) = CallerContext::detect_from_variables(opened)?.run else { return Ok(None) };
    let snapshot = opened.store.begin_snapshot().map_err(hints::store_failure)?;
    let session = snapshot.find_session(&run.session).map_err(hints::view_failure)?;
    Ok(session.and_then(|session| session.task))
}
