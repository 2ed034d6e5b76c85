//! `windlass hooks metrics`

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use windlass_app::context::Context;
use windlass_app::{conversations, environment};
use windlass_engine::{HookOutcome, Timestamp};
use windlass_store::Filter;
use windlass_text as text;

use super::collect;
use super::runs::{Causes, Outcome, Run};
use crate::output::{Done, Output, Tone};
use crate::{show, usage};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass hooks metrics
  windlass hooks metrics --hook lint --since 24h
  windlass hooks metrics --conversation 0b7c2f6e-43d1
  windlass hooks metrics --json | jq '.hooks[] | {hook, p95Ms}'

Runs that have ended count, interrupted ones too. Hooks inside a commit are not timed: only their errors are recorded. \
`windlass why HOOK-9` shows what a registered stop hook decided.")]
pub struct Args {
    /// Only this hook, by its name
    #[arg(long, value_name = "NAME")]
    hook: Option<String>,
    /// Only what ran for calls of this conversation's agent, by its id or how that begins
    #[arg(long, value_name = "ID")]
    conversation: Option<String>,
    /// Only what ended so long ago at most: 30m, 24h, 7d
    #[arg(long, value_name = "TIME", allow_negative_numbers = true, value_parser = usage::span)]
    since: Option<Duration>,
}

/// The longest that a name may make its column.
const NAME: usize = 32;

pub fn run(context: &Context, args: &Args, out: &mut Output) -> Done {
    let opened = context.open_to_read()?;
    let since = args.since.map(|ago| {
        let ago = i64::try_from(ago.as_millis()).unwrap_or(i64::MAX);
        environment::now().plus_millis(-ago)
    });
    let caller = args.conversation.as_deref().map(|name| conversations::known(&opened, name)).transpose()?;
    let mut causes = Causes::new(&opened.store);
    let mut wanted = |run: &Run| {
        let named = args.hook.is_none() || args.hook == run.hook;
        let meant = named && run.when() >= since;
        match &caller {
            Some(caller) if meant => causes.is_of(run, caller),
            _ => Ok(meant),
        }
    };
    let runs = collect::newest(&opened, Filter::default(), usize::MAX, &mut wanted)?;
    let mut hooks: BTreeMap<String, Tally> = BTreeMap::new();
    let mut total = Tally::default();
    for run in &runs {
        total.count(run);
        if let Some(hook) = &run.hook {
            hooks.entry(hook.clone()).or_default().count(run);
        }
    }
    if out.is_json() {
        let each = hooks.iter().map(|(hook, tally)| {
            let mut object = tally.to_json();
            object["hook"] = json!(hook);
            object
        });
        return out.object(&json!({
            "since": since,
            "hooks": each.collect::<Vec<_>>(),
            "total": total.to_json(),
        }));
    }
    if runs.is_empty() {
        return out.line(out.paint(Tone::Faint, "no runs"));
    }
    hooks.retain(|_, tally| tally.runs() > 0);
    table(&hooks, &total, out)?;
    match total.errors {
        0 => Ok(()),
        errors => {
            let told = format!("errors besides: {errors}; `windlass hooks history --outcome error` shows them");
            out.line(out.paint(Tone::Warning, told))
        }
    }
}

/// What the runs of a hook add up to.
#[derive(Debug, Default)]
struct Tally {
    success: usize,
    block: usize,
    failure: usize,
    timed_out: usize,
    /// The base had moved, and it was run again on top of it.
    again: usize,
    /// It wanted another iteration or a person, or was cancelled or interrupted.
    other: usize,
    errors: usize,
    /// In milliseconds, as they come.
    durations: Vec<u64>,
    last: Option<Timestamp>,
}

impl Tally {
    fn count(&mut self, run: &Run) {
        let outcome = match run.outcome {
            Outcome::Error => {
                self.errors += 1;
                return;
            }
            // A run that goes on has no outcome, and one that was skipped before it began is none.
            Outcome::Ended(outcome) if run.has_run() => outcome,
            Outcome::Ended(_) | Outcome::Running | Outcome::Left => return,
        };
        match outcome {
            HookOutcome::Success | HookOutcome::Skip => self.success += 1,
            HookOutcome::Block => self.block += 1,
            HookOutcome::Failure => self.failure += 1,
            HookOutcome::TimedOut => self.timed_out += 1,
            HookOutcome::Again => self.again += 1,
            HookOutcome::Continue | HookOutcome::Escalate | HookOutcome::Cancelled | HookOutcome::Interrupted => {
                self.other += 1;
            }
        }
        self.durations.extend(run.took);
        self.last = self.last.max(run.when());
    }

    fn runs(&self) -> usize {
        self.success + self.block + self.failure + self.timed_out + self.again + self.other
    }

    fn percentile(&self, percent: usize) -> Option<u64> {
        let mut durations = self.durations.clone();
        durations.sort_unstable();
        percentile(&durations, percent)
    }

