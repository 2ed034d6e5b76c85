//! The loop: what passes between two calls of an agent, beside a shell that calls it again and again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::commands::program;
use crate::memory::{self, MIB};
use crate::report::{Report, Times, at_most, ratio, shown};
use crate::stores;
use crate::{Effort, Outcome};

/// How many gaps a median is taken of, at the start and at the end of a long session.
const WINDOW: usize = 200;
/// How often shell and session take turns.
const ROUNDS: usize = 5;
/// What the agent notes at each call: two times.
const NOTE: usize = 16;
/// How many sessions are begun.
const BEGINNINGS: usize = 20;
/// How many commits an iteration may take.
const MOST_COMMITS: f64 = 5.0;
const GOAL: &str = "Mend the pump";
/// The exit code of a session that ran into its limit, as these do.
const LIMIT: i32 = 3;

pub fn measure(effort: Effort, report: &mut Report) -> Outcome<()> {
    report.section("The loop");
    let directory = tempfile::tempdir()?;
    let commit = stores::starts(effort, &directory.path().join("commit.db"))?.p50();
    report.fact("a commit (`start`) in a long-lived process", shown(commit));
    beginnings(directory.path(), report)?;
    prompt(directory.path(), report)?;
    let commits = in_turns(directory.path(), commit, report)?;
    let floor = |shell: Duration| shell + commit.mul_f64(commits);

    let long = Project::new(directory.path(), "long", "")?;
    let sizes = long.turn_and_watch(effort.iterations)?;
    let gaps = gaps(&long.notes)?;
    let [first, last] = [&gaps[..WINDOW], &gaps[gaps.len() - WINDOW..]].map(|gaps| Times::from(gaps.to_vec()).p50());
    let shell = Times::from(shell(directory.path(), "after", WINDOW)?).p50();
    let value = ratio(last, floor(shell));
    let measured = format!("{} = {value:.2} × (shell: {})", shown(last), shown(shell));
    let what = format!("between two agent calls, the last {WINDOW} of {} iterations", effort.iterations);
    report.figure(&what, measured, value, at_most(1.2, " × (bare shell loop + k commits)"));
    let value = ratio(last, first);
    let measured = format!("{} = {value:.2} × {}", shown(last), shown(first));
    report.figure(&format!("the same against the first {WINDOW}"), measured, value, at_most(1.2, " ×"));

    let times = Times::from(gaps);
    report.fact(&format!("the same, all {} of them", effort.iterations), times.shown());
    let size = stores::size(&long.root.join(".windlass/windlass.db"))? as f64 / effort.iterations as f64;
    report.fact("what an iteration adds to the store", format!("{size:.0} bytes"));
    let [early, late] = sizes.map(|size| size / MIB);
    let what = format!("anonymous memory of `windlass run` after {} iterations", effort.iterations);
    report.figure(&what, format!("{late:.1} MiB"), late, at_most(16.0, " MiB"));
    let what = format!("the same against {} iterations", effort.iterations / 10);
    report.figure(&what, format!("{:.2} × {early:.1} MiB", late / early), late / early, at_most(1.2, " ×"));
    Ok(())
}

/// From starting `windlass run` to the first word of its agent: where there is a store, and where one is made first.
fn beginnings(directory: &Path, report: &mut Report) -> Outcome<()> {
    let mut times = [const { Vec::new() }; 2];
    for round in 0..BEGINNINGS {
        let project = Project::new(directory, &format!("begin-{round}"), "")?;
        for (run, times) in times.iter_mut().enumerate() {
            let began = now();
            ended(project.turn(1)?)?;
            let called = calls(&project.notes)?.get(run).ok_or("the agent was not called")?[0];
            times.push(Duration::from_nanos(called.saturating_sub(began)));
        }
    }
    let [made, there] = times.map(|times| Times::from(times).p50());
    let millis = there.as_secs_f64() * 1e3;
    report.figure("from `windlass run` to the first agent call", shown(there), millis, at_most(10.0, " ms"));
    report.fact("the same in an empty directory, where the store is made first", shown(made));
    Ok(())
}

/// What an agent reads besides its goal.
fn prompt(directory: &Path, report: &mut Report) -> Outcome<()> {
    let project = Project::new(directory, "reads", "")?;
    ended(project.turn_with(1, "command:cat > prompt")?)?;
    let around = fs::metadata(project.root.join("prompt"))?.len() as f64 - GOAL.len() as f64;
    report.figure("the prompt around a one-line task", format!("{around:.0} bytes"), around, at_most(2048.0, " bytes"));
    Ok(())
}

