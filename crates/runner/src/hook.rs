//! Running one hook that is owed, whatever kind of thing it is.

mod context;
mod desktop;
pub mod pipeline;
mod registered;
mod rules;
mod web;
mod workflow;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use windlass_engine::{
    Command, Conversation, EffectId, EffectKind, Event, EventType, Gate, HookClass, HookEffect, HookOutcome, HookPoint,
    HookReport, PendingEffect, Phase, Promise, REGISTERED, Record, Session, SessionName, Situation, Task, VALIDATION,
    View, hook_data,
};
use windlass_expr::Template;
use windlass_hooks::{
    Call, Hook, Kind, Papers, PipeOutput, RanCommand, Role, Said, Script, answer_of_command, fitting, gist, said,
};
use windlass_process::{Captured, Exit, Finished, NotStarted};
use windlass_store::Filter;

pub(crate) use self::context::ChangedFiles;
use crate::bridge::Called;
use crate::gate_checkout::commit_under_way;
use crate::{Dispatch, RunError};

/// No attempt is given less time.
const LEAST: Duration = Duration::from_millis(100);

/// The place of a hook among those of its event when a person has it run outside the log: none is owed there.
const TRIAL_INDEX: u32 = u32::MAX;

/// Everything that a hook is run for.
struct Scene {
    event: Record,
    session: Option<Session>,
    task: Option<Task>,
    output: Option<String>,
    promise: Option<Promise>,
    /// What an agent's own hook system says.
    call: Option<Arc<Called>>,
    /// The conversation in which it says so.
    conversation: Option<Conversation>,
}

impl Scene {
    /// The event as hooks get it: what it made owed is nobody's concern but ours.
    fn told(&self) -> Value {
        let mut event = json!(self.event);
        event["data"] = hook_data(&self.event.envelope.event);
        if let Some(metadata) = event["metadata"].as_object_mut() {
            metadata.remove("owes");
        }
        event
    }

    fn values(&self, owed: &HookEffect, project: &Path) -> Value {
        let situation = Situation {
            point: Some(&owed.point),
            hook: &owed.hook,
            envelope: &self.event.envelope,
            session: self.session.as_ref(),
            task: self.task.as_ref(),
            output: self.output.as_deref(),
            promise: self.promise,
            call: self.call.as_deref().map(|called| &called.call),
            project: &project.to_string_lossy(),
        };
        let mut values = situation.values();
        if let Some(sent) = self.conversation.as_ref().and_then(|known| known.sent_back.get(&owed.hook)) {
            values["hook_retries"] = json!(sent);
        }
        values
    }
}

/// What came of one attempt.
struct Attempt {
    report: HookReport,
    /// Whether another one could end otherwise, and how long to wait for it at least.
    again: Option<Duration>,
    /// What it said, where an agent's hook system waits for it.
    said: Option<Box<Said>>,
}

impl From<HookReport> for Attempt {
    fn from(report: HookReport) -> Self {
        let failed = matches!(report.outcome, HookOutcome::Failure | HookOutcome::TimedOut);
        Self { report, again: failed.then_some(Duration::ZERO), said: None }
    }
}

/// How a hook ended, with what it said where somebody waits to hear it.
pub(crate) type Heard = (HookReport, Option<Box<Said>>);

/// One hook, about to be run.
struct Running<'a> {
    effect: EffectId,
    owed: &'a HookEffect,
    hook: &'a Hook,
    scene: &'a Scene,
    /// The scene in words.
    values: Value,
    event: Value,
    /// Where it runs.
    directory: PathBuf,
    began: Instant,
}

