//! Rules: what they look at, and what a ruling means where they stand.
//!
//! Invariant: nothing is looked up here, so that a trial and a run with the same values come to the same.
//!
//! Not here: which files have changed (whoever runs rules says so), and the rules themselves (`engine`).

use serde_json::{Value, json};
use windlass_engine::{HookOutcome, HookReport, Rule, RuleAction, Ruling, Undefined, judge};

use crate::{Hook, Role};

/// What rules see: what every hook sees, and what the agent did. A name that the values have already keeps its value.
pub fn context(values: &Value, files_modified: &[String]) -> Value {
    let promise = values["promise"].as_str().filter(|promise| !promise.is_empty());
    let promises = promise.map(|promise| json!({"type": promise, "detected": true, "content": promise}));
    let mut context = json!({
        "executionPhase": null,
        "filesModified": files_modified,
        "validationResults": [],
        "completionPromises": promises.into_iter().collect::<Vec<_>>(),
        "agentOutput": values["output"].as_str().unwrap_or_default(),
        "draftContent": null,
        "draftType": null,
    });
    if let (Value::Object(context), Value::Object(values)) = (&mut context, values) {
        context.extend(values.clone());
    }
    context
}

/// What the rules of a hook come to.
pub fn report(hook: &Hook, role: Role, rules: &[Rule], context: &Value) -> HookReport {
    // Where a tool is used, rules may be about others, which are called with other things.
    let tool = context["tool_name"].as_str().is_some_and(|name| !name.is_empty());
    match judge(rules, context, if tool { Undefined::Passes } else { Undefined::Fails }) {
        Err(fault) => HookReport { message: Some(fault.to_string()), ..HookOutcome::Failure.into() },
        Ok(None) => HookOutcome::Success.into(),
        Ok(Some(ruling)) => ruled(hook, role, ruling),
    }
}

fn ruled(hook: &Hook, role: Role, ruling: Ruling) -> HookReport {
    let outcome = match (ruling.action, role) {
        (RuleAction::Complete, _) | (RuleAction::Continue, Role::Observer) => HookOutcome::Success,
        (RuleAction::Continue, Role::Stop) => HookOutcome::Continue,
        (RuleAction::Continue, Role::Pipeline) => HookOutcome::Block,
        (RuleAction::Escalate, _) => HookOutcome::Escalate,
    };
    let told = ruling.next_prompt.or_else(|| ruling.reason.clone());
    let told = told.filter(|_| hook.pipes_after(outcome) || (role.is_gate() && outcome != HookOutcome::Success));
    HookReport { message: ruling.reason, feedback: told, ..outcome.into() }
}
