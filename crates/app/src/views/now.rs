//! The home screen: what needs a person, who works on what, and what is next.

use schemars::JsonSchema;
use serde::Serialize;
use windlass_engine::{
    EventRecord, EventType, HookOutcome, NextAction, Session, SessionName, StateView, Task, TaskId, TaskState,
    Timestamp,
};

use super::change::change_tone;
use super::engine_names::TaskStateName;
use super::question::{OpenQuestion, find_stop_event, read_newest_task_events};
use super::session::{SessionSummary, read_session_events_back};
use super::task::TaskSummary;
use super::usage::UsageTotals;
use crate::answer_choice::AnswerChoice;
use crate::changes::{ChangeRecord, ChangeState, has_open_change, list_open_changes};
use crate::context::OpenedProject;
use crate::event_text::state_tone;
use crate::hook_runs::{HookRunOutcome, HookRunRecord, RUN_EVENTS, collect_runs};
use crate::next_step::{can_merge_change, find_lower_change};
use crate::tone::TextTone;
use crate::waiting_work::{is_waiting_session, is_waiting_task, list_current_sessions, list_waiting_tasks};
use crate::{Failure, environment, hints, time_format, trust, unreadable_files};

/// The most items of a list.
const MAX_ITEMS: usize = 50;
const MAX_NEXT_TASKS: usize = 10;
const MAX_EVIDENCE_LINES: usize = 60;
/// The most events of a session or a task that are searched for evidence.
const MAX_EVIDENCE_EVENTS: usize = 500;

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
    pub tone: TextTone,
    pub task: Option<String>,
    pub session: Option<String>,
    pub title: String,
    pub reason: String,
    pub since: i64,
    /// The last message of the agent before it stopped.
    pub message: Option<String>,
    /// The output of the hooks that block.
    pub evidence: Vec<String>,
    /// The answers that a person can give.
    pub answers: Vec<AnswerChoice>,
    /// Whether a person can merge its change now.
    pub can_merge: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StateCount {
    #[schemars(with = "TaskStateName")]
    pub state: TaskState,
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
    let sessions = list_current_sessions(&snapshot)?;
    let (mut waiting, mut working, mut has_more) = (Vec::new(), Vec::new(), false);
    for session in sessions {
        if is_waiting_session(&session) {
            match waiting.len() < MAX_ITEMS {
                true => waiting.push(session_item(opened, &session)?),
                false => has_more = true,
            }
        }
        if !session.is_over() && working.len() < MAX_ITEMS {
            working.push(SessionSummary::from_session(opened, &snapshot, session)?);
        }
    }
    let stuck = list_waiting_tasks(&snapshot, MAX_ITEMS + 1)?;
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
        today: opened.usage_counter.borrow_mut().count_since(opened, midnight)?,
        warnings: list_warnings(opened),
    })
}

/// Finds the open question about a task or a session, as long as it waits for an answer.
pub fn find_waiting_item(opened: &OpenedProject, subject: &str) -> Result<Option<WaitingItem>, Failure> {
    let snapshot = opened.store.begin_snapshot().map_err(hints::store_failure)?;
    let find_session = |name: &SessionName| snapshot.find_session(name).map_err(hints::view_failure);
    if let Ok(id) = subject.parse::<TaskId>() {
        let Some(task) = snapshot.find_task(id).map_err(hints::view_failure)? else { return Ok(None) };
        if is_waiting_task(&snapshot, &task)? {
            return task_item(opened, &task).map(Some);
        }
        let holder = task.lease.as_ref().and_then(|lease| lease.session.as_ref());
        let holder = holder.map(find_session).transpose()?.flatten();
        return match holder.filter(is_waiting_session) {
            Some(session) => session_item(opened, &session).map(Some),
            None if has_open_change(&task) => change_item(opened, id),
            None => Ok(None),
        };
    }
    let Ok(name) = subject.parse::<SessionName>() else { return Ok(None) };
    let session = find_session(&name)?.filter(is_waiting_session);
    session.map(|session| session_item(opened, &session)).transpose()
}

fn count_view(state: TaskState, count: u64) -> StateCount {
    StateCount { state, tone: state_tone(state), count }
}

