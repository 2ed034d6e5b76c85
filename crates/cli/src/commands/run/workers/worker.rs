//! One of several workers: takes a task or a session that was left, runs it to its end, and takes the next one.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Instant;

use windlass_agents::Agent;
use windlass_app::context::Opened;
use windlass_app::{Failure, environment, execution, gatekeepers, hints, runner_settings};
use windlass_config::{Config, plan};
use windlass_engine::{
    Authority, Command, Ending, NewSession, OnRetryLimit, Origin, OwnerName, Session, SessionName, Task, TaskId, Terms,
    View as _, Wanted, Work,
};
use windlass_process::{Control, Roster, Supervisor};
use windlass_runner::{Delivery, Dispatch, Outside, RunError, Runner, Settings};
use windlass_store::ExecuteError;

use super::super::again::Again;
use super::super::live::{Totals, View};
use super::super::progress::Progress;
use super::super::tally::Tally;
use super::super::{check_trust, choice, silent};
use super::choosing::{Hands, orphaned};
use super::crew::{Came, Crew, Next};
use super::post::{Batch, Post};
use super::{Place, watch};
use crate::output::{Messages, Palette};
use crate::show;

pub struct Worker<'a> {
    pub number: usize,
    pub place: &'a Place<'a>,
    pub hands: &'a Hands<'a>,
    pub crew: &'a Arc<Crew>,
    pub opened: Opened,
    pub roster: &'a Roster,
    pub control: Control,
    pub view: Option<View>,
    pub to: SyncSender<Batch>,
    pub supervisor: Option<Supervisor>,
}

/// How what happens is written down.
#[derive(Clone, Copy)]
pub struct Look {
    pub json: bool,
    pub palette: Palette,
    pub columns: Option<usize>,
}

/// What a worker is to do.
enum Job {
    New(Box<Task>, SessionName),
    Resume(Box<Session>),
}

impl Job {
    fn name(&self) -> &SessionName {
        match self {
            Self::New(_, name) => name,
            Self::Resume(session) => &session.name,
        }
    }

    fn task(&self) -> Option<TaskId> {
        match self {
            Self::New(task, _) => Some(task.id),
            Self::Resume(session) => session.task,
        }
    }
}

/// A job with all that it takes.
struct Ready {
    job: Job,
    agent: Agent,
    config: Arc<Config>,
    begin: Command,
    tally: Tally,
}

