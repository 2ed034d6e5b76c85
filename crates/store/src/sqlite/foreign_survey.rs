//! Shows a store that this machine did not make, so that a user can decide about it.

use std::path::Path;

use rusqlite::OptionalExtension;
use windlass_engine::{Digest, MemoryView, RowChange, Seq};

use super::rows::ReadTransaction;
use super::schema::{self, CURRENT_SCHEMA};
use super::{IdentityCheck, SqliteStore, StoreAccess, store_file_length};
use crate::StoreError;

/// The whole content of a store.
pub struct StoreSurvey {
    /// Every row that its log folds to.
    pub rows: Vec<RowChange>,
    /// Gives access to the log itself.
    pub store: SqliteStore,
}

impl SqliteStore {
    /// Returns the unique identity of this store. It comes from the random number of its first commit, so a store without events has
    /// none.
    pub fn read_identity(&self) -> Result<Option<String>, StoreError> {
        // A replaced store may have another object in the place of the log.
        let log = "SELECT 1 FROM sqlite_schema WHERE name = 'events' AND type = 'table'";
        let first = "SELECT nonce FROM events ORDER BY seq LIMIT 1";
        let nonce: Option<Vec<u8>> = self.run_sql(|connection| {
            if connection.query_row(log, [], |_| Ok(())).optional()?.is_none() {
                return Ok(None);
            }
            connection.query_row(first, [], |row| row.get(0)).optional()
        })?;
        Ok(nonce.map(|nonce| Digest::of_bytes(&nonce).to_string()))
    }

    /// Refuses a store whose identity is not known.
    pub(super) fn check_identity(&self, knows: Option<IdentityCheck<'_>>) -> Result<(), StoreError> {
        match knows {
            Some(knows) if !knows(self.read_identity()?.as_deref()) => Err(StoreError::Foreign(self.path.clone())),
            _ => Ok(()),
        }
    }

    /// Reads all of a foreign store, of this schema or an older one. Its rows must be those of its log: then the rows that a user sees
    /// are those that the log leads to.
    pub fn survey_foreign(path: &Path) -> Result<StoreSurvey, StoreError> {
        if store_file_length(path)? == 0 {
            return Err(StoreError::NotAStore(path.to_owned()));
        }
        let store = Self::open_read_only(path, StoreAccess::Foreign, |store| {
            schema::check_readable(store, &CURRENT_SCHEMA).map(drop)
        })?;
        let rows = store.read_all_rows()?;
        Ok(StoreSurvey { rows, store })
    }

    fn read_all_rows(&self) -> Result<Vec<RowChange>, StoreError> {
        let _moment = ReadTransaction::begin(self)?;
        if schema::check_readable(self, &CURRENT_SCHEMA)? {
            let report = self.inspect_store()?;
            let log = report.log.first().map(|found| format!("event {}: {}", found.seq, found.problem));
            let row = || report.rows.first().map(|row| format!("{} {}", row.row, row.problem));
            if let Some(what) = report.pages.first().cloned().or(log).or_else(row) {
                return Err(StoreError::Unsound { path: self.path.clone(), what });
            }
        }
        let mut memory = MemoryView::default();
        self.fold_events(&mut memory, |_: Seq, error| Err(error))?;
        Ok(memory.into_rows().collect())
    }
}
