//! Checks across values of the settings, beyond the type of each.

use globset::GlobBuilder;
use windlass_agents::acp::Permissions;
use windlass_agents::{KNOWN, Known};
use windlass_vcs::git::Branch;

use super::error::{ConfigProblem, quoted};
use super::file::{Driver, Settings};
use super::reader::Located;
use super::value_checks::{MAX_REVIEW_NAME, check_name, is_inside, not_empty, placed};

pub fn check(settings: &Settings) -> Result<(), ConfigProblem> {
    settings.version.as_ref().map_or(Ok(()), version)?;
    settings.agent.as_ref().map_or(Ok(()), |agent| default_agent(agent, settings))?;
    agents(settings)?;
    settings.limits.cost.as_ref().map_or(Ok(()), cost)?;
    settings.secrets.iter().try_for_each(secret)?;
    settings.protected.iter().try_for_each(|pattern| path_pattern(pattern, "a protected file"))?;
    settings.caches.iter().try_for_each(|pattern| path_pattern(pattern, "a cache"))?;
    settings.briefs.iter().try_for_each(|(name, text)| brief(name, text))?;
    settings.forge.remote.as_ref().map_or(Ok(()), |name| git_name("remote", name))?;
    settings.base_branch.as_ref().map_or(Ok(()), branch)?;
    settings.forge.api.as_ref().map_or(Ok(()), address)?;
    settings.test_command.as_ref().map_or(Ok(()), test_command)?;
    settings.prompt_file.as_ref().map_or(Ok(()), |file| prompt_file(file, settings))?;
    scripts(settings)
}

/// Checks every script of a scripted agent.
fn scripts(settings: &Settings) -> Result<(), ConfigProblem> {
    let roles = settings.task_types.values().map(|task_type| &task_type.agents);
    let listed =
        roles.flat_map(|roles| roles.implementer.iter().chain(&roles.gatekeeper)).flat_map(|names| names.iter());
    let named = settings.agent.iter().chain(listed);
    let named = named.filter_map(|name| Some((name.strip_prefix("scripted:")?, &name.at)));
    let set_up = settings.agents.values().filter(|agent| agent.driver == Some(Driver::Scripted));
    let set_up = set_up.filter_map(|agent| Some((agent.command.as_deref()?, &agent.at)));
    match named.chain(set_up).find(|(file, _)| !is_inside(file)) {
        None => Ok(()),
        Some((file, at)) => Err(ConfigProblem::new(format!("the script {} lies outside the project", quoted(file)))
            .suggest("write a path from the project's directory on; `--agent scripted:FILE` takes any file".to_owned())
            .at(at.clone())),
    }
}

fn version(version: &Located<u64>) -> Result<(), ConfigProblem> {
    match version.value {
        1 => Ok(()),
        other => Err(ConfigProblem::new(format!("version {other} of the configuration is not known"))
            .suggest("this version of windlass reads `version: 1`".to_owned())
            .at(version.at.clone())),
    }
}

fn default_agent(agent: &Located<String>, settings: &Settings) -> Result<(), ConfigProblem> {
    match is_agent(agent, settings) {
        true => Ok(()),
        false => Err(ConfigProblem::unknown("agent", agent, &agent_names(settings)).at(agent.at.clone())),
    }
}

/// Returns whether a name selects an agent: one of the file, a known one, or a command.
pub fn is_agent(name: &str, settings: &Settings) -> bool {
    let command = ["command:", "acp:", "scripted:"].iter().find_map(|prefix| name.strip_prefix(prefix));
    command.map_or_else(|| agent_names(settings).contains(&name), |command| !command.trim().is_empty())
}

pub fn agent_names(settings: &Settings) -> Vec<&str> {
    settings.agents.keys().map(String::as_str).chain(KNOWN.iter().map(|(name, _)| *name)).collect()
}

fn brief(name: &str, text: &Located<String>) -> Result<(), ConfigProblem> {
    let said = match text.trim().is_empty() {
        true => Err(ConfigProblem::new(format!("the brief {} is empty", quoted(name)))),
        false => check_name("a review", name, MAX_REVIEW_NAME),
    };
    said.map_err(|problem| problem.at(text.at.clone()))
}

/// Checks a name for git: it must not look like an option or like two words.
fn git_name(key: &str, name: &Located<String>) -> Result<(), ConfigProblem> {
    let odd = |letter: char| letter.is_whitespace() || letter.is_control() || "~^:?*[\\".contains(letter);
    let wrong = name.is_empty() || name.starts_with('-') || name.contains(odd) || name.contains("..");
    match wrong {
        true => {
            Err(ConfigProblem::new(format!("`{key}`: {} is no name that git takes", quoted(name))).at(name.at.clone()))
        }
        false => Ok(()),
    }
}

/// Checks the name of a branch. Refs that only resolve to a branch are refused.
fn branch(name: &Located<String>) -> Result<(), ConfigProblem> {
    match Branch::new(name) {
        Ok(_) => Ok(()),
        Err(_) => Err(ConfigProblem::new(format!("`base_branch`: {} is no name of a branch", quoted(name)))
            .suggest("write the branch's own name, such as `main`".to_owned())
            .at(name.at.clone())),
    }
}

