//! What stands at the bottom of the terminal while the loop turns: where it is, and what happens now.
//!
//! Invariants:
//! - No row is wider than it may be, and nothing in it is obeyed by a terminal.
//! - All clocks change at the same moment, once a second.

use std::time::{Duration, Instant};

use windlass_engine::{Task, Usage};
use windlass_process::Stream;
use windlass_text as text;

use super::tail::Tail;
use crate::output::{Palette, Tone};

/// From so many columns on there is room for ornament.
const ROOMY: usize = 40;
/// With fewer there is none for anything but where the session is.
const NARROW: usize = 12;
/// So much of a session's name.
const NAME: usize = 48;

/// One row, painted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub text: String,
}

impl Row {
    pub(super) fn new(palette: Palette, parts: &[(Tone, &str)]) -> Self {
        let text = parts.iter().map(|(tone, text)| palette.paint(*tone, *text).to_string()).collect();
        Self { text }
    }
}

/// What happens now, and since when.
#[derive(Debug)]
struct Now {
    who: String,
    does: String,
    since: Duration,
    /// When it ends, if that is known.
    until: Option<Duration>,
}

#[derive(Debug)]
pub struct Area {
    /// When this process took the session up, and how long it had been going on before.
    began: Instant,
    before: Duration,
    pub session: String,
    pub task: Option<String>,
    /// What the task is about.
    goal: String,
    pub iteration: u32,
    /// How many iterations there may be.
    pub most: u32,
    /// How often stop hooks have sent the agent back in this iteration, and may.
    pub sent_back: (u32, u32),
    /// How long the session may take.
    pub time: Option<Duration>,
    /// What its turns have used.
    pub used: Usage,
    /// It is to end, and what somebody can do who has no time for that.
    ending: Option<&'static str>,
    now: Option<Now>,
    tail: Tail,
}

impl Area {
    pub fn new(began: Instant) -> Self {
        Self {
            began,
            before: Duration::ZERO,
            session: String::new(),
            task: None,
            goal: String::new(),
            iteration: 0,
            most: 0,
            sent_back: (0, 0),
            time: None,
            used: Usage::default(),
            ending: None,
            now: None,
            tail: Tail::default(),
        }
    }

    /// It had been going on for so long.
    pub fn taken_up(&mut self, before: Duration) {
        self.before = before;
    }

    pub fn take_up(&mut self, task: &Task) {
        (self.task, self.goal) = (Some(task.id.to_string()), task.goal.clone());
    }

    /// Something begins. What was written before has nothing to do with it.
    pub fn begin(&mut self, at: Instant, who: &str, does: &str) {
        self.now = Some(Now { who: who.to_owned(), does: does.to_owned(), since: self.elapsed(at), until: None });
        self.tail = Tail::default();
    }

    pub fn begin_waiting(&mut self, at: Instant, time: Duration) {
        self.begin(at, "waits", "before the next try");
        if let Some(now) = &mut self.now {
            now.until = Some(now.since + time);
        }
    }

    /// Somebody has asked for the end. What happens now is given up; the end itself takes a while.
    pub fn end(&mut self, at: Instant, quicker: &'static str) {
        self.ending = Some(quicker);
        match self.now.take() {
            Some(Now { who, until: None, .. }) => self.begin(at, &who, "is being ended"),
            Some(_) | None => self.rest(),
        }
    }

    /// Nothing happens any more that takes time.
    pub fn rest(&mut self) {
        self.now = None;
        self.tail = Tail::default();
    }

    pub fn hear(&mut self, stream: Stream, bytes: &[u8]) {
        self.tail.hear(stream, bytes);
    }

    pub(super) fn elapsed(&self, at: Instant) -> Duration {
        self.before + at.saturating_duration_since(self.began)
    }

    /// How long it takes until a clock shows something else.
    pub fn next_tick(&self, at: Instant) -> Duration {
        Duration::from_secs(1) - Duration::from_nanos(u64::from(self.elapsed(at).subsec_nanos()))
    }

    /// What is shown at a moment, in a terminal of this size. Empty where there is nothing to show, or no room.
    pub fn rows(&self, at: Instant, (columns, height): (usize, usize), palette: Palette) -> Vec<Row> {
        // The last column stays free: some terminals go to the next row there.
        let width = columns.saturating_sub(1);
        // One row is left to what scrolls.
        let height = height.saturating_sub(1);
        if self.session.is_empty() || width == 0 {
            return Vec::new();
        }
        let elapsed = self.elapsed(at);
        let mut rows = vec![self.head(elapsed, width, palette)];
        if width < NARROW {
            rows.truncate(height);
            return rows;
        }
        rows.extend(self.now.as_ref().map(|now| now.row(elapsed, width, palette)));
        rows.extend(self.ending.map(|quicker| {
            let indent = if width >= ROOMY { "  " } else { "" };
            let quicker = text::fit(quicker, width - text::width(indent));
            Row::new(palette, &[(Tone::Plain, indent), (Tone::Warning, &quicker)])
        }));
        let lines = self.tail.lines(width.saturating_sub(4));
        rows.extend(lines.iter().map(|line| Row::new(palette, &[(Tone::Faint, "  │ "), (Tone::Faint, line)])));
        rows.truncate(height);
        rows
    }

