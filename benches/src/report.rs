//! Figures, and the page that shows them.

use std::fmt::Write;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::Effort;

/// The times of one operation, sorted.
pub struct Times(Vec<Duration>);

impl Times {
    /// Measures `count` runs of something.
    pub fn of<E>(count: usize, mut run: impl FnMut(usize) -> Result<(), E>) -> Result<Self, E> {
        let mut times = Vec::with_capacity(count);
        for turn in 0..count {
            let began = Instant::now();
            run(turn)?;
            times.push(began.elapsed());
        }
        Ok(Self::from(times))
    }

    pub fn from(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self(times)
    }

    pub fn p50(&self) -> Duration {
        self.0[self.0.len() / 2]
    }

    pub fn p99(&self) -> Duration {
        self.0[(self.0.len() * 99 / 100).min(self.0.len() - 1)]
    }

    pub fn longest(&self) -> Duration {
        self.0[self.0.len() - 1]
    }

    /// Returns the median and the 99th percentile.
    pub fn shown(&self) -> String {
        format!("{} (p99 {})", shown(self.p50()), shown(self.p99()))
    }
}

pub fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64()
}

/// Formats a duration in a suitable unit.
pub fn shown(time: Duration) -> String {
    match time.as_secs_f64() {
        s if s < 1e-3 => format!("{:.1} µs", s * 1e6),
        s if s < 1.0 => format!("{:.2} ms", s * 1e3),
        s => format!("{s:.2} s"),
    }
}

enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

/// The goal of a figure.
pub struct Goal {
    bound: Bound,
    unit: &'static str,
}

pub fn at_most(bound: f64, unit: &'static str) -> Goal {
    Goal { bound: Bound::AtMost(bound), unit }
}

pub fn at_least(bound: f64, unit: &'static str) -> Goal {
    Goal { bound: Bound::AtLeast(bound), unit }
}

struct Row {
    what: String,
    measured: String,
    goal: String,
    met: Option<bool>,
}

/// The page under construction.
pub struct Report {
    effort: Effort,
    sections: Vec<(String, Vec<Row>)>,
}

impl Report {
    pub fn new(effort: Effort) -> Self {
        Self { effort, sections: Vec::new() }
    }

    pub fn section(&mut self, title: &str) {
        eprint_progress(title);
        self.sections.push((title.to_owned(), Vec::new()));
    }

    fn push(&mut self, row: Row) {
        self.sections.last_mut().expect("a section was begun").1.push(row);
    }

    /// Adds a figure without a goal: a floor, or other information.
    pub fn fact(&mut self, what: &str, measured: impl Into<String>) {
        self.push(Row { what: what.to_owned(), measured: measured.into(), goal: String::new(), met: None });
    }

    /// Adds a figure with a goal.
    pub fn figure(&mut self, what: &str, measured: impl Into<String>, value: f64, goal: Goal) {
        let (sign, bound, met) = match goal.bound {
            Bound::AtMost(bound) => ('≤', bound, value <= bound),
            Bound::AtLeast(bound) => ('≥', bound, value >= bound),
        };
        let goal = format!("{sign} {bound}{}", goal.unit);
        self.push(Row { what: what.to_owned(), measured: measured.into(), goal, met: Some(met) });
    }

    pub fn markdown(&self) -> String {
        let mut page = String::from(HEAD);
        let _ = writeln!(page, "Measured on {}, on {}.", moment(), machine());
        if self.effort.many < 1000 {
            page.push_str("\n**A quick run: fewer repetitions and smaller graphs than the goals speak of.**\n");
        }
        for (title, rows) in &self.sections {
            let _ = writeln!(page, "\n## {title}\n\n| what | measured | goal | |\n| --- | --- | --- | --- |");
            for Row { what, measured, goal, met } in rows {
                let mark = match met {
                    Some(true) => "met",
                    Some(false) => "**missed**",
                    None => "",
                };
                let _ = writeln!(page, "| {what} | {measured} | {goal} | {mark} |");
            }
        }
        page.push_str(&self.obstacles());
        page
    }

