//! `windlass task depend`, `undepend`, `link` and `unlink`

use clap::builder::TypedValueParser;
use serde_json::json;
use windlass_engine::{Authority, Command, EdgeKind, TaskId};

use crate::context::Context;
use crate::output::{Done, Output, Tone};
use crate::{show, usage};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass task depend T2 T1                   T2 waits until T1 is completed
  windlass task undepend T2 T1")]
pub struct Depend {
    /// The task that waits
    #[arg(value_name = "ID")]
    id: TaskId,
    /// The task that it waits for
    #[arg(value_name = "ON")]
    on: TaskId,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass task link T1 blocks T2              T2 waits until T1 is completed
  windlass task link T3 references T1
  windlass task unlink T3 references T1")]
pub struct Link {
    /// The task at which the edge begins
    #[arg(value_name = "A")]
    from: TaskId,
    /// What the first is to the second
    #[arg(value_name = "KIND", value_parser = edge_kind())]
    kind: EdgeKind,
    /// The task at which the edge ends
    #[arg(value_name = "B")]
    to: TaskId,
}

fn edge_kind() -> impl TypedValueParser<Value = EdgeKind> {
    usage::one_of(EdgeKind::ALL.map(EdgeKind::name))
}

/// An edge that is to be put or taken away.
struct Wanted {
    from: TaskId,
    kind: EdgeKind,
    to: TaskId,
}

pub fn depend(context: &Context, args: &Depend, out: &mut Output) -> Done {
    put(context, &Wanted { from: args.id, kind: EdgeKind::DependsOn, to: args.on }, out)
}

pub fn undepend(context: &Context, args: &Depend, out: &mut Output) -> Done {
    take(context, &Wanted { from: args.id, kind: EdgeKind::DependsOn, to: args.on }, out)
}

pub fn link(context: &Context, args: &Link, out: &mut Output) -> Done {
    put(context, &Wanted { from: args.from, kind: args.kind, to: args.to }, out)
}

pub fn unlink(context: &Context, args: &Link, out: &mut Output) -> Done {
    take(context, &Wanted { from: args.from, kind: args.kind, to: args.to }, out)
}

fn put(context: &Context, edge: &Wanted, out: &mut Output) -> Done {
    let Wanted { from, kind, to } = *edge;
    carry_out(context, edge, &Command::AddEdge { from, kind, to }, out)
}

fn take(context: &Context, edge: &Wanted, out: &mut Output) -> Done {
    let Wanted { from, kind, to } = *edge;
    carry_out(context, edge, &Command::RemoveEdge { from, kind, to }, out)
}

fn carry_out(context: &Context, edge: &Wanted, command: &Command, out: &mut Output) -> Done {
    let Wanted { from, kind, to } = *edge;
    let mut opened = context.open()?;
    let records = opened.execute(command, Authority::Person)?;
    let changed = !records.is_empty();
    if out.is_json() {
        out.object(&json!({"fromId": from, "edgeType": kind, "toId": to, "changed": changed}))?;
    } else {
        let note = match (command, changed) {
            (_, false) => " (as before)",
            (Command::RemoveEdge { .. }, true) => " (taken away)",
            _ => "",
        };
        out.line(format_args!("{from} {kind} {to}{}", out.paint(Tone::Faint, note)))?;
    }
    // Both ends may have changed; neither was named first.
    show::all_consequences(&records, out)
}
