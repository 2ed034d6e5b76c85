//! `windlass session logs`: prints the output of the agent, the hooks and people, in the order of the log.
//!
//! An output that was too long for the log is read from the record that its event names.

use std::path::Path;
use std::time::Duration;

use serde_json::json;
use windlass_app::context::CommandContext;
use windlass_app::next_step::answer_gate_step;
use windlass_app::resume_command::ResumeCommand;
use windlass_app::{hints, runner_settings};
use windlass_config::Config;
use windlass_engine::{Event, EventRecord, MessageAuthor, NextAction, Seq, SessionName, WorkSource};
use windlass_hooks::{SecretMask, clean_output};
use windlass_process::file;
use windlass_store::{EventFilter, Store};
use windlass_text as text;

use crate::output::{CommandResult, EarlyExit, MessageWriter, Output, Tone};
use crate::show;

/// The interval at which `--follow` checks for a closed output. New events wake it at once.
const CLOSED_OUTPUT_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The most bytes of a record that are shown. Its file has the rest.
const MAX_SHOWN_RECORD_BYTES: u64 = 4 * 1024 * 1024;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass session logs fix-the-login-3757e17e
  windlass session logs fix-the-login-3757e17e --follow      until it has ended
  windlass session logs fix-the-login-3757e17e --json | jq -r .text")]
pub struct Args {
    /// The name of the session
    #[arg(value_name = "NAME")]
    name: SessionName,
    /// Wait for new output until the session ends
    #[arg(long, short)]
    follow: bool,
}

/// An entry of the printed log.
struct LogEntry {
    who: String,
    tone: Tone,
    /// The event, on one line.
    what: String,
    /// The spoken text, of any length.
    text: Option<String>,
    /// The file with the whole text.
    record: Option<String>,
}

impl LogEntry {
    fn mask_secrets(self, mask: &SecretMask) -> Self {
        let masked = |text: String| mask.mask_text(&text).into_owned();
        Self { who: masked(self.who), what: masked(self.what), text: self.text.map(masked), ..self }
    }
}

pub fn run_session_logs(context: &CommandContext, args: &Args, out: &mut Output) -> CommandResult {
    let opened = context.open_project_to_read()?;
    opened.require_session(&args.name)?;
    // The log has no secrets that were known when it was written; newer ones are masked here.
    let mask = runner_settings::build_secret_mask(&Config::load(&opened.project.root)?);
    let filter = EventFilter { session: Some(args.name.clone()), ..EventFilter::default() };
    let (mut after, mut was_deserted) = (Seq::START, false);
    loop {
        // Head and session are read before the page, so that no event can slip in between.
        let head = opened.store.head().map_err(hints::store_failure)?;
        let session = opened.require_session(&args.name)?;
        let over = session.is_over();
        let page = opened.store.read_events(&filter, after, usize::MAX).map_err(hints::store_failure)?;
        for record in &page {
            after = record.seq;
            let entry = build_log_entry(record, &opened.project.record_directory());
            if let Some(entry) =
                entry.or_else(|| build_task_entry(record).filter(|_| session.work == WorkSource::Graph))
            {
                show_log_entry(record, &entry.mask_secrets(&mask), out)?;
            }
        }
        if !args.follow || over {
            return Ok(());
        }
        out.flush()?;
        let deserted = !opened.is_session_running(&session);
        if deserted && opened.require_session(&args.name)?.version != session.version {
            // The owner has ended the session since the row was read, and is gone.
            continue;
        }
        if deserted && !was_deserted {
            MessageWriter::new().print_note(&match session.next_action() {
                NextAction::Answer => {
                    let step = answer_gate_step(&opened, &args.name);
                    format!("it asks a person: `{}` continues it; or ignore-hook, reject", step.command)
                }
                _ => {
                    let again = ResumeCommand::for_session(&opened, &session).describe_in_sentence("resumes it");
                    format!("no process runs it now: {}", mask.mask_text(&again))
                }
            });
        }
        was_deserted = deserted;
        after = after.max(head);
        opened.store.wait_for_events(after, CLOSED_OUTPUT_POLL_INTERVAL).map_err(hints::store_failure)?;
        if out.is_closed() {
            return Err(EarlyExit::Closed);
        }
    }
}

fn show_log_entry(record: &EventRecord, entry: &LogEntry, out: &mut Output) -> CommandResult {
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
            0 => out.print_line(format_args!("{}  {}", out.paint(Tone::Faint, &at), out.paint(entry.tone, row)))?,
            _ => out.print_line(format_args!("    {}", out.paint(entry.tone, row)))?,
        }
    }
    let lines = entry.text.iter().flat_map(|text| text.trim_end().lines());
    lines
        .flat_map(|line| text::wrap_to_width(line, below, below))
        .try_for_each(|row| out.print_line(format_args!("  | {row}")))
}