impl Worker<'_> {
    /// Works until nothing is left. Whatever goes wrong, the others hear that this one takes nothing more.
    pub fn work(mut self) -> Result<(), Failure> {
        let worked = self.work_on();
        if worked.is_err() {
            self.crew.close();
        }
        worked
    }

    fn work_on(&mut self) -> Result<(), Failure> {
        self.count()?;
        while let Some(job) = self.next()? {
            self.count()?;
            let (name, task) = (job.name().clone(), job.task());
            let ready = match self.ready(job) {
                Ok(Some(ready)) => ready,
                Ok(None) => {
                    self.crew.missed(task);
                    continue;
                }
                Err(failure) => {
                    self.crew.missed(task);
                    return Err(failure);
                }
            };
            let ran = self.run(ready);
            self.view.as_ref().inspect(|view| view.clear_seat());
            match ran {
                Ok(Some(came)) => self.crew.done(&name, came),
                Ok(None) => self.crew.missed(task),
                Err(failure) => {
                    self.crew.missed(task);
                    return Err(failure);
                }
            }
            self.count()?;
        }
        Ok(())
    }

    /// What to do next; waits for it while others work. None when it is over.
    fn next(&mut self) -> Result<Option<Job>, Failure> {
        loop {
            if self.control.is_cancelled() {
                self.crew.close();
                return Ok(None);
            }
            let find = |busy: &_, left: &_| {
                let found = self.hands.find(&self.opened.store, busy, left)?;
                Ok::<_, Failure>(found.map(|(task, name)| (task.id, Job::New(Box::new(task), name))))
            };
            let rings = match self.crew.take(|session| Job::Resume(Box::new(session)), find)? {
                Next::Do(job) => return Ok(Some(job)),
                Next::Over => return Ok(None),
                Next::Nothing(rings) => rings,
            };
            let taken = silent::take(&mut self.opened, &self.place.config, (self.roster, &self.control))?;
            if taken > 0 || self.crew.offer(orphaned(&self.opened, self.place.grounds)?) {
                continue;
            }
            // Somebody may have taken something since it was last counted.
            self.count()?;
            watch::start(self.crew, &self.opened.project)?;
            if !self.crew.wait(rings) {
                return Ok(None);
            }
        }
    }

    fn ready(&self, job: Job) -> Result<Option<Ready>, Failure> {
        let (config, tally) = match &job {
            Job::New(..) => (self.place.config.clone(), Tally::default()),
            Job::Resume(session) => {
                let text = choice::recorded(&self.opened.store, session)?;
                let config = Config::parse(execution::recorded(&self.opened.project, &text))?;
                check_trust(&self.opened.project, &config, Some(session), self.place.trusted_here())?;
                (Arc::new(config), choice::earlier(&self.opened.store, session)?)
            }
        };
        let owner = execution::owner_name(self.roster);
        let (agent, begin) = match &job {
            Job::New(task, name) => {
                let agent = self.hands.agent(task, self.number)?;
                let begin = self.start(task, name, &agent, owner)?;
                (agent, begin)
            }
            Job::Resume(session) => {
                let Some(agent) = self.hands.agent_of(session, self.place.context.trust)? else {
                    let said = format!("session `{}` was started with `{}`", session.name, session.agent);
                    let again = Again::with_session(&self.opened, session).said("goes on with it");
                    Messages::new().note(&format!("{said}; {again}"));
                    return Ok(None);
                };
                let (name, dead) = (session.name.clone(), session.owner.clone());
                (agent, Command::ResumeSession { name, dead, owner, max_iterations: self.place.max_iterations })
            }
        };
        Ok(Some(Ready { job, agent, config, begin, tally }))
    }

    fn start(&self, task: &Task, name: &SessionName, agent: &Agent, owner: OwnerName) -> Result<Command, Failure> {
        let config = self.hands.config;
        let terms = plan::terms(config, self.place.max_iterations);
        // One question would hold a worker up, and the task with it.
        let on_retry_limit = match terms.on_retry_limit {
            OnRetryLimit::Ask => OnRetryLimit::Escalate,
            other => other,
        };
        Ok(Command::StartSession(NewSession {
            name: name.clone(),
            task: Some(task.id),
            goal: None,
            work: Work::Given,
            grounds: self.place.grounds,
            config: config.text().to_string(),
            protected: self.place.protected.clone(),
            agent: agent.to_string(),
            terms: Terms { on_retry_limit, ..terms },
            owner,
            nonce: execution::nonce()?,
            fresh: false,
        }))
    }

    /// Runs a session to its end. None where somebody else was quicker.
    fn run(&mut self, ready: Ready) -> Result<Option<Came>, Failure> {
        let Ready { job, agent, config, begin, tally } = ready;
        let name = job.name().clone();
        let control = self.control.apart();
        let settings = super::super::settings(
            (&self.opened.project, self.opened.trust),
            (&config, &self.place.workflows),
            &execution::owner_name(self.roster),
            &name,
        )?;
        let delivery = Delivery {
            gatekeepers: gatekeepers::resolve(&config, &agent, &self.opened.project.root)?.0,
            ..settings.delivery.clone()
        };
        let permission = runner_settings::permission(&config, runner_settings::standing(self.place.serves_agents));
        let settings = Settings { permission, delivery, ..settings };
        let Look { json, palette, columns } = self.place.look;
        let mut post = Post { json, palette, columns, to: self.to.clone(), batch: Batch::new() };
        let view = self.view.as_ref();
        let work = if let Job::Resume(session) = &job { session.work } else { Work::Given };
        let earlier_turns = tally.turns;
        let mut progress = Progress::new(&mut post, view, tally, work);
        progress.about = Some(job.task().map(|task| task.to_string()).unwrap_or_default());
        let outside = Outside {
            now: &environment::steady_now,
            random: &execution::random_bytes,
            tell: &mut |told| progress.tell(told),
            // There is one row for each of them, and none for what they write.
            shows_output: false,
        };
        if let (Some(view), Job::Resume(session)) = (view, &job) {
            self.show_resumed(view, session)?;
        }
        let allowance = runner_settings::turn_allowance(&config, &agent);
        let supervisor = self.supervisor.take();
        let dispatch = Dispatch::new(&mut self.opened.store, settings, self.roster, control.clone(), outside);
        let mut runner = Runner::new(dispatch.map_err(hints::run)?.under(supervisor), agent, allowance);
        let by = execution::owner_name(self.roster).to_string();
        let via = self.place.inside.via;
        let origin = Origin { by, at: environment::steady_now(), authority: Authority::Person, run: None, via };
        if let Err(error) = runner.begin(&origin, &begin) {
            self.supervisor = runner.retire();
            return if self.is_stale(&job, &error)? { Ok(None) } else { Err(hints::run(error)) };
        }
        self.crew.begin(&name, &control);
        let ended = runner.run(&name);
        self.supervisor = runner.retire();
        let tally = progress.tally;
        let killed = match ended {
            Err(RunError::Killed) => true,
            ended => {
                ended.map_err(hints::run)?;
                false
            }
        };
        let session = self.opened.session(&name)?;
        let came = self.came(&session, &tally, killed)?;
        Ok(Some(Came { task: job.task(), turns: came.turns - earlier_turns, ..came }))
    }

    fn came(&self, session: &Session, tally: &Tally, killed: bool) -> Result<Came, Failure> {
        let failed =
            session.ended() == Some(Ending::Error) && !session.task.is_some_and(|id| session.left.contains(&id));
        let not_started = match (failed, session.task) {
            (true, Some(id)) => {
                Some(self.opened.task(id)?.reason.unwrap_or_else(|| "the agent could not work".to_owned()))
            }
            // A stop hook that is broken for one task is broken for the next one.
            (false, Some(id)) if session.broken_gate => self.opened.task(id)?.blocked.map(|blocked| blocked.reason),
            // So is a gatekeeper that could not be started.
            (false, Some(id)) if session.left.contains(&id) => {
                let task = self.opened.task(id)?;
                let unstarted = task.stalled.is_some_and(|stalled| stalled.unstarted);
                task.reason.filter(|_| unstarted)
            }
            _ => None,
        };
        let mut people = session.escalated.clone();
        // One that asks keeps its task until somebody answers.
        people.extend(session.task.filter(|_| session.wanted() == Wanted::Answer));
        let lost = session.lost.iter().map(|lost| Ok((lost.task, lost.in_words(&self.opened.task(lost.task)?))));
        let lost = lost.collect::<Result<_, Failure>>()?;
        Ok(Came {
            task: session.task,
            done: tally.completed.iter().filter_map(|id| id.parse().ok()).collect(),
            left: session.left.clone(),
            people,
            objection: find_objection(session, tally),
            lost,
            unchecked: session.unchecked,
            skipped_check: show::unchecked::find_skipped_check(&self.opened.store, session)?,
            turns: tally.turns,
            used: session.watch.used,
            not_started,
            killed,
        })
    }

    /// Whether somebody else has the task or the session now, so that it is not for us.
    fn is_stale(&self, job: &Job, error: &RunError) -> Result<bool, Failure> {
        let RunError::Execute(ExecuteError::Refused(_)) = error else { return Ok(false) };
        let snapshot = self.opened.store.snapshot().map_err(hints::store)?;
        let session = snapshot.session(job.name()).map_err(hints::view)?;
        Ok(match job {
            Job::New(task, _) => {
                let task = snapshot.task(task.id).map_err(hints::view)?;
                session.is_some() || !task.is_some_and(|task| task.state.is_claimable() && task.lease.is_none())
            }
            Job::Resume(chosen) => session.is_none_or(|session| session.owner != chosen.owner || session.is_over()),
        })
    }

    fn show_resumed(&self, view: &View, session: &Session) -> Result<(), Failure> {
        let task = session.task.map(|id| self.opened.task(id)).transpose()?;
        let at = Instant::now();
        view.change(|area| {
            area.taken_up(session.watch.lasted);
            task.iter().for_each(|task| area.take_up(task));
            area.iteration = session.iteration;
            area.begin(at, "session", "is taken up");
        });
        Ok(())
    }

    /// Shows whoever watches how far all of them are.
    fn count(&self) -> Result<(), Failure> {
        let Some(view) = &self.view else { return Ok(()) };
        let snapshot = self.opened.store.snapshot().map_err(hints::store)?;
        let counts = snapshot.counts().map_err(hints::store)?;
        let mut ready: u64 = counts.iter().filter(|(state, _)| state.is_claimable()).map(|(_, count)| count).sum();
        for id in self.crew.aside() {
            let task = snapshot.task(id).map_err(hints::view)?;
            ready = ready.saturating_sub(task.is_some_and(|task| task.state.is_claimable()).into());
        }
        let sum = self.crew.sum();
        view.count(Totals { done: sum.done.len(), left: sum.left.len() + sum.people.len() + sum.lost.len(), ready });
        Ok(())
    }
}

/// Returns the task that a session has completed and ended for a person all the same, with the reason.
fn find_objection(session: &Session, tally: &Tally) -> Option<(TaskId, String)> {
    // With blocked tasks of the graph the reason is about them.
    let is_objected = session.ended() == Some(Ending::Escalated) && session.finished && session.escalated.is_empty();
    let reason = tally.ending_reason.clone().unwrap_or_else(|| "a person is needed".to_owned());
    session.task.filter(|_| is_objected).map(|task| (task, reason))
}
