//! Rules: the values that they see, and the report of a ruling at each role.
//!
//! Invariant: this module looks nothing up, so that a trial and a run with the same values have the same result.
//!
//! Not here: the content of the agent's context (`runner`), and the rules themselves (`engine`).

use serde_json::Value;
use windlass_engine::{
    AgentContext, DecisionRule, DetectedPromise, HookOutcome, HookReport, Promise, RuleAction, RuleDecision, Timestamp,
    UndefinedPolicy, evaluate_rules,
};

use crate::{HookRole, RunnableHook};

/// Returns the values for a hook at a gate: those of every hook, and the agent's context. Existing names keep their values,
/// except that `iteration` counts the iterations on the task.
pub fn merge_agent_context(values: &Value, context: &AgentContext) -> Value {
    let mut all = context.to_values();
    if let (Value::Object(all), Value::Object(values)) = (&mut all, values) {
        all.extend(values.clone());
        all.insert("iteration".to_owned(), context.iteration.into());
    }
    all
}

/// Returns the agent's context as far as the values contain it, for a trial.
pub fn agent_context_from_values(values: &Value) -> AgentContext {
    let promise = values["promise"].as_str().and_then(|name| name.parse::<Promise>().ok());
    AgentContext {
        task_id: None,
        iteration: values["iteration"].as_u64().and_then(|number| number.try_into().ok()).unwrap_or(0),
        execution_phase: None,
        files_modified: Vec::new(),
        validation_results: Vec::new(),
        completion_promises: promise
            .map(|promise| DetectedPromise::from_promise(promise, Timestamp::from_millis(0)))
            .into_iter()
            .collect(),
        agent_output: values["output"].as_str().map(str::to_owned),
        draft_content: None,
        draft_type: None,
    }
}

/// Builds the report of a hook's rules.
pub fn build_rule_report(hook: &RunnableHook, role: HookRole, rules: &[DecisionRule], context: &Value) -> HookReport {
    // At a tool call, a rule may be about another tool with other arguments.
    let tool = context["tool_name"].as_str().is_some_and(|name| !name.is_empty());
    match evaluate_rules(rules, context, if tool { UndefinedPolicy::Passes } else { UndefinedPolicy::Fails }) {
        Err(fault) => HookReport { message: Some(fault.to_string()), ..HookOutcome::Failure.into() },
        Ok(None) => HookOutcome::Success.into(),
        Ok(Some(ruling)) => report_ruling(hook, role, ruling),
    }
}

fn report_ruling(hook: &RunnableHook, role: HookRole, ruling: RuleDecision) -> HookReport {
    let outcome = match (ruling.action, role) {
        (RuleAction::Complete, _) | (RuleAction::Continue, HookRole::Observer) => HookOutcome::Success,
        (RuleAction::Continue, HookRole::Stop) => HookOutcome::Continue,
        (RuleAction::Continue, HookRole::Pipeline) => HookOutcome::Block,
        (RuleAction::Escalate, _) => HookOutcome::Escalate,
    };
    let feedback = ruling.next_prompt.or_else(|| ruling.reason.clone());
    let feedback =
        feedback.filter(|_| hook.pipes_output_after(outcome) || (role.is_gate() && outcome != HookOutcome::Success));
    HookReport { message: ruling.reason, feedback, checkpoint: ruling.checkpoint_data, ..outcome.into() }
}
