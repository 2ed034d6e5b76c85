//! Several agents side by side: the tasks of the graph, each in a session of its own.
//!
//! ```text
//!   sessions of dead owners ─┐
//!   tasks that are ready ────┴─► SessionScheduler ─► worker 1 … N, each a thread with its own store, owner and supervisor
//!                                  ▲        │
//!            signals, the log ─────┘        └─► WorkerObserver of the front end
//! ```
//!
//! Invariants:
//! - Each task has one session at a time; the log decides which one, whatever other processes work on the graph.
//! - All workers use the configuration of the run's start. Resumed sessions keep theirs.
//! - A signal means the same to all workers.
//!
//! Not here: the steps of a session (`runner`), the rules which agent may have which task (`engine`).

mod assignment;
mod log_watch;
mod scheduler;
#[cfg(test)]
mod tests;
mod worker;

use std::sync::Arc;
use std::thread;

use windlass_config::Config;
use windlass_engine::{Session, Task, WorkSource, WorkspaceMode};
use windlass_process::{OwnerLock, RunControl};
use windlass_store::Lifetime;

use self::worker::Worker;
use super::agent_choice::{check_agent_startable, explain_no_task_for_agent, no_agent_failure};
use super::cancellation::read_cancellation;
use super::cleanup::clean_up_tasks;
use super::remaining_tasks::RemainingTasks;
use super::run_plan::NothingReady;
use super::session_config::{find_effective_config, may_run_agent_programs};
use super::session_run::{SessionObserver, read_protected_files, warn_of_idle_hooks};
use super::stale_leases::{OwnerHeartbeats, expire_stale_leases, start_heartbeat};
use super::workspace_choice::{check_shared_remote, find_workspace_mode};
use crate::caller::CallerContext;
use crate::context::{CommandContext, OpenedProject};
use crate::fleet::{self, FleetMembership};
use crate::person::require_person;
use crate::project::Project;
use crate::recovery::{RecoveryScope, recover_and_notify};
use crate::workflows::{self, WorkflowSnapshot};
use crate::{Failure, FailureCode, FrontEnd, Notice, agents, execution, hints, store_records};

pub use self::assignment::AgentAssignment;
pub use self::scheduler::{RunTotals, SessionScheduler};

/// An observer that shows the work of several workers to people. Workers call it from their threads.
pub trait WorkerObserver: Sync {
    /// Returns the observer of a session that a worker begins or resumes.
    fn observe_session<'a>(&'a self, worker: usize, session: &WorkerSession<'_>) -> Box<dyn SessionObserver + 'a>;

    /// Notes that a worker has no session for now.
    fn clear_session(&self, worker: usize);

    /// Returns whether `show_progress` shows anything.
    fn shows_progress(&self) -> bool;

    fn show_progress(&self, progress: PoolProgress);
}

/// The session of a worker.
pub struct WorkerSession<'a> {
    pub task: Option<&'a Task>,
    pub work: WorkSource,
    /// The unfinished session, if it is resumed.
    pub resumed: Option<&'a Session>,
}

/// The progress of all workers, in tasks.
#[derive(Debug, Clone, Copy, Default)]
pub struct PoolProgress {
    pub done: usize,
    pub left: usize,
    pub ready: u64,
}

/// The settings that all workers share.
pub struct WorkerSettings {
    pub config: Arc<Config>,
    workflows: WorkflowSnapshot,
    pub workspace_mode: WorkspaceMode,
    inside: CallerContext,
    /// The content of the protected files.
    protected: Option<String>,
    max_iterations: Option<u32>,
    serves_agents: bool,
    /// Whether a person trusts the project's own names and programs, for this command.
    trust: bool,
}

