//! Figures, and the page that shows them.

use std::fmt::Write;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::BenchScale;

/// The times of one operation, sorted.
pub struct SortedDurations(Vec<Duration>);

impl SortedDurations {
    /// Measures `count` runs of something.
    pub fn measure<E>(count: usize, mut run: impl FnMut(usize) -> Result<(), E>) -> Result<Self, E> {
        let mut times = Vec::with_capacity(count);
        for turn in 0..count {
            let began = Instant::now();
            run(turn)?;
            times.push(began.elapsed());
        }
        Ok(Self::from_unsorted(times))
    }

    pub fn from_unsorted(mut times: Vec<Duration>) -> Self {
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
    pub fn format_percentiles(&self) -> String {
        format!("{} (p99 {})", format_duration(self.p50()), format_duration(self.p99()))
    }
}

pub fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64()
}

/// Formats a duration in a suitable unit.
pub fn format_duration(time: Duration) -> String {
    match time.as_secs_f64() {
        s if s < 1e-3 => format!("{:.1} µs", s * 1e6),
        s if s < 1.0 => format!("{:.2} ms", s * 1e3),
        s => format!("{s:.2} s"),
    }
}

enum GoalBound {
    AtMost(f64),
    AtLeast(f64),
}

/// The goal of a figure.
pub struct FigureGoal {
    bound: GoalBound,
    unit: &'static str,
}

pub fn at_most(bound: f64, unit: &'static str) -> FigureGoal {
    FigureGoal { bound: GoalBound::AtMost(bound), unit }
}

pub fn at_least(bound: f64, unit: &'static str) -> FigureGoal {
    FigureGoal { bound: GoalBound::AtLeast(bound), unit }
}

struct FigureRow {
    what: String,
    measured: String,
    goal: String,
    met: Option<bool>,
}

/// The page under construction.
pub struct BenchReport {
    scale: BenchScale,
    sections: Vec<(String, Vec<FigureRow>)>,
}

impl BenchReport {
    pub fn new(scale: BenchScale) -> Self {
        Self { scale, sections: Vec::new() }
    }

    pub fn begin_section(&mut self, title: &str) {
        print_progress(title);
        self.sections.push((title.to_owned(), Vec::new()));
    }

    fn push_row(&mut self, row: FigureRow) {
        self.sections.last_mut().expect("a section was begun").1.push(row);
    }

    /// Adds a figure without a goal: a floor, or other information.
    pub fn add_fact(&mut self, what: &str, measured: impl Into<String>) {
        self.push_row(FigureRow { what: what.to_owned(), measured: measured.into(), goal: String::new(), met: None });
    }

    /// Adds a figure with a goal.
    pub fn add_figure(&mut self, what: &str, measured: impl Into<String>, value: f64, goal: FigureGoal) {
        let (sign, bound, met) = match goal.bound {
            GoalBound::AtMost(bound) => ('≤', bound, value <= bound),
            GoalBound::AtLeast(bound) => ('≥', bound, value >= bound),
        };
        let goal = format!("{sign} {bound}{}", goal.unit);
        self.push_row(FigureRow { what: what.to_owned(), measured: measured.into(), goal, met: Some(met) });
    }

    pub fn render_markdown(&self) -> String {
        let mut page = String::from(PAGE_HEADER);
        let _ = writeln!(page, "Measured on {}, on {}.", describe_commit(), describe_machine());
        if self.scale.repetitions < 1000 {
            page.push_str("\n**A quick run: fewer repetitions and smaller graphs than the goals speak of.**\n");
        }
        for (title, rows) in &self.sections {
            let _ = writeln!(page, "\n## {title}\n\n| what | measured | goal | |\n| --- | --- | --- | --- |");
            for FigureRow { what, measured, goal, met } in rows {
                let mark = match met {
                    Some(true) => "met",
                    Some(false) => "**missed**",
                    None => "",
                };
                let _ = writeln!(page, "| {what} | {measured} | {goal} | {mark} |");
            }
        }
        page.push_str(&self.explain_missed_goals());
        page
    }

