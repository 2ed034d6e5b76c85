//! Run of one pending hook of any kind.

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
use windlass_bridge::AgentHookRequest;
use windlass_engine::{
    BridgeConversation, Command, DeliveryGate, EffectId, EffectKind, Event, EventContext, EventRecord, EventType,
    HookClass, HookEffect, HookOutcome, HookPoint, HookReport, PendingEffect, Promise, REGISTERED_HOOKS_NAME, Session,
    SessionName, SessionPhase, StateView, Task, VALIDATION_RULES_NAME, hook_event_data,
};
use windlass_expr::TextTemplate;
use windlass_hooks::{
    HookInput, HookInputFiles, HookResponse, HookRole, HookScript, PipeOutput, RunnableHook, RunnableKind,
    ShellCommand, bound_report, build_command_report, notice, response, summarize_output,
};
use windlass_process::{CapturedOutput, ProgramExit, ProgramOutcome, ProgramStartError};
use windlass_store::EventFilter;

use crate::gate_checkout::commit_in_delivery;
use crate::{EffectRunner, RunError};

/// Minimum timeout of an attempt.
const MIN_ATTEMPT_TIMEOUT: Duration = Duration::from_millis(100);

/// Index of a hook that a person runs outside the log. No pending effect has it.
const TRIAL_INDEX: u32 = u32::MAX;

/// Event that a hook runs for, with the rows around it.
struct HookSubject {
    event: EventRecord,
    session: Option<Session>,
    task: Option<Task>,
    output: Option<String>,
    promise: Option<Promise>,
    /// Request of an agent's own hook system.
    call: Option<Arc<AgentHookRequest>>,
    /// Conversation of that request.
    conversation: Option<BridgeConversation>,
}

impl HookSubject {
    /// Returns the event as hooks get it, without the list of its effects.
    fn event_payload(&self) -> Value {
        let mut event = json!(self.event);
        event["data"] = hook_event_data(&self.event.envelope.event);
        if let Some(metadata) = event["metadata"].as_object_mut() {
            metadata.remove("owes");
        }
        event
    }

    fn template_values(&self, owed: &HookEffect, project: &Path) -> Value {
        let situation = EventContext {
            point: Some(&owed.point),
            hook: &owed.hook,
            envelope: &self.event.envelope,
            session: self.session.as_ref(),
            task: self.task.as_ref(),
            output: self.output.as_deref(),
            promise: self.promise,
            call: self.call.as_deref().map(|request| &request.call),
            project: &project.to_string_lossy(),
        };
        let mut values = situation.to_values();
        if let Some(sent) = self.conversation.as_ref().and_then(|known| known.sent_back.get(&owed.hook)) {
            values["hook_retries"] = json!(sent);
        }
        values
    }
}

/// Result of one attempt to run a hook.
pub(crate) struct HookAttempt {
    pub report: HookReport,
    /// Minimum wait before another attempt, if another one could succeed.
    retry_after: Option<Duration>,
    /// Response of the hook, if an agent's hook system waits for it.
    pub response: Option<Box<HookResponse>>,
}

impl From<HookReport> for HookAttempt {
    fn from(report: HookReport) -> Self {
        let failed = matches!(report.outcome, HookOutcome::Failure | HookOutcome::TimedOut);
        Self { report, retry_after: failed.then_some(Duration::ZERO), response: None }
    }
}

/// A run of a hook, in progress.
struct HookRun<'a> {
    effect: EffectId,
    owed: &'a HookEffect,
    hook: &'a RunnableHook,
    subject: &'a HookSubject,
    /// Values for conditions and templates.
    values: Value,
    event: Value,
    /// Working directory.
    directory: PathBuf,
    began: Instant,
}

impl HookRun<'_> {
    fn is_notice(&self) -> bool {
        self.owed.point == HookPoint::Notify
    }

    /// Returns the output that counts. A notice decides nothing, so its standard output does not count.
    fn decisive_output(&self, ran: ProgramOutcome) -> ProgramOutcome {
        if self.is_notice() { ProgramOutcome { stdout: CapturedOutput::default(), ..ran } } else { ran }
    }

    /// Returns the timeout of this attempt. All attempts of a notice share its time.
    fn attempt_timeout(&self) -> Duration {
        let spent = if self.is_notice() { self.began.elapsed() } else { Duration::ZERO };
        self.hook.timeout.saturating_sub(spent).max(MIN_ATTEMPT_TIMEOUT)
    }

    /// Returns whether the hook judges work that the agent calls done. Before a tool call there is none, and git would cost time.
    fn judges_finished_work(&self) -> bool {
        self.hook_role().is_gate() && (self.owed.class != HookClass::Bridge || self.owed.point.is_stop())
    }

    fn hook_role(&self) -> HookRole {
        match self.owed.class {
            _ if DeliveryGate::of_hook_effect(self.owed).is_some() => HookRole::Pipeline,
            HookClass::Gate => HookRole::Stop,
            HookClass::Bridge if self.owed.point.hears_refusal() => HookRole::Stop,
            _ => HookRole::Observer,
        }
    }
}

