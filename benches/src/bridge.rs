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

use crate::commands::program;
use crate::floors::run;
use crate::report::{Report, Times, at_most, ratio, shown};
use crate::stores::fill;
use crate::{Effort, Outcome};

/// Hooks that do not match the call, and a rule at `stop`.
const OTHERS: &str = "pre_tool_use: [{matcher: Edit, command: 'false'}]";
const RULE: &str = "stop: [{rules: [{when: 'retries > 9', action: continue, reason: never}]}]";

/// The calls: title, hook point, configured hooks, and the maximum cost as a multiple of the bare program, if there is a goal.
const CALLS: &[(&str, &str, &[&str], Option<f64>)] = &[
    ("`hook stop` without a hook at it", "stop", &[OTHERS], Some(1.3)),
    ("`hook pre_tool_use` with hooks for other tools", "pre_tool_use", &[OTHERS], Some(1.3)),
    ("`hook stop` with a rule that lets it go: four commits", "stop", &[OTHERS, RULE], None),
];

pub fn measure(effort: Effort, report: &mut Report) -> Outcome<()> {
    report.section("The bridge: what an agent pays at every turn and tool call, from cold");
    let mut sizes = Vec::new();
    for size in effort.sizes {
        sizes.push(at_size(effort, size)?);
    }
    for (place, (name, .., goal)) in CALLS.iter().enumerate() {
        let times: Vec<Duration> = sizes.iter().map(|(_, times)| times[place]).collect();
        let worst = sizes.iter().map(|(bare, times)| ratio(times[place], *bare)).fold(0.0, f64::max);
        let all: Vec<String> = times.iter().map(|time| shown(*time)).collect();
        let bare: Vec<String> = sizes.iter().map(|(bare, _)| shown(*bare)).collect();
        let measured = format!("{} = {worst:.2} × the bare program ({})", all.join(", "), bare.join(", "));
        match goal {
            Some(goal) => report.figure(name, measured, worst, at_most(*goal, " ×")),
            None => report.fact(name, measured),
        }
        let spread = ratio(*times.iter().max().expect("three sizes"), *times.iter().min().expect("three sizes"));
        let flat = format!("{name} at {:?} tasks, flat within", effort.sizes);
        report.figure(&flat, format!("{spread:.2} ×"), spread, at_most(1.5, " ×"));
    }
    Ok(())
}

/// Returns the medians of the bare program and of every call. They take turns.
fn at_size(effort: Effort, size: u64) -> Outcome<(Duration, Vec<Duration>)> {
    let filled = tempfile::tempdir()?;
    let mut store = SqliteStore::create(&filled.path().join("filled.db"), Lifetime::Service)?;
    fill(&mut store, size)?;
    let bare = program("bare")?;
    let copy = filled.path().join("bare.db");
    store.backup_to(&copy)?;
    let projects: Vec<TempDir> = CALLS.iter().map(|(_, _, hooks, _)| project(&store, hooks)).collect::<Outcome<_>>()?;
    let mut bare_times = Vec::new();
    let mut times = vec![Vec::new(); CALLS.len()];
    for _ in 0..effort.commands {
        let mut command = Command::new(&bare);
        command.arg(&copy);
        let began = Instant::now();
        run(command)?;
        bare_times.push(began.elapsed());
        for (place, (_, point, ..)) in CALLS.iter().enumerate() {
            let began = Instant::now();
            call(projects[place].path(), point)?;
            times[place].push(began.elapsed());
        }
    }
    let medians = times.into_iter().map(|times| Times::from(times).p50()).collect();
    Ok((Times::from(bare_times).p50(), medians))
}

/// Creates a trusted project with these tasks and hooks, and an agent's payload.
fn project(store: &SqliteStore, hooks: &[&str]) -> Outcome<TempDir> {
    let directory = tempfile::tempdir()?;
    fs::create_dir(directory.path().join(".windlass"))?;
    store.backup_to(&directory.path().join(".windlass/windlass.db"))?;
    fs::write(directory.path().join(".windlass/config.yaml"), format!("hooks:\n  {}\n", hooks.join("\n  ")))?;
    run(windlass(directory.path(), &["trust", "--yes"])?)?;
    let payload = json!({
        "session_id": "0f4c9f0e-6f0b-4b5e-8f0e-0c3f3a9d7a11", "cwd": directory.path(), "stop_hook_active": false,
        "tool_name": "Bash", "tool_input": {"command": "cargo test --workspace"},
    });
    fs::write(directory.path().join("payload.json"), payload.to_string())?;
    Ok(directory)
}

fn windlass(directory: &Path, words: &[&str]) -> Outcome<Command> {
    let mut command = Command::new(program("windlass")?);
    command.args(words).current_dir(directory).env("WINDLASS_STATE_DIR", directory.join("state"));
    Ok(command)
}

fn call(directory: &Path, point: &str) -> Outcome<()> {
    let mut command = windlass(directory, &["hook", point, "--as", "claude"])?;
    let payload = File::open(directory.join("payload.json"))?;
    let status = command.stdin(payload).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} ended with {status}").into()) }
}
