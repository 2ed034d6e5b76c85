//! The store in a long-lived process.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use windlass_engine::{
    Authority, Command, CommandOrigin, CommitId, EngineRules, Event, EventEnvelope, EventMetadata, EventSubject,
    HookRegistry, NewTask, TaskId, Timestamp, payload,
};
use windlass_store::{Lifetime, SqliteStore, Store, StoreCommit};

use crate::floors::{self, BaselineTimes};
use crate::report::{BenchReport, SortedDurations, at_least, at_most, format_duration, ratio};
use crate::{BenchResult, BenchScale};

pub fn builtin_rules() -> EngineRules {
    EngineRules { registry: HookRegistry::with_builtins(), ..EngineRules::default() }
}

pub fn bench_origin() -> CommandOrigin {
    let at = Timestamp::from_millis(1_750_000_000_000);
    CommandOrigin { by: "bench".to_owned(), at, authority: Authority::Person, run: None, via: None }
}

pub fn create_task_command(goal: &str) -> Command {
    Command::CreateTask(NewTask { goal: goal.to_owned(), ..NewTask::default() })
}

pub fn complete_task_command(id: u64) -> Command {
    Command::CompleteTask { id: TaskId(id), result: None, artifacts: vec![] }
}

/// Fills a store with ready tasks, many in each transaction.
pub fn fill_store(store: &mut SqliteStore, tasks: u64) -> BenchResult<()> {
    let (rules, origin) = (builtin_rules(), bench_origin());
    let mut made = 0;
    while made < tasks {
        let batch = (tasks - made).min(5_000);
        store.run_transaction(|transaction| {
            for number in 0..batch {
                let command = create_task_command(&format!("task number {}", made + number));
                transaction
                    .execute_command(&rules, &origin, &command, u128::from(made + number))
                    .expect("a plain task");
            }
            Ok(())
        })?;
        made += batch;
    }
    Ok(())
}

pub fn measure(scale: BenchScale, _floors: &BaselineTimes, report: &mut BenchReport) -> BenchResult<()> {
    report.begin_section("The store in one process");
    let directory = tempfile::tempdir()?;
    measure_one_event(scale, directory.path(), report)?;
    measure_builtins(scale, directory.path(), report)?;
    measure_batches(scale, directory.path(), report)?;
    measure_task_choice(scale, directory.path(), report)
}

/// Measures one durable event with its rows, compared with the disk, by turns.
fn measure_one_event(scale: BenchScale, directory: &Path, report: &mut BenchReport) -> BenchResult<()> {
    let floor = floors::measure_event_write(scale)?.p50();
    let times = measure_starts(scale, &directory.join("one.db"))?;
    let value = ratio(times.p50(), floor);
    let measured = format!("{} = {value:.2} × (p99 {})", format_duration(times.p50()), format_duration(times.p99()));
    report.add_figure(
        "an event and its rows, durable (`start`)",
        measured,
        value,
        at_most(1.8, " × write + `fdatasync`"),
    );
    Ok(())
}

/// Measures starting tasks in a new store, one commit each.
pub fn measure_starts(scale: BenchScale, path: &Path) -> BenchResult<SortedDurations> {
    let mut store = SqliteStore::create(path, Lifetime::Service)?;
    fill_store(&mut store, 2 * scale.repetitions as u64 + 10)?;
    let (rules, origin) = (builtin_rules(), bench_origin());
    let mut start = |turn: usize| {
        let command = Command::StartTask { id: TaskId(turn as u64 + 1), context: Default::default() };
        store.execute_command(&rules, &origin, &command, turn as u128).map(drop)
    };
    SortedDurations::measure(scale.repetitions, &mut start)?;
    Ok(SortedDurations::measure(scale.repetitions, |turn| start(scale.repetitions + turn))?)
}

/// Measures the time that the default built-ins add to completing a task with one dependent.
fn measure_builtins(scale: BenchScale, directory: &Path, report: &mut BenchReport) -> BenchResult<()> {
    for size in [10, scale.sizes[2]] {
        let mut store = SqliteStore::create(&directory.join(format!("built-ins-{size}.db")), Lifetime::Service)?;
        fill_store(&mut store, size)?;
        let [with, without] = measure_completions(scale, &mut store, [&builtin_rules(), &EngineRules::default()])?;
        let added = with.saturating_sub(without).as_secs_f64() * 1e6;
        let measured = format!("{added:.1} µs ({} with, {} without)", format_duration(with), format_duration(without));
        let what = format!("what the default built-ins add to `complete`, beyond the sync, at {size} tasks");
        report.add_figure(&what, measured, added, at_most(50.0, " µs"));
    }
    Ok(())
}

/// Completes tasks with one dependent each, under two rule sets by turns, all in one transaction: the disk's time would hide the
/// difference.
fn measure_completions(
    scale: BenchScale,
    store: &mut SqliteStore,
    rule_sets: [&EngineRules; 2],
) -> BenchResult<[Duration; 2]> {
    let (rules, origin) = (builtin_rules(), bench_origin());
    let mut times = [Vec::new(), Vec::new()];
    store.run_transaction(|transaction| {
        let mut execute = |rules: &EngineRules, command: &Command| {
            let records = transaction.execute_command(rules, &origin, command, 0).expect("a plain command");
            records.first().and_then(|record| record.envelope.node.task_id()).expect("it is about a task")
        };
        for turn in 0..2 * scale.repetitions {
            let first = execute(&rules, &create_task_command("first"));
            let second = NewTask { goal: "second".to_owned(), depends_on: vec![first], ..NewTask::default() };
            execute(&rules, &Command::CreateTask(second));
            let began = Instant::now();
            execute(rule_sets[turn % 2], &complete_task_command(first.0));
            times[turn % 2].push(began.elapsed());
        }
        Ok(())
    })?;
    Ok(times.map(|times| SortedDurations::from_unsorted(times).p50()))
}

