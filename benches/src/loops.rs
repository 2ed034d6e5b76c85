//! The loop: the time between two calls of an agent in a git repository, compared with a hand-written bash loop.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::commands::find_program;
use crate::floors::run_command;
use crate::memory::{self, MIB};
use crate::report::{BenchReport, SortedDurations, at_most, format_duration, ratio};
use crate::stores;
use crate::{BenchResult, BenchScale};

/// The number of gaps in a median, at the start and at the end of a long session.
const WINDOW_ITERATIONS: usize = 200;
/// The number of rounds in which shell and session take turns.
const COMPARISON_ROUNDS: usize = 5;
/// The bytes that the agent appends at each call: two times.
const NOTE_BYTES: usize = 16;
/// The number of measured session starts.
const MEASURED_STARTS: usize = 20;
/// The goal for the resident memory of a run, in MiB.
const MEMORY_GOAL_MIB: f64 = 14.0;
/// The unit of gaps: the floor is a bash loop.
const BASH_LOOP_UNIT: &str = " × a bash loop with the same agent";
const TASK_GOAL: &str = "Mend the pump";
/// The exit code of a session that reaches its limit, as all of these do.
const LIMIT_EXIT_CODE: i32 = 3;

pub fn measure(scale: BenchScale, report: &mut BenchReport) -> BenchResult<()> {
    report.begin_section("The loop");
    let directory = tempfile::tempdir()?;
    measure_starts(directory.path(), report)?;
    measure_prompt(directory.path(), report)?;
    compare_with_bash_loop(directory.path(), report)?;

    let long = SessionProject::new(directory.path(), "long", "")?;
    let sizes = long.run_watched_session(scale.iterations)?;
    let gaps = read_gaps(&long.notes)?;
    let [first, last] = [&gaps[..WINDOW_ITERATIONS], &gaps[gaps.len() - WINDOW_ITERATIONS..]]
        .map(|gaps| SortedDurations::from_unsorted(gaps.to_vec()).p50());
    let bash =
        SortedDurations::from_unsorted(run_bash_loop(&SessionProject::new(directory.path(), "after", "")?)?).p50();
    let value = ratio(last, bash);
    let measured = format!("{} = {value:.2} × (bash: {})", format_duration(last), format_duration(bash));
    let what = format!("between two agent calls, the last {WINDOW_ITERATIONS} of {} iterations", scale.iterations);
    report.add_figure(&what, measured, value, at_most(1.0, BASH_LOOP_UNIT));
    let value = ratio(last, first);
    let measured = format!("{} = {value:.2} × {}", format_duration(last), format_duration(first));
    report.add_figure(&format!("the same against the first {WINDOW_ITERATIONS}"), measured, value, at_most(1.2, " ×"));

    let times = SortedDurations::from_unsorted(gaps);
    report.add_fact(&format!("the same, all {} of them", scale.iterations), times.format_percentiles());
    let size = stores::read_used_bytes(&long.root.join(".windlass/windlass.db"))? as f64 / scale.iterations as f64;
    report.add_fact("what an iteration adds to the store", format!("{size:.0} bytes"));
    let [early, late] = sizes.map(|size| size / MIB);
    let what = format!("resident memory of `windlass run` after {} iterations", scale.iterations);
    report.add_figure(&what, format!("{late:.1} MiB"), late, at_most(MEMORY_GOAL_MIB, " MiB"));
    let what = format!("the same against {} iterations", scale.iterations / 10);
    report.add_figure(&what, format!("{:.2} × {early:.1} MiB", late / early), late / early, at_most(1.2, " ×"));
    Ok(())
}

