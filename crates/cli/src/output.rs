//! What reaches the terminal or the pipe: plain text for people, or JSON for programs, never both.
//!
//! Invariants:
//! - With `--json` nothing but JSON is written to standard output.
//! - Colours appear on a terminal only, and never where `NO_COLOR` asks for none.
//! - A reader that went away ends the command quietly.
//! - Text that came from outside passes through [`crate::text`] before it is shown.

use std::fmt::{self, Display};
use std::io::{self, BufWriter, ErrorKind, StderrLock, StdoutLock, Write};
use std::os::fd::AsFd;

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;
use windlass_app::{Code, Failure, environment};
use windlass_config::ConfigError;
use windlass_text as text;

/// Why a command ended before its end.
#[derive(Debug)]
pub enum Stop {
    Failed(Box<Failure>),
    /// Whoever was reading our output has seen enough.
    Closed,
}

pub type Done = Result<(), Stop>;

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(Box::new(failure))
    }
}

impl From<ConfigError> for Stop {
    fn from(error: ConfigError) -> Self {
        Failure::from(error).into()
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::BrokenPipe => Self::Closed,
            _ => Failure::new(Code::System, "cannot write the output").caused_by(error).into(),
        }
    }
}

/// The meaning of a piece of text; its colour follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    Plain,
    Strong,
    Faint,
    Good,
    Warning,
    Bad,
    Name,
}

impl Tone {
    fn style(self) -> Style {
        match self {
            Self::Plain => Style::new(),
            Self::Strong => Style::new().bold(),
            Self::Faint => Style::new().dimmed(),
            Self::Good => AnsiColor::Green.on_default(),
            Self::Warning => AnsiColor::Yellow.on_default(),
            Self::Bad => AnsiColor::Red.on_default().bold(),
            Self::Name => AnsiColor::Cyan.on_default(),
        }
    }
}

/// Text with a tone, or without where colours are off.
pub struct Painted<T> {
    text: T,
    tone: Option<Tone>,
}

impl<T: Display> Display for Painted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tone {
            None | Some(Tone::Plain) => self.text.fmt(f),
            Some(tone) => {
                let style = tone.style();
                write!(f, "{style}{}{style:#}", self.text)
            }
        }
    }
}

/// Whether there are colours.
#[derive(Debug, Clone, Copy)]
pub struct Palette {
    color: bool,
}

impl Palette {
    #[cfg(test)]
    pub const NONE: Self = Self { color: false };

    pub fn paint<T: Display>(self, tone: Tone, text: T) -> Painted<T> {
        Painted { text, tone: self.color.then_some(tone) }
    }
}

/// How wide a terminal is.
fn columns(terminal: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(terminal).ok().filter(|size| size.ws_col > 0);
    size.map(|size| usize::from(size.ws_col))
}

/// Whether a text names a command of ours that says no project.
pub fn names_command(text: &str) -> bool {
    text.contains("windlass ") && !text.contains("--project")
}

/// Standard output.
pub struct Output {
    json: bool,
    palette: Palette,
    on_terminal: bool,
    /// Nobody gets what is written, and that does not matter.
    given_up: bool,
    names_command: bool,
    to: BufWriter<StdoutLock<'static>>,
}

impl Output {
    pub fn new(json: bool) -> Self {
        let stdout = io::stdout();
        let color = AutoStream::choice(&stdout) != ColorChoice::Never;
        let on_terminal = columns(&stdout).is_some();
        let (palette, to) = (Palette { color }, BufWriter::new(stdout.lock()));
        Self { json, palette, on_terminal, given_up: false, names_command: false, to }
    }

    /// How wide the terminal is now. In a pipe nothing is cut.
    pub fn columns(&self) -> Option<usize> {
        self.on_terminal.then(|| columns(rustix::stdio::stdout())).flatten()
    }

    pub fn has_color(&self) -> bool {
        self.palette.color
    }

