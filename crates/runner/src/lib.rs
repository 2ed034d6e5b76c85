//! The loop: does the work that a session wants, and reports the result as the next command.
//!
//! ```text
//!            ┌──────────── engine: decides what is wanted next ◄────────────────────────────────────────────┐
//!            ▼                                                                                              │ command
//!   Wanted::Hook ─► hooks + process ─► FinishEffect ────────────────────────────────────────────────────────┤
//!   Wanted::Turn ─► prompt_agent ─► AgentDriver, which opens a conversation ─► FinishTurn, FailTurn, ───────┤
//!                                                                              PostponeTurn, InterruptTurn  │
//!   Wanted::Moment ─► wait ─► AdvanceSession          Wanted::Decision ─► AdvanceSession ───────────────────┘
//! ```
//!
//! Invariants:
//! - The loop remembers nothing between two pieces of work: it reads the next one from the store. So a crash at any moment means
//!   that the loop is started again. An agent that stays is no exception: its conversation is in the log, and another process
//!   can resume it.
//! - Nothing runs before the log says that it is about to, and no lock is held while it runs.
//!
//! Not here: any decision (`engine::Session::step`), printing, the environment.
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests read files that they have written"))]

mod agent_hooks;
mod caches;
mod consultation;
mod delivery_settings;
mod effect_runner;
mod error;
pub mod external_merges;
mod gate_checkout;
mod gatekeepers;
mod hook;
mod journal;
mod prompt;
mod protected;
mod protected_check;
mod refresh;
mod runner_env;
mod shared_work;
mod shutdown;
pub mod stacked_branches;
mod submission;
pub mod test_command;
mod tool_server;
mod turn;
mod turn_record;
mod wording;
mod work_digest;
mod workspace;
mod workspace_problem;
mod worktree_gc;

use std::time::{Duration, Instant};

use windlass_agents::{Agent, AgentDriver};
use windlass_engine::{
    Command, CommandOrigin, EffectId, EffectKind, EventRecord, EventType, HookOutcome, NextAction, Refusal, Session,
    SessionEndKind, SessionName, SessionPhase, SessionStep, StateView, TaskId, Timestamp,
};
use windlass_process::ProgramSupervisor;
use windlass_store::ExecuteError;

pub use caches::CachePatterns;
pub use delivery_settings::DeliverySettings;
pub use effect_runner::{AnswerLinkMaker, EffectRunner, HookFinder, RunnerSettings, WorkflowFinder};
pub use error::RunError;
pub use gatekeepers::GatekeeperSettings;
pub use hook::pipeline::{ManualMergeOutcome, MergeChecks, MergeProof};
pub use protected::{ProtectedFiles, ProtectedFilesError};
pub use refresh::BaseComparison;
pub use runner_env::{RunnerEnv, RunnerEvent};
pub use workspace_problem::WorkspaceProblem;
pub use worktree_gc::{WorktreeRemoval, find_leftover_tasks, task_of_name};

use work_digest::WorkDigester;

/// Longest single wait.
const MAX_WAIT_SLICE: Duration = Duration::from_secs(30);
/// Poll interval for changes by other processes during a wait.
const SESSION_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The loop of one session.
pub struct Runner<'a> {
    effects: EffectRunner<'a>,
    agent: Agent,
    driver: Box<dyn AgentDriver + 'a>,
    allowance: TurnLimits,
    digester: WorkDigester,
    /// Tasks that the session has completed, whose worktrees can be removed.
    done: Vec<TaskId>,
    /// Whether another process has left the session, and its worktree has not been refreshed yet.
    resumes: bool,
    /// Task whose branch was removed during the work, if nothing was submitted since.
    removed_branch: Option<TaskId>,
}

/// Limits of a turn.
#[derive(Debug, Clone, Copy, Default)]
pub struct TurnLimits {
    /// Maximum time.
    pub time: Option<Duration>,
    /// Output-idle timeout.
    pub idle_timeout: Option<Duration>,
}

impl<'a> Runner<'a> {
    pub fn new(effects: EffectRunner<'a>, agent: Agent, allowance: TurnLimits) -> Self {
        let agent = agent.resolve_relative_paths(&effects.settings.project);
        let driver = agent.create_driver(effects.settings.launcher.as_ref(), effects.owner_lock);
        let (digester, done) = (WorkDigester::default(), Vec::new());
        Self { effects, agent, driver, allowance, digester, done, resumes: false, removed_branch: None }
    }

