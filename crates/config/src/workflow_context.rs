//! The context that a hook passes to its workflow.

use serde_json::Value;
use windlass_engine::HookPoint;
use windlass_engine::workflow::check_given;
use windlass_expr::{Names, Pattern};

use super::entry::{Entry, PipeSetting};
use super::error::ConfigProblem;
use super::expressions;
use super::hooks::HookKind;
use super::reader::Located;

/// Parses the values under `context`, by name. Refuses `context` for hooks without a workflow, and settings that workflows do not
/// support.
pub fn given(
    entry: &Entry,
    kind: &HookKind,
    points: &[HookPoint],
    source: &str,
) -> Result<Vec<(String, Pattern)>, ConfigProblem> {
    let is_workflow = matches!(kind, HookKind::Workflow(_));
    // At `stop` a retry is another turn of the agent.
    if let Some(retry) = entry.retry.as_ref().filter(|_| is_workflow && points.iter().any(|point| !point.is_stop())) {
        let problem = ConfigProblem::new("a workflow is not begun again: what its first steps did would be done twice");
        let words = "leave `retry` out; in the workflow, have `onFailure` of a step lead to where it is tried again";
        return Err(problem.suggest(words.to_owned()).at(retry.at.clone()));
    }
    let pipes = entry.pipe_output.is_some_and(|setting| setting != PipeSetting::Fixed(false));
    if is_workflow && pipes {
        return Err(ConfigProblem::new("a workflow has no output that could be piped")
            .suggest("leave `pipe_output` out; at a gate the agent is told what a failed step printed".to_owned()));
    }
    if let Some(feedback) = entry.feedback.as_ref().filter(|_| is_workflow) {
        let problem = ConfigProblem::new("a workflow says by itself what the agent is told");
        let words = "leave `feedback` out; at a gate the agent is told why, with what the failed step printed";
        return Err(problem.suggest(words.to_owned()).at(feedback.at.clone()));
    }
    let Some(context) = &entry.context else { return Ok(Vec::new()) };
    if !is_workflow {
        let problem = ConfigProblem::new("`context` is what a workflow is given, and this hook runs none");
        let words = "a command gets everything on its standard input";
        return Err(problem.suggest(words.to_owned()).at(context.at.clone()));
    }
    let pattern = |(name, value): (&String, &Located<Value>)| {
        let pattern = Pattern::parse_with(value, &Names::hook());
        let pattern =
            pattern.map_err(|wrong| expressions::problem(source, value.at.clone(), &wrong.text, wrong.error))?;
        // The runner checks values of expressions when it evaluates them.
        let known = if matches!(pattern, Pattern::Whole(_)) { &Value::Null } else { &value.value };
        let checked = check_given(name, known);
        checked.map_err(|why| ConfigProblem::new(format!("`context` {why}")).at(value.at.clone()))?;
        Ok((name.clone(), pattern))
    };
    context.iter().map(pattern).collect()
}
