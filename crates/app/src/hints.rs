//! Failures with hints, made from errors of the engine, the store, the runner and git.

use std::io::{self, ErrorKind};
use std::path::Path;

use windlass_engine::{Refusal, Session, ViewError};
use windlass_process::supervisors_above;
use windlass_runner::RunError;
use windlass_store::{ExecuteError, StoreError};
use windlass_vcs::git;

use crate::{Code, Failure, SUPERVISE, environment};

/// SIGINT, which a terminal sends on Ctrl-C.
pub const SIGINT: u8 = 2;

/// The hint for a command that needs trust, beside the option `--trust`.
pub const HOW_TO_TRUST: &str = "`windlass trust` shows what would run and asks";

/// The note beside a command that is refused until a person trusts the project.
pub const UNTRUSTED: &str = "not trusted now: see `windlass trust`, or say --trust";

pub fn execute(error: ExecuteError) -> Failure {
    match error {
        ExecuteError::Refused(refusal) => self::refusal(&refusal),
        ExecuteError::Store(error) => store(error),
    }
}

pub fn run(error: RunError) -> Failure {
    match error {
        RunError::Execute(error) => execute(error),
        RunError::Store(error) => store(error),
        RunError::View(error) => view(error),
        RunError::Killed => Failure::new(Code::Interrupted(SIGINT), "ended while hooks were running")
            .caused_by("what the command itself did is recorded; hooks that had not begun are still owed")
            .hint("`windlass doctor --settle` runs them"),
        other => Failure::from_error(Code::System, &other),
    }
}

