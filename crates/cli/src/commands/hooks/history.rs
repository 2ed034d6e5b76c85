//! `windlass hooks history`: prints the last hook runs.

use std::path::Path;

use clap::builder::TypedValueParser;
use windlass_app::context::CommandContext;
use windlass_app::conversations;
use windlass_app::hook_runs::{HookRunOutcome, HookRunRecord, RunCause, RunCauses, find_newest_runs};
use windlass_engine::{HookPoint, SessionName, TaskId};
use windlass_store::EventFilter;
use windlass_text as text;

use crate::output::{CommandResult, Output, TextTone};
use crate::{show, usage};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass hooks history
  windlass hooks history --point stop --outcome block --outcome timed_out
  windlass hooks history --conversation 0b7c2f6e-43d1    runs of the bridge
  windlass hooks history --hook lint --limit 0 --json | jq .durationMs")]
pub struct Args {
    /// Show only runs of this hook
    #[arg(long, value_name = "NAME")]
    hook: Option<String>,
    /// Show only runs at this point
    #[arg(long, value_name = "POINT", value_parser = super::parse_point_argument)]
    point: Option<HookPoint>,
    /// Show only runs of this session
    #[arg(long, value_name = "NAME")]
    session: Option<SessionName>,
    /// Show only runs for this task
    #[arg(long, value_name = "ID")]
    task: Option<TaskId>,
    /// Show only runs for this conversation: its id or the start of it
    #[arg(long, value_name = "ID")]
    conversation: Option<String>,
    /// Show only runs with this outcome; repeatable
    #[arg(long, value_name = "OUTCOME", value_parser = outcome_parser())]
    outcome: Vec<HookRunOutcome>,
    /// Show at most this many of the last runs; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 20, allow_negative_numbers = true, value_parser = usage::parse_number)]
    limit: u64,
}

fn outcome_parser() -> impl TypedValueParser<Value = HookRunOutcome> {
    usage::name_parser(HookRunOutcome::list_names())
}

/// The widest column for a name on a terminal.
const MAX_NAME_COLUMNS: usize = 32;
/// The longest message in a pipe.
const MAX_PIPED_MESSAGE: usize = 200;
/// The width of most durations.
const MIN_DURATION_COLUMNS: usize = "999 min".len();
/// The least width of the event column; on a wide terminal the message gets the rest.
const MIN_EVENT_COLUMNS: usize = 12;

pub fn run_hooks_history(context: &CommandContext, args: Args, out: &mut Output) -> CommandResult {
    let opened = context.open_project_to_read()?;
    if let Some(id) = args.task {
        opened.require_task(id)?;
    }
    if let Some(name) = &args.session {
        opened.require_session(name)?;
    }
    let caller =
        args.conversation.as_deref().map(|name| conversations::require_conversation(&opened, name)).transpose()?;
    let mut causes = RunCauses::new(&opened.store);
    let mut wanted = |run: &HookRunRecord| {
        let named = args.hook.is_none() || args.hook == run.hook;
        if !named || !(args.outcome.is_empty() || args.outcome.contains(&run.outcome)) {
            return Ok(false);
        }
        if let Some(caller) = &caller
            && !causes.is_caused_by_caller(run, caller)?
        {
            return Ok(false);
        }
        let Some(point) = &args.point else { return Ok(true) };
        Ok(causes.find_cause(run)?.and_then(|cause| cause.find_hook_point(run)).as_deref() == Some(point.name()))
    };
    let most = usize::try_from(args.limit).ok().filter(|most| *most > 0).unwrap_or(usize::MAX);
    let filter = EventFilter { types: Vec::new(), task: args.task, session: args.session.clone() };
    let runs = find_newest_runs(&opened, filter, most, &mut wanted)?;
    let records = opened.project.record_directory();
    if out.is_json() {
        for run in &runs {
            out.print_json(&run.to_json(causes.find_cause(run)?, &records))?;
        }
        return Ok(());
    }
    if runs.is_empty() {
        return out.print_line(out.paint(TextTone::Faint, "no runs"));
    }
    print_run_table(&runs, &mut causes, &records, out)
}

