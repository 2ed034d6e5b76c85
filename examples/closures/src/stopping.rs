//! A stop hook that is a closure, and the tools that call it.
//!
//! The tools run on a `ToolHost`, which provides a store and executes commands. In this program the project is the host.

use std::path::Path;

use serde_json::{Value, json};
use windlass_engine::{
    AgentContext, Authority, Command, Origin, Record, RuleAction, RunId, StopRuling, TaskId, Timestamp,
};
use windlass_store::{Sqlite, Store};
use windlass_tools::validation::Workshop;
use windlass_tools::{Code, Control, Mask, ToolError, ToolHost, ToolRouter};

use crate::project::{Project, nonce, now};

impl ToolHost for Project {
    fn store(&self) -> &Sqlite {
        &self.store
    }

    fn execute(&mut self, command: &Command, _: &Control) -> Result<Vec<Record>, ToolError> {
        let origin =
            Origin { by: "ada".to_owned(), at: self.now(), authority: Authority::Person, run: None, via: None };
        let nonce = nonce().map_err(|error| ToolError::new(Code::System, error))?;
        Ok(self.store.execute(&self.rules, &origin, command, nonce)?)
    }

    /// This program has no secrets.
    fn mask(&mut self) -> Result<&Mask, ToolError> {
        Ok(&self.mask)
    }

    fn now(&self) -> Timestamp {
        now().expect("it is later than 1970")
    }

    fn directory(&self) -> &Path {
        &self.directory
    }

    /// This program does not run inside an agent's turn.
    fn run(&self) -> Result<Option<RunId>, ToolError> {
        Ok(None)
    }

    /// The hooks are closures and start no programs.
    fn workshop(&mut self) -> Result<Workshop<'_>, ToolError> {
        Err(ToolError::new(Code::Refused, "this program starts no others"))
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
    router.know("wants-changes", wants_changes);
    router.register(task, "wants-changes")?;
    Ok(router)
}

/// Returns the decision for an agent that has changed these files in its first iteration.
pub fn judged(mut router: ToolRouter<Project>, task: &str, files: &[&str]) -> Result<String, ToolError> {
    let mut call = |tool: &str, arguments: Value| router.call(tool, arguments, &Control::new());
    let series = json!({"taskId": task, "maxIterations": 20, "completionPromises": ["COMPLETE"]});
    let id = call("iteration_start", series)?["iterationId"].take();
    let told = call("iteration_validate", json!({"iterationId": id, "filesModified": files}))?;
    let decision = &told["hookDecision"];
    Ok(format!("{} because {}", told["completionSignal"], decision["reason"]))
}
