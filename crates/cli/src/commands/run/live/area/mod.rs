//! The status area at the bottom of the terminal during a run: the progress of the session, and the current activity.
//!
//! Invariants:
//! - No row is wider than it may be, and no row has control characters from outside.
//! - All clocks change at the same moment, once a second.

use std::time::{Duration, Instant};

use windlass_engine::{AgentUsage, Task};
use windlass_process::OutputStream;
use windlass_text as text;

use super::tail::OutputTail;
use crate::output::{Palette, TextTone};

/// The width from which on rows have ornaments.
const MIN_ORNAMENT_COLUMNS: usize = 40;
/// The width below which only the heading is shown.
const MIN_DETAIL_COLUMNS: usize = 12;
/// The widest form of a session's name.
const MAX_NAME_COLUMNS: usize = 48;

/// A painted row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminalRow {
    pub text: String,
}

impl TerminalRow {
    pub(super) fn new(palette: Palette, parts: &[(TextTone, &str)]) -> Self {
        let text = parts.iter().map(|(tone, text)| palette.paint(*tone, *text).to_string()).collect();
        Self { text }
    }
}

/// The current activity.
#[derive(Debug)]
struct CurrentActivity {
    actor: String,
    action: String,
    since: Duration,
    /// The end of the activity, if it is known.
    until: Option<Duration>,
}

#[derive(Debug)]
pub struct StatusArea {
    /// The moment at which this process started or resumed the session, and the time that the session had lasted before.
    began: Instant,
    earlier_time: Duration,
    pub session: String,
    pub task: Option<String>,
    /// The goal of the task.
    goal: String,
    pub iteration: u32,
    /// The limit of iterations.
    pub max_iterations: u32,
    /// The number of times that stop hooks have sent the agent back in this iteration, and its limit.
    pub sent_back: (u32, u32),
    /// The limit of the session's time.
    pub time: Option<Duration>,
    /// The usage of its turns.
    pub used: AgentUsage,
    /// A hint that tells how to end at once. It is set when the session is about to end.
    end_hint: Option<&'static str>,
    now: Option<CurrentActivity>,
    tail: OutputTail,
}

impl StatusArea {
    pub fn new(began: Instant) -> Self {
        Self {
            began,
            earlier_time: Duration::ZERO,
            session: String::new(),
            task: None,
            goal: String::new(),
            iteration: 0,
            max_iterations: 0,
            sent_back: (0, 0),
            time: None,
            used: AgentUsage::default(),
            end_hint: None,
            now: None,
            tail: OutputTail::default(),
        }
    }

    /// Sets the time that a resumed session has lasted before.
    pub fn set_earlier_time(&mut self, before: Duration) {
        self.earlier_time = before;
    }

    pub fn set_task(&mut self, task: &Task) {
        (self.task, self.goal) = (Some(task.id.to_string()), task.goal.clone());
    }

    /// Begins an activity, and drops the output of the previous one.
    pub fn begin_activity(&mut self, at: Instant, who: &str, does: &str) {
        self.now = Some(CurrentActivity {
            actor: who.to_owned(),
            action: does.to_owned(),
            since: self.elapsed(at),
            until: None,
        });
        self.tail = OutputTail::default();
    }

    pub fn begin_waiting(&mut self, at: Instant, time: Duration) {
        self.begin_activity(at, "waits", "before the next try");
        if let Some(now) = &mut self.now {
            now.until = Some(now.since + time);
        }
    }

    /// Marks the session as ending. The current activity is being ended, which takes a while.
    pub fn begin_ending(&mut self, at: Instant, quicker: &'static str) {
        self.end_hint = Some(quicker);
        match self.now.take() {
            Some(CurrentActivity { actor: who, until: None, .. }) => self.begin_activity(at, &who, "is being ended"),
            Some(_) | None => self.clear_activity(),
        }
    }

    /// Clears the current activity.
    pub fn clear_activity(&mut self) {
        self.now = None;
        self.tail = OutputTail::default();
    }

