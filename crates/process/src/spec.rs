//! What is to be run, and what came of it.
//!
//! Not here: how it is run (`run`, `supervised`).

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::os::Status;
use crate::{Captured, Environment};

/// Which program, and with what arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Invocation {
    /// A script for `/bin/sh -c`. One that only names a program and its arguments is started without the shell.
    Shell(OsString),
    /// A program, looked up in the `PATH` of its own environment, and its arguments.
    Argv(Vec<OsString>),
}

/// A program to be run.
#[derive(Debug, Clone)]
pub struct Spec {
    pub invocation: Invocation,
    pub directory: PathBuf,
    /// The whole environment of the child, to which only `WINDLASS_TAG` is added; a `PWD` in it is made to be right.
    pub environment: Environment,
    /// Written while the output is drained, then closed. A child need not read it.
    pub stdin: Vec<u8>,
    pub timeout: Option<Duration>,
    /// How long it may write nothing.
    pub silence: Option<Duration>,
    /// How long after SIGTERM what is left is killed.
    pub grace: Duration,
    pub capture: Capture,
}

impl Spec {
    /// A program without input, a time limit or a grace, of which no output is kept.
    pub fn new(invocation: Invocation, directory: impl Into<PathBuf>, environment: Environment) -> Self {
        Self {
            invocation,
            directory: directory.into(),
            environment,
            stdin: Vec::new(),
            timeout: None,
            silence: None,
            grace: Duration::ZERO,
            capture: Capture { head: 0, tail: 0, spill: None },
        }
    }
}

/// How much of each output stream is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capture {
    /// Bytes kept from the start.
    pub head: usize,
    /// Bytes kept from the end.
    pub tail: usize,
    /// Where the whole goes when it is more than head and tail.
    pub spill: Option<Spill>,
}

/// A file per stream for output that does not fit in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spill {
    /// The files are this with `.stdout` and `.stderr` appended, and a number where that is taken.
    pub path: PathBuf,
    /// The most bytes that a file gets.
    pub cap: u64,
}

/// One of the two output streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
}

/// How a run ended. A failing process is a fact, not an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal(i32),
    TimedOut,
    /// It wrote nothing for as long as it may.
    Silent,
    /// Cancelled or killed by its [`Control`](crate::Control), perhaps before it was started.
    Cancelled,
    /// The supervisor died, and the exit status with it.
    Lost,
}

impl From<Status> for Exit {
    fn from(status: Status) -> Self {
        match status {
            Status::Code(code) => Self::Code(code),
            Status::Signal(signal) => Self::Signal(signal),
            Status::Lost => Self::Lost,
        }
    }
}

/// What came of a run.
#[derive(Debug, Clone)]
pub struct Finished {
    pub exit: Exit,
    pub stdout: Captured,
    pub stderr: Captured,
    /// The program was done, but had left processes behind that had to be ended, or somebody who held its output. Or
    /// somebody beyond our reach holds it even now, so that some of it may be missing.
    pub leaky: bool,
    pub took: Duration,
}

impl Finished {
    /// What a program would have left that wrote this, and was content.
    pub fn said(stdout: Vec<u8>) -> Self {
        let stdout = Captured { total: stdout.len() as u64, head: stdout, ..Captured::default() };
        Self { exit: Exit::Code(0), stdout, stderr: Captured::default(), leaky: false, took: Duration::ZERO }
    }
}
