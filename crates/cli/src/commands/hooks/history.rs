//! `windlass hooks history`

use std::path::Path;

use clap::builder::TypedValueParser;
use windlass_engine::{SessionName, TaskId, Timestamp};
use windlass_store::Filter;

use super::collect;
use super::runs::{Cause, Causes, Outcome, Run, Took};
use crate::config::Point;
use crate::context::Context;
use crate::output::{Done, Output, Tone};
use crate::{callers, show, text, usage};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass hooks history
  windlass hooks history --point stop --outcome block --outcome timed_out
  windlass hooks history --conversation 0b7c2f6e-43d1    what ran when an agent called by itself
  windlass hooks history --hook lint --limit 0 --json | jq .durationMs

A duration with a tilde was not measured: it is the time between the hook's two events.")]
pub struct Args {
    /// Only runs of this hook
    #[arg(long, value_name = "NAME")]
    hook: Option<String>,
    /// Only runs at this point
    #[arg(long, value_name = "POINT", value_parser = super::point)]
    point: Option<Point>,
    /// Only runs of this session
    #[arg(long, value_name = "NAME")]
    session: Option<SessionName>,
    /// Only runs for this task
    #[arg(long, value_name = "ID")]
    task: Option<TaskId>,
    /// Only runs for calls of this conversation's agent, by its id or how that begins
    #[arg(long, value_name = "ID")]
    conversation: Option<String>,
    /// Only runs that ended so; may be given several times
    #[arg(long, value_name = "OUTCOME", value_parser = outcome())]
    outcome: Vec<Outcome>,
    /// At most so many, the last ones; 0 for all
    #[arg(long, value_name = "N", default_value_t = 20, allow_negative_numbers = true, value_parser = usage::number)]
    limit: u64,
}

fn outcome() -> impl TypedValueParser<Value = Outcome> {
    usage::one_of(Outcome::ALL.map(Outcome::name))
}

/// The longest that a name may make a column.
const NAME: usize = 32;
/// The longest message in a pipe.
const MESSAGE: usize = 200;
/// What most durations take.
const TOOK: usize = "~999 ms".len();
/// What the event's column keeps on a narrow terminal, and leaves to the message on a wider one.
const ROOM: usize = 12;

pub fn run(context: &Context, args: Args, out: &mut Output) -> Done {
    let opened = context.open_to_read()?;
    if let Some(id) = args.task {
        opened.task(id)?;
    }
    if let Some(name) = &args.session {
        opened.session(name)?;
    }
    let caller = args.conversation.as_deref().map(|name| callers::known(&opened, name)).transpose()?;
    let mut causes = Causes::new(&opened.store);
    let mut wanted = |run: &Run| {
        let named = args.hook.is_none() || args.hook == run.hook;
        if !named || !(args.outcome.is_empty() || args.outcome.contains(&run.outcome)) {
            return Ok(false);
        }
        if let Some(caller) = &caller
            && !causes.is_of(run, caller)?
        {
            return Ok(false);
        }
        let Some(point) = args.point else { return Ok(true) };
        Ok(causes.of(run)?.and_then(|cause| cause.point(run)).as_deref() == Some(point.name()))
    };
    let most = usize::try_from(args.limit).ok().filter(|most| *most > 0).unwrap_or(usize::MAX);
    let filter = Filter { types: Vec::new(), task: args.task, session: args.session.clone() };
    let runs = collect::newest(&opened, filter, most, &mut wanted)?;
    let records = opened.project.records();
    if out.is_json() {
        for run in &runs {
            out.object(&run.to_json(causes.of(run)?, &records))?;
        }
        return Ok(());
    }
    if runs.is_empty() {
        let narrowed = args.hook.is_some()
            || args.point.is_some()
            || args.session.is_some()
            || args.task.is_some()
            || args.conversation.is_some()
            || !args.outcome.is_empty();
        let nothing = if narrowed { "no such runs" } else { "no hook has run yet" };
        return out.line(out.paint(Tone::Faint, nothing));
    }
    // Whoever reads a pipe has room for whole names.
    let name = out.columns().map_or(usize::MAX, |_| NAME);
    let mut rows = Vec::new();
    for run in &runs {
        rows.push(Row::new(run, causes.of(run)?, &records, name));
    }
    table(&rows, out)
}

