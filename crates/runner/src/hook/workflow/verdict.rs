//! Meaning of a workflow's end for its hook.
//!
//! | end | at a gate | elsewhere |
//! | --- | --- | --- |
//! | completed | success | success |
//! | failed: a program ended with another code than 0 | block | failure |
//! | failed: anything else, such as a program that is missing or an expression without a value | failure | failure |
//! | out of time | timed out | timed out |
//! | cancelled by a person | cancelled | cancelled |
//!
//! `on_failure` of the hook decides about a failure, as for every other hook.

use std::time::Duration;

use serde_json::Value;
use windlass_engine::workflow::{StepResult, WorkflowProgress};
use windlass_engine::{Event, HookOutcome, HookReport, payload};

use super::super::{HookAttempt, HookRun};
use crate::{EffectRunner, RunError};

/// Reason why a workflow goes no further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkflowEnding {
    /// The last step has ended, or no step follows a failed one.
    Regular,
    TimedOut,
    Cancelled,
}

impl EffectRunner<'_> {
    pub(super) fn workflow_report(
        &self,
        run: &HookRun<'_>,
        progress: &WorkflowProgress,
        ending: WorkflowEnding,
    ) -> Result<HookAttempt, RunError> {
        let Some(why) = &progress.failed else {
            let steps = progress.done.len();
            let said = if steps == 1 { "one step".to_owned() } else { format!("{steps} steps") };
            return Ok(HookReport { message: Some(said), ..HookOutcome::Success.into() }.into());
        };
        let is_gate = run.hook_role().is_gate();
        let last = self.last_finished_step(progress)?;
        let outcome = match ending {
            WorkflowEnding::Cancelled => return Ok(HookReport::from(HookOutcome::Cancelled).into()),
            WorkflowEnding::TimedOut => HookOutcome::TimedOut,
            WorkflowEnding::Regular if is_gate && last.as_ref().is_some_and(is_program_verdict) => HookOutcome::Block,
            WorkflowEnding::Regular => HookOutcome::Failure,
        };
        let feedback = is_gate.then(|| explain_failure(why, last.as_ref()));
        let report = HookReport { message: Some(why.clone()), feedback, ..outcome.into() };
        Ok(HookAttempt { retry_after: Some(Duration::ZERO), ..report.into() })
    }

    fn last_finished_step(
        &self,
        progress: &WorkflowProgress,
    ) -> Result<Option<payload::WorkflowStepFinished>, RunError> {
        let Some(last) = progress.done.last() else { return Ok(None) };
        Ok(match self.load_event(*last)?.envelope.event {
            Event::WorkflowStepFinished(step) => Some(step),
            _ => None,
        })
    }
}

pub(super) fn failed_attempt(why: String) -> HookAttempt {
    HookReport { message: Some(why), ..HookOutcome::Failure.into() }.into()
}

fn failed_results(step: &payload::WorkflowStepFinished) -> impl Iterator<Item = &StepResult> {
    [&step.result].into_iter().chain(&step.within).filter(|result| !result.success)
}

/// Returns whether the workflow ended with this step because one of its programs ended with another code than 0.
fn is_program_verdict(step: &payload::WorkflowStepFinished) -> bool {
    let code = |result: &StepResult| result.data.as_ref().and_then(|data| data["exitCode"].as_i64());
    !step.result.success && step.next.is_none() && failed_results(step).filter_map(code).any(|code| code != 0)
}

/// Explains the failure of a workflow, with all output of the failed programs.
fn explain_failure(why: &str, last: Option<&payload::WorkflowStepFinished>) -> String {
    let mut parts = vec![why.to_owned()];
    for result in last.into_iter().flat_map(failed_results) {
        let printed = |stream| result.data.as_ref().map(|data: &Value| &data[stream]).and_then(Value::as_str);
        let printed = ["stderr", "stdout"].into_iter().filter_map(printed).map(str::trim_end);
        let printed = printed.filter(|text| !text.is_empty());
        parts.extend(printed.map(|text| format!("`{}` printed:\n{text}", result.step_id)));
    }
    parts.join("\n\n")
}
