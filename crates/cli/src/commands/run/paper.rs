//! Where what happens is written down: standard output, or whoever gathers the lines of several workers.

use windlass_engine::Record;

use crate::output::{Done, Output, Palette};

pub trait Paper {
    /// Whether the reader is a program.
    fn is_json(&self) -> bool;
    fn palette(&self) -> Palette;
    /// How wide the terminal is. In a pipe nothing is cut.
    fn columns(&self) -> Option<usize>;
    fn line(&mut self, line: String) -> Done;
    fn record(&mut self, record: &Record) -> Done;
    /// What belongs together was written.
    fn flush(&mut self) -> Done;
    /// Goes on without a reader.
    fn give_up(&mut self);
}

impl Paper for Output {
    fn is_json(&self) -> bool {
        Self::is_json(self)
    }

    fn palette(&self) -> Palette {
        Self::palette(self)
    }

    fn columns(&self) -> Option<usize> {
        Self::columns(self)
    }

    fn line(&mut self, line: String) -> Done {
        Self::line(self, line)
    }

    fn record(&mut self, record: &Record) -> Done {
        self.object(record)
    }

    fn flush(&mut self) -> Done {
        Self::flush(self)
    }

    fn give_up(&mut self) {
        Self::give_up(self);
    }
}
