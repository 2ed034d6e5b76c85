//! A long log: opening it, reading it, rebuilding the rows from it.

use std::path::Path;
use std::time::{Duration, Instant};

use windlass_engine::{Seq, decode_event};
use windlass_store::{EventFilter, Lifetime, SqliteStore, Store};

use crate::memory::{self, MIB};
use crate::report::{Report, Times, at_most, ratio, shown};
use crate::stores::{self, fill};
use crate::{Effort, Outcome};

pub fn measure(effort: Effort, report: &mut Report) -> Outcome<()> {
    report.section("A long log");
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("long.db");
    let events = effort.sizes[2];
    let mut store = SqliteStore::create(&path, Lifetime::Service)?;
    fill(&mut store, events / 2)?;
    let count = store.head()?.0;
    drop(store);

    let opened = opening(&path)?;
    let what = format!("opening a log of {count} events");
    report.figure(&what, opened.shown(), millis(opened.p50()), at_most(50.0, " ms"));
    let grown = memory::growth(|| opening(&path).map(drop))?;
    report.fact("how far memory grew for that", format!("{:.1} MiB", grown / MIB));
    let size = stores::size(&path)? as f64;
    let measured = format!("{:.0} MB, {:.0} bytes an event", size / 1e6, size / count as f64);
    report.fact("the store with that log, its rows and indexes", measured);
    let killed = killed(directory.path(), &path)?;
    let measured = format!("{} (write-ahead log of {:.1} MB)", shown(killed.0), killed.1 as f64 / 1e6);
    report.figure("the same as it is left by `kill -9`", measured, millis(killed.0), at_most(50.0, " ms"));

    let mut store = SqliteStore::open(&path, Lifetime::Service)?;
    let read = Times::of(3, |_| reading(&path))?.p50();
    let verified = Times::of(3, |_| verified(&store))?.p50();
    let rebuilt = Times::of(3, |_| store.rebuild_rows())?.p50();
    report.fact("decoding every event, digests not looked at", shown(read));
    report.fact("reading every event as the store does: digest and chain verified", shown(verified));
    let value = ratio(rebuilt, verified);
    let measured = format!("{} = {value:.2} ×", shown(rebuilt));
    report.figure("rebuilding every row from the log", measured, value, at_most(2.0, " × reading it"));
    rusqlite::Connection::open(&path)?.execute_batch("DELETE FROM tasks")?;
    let empty = Times::of(1, |_| store.rebuild_rows())?.p50();
    let what = "the same where every row is gone, and has to be written to the write-ahead log and then to the file";
    report.fact(what, format!("{} = {:.2} ×", shown(empty), ratio(empty, verified)));
    Ok(())
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Measures opening the store, and the first answer.
fn opening(path: &Path) -> Outcome<Times> {
    Ok(Times::of(101, |_| SqliteStore::open(path, Lifetime::Command)?.begin_snapshot()?.ready_tasks(1).map(drop))?)
}

/// Measures opening a copy of a store whose process was killed: the file, with a write-ahead log that has no checkpoint.
fn killed(directory: &Path, path: &Path) -> Outcome<(Duration, u64)> {
    let mut store = SqliteStore::open(path, Lifetime::Service)?;
    // A long read transaction prevents a checkpoint.
    let reader = rusqlite::Connection::open(path)?;
    reader.execute_batch("BEGIN; SELECT count(*) FROM tasks WHERE id < 2")?;
    let log = path.with_extension("db-wal");
    while log.metadata()?.len() < 15 << 20 {
        fill(&mut store, 500)?;
    }
    let copy = directory.join("killed.db");
    let mut times = Vec::new();
    for _ in 0..5 {
        std::fs::copy(path, &copy)?;
        std::fs::copy(&log, copy.with_extension("db-wal"))?;
        let _ = std::fs::remove_file(copy.with_extension("db-shm"));
        let began = Instant::now();
        SqliteStore::open(&copy, Lifetime::Command)?.begin_snapshot()?.ready_tasks(1)?;
        times.push(began.elapsed());
    }
    Ok((Times::from(times).p50(), log.metadata()?.len()))
}

/// Reads every event in the simplest way: one statement, one decoding each.
fn reading(path: &Path) -> Outcome<()> {
    let connection = rusqlite::Connection::open(path)?;
    let mut query = connection.prepare("SELECT body FROM events ORDER BY seq")?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        std::hint::black_box(decode_event(row.get_ref(0)?.as_blob()?)?);
    }
    Ok(())
}

fn verified(store: &SqliteStore) -> Outcome<()> {
    let mut after = Seq::START;
    loop {
        let page = store.read_events(&EventFilter::default(), after, 4_096)?;
        let Some(last) = page.last() else { break };
        after = last.seq;
    }
    Ok(())
}
