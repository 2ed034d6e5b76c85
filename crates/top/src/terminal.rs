//! The terminal: the alternate screen, and the way back to what was before.
//!
//! Invariants:
//! - After every end, also by a defect or a signal, the terminal is as it was: modes, screen, cursor.
//! - Nothing is drawn while the process is suspended.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use crossterm::cursor::Show;
use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::execute;
use crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode,
};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use windlass_store::failpoint;

use crate::model::TopModel;
use crate::palette::ColorMode;
use crate::view::view;

/// The bytes of a frame that are written at once.
const FRAME_BUFFER_SIZE: usize = 64 * 1024;

type ScreenBackend = CrosstermBackend<BufWriter<File>>;

/// Whether the terminal shows the alternate screen in raw mode. A panic hook cannot wait for a lock.
static IS_ENTERED: AtomicBool = AtomicBool::new(false);
static PANIC_HOOK: Once = Once::new();

/// The terminal of this process.
pub struct ScreenTerminal {
    terminal: Mutex<Terminal<ScreenBackend>>,
    colors: ColorMode,
}

impl ScreenTerminal {
    /// Switches to the alternate screen.
    pub fn enter(colors: ColorMode) -> io::Result<Self> {
        PANIC_HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |defect| {
                leave_screen();
                before(defect);
            }));
        });
        let terminal =
            Terminal::new(CrosstermBackend::new(BufWriter::with_capacity(FRAME_BUFFER_SIZE, open_output()?)))?;
        enter_screen()?;
        Ok(Self { terminal: Mutex::new(terminal), colors })
    }

    /// Draws a frame. Only what has changed is written.
    pub fn draw_frame(&self, model: &TopModel) -> io::Result<()> {
        let mut terminal = self.lock_terminal();
        if !IS_ENTERED.load(Ordering::SeqCst) {
            return Ok(());
        }
        // Nothing stays in the buffer that would reach the terminal after a defect has given it back.
        execute!(terminal.backend_mut(), BeginSynchronizedUpdate)?;
        terminal.draw(|frame| {
            failpoint::pass("top.draw").expect("only a test asks for a defect");
            view(model, self.colors, frame);
        })?;
        execute!(terminal.backend_mut(), EndSynchronizedUpdate)
    }

    /// Returns the columns and rows of the terminal.
    pub fn size(&self) -> io::Result<(u16, u16)> {
        let size = self.lock_terminal().size()?;
        Ok((size.width, size.height))
    }

    /// Forgets what is on the screen, so that the next frame draws everything.
    pub fn clear(&self) -> io::Result<()> {
        let mut terminal = self.lock_terminal();
        if IS_ENTERED.load(Ordering::SeqCst) { forget_contents(&mut terminal) } else { Ok(()) }
    }

    /// Gives the terminal back, before the process stops or ends.
    pub fn leave(&self) {
        let _terminal = self.lock_terminal();
        leave_screen();
    }

    /// Gives the terminal back at once, also while a frame waits for a terminal that takes nothing.
    pub fn abandon(&self) {
        let stdout = rustix::stdio::stdout();
        let mut watched = [PollFd::new(&stdout, PollFlags::OUT)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        match poll(&mut watched, Some(&now)) {
            Ok(1) => leave_screen(),
            _ => drop(disable_raw_mode()),
        }
    }

    /// Takes the terminal again, after the process was continued.
    pub fn enter_again(&self) -> io::Result<()> {
        let mut terminal = self.lock_terminal();
        enter_screen()?;
        forget_contents(&mut terminal)
    }

    /// Returns whether the terminal shows the screen. A defect in any thread has given it back.
    pub fn is_entered(&self) -> bool {
        IS_ENTERED.load(Ordering::SeqCst)
    }

    fn lock_terminal(&self) -> MutexGuard<'_, Terminal<ScreenBackend>> {
        self.terminal.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ScreenTerminal {
    fn drop(&mut self) {
        leave_screen();
    }
}

/// Clears the terminal. `Terminal::clear` would ask it for the cursor, and wait for an answer that the reader of keys takes.
fn forget_contents(terminal: &mut Terminal<ScreenBackend>) -> io::Result<()> {
    let size = terminal.size()?;
    terminal.resize(size.into())
}

/// Opens the terminal past the buffer of standard output, which the main thread holds.
fn open_output() -> io::Result<File> {
    Ok(File::from(rustix::stdio::stdout().as_fd().try_clone_to_owned()?))
}

fn enter_screen() -> io::Result<()> {
    enable_raw_mode()?;
    IS_ENTERED.store(true, Ordering::SeqCst);
    execute!(open_output()?, EnterAlternateScreen, EnableBracketedPaste)
}

fn leave_screen() {
    if !IS_ENTERED.swap(false, Ordering::SeqCst) {
        return;
    }
    let _ = disable_raw_mode();
    // The terminal may be closed; there is nothing left to restore then.
    if let Ok(mut output) = open_output() {
        let _ = execute!(output, EndSynchronizedUpdate, DisableBracketedPaste, LeaveAlternateScreen, Show);
        let _ = output.flush();
    }
}
