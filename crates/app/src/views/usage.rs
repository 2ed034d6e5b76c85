//! Tokens and money.

use schemars::JsonSchema;
use serde::Serialize;
use windlass_engine::AgentUsage;

/// The usage of some turns, as far as agents report it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageTotals {
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// In US dollars; absent if no agent reports a cost.
    pub cost_usd: Option<f64>,
    pub turns: u64,
}

impl UsageTotals {
    /// Returns the usage of a number of turns.
    #[expect(clippy::cast_precision_loss, reason = "millionths of a dollar fit far beyond any bill")]
    pub fn from_usage(used: AgentUsage, turns: u64) -> Self {
        let cost_usd = used.cost.map(|cost| cost.0 as f64 / 1e6);
        Self { input_tokens: used.input, output_tokens: used.output, cost_usd, turns }
    }

    /// Adds the usage of one turn.
    pub fn add_turn(&mut self, used: AgentUsage) {
        let turn = Self::from_usage(used, 1);
        self.input_tokens += turn.input_tokens;
        self.output_tokens += turn.output_tokens;
        self.turns += 1;
        self.cost_usd = match (self.cost_usd, turn.cost_usd) {
            (None, None) => None,
            (before, more) => Some(before.unwrap_or_default() + more.unwrap_or_default()),
        };
    }
}
