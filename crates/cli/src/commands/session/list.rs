//! `windlass session list`: prints sessions, newest first.

use std::cmp::Reverse;

use serde_json::json;
use windlass_app::context::{CommandContext, OpenedProject};
use windlass_app::session_view::SessionView;
use windlass_app::{Failure, hints};
use windlass_engine::{Session, WorkSource};
use windlass_text as text;

use crate::output::{CommandResult, Output, TextTone};
use crate::{show, usage};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass session list
  windlass session list --all --json | jq -r .session

The list shows all running and unfinished sessions, and the newest ended ones.")]
pub struct Args {
    /// Include all ended sessions
    #[arg(long, short, conflicts_with = "limit")]
    all: bool,
    /// Show at most this many ended sessions
    #[arg(long, value_name = "N", default_value_t = 20, allow_negative_numbers = true, value_parser = usage::parse_count)]
    limit: usize,
}

/// The goal that is shown for a session that works on the graph.
const GRAPH_GOAL: &str = "among the tasks of the graph";

/// A row of the list.
struct ListedSession {
    seen: SessionView,
    /// The goal, unless the session works on the graph.
    goal: Option<String>,
}

pub fn run_session_list(context: &CommandContext, args: &Args, out: &mut Output) -> CommandResult {
    let opened = context.open_project_to_read()?;
    let (listed, more) = collect_sessions(&opened, if args.all { usize::MAX } else { args.limit })?;
    if out.is_json() {
        return listed.iter().try_for_each(|listed| out.print_json(&listed_session_to_json(listed)));
    }
    if listed.is_empty() {
        return out.print_line(out.paint(TextTone::Faint, "no sessions yet; `windlass run GOAL` starts one"));
    }
    let names = listed.iter().map(|listed| listed.seen.session.name.as_str().len()).max().unwrap_or(0);
    let words: Vec<(TextTone, String)> =
        listed.iter().map(|listed| show::describe_session_state(&listed.seen)).collect();
    let width = words.iter().map(|(_, word)| word.len()).max().unwrap_or(0);
    for (listed, (tone, word)) in listed.iter().zip(words) {
        print_session(listed, names, &out.paint(tone, text::pad_to_width(&word, width)).to_string(), out)?;
    }
    if more {
        out.print_line(out.paint(TextTone::Faint, "there are more; --all shows them"))?;
    }
    Ok(())
}

fn print_session(listed: &ListedSession, names: usize, state: &str, out: &mut Output) -> CommandResult {
    let session = &listed.seen.session;
    let name = out.paint(TextTone::Strong, text::pad_to_width(session.name.as_str(), names)).to_string();
    let at = show::format_short_moment(session.started_at, out);
    let iteration = format!("iteration {:>2}", session.iteration);
    out.print_line(format_args!("{name}  {state}  {iteration}  {}", out.paint(TextTone::Faint, at)))?;
    let task = session.task.map(|task| format!("{task} ")).unwrap_or_default();
    let goal = listed.goal.as_deref().unwrap_or(GRAPH_GOAL);
    let room = out.columns().unwrap_or(120).saturating_sub(2).max(20);
    let told =
        text::fit_to_width(&format!("{task}{goal}  ({}{})", session.agent, listed.seen.describe_machine()), room);
    out.print_line(format_args!("  {}", out.paint(TextTone::Faint, told)))
}

/// Collects the open sessions and the newest ended ones, newest first, and returns whether ended ones were left out.
fn collect_sessions(opened: &OpenedProject, most: usize) -> Result<(Vec<ListedSession>, bool), Failure> {
    let snapshot = opened.store.begin_snapshot().map_err(hints::store_failure)?;
    let mut sessions = snapshot.open_sessions().map_err(hints::store_failure)?;
    let newest = most.saturating_add(sessions.len()).saturating_add(1);
    let mut ended = snapshot.newest_sessions(newest).map_err(hints::store_failure)?;
    ended.retain(Session::is_over);
    let has_more = ended.len() > most;
    sessions.extend(ended.into_iter().take(most));
    sessions.sort_by_key(|session| Reverse(session.started));
    let listed = sessions.into_iter().map(|session| ListedSession::from_session(opened, session));
    Ok((listed.collect::<Result<_, Failure>>()?, has_more))
}

impl ListedSession {
    fn from_session(opened: &OpenedProject, session: Session) -> Result<Self, Failure> {
        let given = session.task.filter(|_| session.work == WorkSource::Given);
        let goal = match (&session.goal, given) {
            (None, Some(id)) => Some(opened.require_task(id)?.goal),
            (goal, _) => goal.clone(),
        };
        Ok(Self { seen: SessionView::from_session(opened, session), goal })
    }
}

fn listed_session_to_json(listed: &ListedSession) -> serde_json::Value {
    let ListedSession { seen, .. } = listed;
    let session = &seen.session;
    json!({
        "session": session.name,
        "state": seen.state_name(),
        "ending": session.ending_kind(),
        "stopping": session.stopping,
        "iteration": session.iteration,
        "agent": session.agent,
        "task": session.task,
        "goal": session.goal,
        "startedAt": session.started_at,
        "owner": session.owner,
        "ownerAlive": seen.alive,
        "machine": seen.machine,
    })
}
