//! The check of the agents: whether they are installed. None of them is started.

use std::path::Path;

use windlass_agents::AgentKind;
use windlass_config::{Config, Settings};
use windlass_process::find_missing_program;

use super::HealthCheck;
use crate::project::Project;
use crate::{agents, environment};

/// Checks the default agent and those of the configuration, and lists other installed ones.
pub fn check_agents(project: &Project) -> Option<HealthCheck> {
    let config = Config::load(&project.root).ok()?;
    let settings = &config.settings;
    let default = settings.agent.as_ref().map(|agent| agent.value.as_str());
    let mut names: Vec<&str> = default.into_iter().chain(settings.agents.keys().map(String::as_str)).collect();
    names.extend(agents::list_installed_agents(&environment::program_directories()));
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    for (index, name) in names.iter().enumerate() {
        match find_start_problem(name, settings, &project.root) {
            _ if names[..index].contains(name) => {}
            Ok(()) => found.push(*name),
            Err(problem) => problems.push(format!("{name}: {problem}")),
        }
    }
    let note = if found.is_empty() { "none found".to_owned() } else { found.join(", ") };
    let hint = (!problems.is_empty()).then(|| "install it, or name another one with `agent:` or --agent".to_owned());
    Some(HealthCheck { what: "agents", problems, note, hint })
}

/// Returns why an agent cannot be started, as far as that shows without starting it.
fn find_start_problem(name: &str, settings: &Settings, root: &Path) -> Result<(), String> {
    let agent = agents::resolve_agent(name, settings).map_err(|failure| failure.message)?;
    let script = match &agent.kind {
        AgentKind::Scripted(file) => {
            return agents::read_script(&root.join(file)).map(drop).map_err(|failure| failure.message);
        }
        AgentKind::Command(command) | AgentKind::Acp(command) => command.as_str(),
        AgentKind::Headless(dialect) => agent.program_script(*dialect),
    };
    find_missing_program(script.as_ref(), root, &agent.build_environment(&environment::full_environment()))
        .map_or(Ok(()), |error| Err(error.to_string()))
}
