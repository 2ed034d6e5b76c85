//! `windlass note list`: prints notes, oldest first.

use windlass_app::context::Context;
use windlass_app::hints;
use windlass_engine::{Event, EventType, NoteKind, Record, Seq, TaskId};
use windlass_store::{Filter, Store};
use windlass_text as text;

use super::task_around;
use crate::output::{Done, Output, Tone};
use crate::show;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass note list
  windlass note list --task T3 --kind stuck
  windlass note list --json | jq -r .data.text")]
pub struct Args {
    /// Only those of this task [default: inside an agent's turn, that of its session; else all]
    #[arg(long, value_name = "ID")]
    task: Option<TaskId>,
    /// Only those of this kind: learning, stuck, tip, decision, summary
    #[arg(long, value_name = "KIND", hide_possible_values = true, value_parser = super::kinds())]
    kind: Option<NoteKind>,
}

pub fn run(context: &Context, args: &Args, out: &mut Output) -> Done {
    let opened = context.open_to_read()?;
    let task = match args.task {
        Some(id) => Some(opened.task(id)?.id),
        None => task_around(&opened)?,
    };
    let filter = Filter { types: vec![EventType::NoteAdded], task, session: None };
    let records = opened.store.read(&filter, Seq::START, usize::MAX).map_err(hints::store)?;
    let wanted = |record: &&Record| match (&record.envelope.event, args.kind) {
        (Event::NoteAdded(note), Some(kind)) => note.kind == kind,
        _ => true,
    };
    let mut any = false;
    for record in records.iter().filter(wanted) {
        any = true;
        match out.is_json() {
            true => out.object(record)?,
            false => one(record, out)?,
        }
    }
    if !any && !out.is_json() {
        return out.line(out.paint(Tone::Faint, "no notes"));
    }
    Ok(())
}

fn one(record: &Record, out: &mut Output) -> Done {
    let at = out.paint(Tone::Faint, show::moment(record.envelope.timestamp)).to_string();
    out.line(format_args!("{at}  {}  {}", record.envelope.node, text::line(&show::summary(record))))
}
