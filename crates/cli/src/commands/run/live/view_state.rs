//! The state that the loop leaves for the thread which draws.

use super::*;

impl ViewState {
    pub(super) fn render_rows(&self, palette: Palette) -> Vec<TerminalRow> {
        match self.seats.is_empty() {
            true => self.area.render_rows(Instant::now(), terminal::terminal_size(), palette),
            false => worker_board::render_board(
                &self.area,
                &self.seats,
                self.totals,
                (Instant::now(), terminal::terminal_size()),
                palette,
            ),
        }
    }

    pub(super) fn take_pending_lines(&mut self) -> Vec<String> {
        let mut lines = std::mem::take(&mut self.lines);
        match std::mem::take(&mut self.dropped_lines) {
            0 => {}
            lost => lines.push(format!("  … {lost} lines left out; `windlass events` has them all")),
        }
        lines
    }
}

impl SharedView {
    pub(super) fn lock_state(&self) -> MutexGuard<'_, ViewState> {
        self.state.lock().expect("nothing panics while it holds what is shown")
    }

    pub(super) fn lock_terminal(&self) -> MutexGuard<'_, LiveTerminal> {
        self.terminal.lock().expect("nothing panics while it draws")
    }

    pub(super) fn mark_changed(&self, mut state: MutexGuard<'_, ViewState>) {
        // One wake-up is enough for all changes until the thread draws.
        if !std::mem::replace(&mut state.changed, true) {
            self.wake.notify_all();
        }
    }

    pub(super) fn set_mode(&self, mode: DrawMode) {
        let mut state = self.lock_state();
        if state.mode != DrawMode::Over {
            state.mode = mode;
        }
        drop(state);
        self.wake.notify_all();
    }

    pub(super) fn draw_until_over(&self) {
        let mut earliest = Instant::now();
        while self.await_frame(earliest) {
            // The terminal is locked first, so that a holder finds every line written that was taken for it.
            let mut terminal = self.lock_terminal();
            let mut state = self.lock_state();
            if state.mode == DrawMode::Drawing {
                state.changed = false;
                let lines = state.take_pending_lines();
                let rows = state.render_rows(self.palette);
                let notice = state.notice.take();
                drop(state);
                terminal.draw_frame(&lines, rows);
                notice.iter().for_each(|notice| terminal.send_notification(notice));
                earliest = Instant::now() + FRAME_INTERVAL;
            }
        }
    }

    /// Waits until there is something to draw and the frame interval is over. Returns false when the view is over.
    pub(super) fn await_frame(&self, earliest: Instant) -> bool {
        let broken = "nothing panics while it holds what is shown";
        let held = |state: &mut ViewState| state.mode == DrawMode::Held;
        let state = self.wake.wait_while(self.lock_state(), held).expect(broken);
        let tick = state.area.time_to_next_tick(Instant::now());
        let idle = |state: &mut ViewState| state.mode == DrawMode::Drawing && !state.changed;
        let (state, _) = self.wake.wait_timeout_while(state, tick, idle).expect(broken);
        let early = earliest.saturating_duration_since(Instant::now());
        let drawing = |state: &mut ViewState| state.mode == DrawMode::Drawing;
        let (state, _) = self.wake.wait_timeout_while(state, early, drawing).expect(broken);
        state.mode != DrawMode::Over
    }
}
