//! `windlass session logs`: prints the output of the agent, the hooks and people, in the order of the log.
//!
//! An output that is not in the log is read from the record that its event names: a long one, or the output of a passed check.
//! `--follow` reads the record of a turn in progress while the agent works.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use serde_json::json;
use windlass_app::context::{CommandContext, OpenedProject};
use windlass_app::hook_runs::{find_turn_record, read_recorded_output};
use windlass_app::live_output::LiveOutputReader;
use windlass_app::next_step::answer_gate_step;
use windlass_app::resume_command::ResumeCommand;
use windlass_app::turn_end::ends_turn;
use windlass_app::{hints, runner_settings};
use windlass_config::Config;
use windlass_engine::{Event, EventRecord, HookOutcome, MessageAuthor, NextAction, Seq, Session, WorkSource, payload};
use windlass_hooks::SecretMask;
use windlass_store::{EventFilter, Store};
use windlass_text as text;

use crate::output::{CommandResult, EarlyExit, MessageWriter, Output, TextTone};
use crate::show;

/// The interval at which `--follow` checks for a closed output. New events wake it at once.
const CLOSED_OUTPUT_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The interval at which `--follow` looks for new output of a turn in progress.
const LIVE_OUTPUT_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The type of a JSON object with a line of a turn in progress. It is no event of the log.
pub const LIVE_OUTPUT_TYPE: &str = "live_output";

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass session logs                          the newest session
  windlass session logs --follow                 live, until it has ended
  windlass session logs T3                       the last session of a task
  windlass session logs fix-the-lo               the start of a name
  windlass session logs --json | jq -r .text

`--follow` prints each line of the agent as it is written.")]
pub struct Args {
    /// The session: its name, the start of the name, or its task
    /// [default: the newest session]
    #[arg(value_name = "SESSION")]
    session: Option<String>,
    /// Print new output until the session ends, also of the turn in progress
    #[arg(long, short)]
    follow: bool,
}

/// An entry of the printed log.
struct SessionLogEntry {
    who: String,
    tone: TextTone,
    /// The event, on one line.
    what: String,
    /// The spoken text, of any length.
    text: Option<String>,
    /// Whether only a program gets the text.
    is_text_for_programs: bool,
    /// The file with the whole text.
    record: Option<String>,
}

impl SessionLogEntry {
    fn new(who: &str, tone: TextTone, what: String) -> Self {
        Self { who: who.to_owned(), tone, what, text: None, is_text_for_programs: false, record: None }
    }

    fn mask_secrets(self, mask: &SecretMask) -> Self {
        let masked = |text: String| mask.mask_text(&text).into_owned();
        Self { who: masked(self.who), what: masked(self.what), text: self.text.map(masked), ..self }
    }
}

pub fn run_session_logs(context: &CommandContext, args: &Args, out: &mut Output) -> CommandResult {
    let opened = context.open_project_to_read()?;
    let session = opened.find_session_or_newest(args.session.as_deref())?;
    // The log has no secrets that were known when it was written; newer ones are masked here.
    let mask = runner_settings::build_secret_mask(&Config::load(&opened.project.root)?);
    let is_named = args.session.as_deref() == Some(session.name.as_str());
    if !is_named && !out.is_json() {
        MessageWriter::new().print_note(&format!("session {}", session.name));
    }
    let mut printer = LogPrinter { opened: &opened, mask, out, live: None };
    if args.follow { printer.follow_session(session) } else { printer.print_new_events(&session, Seq::START).map(drop) }
}

/// Prints the log of one session.
struct LogPrinter<'a> {
    opened: &'a OpenedProject,
    mask: SecretMask,
    out: &'a mut Output,
    live: Option<LiveTurn>,
}

/// A turn in progress whose output is printed while the agent writes it.
struct LiveTurn {
    reader: LiveOutputReader,
    /// Some of its output is printed already.
    is_printed: bool,
}

