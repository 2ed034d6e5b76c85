//! `windlass note add`: adds a note to a task.

use windlass_app::context::CommandContext;
use windlass_app::{Failure, FailureCode};
use windlass_engine::{Authority, Command, NoteKind, TaskId};

use super::find_session_task;
use crate::output::{CommandResult, Output};
use crate::show;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass note add --task T3 \"the parser is generated: change grammar.y\"
  windlass note add --kind stuck \"no access to the staging server\"
  windlass note add --kind summary \"two of nine tests pass\"

Inside an agent's turn, --task is not needed. Later prompts for the task have its newest notes, and the \
summaries of its last iterations.")]
pub struct Args {
    /// The text of the note
    #[arg(value_name = "TEXT")]
    text: String,
    /// The task [default in an agent's turn: the task of its session]
    #[arg(long, value_name = "ID")]
    task: Option<TaskId>,
    /// The kind: learning, stuck, tip, decision or summary
    #[arg(long, value_name = "KIND", default_value = "learning", hide_possible_values = true, value_parser = super::note_kind_parser())]
    kind: NoteKind,
}

pub fn run_note_add(context: &CommandContext, args: Args, out: &mut Output) -> CommandResult {
    let mut opened = context.open_project()?;
    if args.task.is_none() && find_session_task(&opened)?.is_none() {
        return Err(Failure::new(FailureCode::Usage, "no task is named")
            .with_hint("--task ID names it; inside an agent's turn, the default is the task of its session")
            .into());
    }
    let command = Command::AddNote { task: args.task, kind: args.kind, text: args.text };
    let records = opened.execute_command(&command, Authority::Person)?;
    let Some(record) = records.first() else { return Ok(()) };
    if out.is_json() {
        return out.print_json(record);
    }
    out.print_line(format_args!(
        "{}  {}",
        record.envelope.node,
        windlass_text::clean_line(&show::summarize_event(record))
    ))
}
