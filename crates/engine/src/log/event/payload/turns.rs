//! The payloads of an iteration: the turns of the agent, and the decisions of the gate.

use serde::{Deserialize, Serialize};

use crate::log::id::{Digest, OwnerName, RunId};
use crate::log::time::Timestamp;
use crate::session::promise::Promise;
use crate::session::turn_failure::TurnFailure;
use crate::session::usage::AgentUsage;
use crate::session::{ConversationStart, GateAnswer, GateDecision, GateVerdict, TurnPurpose};

payloads! {
    IterationStarted {
        run: RunId,
    }
    /// The agent starts a turn and gets all pending feedback with it.
    TurnStarted {
        run: RunId,
        owner: OwnerName,
        purpose: TurnPurpose,
        /// The number of feedback items. Some may be in this very commit, whose positions are still unknown.
        feedback: u32,
    }
    /// The agent has a conversation to work in.
    ConversationOpened {
        run: RunId,
        /// The agent's own name for the conversation.
        conversation: String,
        opening: ConversationStart,
        /// The reason why it is not the conversation before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    }
    TurnFinished {
        run: RunId,
        /// The agent's final message, or the relevant parts of it.
        output: String,
        /// The agent left processes behind. Windlass ended those that it could.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        leaky: bool,
        /// The file with the full output.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        record: Option<String>,
        /// The usage of the turn, if the agent reports it.
        #[serde(default, skip_serializing_if = "Usage::is_nothing")]
        usage: AgentUsage,
        /// The digest of the changes in the work directory.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tree: Option<Digest>,
        /// The work directory has not changed since the turn before.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unchanged: bool,
    }
    PromiseDetected {
        run: RunId,
        promise: Promise,
    }
    GateDecided {
        run: RunId,
        verdict: GateVerdict,
        decision: GateDecision,
        /// The number of send-backs in this iteration, including this one.
        retries: u32,
        /// The limit of send-backs, if hooks block.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_retries: Option<u32>,
        /// A short reason why hooks block.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    }
    /// A person has answered what happens while hooks block.
    GateAnswered {
        run: RunId,
        answer: GateAnswer,
    }
    IterationCompleted {
        run: RunId,
        /// The usage of all turns of the iteration.
        #[serde(default, skip_serializing_if = "Usage::is_nothing")]
        used: AgentUsage,
    }
    IterationFailed {
        run: RunId,
        error: String,
        /// The kind of failure, if known.
        #[serde(default, skip_serializing_if = "Fault::is_unknown")]
        fault: TurnFailure,
        /// The file with the full output of the agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        record: Option<String>,
        #[serde(default, skip_serializing_if = "Usage::is_nothing")]
        usage: AgentUsage,
        /// The agent left processes behind. Windlass ended those that it could.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        leaky: bool,
        /// The earliest start of the next iteration.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
    }
    IterationInterrupted {
        run: RunId,
        /// The file with the agent's output up to the interruption.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        record: Option<String>,
        #[serde(default, skip_serializing_if = "Usage::is_nothing")]
        usage: AgentUsage,
    }
    /// The agent is rate limited. Another iteration continues this one, not before `until`.
    IterationPostponed {
        run: RunId,
        error: String,
        until: Timestamp,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        record: Option<String>,
        #[serde(default, skip_serializing_if = "Usage::is_nothing")]
        usage: AgentUsage,
    }
    /// The agent has received the feedback that was pending at the end.
    DeliveryFinished {
        run: RunId,
        output: String,
        #[serde(default, skip_serializing_if = "Usage::is_nothing")]
        usage: AgentUsage,
        /// The agent left processes behind. Windlass ended those that it could.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        leaky: bool,
    }
    DeliveryFailed {
        run: RunId,
        error: String,
        #[serde(default, skip_serializing_if = "Fault::is_unknown")]
        fault: TurnFailure,
        #[serde(default, skip_serializing_if = "Usage::is_nothing")]
        usage: AgentUsage,
        /// The agent left processes behind. Windlass ended those that it could.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        leaky: bool,
    }
    DeliveryInterrupted {
        run: RunId,
    }
}
