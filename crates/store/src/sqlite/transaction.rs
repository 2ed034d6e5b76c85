//! One write transaction: everything in it becomes durable together.

use std::io;

use rusqlite::{ErrorCode, params};
use windlass_engine::{
    Change, Command, CommitId, Digest, Draft, Envelope, Origin, Record, Rules, Seq, decide, encode_into,
};

use super::rows::{self, Snapshot, signed};
use super::{Sqlite, queries, schema};
use crate::memory::moved;
use crate::{Appended, Commit, ExecuteError, Filter, StoreError, failpoint};

/// A write transaction. Rolled back when dropped, unless it was committed.
pub struct Transaction<'s> {
    store: &'s Sqlite,
    head: Seq,
    chain: Digest,
    began_at: Seq,
    state: State,
    /// The end of the log before an earlier attempt at the same commands, whose outcome is unknown.
    tried_after: Option<Seq>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// A write failed halfway: it must not become durable, even if the caller ignores the error.
    Torn,
    Over,
}

impl<'s> Transaction<'s> {
    pub(super) fn begin(store: &'s Sqlite) -> Result<Self, StoreError> {
        store.sql(|connection| connection.prepare_cached("BEGIN IMMEDIATE")?.execute([]))?;
        let mut transaction = Self {
            store,
            head: Seq::START,
            chain: Digest::ZERO,
            began_at: Seq::START,
            state: State::Open,
            tried_after: None,
        };
        schema::check_still(store, &schema::PRESENT)?;
        if let Some((head, chain)) = queries::last(store)? {
            (transaction.head, transaction.chain, transaction.began_at) = (head, chain, head);
        }
        Ok(transaction)
    }

    /// Returns the position of the last event so far.
    pub fn head(&self) -> Seq {
        self.head
    }

    /// Makes commands check first whether an earlier attempt made them durable after this position.
    pub(super) fn look_first_after(&mut self, tried_after: Option<Seq>) {
        self.tried_after = tried_after;
    }

    /// Decides a command and writes its events.
    pub fn execute(
        &mut self,
        rules: &Rules,
        origin: &Origin,
        command: &Command,
        nonce: u128,
    ) -> Result<Vec<Record>, ExecuteError> {
        if let Some(after) = self.tried_after {
            let there = self.find(CommitId { after, nonce })?;
            if !there.is_empty() {
                return Ok(there);
            }
        }
        let rows = Snapshot::within(self.store, self.head);
        let (entries, changes) = decide(&rows, rules, origin, command)?.into_parts();
        self.write(entries.iter().map(|entry| (entry.previous, &entry.record.envelope)), &changes, nonce)?;
        Ok(entries.into_iter().map(|entry| entry.record).collect())
    }

    /// Writes a commit that was decided elsewhere, unless it is already in the log or a scope that it read has changed.
    pub fn append(&mut self, commit: &Commit) -> Result<Appended, StoreError> {
        if commit.id.after < self.head {
            let seen = queries::positions_of(self.store, commit.id)?;
            if !seen.is_empty() {
                return Ok(Appended::AlreadyApplied(seen));
            }
        }
        let rows = Snapshot::within(self.store, self.head);
        let path = self.store.path();
        if let Some(scope) = moved(&rows, commit).map_err(|error| StoreError::view(path, error))? {
            return Ok(Appended::Conflict(scope));
        }
        let (previous, changes) = self.fold(&rows, &commit.events)?;
        let first = self.head.next().0;
        self.write(previous.into_iter().zip(&commit.events), &changes, commit.id.nonce)?;
        Ok(Appended::At((first..=self.head.0).map(Seq).collect()))
    }

    /// Returns the events of a commit, if it was appended before.
    fn find(&self, id: CommitId) -> Result<Vec<Record>, StoreError> {
        let positions = queries::positions_of(self.store, id)?;
        let Some(first) = positions.first() else { return Ok(Vec::new()) };
        queries::events(self.store, &Filter::default(), Seq(first.0 - 1), positions.len())
    }

    /// Returns the changes of events to the rows; and for each event, the one before it in its task's history.
    fn fold(&self, rows: &Snapshot<'_>, events: &[Envelope]) -> Result<(Vec<Seq>, Vec<Change>), StoreError> {
        let path = self.store.path();
        let mut draft = Draft::new(rows).map_err(|error| StoreError::view(path, error))?;
        let fold = |(seq, envelope)| draft.apply(Seq(seq), envelope).map_err(|error| StoreError::fold(path, error));
        let previous = (self.head.next().0..).zip(events).map(fold).collect::<Result<_, _>>()?;
        Ok((previous, draft.into_changes()))
    }

    /// Writes events, each with the one before it in its task's history, and the changes to the rows.
    fn write<'e>(
        &mut self,
        events: impl Iterator<Item = (Seq, &'e Envelope)>,
        changes: &[Change],
        nonce: u128,
    ) -> Result<(), StoreError> {
        let (mut head, mut chain) = (self.head, self.chain);
        let written = self.store.sql(|connection| {
            // SQLite assigns the next position itself: so it need not check whether it is taken.
            let mut insert = connection.prepare_cached(
                "INSERT INTO events (type, previous, nonce, body, digest, chain) VALUES (?, ?, ?, ?, ?, ?)",
            )?;
            let mut body = Vec::with_capacity(512);
            for (previous, envelope) in events {
                encode_into(&mut body, envelope);
                let digest = Digest::of(&body);
                head = head.next();
                chain = chain.chain(digest);
                let kind = envelope.event.kind().name();
                let given =
                    insert.insert(params![kind, signed(previous.0), nonce.to_le_bytes(), body, digest.0, chain.0])?;
                if given != signed(head.0) {
                    return Err(rusqlite::Error::StatementChangedRows(usize::try_from(given).unwrap_or_default()));
                }
            }
            changes.iter().try_for_each(|change| rows::execute(connection, change))
        });
        match written {
            Ok(()) => (self.head, self.chain) = (head, chain),
            Err(_) => self.state = State::Torn,
        }
        written
    }

    pub(super) fn wrote(&self) -> bool {
        self.head > self.began_at
    }

    /// Returns when everything is on the disk.
    pub(super) fn commit(mut self) -> Result<(), StoreError> {
        let path = self.store.path();
        if self.state == State::Torn {
            return Err(StoreError::io(path, io::Error::other("an earlier write of the same transaction failed")));
        }
        let wrote = self.wrote();
        if wrote {
            failpoint::pass("store.before_commit").map_err(|error| StoreError::io(path, error))?;
        }
        // A test can lose a commit silently, to see that its checks notice.
        let end = if wrote && failpoint::pass("store.commit").is_err() { "ROLLBACK" } else { "COMMIT" };
        let committed = self.store.connection.prepare_cached(end).and_then(|mut end| end.execute([]));
        committed.map_err(|error| match error.sqlite_error_code() {
            // The sync failed: only another read shows what is on the disk.
            Some(ErrorCode::SystemIoFailure) if wrote => StoreError::OutcomeUnknown { source: Some(Box::new(error)) },
            _ => StoreError::sqlite(path, error),
        })?;
        self.state = State::Over;
        if wrote {
            failpoint::pass("store.after_commit")
                .map_err(|error| StoreError::OutcomeUnknown { source: Some(Box::new(error)) })?;
        }
        Ok(())
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if self.state != State::Over {
            // SQLite may have rolled back by itself already.
            let _ = self.store.connection.execute_batch("ROLLBACK");
        }
    }
}
