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

mod bridge;
mod caches;
mod change;
mod consultation;
mod delivery;
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
mod record;
mod refresh;
mod runner_env;
mod shutdown;
pub mod stacked_branches;
mod submission;
pub mod test_command;
mod tools;
mod turn;
mod wording;
mod workspace;
mod workspace_problem;
mod worktree_gc;

use std::time::{Duration, Instant};

use windlass_agents::{Agent, AgentDriver};
use windlass_engine::{
    Command, EffectId, EffectKind, Ending, EventType, HookOutcome, Origin, Phase, Record, Refusal, Session,
    SessionName, Step, TaskId, Timestamp, View, Wanted,
};
use windlass_process::Supervisor;
use windlass_store::ExecuteError;

pub use caches::CachePatterns;
pub use delivery::Delivery;
pub use effect_runner::{EffectRunner, HookFinder, RunnerSettings, WorkflowFinder};
pub use error::RunError;
pub use gatekeepers::Gatekeepers;
pub use hook::pipeline::{ManualMergeOutcome, MergeChecks, MergeSeal};
pub use protected::{Protected, ProtectedError};
pub use refresh::BaseFit;
pub use runner_env::{RunnerEnv, RunnerEvent};
pub use workspace_problem::WorkspaceProblem;
pub use worktree_gc::{GcResult, left_in, task_of};

use change::Looker;

/// Longest single wait.
const A_WHILE: Duration = Duration::from_secs(30);
/// Poll interval for changes by other processes during a wait.
const LOOK: Duration = Duration::from_millis(500);

/// The loop of one session.
pub struct Runner<'a> {
    dispatch: EffectRunner<'a>,
    agent: Agent,
    driver: Box<dyn AgentDriver + 'a>,
    allowance: TurnAllowance,
    looker: Looker,
    /// Tasks that the session has completed, whose worktrees can be removed.
    done: Vec<TaskId>,
    /// Whether another process has left the session, and its worktree has not been refreshed yet.
    resumes: bool,
    /// Task whose branch was removed during the work, if nothing was submitted since.
    removed_branch: Option<TaskId>,
}

/// Limits of a turn.
#[derive(Debug, Clone, Copy, Default)]
pub struct TurnAllowance {
    /// Maximum time.
    pub time: Option<Duration>,
    /// Output-idle timeout.
    pub silence: Option<Duration>,
}

impl<'a> Runner<'a> {
    pub fn new(dispatch: EffectRunner<'a>, agent: Agent, allowance: TurnAllowance) -> Self {
        let agent = agent.of(&dispatch.settings.project);
        let driver = agent.driver(dispatch.settings.launcher.as_ref(), dispatch.roster);
        let (looker, done) = (Looker::default(), Vec::new());
        Self { dispatch, agent, driver, allowance, looker, done, resumes: false, removed_branch: None }
    }

    /// Ends the runner, and returns the supervisor of its programs for the next one.
    pub fn into_supervisor(mut self) -> Option<Supervisor> {
        self.close_agent();
        self.dispatch.supervisor.take()
    }

    /// Ends the processes of the agent between two turns.
    pub fn close_agent(&mut self) {
        self.driver.close();
    }

    /// Commits a command, and reports its records to the observer.
    pub fn commit(&mut self, command: &Command) -> Result<Vec<Record>, RunError> {
        let records = self.dispatch.commit(command)?;
        self.note_change_under_gate(&records)?;
        let completed = records.iter().filter(|record| record.kind() == EventType::TaskCompleted);
        self.done.extend(completed.filter_map(|record| record.envelope.node.task()));
        Ok(records)
    }

    /// Commits a command of another origin: one that begins the session, perhaps from inside another run, or an answer.
    pub fn begin(&mut self, origin: &Origin, command: &Command) -> Result<(), RunError> {
        let records = self.dispatch.commit_as(origin, command)?;
        self.resumes |= matches!(command, Command::ResumeSession { .. });
        self.dispatch.tell(&records);
        Ok(())
    }

    /// Commits a command of a person before the session begins. The session reports what follows from it.
    pub fn prepare(&mut self, origin: &Origin, command: &Command) -> Result<(), RunError> {
        self.dispatch.commit_as(origin, command).map(drop)
    }

    /// Runs the session until it is over, or until a person has to answer.
    pub fn run(&mut self, name: &SessionName) -> Result<Ending, RunError> {
        if std::mem::take(&mut self.resumes) {
            self.refresh_workspace(&self.session(name)?)?;
        }
        loop {
            let session = self.stop_if_cancelled(self.session(name)?)?;
            let left = session.time_left((self.dispatch.outside.now)());
            self.dispatch.deadline = left.and_then(|left| Instant::now().checked_add(left));
            self.gc_worktrees(&session)?;
            // A session without anything to merge releases the merge lock.
            if !matches!(session.phase, Phase::Pipeline(_)) && session.wanted() != Wanted::Work {
                self.dispatch.merging = None;
                self.dispatch.close_gate();
            }
            if !self.ensure_workspace(&session)? {
                continue;
            }
            match session.wanted() {
                Wanted::Hook(effect) => self.hook(&session, effect)?,
                Wanted::Turn(effect) => match self.turn(&session, effect) {
                    Err(RunError::Supervisor(error)) => self.cannot_start(&session, &error)?,
                    turned => turned?,
                },
                Wanted::Moment(until) => self.wait(name, until)?,
                Wanted::Decision => drop(self.commit(&Command::AdvanceSession { name: name.clone() })?),
                Wanted::Workspace => self.open_workspace(&session)?,
                Wanted::Work => self.ready_work(&session)?,
                // The session stays as it is until a person answers. In a terminal that is soon, so the agent is not closed.
                Wanted::Answer => return Ok(Ending::Escalated),
                Wanted::Nothing => {
                    self.close_agent();
                    self.gc_lost_task(&session)?;
                    return session.ended().ok_or(RunError::Stuck(name.clone()));
                }
            }
        }
    }

