//! `windlass note …`: notes on a task for the next agent or person who works on it.

mod add;
mod list;

use clap::Subcommand;
use windlass_app::caller::Inside;
use windlass_app::context::{Context, Opened};
use windlass_app::{Failure, hints};
use windlass_engine::{NoteKind, TaskId, View};

use crate::output::{Done, Output};
use crate::usage;

#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  windlass note add --task T3 \"the parser is generated: change grammar.y\"
  windlass note list --task T3")]
pub enum Command {
    /// Leave a note with a task
    Add(add::Args),
    /// The notes, oldest first
    #[command(visible_alias = "ls")]
    List(list::Args),
}

pub fn run(context: &Context, command: Command, out: &mut Output) -> Done {
    match command {
        Command::Add(args) => add::run(context, args, out),
        Command::List(args) => list::run(context, &args, out),
    }
}

fn kinds() -> impl clap::builder::TypedValueParser<Value = NoteKind> {
    usage::one_of(NoteKind::ALL.map(NoteKind::name))
}

/// Returns the task of the session in whose turn this command runs.
fn task_around(opened: &Opened) -> Result<Option<TaskId>, Failure> {
    let Some(run) = Inside::look(opened)?.run else { return Ok(None) };
    let snapshot = opened.store.snapshot().map_err(hints::store)?;
    let session = snapshot.session(&run.session).map_err(hints::view)?;
    Ok(session.and_then(|session| session.task))
}
