//! Tasks: rows, details, and the graph around one of them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use schemars::JsonSchema;
use serde::Serialize;
use windlass_engine::{Event, EventType, StateView, Task, TaskId, TaskState, TaskTransition};
use windlass_store::{EventFilter, StoreSnapshot, TaskFilter};

use super::engine_names::TaskStateName;
use super::question::OpenQuestion;
use super::session::SessionSummary;
use super::{LabelledText, excerpt};
use crate::answer_choice::AnswerChoice;
use crate::context::OpenedProject;
use crate::event_text::{self, count_open_dependencies, state_tone};
use crate::next_step::find_next_step;
use crate::session_view::SessionView;
use crate::tone::TextTone;
use crate::why::drive_details::collect_drive_details;
use crate::{Failure, changes, environment, hints, time_format};

/// The most tasks of a page, and of a graph.
const MAX_PAGE_TASKS: usize = 500;
const MAX_GRAPH_TASKS: usize = 120;
/// The most notes and sessions of a task that its page shows.
const MAX_NOTES: usize = 50;
const MAX_SESSIONS: usize = 20;
/// The most characters of a goal in a row.
const MAX_GOAL_LENGTH: usize = 300;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskSummary {
    pub id: String,
    pub goal: String,
    #[schemars(with = "TaskStateName")]
    pub state: TaskState,
    pub tone: TextTone,
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub priority: String,
    pub labels: Vec<String>,
    pub open_dependencies: u64,
    /// The session that holds the task.
    pub session: Option<String>,
    /// Whether no process runs this session, although it needs one.
    pub is_deserted: bool,
    pub updated_at: i64,
    /// Whether a change of the task is not merged yet.
    pub has_change: bool,
}

impl TaskSummary {
    pub fn from_task(task: &Task) -> Self {
        Self {
            id: task.id.to_string(),
            goal: excerpt(&task.goal, MAX_GOAL_LENGTH),
            state: task.state,
            tone: state_tone(task.state),
            kind: task.kind.as_ref().map(ToString::to_string),
            priority: task.priority.to_string(),
            labels: task.labels.clone(),
            open_dependencies: count_open_dependencies(task),
            session: task.lease.as_ref().and_then(|lease| lease.session.as_ref()).map(ToString::to_string),
            is_deserted: false,
            updated_at: task.updated_at.millis(),
            has_change: changes::has_open_change(task),
        }
    }

