//! Errors that stop a loop. Failures of agents and hooks are in the log instead.

use std::io;

use windlass_engine::{EffectId, ParseIdError, Seq, SessionName, ViewError};
use windlass_store::{ExecuteError, StoreError};

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Execute(#[from] ExecuteError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("cannot read the session")]
    View(#[from] ViewError),
    #[error("cannot use the owner's name")]
    Owner(#[source] ParseIdError),
    #[error("cannot get random bytes")]
    Random(#[source] io::Error),
    #[error("cannot start the supervisor")]
    Supervisor(#[source] io::Error),
    #[error("{0} is a turn, not a hook")]
    NoHook(EffectId),
    #[error("event {0} is not in the log")]
    MissingEvent(Seq),
    #[error("session `{0}` is in a state without a next step")]
    Stuck(SessionName),
    /// The run was ended at once. The session goes on when it is run again.
    #[error("killed")]
    Killed,
}
