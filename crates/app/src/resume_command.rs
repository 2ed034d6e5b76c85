//! The command that resumes a session or a task, as a person types it.
//!
//! Invariants:
//! - The command names an agent if a run without a name would use another one or none.
//! - `--trust` is offered only to a person who has used it. Other people read that trust is needed: a store, and with it the
//!   command, can come with a repository.
//!
//! Not here: when to offer this command (`next_step`).

use windlass_config::{Config, plan};
use windlass_engine::{Event, EventRecord, EventType, Session, StateView as _, TaskId};
use windlass_store::EventFilter;
use windlass_text as text;

use crate::context::OpenedProject;
use crate::run::{check_config_trust, find_task_agent, read_recorded_config};
use crate::typed_step::NextStep;
use crate::{Failure, execution, hints};

/// The longest word in an offered command, in bytes.
const MAX_SHELL_WORD: usize = 200;
/// How many claims of a task are examined: claims by people name no agent.
const MAX_EXAMINED_CLAIMS: usize = 20;
/// The placeholder for an agent that is unknown or cannot be typed.
const UNKNOWN_AGENT: &str = "AGENT";

/// A command that resumes a session or a task.
pub struct ResumeCommand {
    pub command: String,
    untrusted: bool,
}

impl ResumeCommand {
    /// Returns the command for an unfinished session, which keeps the configuration that it was started with.
    pub fn for_session(opened: &OpenedProject, session: &Session) -> Self {
        let text = read_recorded_config(&opened.store, session).ok();
        let config =
            text.and_then(|text| Config::from_source(execution::recorded_config_source(&opened.project, &text)).ok());
        let usual = config.as_ref().and_then(|config| config.settings.agent.as_ref()).map(|agent| agent.as_str());
        let agent = Some(session.agent.as_str()).filter(|agent| usual != Some(*agent));
        let untrusted = config.is_some_and(|config| lacks_needed_trust(opened, &config, Some(session)));
        Self { command: format_run_command(&format!(" --session {}", session.name), agent, opened.trust), untrusted }
    }

    /// Returns the command for a task that may be claimed, with the agent that worked on it last.
    pub fn for_task(opened: &OpenedProject, id: TaskId) -> Result<Self, Failure> {
        Self::for_task_with_flag(opened, id, "--task")
    }

    /// Returns the command for a task whose change conflicts with its base, with the agent that worked on it last.
    pub fn for_conflict(opened: &OpenedProject, id: TaskId) -> Result<Self, Failure> {
        Self::for_task_with_flag(opened, id, "--resolve")
    }

    fn for_task_with_flag(opened: &OpenedProject, id: TaskId, flag: &str) -> Result<Self, Failure> {
        let last = find_last_session(opened, id)?;
        // An invalid configuration names no agent; the run itself reports the error.
        let config = Config::load(&opened.project.root).ok();
        let listed = config.as_ref().map(|config| find_task_agent(&opened.store, id, config)).transpose()?;
        let usual = config.as_ref().and_then(|config| config.settings.agent.as_ref()).map(|agent| agent.value.clone());
        let usual = listed.flatten().or(usual);
        // The list of implementers may have changed since.
        let task = opened.require_task(id)?;
        let may_work = |agent: &str| {
            config.as_ref().is_none_or(|config| plan::plan_task_types(config).check_agent_allowed(&task, agent).is_ok())
        };
        let last = last.filter(|last| may_work(&last.agent));
        let agent = match (&last, &usual) {
            (Some(last), usual) => Some(last.agent.as_str()).filter(|agent| usual.as_deref() != Some(*agent)),
            (None, None) => Some(UNKNOWN_AGENT),
            (None, Some(_)) => None,
        };
        let untrusted = config.is_some_and(|config| lacks_needed_trust(opened, &config, None));
        Ok(Self { command: format_run_command(&format!(" {flag} {id}"), agent, opened.trust), untrusted })
    }

    /// Returns the command as a next step.
    pub fn to_next_step(&self, purpose: &str) -> NextStep {
        let note = self.untrusted.then(|| hints::UNTRUSTED_NOTE.to_owned());
        NextStep::new(self.command.clone(), purpose).with_note(note)
    }

    /// Returns a sentence with the command as its subject.
    pub fn describe_in_sentence(&self, does: &str) -> String {
        let but = if self.untrusted { format!("; {}", hints::UNTRUSTED) } else { String::new() };
        format!("`{}` {does}{but}", self.command)
    }
}

/// Returns the last session that claimed a task.
fn find_last_session(opened: &OpenedProject, id: TaskId) -> Result<Option<Session>, Failure> {
    let filter = EventFilter { types: vec![EventType::TaskClaimed], task: Some(id), ..EventFilter::default() };
    let claims = opened.store.read_events_back(&filter, None, MAX_EXAMINED_CLAIMS).map_err(hints::store_failure)?;
    let by_session = |record: &EventRecord| match &record.envelope.event {
        Event::TaskClaimed(claimed) => claimed.session.clone(),
        _ => None,
    };
    let Some(name) = claims.iter().find_map(by_session) else { return Ok(None) };
    opened.store.begin_snapshot().map_err(hints::store_failure)?.find_session(&name).map_err(hints::view_failure)
}

/// Returns whether a run would be refused because no person trusts its configuration.
fn lacks_needed_trust(opened: &OpenedProject, config: &Config, resumed: Option<&Session>) -> bool {
    check_config_trust(&opened.project, config, resumed, opened.trust).is_err()
}

/// Returns `windlass run` with its target, and the agent and `--trust` if needed.
pub fn format_run_command(what: &str, agent: Option<&str>, trust: bool) -> String {
    let agent = agent.map(|agent| format!(" --agent {}", quoted(agent).unwrap_or_else(|| UNKNOWN_AGENT.to_owned())));
    let trust = if trust { " --trust" } else { "" };
    format!("windlass run{what}{}{trust}", agent.unwrap_or_default())
}

/// Returns a word quoted for a shell, or `None` if it is too long to type or has invisible characters.
pub fn quote_typed_word(word: &str) -> Option<String> {
    if word.is_empty() || word.len() > MAX_SHELL_WORD || text::clean_line(word) != word {
        return None;
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    Some(match word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        let check = |word: &str, expected: Option<&str>| assert_eq!(quoted(word).as_deref(), expected, "{word}");
        check("login", Some("login"));
        check("Fix the login", Some("'Fix the login'"));
        check("don't; rm -rf $HOME", Some(r"'don'\''t; rm -rf $HOME'"));
        check("two\nlines", None);
        check("\u{202e}", None);
        check(&"x".repeat(MAX_SHELL_WORD + 1), None);
    }
}
