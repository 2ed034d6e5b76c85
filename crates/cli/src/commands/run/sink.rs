//! The sink of progress lines: standard output, or the batch of a worker.

use windlass_engine::EventRecord;

use crate::output::{CommandResult, Output, Palette};

pub trait ProgressSink {
    /// Returns whether the output is JSON for a program.
    fn is_json(&self) -> bool;
    fn palette(&self) -> Palette;
    /// Returns the width of the terminal; `None` for a pipe, where nothing is cut.
    fn columns(&self) -> Option<usize>;
    fn print_line(&mut self, line: String) -> CommandResult;
    fn print_record(&mut self, record: &EventRecord) -> CommandResult;
    /// Writes the lines that belong together.
    fn flush(&mut self) -> CommandResult;
    /// Continues without a reader.
    fn ignore_closed_output(&mut self);
}

impl ProgressSink for &mut Output {
    fn is_json(&self) -> bool {
        Output::is_json(self)
    }

    fn palette(&self) -> Palette {
        Output::palette(self)
    }

    fn columns(&self) -> Option<usize> {
        Output::columns(self)
    }

    fn print_line(&mut self, line: String) -> CommandResult {
        Output::print_line(self, line)
    }

    fn print_record(&mut self, record: &EventRecord) -> CommandResult {
        self.print_json(record)
    }

    fn flush(&mut self) -> CommandResult {
        Output::flush(self)
    }

    fn ignore_closed_output(&mut self) {
        Output::ignore_closed_output(self);
    }
}
