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
mod worker;

use std::sync::Arc;
use std::thread;

use windlass_config::Config;
use windlass_engine::{Grounds, Session, Task, Work};
use windlass_process::{Control, Heart, Roster};
use windlass_store::Lifetime;

use self::worker::Worker;
use super::agent_choice::{check_agent, explain_nothing_for, no_agent_named};
use super::cancellation::read_cancellation;
use super::cleanup::clean_up_tasks;
use super::plan::NothingReady;
use super::remaining::RemainingTasks;
use super::session_config::{find_effective_config, serves_agents};
use super::session_run::{SessionObserver, read_protected_files, warn_of_idle_hooks};
use super::stale_leases::{expire_stale_leases, start_heartbeat};
use super::work_place::find_grounds;
use crate::caller::Inside;
use crate::context::{Context, Opened};
use crate::person::require_person;
use crate::project::Project;
use crate::recovery::{Reach, settle_and_report};
use crate::workflows::{self, WorkflowSnapshot};
use crate::{Code, Failure, FrontEnd, Notice, agents, execution, hints, store_records};

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
    pub work: Work,
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
    pub grounds: Grounds,
    inside: Inside,
    /// The content of the protected files.
    protected: Option<String>,
    max_iterations: Option<u32>,
    serves_agents: bool,
    /// Whether a person trusts the project's own names and programs, for this command.
    trust: bool,
}

impl WorkerSettings {
    /// Reads the configuration, and checks that it may be used.
    pub fn load(opened: &Opened, max_iterations: Option<u32>) -> Result<Self, Failure> {
        let inside = Inside::look(opened)?;
        let config = Config::parse(inside.written(opened)?)?;
        let told = opened.trust || inside.config.is_some();
        let config = Arc::new(find_effective_config(&*opened.front_end, &opened.project, config, told)?);
        workflows::check_hooks(&opened.project, &config)?;
        let workflows = WorkflowSnapshot::load(&opened.project, &config, opened.trust);
        let serves_agents = serves_agents(opened.trust, &inside, &opened.project, &config)?;
        let grounds = find_grounds(&opened.project, &config)?;
        let protected = read_protected_files(&opened.project, &config)?;
        let trust = opened.trust;
        Ok(Self { config, workflows, grounds, inside, protected, max_iterations, serves_agents, trust })
    }

    /// Returns whether a person, or the run around this one, has trusted the configuration.
    fn is_trusted(&self) -> bool {
        self.trust || self.inside.config.is_some()
    }
}

/// Opens the project of a run with several workers.
pub fn open_project_for_workers(context: &Context) -> Result<Opened, Failure> {
    let opened = context.create(Lifetime::Service)?;
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
    rosters: Vec<Roster>,
    control: Control,
    _heart: Heart,
}

