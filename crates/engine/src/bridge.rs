//! The bridge: conversations between people and their agents, where the agent's own hook system calls Windlass.
//!
//! ```text
//! call ─► bridge_called, which enqueues the hooks of its point ─► their verdict ─► bridge_answered ─► the agent
//! ```
//!
//! Windlass remembers two things about a conversation: how often its stop hooks have sent the agent back since a person last
//! spoke, and for which reason. So the retry limit holds from one process to the next.
//!
//! Invariants:
//! - The memory belongs to one conversation of one agent, and to no other.
//! - Above the limit, a block lets the agent go, and the answer says so. This lasts until a person speaks.
//! - Hooks of a call whose caller is dead do not run again: no process waits for the answer.
//!
//! Not here: the protocols of the agents (`bridge`, the crate).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::command::limits::EngineLimits;
use crate::effects::hook_point::HookPoint;
use crate::log::id::{Digest, Seq};

/// A conversation of an agent, as the key of its row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BridgeCaller {
    pub agent: String,
    pub conversation: String,
}

/// A call of an agent's hook system at one hook point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BridgeCall {
    pub caller: BridgeCaller,
    pub point: HookPoint,
    /// The tool that the agent is about to use or has used.
    pub tool: Option<String>,
    /// The values that matchers test: all names of the tool, or the reason for the call. An empty list matches every
    /// hook.
    pub matched: Vec<String>,
    pub tool_input: Value,
    pub tool_response: Value,
    pub prompt: String,
    /// The agent's last message.
    pub output: String,
    /// A short description of the call for people.
    pub about: String,
    /// Whether a person has spoken since the agent was last sent back, as far as the agent reports it.
    pub anew: bool,
    /// The limit of send-backs for a stop hook without a limit of its own.
    pub max_retries: u32,
}

impl BridgeCall {
    /// Returns a call at a hook point, with all other fields empty.
    pub fn new(point: HookPoint) -> Self {
        let nothing = || Value::Object(Map::new());
        Self {
            caller: BridgeCaller { agent: String::new(), conversation: String::new() },
            point,
            tool: None,
            matched: Vec::new(),
            tool_input: nothing(),
            tool_response: nothing(),
            prompt: String::new(),
            output: String::new(),
            about: String::new(),
            anew: false,
            max_retries: 0,
        }
    }
}

/// The effect of a call on the action that the agent is about to take. Mildest first, so that `max` is the strictest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallRuling {
    /// The agent does the same as without Windlass.
    #[default]
    Pass,
    Allow,
    /// The agent asks a person.
    Ask,
    Block,
}

/// A hook that blocks a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockingBridgeHook {
    pub hook: String,
    /// The limit of send-backs of this hook. Without it, `max_hook_retries` applies.
    pub max_send_backs: Option<u32>,
}

impl BlockingBridgeHook {
    /// Describes that the hook has reached its limit of send-backs.
    fn describe_exhausted_retries(&self, usual: u32) -> String {
        let (hook, whose) =
            (&self.hook, if self.max_send_backs.is_some() { "its `retry.max`" } else { "`max_hook_retries`" });
        match self.max_send_backs.unwrap_or(usual) {
            0 => format!("`{hook}` may not send the agent back ({whose} is 0)"),
            most => format!("`{hook}` has sent the agent back {} ({whose})", count_in_words(most)),
        }
    }
}

/// The combined verdict of the hooks of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallVerdict {
    pub ruling: CallRuling,
    pub reason: Option<String>,
    pub objectors: Vec<BlockingBridgeHook>,
    /// The limit of send-backs for a stop hook without a limit of its own.
    pub max_retries: u32,
    /// Other text for the agent, or the replacement for a tool's input, as the log holds it.
    pub told: Option<String>,
}

/// The row of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BridgeConversation {
    pub caller: BridgeCaller,
    /// The number of send-backs since a person last spoke.
    pub retries: u32,
    /// The number of send-backs per hook.
    pub sent_back: BTreeMap<String, u32>,
    /// The digest of the last reason for a send-back, and how often in a row the agent got it.
    pub words: Digest,
    pub same: u32,
    pub version: Seq,
}

impl BridgeConversation {
    pub(crate) fn new(caller: BridgeCaller) -> Self {
        Self { caller, retries: 0, sent_back: BTreeMap::new(), words: Digest::ZERO, same: 0, version: Seq::START }
    }

    /// Returns why the agent may not be sent back again. Each hook has its own count: while one of the blocking hooks
    /// is below its limit, the agent is sent back.
    pub(crate) fn find_retry_limit(&self, verdict: &CallVerdict) -> Option<String> {
        let most = |objector: &BlockingBridgeHook| objector.max_send_backs.unwrap_or(verdict.max_retries);
        let sent = |objector: &BlockingBridgeHook| self.sent_back.get(&objector.hook).copied().unwrap_or(0);
        if verdict.objectors.iter().all(|objector| sent(objector) >= most(objector)) {
            let spent =
                verdict.objectors.iter().map(|objector| objector.describe_exhausted_retries(verdict.max_retries));
            return Some(spent.collect::<Vec<_>>().join("; "));
        }
        let repeats = self.words == reason_digest(verdict.reason.as_deref().unwrap_or_default());
        (repeats && self.same + 1 >= EngineLimits::SAME_BLOCKS_IN_A_ROW)
            .then(|| format!("the same reason {} times in a row", EngineLimits::SAME_BLOCKS_IN_A_ROW))
    }

    /// Returns whether a prompt repeats the reason of the last send-back: some agents report that reason as a prompt.
    pub fn is_sent_back_prompt(&self, prompt: &str) -> bool {
        self.retries > 0 && self.words == reason_digest(prompt)
    }

    /// Counts one more send-back.
    pub(crate) fn record_send_back(mut self, hooks: &[String], reason: &str, version: Seq) -> Self {
        let words = reason_digest(reason);
        self.same = if self.words == words { self.same + 1 } else { 1 };
        self.words = words;
        self.retries += 1;
        hooks.iter().for_each(|hook| *self.sent_back.entry(hook.clone()).or_default() += 1);
        Self { version, ..self }
    }
}

fn count_in_words(times: u32) -> String {
    if times == 1 { "once".to_owned() } else { format!("{times} times") }
}

fn reason_digest(reason: &str) -> Digest {
    Digest::of_bytes(reason.trim().as_bytes())
}
