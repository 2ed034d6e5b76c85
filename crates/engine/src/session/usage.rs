//! The usage of turns, as far as the agent reports it: tokens and money.
//!
//! Invariant: sums never overflow, and an unreported cost stays unknown.

use serde::{Deserialize, Serialize};

/// An amount of money, in millionths of a US dollar.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UsdCost(pub u64);

impl UsdCost {
    /// Converts an amount in dollars; `None` for a number that is no amount of money.
    pub fn from_dollars(dollars: f64) -> Option<Self> {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is within bounds")]
        let millionths = |dollars: f64| Self((dollars * 1e6).round() as u64);
        (0.0..1e12).contains(&dollars).then(|| millionths(dollars))
    }
}

impl core::fmt::Display for UsdCost {
    /// `$1.25`, and as many digits as a small sum needs.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (whole, rest) = (self.0 / 1_000_000, self.0 % 1_000_000);
        let (cents, parts) = (rest / 10_000, rest % 10_000);
        write!(f, "${whole}.{cents:02}{}", format!("{parts:04}").trim_end_matches('0'))
    }
}

/// The usage of an agent, as far as it reports it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentUsage {
    /// The number of tokens that the model read, including cached ones.
    #[serde(skip_serializing_if = "is_zero")]
    pub input: u64,
    /// The number of cached tokens among them.
    #[serde(skip_serializing_if = "is_zero")]
    pub cached: u64,
    /// The number of tokens that the model wrote, including its thoughts.
    #[serde(skip_serializing_if = "is_zero")]
    pub output: u64,
    /// The cost, in millionths of a US dollar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<UsdCost>,
}

impl AgentUsage {
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the number of tokens that the model read and wrote.
    pub fn total_tokens(&self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// Returns the increase since an earlier running total. If this usage is smaller, it is not a running total, and
    /// counts in full.
    #[must_use]
    pub fn increase_since(self, before: Self) -> Self {
        let left = |now: u64, before: u64| now.checked_sub(before);
        let cost = |now: UsdCost| left(now.0, before.cost.unwrap_or_default().0).map(UsdCost);
        let rest = || {
            Some(Self {
                input: left(self.input, before.input)?,
                cached: left(self.cached, before.cached)?,
                output: left(self.output, before.output)?,
                cost: self.cost.map(cost).map_or(Some(None), |cost| cost.map(Some))?,
            })
        };
        rest().unwrap_or(self)
    }

    /// Returns the sum of both.
    #[must_use]
    pub fn saturating_add(self, other: Self) -> Self {
        let sum = |one: UsdCost, other: UsdCost| UsdCost(one.0.saturating_add(other.0));
        Self {
            input: self.input.saturating_add(other.input),
            cached: self.cached.saturating_add(other.cached),
            output: self.output.saturating_add(other.output),
            cost: match (self.cost, other.cost) {
                (Some(one), Some(other)) => Some(sum(one, other)),
                (one, other) => one.or(other),
            },
        }
    }
}

impl core::fmt::Display for AgentUsage {
    /// `12,400 tokens, $0.13`: the known parts.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match (self.total_tokens(), self.cost) {
            (0, Some(cost)) => cost.fmt(f),
            (tokens, Some(cost)) => write!(f, "{} tokens, {cost}", Grouped(tokens)),
            (tokens, None) => write!(f, "{} tokens", Grouped(tokens)),
        }
    }
}

/// A number with separators for people: `12,400`.
pub(crate) struct GroupedDigits(pub u64);

impl core::fmt::Display for GroupedDigits {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.0 {
            small @ ..1000 => small.fmt(f),
            large => write!(f, "{},{:03}", Self(large / 1000), large % 1000),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "this is how serde asks")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_is_shown_in_dollars_with_needed_digits() {
        let shown = |dollars: f64| UsdCost::from_dollars(dollars).map(|cost| cost.to_string());
        let expected =
            [(0.0, "$0.00"), (1.25, "$1.25"), (0.000_301, "$0.000301"), (0.018_88, "$0.01888"), (1234.0, "$1234.00")];
        for (dollars, text) in expected {
            assert_eq!(shown(dollars).as_deref(), Some(text));
        }
        assert_eq!([-1.0, f64::NAN, f64::INFINITY, 1e13].map(shown), [const { None }; 4]);
    }

    #[test]
    fn unreported_cost_stays_unknown_in_sums() {
        let tokens = AgentUsage { input: 12_000, output: 345, ..AgentUsage::default() };
        let money = AgentUsage { cost: Some(UsdCost(500_000)), ..AgentUsage::default() };
        assert_eq!(tokens.plus(tokens).cost, None);
        assert_eq!(tokens.plus(money).plus(money).to_string(), "12,345 tokens, $1.00");
        assert_eq!(tokens.to_string(), "12,345 tokens");
        assert_eq!(money.to_string(), "$0.50");
        assert_eq!(Usage { input: u64::MAX, ..tokens }.plus(tokens).tokens(), u64::MAX);
        assert!(AgentUsage::default().is_nothing() && !tokens.is_nothing());
    }

    #[test]
    fn running_total_counts_only_its_increase() {
        let used = |input, output, cost: Option<u64>| AgentUsage { input, cached: 0, output, cost: cost.map(UsdCost) };
        let check = |now: AgentUsage, before: AgentUsage, expected: AgentUsage| assert_eq!(now.since(before), expected);
        check(used(30, 9, None), used(10, 4, None), used(20, 5, None));
        check(used(30, 9, Some(7)), used(10, 4, Some(2)), used(20, 5, Some(5)));
        check(used(30, 9, Some(7)), used(10, 4, None), used(20, 5, Some(7)));
        check(used(30, 9, None), used(10, 4, Some(2)), used(20, 5, None));
        // A total that has started again counts in full.
        check(used(30, 3, None), used(10, 4, None), used(30, 3, None));
        check(used(30, 9, Some(1)), used(10, 4, Some(2)), used(30, 9, Some(1)));
    }
}
