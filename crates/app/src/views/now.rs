//! The home screen: what needs a person, who works on what, and what is next.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;
use windlass_engine::{
    EventRecord, EventType, HookOutcome, NextAction, Seq, Session, SessionEndKind, SessionName, StateView, Task,
    TaskId, TaskState, Timestamp,
};
use windlass_store::{EventFilter, Store, StoreSnapshot, TaskFilter};

use super::GATE_ANSWERS;
use super::cost::read_usage_since;
use super::session::{SessionSummary, find_newest_sessions, read_session_events_back};
use super::task::{TaskSummary, list_task_answers};
use super::usage::UsageTotals;
use crate::changes::{ChangeRecord, ChangeState, has_open_change, list_open_changes};
use crate::context::OpenedProject;
use crate::event_text::state_tone;
use crate::hook_runs::{HookRunOutcome, HookRunRecord, RUN_EVENTS, collect_runs};
use crate::next_step::find_change_step;
use crate::tone::TextTone;
use crate::{Failure, environment, hints, time_format, trust, unreadable_files};

/// The most items of a list.
const MAX_ITEMS: usize = 50;
const MAX_NEXT_TASKS: usize = 10;
const MAX_EVIDENCE_LINES: usize = 60;
/// The number of sessions, newest first, among which the open ones are searched.
const MAX_SEARCHED_SESSIONS: usize = 200;
/// The most events of a session that are searched for evidence.
const MAX_EVIDENCE_EVENTS: usize = 500;
/// The distances from the last event of a task, in positions, within which its events are searched, one after the other.
const TASK_SEARCH_DISTANCES: [u64; 3] = [500, 5_000, 50_000];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitingKind {
    /// Stop hooks block, and a person decides.
    GateQuestion,
    BlockedTask,
    FailedTask,
    /// Work that a person may merge.
    OpenChange,
}

