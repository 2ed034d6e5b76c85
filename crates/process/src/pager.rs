//! A program that shows a long text to a user. It is the only program that gets the terminal of this process: it reads keys, and
//! leads no group of its own.
//!
//! Not here: which program (`app::environment`).

use std::ffi::OsStr;
use std::io::{self, ErrorKind, Write};
use std::process::{Child, Command, Stdio};

/// Exit code of a shell that cannot find the program.
const EXIT_CODE_NOT_FOUND: i32 = 127;

pub struct TerminalPager {
    child: Child,
}

/// Result of showing a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PagerOutcome {
    Shown,
    /// The program does not exist.
    Missing,
}

impl TerminalPager {
    /// Starts a shell command.
    pub fn start(command: impl AsRef<OsStr>) -> io::Result<Self> {
        #[expect(clippy::disallowed_methods, reason = "this is the one home of programs that get the terminal")]
        let mut shell = Command::new("sh");
        let child = shell.arg("-c").arg(command).stdin(Stdio::piped()).spawn()?;
        Ok(Self { child })
    }

    /// Writes the text to the pager, and waits until the user closes it.
    pub fn show_text(mut self, text: &[u8]) -> io::Result<PagerOutcome> {
        let written = self.child.stdin.take().map_or(Ok(()), |mut pipe| pipe.write_all(text));
        let status = self.child.wait()?;
        match written {
            // A user may close the pager before the end of the text.
            Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error),
            _ if status.code() == Some(EXIT_CODE_NOT_FOUND) => Ok(PagerOutcome::Missing),
            _ => Ok(PagerOutcome::Shown),
        }
    }
}
