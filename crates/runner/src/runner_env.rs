//! Environment of the loop: the clock, randomness, and the observer.

use std::io;
use std::time::Duration;

use windlass_engine::{EventRecord, Task, Timestamp};
use windlass_process::OutputStream;

/// Something that happened, for the observer.
#[derive(Debug, Clone, Copy)]
pub enum RunnerEvent<'a> {
    /// An event of the log.
    Event(&'a EventRecord),
    /// The session has claimed this task.
    TaskClaimed(&'a Task),
    /// Output of an agent or a hook.
    Output(OutputStream, &'a [u8]),
    /// The loop waits for so long.
    Waiting(Duration),
    /// Another process merges first.
    Queueing,
    /// The agent is prompted now, after a wait.
    Prompting,
    /// A notice for a person that has no other channel.
    Notice(&'a str),
    /// A remark for readers of the session's output.
    Note(&'a str),
}

/// Clock, randomness and observer of the loop.
pub struct RunnerEnv<'a> {
    pub now: &'a dyn Fn() -> Timestamp,
    pub random: &'a dyn Fn() -> io::Result<u128>,
    pub observe: &'a mut dyn FnMut(RunnerEvent<'_>),
    /// Whether the observer shows output while it is written. Otherwise the loop does not send any.
    pub shows_output: bool,
}
