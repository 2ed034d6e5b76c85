//! Evaluation of an iteration: the validation rules run, and the hooks get their results.
//!
//! ```text
//! output, files ─► rules of the configuration and the series ─► promises ─► hooks, in order ─► one command with all of it
//! ```
//!
//! Invariants:
//! - Hooks see the results of this evaluation, and nothing older.
//! - Nothing is recorded before everything is known. The commit finds out whether the state has changed meanwhile.
//!
//! Not here: the decision (`engine`).

use std::fmt::Display;

use serde_json::{Map, Value};
use windlass_engine::validation::ValidationRule;
use windlass_engine::{
    AgentContext, DetectedPromise, EngineLimits, EvaluationFindings, EvaluationOutcome, EvaluationPurpose, Event,
    HookDecision, Promise, RegisteredStopHook, RuleAction, Seq, StopHook, StopRuling, Task, Timestamp,
    evaluate_stop_hooks, explain_uncounted_claim, find_promises,
};
use windlass_process::RunControl;
use windlass_store::{SqliteStore, StoreError};

use crate::closure::StopHookClosures;
use crate::error::{ToolError, ToolErrorCode};
use crate::hook::{ask_command, registered_hooks};
use crate::host::{ToolCall, ToolHost};
use crate::iteration::OpenSeries;
use crate::schema::{FieldKind, ToolField};
use crate::task;
use crate::validation::{self, ValidationCancellation, ValidatorEnv, validate_rules};

/// Final message of the agent.
pub(crate) const AGENT_OUTPUT_FIELD: ToolField = ToolField::optional(
    "agentOutput",
    "your message, with its promise tag",
    FieldKind::Text(EngineLimits::ACCEPTED_OUTPUT_BYTES),
);
/// Files that the agent has changed.
pub(crate) const FILES_FIELD: ToolField = ToolField::optional(
    "filesModified",
    "",
    FieldKind::List(&FieldKind::Words(EngineLimits::ARTIFACT_BYTES), 0, EngineLimits::MODIFIED_FILES),
);

/// Keys of checkpoint data from hooks. The engine saves data with other keys as the agent's context.
const CHECKPOINT_KEYS: [&str; 5] = ["executionPhase", "executionStep", "agentContext", "draftContent", "draftType"];

/// Input of an evaluation.
pub(crate) struct EvaluationSubject {
    pub agent_output: Option<String>,
    pub files_modified: Vec<String>,
    pub draft_content: Option<String>,
    pub draft_type: Option<String>,
}

/// Evaluates the present iteration. Returns the record for the log, and the ruling of the hooks.
pub(crate) fn evaluate_iteration<G: ToolHost>(
    call: &mut ToolCall<'_, G>,
    live: &OpenSeries,
    asked: EvaluationPurpose,
    matter: EvaluationSubject,
) -> Result<(EvaluationFindings, EvaluationOutcome), ToolError> {
    let now = call.host.now();
    let hooks = registered_hooks(call.host.store(), &live.task)?;
    let promises = counted_promises(live, matter.agent_output.as_deref());
    let work = JudgedWork {
        task: Some(&live.task),
        iteration: live.series.iteration,
        files_modified: matter.files_modified,
        promises: promises.clone(),
        agent_output: matter.agent_output,
        draft_content: matter.draft_content,
        draft_type: matter.draft_type,
    };
    let mut context = agent_context(call.host.store(), work, now)?;
    let asks = hooks.iter().any(|hook| hook.enabled);
    let configured = call.host.configured_rules(live.task.kind.as_ref())?;
    let rules = match asked == EvaluationPurpose::Validation || asks {
        true => ValidationRuleSet { configured: &configured, series: &live.started.validation_rules },
        false => ValidationRuleSet::default(),
    };
    let mut said = if rules.is_empty() && !hooks.iter().any(runs_program) {
        evaluate_stop_hooks(&hooks, &context, &mut |hook| run_stop_hook(hook, &context, call.closures, None))
    } else {
        let notes = task::newest_notes(call.host.store(), &live.task)?;
        let notes: Vec<String> = notes.into_iter().map(|note| note.text).collect();
        let workshop = call.host.validator_env()?;
        let means =
            EvaluationInputs { notes: &notes, workshop: &workshop, control: call.control, closures: call.closures };
        run_rules(&rules, &mut context, &means).map_err(cancelled_error)?;
        run_stop_hooks(&hooks, &context, &means).map_err(cancelled_error)?
    };
    if said.ruling.action == RuleAction::Continue {
        said.ruling.checkpoint_data = said.ruling.checkpoint_data.map(|data| add_draft(data, &context));
    }
    // If all hooks are disabled, there is no decision.
    let decision = asks.then(|| HookDecision { hook: said.hook, ruling: said.ruling.clone() });
    let judging = EvaluationFindings {
        asked,
        iteration: context.iteration,
        hooks: hooks.iter().map(|hook| hook.id).collect(),
        results: context.validation_results,
        promises,
        decision,
        agent_output: context.agent_output,
        files_modified: context.files_modified,
    };
    Ok((judging, said))
}

/// Environment of rules and hooks.
pub struct EvaluationInputs<'a> {
    /// Notes of the task, oldest first.
    pub notes: &'a [String],
    pub workshop: &'a ValidatorEnv<'a>,
    pub control: &'a RunControl,
    pub closures: &'a StopHookClosures,
}

/// Work that is judged.
pub struct JudgedWork<'a> {
    pub task: Option<&'a Task>,
    /// Number of the iteration, from 1.
    pub iteration: u32,
    pub files_modified: Vec<String>,
    pub promises: Vec<Promise>,
    pub agent_output: Option<String>,
    pub draft_content: Option<String>,
    pub draft_type: Option<String>,
}

