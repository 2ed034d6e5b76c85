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
    AgentContext, Asked, Evaluated, Event, HookDecision, Judging, Limits, Promise, Registered, RuleAction, SeenPromise,
    Seq, StopHook, StopRuling, Task, Timestamp, evaluate, explain_uncounted, find_promises,
};
use windlass_process::Control;
use windlass_store::{Sqlite, StoreError};

use crate::closure::Closures;
use crate::error::{Code, ToolError};
use crate::hook::{ask_command, registered};
use crate::host::{ToolCall, ToolHost};
use crate::iteration::Live;
use crate::shape::{Field, Kind};
use crate::task;
use crate::validation::{self, Cancelled, Workshop, validate};

/// Final message of the agent.
pub(crate) const OUTPUT: Field =
    Field::optional("agentOutput", "your message, with its promise tag", Kind::Text(Limits::OUTPUT_TAKEN));
/// Files that the agent has changed.
pub(crate) const FILES: Field =
    Field::optional("filesModified", "", Kind::List(&Kind::Words(Limits::ARTIFACT), 0, Limits::FILES));

/// Keys of checkpoint data from hooks. The engine saves data with other keys as the agent's context.
const CHECKPOINT: [&str; 5] = ["executionPhase", "executionStep", "agentContext", "draftContent", "draftType"];

/// Input of an evaluation.
pub(crate) struct Matter {
    pub agent_output: Option<String>,
    pub files_modified: Vec<String>,
    pub draft_content: Option<String>,
    pub draft_type: Option<String>,
}

/// Evaluates the present iteration. Returns the record for the log, and the ruling of the hooks.
pub(crate) fn judge<G: ToolHost>(
    call: &mut ToolCall<'_, G>,
    live: &Live,
    asked: Asked,
    matter: Matter,
) -> Result<(Judging, Evaluated), ToolError> {
    let now = call.ground.now();
    let hooks = registered(call.ground.store(), &live.task)?;
    let promises = promises(live, matter.agent_output.as_deref());
    let work = WorkDone {
        task: Some(&live.task),
        iteration: live.series.iteration,
        files_modified: matter.files_modified,
        promises: promises.clone(),
        agent_output: matter.agent_output,
        draft_content: matter.draft_content,
        draft_type: matter.draft_type,
    };
    let mut context = agent_context(call.ground.store(), work, now)?;
    let asks = hooks.iter().any(|hook| hook.enabled);
    let configured = call.ground.configured_rules(live.task.kind.as_ref())?;
    let rules = match asked == Asked::Validation || asks {
        true => RuleSet { configured: &configured, series: &live.started.validation_rules },
        false => RuleSet::default(),
    };
    let mut said = if rules.is_empty() && !hooks.iter().any(runs_a_program) {
        evaluate(&hooks, &context, &mut |hook| ask(hook, &context, call.closures, None))
    } else {
        let notes = task::notes(call.ground.store(), &live.task)?;
        let notes: Vec<String> = notes.into_iter().map(|note| note.text).collect();
        let workshop = call.ground.workshop()?;
        let means = Means { notes: &notes, workshop: &workshop, control: call.control, closures: call.closures };
        check_rules(&rules, &mut context, &means).map_err(called_off)?;
        ask_hooks(&hooks, &context, &means).map_err(called_off)?
    };
    if said.ruling.action == RuleAction::Continue {
        said.ruling.checkpoint_data = said.ruling.checkpoint_data.map(|data| with_draft(data, &context));
    }
    // If all hooks are disabled, there is no decision.
    let decision = asks.then(|| HookDecision { hook: said.hook, ruling: said.ruling.clone() });
    let judging = Judging {
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
pub struct Means<'a> {
    /// Notes of the task, oldest first.
    pub notes: &'a [String],
    pub workshop: &'a Workshop<'a>,
    pub control: &'a Control,
    pub closures: &'a Closures,
}

/// Work that is judged.
pub struct WorkDone<'a> {
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
pub fn agent_context(store: &Sqlite, work: WorkDone<'_>, now: Timestamp) -> Result<AgentContext, StoreError> {
    Ok(AgentContext {
        task_id: work.task.map(|task| task.id),
        iteration: work.iteration,
        execution_phase: work.task.map(|task| phase(store, task, now)).transpose()?.flatten(),
        files_modified: work.files_modified,
        validation_results: Vec::new(),
        completion_promises: work.promises.iter().map(|promise| SeenPromise::at(*promise, now)).collect(),
        agent_output: work.agent_output,
        draft_content: work.draft_content,
        draft_type: work.draft_type,
    })
}

/// Validation rules that apply to some work.
#[derive(Clone, Copy, Default)]
pub struct RuleSet<'a> {
    /// Rules of the configuration, written by a person.
    pub configured: &'a [ValidationRule],
    /// Rules of the task's series.
    pub series: &'a [ValidationRule],
}

