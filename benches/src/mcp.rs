//! The tools over the Model Context Protocol, compared with a minimal server.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use windlass_engine::{Command as Order, NoteKind, TaskId};
use windlass_store::{Lifetime, SqliteStore, Store};

use crate::commands::program;
use crate::floors::run;
use crate::memory::{self, MIB};
use crate::report::{Report, Times, at_most, ratio, shown};
use crate::stores::{self, fill, origin, rules};
use crate::{Effort, Outcome};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#;
const READ: &str =
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"task_get","arguments":{"taskId":"T2"}}}"#;
/// The note goes to another task, so that the task to read stays the same.
const NOTE: &str = "the pump is behind the door";
const WRITE: &str = r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"note_add","arguments":{"taskId":"T1","text":"the pump is behind the door"}}}"#;
/// The number of events in the long log.
const LONG: u64 = 100_000;
/// The number of calls of one kind in a row: a call after another kind finds that kind's data in the caches.
const ROW: usize = 50;
/// Every call reads a recently written file again; configurations in real use are older.
const SETTLED: Duration = Duration::from_millis(2_500);

pub fn measure(effort: Effort, report: &mut Report) -> Outcome<()> {
    report.section("Tools over MCP");
    let directory = tempfile::tempdir()?;
    let [short, long] = [("short", 5), ("long", LONG / 2)].map(|(name, tasks)| project(directory.path(), name, tasks));
    let (short, long) = (short?, long?);
    thread::sleep(SETTLED);

    let mut ready = Vec::new();
    for _ in 0..effort.commands {
        let began = Instant::now();
        let mut server = Client::windlass(&short)?;
        server.ask(INITIALIZE)?;
        ready.push(began.elapsed());
    }
    let ready = Times::from(ready);
    let measured = format!("{} (p99 {})", shown(ready.p50()), shown(ready.p99()));
    report.figure(
        "from starting `windlass mcp` to its first answer",
        measured,
        ready.p50().as_secs_f64() * 1e3,
        at_most(10.0, " ms"),
    );

    let figures = in_turns(effort, directory.path(), &short, &long)?;
    report.fact(
        "minimal JSON-RPC: a program that reads the request of `task_get` as JSON and writes an answer of the same length",
        shown(figures.echo),
    );
    report.fact("the same for `note_add`", shown(figures.short_echo));
    // The commit is measured inside the server: after a wake-up it costs more than in a loop.
    let commit = figures.committing.saturating_sub(figures.short_echo);
    let measured = format!("{}, of which the commit {}", shown(figures.committing), shown(commit));
    report.fact("the same with the commit of a note before it answers", measured);
    report.fact("that commit, again and again in one process", shown(figures.commit));
    let value = figures.read.as_secs_f64() * 1e3;
    report.figure("a call that reads (`task_get`)", shown(figures.read), value, at_most(0.2, " ms"));
    let beside = figures.write.saturating_sub(commit);
    let measured = format!("{} = commit + {}", shown(figures.write), shown(beside));
    let goal = at_most(0.2, " ms beside its commit");
    report.figure("a call that writes (`note_add`)", measured, beside.as_secs_f64() * 1e3, goal);
    for (what, long, short) in [
        ("the call that reads", figures.long_read, figures.read),
        ("the call that writes", figures.long_write, figures.write),
    ] {
        let value = ratio(long, short);
        let measured = format!("{} = {value:.2} × {}", shown(long), shown(short));
        report.figure(&format!("{what} with {LONG} events in the log"), measured, value, at_most(1.2, " ×"));
    }
    let bytes = figures.listed as f64;
    report.figure(
        "`tools/list`: what every agent reads",
        format!("{bytes:.0} bytes"),
        bytes,
        at_most(10_240.0, " bytes"),
    );
    let [anonymous, resident] = figures.memory.map(|size| size / MIB);
    report.fact(
        "memory of `windlass mcp` after all that",
        format!("{anonymous:.1} MiB anonymous, {resident:.1} MiB in all"),
    );
    load(effort, directory.path(), report)
}

/// Measures many calls of one server, half of which write.
fn load(effort: Effort, directory: &Path, report: &mut Report) -> Outcome<()> {
    let calls = 4 * effort.iterations;
    let root = project(directory, "load", 5)?;
    thread::sleep(SETTLED);
    let mut server = Client::windlass(&root)?;
    server.ask(INITIALIZE)?;
    let process = server.child.id().to_string();
    let (mut times, mut sizes) = ([Vec::new(), Vec::new()], Vec::new());
    let file = root.join(".windlass/windlass.db");
    let before = stores::size(&file)?;
    let began = Instant::now();
    for call in 1..=calls {
        let asked = Instant::now();
        server.ask(if call % 2 == 0 { WRITE } else { READ })?;
        times[call % 2].push(asked.elapsed());
        // Halfway through, the cache of the store is full.
        if call == calls / 2 || call == calls {
            sizes.push(memory::size(&process, "RssAnon")? / MIB);
        }
    }
    let took = began.elapsed().as_secs_f64();
    let [writes, reads] = times;
    // The times are still in the order of the calls, so the first and the last can be compared.
    let window = writes.len() / 10;
    let [first, last] =
        [&writes[..window], &writes[writes.len() - window..]].map(|some| Times::from(some.to_vec()).p50());
    let grown = (stores::size(&file)?.saturating_sub(before)) as f64 / writes.len() as f64;
    let (reads, writes) = (Times::from(reads), Times::from(writes));
    let rate = calls as f64 / took;
    let measured = format!("{rate:.0} calls/s; reading {}, writing {}", reads.shown(), writes.shown());
    report.fact(&format!("{calls} calls one after another, every other one of which writes"), measured);
    let value = ratio(last, first);
    let measured = format!("{} = {value:.2} × {}", shown(last), shown(first));
    report.figure("the last tenth of them that writes against the first", measured, value, at_most(1.2, " ×"));
    let value = sizes[1] / sizes[0];
    let measured = format!("{:.1} MiB = {value:.2} × {:.1} MiB after half of them", sizes[1], sizes[0]);
    report.figure("anonymous memory of `windlass mcp` after them", measured, value, at_most(1.2, " ×"));
    report.fact("what a call that writes adds to the store", format!("{grown:.0} bytes"));
    Ok(())
}

