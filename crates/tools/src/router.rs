//! Router from the name of a tool and its arguments to the tool.

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use windlass_engine::{AgentContext, Command, HookId, NewStopHook, StopHook, StopRuling, TaskId};
use windlass_process::RunControl;

use crate::catalogue::find_tool;
use crate::closure::StopHookClosures;
use crate::error::{ToolError, ToolErrorCode};
use crate::host::{ToolCall, ToolHost};
use crate::schema::parse_arguments;
use crate::tool::ToolEffect;
use crate::{checkpoint, hook, iteration, note, session, task};

/// Router of tool calls, one at a time.
pub struct ToolRouter<G> {
    pub(crate) host: G,
    pub(crate) closures: StopHookClosures,
}

impl<G: ToolHost> ToolRouter<G> {
    pub fn new(host: G) -> Self {
        Self { host, closures: StopHookClosures::default() }
    }

    pub fn host(&self) -> &G {
        &self.host
    }

    /// Calls a tool. `control` cancels its programs; a cancelled call is an error.
    pub fn call_tool(&mut self, tool: &str, arguments: Value, control: &RunControl) -> Result<Value, ToolError> {
        let said = self.call_tool_as_json(tool, arguments, control)?;
        // The answer is JSON, but may be nested too deep to be parsed.
        serde_json::from_str(said.get()).map_err(|error| ToolError::new(ToolErrorCode::System, error))
    }

    /// Calls a tool, and returns its answer as JSON text.
    pub fn call_tool_as_json(
        &mut self,
        tool: &str,
        arguments: Value,
        control: &RunControl,
    ) -> Result<Box<RawValue>, ToolError> {
        let tool = find_tool(tool)?;
        // Mask before the call: records and answers of hooks are made of the arguments.
        let arguments = if tool.effect == ToolEffect::ReadOnly {
            arguments
        } else {
            self.host.secret_mask()?.mask_value(arguments)
        };
        let mut call = ToolCall { host: &mut self.host, control, closures: &self.closures };
        match tool.name {
            "iteration_start" => {
                serialize_output(&iteration::start_series(&mut call, parse_arguments(tool, arguments)?)?)
            }
            "iteration_validate" => {
                serialize_output(&iteration::validate_iteration(&mut call, parse_arguments(tool, arguments)?)?)
            }
            "iteration_next" => {
                serialize_output(&iteration::advance_series(&mut call, parse_arguments(tool, arguments)?)?)
            }
            "iteration_complete" => {
                serialize_output(&iteration::complete_series(&mut call, parse_arguments(tool, arguments)?)?)
            }
            "hook_register" => serialize_output(&hook::register_hook(&mut call, parse_arguments(tool, arguments)?)?),
            "hook_evaluate" => serialize_output(&hook::evaluate_hooks(&mut call, parse_arguments(tool, arguments)?)?),
            "hook_list" => serialize_output(&hook::list_hooks(&mut call, parse_arguments(tool, arguments)?)?),
            "hook_clear" => serialize_output(&hook::clear_hooks(&mut call, parse_arguments(tool, arguments)?)?),
            "checkpoint_create" => {
                serialize_output(&checkpoint::create_checkpoint(&mut call, parse_arguments(tool, arguments)?)?)
            }
            "checkpoint_list" => {
                serialize_output(&checkpoint::list_checkpoints(&mut call, parse_arguments(tool, arguments)?)?)
            }
            "checkpoint_resume" => {
                serialize_output(&checkpoint::resume_checkpoint(&mut call, parse_arguments(tool, arguments)?)?)
            }
            "task_create" => serialize_output(&task::create_task(&mut call, parse_arguments(tool, arguments)?)?),
            "task_get" => serialize_output(&task::get_task(&mut call, parse_arguments(tool, arguments)?)?),
            "task_list" => serialize_output(&task::list_tasks(&mut call, parse_arguments(tool, arguments)?)?),
            "task_update" => serialize_output(&task::update_task(&mut call, parse_arguments(tool, arguments)?)?),
            "task_next" => serialize_output(&task::find_next_task(&mut call, parse_arguments(tool, arguments)?)?),
            "note_add" => serialize_output(&note::add_note(&mut call, parse_arguments(tool, arguments)?)?),
            "session_complete" => {
                serialize_output(&session::complete_session(&mut call, parse_arguments(tool, arguments)?)?)
            }
            other => unreachable!("the tool `{other}` is in the catalogue, and does nothing"),
        }
    }
}

impl<G: ToolHost> ToolRouter<G> {
    /// Adds the code for stop hooks of a name, including those that are already registered.
    pub fn add_closure(
        &mut self,
        name: impl Into<String>,
        decide: impl Fn(&AgentContext) -> Result<StopRuling, String> + Send + 'static,
    ) {
        self.closures.0.insert(name.into(), Box::new(decide));
    }

    /// Registers known code as a stop hook of a task.
    pub fn register_closure(&mut self, task: TaskId, name: &str) -> Result<HookId, ToolError> {
        let hook = StopHook::Closure { name: name.to_owned() };
        let command = Command::RegisterHook { task, new: NewStopHook { hook, enabled: true, metadata: Map::new() } };
        let control = RunControl::new();
        let mut call = ToolCall { host: &mut self.host, control: &control, closures: &self.closures };
        let records = call.execute_command(&command)?;
        Ok(HookId(records.first().expect("what is registered has its event").seq.0))
    }
}

fn serialize_output(output: &impl Serialize) -> Result<Box<RawValue>, ToolError> {
    Ok(to_raw_value(output).expect("what tools answer has string keys"))
}
