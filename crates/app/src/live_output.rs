//! The output of an agent's turn in progress, read from the record that the runner writes while the agent works.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;

use windlass_engine::{EffectId, Session};
use windlass_hooks::clean_output;
use windlass_process::file;
use windlass_text::LineSplitter;

use crate::context::OpenedProject;
use crate::hook_runs::turn_record_name;

/// The most bytes that are read at a time.
const MAX_BYTES_PER_READ: u64 = 256 * 1024;

/// The most output that a reader shows when it begins, or when it has fallen behind.
const MAX_BACKLOG_BYTES: u64 = 1024 * 1024;
/// The line in place of output that is left out.
const LEFT_OUT_LINE: &str = "… (output left out)";

/// Reads the output of one turn in whole lines. Of a long output that it has not read yet, it shows the end.
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
        let path = opened.project.record_directory().join(turn_record_name(&session.name, effect));
        Some(Self { effect, path, file: None, splitter: LineSplitter::default() })
    }

    /// Returns the effect of the turn.
    pub fn effect(&self) -> EffectId {
        self.effect
    }

    /// Returns lines that were written since the last call, a bounded number of them.
    pub fn read_new_lines(&mut self) -> io::Result<Vec<String>> {
        let mut lines: Vec<String> = self.skip_backlog()?.into_iter().map(str::to_owned).collect();
        let piece = self.read_piece()?;
        lines.extend(self.splitter.push(&piece).iter().map(|line| clean_output(line)));
        Ok(lines)
    }

    /// Returns the remaining lines of a turn that has ended, with the unfinished one.
    pub fn read_last_lines(&mut self) -> io::Result<Vec<String>> {
        let mut lines = Vec::new();
        loop {
            let more = self.read_new_lines()?;
            if more.is_empty() {
                break;
            }
            lines.extend(more);
        }
        lines.extend(self.splitter.finish().map(|line| clean_output(&line)));
        Ok(lines)
    }

    /// Skips to the end of an output that is too long to be shown. Returns the line in its place.
    fn skip_backlog(&mut self) -> io::Result<Option<&'static str>> {
        if self.file.is_none() {
            self.file = match file::open_regular_file(&self.path) {
                Ok(file) => Some(file),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error),
            };
        }
        let Some(file) = &mut self.file else { return Ok(None) };
        let (position, end) = (file.stream_position()?, file.metadata()?.len());
        if end.saturating_sub(position) <= MAX_BACKLOG_BYTES {
            return Ok(None);
        }
        file.seek(SeekFrom::Start(end - MAX_BYTES_PER_READ))?;
        self.splitter = LineSplitter::default();
        Ok(Some(LEFT_OUT_LINE))
    }

    fn read_piece(&mut self) -> io::Result<Vec<u8>> {
        let mut piece = Vec::new();
        if let Some(file) = &self.file {
            file.take(MAX_BYTES_PER_READ).read_to_end(&mut piece)?;
        }
        Ok(piece)
    }
}