impl LogPrinter<'_> {
    fn follow_session(&mut self, session: Session) -> CommandResult {
        let name = session.name;
        let (mut after, mut was_deserted) = (Seq::START, false);
        loop {
            // Head and session are read before the page, so that no event can slip in between.
            let head = self.opened.store.head().map_err(hints::store_failure)?;
            let session = self.opened.require_session(&name)?;
            after = self.print_new_events(&session, after)?;
            if session.is_over() {
                return Ok(());
            }
            self.print_live_output(&self.opened.require_session(&name)?)?;
            self.out.flush()?;
            let deserted = !self.opened.is_session_running(&session);
            if deserted && self.opened.require_session(&name)?.version != session.version {
                // The owner has ended the session since the row was read, and is gone.
                continue;
            }
            if deserted && !was_deserted {
                self.print_deserted_note(&session);
            }
            was_deserted = deserted;
            after = after.max(head);
            let interval = if self.live.is_some() { LIVE_OUTPUT_POLL_INTERVAL } else { CLOSED_OUTPUT_POLL_INTERVAL };
            self.opened.store.wait_for_events(after, interval).map_err(hints::store_failure)?;
            if self.out.is_closed() {
                return Err(EarlyExit::Closed);
            }
        }
    }

    /// Prints the events of a session after a position, and returns the position of the last one.
    fn print_new_events(&mut self, session: &Session, mut after: Seq) -> Result<Seq, EarlyExit> {
        let filter = EventFilter { session: Some(session.name.clone()), ..EventFilter::default() };
        let page = self.opened.store.read_events(&filter, after, usize::MAX).map_err(hints::store_failure)?;
        for record in &page {
            after = record.seq;
            let is_printed = self.finish_live_turn(record)?;
            let entry = build_log_entry(record, &self.opened.project.record_directory());
            let entry = entry.or_else(|| build_task_entry(record).filter(|_| session.work == WorkSource::Graph));
            let Some(mut entry) = entry.map(|entry| entry.mask_secrets(&self.mask)) else { continue };
            if is_printed && !self.out.is_json() {
                entry.text = None;
            }
            show_log_entry(record, &entry, self.out)?;
        }
        Ok(after)
    }

    /// Prints the new output of the turn in progress.
    fn print_live_output(&mut self, session: &Session) -> CommandResult {
        if self.live.is_none() {
            let reader = LiveOutputReader::for_current_turn(self.opened, session);
            self.live = reader.map(|reader| LiveTurn { reader, is_printed: false });
        }
        let Some(live) = &mut self.live else { return Ok(()) };
        // Without the record, the end of the turn prints its output.
        let lines = live.reader.read_new_lines().unwrap_or_default();
        live.is_printed |= !lines.is_empty();
        self.print_live_lines(&lines)
    }

    /// Prints the last output of the live turn if this event ends it, and returns whether its output is printed.
    fn finish_live_turn(&mut self, record: &EventRecord) -> Result<bool, EarlyExit> {
        let is_its_end = |live: &LiveTurn| live.reader.effect().seq < record.seq;
        if !ends_turn(record.kind()) || !self.live.as_ref().is_some_and(is_its_end) {
            return Ok(false);
        }
        let Some(mut live) = self.live.take() else { return Ok(false) };
        let lines = live.reader.read_last_lines().unwrap_or_default();
        // A turn of which nothing was printed is printed as a whole with its end.
        if live.is_printed {
            self.print_live_lines(&lines)?;
        }
        Ok(live.is_printed)
    }

    fn print_live_lines(&mut self, lines: &[String]) -> CommandResult {
        for line in lines {
            let line = self.mask.mask_text(line).into_owned();
            match self.out.is_json() {
                true => self.out.print_json(&json!({"type": LIVE_OUTPUT_TYPE, "who": "agent", "text": line}))?,
                false => print_output_line(&line, self.out)?,
            }
        }
        Ok(())
    }

    fn print_deserted_note(&self, session: &Session) {
        MessageWriter::new().print_note(&match session.next_action() {
            NextAction::Answer => {
                let step = answer_gate_step(self.opened, &session.name);
                format!("it asks a person: `{}` continues it; or ignore-hook, reject", step.command)
            }
            _ => {
                let again = ResumeCommand::for_session(self.opened, session).describe_in_sentence("resumes it");
                format!("no process runs it now: {}", self.mask.mask_text(&again))
            }
        });
    }
}

