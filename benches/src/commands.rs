//! Whole commands, started cold, at three sizes of the graph, each compared with the bare program.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use windlass_store::{Lifetime, SqliteStore};

use crate::floors::{BaselineTimes, run_command};
use crate::report::{BenchReport, SortedDurations, at_most, format_duration, ratio};
use crate::stores::fill_store;
use crate::{BenchResult, BenchScale};

/// The commands, with `{}` for an untouched task, and whether they write.
const COMMANDS: &[(&str, &[&str], bool)] = &[
    ("task add", &["task", "add", "one more"], true),
    ("task start", &["task", "start", "{}"], true),
    ("task complete", &["task", "complete", "{}"], true),
    ("task claim", &["task", "claim"], true),
    ("task ready", &["task", "ready", "--limit", "10"], false),
    ("task next", &["task", "next"], false),
    ("task show", &["task", "show", "{}"], false),
];

/// Returns the path of a program that is built beside this one.
pub fn find_program(name: &str) -> BenchResult<PathBuf> {
    let path = std::env::current_exe()?.with_file_name(name);
    if path.is_file() { Ok(path) } else { Err(format!("{} is not built", path.display()).into()) }
}

pub fn measure(scale: BenchScale, floor: &BaselineTimes, report: &mut BenchReport) -> BenchResult<()> {
    report.begin_section("Whole commands, from cold");
    let windlass = find_program("windlass")?;
    let version = SortedDurations::measure(scale.command_repetitions, |_| {
        let mut command = Command::new(&windlass);
        command.arg("--version");
        run_command(command)
    })?;
    let measured =
        format!("{} = {:.2} × `/bin/true`", format_duration(version.p50()), ratio(version.p50(), floor.spawn));
    report.add_fact("`windlass --version`", measured);
    let mut sizes = Vec::new();
    for size in scale.sizes {
        sizes.push(measure_at_size(scale, &windlass, size)?);
    }
    for (place, (name, _, writes)) in COMMANDS.iter().enumerate() {
        let times: Vec<Duration> = sizes.iter().map(|(_, times)| times[place]).collect();
        let spread = ratio(*times.iter().max().expect("three sizes"), *times.iter().min().expect("three sizes"));
        let shown_times: Vec<String> = times.iter().map(|time| format_duration(*time)).collect();
        let measured = format!("{} ({spread:.2} ×)", shown_times.join(", "));
        report.add_figure(
            &format!("`{name}` at {:?} tasks, flat within", scale.sizes),
            measured,
            spread,
            at_most(1.5, " ×"),
        );
        if *writes {
            let worst = sizes.iter().map(|(bare, times)| ratio(times[place], *bare)).fold(0.0, f64::max);
            let bare: Vec<String> = sizes.iter().map(|(bare, _)| format_duration(*bare)).collect();
            let measured = format!("{worst:.2} × (bare: {})", bare.join(", "));
            report.add_figure(&format!("`{name}` against the bare program"), measured, worst, at_most(1.3, " ×"));
        }
    }
    Ok(())
}

/// Returns the medians of the bare program and of every command. They take turns.
fn measure_at_size(scale: BenchScale, windlass: &Path, size: u64) -> BenchResult<(Duration, Vec<Duration>)> {
    let directory = tempfile::tempdir()?;
    let in_project = |words: &[&str]| {
        let mut command = Command::new(windlass);
        command.args(words).current_dir(directory.path()).env("WINDLASS_STATE_DIR", directory.path().join("state"));
        command
    };
    run_command(in_project(&["init"]))?;
    let file = directory.path().join(".windlass/windlass.db");
    let size = size.max(2 * scale.command_repetitions as u64 + 10);
    fill_store(&mut SqliteStore::open(&file, Lifetime::Service)?, size)?;
    let bare = find_program("bare")?;
    let copy = directory.path().join("bare.db");
    SqliteStore::open(&file, Lifetime::Service)?.backup_to(&copy)?;
    let mut bare_times = Vec::new();
    let mut times = vec![Vec::new(); COMMANDS.len()];
    for turn in 0..scale.command_repetitions {
        let began = Instant::now();
        let mut command = Command::new(&bare);
        command.arg(&copy);
        run_command(command)?;
        bare_times.push(began.elapsed());
        for (place, (_, words, _)) in COMMANDS.iter().enumerate() {
            // Claims take the oldest tasks, so start and complete use the youngest.
            let id = format!("T{}", size - turn as u64);
            let words: Vec<&str> = words.iter().map(|word| if *word == "{}" { id.as_str() } else { word }).collect();
            let command = in_project(&words);
            let began = Instant::now();
            run_command(command)?;
            times[place].push(began.elapsed());
        }
    }
    let medians = times.into_iter().map(|times| SortedDurations::from_unsorted(times).p50()).collect();
    Ok((SortedDurations::from_unsorted(bare_times).p50(), medians))
}
