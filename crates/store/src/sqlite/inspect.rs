//! Looking a store over: what is sound, what is not, and what can be saved.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use rusqlite::{OpenFlags, OptionalExtension};
use windlass_engine::{Change, Digest, Memory, Record, Seq};

use super::queries::{STORED, stored};
use super::rows::{self, signed};
use super::schema::{PROJECTED, PROJECTIONS, finish};
use super::{Sqlite, connect};
use crate::StoreError;

/// What is wrong with one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub seq: Seq,
    pub problem: String,
}

/// A row that is not what the log says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// Which row, such as `tasks 12`.
    pub row: String,
    pub problem: &'static str,
}

/// What a look over the whole store found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    pub events: u64,
    /// What SQLite says about its own pages.
    pub pages: Vec<String>,
    pub log: Vec<Found>,
    pub rows: Vec<Mismatch>,
}

impl Report {
    pub fn is_sound(&self) -> bool {
        self.pages.is_empty() && self.log.is_empty() && self.rows.is_empty()
    }
}

/// What was saved from a damaged store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Salvage {
    pub saved: u64,
    /// The first and the last event of each stretch that could not be saved.
    pub lost: Vec<(Seq, Seq)>,
}

/// At most so many findings of a kind are listed; the first ones tell.
const LISTED: usize = 20;

impl Sqlite {
    /// Verifies every page, every event, the chain, and every row against what the log says.
    pub fn inspect(&self) -> Result<Report, StoreError> {
        let mut report = Report { pages: self.check_pages()?, ..Report::default() };
        let mut memory = Memory::default();
        let folded = self.fold(&mut memory, |seq, error| {
            if report.log.len() < LISTED {
                report.log.push(Found { seq, problem: problem(&error) });
            }
            Ok(())
        });
        match folded {
            Ok(count) => report.events = count,
            Err(StoreError::Corrupt { source, .. }) => report.pages.push(source.to_string()),
            Err(error) => return Err(error),
        }
        // Rows can only be compared with a log that is whole.
        if report.log.is_empty() && report.pages.is_empty() {
            report.rows = self.compare(memory)?;
        }
        Ok(report)
    }

    fn check_pages(&self) -> Result<Vec<String>, StoreError> {
        let found: Result<Vec<String>, StoreError> = self.sql(|connection| {
            let mut query = connection.prepare(&format!("PRAGMA integrity_check({LISTED})"))?;
            query.query_map([], |row| row.get(0))?.collect()
        });
        match found {
            Ok(lines) => Ok(lines.into_iter().filter(|line| line != "ok").collect()),
            Err(StoreError::Corrupt { source, .. }) => Ok(vec![source.to_string()]),
            Err(error) => Err(error),
        }
    }

    /// Verifies every event and folds it. What is wrong with one is handed over, and may end it.
    fn fold(
        &self,
        memory: &mut Memory,
        mut wrong: impl FnMut(Seq, StoreError) -> Result<(), StoreError>,
    ) -> Result<u64, StoreError> {
        let mut count = 0;
        let mut before = Digest::ZERO;
        let mut verdict = Ok(());
        self.sql(|connection| {
            let mut query = connection.prepare(&format!("SELECT {STORED} FROM events ORDER BY seq"))?;
            let mut rows = query.query([])?;
            while let Some(row) = rows.next()? {
                let event = stored(row)?;
                let folded = event
                    .verify(self)
                    .and_then(|record| event.verify_chain(self, before).map(|()| record))
                    .and_then(|record| memory.apply(&record).map_err(|error| StoreError::fold(&self.path, error)));
                count += 1;
                before = event.chain;
                if let Err(error) = folded {
                    verdict = wrong(event.seq, error);
                    if verdict.is_err() {
                        break;
                    }
                }
            }
            Ok(())
        })?;
        verdict.map(|()| count)
    }

    fn compare(&self, memory: Memory) -> Result<Vec<Mismatch>, StoreError> {
        let mut mismatches = Vec::new();
        let mut expected: BTreeMap<String, String> = memory.into_rows().map(line).collect();
        for table in PROJECTED {
            self.each_row(table, |key, content| {
                let row = format!("{table} {key}");
                let problem = match expected.remove(&row) {
                    Some(wanted) if wanted == content => return,
                    Some(_) => "differs from the log",
                    None => "is not in the log",
                };
                mismatches.push(Mismatch { row, problem });
            })?;
        }
        mismatches.extend(expected.into_keys().map(|row| Mismatch { row, problem: "is missing" }));
        mismatches.truncate(LISTED);
        Ok(mismatches)
    }

    fn each_row(&self, table: &str, mut look: impl FnMut(String, String)) -> Result<(), StoreError> {
        let columns = match table {
            "tasks" => "CAST(id AS TEXT), state || ' ' || priority || ' ' || ifnull(lease_until, '') || ' ' || row",
            "edges" => "CAST(id AS TEXT), from_id || ' ' || kind || ' ' || to_id",
            "debts" => "seq || '.' || place, row",
            "sessions" => "name, row",
            _ => "digest, content",
        };
        self.sql(|connection| {
            let mut query = connection.prepare(&format!("SELECT {columns} FROM {table}"))?;
            let mut rows = query.query([])?;
            while let Some(row) = rows.next()? {
                look(row.get(0)?, row.get(1)?);
            }
            Ok(())
        })
    }

