//! From claim to merge: the time beyond git and the agent; claiming one of many tasks.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use windlass_store::{Lifetime, SqliteStore};

use crate::commands::program;
use crate::floors::run;
use crate::report::{Report, Times, at_most, shown};
use crate::stores::fill;
use crate::{Effort, Outcome};

/// The number of delivered tasks.
const TASKS: usize = 20;
/// The number of tasks in the store for the claim.
const MANY: u64 = 100_000;

const CONFIG: &str = "version: 1\nhooks:\n  before_submit: [rebase_on_main, create_pr]\n  before_merge: [merge_pr]\n";
/// An agent that reads its prompt, changes a file and reports completion.
const AGENT: &str = "cat > /dev/null; echo done > \"$WINDLASS_TASK_ID\"; echo '<promise>COMPLETE</promise>'";

pub fn measure(effort: Effort, report: &mut Report) -> Outcome<()> {
    report.section("From claim to merge");
    let directory = tempfile::tempdir()?;
    added(directory.path(), report)?;
    claim(directory.path(), effort, report)
}

/// A project directory with its own home directory.
pub struct Place {
    pub root: PathBuf,
    home: PathBuf,
}

impl Place {
    pub fn new(directory: &Path, name: &str, config: &str) -> Outcome<Self> {
        let place = Self { root: directory.join(name).join("project"), home: directory.join(name).join("home") };
        fs::create_dir_all(place.root.join(".windlass"))?;
        fs::create_dir_all(place.home.join("trace"))?;
        fs::write(place.root.join(".windlass/config.yaml"), config)?;
        place.windlass(&["init"])?;
        Ok(place)
    }

    pub fn command(&self, program: impl AsRef<Path>, words: &[&str]) -> Command {
        let mut command = Command::new(program.as_ref());
        command.args(words).current_dir(&self.root).stdin(Stdio::null()).stdout(Stdio::null());
        command.env("HOME", &self.home).env_remove("XDG_CONFIG_HOME").env("GIT_CONFIG_NOSYSTEM", "1");
        command.env("WINDLASS_STATE_DIR", self.home.join("state"));
        command
    }

    fn git(&self, words: &[&str]) -> Outcome<()> {
        run(self.command("git", words))?;
        Ok(())
    }

    pub fn windlass(&self, words: &[&str]) -> Outcome<Duration> {
        let began = Instant::now();
        run(self.command(program("windlass")?, words))?;
        Ok(began.elapsed())
    }

    fn add_tasks(&self, count: usize) -> Outcome<()> {
        (0..count).try_for_each(|_| self.windlass(&["task", "add", "Do it"]).map(drop))
    }
}

/// Measures the time that Windlass adds. Each git process reports its own run time. Starting and ending it costs extra, as for any
/// program that calls git.
fn added(directory: &Path, report: &mut Report) -> Outcome<()> {
    let place = Place::new(directory, "merging", CONFIG)?;
    let trace = place.home.join("trace");
    place.git(&["init", "--quiet", "--initial-branch=main"])?;
    place.git(&["init", "--quiet", "--bare", "--initial-branch=main", "../remote.git"])?;
    let identity = "[user]\n\tname = Ada\n\temail = ada@example.org\n";
    fs::write(place.home.join(".gitconfig"), identity)?;
    fs::write(place.root.join("README"), "Hello\n")?;
    place.git(&["add", "--all"])?;
    place.git(&["commit", "--quiet", "--message=Begin"])?;
    place.git(&["remote", "add", "origin", "../remote.git"])?;
    place.git(&["push", "--quiet", "origin", "main"])?;
    place.add_tasks(TASKS)?;
    fs::write(place.home.join(".gitconfig"), format!("{identity}[trace2]\n\teventTarget = {}\n", trace.display()))?;
    let agent = format!("command:{AGENT}");
    let limit = TASKS.to_string();
    let took = place.windlass(&["run", "--trust", "--max-iterations", &limit, "--agent", &agent])?;
    let (calls, git) = traced(&trace)?;
    let agent = Times::of(TASKS, |_| {
        let mut command = place.command("/bin/sh", &["-c", AGENT]);
        command.env("WINDLASS_TASK_ID", "floor");
        run(command)
    })?;
    let starting = start_of_git(&place)? * u32::try_from(calls)?;
    let each = |time: Duration| time / u32::try_from(TASKS).expect("a few");
    let added = each(took.saturating_sub(git).saturating_sub(starting)).saturating_sub(agent.p50());
    let measured = format!(
        "{} of {} a task; git {} in {:.0} calls and {} to start them, the agent {}",
        shown(added),
        shown(each(took)),
        shown(each(git)),
        calls as f64 / TASKS as f64,
        shown(each(starting)),
        shown(agent.p50())
    );
    let what = "added to a task from claim to merge, git and the agent aside";
    report.figure(what, measured, added.as_secs_f64() * 1e3, at_most(40.0, " ms"));
    Ok(())
}

/// Measures the time of a git call beyond the run time that it reports.
fn start_of_git(place: &Place) -> Outcome<Duration> {
    let trace = place.home.join("trace-of-start");
    fs::create_dir(&trace)?;
    let times = Times::of(100, |_| {
        let mut command = place.command("git", &["version"]);
        command.env("GIT_TRACE2_EVENT", &trace);
        run(command)
    })?;
    let (calls, own) = traced(&trace)?;
    Ok(times.p50().saturating_sub(own / u32::try_from(calls)?))
}

/// Returns the number of git processes that Windlass started, and their total run time.
fn traced(directory: &Path) -> Outcome<(usize, Duration)> {
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

fn claim(directory: &Path, effort: Effort, report: &mut Report) -> Outcome<()> {
    let place = Place::new(directory, "claiming", "")?;
    place.windlass(&["task", "add", "Do it"])?;
    let many = MANY.min(effort.sizes[2]);
    fill(&mut SqliteStore::open(&place.root.join(".windlass/windlass.db"), Lifetime::Service)?, many)?;
    let times = Times::of(effort.commands, |_| place.windlass(&["task", "claim"]).map(drop))?;
    let measured = format!("{} (p99 {})", shown(times.p50()), shown(times.p99()));
    let what = format!("`task claim` among {many} tasks, as a whole command");
    report.figure(&what, measured, times.p50().as_secs_f64() * 1e3, at_most(10.0, " ms"));
    Ok(())
}