impl WorkerSettings {
    /// Reads the configuration, and checks that it may be used.
    pub fn load_settings(opened: &OpenedProject, max_iterations: Option<u32>) -> Result<Self, Failure> {
        let inside = CallerContext::detect_from_variables(opened)?;
        let config = Config::from_source(inside.load_config_source(opened)?)?;
        let trust_option = opened.trust || inside.config.is_some();
        let config = Arc::new(find_effective_config(&*opened.front_end, &opened.project, config, trust_option)?);
        workflows::check_workflow_hooks(&opened.project, &config)?;
        let workflows = WorkflowSnapshot::load_snapshot(&opened.project, &config, opened.trust);
        let serves_agents = may_run_agent_programs(opened.trust, &inside, &opened.project, &config)?;
        let workspace_mode = find_workspace_mode(&opened.project, &config)?;
        check_shared_remote(opened, &config, workspace_mode)?;
        let protected = read_protected_files(&opened.project, &config)?;
        let trust = opened.trust;
        Ok(Self { config, workflows, workspace_mode, inside, protected, max_iterations, serves_agents, trust })
    }

    /// Returns whether a person, or the run around this one, has trusted the configuration.
    fn is_trusted(&self) -> bool {
        self.trust || self.inside.config.is_some()
    }
}

/// Opens the project of a run with several workers.
pub fn open_project_for_workers(context: &CommandContext) -> Result<OpenedProject, Failure> {
    let opened = context.open_or_create_project(Lifetime::Service)?;
    if context.trust {
        require_person(&opened.project)?;
    }
    Ok(opened)
}

/// The outcome of planning a run with several workers.
pub enum PoolPlan<'a> {
    Pool(WorkerPool<'a>),
    NothingReady(NothingReady),
}

/// Several workers that are ready to begin.
pub struct WorkerPool<'a> {
    settings: &'a WorkerSettings,
    assignment: &'a AgentAssignment<'a>,
    scheduler: Arc<SessionScheduler>,
    owner_locks: Vec<OwnerLock>,
    control: RunControl,
    _heartbeat: OwnerHeartbeats,
}

impl<'a> WorkerPool<'a> {
    /// Creates this many workers, unless there is no work to begin with.
    pub fn plan_workers(
        opened: &mut OpenedProject,
        settings: &'a WorkerSettings,
        assignment: &'a AgentAssignment<'a>,
        (count, control): (usize, &RunControl),
    ) -> Result<PoolPlan<'a>, Failure> {
        check_usual_agent(assignment, &opened.project)?;
        let owner_locks: Vec<OwnerLock> =
            (0..count).map(|_| execution::acquire_owner_lock(&opened.project)).collect::<Result<_, _>>()?;
        let heartbeat = start_heartbeat(opened, &owner_locks, &settings.config)?;
        recover_and_notify(opened, control, RecoveryScope::BeforeWork)?;
        let sessions = opened
            .store
            .begin_snapshot()
            .map_err(hints::store_failure)?
            .open_sessions()
            .map_err(hints::store_failure)?;
        if !settings.workspace_mode.is_in_place() {
            clean_up_tasks(opened, &settings.config, (&owner_locks[0], control))?;
        }
        let left = assignment::find_left_sessions(opened, sessions, settings.workspace_mode);
        if left.is_empty() {
            expire_stale_leases(opened, &settings.config, (&owner_locks[0], control))?;
            if let Some(nothing) = explain_nothing_ready(opened, assignment)? {
                return Ok(PoolPlan::NothingReady(nothing));
            }
        }
        if let Some(id) = assignment.find_task_without_agent(&opened.store)? {
            let warning = format!("no agent is named for {id}: it is skipped; `agent:` names one for all tasks");
            opened.front_end.show_notice(Notice::Warning(&warning));
        }
        if count > 1 && settings.workspace_mode.is_in_place() {
            let note = "the workers share one directory: there is no git here, or `worktrees` is off";
            opened.front_end.show_notice(Notice::Note(note));
        }
        warn_of_idle_hooks(opened, &settings.config);
        let (scheduler, control) = (Arc::new(SessionScheduler::new(left)), control.clone());
        Ok(PoolPlan::Pool(Self { settings, assignment, scheduler, owner_locks, control, _heartbeat: heartbeat }))
    }

    /// Returns the scheduler that all workers share.
    pub fn scheduler(&self) -> &Arc<SessionScheduler> {
        &self.scheduler
    }

    /// Runs all workers to the end.
    pub fn run_workers(
        &self,
        place: (&Project, &Arc<dyn FrontEnd>),
        observer: &dyn WorkerObserver,
    ) -> Result<(), Failure> {
        thread::scope(|scope| {
            let mut workers = Vec::new();
            for (number, owner_lock) in self.owner_locks.iter().enumerate() {
                let work = move || {
                    self.create_worker(number, self.open_for_worker(place)?, owner_lock, observer).work_until_over()
                };
                let thread = thread::Builder::new().name(format!("worker {}", number + 1)).spawn_scoped(scope, work);
                match thread {
                    Ok(thread) => workers.push(thread),
                    Err(error) => {
                        self.scheduler.close_for_new_jobs();
                        return Err(Failure::new(FailureCode::System, "cannot start a thread").with_cause(error));
                    }
                }
            }
            let ended = workers.into_iter().map(|worker| worker.join().expect("a worker thread does not panic"));
            // All threads are joined before the first failure is returned.
            ended.collect::<Vec<_>>().into_iter().collect()
        })
    }

    fn open_for_worker(&self, (project, front_end): (&Project, &Arc<dyn FrontEnd>)) -> Result<OpenedProject, Failure> {
        let (project, trust, front_end) = (project.clone(), self.settings.trust, front_end.clone());
        let store = store_records::open_store(&project, Lifetime::Service, trust)
            .inspect_err(|_| self.scheduler.close_for_new_jobs())?;
        let mut opened = OpenedProject::new(project, store, trust, front_end);
        fleet::wait_for_log_until_cancelled(&mut opened, &self.control);
        Ok(opened)
    }

    fn create_worker<'w>(
        &'w self,
        number: usize,
        opened: OpenedProject,
        owner_lock: &'w OwnerLock,
        observer: &'w dyn WorkerObserver,
    ) -> Worker<'w> {
        let member = FleetMembership::find(&opened.project).ok().flatten();
        let spread = member.map(|member| format!("{} {number}", member.machine(&opened.project)));
        Worker {
            number,
            spread,
            settings: self.settings,
            assignment: self.assignment,
            scheduler: &self.scheduler,
            opened,
            owner_lock,
            control: self.control.clone(),
            observer,
            supervisor: None,
        }
    }
}