impl<'a> WorkerPool<'a> {
    /// Creates this many workers, unless there is no work to begin with.
    pub fn plan(
        opened: &mut Opened,
        settings: &'a WorkerSettings,
        assignment: &'a AgentAssignment<'a>,
        (count, control): (usize, &Control),
    ) -> Result<PoolPlan<'a>, Failure> {
        check_agents(assignment, &opened.project)?;
        let rosters: Vec<Roster> = (0..count).map(|_| execution::enlist(&opened.project)).collect::<Result<_, _>>()?;
        let heart = start_heartbeat(&rosters, &settings.config)?;
        settle_and_report(opened, control, Reach::BeforeWork)?;
        let sessions = opened.store.snapshot().map_err(hints::store)?.sessions().map_err(hints::store)?;
        if !settings.grounds.is_in_place() {
            clean_up_tasks(opened, &settings.config, (&rosters[0], control))?;
        }
        let left = assignment::find_left_sessions(opened, sessions, settings.grounds);
        if left.is_empty() {
            expire_stale_leases(opened, &settings.config, (&rosters[0], control))?;
            if let Some(nothing) = find_nothing_ready(opened, assignment)? {
                return Ok(PoolPlan::NothingReady(nothing));
            }
        }
        if let Some(id) = assignment.without_agent(&opened.store)? {
            let warning = format!("no agent is named for {id}: it is left alone; `agent:` names one for all tasks");
            opened.front_end.show(Notice::Warning(&warning));
        }
        if count > 1 && settings.grounds.is_in_place() {
            let note = "the workers share one directory: there is no git here, or `worktrees` is off";
            opened.front_end.show(Notice::Note(note));
        }
        warn_of_idle_hooks(opened, &settings.config);
        let (scheduler, control) = (Arc::new(SessionScheduler::new(left)), control.clone());
        Ok(PoolPlan::Pool(Self { settings, assignment, scheduler, rosters, control, _heart: heart }))
    }

    /// Returns the scheduler that all workers share.
    pub fn scheduler(&self) -> &Arc<SessionScheduler> {
        &self.scheduler
    }

    /// Runs all workers to the end.
    pub fn run(&self, place: (&Project, &Arc<dyn FrontEnd>), observer: &dyn WorkerObserver) -> Result<(), Failure> {
        thread::scope(|scope| {
            let mut workers = Vec::new();
            for (number, roster) in self.rosters.iter().enumerate() {
                let work = move || self.worker(number, self.open_for_worker(place)?, roster, observer).work();
                let thread = thread::Builder::new().name(format!("worker {}", number + 1)).spawn_scoped(scope, work);
                match thread {
                    Ok(thread) => workers.push(thread),
                    Err(error) => {
                        self.scheduler.close();
                        return Err(Failure::new(Code::System, "cannot start a thread").caused_by(error));
                    }
                }
            }
            let ended = workers.into_iter().map(|worker| worker.join().expect("a worker that panics has said why"));
            // All threads are joined before the first failure is returned.
            ended.collect::<Vec<_>>().into_iter().collect()
        })
    }

    fn open_for_worker(&self, (project, front_end): (&Project, &Arc<dyn FrontEnd>)) -> Result<Opened, Failure> {
        let (project, trust, front_end) = (project.clone(), self.settings.trust, front_end.clone());
        let store = store_records::open(&project, Lifetime::Service, trust).inspect_err(|_| self.scheduler.close())?;
        Ok(Opened { project, store, trust, front_end })
    }

    fn worker<'w>(
        &'w self,
        number: usize,
        opened: Opened,
        roster: &'w Roster,
        observer: &'w dyn WorkerObserver,
    ) -> Worker<'w> {
        Worker {
            number,
            settings: self.settings,
            assignment: self.assignment,
            scheduler: &self.scheduler,
            opened,
            roster,
            control: self.control.clone(),
            observer,
            supervisor: None,
        }
    }
}

/// Returns a function that cancels the running sessions which the log says are cancelled, and no others.
pub fn cancelled_session_watch(project: &Project, scheduler: &Arc<SessionScheduler>) -> impl Fn() + Send + 'static {
    let (file, scheduler) = (project.store_file(), scheduler.clone());
    move || {
        let cancelled = scheduler.running().into_iter().filter(|(name, _)| read_cancellation(&file, name).is_some());
        cancelled.for_each(|(_, control)| control.call_off());
    }
}

/// Checks the agent that most tasks get, to catch a typing mistake in its name.
fn check_agents(assignment: &AgentAssignment<'_>, project: &Project) -> Result<(), Failure> {
    let settings = &assignment.config.settings;
    let usual = settings.agent.as_ref().map(|agent| agent.as_str());
    match assignment.named.or(usual) {
        Some(name) => check_agent(&agents::resolve(name, settings)?, &project.root, assignment.grounds),
        None => Ok(()),
    }
}

/// Returns why workers have nothing to begin with, if that is so.
fn find_nothing_ready(opened: &Opened, assignment: &AgentAssignment<'_>) -> Result<Option<NothingReady>, Failure> {
    if assignment.find(&opened.store, &Default::default(), &Default::default())?.is_some() {
        return Ok(None);
    }
    if let Some(id) = assignment.without_agent(&opened.store)? {
        return Err(no_agent_named().caused_by(format!("{id} is ready, and nothing says who works on it")));
    }
    if let Some(failure) = assignment.first_lack(&opened.store)? {
        return Err(failure);
    }
    let others = match assignment.named {
        Some(agent) => explain_nothing_for(&opened.store, &assignment.types, agent, assignment.grounds)?,
        None => None,
    };
    let reason = others.unwrap_or_else(|| "nothing is ready".to_owned());
    let remaining = RemainingTasks::find(opened)?.explained_by(|task| assignment.why_not(opened, task));
    Ok(Some(NothingReady { reason, remaining }))
}
