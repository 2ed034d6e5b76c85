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
use windlass_engine::workflow::{Did, Known, Program, Progress, Step, StepEnd, StepResult, What, Workflow};
use windlass_engine::{
    ActionRequest, Cause, Command, Envelope, Event, HookReport, Limits, Record, Refusal, View, in_words,
};
use windlass_expr::{Allowance, ExpressionFault};
use windlass_hooks::WorkflowRequest;
use windlass_store::ExecuteError;

use self::program::{Prepared, came_to, stored};
use self::verdict::{Ending, failed};
use super::{HookAttempt, HookRun, HookSubject};
use crate::{EffectRunner, RunError};

/// A workflow in progress.
struct Flow<'a> {
    run: &'a HookRun<'a>,
    workflow: &'a Workflow,
    /// Whether all of its programs may run again after a crash.
    idempotent: bool,
    /// Deadline of the workflow.
    until: Instant,
}

/// Values for the steps, as far as the log was read.
struct Memory {
    known: Known,
    /// Number of finished steps that were read.
    read: usize,
}

/// A step in progress.
struct Doing<'a> {
    flow: &'a Flow<'a>,
    step: &'a Step,
    context: &'a Value,
    /// Whether programs of the step may have run already, in an earlier run.
    interrupted: bool,
}

impl Doing<'_> {
    /// Returns whether a program may have run partly, and may not run again.
    fn is_lost(&self, program: &Program) -> bool {
        // A gate only judges, so it may run again.
        self.interrupted && !program.idempotent && !self.flow.idempotent && !self.flow.run.role().is_gate()
    }

    /// Returns whether a step runs a program.
    fn runs_a_program(&self, step: &Step) -> bool {
        match &step.what {
            What::Run(program) => !self.is_lost(program),
            _ => step.within().iter().any(|step| self.runs_a_program(step)),
        }
    }
}

/// Returns the result of an interrupted program.
fn interrupted(step: &Step) -> StepResult {
    let why = "it was interrupted, and its progress is unknown (`idempotent: true` lets it run again)";
    StepResult::failed(&step.id, why, Duration::ZERO)
}

/// Result of a step, and the step that follows.
struct Done {
    did: Did,
    stored: Map<String, Value>,
    on_success: Option<String>,
}

impl Done {
    fn ended(step: &Step, result: StepResult) -> Self {
        Self { did: Did::Ended(result), stored: Map::new(), on_success: step.on_success.clone() }
    }

    fn acting(step: &Step, kind: &str, payload: Result<Value, ExpressionFault>) -> Self {
        match payload {
            Ok(payload) => {
                let did = Did::Act(ActionRequest { kind: kind.to_owned(), payload });
                Self { did, stored: Map::new(), on_success: step.on_success.clone() }
            }
            Err(fault) => Self::ended(step, StepResult::failed(&step.id, fault.to_string(), Duration::ZERO)),
        }
    }
}

