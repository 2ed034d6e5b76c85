//! A store as a copy of a fleet's log.
//!
//! Invariants:
//! - Only messages change a copy: a commit is published, and counts when it comes back in the order of the sequencer.
//! - Events, rows, versions of scopes and the cursor change in one transaction, so a process that finds the cursor ahead has
//!   nothing to do.
//! - A message is judged by its `reads` and the table of versions alone. Rows depend on the version of the program.
//! - A copy whose chain differs from that of a message stops: the service has lost messages, or another log is behind it.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use windlass_engine::{
    CommitId, Digest, Draft, EventEnvelope, RowChange, Seq, StateView, TaskId, decode_event, encode_event,
};

use super::rows::StoreSnapshot;
use super::scopes::{self, SCOPE_OF_EDGES, SCOPE_OF_IDS};
use super::transaction::StoreTransaction;
use super::{SqliteStore, queries, schema};
use crate::memory::find_moved_scope;
use crate::sequencer::{LogMessage, MessageError, SequencedMessage, Sequencer, SequencerError};
use crate::{AppendOutcome, StoreCommit, StoreError};

/// The most messages that are read and folded at once.
const MAX_FOLDED_MESSAGES: usize = 256;
/// The most bytes of events in a message of an uploaded log.
const MAX_UPLOADED_BYTES: usize = 512 * 1024;
/// How often a message with an unknown outcome is published again before its commit is decided anew.
const MAX_PUBLISH_ATTEMPTS: u32 = 3;
/// The longest wait for messages before the copy is looked at again: another process may have folded them.
const FOLD_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The connection of a copy to its log.
pub(super) struct LogConnection {
    pub sequencer: Box<dyn Sequencer>,
    /// The name of this machine.
    pub machine: String,
}

/// The judgement of a message.
enum MessageJudgement {
    Accepted(LogMessage),
    /// Its events are in the log already.
    Repeated,
    /// A scope that it read has moved since.
    Dead,
}

impl SqliteStore {
    /// Makes later commits of a copy go through the fleet's log.
    pub fn attach_log(&mut self, sequencer: Box<dyn Sequencer>, machine: String) {
        self.log = Some(LogConnection { sequencer, machine }.into());
    }

    /// Returns whether the store is a copy of a fleet's log. Then only messages of this log change it.
    pub fn is_replica(&self) -> Result<bool, StoreError> {
        schema::read_replica_flag(self)
    }

    /// Returns the place in the order up to which the copy has folded messages.
    pub fn replica_cursor(&self) -> Result<Option<u64>, StoreError> {
        self.run_sql(scopes::read_cursor)
    }

    /// Folds all messages that the log has by now. Returns how many there were. While a view is held, there is nothing to fold: its
    /// state does not change.
    pub fn catch_up(&self) -> Result<u64, StoreError> {
        let mut count = 0;
        if self.readers.get() > 0 {
            return Ok(count);
        }
        loop {
            let messages = self.read_messages(MAX_FOLDED_MESSAGES)?;
            if messages.is_empty() {
                return Ok(count);
            }
            count += messages.len() as u64;
            self.fold_messages(&messages)?;
        }
    }

    /// Turns an empty store into a copy of a log. The next [`catch_up`](Self::catch_up) reads the whole log.
    pub fn join_log(&mut self) -> Result<(), StoreError> {
        schema::run_in_transaction(self, |store| {
            if queries::read_head(store)? > Seq::START {
                return Err(StoreError::HasOwnLog(store.path.clone()));
            }
            store.run_sql(|connection| scopes::write_cursor(connection, 0))?;
            schema::write_replica_flag(store, true)
        })
    }

    /// Publishes the log of this store to an empty order, and turns the store into a copy of it.
    pub fn publish_log(&mut self, mut show_progress: impl FnMut(Seq)) -> Result<(), StoreError> {
        let mut upload = LogUpload::default();
        // Most of the log is published before other processes have to wait.
        upload.publish_rest(self, &mut show_progress)?;
        schema::run_in_transaction(self, |store| {
            upload.publish_rest(store, &mut show_progress)?;
            store.run_sql(|connection| {
                scopes::write_cursor(connection, upload.sequence)?;
                upload.versions.iter().try_for_each(|(scope, version)| scopes::put_version(connection, scope, *version))
            })?;
            schema::write_replica_flag(store, true)
        })
    }

