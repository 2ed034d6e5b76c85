//! What a person sees while the loop turns, or a program with `--json`: every event, one object a line.

use std::time::{Duration, Instant};

use windlass_engine::{Event, HookOutcome, Promise, Purpose, Record, payload};
use windlass_hooks::clean;
use windlass_runner::Told;

use super::notice;
use crate::output::{Done, Output, Stop, Tone};
use crate::{show, text};

/// Shows what happens as it happens.
pub struct Progress<'o> {
    out: &'o mut Output,
    /// Nobody reads any more. The work goes on all the same.
    closed: bool,
    live: Live,
    /// Where the work is done, if that has to be said.
    directory: Option<String>,
}

/// The longest line in a pipe.
const LINE: usize = 200;

/// The line that an agent or a hook is writing.
#[derive(Default)]
struct Live {
    line: Vec<u8>,
    shown: Option<Instant>,
}

/// Nobody reads faster than that.
const OFTEN: Duration = Duration::from_millis(100);
/// A longer line is not shown to its end.
const LONG: usize = 1024;

impl Live {
    /// The last whole line among what was written, if it is time to show one.
    fn hear(&mut self, bytes: &[u8]) -> Option<String> {
        let mut parts = bytes.split(|byte| matches!(byte, b'\n' | b'\r'));
        let last = parts.next_back().unwrap_or_default();
        let mut whole = None;
        for part in parts {
            self.take(part);
            let line = std::mem::take(&mut self.line);
            whole = Some(line).filter(|line| !line.trim_ascii().is_empty()).or(whole);
        }
        self.take(last);
        let line = whole.filter(|_| self.shown.is_none_or(|shown| shown.elapsed() >= OFTEN))?;
        self.shown = Some(Instant::now());
        Some(String::from_utf8_lossy(&line).into_owned())
    }

    fn take(&mut self, part: &[u8]) {
        let room = LONG.saturating_sub(self.line.len());
        self.line.extend_from_slice(&part[..part.len().min(room)]);
    }
}

impl<'o> Progress<'o> {
    pub fn new(out: &'o mut Output, directory: Option<String>) -> Self {
        Self { out, closed: false, live: Live::default(), directory }
    }

    pub fn tell(&mut self, told: Told<'_>) {
        if self.closed {
            return;
        }
        let shown = match told {
            Told::Event(record) if self.out.is_json() => self.out.object(record),
            Told::Event(record) => self.show(record),
            Told::Output(_, bytes) => match self.live.hear(bytes) {
                Some(line) => self.out.passing(&format!("  {}", clean(&line))),
                None => return,
            },
        };
        if let Err(Stop::Closed | Stop::Failed(_)) = shown.and_then(|()| self.out.flush()) {
            self.closed = true;
            self.out.give_up();
        }
    }

    fn show(&mut self, record: &Record) -> Done {
        match &record.envelope.event {
            Event::SessionStarted(started) => {
                let name = record.envelope.session.as_ref().map(ToString::to_string).unwrap_or_default();
                let agent = text::line(&started.agent).into_owned();
                let most = match started.terms.max_iterations {
                    1 => "one iteration".to_owned(),
                    most => format!("{most} iterations"),
                };
                self.heading("session", &name)?;
                self.detail(Tone::Faint, &format!("{agent}, at most {most}"))?;
                self.place()
            }
            Event::SessionResumed(_) => {
                let name = record.envelope.session.as_ref().map(ToString::to_string).unwrap_or_default();
                self.heading("session", &format!("{name}, taken up again"))?;
                self.place()
            }
            Event::IterationStarted(started) => self.heading("iteration", &started.run.iteration.to_string()),
            Event::TurnStarted(started) => self.turn(started),
            Event::TurnFinished(finished) => {
                self.said(&finished.output)?;
                match finished.leaky {
                    true => self.detail(Tone::Faint, "it left processes behind, which were ended"),
                    false => Ok(()),
                }
            }
            Event::DeliveryFinished(finished) => self.said(&finished.output),
            Event::PromiseDetected(detected) => self.detail(
                Tone::Plain,
                match detected.promise {
                    Promise::Complete => "the agent says that it is done",
                    Promise::Blocked => "the agent says that it is blocked",
                    Promise::Escalate => "the agent asks for a person",
                },
            ),
            Event::HookFinished(finished) => self.hook(finished),
            // The end of its run has said so already.
            Event::HookError(failed) if failed.debt.is_some() => Ok(()),
            Event::HookError(failed) => {
                self.detail(Tone::Bad, &format!("{} failed: {}", failed.hook_name, failed.error))
            }
            Event::ActionError(failed) => {
                self.detail(Tone::Bad, &format!("cannot carry out `{}`: {}", failed.action_type, failed.error))
            }
            Event::GateDecided(decided) => match notice::of_gate(decided) {
                Some(notice) => self.detail(Tone::Warning, &notice),
                None => Ok(()),
            },
            Event::GateAnswered(answered) => self.detail(Tone::Plain, show::answer(answered.answer)),
            Event::IterationPostponed(postponed) => {
                let notice = notice::of_wait(postponed, record.envelope.timestamp);
                self.detail(Tone::Warning, &notice)
            }
            Event::IterationFailed(payload::IterationFailed { error, .. })
            | Event::DeliveryFailed(payload::DeliveryFailed { error, .. }) => {
                self.detail(Tone::Bad, &format!("failed: {error}"))
            }
            Event::SessionStopping(_) => self.detail(Tone::Warning, "it is to end"),
            Event::IterationInterrupted(_) | Event::DeliveryInterrupted(_) => self.detail(Tone::Warning, "interrupted"),
            Event::SessionEnded(ended) => self.ended(record, ended),
            _ => Ok(()),
        }
    }

