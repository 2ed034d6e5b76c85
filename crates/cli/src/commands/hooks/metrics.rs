//! `windlass hooks metrics`: prints how often hooks run, how they end and how long they take.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;
use windlass_app::context::CommandContext;
use windlass_app::hook_runs::{HookMetrics, HookRunRecord, RunCauses, find_newest_runs};
use windlass_app::{conversations, environment};
use windlass_store::EventFilter;
use windlass_text as text;

use crate::output::{CommandResult, Output, TextTone};
use crate::{show, usage};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass hooks metrics
  windlass hooks metrics --hook lint --since 24h
  windlass hooks metrics --conversation 0b7c2f6e-43d1
  windlass hooks metrics --json | jq '.hooks[] | {hook, p95Ms}'

All ended runs count, also interrupted ones. Hooks inside a commit are not timed: only their errors are \
recorded. `windlass why HOOK-9` shows what a registered stop hook decided.")]
pub struct Args {
    /// Count only runs of this hook
    #[arg(long, value_name = "NAME")]
    hook: Option<String>,
    /// Count only this conversation: its id or the start of it
    #[arg(long, value_name = "ID")]
    conversation: Option<String>,
    /// Count only runs that ended in this last time: 30m, 24h, 7d
    #[arg(long, value_name = "TIME", allow_negative_numbers = true, value_parser = usage::parse_time_span)]
    since: Option<Duration>,
}

/// The widest column for a name.
const MAX_NAME_COLUMNS: usize = 32;

pub fn run_hooks_metrics(context: &CommandContext, args: &Args, out: &mut Output) -> CommandResult {
    let opened = context.open_project_to_read()?;
    let since = args.since.map(|ago| {
        let ago = i64::try_from(ago.as_millis()).unwrap_or(i64::MAX);
        environment::current_timestamp().add_millis(-ago)
    });
    let caller =
        args.conversation.as_deref().map(|name| conversations::require_conversation(&opened, name)).transpose()?;
    let mut causes = RunCauses::new(&opened.store);
    let mut wanted = |run: &HookRunRecord| {
        let named = args.hook.is_none() || args.hook == run.hook;
        let meant = named && run.start_or_end_time() >= since;
        match &caller {
            Some(caller) if meant => causes.is_caused_by_caller(run, caller),
            _ => Ok(meant),
        }
    };
    let runs = find_newest_runs(&opened, EventFilter::default(), usize::MAX, &mut wanted)?;
    let mut hooks: BTreeMap<String, HookMetrics> = BTreeMap::new();
    let mut total = HookMetrics::default();
    for run in &runs {
        total.count_run(run);
        if let Some(hook) = &run.hook {
            hooks.entry(hook.clone()).or_default().count_run(run);
        }
    }
    if out.is_json() {
        let each = hooks.iter().map(|(hook, tally)| {
            let mut object = tally.to_json();
            object["hook"] = json!(hook);
            object
        });
        return out.print_json(&json!({
            "since": since,
            "hooks": each.collect::<Vec<_>>(),
            "total": total.to_json(),
        }));
    }
    if runs.is_empty() {
        return out.print_line(out.paint(TextTone::Faint, "no runs"));
    }
    hooks.retain(|_, tally| tally.count_ended_runs() > 0);
    print_metrics_table(&hooks, &total, out)?;
    match total.errors {
        0 => Ok(()),
        errors => {
            let told = format!("errors besides: {errors}; `windlass hooks history --outcome error` shows them");
            out.print_line(out.paint(TextTone::Warning, told))
        }
    }
}

/// Formats a part of a whole as a percentage.
fn format_percent(part: usize, whole: usize) -> String {
    match whole {
        0 => String::new(),
        whole => format!("{}%", (part * 200 + whole) / (whole * 2)),
    }
}

/// The width of the last-run column, with the blanks before it.
const LAST_RUN_COLUMNS: usize = 21;

/// The first of the columns that hold durations, and the width of most durations.
const FIRST_DURATION_COLUMN: usize = 6;
const MIN_DURATION_COLUMNS: usize = "999 ms".len();

const COLUMN_TITLES: [&str; 8] = ["runs", "success", "block", "failure", "timeout", "other", "p50", "p95"];

fn metrics_cells(tally: &HookMetrics) -> [String; 8] {
    let percent = |count: usize| format_percent(count, tally.count_ended_runs());
    let span = |percent| tally.duration_percentile(percent).map_or_else(|| "-".to_owned(), show::format_millis);
    [
        tally.count_ended_runs().to_string(),
        percent(tally.success),
        percent(tally.block),
        percent(tally.failure),
        percent(tally.timed_out),
        percent(tally.again + tally.other),
        span(50),
        span(95),
    ]
}

fn print_metrics_table(hooks: &BTreeMap<String, HookMetrics>, total: &HookMetrics, out: &mut Output) -> CommandResult {
    let tallies: Vec<&HookMetrics> = hooks.values().chain([total]).collect();
    let rows: Vec<[String; 8]> = tallies.iter().map(|tally| metrics_cells(tally)).collect();
    let widths: [usize; 8] = std::array::from_fn(|column| {
        let longest = rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
        longest.max(COLUMN_TITLES[column].len()).max(if column < FIRST_DURATION_COLUMN {
            0
        } else {
            MIN_DURATION_COLUMNS
        })
    });
    let aligned = |cells: &[&str]| {
        let cells = cells.iter().zip(widths).map(|(cell, width)| format!("  {cell:>width$}"));
        cells.collect::<String>()
    };
    let numbers = widths.iter().map(|width| width + 2).sum::<usize>();
    let name =
        out.columns().map_or(MAX_NAME_COLUMNS, |columns| columns.saturating_sub(numbers).clamp(8, MAX_NAME_COLUMNS));
    let names: Vec<String> =
        hooks.keys().map(|hook| text::fit_to_width(hook, name)).chain(["total".to_owned()]).collect();
    let width = names.iter().map(|name| text::display_width(name)).max().unwrap_or(0);
    let has_room = out.columns().is_none_or(|columns| width + numbers + LAST_RUN_COLUMNS <= columns);
    let head = format!("{}{}  last run", text::pad_to_width("hook", width), aligned(&COLUMN_TITLES));
    out.print_line(out.paint(TextTone::Faint, if has_room { &head } else { head.trim_end_matches("  last run") }))?;
    for ((name, tally), row) in names.iter().zip(&tallies).zip(&rows) {
        let last = tally.last.filter(|_| has_room).map(show::format_local_time).unwrap_or_default();
        let cells: Vec<&str> = row.iter().map(String::as_str).collect();
        let name = out.paint(TextTone::Strong, text::pad_to_width(name, width));
        let line = format!("{name}{}  {}", aligned(&cells), out.paint(TextTone::Faint, last));
        out.print_line(line.trim_end())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_of_runs_are_rounded() {
        let mut tally = HookMetrics::default();
        (tally.success, tally.block) = (1, 2);
        assert_eq!(metrics_cells(&tally)[..3], ["3", "33%", "67%"]);
        assert_eq!(metrics_cells(&HookMetrics::default())[..2], ["0", ""]);
    }
}