    /// Runs a hook that the session waits for, unless an earlier owner has died during the hook and it may not run again.
    fn hook(&mut self, session: &Session, effect: EffectId) -> Result<(), RunError> {
        let owner = self.dispatch.owner.clone();
        let ours = self.is_ours(session, effect)?;
        let Some(owed) = self.dispatch.store.snapshot()?.effect(effect)? else { return Ok(()) };
        if !matches!(owed.kind, EffectKind::Hook(_)) {
            return Err(RunError::Stuck(session.name.clone()));
        }
        if ours && owed.attempts == 0 && is_skipped(session, effect) {
            // Another process has cancelled the session or taken the task away, and has left the rest to this one.
            return self.commit(&Command::AdvanceSession { name: session.name.clone() }).map(drop);
        }
        if ours && owed.attempts == 0 {
            match self.commit(&Command::BeginEffect { effect, owner: owner.clone() }) {
                // The session was cancelled, or the task was taken away, at this very moment.
                Err(RunError::Execute(ExecuteError::Refused(Refusal::IllegalEffect { .. })))
                    if is_skipped(&self.session(&session.name)?, effect) =>
                {
                    return Ok(());
                }
                begun => begun.map(drop)?,
            }
        }
        // A cancelled session still runs the hooks of its end. Only a later cancellation is for these hooks.
        let control = self.dispatch.control.clone();
        let is_resolute = session.ended().is_some() && control.is_cancelled();
        if is_resolute {
            self.dispatch.control = control.resolute();
        }
        let report = self.dispatch.run_hook(&owed);
        self.dispatch.control = control;
        let report = report?.report;
        if report.outcome == HookOutcome::Cancelled && is_resolute {
            return Err(RunError::Killed);
        }
        self.stop_if_cancelled(self.session(&session.name)?)?;
        self.commit(&Command::FinishEffect { effect, owner, report: report.into() }).map(drop)
    }

    /// Reports a cancellation to the session, once.
    fn stop_if_cancelled(&mut self, session: Session) -> Result<Session, RunError> {
        let decided = session.stopping.is_some() || session.ended().is_some();
        if decided || !self.dispatch.control.is_cancelled() {
            return Ok(session);
        }
        self.ask_to_end(&session.name, Ending::Cancelled, None)?;
        self.session(&session.name)
    }

    /// Stops the session, unless another process has done so at this very moment.
    fn ask_to_end(&mut self, name: &SessionName, ending: Ending, reason: Option<String>) -> Result<(), RunError> {
        let asked = self.commit(&Command::StopSession { name: name.clone(), ending, reason });
        match asked {
            Err(RunError::Execute(ExecuteError::Refused(Refusal::IllegalSession { .. })))
                if self.session(name)?.stopping.is_some() =>
            {
                Ok(())
            }
            asked => asked.map(drop),
        }
    }

    /// Waits in short slices, since a suspended machine counts no seconds. Ends early if another process cancels the session or takes
    /// its task away.
    fn wait(&mut self, name: &SessionName, until: Timestamp) -> Result<(), RunError> {
        let left = until.millis().saturating_sub((self.dispatch.outside.now)().millis());
        match u64::try_from(left) {
            Ok(left @ 1..) => {
                let left = Duration::from_millis(left);
                (self.dispatch.outside.tell)(RunnerEvent::Waiting(left));
                let until_then = Instant::now() + left.min(A_WHILE);
                while self.session(name)?.wanted() == Wanted::Moment(until) {
                    let left = until_then.saturating_duration_since(Instant::now());
                    if left.is_zero() || !self.dispatch.control.wait(left.min(LOOK)) {
                        break;
                    }
                }
                Ok(())
            }
            _ => self.commit(&Command::AdvanceSession { name: name.clone() }).map(drop),
        }
    }

    /// Returns the current state of a session.
    pub fn session(&self, name: &SessionName) -> Result<Session, RunError> {
        self.dispatch.session(name)
    }

    /// Takes an effect over from a dead owner. Returns whether it was ours already.
    fn is_ours(&mut self, session: &Session, effect: EffectId) -> Result<bool, RunError> {
        let owed = self.dispatch.store.snapshot()?.effect(effect)?;
        let owed = owed.ok_or_else(|| RunError::Stuck(session.name.clone()))?;
        let owner = self.dispatch.owner.clone();
        if owed.owner == owner {
            return Ok(true);
        }
        self.commit(&Command::RecoverEffect { effect, dead: owed.owner, owner })?;
        Ok(false)
    }
}

/// Returns whether a hook is skipped that has not begun.
fn is_skipped(session: &Session, effect: EffectId) -> bool {
    matches!(session.step(), Step::SkipHook(skipped) if skipped == effect)
}
