//! Verification of a whole store.

use std::collections::BTreeMap;
use std::io;

use rusqlite::types::ValueRef;
use windlass_engine::{BridgeCaller, Digest, EventRecord, MemoryView, RowChange, Seq};

use super::SqliteStore;
use super::queries::{EVENT_COLUMNS, StoredEvent, misfiled_event_error, read_stored_event};
use super::rows::{self, ReadTransaction};
use super::schema::PROJECTED_TABLES;
use crate::StoreError;

/// A problem with one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventProblem {
    pub seq: Seq,
    pub problem: String,
}

/// A row that differs from the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowMismatch {
    /// The table and key, such as `tasks 12`.
    pub row: String,
    pub problem: &'static str,
}

/// The result of a verification.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreReport {
    pub events: u64,
    /// SQLite's own messages about the pages.
    pub pages: Vec<String>,
    pub log: Vec<EventProblem>,
    pub rows: Vec<RowMismatch>,
}

impl StoreReport {
    pub fn is_sound(&self) -> bool {
        self.pages.is_empty() && self.log.is_empty() && self.rows.is_empty()
    }
}

/// Limit for the listed problems of a kind. The first ones show the cause.
const MAX_LISTED_PROBLEMS: usize = 20;

impl SqliteStore {
    /// Verifies every page, every event, the chain, and every row against the log.
    pub fn inspect_store(&self) -> Result<StoreReport, StoreError> {
        // All reads see one moment, while other processes write.
        let _moment = ReadTransaction::begin(self)?;
        let mut report = StoreReport { pages: self.check_pages()?, ..StoreReport::default() };
        let mut memory = MemoryView::default();
        let folded = self.fold_events(&mut memory, |seq, error| {
            if report.log.len() < MAX_LISTED_PROBLEMS {
                report.log.push(EventProblem { seq, problem: describe_problem(&error) });
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
            report.rows = self.compare_rows(memory);
        }
        Ok(report)
    }

    fn check_pages(&self) -> Result<Vec<String>, StoreError> {
        let found: Result<Vec<String>, StoreError> = self.run_sql(|connection| {
            let mut query = connection.prepare(&format!("PRAGMA integrity_check({MAX_LISTED_PROBLEMS})"))?;
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
    pub(super) fn fold_events(
        &self,
        memory: &mut MemoryView,
        mut wrong: impl FnMut(Seq, StoreError) -> Result<(), StoreError>,
    ) -> Result<u64, StoreError> {
        let fail = |error| StoreError::from_sqlite_error(&self.path, error);
        let mut query =
            self.connection.prepare(&format!("SELECT {EVENT_COLUMNS} FROM events ORDER BY seq")).map_err(fail)?;
        let mut rows = query.query([]).map_err(fail)?;
        let (mut count, mut last, mut before) = (0, Seq::START, Digest::ZERO);
        let (mut whole, mut astray) = (true, false);
        loop {
            let event = match rows.next().and_then(|row| row.map(read_stored_event).transpose()).map_err(fail) {
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
                    wrong(last.next(), StoreError::from_io_error(&self.path, io::Error::other("is missing")))?;
                }
                astray = event.seq <= last;
                if astray {
                    continue;
                }
            }
            let looked = event.verify_event(self).and_then(|record| {
                if follows { self.fold_event(&event, &record, before, whole.then_some(&mut *memory)) } else { Ok(()) }
            });
            if let Err(error) = looked {
                whole = false;
                wrong(event.seq, error)?;
            }
            (last, before, astray) = (event.seq, event.chain, false);
        }
    }

    /// Checks the place of an event in the log, and folds it into `memory`, if there is one.
    fn fold_event(
        &self,
        event: &StoredEvent,
        record: &EventRecord,
        before: Digest,
        memory: Option<&mut MemoryView>,
    ) -> Result<(), StoreError> {
        event.verify_chain(self, before)?;
        let Some(memory) = memory else { return Ok(()) };
        let task = record.envelope.node.task_id().and_then(|id| memory.task_row(id));
        let previous = task.map_or(Seq::START, |task| task.last_event);
        if event.previous != previous {
            let why = format!("it is filed after event {}, not {previous}", event.previous);
            return Err(misfiled_event_error(self, record, why));
        }
        memory.apply_event(record).map_err(|error| StoreError::from_apply_error(&self.path, error))
    }

    fn compare_rows(&self, memory: MemoryView) -> Vec<RowMismatch> {
        let mut mismatches = Vec::new();
        let mut expected: BTreeMap<String, String> = memory.into_rows().map(expected_row_text).collect();
        for table in PROJECTED_TABLES {
            let looked = self.visit_rows(table, |key, content| {
                let row = format!("{table} {key}");
                let problem = match expected.remove(&row) {
                    Some(wanted) if wanted == content => return,
                    Some(_) => "differs from the log",
                    None => "is not in the log",
                };
                mismatches.push(RowMismatch { row, problem });
            });
            if looked.is_err() {
                mismatches.push(RowMismatch { row: table.to_owned(), problem: "cannot be read" });
            }
        }
        mismatches.extend(expected.into_keys().map(|row| RowMismatch { row, problem: "is missing" }));
        mismatches.truncate(MAX_LISTED_PROBLEMS);
        mismatches
    }

    fn visit_rows(&self, table: &str, mut look: impl FnMut(String, String)) -> Result<(), StoreError> {
        let columns = match table {
            "tasks" => {
                "CAST(id AS TEXT), state || ' ' || priority || ' ' || kind || ' ' || ifnull(lease_until, '') || ' '
                 || ifnull(open_change, '') || ' ' || row"
            }
            "edges" => "CAST(id AS TEXT), from_id || ' ' || kind || ' ' || to_id",
            "debts" => "seq || '.' || place, row",
            "conversations" => "agent || ' ' || conversation, row",
            "sessions" => "name, started || ' ' || is_over || ' ' || row",
            _ => "digest, content",
        };
        self.run_sql(|connection| {
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
fn describe_problem(error: &StoreError) -> String {
    match error {
        StoreError::Damaged { .. } => "does not match its digest".to_owned(),
        StoreError::BrokenChain { .. } => "does not match the chain".to_owned(),
        StoreError::Undecodable { source, .. } => source.to_string(),
        StoreError::InvalidEvent { source, .. } => source.to_string(),
        StoreError::Corrupt { source, .. } => format!("cannot be read: {source}"),
        StoreError::Io { source, .. } => source.to_string(),
        other => other.to_string(),
    }
}

/// Returns a row in the form in which [`SqliteStore::visit_rows`] passes it.
fn expected_row_text(change: RowChange) -> (String, String) {
    match change {
        RowChange::PutTask(task) => {
            let lease = task.lease.as_ref().and_then(|lease| lease.until);
            let lease = lease.map(|until| until.millis().to_string()).unwrap_or_default();
            let kind = rows::task_kind_text(&task);
            let change = rows::open_change_position(&task).map(|seq| seq.to_string()).unwrap_or_default();
            let row = rows::serialize_row(&task);
            let content = format!("{} {} {kind} {lease} {change} {row}", task.state, task.priority);
            (format!("tasks {}", task.id.0), content)
        }
        RowChange::PutEdge(edge) => {
            (format!("edges {}", edge.id.0), format!("{} {} {}", edge.from_id.0, edge.kind, edge.to_id.0))
        }
        RowChange::PutSession(session) => {
            let is_over = u8::from(session.is_over());
            let content = format!("{} {is_over} {}", session.started, rows::serialize_row(&session));
            (format!("sessions {}", session.name), content)
        }
        RowChange::PutEffect(effect) => (format!("debts {}", effect.id), rows::serialize_row(&effect)),
        RowChange::PutConversation(row) => {
            let BridgeCaller { agent, conversation } = &row.caller;
            (format!("conversations {agent} {conversation}"), rows::serialize_row(&row))
        }
        RowChange::PutConfig { digest, text } => (format!("configs {digest}"), text),
        RowChange::DropEdge(_) | RowChange::DropEffect(_) | RowChange::DropConversation(_) => {
            unreachable!("rows are put, not dropped")
        }
    }
}