    /// Turns a copy into a store of its own. It keeps the whole log, with the same positions.
    pub fn leave_log(&mut self) -> Result<(), StoreError> {
        self.log = None;
        schema::run_in_transaction(self, |store| {
            store.run_sql(scopes::clear_tables)?;
            schema::write_replica_flag(store, false)
        })
    }

    /// Returns the versions of scopes that differ from the versions of their rows: damage, or a defect.
    pub fn find_wrong_scopes(&self) -> Result<Vec<String>, StoreError> {
        let snapshot = self.begin_snapshot()?;
        let rows = snapshot.list_row_versions()?;
        let versions = self.run_sql(scopes::list_versions)?;
        let wrong = rows.iter().filter(|(scope, version)| versions.get(&scope.to_string()) != Some(version));
        Ok(wrong.map(|(scope, _)| scope.to_string()).collect())
    }

    /// Publishes a commit, and folds the log up to it.
    pub(super) fn publish_commit(&self, commit: &StoreCommit) -> Result<AppendOutcome, StoreError> {
        self.catch_up()?;
        let body = match self.prepare_message(commit)? {
            Ok(message) => message.encode(),
            Err(known) => return Ok(known),
        };
        for _ in 0..MAX_PUBLISH_ATTEMPTS {
            match self.with_sequencer(|sequencer| sequencer.publish(&body)) {
                Ok(sequence) => {
                    self.fold_up_to(sequence)?;
                    return self.find_outcome(commit);
                }
                Err(SequencerError::OutcomeUnknown { .. }) => {}
                Err(error) => return Err(StoreError::Unreachable(error)),
            }
        }
        Ok(AppendOutcome::Unknown)
    }

    /// Waits until events follow a position in this copy.
    pub(super) fn wait_for_messages(&self, after: Seq, patience: Duration) -> Result<(), StoreError> {
        let began = Instant::now();
        loop {
            self.catch_up()?;
            let left = patience.saturating_sub(began.elapsed());
            if queries::read_head(self)? > after || left.is_zero() {
                return Ok(());
            }
            let cursor = self.replica_cursor()?.unwrap_or(0);
            self.with_sequencer(|sequencer| sequencer.wait_after(cursor, left.min(FOLD_POLL_INTERVAL)))
                .map_err(StoreError::Unreachable)?;
        }
    }

    fn with_sequencer<T>(
        &self,
        call: impl FnOnce(&mut dyn Sequencer) -> Result<T, SequencerError>,
    ) -> Result<T, SequencerError> {
        let Some(log) = &self.log else {
            return Err(SequencerError::Unreachable { source: "no connection to it is open".into() });
        };
        call(&mut *log.borrow_mut().sequencer)
    }

    fn read_messages(&self, most: usize) -> Result<Vec<SequencedMessage>, StoreError> {
        let cursor = self.replica_cursor()?.unwrap_or(0);
        self.with_sequencer(|sequencer| sequencer.read_after(cursor, most)).map_err(StoreError::Unreachable)
    }

    fn fold_up_to(&self, sequence: u64) -> Result<(), StoreError> {
        while self.replica_cursor()?.is_some_and(|cursor| cursor < sequence) {
            let messages = self.read_messages(MAX_FOLDED_MESSAGES)?;
            self.fold_messages(&messages)?;
        }
        Ok(())
    }

    /// Builds the message of a commit, unless its outcome is known already.
    fn prepare_message(&self, commit: &StoreCommit) -> Result<Result<LogMessage, AppendOutcome>, StoreError> {
        let snapshot = self.begin_snapshot()?;
        let seen = queries::find_commit_positions(self, commit.id)?;
        if !seen.is_empty() {
            return Ok(Err(AppendOutcome::AlreadyApplied(seen)));
        }
        let view_error = |error| StoreError::from_view_error(&self.path, error);
        if let Some(scope) = find_moved_scope(&snapshot, commit).map_err(view_error)? {
            return Ok(Err(AppendOutcome::Conflict(scope)));
        }
        if commit.events.is_empty() {
            return Ok(Err(AppendOutcome::Durable(Vec::new())));
        }
        let (after, chain) = queries::read_last_link(self)?.unwrap_or((Seq::START, Digest::ZERO));
        let mut draft = Draft::new(&snapshot).map_err(view_error)?;
        for (seq, envelope) in (after.next().0..).zip(&commit.events) {
            draft.apply_event(Seq(seq), envelope).map_err(|error| StoreError::from_apply_error(&self.path, error))?;
        }
        let last_task = snapshot.last_task_id().map_err(view_error)?;
        let moves = list_moves(&draft.into_changes(), after, commit.events.len(), last_task);
        let version = |scope: String| {
            let version = self.run_sql(|connection| scopes::find_version(connection, &scope))?;
            Ok((scope, version))
        };
        let reads = commit.reads.keys().map(|scope| version(scope.to_string())).collect::<Result<_, StoreError>>()?;
        let events = commit.events.iter().map(encode_event).collect();
        let by = self.log.as_ref().map(|log| log.borrow().machine.clone()).unwrap_or_default();
        Ok(Ok(LogMessage { by, after, chain, nonce: commit.id.nonce, reads, moves, events }))
    }