/// Something that only a person can decide.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WaitingItem {
    pub kind: WaitingKind,
    pub task: Option<String>,
    pub session: Option<String>,
    pub title: String,
    pub reason: String,
    pub since: i64,
    /// The output of the hooks that block.
    pub evidence: Vec<String>,
    /// The answers that a person can give.
    pub answers: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StateCount {
    pub state: String,
    pub tone: TextTone,
    pub count: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NowView {
    /// The position of the last event.
    pub head: u64,
    /// Oldest first.
    pub waiting: Vec<WaitingItem>,
    /// Whether more than the items of `waiting` need a person.
    pub has_more: bool,
    pub working: Vec<SessionSummary>,
    pub next: Vec<TaskSummary>,
    pub counts: Vec<StateCount>,
    /// The usage since midnight, local time.
    pub today: UsageTotals,
    pub warnings: Vec<String>,
}

/// Builds the home screen.
pub fn build_now_view(opened: &OpenedProject) -> Result<NowView, Failure> {
    let snapshot = opened.store.begin_snapshot().map_err(hints::store_failure)?;
    let sessions = find_relevant_sessions(opened, &snapshot)?;
    let (mut waiting, mut working, mut has_more) = (Vec::new(), Vec::new(), false);
    for (session, started_at) in sessions {
        if waits_for_person(&session) {
            match waiting.len() < MAX_ITEMS {
                true => waiting.push(session_item(opened, &session)?),
                false => has_more = true,
            }
        }
        if !session.is_over() && working.len() < MAX_ITEMS {
            working.push(SessionSummary::from_session(opened, &snapshot, session, started_at)?);
        }
    }
    let stuck = list_stuck_tasks(&snapshot, MAX_ITEMS + 1)?;
    let changes = list_open_changes(opened)?;
    has_more |= stuck.len() > MAX_ITEMS || changes.len() > MAX_ITEMS;
    for task in stuck.iter().take(MAX_ITEMS) {
        waiting.push(task_item(opened, task)?);
    }
    for id in changes.into_iter().take(MAX_ITEMS) {
        waiting.extend(change_item(opened, id)?);
    }
    waiting.sort_by_key(|item| item.since);
    let counts = snapshot.count_tasks_by_state().map_err(hints::store_failure)?;
    let next = snapshot.ready_tasks(MAX_NEXT_TASKS).map_err(hints::store_failure)?;
    let midnight = time_format::start_of_day(environment::current_timestamp());
    Ok(NowView {
        head: opened.store.head().map_err(hints::store_failure)?.0,
        waiting,
        has_more,
        working,
        next: next.iter().map(TaskSummary::from_task).collect(),
        counts: counts.into_iter().map(|(state, count)| count_view(state, count)).collect(),
        today: read_usage_since(opened, midnight)?,
        warnings: list_warnings(opened),
    })
}

/// Finds the open question about a task or a session, as long as it waits for an answer.
pub fn find_waiting_item(opened: &OpenedProject, subject: &str) -> Result<Option<WaitingItem>, Failure> {
    let snapshot = opened.store.begin_snapshot().map_err(hints::store_failure)?;
    let find_session = |name: &SessionName| snapshot.find_session(name).map_err(hints::view_failure);
    if let Ok(id) = subject.parse::<TaskId>() {
        let Some(task) = snapshot.find_task(id).map_err(hints::view_failure)? else { return Ok(None) };
        if is_stuck(&task) {
            return task_item(opened, &task).map(Some);
        }
        let holder = task.lease.as_ref().and_then(|lease| lease.session.as_ref());
        let holder = holder.map(find_session).transpose()?.flatten();
        return match holder.filter(waits_for_person) {
            Some(session) => session_item(opened, &session).map(Some),
            None if has_open_change(&task) => change_item(opened, id),
            None => Ok(None),
        };
    }
    let Ok(name) = subject.parse::<SessionName>() else { return Ok(None) };
    let session = find_session(&name)?.filter(waits_for_person);
    session.map(|session| session_item(opened, &session)).transpose()
}

/// Finds the open sessions, and those that need a person, newest first, with the times of their starts as far as they are known.
/// Of older sessions, it finds those that hold a task, or have a turn or a hook in progress.
fn find_relevant_sessions(
    opened: &OpenedProject,
    snapshot: &StoreSnapshot<'_>,
) -> Result<Vec<(Session, Option<Timestamp>)>, Failure> {
    let (newest, has_more) = find_newest_sessions(opened, snapshot, MAX_SEARCHED_SESSIONS)?;
    let mut known: BTreeSet<SessionName> = BTreeSet::new();
    let mut found = Vec::new();
    let mut add = |session: Session, started_at| {
        if known.insert(session.name.clone()) && (!session.is_over() || needs_person(&session)) {
            found.push((session, started_at));
        }
    };
    newest.into_iter().for_each(|(session, started_at)| add(session, Some(started_at)));
    if has_more {
        for name in list_busy_sessions(opened, snapshot)? {
            let session = snapshot.find_session(&name).map_err(hints::view_failure)?;
            session.into_iter().filter(|session| !session.is_over()).for_each(|session| add(session, None));
        }
    }
    Ok(found)
}

/// Lists the sessions that hold a task, or have a pending effect.
fn list_busy_sessions(opened: &OpenedProject, snapshot: &StoreSnapshot<'_>) -> Result<BTreeSet<SessionName>, Failure> {
    let mut names = BTreeSet::new();
    let filter = TaskFilter { states: vec![TaskState::Active, TaskState::Submitted], ..TaskFilter::default() };
    snapshot
        .visit_tasks(&filter, |task| {
            names.extend(task.lease.and_then(|lease| lease.session));
            names.len() < MAX_SEARCHED_SESSIONS
        })
        .map_err(hints::store_failure)?;
    let effects = snapshot.pending_effects().map_err(hints::store_failure)?;
    for effect in effects.iter().take(MAX_SEARCHED_SESSIONS) {
        let record = opened.store.read_event(effect.id.seq).map_err(hints::store_failure)?;
        names.extend(record.and_then(|record| record.envelope.session));
    }
    Ok(names)
}

fn count_view(state: TaskState, count: u64) -> StateCount {
    StateCount { state: state.name().to_owned(), tone: state_tone(state), count }
}

/// Returns whether a session without a task has left its work to a person.
fn needs_person(session: &Session) -> bool {
    session.task.is_none() && session.is_over() && session.ending_kind() == Some(SessionEndKind::Escalated)
}

fn waits_for_person(session: &Session) -> bool {
    session.next_action() == NextAction::Answer || needs_person(session)
}

/// Returns whether a task waits for a person. A task that another one blocks waits for that one.
fn is_stuck(task: &Task) -> bool {
    let is_stuck = matches!(task.state, TaskState::Blocked | TaskState::Failed);
    is_stuck && task.blocked.as_ref().is_none_or(|blocked| blocked.by.is_none())
}

fn list_stuck_tasks(snapshot: &StoreSnapshot<'_>, most: usize) -> Result<Vec<Task>, Failure> {
    let mut stuck = Vec::new();
    let filter = TaskFilter { states: vec![TaskState::Blocked, TaskState::Failed], ..TaskFilter::default() };
    snapshot
        .visit_tasks(&filter, |task| {
            if is_stuck(&task) {
                stuck.push(task);
            }
            stuck.len() < most
        })
        .map_err(hints::store_failure)?;
    Ok(stuck)
}

/// Returns the item about an open change, if a person may merge it. Git is not asked whether the change was merged elsewhere.
fn change_item(opened: &OpenedProject, id: TaskId) -> Result<Option<WaitingItem>, Failure> {
    let change = ChangeRecord::load_change_record(opened, id)?;
    let task = &change.task;
    let is_open = task.state == TaskState::Completed && change.change_state() == ChangeState::Open;
    if !is_open || find_change_step(opened, task)?.is_none() {
        return Ok(None);
    }
    Ok(Some(WaitingItem {
        kind: WaitingKind::OpenChange,
        task: Some(task.id.to_string()),
        session: None,
        title: task.goal.clone(),
        reason: format!("its change {} can be merged into {}", change.branch_name(), change.base_name()),
        since: task.updated_at.millis(),
        evidence: Vec::new(),
        answers: Vec::new(),
    }))
}

fn session_item(opened: &OpenedProject, session: &Session) -> Result<WaitingItem, Failure> {
    let asks = session.next_action() == NextAction::Answer;
    let reason = match asks {
        true => session.describe_block_state(),
        false => "the session has left its work to a person".to_owned(),
    };
    let answers: &[&str] = if asks { &GATE_ANSWERS } else { &[] };
    let mut records = read_session_events_back(opened, session, &RUN_EVENTS, MAX_EVIDENCE_EVENTS)?;
    records.reverse();
    let evidence = read_block_evidence(opened, &records)?;
    let asked = read_session_events_back(opened, session, &[EventType::GateDecided, EventType::SessionEnded], 1)?;
    let since = asked.first().map(|record| record.envelope.timestamp);
    let title = match (&session.goal, session.task) {
        (Some(goal), _) => goal.clone(),
        (None, Some(id)) => opened.require_task(id)?.goal,
        (None, None) => session.name.to_string(),
    };
    Ok(WaitingItem {
        kind: WaitingKind::GateQuestion,
        task: session.task.map(|task| task.to_string()),
        session: Some(session.name.to_string()),
        title,
        reason,
        since: since.map_or(0, Timestamp::millis),
        evidence,
        answers: answers.iter().map(|&answer| answer.to_owned()).collect(),
    })
}

fn task_item(opened: &OpenedProject, task: &Task) -> Result<WaitingItem, Failure> {
    let kind = if task.state == TaskState::Failed { WaitingKind::FailedTask } else { WaitingKind::BlockedTask };
    let reason = task.blocked.as_ref().map(|blocked| blocked.reason.clone()).or_else(|| task.reason.clone());
    let mut evidence: Vec<String> = task
        .findings
        .iter()
        .flat_map(|finding| finding.text.lines().map(move |line| format!("{}: {line}", finding.source)))
        .take(MAX_EVIDENCE_LINES)
        .collect();
    if evidence.is_empty() && task.blocked.as_ref().is_some_and(|blocked| !blocked.hooks.is_empty()) {
        evidence = read_block_evidence(opened, &read_newest_task_events(opened, task, &RUN_EVENTS)?)?;
    }
    let stopped = read_newest_task_events(opened, task, &[EventType::TaskBlocked, EventType::TaskFailed])?;
    let since = stopped.last().map_or(task.updated_at, |record| record.envelope.timestamp);
    Ok(WaitingItem {
        kind,
        task: Some(task.id.to_string()),
        session: None,
        title: task.goal.clone(),
        reason: reason.unwrap_or_default(),
        since: since.millis(),
        evidence,
        answers: list_task_answers(task),
    })
}

/// Returns the feedback of the last hook that blocked, from events that are sorted oldest first.
fn read_block_evidence(opened: &OpenedProject, records: &[EventRecord]) -> Result<Vec<String>, Failure> {
    let blocks =
        |run: &&HookRunRecord| run.outcome == HookRunOutcome::Ended(HookOutcome::Block) && run.feedback.is_some();
    let runs = collect_runs(opened, records)?;
    let last = runs.iter().rev().find(blocks);
    let lines = last.iter().flat_map(|run| &run.feedback).flat_map(|(_, text)| text.lines());
    let lines = lines.filter(|line| !line.trim().is_empty());
    Ok(lines.take(MAX_EVIDENCE_LINES).map(str::to_owned).collect())
}

/// Reads the newest events of some types of a task, oldest first, without its whole history.
fn read_newest_task_events(
    opened: &OpenedProject,
    task: &Task,
    types: &[EventType],
) -> Result<Vec<EventRecord>, Failure> {
    let filter = EventFilter { types: types.to_vec(), task: Some(task.id), ..EventFilter::default() };
    for distance in TASK_SEARCH_DISTANCES {
        let after = Seq(task.last_event.0.saturating_sub(distance));
        let found = opened.store.read_events(&filter, after, usize::MAX).map_err(hints::store_failure)?;
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok(Vec::new())
}

fn list_warnings(opened: &OpenedProject) -> Vec<String> {
    let trust = trust::trust_warning(&opened.project).map(str::to_owned).into_iter();
    trust.chain(unreadable_files::list_unreadable_files(&opened.project)).collect()
}
