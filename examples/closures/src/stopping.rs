//! A stop hook that is a closure, and the tools that call it.
//!
//! The tools run on a `ToolHost`, which provides a store and executes commands. In this program the project is the host.

use std::path::Path;

use serde_json::{Value, json};
use windlass_engine::{
    AgentContext, Authority, Command, CommandOrigin, EventRecord, RuleAction, RunId, StopRuling, TaskId, Timestamp,
};
use windlass_store::{SqliteStore, Store};
use windlass_tools::validation::ValidatorEnv;
use windlass_tools::{RunControl, SecretMask, ToolError, ToolErrorCode, ToolHost, ToolRouter};

use crate::project::{Project, nonce, now};

impl ToolHost for Project {
    fn store(&self) -> &SqliteStore {
        &self.store
    }

    fn execute_command(&mut self, command: &Command, _: &RunControl) -> Result<Vec<EventRecord>, ToolError> {
        let origin =
            CommandOrigin { by: "ada".to_owned(), at: self.now(), authority: Authority::Person, run: None, via: None };
        let nonce = nonce().map_err(|error| ToolError::new(ToolErrorCode::System, error))?;
        Ok(self.store.execute_command(&self.rules, &origin, command, nonce)?)
    }

    /// This program has no secrets.
    fn secret_mask(&mut self) -> Result<&SecretMask, ToolError> {
        Ok(&self.mask)
    }

    fn now(&self) -> Timestamp {
        now().expect("it is later than 1970")
    }

    fn project_directory(&self) -> &Path {
        &self.directory
    }

    /// This program does not run inside an agent's turn.
    fn calling_run(&self) -> Result<Option<RunId>, ToolError> {
        Ok(None)
    }

    /// The hooks are closures and start no programs.
    fn validator_env(&mut self) -> Result<ValidatorEnv<'_>, ToolError> {
        Err(ToolError::new(ToolErrorCode::Refused, "this program starts no others"))
    }
}

/// Lets the work stop when something was changed, and asks for a person after ten iterations.
pub fn wants_changes(context: &AgentContext) -> Result<StopRuling, String> {
    let (action, reason) = match (context.iteration, context.files_modified.len()) {
        (11.., _) => (RuleAction::Escalate, "ten iterations were not enough"),
        (_, 0) => (RuleAction::Continue, "nothing was changed yet"),
        _ => (RuleAction::Complete, "something was changed"),
    };
    Ok(StopRuling::new(action, reason))
}

/// The tools of a project, with a stop hook of ours for one of its tasks.
pub fn tool_router(project: Project, task: TaskId) -> Result<ToolRouter<Project>, ToolError> {
    let mut router = ToolRouter::new(project);
    router.add_closure("wants-changes", wants_changes);
    router.register_closure(task, "wants-changes")?;
    Ok(router)
}

/// Returns the decision for an agent that has changed these files in its first iteration.
pub fn judged(mut router: ToolRouter<Project>, task: &str, files: &[&str]) -> Result<String, ToolError> {
    let mut call = |tool: &str, arguments: Value| router.call_tool(tool, arguments, &RunControl::new());
    let series = json!({"taskId": task, "maxIterations": 20, "completionPromises": ["COMPLETE"]});
    let id = call("iteration_start", series)?["iterationId"].take();
    let told = call("iteration_validate", json!({"iterationId": id, "filesModified": files}))?;
    let decision = &told["hookDecision"];
    Ok(format!("{} because {}", told["completionSignal"], decision["reason"]))
}
