//! `windlass session list`: prints sessions, newest first.

use std::collections::BTreeMap;

use serde_json::json;
use windlass_app::context::{Context, Opened};
use windlass_app::session_view::SessionView;
use windlass_app::{Failure, hints};
use windlass_engine::{EventType, Record, SessionName, Work};
use windlass_store::Filter;
use windlass_text as text;

use crate::output::{Done, Output, Tone};
use crate::{show, usage};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass session list
  windlass session list --all --json | jq -r 'select(.state == \"unfinished\").session'

Sessions that are running or unfinished are always shown; of those that have ended the newest.")]
pub struct Args {
    /// All that have ended, too
    #[arg(long, short, conflicts_with = "limit")]
    all: bool,
    /// At most so many that have ended
    #[arg(long, value_name = "N", default_value_t = 20, allow_negative_numbers = true, value_parser = usage::count)]
    limit: usize,
}

/// The number of session starts read at a time.
const PAGE: usize = 64;

/// The goal that is shown for a session that works on the graph.
const NO_GOAL: &str = "among the tasks of the graph";

/// A row of the list.
struct Listed {
    seen: SessionView,
    started: Record,
    /// The goal, unless the session works on the graph.
    goal: Option<String>,
}

pub fn run(context: &Context, args: &Args, out: &mut Output) -> Done {
    let opened = context.open_to_read()?;
    let (listed, more) = collect(&opened, if args.all { usize::MAX } else { args.limit })?;
    if out.is_json() {
        return listed.iter().try_for_each(|listed| out.object(&to_json(listed)));
    }
    if listed.is_empty() {
        return out.line(out.paint(Tone::Faint, "no sessions yet; `windlass run GOAL` starts one"));
    }
    let names = listed.iter().map(|listed| listed.seen.session.name.as_str().len()).max().unwrap_or(0);
    let words: Vec<(Tone, String)> = listed.iter().map(|listed| show::session_words(&listed.seen)).collect();
    let width = words.iter().map(|(_, word)| word.len()).max().unwrap_or(0);
    for (listed, (tone, word)) in listed.iter().zip(words) {
        line(listed, names, &out.paint(tone, text::pad(&word, width)).to_string(), out)?;
    }
    if more {
        out.line(out.paint(Tone::Faint, "there are more; --all shows them"))?;
    }
    Ok(())
}

fn line(listed: &Listed, names: usize, state: &str, out: &mut Output) -> Done {
    let session = &listed.seen.session;
    let name = out.paint(Tone::Strong, text::pad(session.name.as_str(), names)).to_string();
    let at = show::short_moment(listed.started.envelope.timestamp, out);
    let iteration = format!("iteration {:>2}", session.iteration);
    out.line(format_args!("{name}  {state}  {iteration}  {}", out.paint(Tone::Faint, at)))?;
    let task = session.task.map(|task| format!("{task} ")).unwrap_or_default();
    let goal = listed.goal.as_deref().unwrap_or(NO_GOAL);
    let room = out.columns().unwrap_or(120).saturating_sub(2).max(20);
    let told = text::fit(&format!("{task}{goal}  ({})", session.agent), room);
    out.line(format_args!("  {}", out.paint(Tone::Faint, told)))
}

/// Collects sessions, newest first, and returns whether ended ones were left out.
fn collect(opened: &Opened, most: usize) -> Result<(Vec<Listed>, bool), Failure> {
    let snapshot = opened.store.snapshot().map_err(hints::store)?;
    let sessions = snapshot.sessions().map_err(hints::store)?;
    let mut open = sessions.iter().filter(|session| !session.is_over()).count();
    let mut rows: BTreeMap<SessionName, _> =
        sessions.into_iter().map(|session| (session.name.clone(), session)).collect();
    let (mut listed, mut left) = (Vec::new(), most);
    let filter = Filter { types: vec![EventType::SessionStarted], ..Filter::default() };
    let mut before = None;
    // The log has no index of types, so reading stops at the last session that is shown.
    while !rows.is_empty() && (left > 0 || open > 0) {
        let page = opened.store.read_back(&filter, before, PAGE).map_err(hints::store)?;
        let Some(oldest) = page.last() else { break };
        before = Some(oldest.seq);
        for started in page {
            let Some(session) = started.envelope.session.as_ref().and_then(|name| rows.remove(name)) else { continue };
            match session.is_over() {
                true if left == 0 => {
                    rows.insert(session.name.clone(), session);
                    continue;
                }
                true => left -= 1,
                false => open -= 1,
            }
            let given = session.task.filter(|_| session.work == Work::Given);
            let goal = match (&session.goal, given) {
                (None, Some(id)) => Some(opened.task(id)?.goal),
                (goal, _) => goal.clone(),
            };
            listed.push(Listed { seen: SessionView::of(opened, session), started, goal });
        }
    }
    Ok((listed, !rows.is_empty()))
}

fn to_json(listed: &Listed) -> serde_json::Value {
    let Listed { seen, started, .. } = listed;
    let session = &seen.session;
    json!({
        "session": session.name,
        "state": seen.state(),
        "ending": session.ended(),
        "stopping": session.stopping,
        "iteration": session.iteration,
        "agent": session.agent,
        "task": session.task,
        "goal": session.goal,
        "startedAt": started.envelope.timestamp,
        "owner": session.owner,
        "ownerAlive": seen.alive,
    })
}
