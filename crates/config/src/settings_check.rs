//! Checks across values of the settings, beyond the type of each.

use globset::GlobBuilder;
use windlass_agents::acp::AgentPermissions;
use windlass_agents::{KNOWN_AGENTS, KnownAgent};
use windlass_vcs::git::BranchName;

use super::error::{ConfigProblem, quote_text};
use super::reader::LocatedValue;
use super::settings::{DriverKind, Settings};
use super::value_checks::{MAX_REVIEW_NAME, check_name, is_inside_directory, require_text, with_place};

pub fn check_settings(settings: &Settings) -> Result<(), ConfigProblem> {
    settings.version.as_ref().map_or(Ok(()), check_version)?;
    settings.agent.as_ref().map_or(Ok(()), |agent| check_default_agent(agent, settings))?;
    check_agents(settings)?;
    settings.limits.cost.as_ref().map_or(Ok(()), check_cost_limit)?;
    settings.secrets.iter().try_for_each(check_secret_name)?;
    settings.protected.iter().try_for_each(|pattern| check_path_pattern(pattern, "a protected file"))?;
    settings.caches.iter().try_for_each(|pattern| check_path_pattern(pattern, "a cache"))?;
    settings.briefs.iter().try_for_each(|(name, text)| check_brief(name, text))?;
    settings.forge.remote.as_ref().map_or(Ok(()), |name| check_git_name("remote", name))?;
    settings.base_branch.as_ref().map_or(Ok(()), check_base_branch)?;
    settings.forge.api.as_ref().map_or(Ok(()), check_api_address)?;
    settings.test_command.as_ref().map_or(Ok(()), check_test_command)?;
    settings.prompt_file.as_ref().map_or(Ok(()), |file| check_prompt_file(file, settings))?;
    check_scripts(settings)
}

/// Checks every script of a scripted agent.
fn check_scripts(settings: &Settings) -> Result<(), ConfigProblem> {
    let roles = settings.task_types.values().map(|task_type| &task_type.agents);
    let listed =
        roles.flat_map(|roles| roles.implementer.iter().chain(&roles.gatekeeper)).flat_map(|names| names.iter());
    let named = settings.agent.iter().chain(listed);
    let named = named.filter_map(|name| Some((name.strip_prefix("scripted:")?, &name.at)));
    let set_up = settings.agents.values().filter(|agent| agent.driver == Some(DriverKind::Scripted));
    let set_up = set_up.filter_map(|agent| Some((agent.command.as_deref()?, &agent.at)));
    match named.chain(set_up).find(|(file, _)| !is_inside_directory(file)) {
        None => Ok(()),
        Some((file, at)) => {
            Err(ConfigProblem::new(format!("the script {} lies outside the project", quote_text(file)))
                .with_suggestion(
                    "write a path relative to the project's directory; `--agent scripted:FILE` takes any file"
                        .to_owned(),
                )
                .with_range(at.clone()))
        }
    }
}

fn check_version(version: &LocatedValue<u64>) -> Result<(), ConfigProblem> {
    match version.value {
        1 => Ok(()),
        other => Err(ConfigProblem::new(format!("version {other} of the configuration is not known"))
            .with_suggestion("this version of windlass reads `version: 1`".to_owned())
            .with_range(version.at.clone())),
    }
}

fn check_default_agent(agent: &LocatedValue<String>, settings: &Settings) -> Result<(), ConfigProblem> {
    match is_agent_name(agent, settings) {
        true => Ok(()),
        false => {
            Err(ConfigProblem::unknown_name("agent", agent, &known_agent_names(settings)).with_range(agent.at.clone()))
        }
    }
}

/// Returns whether a name selects an agent: one of the file, a known one, or a command.
pub fn is_agent_name(name: &str, settings: &Settings) -> bool {
    let command = ["command:", "acp:", "scripted:"].iter().find_map(|prefix| name.strip_prefix(prefix));
    command.map_or_else(|| known_agent_names(settings).contains(&name), |command| !command.trim().is_empty())
}

