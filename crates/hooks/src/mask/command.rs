//! Commands without secrets: the log, prompts and the environment of hooks hold the texts of people and agents.

use std::borrow::Cow;
use std::mem;

use windlass_engine::{Command, GateFinding, NewTask, OwnerName, TaskPatch};

use super::SecretMask;

impl SecretMask {
    /// Masks every text of a command.
    pub fn mask_command<'c>(&self, command: &'c Command) -> Cow<'c, Command> {
        if self.is_empty() {
            return Cow::Borrowed(command);
        }
        let mut command = command.clone();
        self.mask_command_texts(&mut command);
        Cow::Owned(command)
    }

    fn mask_command_texts(&self, command: &mut Command) {
        match command {
            Command::CreateTask(NewTask { goal, body, deliverables, labels, .. }) => {
                self.mask_texts([goal].into_iter().chain(body).chain(deliverables).chain(labels));
            }
            Command::UpdateTask { patch, .. } => self.mask_task_patch(patch),
            Command::ClaimTask { owner, agent, .. } => {
                self.mask_texts(agent);
                self.mask_owner_name(owner);
            }
            Command::StartTask { context, .. } => *context = self.mask_value(context.take()),
            Command::CompleteTask { result, artifacts, .. } => self.mask_texts(result.iter_mut().chain(artifacts)),
            Command::BlockTask { reason, required_knowledge, .. } => {
                self.mask_texts([reason].into_iter().chain(required_knowledge));
            }
            Command::NeedContinuation { reason: text, .. }
            | Command::ReleaseTask { reason: text, .. }
            | Command::FailTask { reason: text, .. }
            | Command::ReopenTask { reason: text, .. }
            | Command::LeaveToPerson { reason: text, .. }
            | Command::OpenWorkspace { feedback: Some(GateFinding { text, .. }), .. }
            | Command::AddNote { text, .. }
            | Command::Say { text, .. }
            | Command::AbandonWorkflow { error: text, .. } => self.mask_texts([text]),
            Command::AnswerTask { text, .. }
            | Command::AnswerGate { text, .. }
            | Command::StopSession { reason: text, .. }
            | Command::CancelSession { reason: text, .. } => self.mask_texts(text),
            Command::StartSession(new) => self.mask_texts(&mut new.goal),
            Command::TriggerWorkflow { context, .. } => *context = self.mask_fields(mem::take(context)),
            // Other code masks the output of programs when it arrives, and the input of tools when they are called.
            _ => {}
        }
    }

    fn mask_task_patch(&self, patch: &mut TaskPatch) {
        let TaskPatch { goal, body, deliverables, labels, add_labels, remove_labels, .. } = patch;
        let lists = [deliverables.as_mut(), labels.as_mut(), Some(add_labels), Some(remove_labels)];
        self.mask_texts(goal.iter_mut().chain(body).chain(lists.into_iter().flatten().flatten()));
    }

    fn mask_texts<'t>(&self, texts: impl IntoIterator<Item = &'t mut String>) {
        for text in texts {
            if let Cow::Owned(masked) = self.mask_text(text) {
                *text = masked;
            }
        }
    }

    /// Masks an owner's name, which has no room for a marker.
    fn mask_owner_name(&self, owner: &mut OwnerName) {
        if let Cow::Owned(_) = self.mask_text(owner.as_str()) {
            *owner = "secret".parse().expect("letters make a name");
        }
    }
}
