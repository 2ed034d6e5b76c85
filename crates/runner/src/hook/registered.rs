//! Judges that run before the configured hooks of a turn: the validation rules of the configuration and of the task's series,
//! then the stop hooks that are registered for the task. The log keeps the results of the rules for the configured hooks.
//!
//! | answer | at the gate |
//! | --- | --- |
//! | complete, and every rule passes | the work passes |
//! | complete, but a rule fails; or continue | another iteration, with what is left to do |
//! | escalate, or a judge fails | a person is asked |
//! | any, but the program of a rule is missing | a person is asked |

use std::time::Instant;

use windlass_engine::validation::ValidationRule;
use windlass_engine::{
    AgentContext, Command, EngineLimits, EvaluationFindings, EvaluationOutcome, EvaluationPurpose, Event, HookDecision,
    HookEffect, HookOutcome, HookReport, Promise, RegisteredStopHook, RuleAction, Seq, StopHook, Task,
};
use windlass_process::overlay_environment;
use windlass_tools::validation::{ValidationCancellation, ValidatorEnv};
use windlass_tools::{
    EvaluationInputs, StopHookClosures, ValidationRuleSet, newest_notes, registered_hooks, run_rules, run_stop_hooks,
};

use super::HookSubject;
use crate::wording;
use crate::{EffectRunner, RunError};

impl EffectRunner<'_> {
    /// Runs all judges. They judge the work, so a change of a protected file stops them.
    pub(super) fn judge_registered(
        &mut self,
        owed: &HookEffect,
        subject: &HookSubject,
    ) -> Result<HookReport, RunError> {
        if let Some(report) = self.report_tampering(subject.session.as_ref())? {
            return Ok(report);
        }
        let directory = match self.gate_directory(owed, subject, true) {
            Ok(directory) => directory.unwrap_or_else(|| self.session_directory(subject.session.as_ref())),
            Err(report) => return Ok(*report),
        };
        let failure = |why: String| wording::report_with_message(HookOutcome::Failure, why);
        let files = match self.changed_files(subject)? {
            Ok(files) => files,
            Err(why) => {
                return Ok(failure(format!("cannot tell which files have changed: {why}")));
            }
        };
        let task = subject.task.as_ref();
        let known = task.map(|task| {
            registered_hooks(self.store, task).and_then(|hooks| Ok((hooks, newest_notes(self.store, task)?)))
        });
        let (hooks, notes) = match known.transpose() {
            Ok(known) => known.unwrap_or_default(),
            Err(error) => return Ok(failure(error.to_string())),
        };
        let series = task.map(|task| self.series_rules(task)).transpose()?.unwrap_or_default();
        let configured = self.settings.validation.rules_for_type(task.and_then(|task| task.kind.as_ref())).to_vec();
        let rules = ValidationRuleSet { configured: &configured, series: &series };
        let mut context = self.build_agent_context(subject, files)?;
        let notes: Vec<String> = notes.into_iter().map(|note| note.text).collect();
        let control = self.control.clone();
        // A rule or a hook is no turn: its calls of `windlass` are no claims of the agent.
        let environment = overlay_environment(&self.settings.environment, vec![("WINDLASS_RUN", "".into())]);
        let workshop = ValidatorEnv {
            directory,
            environment,
            mask: self.settings.mask.clone(),
            permission: self.settings.permission.clone(),
            launcher: self.settings.launcher.clone(),
            owner_lock: self.owner_lock,
        };
        let means = EvaluationInputs {
            notes: &notes,
            workshop: &workshop,
            control: &control,
            closures: &StopHookClosures::default(),
        };
        let began = Instant::now();
        let Ok(said) = evaluate_all(&rules, &hooks, &mut context, &means) else {
            return Ok(HookOutcome::Cancelled.into());
        };
        let mask = self.settings.mask.clone();
        if let Some(task) = task.filter(|task| said.hook.is_some() || task.evaluation.series.is_some()) {
            let judging = Box::new(evaluation_record(task, &said, &hooks, &context));
            self.commit_command(&Command::RecordRuling { task: task.id, judging })?;
        }
        let report = match report_broken_rules(&context, configured.len()) {
            Some(report) => report,
            None => combined_report(&said, &hooks, &context),
        };
        let report = mask.mask_report(report);
        let (event, results) = (Some(subject.event.original_event()), context.validation_results);
        Ok(HookReport { took: Some(began.elapsed()), event, results, ..report })
    }

    fn series_rules(&self, task: &Task) -> Result<Vec<ValidationRule>, RunError> {
        let Some(series) = &task.evaluation.series else { return Ok(Vec::new()) };
        match self.load_event(Seq(series.id.0))?.envelope.event {
            Event::SeriesStarted(started) => Ok(started.validation_rules),
            _ => Err(RunError::MissingEvent(Seq(series.id.0))),
        }
    }
}

