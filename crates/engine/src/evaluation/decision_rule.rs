//! Rules that decide whether the work is complete, continues, or needs a person.
//!
//! Not here: the syntax of rules (`config`), and the consequences of a decision (`session`).

use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_expr::{Condition, EvaluationError, TextTemplate};

/// One rule: if its conditions hold, its action is taken. A rule without conditions always holds.
#[derive(Debug, Clone)]
pub struct DecisionRule {
    pub when: Option<Condition>,
    /// All of them must hold.
    pub all_of: Vec<Condition>,
    /// One of them must hold, if there are any.
    pub any_of: Vec<Condition>,
    pub action: RuleAction,
    /// The reason, for people.
    pub reason: Option<TextTemplate>,
    /// The next prompt for the agent.
    pub next_prompt: Option<TextTemplate>,
    /// The contents of a checkpoint.
    pub checkpoint_data: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleAction {
    Complete,
    Continue,
    Escalate,
}

impl RuleAction {
    pub fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Continue => "continue",
            Self::Escalate => "escalate",
        }
    }
}

/// The decision of the first rule that holds.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleDecision {
    pub action: RuleAction,
    pub reason: Option<String>,
    pub next_prompt: Option<String>,
    pub checkpoint_data: Option<Value>,
}

/// The treatment of a rule that uses an undefined name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UndefinedPolicy {
    Fails,
    /// The rule does not hold: tools have different inputs.
    Passes,
}

/// Returns the decision of the first rule that holds; `None` if none does.
pub fn evaluate_rules(
    rules: &[DecisionRule],
    context: &Value,
    undefined: UndefinedPolicy,
) -> Result<Option<RuleDecision>, EvaluationError> {
    for rule in rules {
        match rule.conditions_hold(context) {
            Err(fault) if undefined == UndefinedPolicy::Passes && fault.is_undefined() => {}
            Ok(false) => {}
            Ok(true) => return rule.render_decision(context).map(Some),
            Err(fault) => return Err(fault),
        }
    }
    Ok(None)
}

impl DecisionRule {
    /// Returns whether one of its conditions or texts uses a name.
    pub fn uses_name(&self, name: &str) -> bool {
        let mut conditions = self.when.iter().chain(&self.all_of).chain(&self.any_of);
        let mut texts = self.reason.iter().chain(&self.next_prompt);
        conditions.any(|condition| condition.uses_name(name)) || texts.any(|text| text.uses_name(name))
    }

    fn conditions_hold(&self, context: &Value) -> Result<bool, EvaluationError> {
        for condition in self.when.iter().chain(&self.all_of) {
            if !condition.is_satisfied(context)? {
                return Ok(false);
            }
        }
        for condition in &self.any_of {
            if condition.is_satisfied(context)? {
                return Ok(true);
            }
        }
        Ok(self.any_of.is_empty())
    }

    fn render_decision(&self, context: &Value) -> Result<RuleDecision, EvaluationError> {
        let render = |template: &Option<TextTemplate>| template.as_ref().map(|it| it.render(context)).transpose();
        Ok(RuleDecision {
            action: self.action,
            reason: render(&self.reason)?,
            next_prompt: render(&self.next_prompt)?,
            checkpoint_data: self.checkpoint_data.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_expr::ExpressionNames;

    use super::*;

    fn conditions(texts: &[&str]) -> Vec<Condition> {
        texts.iter().map(|text| Condition::parse(text, &ExpressionNames::for_rules()).unwrap()).collect()
    }

    fn rule(when: Option<&str>, all_of: &[&str], any_of: &[&str], action: RuleAction) -> DecisionRule {
        DecisionRule {
            when: when.map(|text| conditions(&[text]).remove(0)),
            all_of: conditions(all_of),
            any_of: conditions(any_of),
            action,
            reason: None,
            next_prompt: None,
            checkpoint_data: None,
        }
    }

    fn context() -> Value {
        json!({
            "iteration": 3,
            "filesModified": ["src/a.rs"],
            "validationResults": [{"ruleName": "tests_pass", "passed": false}, {"ruleName": "lint", "passed": true}],
        })
    }

    #[test]
    fn conditions_add_up() {
        let check = |when: Option<&str>, all_of: &[&str], any_of: &[&str], holds: bool| {
            let rules = [rule(when, all_of, any_of, RuleAction::Continue)];
            assert_eq!(
                evaluate_rules(&rules, &context(), UndefinedPolicy::Fails).unwrap().is_some(),
                holds,
                "{when:?} {all_of:?} {any_of:?}"
            );
        };
        let (yes, no) = ("iteration == 3", "iteration == 4");
        check(None, &[], &[], true);
        check(Some(yes), &[], &[], true);
        check(Some(no), &[], &[], false);
        check(None, &[yes, yes], &[], true);
        check(None, &[yes, no], &[], false);
        check(None, &[], &[no, yes], true);
        check(None, &[], &[no, no], false);
        check(Some(yes), &[yes], &[yes], true);
        check(Some(yes), &[yes], &[no], false);
        check(Some(yes), &[no], &[yes], false);
        check(Some(no), &[yes], &[yes], false);
    }

    #[test]
    fn first_matching_rule_decides_and_renders_its_texts() {
        let failed = "validationResults | selectattr('ruleName', 'eq', 'tests_pass') | rejectattr('passed') | list";
        let rules = [
            rule(Some("iteration >= 10"), &[], &[], RuleAction::Escalate),
            DecisionRule {
                reason: Some(
                    TextTemplate::parse("tests fail in iteration {{ iteration }}", &ExpressionNames::for_rules())
                        .unwrap(),
                ),
                next_prompt: Some(
                    TextTemplate::parse("mend {{ filesModified | join(', ') }}", &ExpressionNames::for_rules())
                        .unwrap(),
                ),
                checkpoint_data: Some(json!({"executionPhase": "midpoint"})),
                ..rule(Some(failed), &[], &[], RuleAction::Continue)
            },
            rule(None, &[], &[], RuleAction::Complete),
        ];
        let ruling = RuleDecision {
            action: RuleAction::Continue,
            reason: Some("tests fail in iteration 3".to_owned()),
            next_prompt: Some("mend src/a.rs".to_owned()),
            checkpoint_data: Some(json!({"executionPhase": "midpoint"})),
        };
        assert_eq!(evaluate_rules(&rules, &context(), UndefinedPolicy::Fails), Ok(Some(ruling)));
        assert_eq!(evaluate_rules(&rules[..1], &context(), UndefinedPolicy::Fails), Ok(None));
        assert_eq!(evaluate_rules(&[], &context(), UndefinedPolicy::Fails), Ok(None));
    }

    #[test]
    fn rule_with_undefined_value_fails_only_when_evaluated() {
        let rules = [rule(Some("draftContent == 'x'"), &[], &["agentOutput | length > 3"], RuleAction::Complete)];
        assert_eq!(
            evaluate_rules(&rules, &json!({"draftContent": "y"}), UndefinedPolicy::Fails),
            Ok(None),
            "the rest is not evaluated"
        );
        evaluate_rules(&rules, &json!({"draftContent": "x"}), UndefinedPolicy::Fails).unwrap_err();
    }
}
