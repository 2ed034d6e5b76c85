//! `windlass status`

use serde_json::json;
use windlass_engine::{Ending, Session, State, Task};
use windlass_store::TaskFilter;

use crate::context::Context;
use crate::output::{Done, Output, Tone};
use crate::trust::{Standing, Trust};
use crate::{environment, remedy, show, text};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass status
  windlass status --json | jq .tasks.ready")]
pub struct Args {}

/// How many tasks of a kind are named.
const NAMED: usize = 5;

pub fn run(context: &Context, _: Args, out: &mut Output) -> Done {
    let opened = context.open()?;
    let standing = Standing::of(&opened.project);
    let snapshot = opened.store.snapshot().map_err(remedy::store)?;
    let counts = snapshot.counts().map_err(remedy::store)?;
    let ready = snapshot.ready(NAMED).map_err(remedy::store)?;
    let attention = |states: &[State]| {
        let mut found = Vec::new();
        let filter = TaskFilter { states: states.to_vec(), ..TaskFilter::default() };
        snapshot
            .tasks(&filter, |task| {
                found.push(task);
                found.len() < NAMED
            })
            .map_err(remedy::store)
            .map(|()| found)
    };
    let active = attention(&[State::Active, State::Submitted])?;
    let stuck = attention(&[State::Blocked, State::Failed])?;
    let debts = snapshot.debts().map_err(remedy::store)?;
    let sessions = snapshot.sessions().map_err(remedy::store)?;
    let sessions: Vec<(Session, bool)> = sessions
        .into_iter()
        .filter(|session| !session.is_over() || session.ended() == Some(Ending::Escalated))
        .map(|session| {
            let alive = windlass_process::is_alive(&opened.project.owners(), session.owner.as_str());
            (session, alive)
        })
        .collect();
    let events = opened.store.head().map_err(remedy::store)?;
    if out.is_json() {
        let tasks: serde_json::Map<_, _> =
            State::ALL.iter().map(|state| (state.name().to_owned(), json!(count(&counts, *state)))).collect();
        return out.object(&json!({
            "project": opened.project.root.to_string_lossy(),
            "trust": standing.trust().map(Trust::name),
            "tasks": tasks,
            "ready": ready,
            "active": active,
            "stuck": stuck,
            "sessions": sessions.iter().map(|(session, alive)| json!({
                "name": session.name,
                "goal": session.goal,
                "task": session.task,
                "iteration": session.iteration,
                "running": alive,
                "ended": session.ended(),
            })).collect::<Vec<_>>(),
            "owed": debts.len(),
            "events": events,
        }));
    }
    let root = opened.project.root.display().to_string();
    out.line(format_args!("{}  {}", out.paint(Tone::Strong, "project"), text::line(&root)))?;
    if let Some(warning) = standing.warning() {
        out.line(out.paint(Tone::Warning, warning))?;
    }
    let line: Vec<String> = counts
        .iter()
        .filter(|(state, _)| *state != State::Deleted)
        .map(|(state, count)| format!("{count} {}", out.paint(show::tone(*state), state)))
        .collect();
    let line =
        if line.is_empty() { "none yet; `windlass task add GOAL` makes one".to_owned() } else { line.join(", ") };
    out.line(format_args!("{}    {line}", out.paint(Tone::Strong, "tasks")))?;
    unfinished(&sessions, out)?;
    section("at work", &active, out)?;
    section("needs a person", &stuck, out)?;
    section("next", &ready, out)?;
    if !debts.is_empty() {
        let owed = if debts.len() == 1 { "piece of work is" } else { "pieces of work are" };
        out.line(format_args!("\n{} {owed} owed", debts.len()))?;
    }
    Ok(())
}

/// Sessions that somebody runs, or could go on with.
fn unfinished(sessions: &[(Session, bool)], out: &mut Output) -> Done {
    if sessions.is_empty() {
        return Ok(());
    }
    out.line(format_args!("\n{}", out.paint(Tone::Strong, "sessions")))?;
    for (session, alive) in sessions {
        let (tone, word) = match (alive, session.ended(), &session.stopping) {
            (true, ..) => (Tone::Name, "running"),
            (false, Some(_), _) if session.is_over() => (Tone::Warning, "ended; a person is needed"),
            (false, None, None) => (Tone::Warning, "left; the same command goes on with it"),
            _ => (Tone::Warning, "left before its end; the same command ends it"),
        };
        let name = out.paint(Tone::Strong, &session.name);
        out.line(format_args!("{name}  iteration {}, {}", session.iteration, out.paint(tone, word)))?;
        let task = session.task.map(|id| id.to_string()).unwrap_or_default();
        let goal = session.goal.as_deref().unwrap_or(&task);
        let goal = text::fit(goal, out.columns().unwrap_or(usize::MAX).saturating_sub(2));
        out.line(format_args!("  {}", out.paint(Tone::Faint, goal)))?;
    }
    Ok(())
}

fn count(counts: &[(State, u64)], state: State) -> u64 {
    counts.iter().find(|(counted, _)| *counted == state).map_or(0, |(_, count)| *count)
}

fn section(title: &str, tasks: &[Task], out: &mut Output) -> Done {
    if tasks.is_empty() {
        return Ok(());
    }
    out.line(format_args!("\n{}", out.paint(Tone::Strong, title)))?;
    show::table(tasks, out)?;
    let now = environment::now();
    for task in tasks {
        let note = match (&task.blocked, &task.lease, &task.reason) {
            (Some(blocked), ..) => blocked.reason.clone(),
            (None, Some(lease), _) => format!("held by {} for {}", lease.holder(), held(task, now)),
            (None, None, Some(reason)) => reason.clone(),
            (None, None, None) => continue,
        };
        let note = text::fit(&format!("{}: {note}", task.id), out.columns().unwrap_or(usize::MAX).saturating_sub(2));
        out.line(format_args!("  {}", out.paint(Tone::Faint, note)))?;
    }
    Ok(())
}

fn held(task: &Task, now: windlass_engine::Timestamp) -> String {
    task.started_at.map_or("a while".to_owned(), |at| show::span(at, now))
}
