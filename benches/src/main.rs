//! Measures every figure of `docs/internals/figures/performance.md` in one run, each with its floor.
//!
//! ```text
//! cargo run --release -p windlass-bench --bin bench -- [--quick] [--only SECTION]… [--write docs/internals/figures/performance.md]
//! ```
//!
//! `--only` measures the named sections: `stores`, `hooks`, `contention`, `commands`, `configured`, `bridge`, `log`, `processes`, `loops`,
//! `delivery`, `workers`, `mcp`, `page`, `fleet`.
//!
//! Figures are ratios to a floor that was measured minutes apart on the same machine. A missed goal is reported and fails nothing.

#![expect(clippy::print_stdout, reason = "a benchmark prints")]
#![expect(clippy::disallowed_methods, reason = "a benchmark starts programs and reads the clock")]

mod bridge;
mod commands;
mod configured;
mod contention;
mod delivery;
mod fleet;
mod floors;
mod hooks;
mod log;
mod loops;
mod mcp;
mod memory;
mod page;
mod processes;
mod report;
mod spawn;
mod stores;
mod workers;

use std::error::Error;
use std::fs;
use std::process::ExitCode;

use floors::BaselineTimes;
use report::BenchReport;

pub type BenchResult<T> = Result<T, Box<dyn Error>>;

/// The numbers of repetitions and the sizes.
#[derive(Clone, Copy)]
pub struct BenchScale {
    /// Repetitions of a fast operation.
    pub repetitions: usize,
    /// Repetitions of a whole command.
    pub command_repetitions: usize,
    /// Sizes of the graph.
    pub sizes: [u64; 3],
    /// Iterations of a long session.
    pub iterations: usize,
}

const FULL_SCALE: BenchScale =
    BenchScale { repetitions: 2_000, command_repetitions: 200, sizes: [10, 10_000, 1_000_000], iterations: 10_000 };
const QUICK_SCALE: BenchScale =
    BenchScale { repetitions: 300, command_repetitions: 40, sizes: [10, 1_000, 20_000], iterations: 1_000 };

type MeasureSection = fn(BenchScale, &BaselineTimes, &mut BenchReport) -> BenchResult<()>;

/// All sections, in the order of the page.
const SECTIONS: [(&str, MeasureSection); 14] = [
    ("stores", stores::measure),
    ("hooks", |scale, _, report| hooks::measure(scale, report)),
    ("contention", |scale, _, report| contention::measure(scale, report)),
    ("commands", commands::measure),
    ("configured", |scale, _, report| configured::measure(scale, report)),
    ("bridge", |scale, _, report| bridge::measure(scale, report)),
    ("log", |scale, _, report| log::measure(scale, report)),
    ("processes", |scale, _, report| processes::measure(scale, report)),
    ("loops", |scale, _, report| loops::measure(scale, report)),
    ("delivery", |scale, _, report| delivery::measure(scale, report)),
    ("workers", |scale, _, report| workers::measure(scale, report)),
    ("mcp", |scale, _, report| mcp::measure(scale, report)),
    ("page", |scale, _, report| page::measure(scale, report)),
    ("fleet", |scale, _, report| fleet::measure(scale, report)),
];

/// The first argument of the supervisor process, which starts programs for this one.
pub const SUPERVISE_FLAG: &str = "--supervise";

fn main() -> BenchResult<ExitCode> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == SUPERVISE_FLAG) {
        return Ok(windlass_process::supervisor::serve_owner());
    }
    if let Some(place) = words.iter().position(|word| word == "--write-contended") {
        return contention::run_writer(&words[place + 1..]).map(|()| ExitCode::SUCCESS);
    }
    let scale = if words.iter().any(|word| word == "--quick") { QUICK_SCALE } else { FULL_SCALE };
    let mut report = BenchReport::new(scale);
    let only: Vec<&str> = words.windows(2).filter(|pair| pair[0] == "--only").map(|pair| pair[1].as_str()).collect();
    let wanted = |section: &str| only.is_empty() || only.contains(&section);
    let floor = floors::measure(scale, &mut report)?;
    for (section, measure) in SECTIONS {
        if wanted(section) {
            measure(scale, &floor, &mut report)?;
        }
    }
    println!("{}", report.render_markdown());
    if let Some(place) = words.iter().position(|word| word == "--write") {
        let file = words.get(place + 1).ok_or("--write needs a file")?;
        fs::write(file, report.render_markdown())?;
    }
    Ok(ExitCode::SUCCESS)
}
