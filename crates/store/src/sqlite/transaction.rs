//! One write transaction: everything in it becomes durable together.

use std::collections::HashMap;
use std::io;

use rusqlite::{ErrorCode, params};
use windlass_engine::{
    Command, CommandOrigin, CommitId, Digest, Draft, EngineRules, EventEnvelope, EventRecord, RowChange, Seq, decide,
    encode_event_into,
};

use super::rows::{self, StoreSnapshot, to_signed};
use super::scopes::CopyCursor;
use super::{SqliteStore, queries, schema, scopes};
use crate::memory::find_moved_scope;
use crate::{AppendOutcome, EventFilter, ExecuteError, StoreCommit, StoreError, failpoint};

/// Appends an event. SQLite assigns the next position itself: so it need not check whether it is taken.
const INSERT_EVENT_SQL: &str =
    "INSERT INTO events (type, previous, nonce, body, digest, chain) VALUES (?, ?, ?, ?, ?, ?)";

/// A write transaction. Rolled back when dropped, unless it was committed.
pub struct StoreTransaction<'s> {
    store: &'s SqliteStore,
    head: Seq,
    chain: Digest,
    began_at: Seq,
    state: TransactionState,
    /// The end of the log before an earlier attempt at the same commands, whose outcome is unknown.
    tried_after: Option<Seq>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TransactionState {
    Open,
    /// A write failed halfway: it must not become durable, even if the caller ignores the error.
    Torn,
    Over,
}

impl<'s> StoreTransaction<'s> {
    pub(super) fn begin(store: &'s SqliteStore) -> Result<Self, StoreError> {
        let (transaction, is_replica) = Self::begin_any(store)?;
        // A commit into a copy that no other machine has would be lost.
        if is_replica { Err(StoreError::Replica(store.path().to_owned())) } else { Ok(transaction) }
    }

    /// Begins a transaction that folds messages into a copy of a fleet's log.
    pub(super) fn begin_fold(store: &'s SqliteStore) -> Result<Self, StoreError> {
        let (transaction, is_replica) = Self::begin_any(store)?;
        if is_replica { Ok(transaction) } else { Err(StoreError::NoReplica(store.path().to_owned())) }
    }

    fn begin_any(store: &'s SqliteStore) -> Result<(Self, bool), StoreError> {
        store.run_sql(|connection| connection.prepare_cached("BEGIN IMMEDIATE")?.execute([]))?;
        let mut transaction = Self {
            store,
            head: Seq::START,
            chain: Digest::ZERO,
            began_at: Seq::START,
            state: TransactionState::Open,
            tried_after: None,
        };
        let is_replica = schema::check_not_newer(store, &schema::CURRENT_SCHEMA)?;
        if let Some((head, chain)) = queries::read_last_link(store)? {
            (transaction.head, transaction.chain, transaction.began_at) = (head, chain, head);
        }
        Ok((transaction, is_replica))
    }

    /// Returns the position of the last event so far.
    pub fn head(&self) -> Seq {
        self.head
    }

    /// Makes commands check first whether an earlier attempt made them durable after this position.
    pub(super) fn check_earlier_attempt(&mut self, tried_after: Option<Seq>) {
        self.tried_after = tried_after;
    }

    /// Decides a command and writes its events.
    pub fn execute_command(
        &mut self,
        rules: &EngineRules,
        origin: &CommandOrigin,
        command: &Command,
        nonce: u128,
    ) -> Result<Vec<EventRecord>, ExecuteError> {
        if let Some(after) = self.tried_after {
            let there = self.find_commit(CommitId { after, nonce })?;
            if !there.is_empty() {
                return Ok(there);
            }
        }
        let rows = StoreSnapshot::inside_transaction(self.store, self.head);
        let (entries, changes) = decide(&rows, rules, origin, command)?.into_parts();
        self.write_events(entries.iter().map(|entry| (entry.previous, &entry.record.envelope)), &changes, nonce)?;
        Ok(entries.into_iter().map(|entry| entry.record).collect())
    }

    /// Writes a commit that was decided elsewhere, unless it is already in the log or a scope that it read has changed.
    pub fn append_commit(&mut self, commit: &StoreCommit) -> Result<AppendOutcome, StoreError> {
        if commit.id.after < self.head {
            let seen = queries::find_commit_positions(self.store, commit.id)?;
            if !seen.is_empty() {
                return Ok(AppendOutcome::AlreadyApplied(seen));
            }
        }
        let rows = StoreSnapshot::inside_transaction(self.store, self.head);
        let path = self.store.path();
        if let Some(scope) =
            find_moved_scope(&rows, commit).map_err(|error| StoreError::from_view_error(path, error))?
        {
            return Ok(AppendOutcome::Conflict(scope));
        }
        let (previous, changes) = self.fold_changes(&rows, &commit.events)?;
        let first = self.head.next().0;
        self.write_events(previous.into_iter().zip(&commit.events), &changes, commit.id.nonce)?;
        Ok(AppendOutcome::Durable((first..=self.head.0).map(Seq).collect()))
    }

    /// Returns the events of a commit, if it was appended before.
    fn find_commit(&self, id: CommitId) -> Result<Vec<EventRecord>, StoreError> {
        let positions = queries::find_commit_positions(self.store, id)?;
        let Some(first) = positions.first() else { return Ok(Vec::new()) };
        queries::read_filtered_events(self.store, &EventFilter::default(), Seq(first.0 - 1), positions.len())
    }

