//! `windlass note list`: prints notes, oldest first.

use windlass_app::context::CommandContext;
use windlass_app::hints;
use windlass_engine::{Event, EventRecord, EventType, NoteKind, Seq, TaskId};
use windlass_store::{EventFilter, Store};
use windlass_text as text;

use super::find_session_task;
use crate::output::{CommandResult, Output, TextTone};
use crate::show;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass note list
  windlass note list --task T3 --kind stuck
  windlass note list --json | jq -r .data.text")]
pub struct Args {
    /// Show only notes of this task [default in a turn: the session's task]
    #[arg(long, value_name = "ID")]
    task: Option<TaskId>,
    /// Show only this kind: learning, stuck, tip, decision or summary
    #[arg(long, value_name = "KIND", hide_possible_values = true, value_parser = super::note_kind_parser())]
    kind: Option<NoteKind>,
}

pub fn run_note_list(context: &CommandContext, args: &Args, out: &mut Output) -> CommandResult {
    let opened = context.open_project_to_read()?;
    let task = match args.task {
        Some(id) => Some(opened.require_task(id)?.id),
        None => find_session_task(&opened)?,
    };
    let filter = EventFilter { types: vec![EventType::NoteAdded], task, session: None };
    let records = opened.store.read_events(&filter, Seq::START, usize::MAX).map_err(hints::store_failure)?;
    let wanted = |record: &&EventRecord| match (&record.envelope.event, args.kind) {
        (Event::NoteAdded(note), Some(kind)) => note.kind == kind,
        _ => true,
    };
    let mut any = false;
    for record in records.iter().filter(wanted) {
        any = true;
        match out.is_json() {
            true => out.print_json(record)?,
            false => print_note_line(record, out)?,
        }
    }
    if !any && !out.is_json() {
        return out.print_line(out.paint(TextTone::Faint, "no notes"));
    }
    Ok(())
}

fn print_note_line(record: &EventRecord, out: &mut Output) -> CommandResult {
    let at = out.paint(TextTone::Faint, show::format_local_time(record.envelope.timestamp)).to_string();
    out.print_line(format_args!("{at}  {}  {}", record.envelope.node, text::clean_line(&show::summarize_event(record))))
}
