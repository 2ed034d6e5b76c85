//! The verdict of a JSON response at each role, and the texts that go with it.
//!
//! | the response says | at the stop gate | in a pipeline | elsewhere |
//! | --- | --- | --- | --- |
//! | nothing | success | success | success |
//! | `status: success`, `action: complete`, `decision: allow` or `approve`, `permissionDecision: allow` | success | success | success |
//! | `status: skip` | skip | skip | skip |
//! | `action: continue` | continue | block | success |
//! | `status: failure`, `decision: block` or `deny`, `permissionDecision: deny` | block | block | failure |
//! | `action: escalate`, `permissionDecision: ask`, `continue: false` | escalate | escalate | escalate |
//!
//! If a response says several of these, the last one of the table counts.
//!
//! Not here: exit codes (`report`).

use windlass_engine::HookOutcome;

use crate::HookRole;
use crate::response::{HookResponse, ResponseAction, ResponseDecision, ResponsePermission, ResponseStatus};
use crate::text::{clean_output, join_nonempty};

/// The verdict of a response on the work. Mildest first, so that `max` is the strictest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ResponseVerdict {
    NoOpinion,
    Pass,
    Skip,
    Continue,
    Block,
    Escalate,
}

impl ResponseVerdict {
    pub(crate) fn from_response(said: &HookResponse) -> Self {
        let status = said.status.map(|status| match status {
            ResponseStatus::Success => Self::Pass,
            ResponseStatus::Skip => Self::Skip,
            ResponseStatus::Failure => Self::Block,
        });
        let action = said.action.map(|action| match action {
            ResponseAction::Complete => Self::Pass,
            ResponseAction::Continue => Self::Continue,
            ResponseAction::Escalate => Self::Escalate,
        });
        let decision = said.decision.map(|decision| match decision {
            ResponseDecision::Allow => Self::Pass,
            ResponseDecision::Block => Self::Block,
        });
        let permission = said.specific.permission.map(|permission| match permission {
            ResponsePermission::Allow => Self::Pass,
            ResponsePermission::Deny => Self::Block,
            ResponsePermission::Ask => Self::Escalate,
            ResponsePermission::Defer => Self::NoOpinion,
        });
        // To an agent, `continue: false` means: stop here, whatever else was decided, and show the reason to the user. A
        // block would send the agent back, which is the opposite, and a pass would accept work that no hook has accepted.
        let stopped = (said.goes_on == Some(false)).then_some(Self::Escalate);
        [status, action, decision, permission, stopped].into_iter().flatten().max().unwrap_or(Self::NoOpinion)
    }

    pub(crate) fn to_outcome(self, role: HookRole) -> HookOutcome {
        match (self, role) {
            (Self::NoOpinion | Self::Pass, _) | (Self::Continue, HookRole::Observer) => HookOutcome::Success,
            (Self::Skip, _) => HookOutcome::Skip,
            (Self::Continue, HookRole::Stop) => HookOutcome::Continue,
            (Self::Continue, HookRole::Pipeline) | (Self::Block, HookRole::Stop | HookRole::Pipeline) => {
                HookOutcome::Block
            }
            (Self::Block, HookRole::Observer) => HookOutcome::Failure,
            (Self::Escalate, _) => HookOutcome::Escalate,
        }
    }

    /// Returns the words for the verdict in a note.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::NoOpinion => "nothing",
            Self::Pass => "that the hook passes",
            Self::Skip => "that it was skipped",
            Self::Continue => "that the work continues",
            Self::Block => "no",
            Self::Escalate => "that a person is needed",
        }
    }
}

/// Returns the reason: the texts that belong to the verdict, or else any text of the response.
pub(crate) fn verdict_reason(said: &HookResponse) -> String {
    let permission = &said.specific.permission_reason;
    let own: [Option<&String>; 3] = match ResponseVerdict::from_response(said) {
        ResponseVerdict::NoOpinion | ResponseVerdict::Pass | ResponseVerdict::Skip => {
            [said.message.as_ref().or(said.reason.as_ref()), None, None]
        }
        ResponseVerdict::Continue => [said.next_prompt.as_ref().or(said.reason.as_ref()), None, None],
        ResponseVerdict::Block => {
            let failed = said.status == Some(ResponseStatus::Failure);
            let remedy = said.remediation_prompt.as_ref().or(said.message.as_ref());
            [remedy.filter(|_| failed), said.reason.as_ref(), permission.as_ref()]
        }
        ResponseVerdict::Escalate => {
            let stopped = said.stop_reason.as_ref().filter(|_| said.goes_on == Some(false));
            [stopped, said.reason.as_ref(), permission.as_ref()]
        }
    };
    let own = distinct_texts(own.into_iter().flatten());
    if own.is_empty() { response_texts(said).into_iter().next().unwrap_or_default() } else { own.join("\n\n") }
}

/// Returns all texts of the response, except those for people or for the agent alone.
pub(crate) fn response_texts(said: &HookResponse) -> Vec<String> {
    let all = [
        &said.message,
        &said.reason,
        &said.remediation_prompt,
        &said.next_prompt,
        &said.stop_reason,
        &said.specific.permission_reason,
    ];
    distinct_texts(all.into_iter().flatten())
}

/// Returns the additional context for the agent.
pub(crate) fn agent_context_text(said: &HookResponse) -> String {
    said.specific.additional_context.as_deref().map(clean_and_trim).unwrap_or_default()
}

/// Returns the piped output of a run with a response: its texts, not its JSON.
pub(crate) fn piped_output(said: &HookResponse) -> String {
    let (words, context) = (response_texts(said).join("\n\n"), agent_context_text(said));
    // `suppressOutput` hides the texts. The context for the agent alone was never output.
    let words = if said.suppress_output { "" } else { &words };
    join_nonempty(&[words, &context], "\n\n")
}

/// Returns the texts that replace standard output beside exit 2, or `None` if the texts omit something.
pub(crate) fn stdout_replacement(said: &HookResponse) -> Option<String> {
    let text = join_nonempty(&[&response_texts(said).join("\n\n"), &agent_context_text(said)], "\n\n");
    let data = [&said.context, &said.metadata, &said.checkpoint_data].into_iter().any(|data| !data.is_empty());
    (said.unknown_fields().is_empty() && !(text.is_empty() && data)).then_some(text)
}

/// Returns the message for people.
pub(crate) fn message_for_people(said: &HookResponse, outcome: HookOutcome) -> Option<String> {
    let text = match outcome {
        HookOutcome::Escalate | HookOutcome::Failure => verdict_reason(said),
        HookOutcome::Success | HookOutcome::Skip => {
            said.message.as_ref().or(said.reason.as_ref()).map(|text| clean_and_trim(text)).unwrap_or_default()
        }
        _ => said.message.as_deref().map(clean_and_trim).unwrap_or_default(),
    };
    Some(text).filter(|text| !text.is_empty())
}

fn distinct_texts<'s>(texts: impl Iterator<Item = &'s String>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for text in texts.map(|text| clean_and_trim(text)) {
        if !text.is_empty() && !found.contains(&text) {
            found.push(text);
        }
    }
    found
}

pub(crate) fn clean_and_trim(text: &str) -> String {
    clean_output(text).trim().to_owned()
}
