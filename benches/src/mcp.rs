//! The tools over the Model Context Protocol, compared with a minimal server.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use windlass_engine::{Command as EngineCommand, NoteKind, TaskId};
use windlass_store::{Lifetime, SqliteStore, Store};

use crate::commands::find_program;
use crate::floors::run_command;
use crate::memory::{self, MIB};
use crate::report::{BenchReport, SortedDurations, at_most, format_duration, ratio};
use crate::stores::{self, bench_origin, builtin_rules, fill_store};
use crate::{BenchResult, BenchScale};

const INITIALIZE_REQUEST: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
const LIST_REQUEST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#;
const READ_REQUEST: &str =
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"task_get","arguments":{"taskId":"T2"}}}"#;
/// The note goes to another task, so that the task to read stays the same.
const NOTE_TEXT: &str = "the pump is behind the door";
const WRITE_REQUEST: &str = r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"note_add","arguments":{"taskId":"T1","text":"the pump is behind the door"}}}"#;
/// The number of events in the long log.
const LONG_LOG_EVENTS: u64 = 100_000;
/// The number of calls of one kind in a row: a call after another kind finds that kind's data in the caches.
const CALLS_IN_A_ROW: usize = 50;
/// Every call reads a recently written file again; configurations in real use are older.
const SETTLE_TIME: Duration = Duration::from_millis(2_500);

pub fn measure(scale: BenchScale, report: &mut BenchReport) -> BenchResult<()> {
    report.begin_section("Tools over MCP");
    let directory = tempfile::tempdir()?;
    let [short, long] = [("short", 5), ("long", LONG_LOG_EVENTS / 2)]
        .map(|(name, tasks)| create_project(directory.path(), name, tasks));
    let (short, long) = (short?, long?);
    thread::sleep(SETTLE_TIME);

    let mut ready = Vec::new();
    for _ in 0..scale.command_repetitions {
        let began = Instant::now();
        let mut server = LineClient::start_windlass(&short)?;
        server.request(INITIALIZE_REQUEST)?;
        ready.push(began.elapsed());
    }
    let ready = SortedDurations::from_unsorted(ready);
    let measured = format!("{} (p99 {})", format_duration(ready.p50()), format_duration(ready.p99()));
    report.add_figure(
        "from starting `windlass mcp` to its first answer",
        measured,
        ready.p50().as_secs_f64() * 1e3,
        at_most(10.0, " ms"),
    );

    let times = measure_calls(scale, directory.path(), &short, &long)?;
    report.add_fact(
        "minimal JSON-RPC: a program that reads the request of `task_get` as JSON and writes an answer of the same length",
        format_duration(times.echo),
    );
    report.add_fact("the same for `note_add`", format_duration(times.short_echo));
    // The commit is measured inside the server: after a wake-up it costs more than in a loop.
    let commit = times.committing.saturating_sub(times.short_echo);
    let measured = format!("{}, of which the commit {}", format_duration(times.committing), format_duration(commit));
    report.add_fact("the same with the commit of a note before it answers", measured);
    report.add_fact("that commit, again and again in one process", format_duration(times.commit));
    let value = times.read.as_secs_f64() * 1e3;
    report.add_figure("a call that reads (`task_get`)", format_duration(times.read), value, at_most(0.2, " ms"));
    let beside = times.write.saturating_sub(commit);
    let measured = format!("{} = commit + {}", format_duration(times.write), format_duration(beside));
    let goal = at_most(0.2, " ms beside its commit");
    report.add_figure("a call that writes (`note_add`)", measured, beside.as_secs_f64() * 1e3, goal);
    for (what, long, short) in
        [("the call that reads", times.long_read, times.read), ("the call that writes", times.long_write, times.write)]
    {
        let value = ratio(long, short);
        let measured = format!("{} = {value:.2} × {}", format_duration(long), format_duration(short));
        report.add_figure(
            &format!("{what} with {LONG_LOG_EVENTS} events in the log"),
            measured,
            value,
            at_most(1.2, " ×"),
        );
    }
    let bytes = times.listed as f64;
    report.add_figure(
        "`tools/list`: what every agent reads",
        format!("{bytes:.0} bytes"),
        bytes,
        at_most(10_240.0, " bytes"),
    );
    let [anonymous, resident] = times.memory.map(|size| size / MIB);
    report.add_fact(
        "memory of `windlass mcp` after all that",
        format!("{anonymous:.1} MiB anonymous, {resident:.1} MiB in all"),
    );
    measure_load(scale, directory.path(), report)
}