impl EffectRunner<'_> {
    pub(super) fn workflow(&mut self, run: &HookRun<'_>, asked: &WorkflowRequest) -> Result<HookAttempt, RunError> {
        let began = Instant::now();
        let HookAttempt { report, retry_after, response } = self.workflow_to_its_end(run, asked)?;
        Ok(HookAttempt { report: HookReport { took: Some(began.elapsed()), ..report }, retry_after, response })
    }

    fn workflow_to_its_end(&mut self, run: &HookRun<'_>, asked: &WorkflowRequest) -> Result<HookAttempt, RunError> {
        let id = &asked.id;
        let workflow = match (self.settings.workflows)(id) {
            Ok(Some(workflow)) => workflow,
            Ok(None) => {
                let why = format!("there is no workflow `{id}`: `windlass workflow list` names them");
                return self.cannot_go_on(run, why);
            }
            Err(why) => return self.cannot_go_on(run, why),
        };
        let given = match given(run, asked, &workflow) {
            Ok(given) => given,
            Err(why) => return self.cannot_go_on(run, why),
        };
        let (owner, effect) = (self.owner.clone(), run.effect);
        match self.progress(run)? {
            None => {
                let Some(first) = workflow.steps.first() else { return Ok(failed(format!("`{id}` has no steps"))) };
                let (step, digest) = (first.id.clone(), workflow.digest);
                let steps = u32::try_from(workflow.steps.len()).unwrap_or(u32::MAX);
                let workflow = workflow.id.clone();
                self.commit(&Command::StartWorkflow { effect, owner, workflow, digest, step, steps })?;
            }
            Some(progress) if progress.next.is_some() && progress.digest != workflow.digest => {
                let error = format!("`{id}` has been changed since it was begun; begin it again");
                self.commit(&Command::AbandonWorkflow { effect, owner, error })?;
            }
            Some(_) => {}
        }
        let known = Known::begin(&workflow, self.begun_for(run)?, &given);
        let until = Instant::now() + run.timeout();
        let flow = Flow { run, workflow: &workflow, idempotent: asked.idempotent, until };
        self.go_through(&flow, Memory { known, read: 0 })
    }

    /// Runs the steps, one after another.
    fn go_through(&mut self, flow: &Flow<'_>, mut memory: Memory) -> Result<HookAttempt, RunError> {
        let (run, effect, owner) = (flow.run, flow.run.effect, self.owner.clone());
        let mut ending = Ending::OfItself;
        loop {
            let Some(progress) = self.progress(run)? else { return Ok(failed("it has not begun".to_owned())) };
            let is_cancelled = self.control.is_cancelled();
            let Some(step) = &progress.next else {
                // A program that was cancelled with the workflow has failed for no other reason.
                let ending = if is_cancelled && progress.failed.is_some() { Ending::Cancelled } else { ending };
                return self.ended(run, &progress, ending);
            };
            let error = match flow.workflow.step(step) {
                None => format!("there is no step `{step}` any more"),
                Some(_) if is_cancelled => "it was cancelled".to_owned(),
                Some(_) if Instant::now() > flow.until => {
                    ending = Ending::TimedOut;
                    format!("it had not ended after {}, which is its `timeout`", in_words(run.hook.timeout))
                }
                Some(step) => {
                    self.remember(&mut memory, &progress)?;
                    let (context, interrupted) = (memory.known.values(), progress.under_way.is_some());
                    self.take_step(&Doing { flow, step, context, interrupted })?;
                    continue;
                }
            };
            self.commit(&Command::AbandonWorkflow { effect, owner: owner.clone(), error })?;
        }
    }

    /// Ends a workflow that cannot be read any more. If it has begun, the log records its failure.
    fn cannot_go_on(&mut self, run: &HookRun<'_>, why: String) -> Result<HookAttempt, RunError> {
        if self.progress(run)?.is_some_and(|progress| progress.next.is_some()) {
            let (effect, owner) = (run.effect, self.owner.clone());
            let error = why[..why.floor_char_boundary(Limits::REASON)].to_owned();
            self.commit(&Command::AbandonWorkflow { effect, owner, error })?;
        }
        Ok(failed(why))
    }

    fn progress(&self, run: &HookRun<'_>) -> Result<Option<Progress>, RunError> {
        Ok(self.store.snapshot()?.effect(run.effect)?.and_then(|effect| effect.progress))
    }

    /// Reads the results of the steps that have ended since.
    fn remember(&self, memory: &mut Memory, progress: &Progress) -> Result<(), RunError> {
        for seq in &progress.done[memory.read.min(progress.done.len())..] {
            if let Event::WorkflowStepFinished(step) = self.event(*seq)?.envelope.event {
                memory.known.add(&step.result, &step.within, &step.stored);
            }
        }
        memory.read = progress.done.len();
        Ok(())
    }

    fn take_step(&mut self, doing: &Doing<'_>) -> Result<(), RunError> {
        let Doing { flow, step, .. } = doing;
        let (effect, owner, began) = (flow.run.effect, self.owner.clone(), Instant::now());
        if let Some(at_once) = self.at_once(doing)
            && self.end_step(doing, at_once, began)?
        {
            return Ok(());
        }
        if doing.runs_a_program(step) {
            self.commit(&Command::BeginStep { effect, owner, step: step.id.clone() })?;
        }
        let done = self.do_step(doing)?;
        self.end_step(doing, done, began).map(drop)
    }

    /// Records the result of a step. Returns whether the step has ended with it.
    fn end_step(&mut self, doing: &Doing<'_>, done: Done, began: Instant) -> Result<bool, RunError> {
        let Doing { flow, step, .. } = doing;
        let (effect, owner) = (flow.run.effect, self.owner.clone());
        // A cancelled step has no successor: `on_failure` is for failures.
        let is_cancelled = self.control.is_cancelled();
        let end = StepEnd {
            step: step.id.clone(),
            did: done.did,
            took: began.elapsed(),
            stored: done.stored,
            on_success: done.on_success,
            on_failure: step.on_failure.clone().filter(|_| !is_cancelled),
        };
        match self.commit(&Command::EndStep { effect, owner: owner.clone(), end: Box::new(end.clone()) }) {
            Err(RunError::Execute(ExecuteError::Refused(Refusal::NoneSucceeds { .. }))) => Ok(false),
            // A result that the log refuses is a failure of the step, not of the runner.
            Err(RunError::Execute(ExecuteError::Refused(Refusal::Invalid { what, why }))) => {
                let did = Did::Ended(StepResult::failed(&step.id, format!("{what} {why}"), end.took));
                let end = StepEnd { did, stored: Map::new(), ..end };
                self.commit(&Command::EndStep { effect, owner, end: Box::new(end) }).map(|_| true)
            }
            ended => ended.map(|_| true),
        }
    }

    /// Returns the values of the event before the one that triggers the workflow.
    fn begun_for(&self, run: &HookRun<'_>) -> Result<Value, RunError> {
        let subject = run.subject;
        let Some(event) = self.cause_of(&subject.event)? else { return Ok(run.values.clone()) };
        let HookSubject { session, task, output, promise, call, conversation, .. } = subject;
        let (session, task, output) = (session.clone(), task.clone(), output.clone());
        let (call, conversation) = (call.clone(), conversation.clone());
        let subject = HookSubject { event, session, task, output, promise: *promise, call, conversation };
        Ok(subject.values(run.owed, &self.settings.project))
    }

    fn cause_of(&self, event: &Record) -> Result<Option<Record>, RunError> {
        let Event::WorkflowTriggered(_) = event.envelope.event else { return Ok(None) };
        let seq = match event.envelope.metadata.cause {
            None => return Ok(None),
            Some(Cause::At(seq)) => seq,
            Some(Cause::Back(steps)) => windlass_engine::Seq(event.seq.0.saturating_sub(u64::from(steps))),
        };
        let cause = self.event(seq)?;
        match &cause.envelope.event {
            Event::HookFinished(finished) => self.event(finished.effect.seq).map(Some),
            _ => Ok(Some(cause)),
        }
    }

    fn do_step(&mut self, doing: &Doing<'_>) -> Result<Done, RunError> {
        let Doing { step, context, .. } = doing;
        Ok(match &step.what {
            What::Nothing => Done::ended(step, StepResult::succeeded(&step.id, None, Duration::ZERO)),
            What::CreateTask(pattern) => Done::acting(step, "create_task", pattern.fill(context)),
            What::UpdateTask(pattern) => Done::acting(step, "update_task", pattern.fill(context)),
            What::Choose { predicate, on_true, on_false } => match predicate.holds(context) {
                Err(fault) => Done::ended(step, StepResult::failed(&step.id, fault.to_string(), Duration::ZERO)),
                Ok(holds) => {
                    let way = if holds { on_true } else { on_false };
                    let result = StepResult::succeeded(&step.id, Some(json!({"result": holds})), Duration::ZERO);
                    Done { on_success: way.clone().or(step.on_success.clone()), ..Done::ended(step, result) }
                }
            },
            What::Run(program) if doing.is_lost(program) => Done::ended(step, interrupted(step)),
            What::Run(program) => {
                let result = match self.prepared(doing, step, program, &mut Allowance::default()) {
                    Ok(Prepared { spec, papers: _papers, limit }) => {
                        let ran = self.start(&spec)?;
                        came_to(step, program, ran, &limit, |ran| self.read(ran))
                    }
                    Err(result) => result,
                };
                let stored = stored(program, &result);
                Done { stored, ..Done::ended(step, result) }
            }
            What::Parallel { steps, wait_for_all } => self.do_several(doing, steps, *wait_for_all),
        })
    }
}

/// Returns the context of a workflow: from the command or action that triggers it, and from the hook that begins it. Neither an
/// action nor free text can name a program.
fn given(run: &HookRun<'_>, asked: &WorkflowRequest, workflow: &Workflow) -> Result<Map<String, Value>, String> {
    let Envelope { event, metadata, .. } = &run.subject.event.envelope;
    let mut given = match event {
        Event::WorkflowTriggered(triggered) => triggered.context.clone(),
        _ => Map::new(),
    };
    let programs = workflow.names_of_programs();
    let acted = given.keys().filter(|_| metadata.cause.is_some());
    let free = asked.context.iter().filter(|(_, pattern)| pattern.is_free()).map(|(name, _)| name);
    if let Some(name) = acted.chain(free).find(|name| programs.contains(name.as_str())) {
        let id = &workflow.id;
        return Err(format!(
            "`context.{name}` names a program of `{id}`: write it as plain text in the `context` of a hook, or give it with \
             `windlass workflow run {id} --context FILE`"
        ));
    }
    given.extend(asked.given(&run.values)?);
    Ok(given)
}