    /// Whether the reader is a program.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Whether a person watches, on a terminal on which what was shown can be replaced.
    pub fn is_watched(&self) -> bool {
        self.on_terminal && !self.json && environment::can_redraw()
    }

    pub fn palette(&self) -> Palette {
        self.palette
    }

    pub fn paint<T: Display>(&self, tone: Tone, text: T) -> Painted<T> {
        self.palette.paint(tone, text)
    }

    /// One line for people.
    pub fn line(&mut self, line: impl Display) -> Done {
        let line = line.to_string();
        self.names_command |= names_command(&line);
        Ok(writeln!(self.to, "{line}")?)
    }

    /// Whether a line for people has named a command of ours that says no project.
    pub fn names_command(&self) -> bool {
        self.names_command
    }

    /// One object for programs. Control characters are escaped, so that it is harmless on a terminal as well.
    pub fn object(&mut self, object: &impl Serialize) -> Done {
        let text = serde_json::to_string(object).expect("what we print has string keys");
        Ok(writeln!(self.to, "{}", text::json(&text))?)
    }

    /// The same object for people, one field per line.
    pub fn indented(&mut self, object: &impl Serialize) -> Done {
        let text = serde_json::to_string_pretty(object).expect("what we print has string keys");
        text.lines().try_for_each(|line| self.line(text::json(line)))
    }

    /// Whether the reader went away, as far as that can be known without writing.
    pub fn is_closed(&self) -> bool {
        let stdout = io::stdout();
        let mut watched = [PollFd::new(&stdout, PollFlags::empty())];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let gone = PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL;
        poll(&mut watched, Some(&now)).is_ok_and(|ready| ready > 0) && watched[0].revents().intersects(gone)
    }

    /// Lets the reader see what was written so far.
    pub fn flush(&mut self) -> Done {
        if self.given_up {
            return Ok(());
        }
        Ok(self.to.flush()?)
    }

    /// Goes on without a reader: what is done counts, not who sees it.
    pub fn give_up(&mut self) {
        self.given_up = true;
    }
}

/// Standard error: failures and warnings.
pub struct Messages {
    color: bool,
    columns: Option<usize>,
    to: StderrLock<'static>,
}

impl Messages {
    pub fn new() -> Self {
        let stderr = io::stderr();
        let color = AutoStream::choice(&stderr) != ColorChoice::Never;
        Self { color, columns: columns(&stderr), to: stderr.lock() }
    }

    /// A question to a person, and what it takes for an answer.
    pub fn question(&mut self, message: &str) {
        let message = Painted { text: text::line(message), tone: self.color.then_some(Tone::Warning) };
        let _ = writeln!(self.to, "{message}");
    }

    pub fn plain(&mut self, message: &str) {
        let _ = writeln!(self.to, "{}", text::line(message));
    }

    fn say(&mut self, tone: Tone, label: &str, message: &str) {
        let rows = match self.columns {
            None => text::line(message).into_owned(),
            Some(columns) => {
                let room = |before: usize| columns.saturating_sub(before).max(20);
                text::wrap(message, room(label.len() + 2), room(2)).join("\n  ")
            }
        };
        let label = Painted { text: label, tone: self.color.then_some(tone) };
        // There is nobody left to tell if standard error is closed.
        let _ = writeln!(self.to, "{label}: {rows}");
    }

    pub fn warning(&mut self, message: &str) {
        self.say(Tone::Warning, "warning", message);
    }

    pub fn note(&mut self, message: &str) {
        self.say(Tone::Faint, "note", message);
    }

    /// Error, causes, hint.
    pub fn failure(&mut self, failure: &Failure) {
        match failure.diagnostic.as_ref().and_then(|error| error.render(self.color)) {
            Some(picture) => drop(writeln!(self.to, "{}", picture.trim_end())),
            None => self.say(Tone::Bad, "error", &failure.message),
        }
        for cause in &failure.causes {
            self.say(Tone::Faint, "caused by", cause);
        }
        if let Some(hint) = failure.shown_hint() {
            self.say(Tone::Good, "hint", &hint);
        }
    }
}