    /// Explains the missed goals.
    fn obstacles(&self) -> String {
        let rows = self.sections.iter().flat_map(|(_, rows)| rows);
        let missed: Vec<&str> = rows.filter(|row| row.met == Some(false)).map(|row| row.what.as_str()).collect();
        let known = OBSTACLES.iter().filter(|(what, _)| missed.iter().any(|row| row.starts_with(what)));
        let known = known.map(|(what, why)| format!("- **{what}**: {why}\n"));
        let unknown = missed.iter().filter(|row| !OBSTACLES.iter().any(|(what, _)| row.starts_with(what)));
        let unknown = unknown.map(|row| format!("- **{row}**: not looked into yet.\n"));
        let told: String = known.chain(unknown).collect();
        if told.is_empty() { told } else { format!("\n## What stands in the way\n\n{told}") }
    }
}

/// Known reasons for missed goals, by the beginning of the row.
const OBSTACLES: &[(&str, &str)] = &[
    (
        "an event and its rows, durable",
        "four pages change, and SQLite writes each with two calls; see above what that costs beside one call for all of them. \
         Only a layer of our own beneath SQLite could do that, in unsafe code where everything that is kept passes.",
    ),
    (
        "a batch of 100 events",
        "this goal is a number and not a ratio. What plain SQLite does in the same run is in the row above it.",
    ),
    (
        "between two agent calls",
        "about half of the gap is the loop's own work, none of it large: reading session and task, deciding, writing the \
         event and its rows, making the prompt. A script does none of it. Another tenth is the supervisor, under which an agent \
         runs so that nothing it starts outlives the run, not even after a `kill -9`.",
    ),
    (
        "rebuilding every row",
        "rows are compared with what is there before they are written, so that a store that is sound is not written to. That \
         reads every row once more than reading the log does.",
    ),
    (
        "`task add` against the bare program",
        "the bare program writes what comes out in the end; before that `task add` looks for its project and configuration, reads \
         what the decision needs, and takes a digest of every event. Its executable, which is larger, is read as well.",
    ),
    (
        "a call that writes (`note_add`)",
        "beside the commit it is looked whether the configuration has changed, a number for the commit is drawn, and the answer is \
         written twice, as text and as data. Where a wake-up through a pipe is cheap, that is more than three of them.",
    ),
    (
        "resident memory of `windlass run`",
        "about a third of it is memory of its own. The rest are pages of the program and of libraries, which the kernel shares, and \
         drops when memory is short.",
    ),
    (
        "`task add` with 1000 hooks",
        "every command parses the file and checks a thousand conditions. The goal is a number and not a ratio.",
    ),
    (
        "`task start` with 1000 hooks",
        "every command parses the file and checks a thousand conditions. The goal is a number and not a ratio.",
    ),
    (
        "`task complete` with 1000 hooks",
        "every command parses the file and checks a thousand conditions. The goal is a number and not a ratio.",
    ),
    (
        "`task block` with 1000 hooks",
        "every command parses the file and checks a thousand conditions. The goal is a number and not a ratio.",
    ),
    (
        "from KILL to the end of",
        "fifty processes are taken apart by the kernel, on two cores, one after the other; every one is in a session of its own, \
         so each gets its own signal, and what was born meanwhile is looked for again before it is over.",
    ),
];

const HEAD: &str = "\
# Figures of performance

Written by `scripts/bench`; not by hand. Every figure is a median unless it says otherwise, and every ratio is against a
floor that was measured in the same run on the same machine.

";

/// Returns the day and the measured commit.
fn moment() -> String {
    let said = |program: &str, words: &[&str]| {
        let output = Command::new(program).args(words).output().ok().filter(|output| output.status.success());
        output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let day = said("date", &["-u", "+%Y-%m-%d"]).unwrap_or_else(|| "an unknown day".to_owned());
    // Changes under `docs` do not affect the measurement.
    let but_pages = ["status", "--porcelain", "--", ".", ":!docs"];
    let changed = said("git", &but_pages).is_some_and(|changes| !changes.is_empty());
    match said("git", &["rev-parse", "--short", "HEAD"]) {
        Some(commit) => format!("{day} at {commit}{}", if changed { " and changes" } else { "" }),
        None => day,
    }
}

fn machine() -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("unknown processor");
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{cores} cores, {}, Linux {}", model.trim_start_matches([' ', '\t', ':']), kernel.trim())
}

#[expect(clippy::print_stderr, reason = "a long run says where it is")]
fn eprint_progress(title: &str) {
    eprintln!("measuring: {title}");
}
