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
use crate::response::{Decision, HookResponse, Permission, ResponseAction, Status};
use crate::text::{clean, join};

/// The verdict of a response on the work. Mildest first, so that `max` is the strictest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ResponseVerdict {
    Silent,
    Pass,
    Skip,
    Continue,
    Block,
    Escalate,
}

impl ResponseVerdict {
    pub(crate) fn of(said: &HookResponse) -> Self {
        let status = said.status.map(|status| match status {
            Status::Success => Self::Pass,
            Status::Skip => Self::Skip,
            Status::Failure => Self::Block,
        });
        let action = said.action.map(|action| match action {
            ResponseAction::Complete => Self::Pass,
            ResponseAction::Continue => Self::Continue,
            ResponseAction::Escalate => Self::Escalate,
        });
        let decision = said.decision.map(|decision| match decision {
            Decision::Allow => Self::Pass,
            Decision::Block => Self::Block,
        });
        let permission = said.specific.permission.map(|permission| match permission {
            Permission::Allow => Self::Pass,
            Permission::Deny => Self::Block,
            Permission::Ask => Self::Escalate,
            Permission::Defer => Self::Silent,
        });
        // To an agent, `continue: false` means: stop here, whatever else was decided, and show the reason to the user. A
        // block would send the agent back, which is the opposite, and a pass would accept work that no hook has accepted.
        let stopped = (said.goes_on == Some(false)).then_some(Self::Escalate);
        [status, action, decision, permission, stopped].into_iter().flatten().max().unwrap_or(Self::Silent)
    }

    pub(crate) fn outcome(self, role: HookRole) -> HookOutcome {
        match (self, role) {
            (Self::Silent | Self::Pass, _) | (Self::Continue, HookRole::Observer) => HookOutcome::Success,
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
            Self::Silent => "nothing",
            Self::Pass => "that all is well",
            Self::Skip => "that it was skipped",
            Self::Continue => "that work goes on",
            Self::Block => "no",
            Self::Escalate => "that a person is needed",
        }
    }
}

/// Returns the reason: the texts that belong to the verdict, or else any text of the response.
pub(crate) fn reason(said: &HookResponse) -> String {
    let permission = &said.specific.permission_reason;
    let own: [Option<&String>; 3] = match ResponseVerdict::of(said) {
        ResponseVerdict::Silent | ResponseVerdict::Pass | ResponseVerdict::Skip => {
            [said.message.as_ref().or(said.reason.as_ref()), None, None]
        }
        ResponseVerdict::Continue => [said.next_prompt.as_ref().or(said.reason.as_ref()), None, None],
        ResponseVerdict::Block => {
            let failed = said.status == Some(Status::Failure);
            let remedy = said.remediation_prompt.as_ref().or(said.message.as_ref());
            [remedy.filter(|_| failed), said.reason.as_ref(), permission.as_ref()]
        }
        ResponseVerdict::Escalate => {
            let stopped = said.stop_reason.as_ref().filter(|_| said.goes_on == Some(false));
            [stopped, said.reason.as_ref(), permission.as_ref()]
        }
    };
    let own = distinct(own.into_iter().flatten());
    if own.is_empty() { texts(said).into_iter().next().unwrap_or_default() } else { own.join("\n\n") }
}

/// Returns all texts of the response, except those for people or for the agent alone.
pub(crate) fn texts(said: &HookResponse) -> Vec<String> {
    let all = [
        &said.message,
        &said.reason,
        &said.remediation_prompt,
        &said.next_prompt,
        &said.stop_reason,
        &said.specific.permission_reason,
    ];
    distinct(all.into_iter().flatten())
}

/// Returns the additional context for the agent.
pub(crate) fn context(said: &HookResponse) -> String {
    said.specific.additional_context.as_deref().map(tidy).unwrap_or_default()
}

/// Returns the piped output of a run with a response: its texts, not its JSON.
pub(crate) fn output(said: &HookResponse) -> String {
    let (words, context) = (texts(said).join("\n\n"), context(said));
    // `suppressOutput` hides the texts. The context for the agent alone was never output.
    let words = if said.suppress_output { "" } else { &words };
    join(&[words, &context], "\n\n")
}

/// Returns the texts that replace standard output beside exit 2, or `None` if the texts omit something.
pub(crate) fn instead(said: &HookResponse) -> Option<String> {
    let told = join(&[&texts(said).join("\n\n"), &context(said)], "\n\n");
    let data = [&said.context, &said.metadata, &said.checkpoint_data].into_iter().any(|data| !data.is_empty());
    (said.unknown_fields().is_empty() && !(told.is_empty() && data)).then_some(told)
}

/// Returns the message for people.
pub(crate) fn for_people(said: &HookResponse, outcome: HookOutcome) -> Option<String> {
    let text = match outcome {
        HookOutcome::Escalate | HookOutcome::Failure => reason(said),
        HookOutcome::Success | HookOutcome::Skip => {
            said.message.as_ref().or(said.reason.as_ref()).map(|text| tidy(text)).unwrap_or_default()
        }
        _ => said.message.as_deref().map(tidy).unwrap_or_default(),
    };
    Some(text).filter(|text| !text.is_empty())
}

fn distinct<'s>(texts: impl Iterator<Item = &'s String>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for text in texts.map(|text| tidy(text)) {
        if !text.is_empty() && !found.contains(&text) {
            found.push(text);
        }
    }
    found
}

pub(crate) fn tidy(text: &str) -> String {
    clean(text).trim().to_owned()
}