impl Running<'_> {
    fn is_notice(&self) -> bool {
        self.owed.point == HookPoint::Notify
    }

    /// What counts of what it wrote. Whoever is told has nothing to decide.
    fn heard(&self, ran: Finished) -> Finished {
        if self.is_notice() { Finished { stdout: Captured::default(), ..ran } } else { ran }
    }

    /// How long this attempt may take. All attempts of a notice share its time.
    fn timeout(&self) -> Duration {
        let spent = if self.is_notice() { self.began.elapsed() } else { Duration::ZERO };
        self.hook.timeout.saturating_sub(spent).max(LEAST)
    }

    /// Whether it judges work that the agent calls done. Before a tool is used there is none, and git would cost time.
    fn judges_work(&self) -> bool {
        self.role().is_gate() && (self.owed.class != HookClass::Bridge || self.owed.point.is_stop())
    }

    fn role(&self) -> Role {
        match self.owed.class {
            _ if Gate::of(self.owed).is_some() => Role::Pipeline,
            HookClass::Gate => Role::Stop,
            HookClass::Bridge if self.owed.point.hears_refusal() => Role::Stop,
            _ => Role::Observer,
        }
    }
}

/// What people are told of a run, with a word of why where a hook says no or fails.
fn told_briefly(report: &HookReport, ran: &Result<Finished, NotStarted>) -> Option<String> {
    let no = matches!(report.outcome, HookOutcome::Block | HookOutcome::Failure | HookOutcome::TimedOut);
    let Some(gist) = ran.as_ref().ok().filter(|_| no).and_then(gist) else { return report.message.clone() };
    Some(match &report.message {
        None => gist,
        Some(message) if message.contains(&gist) => message.clone(),
        Some(message) => format!("{message}: {gist}"),
    })
}

/// What an agent has to know that tries the same in its worktree.
const IN_CHECKOUT: &str = "\n\n(This was run in a fresh checkout of your commit, without files that git ignores, except those that `caches` names and your \
     worktree has.)";

/// What a prompt for the agent comes to. It judges nothing.
fn prompt(template: &Template, values: &Value) -> HookReport {
    match template.render(values) {
        Ok(text) => HookReport { feedback: Some(text), ..HookOutcome::Success.into() },
        Err(fault) => HookReport { message: Some(format!("`prompt`: {fault}")), ..HookOutcome::Failure.into() },
    }
}