impl RuleSet<'_> {
    pub fn is_empty(&self) -> bool {
        self.configured.is_empty() && self.series.is_empty()
    }
}

/// Runs the rules. Puts their results into the context, those of the configuration first.
pub fn check_rules(rules: &RuleSet<'_>, context: &mut AgentContext, means: &Means<'_>) -> Result<(), Cancelled> {
    let values = context.values();
    let agent_output = context.agent_output.as_deref();
    let matter = validation::Matter { agent_output, task_notes: means.notes, context: &values };
    let mut results = validate(rules.configured, matter, &means.workshop.of_configuration(), means.control)?;
    results.extend(validate(rules.series, matter, means.workshop, means.control)?);
    context.validation_results = results;
    Ok(())
}

/// Runs hooks with a context.
pub fn ask_hooks(hooks: &[Registered], context: &AgentContext, means: &Means<'_>) -> Result<Evaluated, Cancelled> {
    let outside = Some((means.workshop, means.control));
    let said = evaluate(hooks, context, &mut |hook| ask(hook, context, means.closures, outside));
    if means.control.is_cancelled() { Err(Cancelled) } else { Ok(said) }
}

fn called_off(what: impl Display) -> ToolError {
    ToolError::new(Code::Interrupted, what).hint("nothing was recorded; ask again when you want to know")
}

/// Returns the promises that count: those that the series accepts, and all that report a stuck agent.
fn promises(live: &Live, output: Option<&str>) -> Vec<Promise> {
    let counts = |promise: &Promise| *promise != Promise::Complete || live.series.completion_promises.contains(promise);
    find_promises(output.unwrap_or_default()).into_iter().filter(counts).collect()
}

/// Explains why a promise in the agent's output does not count.
pub(crate) fn unheard(live: &Live, output: Option<&str>) -> Option<String> {
    let output = output?;
    let listed = &live.series.completion_promises;
    if find_promises(output).contains(&Promise::Complete) && !listed.contains(&Promise::Complete) {
        let listed: Vec<&str> = listed.iter().map(|promise| promise.name()).collect();
        return Some(format!("COMPLETE does not count: the series was started with {}", listed.join(", ")));
    }
    explain_uncounted(output).map(str::to_owned)
}

/// Adds the draft to checkpoint data, unless the hooks give one themselves.
fn with_draft(data: Value, context: &AgentContext) -> Value {
    let Some(draft) = &context.draft_content else { return data };
    let mut data = match data {
        Value::Object(data) if data.keys().all(|name| CHECKPOINT.contains(&name.as_str())) => data,
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
fn phase(store: &Sqlite, task: &Task, now: Timestamp) -> Result<Option<String>, StoreError> {
    let Some(last) = task.drive.checkpoints_at(now).next_back() else { return Ok(None) };
    let record = store.event(Seq(last.id.0))?;
    Ok(record.and_then(|record| match record.envelope.event {
        Event::CheckpointCreated(made) => made.execution_phase,
        _ => None,
    }))
}

fn runs_a_program(hook: &Registered) -> bool {
    hook.enabled && matches!(hook.hook, StopHook::Command { .. })
}

fn ask(
    hook: &Registered,
    context: &AgentContext,
    closures: &Closures,
    outside: Option<(&Workshop<'_>, &Control)>,
) -> Result<StopRuling, String> {
    match (&hook.hook, outside) {
        (StopHook::Command { command }, Some((workshop, control))) => ask_command(command, context, workshop, control),
        (StopHook::Closure { name }, _) => closures.ask(name, context),
        (other, _) => Err(format!("a hook of type `{other}` runs no program")),
    }
}