/// Returns a function that cancels the running sessions which the log says are cancelled, and no others.
pub fn watch_cancelled_sessions(project: &Project, scheduler: &Arc<SessionScheduler>) -> impl Fn() + Send + 'static {
    let (file, scheduler) = (project.store_file(), scheduler.clone());
    move || {
        let cancelled =
            scheduler.running_sessions().into_iter().filter(|(name, _)| read_cancellation(&file, name).is_some());
        cancelled.for_each(|(_, control)| control.cancel_own_runs());
    }
}

/// Checks the agent that most tasks get, to catch a typing mistake in its name.
fn check_usual_agent(assignment: &AgentAssignment<'_>, project: &Project) -> Result<(), Failure> {
    let settings = &assignment.config.settings;
    let usual = settings.agent.as_ref().map(|agent| agent.as_str());
    match assignment.named.or(usual) {
        Some(name) => {
            check_agent_startable(&agents::resolve_agent(name, settings)?, &project.root, assignment.workspace_mode)
        }
        None => Ok(()),
    }
}

/// Returns why workers have nothing to begin with, if that is so.
fn explain_nothing_ready(
    opened: &OpenedProject,
    assignment: &AgentAssignment<'_>,
) -> Result<Option<NothingReady>, Failure> {
    if assignment.find_next_task(&opened.store, &Default::default(), &Default::default(), None)?.is_some() {
        return Ok(None);
    }
    if let Some(id) = assignment.find_task_without_agent(&opened.store)? {
        return Err(no_agent_failure().with_cause(format!("{id} is ready, but no agent is named for it")));
    }
    if let Some(failure) = assignment.find_first_missing_agent(&opened.store)? {
        return Err(failure);
    }
    let others = match assignment.named {
        Some(agent) => explain_no_task_for_agent(&opened.store, &assignment.types, agent, assignment.workspace_mode)?,
        None => None,
    };
    let reason = others.unwrap_or_else(|| "nothing is ready".to_owned());
    let remaining = RemainingTasks::find_remaining(opened)?
        .explain_ready_tasks(|task| assignment.explain_untaken_task(opened, task));
    Ok(Some(NothingReady { reason, remaining }))
}
