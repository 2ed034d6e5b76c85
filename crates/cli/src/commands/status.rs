//! `windlass status`: prints the state of the project.

use serde_json::json;
use windlass_app::changes::list_open_changes;
use windlass_app::context::{Context, Opened};
use windlass_app::next_step::own_step;
use windlass_app::run::{explain_left_in_place, find_grounds, is_left_in_place};
use windlass_app::session_view::SessionView;
use windlass_app::trust::{self, Trust};
use windlass_app::typed_step::NextStep;
use windlass_app::unchecked_work::{count_completed_tasks, describe_unchecked_work, find_skipped_check};
use windlass_app::{Failure, environment, hints, obstacles, store_records};
use windlass_config::Config;
use windlass_engine::{Ending, Session, State, Task, Wanted};
use windlass_store::{Snapshot, TaskFilter};
use windlass_text as text;

use crate::output::{Done, Output, Tone};
use crate::show;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass status
  windlass status --json | jq .tasks.ready

With --json, `foreignStore` says whether the store was not made on this machine or was replaced: it is only read then.
`obstacles` names what stands in the place of files that Windlass and git read, such as a fifo.")]
pub struct Args {}

/// The largest number of tasks of a kind that are named.
const NAMED: usize = 5;
const AT_WORK: &[State] = &[State::Active, State::Submitted];
const STUCK: &[State] = &[State::Blocked, State::Failed];
const READY: &[State] = &[State::Ready, State::NeedsContinuation];

pub fn run(context: &Context, _: Args, out: &mut Output) -> Done {
    let opened = context.open_to_read()?;
    let snapshot = opened.store.snapshot().map_err(hints::store)?;
    let counts = snapshot.counts().map_err(hints::store)?;
    let ready = snapshot.ready(NAMED).map_err(hints::store)?;
    let attention = |states: &[State]| {
        let mut found = Vec::new();
        let filter = TaskFilter { states: states.to_vec(), ..TaskFilter::default() };
        snapshot
            .tasks(&filter, |task| {
                found.push(task);
                found.len() < NAMED
            })
            .map_err(hints::store)
            .map(|()| found)
    };
    let active = attention(AT_WORK)?;
    let stuck = attention(STUCK)?;
    let effects = snapshot.effects().map_err(hints::store)?;
    let sessions = snapshot.sessions().map_err(hints::store)?;
    let unchecked = last_ended(&sessions).filter(|session| session.unchecked > 0).cloned();
    let sessions: Vec<SessionView> = open_sessions(sessions).map(|session| SessionView::of(&opened, session)).collect();
    let sessions: Vec<Open> =
        sessions.into_iter().map(|seen| Open::look(&opened, &snapshot, seen)).collect::<Result<_, Failure>>()?;
    let events = opened.store.head().map_err(hints::store)?;
    let changes = list_open_changes(&opened)?;
    if out.is_json() {
        let tasks: serde_json::Map<_, _> =
            State::ALL.iter().map(|state| (state.name().to_owned(), json!(count(&counts, *state)))).collect();
        return out.object(&json!({
            "project": opened.project.root.to_string_lossy(),
            "trust": trust_state(&opened).ok().map(Trust::name),
            "foreignStore": store_records::is_foreign(&opened.project).unwrap_or(true),
            "obstacles": obstacles::find(&opened.project),
            "tasks": tasks,
            "ready": ready,
            "active": active,
            "stuck": stuck,
            "sessions": sessions.iter().map(session_json).collect::<Vec<_>>(),
            "unchecked": unchecked.as_ref().map(|session| json!({"session": session.name, "tasks": session.unchecked})),
            "changes": changes,
            "owed": effects.len(),
            "events": events,
        }));
    }
    let root = opened.project.root.display().to_string();
    out.line(format_args!("{}  {}", out.paint(Tone::Strong, "project"), text::line(&root)))?;
    warn(&opened, out)?;
    let line: Vec<String> = counts
        .iter()
        .filter(|(state, _)| *state != State::Deleted)
        .map(|(state, count)| format!("{count} {}", out.paint(show::tone(*state), state)))
        .collect();
    let line =
        if line.is_empty() { "none yet; `windlass task add GOAL` makes one".to_owned() } else { line.join(", ") };
    out.line(format_args!("{}    {line}", out.paint(Tone::Strong, "tasks")))?;
    if !changes.is_empty() {
        let open =
            if changes.len() == 1 { "1 open change".to_owned() } else { format!("{} open changes", changes.len()) };
        out.line(format_args!("{}  {open}: `windlass change list`", out.paint(Tone::Strong, "changes")))?;
    }
    if let Some(session) = unchecked {
        let skipped = find_skipped_check(&opened.store, &session)?;
        let completed = count_completed_tasks(&opened.store, &session)?;
        let told = describe_unchecked_work(session.unchecked, completed, skipped.as_deref()).unwrap_or_default();
        out.line(format_args!("{} {}", out.paint(Tone::Strong, "last run"), out.paint(Tone::Warning, told)))?;
    }
    unfinished(&sessions, out)?;
    let total = |states: &[State]| states.iter().map(|state| count(&counts, *state)).sum();
    let section = |named, all, out: &mut Output| section(&opened, named, all, out);
    section(("at work", &active), (total(AT_WORK), "task list --state active --state submitted"), out)?;
    section(("needs a person", &stuck), (total(STUCK), "task list --state blocked --state failed"), out)?;
    section(("next", &ready), (total(READY), "task ready"), out)?;
    if !effects.is_empty() {
        let owed = if effects.len() == 1 { "piece of work is" } else { "pieces of work are" };
        out.line(format_args!("\n{} {owed} owed", effects.len()))?;
    }
    Ok(())
}