/// Measures events that change no row, a hundred in each commit.
fn measure_batches(scale: BenchScale, directory: &Path, report: &mut BenchReport) -> BenchResult<()> {
    let mut store = SqliteStore::create(&directory.join("batch.db"), Lifetime::Service)?;
    fill_store(&mut store, 1)?;
    let event = EventEnvelope {
        timestamp: bench_origin().at,
        node: EventSubject::Task(TaskId(1)),
        session: None,
        iteration: None,
        event: Event::AutoLabelSuggestion(payload::AutoLabelSuggestion {
            labels: vec!["bug".to_owned()],
            keywords: vec!["fix".to_owned()],
        }),
        metadata: EventMetadata {
            triggered_by: "bench".to_owned(),
            cause: None,
            depth: 0,
            via: None,
            forced: false,
            owes: None,
        },
    };
    let id = CommitId { after: store.head()?, nonce: 0 };
    let mut commit = StoreCommit { id, reads: BTreeMap::new(), events: vec![event; 100] };
    let times = SortedDurations::measure(scale.repetitions, |turn| {
        commit.id = CommitId { after: store.head()?, nonce: turn as u128 };
        store.append_commit(&commit).map(drop)
    })?;
    let rate = 100.0 / times.p50().as_secs_f64();
    let plain = 100.0 / measure_plain_batches(scale, directory)?.p50().as_secs_f64();
    let what = "plain SQLite, 100 rows as long in one commit";
    report.add_fact(what, format!("{plain:.0} rows/s; ours is {:.2} of that", rate / plain));
    report.add_figure(
        "a batch of 100 events, one commit",
        format!("{rate:.0} events/s"),
        rate,
        at_least(300_000.0, " events/s"),
    );
    let created = SortedDurations::measure(scale.repetitions / 4, |_| fill_store(&mut store, 100))?;
    let rate = 200.0 / created.p50().as_secs_f64();
    report.add_fact("a batch of 100 new tasks, each decided (200 events)", format!("{rate:.0} events/s"));
    Ok(())
}

/// Measures the floor of a batch: only the rows of the log, without digests, decisions and projections.
fn measure_plain_batches(scale: BenchScale, directory: &Path) -> BenchResult<SortedDurations> {
    let connection = rusqlite::Connection::open(directory.join("plain.db"))?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.execute_batch("CREATE TABLE events (seq INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT")?;
    let body = [b'x'; 330];
    Ok(SortedDurations::measure(scale.repetitions, |_| {
        connection.execute_batch("BEGIN IMMEDIATE")?;
        let mut insert = connection.prepare_cached("INSERT INTO events (body) VALUES (?)")?;
        for _ in 0..100 {
            insert.execute([&body[..]])?;
        }
        connection.execute_batch("COMMIT")
    })?)
}

/// Measures finding a ready task and claiming it, in graphs of three sizes.
fn measure_task_choice(scale: BenchScale, directory: &Path, report: &mut BenchReport) -> BenchResult<()> {
    let mut times = [Vec::new(), Vec::new()];
    for size in scale.sizes {
        let path = directory.join(format!("choosing-{size}.db"));
        let mut store = SqliteStore::create(&path, Lifetime::Service)?;
        fill_store(&mut store, size.max(scale.repetitions as u64))?;
        times[0]
            .push(SortedDurations::measure(scale.repetitions, |_| store.begin_snapshot()?.ready_tasks(1).map(drop))?);
        let (rules, origin) = (builtin_rules(), bench_origin());
        let claim =
            Command::ClaimTask { id: None, owner: "bench".parse()?, until: origin.at.add_millis(60_000), agent: None };
        // In one transaction, because the disk's time would hide the difference.
        times[1].push(store.run_transaction(|transaction| {
            Ok(SortedDurations::measure(scale.repetitions, |turn| {
                transaction.execute_command(&rules, &origin, &claim, turn as u128).map(drop)
            }))
        })??);
    }
    for (what, times) in ["what is ready next, looked up", "claiming it, beyond the sync"].into_iter().zip(times) {
        let medians: Vec<Duration> = times.iter().map(SortedDurations::p50).collect();
        let spread = ratio(*medians.iter().max().expect("three sizes"), *medians.iter().min().expect("three sizes"));
        let all: Vec<String> = times.iter().map(SortedDurations::format_percentiles).collect();
        let what = format!("{what}, at {:?} tasks, flat within", scale.sizes);
        report.add_figure(&what, format!("{} = {spread:.2} ×", all.join(", ")), spread, at_most(1.5, " ×"));
    }
    Ok(())
}

/// Returns the used bytes of a store, in its file and in its write-ahead log, without free pages.
pub fn read_used_bytes(path: &Path) -> BenchResult<u64> {
    let connection = rusqlite::Connection::open(path)?;
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let used = number("page_count")? - number("freelist_count")?;
    Ok((used * number("page_size")?).unsigned_abs())
}
