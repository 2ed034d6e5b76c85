//! The output of the program: text for people or JSON for programs, never both.
//!
//! Invariants:
//! - With `--json` only JSON is written to standard output.
//! - Colours appear on a terminal only, and not if `NO_COLOR` is set.
//! - A closed output ends the command without an error.
//! - Text from outside passes through [`windlass_text`] before it is shown.

use std::fmt::{self, Display};
use std::io::{self, BufWriter, ErrorKind, StderrLock, StdoutLock, Write};
use std::os::fd::AsFd;

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;
pub use windlass_app::tone::TextTone;
use windlass_app::{Failure, FailureCode, environment};
use windlass_config::ConfigError;
use windlass_text as text;

/// The reason why a command ended early.
#[derive(Debug)]
pub enum EarlyExit {
    Failed(Box<Failure>),
    /// The reader of the output has closed it.
    Closed,
}

pub type CommandResult = Result<(), EarlyExit>;

impl From<Failure> for EarlyExit {
    fn from(failure: Failure) -> Self {
        Self::Failed(Box::new(failure))
    }
}

impl From<ConfigError> for EarlyExit {
    fn from(error: ConfigError) -> Self {
        Failure::from(error).into()
    }
}

impl From<io::Error> for EarlyExit {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::BrokenPipe => Self::Closed,
            _ => Failure::new(FailureCode::System, "cannot write the output").with_cause(error).into(),
        }
    }
}

/// Returns the style of a tone on a terminal.
fn ansi_style(tone: TextTone) -> Style {
    match tone {
        TextTone::Plain => Style::new(),
        TextTone::Strong => Style::new().bold(),
        TextTone::Faint => Style::new().dimmed(),
        TextTone::Good => AnsiColor::Green.on_default(),
        TextTone::Warning => AnsiColor::Yellow.on_default(),
        TextTone::Bad => AnsiColor::Red.on_default().bold(),
        TextTone::Name => AnsiColor::Cyan.on_default(),
    }
}

/// Text with a tone, or without one if colours are off.
pub struct PaintedText<T> {
    text: T,
    tone: Option<TextTone>,
}

impl<T: Display> Display for PaintedText<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tone {
            None | Some(TextTone::Plain) => self.text.fmt(f),
            Some(tone) => {
                let style = ansi_style(tone);
                write!(f, "{style}{}{style:#}", self.text)
            }
        }
    }
}

/// A switch between coloured and plain text.
#[derive(Debug, Clone, Copy)]
pub struct Palette {
    color: bool,
}

impl Palette {
    #[cfg(test)]
    pub const NONE: Self = Self { color: false };

    pub fn paint<T: Display>(self, tone: TextTone, text: T) -> PaintedText<T> {
        PaintedText { text, tone: self.color.then_some(tone) }
    }
}

/// Returns the width of a terminal.
fn terminal_columns(terminal: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(terminal).ok().filter(|size| size.ws_col > 0);
    size.map(|size| usize::from(size.ws_col))
}

/// Returns whether a text mentions a `windlass` command without `--project`.
pub fn mentions_command(text: &str) -> bool {
    text.contains("windlass ") && !text.contains("--project")
}

/// Standard output.
pub struct Output {
    json: bool,
    palette: Palette,
    on_terminal: bool,
    /// The output has no reader any more, and is not flushed.
    ignores_closed_output: bool,
    names_command: bool,
    to: BufWriter<StdoutLock<'static>>,
}

impl Output {
    pub fn new(json: bool) -> Self {
        let stdout = io::stdout();
        let color = AutoStream::choice(&stdout) != ColorChoice::Never;
        let on_terminal = terminal_columns(&stdout).is_some();
        let (palette, to) = (Palette { color }, BufWriter::new(stdout.lock()));
        Self { json, palette, on_terminal, ignores_closed_output: false, names_command: false, to }
    }

    /// Returns the width of the terminal; `None` for a pipe, where nothing is cut.
    pub fn columns(&self) -> Option<usize> {
        self.on_terminal.then(|| terminal_columns(rustix::stdio::stdout())).flatten()
    }

    pub fn has_color(&self) -> bool {
        self.palette.color
    }

    /// Returns whether the reader is a program.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Returns whether a person watches, on a terminal that can redraw.
    pub fn is_watched(&self) -> bool {
        self.on_terminal && !self.json && environment::can_redraw_terminal()
    }

