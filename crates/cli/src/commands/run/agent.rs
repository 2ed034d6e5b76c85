//! Which agent works, and whether it is there at all: a typing mistake leaves no session behind.

use std::path::Path;

use windlass_agents::{Agent, Driver, ParseAgentError};
use windlass_process::missing;

use super::choice::Choice;
use crate::commands::agent;
use crate::config::Config;
use crate::environment;
use crate::failure::{Code, Failure};

/// The agent that a session was started with, else the configuration's. What only the project's own store says is not
/// believed: somebody else may have put it there.
pub fn unnamed(choice: &Choice, config: &Config, trusted: bool) -> Result<Agent, Failure> {
    let configured = config.settings.agent.as_ref().map(|agent| agent.as_str());
    match (choice, &config.settings.agent) {
        (Choice::Resume(session), _) if trusted || configured == Some(session.agent.as_str()) => parse(&session.agent),
        (Choice::Resume(session), _) => Err(Failure::new(Code::Trust, "no agent is named")
            .caused_by(format!("session `{}` works with `{}`", session.name, session.agent))
            .hint("name it again with --agent, or say --trust if that is what you want to run")),
        (Choice::New(_), Some(agent)) => parse(agent),
        (Choice::New(_), None) => Err(none_named()),
    }
}

pub fn none_named() -> Failure {
    Failure::new(Code::Usage, "no agent is named")
        .hint("--agent acp:CMD names one that speaks the Agent Client Protocol, --agent command:CMD any other program")
}

pub fn parse(name: &str) -> Result<Agent, Failure> {
    name.parse().map_err(|error: ParseAgentError| {
        Failure::from_error(Code::Usage, &error).hint(
            "this version drives `acp:CMD`, which speaks the Agent Client Protocol; `command:CMD`, which reads a \
                 prompt and prints its answer; and `scripted:FILE`",
        )
    })
}

/// Says why an agent cannot be started in this directory, as far as that is seen without starting it. What only a shell
/// understands is left to the shell.
pub fn check(agent: &Agent, directory: &Path) -> Result<(), Failure> {
    let command = match &agent.driver {
        Driver::Scripted(file) => return agent::read(&directory.join(file)).map(drop),
        Driver::Command(command) | Driver::Acp(command) => command,
        Driver::Headless(dialect) => agent.program(*dialect),
    };
    match missing(command.as_ref(), directory, &agent.environment(&environment::whole())) {
        None => Ok(()),
        Some(error) => Err(Failure::new(Code::Usage, format!("the agent `{agent}` cannot be started"))
            .caused_by(error)
            .hint("look for a typing mistake, or install it; nothing was begun")),
    }
}