    pub fn append_output(&mut self, stream: OutputStream, bytes: &[u8]) {
        self.tail.append_output(stream, bytes);
    }

    pub(super) fn elapsed(&self, at: Instant) -> Duration {
        self.earlier_time + at.saturating_duration_since(self.began)
    }

    /// Returns the time until a clock changes.
    pub fn time_to_next_tick(&self, at: Instant) -> Duration {
        Duration::from_secs(1) - Duration::from_nanos(u64::from(self.elapsed(at).subsec_nanos()))
    }

    /// Renders the rows for a terminal of this size. There are none without a session or without room.
    pub fn render_rows(&self, at: Instant, (columns, height): (usize, usize), palette: Palette) -> Vec<TerminalRow> {
        // The last column stays free, because some terminals wrap there.
        let width = columns.saturating_sub(1);
        // One row is left to the scrolling lines.
        let height = height.saturating_sub(1);
        if self.session.is_empty() || width == 0 {
            return Vec::new();
        }
        let elapsed = self.elapsed(at);
        let mut rows = vec![self.render_heading(elapsed, width, palette)];
        if width < MIN_DETAIL_COLUMNS {
            rows.truncate(height);
            return rows;
        }
        rows.extend(self.now.as_ref().map(|now| now.render_row(elapsed, width, palette)));
        rows.extend(self.end_hint.map(|quicker| {
            let indent = if width >= MIN_ORNAMENT_COLUMNS { "  " } else { "" };
            let quicker = text::fit_to_width(quicker, width - text::display_width(indent));
            TerminalRow::new(palette, &[(TextTone::Plain, indent), (TextTone::Warning, &quicker)])
        }));
        let lines = self.tail.last_lines(width.saturating_sub(4));
        rows.extend(
            lines.iter().map(|line| TerminalRow::new(palette, &[(TextTone::Faint, "  │ "), (TextTone::Faint, line)])),
        );
        rows.truncate(height);
        rows
    }

    /// Renders the row of a worker: its task on the left, the current activity on the right.
    pub(super) fn render_worker_row(&self, number: usize, at: Instant, width: usize, palette: Palette) -> TerminalRow {
        let number = text::fit_to_width(&format!("{number:>2}  "), width);
        let room = width.saturating_sub(text::display_width(&number));
        if self.session.is_empty() {
            return TerminalRow::new(
                palette,
                &[(TextTone::Faint, &number), (TextTone::Faint, &text::fit_to_width("waits for a task", room))],
            );
        }
        let elapsed = self.elapsed(at);
        let now = self.now.as_ref().map(|now| format!("{} {}", now.actor, now.action));
        // The time of the activity, or of the session while there is none.
        let time = self.now.as_ref().map_or_else(|| format_clock(elapsed), |now| now.format_time(elapsed));
        let iteration = (self.iteration > 1).then(|| format!("iteration {}/{}", self.iteration, self.max_iterations));
        let parts = [now, iteration, Some(time)];
        let state = parts.into_iter().flatten().collect::<Vec<_>>().join(" · ");
        // The activity gets at most two thirds of the row, and the task the rest.
        let state = text::fit_to_width(&state, room * 2 / 3);
        let what = format!("{} {}", self.task.as_deref().unwrap_or_default(), text::clean_line(&self.goal));
        let left = room.saturating_sub(text::display_width(&state) + 2);
        let what = text::pad_to_width(&text::fit_to_width(what.trim(), left), left);
        let gap = if left == 0 { "" } else { "  " };
        TerminalRow::new(
            palette,
            &[(TextTone::Faint, &number), (TextTone::Plain, &what), (TextTone::Plain, gap), (TextTone::Name, &state)],
        )
    }

