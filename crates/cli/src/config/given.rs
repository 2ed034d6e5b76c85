//! What a hook gives the workflow that it begins.

use windlass_engine::Names;
use windlass_engine::workflow::{Pattern, check_given};

use super::entry::Entry;
use super::error::Problem;
use super::expressions;
use super::hooks::Kind;

/// The values under `context`, by name. What a hook that runs something else cannot have is refused, and so is what a
/// workflow has no use for.
pub fn given(entry: &Entry, kind: &Kind, source: &str) -> Result<Vec<(String, Pattern)>, Problem> {
    let is_workflow = matches!(kind, Kind::Workflow(_));
    if is_workflow && entry.pipe_output == Some(true) {
        return Err(Problem::new("a workflow has no output that could be piped")
            .suggest("leave `pipe_output` out; at a gate the agent is told what a failed step printed".to_owned()));
    }
    if let Some(feedback) = entry.feedback.as_ref().filter(|_| is_workflow) {
        let problem = Problem::new("a workflow says by itself what the agent is told");
        let words = "leave `feedback` out; at a gate the agent is told why, with what the failed step printed";
        return Err(problem.suggest(words.to_owned()).at(feedback.at.clone()));
    }
    let Some(context) = &entry.context else { return Ok(Vec::new()) };
    let placed = |problem: Problem| problem.at(context.at.clone());
    if !is_workflow {
        let problem = Problem::new("`context` is what a workflow is given, and this hook runs none");
        return Err(placed(problem.suggest("a command gets everything on its standard input".to_owned())));
    }
    check_given(context.keys()).map_err(|why| placed(Problem::new(format!("`context` {why}"))))?;
    let pattern = |(name, value): (&String, &serde_json::Value)| {
        let pattern = Pattern::parse_with(value, &Names::hook());
        let pattern =
            pattern.map_err(|wrong| expressions::problem(source, context.at.clone(), &wrong.text, wrong.error))?;
        Ok((name.clone(), pattern))
    };
    context.iter().map(pattern).collect()
}
