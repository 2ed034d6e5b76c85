//! Verification of a whole store.

use std::collections::BTreeMap;
use std::io;

use rusqlite::types::ValueRef;
use windlass_engine::{Caller, Change, Digest, Memory, Record, Seq};

use super::Sqlite;
use super::queries::{STORED, Stored, misfiled, stored};
use super::rows::{self, Reading};
use super::schema::PROJECTED;
use crate::StoreError;

/// A problem with one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub seq: Seq,
    pub problem: String,
}

/// A row that differs from the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// The table and key, such as `tasks 12`.
    pub row: String,
    pub problem: &'static str,
}

/// The result of a verification.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    pub events: u64,
    /// SQLite's own messages about the pages.
    pub pages: Vec<String>,
    pub log: Vec<Found>,
    pub rows: Vec<Mismatch>,
}

impl Report {
    pub fn is_sound(&self) -> bool {
        self.pages.is_empty() && self.log.is_empty() && self.rows.is_empty()
    }
}

/// Limit for the listed problems of a kind. The first ones show the cause.
const LISTED: usize = 20;

impl Sqlite {
    /// Verifies every page, every event, the chain, and every row against the log.
    pub fn inspect(&self) -> Result<Report, StoreError> {
        // All reads see one moment, while other processes write.
        let _moment = Reading::begin(self)?;
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
            report.rows = self.compare(memory);
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

    /// Verifies every event and folds it. Calls `wrong` with each problem, which may end it. After the first such event the others
    /// are still verified, but not folded: they would only seem to contradict each other.
    pub(super) fn fold(
        &self,
        memory: &mut Memory,
        mut wrong: impl FnMut(Seq, StoreError) -> Result<(), StoreError>,
    ) -> Result<u64, StoreError> {
        let fail = |error| StoreError::sqlite(&self.path, error);
        let mut query = self.connection.prepare(&format!("SELECT {STORED} FROM events ORDER BY seq")).map_err(fail)?;
        let mut rows = query.query([]).map_err(fail)?;
        let (mut count, mut last, mut before) = (0, Seq::START, Digest::ZERO);
        let (mut whole, mut astray) = (true, false);
        loop {
            let event = match rows.next().and_then(|row| row.map(stored).transpose()).map_err(fail) {
                Ok(Some(event)) => event,
                Ok(None) => return Ok(count),
                // The events after it cannot be found.
                Err(error @ StoreError::Corrupt { .. }) => return wrong(last.next(), error).map(|()| count),
                Err(error) => return Err(error),
            };
            count += 1;
            let follows = event.seq == last.next();
            if !follows {
                whole = false;
                // A torn page may hold many entries that are no events: it is reported once.
                if !astray {
                    wrong(last.next(), StoreError::io(&self.path, io::Error::other("is missing")))?;
                }
                astray = event.seq <= last;
                if astray {
                    continue;
                }
            }
            let looked = event.verify(self).and_then(|record| {
                if follows { self.fold_one(&event, &record, before, whole.then_some(&mut *memory)) } else { Ok(()) }
            });
            if let Err(error) = looked {
                whole = false;
                wrong(event.seq, error)?;
            }
            (last, before, astray) = (event.seq, event.chain, false);
        }
    }

    /// Checks the place of an event in the log, and folds it into `memory`, if there is one.
    fn fold_one(
        &self,
        event: &Stored,
        record: &Record,
        before: Digest,
        memory: Option<&mut Memory>,
    ) -> Result<(), StoreError> {
        event.verify_chain(self, before)?;
        let Some(memory) = memory else { return Ok(()) };
        let task = record.envelope.node.task().and_then(|id| memory.row(id));
        let previous = task.map_or(Seq::START, |task| task.last_event);
        if event.previous != previous {
            let why = format!("it is filed after event {}, not {previous}", event.previous);
            return Err(misfiled(self, record, why));
        }
        memory.apply(record).map_err(|error| StoreError::fold(&self.path, error))
    }

    fn compare(&self, memory: Memory) -> Vec<Mismatch> {
        let mut mismatches = Vec::new();
        let mut expected: BTreeMap<String, String> = memory.into_rows().map(line).collect();
        for table in PROJECTED {
            let looked = self.each_row(table, |key, content| {
                let row = format!("{table} {key}");
                let problem = match expected.remove(&row) {
                    Some(wanted) if wanted == content => return,
                    Some(_) => "differs from the log",
                    None => "is not in the log",
                };
                mismatches.push(Mismatch { row, problem });
            });
            if looked.is_err() {
                mismatches.push(Mismatch { row: table.to_owned(), problem: "cannot be read" });
            }
        }
        mismatches.extend(expected.into_keys().map(|row| Mismatch { row, problem: "is missing" }));
        mismatches.truncate(LISTED);
        mismatches
    }

    fn each_row(&self, table: &str, mut look: impl FnMut(String, String)) -> Result<(), StoreError> {
        let columns = match table {
            "tasks" => {
                "CAST(id AS TEXT), state || ' ' || priority || ' ' || kind || ' ' || ifnull(lease_until, '') || ' ' || row"
            }
            "edges" => "CAST(id AS TEXT), from_id || ' ' || kind || ' ' || to_id",
            "debts" => "seq || '.' || place, row",
            "conversations" => "agent || ' ' || conversation, row",
            "sessions" => "name, row",
            _ => "digest, content",
        };
        self.sql(|connection| {
            let mut query = connection.prepare(&format!("SELECT {columns} FROM {table}"))?;
            let mut rows = query.query([])?;
            while let Some(row) = rows.next()? {
                // Damage can change the type of a column: any other type differs from every text.
                let text = |column| {
                    Ok::<_, rusqlite::Error>(match row.get_ref(column)? {
                        ValueRef::Text(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                        other => format!("{other:?}"),
                    })
                };
                look(text(0)?, text(1)?);
            }
            Ok(())
        })
    }
}

/// Describes the problem of an event, without its position.
fn problem(error: &StoreError) -> String {
    match error {
        StoreError::Damaged { .. } => "does not match its digest".to_owned(),
        StoreError::BrokenChain { .. } => "does not match the chain".to_owned(),
        StoreError::Undecodable { source, .. } => source.to_string(),
        StoreError::Unfit { source, .. } => source.to_string(),
        StoreError::Corrupt { source, .. } => format!("cannot be read: {source}"),
        StoreError::Io { source, .. } => source.to_string(),
        other => other.to_string(),
    }
}

/// Returns a row in the form in which [`Sqlite::each_row`] passes it.
fn line(change: Change) -> (String, String) {
    match change {
        Change::PutTask(task) => {
            let lease = task.lease.as_ref().and_then(|lease| lease.until);
            let lease = lease.map(|until| until.millis().to_string()).unwrap_or_default();
            let kind = rows::kind(&task);
            let content = format!("{} {} {kind} {lease} {}", task.state, task.priority, rows::write(&task));
            (format!("tasks {}", task.id.0), content)
        }
        Change::PutEdge(edge) => {
            (format!("edges {}", edge.id.0), format!("{} {} {}", edge.from_id.0, edge.kind, edge.to_id.0))
        }
        Change::PutSession(session) => (format!("sessions {}", session.name), rows::write(&session)),
        Change::PutEffect(effect) => (format!("debts {}", effect.id), rows::write(&effect)),
        Change::PutConversation(row) => {
            let Caller { agent, conversation } = &row.caller;
            (format!("conversations {agent} {conversation}"), rows::write(&row))
        }
        Change::PutConfig { digest, text } => (format!("configs {digest}"), text),
        Change::DropEdge(_) | Change::DropEffect(_) | Change::DropConversation(_) => {
            unreachable!("rows are put, not dropped")
        }
    }
}