/// Checks the address that the forge's token is sent to: complete, and without a secret.
fn address(api: &Located<String>) -> Result<(), ConfigProblem> {
    let rest = api.strip_prefix("https://").or_else(|| api.strip_prefix("http://"));
    let host = rest.map(|rest| rest.split('/').next().unwrap_or_default());
    let problem = match host {
        None | Some("") => ConfigProblem::new("`api` is an address that begins with `https://`"),
        Some(host) if host.contains('@') => ConfigProblem::new("`api` holds a password or a token")
            .suggest("leave it out: a token is read from the environment".to_owned()),
        Some(_) if api.contains(|letter: char| letter.is_whitespace() || letter.is_control()) => {
            ConfigProblem::new("`api` is one address without blanks")
        }
        Some(_) => return Ok(()),
    };
    Err(problem.at(api.at.clone()))
}

fn agents(settings: &Settings) -> Result<(), ConfigProblem> {
    for (name, agent) in &settings.agents {
        let has_command = agent.command.as_ref().is_some_and(|command| !command.trim().is_empty());
        let known = Known::find(name);
        let (speaks_acp, is_command) = match agent.driver {
            Some(driver) => (driver == Driver::Acp, driver == Driver::Command),
            None => (matches!(known, Some(Known::Acp(_))), matches!(known, None | Some(Known::Command(_)))),
        };
        let restricted = agent.permissions.as_ref().is_some_and(|permissions| *permissions != Permissions::default());
        let (wrong, remedy) = match agent.driver {
            Some(Driver::Command | Driver::Acp) if !has_command => ("has a driver that needs a `command`", None),
            Some(Driver::Scripted) if !has_command => ("plays a script: its `command` is the script's file", None),
            None if !has_command && known.is_none() => ("has neither `driver` nor `command`", None),
            _ if is_command && agent.model.is_some() => {
                ("has a `model`, and its driver has no way to say so", Some("put it into `command` or `args`"))
            }
            _ if agent.tools == Some(true) && !takes_tools(agent.driver, known) => (
                "is to get `tools`, and its driver has no way to hand them",
                Some("add `windlass mcp` to its own settings, if it has any for such servers"),
            ),
            _ if !agent.mcp_servers.is_empty() && !speaks_acp => (
                "has `mcp_servers`, and does not speak the Agent Client Protocol",
                Some("write them into its own configuration, or drive it with `driver: acp`"),
            ),
            _ if restricted && !speaks_acp => (
                "has `permissions`, and does not ask over the Agent Client Protocol",
                Some("say it in `args`, as the program wants it, or drive it with `driver: acp`"),
            ),
            _ => continue,
        };
        let problem = ConfigProblem::new(format!("the agent {} {wrong}", quoted(name))).at(agent.at.clone());
        return Err(match remedy {
            Some(remedy) => problem.suggest(remedy.to_owned()),
            None => problem,
        });
    }
    Ok(())
}

/// Returns whether an agent can receive Windlass's own tools.
fn takes_tools(driver: Option<Driver>, known: Option<Known>) -> bool {
    match (driver, known) {
        (Some(driver), _) => !matches!(driver, Driver::Command | Driver::Gemini),
        (None, Some(Known::Headless(dialect))) => dialect.takes_tools(),
        (None, known) => matches!(known, Some(Known::Acp(_))),
    }
}

fn cost(cost: &Located<f64>) -> Result<(), ConfigProblem> {
    match cost.is_finite() && cost.value > 0.0 {
        true => Ok(()),
        false => Err(ConfigProblem::new("`cost` must be more than 0").at(cost.at.clone())),
    }
}

fn secret(name: &Located<String>) -> Result<(), ConfigProblem> {
    let rest = |c: char| c.is_ascii_alphanumeric() || c == '_';
    match name.starts_with(|c: char| rest(c) && !c.is_ascii_digit()) && name.chars().all(rest) {
        true => Ok(()),
        false => Err(ConfigProblem::new("this is not the name of an environment variable")
            .suggest("write the variable's name here, never the secret itself".to_owned())
            .at(name.at.clone())),
    }
}

fn path_pattern(pattern: &Located<String>, what: &str) -> Result<(), ConfigProblem> {
    let wrong = match pattern.trim() {
        "" => Some("this pattern is empty".to_owned()),
        absolute if absolute.starts_with('/') || absolute.split('/').any(|part| part == "..") => {
            Some(format!("{what} lies within the project"))
        }
        glob => [glob.to_owned(), format!("**/{glob}"), format!("{glob}/**")].iter().find_map(|glob| glob_error(glob)),
    };
    match wrong {
        None => Ok(()),
        Some(wrong) => Err(ConfigProblem::new(wrong)
            .suggest("write a path or a pattern from the project's directory on: `tests/**/*.rs`".to_owned())
            .at(pattern.at.clone())),
    }
}

/// Returns the error in a pattern of paths.
fn glob_error(pattern: &str) -> Option<String> {
    let built = GlobBuilder::new(pattern).literal_separator(true).build();
    built.err().map(|error| error.kind().to_string())
}

fn test_command(command: &Located<String>) -> Result<(), ConfigProblem> {
    placed(not_empty("test_command", command.value.clone()).map(drop), &command.at)
}

fn prompt_file(file: &Located<String>, settings: &Settings) -> Result<(), ConfigProblem> {
    let (wrong, remedy) = match file.trim() {
        "" => ("`prompt_file` is empty", "name a file beside this one, such as `prompt.md`"),
        _ if settings.prompt.is_some() => {
            ("there is either `prompt` or `prompt_file`, not both", "take one of them out")
        }
        _ if !is_inside(file) => (
            "the file of the prompt lies beside this one, or below",
            "put the file into `.windlass/`, and write its path from there on: `prompt.md`",
        ),
        _ => return Ok(()),
    };
    Err(ConfigProblem::new(wrong).suggest(remedy.to_owned()).at(file.at.clone()))
}
