//! The context that a hook passes to its workflow.

use serde_json::Value;
use windlass_engine::HookPoint;
use windlass_engine::workflow::check_context_entry;
use windlass_expr::{ExpressionNames, ValuePattern};

use super::error::ConfigProblem;
use super::expression_compiler;
use super::hook_settings::{HookSettings, PipeSetting};
use super::hooks::HookKind;
use super::reader::LocatedValue;

/// Parses the values under `context`, by name. Refuses `context` for hooks without a workflow, and settings that workflows do not
/// support.
pub fn parse_workflow_context(
    entry: &HookSettings,
    kind: &HookKind,
    points: &[HookPoint],
    source: &str,
) -> Result<Vec<(String, ValuePattern)>, ConfigProblem> {
    let is_workflow = matches!(kind, HookKind::Workflow(_));
    // At `stop` a retry is another turn of the agent.
    if let Some(retry) = entry.retry.as_ref().filter(|_| is_workflow && points.iter().any(|point| !point.is_stop())) {
        let problem = ConfigProblem::new("a workflow is not retried: its first steps would run twice");
        let words = "leave `retry` out; in the workflow, let `onFailure` of a step name the step to run again";
        return Err(problem.with_suggestion(words.to_owned()).with_range(retry.at.clone()));
    }
    let pipes = entry.pipe_output.is_some_and(|setting| setting != PipeSetting::Fixed(false));
    if is_workflow && pipes {
        return Err(ConfigProblem::new("a workflow has no output that could be piped").with_suggestion(
            "leave `pipe_output` out; at a gate the agent gets the output of a failed step".to_owned(),
        ));
    }
    if let Some(feedback) = entry.feedback.as_ref().filter(|_| is_workflow) {
        let problem = ConfigProblem::new("a workflow defines by itself what the agent gets");
        let words = "leave `feedback` out; at a gate the agent gets the reason, with the output of the failed step";
        return Err(problem.with_suggestion(words.to_owned()).with_range(feedback.at.clone()));
    }
    let Some(context) = &entry.context else { return Ok(Vec::new()) };
    if !is_workflow {
        let problem = ConfigProblem::new("`context` is the input of a workflow, and this hook runs none");
        let words = "a command gets everything on its standard input";
        return Err(problem.with_suggestion(words.to_owned()).with_range(context.at.clone()));
    }
    let pattern = |(name, value): (&String, &LocatedValue<Value>)| {
        let pattern = ValuePattern::parse_with_names(value, &ExpressionNames::for_hook());
        let pattern = pattern.map_err(|wrong| {
            expression_compiler::locate_expression_problem(source, value.at.clone(), &wrong.text, wrong.error)
        })?;
        // The runner checks values of expressions when it evaluates them.
        let known = if matches!(pattern, ValuePattern::Expression(_)) { &Value::Null } else { &value.value };
        let checked = check_context_entry(name, known);
        checked.map_err(|why| ConfigProblem::new(format!("`context` {why}")).with_range(value.at.clone()))?;
        Ok((name.clone(), pattern))
    };
    context.iter().map(pattern).collect()
}
