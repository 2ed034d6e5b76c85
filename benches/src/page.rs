//! The web page: its first sight of a large project, the delay of an event, its memory, and what a run pays for being watched.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use windlass_engine::{Command as EngineCommand, TaskId, TaskPatch};
use windlass_store::{Lifetime, SqliteStore, Store};

use crate::commands::find_program;
use crate::floors::run_command;
use crate::loops::{SessionProject, expect_limit_exit};
use crate::memory::{self, MIB};
use crate::report::{BenchReport, SortedDurations, at_most, format_duration, ratio};
use crate::stores::{bench_origin, builtin_rules, create_task_command, fill_store};
use crate::{BenchResult, BenchScale};

/// The requests of a browser that opens the page.
const OPENING_REQUESTS: [&str; 5] = ["/", "/app.js", "/app.css", "/api/viewer", "/api/now"];
/// Further views, each for itself.
const VIEWS: [&str; 4] = ["/api/tasks", "/api/graph", "/api/log", "/api/cost"];
const OPENINGS: usize = 20;
/// The views of a task with one long session.
const LONG_SESSION_VIEWS: [&str; 4] = ["/api/now", "/api/tasks/T1", "/api/why/T1", "/api/cost"];
/// The turns of the long session, and the number of short ones after it.
const LONG_SESSION_TURNS: usize = 3_000;
const SHORT_SESSIONS: usize = 200;
/// An agent whose turns take as little time as possible.
const QUICK_AGENT: &str = "command:cat > /dev/null; echo step $$";
const MEASURED_EVENTS: usize = 100;
/// The events of a task of the large project; its creation has two.
const EVENTS_PER_TASK: u64 = 10;
const UPDATES_PER_TRANSACTION: u64 = 5_000;

const OPEN_PAGES: usize = 10;
const WATCHED_TURNS: usize = 40;
const WATCH_ROUNDS: usize = 5;
/// An agent whose turns take a tenth of a second. Real ones take longer.
const WATCHED_AGENT: &str = "command:cat > /dev/null; sleep 0.1; echo step $$";
/// A page asks for its view at most this often.
const RELOAD_INTERVAL: Duration = Duration::from_millis(150);

pub fn measure(scale: BenchScale, report: &mut BenchReport) -> BenchResult<()> {
    report.begin_section("The web page");
    measure_large_project(scale, report)?;
    measure_long_session(report)?;
    measure_watched_run(report)
}

/// A server of a project, which a drop ends.
struct ServedPage {
    child: Child,
    client: PageClient,
}

/// The address of a server, and the token for it.
#[derive(Clone)]
struct PageClient {
    host: String,
    token: String,
}

impl ServedPage {
    fn start(root: &Path) -> BenchResult<Self> {
        let windlass = find_program("windlass")?;
        let command = |words: &[&str]| {
            let mut command = Command::new(&windlass);
            command.args(words).current_dir(root).env("WINDLASS_STATE_DIR", root.join("state"));
            command
        };
        let mut child = command(&["--json", "serve"]).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut line)?;
        let (_, rest) = line.split_once("\"url\":\"http://").ok_or("the server printed no address")?;
        let host = rest.split('"').next().unwrap_or_default().to_owned();
        let invited = command(&["serve", "invite", "bench", "--may", "manage", "--token"]).output()?;
        let token = String::from_utf8(invited.stdout)?.trim().to_owned();
        Ok(Self { child, client: PageClient { host, token } })
    }

    fn read_memory(&self) -> BenchResult<f64> {
        Ok(memory::read_size(&self.child.id().to_string(), "VmRSS")? / MIB)
    }
}

impl PageClient {
    /// Sends a request, whose response ends with the connection.
    fn open(&self, path: &str) -> BenchResult<TcpStream> {
        let mut stream = TcpStream::connect(&self.host)?;
        let (host, token) = (&self.host, &self.token);
        write!(
            stream,
            "GET {path} HTTP/1.0\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nAccept-Encoding: gzip\r\n\r\n"
        )?;
        Ok(stream)
    }

