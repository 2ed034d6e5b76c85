//! What the loop needs from whoever runs it: the clock, randomness, and an ear.

use std::io;
use std::time::Duration;

use windlass_engine::{Record, Task, Timestamp};
use windlass_process::Stream;

/// Something that happened, for whoever watches.
#[derive(Debug, Clone, Copy)]
pub enum RunnerEvent<'a> {
    /// It is in the log.
    Event(&'a Record),
    /// The session takes up this task.
    TakesUp(&'a Task),
    /// An agent or a hook wrote this.
    Output(Stream, &'a [u8]),
    /// Nothing is done for so long.
    Waiting(Duration),
    /// Somebody else merges, and comes first.
    Queueing,
    /// The agent is asked now, after it was waited.
    Asking,
    /// Somebody is to hear this, and there is no other way.
    Notice(&'a str),
    /// Whoever reads about the session should know this.
    Note(&'a str),
}

/// The world as the loop sees it.
pub struct RunnerEnv<'a> {
    pub now: &'a dyn Fn() -> Timestamp,
    pub random: &'a dyn Fn() -> io::Result<u128>,
    pub tell: &'a mut dyn FnMut(RunnerEvent<'_>),
    /// Whether output is told while it is written. Otherwise nobody looks at it on its way.
    pub shows_output: bool,
}
