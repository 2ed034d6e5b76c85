//! The store in a long-lived process.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use windlass_engine::{
    Authority, Command, CommandOrigin, CommitId, EngineRules, Event, EventEnvelope, EventMetadata, EventSubject,
    HookRegistry, NewTask, TaskId, Timestamp, payload,
};
use windlass_store::{Lifetime, SqliteStore, Store, StoreCommit};

use crate::floors::{self, Floors};
use crate::report::{Report, Times, at_least, at_most, ratio, shown};
use crate::{Effort, Outcome};

pub fn rules() -> EngineRules {
    EngineRules { registry: HookRegistry::with_builtins(), ..EngineRules::default() }
}

pub fn origin() -> CommandOrigin {
    let at = Timestamp::from_millis(1_800_000_000_000);
    CommandOrigin { by: "bench".to_owned(), at, authority: Authority::Person, run: None, via: None }
}

pub fn create(goal: &str) -> Command {
    Command::CreateTask(NewTask { goal: goal.to_owned(), ..NewTask::default() })
}

pub fn complete(id: u64) -> Command {
    Command::CompleteTask { id: TaskId(id), result: None, artifacts: vec![] }
}

/// Fills a store with ready tasks, many in each transaction.
pub fn fill(store: &mut SqliteStore, tasks: u64) -> Outcome<()> {
    let (rules, origin) = (rules(), origin());
    let mut made = 0;
    while made < tasks {
        let batch = (tasks - made).min(5_000);
        store.run_transaction(|transaction| {
            for number in 0..batch {
                let command = create(&format!("task number {}", made + number));
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

pub fn measure(effort: Effort, _floors: &Floors, report: &mut Report) -> Outcome<()> {
    report.section("The store in one process");
    let directory = tempfile::tempdir()?;
    one_event(effort, directory.path(), report)?;
    builtins(effort, directory.path(), report)?;
    batches(effort, directory.path(), report)?;
    choosing(effort, directory.path(), report)
}

/// Measures one durable event with its rows, compared with the disk, by turns.
fn one_event(effort: Effort, directory: &Path, report: &mut Report) -> Outcome<()> {
    let floor = floors::event(effort)?.p50();
    let times = starts(effort, &directory.join("one.db"))?;
    let value = ratio(times.p50(), floor);
    let measured = format!("{} = {value:.2} × (p99 {})", shown(times.p50()), shown(times.p99()));
    report.figure("an event and its rows, durable (`start`)", measured, value, at_most(1.8, " × write + `fdatasync`"));
    Ok(())
}

/// Measures starting tasks in a new store, one commit each.
pub fn starts(effort: Effort, path: &Path) -> Outcome<Times> {
    let mut store = SqliteStore::create(path, Lifetime::Service)?;
    fill(&mut store, 2 * effort.many as u64 + 10)?;
    let (rules, origin) = (rules(), origin());
    let mut start = |turn: usize| {
        let command = Command::StartTask { id: TaskId(turn as u64 + 1), context: Default::default() };
        store.execute_command(&rules, &origin, &command, turn as u128).map(drop)
    };
    Times::of(effort.many, &mut start)?;
    Ok(Times::of(effort.many, |turn| start(effort.many + turn))?)
}

/// Measures the time that the default built-ins add to completing a task with one dependent.
fn builtins(effort: Effort, directory: &Path, report: &mut Report) -> Outcome<()> {
    for size in [10, effort.sizes[2]] {
        let mut store = SqliteStore::create(&directory.join(format!("built-ins-{size}.db")), Lifetime::Service)?;
        fill(&mut store, size)?;
        let [with, without] = completions(effort, &mut store, [&rules(), &EngineRules::default()])?;
        let added = with.saturating_sub(without).as_secs_f64() * 1e6;
        let measured = format!("{added:.1} µs ({} with, {} without)", shown(with), shown(without));
        let what = format!("what the default built-ins add to `complete`, beyond the sync, at {size} tasks");
        report.figure(&what, measured, added, at_most(50.0, " µs"));
    }
    Ok(())
}

/// Completes tasks with one dependent each, under two rule sets by turns, all in one transaction: the disk's time would hide the
/// difference.
fn completions(effort: Effort, store: &mut SqliteStore, ways: [&EngineRules; 2]) -> Outcome<[Duration; 2]> {
    let (rules, origin) = (rules(), origin());
    let mut times = [Vec::new(), Vec::new()];
    store.run_transaction(|transaction| {
        let mut give = |rules: &EngineRules, command: &Command| {
            let records = transaction.execute_command(rules, &origin, command, 0).expect("a plain command");
            records.first().and_then(|record| record.envelope.node.task_id()).expect("it is about a task")
        };
        for turn in 0..2 * effort.many {
            let first = give(&rules, &create("first"));
            let second = NewTask { goal: "second".to_owned(), depends_on: vec![first], ..NewTask::default() };
            give(&rules, &Command::CreateTask(second));
            let began = Instant::now();
            give(ways[turn % 2], &complete(first.0));
            times[turn % 2].push(began.elapsed());
        }
        Ok(())
    })?;
    Ok(times.map(|times| Times::from(times).p50()))
}

/// Measures events that change no row, a hundred in each commit.
fn batches(effort: Effort, directory: &Path, report: &mut Report) -> Outcome<()> {
    let mut store = SqliteStore::create(&directory.join("batch.db"), Lifetime::Service)?;
    fill(&mut store, 1)?;
    let event = EventEnvelope {
        timestamp: origin().at,
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
    let times = Times::of(effort.many, |turn| {
        commit.id = CommitId { after: store.head()?, nonce: turn as u128 };
        store.append_commit(&commit).map(drop)
    })?;
    let rate = 100.0 / times.p50().as_secs_f64();
    let plain = 100.0 / plain_batches(effort, directory)?.p50().as_secs_f64();
    let what = "plain SQLite, 100 rows as long in one commit";
    report.fact(what, format!("{plain:.0} rows/s; ours is {:.2} of that", rate / plain));
    report.figure(
        "a batch of 100 events, one commit",
        format!("{rate:.0} events/s"),
        rate,
        at_least(300_000.0, " events/s"),
    );
    let created = Times::of(effort.many / 4, |_| fill(&mut store, 100))?;
    let rate = 200.0 / created.p50().as_secs_f64();
    report.fact("a batch of 100 new tasks, each decided (200 events)", format!("{rate:.0} events/s"));
    Ok(())
}

/// Measures the floor of a batch: only the rows of the log, without digests, decisions and projections.
fn plain_batches(effort: Effort, directory: &Path) -> Outcome<Times> {
    let connection = rusqlite::Connection::open(directory.join("plain.db"))?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.execute_batch("CREATE TABLE events (seq INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT")?;
    let body = [b'x'; 330];
    Ok(Times::of(effort.many, |_| {
        connection.execute_batch("BEGIN IMMEDIATE")?;
        let mut insert = connection.prepare_cached("INSERT INTO events (body) VALUES (?)")?;
        for _ in 0..100 {
            insert.execute([&body[..]])?;
        }
        connection.execute_batch("COMMIT")
    })?)
}

/// Measures finding a ready task and claiming it, in graphs of three sizes.
fn choosing(effort: Effort, directory: &Path, report: &mut Report) -> Outcome<()> {
    let mut times = [Vec::new(), Vec::new()];
    for size in effort.sizes {
        let path = directory.join(format!("choosing-{size}.db"));
        let mut store = SqliteStore::create(&path, Lifetime::Service)?;
        fill(&mut store, size.max(effort.many as u64))?;
        times[0].push(Times::of(effort.many, |_| store.begin_snapshot()?.ready_tasks(1).map(drop))?);
        let (rules, origin) = (rules(), origin());
        let claim =
            Command::ClaimTask { id: None, owner: "bench".parse()?, until: origin.at.add_millis(60_000), agent: None };
        // In one transaction, because the disk's time would hide the difference.
        times[1].push(store.run_transaction(|transaction| {
            Ok(Times::of(effort.many, |turn| {
                transaction.execute_command(&rules, &origin, &claim, turn as u128).map(drop)
            }))
        })??);
    }
    for (what, times) in ["what is ready next, looked up", "claiming it, beyond the sync"].into_iter().zip(times) {
        let medians: Vec<Duration> = times.iter().map(Times::p50).collect();
        let spread = ratio(*medians.iter().max().expect("three sizes"), *medians.iter().min().expect("three sizes"));
        let all: Vec<String> = times.iter().map(Times::shown).collect();
        let what = format!("{what}, at {:?} tasks, flat within", effort.sizes);
        report.figure(&what, format!("{} = {spread:.2} ×", all.join(", ")), spread, at_most(1.5, " ×"));
    }
    Ok(())
}

/// Returns the used bytes of a store, in its file and in its write-ahead log, without free pages.
pub fn size(path: &Path) -> Outcome<u64> {
    let connection = rusqlite::Connection::open(path)?;
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let used = number("page_count")? - number("freelist_count")?;
    Ok((used * number("page_size")?).unsigned_abs())
}