    /// Ends the runner, and returns the supervisor of its programs for the next one.
    pub fn into_supervisor(mut self) -> Option<ProgramSupervisor> {
        self.close_agent();
        self.effects.supervisor.take()
    }

    /// Ends the processes of the agent between two turns.
    pub fn close_agent(&mut self) {
        self.driver.close_agent();
    }

    /// Commits a command, and reports its records to the observer.
    pub fn commit_command(&mut self, command: &Command) -> Result<Vec<EventRecord>, RunError> {
        let records = self.effects.commit_command(command)?;
        self.warn_of_change_during_gate(&records)?;
        let completed = records.iter().filter(|record| record.kind() == EventType::TaskCompleted);
        self.done.extend(completed.filter_map(|record| record.envelope.node.task_id()));
        Ok(records)
    }

    /// Commits a command of another origin: one that begins the session, perhaps from inside another run, or an answer.
    pub fn commit_and_report(&mut self, origin: &CommandOrigin, command: &Command) -> Result<(), RunError> {
        let records = self.effects.commit_command_as(origin, command)?;
        self.resumes |= matches!(command, Command::ResumeSession { .. });
        self.effects.report_records(&records);
        Ok(())
    }

    /// Commits a command of a person before the session begins. The session reports what follows from it.
    pub fn commit_before_session(&mut self, origin: &CommandOrigin, command: &Command) -> Result<(), RunError> {
        self.effects.commit_command_as(origin, command).map(drop)
    }

    /// Runs the session until it is over, or until a person has to answer.
    pub fn run_session(&mut self, name: &SessionName) -> Result<SessionEndKind, RunError> {
        if std::mem::take(&mut self.resumes) {
            self.refresh_workspace(&self.load_session(name)?)?;
        }
        loop {
            let session = self.stop_if_cancelled(self.load_session(name)?)?;
            let left = session.remaining_wall_time((self.effects.env.now)());
            self.effects.deadline = left.and_then(|left| Instant::now().checked_add(left));
            self.remove_merged_worktrees(&session)?;
            // A session without anything to merge releases the merge lock.
            if !matches!(session.phase, SessionPhase::Pipeline(_)) && session.next_action() != NextAction::Work {
                self.effects.merging = None;
                self.effects.remove_gate_checkout();
            }
            if !self.ensure_workspace(&session)? {
                continue;
            }
            match session.next_action() {
                NextAction::Hook(effect) => self.run_session_hook(&session, effect)?,
                NextAction::Turn(effect) => match self.run_turn(&session, effect) {
                    Err(RunError::Supervisor(error)) => self.end_without_supervisor(&session, &error)?,
                    turned => turned?,
                },
                NextAction::WaitUntil(until) => self.wait_until(name, until)?,
                NextAction::Decision => drop(self.commit_command(&Command::AdvanceSession { name: name.clone() })?),
                NextAction::Workspace => self.open_workspace(&session)?,
                NextAction::Work => self.submit_work(&session)?,
                // The session stays as it is until a person answers. In a terminal that is soon, so the agent is not closed.
                NextAction::Answer => return Ok(SessionEndKind::Escalated),
                NextAction::Nothing => {
                    self.close_agent();
                    self.remove_lost_task_worktree(&session)?;
                    return session.ending_kind().ok_or(RunError::Stuck(name.clone()));
                }
            }
        }
    }

