//! The choice of an agent: which one works, whether it can be started, and whether it has a task that it may work on.
//!
//! Invariant: a typing mistake leaves no session behind.

use std::collections::BTreeSet;
use std::path::Path;

use windlass_agents::{Agent, AgentKind};
use windlass_config::Config;
use windlass_engine::{Refusal, StateView, TaskId, TaskTypes, WorkspaceMode};
use windlass_hooks::ShellCommand;
use windlass_process::find_missing_program;
use windlass_store::SqliteStore;

use super::ended_lease::find_next_ended_lease;
use super::run_target::RunTarget;
use super::session_choice::SessionChoice;
use crate::context::OpenedProject;
use crate::gatekeepers::UnjudgedTypes;
use crate::{Failure, FailureCode, Notice, agents, environment, hints};

/// Returns the named agent, else the one that the session was started with, else the configuration's. An agent that only the
/// project's store names needs trust: the store can come with a repository.
pub fn choose_agent(
    named: Option<&str>,
    choice: &SessionChoice,
    (config, listed): (&Config, Option<&str>),
    trusted: bool,
) -> Result<Agent, Failure> {
    let configured = listed.or(config.settings.agent.as_ref().map(|agent| agent.as_str()));
    let name = match (named, choice) {
        (Some(name), _) => name,
        (None, SessionChoice::Resume(session)) if trusted || configured == Some(session.agent.as_str()) => {
            &session.agent
        }
        (None, SessionChoice::Resume(session)) => {
            return Err(Failure::new(FailureCode::Trust, "no agent is named")
                .with_cause(format!("session `{}` works with `{}`", session.name, session.agent))
                .with_hint("name it again with --agent, or say --trust if that is what you want to run"));
        }
        (None, SessionChoice::New(_)) => configured.ok_or_else(no_agent_failure)?,
    };
    agents::resolve_agent(name, &config.settings)
}

pub fn no_agent_failure() -> Failure {
    Failure::new(FailureCode::Usage, "no agent is named").with_hint(agents::describe_agent_names())
}

/// Fails if an agent cannot be started in this directory, as far as that shows without starting it. Shell syntax is left to the
/// shell, and a worktree may have a script that this directory does not have.
pub fn check_agent_startable(agent: &Agent, directory: &Path, workspace_mode: WorkspaceMode) -> Result<(), Failure> {
    let command = match &agent.kind {
        AgentKind::Scripted(file) => return agents::read_script(&directory.join(file)).map(drop),
        AgentKind::Command(command) | AgentKind::Acp(command) => command,
        AgentKind::Headless(dialect) => agent.program_script(*dialect),
    };
    let environment = agent.build_environment(&environment::full_environment());
    let missing_script = || {
        let ran = ShellCommand { text: command, directory, environment: &environment };
        let is_one_command = !command.contains(['|', '&', ';', '\n']);
        ran.missing_script().filter(|_| workspace_mode.is_in_place() && is_one_command)
    };
    match find_missing_program(command.as_ref(), directory, &environment)
        .map(|error| error.to_string())
        .or_else(missing_script)
    {
        None => Ok(()),
        Some(error) => Err(Failure::new(FailureCode::Usage, format!("cannot start the agent `{agent}`"))
            .with_cause(error)
            .with_hint("check the spelling, or install it; nothing was started")),
    }
}

/// Returns why a session with this agent would find no task although one is ready: only other agents may work on it, or it is
/// left alone.
pub fn explain_no_task_for_agent(
    store: &SqliteStore,
    types: &TaskTypes,
    agent: &str,
    workspace_mode: WorkspaceMode,
) -> Result<Option<String>, Failure> {
    let snapshot = store.begin_snapshot().map_err(hints::store_failure)?;
    if find_next_ended_lease(&snapshot, None)?.is_some() {
        return Ok(None);
    }
    match types.next_task_for(&snapshot, Some(agent), &[], workspace_mode) {
        Ok(Some(_)) => Ok(None),
        Ok(None) => {
            let any = snapshot.next_claimable(None).map_err(hints::view_failure)?.is_some();
            Ok(Some(if any { "the ready tasks are skipped" } else { "nothing is ready" }.to_owned()))
        }
        Err(refusal @ Refusal::NothingForAgent { .. }) => Ok(Some(refusal.to_string())),
        Err(refusal) => Err(hints::refusal_failure(&refusal)),
    }
}

/// Refuses a session if no gatekeeper can judge its first task. Otherwise warns of the task types that it leaves alone.
pub fn check_gatekeepers(
    opened: &OpenedProject,
    target: RunTarget<'_>,
    (types, mut unjudged): (&TaskTypes, UnjudgedTypes),
    agent: &str,
) -> Result<(), Failure> {
    // Other agents work on the types that this one may not take.
    let closed = types.types_closed_to(Some(agent));
    unjudged.retain(|kind, _| !closed.contains(kind));
    if unjudged.is_empty() {
        return Ok(());
    }
    let snapshot = opened.store.begin_snapshot().map_err(hints::store_failure)?;
    let kind_of =
        |id: TaskId| Ok::<_, Failure>(snapshot.find_task(id).map_err(hints::view_failure)?.and_then(|task| task.kind));
    let first = match target {
        RunTarget::Goal(_) => None,
        RunTarget::Task(id) => Some(id),
        // The session would take this task if there is no other.
        RunTarget::Graph => match types.next_task_for(&snapshot, Some(agent), &[], WorkspaceMode::InPlace) {
            Ok(None) => types
                .clone()
                .pausing_types(BTreeSet::new())
                .next_task_for(&snapshot, Some(agent), &[], WorkspaceMode::InPlace)
                .ok()
                .flatten(),
            Ok(Some(_)) | Err(_) => None,
        },
    };
    let kind = first.map(kind_of).transpose()?.flatten();
    if let Some(failure) = kind.and_then(|kind| unjudged.remove(&kind)) {
        return Err(failure);
    }
    for (kind, failure) in unjudged.into_iter().filter(|_| target == RunTarget::Graph) {
        let left_alone = format!("{}: tasks of the type `{kind}` are skipped", failure.message);
        opened.front_end.show_notice(Notice::Warning(&left_alone));
    }
    Ok(())
}
