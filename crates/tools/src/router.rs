//! Router from the name of a tool and its arguments to the tool.

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use windlass_engine::{AgentContext, Command, HookId, NewHook, StopHook, StopRuling, TaskId};
use windlass_process::Control;

use crate::catalogue::find;
use crate::closure::Closures;
use crate::error::{Code, ToolError};
use crate::host::{ToolCall, ToolHost};
use crate::shape::read;
use crate::tool::Effect;
use crate::{checkpoint, hook, iteration, note, session, task};

/// Router of tool calls, one at a time.
pub struct ToolRouter<G> {
    pub(crate) ground: G,
    pub(crate) closures: Closures,
}

impl<G: ToolHost> ToolRouter<G> {
    pub fn new(ground: G) -> Self {
        Self { ground, closures: Closures::default() }
    }

    pub fn ground(&self) -> &G {
        &self.ground
    }

    /// Calls a tool. `control` cancels its programs; a cancelled call is an error.
    pub fn call(&mut self, tool: &str, arguments: Value, control: &Control) -> Result<Value, ToolError> {
        let said = self.say(tool, arguments, control)?;
        // The answer is JSON, but may be nested too deep to be parsed.
        serde_json::from_str(said.get()).map_err(|error| ToolError::new(Code::System, error))
    }

    /// Calls a tool, and returns its answer as JSON text.
    pub fn say(&mut self, tool: &str, arguments: Value, control: &Control) -> Result<Box<RawValue>, ToolError> {
        let tool = find(tool)?;
        // Mask before the call: records and answers of hooks are made of the arguments.
        let arguments = if tool.effect == Effect::ReadOnly { arguments } else { self.ground.mask()?.value(arguments) };
        let mut call = ToolCall { ground: &mut self.ground, control, closures: &self.closures };
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

impl<G: ToolHost> ToolRouter<G> {
    /// Adds the code for stop hooks of a name, including those that are already registered.
    pub fn know(
        &mut self,
        name: impl Into<String>,
        decide: impl Fn(&AgentContext) -> Result<StopRuling, String> + Send + 'static,
    ) {
        self.closures.0.insert(name.into(), Box::new(decide));
    }

    /// Registers known code as a stop hook of a task.
    pub fn register(&mut self, task: TaskId, name: &str) -> Result<HookId, ToolError> {
        let hook = StopHook::Closure { name: name.to_owned() };
        let command = Command::RegisterHook { task, new: NewHook { hook, enabled: true, metadata: Map::new() } };
        let control = Control::new();
        let mut call = ToolCall { ground: &mut self.ground, control: &control, closures: &self.closures };
        let records = call.execute(&command)?;
        Ok(HookId(records.first().expect("what is registered has its event").seq.0))
    }
}

fn answer(output: &impl Serialize) -> Result<Box<RawValue>, ToolError> {
    Ok(to_raw_value(output).expect("what tools answer has string keys"))
}
