//! The built-in pure hooks: they make dependents ready, create reviews and record metrics. No other code has rules for
//! these.

use crate::command::NewTask;
use crate::command::limits::EngineLimits;
use crate::effects::action::{HookAction, TaskAction};
use crate::effects::registry::{PureHook, PureHookError};
use crate::log::event::{Event, EventRecord, EventSubject, payload};
use crate::log::event_type::EventType;
use crate::task::graph::waiting_tasks;
use crate::task::{ReportRequest, Task, TaskState};
use crate::view::StateView;

type BuiltinResult = Result<Vec<HookAction>, PureHookError>;

/// Returns all built-in hooks, in order of priority.
pub(crate) fn builtin_hooks() -> [PureHook; 4] {
    use EventType::{TaskCompleted, TaskCreated, TaskStarted};
    [
        PureHook::new("auto-label-by-keyword", [TaskCreated], suggest_labels)
            .priority(5)
            .disabled()
            .description("suggests labels by words of the goal"),
        PureHook::new("auto-create-review-task", [TaskCompleted], create_review_task)
            .priority(10)
            .description("makes a review task when an agent's task is completed"),
        PureHook::new("check-dependency-satisfaction", [TaskCompleted], check_dependents)
            .priority(20)
            .description("makes dependents ready when their last dependency is completed"),
        PureHook::new("track-agent-task-lifecycle", [TaskCreated, TaskStarted, TaskCompleted], track_agent_task)
            .priority(50)
            .description("records how long an agent's task took"),
    ]
}

/// Returns the task of an event if it is an agent's.
fn find_agent_task(record: &EventRecord, view: &dyn StateView) -> Result<Option<Task>, PureHookError> {
    let task = record.envelope.node.task_id().map(|id| view.find_task(id)).transpose()?.flatten();
    Ok(task.filter(|task| task.has_label("agent")))
}

fn create_review_task(record: &EventRecord, view: &dyn StateView) -> BuiltinResult {
    let Some(task) = find_agent_task(record, view)?.filter(|task| !task.has_label("review")) else { return Ok(vec![]) };
    let mut goal = format!("Review: {}", task.goal);
    goal.truncate(goal.floor_char_boundary(EngineLimits::GOAL_BYTES));
    Ok(vec![Action::CreateTask(NewTask {
        goal,
        deliverables: vec!["Review completed".to_owned(), "Feedback provided".to_owned()],
        labels: ["review".to_owned()].into_iter().chain(task.labels).take(Limits::LABELS).collect(),
        priority: task.priority,
        parent: Some(task.id),
        report: Some(ReportRequest { reviews: Some(task.id), by_type: false }),
        ..NewTask::default()
    })])
}

fn check_dependents(record: &EventRecord, view: &dyn StateView) -> BuiltinResult {
    let Some(completed) = record.envelope.node.task_id() else { return Ok(vec![]) };
    let mut actions = Vec::new();
    for id in waiting_tasks(view, completed)? {
        let Some(task) = view.find_task(id)? else { continue };
        if task.state == TaskState::Created && task.open_dependencies == 0 {
            let action = TaskAction::Ready { after: Some(completed) };
            actions.push(HookAction::UpdateTask { task: id, action });
        }
    }
    Ok(actions)
}

fn track_agent_task(record: &EventRecord, view: &dyn StateView) -> BuiltinResult {
    if record.kind() != EventType::TaskCompleted {
        return Ok(vec![]);
    }
    let Some(task) = find_agent_task(record, view)? else { return Ok(vec![]) };
    let took = task.started_at.zip(task.completed_at).map(|(from, to)| to.millis() - from.millis());
    let metrics = payload::AgentMetrics {
        // The clock was set back in between, so the duration is unknown.
        duration_ms: took.filter(|millis| *millis >= 0),
        goal: task.goal,
        labels: task.labels,
        priority: task.priority,
        deliverables: task.deliverables,
    };
    Ok(vec![Action::Log { node: Node::Task(task.id), event: metrics.into() }])
}

/// Labels, and the words that suggest them.
const LABEL_KEYWORDS: &[(&str, &[&str])] = &[
    ("bug", &["bug", "bugs", "crash", "fix", "fixes", "regression"]),
    ("docs", &["docs", "document", "documentation", "readme"]),
    ("performance", &["performance", "slow", "optimise", "optimize"]),
    ("refactor", &["refactor", "refactoring", "cleanup"]),
    ("research", &["research", "investigate", "explore"]),
    ("review", &["review"]),
    ("security", &["security", "vulnerability", "vulnerabilities", "cve"]),
    ("test", &["test", "tests", "testing", "coverage"]),
];

fn suggest_labels(record: &EventRecord, _: &dyn StateView) -> BuiltinResult {
    let Event::TaskCreated(created) = &record.envelope.event else { return Ok(vec![]) };
    let goal = created.goal.to_lowercase();
    let words: Vec<&str> = goal.split(|c: char| !c.is_alphanumeric()).collect();
    let found: Vec<(&str, &str)> = LABEL_KEYWORDS
        .iter()
        .filter(|(label, _)| !created.labels.iter().any(|own| own == label))
        .filter_map(|(label, keywords)| Some((*label, *keywords.iter().find(|word| words.contains(word))?)))
        .collect();
    if found.is_empty() {
        return Ok(vec![]);
    }
    let (labels, keywords) = found.into_iter().map(|(label, word)| (label.to_owned(), word.to_owned())).unzip();
    let suggestion = payload::AutoLabelSuggestion { labels, keywords };
    Ok(vec![Action::Log { node: record.envelope.node, event: suggestion.into() }])
}
