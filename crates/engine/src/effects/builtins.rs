//! The built-in pure hooks: they make dependents ready, create reviews and record metrics. No other code has rules for
//! these.

use crate::command::NewTask;
use crate::command::limits::Limits;
use crate::effects::action::{Action, TaskAction};
use crate::effects::registry::{Hook, HookFault};
use crate::log::event::{Event, Node, Record, payload};
use crate::log::event_type::EventType;
use crate::task::graph::waiters;
use crate::task::{ReportRequest, State, Task};
use crate::view::View;

type Answer = Result<Vec<Action>, HookFault>;

/// Returns all built-in hooks, in order of priority.
pub(crate) fn all() -> [Hook; 4] {
    use EventType::{TaskCompleted, TaskCreated, TaskStarted};
    [
        Hook::new("auto-label-by-keyword", [TaskCreated], suggest_labels)
            .priority(5)
            .disabled()
            .description("suggests labels by words of the goal"),
        Hook::new("auto-create-review-task", [TaskCompleted], create_review)
            .priority(10)
            .description("makes a review task when an agent's task is completed"),
        Hook::new("check-dependency-satisfaction", [TaskCompleted], check_dependents)
            .priority(20)
            .description("makes dependents ready when their last dependency is completed"),
        Hook::new("track-agent-task-lifecycle", [TaskCreated, TaskStarted, TaskCompleted], track_agent)
            .priority(50)
            .description("records how long an agent's task took"),
    ]
}

/// Returns the task of an event if it is an agent's.
fn agent_task(record: &Record, view: &dyn View) -> Result<Option<Task>, HookFault> {
    let task = record.envelope.node.task().map(|id| view.task(id)).transpose()?.flatten();
    Ok(task.filter(|task| task.has_label("agent")))
}

fn create_review(record: &Record, view: &dyn View) -> Answer {
    let Some(task) = agent_task(record, view)?.filter(|task| !task.has_label("review")) else { return Ok(vec![]) };
    let mut goal = format!("Review: {}", task.goal);
    goal.truncate(goal.floor_char_boundary(Limits::GOAL));
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

fn check_dependents(record: &Record, view: &dyn View) -> Answer {
    let Some(completed) = record.envelope.node.task() else { return Ok(vec![]) };
    let mut actions = Vec::new();
    for id in waiters(view, completed)? {
        let Some(task) = view.task(id)? else { continue };
        if task.state == State::Created && task.open_dependencies == 0 {
            let action = TaskAction::Ready { after: Some(completed) };
            actions.push(Action::UpdateTask { task: id, action });
        }
    }
    Ok(actions)
}

fn track_agent(record: &Record, view: &dyn View) -> Answer {
    if record.kind() != EventType::TaskCompleted {
        return Ok(vec![]);
    }
    let Some(task) = agent_task(record, view)? else { return Ok(vec![]) };
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
const KEYWORDS: &[(&str, &[&str])] = &[
    ("bug", &["bug", "bugs", "crash", "fix", "fixes", "regression"]),
    ("docs", &["docs", "document", "documentation", "readme"]),
    ("performance", &["performance", "slow", "optimise", "optimize"]),
    ("refactor", &["refactor", "refactoring", "cleanup"]),
    ("research", &["research", "investigate", "explore"]),
    ("review", &["review"]),
    ("security", &["security", "vulnerability", "vulnerabilities", "cve"]),
    ("test", &["test", "tests", "testing", "coverage"]),
];

fn suggest_labels(record: &Record, _: &dyn View) -> Answer {
    let Event::TaskCreated(created) = &record.envelope.event else { return Ok(vec![]) };
    let goal = created.goal.to_lowercase();
    let words: Vec<&str> = goal.split(|c: char| !c.is_alphanumeric()).collect();
    let found: Vec<(&str, &str)> = KEYWORDS
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
