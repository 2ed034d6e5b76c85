//! `windlass session show`: prints the state of a session and the next commands.

use serde_json::{Value, json};
use windlass_app::context::{CommandContext, OpenedProject};
use windlass_app::session_view::SessionView;
use windlass_app::typed_step::NextStep;
use windlass_app::{Failure, hints};
use windlass_engine::{CompletionMode, Event, EventRecord, EventType, Session, SessionName, payload};
use windlass_store::EventFilter;
use windlass_text as text;

use crate::output::{CommandResult, Output, TextTone};
use crate::show;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass session show                          the newest session
  windlass session show fix-the-lo               the start of a name
  windlass session show T3 --json | jq .pending")]
pub struct Args {
    /// The session: its name, the start of the name, or its task
    /// [default: the newest session]
    #[arg(value_name = "SESSION")]
    session: Option<String>,
}

/// The facts about a session that the command shows.
struct SessionDetails {
    seen: SessionView,
    waits_for: Option<String>,
    next: Vec<NextStep>,
    started: Option<EventRecord>,
    ended: Option<EventRecord>,
    pending: Vec<(payload::FeedbackQueued, bool)>,
}

pub fn run_session_show(context: &CommandContext, args: &Args, out: &mut Output) -> CommandResult {
    let opened = context.open_project_to_read()?;
    let session = opened.find_session_or_newest(args.session.as_deref())?;
    let shown = load_session_details(&opened, &session.name)?;
    if out.is_json() { out.print_json(&session_details_to_json(&shown)) } else { print_session_details(&shown, out) }
}

fn load_session_details(opened: &OpenedProject, name: &SessionName) -> Result<SessionDetails, Failure> {
    // The snapshot shows the row and the log at one moment, even during a run.
    let snapshot = opened.store.begin_snapshot().map_err(hints::store_failure)?;
    let seen = SessionView::from_session(opened, opened.require_session(name)?);
    let types = vec![EventType::SessionStarted, EventType::SessionEnded];
    let filter = EventFilter { types, session: Some(name.clone()), ..EventFilter::default() };
    let found = opened.store.read_events_back(&filter, None, usize::MAX).map_err(hints::store_failure)?;
    let find = |kind: EventType| found.iter().find(|record| record.kind() == kind).cloned();
    let mut pending = Vec::new();
    for piece in &seen.session.pending {
        let record = opened.store.read_event(piece.at).map_err(hints::store_failure)?;
        if let Some(Event::FeedbackQueued(queued)) = record.map(|record| record.envelope.event) {
            pending.push((queued, piece.possibly_seen));
        }
    }
    let (waits_for, next) = (seen.describe_awaited(&snapshot)?, seen.list_next_steps(opened)?);
    let (started, ended) = (find(EventType::SessionStarted), find(EventType::SessionEnded));
    Ok(SessionDetails { seen, waits_for, next, started, ended, pending })
}

fn print_session_details(shown: &SessionDetails, out: &mut Output) -> CommandResult {
    let session = &shown.seen.session;
    let (tone, words) = show::describe_session_state(&shown.seen);
    let why = shown.ending_reason().map(|why| format!(": {why}")).unwrap_or_default();
    let title = out.paint(TextTone::Strong, format!("session {}", session.name)).to_string();
    let words = text::fit_to_width(&format!("{words}{why}"), 200);
    out.print_line(format_args!("{title}  {}", out.paint(tone, words)))?;
    for (label, what) in shown.list_facts() {
        let room = out.columns().map_or(usize::MAX, |columns| columns.saturating_sub(16).max(20));
        let rows = text::wrap_to_width(&text::fit_to_width(&what, show::MAX_SHOWN_TEXT), room, room)
            .join("\n                ");
        out.print_line(format_args!("  {}  {rows}", out.paint(TextTone::Faint, text::pad_to_width(label, 12))))?;
    }
    if !shown.pending.is_empty() {
        out.print_line(format_args!("\n{}", out.paint(TextTone::Strong, "not yet delivered to the agent")))?;
        for (queued, seen) in &shown.pending {
            let seen = if *seen { " (the agent may have seen this)" } else { "" };
            let room = out.columns().map_or(200, |columns| columns.saturating_sub(2).max(20));
            let said = text::fit_to_width(&format!("{}{seen}: {}", queued.source, queued.text.trim()), room);
            out.print_line(format_args!("  {said}"))?;
        }
    }
    out.print_line(format_args!("\n{}", out.paint(TextTone::Strong, "next")))?;
    print_commands(&shown.next, out)
}

