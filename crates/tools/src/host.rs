//! Backend of the tools, and one call of a tool.

use std::path::Path;

use windlass_engine::validation::ValidationRule;
use windlass_engine::{
    Command, EventRecord, EventType, RunId, Session, StateView, Task, TaskId, TaskTypes, Timestamp, TypeName,
};
use windlass_hooks::SecretMask;
use windlass_process::RunControl;
use windlass_store::SqliteStore;

use crate::closure::StopHookClosures;
use crate::error::{CallerHint, ToolError, ToolErrorCode};
use crate::validation::ValidatorEnv;

/// The backend that the tools run against.
pub trait ToolHost {
    /// Returns the store.
    fn store(&self) -> &SqliteStore;

    /// Commits a command, and runs the hooks that follow from it, under `control`.
    fn execute_command(&mut self, command: &Command, control: &RunControl) -> Result<Vec<EventRecord>, ToolError>;

    /// Returns the task types, and who may work on them.
    fn task_types(&mut self) -> Result<TaskTypes, ToolError> {
        Ok(TaskTypes::default())
    }

    /// Returns the configured validation rules for tasks of a type.
    fn configured_rules(&mut self, _kind: Option<&TypeName>) -> Result<Vec<ValidationRule>, ToolError> {
        Ok(Vec::new())
    }

    /// Returns the turn that calls the tools, if there is one.
    fn calling_run(&self) -> Result<Option<RunId>, ToolError>;

    fn now(&self) -> Timestamp;

    /// Returns the project's directory, which has every path of a rule.
    fn project_directory(&self) -> &Path;

    /// Returns the mask for the project's secrets, which no person, agent or log may see.
    fn secret_mask(&mut self) -> Result<&SecretMask, ToolError>;

    /// Returns the environment for programs of rules and of agents' hooks, with the permission to run them.
    fn validator_env(&mut self) -> Result<ValidatorEnv<'_>, ToolError>;
}

/// A call of a tool in progress.
pub(crate) struct ToolCall<'a, G> {
    pub host: &'a mut G,
    pub control: &'a RunControl,
    pub closures: &'a StopHookClosures,
}

impl<G: ToolHost> ToolCall<'_, G> {
    /// Commits a command. Returns its events, without the record of the configuration that may come first.
    pub fn execute_command(&mut self, command: &Command) -> Result<Vec<EventRecord>, ToolError> {
        let mut records = self.host.execute_command(command, self.control)?;
        records.retain(|record| record.envelope.event.kind() != EventType::ConfigRecorded);
        Ok(records)
    }

    /// Returns the session whose turn calls the tool.
    pub fn calling_session(&self) -> Result<Option<Session>, ToolError> {
        let Some(run) = self.host.calling_run()? else { return Ok(None) };
        Ok(self.host.store().begin_snapshot()?.find_session(&run.session)?)
    }

    /// Returns a task, or an error if it does not exist.
    pub fn load_task(&self, id: TaskId) -> Result<Task, ToolError> {
        let task = self.host.store().begin_snapshot()?.find_task(id)?;
        task.ok_or_else(|| windlass_engine::Refusal::UnknownTask(id).into())
    }

    /// Returns whether the calling turn works on this task.
    pub fn holds_task(&self, task: &Task) -> Result<bool, ToolError> {
        let run = self.host.calling_run()?;
        let holder = task.lease.as_ref().and_then(|lease| lease.session.as_ref());
        Ok(run.is_some_and(|run| holder == Some(&run.session)))
    }

    /// Commits a command that blocks a task. The turn that holds the task has to use its own message instead.
    pub fn block_task(&mut self, task: TaskId, command: &Command) -> Result<Vec<EventRecord>, ToolError> {
        let error = match self.execute_command(command) {
            Err(error) if error.code == ToolErrorCode::Refused => error,
            done => return done,
        };
        let task = self.load_task(task)?;
        Err(if self.holds_task(&task)? { ToolError { hints: vec![self.stuck(&task)?], ..error } } else { error })
    }

    /// Returns a hint for a task that only a person can help with.
    pub fn stuck_task_hint(&self, task: &Task) -> Result<CallerHint, ToolError> {
        Ok(match self.holds_task(task)? {
            true => "end your message with `<promise>BLOCKED</promise>` and say what is needed".into(),
            false => CallerHint::tool("task_update", format!("with state blocked leaves {} to a person", task.id)),
        })
    }
}
