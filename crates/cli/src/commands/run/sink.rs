//! The sink of progress lines: standard output, or the batch of a worker.

use windlass_engine::Record;

use crate::output::{Done, Output, Palette};

pub trait ProgressSink {
    /// Returns whether the output is JSON for a program.
    fn is_json(&self) -> bool;
    fn palette(&self) -> Palette;
    /// Returns the width of the terminal; `None` for a pipe, where nothing is cut.
    fn columns(&self) -> Option<usize>;
    fn line(&mut self, line: String) -> Done;
    fn record(&mut self, record: &Record) -> Done;
    /// Writes the lines that belong together.
    fn flush(&mut self) -> Done;
    /// Continues without a reader.
    fn give_up(&mut self);
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

    fn line(&mut self, line: String) -> Done {
        Output::line(self, line)
    }

    fn record(&mut self, record: &Record) -> Done {
        self.object(record)
    }

    fn flush(&mut self) -> Done {
        Output::flush(self)
    }

    fn give_up(&mut self) {
        Output::give_up(self);
    }
}
