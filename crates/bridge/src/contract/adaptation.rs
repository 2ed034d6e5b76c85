//! The adaptation of a response to what its agent supports at an event.

use serde_json::Value;
use windlass_engine::CallRuling;

use super::{AgentContract, BlockEncoding};
use crate::{AgentHookEvent, AgentHookResponse, UnsupportedPart};

impl AgentContract {
    /// Returns the supported part of the response, and the unsupported parts.
    pub fn adapt_response(&self, response: &AgentHookResponse) -> (AgentHookResponse, Vec<UnsupportedPart>) {
        let mut adapted = AgentHookResponse {
            ruling: response.ruling,
            reason: reason_or_default(&response.reason),
            context: nonblank_text(&response.context),
            message: nonblank_text(&response.message),
            ..AgentHookResponse::default()
        };
        // The order matters: each step works on the result of the steps before it.
        let unsupported = [
            self.adapt_halt(&mut adapted, response),
            self.adapt_permission(&mut adapted),
            self.adapt_updated_input(&mut adapted, response),
            self.adapt_block(&mut adapted),
            self.adapt_context(&mut adapted),
            self.adapt_updated_output(&mut adapted, response),
        ];
        (adapted, unsupported.into_iter().flatten().collect())
    }

    /// Adapts a halt, which outweighs the ruling.
    fn adapt_halt(&self, adapted: &mut AgentHookResponse, response: &AgentHookResponse) -> Option<UnsupportedPart> {
        let why = reason_or_default(response.halt.as_deref()?);
        match self.event {
            // The agent is about to end anyway.
            AgentHookEvent::Stop | AgentHookEvent::SubagentStop => {
                adapted.ruling = CallRuling::Pass;
                if !self.halts {
                    append_message(adapted, &why);
                }
            }
            AgentHookEvent::PreToolUse if adapted.ruling == CallRuling::Block => {}
            AgentHookEvent::PreToolUse => adapted.replace_ruling(CallRuling::Block, why.clone()),
            _ if self.halts => adapted.ruling = CallRuling::Pass,
            AgentHookEvent::UserPromptSubmit | AgentHookEvent::PostToolUse => {
                adapted.replace_ruling(CallRuling::Block, why.clone());
            }
            AgentHookEvent::SessionStart
            | AgentHookEvent::Notification
            | AgentHookEvent::PreCompact
            | AgentHookEvent::SessionEnd => append_message(adapted, &why),
        }
        if self.halts {
            adapted.halt = Some(why);
            return None;
        }
        Some(UnsupportedPart::Halt)
    }

    /// Adapts a permission. Only tools have one. An agent that cannot ask must not use the tool, because no person has agreed.
    fn adapt_permission(&self, adapted: &mut AgentHookResponse) -> Option<UnsupportedPart> {
        match adapted.ruling {
            CallRuling::Allow | CallRuling::Ask if self.event != AgentHookEvent::PreToolUse => {
                adapted.ruling = CallRuling::Pass;
                None
            }
            CallRuling::Allow if !self.allows => {
                adapted.ruling = CallRuling::Pass;
                Some(UnsupportedPart::Allow)
            }
            CallRuling::Ask if !self.asks => {
                let (why, title) = (&adapted.reason, self.agent.title());
                let why = format!("{why}\n\nA person must agree, and {title} cannot ask: the tool is not used.");
                adapted.replace_ruling(CallRuling::Block, why);
                Some(UnsupportedPart::Ask)
            }
            _ => None,
        }
    }

    /// Adapts an updated input. An agent that cannot take it must not use the tool with the input that the hook rejected.
    fn adapt_updated_input(
        &self,
        adapted: &mut AgentHookResponse,
        response: &AgentHookResponse,
    ) -> Option<UnsupportedPart> {
        let goes_on = self.event == AgentHookEvent::PreToolUse && adapted.ruling != CallRuling::Block;
        let input = response.updated_input.as_ref().filter(|_| goes_on)?;
        if self.updated_input.is_some() {
            adapted.updated_input = Some(input.clone());
            return None;
        }
        let (title, wanted) = (self.agent.title(), Value::Object(input.clone()));
        let why = format!(
            "A hook wants another input for this tool, and {title} accepts none from hooks: the tool was not used. \
             Use the tool again, with this input: {wanted}"
        );
        adapted.replace_ruling(CallRuling::Block, why);
        Some(UnsupportedPart::UpdatedInput)
    }

    fn adapt_block(&self, adapted: &mut AgentHookResponse) -> Option<UnsupportedPart> {
        if adapted.ruling != CallRuling::Block {
            return None;
        }
        let why = adapted.reason.clone();
        match self.block {
            BlockEncoding::Unsupported => {
                append_message(adapted, &why);
                adapted.ruling = CallRuling::Pass;
                return Some(UnsupportedPart::Block);
            }
            BlockEncoding::Context => {
                adapted.context = join_texts(Some(why), adapted.context.take());
                adapted.ruling = CallRuling::Pass;
            }
            // No turn follows in which the agent could read the context.
            _ if self.event == AgentHookEvent::UserPromptSubmit => adapted.context = None,
            // The agent reads the reason, so the context is added to it.
            _ if self.context.is_none() => {
                adapted.reason = join_texts(Some(why), adapted.context.take()).unwrap_or_default();
            }
            BlockEncoding::ExitCodeAndJson | BlockEncoding::JsonOnly | BlockEncoding::ToolJson => {}
        }
        None
    }

    fn adapt_context(&self, adapted: &mut AgentHookResponse) -> Option<UnsupportedPart> {
        (self.context.is_none() && adapted.context.take().is_some()).then_some(UnsupportedPart::Context)
    }

    fn adapt_updated_output(
        &self,
        adapted: &mut AgentHookResponse,
        response: &AgentHookResponse,
    ) -> Option<UnsupportedPart> {
        let output = response.updated_output.as_ref().filter(|_| self.event == AgentHookEvent::PostToolUse)?;
        if !self.updated_output {
            return Some(UnsupportedPart::UpdatedOutput);
        }
        adapted.updated_output = Some(output.clone());
        None
    }
}

/// Appends text to the message for the user.
fn append_message(adapted: &mut AgentHookResponse, text: &str) {
    adapted.message = join_texts(adapted.message.take(), Some(text.to_owned()));
}

/// Returns the reason, or a default: some agents ignore a block without a reason.
fn reason_or_default(why: &str) -> String {
    if why.trim().is_empty() { "A hook decided this without a reason.".to_owned() } else { why.to_owned() }
}

fn nonblank_text(text: &Option<String>) -> Option<String> {
    text.clone().filter(|text| !text.trim().is_empty())
}

fn join_texts(first: Option<String>, second: Option<String>) -> Option<String> {
    match (first, second) {
        (Some(first), Some(second)) => Some(format!("{first}\n\n{second}")),
        (first, second) => first.or(second),
    }
}
