//! Shows a store that this machine did not make, so that a user can decide about it.

use std::path::Path;

use rusqlite::OptionalExtension;
use windlass_engine::{Change, Digest, Memory, Seq};

use super::rows::Reading;
use super::schema::{self, PRESENT};
use super::{Knows, Sqlite, StoreAccess, file_length};
use crate::StoreError;

/// The whole content of a store.
pub struct StoreSurvey {
    /// Every row that its log folds to.
    pub rows: Vec<Change>,
    /// Gives access to the log itself.
    pub store: Sqlite,
}

impl Sqlite {
    /// Returns the unique identity of this store. It comes from the random number of its first commit, so a store without events has
    /// none.
    pub fn identity(&self) -> Result<Option<String>, StoreError> {
        // A replaced store may have another object in the place of the log.
        let log = "SELECT 1 FROM sqlite_schema WHERE name = 'events' AND type = 'table'";
        let first = "SELECT nonce FROM events ORDER BY seq LIMIT 1";
        let nonce: Option<Vec<u8>> = self.sql(|connection| {
            if connection.query_row(log, [], |_| Ok(())).optional()?.is_none() {
                return Ok(None);
            }
            connection.query_row(first, [], |row| row.get(0)).optional()
        })?;
        Ok(nonce.map(|nonce| Digest::of(&nonce).to_string()))
    }

    /// Refuses a store whose identity is not known.
    pub(super) fn check_identity(&self, knows: Option<Knows<'_>>) -> Result<(), StoreError> {
        match knows {
            Some(knows) if !knows(self.identity()?.as_deref()) => Err(StoreError::Foreign(self.path.clone())),
            _ => Ok(()),
        }
    }

    /// Reads all of a foreign store, of this schema or an older one. Its rows must be those of its log: then the rows that a user sees
    /// are those that the log leads to.
    pub fn survey(path: &Path) -> Result<StoreSurvey, StoreError> {
        if file_length(path)? == 0 {
            return Err(StoreError::NotAStore(path.to_owned()));
        }
        let store =
            Self::read_only(path, StoreAccess::Foreign, |store| schema::check_readable(store, &PRESENT).map(drop))?;
        let rows = store.read_whole()?;
        Ok(StoreSurvey { rows, store })
    }

    fn read_whole(&self) -> Result<Vec<Change>, StoreError> {
        let _moment = Reading::begin(self)?;
        if schema::check_readable(self, &PRESENT)? {
            let report = self.inspect()?;
            let log = report.log.first().map(|found| format!("event {}: {}", found.seq, found.problem));
            let row = || report.rows.first().map(|row| format!("{} {}", row.row, row.problem));
            if let Some(what) = report.pages.first().cloned().or(log).or_else(row) {
                return Err(StoreError::Unsound { path: self.path.clone(), what });
            }
        }
        let mut memory = Memory::default();
        self.fold(&mut memory, |_: Seq, error| Err(error))?;
        Ok(memory.into_rows().collect())
    }
}
