//! The upload of a log: the events of a store become messages of a fleet's log, with the same positions and digests.
//!
//! Invariants:
//! - An uploaded message reads the whole log: it directly follows the event before it, or is dead. So two machines that upload
//!   the same events add them once.
//! - A repeated upload publishes the same bytes.

use std::collections::BTreeMap;

use windlass_engine::{Digest, Draft, EventEnvelope, MemoryView, Seq, StateView, decode_event};

use super::replica::{fold_event, list_moves};
use super::rows::StoreSnapshot;
use super::scopes::{self, CopyCursor, SCOPE_OF_LOG};
use super::transaction::StoreTransaction;
use super::{SqliteStore, queries, schema};
use crate::StoreError;
use crate::sequencer::LogMessage;

/// The most bytes of events in a message of an uploaded log.
const MAX_UPLOADED_BYTES: usize = 512 * 1024;

/// The state of a copy, compared with that of the fleet's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RepairReport {
    /// Events of this copy that the log had lost, and has again.
    pub published: u64,
    /// Events of the log that this copy lacked.
    pub added: u64,
}

impl SqliteStore {
    /// Publishes the log of this store to an empty order, and turns the store into a copy of it.
    pub fn publish_log(&mut self, mut show_progress: impl FnMut(Seq)) -> Result<(), StoreError> {
        let mut upload = LogUpload::default();
        // Most of the log is published before other processes have to wait.
        upload.publish_rest(self, &mut show_progress)?;
        schema::run_in_transaction(self, |store| {
            upload.publish_rest(store, &mut show_progress)?;
            store.run_sql(|connection| {
                scopes::write_cursor(connection, upload.cursor)?;
                upload.versions.iter().try_for_each(|(scope, version)| scopes::put_version(connection, scope, *version))
            })?;
            schema::write_replica_flag(store, true)
        })
    }

    /// Goes on with an upload that broke off: the log has the first events of this store. `fresh` is a copy that has just read the
    /// log; it is brought up to date. Another log is a fork, and nothing changes.
    pub fn resume_upload(
        &mut self,
        fresh: &mut SqliteStore,
        mut show_progress: impl FnMut(Seq),
    ) -> Result<(), StoreError> {
        let common = fresh.head()?;
        if common > self.head()? || queries::read_chain_at(self, common)? != queries::read_chain_at(fresh, common)? {
            return Err(StoreError::Forked { path: self.path.clone(), after: common });
        }
        let mut upload = LogUpload::default();
        upload.skip_events(self, common)?;
        upload.publish_rest(self, &mut show_progress)?;
        schema::run_in_transaction(self, |store| {
            upload.publish_rest(store, &mut show_progress)?;
            fresh.catch_up_patiently()?;
            let versions = fresh.run_sql(scopes::list_versions)?;
            let cursor = fresh.copy_cursor()?;
            store.run_sql(|connection| {
                scopes::write_cursor(connection, cursor)?;
                versions.iter().try_for_each(|(scope, version)| scopes::put_version(connection, scope, *version))
            })?;
            schema::write_replica_flag(store, true)
        })
    }

    /// Brings this copy in line with a log that may have lost messages: publishes what the log lacks, and takes what this copy
    /// lacks. `fresh` is a copy that has just read the whole log; it is brought up to date. Two logs that differ are a fork, and
    /// nothing changes.
    pub fn repair_copy(
        &mut self,
        fresh: &mut SqliteStore,
        mut show_progress: impl FnMut(Seq),
    ) -> Result<RepairReport, StoreError> {
        let (own_head, found_head) = (self.head()?, fresh.head()?);
        let common = own_head.min(found_head);
        if queries::read_chain_at(self, common)? != queries::read_chain_at(fresh, common)? {
            return Err(StoreError::Forked { path: self.path.clone(), after: common });
        }
        if own_head > found_head {
            let mut upload = LogUpload::default();
            upload.skip_events(self, found_head)?;
            upload.publish_rest(self, &mut show_progress)?;
            fresh.catch_up_patiently()?;
        }
        let added = self.take_events(fresh)?;
        Ok(RepairReport { published: own_head.0 - common.0, added })
    }