    /// Lists the cause of each missed goal, where it is known.
    fn explain_missed_goals(&self) -> String {
        let rows = self.sections.iter().flat_map(|(_, rows)| rows);
        let missed: Vec<&str> = rows.filter(|row| row.met == Some(false)).map(|row| row.what.as_str()).collect();
        let causes = KNOWN_CAUSES.iter().flat_map(|(rows, cause)| rows.iter().map(move |row| (*row, *cause)));
        let known = causes.clone().filter(|(row, _)| missed.iter().any(|what| what.starts_with(row)));
        let known = known.map(|(row, cause)| format!("- **{row}**: {cause}\n"));
        let unknown = missed.iter().filter(|what| !causes.clone().any(|(row, _)| what.starts_with(row)));
        let unknown = unknown.map(|what| format!("- **{what}**: cause unknown.\n"));
        let list: String = known.chain(unknown).collect();
        if list.is_empty() { list } else { format!("\n## Causes of missed goals\n\n{list}") }
    }
}

/// Known causes of missed goals, each with the beginnings of its rows.
const KNOWN_CAUSES: &[(&[&str], &str)] = &[
    (
        &["an event and its rows, durable"],
        "SQLite writes each of four changed pages with two calls; the floors above show what these calls cost, and what one call \
         costs. Only a layer of our own below SQLite, in unsafe code, could write them with one call. The cause of the remaining \
         time is unknown.",
    ),
    (
        &["a batch of 100 events"],
        "the goal is a fixed number, not a ratio. The row above it has the rate of plain SQLite in the same run.",
    ),
    (
        &["between two agent calls"],
        "about half of the gap is the loop's own work: it reads the session and the task, decides, writes the event and its rows, \
         and builds the prompt. The bash loop does none of this. About a tenth is the supervisor, which ends everything that an \
         agent starts, even after a `kill -9` of the run.",
    ),
    (
        &["rebuilding every row"],
        "Windlass compares each row with the stored row before it writes, so that it does not write to a sound store. This reads \
         each row once more than reading the log does.",
    ),
    (
        &[
            "`task add` against the bare program",
            "`task start` against the bare program",
            "`task complete` against the bare program",
            "`task claim` against the bare program",
        ],
        "the bare program only writes the result. The command also finds its project, reads the configuration and the rows that \
         the decision needs, and computes a digest of each event. Its executable is larger.",
    ),
    (
        &["a call that writes (`note_add`)"],
        "beside its commit, the server checks whether the configuration has changed, draws a number for the commit, and writes the \
         answer twice, as text and as data.",
    ),
    (
        &["resident memory of `windlass run`"],
        "about a third is memory of the process itself. The rest is pages of the program and of libraries, which the kernel shares, \
         and drops when memory is short.",
    ),
    (
        &[
            "`task add` with 1000 hooks",
            "`task start` with 1000 hooks",
            "`task complete` with 1000 hooks",
            "`task block` with 1000 hooks",
        ],
        "each command parses the file and checks a thousand conditions. The goal is a fixed number, not a ratio.",
    ),
    (
        &["from KILL to the end of"],
        "the kernel ends the fifty processes one after another. Each has a session of its own, so each gets its own signal, and \
         Windlass then searches for processes that were started in the meantime.",
    ),
];

const PAGE_HEADER: &str = "\
# Figures of performance

`scripts/bench` writes this page. Each figure is a median unless it says otherwise, and each ratio compares with a floor that
was measured in the same run on the same machine.

";

/// Returns the day and the measured commit.
fn describe_commit() -> String {
    let run = |program: &str, words: &[&str]| {
        let output = Command::new(program).args(words).output().ok().filter(|output| output.status.success());
        output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let day = run("date", &["-u", "+%Y-%m-%d"]).unwrap_or_else(|| "an unknown day".to_owned());
    // Changes under `docs` do not affect the measurement.
    let but_pages = ["status", "--porcelain", "--", ".", ":!docs"];
    let changed = run("git", &but_pages).is_some_and(|changes| !changes.is_empty());
    match run("git", &["rev-parse", "--short", "HEAD"]) {
        Some(commit) => format!("{day} at {commit}{}", if changed { " and changes" } else { "" }),
        None => day,
    }
}

fn describe_machine() -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("unknown processor");
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    // The suffix after the version names the build of one machine.
    let kernel = release.trim().split('-').next().unwrap_or_default();
    format!("{cores} cores, {}, Linux {}", model.trim_start_matches([' ', '\t', ':']), kernel)
}

#[expect(clippy::print_stderr, reason = "a long run says where it is")]
fn print_progress(title: &str) {
    eprintln!("measuring: {title}");
}
