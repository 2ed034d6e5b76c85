//! Description of a program to run, and the outcome of the run.
//!
//! Not here: how it is run (`run`, `supervised_run`).

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::os::ProcessStatus;
use crate::{CapturedOutput, Environment};

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramInvocation {
    /// A script for `/bin/sh -c`. A script of one program and its literal arguments is started without the shell.
    Shell(OsString),
    /// A program, looked up in the `PATH` of its own environment, and its arguments.
    Argv(Vec<OsString>),
}

/// A program to run.
#[derive(Debug, Clone)]
pub struct ProgramSpec {
    pub invocation: ProgramInvocation,
    /// A program with its arguments, such as a sandbox, which becomes the invoked program. The path and the arguments of the invoked
    /// program follow its own. Empty for none.
    pub wrapper: Vec<OsString>,
    pub directory: PathBuf,
    /// The whole environment of the child. Only `WINDLASS_TAG` is added, and a `PWD` in it is corrected.
    pub environment: Environment,
    /// Written while the output is drained, then closed. A child need not read it.
    pub stdin: Vec<u8>,
    pub timeout: Option<Duration>,
    /// How long the program may write nothing.
    pub idle_timeout: Option<Duration>,
    /// Time between SIGTERM and SIGKILL.
    pub grace: Duration,
    pub capture: CaptureLimits,
}

impl ProgramSpec {
    /// A program without input, time limits or grace, whose output is not captured.
    pub fn new(invocation: ProgramInvocation, directory: impl Into<PathBuf>, environment: Environment) -> Self {
        Self {
            invocation,
            wrapper: Vec::new(),
            directory: directory.into(),
            environment,
            stdin: Vec::new(),
            timeout: None,
            idle_timeout: None,
            grace: Duration::ZERO,
            capture: CaptureLimits { head: 0, tail: 0, spill: None },
        }
    }
}

/// Limits for the captured bytes of each output stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureLimits {
    /// Bytes kept from the start.
    pub head: usize,
    /// Bytes kept from the end.
    pub tail: usize,
    /// Files for all of the output, if it is more than head and tail.
    pub spill: Option<SpillTarget>,
}

/// A file per stream for output that does not fit in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpillTarget {
    /// Path of the files without `.stdout` or `.stderr`, and without the number that follows where a name is taken.
    pub path: PathBuf,
    /// Limit for the bytes in each file.
    pub cap: u64,
}

/// One of the two output streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputStream {
    Stdout,
    Stderr,
}

/// How a run ended. A failing process is a fact, not an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramExit {
    Code(i32),
    Signal(i32),
    TimedOut,
    /// The program wrote nothing for longer than it may.
    OutputIdle,
    /// Cancelled or killed by its [`RunControl`](crate::RunControl), perhaps before it was started.
    Cancelled,
    /// The supervisor died, and the exit status with it.
    Lost,
}

impl From<ProcessStatus> for ProgramExit {
    fn from(status: ProcessStatus) -> Self {
        match status {
            ProcessStatus::Code(code) => Self::Code(code),
            ProcessStatus::Signal(signal) => Self::Signal(signal),
            ProcessStatus::Lost => Self::Lost,
        }
    }
}

/// The outcome of a run.
#[derive(Debug, Clone)]
pub struct ProgramOutcome {
    pub exit: ProgramExit,
    pub stdout: CapturedOutput,
    pub stderr: CapturedOutput,
    /// The program had exited, but left processes behind that had to be ended, or processes that held its output. Or a process
    /// beyond our reach still holds the output, so that some of it may be missing.
    pub leaky: bool,
    pub took: Duration,
}

impl ProgramOutcome {
    /// Returns the outcome of a successful program that wrote this.
    pub fn success_with_stdout(stdout: Vec<u8>) -> Self {
        let stdout = CapturedOutput { total: stdout.len() as u64, head: stdout, ..CapturedOutput::default() };
        Self {
            exit: ProgramExit::Code(0),
            stdout,
            stderr: CapturedOutput::default(),
            leaky: false,
            took: Duration::ZERO,
        }
    }
}
