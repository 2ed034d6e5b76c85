//! How progress lines are laid out.

use serde::Serialize;
use serde_json::json;
use windlass_hooks::clean_output;

use super::*;
use crate::commands::session::LIVE_OUTPUT_TYPE;

impl ProgressPrinter<'_> {
    pub(super) fn print_heading(&mut self, label: &str, what: &str) -> CommandResult {
        self.print_labelled((TextTone::Strong, label), what)
    }

    pub(super) fn print_labelled(&mut self, (tone, label): (TextTone, &str), what: &str) -> CommandResult {
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
        if leaky { self.print_detail(TextTone::Faint, LEFTOVER_PROCESSES_NOTE) } else { Ok(()) }
    }

    pub(super) fn print_detail(&mut self, tone: TextTone, what: &str) -> CommandResult {
        let rows = self.wrap_rows(what, 2, 4);
        rows.iter().enumerate().try_for_each(|(number, row)| {
            let indent = if number == 0 { "  " } else { "    " };
            self.print_line(format!("{indent}{}", self.out.palette().paint(tone, row)))
        })
    }

    /// Prints the whole lines of a program's output.
    pub(super) fn print_program_output(&mut self, stream: OutputStream, bytes: &[u8]) -> CommandResult {
        let Some(splitters) = &mut self.verbose else { return Ok(()) };
        let lines = splitters[usize::from(stream == OutputStream::Stderr)].push(bytes);
        lines.iter().try_for_each(|line| self.print_output_line(line))
    }

    /// Prints the unfinished lines before the next event.
    pub(super) fn finish_output_lines(&mut self) -> CommandResult {
        let splitters = self.verbose.iter_mut().flatten();
        let lines: Vec<String> = splitters.filter_map(LineSplitter::finish).collect();
        lines.iter().try_for_each(|line| self.print_output_line(line))
    }

    pub(super) fn print_json(&mut self, object: &impl Serialize) -> CommandResult {
        self.out.print_json_line(&serde_json::to_string(object).expect("what we print has string keys"))
    }

    fn print_output_line(&mut self, line: &str) -> CommandResult {
        let line = clean_output(line);
        if self.out.is_json() {
            return self.print_json(&json!({"type": LIVE_OUTPUT_TYPE, "text": line}));
        }
        self.wrap_rows(&text::clean_line(&line), 4, 4)
            .iter()
            .try_for_each(|row| self.print_line(format!("  {} {row}", self.out.palette().paint(TextTone::Faint, "|"))))
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
            Some(about) => format!("{} {line}", self.out.palette().paint(TextTone::Faint, about)),
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
