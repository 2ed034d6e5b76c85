//! The bridge: conversations that people have with their agents themselves, and whose own hook systems call us.
//!
//! ```text
//! call ─► bridge_called, which owes the hooks of its point ─► what they come to ─► bridge_answered ─► the agent
//! ```
//!
//! Of a conversation only this is remembered: how often its stop hooks have sent the agent back since a person last spoke,
//! and with which words. So the limit holds from one process to the next.
//!
//! Invariants:
//! - What is remembered belongs to one conversation of one agent, and to no other.
//! - A block beyond the limit is let go, and the answer says so. It stays so until a person speaks.
//! - Hooks of a call whose caller is dead are not run again: nobody waits for the answer.
//!
//! Not here: what agents say and want to hear (`bridge`, the crate).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::command::limits::Limits;
use crate::effects::hook_point::HookPoint;
use crate::log::id::{Digest, Seq};

/// One conversation of one agent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Caller {
    pub agent: String,
    pub conversation: String,
}

/// What an agent's hook system says at one point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BridgeCall {
    pub caller: Caller,
    pub point: HookPoint,
    /// The tool that is about to be used or was.
    pub tool: Option<String>,
    /// What matchers look at: the tool by all of its names, or why the agent calls. Where there is nothing, all of them match.
    pub matched: Vec<String>,
    pub tool_input: Value,
    pub tool_response: Value,
    pub prompt: String,
    /// What the agent said last.
    pub output: String,
    /// What the call is about, in a few words for people.
    pub about: String,
    /// As far as the agent tells, a person has spoken since it was last sent back.
    pub anew: bool,
    /// How often a stop hook that says nothing else may send the agent back.
    pub max_retries: u32,
}

impl BridgeCall {
    /// Returns a call at a point that says nothing.
    pub fn new(point: HookPoint) -> Self {
        let nothing = || Value::Object(Map::new());
        Self {
            caller: Caller { agent: String::new(), conversation: String::new() },
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

/// What becomes of what is about to happen. Mildest first, so that `max` is the strictest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallRuling {
    /// What the agent would do without us.
    #[default]
    Pass,
    Allow,
    /// A person is to be asked.
    Ask,
    Block,
}

/// A hook that says no.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Objector {
    pub hook: String,
    /// How often it may send the agent back; without it, as often as `max_hook_retries` says.
    pub most: Option<u32>,
}

impl Objector {
    /// That it has sent the agent back as often as it may, in words for people.
    fn spent(&self, usual: u32) -> String {
        let (hook, whose) = (&self.hook, if self.most.is_some() { "its `retry.max`" } else { "`max_hook_retries`" });
        match self.most.unwrap_or(usual) {
            0 => format!("`{hook}` may not send the agent back ({whose} is 0)"),
            most => format!("`{hook}` has sent the agent back {} ({whose})", often(most)),
        }
    }
}

/// What hooks have come to about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallVerdict {
    pub ruling: CallRuling,
    pub reason: Option<String>,
    pub objectors: Vec<Objector>,
    /// How often a stop hook that says nothing else may send the agent back.
    pub max_retries: u32,
    /// What else the agent is told, or what a tool is called with instead, as it is kept.
    pub told: Option<String>,
}

/// What is remembered of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Conversation {
    pub caller: Caller,
    /// How often the agent was sent back since a person last spoke.
    pub retries: u32,
    /// The same for each hook.
    pub sent_back: BTreeMap<String, u32>,
    /// With which words it was sent back last, and how often in a row.
    pub words: Digest,
    pub same: u32,
    pub version: Seq,
}

impl Conversation {
    pub(crate) fn new(caller: Caller) -> Self {
        Self { caller, retries: 0, sent_back: BTreeMap::new(), words: Digest::ZERO, same: 0, version: Seq::START }
    }

    /// Why the agent may not be sent back once more, in words for people. Each hook counts for itself: while one of those that
    /// object may send it back, it is.
    pub(crate) fn limit(&self, verdict: &CallVerdict) -> Option<String> {
        let most = |objector: &Objector| objector.most.unwrap_or(verdict.max_retries);
        let sent = |objector: &Objector| self.sent_back.get(&objector.hook).copied().unwrap_or(0);
        if verdict.objectors.iter().all(|objector| sent(objector) >= most(objector)) {
            let spent = verdict.objectors.iter().map(|objector| objector.spent(verdict.max_retries));
            return Some(spent.collect::<Vec<_>>().join("; "));
        }
        let repeats = self.words == words(verdict.reason.as_deref().unwrap_or_default());
        (repeats && self.same + 1 >= Limits::SAME_BLOCKS)
            .then(|| format!("the same words {} times in a row", Limits::SAME_BLOCKS))
    }

    /// Whether a prompt is what the agent was sent back with: some agents call that a prompt.
    pub fn was_told(&self, prompt: &str) -> bool {
        self.retries > 0 && self.words == words(prompt)
    }

    /// After it was sent back once more.
    pub(crate) fn sent_back(mut self, hooks: &[String], reason: &str, version: Seq) -> Self {
        let words = words(reason);
        self.same = if self.words == words { self.same + 1 } else { 1 };
        self.words = words;
        self.retries += 1;
        hooks.iter().for_each(|hook| *self.sent_back.entry(hook.clone()).or_default() += 1);
        Self { version, ..self }
    }
}

fn often(times: u32) -> String {
    if times == 1 { "once".to_owned() } else { format!("{times} times") }
}

fn words(reason: &str) -> Digest {
    Digest::of(reason.trim().as_bytes())
}
