//! Commands of the bridge: calls of an agent's own hook system, and the answers.

use super::{CauseRef, DecisionContext};
use crate::bridge::{BridgeCall, BridgeCaller, BridgeConversation, CallRuling, CallVerdict};
use crate::command::limits::{EngineLimits, check_nonblank_text, check_text_size, extract_summary_line};
use crate::command::refusal::Refusal;
use crate::effects::hook_point::HookPoint;
use crate::log::event::{EventSubject, payload};
use crate::log::id::Seq;
use crate::view::StateView;

impl BridgeCall {
    /// Returns the event that records the call.
    pub(crate) fn build_called_event(&self) -> payload::BridgeCalled {
        let BridgeCaller { agent, conversation } = self.caller.clone();
        let about = Some(extract_summary_line(&self.about)).filter(|about| !about.is_empty());
        let (point, tool, anew) = (self.point.clone(), self.tool.as_deref().map(extract_summary_line), self.anew);
        payload::BridgeCalled { agent, conversation, point, tool, about, anew, retries: 0 }
    }
}

impl BridgeCaller {
    fn check_caller(&self) -> Result<(), Refusal> {
        check_nonblank_text("the agent", &self.agent, EngineLimits::CONVERSATION_ID_BYTES)?;
        check_nonblank_text("the conversation", &self.conversation, EngineLimits::CONVERSATION_ID_BYTES)
    }
}

impl<'r> DecisionContext<'_, 'r> {
    /// Records a call. The event enqueues the hooks of its point.
    pub(super) fn record_bridge_call(&mut self, call: &'r BridgeCall) -> Result<(), Refusal> {
        call.caller.check_caller()?;
        self.call = Some(call);
        let row = self.draft.find_conversation(&call.caller)?;
        let anew = call.anew && !row.as_ref().is_some_and(|row| row.is_sent_back_prompt(&call.prompt));
        let retries = row.filter(|_| !anew).map_or(0, |row| row.retries);
        self.emit_event(EventSubject::System, payload::BridgeCalled { anew, retries, ..call.build_called_event() })?;
        self.call = None;
        Ok(())
    }

    /// Records the result of a call's hooks. At the limit of send-backs the agent is let go.
    pub(super) fn record_call_answer(&mut self, at: Seq, asked: &CallAnswer<'_>) -> Result<(), Refusal> {
        let CallAnswer { caller, point, verdict } = *asked;
        caller.check_caller()?;
        if at == Seq::START || at > self.draft.head_position()? {
            return Err(Refusal::invalid_input("the call", "is not in the log"));
        }
        check_text_size("the reason", verdict.reason.as_deref().unwrap_or_default(), EngineLimits::FEEDBACK_BYTES)?;
        check_text_size("the message", verdict.told.as_deref().unwrap_or_default(), EngineLimits::FEEDBACK_BYTES)?;
        let row = self.draft.find_conversation(caller)?;
        let conversation = row.unwrap_or_else(|| BridgeConversation::new(caller.clone()));
        let counts = verdict.ruling == CallRuling::Block && point.sends_back();
        let let_go = conversation.find_retry_limit(verdict).filter(|_| counts);
        let sent_back = counts && let_go.is_none();
        self.cause = Some(CauseRef::At(at));
        let BridgeCaller { agent, conversation: name } = caller.clone();
        let answered = payload::BridgeAnswered {
            agent,
            conversation: name,
            point: point.clone(),
            ruling: if let_go.is_some() { CallRuling::Pass } else { verdict.ruling },
            reason: verdict.reason.clone(),
            hooks: verdict.objectors.iter().map(|objector| objector.hook.clone()).collect(),
            retries: conversation.retries + u32::from(sent_back),
            max_retries: verdict.max_retries,
            let_go,
            told: verdict.told.clone(),
        };
        self.emit_event(EventSubject::System, answered).map(drop)
    }
}

/// An answer, with its recipient and its point.
#[derive(Clone, Copy)]
pub(super) struct CallAnswer<'a> {
    pub caller: &'a BridgeCaller,
    pub point: &'a HookPoint,
    pub verdict: &'a CallVerdict,
}
