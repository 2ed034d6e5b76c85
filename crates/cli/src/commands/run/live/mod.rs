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
mod board;
mod tail;
mod terminal;
mod updates;

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, TryLockError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use windlass_app::run::workers::PoolProgress;
use windlass_text as text;

use self::area::Row;
use self::terminal::Terminal;
use crate::output::Palette;

pub use self::area::Area;
pub use self::updates::update_view;

/// The least time between two frames.
const FRAME: Duration = Duration::from_millis(100);
/// The most lines that wait for a blocked terminal. The log has all of them.
const LINES: usize = 10_000;
/// The longest notice.
const NOTICE: usize = 200;
/// The longest time that `flush_and_clear` waits for a frame that is being drawn.
const PATIENCE: Duration = Duration::from_millis(200);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Drawing,
    /// The terminal belongs to a question or to the shell for a while.
    Held,
    Over,
}

struct State {
    area: Area,
    /// The areas of the workers, one each; empty for a session alone.
    seats: Vec<Area>,
    totals: PoolProgress,
    /// Lines to write, and the number of lines that were dropped for lack of room.
    lines: Vec<String>,
    lost: usize,
    notice: Option<String>,
    changed: bool,
    mode: Mode,
    /// The number of holders: a question to a person, and a stop with Ctrl-Z during it.
    holders: usize,
}

struct Shared {
    state: Mutex<State>,
    wake: Condvar,
    terminal: Mutex<Terminal>,
    palette: Palette,
}

/// The live view, with the thread that draws it.
pub struct Live {
    view: View,
    thread: Option<JoinHandle<()>>,
}

/// A handle to the live view, for the whole view or for one worker.
#[derive(Clone)]
pub struct View(Arc<Shared>, Option<usize>);

impl Live {
    /// Starts the view with an area for each worker, or with none for a session alone.
    pub fn start(palette: Palette, seats: usize) -> io::Result<Self> {
        let began = Instant::now();
        let state = State {
            area: Area::new(began),
            seats: (0..seats).map(|_| Area::new(began)).collect(),
            totals: PoolProgress::default(),
            lines: Vec::new(),
            lost: 0,
            notice: None,
            changed: false,
            mode: Mode::Drawing,
            holders: 0,
        };
        let (state, wake, terminal) = (Mutex::new(state), Condvar::new(), Mutex::default());
        let view = View(Arc::new(Shared { state, wake, terminal, palette }), None);
        let drawing = view.clone();
        let thread = thread::Builder::new().name("view".to_owned()).spawn(move || drawing.0.draw_until_over())?;
        Ok(Self { view, thread: Some(thread) })
    }

    pub fn view(&self) -> &View {
        &self.view
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.view.0.set(Mode::Over);
        if let Some(thread) = self.thread.take() {
            // Only a build that unwinds gets here after a panic in the thread, and such a thread draws no more.
            let _ = thread.join();
        }
        let mut state = self.view.0.state();
        let (lines, notice) = (state.take_lines(), state.notice.take());
        drop(state);
        let mut terminal = self.view.0.terminal();
        terminal.draw(&lines, Vec::new());
        notice.iter().for_each(|notice| terminal.notify(notice));
    }
}

impl View {
    /// Prints a line above the status area.
    pub fn line(&self, line: String) {
        let mut state = self.0.state();
        if state.lines.len() < LINES {
            state.lines.push(line);
        } else {
            state.lost += 1;
        }
        self.0.changed(state);
    }

    /// Returns a handle for one worker.
    pub fn at(&self, seat: usize) -> Self {
        Self(self.0.clone(), Some(seat))
    }

    /// Changes the area of the worker, or every area if the handle is for the whole view.
    pub fn change(&self, mut change: impl FnMut(&mut Area)) {
        let mut state = self.0.state();
        match self.1.and_then(|seat| state.seats.get_mut(seat)) {
            Some(area) => change(area),
            None => {
                change(&mut state.area);
                state.seats.iter_mut().for_each(change);
            }
        }
        self.0.changed(state);
    }

    /// Empties the worker's area.
    pub fn clear_seat(&self) {
        self.change(|area| *area = Area::new(Instant::now()));
    }

    pub fn count(&self, totals: PoolProgress) {
        let mut state = self.0.state();
        state.totals = totals;
        self.0.changed(state);
    }

