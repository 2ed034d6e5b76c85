//! The `run_tests` step.

use std::time::Duration;

use windlass_engine::{HookOutcome, HookReport};
use windlass_hooks::HookScript;

use super::report_with_message;
use crate::hook::{HookAttempt, HookRun};
use crate::{EffectRunner, RunError, test_command};

impl EffectRunner<'_> {
    /// Runs the tests. The agent has to mend a failing test, whatever its exit code is, after the configured retries.
    pub(super) fn run_tests_step(&mut self, run: &HookRun<'_>) -> Result<HookAttempt, RunError> {
        let command = self
            .settings
            .delivery
            .tests
            .clone()
            .or_else(|| test_command::detect_test_command(&run.directory).map(str::to_owned));
        let Some(command) = command else {
            let why = "the project shows no tests; `test_command` names them";
            return Ok(report_with_message(HookOutcome::Skip, why).into());
        };
        let script = match HookScript::parse(&command) {
            Ok(script) => script,
            Err(refused) => {
                return Ok(report_with_message(HookOutcome::Failure, format!("`test_command`: {refused}")).into());
            }
        };
        let HookAttempt { report, response, .. } = self.run_command_hook(run, &script)?;
        let failed = matches!(report.outcome, HookOutcome::Failure | HookOutcome::TimedOut | HookOutcome::Block);
        let report = match failed && report.feedback.is_some() && !report.unstarted {
            true => HookReport {
                outcome: HookOutcome::Block,
                feedback: report.feedback.map(|told| format!("`{command}` fails. Fix what it reports.\n\n{told}")),
                ..report
            },
            false => report,
        };
        Ok(HookAttempt { report, retry_after: failed.then_some(Duration::ZERO), response })
    }
}