    /// Returns the changes of events to the rows; and for each event, the one before it in its task's history.
    fn fold_changes(
        &self,
        rows: &StoreSnapshot<'_>,
        events: &[EventEnvelope],
    ) -> Result<(Vec<Seq>, Vec<RowChange>), StoreError> {
        let path = self.store.path();
        let mut draft = Draft::new(rows).map_err(|error| StoreError::from_view_error(path, error))?;
        let fold = |(seq, envelope)| {
            draft.apply_event(Seq(seq), envelope).map_err(|error| StoreError::from_apply_error(path, error))
        };
        let previous = (self.head.next().0..).zip(events).map(fold).collect::<Result<_, _>>()?;
        Ok((previous, draft.into_changes()))
    }

    /// Writes events, each with the one before it in its task's history, and the changes to the rows.
    fn write_events<'e>(
        &mut self,
        events: impl Iterator<Item = (Seq, &'e EventEnvelope)>,
        changes: &[RowChange],
        nonce: u128,
    ) -> Result<(), StoreError> {
        let (mut head, mut chain) = (self.head, self.chain);
        let written = self.store.run_sql(|connection| {
            let mut insert = connection.prepare_cached(INSERT_EVENT_SQL)?;
            let mut body = Vec::with_capacity(512);
            for (previous, envelope) in events {
                encode_event_into(&mut body, envelope);
                let digest = Digest::of_bytes(&body);
                head = head.next();
                chain = chain.chain_with(digest);
                let kind = envelope.event.kind().name();
                let given = insert.insert(params![
                    kind,
                    to_signed(previous.0),
                    nonce.to_le_bytes(),
                    body,
                    digest.0,
                    chain.0
                ])?;
                if given != to_signed(head.0) {
                    return Err(rusqlite::Error::StatementChangedRows(usize::try_from(given).unwrap_or_default()));
                }
            }
            changes.iter().try_for_each(|change| rows::apply_change(connection, change))
        });
        match written {
            Ok(()) => (self.head, self.chain) = (head, chain),
            Err(_) => self.state = TransactionState::Torn,
        }
        written
    }

    /// Writes an event of a message, as the bytes that the message has.
    pub(super) fn write_encoded(
        &mut self,
        previous: Seq,
        envelope: &EventEnvelope,
        body: &[u8],
        nonce: u128,
    ) -> Result<(), StoreError> {
        let digest = Digest::of_bytes(body);
        let chain = self.chain.chain_with(digest);
        let kind = envelope.event.kind().name();
        let given = self.store.run_sql(|connection| {
            let values = params![kind, to_signed(previous.0), nonce.to_le_bytes(), body, digest.0, chain.0];
            connection.prepare_cached(INSERT_EVENT_SQL)?.insert(values)
        })?;
        (self.head, self.chain) = (self.head.next(), chain);
        if given == to_signed(self.head.0) {
            return Ok(());
        }
        let what = format!("event {given} took the place of event {}", self.head);
        Err(StoreError::Unsound { path: self.store.path().to_owned(), what })
    }

    /// Writes the changes of folded messages to the rows and to the versions of scopes, and the last message.
    pub(super) fn write_copy(
        &mut self,
        changes: &[RowChange],
        moved: &HashMap<String, Option<u64>>,
        cursor: CopyCursor,
    ) -> Result<(), StoreError> {
        self.store.run_sql(|connection| {
            changes.iter().try_for_each(|change| rows::apply_change(connection, change))?;
            moved.iter().try_for_each(|(scope, version)| match version {
                Some(version) => scopes::put_version(connection, scope, *version),
                None => scopes::remove_version(connection, scope),
            })?;
            scopes::write_cursor(connection, cursor)
        })
    }

    pub(super) fn has_written(&self) -> bool {
        self.head > self.began_at
    }

    /// Returns when everything is on the disk.
    pub(super) fn commit(mut self) -> Result<(), StoreError> {
        let path = self.store.path();
        if self.state == TransactionState::Torn {
            return Err(StoreError::from_io_error(
                path,
                io::Error::other("an earlier write of the same transaction failed"),
            ));
        }
        let wrote = self.has_written();
        if wrote {
            failpoint::pass("store.before_commit").map_err(|error| StoreError::from_io_error(path, error))?;
        }
        // A test can lose a commit silently, to see that its checks notice.
        let end = if wrote && failpoint::pass("store.commit").is_err() { "ROLLBACK" } else { "COMMIT" };
        let committed = self.store.connection.prepare_cached(end).and_then(|mut end| end.execute([]));
        committed.map_err(|error| match error.sqlite_error_code() {
            // The sync failed: only another read shows what is on the disk.
            Some(ErrorCode::SystemIoFailure) if wrote => StoreError::OutcomeUnknown { source: Some(Box::new(error)) },
            _ => StoreError::from_sqlite_error(path, error),
        })?;
        self.state = TransactionState::Over;
        if wrote {
            failpoint::pass("store.after_commit")
                .map_err(|error| StoreError::OutcomeUnknown { source: Some(Box::new(error)) })?;
        }
        Ok(())
    }
}

impl Drop for StoreTransaction<'_> {
    fn drop(&mut self) {
        if self.state != TransactionState::Over {
            // SQLite may have rolled back by itself already.
            let _ = self.store.connection.execute_batch("ROLLBACK");
        }
    }
}