    /// One of several workers: its task on the left, what happens with it on the right.
    pub(super) fn seat(&self, number: usize, at: Instant, width: usize, palette: Palette) -> Row {
        let number = text::fit(&format!("{number:>2}  "), width);
        let room = width.saturating_sub(text::width(&number));
        if self.session.is_empty() {
            return Row::new(palette, &[(Tone::Faint, &number), (Tone::Faint, &text::fit("waits for a task", room))]);
        }
        let elapsed = self.elapsed(at);
        let now = self.now.as_ref().map(|now| format!("{} {}", now.who, now.does));
        // For how long that goes on; where nothing does, the session.
        let time = self.now.as_ref().map_or_else(|| clock(elapsed), |now| now.time(elapsed));
        let iteration = (self.iteration > 1).then(|| format!("iteration {}/{}", self.iteration, self.most));
        let parts = [now, iteration, Some(time)];
        let state = parts.into_iter().flatten().collect::<Vec<_>>().join(" · ");
        // What is done matters more than the words for it.
        let state = text::fit(&state, room * 2 / 3);
        let what = format!("{} {}", self.task.as_deref().unwrap_or_default(), text::line(&self.goal));
        let left = room.saturating_sub(text::width(&state) + 2);
        let what = text::pad(&text::fit(what.trim(), left), left);
        let gap = if left == 0 { "" } else { "  " };
        Row::new(palette, &[(Tone::Faint, &number), (Tone::Plain, &what), (Tone::Plain, gap), (Tone::Name, &state)])
    }

    /// Where several workers are together.
    pub(super) fn over_all(&self, totals: &str, at: Instant, width: usize, palette: Palette) -> Row {
        let ending = if self.ending.is_some() { "ending · " } else { "" };
        let shown = text::fit(&format!("{ending}{totals} · {}", clock(self.elapsed(at))), width);
        let rest = width.saturating_sub(text::width(&shown) + 4);
        match rest {
            0..2 => Row::new(palette, &[(Tone::Strong, &shown)]),
            _ => {
                let rule = format!(" {}", "─".repeat(rest));
                Row::new(palette, &[(Tone::Faint, "── "), (Tone::Strong, &shown), (Tone::Faint, &rule)])
            }
        }
    }

    /// What somebody can do who has no time for the end.
    pub(super) fn quicker(&self) -> Option<&'static str> {
        self.ending
    }

    /// Where the session is: what matters most comes first, and what has no room is left out.
    fn head(&self, elapsed: Duration, width: usize, palette: Palette) -> Row {
        let left = self.time.map(|time| format!("{} left", clock(remaining(time, elapsed))));
        let sent_back = match self.sent_back {
            (0, _) => None,
            (times, most) => Some(format!("sent back {times}/{most}")),
        };
        let iteration = match self.iteration {
            0 => "starting".to_owned(),
            number => format!("iteration {number}/{}", self.most),
        };
        let parts = [
            self.ending.map(|_| "ending".to_owned()),
            Some(iteration),
            Some(clock(elapsed)),
            left,
            sent_back,
            (!self.used.is_nothing()).then(|| self.used.to_string()),
            self.task.as_ref().map(|task| text::fit(task, NAME)),
            Some(text::fit(&self.session, NAME)),
        ];
        let ornament = if width >= ROOMY { "── " } else { "" };
        let room = width - text::width(ornament);
        let comma = if width >= ROOMY { " · " } else { " " };
        let mut shown = String::new();
        for part in parts.into_iter().flatten() {
            let between = if shown.is_empty() { "" } else { comma };
            if text::width(&shown) + text::width(between) + text::width(&part) <= room {
                shown = format!("{shown}{between}{part}");
            } else if shown.is_empty() {
                shown = text::fit(&part, room);
            }
        }
        let rest = room.saturating_sub(text::width(&shown) + 1);
        let rule = if ornament.is_empty() || rest < 2 { String::new() } else { format!(" {}", "─".repeat(rest)) };
        Row::new(palette, &[(Tone::Faint, ornament), (Tone::Strong, &shown), (Tone::Faint, &rule)])
    }
}

impl Now {
    /// For how long it goes on already, or still will.
    fn time(&self, elapsed: Duration) -> String {
        match self.until {
            Some(until) => clock(remaining(until, elapsed)),
            None => clock(remaining(elapsed, self.since)),
        }
    }

    fn row(&self, elapsed: Duration, width: usize, palette: Palette) -> Row {
        let time = self.time(elapsed);
        let indent = if width >= ROOMY { "  " } else { "" };
        let room = width.saturating_sub(text::width(indent) + text::width(&time) + 1);
        let what = text::fit(&format!("{} {}", self.who, self.does), room);
        let time = text::fit(&format!(" {time}"), width);
        Row::new(palette, &[(Tone::Plain, indent), (Tone::Name, &what), (Tone::Faint, &time)])
    }
}

/// What lies between two moments, both in whole seconds, so that all clocks change together.
fn remaining(to: Duration, from: Duration) -> Duration {
    Duration::from_secs(to.as_secs().saturating_sub(from.as_secs()))
}

/// `0:07`, `12:34`, `1:02:03`
fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours == 0 { format!("{minutes}:{seconds:02}") } else { format!("{hours}:{minutes:02}:{seconds:02}") }
}

#[cfg(test)]
mod tests;
