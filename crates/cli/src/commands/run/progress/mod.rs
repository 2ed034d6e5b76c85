//! The progress of a session in lines for a person, or as JSON: every event, one object per line.

mod lines;

use windlass_app::run::SessionObserver;
use windlass_engine::{
    Event, EventRecord, HookOutcome, HookPoint, Promise, RetryLimitAction, SessionEndKind, TurnPurpose, WorkSource,
    last_line_without_claim, payload,
};
use windlass_hooks::LEFTOVER_PROCESSES_NOTE;
use windlass_process::OutputStream;
use windlass_runner::RunnerEvent;
use windlass_text::{self as text, LineSplitter};

use super::live::{ViewHandle, update_view};
use super::notices;
use super::sink::ProgressSink;
use crate::output::{CommandResult, EarlyExit, TextTone};
use crate::show;

/// An observer that prints the events of a session.
pub struct ProgressPrinter<'o> {
    out: Box<dyn ProgressSink + 'o>,
    /// The live view, if a person watches.
    view: Option<ViewHandle>,
    /// The reader has closed the output. The work continues.
    closed: bool,
    /// The directory of the work, if it has to be shown.
    pub directory: Option<String>,
    /// The task, as a prefix of each line, if several are worked on at a time.
    pub task_label: Option<String>,
    work: WorkSource,
    /// The session is about to end.
    is_stopping: bool,
    /// The consequence when stop hooks have used up their retries.
    at_limit: RetryLimitAction,
    /// The promise of the agent in its last turn.
    promise: Option<Promise>,
    /// The unfinished lines of both output streams, if the output of programs is printed.
    verbose: Option<[LineSplitter; 2]>,
}

impl SessionObserver for ProgressPrinter<'_> {
    fn observe_event(&mut self, told: RunnerEvent<'_>) {
        // With `--verbose`, the output scrolls above the live area.
        let is_printed = self.verbose.is_some() && matches!(told, RunnerEvent::Output(..));
        if let Some(view) = self.view.as_ref().filter(|_| !is_printed) {
            update_view(view, told);
        }
        if self.closed {
            return;
        }
        let finished = match told {
            RunnerEvent::Event(_) => self.finish_output_lines(),
            _ => Ok(()),
        };
        let shown = finished.and_then(|()| match told {
            RunnerEvent::Event(record) if self.out.is_json() => self.print_json(record),
            RunnerEvent::Event(record) => self.show_event(record),
            RunnerEvent::Output(stream, bytes) => self.print_program_output(stream, bytes),
            RunnerEvent::TaskClaimed(_) if self.out.is_json() => Ok(()),
            RunnerEvent::TaskClaimed(task) if self.task_label.is_some() => {
                self.task_label = Some(task.id.to_string());
                self.print_heading("task", &task.goal)
            }
            RunnerEvent::TaskClaimed(task) if self.work == WorkSource::Graph => {
                self.print_heading("task", &format!("{}  {}", task.id, task.goal))
            }
            RunnerEvent::Note(words) if !self.out.is_json() => {
                self.print_detail(TextTone::Warning, &format!("note: {words}"))
            }
            RunnerEvent::Queueing if !self.out.is_json() => {
                self.print_detail(TextTone::Plain, show::pipeline::QUEUEING_NOTICE)
            }
            _ => Ok(()),
        });
        if let Err(EarlyExit::Closed | EarlyExit::Failed(_)) = shown.and_then(|()| self.out.flush()) {
            self.closed = true;
            self.out.ignore_closed_output();
        }
    }

    fn shows_output(&self) -> bool {
        // The row of a worker has no room for output.
        self.verbose.is_some() || (self.view.is_some() && self.task_label.is_none())
    }
}

impl<'o> ProgressPrinter<'o> {
    pub fn new(out: impl ProgressSink + 'o, view: Option<ViewHandle>, work: WorkSource) -> Self {
        let out = Box::new(out);
        let (directory, task_label, at_limit) = (None, None, RetryLimitAction::default());
        let (closed, is_stopping, promise) = (false, false, None);
        let verbose = None;
        Self { out, view, closed, directory, task_label, work, is_stopping, at_limit, promise, verbose }
    }

    /// Prints the output of agents and hooks while it is written, if `verbose` says so.
    pub fn with_program_output(self, verbose: bool) -> Self {
        Self { verbose: verbose.then(Default::default), ..self }
    }

