//! Whether the terminal shows what is typed. A line that is typed would push the cursor away from the rows that are drawn
//! again and again, and they would stay where they are.
//!
//! Invariants:
//! - Nothing else changes: lines can be typed ahead, and keys send signals.
//! - Only what was switched off here is switched on again, and in the background nothing is touched.

use std::sync::atomic::{AtomicBool, Ordering};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use super::terminal::in_foreground;

#[derive(Debug, Default)]
pub struct Echo {
    /// We have switched it off.
    off: AtomicBool,
}

impl Echo {
    /// Before each frame: a shell that had the terminal meanwhile may have switched it on.
    pub fn switch_off(&self) {
        if let Some(modes) = modes().filter(|modes| modes.local_modes.contains(LocalModes::ECHO)) {
            self.off.store(true, Ordering::SeqCst);
            set(modes, LocalModes::difference);
        }
    }

    pub fn switch_on(&self) {
        if let Some(modes) = modes()
            && self.off.swap(false, Ordering::SeqCst)
        {
            set(modes, LocalModes::union);
        }
    }
}

/// Those of a terminal that is ours to change.
fn modes() -> Option<Termios> {
    in_foreground().then(|| tcgetattr(rustix::stdio::stdout()).ok()).flatten()
}

/// At once, and what was typed is not lost. A terminal that is gone shows nothing anyway.
fn set(mut modes: Termios, with: impl Fn(LocalModes, LocalModes) -> LocalModes) {
    modes.local_modes = with(modes.local_modes, LocalModes::ECHO);
    let _ = tcsetattr(rustix::stdio::stdout(), OptionalActions::Now, &modes);
}
