//! Tokens and money.

use schemars::JsonSchema;
use serde::Serialize;
use windlass_engine::{AgentUsage, Event};

use crate::turn_end::ends_turn;

/// The usage of some turns, and of the agents that hooks asked in them, as far as agents report it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageTotals {
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// In US dollars; absent if no agent reports a cost.
    pub cost_usd: Option<f64>,
    /// The number of turns that ended, without those of hooks. For a session, the number of its iterations.
    pub turns: u64,
}

impl UsageTotals {
    /// Returns the usage of a number of turns.
    #[expect(clippy::cast_precision_loss, reason = "millionths of a dollar fit far beyond any bill")]
    pub fn from_usage(used: AgentUsage, turns: u64) -> Self {
        let cost_usd = used.cost.map(|cost| cost.0 as f64 / 1e6);
        Self { input_tokens: used.input, output_tokens: used.output, cost_usd, turns }
    }

    /// Adds what an event reports. A hook that asks an agent adds its usage, but no turn.
    pub fn add_event(&mut self, event: &Event) {
        let more = Self::from_usage(event.usage(), u64::from(ends_turn(event.kind())));
        self.input_tokens += more.input_tokens;
        self.output_tokens += more.output_tokens;
        self.turns += more.turns;
        self.cost_usd = match (self.cost_usd, more.cost_usd) {
            (None, None) => None,
            (before, more) => Some(before.unwrap_or_default() + more.unwrap_or_default()),
        };
    }
}
