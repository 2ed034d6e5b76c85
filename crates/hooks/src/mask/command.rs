//! Commands without secrets: the log, prompts and the environment of hooks hold the texts of people and agents.

use std::borrow::Cow;
use std::mem;

use windlass_engine::{Command, Finding, NewTask, OwnerName, TaskPatch};

use super::Mask;

impl Mask {
    /// Masks every text of a command.
    pub fn command<'c>(&self, command: &'c Command) -> Cow<'c, Command> {
        if self.is_empty() {
            return Cow::Borrowed(command);
        }
        let mut command = command.clone();
        self.hide(&mut command);
        Cow::Owned(command)
    }

    fn hide(&self, command: &mut Command) {
        match command {
            Command::CreateTask(NewTask { goal, body, deliverables, labels, .. }) => {
                self.hide_all([goal].into_iter().chain(body).chain(deliverables).chain(labels));
            }
            Command::UpdateTask { patch, .. } => self.hide_in(patch),
            Command::ClaimTask { owner, agent, .. } => {
                self.hide_all(agent);
                self.hide_owner(owner);
            }
            Command::StartTask { context, .. } => *context = self.value(context.take()),
            Command::CompleteTask { result, artifacts, .. } => self.hide_all(result.iter_mut().chain(artifacts)),
            Command::BlockTask { reason, required_knowledge, .. } => {
                self.hide_all([reason].into_iter().chain(required_knowledge));
            }
            Command::NeedContinuation { reason: text, .. }
            | Command::ReleaseTask { reason: text, .. }
            | Command::FailTask { reason: text, .. }
            | Command::ReopenTask { reason: text, .. }
            | Command::LeaveToPerson { reason: text, .. }
            | Command::OpenWorkspace { feedback: Some(Finding { text, .. }), .. }
            | Command::AddNote { text, .. }
            | Command::Say { text, .. }
            | Command::AbandonWorkflow { error: text, .. } => self.hide_all([text]),
            Command::AnswerTask { text, .. }
            | Command::AnswerGate { text, .. }
            | Command::StopSession { reason: text, .. }
            | Command::CancelSession { reason: text, .. } => self.hide_all(text),
            Command::StartSession(new) => self.hide_all(&mut new.goal),
            Command::TriggerWorkflow { context, .. } => *context = self.fields(mem::take(context)),
            // Other code masks the output of programs when it arrives, and the input of tools when they are called.
            _ => {}
        }
    }

    fn hide_in(&self, patch: &mut TaskPatch) {
        let TaskPatch { goal, body, deliverables, labels, add_labels, remove_labels, .. } = patch;
        let lists = [deliverables.as_mut(), labels.as_mut(), Some(add_labels), Some(remove_labels)];
        self.hide_all(goal.iter_mut().chain(body).chain(lists.into_iter().flatten().flatten()));
    }

    fn hide_all<'t>(&self, texts: impl IntoIterator<Item = &'t mut String>) {
        for text in texts {
            if let Cow::Owned(masked) = self.text(text) {
                *text = masked;
            }
        }
    }

    /// Masks an owner's name, which has no room for a marker.
    fn hide_owner(&self, owner: &mut OwnerName) {
        if let Cow::Owned(_) = self.text(owner.as_str()) {
            *owner = "secret".parse().expect("letters make a name");
        }
    }
}
