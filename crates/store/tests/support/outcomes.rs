//! What the log of a fleet has in the end, compared with what the processes were told.

use std::collections::BTreeMap;

use windlass_engine::{EventRecord, encode_event};
use windlass_store::{ExecuteError, LogMessage, SequencerError, StoreError};

use super::{TempStore, read_chain, read_log, read_scope_versions};

/// What a process knows about its command in the end.
#[derive(Debug)]
pub enum CommandOutcome {
    Acknowledged(Vec<EventRecord>),
    /// The log does not have it and never will.
    NotInLog,
    Unknown,
}

impl CommandOutcome {
    /// Returns what a result says, unless it is a failure that no trouble of a network explains.
    pub fn from_result(result: Result<Vec<EventRecord>, ExecuteError>) -> Result<Self, ExecuteError> {
        match result {
            Ok(records) => Ok(Self::Acknowledged(records)),
            Err(ExecuteError::Store(StoreError::Unreachable(SequencerError::OutcomeUnknown { .. }))) => {
                Ok(Self::Unknown)
            }
            Err(
                ExecuteError::Refused(_)
                | ExecuteError::Store(StoreError::Unreachable(_) | StoreError::Contended { .. }),
            ) => Ok(Self::NotInLog),
            Err(error) => Err(error),
        }
    }
}

/// Checks that copies are sound, and have the same log and the same versions of scopes.
pub fn check_same_copies(case: &str, places: &[&TempStore]) {
    for (machine, place) in places.iter().enumerate() {
        let store = place.open();
        assert!(read_chain(place) == read_chain(places[0]), "{case}: machine {machine} has another log");
        let versions = read_scope_versions(place);
        assert_eq!(versions, read_scope_versions(places[0]), "{case}: machine {machine} has other versions");
        let wrong = store.find_wrong_scopes().expect("the copy can be read");
        assert!(wrong.is_empty(), "{case}: machine {machine} has wrong versions of {wrong:?}");
        let report = store.inspect_store().expect("the copy can be inspected");
        assert!(report.is_sound(), "{case}: {report:?}");
    }
}

/// Checks that the log has each acknowledged commit once, a failed one not at all, and any other at most once. Each outcome comes with
/// the nonce of its command, and `messages` is the whole log of the service.
pub fn check_outcomes<'o>(
    case: &str,
    place: &TempStore,
    outcomes: impl IntoIterator<Item = (u128, &'o CommandOutcome)>,
    messages: &[LogMessage],
) {
    let log = read_log(&place.open());
    let mut commits: BTreeMap<u128, Vec<&EventRecord>> = BTreeMap::new();
    for (nonce, record) in read_nonces(place).into_iter().zip(&log) {
        commits.entry(nonce).or_default().push(record);
    }
    for (nonce, outcome) in outcomes {
        let found = commits.remove(&nonce).unwrap_or_default();
        match outcome {
            CommandOutcome::Acknowledged(records) => {
                let is_there = found.iter().copied().eq(records);
                assert!(is_there, "{case}: commit {nonce} is not in the log as acknowledged: {found:#?}");
            }
            CommandOutcome::NotInLog => {
                assert!(
                    found.is_empty(),
                    "{case}: commit {nonce} is in the log although its command failed: {found:#?}"
                );
            }
            CommandOutcome::Unknown => {
                let bodies: Vec<Vec<u8>> = found.iter().map(|record| encode_event(&record.envelope)).collect();
                let is_dense = found.windows(2).all(|pair| pair[1].seq == pair[0].seq.next());
                let is_message = |message: &LogMessage| message.nonce == nonce && message.events == bodies;
                let is_whole = found.is_empty() || (is_dense && messages.iter().any(is_message));
                assert!(is_whole, "{case}: commit {nonce} is in the log in part, or twice: {found:#?}");
            }
        }
    }
    assert!(commits.is_empty(), "{case}: the log has events of no command: {commits:#?}");
}

/// Returns the nonce of each event.
fn read_nonces(place: &TempStore) -> Vec<u128> {
    let connection = place.open_connection();
    let mut query = connection.prepare("SELECT nonce FROM events ORDER BY seq").expect("a query");
    let nonces = query.query_map([], |row| row.get::<_, [u8; 16]>(0)).expect("the log can be read");
    nonces.map(|nonce| u128::from_le_bytes(nonce.expect("a row"))).collect()
}