/// Measures the time from the start of `windlass run` to the first call of its agent: with an existing store, and with a new one.
fn measure_starts(directory: &Path, report: &mut BenchReport) -> BenchResult<()> {
    let mut times = [const { Vec::new() }; 2];
    for round in 0..MEASURED_STARTS {
        let project = SessionProject::new(directory, &format!("begin-{round}"), "")?;
        for (run, times) in times.iter_mut().enumerate() {
            let began = read_clock();
            expect_limit_exit(project.start_session(1)?)?;
            let called = read_calls(&project.notes)?.get(run).ok_or("the agent was not called")?[0];
            times.push(Duration::from_nanos(called.saturating_sub(began)));
        }
    }
    let [with_new_store, with_store] = times.map(|times| SortedDurations::from_unsorted(times).p50());
    let millis = with_store.as_secs_f64() * 1e3;
    report.add_figure(
        "from `windlass run` to the first agent call",
        format_duration(with_store),
        millis,
        at_most(10.0, " ms"),
    );
    report.add_fact("the same in an empty directory, where the store is made first", format_duration(with_new_store));
    Ok(())
}

/// Measures the length of the prompt without its goal.
fn measure_prompt(directory: &Path, report: &mut BenchReport) -> BenchResult<()> {
    let project = SessionProject::new(directory, "reads", "")?;
    expect_limit_exit(project.start_session_with(1, "command:cat > prompt")?)?;
    let around = fs::metadata(project.root.join("prompt"))?.len() as f64 - TASK_GOAL.len() as f64;
    report.add_figure(
        "the prompt around a one-line task",
        format!("{around:.0} bytes"),
        around,
        at_most(2048.0, " bytes"),
    );
    Ok(())
}

/// Returns nanoseconds of the clock that the agent uses.
fn read_clock() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// Measures short sessions and bash loops by turns.
fn compare_with_bash_loop(directory: &Path, report: &mut BenchReport) -> BenchResult<()> {
    let hook = |point: &str| format!("version: 1\nhooks:\n  {point}:\n    - command: 'true'\n");
    let kinds = [("plain", String::new()), ("stop", hook("stop")), ("post_iteration", hook("post_iteration"))];
    let mut bash = Vec::new();
    let mut times = [const { Vec::new() }; 3];
    let mut commits = [0.0; 3];
    for round in 0..COMPARISON_ROUNDS {
        bash.extend(run_bash_loop(&SessionProject::new(directory, &format!("bash-{round}"), "")?)?);
        for (place, (name, config)) in kinds.iter().enumerate() {
            let project = SessionProject::new(directory, &format!("{name}-{round}"), config)?;
            expect_limit_exit(project.start_session(WINDOW_ITERATIONS)?)?;
            times[place].extend(read_gaps(&project.notes)?);
            commits[place] = project.count_commits()? / WINDOW_ITERATIONS as f64;
        }
    }
    let bash = SortedDurations::from_unsorted(bash).p50();
    let [plain, stop, post_iteration] = times.map(|times| SortedDurations::from_unsorted(times).p50());
    report.add_fact("a bash loop, from the end of a call to the start of the next", format_duration(bash));
    let value = ratio(plain, bash);
    let measured = format!("{} = {value:.2} ×; {:.2} commits each", format_duration(plain), commits[0]);
    let what = format!("between two agent calls, sessions of {WINDOW_ITERATIONS} iterations");
    report.add_figure(&what, measured, value, at_most(1.0, BASH_LOOP_UNIT));
    for (name, time, commits) in [("stop", stop, commits[1]), ("post_iteration", post_iteration, commits[2])] {
        let added = time.saturating_sub(plain);
        let measured = format!("{}: {} more; {commits:.2} commits each", format_duration(time), format_duration(added));
        report.add_fact(&format!("the same with a command hook at `{name}` that does nothing"), measured);
    }
    Ok(())
}

/// A repository for sessions.
pub struct SessionProject {
    pub root: PathBuf,
    notes: PathBuf,
}