/// Formats the event that a run belongs to, and its conversation, task and session.
fn format_run_event(run: &HookRunRecord, cause: Option<&RunCause>) -> String {
    let kind = cause.map(|cause| cause.name.as_str());
    let mut parts: Vec<String> =
        run.event.map(|seq| format!("{} {seq}", kind.unwrap_or("event"))).into_iter().collect();
    let call = cause.and_then(|cause| cause.call.as_ref());
    parts.extend(call.map(|call| show::bridge::format_caller(&call.agent, &call.conversation)));
    parts.extend(run.node.task_id().map(|task| task.to_string()));
    parts.extend(run.session.as_ref().map(|session| match run.iteration {
        Some(iteration) => format!("{session} {iteration}"),
        None => session.to_string(),
    }));
    parts.join(", ")
}

/// Prints one row for each run; the columns are hook, point, event, outcome, duration and message.
fn print_run_table(
    runs: &[HookRunRecord],
    causes: &mut RunCauses<'_>,
    records: &Path,
    out: &mut Output,
) -> CommandResult {
    // A pipe has room for whole names.
    let name = out.columns().map_or(usize::MAX, |_| MAX_NAME_COLUMNS);
    let mut rows: Vec<[String; 5]> = Vec::new();
    for run in runs {
        let cause = causes.find_cause(run)?;
        let point = cause.and_then(|cause| cause.find_hook_point(run)).unwrap_or_default();
        let took = run.took.map(show::format_millis).unwrap_or_default();
        let outcome = show::describe_run_outcome(run.outcome).1.to_owned();
        rows.push([
            text::fit_to_width(&run.title(), name),
            text::fit_to_width(&point, name),
            format_run_event(run, cause),
            outcome,
            took,
        ]);
    }
    let width = |column: usize| rows.iter().map(|row| text::display_width(&row[column])).max().unwrap_or(0);
    let [hooks, points, events, outcomes] = std::array::from_fn(width);
    let tooks = width(4).max(MIN_DURATION_COLUMNS);
    for (run, [hook, point, event, outcome, took]) in runs.iter().zip(&rows) {
        let at = run.start_or_end_time().map(|at| show::format_short_moment(at, out)).unwrap_or_default();
        let others = at.len() + hooks + points + outcomes + tooks + 10;
        let columns = out.columns().unwrap_or(usize::MAX);
        let events = events.min(columns.saturating_sub(others + MIN_EVENT_COLUMNS).max(MIN_EVENT_COLUMNS));
        let room = out.columns().map_or(MAX_PIPED_MESSAGE, |columns| columns.saturating_sub(others + events + 2));
        let again = if run.attempt > 1 { format!(" (attempt {})", run.attempt) } else { String::new() };
        let message = format!("{}{again}", run.message.as_deref().unwrap_or_default());
        let output = run.find_output_file(records).map(|(file, exists)| {
            format!("  output {}{}", text::clean_line(&file), if exists { "" } else { " (gone)" })
        });
        let line = format!(
            "{}  {}  {}  {}  {}  {}  {}{}",
            out.paint(TextTone::Faint, at),
            out.paint(TextTone::Strong, text::pad_to_width(hook, hooks)),
            out.paint(TextTone::Name, text::pad_to_width(point, points)),
            text::pad_to_width(&text::fit_to_width(event, events), events),
            out.paint(show::describe_run_outcome(run.outcome).0, text::pad_to_width(outcome, outcomes)),
            out.paint(TextTone::Faint, format!("{took:>tooks$}")),
            text::fit_to_width(message.trim_start(), room),
            out.paint(TextTone::Faint, output.unwrap_or_default()),
        );
        out.print_line(line.trim_end())?;
    }
    Ok(())
}