pub fn known_agent_names(settings: &Settings) -> Vec<&str> {
    settings.agents.keys().map(String::as_str).chain(KNOWN_AGENTS.iter().map(|(name, _)| *name)).collect()
}

fn check_brief(name: &str, text: &LocatedValue<String>) -> Result<(), ConfigProblem> {
    let said = match text.trim().is_empty() {
        true => Err(ConfigProblem::new(format!("the brief {} is empty", quote_text(name)))),
        false => check_name("a review", name, MAX_REVIEW_NAME),
    };
    said.map_err(|problem| problem.with_range(text.at.clone()))
}

/// Checks a name for git: it must not look like an option or like two words.
fn check_git_name(key: &str, name: &LocatedValue<String>) -> Result<(), ConfigProblem> {
    let odd = |letter: char| letter.is_whitespace() || letter.is_control() || "~^:?*[\\".contains(letter);
    let wrong = name.is_empty() || name.starts_with('-') || name.contains(odd) || name.contains("..");
    match wrong {
        true => Err(ConfigProblem::new(format!("`{key}`: {} is not a name that git accepts", quote_text(name)))
            .with_range(name.at.clone())),
        false => Ok(()),
    }
}

/// Checks the name of a branch. Refs that only resolve to a branch are refused.
fn check_base_branch(name: &LocatedValue<String>) -> Result<(), ConfigProblem> {
    match BranchName::new(name) {
        Ok(_) => Ok(()),
        Err(_) => Err(ConfigProblem::new(format!("`base_branch`: {} is not a branch name", quote_text(name)))
            .with_suggestion("write the branch's own name, such as `main`".to_owned())
            .with_range(name.at.clone())),
    }
}

/// Checks the address that the forge's token is sent to: complete, and without a secret.
fn check_api_address(api: &LocatedValue<String>) -> Result<(), ConfigProblem> {
    let rest = api.strip_prefix("https://").or_else(|| api.strip_prefix("http://"));
    let host = rest.map(|rest| rest.split('/').next().unwrap_or_default());
    let problem = match host {
        None | Some("") => ConfigProblem::new("`api` is an address that begins with `https://`"),
        Some(host) if host.contains('@') => ConfigProblem::new("`api` holds a password or a token")
            .with_suggestion("leave it out: a token is read from the environment".to_owned()),
        Some(_) if api.contains(|letter: char| letter.is_whitespace() || letter.is_control()) => {
            ConfigProblem::new("`api` is one address without blanks")
        }
        Some(_) => return Ok(()),
    };
    Err(problem.with_range(api.at.clone()))
}

fn check_agents(settings: &Settings) -> Result<(), ConfigProblem> {
    for (name, agent) in &settings.agents {
        let has_command = agent.command.as_ref().is_some_and(|command| !command.trim().is_empty());
        let known = KnownAgent::find_by_name(name);
        let (speaks_acp, is_command) = match agent.driver {
            Some(driver) => (driver == DriverKind::Acp, driver == DriverKind::Command),
            None => (matches!(known, Some(KnownAgent::Acp(_))), matches!(known, None | Some(KnownAgent::Command(_)))),
        };
        let restricted =
            agent.permissions.as_ref().is_some_and(|permissions| *permissions != AgentPermissions::default());
        let (wrong, remedy) = match agent.driver {
            Some(DriverKind::Command | DriverKind::Acp) if !has_command => {
                ("has a driver that needs a `command`", None)
            }
            Some(DriverKind::Scripted) if !has_command => ("plays a script: its `command` is the script's file", None),
            None if !has_command && known.is_none() => ("has neither `driver` nor `command`", None),
            _ if is_command && agent.model.is_some() => {
                ("has a `model`, and its driver cannot pass it", Some("put it into `command` or `args`"))
            }
            _ if agent.tools == Some(true) && !accepts_tools(agent.driver, known) => (
                "has `tools: true`, and its driver cannot pass tools",
                Some("add `windlass mcp` to its own settings, if it has any for such servers"),
            ),
            _ if !agent.mcp_servers.is_empty() && !speaks_acp => (
                "has `mcp_servers`, and its driver does not use the Agent Client Protocol",
                Some("write them into its own configuration, or drive it with `driver: acp`"),
            ),
            _ if restricted && !speaks_acp => (
                "has `permissions`, and its driver does not use the Agent Client Protocol",
                Some("set them in `args` as the program expects, or drive it with `driver: acp`"),
            ),
            _ => continue,
        };
        let problem =
            ConfigProblem::new(format!("the agent {} {wrong}", quote_text(name))).with_range(agent.at.clone());
        return Err(match remedy {
            Some(remedy) => problem.with_suggestion(remedy.to_owned()),
            None => problem,
        });
    }
    Ok(())
}

