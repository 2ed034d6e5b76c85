//! The agent's context: input of commands, requests, rules and registered stop hooks at a gate. Only this module builds it.
//!
//! | name | from |
//! | --- | --- |
//! | `agentOutput`, `completionPromises` | the last turn of the session |
//! | `filesModified` | git, asked once for all hooks of an event |
//! | `validationResults` | the results of the rules for the last turn, from the log |
//! | `executionPhase` | the last checkpoint of the task |

use serde_json::Value;
use windlass_engine::validation::RuleResult;
use windlass_engine::{AgentContext, DecisionRule, Event, EventType, Seq, Session};
use windlass_hooks::rule_report;
use windlass_store::{EventFilter, Store as _};
use windlass_tools::{JudgedWork, agent_context};

use super::{HookRun, HookSubject};
use crate::effect_runner::ChangedFiles;
use crate::{EffectRunner, RunError};

/// Maximum number of hooks that are searched for rule results: more than an event ever causes.
const MAX_SEARCHED_HOOKS: usize = 4096;

impl EffectRunner<'_> {
    /// Returns the context for a command or a request at a gate. Unknown files are `null`.
    pub(super) fn gate_context(&mut self, run: &HookRun<'_>) -> Result<Value, RunError> {
        let (files, unknown) = match self.changed_files(run.subject)? {
            Ok(files) => (files, false),
            Err(_) => (Vec::new(), true),
        };
        let mut context = rule_report::merge_agent_context(&run.values, &self.build_agent_context(run.subject, files)?);
        if unknown {
            context["filesModified"] = Value::Null;
        }
        Ok(context)
    }

    /// Returns the context for rules, or why the files that a rule needs cannot be known.
    pub(super) fn rules_context(
        &mut self,
        run: &HookRun<'_>,
        rules: &[DecisionRule],
    ) -> Result<Result<Value, String>, RunError> {
        // Git takes longer than everything else here, so it is asked only if a rule needs the files.
        let files = match rules.iter().any(|rule| rule.uses_name("filesModified")) {
            true => self.changed_files(run.subject)?,
            false => Ok(Vec::new()),
        };
        Ok(match files {
            Ok(files) => {
                Ok(rule_report::merge_agent_context(&run.values, &self.build_agent_context(run.subject, files)?))
            }
            Err(why) => Err(format!("cannot tell which files have changed: {why}")),
        })
    }

    /// Builds the context. The rule results are those of the last turn, if there are any.
    pub(super) fn build_agent_context(
        &self,
        subject: &HookSubject,
        files_modified: Vec<String>,
    ) -> Result<AgentContext, RunError> {
        let series =
            subject.task.as_ref().and_then(|task| task.evaluation.series.as_ref()).map(|series| series.iteration);
        let session = subject.session.as_ref().map(Session::iteration_on_task);
        let called = subject.call.as_ref().map(|request| request.call.output.clone());
        let work = JudgedWork {
            task: subject.task.as_ref(),
            iteration: series.or(session).unwrap_or(1),
            files_modified,
            promises: subject.promise.into_iter().collect(),
            agent_output: subject.output.clone().or(called),
            draft_content: None,
            draft_type: None,
        };
        let mut context = agent_context(self.store, work, (self.env.now)())?;
        if let Some(session) = &subject.session {
            context.validation_results = self.last_rule_results(session)?;
        }
        Ok(context)
    }

    /// Asks git which files work has changed, once for all hooks of an event.
    pub(super) fn changed_files(&mut self, subject: &HookSubject) -> Result<ChangedFiles, RunError> {
        let seq = subject.event.seq;
        if let Some((at, known)) = &self.changed
            && *at == seq
        {
            return Ok(known.clone());
        }
        let files = self.modified_files(subject)?;
        self.changed = Some((seq, files.clone()));
        Ok(files)
    }

    /// Returns the results of the last validation of the work: after the last turn, or at submission.
    fn last_rule_results(&self, session: &Session) -> Result<Vec<RuleResult>, RunError> {
        let Some(turn) = session.rejudging_event().or(session.last_turn) else { return Ok(Vec::new()) };
        let filter = EventFilter { types: vec![EventType::HookFinished], ..EventFilter::default() };
        let finished = self.store.read_events(&filter, turn, MAX_SEARCHED_HOOKS)?;
        let of_turn = |seq: Seq, event: Event| match event {
            Event::HookFinished(finished) if seq > turn && finished.effect.seq == turn => Some(finished.results),
            _ => None,
        };
        let mut results = finished.into_iter().filter_map(|record| of_turn(record.seq, record.envelope.event));
        Ok(results.find(|results| !results.is_empty()).unwrap_or_default())
    }
}
