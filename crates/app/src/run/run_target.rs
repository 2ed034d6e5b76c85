//! The request for a run, and its target.

use windlass_engine::{EngineLimits, Session, SessionName, TaskId, WorkSource};

use crate::{Failure, FailureCode};

/// A request to run one agent.
#[derive(Debug, Clone, Default)]
pub struct RunRequest {
    pub goal: Option<String>,
    pub task: Option<TaskId>,
    /// The task is reopened because its change conflicts with the base.
    pub resolve_conflict: bool,
    /// A known agent, a name of `agents:`, `acp:CMD`, `command:CMD` or `scripted:FILE`; the configuration's agent if `None`.
    pub agent: Option<String>,
    pub max_iterations: Option<u32>,
    pub session: Option<SessionName>,
    /// Starts a new session even if there is an unfinished one.
    pub fresh: bool,
}

impl RunRequest {
    /// Returns the target of the run; fails on an unusable goal.
    pub fn parse_target(&self) -> Result<RunTarget<'_>, Failure> {
        let goal = match (&self.goal, self.task) {
            (Some(goal), _) => goal,
            (None, Some(id)) => return Ok(RunTarget::Task(id)),
            (None, None) => return Ok(RunTarget::Graph),
        };
        if goal.trim().is_empty() {
            return Err(Failure::new(FailureCode::Usage, "the goal is empty")
                .with_hint("give a goal, or none to work on the ready tasks"));
        }
        if goal.len() > EngineLimits::GOAL_BYTES {
            let most = EngineLimits::GOAL_BYTES / 1024;
            return Err(Failure::new(FailureCode::Usage, format!("the goal is longer than {most} KiB"))
                .with_hint("put the rest into a file, and name the file in the goal"));
        }
        Ok(RunTarget::Goal(goal))
    }

    /// Returns the task whose conflict is to be resolved.
    pub fn conflicting_task(&self) -> Option<TaskId> {
        self.task.filter(|_| self.resolve_conflict)
    }
}

/// The target of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunTarget<'a> {
    Goal(&'a str),
    Task(TaskId),
    /// The ready tasks, one after another.
    Graph,
}

impl RunTarget<'_> {
    pub fn work_source(self) -> WorkSource {
        match self {
            Self::Goal(_) | Self::Task(_) => WorkSource::Given,
            Self::Graph => WorkSource::Graph,
        }
    }

    /// Returns whether a session works on this target.
    pub fn is_target_of(self, session: &Session) -> bool {
        match self {
            Self::Goal(goal) => session.goal.as_deref() == Some(goal),
            Self::Task(id) => session.task == Some(id) && session.work == WorkSource::Given,
            Self::Graph => session.work == WorkSource::Graph,
        }
    }
}
