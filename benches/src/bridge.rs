//! The cost of the bridge for an agent, at every turn and every tool call: whole commands, started cold.
//!
//! Most of these calls find no hook at the point, or none for the tool. One more call has a stop hook whose rule lets the agent end:
//! everything except a program.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;
use windlass_store::{Lifetime, SqliteStore};

use crate::commands::find_program;
use crate::floors::run_command;
use crate::report::{BenchReport, SortedDurations, at_most, format_duration, ratio};
use crate::stores::fill_store;
use crate::{BenchResult, BenchScale};

/// Hooks that do not match the call, and a rule at `stop`.
const UNMATCHED_HOOK: &str = "pre_tool_use: [{matcher: Edit, command: 'false'}]";
const STOP_RULE: &str = "stop: [{rules: [{when: 'retries > 9', action: continue, reason: never}]}]";

/// The calls: title, hook point, configured hooks, and the maximum cost as a multiple of the bare program, if there is a goal.
const BRIDGE_CALLS: &[(&str, &str, &[&str], Option<f64>)] = &[
    ("`hook stop` without a hook at it", "stop", &[UNMATCHED_HOOK], Some(1.3)),
    ("`hook pre_tool_use` with hooks for other tools", "pre_tool_use", &[UNMATCHED_HOOK], Some(1.3)),
    ("`hook stop` with a rule that lets it go: four commits", "stop", &[UNMATCHED_HOOK, STOP_RULE], None),
];

pub fn measure(scale: BenchScale, report: &mut BenchReport) -> BenchResult<()> {
    report.begin_section("The bridge: what an agent pays at every turn and tool call, from cold");
    let mut sizes = Vec::new();
    for size in scale.sizes {
        sizes.push(measure_at_size(scale, size)?);
    }
    for (place, (name, .., goal)) in BRIDGE_CALLS.iter().enumerate() {
        let times: Vec<Duration> = sizes.iter().map(|(_, times)| times[place]).collect();
        let worst = sizes.iter().map(|(bare, times)| ratio(times[place], *bare)).fold(0.0, f64::max);
        let all: Vec<String> = times.iter().map(|time| format_duration(*time)).collect();
        let bare: Vec<String> = sizes.iter().map(|(bare, _)| format_duration(*bare)).collect();
        let measured = format!("{} = {worst:.2} × the bare program ({})", all.join(", "), bare.join(", "));
        match goal {
            Some(goal) => report.add_figure(name, measured, worst, at_most(*goal, " ×")),
            None => report.add_fact(name, measured),
        }
        let spread = ratio(*times.iter().max().expect("three sizes"), *times.iter().min().expect("three sizes"));
        let flat = format!("{name} at {:?} tasks, flat within", scale.sizes);
        report.add_figure(&flat, format!("{spread:.2} ×"), spread, at_most(1.5, " ×"));
    }
    Ok(())
}

/// Returns the medians of the bare program and of every call. They take turns.
fn measure_at_size(scale: BenchScale, size: u64) -> BenchResult<(Duration, Vec<Duration>)> {
    let filled = tempfile::tempdir()?;
    let mut store = SqliteStore::create(&filled.path().join("filled.db"), Lifetime::Service)?;
    fill_store(&mut store, size)?;
    let bare = find_program("bare")?;
    let copy = filled.path().join("bare.db");
    store.backup_to(&copy)?;
    let projects: Vec<TempDir> =
        BRIDGE_CALLS.iter().map(|(_, _, hooks, _)| create_project(&store, hooks)).collect::<BenchResult<_>>()?;
    let mut bare_times = Vec::new();
    let mut times = vec![Vec::new(); BRIDGE_CALLS.len()];
    for _ in 0..scale.command_repetitions {
        let mut command = Command::new(&bare);
        command.arg(&copy);
        let began = Instant::now();
        run_command(command)?;
        bare_times.push(began.elapsed());
        for (place, (_, point, ..)) in BRIDGE_CALLS.iter().enumerate() {
            let began = Instant::now();
            call_hook(projects[place].path(), point)?;
            times[place].push(began.elapsed());
        }
    }
    let medians = times.into_iter().map(|times| SortedDurations::from_unsorted(times).p50()).collect();
    Ok((SortedDurations::from_unsorted(bare_times).p50(), medians))
}

/// Creates a trusted project with these tasks and hooks, and an agent's payload.
fn create_project(store: &SqliteStore, hooks: &[&str]) -> BenchResult<TempDir> {
    let directory = tempfile::tempdir()?;
    fs::create_dir(directory.path().join(".windlass"))?;
    store.backup_to(&directory.path().join(".windlass/windlass.db"))?;
    fs::write(directory.path().join(".windlass/config.yaml"), format!("hooks:\n  {}\n", hooks.join("\n  ")))?;
    run_command(windlass_command(directory.path(), &["trust", "--yes"])?)?;
    let payload = json!({
        "session_id": "0f4c9f0e-6f0b-4b5e-8f0e-0c3f3a9d7a11", "cwd": directory.path(), "stop_hook_active": false,
        "tool_name": "Bash", "tool_input": {"command": "cargo test --workspace"},
    });
    fs::write(directory.path().join("payload.json"), payload.to_string())?;
    Ok(directory)
}

fn windlass_command(directory: &Path, words: &[&str]) -> BenchResult<Command> {
    let mut command = Command::new(find_program("windlass")?);
    command.args(words).current_dir(directory).env("WINDLASS_STATE_DIR", directory.join("state"));
    Ok(command)
}

fn call_hook(directory: &Path, point: &str) -> BenchResult<()> {
    let mut command = windlass_command(directory, &["hook", point, "--as", "claude"])?;
    let payload = File::open(directory.join("payload.json"))?;
    let status = command.stdin(payload).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} ended with {status}").into()) }
}
