//! Failures with hints, made from errors of the engine, the store, the runner and git.

use std::io::{self, ErrorKind};
use std::path::Path;

use windlass_engine::{Refusal, Session, ViewError};
use windlass_process::count_supervisors_above;
use windlass_runner::RunError;
use windlass_store::{ExecuteError, SequencerError, StoreError};
use windlass_vcs::git;

use crate::{Failure, FailureCode, SUPERVISE_ARGUMENT, environment};

/// SIGINT, which a terminal sends on Ctrl-C.
pub const SIGINT_NUMBER: u8 = 2;

/// The hint for a command that needs trust, beside the option `--trust`.
pub const HOW_TO_TRUST: &str = "`windlass trust` shows what would run and asks";

/// The note beside a command that is refused until a person trusts the project.
pub const UNTRUSTED_NOTE: &str = "not trusted now: see `windlass trust`, or say --trust";

pub fn execute_failure(error: ExecuteError) -> Failure {
    match error {
        ExecuteError::Refused(refusal) => refusal_failure(&refusal),
        ExecuteError::Store(error) => store_failure(error),
    }
}

pub fn run_failure(error: RunError) -> Failure {
    match error {
        RunError::Execute(error) => execute_failure(error),
        RunError::Store(error) => store_failure(error),
        RunError::View(error) => view_failure(error),
        RunError::Killed => Failure::new(FailureCode::Interrupted(SIGINT_NUMBER), "ended while hooks were running")
            .with_cause("what the command itself did is recorded; hooks that had not started are pending")
            .with_hint("`windlass doctor --settle` runs them"),
        other => Failure::from_error(FailureCode::System, &other),
    }
}

/// Returns the failure for an error of git.
pub fn git_failure(error: git::Error) -> Failure {
    let hint = error.hint();
    let failure = Failure::from_error(FailureCode::System, &error);
    match hint {
        Some(hint) => failure.with_hint(hint),
        None => failure,
    }
}

pub fn view_failure(error: ViewError) -> Failure {
    match error.0.downcast::<StoreError>() {
        Ok(error) => store_failure(*error),
        Err(error) => Failure::new(FailureCode::Store, "cannot read the store").with_cause(error),
    }
}

