//! The session scenario: a session with hooks at every point of the loop, which the test kills and runs again until it ends.
//!
//! ```text
//! open ─► plan ─► agent ─► check: step-1! ─► agent ─► check: step-2! ─► agent ─► check ─► review, bill
//!         plan ─► agent: COMPLETE ─► check ─► review, bill ─► agent gets the review: COMPLETE ─► check ─► review, bill ─► close
//! ```
//!
//! The prompt determines the agent's work, and the agent's work determines the result of the check. So a repeated step has the
//! same result. In the variant `Stopped` the agent terminates the runner in its second turn: Windlass cancels the turn and runs
//! `close`.

use super::checks::{GuaranteeViolation, find_violations};
use super::crash_setup::{CrashObservations, CrashPoint, CrashSetup, ProgramCopy, RunExit};
use super::sweep::CrashScenario;

const ACTOR_SCRIPT: &str = include_str!("actor.sh");

const CONFIG: &str = r#"
hooks:
  session_start:
    - { name: open, command: '. "$CRASH_ACTOR"', pipe_output: true }
  pre_iteration:
    - { name: plan, command: '. "$CRASH_ACTOR"', pipe_output: true }
  stop:
    - { name: check, command: '. "$CRASH_ACTOR"' }
  post_iteration:
    - { name: review, command: '. "$CRASH_ACTOR"', pipe_output: true, idempotent: true }
    - { name: bill, command: '. "$CRASH_ACTOR"' }
  session_end:
    - { name: close, command: '. "$CRASH_ACTOR"' }
"#;

const RUN: &[&str] = &["--json", "run", "Mend the pump", "--agent", r#"command:. "$CRASH_ACTOR""#];

/// The hooks that may run again after a crash: a gate, and a hook that is `idempotent`.
pub const REPEATABLE_HOOKS: &[&str] = &["check", "review"];
/// The hooks with `pipe_output`. Gates are not among them.
pub const FEEDBACK_HOOKS: &[&str] = &["open", "plan", "review"];

/// The way in which the session ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionVariant {
    Completed,
    /// By SIGTERM in the second turn.
    Stopped,
}

impl SessionVariant {
    /// Returns the exit codes of a run that is not killed. A run that takes over a stopped session does not know the signal.
    fn expected_exits(self) -> &'static [RunExit] {
        match self {
            Self::Completed => &[RunExit::Code(0)],
            Self::Stopped => &[RunExit::Code(143), RunExit::Code(3)],
        }
    }
}

/// Everything that the test can observe about a session.
#[derive(Debug, Clone, Default)]
pub struct SessionObservations {
    pub runs: CrashObservations,
    /// The output of `windlass events --json` after the last run.
    pub log: String,
    /// The lines that the hooks and the agent have recorded.
    pub recorder: String,
}

/// A runner of the session scenario.
pub struct ScenarioRunner {
    program: ProgramCopy,
    variant: SessionVariant,
    /// A fail point that is active in every run.
    fail_point: Option<&'static str>,
}

impl ScenarioRunner {
    pub fn new(variant: SessionVariant) -> Self {
        Self { program: ProgramCopy::new(), variant, fail_point: None }
    }

    /// Simulates a faulty build: every run has this fail point.
    pub fn with_fail_point(fail: &'static str) -> Self {
        Self { fail_point: Some(fail), ..Self::new(SessionVariant::Completed) }
    }

    /// Runs a session with one run per crash point, and a last run without a crash.
    pub fn run_scenario(&self, crashes: &[CrashPoint]) -> SessionObservations {
        let setup = CrashSetup::new(&self.program, ACTOR_SCRIPT);
        setup.world.write(".windlass/config.yaml", CONFIG);
        setup.world.run_ok(&["trust", "--yes"]);
        let mut observations = CrashObservations::default();
        for crash in crashes {
            if self.run_session(&setup, Some(*crash), &mut observations) != RunExit::Killed {
                return observe(&setup, observations);
            }
            observations.crash_count += 1;
            if !matches!(crash, CrashPoint::ProgramAndSupervisor(_)) {
                setup.check_no_processes(&mut observations);
            }
            if is_session_closed(&setup) {
                return observe(&setup, observations);
            }
        }
        self.run_session(&setup, None, &mut observations);
        observe(&setup, observations)
    }

    /// Runs `windlass run` once, until it exits or crashes.
    fn run_session(
        &self,
        setup: &CrashSetup,
        crash: Option<CrashPoint>,
        observations: &mut CrashObservations,
    ) -> RunExit {
        let mut command = setup.windlass_command(RUN, crash);
        if self.variant == SessionVariant::Stopped {
            command.env("CRASH_STOP", "yes");
        }
        if let Some(fail_point) = self.fail_point {
            command.env("WINDLASS_FAILPOINT", fail_point);
        }
        setup.run_to_exit(&mut command, crash, self.variant.expected_exits(), observations)
    }
}

/// Returns whether the session has ended with all of its hooks: the same command would start another session.
fn is_session_closed(setup: &CrashSetup) -> bool {
    let log = super::log::parse_events(&setup.event_log());
    log.iter().any(|event| event.event_type() == "hook_finished" && event.text_field("hook") == "close")
}

fn observe(setup: &CrashSetup, mut observations: CrashObservations) -> SessionObservations {
    setup.check_no_processes(&mut observations);
    setup.run_doctor(&mut observations);
    SessionObservations { runs: observations, log: setup.event_log(), recorder: setup.recorder_text() }
}

/// The session scenario with crashes, compared with a session without crashes.
pub struct SessionScenario {
    variant: SessionVariant,
    baseline: SessionObservations,
}

impl SessionScenario {
    pub fn new(variant: SessionVariant) -> Self {
        Self { variant, baseline: ScenarioRunner::new(variant).run_scenario(&[]) }
    }
}

impl CrashScenario for SessionScenario {
    type Environment = ScenarioRunner;

    fn create_environment(&self) -> ScenarioRunner {
        ScenarioRunner::new(self.variant)
    }

    fn run_with_crashes(&self, runner: &ScenarioRunner, crashes: &[CrashPoint]) -> (usize, Vec<GuaranteeViolation>) {
        let observed = runner.run_scenario(crashes);
        (observed.runs.crash_count, find_violations(&observed, &self.baseline))
    }
}