    /// Renders the row above those of several workers.
    pub(super) fn render_totals_row(&self, totals: &str, at: Instant, width: usize, palette: Palette) -> TerminalRow {
        let ending = if self.end_hint.is_some() { "ending · " } else { "" };
        let shown = text::fit_to_width(&format!("{ending}{totals} · {}", format_clock(self.elapsed(at))), width);
        let rest = width.saturating_sub(text::display_width(&shown) + 4);
        match rest {
            0..2 => TerminalRow::new(palette, &[(TextTone::Strong, &shown)]),
            _ => {
                let rule = format!(" {}", "─".repeat(rest));
                TerminalRow::new(
                    palette,
                    &[(TextTone::Faint, "── "), (TextTone::Strong, &shown), (TextTone::Faint, &rule)],
                )
            }
        }
    }

    /// Returns the hint that tells how to end at once, if the session is about to end.
    pub(super) fn end_hint(&self) -> Option<&'static str> {
        self.end_hint
    }

    /// Renders the heading: the most important parts first. A part without room is left out.
    fn render_heading(&self, elapsed: Duration, width: usize, palette: Palette) -> TerminalRow {
        let left = self.time.map(|time| format!("{} left", format_clock(whole_seconds_between(time, elapsed))));
        let sent_back = match self.sent_back {
            (0, _) => None,
            (times, most) => Some(format!("sent back {times}/{most}")),
        };
        let iteration = match self.iteration {
            0 => "starting".to_owned(),
            number => format!("iteration {number}/{}", self.max_iterations),
        };
        let parts = [
            self.end_hint.map(|_| "ending".to_owned()),
            Some(iteration),
            Some(format_clock(elapsed)),
            left,
            sent_back,
            (!self.used.is_nothing()).then(|| self.used.to_string()),
            self.task.as_ref().map(|task| text::fit_to_width(task, MAX_NAME_COLUMNS)),
            Some(text::fit_to_width(&self.session, MAX_NAME_COLUMNS)),
        ];
        let ornament = if width >= MIN_ORNAMENT_COLUMNS { "── " } else { "" };
        let room = width - text::display_width(ornament);
        let comma = if width >= MIN_ORNAMENT_COLUMNS { " · " } else { " " };
        let mut shown = String::new();
        for part in parts.into_iter().flatten() {
            let between = if shown.is_empty() { "" } else { comma };
            if text::display_width(&shown) + text::display_width(between) + text::display_width(&part) <= room {
                shown = format!("{shown}{between}{part}");
            } else if shown.is_empty() {
                shown = text::fit_to_width(&part, room);
            }
        }
        let rest = room.saturating_sub(text::display_width(&shown) + 1);
        let rule = if ornament.is_empty() || rest < 2 { String::new() } else { format!(" {}", "─".repeat(rest)) };
        TerminalRow::new(palette, &[(TextTone::Faint, ornament), (TextTone::Strong, &shown), (TextTone::Faint, &rule)])
    }
}

impl CurrentActivity {
    /// Formats the time since the beginning, or the time that is left.
    fn format_time(&self, elapsed: Duration) -> String {
        match self.until {
            Some(until) => format_clock(whole_seconds_between(until, elapsed)),
            None => format_clock(whole_seconds_between(elapsed, self.since)),
        }
    }

    fn render_row(&self, elapsed: Duration, width: usize, palette: Palette) -> TerminalRow {
        let time = self.format_time(elapsed);
        let indent = if width >= MIN_ORNAMENT_COLUMNS { "  " } else { "" };
        let room = width.saturating_sub(text::display_width(indent) + text::display_width(&time) + 1);
        let what = text::fit_to_width(&format!("{} {}", self.actor, self.action), room);
        let time = text::fit_to_width(&format!(" {time}"), width);
        TerminalRow::new(palette, &[(TextTone::Plain, indent), (TextTone::Name, &what), (TextTone::Faint, &time)])
    }
}

/// Returns the difference in whole seconds of both moments, so that all clocks change together.
fn whole_seconds_between(to: Duration, from: Duration) -> Duration {
    Duration::from_secs(to.as_secs().saturating_sub(from.as_secs()))
}

/// Formats a time as `0:07`, `12:34` or `1:02:03`.
fn format_clock(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours == 0 { format!("{minutes}:{seconds:02}") } else { format!("{hours}:{minutes:02}:{seconds:02}") }
}

#[cfg(test)]
mod tests;