    fn to_json(&self) -> Value {
        let rate = |count: usize| (self.runs() > 0).then(|| share(count, self.runs()));
        json!({
            "runs": self.runs(),
            "success": self.success,
            "block": self.block,
            "failure": self.failure,
            "timedOut": self.timed_out,
            "again": self.again,
            "other": self.other,
            "errors": self.errors,
            "successRate": rate(self.success),
            "blockRate": rate(self.block),
            "failureRate": rate(self.failure),
            "timeoutRate": rate(self.timed_out),
            "p50Ms": self.percentile(50),
            "p95Ms": self.percentile(95),
            "lastRunAt": self.last,
        })
    }
}

/// The smallest of these sorted numbers that so many percent of them do not exceed.
fn percentile(sorted: &[u64], percent: usize) -> Option<u64> {
    let rank = (sorted.len() * percent.min(100)).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}

/// A part of a whole, to four places.
#[expect(clippy::cast_precision_loss, reason = "nobody has so many runs that it shows")]
fn share(part: usize, whole: usize) -> f64 {
    (part as f64 / whole as f64 * 10_000.0).round() / 10_000.0
}

/// A part of a whole, in words.
fn percent(part: usize, whole: usize) -> String {
    match whole {
        0 => String::new(),
        whole => format!("{}%", (part * 200 + whole) / (whole * 2)),
    }
}

/// The width of a moment, with the blanks before it.
const MOMENT: usize = 21;

/// Where durations begin among the columns, and what most of them take.
const SPANS: usize = 6;
const SPAN: usize = "999 ms".len();

const TITLES: [&str; 8] = ["runs", "success", "block", "failure", "timeout", "other", "p50", "p95"];

fn cells(tally: &Tally) -> [String; 8] {
    let percent = |count: usize| percent(count, tally.runs());
    let span = |percent| tally.percentile(percent).map_or_else(|| "-".to_owned(), show::millis);
    [
        tally.runs().to_string(),
        percent(tally.success),
        percent(tally.block),
        percent(tally.failure),
        percent(tally.timed_out),
        percent(tally.again + tally.other),
        span(50),
        span(95),
    ]
}

fn table(hooks: &BTreeMap<String, Tally>, total: &Tally, out: &mut Output) -> Done {
    let tallies: Vec<&Tally> = hooks.values().chain([total]).collect();
    let rows: Vec<[String; 8]> = tallies.iter().map(|tally| cells(tally)).collect();
    let widths: [usize; 8] = std::array::from_fn(|column| {
        let longest = rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
        longest.max(TITLES[column].len()).max(if column < SPANS { 0 } else { SPAN })
    });
    let aligned = |cells: &[&str]| {
        let cells = cells.iter().zip(widths).map(|(cell, width)| format!("  {cell:>width$}"));
        cells.collect::<String>()
    };
    let numbers = widths.iter().map(|width| width + 2).sum::<usize>();
    let name = out.columns().map_or(NAME, |columns| columns.saturating_sub(numbers).clamp(8, NAME));
    let names: Vec<String> = hooks.keys().map(|hook| text::fit(hook, name)).chain(["total".to_owned()]).collect();
    let width = names.iter().map(|name| text::width(name)).max().unwrap_or(0);
    let has_room = out.columns().is_none_or(|columns| width + numbers + MOMENT <= columns);
    let head = format!("{}{}  last run", text::pad("hook", width), aligned(&TITLES));
    out.line(out.paint(Tone::Faint, if has_room { &head } else { head.trim_end_matches("  last run") }))?;
    for ((name, tally), row) in names.iter().zip(&tallies).zip(&rows) {
        let last = tally.last.filter(|_| has_room).map(show::moment).unwrap_or_default();
        let cells: Vec<&str> = row.iter().map(String::as_str).collect();
        let name = out.paint(Tone::Strong, text::pad(name, width));
        let line = format!("{name}{}  {}", aligned(&cells), out.paint(Tone::Faint, last));
        out.line(line.trim_end())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_numbers_that_were_there() {
        let check = |numbers: &[u64], percent, expected| assert_eq!(percentile(numbers, percent), expected);
        check(&[], 50, None);
        check(&[7], 50, Some(7));
        check(&[7], 95, Some(7));
        check(&[1, 2], 50, Some(1));
        check(&[1, 2, 3], 50, Some(2));
        check(&[1, 2, 3, 4], 50, Some(2));
        check(&[15, 20, 35, 40, 50], 30, Some(20));
        check(&[15, 20, 35, 40, 50], 40, Some(20));
        check(&[15, 20, 35, 40, 50], 100, Some(50));
        check(&[15, 20, 35, 40, 50], 0, Some(15));
        let hundred: Vec<u64> = (1..=100).collect();
        check(&hundred, 50, Some(50));
        check(&hundred, 95, Some(95));
        check(&(1..=20).collect::<Vec<_>>(), 95, Some(19));
        check(&(1..=21).collect::<Vec<_>>(), 95, Some(20));
    }

    #[test]
    fn percents_are_rounded() {
        let tally = Tally { success: 1, block: 2, ..Tally::default() };
        assert_eq!(cells(&tally)[..3], ["3", "33%", "67%"]);
        assert_eq!(cells(&Tally::default())[..2], ["0", ""]);
        assert!((share(1, 3) - 0.3333).abs() < 1e-9);
    }
}