/// Builds the context of stop hooks, commands and rules, without any results of validation rules.
pub fn agent_context(store: &SqliteStore, work: JudgedWork<'_>, now: Timestamp) -> Result<AgentContext, StoreError> {
    Ok(AgentContext {
        task_id: work.task.map(|task| task.id),
        iteration: work.iteration,
        execution_phase: work.task.map(|task| last_checkpoint_phase(store, task, now)).transpose()?.flatten(),
        files_modified: work.files_modified,
        validation_results: Vec::new(),
        completion_promises: work.promises.iter().map(|promise| DetectedPromise::from_promise(*promise, now)).collect(),
        agent_output: work.agent_output,
        draft_content: work.draft_content,
        draft_type: work.draft_type,
    })
}

/// Validation rules that apply to some work.
#[derive(Clone, Copy, Default)]
pub struct ValidationRuleSet<'a> {
    /// Rules of the configuration, written by a person.
    pub configured: &'a [ValidationRule],
    /// Rules of the task's series.
    pub series: &'a [ValidationRule],
}

impl ValidationRuleSet<'_> {
    pub fn is_empty(&self) -> bool {
        self.configured.is_empty() && self.series.is_empty()
    }
}

/// Runs the rules. Puts their results into the context, those of the configuration first.
pub fn run_rules(
    rules: &ValidationRuleSet<'_>,
    context: &mut AgentContext,
    means: &EvaluationInputs<'_>,
) -> Result<(), ValidationCancellation> {
    let values = context.to_values();
    let agent_output = context.agent_output.as_deref();
    let matter = validation::ValidationInput { agent_output, task_notes: means.notes, context: &values };
    let mut results = validate_rules(rules.configured, matter, &means.workshop.for_configured_rules(), means.control)?;
    results.extend(validate_rules(rules.series, matter, means.workshop, means.control)?);
    context.validation_results = results;
    Ok(())
}

/// Runs hooks with a context.
pub fn run_stop_hooks(
    hooks: &[RegisteredStopHook],
    context: &AgentContext,
    means: &EvaluationInputs<'_>,
) -> Result<EvaluationOutcome, ValidationCancellation> {
    let outside = Some((means.workshop, means.control));
    let said = evaluate_stop_hooks(hooks, context, &mut |hook| run_stop_hook(hook, context, means.closures, outside));
    if means.control.is_cancelled() { Err(ValidationCancellation) } else { Ok(said) }
}

fn cancelled_error(what: impl Display) -> ToolError {
    ToolError::new(ToolErrorCode::Interrupted, what).with_hint("nothing was recorded; call it again to know")
}

/// Returns the promises that count: those that the series accepts, and all that report a stuck agent.
fn counted_promises(live: &OpenSeries, output: Option<&str>) -> Vec<Promise> {
    let counts = |promise: &Promise| *promise != Promise::Complete || live.series.completion_promises.contains(promise);
    find_promises(output.unwrap_or_default()).into_iter().filter(counts).collect()
}

/// Explains why a promise in the agent's output does not count.
pub(crate) fn explain_uncounted_promise(live: &OpenSeries, output: Option<&str>) -> Option<String> {
    let output = output?;
    let listed = &live.series.completion_promises;
    if find_promises(output).contains(&Promise::Complete) && !listed.contains(&Promise::Complete) {
        let listed: Vec<&str> = listed.iter().map(|promise| promise.name()).collect();
        return Some(format!("COMPLETE does not count: the series was started with {}", listed.join(", ")));
    }
    explain_uncounted_claim(output).map(str::to_owned)
}

/// Adds the draft to checkpoint data, unless the hooks give one themselves.
fn add_draft(data: Value, context: &AgentContext) -> Value {
    let Some(draft) = &context.draft_content else { return data };
    let mut data = match data {
        Value::Object(data) if data.keys().all(|name| CHECKPOINT_KEYS.contains(&name.as_str())) => data,
        other => Map::from_iter([("agentContext".to_owned(), other)]),
    };
    if !data.get("draftContent").is_some_and(Value::is_string) {
        data.insert("draftContent".to_owned(), Value::from(draft.as_str()));
        if let Some(kind) = &context.draft_type {
            data.insert("draftType".to_owned(), Value::from(kind.as_str()));
        }
    }
    Value::Object(data)
}

/// Returns the phase of the last checkpoint.
fn last_checkpoint_phase(store: &SqliteStore, task: &Task, now: Timestamp) -> Result<Option<String>, StoreError> {
    let Some(last) = task.evaluation.live_checkpoints_at(now).next_back() else { return Ok(None) };
    let record = store.read_event(Seq(last.id.0))?;
    Ok(record.and_then(|record| match record.envelope.event {
        Event::CheckpointCreated(made) => made.execution_phase,
        _ => None,
    }))
}

fn runs_program(hook: &RegisteredStopHook) -> bool {
    hook.enabled && matches!(hook.hook, StopHook::Command { .. })
}

fn run_stop_hook(
    hook: &RegisteredStopHook,
    context: &AgentContext,
    closures: &StopHookClosures,
    outside: Option<(&ValidatorEnv<'_>, &RunControl)>,
) -> Result<StopRuling, String> {
    match (&hook.hook, outside) {
        (StopHook::Command { command }, Some((workshop, control))) => ask_command(command, context, workshop, control),
        (StopHook::Closure { name }, _) => closures.call_closure(name, context),
        (other, _) => Err(format!("a hook of type `{other}` runs no program")),
    }
}
