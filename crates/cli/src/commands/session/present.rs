//! `windlass session show`: prints the state of a session and the next commands.

use serde_json::{Value, json};
use windlass_app::context::{Context, Opened};
use windlass_app::session_view::SessionView;
use windlass_app::typed_step::NextStep;
use windlass_app::{Failure, hints};
use windlass_engine::{Completion, Event, EventType, Record, Session, SessionName, payload};
use windlass_store::Filter;
use windlass_text as text;

use crate::output::{Done, Output, Tone};
use crate::show;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass session show fix-the-login-3757e17e
  windlass session show fix-the-login-3757e17e --json | jq .pending")]
pub struct Args {
    /// The session
    #[arg(value_name = "NAME")]
    name: SessionName,
}

/// The facts about a session that the command shows.
struct Shown {
    seen: SessionView,
    waits_for: Option<String>,
    next: Vec<NextStep>,
    started: Option<Record>,
    ended: Option<Record>,
    pending: Vec<(payload::FeedbackQueued, bool)>,
}

pub fn run(context: &Context, args: &Args, out: &mut Output) -> Done {
    let opened = context.open_to_read()?;
    let shown = look(&opened, &args.name)?;
    if out.is_json() { out.object(&to_json(&shown)) } else { tell(&shown, out) }
}

fn look(opened: &Opened, name: &SessionName) -> Result<Shown, Failure> {
    // The snapshot shows the row and the log at one moment, even during a run.
    let snapshot = opened.store.snapshot().map_err(hints::store)?;
    let seen = SessionView::of(opened, opened.session(name)?);
    let types = vec![EventType::SessionStarted, EventType::SessionEnded];
    let filter = Filter { types, session: Some(name.clone()), ..Filter::default() };
    let found = opened.store.read_back(&filter, None, usize::MAX).map_err(hints::store)?;
    let find = |kind: EventType| found.iter().find(|record| record.kind() == kind).cloned();
    let mut pending = Vec::new();
    for piece in &seen.session.pending {
        let record = opened.store.event(piece.at).map_err(hints::store)?;
        if let Some(Event::FeedbackQueued(queued)) = record.map(|record| record.envelope.event) {
            pending.push((queued, piece.possibly_seen));
        }
    }
    let (waits_for, next) = (seen.waits_for(&snapshot)?, seen.next_steps(opened)?);
    let (started, ended) = (find(EventType::SessionStarted), find(EventType::SessionEnded));
    Ok(Shown { seen, waits_for, next, started, ended, pending })
}

fn tell(shown: &Shown, out: &mut Output) -> Done {
    let session = &shown.seen.session;
    let (tone, words) = show::session_words(&shown.seen);
    let why = shown.reason().map(|why| format!(": {why}")).unwrap_or_default();
    let title = out.paint(Tone::Strong, format!("session {}", session.name)).to_string();
    let words = text::fit(&format!("{words}{why}"), 200);
    out.line(format_args!("{title}  {}", out.paint(tone, words)))?;
    for (label, what) in shown.facts() {
        let room = out.columns().map_or(usize::MAX, |columns| columns.saturating_sub(16).max(20));
        let rows = text::wrap(&text::fit(&what, show::LONG), room, room).join("\n                ");
        out.line(format_args!("  {}  {rows}", out.paint(Tone::Faint, text::pad(label, 12))))?;
    }
    if !shown.pending.is_empty() {
        out.line(format_args!("\n{}", out.paint(Tone::Strong, "not yet heard by the agent")))?;
        for (queued, seen) in &shown.pending {
            let seen = if *seen { " (it may have seen this)" } else { "" };
            let room = out.columns().map_or(200, |columns| columns.saturating_sub(2).max(20));
            let said = text::fit(&format!("{}{seen}: {}", queued.source, queued.text.trim()), room);
            out.line(format_args!("  {said}"))?;
        }
    }
    out.line(format_args!("\n{}", out.paint(Tone::Strong, "next")))?;
    commands(&shown.next, out)
}

/// Prints commands with their purposes, aligned.
fn commands(next: &[NextStep], out: &mut Output) -> Done {
    let width = next.iter().map(|next| text::width(&next.line())).max().unwrap_or(0);
    next.iter().try_for_each(|next| {
        let command = text::pad(&next.line(), width);
        out.line(format_args!("  {}  {}", out.paint(Tone::Name, command), out.paint(Tone::Faint, &next.purpose)))
    })
}

impl Shown {
    /// Returns the reason of its end, or of its coming end.
    fn reason(&self) -> Option<String> {
        let ended = self.ended.as_ref().and_then(|record| match &record.envelope.event {
            Event::SessionEnded(ended) => ended.reason.clone(),
            _ => None,
        });
        ended.or_else(|| self.seen.session.stopping.as_ref().and_then(|closing| closing.reason.clone()))
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let session = &self.seen.session;
        let terms = &session.terms;
        let at = |record: &Record| show::moment(record.envelope.timestamp);
        let alive = if self.seen.alive { "alive" } else { "dead" };
        let completion = match terms.completion {
            Completion::Promise => "the agent has to say that it is done",
            Completion::Gate => "the stop hooks decide",
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
            ("iterations", Some(format!("{} of {}{interrupted}", session.iteration, terms.max_iterations))),
            ("sent back", Some(sent_back(session))),
            ("used", (!session.watch.used.is_nothing()).then(|| session.watch.used.to_string())),
            ("completion", Some(completion.to_owned())),
            ("waits for", self.waits_for.clone()),
        ];
        facts.into_iter().filter_map(|(label, what)| Some((label, what?))).collect()
    }
}

/// Formats how often hooks have sent the agent back, and the limit.
fn sent_back(session: &Session) -> String {
    let (times, most) = (session.retries, session.terms.max_hook_retries);
    let within = match session.iteration {
        0 => String::new(),
        iteration => format!(" in iteration {iteration}"),
    };
    let times = if times == 1 { "once".to_owned() } else { format!("{times} times") };
    format!("{times}{within}; each hook at most {most}, or its `retry.max`")
}

fn to_json(shown: &Shown) -> Value {
    let session = &shown.seen.session;
    let at = |record: &Option<Record>| record.as_ref().map(|record| record.envelope.timestamp);
    let pending = shown.pending.iter().zip(&session.pending).map(|((queued, seen), piece)| {
        json!({"seq": piece.at, "source": queued.source, "voice": queued.voice, "text": queued.text, "possiblySeen": seen})
    });
    json!({
        "session": session.name,
        "state": shown.seen.state(),
        "ending": session.ended(),
        "stopping": session.stopping,
        "reason": shown.reason(),
        "goal": session.goal,
        "task": session.task,
        "agent": session.agent,
        "startedAt": at(&shown.started),
        "endedAt": at(&shown.ended),
        "owner": session.owner,
        "ownerAlive": shown.seen.alive,
        "iteration": session.iteration,
        "interrupted": session.interrupted,
        "sentBack": session.retries,
        "used": session.watch.used,
        "terms": session.terms,
        "waitsFor": shown.waits_for,
        "pending": pending.collect::<Vec<_>>(),
        "next": shown.next.iter().map(NextStep::line).collect::<Vec<_>>(),
    })
}