/// Nanoseconds of the clock that the agent notes.
fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// Short sessions and shell loops, turn by turn. Answers how many commits an iteration takes.
fn in_turns(directory: &Path, commit: Duration, report: &mut Report) -> Outcome<f64> {
    let hook = |point: &str| format!("version: 1\nhooks:\n  {point}:\n    - command: 'true'\n");
    let kinds = [("plain", String::new()), ("stop", hook("stop")), ("post_iteration", hook("post_iteration"))];
    let mut bare = Vec::new();
    let mut times = [const { Vec::new() }; 3];
    let mut commits = [0.0; 3];
    for round in 0..ROUNDS {
        bare.extend(shell(directory, &format!("shell-{round}"), WINDOW)?);
        for (place, (name, config)) in kinds.iter().enumerate() {
            let project = Project::new(directory, &format!("{name}-{round}"), config)?;
            ended(project.turn(WINDOW)?)?;
            times[place].extend(gaps(&project.notes)?);
            commits[place] = project.commits()? / WINDOW as f64;
        }
    }
    let bare = Times::from(bare).p50();
    let [plain, stop, post_iteration] = times.map(|times| Times::from(times).p50());
    report.fact("a bare shell loop, from the end of a call to the start of the next", shown(bare));
    report.figure("k: commits in an iteration", format!("{:.2}", commits[0]), commits[0], at_most(MOST_COMMITS, ""));
    let value = ratio(plain, bare + commit.mul_f64(commits[0]));
    let measured = format!("{} = {value:.2} ×", shown(plain));
    report.figure(
        &format!("between two agent calls, sessions of {WINDOW} iterations"),
        measured,
        value,
        at_most(1.2, " × (bare shell loop + k commits)"),
    );
    let most = ratio(plain, bare + commit.mul_f64(MOST_COMMITS));
    report.fact("the same beside a loop with all the commits that the goal allows for", format!("{most:.2} ×"));
    for (name, time, commits) in [("stop", stop, commits[1]), ("post_iteration", post_iteration, commits[2])] {
        let added = time.saturating_sub(plain);
        let measured = format!("{}: {} more; k = {commits:.2}", shown(time), shown(added));
        report.fact(&format!("the same with a command hook at `{name}` that does nothing"), measured);
    }
    Ok(commits[0])
}

/// A directory in which a session is run.
struct Project {
    root: PathBuf,
    notes: PathBuf,
}

impl Project {
    fn new(directory: &Path, name: &str, config: &str) -> Outcome<Self> {
        let root = directory.join(name);
        fs::create_dir_all(root.join(".windlass"))?;
        if !config.is_empty() {
            fs::write(root.join(".windlass/config.yaml"), config)?;
        }
        Ok(Self { notes: root.join("notes"), root })
    }

    /// A session of so many iterations.
    fn turn(&self, iterations: usize) -> Outcome<Child> {
        self.turn_with(iterations, &format!("command:{}", agent(&self.notes)?))
    }

    fn turn_with(&self, iterations: usize, agent: &str) -> Outcome<Child> {
        let child = Command::new(program("windlass")?)
            .args(["run", GOAL, "--trust", "--max-iterations", &iterations.to_string(), "--agent", agent])
            .current_dir(&self.root)
            .env("WINDLASS_STATE_DIR", self.root.join("state"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()?;
        Ok(child)
    }

    /// Its anonymous memory after a tenth of the iterations, and close to their end.
    fn turn_and_watch(&self, iterations: usize) -> Outcome<[f64; 2]> {
        let mut child = self.turn(iterations)?;
        let mut sizes = [0.0; 2];
        for (size, mark) in sizes.iter_mut().zip([iterations / 10, iterations * 99 / 100]) {
            while self.notes.metadata().map_or(0, |notes| notes.len()) < (mark * NOTE) as u64 {
                if let Some(status) = child.try_wait()? {
                    return Err(format!("the session ended early, with {status}").into());
                }
                thread::sleep(Duration::from_millis(5));
            }
            *size = memory::size(&child.id().to_string(), "RssAnon")?;
        }
        ended(child)?;
        Ok(sizes)
    }

    /// How many commits its log has.
    fn commits(&self) -> Outcome<f64> {
        let log = rusqlite::Connection::open(self.root.join(".windlass/windlass.db"))?;
        Ok(log.query_row("SELECT count(DISTINCT nonce) FROM events", [], |row| row.get(0))?)
    }
}

fn ended(mut child: Child) -> Outcome<()> {
    let status = child.wait()?;
    if status.code() == Some(LIMIT) { Ok(()) } else { Err(format!("the session ended with {status}").into()) }
}

/// The command line of the agent, as a person would write it.
fn agent(notes: &Path) -> Outcome<String> {
    Ok(format!("{} {}", program("agent")?.display(), notes.display()))
}

/// The gaps of a shell that calls the agent again and again.
fn shell(directory: &Path, name: &str, calls: usize) -> Outcome<Vec<Duration>> {
    let notes = directory.join(name);
    let prompt = directory.join("prompt");
    fs::write(&prompt, "Mend the pump\n".repeat(30))?;
    let call = format!("{} <{} >/dev/null", agent(&notes)?, prompt.display());
    let script = format!("i=0; while [ $i -lt {calls} ]; do {call}; i=$((i + 1)); done");
    let status = Command::new("/bin/sh").args(["-c", &script]).status()?;
    if !status.success() {
        return Err(format!("the shell loop ended with {status}").into());
    }
    gaps(&notes)
}

/// From the end of each call to the start of the next.
fn gaps(notes: &Path) -> Outcome<Vec<Duration>> {
    let calls = calls(notes)?;
    Ok(calls.windows(2).map(|pair| Duration::from_nanos(pair[1][0].saturating_sub(pair[0][1]))).collect())
}

/// When the agent began and ended, call by call.
fn calls(notes: &Path) -> Outcome<Vec<[u64; 2]>> {
    let notes = fs::read(notes)?;
    let times: Vec<u64> = notes.as_chunks::<8>().0.iter().map(|time| u64::from_le_bytes(*time)).collect();
    Ok(times.as_chunks::<2>().0.to_vec())
}
