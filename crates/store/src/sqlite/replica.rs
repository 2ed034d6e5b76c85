//! A store as a copy of a fleet's log.
//!
//! Invariants:
//! - Only messages change a copy: a commit is published, and counts when it comes back in the order of the sequencer.
//! - Events, rows, versions of scopes and the cursor change in one transaction, so a process that finds the cursor ahead has
//!   nothing to do.
//! - A message is judged by its `reads` and the table of versions alone. Rows depend on the version of the program.
//! - A message whose chain differs is dead: its writer has another log.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use windlass_engine::{CommitId, Digest, Draft, RowChange, Seq, StateView, TaskId, decode_event, encode_event};

use super::log_connection::{LAG_POLL_INTERVAL, MAX_LAG_READS};
use super::rows::StoreSnapshot;
use super::scopes::{self, CopyCursor, SCOPE_OF_EDGES, SCOPE_OF_IDS, SCOPE_OF_LOG};
use super::transaction::StoreTransaction;
use super::{SqliteStore, commit_watch, queries, schema};
use crate::memory::find_moved_scope;
use crate::sequencer::{LogMessage, MessageError, SequencedMessage, SequencerError};
use crate::{AppendOutcome, StoreCommit, StoreError};

/// The most messages that are read and folded at once.
const MAX_FOLDED_MESSAGES: usize = 256;
/// How long a message that the log has may take to be sent.
const DELIVERY_PATIENCE: Duration = Duration::from_millis(100);
/// How often a service that sends no messages is read by a process that waits for them.
const UNSENT_POLL_INTERVAL: Duration = Duration::from_millis(250);
/// The longest wait for messages before the copy is looked at again: another process may have folded them.
const FOLD_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The judgement of a message.
enum MessageJudgement {
    Accepted(LogMessage),
    /// Its events are in the log already.
    Repeated,
    /// A scope that it read has moved since, its writer has another log, or it is no message of Windlass.
    Dead,
}

impl SqliteStore {
    /// Returns whether the store is a copy of a fleet's log. Then only messages of this log change it.
    pub fn is_replica(&self) -> Result<bool, StoreError> {
        schema::read_replica_flag(self)
    }

    /// Returns the place in the order up to which the copy has folded messages.
    pub fn replica_cursor(&self) -> Result<Option<u64>, StoreError> {
        Ok(self.run_sql(scopes::read_cursor)?.map(|cursor| cursor.sequence))
    }

    /// Returns the link of the chain at an event, as text. Copies with the same log have the same links.
    pub fn chain_link_at(&self, at: Seq) -> Result<Option<String>, StoreError> {
        Ok(queries::read_chain_at(self, at)?.map(|link| link.to_string()))
    }

    pub(super) fn copy_cursor(&self) -> Result<CopyCursor, StoreError> {
        Ok(self.run_sql(scopes::read_cursor)?.unwrap_or(CopyCursor::START))
    }

    /// Folds all messages that the log has by now. Returns how many there were. While a view is held, there is nothing to fold: its
    /// state does not change.
    pub fn catch_up(&self) -> Result<u64, StoreError> {
        self.catch_up_with_progress(|_, _| {})
    }

    /// Does the same, and shows the last event and the place in the order after each step.
    pub fn catch_up_with_progress(&self, mut show_progress: impl FnMut(Seq, u64)) -> Result<u64, StoreError> {
        let mut count = 0;
        if self.readers.get() > 0 {
            return Ok(count);
        }
        loop {
            let answer = self.read_messages(MAX_FOLDED_MESSAGES)?;
            let Some(last) = answer.messages.last() else { return Ok(count) };
            count += answer.messages.len() as u64;
            self.fold_messages(&answer.messages)?;
            show_progress(self.head()?, last.sequence);
            // Others may publish faster than messages are read.
            if answer.is_whole {
                return Ok(count);
            }
        }
    }