    /// Looks whether a process runs its session.
    fn mark_if_deserted(&mut self, opened: &OpenedProject, snapshot: &StoreSnapshot<'_>) -> Result<(), Failure> {
        let Some(name) = self.session.as_ref().and_then(|name| name.parse().ok()) else { return Ok(()) };
        let session = snapshot.find_session(&name).map_err(hints::view_failure)?;
        if session.is_some_and(|session| SessionView::from_session(opened, session).is_deserted()) {
            (self.is_deserted, self.tone) = (true, TextTone::Warning);
        }
        Ok(())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskPage {
    pub tasks: Vec<TaskSummary>,
    pub has_more: bool,
}

/// Which tasks a page has.
#[derive(Debug, Clone, Default)]
pub struct TaskQuery {
    /// Any of these states; the open ones if empty.
    pub states: Vec<TaskState>,
    /// A text in the goal, in any case.
    pub text: Option<String>,
    pub after: Option<TaskId>,
    pub limit: usize,
}

/// Lists the tasks that match a query, oldest first.
pub fn list_task_summaries(opened: &OpenedProject, query: TaskQuery) -> Result<TaskPage, Failure> {
    let states = match query.states.is_empty() {
        true => open_task_states(),
        false => query.states,
    };
    let text = query.text.map(|text| text.to_lowercase());
    let most = query.limit.clamp(1, MAX_PAGE_TASKS);
    let filter = TaskFilter { states, after: query.after, ..TaskFilter::default() };
    let (mut tasks, mut has_more) = (Vec::new(), false);
    let snapshot = opened.store.begin_snapshot().map_err(hints::store_failure)?;
    let matches = |task: &Task| text.as_ref().is_none_or(|text| task.goal.to_lowercase().contains(text));
    snapshot
        .visit_tasks(&filter, |task| {
            if matches(&task) {
                has_more = tasks.len() == most;
                if !has_more {
                    tasks.push(TaskSummary::from_task(&task));
                }
            }
            !has_more
        })
        .map_err(hints::store_failure)?;
    tasks.iter_mut().try_for_each(|task| task.mark_if_deserted(opened, &snapshot))?;
    Ok(TaskPage { tasks, has_more })
}

fn open_task_states() -> Vec<TaskState> {
    TaskState::ALL.into_iter().filter(|state| !matches!(state, TaskState::Completed | TaskState::Deleted)).collect()
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskNote {
    pub at: i64,
    pub author: String,
    pub kind: String,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskDetails {
    pub task: TaskSummary,
    /// The whole goal; a summary has only its beginning.
    pub goal: String,
    pub description: Option<String>,
    pub facts: Vec<LabelledText>,
    /// The sessions that worked on it, newest first.
    pub sessions: Vec<SessionSummary>,
    /// Newest first.
    pub notes: Vec<TaskNote>,
    /// The answers that a person can give now.
    pub answers: Vec<AnswerChoice>,
    /// The question that these answers are for. Its reason is no fact.
    pub question: Option<OpenQuestion>,
    /// Whether a person can edit the task.
    pub can_edit: bool,
    /// Whether a person can block the task without an override.
    pub can_block: bool,
    /// Whether a person can reopen the task without an override.
    pub can_reopen: bool,
    pub next_command: Option<String>,
}

/// Loads the details of a task.
pub fn load_task_details(opened: &OpenedProject, id: TaskId) -> Result<TaskDetails, Failure> {
    let snapshot = opened.store.begin_snapshot().map_err(hints::store_failure)?;
    let task = opened.require_task(id)?;
    let mut summary = TaskSummary::from_task(&task);
    summary.mark_if_deserted(opened, &snapshot)?;
    let now = environment::current_timestamp();
    let question = OpenQuestion::load_for_task(opened, &task)?;
    let is_fact = |reason: &String| question.as_ref().is_none_or(|question| question.reason != *reason);
    let mut facts = Vec::new();
    let mut add = |label: &str, text: Option<String>| facts.extend(text.map(|text| LabelledText::new(label, text)));
    add("blocked", task.blocked.as_ref().map(|blocked| blocked.reason.clone()).filter(is_fact));
    add("reason", task.reason.clone().filter(is_fact));
    add("result", task.result.clone());
    add("held by", task.lease.as_ref().map(|lease| time_format::describe_lease_holder(lease, now)));
    add("deliverables", Some(task.deliverables.join(", ")).filter(|all| !all.is_empty()));
    add("used", (!task.used.is_nothing()).then(|| task.used.to_string()));
    let waits: Vec<String> = list_awaited_tasks(&snapshot, id)?.iter().map(ToString::to_string).collect();
    add("waits for", Some(waits.join(", ")).filter(|waits| !waits.is_empty()));
    for (label, text) in event_text::pipeline::list_pipeline_details(&task, None) {
        add(label, Some(text));
    }
    for (label, text) in collect_drive_details(opened, &task, now)? {
        add(label, Some(text));
    }
    Ok(TaskDetails {
        goal: task.goal.clone(),
        description: task.body.clone(),
        facts,
        sessions: list_task_sessions(opened, &snapshot, id)?,
        notes: read_notes(opened, id)?,
        answers: AnswerChoice::list_for_task(&task),
        question,
        can_edit: task.state != TaskState::Deleted,
        can_block: accepts_transition(&task, EventType::TaskBlocked),
        can_reopen: accepts_transition(&task, EventType::TaskReopened),
        next_command: find_next_step(opened, id)?.map(|step| step.shell_line()),
        task: summary,
    })
}

/// Returns whether a transition needs no override of a person: the state allows it, and no lease holds the task.
fn accepts_transition(task: &Task, on: EventType) -> bool {
    let row = TaskTransition::for_event_type(on);
    task.lease.is_none() && row.is_some_and(|row| row.allows_from(task.state, false))
}

fn list_awaited_tasks(snapshot: &StoreSnapshot<'_>, id: TaskId) -> Result<Vec<TaskId>, Failure> {
    let mut open = Vec::new();
    for other in windlass_engine::awaited_tasks(snapshot, id).map_err(hints::view_failure)? {
        let task = snapshot.find_task(other).map_err(hints::view_failure)?;
        open.extend(task.filter(|task| task.state != TaskState::Completed).map(|task| task.id));
    }
    Ok(open)
}

fn list_task_sessions(
    opened: &OpenedProject,
    snapshot: &StoreSnapshot<'_>,
    id: TaskId,
) -> Result<Vec<SessionSummary>, Failure> {
    let types = vec![EventType::TaskClaimed];
    let filter = EventFilter { types, task: Some(id), ..EventFilter::default() };
    let claims = opened.store.read_events_back(&filter, None, MAX_SESSIONS * 4).map_err(hints::store_failure)?;
    let mut known = BTreeSet::new();
    let mut sessions = Vec::new();
    for name in claims.iter().filter_map(|record| record.envelope.session.as_ref()) {
        if sessions.len() < MAX_SESSIONS
            && known.insert(name.clone())
            && let Some(session) = snapshot.find_session(name).map_err(hints::view_failure)?
        {
            sessions.push(SessionSummary::from_session(opened, snapshot, session)?);
        }
    }
    Ok(sessions)
}

fn read_notes(opened: &OpenedProject, id: TaskId) -> Result<Vec<TaskNote>, Failure> {
    let filter = EventFilter { types: vec![EventType::NoteAdded], task: Some(id), ..EventFilter::default() };
    let found = opened.store.read_events_back(&filter, None, MAX_NOTES).map_err(hints::store_failure)?;
    let note = |record: &windlass_engine::EventRecord| match &record.envelope.event {
        Event::NoteAdded(added) => Some(TaskNote {
            at: record.envelope.timestamp.millis(),
            author: record.envelope.metadata.triggered_by.clone(),
            kind: added.kind.to_string(),
            text: added.text.clone(),
        }),
        _ => None,
    };
    Ok(found.iter().filter_map(note).collect())
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskGraphEdge {
    /// The task that waits, also of an edge `blocks`; else the first task of the edge.
    pub from: String,
    pub to: String,
    pub kind: String,
    /// Whether `from` waits for `to`.
    pub is_dependency: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskGraphView {
    /// The task in the middle, if there is one.
    pub focus: Option<String>,
    pub tasks: Vec<TaskSummary>,
    pub edges: Vec<TaskGraphEdge>,
    pub has_more: bool,
}

/// Loads the graph around a task, nearest tasks first, or the open tasks that have edges.
pub fn load_task_graph(opened: &OpenedProject, focus: Option<TaskId>) -> Result<TaskGraphView, Failure> {
    let snapshot = opened.store.begin_snapshot().map_err(hints::store_failure)?;
    let (mut tasks, mut edges) = (BTreeMap::new(), BTreeSet::new());
    let mut queue: VecDeque<TaskId> = match focus {
        Some(id) => [opened.require_task(id)?.id].into(),
        None => list_open_tasks(&snapshot)?.into(),
    };
    let mut has_more = queue.len() > MAX_GRAPH_TASKS;
    while let Some(id) = queue.pop_front() {
        if tasks.contains_key(&id) {
            continue;
        }
        if tasks.len() == MAX_GRAPH_TASKS {
            has_more = true;
            break;
        }
        let Some(task) = snapshot.find_task(id).map_err(hints::view_failure)? else { continue };
        if task.state == TaskState::Deleted {
            continue;
        }
        // Finished work is shown beside the focus, but leads no further.
        let is_open = focus == Some(id) || task.state != TaskState::Completed;
        let mut summary = TaskSummary::from_task(&task);
        summary.mark_if_deserted(opened, &snapshot)?;
        tasks.insert(id, summary);
        for edge in snapshot.edges_of_task(id).map_err(hints::store_failure)?.into_iter().filter(|_| is_open) {
            queue.extend([edge.from_id, edge.to_id].into_iter().filter(|other| *other != id));
            let waiting = edge.waiting_pair();
            let (from, to) = waiting.unwrap_or((edge.from_id, edge.to_id));
            edges.insert((from, to, edge.kind.to_string(), waiting.is_some()));
        }
    }
    let is_drawn =
        |(from, to, ..): &&(TaskId, TaskId, String, bool)| tasks.contains_key(from) && tasks.contains_key(to);
    let edges = edges.iter().filter(is_drawn).map(|(from, to, kind, is_dependency)| TaskGraphEdge {
        from: from.to_string(),
        to: to.to_string(),
        kind: kind.clone(),
        is_dependency: *is_dependency,
    });
    Ok(TaskGraphView {
        focus: focus.map(|id| id.to_string()),
        edges: edges.collect(),
        tasks: tasks.into_values().collect(),
        has_more,
    })
}

fn list_open_tasks(snapshot: &StoreSnapshot<'_>) -> Result<Vec<TaskId>, Failure> {
    let mut open = Vec::new();
    let filter = TaskFilter { states: open_task_states(), ..TaskFilter::default() };
    snapshot
        .visit_tasks(&filter, |task| {
            open.push(task.id);
            open.len() <= MAX_GRAPH_TASKS
        })
        .map_err(hints::store_failure)?;
    Ok(open)
}
