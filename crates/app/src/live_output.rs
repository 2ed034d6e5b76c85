//! The output of an agent's turn in progress, read from the record that the runner writes while the agent works.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use windlass_engine::{EffectId, Session};
use windlass_hooks::clean_output;
use windlass_process::file;
use windlass_text::LineSplitter;

use crate::context::OpenedProject;

/// The most bytes that are read at a time.
const MAX_BYTES_PER_READ: u64 = 256 * 1024;

/// Reads the output of one turn, from its beginning, in whole lines.
#[derive(Debug)]
pub struct LiveOutputReader {
    effect: EffectId,
    path: PathBuf,
    /// Opened when the agent has written something.
    file: Option<File>,
    splitter: LineSplitter,
}

impl LiveOutputReader {
    /// Returns a reader for the turn that a session waits for.
    pub fn for_current_turn(opened: &OpenedProject, session: &Session) -> Option<Self> {
        let effect = session.current_turn()?.effect;
        let path = opened.project.record_directory().join(session.name.as_str()).join(format!("{effect}.turn"));
        Some(Self { effect, path, file: None, splitter: LineSplitter::default() })
    }

    /// Returns the effect of the turn.
    pub fn effect(&self) -> EffectId {
        self.effect
    }

    /// Returns the lines that were written since the last call.
    pub fn read_new_lines(&mut self) -> io::Result<Vec<String>> {
        let mut lines = Vec::new();
        loop {
            let piece = self.read_piece()?;
            if piece.is_empty() {
                return Ok(lines);
            }
            lines.extend(self.splitter.push(&piece).iter().map(|line| clean_output(line)));
        }
    }

    /// Returns the remaining lines of a turn that has ended, with the unfinished one.
    pub fn read_last_lines(&mut self) -> io::Result<Vec<String>> {
        let mut lines = self.read_new_lines()?;
        lines.extend(self.splitter.finish().map(|line| clean_output(&line)));
        Ok(lines)
    }

    fn read_piece(&mut self) -> io::Result<Vec<u8>> {
        if self.file.is_none() {
            self.file = match file::open_regular_file(&self.path) {
                Ok(file) => Some(file),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
                Err(error) => return Err(error),
            };
        }
        let mut piece = Vec::new();
        if let Some(file) = &self.file {
            file.take(MAX_BYTES_PER_READ).read_to_end(&mut piece)?;
        }
        Ok(piece)
    }
}