    /// Returns the outcome of a commit whose message is folded.
    fn find_outcome(&self, commit: &StoreCommit) -> Result<AppendOutcome, StoreError> {
        let positions = queries::find_commit_positions(self, commit.id)?;
        if !positions.is_empty() {
            return Ok(AppendOutcome::Durable(positions));
        }
        let snapshot = self.begin_snapshot()?;
        let moved =
            find_moved_scope(&snapshot, commit).map_err(|error| StoreError::from_view_error(&self.path, error))?;
        let scope = moved.or_else(|| commit.reads.keys().next().cloned());
        scope
            .map(AppendOutcome::Conflict)
            .ok_or_else(|| StoreError::Forked { path: self.path.clone(), after: commit.id.after })
    }

    /// Judges messages in their order, and folds those that are accepted, in one transaction.
    fn fold_messages(&self, messages: &[SequencedMessage]) -> Result<(), StoreError> {
        match self.try_fold(messages) {
            // What comes before the message that cannot be folded counts.
            Err((folded, error)) => {
                if folded > 0 {
                    self.try_fold(&messages[..folded]).map_err(|(_, error)| error)?;
                }
                Err(error)
            }
            Ok(()) => Ok(()),
        }
    }

    /// Folds all messages or none. An error tells how many messages could be folded.
    fn try_fold(&self, messages: &[SequencedMessage]) -> Result<(), (usize, StoreError)> {
        let none = |error| (0, error);
        let mut transaction = StoreTransaction::begin_fold(self).map_err(none)?;
        let cursor = self.replica_cursor().map_err(none)?.unwrap_or(0);
        let began_at = transaction.head();
        let rows = StoreSnapshot::inside_transaction(self, began_at);
        let mut draft = Draft::new(&rows).map_err(|error| (0, StoreError::from_view_error(&self.path, error)))?;
        let mut moved: HashMap<String, Option<u64>> = HashMap::new();
        let Some(last) = messages.last().filter(|last| last.sequence > cursor) else { return Ok(()) };
        for (index, message) in messages.iter().enumerate().filter(|(_, message)| message.sequence > cursor) {
            let judged = self.judge_message(&transaction, message, &moved).map_err(|error| (index, error))?;
            let MessageJudgement::Accepted(message) = judged else { continue };
            let first = transaction.head().next();
            for bytes in &message.events {
                fold_event(self, &mut transaction, &mut draft, bytes, message.nonce).map_err(|error| (index, error))?;
            }
            let version = |index: Option<u32>| index.map(|index| first.0 + u64::from(index));
            let scope = |name| scopes::resolve_moved_scope(name, first);
            moved.extend(message.moves.into_iter().map(|(name, index)| (scope(name), version(index))));
        }
        let changes = draft.into_changes();
        transaction.write_copy(&changes, &moved, last.sequence).map_err(none)?;
        transaction.commit().map_err(none)?;
        self.finish_write().map_err(none)
    }

