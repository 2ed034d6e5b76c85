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
    AgentContext, Asked, Command, Evaluated, Event, HookDecision, HookEffect, HookOutcome, HookReport, Judging, Limits,
    Promise, Registered, RuleAction, Seq, StopHook, Task,
};
use windlass_process::overlay;
use windlass_tools::validation::{Cancelled, Workshop};
use windlass_tools::{Closures, Means, RuleSet, ask_hooks, check_rules, notes, registered};

use super::HookSubject;
use crate::wording;
use crate::{EffectRunner, RunError};

impl EffectRunner<'_> {
    /// Runs all judges. They judge the work, so a change of a protected file stops them.
    pub(super) fn ask_registered(&mut self, owed: &HookEffect, subject: &HookSubject) -> Result<HookReport, RunError> {
        if let Some(report) = self.tampered(subject.session.as_ref())? {
            return Ok(report);
        }
        let directory = match self.place_to_judge(owed, subject, true) {
            Ok(directory) => directory.unwrap_or_else(|| self.directory_of(subject.session.as_ref())),
            Err(report) => return Ok(*report),
        };
        let failure = |why: String| wording::report(HookOutcome::Failure, why);
        let files = match self.changed_files(subject)? {
            Ok(files) => files,
            Err(why) => {
                return Ok(failure(format!("cannot tell which files have changed: {why}")));
            }
        };
        let task = subject.task.as_ref();
        let known =
            task.map(|task| registered(self.store, task).and_then(|hooks| Ok((hooks, notes(self.store, task)?))));
        let (hooks, notes) = match known.transpose() {
            Ok(known) => known.unwrap_or_default(),
            Err(error) => return Ok(failure(error.to_string())),
        };
        let series = task.map(|task| self.rules_of_series(task)).transpose()?.unwrap_or_default();
        let configured = self.settings.validation.for_type(task.and_then(|task| task.kind.as_ref())).to_vec();
        let rules = RuleSet { configured: &configured, series: &series };
        let mut context = self.context_of(subject, files)?;
        let notes: Vec<String> = notes.into_iter().map(|note| note.text).collect();
        let control = self.control.clone();
        // A rule or a hook is no turn: its calls of `windlass` are no claims of the agent.
        let environment = overlay(&self.settings.environment, vec![("WINDLASS_RUN", "".into())]);
        let workshop = Workshop {
            directory,
            environment,
            mask: self.settings.mask.clone(),
            permission: self.settings.permission.clone(),
            launcher: self.settings.launcher.clone(),
            roster: self.roster,
        };
        let means = Means { notes: &notes, workshop: &workshop, control: &control, closures: &Closures::default() };
        let began = Instant::now();
        let Ok(said) = ask_both(&rules, &hooks, &mut context, &means) else {
            return Ok(HookOutcome::Cancelled.into());
        };
        let mask = self.settings.mask.clone();
        if let Some(task) = task.filter(|task| said.hook.is_some() || task.drive.series.is_some()) {
            let judging = Box::new(judging(task, &said, &hooks, &context));
            self.commit(&Command::RecordRuling { task: task.id, judging })?;
        }
        let report = match broken_rules(&context, configured.len()) {
            Some(report) => report,
            None => report(&said, &hooks, &context),
        };
        let report = mask.report(report);
        let (event, results) = (Some(subject.event.original()), context.validation_results);
        Ok(HookReport { took: Some(began.elapsed()), event, results, ..report })
    }

    fn rules_of_series(&self, task: &Task) -> Result<Vec<ValidationRule>, RunError> {
        let Some(series) = &task.drive.series else { return Ok(Vec::new()) };
        match self.event(Seq(series.id.0))?.envelope.event {
            Event::SeriesStarted(started) => Ok(started.validation_rules),
            _ => Err(RunError::MissingEvent(Seq(series.id.0))),
        }
    }
}

/// Builds the record of an evaluation. A COMPLETE counts only for a series that accepts it.
fn judging(task: &Task, said: &Evaluated, hooks: &[Registered], context: &AgentContext) -> Judging {
    let series = task.drive.series.as_ref();
    let counts = |promise: &Promise| {
        *promise != Promise::Complete || series.is_none_or(|series| series.completion_promises.contains(promise))
    };
    let fits = |file: &&String| file.len() <= Limits::ARTIFACT;
    Judging {
        asked: Asked::Gate,
        iteration: context.iteration,
        hooks: hooks.iter().map(|hook| hook.id).collect(),
        results: context.validation_results.clone(),
        promises: context.completion_promises.iter().map(|seen| seen.kind).filter(counts).collect(),
        decision: said.hook.map(|hook| HookDecision { hook: Some(hook), ruling: said.ruling.clone() }),
        agent_output: context.agent_output.clone(),
        files_modified: context.files_modified.iter().filter(fits).take(Limits::FILES).cloned().collect(),
    }
}

/// Runs the hooks of others first, and then those that the agent has registered. The stricter ruling counts: an agent can add
/// to its checks, but not remove one.
fn ask_both(
    rules: &RuleSet<'_>,
    hooks: &[Registered],
    context: &mut AgentContext,
    means: &Means<'_>,
) -> Result<Evaluated, Cancelled> {
    let (own, others): (Vec<_>, Vec<_>) = hooks.iter().cloned().partition(|hook| hook.inside);
    check_rules(rules, context, means)?;
    let first = ask_hooks(&others, context, means)?;
    if own.is_empty() || first.ruling.action == RuleAction::Escalate {
        return Ok(first);
    }
    // The results of the rules are in the context by now.
    let second = ask_hooks(&own, context, means)?;
    let continues = |said: &Evaluated| said.hook.is_some() && said.ruling.action == RuleAction::Continue;
    let first_counts = second.hook.is_none() || (continues(&first) && second.ruling.action != RuleAction::Escalate);
    Ok(if first_counts { first } else { second })
}

/// Reports rules whose program is missing, if there are any: they have judged nothing, and the agent cannot repair them. A rule
/// of the configuration holds for other tasks, too, so with it the gate itself is broken.
fn broken_rules(context: &AgentContext, configured: usize) -> Option<HookReport> {
    let results = &context.validation_results;
    let broken: Vec<_> = results.iter().filter(|result| result.broken).collect();
    let causes: Vec<String> = broken.iter().map(|result| format!("{}: {}", result.rule_name, result.message)).collect();
    let unstarted = results.iter().take(configured).any(|result| result.broken);
    let report = || HookReport { message: Some(causes.join("; ")), unstarted, ..HookOutcome::Escalate.into() };
    (!broken.is_empty()).then(report)
}

/// Combines the rulings into one report for the gate.
fn report(said: &Evaluated, hooks: &[Registered], context: &AgentContext) -> HookReport {
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
    let is_word = |hook: &Registered| matches!(hook.hook, StopHook::Promise | StopHook::Default);
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