impl SessionProject {
    pub fn new(directory: &Path, name: &str, config: &str) -> BenchResult<Self> {
        let root = directory.join(name);
        fs::create_dir_all(root.join(".windlass"))?;
        if !config.is_empty() {
            fs::write(root.join(".windlass/config.yaml"), config)?;
        }
        let git = |words: &[&str]| {
            let mut git = Command::new("git");
            git.args(words).current_dir(&root);
            run_command(git)
        };
        git(&["init", "--quiet"])?;
        fs::write(root.join(".gitignore"), "/.windlass\n/state\n/notes\n/prompt*\n")?;
        git(&["add", "."])?;
        git(&["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "commit", "--quiet", "--message=Begin"])?;
        Ok(Self { notes: root.join("notes"), root })
    }

    /// Starts a session with a number of iterations.
    fn start_session(&self, iterations: usize) -> BenchResult<Child> {
        self.start_session_with(iterations, &format!("command:{}", agent_command(&self.notes)?))
    }

    pub fn start_session_with(&self, iterations: usize, agent: &str) -> BenchResult<Child> {
        let child = Command::new(find_program("windlass")?)
            .args(["run", TASK_GOAL, "--trust", "--max-iterations", &iterations.to_string(), "--agent", agent])
            .current_dir(&self.root)
            .env("WINDLASS_STATE_DIR", self.root.join("state"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()?;
        Ok(child)
    }

    /// Runs a session. Returns its resident memory after a tenth of the iterations, and near the end.
    fn run_watched_session(&self, iterations: usize) -> BenchResult<[f64; 2]> {
        let mut child = self.start_session(iterations)?;
        let mut sizes = [0.0; 2];
        for (size, mark) in sizes.iter_mut().zip([iterations / 10, iterations * 99 / 100]) {
            while self.notes.metadata().map_or(0, |notes| notes.len()) < (mark * NOTE_BYTES) as u64 {
                if let Some(status) = child.try_wait()? {
                    return Err(format!("the session ended early, with {status}").into());
                }
                thread::sleep(Duration::from_millis(5));
            }
            *size = memory::read_size(&child.id().to_string(), "VmRSS")?;
        }
        expect_limit_exit(child)?;
        Ok(sizes)
    }

    /// Returns the number of commits in the log.
    fn count_commits(&self) -> BenchResult<f64> {
        let log = rusqlite::Connection::open(self.root.join(".windlass/windlass.db"))?;
        Ok(log.query_row("SELECT count(DISTINCT nonce) FROM events", [], |row| row.get(0))?)
    }
}

pub fn expect_limit_exit(mut child: Child) -> BenchResult<()> {
    let status = child.wait()?;
    if status.code() == Some(LIMIT_EXIT_CODE) { Ok(()) } else { Err(format!("the session ended with {status}").into()) }
}

/// Returns the command line of the agent, as a person would write it.
fn agent_command(notes: &Path) -> BenchResult<String> {
    Ok(format!("{} {}", find_program("agent")?.display(), notes.display()))
}

/// Runs an agent again and again until it promises to be done, as a script does. Returns the gaps between its calls.
fn run_bash_loop(project: &SessionProject) -> BenchResult<Vec<Duration>> {
    fs::write(project.root.join("prompt.md"), "Mend the pump\n".repeat(30))?;
    let agent = agent_command(&project.notes)?;
    let script = format!(
        "for ((turn = 0; turn < {WINDOW_ITERATIONS}; turn++)); do \
           answer=$(cat prompt.md | {agent}); \
           if grep --quiet '<promise>COMPLETE</promise>' <<<\"$answer\"; then break; fi; \
         done"
    );
    let mut bash = Command::new("bash");
    bash.args(["-c", &script]).current_dir(&project.root);
    run_command(bash)?;
    read_gaps(&project.notes)
}

/// Returns the times from the end of each call to the start of the next.
fn read_gaps(notes: &Path) -> BenchResult<Vec<Duration>> {
    let calls = read_calls(notes)?;
    Ok(calls.windows(2).map(|pair| Duration::from_nanos(pair[1][0].saturating_sub(pair[0][1]))).collect())
}

/// Returns the start and the end of each call.
fn read_calls(notes: &Path) -> BenchResult<Vec<[u64; 2]>> {
    let notes = fs::read(notes)?;
    let times: Vec<u64> = notes.as_chunks::<8>().0.iter().map(|time| u64::from_le_bytes(*time)).collect();
    Ok(times.as_chunks::<2>().0.to_vec())
}
