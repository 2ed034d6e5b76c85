//! What holds for a whole session: how much it may use, and what its end takes.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::usage::Cost;
use crate::watch::millis;

/// What makes the work complete, once the gates agree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Completion {
    /// The agent says that it is done.
    #[default]
    Promise,
    /// The end of a turn.
    Gate,
}

/// What happens when stop hooks have sent the agent back as often as they may.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnRetryLimit {
    #[default]
    Escalate,
    Complete,
    /// A person is asked what is to happen.
    Ask,
}

/// What holds for a whole session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Terms {
    pub max_iterations: u32,
    /// How often a stop hook that says nothing else may send the agent back within an iteration.
    pub max_hook_retries: u32,
    /// Failed iterations in a row.
    pub max_failures: u32,
    pub completion: Completion,
    /// Whether a stop hook that fails by itself keeps the work from being complete.
    pub strict: bool,
    pub on_retry_limit: OnRetryLimit,
    /// How long it may be run.
    #[serde(rename = "wallTimeMs", default, skip_serializing_if = "Option::is_none", with = "millis::option")]
    pub wall_time: Option<Duration>,
    /// What it may cost, where the agent tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// How many tokens it may use, where the agent tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// How often in a row the same change may come with the same failures; with 0 as often as it likes.
    #[serde(default = "usual_times", skip_serializing_if = "is_usual_times")]
    pub thrashing: u32,
    /// How often the agent may mend its work before it is submitted.
    #[serde(default = "usual_times", skip_serializing_if = "is_usual_times")]
    pub max_remediations: u32,
    /// How often a rejected task is worked on again before a person is asked.
    #[serde(default = "usual_times", skip_serializing_if = "is_usual_times")]
    pub max_rejections: u32,
}

fn usual_times() -> u32 {
    3
}

fn is_usual_times(times: &u32) -> bool {
    *times == usual_times()
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            max_iterations: 25,
            max_hook_retries: 5,
            max_failures: 3,
            completion: Completion::default(),
            strict: true,
            on_retry_limit: OnRetryLimit::default(),
            wall_time: None,
            cost: None,
            tokens: None,
            thrashing: usual_times(),
            max_remediations: usual_times(),
            max_rejections: usual_times(),
        }
    }
}