/// Returns whether an agent can receive Windlass's own tools.
fn accepts_tools(driver: Option<DriverKind>, known: Option<KnownAgent>) -> bool {
    match (driver, known) {
        (Some(driver), _) => !matches!(driver, DriverKind::Command | DriverKind::Gemini),
        (None, Some(KnownAgent::Headless(dialect))) => dialect.takes_tools(),
        (None, known) => matches!(known, Some(KnownAgent::Acp(_))),
    }
}

fn check_cost_limit(cost: &LocatedValue<f64>) -> Result<(), ConfigProblem> {
    match cost.is_finite() && cost.value > 0.0 {
        true => Ok(()),
        false => Err(ConfigProblem::new("`cost` must be more than 0").with_range(cost.at.clone())),
    }
}

fn check_secret_name(name: &LocatedValue<String>) -> Result<(), ConfigProblem> {
    let rest = |c: char| c.is_ascii_alphanumeric() || c == '_';
    match name.starts_with(|c: char| rest(c) && !c.is_ascii_digit()) && name.chars().all(rest) {
        true => Ok(()),
        false => Err(ConfigProblem::new("this is not the name of an environment variable")
            .with_suggestion("write the variable's name here, never the secret itself".to_owned())
            .with_range(name.at.clone())),
    }
}

fn check_path_pattern(pattern: &LocatedValue<String>, what: &str) -> Result<(), ConfigProblem> {
    let wrong = match pattern.trim() {
        "" => Some("this pattern is empty".to_owned()),
        absolute if absolute.starts_with('/') || absolute.split('/').any(|part| part == "..") => {
            Some(format!("{what} lies within the project"))
        }
        glob => {
            [glob.to_owned(), format!("**/{glob}"), format!("{glob}/**")].iter().find_map(|glob| find_glob_error(glob))
        }
    };
    match wrong {
        None => Ok(()),
        Some(wrong) => Err(ConfigProblem::new(wrong)
            .with_suggestion(
                "write a path or a pattern relative to the project's directory: `tests/**/*.rs`".to_owned(),
            )
            .with_range(pattern.at.clone())),
    }
}

/// Returns the error in a pattern of paths.
fn find_glob_error(pattern: &str) -> Option<String> {
    let built = GlobBuilder::new(pattern).literal_separator(true).build();
    built.err().map(|error| error.kind().to_string())
}

fn check_test_command(command: &LocatedValue<String>) -> Result<(), ConfigProblem> {
    with_place(require_text("test_command", command.value.clone()).map(drop), &command.at)
}

fn check_prompt_file(file: &LocatedValue<String>, settings: &Settings) -> Result<(), ConfigProblem> {
    let (wrong, remedy) = match file.trim() {
        "" => ("`prompt_file` is empty", "name a file beside this one, such as `prompt.md`"),
        _ if settings.prompt.is_some() => ("there is either `prompt` or `prompt_file`, not both", "remove one of them"),
        _ if !is_inside_directory(file) => (
            "the file of the prompt lies beside this one, or below",
            "put the file into `.windlass/`, and write its path relative to that directory: `prompt.md`",
        ),
        _ => return Ok(()),
    };
    Err(ConfigProblem::new(wrong).with_suggestion(remedy.to_owned()).with_range(file.at.clone()))
}
