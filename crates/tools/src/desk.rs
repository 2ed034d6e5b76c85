//! Where tools are called.

use std::path::Path;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use windlass_engine::validation::ValidationRule;
use windlass_engine::{Command, EventType, Record, RunId, Session, Task, TaskId, Timestamp, TypeName, Types, View};
use windlass_hooks::Mask;
use windlass_process::Control;
use windlass_store::Sqlite;

use crate::catalogue::{Effect, find};
use crate::closure::Closures;
use crate::error::{CallerHint, Code, ToolError};
use crate::shape::read;
use crate::validation::Workshop;
use crate::{checkpoint, hook, iteration, note, session, task};

/// What the tools stand on.
pub trait Ground {
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

/// Takes calls, one at a time.
pub struct Desk<G> {
    pub(crate) ground: G,
    pub(crate) closures: Closures,
}

impl<G: Ground> Desk<G> {
    pub fn new(ground: G) -> Self {
        Self { ground, closures: Closures::default() }
    }

    pub fn ground(&self) -> &G {
        &self.ground
    }

    /// Calls a tool. Programs that it runs listen to `control`; a call that is called off is an error.
    pub fn call(&mut self, tool: &str, arguments: Value, control: &Control) -> Result<Value, ToolError> {
        let said = self.say(tool, arguments, control)?;
        // It was written as JSON, but may be nested too deep to be read again.
        serde_json::from_str(said.get()).map_err(|error| ToolError::new(Code::System, error))
    }

    /// Calls a tool, with its answer as it is written.
    pub fn say(&mut self, tool: &str, arguments: Value, control: &Control) -> Result<Box<RawValue>, ToolError> {
        let tool = find(tool)?;
        // Before anything is made of it: what a tool records, or a hook says, is made of what was given.
        let arguments = if tool.effect == Effect::ReadOnly { arguments } else { self.ground.mask()?.value(arguments) };
        let mut call = Call { ground: &mut self.ground, control, closures: &self.closures };
        match tool.name {
            "iteration_start" => answer(&iteration::start(&mut call, read(tool, arguments)?)?),
            "iteration_validate" => answer(&iteration::validate(&mut call, read(tool, arguments)?)?),
            "iteration_next" => answer(&iteration::next(&mut call, read(tool, arguments)?)?),
            "iteration_complete" => answer(&iteration::complete(&mut call, read(tool, arguments)?)?),
            "hook_register" => answer(&hook::register(&mut call, read(tool, arguments)?)?),
            "hook_evaluate" => answer(&hook::evaluate(&mut call, read(tool, arguments)?)?),
            "hook_list" => answer(&hook::list(&mut call, read(tool, arguments)?)?),
            "hook_clear" => answer(&hook::clear(&mut call, read(tool, arguments)?)?),
            "checkpoint_create" => answer(&checkpoint::create(&mut call, read(tool, arguments)?)?),
            "checkpoint_list" => answer(&checkpoint::list(&mut call, read(tool, arguments)?)?),
            "checkpoint_resume" => answer(&checkpoint::resume(&mut call, read(tool, arguments)?)?),
            "task_create" => answer(&task::create(&mut call, read(tool, arguments)?)?),
            "task_get" => answer(&task::get(&mut call, read(tool, arguments)?)?),
            "task_list" => answer(&task::list(&mut call, read(tool, arguments)?)?),
            "task_update" => answer(&task::update(&mut call, read(tool, arguments)?)?),
            "task_next" => answer(&task::next(&mut call, read(tool, arguments)?)?),
            "note_add" => answer(&note::add(&mut call, read(tool, arguments)?)?),
            "session_complete" => answer(&session::complete(&mut call, read(tool, arguments)?)?),
            other => unreachable!("the tool `{other}` is in the catalogue, and does nothing"),
        }
    }
}

/// One call that is under way.
pub(crate) struct Call<'a, G> {
    pub ground: &'a mut G,
    pub control: &'a Control,
    pub closures: &'a Closures,
}

impl<G: Ground> Call<'_, G> {
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
        let task = task::find(self, task)?;
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

fn answer(output: &impl Serialize) -> Result<Box<RawValue>, ToolError> {
    Ok(to_raw_value(output).expect("what tools answer has string keys"))
}
