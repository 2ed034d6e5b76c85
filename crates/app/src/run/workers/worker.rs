//! A worker: takes a task or an unfinished session, runs it to its end, and takes the next one.

use std::sync::Arc;

use windlass_agents::Agent;
use windlass_config::{Config, plan};
use windlass_engine::{
    Command, NewSession, NextAction, OwnerName, RetryLimitAction, Session, SessionEndKind, SessionName, SessionTerms,
    StateView as _, Task, TaskId, WorkSource,
};
use windlass_process::{OwnerLock, ProgramSupervisor, RunControl};
use windlass_runner::{EffectRunner, RunError, Runner, RunnerEnv};
use windlass_store::{ExecuteError, SqliteStore};

use super::super::recorded_config::{check_config_trust, read_recorded_config};
use super::super::session_choice::tally_session;
use super::super::session_run::{count_runner_event, session_origin, session_runner_settings};
use super::super::session_tally::SessionTally;
use super::super::stale_leases::expire_stale_leases;
use super::assignment::{AgentAssignment, find_orphaned_sessions};
use super::log_watch::watch_log;
use super::scheduler::{NextJob, SessionResult, SessionScheduler};
use super::{PoolProgress, WorkerObserver, WorkerSession, WorkerSettings};
use crate::context::OpenedProject;
use crate::resume_command::ResumeCommand;
use crate::unchecked_work::find_skipped_check;
use crate::{Failure, Notice, environment, execution, gatekeepers, hints, runner_settings};

/// A worker, on a thread of its own.
pub struct Worker<'a> {
    pub number: usize,
    pub settings: &'a WorkerSettings,
    pub assignment: &'a AgentAssignment<'a>,
    pub scheduler: &'a Arc<SessionScheduler>,
    pub opened: OpenedProject,
    /// In a fleet, the name by which this worker chooses among the next tasks.
    pub spread: Option<String>,
    pub owner_lock: &'a OwnerLock,
    pub control: RunControl,
    pub observer: &'a dyn WorkerObserver,
    pub supervisor: Option<ProgramSupervisor>,
}

/// A task or a session for a worker.
pub enum WorkerJob {
    New(Box<Task>, SessionName),
    Resume(Box<Session>),
}

impl WorkerJob {
    fn session_name(&self) -> &SessionName {
        match self {
            Self::New(_, name) => name,
            Self::Resume(session) => &session.name,
        }
    }

    fn task_id(&self) -> Option<TaskId> {
        match self {
            Self::New(task, _) => Some(task.id),
            Self::Resume(session) => session.task,
        }
    }

    fn describe_session<'t>(&'t self, task: Option<&'t Task>) -> WorkerSession<'t> {
        match self {
            Self::New(..) => WorkerSession { task, work: WorkSource::Given, resumed: None },
            Self::Resume(session) => WorkerSession { task, work: session.work, resumed: Some(session) },
        }
    }

    /// Returns whether a start was refused because the task or the session has changed since it was chosen: another process was
    /// faster. Any other refusal would come again.
    pub fn is_stale(&self, store: &SqliteStore, error: &RunError) -> Result<bool, Failure> {
        let RunError::Execute(ExecuteError::Refused(_)) = error else { return Ok(false) };
        let snapshot = store.begin_snapshot().map_err(hints::store_failure)?;
        let session = snapshot.find_session(self.session_name()).map_err(hints::view_failure)?;
        Ok(match self {
            Self::New(chosen, _) => {
                let task = snapshot.find_task(chosen.id).map_err(hints::view_failure)?;
                session.is_some() || task.is_none_or(|task| task.version != chosen.version)
            }
            Self::Resume(chosen) => session.is_none_or(|session| session.owner != chosen.owner || session.is_over()),
        })
    }
}

/// A job with everything that it needs.
struct PreparedJob {
    job: WorkerJob,
    agent: Agent,
    config: Arc<Config>,
    begin: Command,
    tally: SessionTally,
}

