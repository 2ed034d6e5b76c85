//! The sink of progress lines: standard output, or the batch of a worker.

use crate::output::{CommandResult, Output, Palette};

pub trait ProgressSink {
    /// Returns whether the output is JSON for a program.
    fn is_json(&self) -> bool;
    fn palette(&self) -> Palette;
    /// Returns the width of the terminal; `None` for a pipe, where nothing is cut.
    fn columns(&self) -> Option<usize>;
    fn print_line(&mut self, line: String) -> CommandResult;
    /// Prints JSON text as one line.
    fn print_json_line(&mut self, json: &str) -> CommandResult;
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

    fn print_json_line(&mut self, json: &str) -> CommandResult {
        Output::print_json_line(self, json)
    }

    fn flush(&mut self) -> CommandResult {
        Output::flush(self)
    }

    fn ignore_closed_output(&mut self) {
        Output::ignore_closed_output(self);
    }
}
