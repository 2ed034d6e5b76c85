//! `windlass run --workers N`: the tasks of the graph, several at a time, each in a session of its own.
//!
//! ```text
//!   what the dead have left ─┐
//!   tasks that are ready ────┴─► crew ─► worker 1 … N, each a thread with its own store, owner and supervisor
//!                                  ▲        │ lines
//!            signals, the log ─────┘        └─► this thread ─► standard output, or the live view
//! ```
//!
//! Invariants:
//! - Each task has one session at a time; which one is decided by the log, whoever else works on the graph.
//! - All of them work with the configuration that there was at the start. Sessions that are taken up keep theirs.
//! - A signal means the same to all of them.
//!
//! Not here: how a session goes (`runner`), who may have which task (`engine`).

mod choosing;
mod crew;
mod post;
mod summary;
mod watch;
mod worker;

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Instant;

use windlass_app::caller::Inside;
use windlass_app::context::{Context, Opened};
use windlass_app::person::require_person;
use windlass_app::project::Project;
use windlass_app::recovery::Reach;
use windlass_app::workflows::{self, WorkflowSnapshot};
use windlass_app::{Failure, agents, execution, hints, store_records};
use windlass_config::Config;
use windlass_engine::{Ending, Grounds, SessionName, View as _};
use windlass_process::{Control, Roster};
use windlass_store::{Lifetime, Sqlite};

use self::choosing::Hands;
use self::crew::{Crew, Sum};
use self::post::Batch;
use self::summary::Summary;
use self::worker::{Look, Worker};
use super::in_place::grounds;
use super::left::Left;
use super::listening::Listening;
use super::live::{Live, View};
use super::tidying::tidy;
use super::{Args, Job, agent, choice, effective_config, serves_agents, settle, silent, system, watched};
use crate::output::{Messages, Output, Stop};
use crate::show;

/// So many batches of lines may wait for a reader before the work does.
const UNREAD: usize = 256;

/// What all workers have in common.
pub struct Place<'a> {
    context: &'a Context,
    inside: Inside,
    config: Arc<Config>,
    workflows: WorkflowSnapshot,
    grounds: Grounds,
    /// What the protected files hold.
    protected: Option<String>,
    max_iterations: Option<u32>,
    serves_agents: bool,
    look: Look,
}

impl Place<'_> {
    /// Whether a person, or whoever runs us, has trusted what is configured.
    fn trusted_here(&self) -> bool {
        self.context.trust || self.inside.config.is_some()
    }
}

pub fn run(context: &Context, args: &Args, count: usize, out: &mut Output) -> Result<u8, Stop> {
    let project = context.project()?;
    let store = store_records::create(&project, Lifetime::Service, context.trust)?;
    let mut opened = context.opened(project, store);
    if context.trust {
        require_person(&opened.project)?;
    }
    let place = prepare(context, args, &opened, out)?;
    let config = &place.config;
    let hands = Hands::new(config, args.agent.as_deref(), place.grounds);
    check_agents(&hands, &opened.project)?;
    let control = Control::new();
    let rosters: Vec<Roster> = (0..count).map(|_| execution::enlist(&opened.project)).collect::<Result<_, _>>()?;
    let _heart = silent::heart(&rosters, config)?;
    settle(&mut opened, &control, Reach::BeforeWork)?;
    let left = take_stock(&mut opened, &place, (&rosters[0], &control))?;
    if left.is_empty() && !is_anything_to_do(&mut opened, &hands, &place, (&rosters[0], &control), out)? {
        return Ok(Left::look(&opened)?.exit());
    }
    if let Some(id) = hands.without_agent(&opened.store)? {
        Messages::new()
            .warning(&format!("no agent is named for {id}: it is left alone; `agent:` names one for all tasks"));
    }
    if count > 1 && place.grounds.is_in_place() {
        Messages::new().note("the workers share one directory: there is no git here, or `worktrees` is off");
    }
    show::warn_of_idle_hooks(config);
    let crew = Arc::new(Crew::new(left));
    let live = watched(out, count)?;
    let view = live.as_ref().map(Live::view);
    let woken = crew.clone();
    let mut listening = Listening::start(&control, view, move || woken.ring())?;
    listening.follow_with(heed(&opened.project, &crew))?;
    let began = Instant::now();
    let floor = Floor { place: &place, hands: &hands, crew: &crew, control: &control, view };
    let worked = floor.work(&opened.project, &rosters, out);
    drop(live);
    let sum = crew.sum();
    let signal = listening.first();
    let took = began.elapsed();
    let summary = Summary { opened: &opened, sum: &sum, took, args, hands: &hands };
    let shown = if out.is_json() { out.object(&summary.to_json()) } else { summary.show(out) };
    if shown.and_then(|()| out.flush()).is_err() {
        out.give_up();
    }
    worked?;
    Ok(exit_code(&sum, signal, control.is_cancelled()))
}

/// Reads the configuration, and checks that it may be used.
fn prepare<'a>(context: &'a Context, args: &Args, opened: &Opened, out: &Output) -> Result<Place<'a>, Failure> {
    let inside = Inside::look(opened)?;
    let config = Config::parse(inside.written(opened)?)?;
    let config =
        effective_config(&*context.front_end, &opened.project, config, context.trust || inside.config.is_some())?;
    let config = Arc::new(config);
    workflows::check_hooks(&opened.project, &config)?;
    let workflows = WorkflowSnapshot::load(&opened.project, &config, context.trust);
    let serves_agents = serves_agents(context, &inside, &opened.project, &config)?;
    let grounds = grounds(&opened.project, &config)?;
    let protected = Job::protected(&opened.project, &config)?;
    let look = Look { json: out.is_json(), palette: out.palette(), columns: out.columns() };
    let max_iterations = args.max_iterations;
    Ok(Place { context, inside, config, workflows, grounds, protected, max_iterations, serves_agents, look })
}