/// Measures many calls of one server, half of which write.
fn measure_load(scale: BenchScale, directory: &Path, report: &mut BenchReport) -> BenchResult<()> {
    let calls = 4 * scale.iterations;
    let root = create_project(directory, "load", 5)?;
    thread::sleep(SETTLE_TIME);
    let mut server = LineClient::start_windlass(&root)?;
    server.request(INITIALIZE_REQUEST)?;
    let process = server.child.id().to_string();
    let (mut times, mut sizes) = ([Vec::new(), Vec::new()], Vec::new());
    let file = root.join(".windlass/windlass.db");
    let before = stores::read_used_bytes(&file)?;
    let began = Instant::now();
    for call in 1..=calls {
        let asked = Instant::now();
        server.request(if call % 2 == 0 { WRITE_REQUEST } else { READ_REQUEST })?;
        times[call % 2].push(asked.elapsed());
        // Halfway through, the cache of the store is full.
        if call == calls / 2 || call == calls {
            sizes.push(memory::read_size(&process, "RssAnon")? / MIB);
        }
    }
    let took = began.elapsed().as_secs_f64();
    let [writes, reads] = times;
    // The times are still in the order of the calls, so the first and the last can be compared.
    let window = writes.len() / 10;
    let [first, last] = [&writes[..window], &writes[writes.len() - window..]]
        .map(|some| SortedDurations::from_unsorted(some.to_vec()).p50());
    let grown = (stores::read_used_bytes(&file)?.saturating_sub(before)) as f64 / writes.len() as f64;
    let (reads, writes) = (SortedDurations::from_unsorted(reads), SortedDurations::from_unsorted(writes));
    let rate = calls as f64 / took;
    let measured =
        format!("{rate:.0} calls/s; reading {}, writing {}", reads.format_percentiles(), writes.format_percentiles());
    report.add_fact(&format!("{calls} calls one after another, every other one of which writes"), measured);
    let value = ratio(last, first);
    let measured = format!("{} = {value:.2} × {}", format_duration(last), format_duration(first));
    report.add_figure("the last tenth of them that writes against the first", measured, value, at_most(1.2, " ×"));
    let value = sizes[1] / sizes[0];
    let measured = format!("{:.1} MiB = {value:.2} × {:.1} MiB after half of them", sizes[1], sizes[0]);
    report.add_figure("anonymous memory of `windlass mcp` after them", measured, value, at_most(1.2, " ×"));
    report.add_fact("what a call that writes adds to the store", format!("{grown:.0} bytes"));
    Ok(())
}

/// The median of each kind of call, the length of the tool list, and the memory of the server.
struct CallTimes {
    echo: Duration,
    short_echo: Duration,
    commit: Duration,
    committing: Duration,
    read: Duration,
    write: Duration,
    long_read: Duration,
    long_write: Duration,
    listed: usize,
    memory: [f64; 2],
}

