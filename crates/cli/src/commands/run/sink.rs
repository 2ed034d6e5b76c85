//! Where progress is written: standard output, or the lines that a worker gathers.

use windlass_engine::Record;

use crate::output::{Done, Output, Palette};

pub trait ProgressSink {
    /// Returns whether a program reads.
    fn is_json(&self) -> bool;
    fn palette(&self) -> Palette;
    /// Returns the width of the terminal. In a pipe nothing is cut.
    fn columns(&self) -> Option<usize>;
    fn line(&mut self, line: String) -> Done;
    fn record(&mut self, record: &Record) -> Done;
    /// Passes on the lines that belong together.
    fn flush(&mut self) -> Done;
    /// Goes on without a reader.
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