fn show_log_entry(record: &EventRecord, entry: &SessionLogEntry, out: &mut Output) -> CommandResult {
    if out.is_json() {
        return out.print_json(&json!({
            "seq": record.seq,
            "timestamp": record.envelope.timestamp,
            "iteration": record.envelope.iteration,
            "type": record.envelope.event.shown_type_name(),
            "who": entry.who,
            "what": entry.what,
            "text": entry.text,
            "record": entry.record,
        }));
    }
    let at = show::format_short_moment(record.envelope.timestamp, out);
    let colon = if entry.who.is_empty() || entry.what.is_empty() { "" } else { ": " };
    let said = format!("{}{colon}{}", entry.who, entry.what);
    // In a pipe no line is wrapped.
    let room = |before: usize| out.columns().map_or(usize::MAX, |columns| columns.saturating_sub(before).max(20));
    let (beside, below) = (room(at.len() + 2), room(4));
    for (number, row) in text::wrap_to_width(&said, beside, below).into_iter().enumerate() {
        match number {
            0 => out.print_line(format_args!("{}  {}", out.paint(TextTone::Faint, &at), out.paint(entry.tone, row)))?,
            _ => out.print_line(format_args!("    {}", out.paint(entry.tone, row)))?,
        }
    }
    let shown = entry.text.iter().filter(|_| !entry.is_text_for_programs);
    shown.flat_map(|text| text.trim_end().lines()).try_for_each(|line| print_output_line(line, out))
}

/// Prints a line that an agent, a hook or a person wrote.
fn print_output_line(line: &str, out: &mut Output) -> CommandResult {
    let room = out.columns().map_or(usize::MAX, |columns| columns.saturating_sub(4).max(20));
    text::wrap_to_width(line, room, room).iter().try_for_each(|row| out.print_line(format_args!("  | {row}")))
}

/// Builds the entry of a finished hook.
fn build_hook_entry(finished: &payload::HookFinished, records: &Path) -> SessionLogEntry {
    let (tone, word) = show::describe_hook_outcome(finished.outcome);
    let why = finished.message.as_ref().map(|why| format!(", {why}")).unwrap_or_default();
    let mut what = format!("{word}{why}");
    // A record that is gone, or that is outside of the directory of records, is not read.
    let output = read_recorded_output(finished.record.as_deref(), records);
    // A person seldom needs the output of a passed check.
    let passed = finished.record.as_ref().filter(|_| finished.outcome == HookOutcome::Success);
    let place = passed.filter(|_| output.is_some()).map(|name| records.join(name));
    if let Some(place) = &place {
        let _ = write!(what, ", output in {}", place.display());
    }
    SessionLogEntry {
        text: output.or_else(|| finished.feedback.clone()),
        is_text_for_programs: place.is_some(),
        record: finished.record.clone(),
        ..SessionLogEntry::new(&finished.hook, tone, what)
    }
}