/// Measures all compared calls in turns.
fn measure_calls(scale: BenchScale, directory: &Path, short: &Path, long: &Path) -> BenchResult<CallTimes> {
    let (mut short, mut long) = (LineClient::start_windlass(short)?, LineClient::start_windlass(long)?);
    let (read, written) = (short.request(READ_REQUEST)?, short.request(WRITE_REQUEST)?);
    let (mut echo, mut short_echo) = (LineClient::start_echo(&read, None)?, LineClient::start_echo(&written, None)?);
    let mut store = create_filled_store(&directory.join("alone.db"))?;
    let mut committing =
        LineClient::start_echo(&written, Some(create_filled_store(&directory.join("echo.db"))?.path()))?;
    let (rules, origin) = (builtin_rules(), bench_origin());
    let note = EngineCommand::AddNote { task: Some(TaskId(1)), kind: NoteKind::Learning, text: NOTE_TEXT.to_owned() };
    let listed = short.request(LIST_REQUEST)?.len();
    long.request(LIST_REQUEST)?;
    let mut times = [const { Vec::new() }; 8];
    for turn in 0..scale.repetitions / CALLS_IN_A_ROW {
        for (place, times) in times.iter_mut().enumerate() {
            for nonce in turn * CALLS_IN_A_ROW..(turn + 1) * CALLS_IN_A_ROW {
                let began = Instant::now();
                match place {
                    0 => drop(echo.request(READ_REQUEST)?),
                    1 => drop(short_echo.request(WRITE_REQUEST)?),
                    2 => drop(store.execute_command(&rules, &origin, &note, nonce as u128)?),
                    3 => drop(committing.request(WRITE_REQUEST)?),
                    4 => drop(short.request(READ_REQUEST)?),
                    5 => drop(short.request(WRITE_REQUEST)?),
                    6 => drop(long.request(READ_REQUEST)?),
                    _ => drop(long.request(WRITE_REQUEST)?),
                }
                times.push(began.elapsed());
            }
        }
    }
    let process = short.child.id().to_string();
    let memory = [memory::read_size(&process, "RssAnon")?, memory::read_size(&process, "VmRSS")?];
    let [echo, short_echo, commit, committing, read, write, long_read, long_write] =
        times.map(|times| SortedDurations::from_unsorted(times).p50());
    Ok(CallTimes { echo, short_echo, commit, committing, read, write, long_read, long_write, listed, memory })
}

fn create_filled_store(path: &Path) -> BenchResult<SqliteStore> {
    let mut store = SqliteStore::create(path, Lifetime::Service)?;
    fill_store(&mut store, 5)?;
    Ok(store)
}

/// Creates a project with a number of tasks, each with two events.
fn create_project(directory: &Path, name: &str, tasks: u64) -> BenchResult<std::path::PathBuf> {
    let root = directory.join(name);
    std::fs::create_dir(&root)?;
    let mut init = Command::new(find_program("windlass")?);
    init.arg("init").current_dir(&root).env("WINDLASS_STATE_DIR", root.join("state"));
    run_command(init)?;
    fill_store(&mut SqliteStore::open(&root.join(".windlass/windlass.db"), Lifetime::Service)?, tasks)?;
    Ok(root)
}

/// The client of a server that answers line by line.
struct LineClient {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl LineClient {
    fn start(mut command: Command) -> BenchResult<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (input, output) = child.stdin.take().zip(child.stdout.take()).ok_or("no pipes")?;
        Ok(Self { child, input, output: BufReader::new(output) })
    }

    fn start_windlass(project: &Path) -> BenchResult<Self> {
        let mut command = Command::new(find_program("windlass")?);
        command.arg("mcp").current_dir(project).env("WINDLASS_STATE_DIR", project.join("state"));
        Self::start(command)
    }

    /// Starts a server that answers each call with the result in `answer`. With a store, it commits a note first.
    fn start_echo(answer: &str, store: Option<&Path>) -> BenchResult<Self> {
        let answer: Value = serde_json::from_str(answer)?;
        let mut command = Command::new(find_program("echo")?);
        command.arg(answer["result"].to_string()).args(store);
        Self::start(command)
    }

    fn request(&mut self, line: &str) -> BenchResult<String> {
        self.input.write_all(format!("{line}\n").as_bytes())?;
        let mut answer = String::new();
        self.output.read_line(&mut answer)?;
        match answer.contains("\"error\":{") || answer.contains("\"isError\":true") || answer.is_empty() {
            true => Err(format!("{line} was answered with `{answer}`").into()),
            false => Ok(answer),
        }
    }
}

impl Drop for LineClient {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