    /// Shows a desktop notification, if the terminal can.
    pub fn notify(&self, words: &str) {
        let mut state = self.0.state();
        state.notice = Some(text::fit(words, NOTICE));
        self.0.changed(state);
    }

    pub fn columns(&self) -> usize {
        terminal::size().0
    }

    /// Redraws for a new size of the terminal.
    pub fn resized(&self) {
        self.0.changed(self.0.state());
    }

    /// Stops drawing and removes the rows until every holder has released the terminal.
    pub fn hold(&self) {
        self.0.state().holders += 1;
        self.0.set(Mode::Held);
        self.clear();
    }

    pub fn release(&self) {
        let mut state = self.0.state();
        state.holders = state.holders.saturating_sub(1);
        if state.mode == Mode::Held && state.holders == 0 {
            state.mode = Mode::Drawing;
        }
        state.changed = true;
        drop(state);
        // The drawing thread may have missed changes meanwhile: `mark_changed` wakes it once for several changes.
        self.0.wake.notify_all();
    }

    /// Writes the pending lines and removes the rows, unless the terminal blocks.
    pub fn clear(&self) {
        let give_up = Instant::now() + PATIENCE;
        let mut terminal = loop {
            match self.0.terminal.try_lock() {
                Ok(terminal) => break terminal,
                Err(TryLockError::WouldBlock) if Instant::now() < give_up => thread::sleep(Duration::from_millis(1)),
                Err(_) => return,
            }
        };
        if Terminal::is_writable() {
            let lines = self.0.state().take_lines();
            terminal.draw(&lines, Vec::new());
        }
    }
}

impl State {
    fn rows(&self, palette: Palette) -> Vec<Row> {
        match self.seats.is_empty() {
            true => self.area.rows(Instant::now(), terminal::size(), palette),
            false => board::rows(&self.area, &self.seats, self.totals, (Instant::now(), terminal::size()), palette),
        }
    }

    fn take_lines(&mut self) -> Vec<String> {
        let mut lines = std::mem::take(&mut self.lines);
        match std::mem::take(&mut self.lost) {
            0 => {}
            lost => lines.push(format!("  … {lost} lines left out; `windlass events` has them all")),
        }
        lines
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it holds what is shown")
    }

    fn terminal(&self) -> MutexGuard<'_, Terminal> {
        self.terminal.lock().expect("nothing panics while it draws")
    }

    fn changed(&self, mut state: MutexGuard<'_, State>) {
        // One wake-up is enough for all changes until the thread draws.
        if !std::mem::replace(&mut state.changed, true) {
            self.wake.notify_all();
        }
    }

    fn set(&self, mode: Mode) {
        let mut state = self.state();
        if state.mode != Mode::Over {
            state.mode = mode;
        }
        drop(state);
        self.wake.notify_all();
    }

    fn draw_until_over(&self) {
        let mut earliest = Instant::now();
        while self.await_frame(earliest) {
            // The terminal is locked first, so that a holder finds every line written that was taken for it.
            let mut terminal = self.terminal();
            let mut state = self.state();
            if state.mode == Mode::Drawing {
                state.changed = false;
                let lines = state.take_lines();
                let rows = state.rows(self.palette);
                let notice = state.notice.take();
                drop(state);
                terminal.draw(&lines, rows);
                notice.iter().for_each(|notice| terminal.notify(notice));
                earliest = Instant::now() + FRAME;
            }
        }
    }

    /// Waits until there is something to draw and the frame interval is over. Returns false when the view is over.
    fn await_frame(&self, earliest: Instant) -> bool {
        let broken = "nothing panics while it holds what is shown";
        let held = |state: &mut State| state.mode == Mode::Held;
        let state = self.wake.wait_while(self.state(), held).expect(broken);
        let tick = state.area.next_tick(Instant::now());
        let idle = |state: &mut State| state.mode == Mode::Drawing && !state.changed;
        let (state, _) = self.wake.wait_timeout_while(state, tick, idle).expect(broken);
        let early = earliest.saturating_duration_since(Instant::now());
        let drawing = |state: &mut State| state.mode == Mode::Drawing;
        let (state, _) = self.wake.wait_timeout_while(state, early, drawing).expect(broken);
        state.mode != Mode::Over
    }
}
