//! The progress of a session in lines for a person, or as JSON: every event, one object per line.

use windlass_app::run::SessionObserver;
use windlass_engine::{
    Ending, Event, HookOutcome, HookPoint, OnRetryLimit, Promise, Purpose, Record, Work, last_line, payload,
};
use windlass_hooks::LEFT_BEHIND;
use windlass_runner::RunnerEvent;
use windlass_text as text;

use super::live::{View, update_view};
use super::notices;
use super::sink::ProgressSink;
use crate::output::{Done, Stop, Tone};
use crate::show;

/// An observer that prints the events of a session.
pub struct Progress<'o> {
    out: Box<dyn ProgressSink + 'o>,
    /// The live view, if a person watches.
    view: Option<View>,
    /// The reader has closed the output. The work continues.
    closed: bool,
    /// The directory of the work, if it has to be shown.
    pub directory: Option<String>,
    /// The task, as a prefix of each line, if several are worked on at a time.
    pub about: Option<String>,
    work: Work,
    /// The session is about to end.
    is_stopping: bool,
    /// The consequence when stop hooks have used up their retries.
    at_limit: OnRetryLimit,
    /// The promise of the agent in its last turn.
    promise: Option<Promise>,
}

impl SessionObserver for Progress<'_> {
    fn observe(&mut self, told: RunnerEvent<'_>) {
        if let Some(view) = &self.view {
            update_view(view, told);
        }
        if self.closed {
            return;
        }
        let shown = match told {
            RunnerEvent::Event(record) if self.out.is_json() => self.out.record(record),
            RunnerEvent::Event(record) => self.show(record),
            RunnerEvent::TakesUp(_) if self.out.is_json() => return,
            RunnerEvent::TakesUp(task) if self.about.is_some() => {
                self.about = Some(task.id.to_string());
                self.heading("task", &task.goal)
            }
            RunnerEvent::TakesUp(task) if self.work == Work::Graph => {
                self.heading("task", &format!("{}  {}", task.id, task.goal))
            }
            RunnerEvent::Note(words) if !self.out.is_json() => self.detail(Tone::Warning, &format!("note: {words}")),
            RunnerEvent::Queueing if !self.out.is_json() => self.detail(Tone::Plain, show::pipeline::QUEUEING),
            _ => return,
        };
        if let Err(Stop::Closed | Stop::Failed(_)) = shown.and_then(|()| self.out.flush()) {
            self.closed = true;
            self.out.give_up();
        }
    }

    fn shows_output(&self) -> bool {
        self.view.is_some()
    }
}

impl<'o> Progress<'o> {
    pub fn new(out: impl ProgressSink + 'o, view: Option<View>, work: Work) -> Self {
        let out = Box::new(out);
        let (directory, about, at_limit) = (None, None, OnRetryLimit::default());
        let (closed, is_stopping, promise) = (false, false, None);
        Self { out, view, closed, directory, about, work, is_stopping, at_limit, promise }
    }

