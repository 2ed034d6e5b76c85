//! `task_list`

use serde::{Deserialize, Serialize};
use windlass_engine::{State, TaskId};
use windlass_store::TaskFilter;

use super::Glance;
use crate::error::ToolError;
use crate::host::{ToolCall, ToolHost};
use crate::shape::{Field, Id, Kind};
use crate::tool::{Effect, Tool};

/// Default number of tasks in a list.
const USUAL: usize = 50;

pub(crate) const LIST: Tool = Tool {
    name: "task_list",
    description: "Tasks at a glance, oldest first; by default the open ones.",
    example: r#"{"state": "ready"}"#,
    effect: Effect::ReadOnly,
    fields: &[
        Field::optional("state", "", Kind::OneOf(STATES)),
        Field::optional("label", "", Kind::Words(windlass_engine::Limits::LABEL)),
        Field::optional("limit", "default 50", Kind::Whole(1, 500)),
        Field::optional("after", "the `next` of the last answer", Kind::Id(Id::Task)),
    ],
};

const STATES: &[&str] = &[
    "created",
    "ready",
    "active",
    "submitted",
    "completed",
    "blocked",
    "needs_continuation",
    "failed",
    "deleted",
    "all",
];

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct List {
    state: Option<Wanted>,
    label: Option<String>,
    limit: Option<usize>,
    after: Option<TaskId>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum All {
    All,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Wanted {
    All(All),
    One(State),
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Listed {
    tasks: Vec<Glance>,
    /// ID to continue after, if there are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<TaskId>,
}

pub(crate) fn list<G: ToolHost>(call: &mut ToolCall<'_, G>, given: List) -> Result<Listed, ToolError> {
    let states = match given.state {
        Some(Wanted::All(All::All)) => Vec::new(),
        Some(Wanted::One(state)) => vec![state],
        None => State::ALL.into_iter().filter(|state| !matches!(state, State::Completed | State::Deleted)).collect(),
    };
    let filter =
        TaskFilter { states, labels: given.label.into_iter().collect(), after: given.after, ..TaskFilter::default() };
    let most = given.limit.unwrap_or(USUAL);
    let (mut tasks, mut more) = (Vec::new(), false);
    call.ground.store().snapshot()?.tasks(&filter, |task| {
        more = tasks.len() == most;
        if !more {
            tasks.push(task);
        }
        !more
    })?;
    let next = tasks.last().map(|task| task.id).filter(|_| more);
    Ok(Listed { tasks: tasks.into_iter().map(Glance::from).collect(), next })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_can_be_asked_for() {
        let names = State::ALL.map(State::name);
        assert_eq!(STATES, [&names[..], &["all"]].concat());
    }
}
