//! Run of a workflow: one step after another, each in the log before the next begins.
//!
//! ```text
//! started ─► step: what it does to the graph and its end are one commit; programs are announced first ─► … ─► ended
//! ```
//!
//! Invariant: all state is in the log, so an interrupted workflow goes on.

mod branches;
mod program;
mod verdict;

use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use windlass_engine::workflow::{
    StepExecution, StepOperation, StepProgram, StepReport, StepResult, StepVariables, Workflow, WorkflowProgress,
    WorkflowStep,
};
use windlass_engine::{
    ActionRequest, Command, EngineLimits, Event, EventCause, EventEnvelope, EventRecord, HookReport, Refusal,
    StateView, duration_in_words,
};
use windlass_expr::{EvaluationBudget, EvaluationError};
use windlass_hooks::WorkflowRequest;
use windlass_store::ExecuteError;

use self::program::{PreparedProgram, program_result, stored_value};
use self::verdict::{WorkflowEnding, failed_attempt};
use super::{HookAttempt, HookRun, HookSubject};
use crate::{EffectRunner, RunError};

/// A workflow in progress.
struct WorkflowRun<'a> {
    run: &'a HookRun<'a>,
    workflow: &'a Workflow,
    /// Whether all of its programs may run again after a crash.
    idempotent: bool,
    /// Deadline of the workflow.
    until: Instant,
}

/// Values for the steps, as far as the log was read.
struct StepMemory {
    known: StepVariables,
    /// Number of finished steps that were read.
    read: usize,
}

/// A step in progress.
struct StepRun<'a> {
    flow: &'a WorkflowRun<'a>,
    step: &'a WorkflowStep,
    context: &'a Value,
    /// Whether programs of the step may have run already, in an earlier run.
    interrupted: bool,
}

impl StepRun<'_> {
    /// Returns whether a program may have run partly, and may not run again.
    fn is_program_lost(&self, program: &StepProgram) -> bool {
        // A gate only judges, so it may run again.
        self.interrupted && !program.idempotent && !self.flow.idempotent && !self.flow.run.hook_role().is_gate()
    }

    /// Returns whether a step runs a program.
    fn runs_program(&self, step: &WorkflowStep) -> bool {
        match &step.operation {
            StepOperation::Run(program) => !self.is_program_lost(program),
            _ => step.nested_steps().iter().any(|step| self.runs_program(step)),
        }
    }
}

/// Returns the result of an interrupted program.
fn interrupted_result(step: &WorkflowStep) -> StepResult {
    let why = "it was interrupted, and its progress is unknown (`idempotent: true` lets it run again)";
    StepResult::failed(&step.id, why, Duration::ZERO)
}

/// Result of a step, and the step that follows.
struct ExecutedStep {
    did: StepExecution,
    stored: Map<String, Value>,
    on_success: Option<String>,
}

impl ExecutedStep {
    fn from_result(step: &WorkflowStep, result: StepResult) -> Self {
        Self { did: StepExecution::Ended(result), stored: Map::new(), on_success: step.on_success.clone() }
    }

    fn from_action(step: &WorkflowStep, kind: &str, payload: Result<Value, EvaluationError>) -> Self {
        match payload {
            Ok(payload) => {
                let did = StepExecution::RunAction(ActionRequest { kind: kind.to_owned(), payload });
                Self { did, stored: Map::new(), on_success: step.on_success.clone() }
            }
            Err(fault) => Self::from_result(step, StepResult::failed(&step.id, fault.to_string(), Duration::ZERO)),
        }
    }
}