/// A typing mistake in the name of the agent that most tasks get leaves no session behind.
fn check_agents(hands: &Hands<'_>, project: &Project) -> Result<(), Failure> {
    let usual = hands.config.settings.agent.as_ref().map(|agent| agent.as_str());
    match hands.named.or(usual) {
        Some(name) => agent::check(&agents::resolve(name, &hands.config.settings)?, &project.root, hands.grounds),
        None => Ok(()),
    }
}

/// Puts away what is left of tasks that are over, and answers which sessions were left by the dead.
fn take_stock(
    opened: &mut Opened,
    place: &Place<'_>,
    (roster, control): (&Roster, &Control),
) -> Result<Vec<windlass_engine::Session>, Failure> {
    let sessions = opened.store.snapshot().map_err(hints::store)?.sessions().map_err(hints::store)?;
    if !place.grounds.is_in_place() {
        tidy(opened, &place.config, (roster, control))?;
    }
    Ok(choosing::left_by_the_dead(opened, sessions, place.grounds))
}

/// Whether there is anything for workers to begin with; what there is instead is said.
fn is_anything_to_do(
    opened: &mut Opened,
    hands: &Hands<'_>,
    place: &Place<'_>,
    by: (&Roster, &Control),
    out: &mut Output,
) -> Result<bool, Stop> {
    silent::take(opened, &place.config, by)?;
    if hands.find(&opened.store, &Default::default(), &Default::default())?.is_some() {
        return Ok(true);
    }
    if let Some(id) = hands.without_agent(&opened.store)? {
        return Err(agent::none_named().caused_by(format!("{id} is ready, and nothing says who works on it")).into());
    }
    if let Some(failure) = hands.first_lack(&opened.store)? {
        return Err(failure.into());
    }
    let others = match hands.named {
        Some(agent) => choice::nothing_for(&opened.store, &hands.types, agent, hands.grounds)?,
        None => None,
    };
    let said = others.unwrap_or_else(|| "nothing is ready".to_owned());
    Left::look(opened)?.because(|task| hands.why_not(opened, task)).show_nothing_ready(&said, out)?;
    Ok(false)
}

/// Sessions that somebody has cancelled are called off, and no others.
fn heed(project: &Project, crew: &Arc<Crew>) -> impl Fn() + Send + 'static {
    let (file, crew) = (project.store_file(), crew.clone());
    let is_cancelled = move |name: &SessionName| -> Option<bool> {
        let store = Sqlite::open_foreign(&file).ok()?;
        let session = store.snapshot().ok()?.session(name).ok()??;
        Some(session.stopping.is_some_and(|closing| closing.ending == Ending::Cancelled))
    };
    move || {
        let cancelled = crew.running().into_iter().filter(|(name, _)| is_cancelled(name) == Some(true));
        cancelled.for_each(|(_, control)| control.call_off());
    }
}

/// Where they work side by side.
struct Floor<'a> {
    place: &'a Place<'a>,
    hands: &'a Hands<'a>,
    crew: &'a Arc<Crew>,
    control: &'a Control,
    view: Option<&'a View>,
}

impl Floor<'_> {
    /// Has them all work to the end, and writes down what they say.
    fn work(&self, project: &Project, rosters: &[Roster], out: &mut Output) -> Result<(), Failure> {
        let (to, said) = mpsc::sync_channel(UNREAD);
        thread::scope(|scope| {
            let mut workers = Vec::new();
            for (number, roster) in rosters.iter().enumerate() {
                let to = to.clone();
                let work = move || self.worker(number, project, roster, to)?.work();
                let thread = thread::Builder::new().name(format!("worker {}", number + 1)).spawn_scoped(scope, work);
                match thread {
                    Ok(thread) => workers.push(thread),
                    Err(error) => {
                        self.crew.close();
                        return Err(system("cannot start a thread", error));
                    }
                }
            }
            drop(to);
            write_down(&said, out);
            let ended = workers.into_iter().map(|worker| worker.join().expect("a worker that panics has said why"));
            // All of them are waited for; the first failure is told.
            ended.collect::<Vec<_>>().into_iter().collect()
        })
    }

    fn worker<'w>(
        &'w self,
        number: usize,
        project: &Project,
        roster: &'w Roster,
        to: mpsc::SyncSender<Batch>,
    ) -> Result<Worker<'w>, Failure> {
        let store = store_records::open(project, Lifetime::Service, self.place.context.trust).inspect_err(|_| {
            self.crew.close();
        })?;
        Ok(Worker {
            number,
            place: self.place,
            hands: self.hands,
            crew: self.crew,
            opened: self.place.context.opened(project.clone(), store),
            roster,
            control: self.control.clone(),
            view: self.view.map(|view| view.at(number)),
            to,
            supervisor: None,
        })
    }
}

/// What workers say, until the last of them has gone. The work goes on where nobody reads.
fn write_down(said: &Receiver<Batch>, out: &mut Output) {
    let mut closed = false;
    for batch in said {
        if closed {
            continue;
        }
        let written = batch.iter().try_for_each(|line| out.line(line)).and_then(|()| out.flush());
        if written.is_err() {
            closed = true;
            out.give_up();
        }
    }
}

/// What a script that called us gets to know.
fn exit_code(sum: &Sum, signal: Option<i32>, cancelled: bool) -> u8 {
    match signal {
        Some(signal) if cancelled => 128 + u8::try_from(signal).unwrap_or(2),
        _ if sum.paused.is_some() => 1,
        _ if !sum.people.is_empty() || !sum.objections.is_empty() => 4,
        _ if !sum.left.is_empty() || !sum.lost.is_empty() => 3,
        _ => 0,
    }
}
