//! Folds the state that is kept about conversations of agents' own hook systems.

use super::{Changes, Fold};
use crate::bridge::{CallRuling, Caller, Conversation};
use crate::log::event::payload;
use crate::view::Change;

impl Fold<'_> {
    /// Resets the count of send-backs when a person has sent a message.
    pub(super) fn bridge_called(&self, called: &payload::BridgeCalled) -> Changes {
        let payload::BridgeCalled { agent, conversation, anew, .. } = called.clone();
        if anew { self.forgotten(Caller { agent, conversation }) } else { Ok(Vec::new()) }
    }

    pub(super) fn bridge_answered(&self, answered: &payload::BridgeAnswered) -> Changes {
        let payload::BridgeAnswered { agent, conversation, point, ruling, hooks, retries, reason, let_go, .. } =
            answered;
        let caller = Caller { agent: agent.clone(), conversation: conversation.clone() };
        // An agent that is let go at the limit stays so until a person sends a message: its hook system may call more than
        // once.
        if !point.sends_back() || let_go.is_some() {
            return Ok(Vec::new());
        }
        if *ruling != CallRuling::Block {
            return self.forgotten(caller);
        }
        let before = self.view.conversation(&caller)?.unwrap_or_else(|| Conversation::new(caller));
        if *retries != before.retries + 1 {
            return Err(self.unfit(format!("the agent was sent back {} times before", before.retries)));
        }
        let after = before.sent_back(hooks, reason.as_deref().unwrap_or_default(), self.seq);
        Ok(vec![Change::PutConversation(Box::new(after))])
    }

    fn forgotten(&self, caller: Caller) -> Changes {
        let known = self.view.conversation(&caller)?;
        Ok(known.map(|_| Change::DropConversation(caller)).into_iter().collect())
    }
}