    /// Runs a hook that the session waits for, unless an earlier owner has died during the hook and it may not run again.
    fn run_session_hook(&mut self, session: &Session, effect: EffectId) -> Result<(), RunError> {
        let owner = self.effects.owner.clone();
        let ours = self.take_over_effect(session, effect)?;
        let Some(owed) = self.effects.store.begin_snapshot()?.find_effect(effect)? else { return Ok(()) };
        if !matches!(owed.kind, EffectKind::Hook(_)) {
            return Err(RunError::Stuck(session.name.clone()));
        }
        if ours && owed.attempts == 0 && is_hook_skipped(session, effect) {
            // Another process has cancelled the session or taken the task away, and has left the rest to this one.
            return self.commit_command(&Command::AdvanceSession { name: session.name.clone() }).map(drop);
        }
        if ours && owed.attempts == 0 {
            match self.commit_command(&Command::BeginEffect { effect, owner: owner.clone() }) {
                // The session was cancelled, or the task was taken away, at this very moment.
                Err(RunError::Execute(ExecuteError::Refused(Refusal::IllegalEffect { .. })))
                    if is_hook_skipped(&self.load_session(&session.name)?, effect) =>
                {
                    return Ok(());
                }
                begun => begun.map(drop)?,
            }
        }
        // A cancelled session still runs the hooks of its end. Only a later cancellation is for these hooks.
        let control = self.effects.control.clone();
        let is_resolute = session.ending_kind().is_some() && control.is_cancelled();
        if is_resolute {
            self.effects.control = control.ignoring_cancel();
        }
        let report = self.effects.run_hook(&owed);
        self.effects.control = control;
        let report = report?.report;
        if report.outcome == HookOutcome::Cancelled && is_resolute {
            return Err(RunError::Killed);
        }
        self.stop_if_cancelled(self.load_session(&session.name)?)?;
        self.commit_command(&Command::FinishEffect { effect, owner, report: report.into() }).map(drop)
    }

    /// Reports a cancellation to the session, once.
    fn stop_if_cancelled(&mut self, session: Session) -> Result<Session, RunError> {
        let decided = session.stopping.is_some() || session.ending_kind().is_some();
        if decided || !self.effects.control.is_cancelled() {
            return Ok(session);
        }
        self.stop_session(&session.name, SessionEndKind::Cancelled, None)?;
        self.load_session(&session.name)
    }

    /// Stops the session, unless another process has done so at this very moment.
    fn stop_session(
        &mut self,
        name: &SessionName,
        ending: SessionEndKind,
        reason: Option<String>,
    ) -> Result<(), RunError> {
        let asked = self.commit_command(&Command::StopSession { name: name.clone(), ending, reason });
        match asked {
            Err(RunError::Execute(ExecuteError::Refused(Refusal::IllegalSession { .. })))
                if self.load_session(name)?.stopping.is_some() =>
            {
                Ok(())
            }
            asked => asked.map(drop),
        }
    }

    /// Waits in short slices, since a suspended machine counts no seconds. Ends early if another process cancels the session or takes
    /// its task away.
    fn wait_until(&mut self, name: &SessionName, until: Timestamp) -> Result<(), RunError> {
        let left = until.millis().saturating_sub((self.effects.env.now)().millis());
        match u64::try_from(left) {
            Ok(left @ 1..) => {
                let left = Duration::from_millis(left);
                (self.effects.env.observe)(RunnerEvent::Waiting(left));
                let until_then = Instant::now() + left.min(MAX_WAIT_SLICE);
                while self.load_session(name)?.next_action() == NextAction::WaitUntil(until) {
                    let left = until_then.saturating_duration_since(Instant::now());
                    if left.is_zero() || !self.effects.control.wait_unless_cancelled(left.min(SESSION_POLL_INTERVAL)) {
                        break;
                    }
                }
                Ok(())
            }
            _ => self.commit_command(&Command::AdvanceSession { name: name.clone() }).map(drop),
        }
    }

    /// Returns the current state of a session.
    pub fn load_session(&self, name: &SessionName) -> Result<Session, RunError> {
        self.effects.load_session(name)
    }

    /// Takes an effect over from a dead owner. Returns whether it was ours already.
    fn take_over_effect(&mut self, session: &Session, effect: EffectId) -> Result<bool, RunError> {
        let owed = self.effects.store.begin_snapshot()?.find_effect(effect)?;
        let owed = owed.ok_or_else(|| RunError::Stuck(session.name.clone()))?;
        let owner = self.effects.owner.clone();
        if owed.owner == owner {
            return Ok(true);
        }
        self.commit_command(&Command::RecoverEffect { effect, dead: owed.owner, owner })?;
        Ok(false)
    }
}

/// Returns whether a hook is skipped that has not begun.
fn is_hook_skipped(session: &Session, effect: EffectId) -> bool {
    matches!(session.next_step(), SessionStep::SkipHook(skipped) if skipped == effect)
}