/// Returns the item about an open change of accepted work. Git is not asked whether it was merged elsewhere, or has conflicts.
fn change_item(opened: &OpenedProject, id: TaskId) -> Result<Option<WaitingItem>, Failure> {
    let change = ChangeRecord::load_change_record(opened, id)?;
    let task = &change.task;
    if task.state != TaskState::Completed || change.change_state() != ChangeState::Open {
        return Ok(None);
    }
    let after = match find_lower_change(opened, task)? {
        Some(below) => format!(", after the change of {}", below.id),
        None => String::new(),
    };
    Ok(Some(WaitingItem {
        kind: WaitingKind::OpenChange,
        tone: change_tone(ChangeState::Open),
        task: Some(task.id.to_string()),
        session: None,
        title: task.goal.clone(),
        reason: format!("look at its change {} into {}{after}", change.branch_name(), change.base_name()),
        since: task.updated_at.millis(),
        message: None,
        evidence: Vec::new(),
        answers: Vec::new(),
        can_merge: can_merge_change(opened, task)?,
    }))
}

fn session_item(opened: &OpenedProject, session: &Session) -> Result<WaitingItem, Failure> {
    let asks = session.next_action() == NextAction::Answer;
    let OpenQuestion { reason, message, .. } = OpenQuestion::load_for_session(opened, session)?;
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
        tone: TextTone::Warning,
        task: session.task.map(|task| task.to_string()),
        session: Some(session.name.to_string()),
        title,
        reason,
        since: since.map_or(0, Timestamp::millis),
        message,
        evidence,
        answers: if asks { AnswerChoice::list_for_gate() } else { Vec::new() },
        can_merge: false,
    })
}

fn task_item(opened: &OpenedProject, task: &Task) -> Result<WaitingItem, Failure> {
    let kind = if task.state == TaskState::Failed { WaitingKind::FailedTask } else { WaitingKind::BlockedTask };
    let stop = find_stop_event(opened, task)?;
    let since = stop.as_ref().map_or(task.updated_at, |record| record.envelope.timestamp);
    let OpenQuestion { reason, message, .. } = OpenQuestion::load_after_stop(opened, task, stop.as_ref())?;
    let mut evidence: Vec<String> = task
        .findings
        .iter()
        .flat_map(|finding| finding.text.lines().map(move |line| format!("{}: {line}", finding.source)))
        .take(MAX_EVIDENCE_LINES)
        .collect();
    if evidence.is_empty() && task.blocked.as_ref().is_some_and(|blocked| !blocked.hooks.is_empty()) {
        evidence =
            read_block_evidence(opened, &read_newest_task_events(opened, task, &RUN_EVENTS, MAX_EVIDENCE_EVENTS)?)?;
    }
    Ok(WaitingItem {
        kind,
        tone: state_tone(task.state),
        task: Some(task.id.to_string()),
        session: None,
        title: task.goal.clone(),
        reason,
        since: since.millis(),
        message,
        evidence,
        answers: AnswerChoice::list_for_task(task),
        can_merge: can_merge_change(opened, task)?,
    })
}

/// Returns the feedback of the hooks that blocked last, from events that are sorted oldest first. Of several hooks, each is named.
fn read_block_evidence(opened: &OpenedProject, records: &[EventRecord]) -> Result<Vec<String>, Failure> {
    let blocks =
        |run: &&HookRunRecord| run.outcome == HookRunOutcome::Ended(HookOutcome::Block) && run.feedback.is_some();
    let runs = collect_runs(opened, records)?;
    let Some(last) = runs.iter().rev().find(blocks) else { return Ok(Vec::new()) };
    // The hooks that judge the same work run for the same event.
    let judges: Vec<&HookRunRecord> = runs.iter().filter(blocks).filter(|run| run.event == last.event).collect();
    let lines = judges.iter().flat_map(|run| {
        let name = (judges.len() > 1).then(|| format!("{}:", run.title()));
        let said = run.feedback.iter().flat_map(|(_, text)| text.lines()).filter(|line| !line.trim().is_empty());
        name.into_iter().chain(said.map(str::to_owned))
    });
    Ok(lines.take(MAX_EVIDENCE_LINES).collect())
}

fn list_warnings(opened: &OpenedProject) -> Vec<String> {
    let trust = trust::trust_warning(&opened.project).map(str::to_owned).into_iter();
    trust.chain(unreadable_files::list_unreadable_files(&opened.project)).collect()
}