    pub fn palette(&self) -> Palette {
        self.palette
    }

    pub fn paint<T: Display>(&self, tone: TextTone, text: T) -> PaintedText<T> {
        self.palette.paint(tone, text)
    }

    /// Prints a line for people.
    pub fn print_line(&mut self, line: impl Display) -> CommandResult {
        let line = line.to_string();
        self.names_command |= mentions_command(&line);
        Ok(writeln!(self.to, "{line}")?)
    }

    /// Returns whether a printed line has mentioned a command without `--project`.
    pub fn has_named_command(&self) -> bool {
        self.names_command
    }

    /// Prints an object for programs. Control characters are escaped, so that the line does no harm on a terminal either.
    pub fn print_json(&mut self, object: &impl Serialize) -> CommandResult {
        self.print_json_line(&serde_json::to_string(object).expect("what we print has string keys"))
    }

    /// Prints JSON text for programs, as one line.
    pub fn print_json_line(&mut self, json: &str) -> CommandResult {
        Ok(writeln!(self.to, "{}", text::clean_json(json))?)
    }

    /// Prints the same object for people, one field per line.
    pub fn print_indented_json(&mut self, object: &impl Serialize) -> CommandResult {
        let text = serde_json::to_string_pretty(object).expect("what we print has string keys");
        text.lines().try_for_each(|line| self.print_line(text::clean_json(line)))
    }

    /// Returns whether the reader has closed the output, as far as that can be known without a write.
    pub fn is_closed(&self) -> bool {
        let stdout = io::stdout();
        let mut watched = [PollFd::new(&stdout, PollFlags::empty())];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let gone = PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL;
        poll(&mut watched, Some(&now)).is_ok_and(|ready| ready > 0) && watched[0].revents().intersects(gone)
    }

    /// Passes the output so far on to the reader.
    pub fn flush(&mut self) -> CommandResult {
        if self.ignores_closed_output {
            return Ok(());
        }
        Ok(self.to.flush()?)
    }

    /// Continues after the output is closed: the work counts, not its display.
    pub fn ignore_closed_output(&mut self) {
        self.ignores_closed_output = true;
    }
}

/// Standard error: failures, warnings, notes and questions.
pub struct MessageWriter {
    color: bool,
    columns: Option<usize>,
    to: StderrLock<'static>,
}

impl MessageWriter {
    pub fn new() -> Self {
        let stderr = io::stderr();
        let color = AutoStream::choice(&stderr) != ColorChoice::Never;
        Self { color, columns: terminal_columns(&stderr), to: stderr.lock() }
    }

    /// Prints a question to a person. The possible answers follow in lines of their own.
    pub fn print_question(&mut self, message: &str) {
        let message = PaintedText { text: text::clean_line(message), tone: self.color.then_some(TextTone::Warning) };
        let _ = writeln!(self.to, "{message}");
    }

    pub fn print_plain(&mut self, message: &str) {
        let _ = writeln!(self.to, "{}", text::clean_line(message));
    }

    fn print_labelled(&mut self, tone: TextTone, label: &str, message: &str) {
        let rows = match self.columns {
            None => text::clean_line(message).into_owned(),
            Some(columns) => {
                let room = |before: usize| columns.saturating_sub(before).max(20);
                text::wrap_to_width(message, room(label.len() + 2), room(2)).join("\n  ")
            }
        };
        let label = PaintedText { text: label, tone: self.color.then_some(tone) };
        // A closed standard error leaves no place for a message.
        let _ = writeln!(self.to, "{label}: {rows}");
    }

    pub fn print_warning(&mut self, message: &str) {
        self.print_labelled(TextTone::Warning, "warning", message);
    }

    pub fn print_note(&mut self, message: &str) {
        self.print_labelled(TextTone::Faint, "note", message);
    }

    /// Prints the error, its causes and the hint.
    pub fn print_failure(&mut self, failure: &Failure) {
        match failure.diagnostic.as_ref().and_then(|error| error.render_picture(self.color)) {
            Some(picture) => drop(writeln!(self.to, "{}", picture.trim_end())),
            None => self.print_labelled(TextTone::Bad, "error", &failure.message),
        }
        for cause in &failure.causes {
            self.print_labelled(TextTone::Faint, "caused by", cause);
        }
        if let Some(hint) = failure.hint_with_options() {
            self.print_labelled(TextTone::Good, "hint", &hint);
        }
    }
}
