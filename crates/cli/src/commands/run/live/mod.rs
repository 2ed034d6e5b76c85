//! The live view of a run for a person at a terminal: scrolling lines, and a status area below them.
//!
//! ```text
//!   loop ─ line, change ─► ViewState ─ at most ten times a second ─► LiveTerminal
//!   signals ─ hold, release, clear ─┘            (a thread of its own)
//! ```
//!
//! Invariants:
//! - The loop never waits for the terminal: it changes the state, and a thread draws.
//! - If only a clock has changed, the thread draws one frame per second.
//! - When the view is dropped, it has written every line and removed its rows.
//! - Typed characters are not echoed while there are rows. They are echoed while the view is held, stopped or over.
//!
//! Not here: events in words (`progress`), the content of the rows (`area`), bytes for the terminal (`terminal`).

mod area;
mod tail;
mod terminal;
mod updates;
mod view_state;
mod worker_board;

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, TryLockError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use windlass_app::run::workers::PoolProgress;
use windlass_text as text;

use self::area::TerminalRow;
use self::terminal::LiveTerminal;
use crate::output::Palette;

pub use self::area::StatusArea;
pub use self::updates::update_view;

/// The least time between two frames.
const FRAME_INTERVAL: Duration = Duration::from_millis(100);
/// The most lines that wait for a blocked terminal. The log has all of them.
const MAX_PENDING_LINES: usize = 10_000;
/// The longest notice.
const MAX_NOTICE_LENGTH: usize = 200;
/// The longest time that `flush_and_clear` waits for a frame that is being drawn.
const CLEAR_TIMEOUT: Duration = Duration::from_millis(200);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DrawMode {
    Drawing,
    /// The terminal belongs to a question or to the shell for a while.
    Held,
    Over,
}

struct ViewState {
    area: StatusArea,
    /// The areas of the workers, one each; empty for a session alone.
    seats: Vec<StatusArea>,
    totals: PoolProgress,
    /// Lines to write, and the number of lines that were dropped for lack of room.
    lines: Vec<String>,
    dropped_lines: usize,
    notice: Option<String>,
    changed: bool,
    mode: DrawMode,
    /// The number of holders: a question to a person, and a stop with Ctrl-Z during it.
    holders: usize,
}

struct SharedView {
    state: Mutex<ViewState>,
    wake: Condvar,
    terminal: Mutex<LiveTerminal>,
    palette: Palette,
}

/// The live view, with the thread that draws it.
pub struct LiveView {
    view: ViewHandle,
    thread: Option<JoinHandle<()>>,
}

/// A handle to the live view, for the whole view or for one worker.
#[derive(Clone)]
pub struct ViewHandle(Arc<SharedView>, Option<usize>);

impl LiveView {
    /// Starts the view with an area for each worker, or with none for a session alone.
    pub fn start(palette: Palette, seats: usize) -> io::Result<Self> {
        let began = Instant::now();
        let state = ViewState {
            area: StatusArea::new(began),
            seats: (0..seats).map(|_| StatusArea::new(began)).collect(),
            totals: PoolProgress::default(),
            lines: Vec::new(),
            dropped_lines: 0,
            notice: None,
            changed: false,
            mode: DrawMode::Drawing,
            holders: 0,
        };
        let (state, wake, terminal) = (Mutex::new(state), Condvar::new(), Mutex::default());
        let view = ViewHandle(Arc::new(SharedView { state, wake, terminal, palette }), None);
        let drawing = view.clone();
        let thread = thread::Builder::new().name("view".to_owned()).spawn(move || drawing.0.draw_until_over())?;
        Ok(Self { view, thread: Some(thread) })
    }

    pub fn view(&self) -> &ViewHandle {
        &self.view
    }
}

impl Drop for LiveView {
    fn drop(&mut self) {
        self.view.0.set_mode(DrawMode::Over);
        if let Some(thread) = self.thread.take() {
            // Only a build that unwinds gets here after a panic in the thread, and such a thread draws no more.
            let _ = thread.join();
        }
        let mut state = self.view.0.lock_state();
        let (lines, notice) = (state.take_pending_lines(), state.notice.take());
        drop(state);
        let mut terminal = self.view.0.lock_terminal();
        terminal.draw_frame(&lines, Vec::new());
        notice.iter().for_each(|notice| terminal.send_notification(notice));
    }
}

impl ViewHandle {
    /// Prints a line above the status area.
    pub fn print_line(&self, line: String) {
        let mut state = self.0.lock_state();
        if state.lines.len() < MAX_PENDING_LINES {
            state.lines.push(line);
        } else {
            state.dropped_lines += 1;
        }
        self.0.mark_changed(state);
    }

    /// Returns a handle for one worker.
    pub fn for_worker(&self, seat: usize) -> Self {
        Self(self.0.clone(), Some(seat))
    }

    /// Changes the area of the worker, or every area if the handle is for the whole view.
    pub fn update_areas(&self, mut change: impl FnMut(&mut StatusArea)) {
        let mut state = self.0.lock_state();
        match self.1.and_then(|seat| state.seats.get_mut(seat)) {
            Some(area) => change(area),
            None => {
                change(&mut state.area);
                state.seats.iter_mut().for_each(change);
            }
        }
        self.0.mark_changed(state);
    }

    /// Empties the worker's area.
    pub fn clear_worker(&self) {
        self.update_areas(|area| *area = StatusArea::new(Instant::now()));
    }

    pub fn set_totals(&self, totals: PoolProgress) {
        let mut state = self.0.lock_state();
        state.totals = totals;
        self.0.mark_changed(state);
    }

    /// Shows a desktop notification, if the terminal can.
    pub fn show_notice(&self, words: &str) {
        let mut state = self.0.lock_state();
        state.notice = Some(text::fit_to_width(words, MAX_NOTICE_LENGTH));
        self.0.mark_changed(state);
    }

    pub fn columns(&self) -> usize {
        terminal::terminal_size().0
    }

    /// Redraws for a new size of the terminal.
    pub fn handle_resize(&self) {
        self.0.mark_changed(self.0.lock_state());
    }

    /// Stops drawing and removes the rows until every holder has released the terminal.
    pub fn hold_terminal(&self) {
        self.0.lock_state().holders += 1;
        self.0.set_mode(DrawMode::Held);
        self.flush_and_clear();
    }

    pub fn release_terminal(&self) {
        let mut state = self.0.lock_state();
        state.holders = state.holders.saturating_sub(1);
        if state.mode == DrawMode::Held && state.holders == 0 {
            state.mode = DrawMode::Drawing;
        }
        state.changed = true;
        drop(state);
        // The drawing thread may have missed changes meanwhile: `mark_changed` wakes it once for several changes.
        self.0.wake.notify_all();
    }

    /// Writes the pending lines and removes the rows, unless the terminal blocks.
    pub fn flush_and_clear(&self) {
        let give_up = Instant::now() + CLEAR_TIMEOUT;
        let mut terminal = loop {
            match self.0.terminal.try_lock() {
                Ok(terminal) => break terminal,
                Err(TryLockError::WouldBlock) if Instant::now() < give_up => thread::sleep(Duration::from_millis(1)),
                Err(_) => return,
            }
        };
        if LiveTerminal::is_writable() {
            let lines = self.0.lock_state().take_pending_lines();
            terminal.draw_frame(&lines, Vec::new());
        }
    }
}
