//! Backend of the tools, and one call of a tool.

use std::path::Path;

use windlass_engine::validation::ValidationRule;
use windlass_engine::{Command, EventType, Record, RunId, Session, Task, TaskId, Timestamp, TypeName, Types, View};
use windlass_hooks::Mask;
use windlass_process::Control;
use windlass_store::Sqlite;

use crate::closure::Closures;
use crate::error::{CallerHint, Code, ToolError};
use crate::validation::Workshop;

/// The backend that the tools run against.
pub trait ToolHost {
    /// Returns the store.
    fn store(&self) -> &Sqlite;

    /// Commits a command, and runs the hooks that follow from it, under `control`.
    fn execute(&mut self, command: &Command, control: &Control) -> Result<Vec<Record>, ToolError>;

    /// Returns the task types, and who may work on them.
    fn types(&mut self) -> Result<Types, ToolError> {
        Ok(Types::default())
    }

    /// Returns the configured validation rules for tasks of a type.
    fn configured_rules(&mut self, _kind: Option<&TypeName>) -> Result<Vec<ValidationRule>, ToolError> {
        Ok(Vec::new())
    }

    /// Returns the turn that calls the tools, if there is one.
    fn run(&self) -> Result<Option<RunId>, ToolError>;

    fn now(&self) -> Timestamp;

    /// Returns the project's directory, which has every path of a rule.
    fn directory(&self) -> &Path;

    /// Returns the mask for the project's secrets, which no person, agent or log may see.
    fn mask(&mut self) -> Result<&Mask, ToolError>;

    /// Returns the environment for programs of rules and of agents' hooks, with the permission to run them.
    fn workshop(&mut self) -> Result<Workshop<'_>, ToolError>;
}

/// A call of a tool in progress.
pub(crate) struct ToolCall<'a, G> {
    pub ground: &'a mut G,
    pub control: &'a Control,
    pub closures: &'a Closures,
}

impl<G: ToolHost> ToolCall<'_, G> {
    /// Commits a command. Returns its events, without the record of the configuration that may come first.
    pub fn execute(&mut self, command: &Command) -> Result<Vec<Record>, ToolError> {
        let mut records = self.ground.execute(command, self.control)?;
        records.retain(|record| record.envelope.event.kind() != EventType::ConfigRecorded);
        Ok(records)
    }

    /// Returns the session whose turn calls the tool.
    pub fn session(&self) -> Result<Option<Session>, ToolError> {
        let Some(run) = self.ground.run()? else { return Ok(None) };
        Ok(self.ground.store().snapshot()?.session(&run.session)?)
    }

    /// Returns a task, or an error if it does not exist.
    pub fn task(&self, id: TaskId) -> Result<Task, ToolError> {
        let task = self.ground.store().snapshot()?.task(id)?;
        task.ok_or_else(|| windlass_engine::Refusal::UnknownTask(id).into())
    }

    /// Returns whether the calling turn works on this task.
    pub fn holds(&self, task: &Task) -> Result<bool, ToolError> {
        let run = self.ground.run()?;
        let holder = task.lease.as_ref().and_then(|lease| lease.session.as_ref());
        Ok(run.is_some_and(|run| holder == Some(&run.session)))
    }

    /// Commits a command that blocks a task. The turn that holds the task has to use its own message instead.
    pub fn block(&mut self, task: TaskId, command: &Command) -> Result<Vec<Record>, ToolError> {
        let error = match self.execute(command) {
            Err(error) if error.code == Code::Refused => error,
            done => return done,
        };
        let task = self.task(task)?;
        Err(if self.holds(&task)? { ToolError { hints: vec![self.stuck(&task)?], ..error } } else { error })
    }

    /// Returns a hint for a task that only a person can help with.
    pub fn stuck(&self, task: &Task) -> Result<CallerHint, ToolError> {
        Ok(match self.holds(task)? {
            true => "end your message with `<promise>BLOCKED</promise>` and say what is needed".into(),
            false => CallerHint::tool("task_update", format!("with state blocked leaves {} to a person", task.id)),
        })
    }
}