    fn said(&mut self, output: &str) -> Done {
        match show::last_words(output) {
            Some(last) => self.detail(Tone::Plain, &format!("agent: {last}")),
            None if output.trim().is_empty() => self.detail(Tone::Faint, "the agent said nothing"),
            None => Ok(()),
        }
    }

    fn turn(&mut self, started: &payload::TurnStarted) -> Done {
        let pieces = match started.feedback {
            0 => return self.works(),
            1 => "one piece of feedback".to_owned(),
            many => format!("{many} pieces of feedback"),
        };
        let what = match started.purpose {
            Purpose::Recovery => "a recovery with",
            Purpose::Delivery(_) => "final delivery of",
            Purpose::Work | Purpose::SendBack => "the agent gets",
        };
        self.detail(Tone::Faint, &format!("{what} {pieces}"))?;
        self.works()
    }

    /// Something to look at until it says something.
    fn works(&mut self) -> Done {
        self.live = Live::default();
        self.out.passing("  the agent works …")
    }

    fn hook(&mut self, finished: &payload::HookFinished) -> Done {
        let (tone, word) = show::outcome(finished.outcome);
        // Its message says that already, and after how long.
        let word = if finished.outcome == HookOutcome::TimedOut { "" } else { word };
        let why = finished.message.as_deref().unwrap_or_default();
        let colon = if word.is_empty() || why.is_empty() { "" } else { ": " };
        self.detail(tone, &format!("{} {word}{colon}{why}", finished.hook))
    }

    fn ended(&mut self, record: &Record, ended: &payload::SessionEnded) -> Done {
        let (tone, word) = show::ending_word(ended.ending);
        let turns = match record.envelope.iteration.unwrap_or(0) {
            1 => "after one iteration".to_owned(),
            many => format!("after {many} iterations"),
        };
        let why = ended.reason.as_ref().map(|reason| format!(": {}", text::line(reason))).unwrap_or_default();
        self.out.line(format_args!("{} {turns}{why}", self.out.paint(tone, word)))
    }

    fn place(&mut self) -> Done {
        match self.directory.take() {
            Some(directory) => self.detail(Tone::Faint, &format!("in {directory}")),
            None => Ok(()),
        }
    }

    fn heading(&mut self, label: &str, what: &str) -> Done {
        self.out.line(format_args!("{} {}", self.out.paint(Tone::Strong, label), text::line(what)))
    }

    fn detail(&mut self, tone: Tone, what: &str) -> Done {
        let room = self.out.columns().map_or(LINE, |columns| columns.saturating_sub(2).max(20));
        let fitted = text::fit(what, room);
        self.out.line(format_args!("  {}", self.out.paint(tone, fitted)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_whole_line_is_shown() {
        let mut live = Live::default();
        assert_eq!(live.hear(b"half"), None);
        assert_eq!(live.hear(b" a line\nanother\n\nth"), Some("another".to_owned()));
        // Too soon after the other.
        assert_eq!(live.hear(b"ird\n"), None);
        live.shown = None;
        live.hear(&[b'x'; 5000]);
        assert_eq!(live.hear(b"\n").map(|line| line.len()), Some(LONG));
    }
}