/// Builds the record of an evaluation. A COMPLETE counts only for a series that accepts it.
fn evaluation_record(
    task: &Task,
    said: &EvaluationOutcome,
    hooks: &[RegisteredStopHook],
    context: &AgentContext,
) -> EvaluationFindings {
    let series = task.evaluation.series.as_ref();
    let counts = |promise: &Promise| {
        *promise != Promise::Complete || series.is_none_or(|series| series.completion_promises.contains(promise))
    };
    let fits = |file: &&String| file.len() <= EngineLimits::ARTIFACT_BYTES;
    EvaluationFindings {
        asked: EvaluationPurpose::Gate,
        iteration: context.iteration,
        hooks: hooks.iter().map(|hook| hook.id).collect(),
        results: context.validation_results.clone(),
        promises: context.completion_promises.iter().map(|seen| seen.kind).filter(counts).collect(),
        decision: said.hook.map(|hook| HookDecision { hook: Some(hook), ruling: said.ruling.clone() }),
        agent_output: context.agent_output.clone(),
        files_modified: context
            .files_modified
            .iter()
            .filter(fits)
            .take(EngineLimits::MODIFIED_FILES)
            .cloned()
            .collect(),
    }
}

/// Runs the hooks of others first, and then those that the agent has registered. The stricter ruling counts: an agent can add
/// to its checks, but not remove one.
fn evaluate_all(
    rules: &ValidationRuleSet<'_>,
    hooks: &[RegisteredStopHook],
    context: &mut AgentContext,
    means: &EvaluationInputs<'_>,
) -> Result<EvaluationOutcome, ValidationCancellation> {
    let (own, others): (Vec<_>, Vec<_>) = hooks.iter().cloned().partition(|hook| hook.inside);
    run_rules(rules, context, means)?;
    let first = run_stop_hooks(&others, context, means)?;
    if own.is_empty() || first.ruling.action == RuleAction::Escalate {
        return Ok(first);
    }
    // The results of the rules are in the context by now.
    let second = run_stop_hooks(&own, context, means)?;
    let continues = |said: &EvaluationOutcome| said.hook.is_some() && said.ruling.action == RuleAction::Continue;
    let first_counts = second.hook.is_none() || (continues(&first) && second.ruling.action != RuleAction::Escalate);
    Ok(if first_counts { first } else { second })
}

/// Reports rules whose program is missing, if there are any: they have judged nothing, and the agent cannot repair them. A rule
/// of the configuration holds for other tasks, too, so with it the gate itself is broken.
fn report_broken_rules(context: &AgentContext, configured: usize) -> Option<HookReport> {
    let results = &context.validation_results;
    let broken: Vec<_> = results.iter().filter(|result| result.broken).collect();
    let causes: Vec<String> = broken.iter().map(|result| format!("{}: {}", result.rule_name, result.message)).collect();
    let unstarted = results.iter().take(configured).any(|result| result.broken);
    let report = || HookReport { message: Some(causes.join("; ")), unstarted, ..HookOutcome::Escalate.into() };
    (!broken.is_empty()).then(report)
}

/// Combines the rulings into one report for the gate.
fn combined_report(said: &EvaluationOutcome, hooks: &[RegisteredStopHook], context: &AgentContext) -> HookReport {
    let who = said.hook.and_then(|id| hooks.iter().find(|hook| hook.id == id));
    let failed = context.validation_results.iter().filter(|result| !result.passed);
    let failed: Vec<String> = failed.map(|result| format!("{}: {}", result.rule_name, result.message)).collect();
    let ruling = &said.ruling;
    let reason = match who {
        Some(hook) => format!("{} ({}): {}", hook.id, hook.hook, ruling.reason),
        None => {
            let failing = context.validation_results.iter().filter(|result| !result.passed);
            let names: Vec<&str> = failing.map(|result| result.rule_name.as_str()).collect();
            let all = context.validation_results.len();
            format!("{} of {all} validation rules failed: {}", names.len(), names.join(", "))
        }
    };
    let to_do = || {
        let said = || std::iter::once(&reason).chain(&failed).cloned().collect::<Vec<_>>().join("\n");
        Some(ruling.next_prompt.clone().unwrap_or_else(said))
    };
    // A promise of the agent is no check of its work.
    let is_word = |hook: &RegisteredStopHook| matches!(hook.hook, StopHook::Promise | StopHook::Default);
    let is_checked = !context.validation_results.is_empty() || who.is_some_and(|hook| !is_word(hook));
    let (outcome, feedback) = match (who.map(|_| ruling.action), failed.is_empty()) {
        (Some(RuleAction::Escalate), _) => (HookOutcome::Escalate, None),
        (Some(RuleAction::Continue), _) => (HookOutcome::Continue, to_do()),
        (Some(RuleAction::Complete) | None, true) if is_checked => (HookOutcome::Success, None),
        (Some(RuleAction::Complete) | None, true) => (HookOutcome::Skip, None),
        (Some(RuleAction::Complete) | None, false) => (HookOutcome::Continue, Some(failed.join("\n"))),
    };
    let message = (who.is_some() || !failed.is_empty()).then_some(reason);
    HookReport { message, feedback, ..outcome.into() }
}
