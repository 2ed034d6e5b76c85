//! `windlass status`: prints the state of the project.

use serde_json::json;
use windlass_app::changes::list_open_changes;
use windlass_app::context::{CommandContext, OpenedProject};
use windlass_app::next_step::find_own_step;
use windlass_app::run::{explain_left_in_place, find_workspace_mode, is_left_in_place};
use windlass_app::session_view::SessionView;
use windlass_app::trust::{self, TrustState};
use windlass_app::typed_step::NextStep;
use windlass_app::unchecked_work::{count_completed_tasks, describe_unchecked_work, find_skipped_check};
use windlass_app::waiting_work::{find_last_ended_session, list_current_sessions, list_waiting_tasks};
use windlass_app::{Failure, environment, hints, store_records, unreadable_files};
use windlass_config::Config;
use windlass_engine::{NextAction, Task, TaskState};
use windlass_store::{StoreSnapshot, TaskFilter};
use windlass_text as text;

use crate::output::{CommandResult, Output, TextTone};
use crate::show;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass status
  windlass status --json | jq .tasks.ready

With --json, `foreignStore` says whether the store was made on another machine or was replaced: such a store \
is only read. `obstacles` names what is in the place of files that Windlass and git read, such as a fifo.")]
pub struct Args {}

/// The largest number of tasks of a kind that are named.
const MAX_NAMED_TASKS: usize = 5;
const AT_WORK_STATES: &[TaskState] = &[TaskState::Active, TaskState::Submitted];
const STUCK_STATES: &[TaskState] = &[TaskState::Blocked, TaskState::Failed];
const READY_STATES: &[TaskState] = &[TaskState::Ready, TaskState::NeedsContinuation];

pub fn run_status(context: &CommandContext, _: Args, out: &mut Output) -> CommandResult {
    let opened = context.open_project_to_read()?;
    let snapshot = opened.store.begin_snapshot().map_err(hints::store_failure)?;
    let counts = snapshot.count_tasks_by_state().map_err(hints::store_failure)?;
    let ready = snapshot.ready_tasks(MAX_NAMED_TASKS).map_err(hints::store_failure)?;
    let attention = |states: &[TaskState]| {
        let mut found = Vec::new();
        let filter = TaskFilter { states: states.to_vec(), ..TaskFilter::default() };
        snapshot
            .visit_tasks(&filter, |task| {
                found.push(task);
                found.len() < MAX_NAMED_TASKS
            })
            .map_err(hints::store_failure)
            .map(|()| found)
    };
    let active = attention(AT_WORK_STATES)?;
    let waiting = list_waiting_tasks(&snapshot, usize::MAX)?;
    let stuck = &waiting[..waiting.len().min(MAX_NAMED_TASKS)];
    let effects = snapshot.pending_effects().map_err(hints::store_failure)?;
    let unchecked = find_last_ended_session(&snapshot)?.filter(|session| session.unchecked > 0);
    let sessions: Vec<OpenSession> = list_current_sessions(&snapshot)?
        .into_iter()
        .map(|session| OpenSession::with_next_step(&opened, &snapshot, SessionView::from_session(&opened, session)))
        .collect::<Result<_, Failure>>()?;
    let events = opened.store.head().map_err(hints::store_failure)?;
    let changes = list_open_changes(&opened)?;
    if out.is_json() {
        let tasks: serde_json::Map<_, _> = TaskState::ALL
            .iter()
            .map(|state| (state.name().to_owned(), json!(count_in_state(&counts, *state))))
            .collect();
        return out.print_json(&json!({
            "project": opened.project.root.to_string_lossy(),
            "trust": read_trust_state(&opened).ok().map(TrustState::state_name),
            "foreignStore": store_records::is_store_foreign(&opened.project).unwrap_or(true),
            "obstacles": unreadable_files::list_unreadable_files(&opened.project),
            "tasks": tasks,
            "ready": ready,
            "active": active,
            "stuck": stuck,
            "sessions": sessions.iter().map(open_session_to_json).collect::<Vec<_>>(),
            "unchecked": unchecked.as_ref().map(|session| json!({"session": session.name, "tasks": session.unchecked})),
            "changes": changes,
            "owed": effects.len(),
            "events": events,
        }));
    }
    let root = opened.project.root.display().to_string();
    out.print_line(format_args!("{}  {}", out.paint(TextTone::Strong, "project"), text::clean_line(&root)))?;
    print_warnings(&opened, out)?;
    let tasks = format_task_counts(&counts, out);
    out.print_line(format_args!("{}    {tasks}", out.paint(TextTone::Strong, "tasks")))?;
    if !changes.is_empty() {
        let open =
            if changes.len() == 1 { "1 open change".to_owned() } else { format!("{} open changes", changes.len()) };
        out.print_line(format_args!("{}  {open}: `windlass change list`", out.paint(TextTone::Strong, "changes")))?;
    }
    if let Some(session) = unchecked {
        let skipped = find_skipped_check(&opened.store, &session)?;
        let completed = count_completed_tasks(&opened.store, &session)?;
        let told = describe_unchecked_work(session.unchecked, completed, skipped.as_deref()).unwrap_or_default();
        out.print_line(format_args!(
            "{} {}",
            out.paint(TextTone::Strong, "last run"),
            out.paint(TextTone::Warning, told)
        ))?;
    }
    print_open_sessions(&sessions, out)?;
    let total = |states: &[TaskState]| states.iter().map(|state| count_in_state(&counts, *state)).sum();
    let section = |named, all, out: &mut Output| print_task_section(&opened, named, all, out);
    section(("at work", &active), (total(AT_WORK_STATES), "task list --state active --state submitted"), out)?;
    let all_waiting = u64::try_from(waiting.len()).unwrap_or(u64::MAX);
    section(("needs a person", stuck), (all_waiting, "task list --state blocked --state failed"), out)?;
    section(("next", &ready), (total(READY_STATES), "task ready"), out)?;
    if !effects.is_empty() {
        let noun = if effects.len() == 1 { "effect" } else { "effects" };
        out.print_line(format_args!("\n{} pending {noun}", effects.len()))?;
    }
    Ok(())
}