impl Dispatch<'_> {
    /// Runs a hook that has begun. One that fails is tried again as often as it says.
    pub(crate) fn run_hook(&mut self, effect: &PendingEffect) -> Result<HookReport, RunError> {
        self.hear_hook(effect).map(|(report, _)| report)
    }

    /// The same, with what it said.
    pub(crate) fn hear_hook(&mut self, effect: &PendingEffect) -> Result<Heard, RunError> {
        let EffectKind::Hook(owed) = &effect.kind else { return Err(RunError::NoHook(effect.id)) };
        let scene = self.scene(effect)?;
        if owed.hook == REGISTERED || owed.hook == VALIDATION {
            return Ok((self.ask_registered(owed, &scene)?, None));
        }
        let Some(mut hook) = (self.settings.hooks)(&owed.hook) else {
            let (message, event) = ("the configuration that it comes from has no such hook", scene.event.original());
            let report =
                HookReport { message: Some(message.to_owned()), event: Some(event), ..HookOutcome::Failure.into() };
            return Ok((report, None));
        };
        if owed.class == HookClass::Bridge {
            hook.pipes.get_or_insert(PipeOutput::when(owed.point.output_is_context()));
        }
        let (values, event) = (scene.values(owed, &self.settings.project), scene.told());
        let began = Instant::now();
        let directory = self.directory_of(scene.session.as_ref());
        let mut running =
            Running { effect: effect.id, owed, hook: &hook, scene: &scene, values, event, directory, began };
        if running.role().is_gate()
            && let Some(report) = self.tampered(scene.session.as_ref())?
        {
            return Ok((report, None));
        }
        let is_told = matches!(hook.kind, Kind::Command(_) | Kind::Http(_));
        if is_told && running.judges_work() {
            running.values = self.told_at_gate(&running)?;
        }
        // What was tried before a crash was tried.
        let mut failures = effect.attempts.saturating_sub(1);
        loop {
            let checkout = match self.place_to_judge(owed, &scene, hook.kind.runs_programs()) {
                Ok(checkout) => checkout,
                Err(report) => return Ok((*report, None)),
            };
            let is_in_checkout = checkout.is_some();
            running.directory = checkout.unwrap_or(running.directory);
            let Attempt { report, again, said } = self.attempt(&running)?;
            let mut report = fitting(self.settings.mask.report(report), &hook);
            if let Some(feedback) = report.feedback.as_mut().filter(|_| is_in_checkout) {
                feedback.push_str(IN_CHECKOUT);
            }
            let report = HookReport { event: Some(scene.event.original()), ..report };
            failures += 1;
            let Some(wait) = self.wait_before(&running, failures, again)? else { return Ok((report, said)) };
            let after = report.message.unwrap_or_default();
            let is_recorded = effect.id.index != TRIAL_INDEX;
            if is_recorded && !wait.is_zero() {
                let (owner, error) = (self.owner.clone(), after.clone());
                self.give(&Command::RestEffect { effect: effect.id, owner, error })?;
            }
            if !self.wait(wait) {
                return Ok((HookOutcome::Cancelled.into(), None));
            }
            if is_recorded {
                self.give(&Command::RetryEffect { effect: effect.id, owner: self.owner.clone(), after })?;
            }
        }
    }

    /// Returns where a hook of a gate judges the commit that is on its way, or why nothing can be judged there. A hook that runs no
    /// program needs no directory.
    fn place_to_judge(
        &mut self,
        owed: &HookEffect,
        scene: &Scene,
        needs_directory: bool,
    ) -> Result<Option<PathBuf>, Box<HookReport>> {
        let session = scene.session.as_ref().filter(|_| Gate::of(owed).is_some());
        let place = match session.filter(|session| commit_under_way(session).is_some()) {
            Some(session) => match self.moved_under_way(session) {
                Ok(Some(moved)) => return Err(Box::new(moved)),
                Ok(None) if needs_directory => self.judged_directory(Some(session)).map(Some),
                Ok(None) => Ok(None),
                Err(error) => Err(error),
            },
            // What a person merges is judged without a session.
            None if scene.session.is_none() && needs_directory => self.restore_gate(),
            None => Ok(None),
        };
        place.map_err(|error| Box::new(self.troubled(&error)))
    }

    /// How long to wait before the next attempt, if there is to be one. At the stop gate a retry is another turn.
    fn wait_before(
        &self,
        running: &Running<'_>,
        failures: u32,
        again: Option<Duration>,
    ) -> Result<Option<Duration>, RunError> {
        let retry = running.hook.retry.as_ref().filter(|_| running.role() != Role::Stop);
        let (Some(retry), Some(least)) = (retry, again) else { return Ok(None) };
        let random = (self.outside.random)().map_err(RunError::Random)?;
        let random = u64::try_from(random & u128::from(u64::MAX)).expect("it was cut to size");
        let wait = retry.wait(failures, random).map(|wait| wait.max(least));
        let has_time = |wait: &Duration| !running.is_notice() || running.began.elapsed() + *wait < running.hook.timeout;
        Ok(wait.filter(has_time))
    }

    fn attempt(&mut self, running: &Running<'_>) -> Result<Attempt, RunError> {
        match &running.hook.kind {
            Kind::Command(script) => self.command(running, script),
            Kind::Http(address) => self.send(running, address),
            Kind::Rules(rules) => self.judge(running, rules).map(Attempt::from),
            Kind::Prompt(template) => Ok(prompt(template, &running.values).into()),
            Kind::Desktop => self.show_on_desktop(running).map(Attempt::from),
            Kind::Step(step) => self.step(running, step),
            Kind::Workflow(asked) => self.workflow(running, asked),
        }
    }

    fn command(&mut self, running: &Running<'_>, script: &Script) -> Result<Attempt, RunError> {
        let place = self.settings.records.join(running.effect.to_string());
        let call = self.call(running);
        let papers = Papers::at(&place, &call);
        let spec = call.spec(script, running.timeout(), &papers);
        if let Err(error) = papers.write(&spec.stdin) {
            // A full disk, or a hook that took our directory away: no reason to leave the other hooks undone.
            let message = format!("cannot write its payload beside {}: {error}", place.display());
            return Ok(HookReport { message: Some(message), ..HookOutcome::Failure.into() }.into());
        }
        let ran = self.start(&spec)?;
        let record = ran.as_ref().ok().and_then(|ran| self.record(ran));
        let ran = ran.map(|ran| self.read(ran)).map(|ran| running.heard(ran));
        let command = RanCommand { text: script.text(), directory: &running.directory, environment: &spec.environment };
        let report = answer_of_command(running.hook, running.role(), &ran, &running.values, command);
        let waits = running.scene.call.is_some();
        let said = ran.as_ref().ok().filter(|ran| waits && ran.exit == Exit::Code(0)).and_then(|ran| {
            // One that is no answer was taken for a failure.
            said::parse(&ran.stdout.text()).ok().flatten().map(Box::new)
        });
        let report = HookReport { record, message: told_briefly(&report, &ran), ..report };
        Ok(Attempt { said, ..report.into() })
    }

    fn call<'a>(&'a self, running: &'a Running<'_>) -> Call<'a> {
        Call {
            values: &running.values,
            event: &running.event,
            said: running.scene.call.as_deref().map(|called| &called.payload),
            effect: Some(running.effect),
            project: &self.settings.project,
            directory: &running.directory,
            environment: &self.settings.environment,
        }
    }

    fn scene(&self, effect: &PendingEffect) -> Result<Scene, RunError> {
        // All of it at one moment: that is cheaper than one moment for each piece.
        let snapshot = self.store.snapshot()?;
        let event = self.event(effect.id.seq)?;
        let session = effect.session.as_ref().map(|name| snapshot.session(name)).transpose()?.flatten();
        let task = effect.task.or(session.as_ref().and_then(|session| session.task));
        let task = task.map(|id| snapshot.task(id)).transpose()?.flatten();
        let is_trial = effect.id.index == TRIAL_INDEX;
        let is_rejudged = is_trial || session.as_ref().is_some_and(|session| session.rejudged_at().is_some());
        let mut output = session.as_ref().map(|session| self.last_output(session)).transpose()?.flatten();
        if let (None, Some(task), true) = (&output, &task, is_rejudged) {
            output = self.last_turn_on(task)?.map(|(_, output)| output);
        }
        let promise = match session.as_ref().map(|session| &session.phase) {
            Some(Phase::Judging(_, claim)) => *claim,
            _ => is_rejudged.then_some(Promise::Complete),
        };
        let bridged = matches!(&effect.kind, EffectKind::Hook(hook) if hook.class == HookClass::Bridge);
        let call = self.called.clone().filter(|_| bridged);
        let conversation = match &call {
            Some(called) => snapshot.conversation(&called.call.caller)?,
            None => None,
        };
        Ok(Scene { event, session, task, output, promise, call, conversation })
    }

    /// Returns the session of the last finished turn on a task, and what the agent said at its end.
    fn last_turn_on(&self, task: &Task) -> Result<Option<(Option<SessionName>, String)>, RunError> {
        let types = vec![EventType::TurnFinished, EventType::DeliveryFinished];
        let filter = Filter { types, task: Some(task.id), ..Filter::default() };
        let turn = self.store.read_back(&filter, None, 1)?.pop().map(|record| record.envelope);
        Ok(turn.and_then(|turn| match turn.event {
            Event::TurnFinished(finished) => Some((turn.session, finished.output)),
            Event::DeliveryFinished(finished) => Some((turn.session, finished.output)),
            _ => None,
        }))
    }

    /// What the agent said at the end of its last finished turn.
    pub(crate) fn last_output(&self, session: &Session) -> Result<Option<String>, RunError> {
        let Some(at) = session.last_turn else { return Ok(None) };
        match self.event(at)?.envelope.event {
            Event::TurnFinished(finished) => Ok(Some(finished.output)),
            Event::DeliveryFinished(finished) => Ok(Some(finished.output)),
            _ => Err(RunError::MissingEvent(at)),
        }
    }
}