/// One run, cell by cell.
struct Row {
    at: Option<Timestamp>,
    hook: String,
    point: String,
    event: String,
    outcome: (Tone, &'static str),
    took: String,
    message: String,
    output: Option<String>,
}

impl Row {
    fn new(run: &Run, cause: Option<&Cause>, records: &Path, name: usize) -> Self {
        let again = if run.attempt > 1 { format!(" (attempt {})", run.attempt) } else { String::new() };
        let message = run.message.clone().unwrap_or_default();
        let output = run.output(records).map(|(file, there)| match there {
            true => text::line(&file).into_owned(),
            false => format!("{} (gone)", text::line(&file)),
        });
        Self {
            at: run.when(),
            hook: text::fit(&run.title(), name),
            point: text::fit(&cause.and_then(|cause| cause.point(run)).unwrap_or_default(), name),
            event: event(run, cause),
            outcome: run.outcome.words(),
            took: run.took.map(Took::words).unwrap_or_default(),
            message: format!("{message}{again}").trim_start().to_owned(),
            output,
        }
    }
}

/// What it ran for: the event, and whom that was about.
fn event(run: &Run, cause: Option<&Cause>) -> String {
    let kind = cause.map(|cause| cause.name.as_str());
    let mut parts: Vec<String> =
        run.event.map(|seq| format!("{} {seq}", kind.unwrap_or("event"))).into_iter().collect();
    let call = cause.and_then(|cause| cause.call.as_ref());
    parts.extend(call.map(|call| show::bridge::caller(&call.agent, &call.conversation)));
    parts.extend(run.node.task().map(|task| task.to_string()));
    parts.extend(run.session.as_ref().map(|session| match run.iteration {
        Some(iteration) => format!("{session} {iteration}"),
        None => session.to_string(),
    }));
    parts.join(", ")
}

fn table(rows: &[Row], out: &mut Output) -> Done {
    let width = |cell: fn(&Row) -> &str| rows.iter().map(|row| text::width(cell(row))).max().unwrap_or(0);
    let (hooks, points) = (width(|row| &row.hook), width(|row| &row.point));
    let (events, outcomes, tooks) =
        (width(|row| &row.event), width(|row| row.outcome.1), width(|row| &row.took).max(TOOK));
    for row in rows {
        let at = row.at.map(|at| show::short_moment(at, out)).unwrap_or_default();
        let others = at.len() + hooks + points + outcomes + tooks + 10;
        let columns = out.columns().unwrap_or(usize::MAX);
        let events = events.min(columns.saturating_sub(others + ROOM).max(ROOM));
        let room = out.columns().map_or(MESSAGE, |columns| columns.saturating_sub(others + events + 2));
        let message = text::fit(&row.message, room);
        let output = row.output.as_ref().map(|output| format!("  output {output}")).unwrap_or_default();
        let took = format!("{}{}", " ".repeat(tooks.saturating_sub(text::width(&row.took))), row.took);
        let line = format!(
            "{}  {}  {}  {}  {}  {}  {message}{}",
            out.paint(Tone::Faint, at),
            out.paint(Tone::Strong, text::pad(&row.hook, hooks)),
            out.paint(Tone::Name, text::pad(&row.point, points)),
            text::pad(&text::fit(&row.event, events), events),
            out.paint(row.outcome.0, text::pad(row.outcome.1, outcomes)),
            out.paint(Tone::Faint, took),
            out.paint(Tone::Faint, output),
        );
        out.line(line.trim_end())?;
    }
    Ok(())
}