pub fn refusal_failure(refusal: &Refusal) -> Failure {
    let code = match refusal {
        Refusal::UnknownTask(_) | Refusal::UnknownEdge { .. } => FailureCode::NotFound,
        Refusal::Invalid { .. } | Refusal::UnknownType { .. } => FailureCode::Usage,
        Refusal::Untrusted { .. } => FailureCode::Trust,
        Refusal::View(_) | Refusal::Apply(_) => FailureCode::Store,
        _ => FailureCode::Refused,
    };
    let failure = Failure::from_error(code, refusal);
    match refusal {
        Refusal::UnknownTask(_) => failure.with_hint("`windlass task list --all` shows every task"),
        Refusal::UnknownEdge { from, .. } => failure.with_hint(format!("`windlass task show {from}` shows its edges")),
        Refusal::IllegalMove { forceable: true, .. } if !is_inside_run() => failure.with_hint("--force does it anyway, and is recorded"),
        Refusal::IllegalMove { id, .. } => {
            failure.with_hint(format!("`windlass events --task {id}` shows how it got there"))
        }
        Refusal::OpenDependencies { id, open } => match open.first() {
            Some(first) => failure.with_hint(format!(
                "complete {first} first, or remove the dependency with `windlass task undepend {id} {first}`"
            )),
            None => failure,
        },
        Refusal::HasDependents { .. } if is_inside_run() => failure.with_hint("--cascade deletes them too"),
        Refusal::HasDependents { .. } => {
            failure.with_hint("--cascade deletes them too; --force deletes it alone and blocks them")
        }
        Refusal::Held { id, lease } if is_inside_run() => failure.with_hint(format!(
            "leave it to {}; `windlass note add --task {id} TEXT` tells it what you know",
            lease.holder_name()
        )),
        Refusal::Held { lease, .. } => failure.with_hint(match &lease.session {
            Some(_) => "the session judges its own work; --force overrides it, and is recorded".to_owned(),
            None => format!(
                "its holder gives --epoch {}; --force overrides the holder, and is recorded",
                lease.epoch
            ),
        }),
        Refusal::LeaseLost { id, .. } => {
            failure.with_hint(format!("claim it again with `windlass task claim {id}`, if it can be claimed"))
        }
        Refusal::Untrusted { .. } => failure.with_hint(HOW_TO_TRUST).with_trust_option(),
        Refusal::CascadeLimit { .. } => failure.with_hint("`windlass hooks history` shows which hooks led here"),
        Refusal::NotAsking { id, .. } => failure.with_hint(format!("`windlass why {id}` shows its state")),
        Refusal::NoPerson { .. } => {
            failure.with_hint("end the turn with `<promise>BLOCKED</promise>` and say what is needed")
        }
        Refusal::OwnTask { .. } => failure.with_hint(
            "`windlass note add` leaves a note about it; `<promise>BLOCKED</promise>` at the end of the turn asks a person",
        ),
        Refusal::Rejudged { id } => failure.with_hint(format!(
            "`windlass note add --task {id}` leaves a note about it; a new task gets them with `windlass task add`"
        )),
        Refusal::GatedTask { id, .. } => failure.with_hint(format!(
            "leave it to `windlass run --task {id}`; `windlass note add --task {id} TEXT` tells that run what you know"
        )),
        Refusal::UnknownType { .. } => failure.with_hint("a new type is a line under `task_types` in the configuration"),
        Refusal::NotForAgent { id, kind, .. } => failure.with_hint(format!(
            "`task_types.{kind}.agents.implementer` in the configuration says who may; a person takes it with \
             `windlass task claim {id}`, without --agent"
        )),
        Refusal::NothingForAgent { id, .. } => {
            failure.with_hint(format!("--agent NAME says who asks; a person takes it with `windlass task claim {id}`"))
        }
        Refusal::NothingReady => failure.with_hint("`windlass task graph` shows what waits for what"),
        Refusal::Cycle { .. } => failure.with_hint("take one of these dependencies away first"),
        Refusal::IllegalSession { .. } => failure.with_hint("`windlass status` shows the sessions and who runs them"),
        Refusal::Apply(_) => failure.with_hint("this is a defect of Windlass; nothing was changed"),
        _ => failure,
    }
}

/// Returns whether an agent or a hook runs this command. They can unset variables, but cannot change their parent processes.
fn is_inside_run() -> bool {
    environment::run_variable().is_some()
        || environment::effect_variable().is_some()
        || count_supervisors_above(SUPERVISE_ARGUMENT) > 0
}

/// Suggests the session with the nearest name, or the command that lists sessions.
pub fn suggest_session(name: &str, known: &[Session]) -> String {
    let names: Vec<&str> = known.iter().map(|session| session.name.as_str()).collect();
    let near = windlass_expr::nearest_name(name, &names).map(|near| format!("did you mean `{near}`?"));
    near.unwrap_or_else(|| "`windlass session list` names them all".to_owned())
}

/// Returns whether a path is the database or its write-ahead log.
fn is_database_or_wal(path: &Path) -> bool {
    !["-journal", "-shm"].iter().any(|end| path.as_os_str().as_encoded_bytes().ends_with(end.as_bytes()))
}

/// Returns the hint for a Windlass directory that cannot be written.
pub fn directory_error_hint(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "make room and try again",
        ErrorKind::ReadOnlyFilesystem => "its disk is read-only: reading works, running does not",
        _ => "check whose directory it is, and whether it can be written to",
    }
}

