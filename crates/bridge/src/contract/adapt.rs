//! The adaptation of a response to what its agent supports at an event.

use serde_json::Value;
use windlass_engine::CallRuling;

use super::{BlockEncoding, Contract};
use crate::{AgentHookEvent, AgentHookResponse, Unsupported};

impl Contract {
    /// Returns the supported part of the response, and the unsupported parts.
    pub fn adapt(&self, response: &AgentHookResponse) -> (AgentHookResponse, Vec<Unsupported>) {
        let mut adapted = AgentHookResponse {
            ruling: response.ruling,
            reason: reason(&response.reason),
            context: said(&response.context),
            message: said(&response.message),
            ..AgentHookResponse::default()
        };
        // The order matters: each step works on the result of the steps before it.
        let unsupported = [
            self.halt(&mut adapted, response),
            self.permit(&mut adapted),
            self.change_input(&mut adapted, response),
            self.block(&mut adapted),
            self.tell(&mut adapted),
            self.change_output(&mut adapted, response),
        ];
        (adapted, unsupported.into_iter().flatten().collect())
    }

    /// Adapts a halt, which outweighs the ruling.
    fn halt(&self, adapted: &mut AgentHookResponse, response: &AgentHookResponse) -> Option<Unsupported> {
        let why = reason(response.halt.as_deref()?);
        match self.event {
            // The agent is about to end anyway.
            AgentHookEvent::Stop | AgentHookEvent::SubagentStop => {
                adapted.ruling = CallRuling::Pass;
                if !self.halts {
                    tell_person(adapted, &why);
                }
            }
            AgentHookEvent::PreToolUse if adapted.ruling == CallRuling::Block => {}
            AgentHookEvent::PreToolUse => adapted.rule(CallRuling::Block, why.clone()),
            _ if self.halts => adapted.ruling = CallRuling::Pass,
            AgentHookEvent::UserPromptSubmit | AgentHookEvent::PostToolUse => {
                adapted.rule(CallRuling::Block, why.clone());
            }
            AgentHookEvent::SessionStart
            | AgentHookEvent::Notification
            | AgentHookEvent::PreCompact
            | AgentHookEvent::SessionEnd => tell_person(adapted, &why),
        }
        if self.halts {
            adapted.halt = Some(why);
            return None;
        }
        Some(Unsupported::Halt)
    }

    /// Adapts a permission. Only tools have one. An agent that cannot ask must not use the tool, because no person has agreed.
    fn permit(&self, adapted: &mut AgentHookResponse) -> Option<Unsupported> {
        match adapted.ruling {
            CallRuling::Allow | CallRuling::Ask if self.event != AgentHookEvent::PreToolUse => {
                adapted.ruling = CallRuling::Pass;
                None
            }
            CallRuling::Allow if !self.allows => {
                adapted.ruling = CallRuling::Pass;
                Some(Unsupported::Allow)
            }
            CallRuling::Ask if !self.asks => {
                let (why, title) = (&adapted.reason, self.agent.title());
                let why = format!("{why}\n\nA person has to agree, and {title} cannot be made to ask: it is not done.");
                adapted.rule(CallRuling::Block, why);
                Some(Unsupported::Ask)
            }
            _ => None,
        }
    }

    /// Adapts an updated input. An agent that cannot take it must not use the tool with the input that the hook rejected.
    fn change_input(&self, adapted: &mut AgentHookResponse, response: &AgentHookResponse) -> Option<Unsupported> {
        let goes_on = self.event == AgentHookEvent::PreToolUse && adapted.ruling != CallRuling::Block;
        let input = response.updated_input.as_ref().filter(|_| goes_on)?;
        if self.updated_input.is_some() {
            adapted.updated_input = Some(input.clone());
            return None;
        }
        let (title, wanted) = (self.agent.title(), Value::Object(input.clone()));
        let why = format!(
            "A hook wants another input for this tool, and {title} takes none from hooks: it is not done. \
             Use the tool again, with this input: {wanted}"
        );
        adapted.rule(CallRuling::Block, why);
        Some(Unsupported::UpdatedInput)
    }

    fn block(&self, adapted: &mut AgentHookResponse) -> Option<Unsupported> {
        if adapted.ruling != CallRuling::Block {
            return None;
        }
        let why = adapted.reason.clone();
        match self.block {
            BlockEncoding::Unsupported => {
                tell_person(adapted, &why);
                adapted.ruling = CallRuling::Pass;
                return Some(Unsupported::Block);
            }
            BlockEncoding::Context => {
                adapted.context = joined(Some(why), adapted.context.take());
                adapted.ruling = CallRuling::Pass;
            }
            // No turn follows in which the agent could read the context.
            _ if self.event == AgentHookEvent::UserPromptSubmit => adapted.context = None,
            // The agent reads the reason, so the context is added to it.
            _ if self.context.is_none() => {
                adapted.reason = joined(Some(why), adapted.context.take()).unwrap_or_default();
            }
            BlockEncoding::ExitCodeAndJson | BlockEncoding::JsonOnly | BlockEncoding::ToolJson => {}
        }
        None
    }

    fn tell(&self, adapted: &mut AgentHookResponse) -> Option<Unsupported> {
        (self.context.is_none() && adapted.context.take().is_some()).then_some(Unsupported::Context)
    }

    fn change_output(&self, adapted: &mut AgentHookResponse, response: &AgentHookResponse) -> Option<Unsupported> {
        let output = response.updated_output.as_ref().filter(|_| self.event == AgentHookEvent::PostToolUse)?;
        if !self.updated_output {
            return Some(Unsupported::UpdatedOutput);
        }
        adapted.updated_output = Some(output.clone());
        None
    }
}

/// Appends text to the message for the user.
fn tell_person(adapted: &mut AgentHookResponse, text: &str) {
    adapted.message = joined(adapted.message.take(), Some(text.to_owned()));
}

/// Returns the reason, or a default: some agents ignore a block without a reason.
fn reason(why: &str) -> String {
    if why.trim().is_empty() { "A hook says so, and not why.".to_owned() } else { why.to_owned() }
}

fn said(text: &Option<String>) -> Option<String> {
    text.clone().filter(|text| !text.trim().is_empty())
}

fn joined(first: Option<String>, second: Option<String>) -> Option<String> {
    match (first, second) {
        (Some(first), Some(second)) => Some(format!("{first}\n\n{second}")),
        (first, second) => first.or(second),
    }
}
