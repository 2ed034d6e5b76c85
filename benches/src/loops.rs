//! The loop: the time between two calls of an agent in a git repository, compared with a hand-written bash loop.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::commands::program;
use crate::floors::run;
use crate::memory::{self, MIB};
use crate::report::{Report, Times, at_most, ratio, shown};
use crate::stores;
use crate::{Effort, Outcome};

/// The number of gaps in a median, at the start and at the end of a long session.
const WINDOW: usize = 200;
/// The number of rounds in which shell and session take turns.
const ROUNDS: usize = 5;
/// The bytes that the agent appends at each call: two times.
const NOTE: usize = 16;
/// The number of measured session starts.
const BEGINNINGS: usize = 20;
/// The goal for the resident memory of a run, in MiB.
const MOST_MEMORY: f64 = 14.0;
/// The unit of gaps: the floor is a bash loop.
const BASH_LOOP: &str = " × a bash loop with the same agent";
const GOAL: &str = "Mend the pump";
/// The exit code of a session that reaches its limit, as all of these do.
const LIMIT: i32 = 3;

pub fn measure(effort: Effort, report: &mut Report) -> Outcome<()> {
    report.section("The loop");
    let directory = tempfile::tempdir()?;
    beginnings(directory.path(), report)?;
    prompt(directory.path(), report)?;
    in_turns(directory.path(), report)?;

    let long = Project::new(directory.path(), "long", "")?;
    let sizes = long.turn_and_watch(effort.iterations)?;
    let gaps = gaps(&long.notes)?;
    let [first, last] = [&gaps[..WINDOW], &gaps[gaps.len() - WINDOW..]].map(|gaps| Times::from(gaps.to_vec()).p50());
    let bash = Times::from(run_bash_loop(&Project::new(directory.path(), "after", "")?)?).p50();
    let value = ratio(last, bash);
    let measured = format!("{} = {value:.2} × (bash: {})", shown(last), shown(bash));
    let what = format!("between two agent calls, the last {WINDOW} of {} iterations", effort.iterations);
    report.figure(&what, measured, value, at_most(1.0, BASH_LOOP));
    let value = ratio(last, first);
    let measured = format!("{} = {value:.2} × {}", shown(last), shown(first));
    report.figure(&format!("the same against the first {WINDOW}"), measured, value, at_most(1.2, " ×"));

    let times = Times::from(gaps);
    report.fact(&format!("the same, all {} of them", effort.iterations), times.shown());
    let size = stores::size(&long.root.join(".windlass/windlass.db"))? as f64 / effort.iterations as f64;
    report.fact("what an iteration adds to the store", format!("{size:.0} bytes"));
    let [early, late] = sizes.map(|size| size / MIB);
    let what = format!("resident memory of `windlass run` after {} iterations", effort.iterations);
    report.figure(&what, format!("{late:.1} MiB"), late, at_most(MOST_MEMORY, " MiB"));
    let what = format!("the same against {} iterations", effort.iterations / 10);
    report.figure(&what, format!("{:.2} × {early:.1} MiB", late / early), late / early, at_most(1.2, " ×"));
    Ok(())
}

/// Measures the time from the start of `windlass run` to the first call of its agent: with an existing store, and with a new one.
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

/// Measures the length of the prompt without its goal.
fn prompt(directory: &Path, report: &mut Report) -> Outcome<()> {
    let project = Project::new(directory, "reads", "")?;
    ended(project.turn_with(1, "command:cat > prompt")?)?;
    let around = fs::metadata(project.root.join("prompt"))?.len() as f64 - GOAL.len() as f64;
    report.figure("the prompt around a one-line task", format!("{around:.0} bytes"), around, at_most(2048.0, " bytes"));
    Ok(())
}

