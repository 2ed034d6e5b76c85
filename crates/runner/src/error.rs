//! Why a loop could not go on. What agents and hooks do wrong is not among it: that is in the log.

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
    #[error("session `{0}` is in a state that nothing leads out of")]
    Stuck(SessionName),
    /// Everything was ended at once; the session goes on when it is run again.
    #[error("killed")]
    Killed,
}