/// Prints commands with their purposes, aligned.
fn print_commands(next: &[NextStep], out: &mut Output) -> CommandResult {
    let width = next.iter().map(|next| text::display_width(&next.shell_line())).max().unwrap_or(0);
    next.iter().try_for_each(|next| {
        let command = text::pad_to_width(&next.shell_line(), width);
        out.print_line(format_args!(
            "  {}  {}",
            out.paint(TextTone::Name, command),
            out.paint(TextTone::Faint, &next.purpose)
        ))
    })
}

impl SessionDetails {
    /// Returns the reason of its end, or of its coming end.
    fn ending_reason(&self) -> Option<String> {
        let ended = self.ended.as_ref().and_then(|record| match &record.envelope.event {
            Event::SessionEnded(ended) => ended.reason.clone(),
            _ => None,
        });
        ended.or_else(|| self.seen.session.stopping.as_ref().and_then(|closing| closing.reason.clone()))
    }

    fn list_facts(&self) -> Vec<(&'static str, String)> {
        let session = &self.seen.session;
        let terms = &session.terms;
        let at = |record: &EventRecord| show::format_local_time(record.envelope.timestamp);
        let alive = match (self.seen.is_elsewhere, self.seen.alive) {
            (true, _) => "on another machine",
            (false, true) => "alive",
            (false, false) => "dead",
        };
        let completion = match terms.completion {
            CompletionMode::Promise => "the agent has to say that it is done",
            CompletionMode::Gate => "the stop hooks decide",
        };
        let interrupted = match session.interrupted {
            0 => String::new(),
            many => format!(", {many} of them interrupted"),
        };
        let facts = [
            ("goal", session.goal.clone()),
            ("task", session.task.map(|task| task.to_string())),
            ("agent", Some(session.agent.clone())),
            ("started", self.started.as_ref().map(at)),
            ("ended", self.ended.as_ref().map(at)),
            ("owner", Some(format!("{}, {alive}", session.owner)).filter(|_| !session.is_over())),
            ("machine", self.seen.machine.clone()),
            ("iterations", Some(format!("{} of {}{interrupted}", session.iteration, terms.max_iterations))),
            ("sent back", Some(format_sent_back(session))),
            ("used", (!session.watch.used.is_nothing()).then(|| session.watch.used.to_string())),
            ("completion", Some(completion.to_owned())),
            ("waits for", self.waits_for.clone()),
        ];
        facts.into_iter().filter_map(|(label, what)| Some((label, what?))).collect()
    }
}

/// Formats how often hooks have sent the agent back, and the limit.
fn format_sent_back(session: &Session) -> String {
    let (times, most) = (session.retries, session.terms.max_hook_retries);
    let within = match session.iteration {
        0 => String::new(),
        iteration => format!(" in iteration {iteration}"),
    };
    let times = if times == 1 { "once".to_owned() } else { format!("{times} times") };
    format!("{times}{within}; each hook at most {most}, or its `retry.max`")
}

fn session_details_to_json(shown: &SessionDetails) -> Value {
    let session = &shown.seen.session;
    let at = |record: &Option<EventRecord>| record.as_ref().map(|record| record.envelope.timestamp);
    let pending = shown.pending.iter().zip(&session.pending).map(|((queued, seen), piece)| {
        json!({"seq": piece.at, "source": queued.source, "voice": queued.voice, "text": queued.text, "possiblySeen": seen})
    });
    json!({
        "session": session.name,
        "state": shown.seen.state_name(),
        "ending": session.ending_kind(),
        "stopping": session.stopping,
        "reason": shown.ending_reason(),
        "goal": session.goal,
        "task": session.task,
        "agent": session.agent,
        "startedAt": at(&shown.started),
        "endedAt": at(&shown.ended),
        "owner": session.owner,
        "ownerAlive": shown.seen.alive,
        "machine": shown.seen.machine,
        "iteration": session.iteration,
        "interrupted": session.interrupted,
        "sentBack": session.retries,
        "used": session.watch.used,
        "terms": session.terms,
        "waitsFor": shown.waits_for,
        "pending": pending.collect::<Vec<_>>(),
        "next": shown.next.iter().map(NextStep::shell_line).collect::<Vec<_>>(),
    })
}
