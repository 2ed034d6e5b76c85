//! From claim to merge: the time beyond git and the agent; claiming one of many tasks.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use windlass_store::{Lifetime, SqliteStore};

use crate::commands::find_program;
use crate::floors::run_command;
use crate::report::{BenchReport, SortedDurations, at_most, format_duration};
use crate::stores::fill_store;
use crate::{BenchResult, BenchScale};

/// The number of delivered tasks.
const DELIVERED_TASKS: usize = 20;
/// The number of tasks in the store for the claim.
const CLAIM_STORE_TASKS: u64 = 100_000;

const DELIVERY_CONFIG: &str =
    "version: 1\nhooks:\n  before_submit: [rebase_on_main, create_pr]\n  before_merge: [merge_pr]\n";
/// An agent that reads its prompt, changes a file and reports completion.
const AGENT_SCRIPT: &str = "cat > /dev/null; echo done > \"$WINDLASS_TASK_ID\"; echo '<promise>COMPLETE</promise>'";

pub fn measure(scale: BenchScale, report: &mut BenchReport) -> BenchResult<()> {
    report.begin_section("From claim to merge");
    let directory = tempfile::tempdir()?;
    measure_added_time(directory.path(), report)?;
    measure_claim(directory.path(), scale, report)
}

/// A project directory with its own home directory.
pub struct BenchRepository {
    pub root: PathBuf,
    home: PathBuf,
}

impl BenchRepository {
    pub fn new(directory: &Path, name: &str, config: &str) -> BenchResult<Self> {
        let repository = Self { root: directory.join(name).join("project"), home: directory.join(name).join("home") };
        fs::create_dir_all(repository.root.join(".windlass"))?;
        fs::create_dir_all(repository.home.join("trace"))?;
        fs::write(repository.root.join(".windlass/config.yaml"), config)?;
        repository.run_windlass(&["init"])?;
        Ok(repository)
    }

    pub fn build_command(&self, program: impl AsRef<Path>, words: &[&str]) -> Command {
        let mut command = Command::new(program.as_ref());
        command.args(words).current_dir(&self.root).stdin(Stdio::null()).stdout(Stdio::null());
        command.env("HOME", &self.home).env_remove("XDG_CONFIG_HOME").env("GIT_CONFIG_NOSYSTEM", "1");
        command.env("WINDLASS_STATE_DIR", self.home.join("state"));
        command
    }

    fn run_git(&self, words: &[&str]) -> BenchResult<()> {
        run_command(self.build_command("git", words))?;
        Ok(())
    }

    pub fn run_windlass(&self, words: &[&str]) -> BenchResult<Duration> {
        let began = Instant::now();
        run_command(self.build_command(find_program("windlass")?, words))?;
        Ok(began.elapsed())
    }

    fn add_tasks(&self, count: usize) -> BenchResult<()> {
        (0..count).try_for_each(|_| self.run_windlass(&["task", "add", "Do it"]).map(drop))
    }
}