    fn get(&self, path: &str) -> BenchResult<()> {
        let mut answer = Vec::new();
        self.open(path)?.read_to_end(&mut answer)?;
        let head = &answer[..answer.len().min(40)];
        match head.starts_with(b"HTTP/1.0 200") {
            true => Ok(()),
            false => Err(format!("{path}: {}", String::from_utf8_lossy(head)).into()),
        }
    }
}

impl Drop for ServedPage {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn measure_large_project(scale: BenchScale, report: &mut BenchReport) -> BenchResult<()> {
    let directory = tempfile::tempdir()?;
    let mut init = Command::new(find_program("windlass")?);
    init.arg("init").current_dir(directory.path()).env("WINDLASS_STATE_DIR", directory.path().join("state"));
    run_command(init)?;
    let tasks = scale.sizes[2] / 10;
    let mut store = SqliteStore::open(&directory.path().join(".windlass/windlass.db"), Lifetime::Service)?;
    fill_store(&mut store, tasks)?;
    add_updates(&mut store, tasks)?;
    let events = store.head()?.0;
    let page = ServedPage::start(directory.path())?;
    let opening =
        SortedDurations::measure(OPENINGS, |_| OPENING_REQUESTS.iter().try_for_each(|path| page.client.get(path)))?;
    report.add_figure(
        &format!("the page opens, with {tasks} tasks and {events} events"),
        opening.format_percentiles(),
        opening.p99().as_secs_f64() * 1e3,
        at_most(300.0, " ms"),
    );
    for path in VIEWS {
        let times = SortedDurations::measure(OPENINGS, |_| page.client.get(path))?;
        report.add_fact(&format!("`{path}` there"), times.format_percentiles());
    }
    let delays = measure_event_delays(&page.client, &mut store)?;
    report.add_figure(
        "from the commit of an event to the page",
        delays.format_percentiles(),
        delays.p99().as_secs_f64() * 1e3,
        at_most(100.0, " ms"),
    );
    let memory = page.read_memory()?;
    report.add_figure("resident memory of the server", format!("{memory:.1} MiB"), memory, at_most(40.0, " MiB"));
    Ok(())
}

/// Measures the views of a project with a long session, and short ones after it.
fn measure_long_session(report: &mut BenchReport) -> BenchResult<()> {
    let directory = tempfile::tempdir()?;
    let project = SessionProject::new(directory.path(), "history", "")?;
    let mut init = Command::new(find_program("windlass")?);
    init.arg("init").current_dir(&project.root).env("WINDLASS_STATE_DIR", project.root.join("state"));
    run_command(init)?;
    expect_limit_exit(project.start_session_with(LONG_SESSION_TURNS, QUICK_AGENT)?)?;
    for _ in 0..SHORT_SESSIONS {
        expect_limit_exit(project.start_session_with(1, QUICK_AGENT)?)?;
    }
    let page = ServedPage::start(&project.root)?;
    for path in LONG_SESSION_VIEWS {
        let times = SortedDurations::measure(OPENINGS, |_| page.client.get(path))?;
        report.add_figure(
            &format!("`{path}` after a session of {LONG_SESSION_TURNS} turns and {SHORT_SESSIONS} short ones"),
            times.format_percentiles(),
            times.p99().as_secs_f64() * 1e3,
            at_most(300.0, " ms"),
        );
    }
    let memory = page.read_memory()?;
    report.add_figure("resident memory of the server there", format!("{memory:.1} MiB"), memory, at_most(40.0, " MiB"));
    Ok(())
}

/// Adds updates until each task has its events.
fn add_updates(store: &mut SqliteStore, tasks: u64) -> BenchResult<()> {
    let (rules, origin) = (builtin_rules(), bench_origin());
    let updates = tasks * (EVENTS_PER_TASK - 2);
    let mut made = 0;
    while made < updates {
        let batch = (updates - made).min(UPDATES_PER_TRANSACTION);
        store.run_transaction(|transaction| {
            for number in made..made + batch {
                let patch = TaskPatch { goal: Some(format!("goal number {number}")), ..TaskPatch::default() };
                let command = EngineCommand::UpdateTask { id: TaskId(number % tasks + 1), patch };
                transaction.execute_command(&rules, &origin, &command, u128::from(number)).expect("a plain update");
            }
            Ok(())
        })?;
        made += batch;
    }
    Ok(())
}

fn measure_event_delays(page: &PageClient, store: &mut SqliteStore) -> BenchResult<SortedDurations> {
    let mut events = BufReader::new(page.open("/api/events")?);
    let mut line = String::new();
    while !line.starts_with("event: ready") {
        line.clear();
        events.read_line(&mut line)?;
    }
    let (rules, origin) = (builtin_rules(), bench_origin());
    let mut delays = Vec::new();
    for number in 0..MEASURED_EVENTS {
        store.execute_command(&rules, &origin, &create_task_command("a watched one"), number as u128)?;
        let (began, last) = (Instant::now(), format!("id: {}", store.head()?));
        while line.trim_end() != last {
            line.clear();
            events.read_line(&mut line)?;
        }
        delays.push(began.elapsed());
    }
    Ok(SortedDurations::from_unsorted(delays))
}

/// Compares runs that ten pages watch with runs that none watches. They take turns.
fn measure_watched_run(report: &mut BenchReport) -> BenchResult<()> {
    let directory = tempfile::tempdir()?;
    let mut times = [const { Vec::new() }; 2];
    for round in 0..WATCH_ROUNDS {
        for (pages, times) in [0, OPEN_PAGES].into_iter().zip(&mut times) {
            times.push(time_watched_run(directory.path(), &format!("run-{round}-{pages}"), pages)?);
        }
    }
    let [alone, watched] = times.map(|times| SortedDurations::from_unsorted(times).p50());
    let value = ratio(watched, alone);
    report.add_figure(
        &format!("a run with {OPEN_PAGES} open pages, turns of 0.1 s"),
        format!("{} = {value:.3} × {}", format_duration(watched), format_duration(alone)),
        value,
        at_most(1.05, " × the run alone"),
    );
    Ok(())
}

fn time_watched_run(directory: &Path, name: &str, pages: usize) -> BenchResult<Duration> {
    let project = SessionProject::new(directory, name, "")?;
    let mut init = Command::new(find_program("windlass")?);
    init.arg("init").current_dir(&project.root).env("WINDLASS_STATE_DIR", project.root.join("state"));
    run_command(init)?;
    let served = if pages == 0 { None } else { Some(ServedPage::start(&project.root)?) };
    let is_over = Arc::new(AtomicBool::new(false));
    for page in served.iter().flat_map(|served| vec![served.client.clone(); pages]) {
        let is_over = is_over.clone();
        let events = BufReader::new(page.open("/api/events")?);
        thread::spawn(move || watch_events(&page, events, &is_over));
    }
    let began = Instant::now();
    expect_limit_exit(project.start_session_with(WATCHED_TURNS, WATCHED_AGENT)?)?;
    let took = began.elapsed();
    is_over.store(true, Ordering::Relaxed);
    Ok(took)
}

/// Does what a page does: reads events, and asks for its view when there are new ones.
fn watch_events(page: &PageClient, mut events: BufReader<TcpStream>, is_over: &AtomicBool) {
    let (mut line, mut loaded) = (String::new(), Instant::now());
    while !is_over.load(Ordering::Relaxed) && events.read_line(&mut line).is_ok_and(|length| length > 0) {
        if line.starts_with("event: log") && loaded.elapsed() >= RELOAD_INTERVAL {
            loaded = Instant::now();
            let _ = page.get("/api/now");
        }
        line.clear();
    }
}