fn format_task_counts(counts: &[(TaskState, u64)], out: &Output) -> String {
    let counts: Vec<String> = counts
        .iter()
        .filter(|(state, _)| *state != TaskState::Deleted)
        .map(|(state, count)| format!("{count} {}", out.paint(show::state_tone(*state), state)))
        .collect();
    if counts.is_empty() { "none yet; `windlass task add GOAL` makes one".to_owned() } else { counts.join(", ") }
}

/// Warns of a configuration that does not count, and of obstacles in the place of files.
fn print_warnings(opened: &OpenedProject, out: &mut Output) -> CommandResult {
    if let Some(warning) = trust::trust_warning(&opened.project) {
        out.print_line(out.paint(TextTone::Warning, warning))?;
    }
    show::print_obstacles(&opened.project, out)
}

fn read_trust_state(opened: &OpenedProject) -> Result<TrustState, Failure> {
    trust::find_trust_state(&opened.project, &Config::load(&opened.project.root)?)
}

/// An open session, the condition that it waits for, and the next command.
struct OpenSession {
    seen: SessionView,
    waits_for: Option<String>,
    next: Option<NextStep>,
}

impl OpenSession {
    fn with_next_step(
        opened: &OpenedProject,
        snapshot: &StoreSnapshot<'_>,
        seen: SessionView,
    ) -> Result<Self, Failure> {
        let (waits_for, next) = (seen.describe_awaited(snapshot)?, seen.list_next_steps(opened)?.into_iter().next());
        Ok(Self { seen, waits_for, next })
    }
}

fn open_session_to_json(OpenSession { seen, waits_for, next }: &OpenSession) -> serde_json::Value {
    let session = &seen.session;
    json!({
        "name": session.name,
        "goal": session.goal,
        "task": session.task,
        "iteration": session.iteration,
        "running": seen.alive,
        "machine": seen.machine,
        "ended": session.ending_kind(),
        "waitsFor": waits_for,
        "next": next.as_ref().map(NextStep::shell_line),
    })
}

