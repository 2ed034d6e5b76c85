//! What the tools run against, and one call of a tool.

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
    /// What is known.
    fn store(&self) -> &Sqlite;

    /// Has a command decided and committed, and runs the hooks that it makes owed, under `control`.
    fn execute(&mut self, command: &Command, control: &Control) -> Result<Vec<Record>, ToolError>;

    /// The types of tasks that there are, and who may work on them.
    fn types(&mut self) -> Result<Types, ToolError> {
        Ok(Types::default())
    }

    /// The validation rules that the configuration has for tasks of a type.
    fn configured_rules(&mut self, _kind: Option<&TypeName>) -> Result<Vec<ValidationRule>, ToolError> {
        Ok(Vec::new())
    }

    /// The turn from inside which the tools are called, if there is one.
    fn run(&self) -> Result<Option<RunId>, ToolError>;

    fn now(&self) -> Timestamp;

    /// The project's, below which every path of a rule lies.
    fn directory(&self) -> &Path;

    /// The secrets of the project, which nobody is to see, and no log is to keep.
    fn mask(&mut self) -> Result<&Mask, ToolError>;

    /// Where programs for rules and for hooks of agents are run, and which may be.
    fn workshop(&mut self) -> Result<Workshop<'_>, ToolError>;
}

/// A call of a tool while it runs.
pub(crate) struct ToolCall<'a, G> {
    pub ground: &'a mut G,
    pub control: &'a Control,
    pub closures: &'a Closures,
}

impl<G: ToolHost> ToolCall<'_, G> {
    /// Has a command decided. Answers what it made happen, its own event first: that the configuration was recorded before
    /// it says nothing about it.
    pub fn execute(&mut self, command: &Command) -> Result<Vec<Record>, ToolError> {
        let mut records = self.ground.execute(command, self.control)?;
        records.retain(|record| record.envelope.event.kind() != EventType::ConfigRecorded);
        Ok(records)
    }

    /// The session from inside whose turn the tool is called.
    pub fn session(&self) -> Result<Option<Session>, ToolError> {
        let Some(run) = self.ground.run()? else { return Ok(None) };
        Ok(self.ground.store().snapshot()?.session(&run.session)?)
    }

    /// Returns a task that has to be there.
    pub fn task(&self, id: TaskId) -> Result<Task, ToolError> {
        let task = self.ground.store().snapshot()?.task(id)?;
        task.ok_or_else(|| windlass_engine::Refusal::UnknownTask(id).into())
    }

    /// Whether the turn from inside which the tool is called works on this task.
    pub fn holds(&self, task: &Task) -> Result<bool, ToolError> {
        let run = self.ground.run()?;
        let holder = task.lease.as_ref().and_then(|lease| lease.session.as_ref());
        Ok(run.is_some_and(|run| holder == Some(&run.session)))
    }

    /// Has a command decided that blocks a task. Inside the turn that holds it, only the turn's own message does that.
    pub fn block(&mut self, task: TaskId, command: &Command) -> Result<Vec<Record>, ToolError> {
        let error = match self.execute(command) {
            Err(error) if error.code == Code::Refused => error,
            done => return done,
        };
        let task = self.task(task)?;
        Err(if self.holds(&task)? { ToolError { hints: vec![self.stuck(&task)?], ..error } } else { error })
    }

    /// What to do about a task with which only a person can help.
    pub fn stuck(&self, task: &Task) -> Result<CallerHint, ToolError> {
        Ok(match self.holds(task)? {
            true => "end your message with `<promise>BLOCKED</promise>` and say what is needed".into(),
            false => CallerHint::tool("task_update", format!("with state blocked leaves {} to a person", task.id)),
        })
    }
}