/// Warns of a configuration that does not count, and of obstacles in the place of files.
fn warn(opened: &Opened, out: &mut Output) -> Done {
    if let Some(warning) = trust::warning(&opened.project) {
        out.line(out.paint(Tone::Warning, warning))?;
    }
    show::obstacles(&opened.project, out)
}

fn trust_state(opened: &Opened) -> Result<Trust, Failure> {
    trust::state(&opened.project, &Config::load(&opened.project.root)?)
}

/// Returns the session that ended last.
fn last_ended(sessions: &[Session]) -> Option<&Session> {
    sessions.iter().filter(|session| session.is_over()).max_by_key(|session| session.version)
}

/// Selects the sessions that run, can be resumed, or ask for a person without a task that does.
fn open_sessions(sessions: Vec<Session>) -> impl Iterator<Item = Session> {
    let asks = |session: &Session| session.ended() == Some(Ending::Escalated) && session.task.is_none();
    sessions.into_iter().filter(move |session| !session.is_over() || asks(session))
}

/// An open session, the condition that it waits for, and the next command.
struct Open {
    seen: SessionView,
    waits_for: Option<String>,
    next: Option<NextStep>,
}

impl Open {
    fn look(opened: &Opened, snapshot: &Snapshot<'_>, seen: SessionView) -> Result<Self, Failure> {
        let (waits_for, next) = (seen.waits_for(snapshot)?, seen.next_steps(opened)?.into_iter().next());
        Ok(Self { seen, waits_for, next })
    }
}

fn session_json(Open { seen, waits_for, next }: &Open) -> serde_json::Value {
    let session = &seen.session;
    json!({
        "name": session.name,
        "goal": session.goal,
        "task": session.task,
        "iteration": session.iteration,
        "running": seen.alive,
        "ended": session.ended(),
        "waitsFor": waits_for,
        "next": next.as_ref().map(NextStep::line),
    })
}

