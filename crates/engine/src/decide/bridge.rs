//! Commands of the bridge: calls of an agent's own hook system, and the answers.

use super::{Causing, Deciding};
use crate::bridge::{BridgeCall, CallRuling, CallVerdict, Caller, Conversation};
use crate::command::limits::{Limits, check_bytes, check_text, gist};
use crate::command::refusal::Refusal;
use crate::effects::hook_point::HookPoint;
use crate::log::event::{Node, payload};
use crate::log::id::Seq;
use crate::view::View;

impl BridgeCall {
    /// Returns the event that records the call.
    pub(crate) fn event(&self) -> payload::BridgeCalled {
        let Caller { agent, conversation } = self.caller.clone();
        let about = Some(gist(&self.about)).filter(|about| !about.is_empty());
        let (point, tool, anew) = (self.point.clone(), self.tool.as_deref().map(gist), self.anew);
        payload::BridgeCalled { agent, conversation, point, tool, about, anew, retries: 0 }
    }
}

impl Caller {
    fn check(&self) -> Result<(), Refusal> {
        check_text("the agent", &self.agent, Limits::CONVERSATION)?;
        check_text("the conversation", &self.conversation, Limits::CONVERSATION)
    }
}

impl<'r> Deciding<'_, 'r> {
    /// Records a call. The event enqueues the hooks of its point.
    pub(super) fn call(&mut self, call: &'r BridgeCall) -> Result<(), Refusal> {
        call.caller.check()?;
        self.call = Some(call);
        let row = self.draft.conversation(&call.caller)?;
        let anew = call.anew && !row.as_ref().is_some_and(|row| row.was_told(&call.prompt));
        let retries = row.filter(|_| !anew).map_or(0, |row| row.retries);
        self.emit(Node::System, payload::BridgeCalled { anew, retries, ..call.event() })?;
        self.call = None;
        Ok(())
    }

    /// Records the result of a call's hooks. At the limit of send-backs the agent is let go.
    pub(super) fn answer_call(&mut self, at: Seq, asked: &Asked<'_>) -> Result<(), Refusal> {
        let Asked { caller, point, verdict } = *asked;
        caller.check()?;
        if at == Seq::START || at > self.draft.head()? {
            return Err(Refusal::invalid("the call", "is not in the log"));
        }
        check_bytes("the reason", verdict.reason.as_deref().unwrap_or_default(), Limits::FEEDBACK)?;
        check_bytes("what is told", verdict.told.as_deref().unwrap_or_default(), Limits::FEEDBACK)?;
        let row = self.draft.conversation(caller)?;
        let conversation = row.unwrap_or_else(|| Conversation::new(caller.clone()));
        let counts = verdict.ruling == CallRuling::Block && point.sends_back();
        let let_go = conversation.limit(verdict).filter(|_| counts);
        let sent_back = counts && let_go.is_none();
        self.cause = Some(Causing::At(at));
        let Caller { agent, conversation: name } = caller.clone();
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
        self.emit(Node::System, answered).map(drop)
    }
}

/// An answer, with its recipient and its point.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub caller: &'a Caller,
    pub point: &'a HookPoint,
    pub verdict: &'a CallVerdict,
}