    fn judge_message(
        &self,
        transaction: &StoreTransaction<'_>,
        message: &SequencedMessage,
        moved: &HashMap<String, Option<u64>>,
    ) -> Result<MessageJudgement, StoreError> {
        let message = LogMessage::decode(&message.body).map_err(|error| match error {
            MessageError::OtherFormat { .. } => StoreError::TooOld(error),
            MessageError::Malformed { .. } => {
                StoreError::UnreadableMessage { sequence: message.sequence, source: error }
            }
        })?;
        let fork = || StoreError::Forked { path: self.path.clone(), after: message.after };
        let chain = match message.after {
            Seq::START => Some(Digest::ZERO),
            after if after > transaction.head() => None,
            after => queries::read_chain_at(self, after)?,
        };
        if chain != Some(message.chain) {
            return Err(fork());
        }
        let id = CommitId { after: message.after, nonce: message.nonce };
        if message.after < transaction.head() && !queries::find_commit_positions(self, id)?.is_empty() {
            return Ok(MessageJudgement::Repeated);
        }
        for (scope, seen) in &message.reads {
            let version = match moved.get(scope) {
                Some(version) => version.unwrap_or(0),
                None => self.run_sql(|connection| scopes::find_version(connection, scope))?,
            };
            if version != *seen {
                return Ok(MessageJudgement::Dead);
            }
        }
        Ok(MessageJudgement::Accepted(message))
    }
}

fn fold_event(
    store: &SqliteStore,
    transaction: &mut StoreTransaction<'_>,
    draft: &mut Draft<'_>,
    bytes: &[u8],
    nonce: u128,
) -> Result<(), StoreError> {
    let seq = transaction.head().next();
    let envelope =
        decode_event(bytes).map_err(|source| StoreError::Undecodable { path: store.path.clone(), seq, source })?;
    let previous =
        draft.apply_event(seq, &envelope).map_err(|error| StoreError::from_apply_error(&store.path, error))?;
    transaction.write_encoded(previous, &envelope, bytes, nonce)
}

/// Returns the scopes that a commit moves, each with the index of the event that becomes its version. `after` is the last event
/// before it.
fn list_moves(
    changes: &[RowChange],
    after: Seq,
    event_count: usize,
    last_task: Option<TaskId>,
) -> BTreeMap<String, Option<u32>> {
    let index = |version: Seq| version.0.checked_sub(after.0 + 1).and_then(|index| u32::try_from(index).ok());
    let last = u32::try_from(event_count.saturating_sub(1)).ok();
    let mut moves: BTreeMap<String, Option<u32>> = BTreeMap::new();
    let mut last_edge = None;
    for change in changes {
        let scope = scopes::scope_of_change(change).map(|scope| scopes::name_moved_scope(&scope, after.next()));
        let version = match change {
            RowChange::PutTask(task) => {
                if Some(task.id) > last_task {
                    moves.insert(SCOPE_OF_IDS.to_owned(), last);
                }
                index(task.version)
            }
            RowChange::PutSession(session) => index(session.version),
            RowChange::PutEffect(effect) => index(effect.version),
            RowChange::PutConversation(row) => index(row.version),
            RowChange::DropEffect(_) => None,
            RowChange::DropConversation(_) => last,
            RowChange::PutEdge(edge) => {
                last_edge = last_edge.max(index(Seq(edge.id.0)));
                continue;
            }
            RowChange::DropEdge(_) | RowChange::PutConfig { .. } => continue,
        };
        let is_gone = matches!(change, RowChange::DropEffect(_));
        if let Some(scope) = scope.filter(|_| is_gone || version.is_some()) {
            moves.insert(scope, version);
        }
    }
    if last_edge.is_some() {
        moves.insert(SCOPE_OF_EDGES.to_owned(), last_edge);
    }
    moves
}

/// The upload of a log, in progress.
#[derive(Default)]
struct LogUpload {
    head: Seq,
    chain: Option<Digest>,
    sequence: u64,
    view: windlass_engine::MemoryView,
    versions: BTreeMap<String, u64>,
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

    fn publish_events(&mut self, store: &SqliteStore, bodies: Vec<Vec<u8>>) -> Result<(), StoreError> {
        let after = self.head;
        let chain = self.chain.unwrap_or(Digest::ZERO);
        let mut draft = Draft::new(&self.view).map_err(|error| StoreError::from_view_error(&store.path, error))?;
        let (mut head, mut link) = (after, chain);
        for bytes in &bodies {
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
        let by = store.log.as_ref().map(|log| log.borrow().machine.clone()).unwrap_or_default();
        // The nonce comes from the events: a repeated upload publishes the same bytes.
        let nonce = u128::from_le_bytes(link.0[..16].try_into().expect("a digest has 32 bytes"));
        let message = LogMessage { by, after, chain, nonce, reads: BTreeMap::new(), moves, events: bodies };
        self.sequence =
            store.with_sequencer(|sequencer| sequencer.publish(&message.encode())).map_err(StoreError::Unreachable)?;
        (self.head, self.chain) = (head, Some(link));
        Ok(())
    }
}
