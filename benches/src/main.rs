//! Measures every figure of `docs/internals/figures/performance.md` in one run, each with its floor.
//!
//! ```text
//! cargo run --release -p windlass-bench --bin bench -- [--quick] [--only SECTION]… [--write docs/internals/figures/performance.md]
//! ```
//!
//! `--only` measures the named sections: `stores`, `hooks`, `many`, `commands`, `configured`, `bridge`, `log`, `processes`, `loops`,
//! `delivery`, `workers`, `mcp`.
//!
//! Figures are ratios to a floor that was measured minutes apart on the same machine. A missed goal is reported and fails nothing.

#![expect(clippy::print_stdout, reason = "a benchmark prints")]
#![expect(clippy::disallowed_methods, reason = "a benchmark starts programs and reads the clock")]

mod bridge;
mod commands;
mod configured;
mod delivery;
mod floors;
mod hooks;
mod log;
mod loops;
mod many;
mod mcp;
mod memory;
mod processes;
mod report;
mod spawn;
mod stores;
mod workers;

use std::error::Error;
use std::fs;
use std::process::ExitCode;

use floors::Floors;
use report::Report;

pub type Outcome<T> = Result<T, Box<dyn Error>>;

/// The numbers of repetitions and the sizes.
#[derive(Clone, Copy)]
pub struct Effort {
    /// Repetitions of a fast operation.
    pub many: usize,
    /// Repetitions of a whole command.
    pub commands: usize,
    /// Sizes of the graph.
    pub sizes: [u64; 3],
    /// Iterations of a long session.
    pub iterations: usize,
}

const FULL: Effort = Effort { many: 2_000, commands: 200, sizes: [10, 10_000, 1_000_000], iterations: 10_000 };
const QUICK: Effort = Effort { many: 300, commands: 40, sizes: [10, 1_000, 20_000], iterations: 1_000 };

type Measure = fn(Effort, &Floors, &mut Report) -> Outcome<()>;

/// All sections, in the order of the page.
const SECTIONS: [(&str, Measure); 12] = [
    ("stores", stores::measure),
    ("hooks", |effort, _, report| hooks::measure(effort, report)),
    ("many", |effort, _, report| many::measure(effort, report)),
    ("commands", commands::measure),
    ("configured", |effort, _, report| configured::measure(effort, report)),
    ("bridge", |effort, _, report| bridge::measure(effort, report)),
    ("log", |effort, _, report| log::measure(effort, report)),
    ("processes", |effort, _, report| processes::measure(effort, report)),
    ("loops", |effort, _, report| loops::measure(effort, report)),
    ("delivery", |effort, _, report| delivery::measure(effort, report)),
    ("workers", |effort, _, report| workers::measure(effort, report)),
    ("mcp", |effort, _, report| mcp::measure(effort, report)),
];

/// The first argument of the supervisor process, which starts programs for this one.
pub const SUPERVISE: &str = "--supervise";

fn main() -> Outcome<ExitCode> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == SUPERVISE) {
        return Ok(windlass_process::supervisor::serve_owner());
    }
    if let Some(place) = words.iter().position(|word| word == "--write-many") {
        return many::write(&words[place + 1..]).map(|()| ExitCode::SUCCESS);
    }
    let effort = if words.iter().any(|word| word == "--quick") { QUICK } else { FULL };
    let mut report = Report::new(effort);
    let only: Vec<&str> = words.windows(2).filter(|pair| pair[0] == "--only").map(|pair| pair[1].as_str()).collect();
    let wanted = |section: &str| only.is_empty() || only.contains(&section);
    let floor = floors::measure(effort, &mut report)?;
    for (section, measure) in SECTIONS {
        if wanted(section) {
            measure(effort, &floor, &mut report)?;
        }
    }
    println!("{}", report.markdown());
    if let Some(place) = words.iter().position(|word| word == "--write") {
        let file = words.get(place + 1).ok_or("--write needs a file")?;
        fs::write(file, report.markdown())?;
    }
    Ok(ExitCode::SUCCESS)
}