impl Worker<'_> {
    /// Works until nothing is left. After a failure no worker takes anything more.
    pub fn work_until_over(mut self) -> Result<(), Failure> {
        let worked = self.take_and_run_jobs();
        if worked.is_err() {
            self.scheduler.close_for_new_jobs();
        }
        worked
    }

    fn take_and_run_jobs(&mut self) -> Result<(), Failure> {
        self.show_progress()?;
        while let Some(job) = self.next_job()? {
            self.show_progress()?;
            let (name, task) = (job.session_name().clone(), job.task_id());
            let ready = match self.prepare_job(job) {
                Ok(Some(ready)) => ready,
                Ok(None) => {
                    self.scheduler.release_job(task);
                    continue;
                }
                Err(failure) => {
                    self.scheduler.release_job(task);
                    return Err(failure);
                }
            };
            let ran = self.run_job(ready);
            self.observer.clear_session(self.number);
            match ran {
                Ok(Some(result)) => self.scheduler.finish_session(&name, result),
                Ok(None) => self.scheduler.release_job(task),
                Err(failure) => {
                    self.scheduler.release_job(task);
                    return Err(failure);
                }
            }
            self.show_progress()?;
        }
        Ok(())
    }

    /// Returns the next job, and waits for it while other workers work. Returns `None` when the run is over.
    fn next_job(&mut self) -> Result<Option<WorkerJob>, Failure> {
        loop {
            if self.control.is_cancelled() {
                self.scheduler.close_for_new_jobs();
                return Ok(None);
            }
            let find = |busy: &_, left: &_| {
                let found = self.assignment.find_next_task(&self.opened.store, busy, left, self.spread.as_deref())?;
                Ok::<_, Failure>(found.map(|(task, name)| (task.id, WorkerJob::New(Box::new(task), name))))
            };
            let wakes = match self.scheduler.take_job(|session| WorkerJob::Resume(Box::new(session)), find)? {
                NextJob::Do(job) => return Ok(Some(job)),
                NextJob::Over => return Ok(None),
                NextJob::Nothing(wakes) => wakes,
            };
            let taken = expire_stale_leases(&mut self.opened, &self.settings.config, (self.owner_lock, &self.control))?;
            if taken > 0
                || self.scheduler.offer_sessions(find_orphaned_sessions(&self.opened, self.settings.workspace_mode)?)
            {
                continue;
            }
            // Another process may have taken a task meanwhile.
            self.show_progress()?;
            watch_log(self.scheduler, &self.opened.project)?;
            if !self.scheduler.wait_for_wake(wakes) {
                return Ok(None);
            }
        }
    }

    fn prepare_job(&self, job: WorkerJob) -> Result<Option<PreparedJob>, Failure> {
        let (config, tally) = match &job {
            WorkerJob::New(..) => (self.settings.config.clone(), SessionTally::default()),
            WorkerJob::Resume(session) => {
                let text = read_recorded_config(&self.opened.store, session)?;
                let config = Config::from_source(execution::recorded_config_source(&self.opened.project, &text))?;
                check_config_trust(&self.opened.project, &config, Some(session), self.settings.is_trusted())?;
                (Arc::new(config), tally_session(&self.opened.store, session)?)
            }
        };
        let owner = execution::owner_name(self.owner_lock);
        let (agent, begin) = match &job {
            WorkerJob::New(task, name) => {
                let agent = self.assignment.resolve_agent_for(task, self.number)?;
                let begin = self.start_session_command(task, name, &agent, owner)?;
                (agent, begin)
            }
            WorkerJob::Resume(session) => {
                let Some(agent) = self.assignment.resolve_session_agent(session, self.opened.trust)? else {
                    let said = format!("session `{}` was started with `{}`", session.name, session.agent);
                    let again = ResumeCommand::for_session(&self.opened, session).describe_in_sentence("resumes it");
                    self.opened.front_end.show_notice(Notice::Note(&format!("{said}; {again}")));
                    return Ok(None);
                };
                let (name, dead) = (session.name.clone(), session.owner.clone());
                (agent, Command::ResumeSession { name, dead, owner, max_iterations: self.settings.max_iterations })
            }
        };
        Ok(Some(PreparedJob { job, agent, config, begin, tally }))
    }

    fn start_session_command(
        &self,
        task: &Task,
        name: &SessionName,
        agent: &Agent,
        owner: OwnerName,
    ) -> Result<Command, Failure> {
        let config = self.assignment.config;
        let terms = plan::session_terms(config, self.settings.max_iterations);
        // A question would block a worker, and the task with it.
        let on_retry_limit = match terms.on_retry_limit {
            RetryLimitAction::Ask => RetryLimitAction::Escalate,
            other => other,
        };
        Ok(Command::StartSession(NewSession {
            name: name.clone(),
            task: Some(task.id),
            goal: None,
            work: WorkSource::Given,
            workspace_mode: self.settings.workspace_mode,
            config: config.text().to_string(),
            protected: self.settings.protected.clone(),
            agent: agent.to_string(),
            terms: SessionTerms { on_retry_limit, ..terms },
            owner,
            nonce: execution::random_nonce()?,
            fresh: false,
        }))
    }

    /// Runs a session to its end. Returns `None` if another process was faster.
    fn run_job(&mut self, ready: PreparedJob) -> Result<Option<SessionResult>, Failure> {
        let PreparedJob { job, agent, config, begin, mut tally } = ready;
        let name = job.session_name().clone();
        let control = self.control.with_own_cancel();
        let owner = execution::owner_name(self.owner_lock);
        let gatekeepers = gatekeepers::resolve_gatekeepers(&config, &agent, &self.opened.project.root)?.0;
        let workflows = (&config, &self.settings.workflows);
        let settings = session_runner_settings(
            &self.opened,
            workflows,
            &owner,
            (&name, gatekeepers, self.settings.serves_agents),
        )?;
        let earlier_turns = tally.turns;
        let task = job.task_id().map(|id| self.opened.require_task(id)).transpose()?;
        let mut observer = self.observer.observe_session(self.number, &job.describe_session(task.as_ref()));
        let shows_output = observer.shows_output();
        let outside = RunnerEnv {
            now: &environment::steady_timestamp,
            random: &execution::random_u128_or_io_error,
            observe: &mut |event| {
                count_runner_event(&mut tally, &event);
                observer.observe_event(event);
            },
            shows_output,
        };
        let allowance = runner_settings::turn_allowance(&config, &agent);
        let supervisor = self.supervisor.take();
        let dispatch = EffectRunner::new(&mut self.opened.store, settings, self.owner_lock, control.clone(), outside);
        let mut runner =
            Runner::new(dispatch.map_err(hints::run_failure)?.with_supervisor(supervisor), agent, allowance);
        if let Err(error) = runner.commit_and_report(&session_origin(&owner, self.settings.inside.via), &begin) {
            self.supervisor = runner.into_supervisor();
            return if job.is_stale(&self.opened.store, &error)? { Ok(None) } else { Err(hints::run_failure(error)) };
        }
        self.scheduler.begin_session(&name, &control);
        let ended = runner.run_session(&name);
        self.supervisor = runner.into_supervisor();
        drop(observer);
        let killed = match ended {
            Err(RunError::Killed) => true,
            ended => {
                ended.map_err(hints::run_failure)?;
                false
            }
        };
        let session = self.opened.require_session(&name)?;
        let result = self.build_result(&session, &tally, killed)?;
        Ok(Some(SessionResult { task: job.task_id(), turns: result.turns - earlier_turns, ..result }))
    }

    fn build_result(&self, session: &Session, tally: &SessionTally, killed: bool) -> Result<SessionResult, Failure> {
        let failed = session.ending_kind() == Some(SessionEndKind::Error)
            && !session.task.is_some_and(|id| session.released_tasks.contains(&id));
        let not_started = match (failed, session.task) {
            (true, Some(id)) => {
                Some(self.opened.require_task(id)?.reason.unwrap_or_else(|| "the agent could not work".to_owned()))
            }
            // A stop hook that is broken for one task is broken for the next one.
            (false, Some(id)) if session.broken_gate => {
                self.opened.require_task(id)?.blocked.map(|blocked| blocked.reason)
            }
            // The same holds for a gatekeeper that could not be started.
            (false, Some(id)) if session.released_tasks.contains(&id) => {
                let task = self.opened.require_task(id)?;
                let unstarted = task.stalled.is_some_and(|stalled| stalled.unstarted);
                task.reason.filter(|_| unstarted)
            }
            _ => None,
        };
        let mut people = session.escalated.clone();
        // A session that asks keeps its task until a person answers.
        people.extend(session.task.filter(|_| session.next_action() == NextAction::Answer));
        let lost = session
            .lost_tasks
            .iter()
            .map(|lost| Ok((lost.task, lost.describe_loss(&self.opened.require_task(lost.task)?))));
        let lost = lost.collect::<Result<_, Failure>>()?;
        Ok(SessionResult {
            task: session.task,
            done: tally.completed.iter().filter_map(|id| id.parse().ok()).collect(),
            left: session.released_tasks.clone(),
            people,
            objection: find_objection(session, tally),
            lost,
            unchecked: session.unchecked,
            skipped_check: find_skipped_check(&self.opened.store, session)?,
            turns: tally.turns,
            used: session.watch.used,
            not_started,
            killed,
        })
    }

    /// Shows the progress of all workers.
    fn show_progress(&self) -> Result<(), Failure> {
        if !self.observer.shows_progress() {
            return Ok(());
        }
        let snapshot = self.opened.store.begin_snapshot().map_err(hints::store_failure)?;
        let counts = snapshot.count_tasks_by_state().map_err(hints::store_failure)?;
        let mut ready: u64 = counts.iter().filter(|(state, _)| state.is_claimable()).map(|(_, count)| count).sum();
        for id in self.scheduler.unavailable_tasks() {
            let task = snapshot.find_task(id).map_err(hints::view_failure)?;
            ready = ready.saturating_sub(task.is_some_and(|task| task.state.is_claimable()).into());
        }
        let totals = self.scheduler.copy_totals();
        let left = totals.left.len() + totals.people.len() + totals.lost.len();
        self.observer.show_progress(PoolProgress { done: totals.done.len(), left, ready });
        Ok(())
    }
}

/// Returns the task that a session has completed although a hook asks for a person, with the reason.
fn find_objection(session: &Session, tally: &SessionTally) -> Option<(TaskId, String)> {
    // If tasks of the graph are blocked, the reason is about them.
    let is_objected =
        session.ending_kind() == Some(SessionEndKind::Escalated) && session.finished && session.escalated.is_empty();
    let reason = tally.ending_reason.clone().unwrap_or_else(|| "a person is needed".to_owned());
    session.task.filter(|_| is_objected).map(|task| (task, reason))
}