pub fn store_failure(error: StoreError) -> Failure {
    let failure = Failure::from_error(FailureCode::Store, &error);
    match &error {
        StoreError::Missing(_) => failure.with_hint("`windlass init` makes it"),
        StoreError::Replaced(_) => {
            failure.with_hint("find out what removed it; a backup, if there is one, has what was in it")
        }
        // A foreign journal put in its place would be rolled back into the store.
        StoreError::Linked(path) if !is_database_or_wal(path) => failure.with_hint("remove it: nothing of the store is in it"),
        StoreError::Linked(_) => failure.with_hint("put the file itself there"),
        StoreError::NoFile(_) | StoreError::StrayJournal(_) => {
            failure.with_hint("move it away: nothing of the store is in it")
        }
        StoreError::OtherSchema { path, .. } => failure.with_hint(format!(
            "`windlass doctor --export sound.jsonl` saves its events; move {} away, and `windlass init` makes an empty store",
            path.display()
        )),
        StoreError::NotAStore(path) => failure.with_hint(format!(
            "move {} away and restore a backup, or run `windlass init` for an empty store",
            path.display()
        )),
        StoreError::Foreign(_) => Failure { code: FailureCode::Trust, ..failure }
            .with_hint("`windlass trust` shows what it holds and asks; or move it away, and `windlass init` makes an empty one")
            .with_trust_option(),
        StoreError::Unsound { .. } => failure.with_hint(
            "`windlass doctor` says what is wrong; `windlass doctor --rebuild --trust` rebuilds the rows from the log",
        ),
        StoreError::Record { .. } => failure.with_hint("set `WINDLASS_STATE_DIR` to a directory of your own"),
        StoreError::Newer { .. } => failure.with_hint("use a newer Windlass; nothing was changed"),
        StoreError::Damaged { .. }
        | StoreError::BrokenChain { .. }
        | StoreError::Undecodable { .. }
        | StoreError::Corrupt { .. }
        | StoreError::LostCommits { .. } => failure.with_hint(
            "`windlass doctor --export sound.jsonl` saves every valid event; `windlass doctor` says what is damaged",
        ),
        StoreError::BadRow { .. } => {
            failure.with_hint("if the log is sound, `windlass doctor --rebuild` rebuilds the rows")
        }
        StoreError::OutcomeUnknown { .. } => {
            failure.with_hint("look before you try again: `windlass events` shows whether it was recorded")
        }
        StoreError::InvalidEvent { .. } => failure.with_hint("`windlass doctor` checks the whole store"),
        StoreError::Full { .. } => failure.with_hint("make room and try again; nothing was lost"),
        StoreError::ReadOnly(_) => {
            failure.with_hint("check the permissions of the directory and whether its disk is read-only")
        }
        StoreError::Busy { .. } => {
            failure.with_hint("look for a stopped windlass process, or a backup program that holds the file")
        }
        StoreError::Open { .. } => failure.with_hint("check that the directory exists and can be written to"),
        StoreError::Backup { .. } => failure.with_hint(
            "a store of an older schema is copied, then migrated: make room for the copy, and make its directory \
             writable; nothing was changed",
        ),
        StoreError::Exists(_) => failure.with_hint("choose another name; nothing is overwritten"),
        error => match fleet_store_hint(error) {
            Some(hint) => Failure { code: FailureCode::Fleet, ..failure }.with_hint(hint),
            None => failure,
        },
    }
}

/// Returns the hint for an error of a fleet's log.
pub fn fleet_store_hint(error: &StoreError) -> Option<&'static str> {
    Some(match error {
        StoreError::Replica(_) => {
            "start this program again if the project has just entered a fleet; `windlass fleet join URL` connects a copy that lost \
             its membership"
        }
        StoreError::NoReplica(_) => "another command has left the fleet; try again",
        StoreError::HasOwnLog(_) => "`windlass fleet join URL --discard` puts the log away and joins",
        StoreError::Unreachable(SequencerError::Unreachable { .. }) => {
            "check that the servers run and that this machine can reach them: `windlass fleet status`"
        }
        StoreError::Unreachable(SequencerError::Refused { .. }) => "`windlass fleet doctor` checks the servers",
        StoreError::Unreachable(SequencerError::OutcomeUnknown { .. }) => {
            "look before you try again: `windlass events` shows whether it was recorded"
        }
        StoreError::Contended { .. } => "try again",
        StoreError::Forked { .. } => {
            "`windlass fleet repair` publishes again what the service has lost; if that cannot help, `windlass fleet leave` keeps \
             this log, and `windlass fleet join URL --discard` takes the other one"
        }
        StoreError::TooOld(_) | StoreError::UnknownEvent { .. } => {
            "update Windlass on this machine; nothing was changed"
        }
        _ => return None,
    })
}
