//! The output of a worker: lines on their way to the thread that writes standard output.

use std::sync::mpsc::SyncSender;

use windlass_text as text;

use super::sink::ProgressSink;
use crate::output::{CommandResult, Palette};

/// Lines that belong together.
pub type LineBatch = Vec<String>;

/// A sink that gathers the lines of one event and sends them on together.
pub struct WorkerOutput {
    pub json: bool,
    pub palette: Palette,
    pub columns: Option<usize>,
    pub to: SyncSender<LineBatch>,
    pub batch: LineBatch,
}

impl ProgressSink for WorkerOutput {
    fn is_json(&self) -> bool {
        self.json
    }

    fn palette(&self) -> Palette {
        self.palette
    }

    fn columns(&self) -> Option<usize> {
        self.columns
    }

    fn print_line(&mut self, line: String) -> CommandResult {
        self.batch.push(line);
        Ok(())
    }

    fn print_json_line(&mut self, json: &str) -> CommandResult {
        self.print_line(text::clean_json(json).into_owned())
    }

    fn flush(&mut self) -> CommandResult {
        if !self.batch.is_empty() {
            // The writing thread continues without a reader, so a failure means that it has ended.
            let _ = self.to.send(std::mem::take(&mut self.batch));
        }
        Ok(())
    }

    fn ignore_closed_output(&mut self) {}
}