/// Summarizes a run for people, with the reason if a hook says no or fails.
fn summary_line(report: &HookReport, ran: &Result<ProgramOutcome, ProgramStartError>) -> Option<String> {
    let no = matches!(report.outcome, HookOutcome::Block | HookOutcome::Failure | HookOutcome::TimedOut);
    let Some(gist) = ran.as_ref().ok().filter(|_| no).and_then(summarize_output) else { return report.message.clone() };
    Some(match &report.message {
        None => gist,
        Some(message) if message.contains(&gist) => message.clone(),
        Some(message) => format!("{message}: {gist}"),
    })
}

/// Hint for an agent that tries the same in its worktree.
const CHECKOUT_HINT: &str = "\n\n(This was run in a fresh checkout of your commit, without files that git ignores, except those that `caches` names and your \
     worktree has.)";

/// Renders a prompt for the agent. It judges nothing.
fn render_prompt(template: &TextTemplate, values: &Value) -> HookReport {
    match template.render(values) {
        Ok(text) => HookReport { feedback: Some(text), ..HookOutcome::Success.into() },
        Err(fault) => HookReport { message: Some(format!("`prompt`: {fault}")), ..HookOutcome::Failure.into() },
    }
}

impl EffectRunner<'_> {
    /// Runs a hook that has begun, and retries it as often as it is configured. Returns the last attempt.
    pub(crate) fn run_hook(&mut self, effect: &PendingEffect) -> Result<HookAttempt, RunError> {
        let EffectKind::Hook(owed) = &effect.kind else { return Err(RunError::NoHook(effect.id)) };
        let subject = self.load_subject(effect)?;
        if owed.hook == REGISTERED_HOOKS_NAME || owed.hook == VALIDATION_RULES_NAME {
            return Ok(self.judge_registered(owed, &subject)?.into());
        }
        let Some(mut hook) = (self.settings.hooks)(&owed.hook) else {
            let (message, event) =
                ("the configuration that it comes from has no such hook", subject.event.original_event());
            let report =
                HookReport { message: Some(message.to_owned()), event: Some(event), ..HookOutcome::Failure.into() };
            return Ok(report.into());
        };
        if owed.class == HookClass::Bridge {
            hook.pipes.get_or_insert(PipeOutput::from_flag(owed.point.output_is_context()));
        }
        let (values, event) = (subject.template_values(owed, &self.settings.project), subject.event_payload());
        let began = Instant::now();
        let directory = self.session_directory(subject.session.as_ref());
        let mut run =
            HookRun { effect: effect.id, owed, hook: &hook, subject: &subject, values, event, directory, began };
        if run.hook_role().is_gate()
            && let Some(report) = self.report_tampering(subject.session.as_ref())?
        {
            return Ok(report.into());
        }
        let is_told = matches!(hook.kind, RunnableKind::Command(_) | RunnableKind::Http(_));
        if is_told && run.judges_finished_work() {
            run.values = self.gate_context(&run)?;
        }
        if run.is_notice()
            && let Some(subject) = notice::waiting_subject(&run.values)
        {
            run.values["answer_url"] = json!((self.settings.answer_links)(subject));
        }
        // Attempts before a crash count.
        let mut failures = effect.attempts.saturating_sub(1);
        loop {
            let checkout = match self.gate_directory(owed, &subject, hook.kind.runs_programs()) {
                Ok(checkout) => checkout,
                Err(report) => return Ok((*report).into()),
            };
            let is_in_checkout = checkout.is_some();
            run.directory = checkout.unwrap_or(run.directory);
            let HookAttempt { report, retry_after, response } = self.attempt_hook(&run)?;
            let mut report = bound_report(self.settings.mask.mask_report(report), &hook);
            if let Some(feedback) = report.feedback.as_mut().filter(|_| is_in_checkout) {
                feedback.push_str(CHECKOUT_HINT);
            }
            let report = HookReport { event: Some(subject.event.original_event()), ..report };
            failures += 1;
            let Some(wait) = self.retry_delay(&run, failures, retry_after)? else {
                return Ok(HookAttempt { report, retry_after: None, response });
            };
            let after = report.message.unwrap_or_default();
            let is_recorded = effect.id.index != TRIAL_INDEX;
            if is_recorded && !wait.is_zero() {
                let (owner, error) = (self.owner.clone(), after.clone());
                self.commit_command(&Command::RestEffect { effect: effect.id, owner, error })?;
            }
            if !self.wait_cancellable(wait) {
                return Ok(HookReport::from(HookOutcome::Cancelled).into());
            }
            if is_recorded {
                self.commit_command(&Command::RetryEffect { effect: effect.id, owner: self.owner.clone(), after })?;
            }
        }
    }

    /// Returns where a hook of a gate judges the commit in delivery, or why nothing can be judged there. A hook without a program
    /// needs no directory.
    fn gate_directory(
        &mut self,
        owed: &HookEffect,
        subject: &HookSubject,
        needs_directory: bool,
    ) -> Result<Option<PathBuf>, Box<HookReport>> {
        let session = subject.session.as_ref().filter(|_| DeliveryGate::of_hook_effect(owed).is_some());
        let place = match session.filter(|session| commit_in_delivery(session).is_some()) {
            Some(session) => match self.report_moved_branch(session) {
                Ok(Some(moved)) => return Err(Box::new(moved)),
                Ok(None) if needs_directory => self.judged_directory(Some(session)).map(Some),
                Ok(None) => Ok(None),
                Err(error) => Err(error),
            },
            // A merge by a person is judged without a session.
            None if subject.session.is_none() && needs_directory => self.restore_gate_checkout(),
            None => Ok(None),
        };
        place.map_err(|error| Box::new(self.git_failure_report(&error)))
    }

    /// Returns the wait before the next attempt, if there is one. At the stop gate a retry is another turn.
    fn retry_delay(
        &self,
        run: &HookRun<'_>,
        failures: u32,
        retry_after: Option<Duration>,
    ) -> Result<Option<Duration>, RunError> {
        let retry = run.hook.retry.as_ref().filter(|_| run.hook_role() != HookRole::Stop);
        let (Some(retry), Some(least)) = (retry, retry_after) else { return Ok(None) };
        let random = (self.env.random)().map_err(RunError::Random)?;
        let random = u64::try_from(random & u128::from(u64::MAX)).expect("it was cut to size");
        let wait = retry.wait_after_attempts(failures, random).map(|wait| wait.max(least));
        let has_time = |wait: &Duration| !run.is_notice() || run.began.elapsed() + *wait < run.hook.timeout;
        Ok(wait.filter(has_time))
    }

    fn attempt_hook(&mut self, run: &HookRun<'_>) -> Result<HookAttempt, RunError> {
        match &run.hook.kind {
            RunnableKind::Command(script) => self.run_command_hook(run, script),
            RunnableKind::Http(address) => self.send_webhook(run, address),
            RunnableKind::Rules(rules) => self.judge_rules(run, rules).map(HookAttempt::from),
            RunnableKind::Prompt(template) => Ok(render_prompt(template, &run.values).into()),
            RunnableKind::Desktop => self.show_on_desktop(run).map(HookAttempt::from),
            RunnableKind::Step(step) => self.run_delivery_step(run, step),
            RunnableKind::Workflow(asked) => self.run_workflow(run, asked),
        }
    }

    fn run_command_hook(&mut self, run: &HookRun<'_>, script: &HookScript) -> Result<HookAttempt, RunError> {
        let place = self.settings.records.join(run.effect.to_string());
        let input = self.hook_input(run);
        let files = HookInputFiles::for_run(&place, &input);
        let spec = input.build_spec(script, run.attempt_timeout(), &files);
        if let Err(error) = files.write(&spec.stdin) {
            // A full disk, or a hook that removed our directory, is no reason to skip the other hooks.
            let message = format!("cannot write its payload beside {}: {error}", place.display());
            return Ok(HookReport { message: Some(message), ..HookOutcome::Failure.into() }.into());
        }
        let ran = self.run_program(&spec)?;
        let record = ran.as_ref().ok().and_then(|ran| self.spilled_record(ran));
        let ran = ran.map(|ran| self.mask_output(ran)).map(|ran| run.decisive_output(ran));
        let command = ShellCommand { text: script.text(), directory: &run.directory, environment: &spec.environment };
        let report = build_command_report(run.hook, run.hook_role(), &ran, &run.values, command);
        let waits = run.subject.call.is_some();
        let response = ran.as_ref().ok().filter(|ran| waits && ran.exit == ProgramExit::Code(0)).and_then(|ran| {
            // An invalid response has already counted as a failure.
            response::parse_response(&ran.stdout.to_text_lossy()).ok().flatten().map(Box::new)
        });
        let record = record.or_else(|| self.record_passed_check(run, &report, &files, ran.as_ref().ok()?));
        let report = HookReport { record, message: summary_line(&report, &ran), ..report };
        Ok(HookAttempt { response, ..report.into() })
    }

    /// Records the output of a passed check of a gate, and returns the record's name. The report of a failed check has its output.
    /// Without a record, the outcome is the same.
    fn record_passed_check(
        &self,
        run: &HookRun<'_>,
        report: &HookReport,
        files: &HookInputFiles,
        ran: &ProgramOutcome,
    ) -> Option<String> {
        let is_check = run.owed.class == HookClass::Gate && run.effect.index != TRIAL_INDEX;
        if !is_check || report.outcome != HookOutcome::Success {
            return None;
        }
        let streams = [&ran.stdout, &ran.stderr].map(|stream| stream.to_text_lossy().trim_end().to_owned());
        let output = streams.join("\n").trim_start_matches('\n').to_owned();
        if output.trim().is_empty() {
            return None;
        }
        // A value of several lines may begin in one stream and end in the other.
        let output = self.settings.mask.mask_text(&output);
        self.record_name(&files.write_output(output.as_bytes()).ok()?)
    }

    fn hook_input<'a>(&'a self, run: &'a HookRun<'_>) -> HookInput<'a> {
        HookInput {
            values: &run.values,
            event: &run.event,
            agent_payload: run.subject.call.as_deref().map(|request| &request.payload),
            effect: Some(run.effect),
            project: &self.settings.project,
            directory: &run.directory,
            environment: &self.settings.environment,
        }
    }

    fn load_subject(&self, effect: &PendingEffect) -> Result<HookSubject, RunError> {
        // One snapshot for all rows is cheaper than one for each.
        let snapshot = self.store.begin_snapshot()?;
        let event = self.load_event(effect.id.seq)?;
        let session = effect.session.as_ref().map(|name| snapshot.find_session(name)).transpose()?.flatten();
        let task = effect.task.or(session.as_ref().and_then(|session| session.task));
        let task = task.map(|id| snapshot.find_task(id)).transpose()?.flatten();
        let is_trial = effect.id.index == TRIAL_INDEX;
        let is_rejudged = is_trial || session.as_ref().is_some_and(|session| session.rejudging_event().is_some());
        let mut output = session.as_ref().map(|session| self.last_turn_output(session)).transpose()?.flatten();
        if let (None, Some(task), true) = (&output, &task, is_rejudged) {
            output = self.last_turn_on_task(task)?.map(|(_, output)| output);
        }
        let promise = match session.as_ref().map(|session| &session.phase) {
            Some(SessionPhase::Judging(_, claim)) => *claim,
            _ => is_rejudged.then_some(Promise::Complete),
        };
        let bridged = matches!(&effect.kind, EffectKind::Hook(hook) if hook.class == HookClass::Bridge);
        let call = self.request.clone().filter(|_| bridged);
        let conversation = match &call {
            Some(request) => snapshot.find_conversation(&request.call.caller)?,
            None => None,
        };
        Ok(HookSubject { event, session, task, output, promise, call, conversation })
    }

    /// Returns the session of the last finished turn on a task, and the agent's output at its end.
    fn last_turn_on_task(&self, task: &Task) -> Result<Option<(Option<SessionName>, String)>, RunError> {
        let types = vec![EventType::TurnFinished, EventType::DeliveryFinished];
        let filter = EventFilter { types, task: Some(task.id), ..EventFilter::default() };
        let turn = self.store.read_events_back(&filter, None, 1)?.pop().map(|record| record.envelope);
        Ok(turn.and_then(|turn| match turn.event {
            Event::TurnFinished(finished) => Some((turn.session, finished.output)),
            Event::DeliveryFinished(finished) => Some((turn.session, finished.output)),
            _ => None,
        }))
    }

    /// Returns the agent's output at the end of its last finished turn.
    pub(crate) fn last_turn_output(&self, session: &Session) -> Result<Option<String>, RunError> {
        let Some(at) = session.last_turn else { return Ok(None) };
        match self.load_event(at)?.envelope.event {
            Event::TurnFinished(finished) => Ok(Some(finished.output)),
            Event::DeliveryFinished(finished) => Ok(Some(finished.output)),
            _ => Err(RunError::MissingEvent(at)),
        }
    }
}