    fn show_event(&mut self, record: &EventRecord) -> CommandResult {
        match &record.envelope.event {
            Event::SessionStarted(started) => self.show_session_start(record, started),
            Event::SessionResumed(resumed) => {
                self.at_limit = resumed.terms.on_retry_limit;
                self.print_heading("session", &format!("{}, resumed", session_name(record)))?;
                self.show_directory()
            }
            Event::IterationStarted(started) => self.print_heading("iteration", &started.run.iteration.to_string()),
            Event::TurnStarted(started) => self.show_turn_start(started),
            Event::TurnFinished(finished) => {
                self.show_agent_answer(&finished.output)?;
                if finished.unchanged {
                    self.print_detail(TextTone::Faint, "no file has changed since the previous turn")?;
                }
                self.show_left_behind(finished.leaky)
            }
            Event::DeliveryFinished(finished) => {
                self.show_agent_answer(&finished.output)?;
                self.show_left_behind(finished.leaky)
            }
            Event::PromiseDetected(detected) => {
                self.promise = Some(detected.promise);
                self.print_detail(TextTone::Plain, describe_promise(detected.promise))
            }
            // A machine without a desktop notifier is not worth a line.
            Event::HookFinished(finished) if is_idle_notice(finished) => Ok(()),
            // A base that has moved is shown once, with the event that follows.
            Event::HookFinished(finished) if finished.outcome == HookOutcome::Again => Ok(()),
            Event::HookFinished(finished) => self.show_hook_result(finished),
            Event::FeedbackQueued(queued) if !queued.voice.is_hook() => {
                self.print_detail(TextTone::Name, &format!("{} says: {}", queued.source, queued.text.trim()))
            }
            // The end of its run has shown the error.
            Event::HookError(failed) if failed.effect.is_some() => Ok(()),
            Event::HookError(failed) => {
                self.print_detail(TextTone::Bad, &format!("{} failed: {}", failed.hook_name, failed.error))
            }
            Event::ActionError(failed) => self
                .print_detail(TextTone::Bad, &format!("cannot carry out `{}`: {}", failed.action_type, failed.error)),
            // The agent itself has asked for a person, and the gate does not change that.
            Event::GateDecided(_) if matches!(self.promise, Some(Promise::Blocked | Promise::Escalate)) => Ok(()),
            Event::GateDecided(decided) => match notices::format_gate_notice(decided, self.at_limit) {
                Some(notice) => self.print_detail(TextTone::Warning, &notice),
                None => Ok(()),
            },
            Event::GateAnswered(answered) => {
                let by = &record.envelope.metadata.triggered_by;
                self.print_detail(
                    TextTone::Plain,
                    &format!("{by} answers {}", show::describe_gate_answer(answered.answer)),
                )
            }
            Event::IterationPostponed(postponed) => {
                let notice = notices::format_wait_notice(postponed, record.envelope.timestamp);
                self.print_detail(TextTone::Warning, &notice)
            }
            Event::IterationFailed(payload::IterationFailed { error, fault, leaky, .. })
            | Event::DeliveryFailed(payload::DeliveryFailed { error, fault, leaky, .. }) => {
                self.print_detail(TextTone::Bad, &format!("{} failed: {error}", failed_turn_name(record)))?;
                self.show_left_behind(*leaky)?;
                if let Some(remedy) = fault.suggested_remedy() {
                    self.print_detail(TextTone::Faint, &format!("hint: {remedy}"))?;
                }
                notices::format_retry_notice(record)
                    .map_or(Ok(()), |notice| self.print_detail(TextTone::Warning, &notice))
            }
            Event::SessionStopping(stopping) => self.show_session_stopping(stopping),
            // The event before it has shown that the session ends.
            Event::IterationInterrupted(_) if self.is_stopping => Ok(()),
            Event::IterationInterrupted(_) | Event::DeliveryInterrupted(_) => {
                self.print_detail(TextTone::Warning, "turn interrupted")
            }
            Event::SessionEnded(ended) => self.show_session_end(record, ended),
            // `RunnerEvent::TaskClaimed` shows the task with its goal.
            Event::TaskClaimed(_) => Ok(()),
            _ if let Some((tone, what)) = show::pipeline::describe_progress(record) => self.print_detail(tone, &what),
            // The end of its session says so, in the next line.
            Event::TaskCompleted(_) if self.task_label.is_some() && self.work == WorkSource::Given => Ok(()),
            _ if self.work == WorkSource::Graph || self.task_label.is_some() => match show::describe_task_event(record)
            {
                Some((tone, what)) => self.print_detail(tone, &what),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn show_session_start(&mut self, record: &EventRecord, started: &payload::SessionStarted) -> CommandResult {
        self.at_limit = started.terms.on_retry_limit;
        let agent = text::clean_line(&started.agent).into_owned();
        let most = match started.terms.max_iterations {
            1 => "one iteration".to_owned(),
            most => format!("{most} iterations"),
        };
        self.print_heading("session", &session_name(record))?;
        self.print_detail(TextTone::Faint, &format!("{agent}, at most {most}"))?;
        self.show_directory()
    }

    fn show_session_stopping(&mut self, stopping: &payload::SessionStopping) -> CommandResult {
        self.is_stopping = true;
        let why = stopping.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        match stopping.ending {
            // The end of the session shows the reason in a moment.
            SessionEndKind::Error => Ok(()),
            // The person who pressed a key has seen a note and the live view.
            _ if why.is_empty() && self.view.is_some() => Ok(()),
            _ => self.print_detail(TextTone::Warning, &format!("ending{why}")),
        }
    }

    fn show_agent_answer(&mut self, output: &str) -> CommandResult {
        if self.verbose.is_some() && !output.trim().is_empty() {
            // The output has just been printed.
            return Ok(());
        }
        match last_line_without_claim(output) {
            Some(last) => self.print_detail(TextTone::Plain, &format!("agent: {last}")),
            None if output.trim().is_empty() => self.print_detail(TextTone::Faint, "the agent said nothing"),
            None => Ok(()),
        }
    }

    fn show_turn_start(&mut self, started: &payload::TurnStarted) -> CommandResult {
        self.promise = None;
        let what = match started.purpose {
            _ if started.feedback == 0 => return Ok(()),
            TurnPurpose::Recovery => "recovery turn with",
            TurnPurpose::Delivery | TurnPurpose::UnjudgedDelivery(_) => "final delivery turn with",
            TurnPurpose::Work | TurnPurpose::SendBack => "the agent gets",
        };
        self.print_detail(TextTone::Faint, &format!("{what} {}", show::format_feedback_count(started.feedback)))
    }

    fn show_hook_result(&mut self, finished: &payload::HookFinished) -> CommandResult {
        let (tone, word) = show::describe_hook_outcome(finished.outcome);
        // The message of a timeout names the timeout and the time.
        let word = if finished.outcome == HookOutcome::TimedOut { "" } else { word };
        let why = finished.message.as_deref().unwrap_or_default();
        let colon = if word.is_empty() || why.is_empty() { "" } else { ": " };
        let is_told = self.view.is_some() && !word.is_empty();
        let took = finished.duration_ms.filter(|_| is_told).map(|took| format!(" ({})", show::format_millis(took)));
        self.print_detail(tone, &format!("{} {word}{}{colon}{why}", finished.hook, took.unwrap_or_default()))
    }

    fn show_session_end(&mut self, record: &EventRecord, ended: &payload::SessionEnded) -> CommandResult {
        let (tone, word) = show::describe_ending(ended.ending);
        let turns = match record.envelope.iteration.unwrap_or(0) {
            0 => "without an iteration".to_owned(),
            1 => "after one iteration".to_owned(),
            many => format!("after {many} iterations"),
        };
        let why = ended.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        self.print_labelled((tone, word), &format!("{turns}{why}"))
    }

    fn show_directory(&mut self) -> CommandResult {
        match self.directory.take() {
            Some(directory) => self.print_detail(TextTone::Faint, &format!("in {directory}")),
            None => Ok(()),
        }
    }
}

/// Returns the name of an event's session.
pub fn session_name(record: &EventRecord) -> String {
    record.envelope.session.as_ref().map(ToString::to_string).unwrap_or_default()
}

fn describe_promise(promise: Promise) -> &'static str {
    match promise {
        Promise::Complete => "the agent says that it is done",
        Promise::Blocked => "the agent says that it is blocked",
        Promise::Escalate => "the agent asks for a person",
    }
}

fn failed_turn_name(record: &EventRecord) -> &'static str {
    match record.envelope.event {
        Event::DeliveryFailed(_) => "final delivery turn",
        _ => "iteration",
    }
}

fn is_idle_notice(finished: &payload::HookFinished) -> bool {
    finished.outcome == HookOutcome::Skip && finished.hook.starts_with(&format!("{}[", HookPoint::Notify))
}