    /// Takes the events that follow in another copy, and its versions and place in the order.
    fn take_events(&mut self, other: &SqliteStore) -> Result<u64, StoreError> {
        let mut transaction = StoreTransaction::begin_fold(self)?;
        let began_at = transaction.head();
        let rows = StoreSnapshot::inside_transaction(self, began_at);
        let mut draft = Draft::new(&rows).map_err(|error| StoreError::from_view_error(&self.path, error))?;
        if queries::read_chain_at(other, began_at)? != queries::read_chain_at(self, began_at)? {
            return Err(StoreError::Forked { path: self.path.clone(), after: began_at });
        }
        loop {
            let after = transaction.head();
            let events = queries::read_bodies_with_nonces(other, after, MAX_UPLOADED_BYTES)?;
            if events.is_empty() {
                break;
            }
            for (bytes, nonce) in events {
                fold_event(self, &mut transaction, &mut draft, &bytes, nonce)?;
            }
        }
        let added = transaction.head().0 - began_at.0;
        let versions = other.run_sql(scopes::list_versions)?;
        let moved = versions.into_iter().map(|(scope, version)| (scope, Some(version))).collect();
        let cursor = other.copy_cursor()?;
        self.run_sql(scopes::clear_tables)?;
        transaction.write_copy(&draft.into_changes(), &moved, cursor)?;
        transaction.commit()?;
        self.finish_write()?;
        Ok(added)
    }
}

/// The upload of a log, in progress.
pub(super) struct LogUpload {
    head: Seq,
    chain: Digest,
    cursor: CopyCursor,
    view: MemoryView,
    versions: BTreeMap<String, u64>,
}

impl Default for LogUpload {
    fn default() -> Self {
        let (view, versions) = (MemoryView::default(), BTreeMap::new());
        Self { head: Seq::START, chain: Digest::ZERO, cursor: CopyCursor::START, view, versions }
    }
}

impl LogUpload {
    /// Publishes the events that are not published yet.
    fn publish_rest(&mut self, store: &SqliteStore, show_progress: &mut impl FnMut(Seq)) -> Result<(), StoreError> {
        loop {
            let bodies = queries::read_bodies(store, self.head, MAX_UPLOADED_BYTES)?;
            if bodies.is_empty() {
                return Ok(());
            }
            self.publish_events(store, bodies)?;
            show_progress(self.head);
        }
    }

    /// Folds the events up to a position without publishing them.
    fn skip_events(&mut self, store: &SqliteStore, until: Seq) -> Result<(), StoreError> {
        while self.head < until {
            let mut bodies = queries::read_bodies(store, self.head, MAX_UPLOADED_BYTES)?;
            bodies.truncate(usize::try_from(until.0 - self.head.0).unwrap_or(usize::MAX));
            if bodies.is_empty() {
                return Ok(());
            }
            self.fold_events(store, &bodies)?;
        }
        Ok(())
    }

    fn publish_events(&mut self, store: &SqliteStore, bodies: Vec<Vec<u8>>) -> Result<(), StoreError> {
        let (after, chain) = (self.head, self.chain);
        let moves = self.fold_events(store, &bodies)?;
        let by = store.log.as_ref().map(|log| log.borrow().machine.clone()).unwrap_or_default();
        // The nonce comes from the events: a repeated upload publishes the same bytes.
        let nonce = u128::from_le_bytes(self.chain.0[..16].try_into().expect("a digest has 32 bytes"));
        let reads = [(SCOPE_OF_LOG.to_owned(), after.0)].into();
        let message = LogMessage { by, after, chain, nonce, reads, moves, events: bodies };
        let body = message.encode();
        let sequence = store.wait_out_outage(|| {
            store.with_sequencer(|sequencer| sequencer.publish(&body)).map_err(StoreError::Unreachable)
        })?;
        self.cursor = CopyCursor { sequence, before: self.cursor.sequence, digest: Digest::of_bytes(&body) };
        Ok(())
    }

    /// Folds events, and returns the scopes that they move.
    fn fold_events(
        &mut self,
        store: &SqliteStore,
        bodies: &[Vec<u8>],
    ) -> Result<BTreeMap<String, Option<u32>>, StoreError> {
        let after = self.head;
        let mut draft = Draft::new(&self.view).map_err(|error| StoreError::from_view_error(&store.path, error))?;
        let (mut head, mut link) = (after, self.chain);
        for bytes in bodies {
            head = head.next();
            link = link.chain_with(Digest::of_bytes(bytes));
            let envelope: EventEnvelope = decode_event(bytes).map_err(|source| StoreError::Undecodable {
                path: store.path.clone(),
                seq: head,
                source,
            })?;
            draft.apply_event(head, &envelope).map_err(|error| StoreError::from_apply_error(&store.path, error))?;
        }
        let last_task = self.view.last_task_id().map_err(|error| StoreError::from_view_error(&store.path, error))?;
        let changes = draft.into_changes();
        let moves = list_moves(&changes, after, bodies.len(), last_task);
        self.view.apply_row_changes(changes, head);
        let first = after.next();
        for (name, index) in &moves {
            let scope = scopes::resolve_moved_scope(name.clone(), first);
            match index {
                Some(index) => drop(self.versions.insert(scope, first.0 + u64::from(*index))),
                None => drop(self.versions.remove(&scope)),
            }
        }
        (self.head, self.chain) = (head, link);
        Ok(moves)
    }
}
