//! The home screen: what needs a person, who works on what, and what is next.

use schemars::JsonSchema;
use serde::Serialize;
use windlass_engine::{EventType, HookOutcome, NextAction, Session, SessionEndKind, Task, TaskState, Timestamp};
use windlass_store::{EventFilter, StoreSnapshot, TaskFilter};

use super::cost::read_usage_since;
use super::session::SessionSummary;
use super::task::{TaskSummary, list_task_answers};
use super::usage::UsageTotals;
use crate::changes::{ChangeRecord, list_open_changes};
use crate::context::OpenedProject;
use crate::event_text::state_tone;
use crate::hook_runs::{HookRunOutcome, HookRunRecord, find_newest_runs};
use crate::next_step::find_change_step;
use crate::tone::Tone;
use crate::{Failure, environment, hints, time_format, trust, unreadable_files};

/// The most items of a list.
const MAX_ITEMS: usize = 50;
const MAX_NEXT_TASKS: usize = 10;
const MAX_EVIDENCE_LINES: usize = 60;

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
    pub tone: Tone,
    pub count: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NowView {
    /// The position of the last event.
    pub head: u64,
    /// Oldest first.
    pub waiting: Vec<WaitingItem>,
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
    let sessions = snapshot.all_sessions().map_err(hints::store_failure)?;
    let (mut waiting, mut working) = (Vec::new(), Vec::new());
    for session in sessions.into_iter().filter(|session| !session.is_over() || needs_person(session)) {
        if session.next_action() == NextAction::Answer || needs_person(&session) {
            waiting.push(session_item(opened, &session)?);
        }
        if !session.is_over() && working.len() < MAX_ITEMS {
            working.push(SessionSummary::from_session(opened, &snapshot, session)?);
        }
    }
    for task in list_stuck_tasks(&snapshot)? {
        waiting.push(task_item(opened, &task)?);
    }
    for id in list_open_changes(opened)?.into_iter().take(MAX_ITEMS) {
        let change = ChangeRecord::load_change_record(opened, id)?;
        let task = &change.task;
        if task.state == TaskState::Completed && find_change_step(opened, task)?.is_some() {
            waiting.push(WaitingItem {
                kind: WaitingKind::OpenChange,
                task: Some(task.id.to_string()),
                session: None,
                title: task.goal.clone(),
                reason: format!("its change {} can be merged into {}", change.branch_name(), change.base_name()),
                since: task.updated_at.millis(),
                evidence: Vec::new(),
                answers: Vec::new(),
            });
        }
    }
    waiting.sort_by_key(|item| item.since);
    let counts = snapshot.count_tasks_by_state().map_err(hints::store_failure)?;
    let next = snapshot.ready_tasks(MAX_NEXT_TASKS).map_err(hints::store_failure)?;
    let midnight = time_format::start_of_day(environment::current_timestamp());
    Ok(NowView {
        head: opened.store.head().map_err(hints::store_failure)?.0,
        waiting,
        working,
        next: next.iter().map(TaskSummary::from_task).collect(),
        counts: counts.into_iter().map(|(state, count)| count_view(state, count)).collect(),
        today: read_usage_since(opened, midnight)?,
        warnings: list_warnings(opened),
    })
}

/// Finds the open question about a task or a session, as long as it waits for an answer.
pub fn find_waiting_item(opened: &OpenedProject, subject: &str) -> Result<Option<WaitingItem>, Failure> {
    let is_about = |item: &WaitingItem| [&item.task, &item.session].contains(&&Some(subject.to_owned()));
    Ok(build_now_view(opened)?.waiting.into_iter().find(is_about))
}

fn count_view(state: TaskState, count: u64) -> StateCount {
    StateCount { state: state.name().to_owned(), tone: state_tone(state), count }
}

/// Returns whether a session without a task has left its work to a person.
fn needs_person(session: &Session) -> bool {
    session.task.is_none() && session.is_over() && session.ending_kind() == Some(SessionEndKind::Escalated)
}

fn list_stuck_tasks(snapshot: &StoreSnapshot<'_>) -> Result<Vec<Task>, Failure> {
    let mut stuck = Vec::new();
    let filter = TaskFilter { states: vec![TaskState::Blocked, TaskState::Failed], ..TaskFilter::default() };
    snapshot
        .visit_tasks(&filter, |task| {
            // A task that another one blocks waits for that one.
            if task.blocked.as_ref().is_none_or(|blocked| blocked.by.is_none()) {
                stuck.push(task);
            }
            stuck.len() < MAX_ITEMS
        })
        .map_err(hints::store_failure)?;
    Ok(stuck)
}

fn session_item(opened: &OpenedProject, session: &Session) -> Result<WaitingItem, Failure> {
    let asks = session.next_action() == NextAction::Answer;
    let reason = match asks {
        true => session.describe_block_state(),
        false => "the session has left its work to a person".to_owned(),
    };
    let filter = EventFilter { session: Some(session.name.clone()), ..EventFilter::default() };
    let answers: &[&str] = if asks { &["continue", "ignore-hook", "reject"] } else { &[] };
    let evidence = read_block_evidence(opened, filter.clone())?;
    let asked = EventFilter { types: vec![EventType::GateDecided, EventType::SessionEnded], ..filter };
    let since = find_last_time(opened, &asked)?;
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
    let filter = EventFilter { task: Some(task.id), ..EventFilter::default() };
    let mut evidence: Vec<String> = task
        .findings
        .iter()
        .flat_map(|finding| finding.text.lines().map(move |line| format!("{}: {line}", finding.source)))
        .take(MAX_EVIDENCE_LINES)
        .collect();
    if evidence.is_empty() && task.blocked.as_ref().is_some_and(|blocked| !blocked.hooks.is_empty()) {
        evidence = read_block_evidence(opened, filter.clone())?;
    }
    let stopped = EventFilter { types: vec![EventType::TaskBlocked, EventType::TaskFailed], ..filter };
    Ok(WaitingItem {
        kind,
        task: Some(task.id.to_string()),
        session: None,
        title: task.goal.clone(),
        reason: reason.unwrap_or_default(),
        since: find_last_time(opened, &stopped)?.unwrap_or(task.updated_at).millis(),
        evidence,
        answers: list_task_answers(task),
    })
}

/// Reads the feedback of the last hook that blocked.
fn read_block_evidence(opened: &OpenedProject, filter: EventFilter) -> Result<Vec<String>, Failure> {
    let blocks =
        |run: &HookRunRecord| run.outcome == HookRunOutcome::Ended(HookOutcome::Block) && run.feedback.is_some();
    let runs = find_newest_runs(opened, filter, 1, &mut |run| Ok(blocks(run)))?;
    let lines = runs.iter().flat_map(|run| &run.feedback).flat_map(|(_, text)| text.lines());
    let lines = lines.filter(|line| !line.trim().is_empty());
    Ok(lines.take(MAX_EVIDENCE_LINES).map(str::to_owned).collect())
}

/// Returns the time of the last event that a filter takes.
fn find_last_time(opened: &OpenedProject, filter: &EventFilter) -> Result<Option<Timestamp>, Failure> {
    let newest = opened.store.read_events_back(filter, None, 1).map_err(hints::store_failure)?;
    Ok(newest.first().map(|record| record.envelope.timestamp))
}

fn list_warnings(opened: &OpenedProject) -> Vec<String> {
    let trust = trust::trust_warning(&opened.project).map(str::to_owned).into_iter();
    trust.chain(unreadable_files::list_unreadable_files(&opened.project)).collect()
}
