//! A program that shows a long text to a person. It is the one program that gets the terminal which this process has: it
//! reads keys, and leads no group of its own.
//!
//! Not here: which program (`app::environment`).

use std::ffi::OsStr;
use std::io::{self, ErrorKind, Write};
use std::process::{Child, Command, Stdio};

/// What shells say of a program that is not there.
const MISSING: i32 = 127;

pub struct Pager {
    child: Child,
}

/// Whether a person could see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paged {
    Shown,
    /// There is no such program.
    Missing,
}

impl Pager {
    /// Starts a command of the shell.
    pub fn start(command: impl AsRef<OsStr>) -> io::Result<Self> {
        #[expect(clippy::disallowed_methods, reason = "this is the one home of programs that get the terminal")]
        let mut shell = Command::new("sh");
        let child = shell.arg("-c").arg(command).stdin(Stdio::piped()).spawn()?;
        Ok(Self { child })
    }

    /// Hands a text over, and waits until the person has seen enough of it.
    pub fn show(mut self, text: &[u8]) -> io::Result<Paged> {
        let written = self.child.stdin.take().map_or(Ok(()), |mut pipe| pipe.write_all(text));
        let status = self.child.wait()?;
        match written {
            // Whoever leaves before the end has seen enough.
            Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error),
            _ if status.code() == Some(MISSING) => Ok(Paged::Missing),
            _ => Ok(Paged::Shown),
        }
    }
}
