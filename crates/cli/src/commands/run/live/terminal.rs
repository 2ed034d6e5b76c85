//! The terminal: lines that scroll, and below them rows that are drawn again and again.
//!
//! ```text
//!   … lines that stay
//!   first row        ◄ where the cursor waits, in the first column, and the next frame begins
//!   last row
//! ```
//!
//! Invariants:
//! - A frame is one write, and none if nothing has changed.
//! - A terminal of another size keeps the cursor where it is in the text. However it has broken, cut or dropped the rows, all of
//!   them are at the cursor and below it.
//! - The cursor is never hidden, and what a frame changes in how the terminal writes is as it was after it.
//! - In the background only lines are written.

use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::getpgrp;
use rustix::termios::{tcgetpgrp, tcgetwinsize};

use super::area::Row;

/// Between these a terminal shows nothing half done, if it knows them.
const BEGIN: &str = "\x1b[?2026h";
const END: &str = "\x1b[?2026l";
/// A row that is wider than we think is cut, not continued: between these.
const CUT: &str = "\x1b[?7l";
const WRAP: &str = "\x1b[?7h";
/// From the cursor to the end of the row.
const CLEAR_ROW: &str = "\x1b[K";
/// From the row of the cursor to the end of the screen. Not from the first cell of a screen: some terminals (tmux) would
/// first save all of it among what has scrolled.
const CLEAR_BELOW: &str = "\x1b[K\x1b[C\x1b[J\r";
/// For a terminal that does not tell.
const USUAL: (usize, usize) = (80, 24);

/// What is on the terminal now.
#[derive(Debug, Default)]
pub struct Terminal {
    rows: Vec<Row>,
    /// How large it was then.
    size: (usize, usize),
    /// Nobody is there any more.
    gone: bool,
}

/// Columns and rows.
pub fn size() -> (usize, usize) {
    match tcgetwinsize(rustix::stdio::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
        _ => USUAL,
    }
}

/// Whether what is typed here comes to us. A terminal that is not ours to ask is.
fn in_foreground() -> bool {
    tcgetpgrp(rustix::stdio::stdout()).map_or(true, |group| group == getpgrp())
}

impl Terminal {
    /// Adds lines to what scrolls, and replaces the rows below it.
    pub fn draw(&mut self, lines: &[String], rows: Vec<Row>) {
        let rows = if in_foreground() { rows } else { Vec::new() };
        let size = size();
        if self.gone || (lines.is_empty() && rows == self.rows && size == self.size) {
            return;
        }
        let frame = self.frame(lines, &rows, size);
        self.gone = write(frame.as_bytes()).is_err();
        (self.rows, self.size) = (rows, size);
    }

    /// Has the terminal tell whoever does not look at it. One that cannot takes no notice.
    pub fn notify(&mut self, notice: &str) {
        self.gone = self.gone || write(format!("\x1b]9;{notice}\x07").as_bytes()).is_err();
    }

    /// The bytes of a frame.
    fn frame(&self, lines: &[String], rows: &[Row], size: (usize, usize)) -> String {
        let mut frame = format!("{BEGIN}\r");
        // Otherwise every row takes the place of one, and nothing has to be blank in between.
        if !lines.is_empty() || rows.len() != self.rows.len() || size != self.size {
            frame.push_str(CLEAR_BELOW);
        }
        for line in lines {
            frame.push_str(line);
            frame.push('\n');
        }
        frame.push_str(CUT);
        for (number, row) in rows.iter().enumerate() {
            frame.push_str(if number == 0 { "" } else { "\n" });
            frame.push_str(CLEAR_ROW);
            frame.push_str(&row.text);
        }
        frame.push('\r');
        if let below @ 1.. = rows.len().saturating_sub(1) {
            frame.push_str(&format!("\x1b[{below}A"));
        }
        frame.push_str(WRAP);
        frame.push_str(END);
        frame
    }

    /// Whether a write would not have to wait now.
    pub fn is_writable() -> bool {
        let stdout = rustix::stdio::stdout();
        let mut watched = [PollFd::from_borrowed_fd(stdout.as_fd(), PollFlags::OUT)];
        poll(&mut watched, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
    }
}

/// Past the buffer of standard output, which the main thread holds.
fn write(mut bytes: &[u8]) -> Result<(), Errno> {
    let stdout = rustix::stdio::stdout();
    while !bytes.is_empty() {
        match rustix::io::write(stdout, bytes) {
            Ok(0) => return Err(Errno::IO),
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            // Somebody who shares the terminal has asked for that.
            Err(Errno::AGAIN) => {
                let mut watched = [PollFd::from_borrowed_fd(stdout, PollFlags::OUT)];
                poll(&mut watched, None)
                    .map(drop)
                    .or_else(|error| if error == Errno::INTR { Ok(()) } else { Err(error) })?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
