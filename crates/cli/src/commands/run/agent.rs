//! Which agent works, and whether it is there at all: a typing mistake leaves no session behind.

use std::path::Path;

use windlass_agents::{Agent, Driver};
use windlass_app::{Code, Failure, agents, environment, hints};
use windlass_config::{Config, plan};
use windlass_engine::{Grounds, View as _};
use windlass_hooks::RanCommand;
use windlass_process::missing;
use windlass_store::Sqlite;

use super::choice::Choice;
use super::wish::Wish;
use crate::commands::agent;

/// The agent that is named, else the one that the session was started with, else the configuration's. What only the
/// project's own store says is not believed: somebody else may have put it there.
pub fn chosen(
    named: Option<&str>,
    choice: &Choice,
    (config, listed): (&Config, Option<&str>),
    trusted: bool,
) -> Result<Agent, Failure> {
    let configured = listed.or(config.settings.agent.as_ref().map(|agent| agent.as_str()));
    let name = match (named, choice) {
        (Some(name), _) => name,
        (None, Choice::Resume(session)) if trusted || configured == Some(session.agent.as_str()) => &session.agent,
        (None, Choice::Resume(session)) => {
            return Err(Failure::new(Code::Trust, "no agent is named")
                .caused_by(format!("session `{}` works with `{}`", session.name, session.agent))
                .hint("name it again with --agent, or say --trust if that is what you want to run"));
        }
        (None, Choice::New(_)) => configured.ok_or_else(none_named)?,
    };
    agents::resolve(name, &config.settings)
}

/// Who works on a task by its type: the usual agent where it may, else the first one that may.
pub fn listed(store: &Sqlite, wish: Wish<'_>, config: &Config) -> Result<Option<String>, Failure> {
    let Wish::Task(id) = wish else { return Ok(None) };
    let task = store.snapshot().map_err(hints::store)?.task(id).map_err(hints::view)?;
    let types = plan::types(config);
    let Some(names) = task.as_ref().and_then(|task| types.implementers(task.kind.as_ref())) else { return Ok(None) };
    let usual = config.settings.agent.as_ref().filter(|agent| names.contains(agent.as_str()));
    Ok(usual.map(|agent| agent.value.clone()).or_else(|| names.first().cloned()))
}

pub fn none_named() -> Failure {
    Failure::new(Code::Usage, "no agent is named").hint(agents::how_to_name())
}

/// Says why an agent cannot be started in this directory, as far as that is seen without starting it. What only a shell
/// understands is left to the shell, and a worktree may have a script that this directory does not have.
pub fn check(agent: &Agent, directory: &Path, grounds: Grounds) -> Result<(), Failure> {
    let command = match &agent.driver {
        Driver::Scripted(file) => return agent::read(&directory.join(file)).map(drop),
        Driver::Command(command) | Driver::Acp(command) => command,
        Driver::Headless(dialect) => agent.program(*dialect),
    };
    let environment = agent.environment(&environment::whole());
    let missing_script = || {
        let ran = RanCommand { text: command, directory, environment: &environment };
        let is_one_command = !command.contains(['|', '&', ';', '\n']);
        ran.missing_script().filter(|_| grounds.is_in_place() && is_one_command)
    };
    match missing(command.as_ref(), directory, &environment).map(|error| error.to_string()).or_else(missing_script) {
        None => Ok(()),
        Some(error) => Err(Failure::new(Code::Usage, format!("the agent `{agent}` cannot be started"))
            .caused_by(error)
            .hint("look for a typing mistake, or install it; nothing was begun")),
    }
}