fn unfinished(sessions: &[Open], out: &mut Output) -> Done {
    if sessions.is_empty() {
        return Ok(());
    }
    out.line(format_args!("\n{}", out.paint(Tone::Strong, "sessions")))?;
    for Open { seen, waits_for, next } in sessions {
        let session = &seen.session;
        let (tone, word) = match (seen.alive, session.ended(), &session.stopping) {
            _ if session.wanted() == Wanted::Answer => (Tone::Warning, "asks a person"),
            (true, _, None) => (Tone::Name, "running"),
            (true, _, Some(_)) => (Tone::Name, "ending"),
            (false, Some(_), _) if session.is_over() => (Tone::Warning, "ended; a person is needed"),
            (false, None, None) => (Tone::Warning, "left: its process has died; the same command goes on with it"),
            _ => (Tone::Warning, "left before its end; `windlass doctor --settle` ends it"),
        };
        let name = out.paint(Tone::Strong, &session.name);
        out.line(format_args!("{name}  iteration {}, {}", session.iteration, out.paint(tone, word)))?;
        let task = session.task.map(|id| id.to_string()).unwrap_or_default();
        let goal = session.goal.as_deref().unwrap_or(&task);
        let room = out.columns().unwrap_or(usize::MAX).saturating_sub(2);
        out.line(format_args!("  {}", out.paint(Tone::Faint, text::fit(goal, room))))?;
        if let Some(waits_for) = waits_for {
            let rows = text::wrap(&format!("waits for {waits_for}"), room, room.saturating_sub(2));
            out.line(format_args!("  {}", rows.join("\n    ")))?;
        }
        if let Some(next) = next {
            out.line(format_args!("  {}", out.paint(Tone::Name, text::line(&next.line()))))?;
        }
    }
    Ok(())
}

fn count(counts: &[(State, u64)], state: State) -> u64 {
    counts.iter().find(|(counted, _)| *counted == state).map_or(0, |(_, count)| *count)
}

/// Prints some tasks of a kind, and the command that shows the others.
fn section(opened: &Opened, (title, tasks): (&str, &[Task]), (total, all): (u64, &str), out: &mut Output) -> Done {
    if tasks.is_empty() {
        return Ok(());
    }
    out.line(format_args!("\n{}", out.paint(Tone::Strong, title)))?;
    show::table(tasks, out)?;
    for task in tasks {
        for note in notes(opened, task) {
            let room = out.columns().unwrap_or(usize::MAX).saturating_sub(2);
            let note = text::fit(&format!("{}: {note}", task.id), show::LONG);
            let rows = text::wrap(&note, room, room.saturating_sub(2));
            out.line(format_args!("  {}", out.paint(Tone::Faint, rows.join("\n    "))))?;
        }
        if STUCK.contains(&task.state)
            && let Some(next) = own_step(opened, task)?
        {
            out.line(format_args!("  {}", out.paint(Tone::Name, text::line(&next.line()))))?;
        }
    }
    let more = total.saturating_sub(u64::try_from(tasks.len()).unwrap_or(u64::MAX));
    if more > 0 {
        out.line(out.paint(Tone::Faint, format_args!("and {more} more: `windlass {all}`")))?;
    }
    Ok(())
}

/// Collects further facts about a task.
fn notes(opened: &Opened, task: &Task) -> Vec<String> {
    let standing = match (&task.blocked, &task.lease, &task.reason) {
        (Some(blocked), ..) => Some(blocked.reason.clone()),
        (None, Some(lease), _) => Some(format!("held by {}", show::holder(lease, environment::now()))),
        (None, None, reason) => reason.clone(),
    };
    // The row of a session shows its series.
    let in_session = task.lease.as_ref().is_some_and(|lease| lease.session.is_some());
    let series = task.drive.series.as_ref().filter(|_| !in_session).map(show::drive::series);
    let in_place = READY.contains(&task.state).then(|| begun_in_place(opened, task)).flatten();
    standing.into_iter().chain(series).chain(in_place).collect()
}

/// Explains why a plain run leaves a task alone whose work is in the person's own tree, and how to continue it.
fn begun_in_place(opened: &Opened, task: &Task) -> Option<String> {
    // `print_warnings` has reported a configuration that cannot be read.
    let config = task.in_place.then(|| Config::load(&opened.project.root).ok()).flatten()?;
    let counts = trust::counts(&opened.project, &config, opened.trust).ok()?;
    let config = if counts { config } else { config.without_say() };
    let grounds = find_grounds(&opened.project, &config).ok()?;
    is_left_in_place(task, grounds).then(|| explain_left_in_place(opened, task.id))
}