    /// Throws the rows away and folds them anew from the log.
    pub fn rebuild(&mut self) -> Result<(), StoreError> {
        self.sql(|connection| connection.execute_batch("BEGIN IMMEDIATE"))?;
        let rebuilt = rebuild(self);
        finish(self, rebuilt)
    }

    /// Copies the store as it is at this moment, while others go on writing.
    pub fn backup(&self, to: &Path) -> Result<(), StoreError> {
        if to.exists() {
            return Err(StoreError::Exists(to.to_owned()));
        }
        let mut name = to.file_name().unwrap_or_default().to_owned();
        name.push(".part");
        let part = to.with_file_name(name);
        let _ = std::fs::remove_file(&part);
        let text = part.to_str().ok_or_else(|| StoreError::io(to, std::io::Error::other("the name is not UTF-8")))?;
        let copied = self
            .sql(|connection| connection.execute("VACUUM INTO ?", [text]).map(drop))
            .and_then(|()| use_wal(&part))
            .and_then(|()| publish(&part, to).map_err(|error| StoreError::io(to, error)));
        if copied.is_err() {
            let _ = std::fs::remove_file(&part);
        }
        copied
    }

    /// Hands over every event that is sound, from a store that may be damaged anywhere.
    pub fn salvage(path: &Path, mut save: impl FnMut(Record) -> Result<(), StoreError>) -> Result<Salvage, StoreError> {
        let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        let store = Self { connection, path: path.to_owned(), read_only: true };
        let mut salvage = Salvage::default();
        let last =
            store.sql(|connection| connection.query_row("SELECT max(seq) FROM events", [], |row| rows::seq(row, 0)));
        // If not even the end can be found, search a while beyond the last event that was.
        const BEYOND: u64 = 10_000;
        let known = last.ok();
        let mut next = 1;
        let mut end = known.map_or(BEYOND, |seq| seq.0);
        while next <= end {
            let sql = format!("SELECT {STORED} FROM events WHERE seq = ?");
            let event =
                store.sql(|connection| connection.prepare_cached(&sql)?.query_row([signed(next)], stored).optional());
            match event.map(|event| event.map(|event| event.verify(&store))) {
                Ok(Some(Ok(record))) => {
                    save(record)?;
                    salvage.saved += 1;
                    end = end.max(if known.is_none() { next + BEYOND } else { end });
                }
                _ => salvage.lose(Seq(next)),
            }
            next += 1;
        }
        if known.is_none() {
            salvage.lost.pop();
        }
        Ok(salvage)
    }
}

impl Salvage {
    fn lose(&mut self, seq: Seq) {
        match self.lost.last_mut() {
            Some((_, last)) if last.next() == seq => *last = seq,
            _ => self.lost.push((seq, seq)),
        }
    }
}

/// A copy comes without the mode that the store is used in.
fn use_wal(path: &Path) -> Result<(), StoreError> {
    let copy = rusqlite::Connection::open(path).map_err(|error| StoreError::sqlite(path, error))?;
    copy.pragma_update(None, "journal_mode", "wal").map_err(|error| StoreError::sqlite(path, error))
}

/// Makes a finished file durable under its name.
fn publish(part: &Path, to: &Path) -> std::io::Result<()> {
    File::open(part)?.sync_all()?;
    std::fs::rename(part, to)?;
    match to.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => File::open(parent)?.sync_all(),
        None => File::open(".")?.sync_all(),
    }
}

/// What is wrong with an event, without repeating where.
fn problem(error: &StoreError) -> String {
    match error {
        StoreError::Damaged { .. } => "does not match its digest".to_owned(),
        StoreError::BrokenChain { .. } => "does not match the chain".to_owned(),
        StoreError::Undecodable { source, .. } => source.to_string(),
        StoreError::Unfit { source, .. } => source.to_string(),
        other => other.to_string(),
    }
}

/// A row as [`Sqlite::each_row`] hands it over.
fn line(change: Change) -> (String, String) {
    match change {
        Change::PutTask(task) => {
            let lease = task.lease.as_ref().map(|lease| lease.until.millis().to_string()).unwrap_or_default();
            let content = format!("{} {} {lease} {}", task.state, task.priority, rows::write(&task));
            (format!("tasks {}", task.id.0), content)
        }
        Change::PutEdge(edge) => {
            (format!("edges {}", edge.id.0), format!("{} {} {}", edge.from_id.0, edge.kind, edge.to_id.0))
        }
        Change::PutSession(session) => (format!("sessions {}", session.name), rows::write(&session)),
        Change::PutDebt(debt) => (format!("debts {}", debt.id), rows::write(&debt)),
        Change::PutConfig { digest, text } => (format!("configs {digest}"), text),
        Change::DropEdge(_) | Change::DropDebt(_) => unreachable!("rows are put, not dropped"),
    }
}

/// Folds the rows anew, within a transaction.
pub(super) fn rebuild(store: &Sqlite) -> Result<(), StoreError> {
    let mut memory = Memory::default();
    store.fold(&mut memory, |_, error| Err(error))?;
    store.sql(|connection| {
        for table in PROJECTED {
            connection.execute_batch(&format!("DROP TABLE IF EXISTS {table}"))?;
        }
        connection.execute_batch(PROJECTIONS)?;
        memory.into_rows().try_for_each(|row| rows::execute(connection, &row))
    })
}