    /// Turns an empty store into a copy of a log. The next [`catch_up`](Self::catch_up) reads the whole log.
    pub fn join_log(&mut self) -> Result<(), StoreError> {
        schema::run_in_transaction(self, |store| {
            if queries::read_head(store)? > Seq::START {
                return Err(StoreError::HasOwnLog(store.path.clone()));
            }
            store.run_sql(|connection| scopes::write_cursor(connection, CopyCursor::START))?;
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

    /// Folds all messages that the log has by now, and waits for a log that is away.
    pub(super) fn catch_up_patiently(&self) -> Result<(), StoreError> {
        self.wait_out_outage(|| self.catch_up().map(drop))
    }

    /// Folds what is new in the log before a command is decided, and waits for a log that is away.
    pub(super) fn refresh_patiently(&self) -> Result<(), StoreError> {
        self.wait_out_outage(|| match self.is_subscriber() {
            true => self.follow_log(Duration::ZERO),
            false => self.catch_up().map(drop),
        })
    }

    /// Folds the messages that the service has sent by now, and waits for the first of them at most for `patience`. A service that sends
    /// none is read, and then sends the next ones.
    pub fn follow_log(&self, patience: Duration) -> Result<(), StoreError> {
        if self.readers.get() > 0 {
            return Ok(());
        }
        if let Some(messages) = self.receive_messages(patience)? {
            return self.fold_messages(&messages);
        }
        let count = self.catch_up()?;
        if !self.subscribe_to_messages()? && count == 0 {
            commit_watch::wait_for_commit(self, self.head()?, patience.min(UNSENT_POLL_INTERVAL))?;
        }
        Ok(())
    }

    /// Publishes a commit, and folds the log up to it.
    pub(super) fn publish_commit(&self, commit: &StoreCommit) -> Result<AppendOutcome, StoreError> {
        let (is_repeated, was_sent) = (Cell::new(false), Cell::new(false));
        let outcome = self.wait_out_outage(|| {
            let is_repeated = is_repeated.replace(true);
            match is_repeated {
                true => drop(self.catch_up()?),
                // What has come by now is free to look at, and may show that the commit would be dead.
                false if self.is_subscriber() => self.follow_log(Duration::ZERO)?,
                false => {}
            }
            match self.try_publish(commit, &was_sent)? {
                // An earlier attempt of this call has reached the log.
                AppendOutcome::AlreadyApplied(positions) if is_repeated => Ok(AppendOutcome::Durable(positions)),
                outcome => Ok(outcome),
            }
        });
        match outcome {
            // The last attempt has not reached the log, but an earlier one may have.
            Err(StoreError::Unreachable(
                SequencerError::Unreachable { source } | SequencerError::Refused { source },
            )) if was_sent.get() => Err(StoreError::Unreachable(SequencerError::OutcomeUnknown { source })),
            outcome => outcome,
        }
    }

    /// Publishes a commit once. Sets `was_sent` if its message may be in the log.
    fn try_publish(&self, commit: &StoreCommit, was_sent: &Cell<bool>) -> Result<AppendOutcome, StoreError> {
        // Another process may fold messages meanwhile.
        let cursor = self.replica_cursor()?.unwrap_or(0);
        let message = match self.prepare_message(commit)? {
            Ok(message) => message,
            Err(known) => return Ok(known),
        };
        let body = message.encode();
        let published = self.with_sequencer(|sequencer| sequencer.publish(&body));
        if matches!(published, Ok(_) | Err(SequencerError::OutcomeUnknown { .. })) {
            was_sent.set(true);
        }
        let sequence = published.map_err(StoreError::Unreachable)?;
        if sequence == cursor + 1 && self.readers.get() == 0 {
            // Nothing came between, so the message need not be read back.
            self.fold_messages(&[SequencedMessage { sequence, body }])?;
            self.note_fresh_copy();
        }
        self.fold_up_to(sequence)?;
        match self.find_outcome(commit)? {
            // The log has lost what comes after this place: it appends where this copy has been already.
            AppendOutcome::Conflict(_) if sequence <= cursor => {
                Err(StoreError::Forked { path: self.path.clone(), after: message.after })
            }
            outcome => Ok(outcome),
        }
    }

    /// Waits until events follow a position in this copy.
    pub(super) fn wait_for_messages(&self, after: Seq, patience: Duration) -> Result<(), StoreError> {
        if self.readers.get() > 0 {
            // While a view is held, nothing is folded.
            return commit_watch::wait_for_commit(self, after, patience);
        }
        let began = Instant::now();
        let mut left = Duration::ZERO;
        loop {
            match self.follow_log(left.min(FOLD_POLL_INTERVAL)) {
                // While the log is away, another process may still fold what it has read.
                Err(StoreError::Unreachable(_)) => commit_watch::wait_for_commit(self, after, left)?,
                followed => followed?,
            }
            left = patience.saturating_sub(began.elapsed());
            if queries::read_head(self)? > after || left.is_zero() {
                return Ok(());
            }
        }
    }

    fn fold_up_to(&self, sequence: u64) -> Result<(), StoreError> {
        let mut lag_reads = 0;
        while self.replica_cursor()?.is_some_and(|cursor| cursor < sequence) {
            let received = if lag_reads == 0 { self.receive_messages(DELIVERY_PATIENCE)? } else { None };
            let messages = match received.filter(|messages| !messages.is_empty()) {
                Some(messages) => messages,
                None => self.read_messages(MAX_FOLDED_MESSAGES)?.messages,
            };
            self.fold_messages(&messages)?;
            if messages.is_empty() {
                lag_reads += 1;
                if lag_reads > MAX_LAG_READS {
                    let source = "the service does not return a message that it acknowledged".into();
                    return Err(StoreError::Unreachable(SequencerError::OutcomeUnknown { source }));
                }
                std::thread::sleep(LAG_POLL_INTERVAL);
            }
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
        if messages.is_empty() {
            return Ok(());
        }
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
        let mut cursor = self.copy_cursor().map_err(none)?;
        let began_at = transaction.head();
        let rows = StoreSnapshot::inside_transaction(self, began_at);
        let mut draft = Draft::new(&rows).map_err(|error| (0, StoreError::from_view_error(&self.path, error)))?;
        let mut moved: HashMap<String, Option<u64>> = HashMap::new();
        if messages.last().is_none_or(|last| last.sequence <= cursor.sequence) {
            return Ok(());
        }
        for (index, message) in messages.iter().enumerate() {
            if message.sequence <= cursor.sequence {
                continue;
            }
            cursor = CopyCursor {
                sequence: message.sequence,
                before: cursor.sequence,
                digest: Digest::of_bytes(&message.body),
            };
            let judged = self.judge_message(&transaction, message, &moved).map_err(|error| (index, error))?;
            let MessageJudgement::Accepted(message) = judged else { continue };
            let first = transaction.head().next();
            for bytes in &message.events {
                fold_event(self, &mut transaction, &mut draft, bytes, message.nonce).map_err(|error| match error {
                    StoreError::Undecodable { source, .. } => (index, StoreError::UnknownEvent { source }),
                    error => (index, error),
                })?;
            }
            let version = |index: Option<u32>| index.map(|index| first.0 + u64::from(index));
            let scope = |name| scopes::resolve_moved_scope(name, first);
            moved.extend(message.moves.into_iter().map(|(name, index)| (scope(name), version(index))));
        }
        let changes = draft.into_changes();
        transaction.write_copy(&changes, &moved, cursor).map_err(none)?;
        transaction.commit().map_err(none)?;
        self.finish_write().map_err(none)
    }

    fn judge_message(
        &self,
        transaction: &StoreTransaction<'_>,
        message: &SequencedMessage,
        moved: &HashMap<String, Option<u64>>,
    ) -> Result<MessageJudgement, StoreError> {
        let message = match LogMessage::decode(&message.body) {
            Ok(message) => message,
            Err(error @ MessageError::OtherFormat { .. }) => return Err(StoreError::TooOld(error)),
            // Every program that knows the format takes it for none of its messages.
            Err(MessageError::Malformed { .. }) => return Ok(MessageJudgement::Dead),
        };
        let chain = match message.after {
            Seq::START => Some(Digest::ZERO),
            after if after > transaction.head() => None,
            after => queries::read_chain_at(self, after)?,
        };
        if chain != Some(message.chain) {
            return Ok(MessageJudgement::Dead);
        }
        let id = CommitId { after: message.after, nonce: message.nonce };
        if message.after < transaction.head() && !queries::find_commit_positions(self, id)?.is_empty() {
            return Ok(MessageJudgement::Repeated);
        }
        for (scope, seen) in &message.reads {
            let version = match moved.get(scope) {
                _ if scope == SCOPE_OF_LOG => transaction.head().0,
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

pub(super) fn fold_event(
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
pub(super) fn list_moves(
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