fn print_open_sessions(sessions: &[OpenSession], out: &mut Output) -> CommandResult {
    if sessions.is_empty() {
        return Ok(());
    }
    out.print_line(format_args!("\n{}", out.paint(TextTone::Strong, "sessions")))?;
    for OpenSession { seen, waits_for, next } in sessions {
        let session = &seen.session;
        let (tone, word) = match (seen.alive, session.ending_kind(), &session.stopping) {
            _ if session.next_action() == NextAction::Answer => (TextTone::Warning, "asks a person"),
            (true, _, None) => (TextTone::Name, "running"),
            (true, _, Some(_)) => (TextTone::Name, "ending"),
            (false, Some(_), _) if session.is_over() => (TextTone::Warning, "ended; a person is needed"),
            (false, None, None) => {
                (TextTone::Warning, "interrupted: its process has died; the same command resumes it")
            }
            _ => (TextTone::Warning, "interrupted while ending; `windlass doctor --settle` ends it"),
        };
        let name = out.paint(TextTone::Strong, &session.name);
        let place = seen.describe_machine();
        let state = out.paint(tone, format!("{word}{place}"));
        out.print_line(format_args!("{name}  iteration {}, {state}", session.iteration))?;
        let task = session.task.map(|id| id.to_string()).unwrap_or_default();
        let goal = session.goal.as_deref().unwrap_or(&task);
        let room = out.columns().unwrap_or(usize::MAX).saturating_sub(2);
        out.print_line(format_args!("  {}", out.paint(TextTone::Faint, text::fit_to_width(goal, room))))?;
        if let Some(waits_for) = waits_for {
            let rows = text::wrap_to_width(&format!("waits for {waits_for}"), room, room.saturating_sub(2));
            out.print_line(format_args!("  {}", rows.join("\n    ")))?;
        }
        if let Some(next) = next {
            out.print_line(format_args!("  {}", out.paint(TextTone::Name, text::clean_line(&next.shell_line()))))?;
        }
    }
    Ok(())
}

fn count_in_state(counts: &[(TaskState, u64)], state: TaskState) -> u64 {
    counts.iter().find(|(counted, _)| *counted == state).map_or(0, |(_, count)| *count)
}

/// Prints some tasks of a kind, and the command that shows the others.
fn print_task_section(
    opened: &OpenedProject,
    (title, tasks): (&str, &[Task]),
    (total, all): (u64, &str),
    out: &mut Output,
) -> CommandResult {
    if tasks.is_empty() {
        return Ok(());
    }
    out.print_line(format_args!("\n{}", out.paint(TextTone::Strong, title)))?;
    show::print_task_table(tasks, out)?;
    for task in tasks {
        for note in collect_task_notes(opened, task) {
            let room = out.columns().unwrap_or(usize::MAX).saturating_sub(2);
            let note = text::fit_to_width(&format!("{}: {note}", task.id), show::MAX_SHOWN_TEXT);
            let rows = text::wrap_to_width(&note, room, room.saturating_sub(2));
            out.print_line(format_args!("  {}", out.paint(TextTone::Faint, rows.join("\n    "))))?;
        }
        if STUCK_STATES.contains(&task.state)
            && let Some(next) = find_own_step(opened, task)?
        {
            out.print_line(format_args!("  {}", out.paint(TextTone::Name, text::clean_line(&next.shell_line()))))?;
        }
    }
    let more = total.saturating_sub(u64::try_from(tasks.len()).unwrap_or(u64::MAX));
    if more > 0 {
        out.print_line(out.paint(TextTone::Faint, format_args!("and {more} more: `windlass {all}`")))?;
    }
    Ok(())
}

/// Collects further facts about a task.
fn collect_task_notes(opened: &OpenedProject, task: &Task) -> Vec<String> {
    let state_note = match (&task.blocked, &task.lease, &task.reason) {
        (Some(blocked), ..) => Some(blocked.reason.clone()),
        (None, Some(lease), _) => {
            Some(format!("held by {}", show::describe_lease_holder(lease, environment::current_timestamp())))
        }
        (None, None, reason) => reason.clone(),
    };
    // The row of a session shows its series.
    let in_session = task.lease.as_ref().is_some_and(|lease| lease.session.is_some());
    let series = task.evaluation.series.as_ref().filter(|_| !in_session).map(show::drive::format_series);
    let in_place = READY_STATES.contains(&task.state).then(|| explain_begun_in_place(opened, task)).flatten();
    state_note.into_iter().chain(series).chain(in_place).collect()
}

/// Explains why a plain run leaves a task alone whose work is in the person's own tree, and how to continue it.
fn explain_begun_in_place(opened: &OpenedProject, task: &Task) -> Option<String> {
    // `print_warnings` has reported a configuration that cannot be read.
    let config = task.in_place.then(|| Config::load(&opened.project.root).ok()).flatten()?;
    let counts = trust::is_config_effective(&opened.project, &config, opened.trust).ok()?;
    let config = if counts { config } else { config.without_trust() };
    let workspace_mode = find_workspace_mode(&opened.project, &config).ok()?;
    is_left_in_place(task, workspace_mode).then(|| explain_left_in_place(opened, task.id))
}