struct Figures {
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
fn in_turns(effort: Effort, directory: &Path, short: &Path, long: &Path) -> Outcome<Figures> {
    let (mut short, mut long) = (Client::windlass(short)?, Client::windlass(long)?);
    let (read, written) = (short.ask(READ)?, short.ask(WRITE)?);
    let (mut echo, mut short_echo) = (Client::echo(&read, None)?, Client::echo(&written, None)?);
    let mut store = filled(&directory.join("alone.db"))?;
    let mut committing = Client::echo(&written, Some(filled(&directory.join("echo.db"))?.path()))?;
    let (rules, origin) = (rules(), origin());
    let note = Order::AddNote { task: Some(TaskId(1)), kind: NoteKind::Learning, text: NOTE.to_owned() };
    let listed = short.ask(LIST)?.len();
    long.ask(LIST)?;
    let mut times = [const { Vec::new() }; 8];
    for turn in 0..effort.many / ROW {
        for (place, times) in times.iter_mut().enumerate() {
            for nonce in turn * ROW..(turn + 1) * ROW {
                let began = Instant::now();
                match place {
                    0 => drop(echo.ask(READ)?),
                    1 => drop(short_echo.ask(WRITE)?),
                    2 => drop(store.execute_command(&rules, &origin, &note, nonce as u128)?),
                    3 => drop(committing.ask(WRITE)?),
                    4 => drop(short.ask(READ)?),
                    5 => drop(short.ask(WRITE)?),
                    6 => drop(long.ask(READ)?),
                    _ => drop(long.ask(WRITE)?),
                }
                times.push(began.elapsed());
            }
        }
    }
    let process = short.child.id().to_string();
    let memory = [memory::size(&process, "RssAnon")?, memory::size(&process, "VmRSS")?];
    let [echo, short_echo, commit, committing, read, write, long_read, long_write] =
        times.map(|times| Times::from(times).p50());
    Ok(Figures { echo, short_echo, commit, committing, read, write, long_read, long_write, listed, memory })
}

fn filled(path: &Path) -> Outcome<SqliteStore> {
    let mut store = SqliteStore::create(path, Lifetime::Service)?;
    fill(&mut store, 5)?;
    Ok(store)
}

/// Creates a project with a number of tasks, each with two events.
fn project(directory: &Path, name: &str, tasks: u64) -> Outcome<std::path::PathBuf> {
    let root = directory.join(name);
    std::fs::create_dir(&root)?;
    let mut init = Command::new(program("windlass")?);
    init.arg("init").current_dir(&root).env("WINDLASS_STATE_DIR", root.join("state"));
    run(init)?;
    fill(&mut SqliteStore::open(&root.join(".windlass/windlass.db"), Lifetime::Service)?, tasks)?;
    Ok(root)
}

/// The client of a server that answers line by line.
struct Client {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Client {
    fn start(mut command: Command) -> Outcome<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (input, output) = child.stdin.take().zip(child.stdout.take()).ok_or("no pipes")?;
        Ok(Self { child, input, output: BufReader::new(output) })
    }

    fn windlass(project: &Path) -> Outcome<Self> {
        let mut command = Command::new(program("windlass")?);
        command.arg("mcp").current_dir(project).env("WINDLASS_STATE_DIR", project.join("state"));
        Self::start(command)
    }

    /// Starts a server that answers each call with the result in `answer`. With a store, it commits a note first.
    fn echo(answer: &str, store: Option<&Path>) -> Outcome<Self> {
        let answer: Value = serde_json::from_str(answer)?;
        let mut command = Command::new(program("echo")?);
        command.arg(answer["result"].to_string()).args(store);
        Self::start(command)
    }

    fn ask(&mut self, line: &str) -> Outcome<String> {
        self.input.write_all(format!("{line}\n").as_bytes())?;
        let mut answer = String::new();
        self.output.read_line(&mut answer)?;
        match answer.contains("\"error\":{") || answer.contains("\"isError\":true") || answer.is_empty() {
            true => Err(format!("{line} was answered with `{answer}`").into()),
            false => Ok(answer),
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