/// Measures the time that Windlass adds. Each git process reports its own run time. Starting and ending it costs extra, as for any
/// program that calls git.
fn measure_added_time(directory: &Path, report: &mut BenchReport) -> BenchResult<()> {
    let repository = BenchRepository::new(directory, "merging", DELIVERY_CONFIG)?;
    let trace = repository.home.join("trace");
    repository.run_git(&["init", "--quiet", "--initial-branch=main"])?;
    repository.run_git(&["init", "--quiet", "--bare", "--initial-branch=main", "../remote.git"])?;
    let identity = "[user]\n\tname = Ada\n\temail = ada@example.org\n";
    fs::write(repository.home.join(".gitconfig"), identity)?;
    fs::write(repository.root.join("README"), "Hello\n")?;
    repository.run_git(&["add", "--all"])?;
    repository.run_git(&["commit", "--quiet", "--message=Begin"])?;
    repository.run_git(&["remote", "add", "origin", "../remote.git"])?;
    repository.run_git(&["push", "--quiet", "origin", "main"])?;
    repository.add_tasks(DELIVERED_TASKS)?;
    fs::write(
        repository.home.join(".gitconfig"),
        format!("{identity}[trace2]\n\teventTarget = {}\n", trace.display()),
    )?;
    let agent = format!("command:{AGENT_SCRIPT}");
    let limit = DELIVERED_TASKS.to_string();
    let took = repository.run_windlass(&["run", "--trust", "--max-iterations", &limit, "--agent", &agent])?;
    let (calls, git) = read_git_trace(&trace)?;
    let agent = SortedDurations::measure(DELIVERED_TASKS, |_| {
        let mut command = repository.build_command("/bin/sh", &["-c", AGENT_SCRIPT]);
        command.env("WINDLASS_TASK_ID", "floor");
        run_command(command)
    })?;
    let starting = measure_git_start(&repository)? * u32::try_from(calls)?;
    let each = |time: Duration| time / u32::try_from(DELIVERED_TASKS).expect("a few");
    let added = each(took.saturating_sub(git).saturating_sub(starting)).saturating_sub(agent.p50());
    let measured = format!(
        "{} of {} a task; git {} in {:.0} calls and {} to start them, the agent {}",
        format_duration(added),
        format_duration(each(took)),
        format_duration(each(git)),
        calls as f64 / DELIVERED_TASKS as f64,
        format_duration(each(starting)),
        format_duration(agent.p50())
    );
    let what = "added to a task from claim to merge, git and the agent aside";
    report.add_figure(what, measured, added.as_secs_f64() * 1e3, at_most(40.0, " ms"));
    Ok(())
}

/// Measures the time of a git call beyond the run time that it reports.
fn measure_git_start(repository: &BenchRepository) -> BenchResult<Duration> {
    let trace = repository.home.join("trace-of-start");
    fs::create_dir(&trace)?;
    let times = SortedDurations::measure(100, |_| {
        let mut command = repository.build_command("git", &["version"]);
        command.env("GIT_TRACE2_EVENT", &trace);
        run_command(command)
    })?;
    let (calls, own) = read_git_trace(&trace)?;
    Ok(times.p50().saturating_sub(own / u32::try_from(calls)?))
}

/// Returns the number of git processes that Windlass started, and their total run time.
fn read_git_trace(directory: &Path) -> BenchResult<(usize, Duration)> {
    let (mut calls, mut seconds) = (0, 0.0);
    for entry in fs::read_dir(directory)? {
        for line in fs::read_to_string(entry?.path())?.lines() {
            let event: serde_json::Value = serde_json::from_str(line)?;
            // The run time of a child git is part of its parent's.
            let own = event["sid"].as_str().is_some_and(|sid| !sid.contains('/'));
            if own && event["event"] == "atexit" {
                calls += 1;
                seconds += event["t_abs"].as_f64().unwrap_or_default();
            }
        }
    }
    Ok((calls, Duration::from_secs_f64(seconds)))
}

fn measure_claim(directory: &Path, scale: BenchScale, report: &mut BenchReport) -> BenchResult<()> {
    let repository = BenchRepository::new(directory, "claiming", "")?;
    repository.run_windlass(&["task", "add", "Do it"])?;
    let many = CLAIM_STORE_TASKS.min(scale.sizes[2]);
    fill_store(&mut SqliteStore::open(&repository.root.join(".windlass/windlass.db"), Lifetime::Service)?, many)?;
    let times =
        SortedDurations::measure(scale.command_repetitions, |_| repository.run_windlass(&["task", "claim"]).map(drop))?;
    let measured = format!("{} (p99 {})", format_duration(times.p50()), format_duration(times.p99()));
    let what = format!("`task claim` among {many} tasks, as a whole command");
    report.add_figure(&what, measured, times.p50().as_secs_f64() * 1e3, at_most(10.0, " ms"));
    Ok(())
}
