//! The `run_tests` step.

use std::time::Duration;

use windlass_engine::HookOutcome;
use windlass_hooks::HookScript;

use super::report_with_message;
use crate::hook::{HookAttempt, HookRun};
use crate::{EffectRunner, RunError, test_command};

impl EffectRunner<'_> {
    /// Runs the tests. The agent has to fix a failing test, whatever its exit code is, after the configured retries.
    pub(super) fn run_tests_step(&mut self, run: &HookRun<'_>) -> Result<HookAttempt, RunError> {
        let command = self
            .settings
            .delivery
            .tests
            .clone()
            .or_else(|| test_command::detect_test_command(&run.directory).map(str::to_owned));
        let Some(command) = command else {
            return Ok(report_with_message(HookOutcome::Skip, test_command::NO_TESTS).into());
        };
        let script = match HookScript::parse(&command) {
            Ok(script) => script,
            Err(refused) => {
                return Ok(report_with_message(HookOutcome::Failure, format!("`test_command`: {refused}")).into());
            }
        };
        let HookAttempt { report, response, .. } = self.run_command_hook(run, &script)?;
        let failed = matches!(report.outcome, HookOutcome::Failure | HookOutcome::TimedOut | HookOutcome::Block);
        let report = test_command::judge_test_report(report, &command);
        Ok(HookAttempt { report, retry_after: failed.then_some(Duration::ZERO), response })
    }
}
