//! What an iteration says of itself: the turns of the agent, and how the gate judges them.

use serde::{Deserialize, Serialize};

use crate::log::id::{Digest, OwnerName, RunId};
use crate::log::time::Timestamp;
use crate::session::fault::Fault;
use crate::session::promise::Promise;
use crate::session::usage::Usage;
use crate::session::{Decision, GateAnswer, Opening, Purpose, Verdict};

payloads! {
    IterationStarted {
        run: RunId,
    }
    /// The agent gets the word, and with it all feedback that is pending.
    TurnStarted {
        run: RunId,
        owner: OwnerName,
        purpose: Purpose,
        /// How many pieces that is. Some may be of this very commit, whose positions are not known yet.
        feedback: u32,
    }
    /// The agent has a conversation to work in.
    ConversationOpened {
        run: RunId,
        /// As the agent names it.
        conversation: String,
        opening: Opening,
        /// Why it is not the one before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    }
    TurnFinished {
        run: RunId,
        /// The agent's final message, or the telling parts of it.
        output: String,
        /// It left processes behind; those that could be were ended.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        leaky: bool,
        /// The file that has all of what it wrote.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        record: Option<String>,
        /// What the turn has used, where the agent tells.
        #[serde(default, skip_serializing_if = "Usage::is_nothing")]
        usage: Usage,
        /// What has changed in the directory of the work, as a digest.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tree: Option<Digest>,
        /// It has changed nothing there since the turn before.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unchanged: bool,
    }
    PromiseDetected {
        run: RunId,
        promise: Promise,
    }
    GateDecided {
        run: RunId,
        verdict: Verdict,
        decision: Decision,
        /// How often the agent has been sent back in this iteration, this time included.
        retries: u32,
        /// How often it may be, where hooks block.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_retries: Option<u32>,
        /// Why hooks block, in a few words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    }
    /// A person has said what is to happen where hooks do not let the agent go.
    GateAnswered {
        run: RunId,
        answer: GateAnswer,
    }
    IterationCompleted {
        run: RunId,
        /// What all of its turns have used together.
        #[serde(default, skip_serializing_if = "Usage::is_nothing")]
        used: Usage,
    }
    IterationFailed {
        run: RunId,
        error: String,
        /// What was wrong, where that is known.
        #[serde(default, skip_serializing_if = "Fault::is_unknown")]
        fault: Fault,
        /// The file that has all of what the agent wrote.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        record: Option<String>,
        #[serde(default, skip_serializing_if = "Usage::is_nothing")]
        usage: Usage,
        /// It left processes behind; those that could be were ended.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        leaky: bool,
        /// The next iteration does not begin before that moment.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
    }
    IterationInterrupted {
        run: RunId,
        /// The file that has what the agent wrote until then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        record: Option<String>,
        #[serde(default, skip_serializing_if = "Usage::is_nothing")]
        usage: Usage,
    }
    /// The agent was asked too often. Another iteration takes this one up, not before that moment.
    IterationPostponed {
        run: RunId,
        error: String,
        until: Timestamp,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        record: Option<String>,
        #[serde(default, skip_serializing_if = "Usage::is_nothing")]
        usage: Usage,
    }
    /// The agent has heard what was pending at the end.
    DeliveryFinished {
        run: RunId,
        output: String,
        #[serde(default, skip_serializing_if = "Usage::is_nothing")]
        usage: Usage,
        /// It left processes behind; those that could be were ended.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        leaky: bool,
    }
    DeliveryFailed {
        run: RunId,
        error: String,
        #[serde(default, skip_serializing_if = "Fault::is_unknown")]
        fault: Fault,
        #[serde(default, skip_serializing_if = "Usage::is_nothing")]
        usage: Usage,
        /// It left processes behind; those that could be were ended.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        leaky: bool,
    }
    DeliveryInterrupted {
        run: RunId,
    }
}