/// Builds the entry of an event, if it has one.
fn build_log_entry(record: &EventRecord, records: &Path) -> Option<SessionLogEntry> {
    let entry = SessionLogEntry::new;
    let summary = || show::summarize_event(record);
    Some(match &record.envelope.event {
        Event::SessionStarted(started) => entry("session", TextTone::Strong, format!("started with {}", started.agent)),
        Event::SessionResumed(resumed) => entry("session", TextTone::Strong, format!("resumed by {}", resumed.owner)),
        Event::SessionStopping(_) => entry("session", TextTone::Warning, format!("ending, {}", summary())),
        Event::SessionEnded(_) => entry("session", TextTone::Strong, format!("ended, {}", summary())),
        Event::IterationStarted(started) => entry("", TextTone::Strong, format!("iteration {}", started.run.iteration)),
        Event::IterationInterrupted(_) | Event::DeliveryInterrupted(_) => {
            // The record has the output up to the interruption.
            let file = find_turn_record(record);
            let text = read_recorded_output(file.as_deref(), records);
            let what = entry("agent", TextTone::Warning, "interrupted".to_owned());
            SessionLogEntry { record: file.filter(|_| text.is_some()), text, ..what }
        }
        Event::TurnStarted(_) => entry("agent", TextTone::Name, format!("turn started, {}", summary())),
        Event::TurnFinished(finished) => {
            let text =
                read_recorded_output(finished.record.as_deref(), records).unwrap_or_else(|| finished.output.clone());
            let what = entry("agent", TextTone::Name, "said".to_owned());
            SessionLogEntry { text: Some(text), record: finished.record.clone(), ..what }
        }
        Event::DeliveryFinished(finished) => {
            SessionLogEntry { text: Some(finished.output.clone()), ..entry("agent", TextTone::Name, "said".to_owned()) }
        }
        Event::IterationFailed(failed) => {
            // The record has the output up to the failure.
            let text = read_recorded_output(failed.record.as_deref(), records);
            let what = entry("agent", TextTone::Bad, format!("failed: {}", summary()));
            SessionLogEntry { text, record: failed.record.clone(), ..what }
        }
        Event::DeliveryFailed(_) => entry("agent", TextTone::Bad, format!("failed: {}", summary())),
        Event::PromiseDetected(_) => entry("agent", TextTone::Plain, format!("claims {}", summary())),
        Event::GateDecided(_) => entry("gate", TextTone::Plain, summary()),
        Event::GateAnswered(answered) => {
            let by = &record.envelope.metadata.triggered_by;
            entry(by, TextTone::Plain, format!("answers {}", show::describe_gate_answer(answered.answer)))
        }
        Event::IterationPostponed(_) => entry("agent", TextTone::Warning, format!("rate limited, waits {}", summary())),
        Event::HookStarted(started) => {
            let again = if started.attempt > 1 { format!(", attempt {}", started.attempt) } else { String::new() };
            entry(&started.hook, TextTone::Faint, format!("runs{again}"))
        }
        Event::HookFinished(finished) => build_hook_entry(finished, records),
        Event::FeedbackQueued(queued) => {
            let what = match queued.voice {
                MessageAuthor::Hook => "tells the agent",
                MessageAuthor::Person | MessageAuthor::Agent | MessageAuthor::Windlass => "says",
            };
            SessionLogEntry {
                text: Some(queued.text.clone()),
                ..entry(&queued.source, TextTone::Plain, what.to_owned())
            }
        }
        Event::BridgeCalled(called) => {
            let caller = show::bridge::format_caller(&called.agent, &called.conversation);
            entry(&caller, TextTone::Plain, format!("calls at {}", show::bridge::format_call(called)))
        }
        Event::BridgeAnswered(answered) => {
            let caller = show::bridge::format_caller(&answered.agent, &answered.conversation);
            let (tone, what) = show::bridge::describe_answer(answered);
            let said = [answered.reason.as_deref(), answered.told.as_deref()];
            let said: Vec<&str> = said.into_iter().flatten().collect();
            let text = Some(said.join("\n")).filter(|said| !said.is_empty());
            SessionLogEntry { text, ..entry(&caller, tone, format!("is answered, {what}")) }
        }
        Event::HookError(error) if error.effect.is_none() => {
            entry(&error.hook_name, TextTone::Bad, error.error.clone())
        }
        Event::ActionError(error) => entry(&error.action_type, TextTone::Bad, error.error.clone()),
        _ => return None,
    })
}

/// Builds the entry of a task's event, for a session that takes several tasks.
fn build_task_entry(record: &EventRecord) -> Option<SessionLogEntry> {
    let (tone, what) = show::describe_task_event(record)?;
    Some(SessionLogEntry::new("session", tone, what))
}