/// Returns nanoseconds of the clock that the agent uses.
fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// Measures short sessions and bash loops by turns.
fn in_turns(directory: &Path, report: &mut Report) -> Outcome<()> {
    let hook = |point: &str| format!("version: 1\nhooks:\n  {point}:\n    - command: 'true'\n");
    let kinds = [("plain", String::new()), ("stop", hook("stop")), ("post_iteration", hook("post_iteration"))];
    let mut bash = Vec::new();
    let mut times = [const { Vec::new() }; 3];
    let mut commits = [0.0; 3];
    for round in 0..ROUNDS {
        bash.extend(run_bash_loop(&Project::new(directory, &format!("bash-{round}"), "")?)?);
        for (place, (name, config)) in kinds.iter().enumerate() {
            let project = Project::new(directory, &format!("{name}-{round}"), config)?;
            ended(project.turn(WINDOW)?)?;
            times[place].extend(gaps(&project.notes)?);
            commits[place] = project.commits()? / WINDOW as f64;
        }
    }
    let bash = Times::from(bash).p50();
    let [plain, stop, post_iteration] = times.map(|times| Times::from(times).p50());
    report.fact("a bash loop, from the end of a call to the start of the next", shown(bash));
    let value = ratio(plain, bash);
    let measured = format!("{} = {value:.2} ×; {:.2} commits each", shown(plain), commits[0]);
    let what = format!("between two agent calls, sessions of {WINDOW} iterations");
    report.figure(&what, measured, value, at_most(1.0, BASH_LOOP));
    for (name, time, commits) in [("stop", stop, commits[1]), ("post_iteration", post_iteration, commits[2])] {
        let added = time.saturating_sub(plain);
        let measured = format!("{}: {} more; {commits:.2} commits each", shown(time), shown(added));
        report.fact(&format!("the same with a command hook at `{name}` that does nothing"), measured);
    }
    Ok(())
}

/// A repository for sessions.
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
        let git = |words: &[&str]| {
            let mut git = Command::new("git");
            git.args(words).current_dir(&root);
            run(git)
        };
        git(&["init", "--quiet"])?;
        fs::write(root.join(".gitignore"), "/.windlass\n/state\n/notes\n/prompt*\n")?;
        git(&["add", "."])?;
        git(&["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "commit", "--quiet", "--message=Begin"])?;
        Ok(Self { notes: root.join("notes"), root })
    }

    /// Starts a session with a number of iterations.
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

    /// Runs a session. Returns its resident memory after a tenth of the iterations, and near the end.
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
            *size = memory::size(&child.id().to_string(), "VmRSS")?;
        }
        ended(child)?;
        Ok(sizes)
    }

    /// Returns the number of commits in the log.
    fn commits(&self) -> Outcome<f64> {
        let log = rusqlite::Connection::open(self.root.join(".windlass/windlass.db"))?;
        Ok(log.query_row("SELECT count(DISTINCT nonce) FROM events", [], |row| row.get(0))?)
    }
}

fn ended(mut child: Child) -> Outcome<()> {
    let status = child.wait()?;
    if status.code() == Some(LIMIT) { Ok(()) } else { Err(format!("the session ended with {status}").into()) }
}

/// Returns the command line of the agent, as a person would write it.
fn agent(notes: &Path) -> Outcome<String> {
    Ok(format!("{} {}", program("agent")?.display(), notes.display()))
}

/// Runs an agent again and again until it promises to be done, as a script does. Returns the gaps between its calls.
fn run_bash_loop(project: &Project) -> Outcome<Vec<Duration>> {
    fs::write(project.root.join("prompt.md"), "Mend the pump\n".repeat(30))?;
    let agent = agent(&project.notes)?;
    let script = format!(
        "for ((turn = 0; turn < {WINDOW}; turn++)); do \
           answer=$(cat prompt.md | {agent}); \
           if grep --quiet '<promise>COMPLETE</promise>' <<<\"$answer\"; then break; fi; \
         done"
    );
    let mut bash = Command::new("bash");
    bash.args(["-c", &script]).current_dir(&project.root);
    run(bash)?;
    gaps(&project.notes)
}

/// Returns the times from the end of each call to the start of the next.
fn gaps(notes: &Path) -> Outcome<Vec<Duration>> {
    let calls = calls(notes)?;
    Ok(calls.windows(2).map(|pair| Duration::from_nanos(pair[1][0].saturating_sub(pair[0][1]))).collect())
}

/// Returns the start and the end of each call.
fn calls(notes: &Path) -> Outcome<Vec<[u64; 2]>> {
    let notes = fs::read(notes)?;
    let times: Vec<u64> = notes.as_chunks::<8>().0.iter().map(|time| u64::from_le_bytes(*time)).collect();
    Ok(times.as_chunks::<2>().0.to_vec())
}
