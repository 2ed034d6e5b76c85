//! A command for a person to type next, with its purpose.
//!
//! Not here: the choice of the command (`next_step`, `resume_command`).

use windlass_config::{Config, ConfigSource, plan};
use windlass_engine::EventType;

use crate::context::OpenedProject;
use crate::hints;
use crate::trust::{self, TrustState};

/// A command for a person to type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextStep {
    pub command: String,
    pub purpose: String,
    /// A note for the person to read first.
    note: Option<String>,
}

impl NextStep {
    pub fn new(command: impl Into<String>, purpose: impl Into<String>) -> Self {
        Self { command: command.into(), purpose: purpose.into(), note: None }
    }

    pub fn with_note(self, note: impl Into<Option<String>>) -> Self {
        Self { note: note.into(), ..self }
    }

    /// Puts a remark in front of the note.
    pub fn with_first_note(self, first: String) -> Self {
        let note = self.note.map_or_else(|| first.clone(), |note| format!("{first}; {note}"));
        Self { note: Some(note), ..self }
    }

    /// Returns the command with its note as a shell comment.
    pub fn shell_line(&self) -> String {
        match &self.note {
            Some(note) => format!("{}  # {note}", self.command),
            None => self.command.clone(),
        }
    }

    /// Returns the command with its note, or if it has none, with this comment.
    pub fn shell_line_with_comment(&self, comment: &str) -> String {
        match &self.note {
            Some(_) => self.shell_line(),
            None => format!("{}  # {comment}", self.command),
        }
    }

    /// Adds the trust that the step needs if hooks run for one of these events, or for any event if none is named. `--trust` is
    /// offered only to a person who has used it.
    pub fn with_needed_trust(self, opened: &OpenedProject, events: &[EventType]) -> Self {
        // The command itself reports a configuration that cannot be read.
        let config =
            ConfigSource::load(&opened.project.root).ok().and_then(|written| Config::from_source(written).ok());
        let Some(config) = config else { return self };
        let runs_hooks = plan::plan_hooks(&config).keys().any(|event| events.is_empty() || events.contains(event));
        let trusted =
            || trust::find_trust_state(&opened.project, &config).is_ok_and(|state| state == TrustState::Trusted);
        match (runs_hooks && !trusted(), opened.trust) {
            (false, _) => self,
            (true, true) => Self { command: format!("{} --trust", self.command), ..self },
            (true, false) => self.with_note(hints::UNTRUSTED_NOTE.to_owned()),
        }
    }
}