/// Builds the entry of an event, if it has one.
fn build_log_entry(record: &EventRecord, records: &Path) -> Option<LogEntry> {
    let entry = |who: &str, tone, what: String| LogEntry { who: who.to_owned(), tone, what, text: None, record: None };
    let summary = || show::summarize_event(record);
    Some(match &record.envelope.event {
        Event::SessionStarted(started) => entry("session", Tone::Strong, format!("started with {}", started.agent)),
        Event::SessionResumed(resumed) => entry("session", Tone::Strong, format!("resumed by {}", resumed.owner)),
        Event::SessionStopping(_) => entry("session", Tone::Warning, format!("ending, {}", summary())),
        Event::SessionEnded(_) => entry("session", Tone::Strong, format!("ended, {}", summary())),
        Event::IterationStarted(started) => entry("", Tone::Strong, format!("iteration {}", started.run.iteration)),
        Event::IterationInterrupted(_) | Event::DeliveryInterrupted(_) => {
            entry("agent", Tone::Warning, "interrupted".to_owned())
        }
        Event::TurnStarted(_) => entry("agent", Tone::Name, format!("turn started, {}", summary())),
        Event::TurnFinished(finished) => {
            let text =
                read_whole_record(finished.record.as_deref(), records).unwrap_or_else(|| finished.output.clone());
            let what = entry("agent", Tone::Name, "said".to_owned());
            LogEntry { text: Some(text), record: finished.record.clone(), ..what }
        }
        Event::DeliveryFinished(finished) => {
            LogEntry { text: Some(finished.output.clone()), ..entry("agent", Tone::Name, "said".to_owned()) }
        }
        Event::IterationFailed(failed) => {
            // The record has the output up to the failure.
            let text = read_whole_record(failed.record.as_deref(), records);
            let what = entry("agent", Tone::Bad, format!("failed: {}", summary()));
            LogEntry { text, record: failed.record.clone(), ..what }
        }
        Event::DeliveryFailed(_) => entry("agent", Tone::Bad, format!("failed: {}", summary())),
        Event::PromiseDetected(_) => entry("agent", Tone::Plain, format!("claims {}", summary())),
        Event::GateDecided(_) => entry("gate", Tone::Plain, summary()),
        Event::GateAnswered(answered) => {
            let by = &record.envelope.metadata.triggered_by;
            entry(by, Tone::Plain, format!("answers {}", show::describe_gate_answer(answered.answer)))
        }
        Event::IterationPostponed(_) => entry("agent", Tone::Warning, format!("rate limited, waits {}", summary())),
        Event::HookStarted(started) => {
            let again = if started.attempt > 1 { format!(", attempt {}", started.attempt) } else { String::new() };
            entry(&started.hook, Tone::Faint, format!("runs{again}"))
        }
        Event::HookFinished(finished) => {
            let (tone, word) = show::describe_hook_outcome(finished.outcome);
            let why = finished.message.as_ref().map(|why| format!(", {why}")).unwrap_or_default();
            let text = read_whole_record(finished.record.as_deref(), records).or_else(|| finished.feedback.clone());
            LogEntry { text, record: finished.record.clone(), ..entry(&finished.hook, tone, format!("{word}{why}")) }
        }
        Event::FeedbackQueued(queued) => {
            let what = match queued.voice {
                MessageAuthor::Hook => "tells the agent",
                MessageAuthor::Person | MessageAuthor::Agent | MessageAuthor::Windlass => "says",
            };
            LogEntry { text: Some(queued.text.clone()), ..entry(&queued.source, Tone::Plain, what.to_owned()) }
        }
        Event::BridgeCalled(called) => {
            let caller = show::bridge::format_caller(&called.agent, &called.conversation);
            entry(&caller, Tone::Plain, format!("calls at {}", show::bridge::format_call(called)))
        }
        Event::BridgeAnswered(answered) => {
            let caller = show::bridge::format_caller(&answered.agent, &answered.conversation);
            let (tone, what) = show::bridge::describe_answer(answered);
            let said = [answered.reason.as_deref(), answered.told.as_deref()];
            let said: Vec<&str> = said.into_iter().flatten().collect();
            let text = Some(said.join("\n")).filter(|said| !said.is_empty());
            LogEntry { text, ..entry(&caller, tone, format!("is answered, {what}")) }
        }
        Event::HookError(error) if error.effect.is_none() => entry(&error.hook_name, Tone::Bad, error.error.clone()),
        Event::ActionError(error) => entry(&error.action_type, Tone::Bad, error.error.clone()),
        _ => return None,
    })
}

/// Builds the entry of a task's event, for a session that takes several tasks.
fn build_task_entry(record: &EventRecord) -> Option<LogEntry> {
    let (tone, what) = show::describe_task_event(record)?;
    Some(LogEntry { who: "session".to_owned(), tone, what, text: None, record: None })
}

/// Reads the whole text of a record, if its file still exists. Paths out of the records directory are ignored.
fn read_whole_record(record: Option<&str>, records: &Path) -> Option<String> {
    let record = Path::new(record?);
    // A link in the path could lead out of the directory.
    let path = records.join(record).canonicalize().ok()?;
    let within = path == records.canonicalize().ok()?.join(record);
    let bytes = file::read_file_start(&path, MAX_SHOWN_RECORD_BYTES).ok().filter(|_| within)?;
    Some(clean_output(&String::from_utf8_lossy(&bytes)))
}