impl EffectRunner<'_> {
    pub(super) fn run_workflow(&mut self, run: &HookRun<'_>, asked: &WorkflowRequest) -> Result<HookAttempt, RunError> {
        let began = Instant::now();
        let HookAttempt { report, retry_after, response } = self.run_workflow_to_end(run, asked)?;
        Ok(HookAttempt { report: HookReport { took: Some(began.elapsed()), ..report }, retry_after, response })
    }

    fn run_workflow_to_end(&mut self, run: &HookRun<'_>, asked: &WorkflowRequest) -> Result<HookAttempt, RunError> {
        let id = &asked.id;
        let workflow = match (self.settings.workflows)(id) {
            Ok(Some(workflow)) => workflow,
            Ok(None) => {
                let why = format!("there is no workflow `{id}`: `windlass workflow list` names them");
                return self.fail_workflow(run, why);
            }
            Err(why) => return self.fail_workflow(run, why),
        };
        let given = match workflow_context(run, asked, &workflow) {
            Ok(given) => given,
            Err(why) => return self.fail_workflow(run, why),
        };
        let (owner, effect) = (self.owner.clone(), run.effect);
        match self.load_progress(run)? {
            None => {
                let Some(first) = workflow.steps.first() else {
                    return Ok(failed_attempt(format!("`{id}` has no steps")));
                };
                let (step, digest) = (first.id.clone(), workflow.digest);
                let steps = u32::try_from(workflow.steps.len()).unwrap_or(u32::MAX);
                let workflow = workflow.id.clone();
                self.commit_command(&Command::StartWorkflow { effect, owner, workflow, digest, step, steps })?;
            }
            Some(progress) if progress.next.is_some() && progress.digest != workflow.digest => {
                let error = format!("`{id}` was changed after it had started; start it again");
                self.commit_command(&Command::AbandonWorkflow { effect, owner, error })?;
            }
            Some(_) => {}
        }
        let known = StepVariables::from_context(&workflow, self.trigger_values(run)?, &given);
        let until = Instant::now() + run.attempt_timeout();
        let flow = WorkflowRun { run, workflow: &workflow, idempotent: asked.idempotent, until };
        self.run_workflow_steps(&flow, StepMemory { known, read: 0 })
    }

    /// Runs the steps, one after another.
    fn run_workflow_steps(&mut self, flow: &WorkflowRun<'_>, mut memory: StepMemory) -> Result<HookAttempt, RunError> {
        let (run, effect, owner) = (flow.run, flow.run.effect, self.owner.clone());
        let mut ending = WorkflowEnding::Regular;
        loop {
            let Some(progress) = self.load_progress(run)? else {
                return Ok(failed_attempt("it has not started".to_owned()));
            };
            let is_cancelled = self.control.is_cancelled();
            let Some(step) = &progress.next else {
                // A program that was cancelled with the workflow has failed for no other reason.
                let ending = if is_cancelled && progress.failed.is_some() { WorkflowEnding::Cancelled } else { ending };
                return self.workflow_report(run, &progress, ending);
            };
            let error = match flow.workflow.find_step(step) {
                None => format!("there is no step `{step}` any more"),
                Some(_) if is_cancelled => "it was cancelled".to_owned(),
                Some(_) if Instant::now() > flow.until => {
                    ending = WorkflowEnding::TimedOut;
                    format!("it had not ended after {}, which is its `timeout`", duration_in_words(run.hook.timeout))
                }
                Some(step) => {
                    self.read_new_results(&mut memory, &progress)?;
                    let (context, interrupted) = (memory.known.values(), progress.under_way.is_some());
                    self.run_and_end_step(&StepRun { flow, step, context, interrupted })?;
                    continue;
                }
            };
            self.commit_command(&Command::AbandonWorkflow { effect, owner: owner.clone(), error })?;
        }
    }

    /// Ends a workflow that cannot be read any more. If it has begun, the log records its failure.
    fn fail_workflow(&mut self, run: &HookRun<'_>, why: String) -> Result<HookAttempt, RunError> {
        if self.load_progress(run)?.is_some_and(|progress| progress.next.is_some()) {
            let (effect, owner) = (run.effect, self.owner.clone());
            let error = why[..why.floor_char_boundary(EngineLimits::REASON_BYTES)].to_owned();
            self.commit_command(&Command::AbandonWorkflow { effect, owner, error })?;
        }
        Ok(failed_attempt(why))
    }

    fn load_progress(&self, run: &HookRun<'_>) -> Result<Option<WorkflowProgress>, RunError> {
        Ok(self.store.begin_snapshot()?.find_effect(run.effect)?.and_then(|effect| effect.progress))
    }

    /// Reads the results of the steps that have ended since.
    fn read_new_results(&self, memory: &mut StepMemory, progress: &WorkflowProgress) -> Result<(), RunError> {
        for seq in &progress.done[memory.read.min(progress.done.len())..] {
            if let Event::WorkflowStepFinished(step) = self.load_event(*seq)?.envelope.event {
                memory.known.add_step_result(&step.result, &step.within, &step.stored);
            }
        }
        memory.read = progress.done.len();
        Ok(())
    }

    fn run_and_end_step(&mut self, doing: &StepRun<'_>) -> Result<(), RunError> {
        let StepRun { flow, step, .. } = doing;
        let (effect, owner, began) = (flow.run.effect, self.owner.clone(), Instant::now());
        if let Some(at_once) = self.try_without_program(doing)
            && self.record_step_end(doing, at_once, began)?
        {
            return Ok(());
        }
        if doing.runs_program(step) {
            self.commit_command(&Command::BeginStep { effect, owner, step: step.id.clone() })?;
        }
        let done = self.execute_step(doing)?;
        self.record_step_end(doing, done, began).map(drop)
    }

    /// Records the result of a step. Returns whether the step has ended with it.
    fn record_step_end(&mut self, doing: &StepRun<'_>, done: ExecutedStep, began: Instant) -> Result<bool, RunError> {
        let StepRun { flow, step, .. } = doing;
        let (effect, owner) = (flow.run.effect, self.owner.clone());
        // A cancelled step has no successor: `on_failure` is for failures.
        let is_cancelled = self.control.is_cancelled();
        let end = StepReport {
            step: step.id.clone(),
            execution: done.did,
            took: began.elapsed(),
            stored: done.stored,
            on_success: done.on_success,
            on_failure: step.on_failure.clone().filter(|_| !is_cancelled),
        };
        match self.commit_command(&Command::EndStep { effect, owner: owner.clone(), end: Box::new(end.clone()) }) {
            Err(RunError::Execute(ExecuteError::Refused(Refusal::NoneSucceeds { .. }))) => Ok(false),
            // A result that the log refuses is a failure of the step, not of the runner.
            Err(RunError::Execute(ExecuteError::Refused(Refusal::Invalid { what, why }))) => {
                let did = StepExecution::Ended(StepResult::failed(&step.id, format!("{what} {why}"), end.took));
                let end = StepReport { execution: did, stored: Map::new(), ..end };
                self.commit_command(&Command::EndStep { effect, owner, end: Box::new(end) }).map(|_| true)
            }
            ended => ended.map(|_| true),
        }
    }

    /// Returns the values of the event before the one that triggers the workflow.
    fn trigger_values(&self, run: &HookRun<'_>) -> Result<Value, RunError> {
        let subject = run.subject;
        let Some(event) = self.trigger_cause(&subject.event)? else { return Ok(run.values.clone()) };
        let HookSubject { session, task, output, promise, call, conversation, .. } = subject;
        let (session, task, output) = (session.clone(), task.clone(), output.clone());
        let (call, conversation) = (call.clone(), conversation.clone());
        let subject = HookSubject { event, session, task, output, promise: *promise, call, conversation };
        Ok(subject.template_values(run.owed, &self.settings.project))
    }

    fn trigger_cause(&self, event: &EventRecord) -> Result<Option<EventRecord>, RunError> {
        let Event::WorkflowTriggered(_) = event.envelope.event else { return Ok(None) };
        let seq = match event.envelope.metadata.cause {
            None => return Ok(None),
            Some(EventCause::At(seq)) => seq,
            Some(EventCause::Back(steps)) => windlass_engine::Seq(event.seq.0.saturating_sub(u64::from(steps))),
        };
        let cause = self.load_event(seq)?;
        match &cause.envelope.event {
            Event::HookFinished(finished) => self.load_event(finished.effect.seq).map(Some),
            _ => Ok(Some(cause)),
        }
    }

    fn execute_step(&mut self, doing: &StepRun<'_>) -> Result<ExecutedStep, RunError> {
        let StepRun { step, context, .. } = doing;
        Ok(match &step.operation {
            StepOperation::Nothing => {
                ExecutedStep::from_result(step, StepResult::succeeded(&step.id, None, Duration::ZERO))
            }
            StepOperation::CreateTask(pattern) => {
                ExecutedStep::from_action(step, "create_task", pattern.fill_values(context))
            }
            StepOperation::UpdateTask(pattern) => {
                ExecutedStep::from_action(step, "update_task", pattern.fill_values(context))
            }
            StepOperation::Choose { predicate, on_true, on_false } => match predicate.is_satisfied(context) {
                Err(fault) => {
                    ExecutedStep::from_result(step, StepResult::failed(&step.id, fault.to_string(), Duration::ZERO))
                }
                Ok(holds) => {
                    let way = if holds { on_true } else { on_false };
                    let result = StepResult::succeeded(&step.id, Some(json!({"result": holds})), Duration::ZERO);
                    ExecutedStep {
                        on_success: way.clone().or(step.on_success.clone()),
                        ..ExecutedStep::from_result(step, result)
                    }
                }
            },
            StepOperation::Run(program) if doing.is_program_lost(program) => {
                ExecutedStep::from_result(step, interrupted_result(step))
            }
            StepOperation::Run(program) => {
                let result = match self.prepare_program(doing, step, program, &mut EvaluationBudget::default()) {
                    Ok(PreparedProgram { spec, files: _files, limit }) => {
                        let ran = self.run_program(&spec)?;
                        program_result(step, program, ran, &limit, |ran| self.mask_output(ran))
                    }
                    Err(result) => result,
                };
                let stored = stored_value(program, &result);
                ExecutedStep { stored, ..ExecutedStep::from_result(step, result) }
            }
            StepOperation::Parallel { steps, wait_for_all } => self.run_parallel_steps(doing, steps, *wait_for_all),
        })
    }
}

/// Returns the context of a workflow: from the command or action that triggers it, and from the hook that begins it. Neither an
/// action nor free text can name a program.
fn workflow_context(
    run: &HookRun<'_>,
    asked: &WorkflowRequest,
    workflow: &Workflow,
) -> Result<Map<String, Value>, String> {
    let EventEnvelope { event, metadata, .. } = &run.subject.event.envelope;
    let mut given = match event {
        Event::WorkflowTriggered(triggered) => triggered.context.clone(),
        _ => Map::new(),
    };
    let programs = workflow.program_name_inputs();
    let acted = given.keys().filter(|_| metadata.cause.is_some());
    let free = asked.context.iter().filter(|(_, pattern)| pattern.has_free_text()).map(|(name, _)| name);
    if let Some(name) = acted.chain(free).find(|name| programs.contains(name.as_str())) {
        let id = &workflow.id;
        return Err(format!(
            "`context.{name}` names a program of `{id}`: write it as plain text in the `context` of a hook, or give it with \
             `windlass workflow run {id} --context FILE`"
        ));
    }
    given.extend(asked.fill_context(&run.values)?);
    Ok(given)
}
