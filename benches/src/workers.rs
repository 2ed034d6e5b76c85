//! Workers on thousands of empty tasks: they share only the log.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use windlass_engine::{Event, EventSubject, TaskId, Timestamp, decode_event};
use windlass_store::{Lifetime, SqliteStore};

use crate::commands::find_program;
use crate::delivery::BenchRepository;
use crate::memory::{self, MIB};
use crate::report::{BenchReport, SortedDurations, at_most, format_duration, ratio};
use crate::stores::{self, fill_store};
use crate::{BenchResult, BenchScale};

const TASK_COUNT: usize = 4_000;
const WORKER_CONFIG: &str = "version: 1\nworktrees: false\n";
/// An agent that reports completion, and appends two bytes to a file.
const WORKER_AGENT: &str = "command:echo . >>calls; echo '<promise>COMPLETE</promise>'";

pub fn measure(scale: BenchScale, report: &mut BenchReport) -> BenchResult<()> {
    report.begin_section("Workers on tasks of nothing");
    let directory = tempfile::tempdir()?;
    for (workers, who) in [("1", "one worker"), ("8", "8 workers")] {
        let repository = BenchRepository::new(directory.path(), workers, WORKER_CONFIG)?;
        let load = WorkerLoad::measure(&repository, workers, TASK_COUNT.min(scale.iterations * 2 / 5))?;
        let rate = load.tasks as f64 / load.took.as_secs_f64();
        let measured =
            format!("{rate:.0} tasks/s, each worked on once; from claim to end {}", load.times.format_percentiles());
        report.add_fact(&format!("{who} on {} tasks", load.tasks), measured);
        let [first, last] = load.tenths;
        let value = ratio(last, first);
        let measured = format!("{} = {value:.2} × {}", format_duration(last), format_duration(first));
        report.add_figure(
            "how long the last tenth of them took against the first",
            measured,
            value,
            at_most(1.2, " ×"),
        );
        let [early, late] = load.sizes;
        let measured = format!("{late:.1} MiB = {:.2} × {early:.1} MiB after a tenth", late / early);
        report.add_figure("anonymous memory of `windlass run` after them", measured, late / early, at_most(1.2, " ×"));
        report.add_fact("what a task adds to the store", format!("{:.0} bytes", load.grown));
    }
    Ok(())
}

/// The measurements of a run over many tasks.
struct WorkerLoad {
    tasks: usize,
    took: Duration,
    /// From claim to completion, task by task.
    times: SortedDurations,
    /// Time of the first tenth and of the last.
    tenths: [Duration; 2],
    /// Anonymous memory after a tenth, and near the end.
    sizes: [f64; 2],
    /// Bytes that each task adds to the store.
    grown: f64,
}

impl WorkerLoad {
    fn measure(repository: &BenchRepository, workers: &str, tasks: usize) -> BenchResult<Self> {
        let file = repository.root.join(".windlass/windlass.db");
        repository.run_windlass(&["task", "add", "Do it"])?;
        fill_store(&mut SqliteStore::open(&file, Lifetime::Service)?, tasks as u64 - 1)?;
        let before = stores::read_used_bytes(&file)?;
        let began = Instant::now();
        let words = ["run", "--trust", "--workers", workers, "--agent", WORKER_AGENT];
        let mut child = repository.build_command(find_program("windlass")?, &words).spawn()?;
        let sizes = watch_memory(&mut child, &repository.root.join("calls"), tasks)?;
        let status = child.wait()?;
        let took = began.elapsed();
        if !status.success() {
            return Err(format!("the workers ended with {status}").into());
        }
        let (times, ends) = read_completions(&file)?;
        if times.len() != tasks {
            return Err(format!("{} of {tasks} tasks were completed", times.len()).into());
        }
        let tenth = tasks / 10;
        let tenths = [ends[tenth] - ends[0], ends[tasks - 1] - ends[tasks - 1 - tenth]];
        let grown = stores::read_used_bytes(&file)?.saturating_sub(before) as f64 / tasks as f64;
        let tenths = tenths.map(|millis| Duration::from_millis(millis.max(1).unsigned_abs()));
        Ok(Self { tasks, took, times: SortedDurations::from_unsorted(times), tenths, sizes, grown })
    }
}

/// Returns the memory of the run after a tenth of the calls, and near the end.
fn watch_memory(child: &mut Child, calls: &Path, tasks: usize) -> BenchResult<[f64; 2]> {
    let mut sizes = [0.0; 2];
    for (size, mark) in sizes.iter_mut().zip([tasks / 10, tasks * 98 / 100]) {
        while calls.metadata().map_or(0, |calls| calls.len()) < 2 * mark as u64 {
            if let Some(status) = child.try_wait()? {
                return Err(format!("the workers ended early, with {status}").into());
            }
            thread::sleep(Duration::from_millis(5));
        }
        *size = memory::read_size(&child.id().to_string(), "RssAnon")? / MIB;
    }
    Ok(sizes)
}

/// Returns the time of each task, and the end of each in milliseconds. A task that two workers claimed is an error.
fn read_completions(file: &Path) -> BenchResult<(Vec<Duration>, Vec<i64>)> {
    let log = rusqlite::Connection::open(file)?;
    let mut query =
        log.prepare("SELECT body FROM events WHERE type IN ('task_claimed', 'task_completed') ORDER BY seq")?;
    let mut rows = query.query([])?;
    let mut claimed: BTreeMap<TaskId, Timestamp> = BTreeMap::new();
    let (mut times, mut ends) = (Vec::new(), Vec::new());
    while let Some(row) = rows.next()? {
        let record = decode_event(row.get_ref(0)?.as_blob()?)?;
        let (EventSubject::Task(id), at) = (record.node, record.timestamp) else { continue };
        match record.event {
            Event::TaskClaimed(_) if claimed.insert(id, at).is_some() => return Err(format!("{id} twice").into()),
            Event::TaskCompleted(_) => {
                let began = claimed.get(&id).ok_or_else(|| format!("{id} has no claim"))?;
                times.push(Duration::from_millis((at.millis() - began.millis()).max(0).unsigned_abs()));
                ends.push(at.millis());
            }
            _ => {}
        }
    }
    Ok((times, ends))
}
