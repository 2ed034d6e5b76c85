//! A long log: opening it, reading it, rebuilding the rows from it.

use std::path::Path;
use std::time::{Duration, Instant};

use windlass_engine::{Seq, decode_event};
use windlass_store::{EventFilter, Lifetime, SqliteStore, Store};

use crate::memory::{self, MIB};
use crate::report::{BenchReport, SortedDurations, at_most, format_duration, ratio};
use crate::stores::{self, fill_store};
use crate::{BenchResult, BenchScale};

pub fn measure(scale: BenchScale, report: &mut BenchReport) -> BenchResult<()> {
    report.begin_section("A long log");
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("long.db");
    let events = scale.sizes[2];
    let mut store = SqliteStore::create(&path, Lifetime::Service)?;
    fill_store(&mut store, events / 2)?;
    let count = store.head()?.0;
    drop(store);

    let opened = measure_opening(&path)?;
    let what = format!("opening a log of {count} events");
    report.add_figure(&what, opened.format_percentiles(), to_milliseconds(opened.p50()), at_most(50.0, " ms"));
    let grown = memory::measure_growth(|| measure_opening(&path).map(drop))?;
    report.add_fact("how far memory grew for that", format!("{:.1} MiB", grown / MIB));
    let size = stores::read_used_bytes(&path)? as f64;
    let measured = format!("{:.0} MB, {:.0} bytes an event", size / 1e6, size / count as f64);
    report.add_fact("the store with that log, its rows and indexes", measured);
    let killed = measure_opening_after_kill(directory.path(), &path)?;
    let measured = format!("{} (write-ahead log of {:.1} MB)", format_duration(killed.0), killed.1 as f64 / 1e6);
    report.add_figure("the same as it is left by `kill -9`", measured, to_milliseconds(killed.0), at_most(50.0, " ms"));

    let mut store = SqliteStore::open(&path, Lifetime::Service)?;
    let read = SortedDurations::measure(3, |_| read_every_event(&path))?.p50();
    let verified = SortedDurations::measure(3, |_| verify_every_event(&store))?.p50();
    let rebuilt = SortedDurations::measure(3, |_| store.rebuild_rows())?.p50();
    report.add_fact("decoding every event, digests not looked at", format_duration(read));
    report.add_fact("reading every event as the store does: digest and chain verified", format_duration(verified));
    let value = ratio(rebuilt, verified);
    let measured = format!("{} = {value:.2} ×", format_duration(rebuilt));
    report.add_figure("rebuilding every row from the log", measured, value, at_most(2.0, " × reading it"));
    rusqlite::Connection::open(&path)?.execute_batch("DELETE FROM tasks")?;
    let empty = SortedDurations::measure(1, |_| store.rebuild_rows())?.p50();
    let what = "the same where every row is gone, and has to be written to the write-ahead log and then to the file";
    report.add_fact(what, format!("{} = {:.2} ×", format_duration(empty), ratio(empty, verified)));
    Ok(())
}

fn to_milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Measures opening the store, and the first answer.
fn measure_opening(path: &Path) -> BenchResult<SortedDurations> {
    Ok(SortedDurations::measure(101, |_| {
        SqliteStore::open(path, Lifetime::Command)?.begin_snapshot()?.ready_tasks(1).map(drop)
    })?)
}

/// Measures opening a copy of a store whose process was killed: the file, with a write-ahead log that has no checkpoint.
fn measure_opening_after_kill(directory: &Path, path: &Path) -> BenchResult<(Duration, u64)> {
    let mut store = SqliteStore::open(path, Lifetime::Service)?;
    // A long read transaction prevents a checkpoint.
    let reader = rusqlite::Connection::open(path)?;
    reader.execute_batch("BEGIN; SELECT count(*) FROM tasks WHERE id < 2")?;
    let log = path.with_extension("db-wal");
    while log.metadata()?.len() < 15 << 20 {
        fill_store(&mut store, 500)?;
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
    Ok((SortedDurations::from_unsorted(times).p50(), log.metadata()?.len()))
}

/// Reads every event in the simplest way: one statement, one decoding each.
fn read_every_event(path: &Path) -> BenchResult<()> {
    let connection = rusqlite::Connection::open(path)?;
    let mut query = connection.prepare("SELECT body FROM events ORDER BY seq")?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        std::hint::black_box(decode_event(row.get_ref(0)?.as_blob()?)?);
    }
    Ok(())
}

fn verify_every_event(store: &SqliteStore) -> BenchResult<()> {
    let mut after = Seq::START;
    loop {
        let page = store.read_events(&EventFilter::default(), after, 4_096)?;
        let Some(last) = page.last() else { break };
        after = last.seq;
    }
    Ok(())
}
