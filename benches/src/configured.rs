//! Whole commands in projects with many configured hooks, compared with the same commands and few hooks.
//!
//! One hook matches every command that writes, and runs a program. No command here causes the events of the others. The time
//! includes everything that a person waits for: reading the configuration, the decision, the hook, and the exit.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use windlass_store::{Lifetime, SqliteStore};

use crate::commands::find_program;
use crate::floors::run_command;
use crate::report::{BenchReport, SortedDurations, at_most, format_duration, ratio};
use crate::stores::fill_store;
use crate::{BenchResult, BenchScale};

/// Numbers of additional hooks, one for each project.
const OTHER_HOOK_COUNTS: [usize; 3] = [0, 30, 1_000];

/// Events that no command here causes.
const UNCAUSED_EVENTS: &[&str] = &[
    "task_failed",
    "task_deleted",
    "task_claimed",
    "lease_expired",
    "dependency_added",
    "dependency_removed",
    "session_started",
    "session_ended",
    "iteration_started",
    "iteration_completed",
    "iteration_failed",
    "turn_finished",
    "gate_decided",
];

/// The commands, with `{}` for a task to start and complete, and `[]` for a task to block.
const COMMANDS: &[(&str, &[&str])] = &[
    ("task add", &["task", "add", "one more"]),
    ("task start", &["task", "start", "{}"]),
    ("task complete", &["task", "complete", "{}"]),
    ("task block", &["task", "block", "[]", "--reason", "later"]),
];

/// Which hooks of a configuration have conditions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ConditionMix {
    None,
    Everywhere,
}

pub fn measure(scale: BenchScale, report: &mut BenchReport) -> BenchResult<()> {
    report.begin_section("Whole commands with many configured hooks");
    for (conditions, suffix) in [(ConditionMix::None, ""), (ConditionMix::Everywhere, " with conditions")] {
        let projects = OTHER_HOOK_COUNTS.map(|hooks| ConfiguredProject::new(hooks + 1, conditions, scale));
        let projects = projects.into_iter().collect::<BenchResult<Vec<_>>>()?;
        for (place, medians) in measure_in_turns(scale, &projects)?.into_iter().enumerate() {
            let [none, thirty, thousand] = medians[..] else { continue };
            let name = COMMANDS[place].0;
            let value = ratio(thirty, none);
            let measured = format!("{} = {value:.2} × {}", format_duration(thirty), format_duration(none));
            report.add_figure(&format!("`{name}` with 30 hooks{suffix}"), measured, value, at_most(1.25, " × without"));
            let added = thousand.saturating_sub(none);
            let measured = format!("{}: {} more", format_duration(thousand), format_duration(added));
            let milliseconds = added.as_secs_f64() * 1e3;
            report.add_figure(
                &format!("`{name}` with 1000 hooks{suffix}"),
                measured,
                milliseconds,
                at_most(30.0, " ms more"),
            );
        }
    }
    Ok(())
}

/// Returns the medians of every command in each project. The projects take turns.
fn measure_in_turns(scale: BenchScale, projects: &[ConfiguredProject]) -> BenchResult<Vec<Vec<Duration>>> {
    let mut times = vec![vec![Vec::new(); projects.len()]; COMMANDS.len()];
    for turn in 0..scale.command_repetitions {
        for (place, (_, words)) in COMMANDS.iter().enumerate() {
            for (project, times) in projects.iter().zip(&mut times[place]) {
                let began = Instant::now();
                project.run_command(words, turn)?;
                times.push(began.elapsed());
            }
        }
    }
    let medians = |times: Vec<Vec<Duration>>| {
        times.into_iter().map(|times| SortedDurations::from_unsorted(times).p50()).collect()
    };
    Ok(times.into_iter().map(medians).collect())
}

/// A trusted project with a number of hooks, and enough tasks.
struct ConfiguredProject {
    directory: TempDir,
    tasks: usize,
}

impl ConfiguredProject {
    fn new(hooks: usize, conditions: ConditionMix, scale: BenchScale) -> BenchResult<Self> {
        let project = Self { directory: tempfile::tempdir()?, tasks: 2 * scale.command_repetitions + 10 };
        run_command(project.build_command(&["init"])?)?;
        fs::write(project.file_path("config.yaml"), format_configuration(hooks, conditions))?;
        run_command(project.build_command(&["trust", "--yes"])?)?;
        fill_store(
            &mut SqliteStore::open(&project.file_path("windlass.db"), Lifetime::Service)?,
            project.tasks as u64,
        )?;
        Ok(project)
    }

    fn file_path(&self, name: &str) -> PathBuf {
        self.directory.path().join(".windlass").join(name)
    }

    fn build_command(&self, words: &[&str]) -> BenchResult<Command> {
        let directory: &Path = self.directory.path();
        let mut command = Command::new(find_program("windlass")?);
        command.args(words).current_dir(directory).env("WINDLASS_STATE_DIR", directory.join("state"));
        Ok(command)
    }

    fn run_command(&self, words: &[&str], turn: usize) -> BenchResult<()> {
        let (done, blocked) = (format!("T{}", self.tasks - turn), format!("T{}", turn + 1));
        let words: Vec<&str> = words
            .iter()
            .map(|word| match *word {
                "{}" => done.as_str(),
                "[]" => blocked.as_str(),
                word => word,
            })
            .collect();
        run_command(self.build_command(&words)?)
    }
}

/// Returns a configuration with `hooks` hooks, of which one matches.
fn format_configuration(hooks: usize, conditions: ConditionMix) -> String {
    let when = |condition: String| match conditions {
        ConditionMix::None => String::new(),
        ConditionMix::Everywhere => format!("      when: \"{condition}\"\n"),
    };
    let mut text = String::from("hooks:\n  task_created:\n    - name: heard\n      command: 'true'\n");
    text.push_str("      events: [task_started, task_completed, task_blocked]\n");
    text.push_str(&when("'never' not in task.labels".to_owned()));
    for (place, event) in UNCAUSED_EVENTS.iter().enumerate() {
        let _ = writeln!(text, "  {event}:{}", if place + 1 < hooks { "" } else { " []" });
        for number in (1..hooks).skip(place).step_by(UNCAUSED_EVENTS.len()) {
            let _ = writeln!(
                text,
                "    - name: other {number}\n      command: ./scripts/tell.sh --number {number} --quiet"
            );
            let _ = writeln!(text, "      timeout: 30s\n      priority: {}", number % 7 * 10);
            text.push_str(&when(format!("'label-{number}' in task.labels and task.priority < {}", number % 5)));
        }
    }
    text
}
