//! How progress lines are laid out.

use super::*;

impl ProgressPrinter<'_> {
    pub(super) fn print_heading(&mut self, label: &str, what: &str) -> CommandResult {
        self.print_labelled((Tone::Strong, label), what)
    }

    pub(super) fn print_labelled(&mut self, (tone, label): (Tone, &str), what: &str) -> CommandResult {
        let rows = self.wrap_rows(what, text::display_width(label) + 1, 2);
        for (number, row) in rows.iter().enumerate() {
            match number {
                0 => self.print_line(format!("{} {row}", self.out.palette().paint(tone, label)))?,
                _ => self.print_line(format!("  {row}"))?,
            }
        }
        Ok(())
    }

    /// Notes that a turn has left processes behind.
    pub(super) fn show_left_behind(&mut self, leaky: bool) -> CommandResult {
        if leaky { self.print_detail(Tone::Faint, LEFTOVER_PROCESSES_NOTE) } else { Ok(()) }
    }

    pub(super) fn print_detail(&mut self, tone: Tone, what: &str) -> CommandResult {
        let rows = self.wrap_rows(what, 2, 4);
        rows.iter().enumerate().try_for_each(|(number, row)| {
            let indent = if number == 0 { "  " } else { "    " };
            self.print_line(format!("{indent}{}", self.out.palette().paint(tone, row)))
        })
    }

    /// Wraps a text at the width of the terminal. `before` is the width in front of the first row, `before_others` of the others.
    pub(super) fn wrap_rows(&self, what: &str, before: usize, before_others: usize) -> Vec<String> {
        let what = text::fit_to_width(what, show::MAX_SHOWN_TEXT);
        let about = self.task_label.as_ref().map_or(0, |about| text::display_width(about) + 1);
        match self.view.as_ref().map(ViewHandle::columns).or(self.out.columns()) {
            None => vec![what],
            Some(columns) => {
                let room = |before: usize| columns.saturating_sub(before + about).max(8);
                text::wrap_to_width(&what, room(before), room(before_others))
            }
        }
    }

    pub(super) fn print_line(&mut self, line: String) -> CommandResult {
        let line = match &self.task_label {
            Some(about) => format!("{} {line}", self.out.palette().paint(Tone::Faint, about)),
            None => line,
        };
        match &self.view {
            Some(view) => {
                view.print_line(line);
                Ok(())
            }
            None => self.out.print_line(line),
        }
    }
}
