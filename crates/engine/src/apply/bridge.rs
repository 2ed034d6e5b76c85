//! Folds the state that is kept about conversations of agents' own hook systems.

use super::{EventFold, FoldResult};
use crate::bridge::{BridgeCaller, BridgeConversation, CallRuling};
use crate::log::event::payload;
use crate::view::RowChange;

impl EventFold<'_> {
    /// Resets the count of send-backs when a person has sent a message.
    pub(super) fn fold_bridge_called(&self, called: &payload::BridgeCalled) -> FoldResult {
        let payload::BridgeCalled { agent, conversation, anew, .. } = called.clone();
        if anew { self.forget_conversation(BridgeCaller { agent, conversation }) } else { Ok(Vec::new()) }
    }

    pub(super) fn fold_bridge_answered(&self, answered: &payload::BridgeAnswered) -> FoldResult {
        let payload::BridgeAnswered { agent, conversation, point, ruling, hooks, retries, reason, let_go, .. } =
            answered;
        let caller = BridgeCaller { agent: agent.clone(), conversation: conversation.clone() };
        // An agent that is let go at the limit stays so until a person sends a message: its hook system may call more than
        // once.
        if !point.sends_back() || let_go.is_some() {
            return Ok(Vec::new());
        }
        if *ruling != CallRuling::Block {
            return self.forget_conversation(caller);
        }
        let before = self.view.find_conversation(&caller)?.unwrap_or_else(|| BridgeConversation::new(caller));
        if *retries != before.retries + 1 {
            return Err(self.unfit_event_error(format!("the agent was sent back {} times before", before.retries)));
        }
        let after = before.record_send_back(hooks, reason.as_deref().unwrap_or_default(), self.seq);
        Ok(vec![Change::PutConversation(Box::new(after))])
    }

    fn forget_conversation(&self, caller: BridgeCaller) -> FoldResult {
        let known = self.view.find_conversation(&caller)?;
        Ok(known.map(|_| RowChange::DropConversation(caller)).into_iter().collect())
    }
}
