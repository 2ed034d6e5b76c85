//! Saves the valid events of a store that may be damaged anywhere.

use std::path::Path;

use rusqlite::OptionalExtension;
use rusqlite::config::DbConfig;
use windlass_engine::{EventRecord, Seq};

use super::queries::{EVENT_COLUMNS, read_stored_event};
use super::rows::to_signed;
use super::{SqliteStore, StoreAccess, store_file_length, wal_length};
use crate::StoreError;

/// The result of saving events from a damaged store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SalvageReport {
    pub saved: u64,
    /// The first and the last event of each range that could not be saved.
    pub lost: Vec<(Seq, Seq)>,
    /// The end of the log cannot be found: more events than are named here may be lost.
    pub open_end: bool,
}

/// Lower bound for the bytes of an event in the file: its two digests and its nonce are longer.
const MIN_EVENT_SIZE: u64 = 80;

impl SqliteStore {
    /// Passes every valid event to `save`, from a store that may be damaged anywhere.
    pub fn salvage_events(
        path: &Path,
        mut save: impl FnMut(EventRecord) -> Result<(), StoreError>,
    ) -> Result<SalvageReport, StoreError> {
        let bytes = store_file_length(path)? + wal_length(path);
        let store = Self::open_read_only(path, StoreAccess::Read, |store| {
            let is_log = "SELECT 1 FROM sqlite_schema WHERE name = 'events' AND type = 'table'";
            let found = store.run_sql(|connection| {
                // Otherwise SQLite refuses a file that is shorter than its header says. Nothing is written.
                connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, false)?;
                connection.set_db_config(DbConfig::SQLITE_DBCONFIG_WRITABLE_SCHEMA, true)?;
                connection.query_row(is_log, [], |_| Ok(())).optional()
            })?;
            found.ok_or_else(|| StoreError::NotAStore(path.to_owned()))
        })?;
        // Positions are dense, so the file's size limits them, whatever the file says.
        let furthest = bytes / MIN_EVENT_SIZE;
        let (known, open_end) = store.find_log_end(furthest);
        let mut salvage = SalvageReport { open_end, ..SalvageReport::default() };
        let sql = format!("SELECT {EVENT_COLUMNS} FROM events WHERE seq = ?");
        for next in 1..=if open_end { furthest } else { known } {
            let event = store.run_sql(|connection| {
                connection.prepare_cached(&sql)?.query_row([to_signed(next)], read_stored_event).optional()
            });
            match event.map(|event| event.map(|event| event.decode_record(&store))) {
                Ok(Some(Ok(record))) => {
                    salvage.saved += 1;
                    save(record)?;
                }
                _ => salvage.record_lost_event(Seq(next)),
            }
        }
        // Missing events beyond all known ones perhaps never existed.
        if let Some((first, last)) = salvage.lost.pop() {
            let last = if last.0 == furthest && open_end { last.min(Seq(known)) } else { last };
            salvage.lost.extend((first <= last).then_some((first, last)));
        }
        Ok(salvage)
    }

    /// Returns the last position that anything in the file still mentions, and whether the log may have gone further.
    fn find_log_end(&self, furthest: u64) -> (u64, bool) {
        let ask = |sql| {
            let found = self.run_sql(|connection| connection.query_row(sql, [], |row| row.get::<_, Option<i64>>(0)));
            found.map(|last| u64::try_from(last.unwrap_or(0)).ok().filter(|last| *last <= furthest))
        };
        let log = ask("SELECT max(seq) FROM events");
        let rows = [
            "SELECT max(json_extract(row, '$.version')) FROM tasks",
            "SELECT max(json_extract(row, '$.version')) FROM sessions",
            "SELECT max(id) FROM edges",
            "SELECT max(seq) FROM debts",
        ];
        let known = rows.into_iter().filter_map(|sql| ask(sql).ok().flatten()).max().unwrap_or(0);
        match log {
            Ok(Some(last)) => (known.max(last), false),
            _ => (known, true),
        }
    }
}

impl SalvageReport {
    fn record_lost_event(&mut self, seq: Seq) {
        match self.lost.last_mut() {
            Some((_, last)) if last.next() == seq => *last = seq,
            _ => self.lost.push((seq, seq)),
        }
    }
}
