//! Usage that an agent reports: tokens with the answer to a prompt, cost as a running total.

use serde_json::Value;
use windlass_engine::{AgentUsage, UsdCost};

/// Counts the usage of each turn.
#[derive(Debug, Default)]
pub struct UsageMeter {
    /// The cost of the conversation when the turn began, and the cost now.
    before: UsdCost,
    now: Option<UsdCost>,
    /// Tokens that were reported during the turn.
    reported: AgentUsage,
    /// Whether the agent reports the tokens of the whole conversation, and the tokens that it reported last.
    adds_up: bool,
    answered: AgentUsage,
}

/// Agents that report the tokens of the whole conversation, by the name in their answer to `initialize`.
const CUMULATIVE_TOKEN_AGENTS: [&str; 2] = ["Copilot", "@mistralai/mistral-vibe"];

impl UsageMeter {
    /// Sets the earlier cost of a resumed conversation. The agent may report the total only with its next turn.
    pub fn resume_from_cost(&mut self, cost: UsdCost) {
        self.before = cost;
    }

    /// Records the name of the agent.
    pub fn record_agent_name(&mut self, name: &str) {
        self.adds_up = CUMULATIVE_TOKEN_AGENTS.contains(&name);
    }

    pub fn begin_turn(&mut self) {
        self.before = self.now.unwrap_or(self.before);
        (self.now, self.reported) = (None, AgentUsage::default());
    }

    /// Adds the tokens in a message chunk. Qwen Code reports those of each model request this way.
    pub fn add_chunk_tokens(&mut self, said: &Value) {
        self.reported = self.reported.saturating_add(read_token_usage(&said["_meta"]));
    }

    /// Records the total cost from a usage update.
    pub fn update_total_cost(&mut self, update: &Value) {
        let cost = &update["cost"];
        let dollars = cost["amount"].as_f64().filter(|_| cost["currency"].as_str().is_none_or(|unit| unit == "USD"));
        self.now = dollars.and_then(UsdCost::from_dollars).or(self.now);
    }

    /// Returns the usage of a turn that ended with this answer.
    pub fn finish_turn(&mut self, answer: &Value) -> AgentUsage {
        // An agent that was restarted may count from zero.
        let cost = self.now.map(|now| UsdCost(now.0.checked_sub(self.before.0).unwrap_or(now.0)));
        let mut answered = read_token_usage(answer);
        if self.adds_up && !answered.is_nothing() {
            let before = std::mem::replace(&mut self.answered, answered);
            answered = answered.increase_since(before);
        }
        let tokens = if answered.is_nothing() { self.reported } else { answered };
        AgentUsage { cost, ..tokens }
    }
}

fn read_token_usage(answer: &Value) -> AgentUsage {
    let usage = &answer["usage"];
    let number = |name: &str| usage[name].as_u64().unwrap_or(0);
    if usage.is_object() {
        let (input, output, cached) = (number("inputTokens"), number("outputTokens"), number("cachedReadTokens"));
        // Some agents include cached and thought tokens in the counts, others report them beside. The total tells which.
        return if input.saturating_add(output) == number("totalTokens") {
            AgentUsage { input, output, cached: cached.min(input), cost: None }
        } else {
            let input = input.saturating_add(cached).saturating_add(number("cachedWriteTokens"));
            AgentUsage { input, output: output.saturating_add(number("thoughtTokens")), cached, cost: None }
        };
    }
    // Gemini CLI reports its tokens here.
    let count = &answer["_meta"]["quota"]["token_count"];
    let number = |name: &str| count[name].as_u64().unwrap_or(0);
    AgentUsage { input: number("input_tokens"), output: number("output_tokens"), cached: 0, cost: None }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tokens_are_counted_once() {
        let check = |answer: Value, expected: (u64, u64, u64)| {
            let AgentUsage { input, cached, output, .. } = UsageMeter::default().finish_turn(&answer);
            assert_eq!((input, cached, output), expected, "{answer}");
        };
        check(json!({"stopReason": "end_turn"}), (0, 0, 0));
        let apart = json!({"usage": {"totalTokens": 1234, "inputTokens": 1000, "outputTokens": 30,
            "cachedReadTokens": 200, "thoughtTokens": 4}});
        check(apart, (1200, 200, 34));
        let among = json!({"usage": {"totalTokens": 1234, "inputTokens": 1200, "outputTokens": 34,
            "cachedReadTokens": 200, "thoughtTokens": 4}});
        check(among, (1200, 200, 34));
        check(json!({"_meta": {"quota": {"token_count": {"input_tokens": 5, "output_tokens": 6}}}}), (5, 0, 6));
        check(json!({"usage": {"totalTokens": "many"}}), (0, 0, 0));
        let mut meter = UsageMeter::default();
        for _ in 0..2 {
            meter.add_chunk_tokens(
                &json!({"_meta": {"usage": {"inputTokens": 5, "outputTokens": 6, "totalTokens": 11}}}),
            );
        }
        assert_eq!(meter.finish_turn(&json!({"stopReason": "end_turn"})).total_tokens(), 22);
        meter.begin_turn();
        assert!(meter.finish_turn(&Value::Null).is_nothing());
    }

    #[test]
    fn cumulative_tokens_are_counted_from_the_last_answer() {
        let answer = |times: u64| {
            json!({"usage": {"inputTokens": 1200 * times, "outputTokens": 34 * times,
            "totalTokens": 1234 * times, "cachedReadTokens": 200 * times}})
        };
        for (name, third) in [("Copilot", 1234), ("@mistralai/mistral-vibe", 1234), ("goose", 3 * 1234)] {
            let mut meter = UsageMeter::default();
            meter.record_agent_name(name);
            let mut turn = |answer: Value| {
                meter.begin_turn();
                meter.finish_turn(&answer).total_tokens()
            };
            assert_eq!(turn(answer(2)), 2468);
            assert_eq!(turn(json!({"stopReason": "end_turn"})), 0);
            assert_eq!(turn(answer(3)), third, "{name}");
        }
    }

    #[test]
    fn turn_cost_is_the_growth_of_the_total() {
        let mut meter = UsageMeter::default();
        let cost = |meter: &mut UsageMeter| meter.finish_turn(&json!({})).cost;
        let heed = |meter: &mut UsageMeter, amount: f64, unit: &str| {
            meter.update_total_cost(&json!({"used": 1, "size": 2, "cost": {"amount": amount, "currency": unit}}));
        };
        assert_eq!(cost(&mut meter), None);
        heed(&mut meter, 0.25, "USD");
        heed(&mut meter, 0.5, "USD");
        heed(&mut meter, 70.0, "JPY");
        meter.update_total_cost(&json!({"used": 3}));
        assert_eq!(cost(&mut meter), Some(UsdCost(500_000)));
        meter.begin_turn();
        assert_eq!(cost(&mut meter), None);
        heed(&mut meter, 0.75, "USD");
        assert_eq!(cost(&mut meter), Some(UsdCost(250_000)));
        meter.begin_turn();
        heed(&mut meter, 0.1, "USD");
        assert_eq!(cost(&mut meter), Some(UsdCost(100_000)), "it began anew");
    }
}
