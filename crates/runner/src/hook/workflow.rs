//! Running a workflow: one step after another, each in the log before the next begins.
//!
//! ```text
//! started ─► step: what it does to the graph and its end are one commit; programs are announced first ─► … ─► ended
//! ```
//!
//! Invariant: nothing is remembered here. What was done is read from the log, so a workflow that was interrupted goes on.

mod program;

use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use windlass_engine::workflow::{Did, Progress, Step, StepDone, StepEnd, StepResult, What, Workflow, context as known};
use windlass_engine::{
    ActionRequest, Cause, Command, Event, ExpressionFault, HookOutcome, HookReport, Limits, Record, Refusal, View,
    payload,
};
use windlass_process::run;
use windlass_store::ExecuteError;

use self::program::{came_to, side_by_side, stored};
use super::{Attempt, Running, Scene};
use crate::{Dispatch, RunError};

/// A workflow that runs.
struct Flow<'a> {
    running: &'a Running<'a>,
    workflow: &'a Workflow,
    /// When all of it has to have ended.
    until: Instant,
}

/// What a step is done with.
struct Doing<'a> {
    flow: &'a Flow<'a>,
    step: &'a Step,
    context: Value,
}

/// What came of a step, and where it leads.
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

impl Dispatch<'_> {
    pub(super) fn workflow(&mut self, running: &Running<'_>, id: &str) -> Result<Attempt, RunError> {
        let workflow = match self.settings.workflows.get(id) {
            Ok(Some(workflow)) => workflow,
            Ok(None) => {
                let why = format!("there is no workflow `{id}`: `windlass workflow list` names them");
                return self.cannot_go_on(running, why);
            }
            Err(why) => return self.cannot_go_on(running, why),
        };
        let (owner, debt) = (self.owner.clone(), running.debt);
        match self.progress(running)? {
            None => {
                let Some(first) = workflow.steps.first() else { return Ok(failed(format!("`{id}` has no steps"))) };
                let (step, digest) = (first.id.clone(), workflow.digest);
                let workflow = workflow.id.clone();
                self.give(&Command::StartWorkflow { debt, owner: owner.clone(), workflow, digest, step })?;
            }
            Some(progress) if progress.next.is_some() && progress.digest != workflow.digest => {
                let error = format!("`{id}` has been changed since it was begun; begin it again");
                self.give(&Command::AbandonWorkflow { debt, owner: owner.clone(), error })?;
            }
            Some(_) => {}
        }
        let flow = Flow { running, workflow: &workflow, until: Instant::now() + running.timeout() };
        loop {
            let Some(progress) = self.progress(running)? else { return Ok(failed("it has not begun".to_owned())) };
            let Some(step) = &progress.next else { return self.ended(running, &progress) };
            let is_cancelled = self.control_for(running.resolve).is_cancelled();
            let error = match workflow.step(step) {
                None => format!("there is no step `{step}` any more"),
                Some(_) if is_cancelled => "somebody asked for the end".to_owned(),
                Some(_) if Instant::now() > flow.until => "its time was over".to_owned(),
                Some(step) => {
                    self.take_step(&flow, step, &progress)?;
                    continue;
                }
            };
            self.give(&Command::AbandonWorkflow { debt, owner: owner.clone(), error })?;
            if is_cancelled {
                return Ok(HookReport::from(HookOutcome::Cancelled).into());
            }
        }
    }

    /// The end of a workflow that cannot be read any more. One that has begun has failed, and the log says so.
    fn cannot_go_on(&mut self, running: &Running<'_>, why: String) -> Result<Attempt, RunError> {
        if self.progress(running)?.is_some_and(|progress| progress.next.is_some()) {
            let (debt, owner) = (running.debt, self.owner.clone());
            let error = why[..why.floor_char_boundary(Limits::REASON)].to_owned();
            self.give(&Command::AbandonWorkflow { debt, owner, error })?;
        }
        Ok(failed(why))
    }

    /// What a workflow that has ended means where it stands: at a gate it is a verdict about the work.
    fn ended(&self, running: &Running<'_>, progress: &Progress) -> Result<Attempt, RunError> {
        let steps = progress.done.len();
        let said = if steps == 1 { "one step".to_owned() } else { format!("{steps} steps") };
        Ok(match &progress.failed {
            Some(why) if running.role().is_gate() => {
                let feedback = Some(self.explained(why, progress)?);
                let report = HookReport { message: Some(why.clone()), feedback, ..HookOutcome::Block.into() };
                Attempt { again: Some(Duration::ZERO), ..report.into() }
            }
            Some(why) => failed(why.clone()),
            None => HookReport { message: Some(said), ..HookOutcome::Success.into() }.into(),
        })
    }

    /// Why a workflow has failed, with everything that the programs printed that did.
    fn explained(&self, why: &str, progress: &Progress) -> Result<String, RunError> {
        let mut told = vec![why.to_owned()];
        if let Some(last) = progress.done.last()
            && let Event::WorkflowStepFinished(step) = self.event(*last)?.envelope.event
        {
            for result in [&step.result].into_iter().chain(&step.within).filter(|result| !result.success) {
                let printed = |stream| result.data.as_ref().and_then(|data| data[stream].as_str()).map(str::trim_end);
                let printed = ["stderr", "stdout"].into_iter().filter_map(printed).filter(|text| !text.is_empty());
                told.extend(printed.map(|text| format!("`{}` printed:\n{text}", result.step_id)));
            }
        }
        Ok(told.join("\n\n"))
    }

    fn progress(&self, running: &Running<'_>) -> Result<Option<Progress>, RunError> {
        Ok(self.store.snapshot()?.debt(running.debt)?.and_then(|debt| debt.progress))
    }

    fn take_step(&mut self, flow: &Flow<'_>, step: &Step, progress: &Progress) -> Result<(), RunError> {
        let (debt, owner, began) = (flow.running.debt, self.owner.clone(), Instant::now());
        // A gate judges: it may look again.
        let may_run_again = step.is_idempotent() || flow.running.role().is_gate();
        let done = if progress.under_way.is_some() && !may_run_again {
            let why = "it was interrupted, and nobody knows how far it came (`idempotent: true` lets it run again)";
            Done::ended(step, StepResult::failed(&step.id, why, Duration::ZERO))
        } else {
            if step.runs_a_program() {
                self.give(&Command::BeginStep { debt, owner: owner.clone(), step: step.id.clone() })?;
            }
            let context = self.known(flow, progress)?;
            self.do_step(&Doing { flow, step, context })?
        };
        let end = StepEnd {
            step: step.id.clone(),
            did: done.did,
            took: began.elapsed(),
            stored: done.stored,
            on_success: done.on_success,
            on_failure: step.on_failure.clone(),
        };
        match self.give(&Command::EndStep { debt, owner: owner.clone(), end: Box::new(end.clone()) }) {
            // What cannot be kept is the step's fault, not that of whoever runs it.
            Err(RunError::Execute(ExecuteError::Refused(Refusal::Invalid { what, why }))) => {
                let did = Did::Ended(StepResult::failed(&step.id, format!("{what} {why}"), end.took));
                let end = StepEnd { did, stored: Map::new(), ..end };
                self.give(&Command::EndStep { debt, owner, end: Box::new(end) }).map(drop)
            }
            ended => ended.map(drop),
        }
    }

    /// What a step knows: what the workflow was begun for, and what the steps before it came to.
    fn known(&self, flow: &Flow<'_>, progress: &Progress) -> Result<Value, RunError> {
        let mut finished: Vec<payload::WorkflowStepFinished> = Vec::new();
        for seq in &progress.done {
            if let Event::WorkflowStepFinished(step) = self.event(*seq)?.envelope.event {
                finished.push(step);
            }
        }
        let within: Vec<Vec<&StepResult>> = finished.iter().map(|step| step.within.iter().collect()).collect();
        let done: Vec<StepDone<'_>> = finished
            .iter()
            .zip(&within)
            .map(|(step, within)| StepDone { result: &step.result, within, stored: &step.stored })
            .collect();
        let given = match &flow.running.scene.event.envelope.event {
            Event::WorkflowTriggered(triggered) => triggered.context.clone(),
            _ => Map::new(),
        };
        Ok(known(flow.workflow, self.begun_for(flow.running)?, &given, &done))
    }

    /// The values of what led to the workflow: not of the event that asks for it, but of the one before that.
    fn begun_for(&self, running: &Running<'_>) -> Result<Value, RunError> {
        let scene = running.scene;
        let Some(event) = self.cause_of(&scene.event)? else { return Ok(running.values.clone()) };
        let Scene { session, task, output, promise, call, .. } = scene;
        let (session, task, output) = (session.clone(), task.clone(), output.clone());
        Ok(Scene { event, session, task, output, promise: *promise, call: call.clone() }.values(running.owed))
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
            Event::HookFinished(finished) => self.event(finished.debt.seq).map(Some),
            _ => Ok(Some(cause)),
        }
    }

    fn do_step(&mut self, doing: &Doing<'_>) -> Result<Done, RunError> {
        let Doing { flow, step, context } = doing;
        Ok(match &step.what {
            What::Nothing => Done::ended(step, StepResult::succeeded(&step.id, None, Duration::ZERO)),
            What::CreateTask(pattern) => Done::acting(step, "create_task", pattern.fill(context)),
            What::UpdateTask(pattern) => Done::acting(step, "update_task", pattern.fill(context)),
            What::Choose { predicate, on_true, on_false } => match predicate.value(context) {
                Err(fault) => Done::ended(step, StepResult::failed(&step.id, fault.to_string(), Duration::ZERO)),
                Ok(value) => {
                    let holds = holds(&value);
                    let way = if holds { on_true } else { on_false };
                    let result = StepResult::succeeded(&step.id, Some(json!({"result": holds})), Duration::ZERO);
                    Done { on_success: way.clone().or(step.on_success.clone()), ..Done::ended(step, result) }
                }
            },
            What::Run(program) => {
                let result = match self.prepared(doing, step, program) {
                    Ok((spec, _papers)) => {
                        let ran = self.start(&spec, flow.running.resolve)?;
                        came_to(step, program, ran, |ran| self.settings.mask.run(ran))
                    }
                    Err(result) => result,
                };
                let stored = stored(program, &result);
                Done { stored, ..Done::ended(step, result) }
            }
            What::Parallel { steps, wait_for_all } => self.do_several(doing, steps, *wait_for_all),
        })
    }

    /// Runs programs side by side; the rest of it is done with the end of the step.
    fn do_several(&self, doing: &Doing<'_>, steps: &[Step], all: bool) -> Done {
        let (mut ended, mut acts, mut programs, mut papers) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for step in steps {
            match &step.what {
                What::CreateTask(pattern) | What::UpdateTask(pattern) => match pattern.fill(&doing.context) {
                    Ok(payload) => {
                        acts.push((step.id.clone(), ActionRequest { kind: step.kind().to_owned(), payload }));
                    }
                    Err(fault) => ended.push(StepResult::failed(&step.id, fault.to_string(), Duration::ZERO)),
                },
                What::Run(program) => match self.prepared(doing, step, program) {
                    Ok((spec, paper)) => {
                        programs.push((step, program, spec));
                        papers.push(paper);
                    }
                    Err(result) => ended.push(result),
                },
                What::Choose { .. } | What::Parallel { .. } | What::Nothing => {
                    ended.push(StepResult::succeeded(&step.id, None, Duration::ZERO));
                }
            }
        }
        let control = self.control_for(doing.flow.running.resolve).apart();
        let ran =
            side_by_side(&programs, &control, all, |spec, control| run(spec, self.roster, control, &mut |_, _| {}));
        drop(papers);
        let mut left = Map::new();
        for ((step, program, _), ran) in programs.iter().zip(ran) {
            let result = came_to(step, program, ran, |ran| self.settings.mask.run(ran));
            left.extend(stored(program, &result));
            ended.push(result);
        }
        let place = |result: &StepResult| steps.iter().position(|step| step.id == result.step_id);
        ended.sort_by_key(place);
        Done { did: Did::Several { ended, acts, all }, stored: left, on_success: doing.step.on_success.clone() }
    }
}

/// Whether a value counts as yes: neither nothing, nor empty, nor zero.
fn holds(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(truth) => *truth,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    }
}

fn failed(why: String) -> Attempt {
    HookReport { message: Some(why), ..HookOutcome::Failure.into() }.into()
}
