//! Whether the agents that are meant to work are there, and start.
//!
//! An agent is started only to say its version, and only in a project that a person trusts: elsewhere it is only looked for.

use std::path::Path;
use std::time::Duration;

use windlass_agents::{Agent, Driver};
use windlass_process::{Capture, Control, Exit, Invocation, Roster, Spec, missing, run};

use super::Check;
use crate::commands::agent;
use crate::config::{Config, Settings};
use crate::project::Project;
use crate::trust::{self, Trust};
use crate::{agents, dispatch, environment};

/// How long an agent may take to say its version.
const PATIENCE: Duration = Duration::from_secs(20);
const GRACE: Duration = Duration::from_secs(1);
/// What is read of it.
const WORDS: usize = 4096;

/// The default agent, those of the configuration, and what else is installed.
pub fn check(project: &Project, control: &Control) -> Option<Check> {
    let config = Config::load(project).ok()?;
    let settings = &config.settings;
    let trusted = trust::state(project, &config).is_ok_and(|state| state == Trust::Trusted);
    let roster = dispatch::enlist(project).ok()?;
    let default = settings.agent.as_ref().map(|agent| agent.value.as_str());
    let mut names: Vec<&str> = default.into_iter().chain(settings.agents.keys().map(String::as_str)).collect();
    names.extend(agents::installed(&environment::program_directories()));
    let (mut found, mut problems, mut seen) = (Vec::new(), Vec::new(), Vec::new());
    for name in names {
        if seen.contains(&name) {
            continue;
        }
        seen.push(name);
        match look(name, settings, &project.root, trusted.then_some((&roster, control))) {
            Ok(version) => found.push([name.to_owned(), version].join(" ").trim_end().to_owned()),
            Err(problem) if default == Some(name) || agents::is_configured(name, settings) => {
                problems.push(format!("{name}: {problem}"));
            }
            // Nobody wants it here.
            Err(_) => found.push(format!("{name} (does not start)")),
        }
    }
    let note = match found.as_slice() {
        [] => "none found".to_owned(),
        found => found.join(", "),
    };
    let hint = (!problems.is_empty()).then(|| "install it, or name another one with `agent:` or --agent".to_owned());
    Some(Check { what: "agents", problems, note, hint })
}

/// Its version, where it can be asked for it.
fn look(name: &str, settings: &Settings, root: &Path, starting: Option<(&Roster, &Control)>) -> Result<String, String> {
    let agent = agents::resolve(name, settings).map_err(|failure| failure.message)?;
    let script = match &agent.driver {
        Driver::Scripted(file) => {
            return agent::read(&root.join(file)).map(|_| String::new()).map_err(|failure| failure.message);
        }
        Driver::Command(command) | Driver::Acp(command) => command.as_str(),
        Driver::Headless(dialect) => agent.program(*dialect),
    };
    let environment = agent.environment(&environment::whole());
    if let Some(error) = missing(script.as_ref(), root, &environment) {
        return Err(error.to_string());
    }
    match (starting, plain_program(&agent, script)) {
        (Some(starting), Some(program)) => version(program, root, environment, starting),
        _ => Ok(String::new()),
    }
}

/// The program of an agent that knows `--version`: any other command is somebody's own.
fn plain_program<'a>(agent: &Agent, script: &'a str) -> Option<&'a str> {
    let known = matches!(agent.driver, Driver::Headless(_)) || windlass_agents::Known::find(&agent.name).is_some();
    let program = script.split(' ').next()?;
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./".contains(letter);
    (known && program.chars().all(plain)).then_some(program)
}

fn version(
    program: &str,
    root: &Path,
    environment: windlass_process::Environment,
    (roster, control): (&Roster, &Control),
) -> Result<String, String> {
    let spec = Spec {
        timeout: Some(PATIENCE),
        grace: GRACE,
        capture: Capture { head: WORDS, tail: WORDS, spill: None },
        ..Spec::new(Invocation::Argv(vec![program.into(), "--version".into()]), root, environment)
    };
    let ran = run(&spec, roster, control, &mut |_, _| {}).map_err(|error| error.to_string())?;
    let said = ran.stdout.text();
    let line = said.lines().find(|line| line.contains(|letter: char| letter.is_ascii_digit()));
    match (ran.exit, line) {
        (Exit::Code(0), line) => Ok(line.map(number).unwrap_or_default().to_owned()),
        (Exit::TimedOut | Exit::Silent, _) => {
            Err(format!("`{program} --version` took longer than {} s", PATIENCE.as_secs()))
        }
        _ => {
            let stderr = ran.stderr.text();
            let last =
                stderr.lines().chain(said.lines()).find(|line| !line.trim().is_empty()).unwrap_or("no reason told");
            Err(format!("`{program} --version` fails: {}", last.trim()))
        }
    }
}

/// The version among the words of a line: `codex-cli 0.166.0`.
fn number(line: &str) -> &str {
    let starts = |word: &&str| word.trim_start_matches('v').starts_with(|letter: char| letter.is_ascii_digit());
    let word = line.split_whitespace().find(starts).unwrap_or(line.trim());
    word.trim_start_matches('v').trim_end_matches(['.', ',', ';'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_a_number_among_words() {
        for (line, expected) in [
            ("2.1.325 (Claude Code)", "2.1.325"),
            ("codex-cli 0.166.0", "0.166.0"),
            ("GitHub Copilot CLI 1.0.102.", "1.0.102"),
            ("aider v0.86.2", "0.86.2"),
            ("unknown", "unknown"),
        ] {
            assert_eq!(number(line), expected);
        }
    }
}
