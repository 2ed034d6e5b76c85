//! A command that a person types next, with its purpose.
//!
//! Not here: which command that is (`next_step`, `resume_command`).

use windlass_config::{Config, ConfigSource, plan};
use windlass_engine::EventType;

use crate::context::Opened;
use crate::hints;
use crate::trust::{self, Trust};

/// A command to type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextStep {
    pub command: String,
    pub purpose: String,
    /// What a person should know before.
    note: Option<String>,
}

impl NextStep {
    pub fn new(command: impl Into<String>, purpose: impl Into<String>) -> Self {
        Self { command: command.into(), purpose: purpose.into(), note: None }
    }

    pub fn with_note(self, note: impl Into<Option<String>>) -> Self {
        Self { note: note.into(), ..self }
    }

    /// Returns the command with what a person should know, as a comment of the shell.
    pub fn line(&self) -> String {
        match &self.note {
            Some(note) => format!("{}  # {note}", self.command),
            None => self.command.clone(),
        }
    }

    /// Returns the line with another comment, where there is nothing that a person should know first.
    pub fn line_with(&self, comment: &str) -> String {
        match &self.note {
            Some(_) => self.line(),
            None => format!("{}  # {comment}", self.command),
        }
    }

    /// Returns the step with the trust that it needs, where hooks run for one of these events, or for any if none is named.
    /// `--trust` is offered only to a person who has said it.
    pub fn with_trust(self, opened: &Opened, events: &[EventType]) -> Self {
        // A configuration that cannot be read is told by the command itself.
        let config = ConfigSource::load(&opened.project.root).ok().and_then(|written| Config::parse(written).ok());
        let Some(config) = config else { return self };
        let runs_hooks = plan::planned_hooks(&config).keys().any(|event| events.is_empty() || events.contains(event));
        let trusted = || trust::state(&opened.project, &config).is_ok_and(|state| state == Trust::Trusted);
        match (runs_hooks && !trusted(), opened.trust) {
            (false, _) => self,
            (true, true) => Self { command: format!("{} --trust", self.command), ..self },
            (true, false) => self.with_note(hints::UNTRUSTED.to_owned()),
        }
    }
}
