//! The terminal of the live view: scrolling lines, and below them rows that are redrawn.
//!
//! ```text
//!   … lines that stay
//!   first row        ◄ the cursor rests here, in the first column, and the next frame begins here
//!   last row
//! ```
//!
//! Invariants:
//! - A frame is one write. Without a change there is none.
//! - A resized terminal keeps the cursor at its place in the text. However it has wrapped, cut or dropped the rows, all of
//!   them are at the cursor and below it.
//! - The cursor is never hidden, and a frame restores each mode of the terminal that it changes.
//! - A process in the background writes only lines.

use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::getpgrp;
use rustix::termios::{tcgetpgrp, tcgetwinsize};

use super::area::TerminalRow;

/// Synchronized output: a terminal that knows it shows nothing between these until the frame is complete.
const BEGIN_SYNCHRONIZED: &str = "\x1b[?2026h";
const END_SYNCHRONIZED: &str = "\x1b[?2026l";
/// Between these a row that is wider on this terminal than its computed width is cut, not wrapped.
const DISABLE_WRAP: &str = "\x1b[?7l";
const ENABLE_WRAP: &str = "\x1b[?7h";
/// Clears from the cursor to the end of the row.
const CLEAR_ROW: &str = "\x1b[K";
/// Clears from the row of the cursor to the end of the screen. It does not start in the first cell of a screen, because some
/// terminals (tmux) would first move the whole screen into the scrollback.
const CLEAR_BELOW: &str = "\x1b[K\x1b[C\x1b[J\r";
/// The assumed size of a terminal that does not report one.
const DEFAULT_SIZE: (usize, usize) = (80, 24);

/// The present content of the terminal.
#[derive(Debug, Default)]
pub struct LiveTerminal {
    rows: Vec<TerminalRow>,
    /// The size when the content was drawn.
    size: (usize, usize),
    /// The terminal is closed.
    gone: bool,
}

/// Returns the columns and rows of the terminal.
pub fn terminal_size() -> (usize, usize) {
    match tcgetwinsize(rustix::stdio::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
        _ => DEFAULT_SIZE,
    }
}

/// Returns whether this process is in the foreground of the terminal. It counts as such if the terminal cannot be asked.
fn is_in_foreground() -> bool {
    tcgetpgrp(rustix::stdio::stdout()).map_or(true, |group| group == getpgrp())
}

impl LiveTerminal {
    /// Adds scrolling lines and replaces the rows below them.
    pub fn draw_frame(&mut self, lines: &[String], rows: Vec<TerminalRow>) {
        let rows = if is_in_foreground() { rows } else { Vec::new() };
        let size = terminal_size();
        if self.gone || (lines.is_empty() && rows == self.rows && size == self.size) {
            return;
        }
        let frame = self.build_frame(lines, &rows, size);
        self.gone = write_unbuffered(frame.as_bytes()).is_err();
        (self.rows, self.size) = (rows, size);
    }

    /// Sends a desktop notification (OSC 9). Terminals that do not know it ignore it.
    pub fn send_notification(&mut self, notice: &str) {
        self.gone = self.gone || write_unbuffered(format!("\x1b]9;{notice}\x07").as_bytes()).is_err();
    }

    /// Builds the bytes of a frame.
    fn build_frame(&self, lines: &[String], rows: &[TerminalRow], size: (usize, usize)) -> String {
        let mut frame = format!("{BEGIN}\r");
        // Otherwise each row overwrites one, and no row has to be blank in between.
        if !lines.is_empty() || rows.len() != self.rows.len() || size != self.size {
            frame.push_str(CLEAR_BELOW);
        }
        for line in lines {
            frame.push_str(line);
            frame.push('\n');
        }
        frame.push_str(DISABLE_WRAP);
        for (number, row) in rows.iter().enumerate() {
            frame.push_str(if number == 0 { "" } else { "\n" });
            frame.push_str(CLEAR_ROW);
            frame.push_str(&row.text);
        }
        frame.push('\r');
        if let below @ 1.. = rows.len().saturating_sub(1) {
            frame.push_str(&format!("\x1b[{below}A"));
        }
        frame.push_str(ENABLE_WRAP);
        frame.push_str(END_SYNCHRONIZED);
        frame
    }

    /// Returns whether a write would not block now.
    pub fn is_writable() -> bool {
        let stdout = rustix::stdio::stdout();
        let mut watched = [PollFd::from_borrowed_fd(stdout.as_fd(), PollFlags::OUT)];
        poll(&mut watched, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
    }
}

/// Writes past the buffer of standard output, which the main thread holds.
fn write_unbuffered(mut bytes: &[u8]) -> Result<(), Errno> {
    let stdout = rustix::stdio::stdout();
    while !bytes.is_empty() {
        match rustix::io::write(stdout, bytes) {
            Ok(0) => return Err(Errno::IO),
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            // Another program that shares the terminal has set it to non-blocking.
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