/// Returns the failure for an error of git.
pub fn git(error: git::Error) -> Failure {
    let hint = error.hint();
    let failure = Failure::from_error(Code::System, &error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

pub fn view(error: ViewError) -> Failure {
    match error.0.downcast::<StoreError>() {
        Ok(error) => store(*error),
        Err(error) => Failure::new(Code::Store, "cannot read the store").caused_by(error),
    }
}

pub fn refusal(refusal: &Refusal) -> Failure {
    let code = match refusal {
        Refusal::UnknownTask(_) | Refusal::UnknownEdge { .. } => Code::NotFound,
        Refusal::Invalid { .. } | Refusal::UnknownType { .. } => Code::Usage,
        Refusal::Untrusted { .. } => Code::Trust,
        Refusal::View(_) | Refusal::Apply(_) => Code::Store,
        _ => Code::Refused,
    };
    let failure = Failure::from_error(code, refusal);
    match refusal {
        Refusal::UnknownTask(_) => failure.hint("`windlass task list --all` shows every task"),
        Refusal::UnknownEdge { from, .. } => failure.hint(format!("`windlass task show {from}` shows its edges")),
        Refusal::IllegalMove { forceable: true, .. } if !is_inside_run() => failure.hint("--force does it all the same, and is recorded"),
        Refusal::IllegalMove { id, .. } => {
            failure.hint(format!("`windlass events --task {id}` shows how it got there"))
        }
        Refusal::OpenDependencies { id, open } => match open.first() {
            Some(first) => failure.hint(format!(
                "complete {first} first, or take the dependency away with `windlass task undepend {id} {first}`"
            )),
            None => failure,
        },
        Refusal::HasDependents { .. } if is_inside_run() => failure.hint("--cascade deletes them too"),
        Refusal::HasDependents { .. } => {
            failure.hint("--cascade deletes them too; --force deletes it alone and blocks them")
        }
        Refusal::Held { id, lease } if is_inside_run() => failure.hint(format!(
            "leave it to {}; `windlass note add --task {id} TEXT` tells it what you know",
            lease.holder()
        )),
        Refusal::Held { lease, .. } => failure.hint(match &lease.session {
            Some(_) => "the session judges its own work; --force does it over its head, and is recorded".to_owned(),
            None => format!(
                "its holder says --epoch {}; --force does it over the holder's head, and is recorded",
                lease.epoch
            ),
        }),
        Refusal::LeaseLost { id, .. } => {
            failure.hint(format!("claim it again with `windlass task claim {id}`, if it can be claimed"))
        }
        Refusal::Untrusted { .. } => failure.hint(HOW_TO_TRUST).offer_trust(),
        Refusal::CascadeLimit { .. } => failure.hint("`windlass hooks history` shows which hooks led here"),
        Refusal::NotAsking { id, .. } => failure.hint(format!("`windlass why {id}` shows how it stands")),
        Refusal::NoPerson { .. } => {
            failure.hint("end the turn with `<promise>BLOCKED</promise>` and say what is needed")
        }
        Refusal::OwnTask { .. } => failure.hint(
            "`windlass note add` leaves a word about it; `<promise>BLOCKED</promise>` at the end of the turn asks a person",
        ),
        Refusal::Rejudged { id } => failure.hint(format!(
            "`windlass note add --task {id}` leaves a word about it; a new task gets them with `windlass task add`"
        )),
        Refusal::GatedTask { id, .. } => failure.hint(format!(
            "leave it to `windlass run --task {id}`; `windlass note add --task {id} TEXT` tells that run what you know"
        )),
        Refusal::UnknownType { .. } => failure.hint("a new type is a line under `task_types` in the configuration"),
        Refusal::NotForAgent { id, kind, .. } => failure.hint(format!(
            "`task_types.{kind}.agents.implementer` in the configuration says who may; a person takes it with \
             `windlass task claim {id}`, without --agent"
        )),
        Refusal::NothingForAgent { id, .. } => {
            failure.hint(format!("--agent NAME says who asks; a person takes it with `windlass task claim {id}`"))
        }
        Refusal::NothingReady => failure.hint("`windlass task graph` shows what waits for what"),
        Refusal::Cycle { .. } => failure.hint("take one of these dependencies away first"),
        Refusal::IllegalSession { .. } => failure.hint("`windlass status` shows the sessions and who runs them"),
        Refusal::Apply(_) => failure.hint("this is a defect of Windlass; nothing was changed"),
        _ => failure,
    }
}

/// Returns whether an agent or a hook runs this command. They can unset variables, but cannot change their parent processes.
fn is_inside_run() -> bool {
    environment::run().is_some() || environment::effect().is_some() || supervisors_above(SUPERVISE) > 0
}

/// Suggests the session with the nearest name, or the command that lists sessions.
pub fn sessions(name: &str, known: &[Session]) -> String {
    let names: Vec<&str> = known.iter().map(|session| session.name.as_str()).collect();
    let near = windlass_expr::nearest(name, &names).map(|near| format!("did you mean `{near}`?"));
    near.unwrap_or_else(|| "`windlass session list` names them all".to_owned())
}

/// Returns whether a path is the database or its write-ahead log.
fn is_of_the_store(path: &Path) -> bool {
    !["-journal", "-shm"].iter().any(|end| path.as_os_str().as_encoded_bytes().ends_with(end.as_bytes()))
}

/// Returns the hint for a Windlass directory that cannot be written.
pub fn directory(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "make room and try again",
        ErrorKind::ReadOnlyFilesystem => "its disk is read-only: reading works, running does not",
        _ => "check whose directory it is, and whether it can be written to",
    }
}

pub fn store(error: StoreError) -> Failure {
    let failure = Failure::from_error(Code::Store, &error);
    match &error {
        StoreError::Missing(_) => failure.hint("`windlass init` makes it"),
        StoreError::Replaced(_) => {
            failure.hint("find out what removed it; a backup, if there is one, has what was in it")
        }
        // A foreign journal put in its place would be rolled back into the store.
        StoreError::Linked(path) if !is_of_the_store(path) => failure.hint("remove it: nothing of the store is in it"),
        StoreError::Linked(_) => failure.hint("put the file itself there"),
        StoreError::NoFile(_) | StoreError::StrayJournal(_) => {
            failure.hint("move it away: nothing of the store is in it")
        }
        StoreError::OtherSchema { path, .. } => failure.hint(format!(
            "`windlass doctor --export sound.jsonl` saves its events; move {} away, and `windlass init` makes an empty store",
            path.display()
        )),
        StoreError::NotAStore(path) => failure.hint(format!(
            "move {} away and restore a backup, or run `windlass init` for an empty store",
            path.display()
        )),
        StoreError::Foreign(_) => Failure { code: Code::Trust, ..failure }
            .hint("`windlass trust` shows what it holds and asks; or move it away, and `windlass init` makes an empty one")
            .offer_trust(),
        StoreError::Unsound { .. } => failure.hint(
            "`windlass doctor` says what is wrong; `windlass doctor --rebuild --trust` folds the rows anew from the log",
        ),
        StoreError::Record { .. } => failure.hint("set `WINDLASS_STATE_DIR` to a directory of your own"),
        StoreError::Newer { .. } => failure.hint("use a newer Windlass; nothing was changed"),
        StoreError::Damaged { .. }
        | StoreError::BrokenChain { .. }
        | StoreError::Undecodable { .. }
        | StoreError::Corrupt { .. }
        | StoreError::LostCommits { .. } => failure.hint(
            "`windlass doctor --export sound.jsonl` saves every sound event; `windlass doctor` says what is damaged",
        ),
        StoreError::BadRow { .. } => {
            failure.hint("if the log is sound, `windlass doctor --rebuild` folds the rows anew")
        }
        StoreError::OutcomeUnknown { .. } => {
            failure.hint("look before you try again: `windlass events` shows whether it was recorded")
        }
        StoreError::Unfit { .. } => failure.hint("`windlass doctor` looks the whole store over"),
        StoreError::Full { .. } => failure.hint("make room and try again; nothing was lost"),
        StoreError::ReadOnly(_) => {
            failure.hint("check the permissions of the directory and whether its disk is read-only")
        }
        StoreError::Busy { .. } => {
            failure.hint("look for a stopped windlass process, or a backup program that holds the file")
        }
        StoreError::Open { .. } => failure.hint("check that the directory exists and can be written to"),
        StoreError::Backup { .. } => failure.hint(
            "a store of an older schema is brought forward first, after a copy: make room for one, and see that its \
             directory can be written to; nothing was changed",
        ),
        StoreError::Exists(_) => failure.hint("choose another name; nothing is overwritten"),
        _ => failure,
    }
}
