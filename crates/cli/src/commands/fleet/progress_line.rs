//! A line that shows the progress of long work on a terminal. In a pipe there is none.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// The time between two changes of the line.
const CHANGE_INTERVAL: Duration = Duration::from_millis(100);
const BAR_WIDTH: u64 = 30;

/// The progress of work on standard error.
pub struct ProgressLine {
    label: &'static str,
    is_shown: bool,
    next_change: Instant,
    is_begun: bool,
}

impl ProgressLine {
    pub fn new(label: &'static str) -> Self {
        let is_shown = io::stderr().is_terminal();
        Self { label, is_shown, next_change: Instant::now() + CHANGE_INTERVAL, is_begun: false }
    }

    /// Shows how many of all are done.
    pub fn show(&mut self, done: u64, all: u64) {
        if !self.is_shown || Instant::now() < self.next_change {
            return;
        }
        self.next_change = Instant::now() + CHANGE_INTERVAL;
        self.is_begun = true;
        let filled = done.min(all) * BAR_WIDTH / all.max(1);
        let bar: String = (0..BAR_WIDTH).map(|place| if place < filled { '█' } else { '░' }).collect();
        // A terminal that is gone needs no progress.
        let _ = write!(io::stderr(), "\r{} {bar} {done} of {all} ", self.label);
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.is_begun {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