    fn show(&mut self, record: &Record) -> Done {
        match &record.envelope.event {
            Event::SessionStarted(started) => self.started(record, started),
            Event::SessionResumed(resumed) => {
                self.at_limit = resumed.terms.on_retry_limit;
                self.heading("session", &format!("{}, taken up again", session_name(record)))?;
                self.place()
            }
            Event::IterationStarted(started) => self.heading("iteration", &started.run.iteration.to_string()),
            Event::TurnStarted(started) => self.turn(started),
            Event::TurnFinished(finished) => {
                self.said(&finished.output)?;
                if finished.unchanged {
                    self.detail(Tone::Faint, "it has changed no file since its turn before")?;
                }
                self.left_behind(finished.leaky)
            }
            Event::DeliveryFinished(finished) => {
                self.said(&finished.output)?;
                self.left_behind(finished.leaky)
            }
            Event::PromiseDetected(detected) => {
                self.promise = Some(detected.promise);
                let says = match detected.promise {
                    Promise::Complete => "the agent says that it is done",
                    Promise::Blocked => "the agent says that it is blocked",
                    Promise::Escalate => "the agent asks for a person",
                };
                self.detail(Tone::Plain, says)
            }
            // A machine without a desktop notifier is not worth a line.
            Event::HookFinished(finished) if is_idle_notice(finished) => Ok(()),
            // A base that has moved is shown once, with the event that follows.
            Event::HookFinished(finished) if finished.outcome == HookOutcome::Again => Ok(()),
            Event::HookFinished(finished) => self.hook(finished),
            Event::FeedbackQueued(queued) if !queued.voice.is_hook() => {
                self.detail(Tone::Name, &format!("{} says: {}", queued.source, queued.text.trim()))
            }
            // The end of its run has shown the error.
            Event::HookError(failed) if failed.effect.is_some() => Ok(()),
            Event::HookError(failed) => {
                self.detail(Tone::Bad, &format!("{} failed: {}", failed.hook_name, failed.error))
            }
            Event::ActionError(failed) => {
                self.detail(Tone::Bad, &format!("cannot carry out `{}`: {}", failed.action_type, failed.error))
            }
            // The agent itself has asked for a person, and the gate does not change that.
            Event::GateDecided(_) if matches!(self.promise, Some(Promise::Blocked | Promise::Escalate)) => Ok(()),
            Event::GateDecided(decided) => match notices::of_gate(decided, self.at_limit) {
                Some(notice) => self.detail(Tone::Warning, &notice),
                None => Ok(()),
            },
            Event::GateAnswered(answered) => {
                let by = &record.envelope.metadata.triggered_by;
                self.detail(Tone::Plain, &format!("{by} answers {}", show::answer(answered.answer)))
            }
            Event::IterationPostponed(postponed) => {
                let notice = notices::of_wait(postponed, record.envelope.timestamp);
                self.detail(Tone::Warning, &notice)
            }
            Event::IterationFailed(payload::IterationFailed { error, fault, leaky, .. })
            | Event::DeliveryFailed(payload::DeliveryFailed { error, fault, leaky, .. }) => {
                self.detail(Tone::Bad, &format!("failed: {error}"))?;
                self.left_behind(*leaky)?;
                if let Some(remedy) = fault.remedy() {
                    self.detail(Tone::Faint, &format!("hint: {remedy}"))?;
                }
                notices::of_retry(record).map_or(Ok(()), |notice| self.detail(Tone::Warning, &notice))
            }
            Event::SessionStopping(stopping) => self.stopping(stopping),
            // The event before it has shown that the session ends.
            Event::IterationInterrupted(_) if self.is_stopping => Ok(()),
            Event::IterationInterrupted(_) | Event::DeliveryInterrupted(_) => self.detail(Tone::Warning, "interrupted"),
            Event::SessionEnded(ended) => self.ended(record, ended),
            // `RunnerEvent::TakesUp` shows the task with its goal.
            Event::TaskClaimed(_) => Ok(()),
            _ if let Some((tone, what)) = show::pipeline::progress(record) => self.detail(tone, &what),
            // The end of its session says so, in the next line.
            Event::TaskCompleted(_) if self.about.is_some() && self.work == Work::Given => Ok(()),
            _ if self.work == Work::Graph || self.about.is_some() => match show::of_task(record) {
                Some((tone, what)) => self.detail(tone, &what),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn started(&mut self, record: &Record, started: &payload::SessionStarted) -> Done {
        self.at_limit = started.terms.on_retry_limit;
        let agent = text::line(&started.agent).into_owned();
        let most = match started.terms.max_iterations {
            1 => "one iteration".to_owned(),
            most => format!("{most} iterations"),
        };
        self.heading("session", &session_name(record))?;
        self.detail(Tone::Faint, &format!("{agent}, at most {most}"))?;
        self.place()
    }

    fn stopping(&mut self, stopping: &payload::SessionStopping) -> Done {
        self.is_stopping = true;
        let why = stopping.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        match stopping.ending {
            // The end of the session shows the reason in a moment.
            Ending::Error => Ok(()),
            // The person who pressed a key has seen a note and the live view.
            _ if why.is_empty() && self.view.is_some() => Ok(()),
            _ => self.detail(Tone::Warning, &format!("it is to end{why}")),
        }
    }

    fn said(&mut self, output: &str) -> Done {
        match last_line(output) {
            Some(last) => self.detail(Tone::Plain, &format!("agent: {last}")),
            None if output.trim().is_empty() => self.detail(Tone::Faint, "the agent said nothing"),
            None => Ok(()),
        }
    }

    fn turn(&mut self, started: &payload::TurnStarted) -> Done {
        self.promise = None;
        let what = match started.purpose {
            _ if started.feedback == 0 => return Ok(()),
            Purpose::Recovery => "a recovery with",
            Purpose::Delivery | Purpose::UnjudgedDelivery(_) => "final delivery of",
            Purpose::Work | Purpose::SendBack => "the agent gets",
        };
        self.detail(Tone::Faint, &format!("{what} {}", show::pieces(started.feedback)))
    }

    fn hook(&mut self, finished: &payload::HookFinished) -> Done {
        let (tone, word) = show::outcome_words(finished.outcome);
        // The message of a timeout names the timeout and the time.
        let word = if finished.outcome == HookOutcome::TimedOut { "" } else { word };
        let why = finished.message.as_deref().unwrap_or_default();
        let colon = if word.is_empty() || why.is_empty() { "" } else { ": " };
        let is_told = self.view.is_some() && !word.is_empty();
        let took = finished.duration_ms.filter(|_| is_told).map(|took| format!(" ({})", show::millis(took)));
        self.detail(tone, &format!("{} {word}{}{colon}{why}", finished.hook, took.unwrap_or_default()))
    }

    fn ended(&mut self, record: &Record, ended: &payload::SessionEnded) -> Done {
        let (tone, word) = show::ending_word(ended.ending);
        let turns = match record.envelope.iteration.unwrap_or(0) {
            0 => "without an iteration".to_owned(),
            1 => "after one iteration".to_owned(),
            many => format!("after {many} iterations"),
        };
        let why = ended.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        self.labelled((tone, word), &format!("{turns}{why}"))
    }

    fn place(&mut self) -> Done {
        match self.directory.take() {
            Some(directory) => self.detail(Tone::Faint, &format!("in {directory}")),
            None => Ok(()),
        }
    }

    fn heading(&mut self, label: &str, what: &str) -> Done {
        self.labelled((Tone::Strong, label), what)
    }

    fn labelled(&mut self, (tone, label): (Tone, &str), what: &str) -> Done {
        let rows = self.rows(what, text::width(label) + 1, 2);
        for (number, row) in rows.iter().enumerate() {
            match number {
                0 => self.line(format!("{} {row}", self.out.palette().paint(tone, label)))?,
                _ => self.line(format!("  {row}"))?,
            }
        }
        Ok(())
    }

    /// Notes that a turn has left processes behind.
    fn left_behind(&mut self, leaky: bool) -> Done {
        if leaky { self.detail(Tone::Faint, LEFT_BEHIND) } else { Ok(()) }
    }

    fn detail(&mut self, tone: Tone, what: &str) -> Done {
        let rows = self.rows(what, 2, 4);
        rows.iter().enumerate().try_for_each(|(number, row)| {
            let indent = if number == 0 { "  " } else { "    " };
            self.line(format!("{indent}{}", self.out.palette().paint(tone, row)))
        })
    }

    /// Wraps a text at the width of the terminal. `before` is the width in front of the first row, `before_others` of the others.
    fn rows(&self, what: &str, before: usize, before_others: usize) -> Vec<String> {
        let what = text::fit(what, show::LONG);
        let about = self.about.as_ref().map_or(0, |about| text::width(about) + 1);
        match self.view.as_ref().map(View::columns).or(self.out.columns()) {
            None => vec![what],
            Some(columns) => {
                let room = |before: usize| columns.saturating_sub(before + about).max(8);
                text::wrap(&what, room(before), room(before_others))
            }
        }
    }

    fn line(&mut self, line: String) -> Done {
        let line = match &self.about {
            Some(about) => format!("{} {line}", self.out.palette().paint(Tone::Faint, about)),
            None => line,
        };
        match &self.view {
            Some(view) => {
                view.line(line);
                Ok(())
            }
            None => self.out.line(line),
        }
    }
}

/// Returns the name of an event's session.
pub fn session_name(record: &Record) -> String {
    record.envelope.session.as_ref().map(ToString::to_string).unwrap_or_default()
}

fn is_idle_notice(finished: &payload::HookFinished) -> bool {
    finished.outcome == HookOutcome::Skip && finished.hook.starts_with(&format!("{}[", HookPoint::Notify))
}
