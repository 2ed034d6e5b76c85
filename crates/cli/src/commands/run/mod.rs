//! `windlass run`: has an agent work until the work is done.
//!
//! ```text
//! project, configuration, trust ─► which session: a new one, or one that was left ─► runner ─► exit code
//! ```

mod again;
mod agent;
mod asking;
mod changed;
mod choice;
mod configuration;
pub mod in_place;
mod left;
mod listening;
mod live;
mod notices;
mod paper;
mod progress;
mod resolution;
mod silent;
mod summary;
mod tally;
mod tidying;
mod wish;
mod workers;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use windlass_agents::Agent;
use windlass_app::workflows::WorkflowSnapshot;
use windlass_app::{recovery, runner_settings};
use windlass_engine::{
    Authority, Command, Ending, Grounds, NewSession, Origin, OwnerName, Rules, SessionName, TaskId, TypeName, Types,
};
use windlass_process::Control;
use windlass_runner::{Delivery, Dispatch, Gatekeepers, Outside, RunError, Runner, Settings};
use windlass_store::{Lifetime, Sqlite};

pub use self::again::{Again, quoted};
use self::asking::{Asked, Person};
use self::choice::Choice;
use self::configuration::{check_trust, effective_config, serves_agents, session_config};
use self::in_place::Whereabouts;
use self::left::{Left, WhyNot};
use self::listening::Listening;
use self::live::{Live, View};
use self::progress::Progress;
use self::summary::Over;
use self::tally::Tally;
use self::wish::Wish;
pub use self::wish::waits_for;
use super::init;
use crate::output::{Messages, Output, Stop};
use crate::show;
use windlass_app::caller::Inside;
use windlass_app::context::{Context, Opened};
use windlass_app::gatekeepers::Unjudged;
use windlass_app::person::require_person;
use windlass_app::project;
use windlass_app::project::Project;
use windlass_app::recovery::Reach;
use windlass_app::{Code, Failure};
use windlass_app::{SUPERVISE, agents, environment, execution, gatekeepers, hints, store_records, workflows};
use windlass_config as config;
use windlass_config::Config;
use windlass_config::plan;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass run \"Fix the login\" --agent claude                  a known agent
  windlass run \"Fix the login\" --agent \"acp:goose acp\"         one that speaks the Agent Client Protocol
  windlass run \"Fix the login\" --agent \"command:claude -p\"     prompt on stdin, answer on stdout
  windlass run \"Fix the login\" --max-iterations 5              with the configuration's agent
  windlass run \"Fix the login\" --fresh                         anew, though one was left
  windlass run --task T3                                       one task of the graph
  windlass run --resolve T3                                    have its agent resolve a conflict
  windlass run                                                 every task that is ready, and what becomes so
  windlass run --workers 4                                     the same, four tasks at a time

The same command again after a crash goes on with the same session.

Exit codes:
  0 complete   1 error   3 ended without completion   4 a person is needed   64 usage, configuration or trust
  130, 143, 129 ended by SIGINT, SIGTERM, SIGHUP")]
pub struct Args {
    /// What is to be done [default: the tasks that are ready]
    #[arg(value_name = "GOAL")]
    goal: Option<String>,
    /// Work on this task
    #[arg(long, value_name = "ID", conflicts_with = "goal")]
    task: Option<TaskId>,
    /// Work on this task again: its change conflicts with the base
    #[arg(long, value_name = "ID", conflicts_with_all = ["goal", "task"])]
    resolve: Option<TaskId>,
    /// Who does it: a known agent such as `claude`, a name of `agents:`, `acp:CMD`, `command:CMD` or `scripted:FILE`
    /// [default: the configuration's `agent`]
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// How many iterations there may be [default: the configuration's, else 25]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..))]
    max_iterations: Option<u32>,
    /// The session's name [default: made from the goal]
    #[arg(long, value_name = "NAME")]
    session: Option<SessionName>,
    /// Start a new session even where one was left unfinished
    #[arg(long)]
    fresh: bool,
    /// Work on so many of the ready tasks at a time, 1 to 64, each in a session of its own
    #[arg(long, value_name = "N", conflicts_with_all = ["goal", "task", "resolve", "session", "fresh"],
          allow_negative_numbers = true, value_parser = worker_count)]
    workers: Option<u8>,
}

/// How many workers somebody may ask for.
fn worker_count(text: &str) -> Result<u8, String> {
    let count = text.parse().ok().filter(|count| (1..=64).contains(count));
    count.ok_or_else(|| "it is a number from 1 to 64".to_owned())
}

/// So many runs lie within each other at most: an agent may call `windlass run`, whose agent may call it again.
const NESTED: usize = 3;

/// Refuses a run that lies within too many others, in whatever project. Each has its agent under a supervisor, and an agent
/// can take variables away, but not its parents.
fn check_nesting() -> Result<(), Failure> {
    if windlass_process::supervisors_above(SUPERVISE) < NESTED {
        return Ok(());
    }
    Err(Failure::new(
        Code::Refused,
        format!("{NESTED} programs of Windlass lie within each other already; a run within them is refused"),
    )
    .hint("`windlass task add` leaves work for a run that comes after this one"))
}

pub fn run(context: &Context, args: Args, out: &mut Output) -> Result<u8, Stop> {
    check_nesting()?;
    if let Some(workers) = args.workers {
        return workers::run(context, &args, workers.into(), out);
    }
    let wish = Wish::of(&args)?;
    let named = args.agent.as_deref();
    let project = match wish {
        Wish::Goal(_) => found_or_made(context, named)?,
        Wish::Task(_) | Wish::Graph => context.project()?,
    };
    if Sqlite::is_unmade(&project.store_file()) {
        // A run that is refused leaves nothing behind.
        effective_config(&*context.front_end, &project, Config::load(&project.root)?, context.trust)?;
    }
    let store = store_records::create(&project, Lifetime::Service, context.trust)?;
    let mut opened = context.opened(project, store);
    // Before a session is named after it.
    let goal = args.goal.as_deref().map(|goal| as_seen(&opened, goal)).transpose()?;
    let args = Args { goal, task: args.task.or(args.resolve), ..args };
    let wish = Wish::of(&args)?;
    let named = args.agent.as_deref();
    let mut stage = None;
    if !matches!(wish, Wish::Goal(_)) {
        silent::take_over(&mut opened)?;
    }
    loop {
        let choice = choice::choose(&opened, &args, wish)?;
        if let (Choice::New(_), Wish::Graph) = (&choice, wish)
            && !choice::is_anything_ready(&opened.store)?
        {
            tidying::tidy_for_nobody(&mut opened, context)?;
            let left = Left::look(&opened)?;
            left.show_nothing_ready("nothing is ready", out)?;
            return Ok(left.exit());
        }
        if context.trust && choice.resumed().is_none() {
            require_person(&opened.project)?;
        }
        let inside = Inside::look(&opened)?;
        let config = Arc::new(session_config(&opened, &inside, &choice)?);
        workflows::check_hooks(&opened.project, &config)?;
        let workflows = WorkflowSnapshot::load(&opened.project, &config, context.trust);
        let listed = agent::listed(&opened.store, wish, &config)?;
        let agent = agent::chosen(named, &choice, (&config, listed.as_deref()), context.trust)?;
        let place = Whereabouts::of(wish, choice.resumed(), &opened, &config)?;
        agent::check(&agent, &opened.project.root, place.grounds)?;
        if place.grounds.is_in_place() {
            in_place::warn_of_others(&opened, choice.name())?;
        }
        let (gatekeepers, unjudged) = match place.is_unjudged {
            true => (Gatekeepers::default(), Unjudged::new()),
            false => gatekeepers::resolve(&config, &agent, &opened.project.root)?,
        };
        let types = plan::types(&config);
        if let (Choice::New(_), Wish::Graph) = (&choice, wish)
            && let Some(said) = choice::nothing_for(&opened.store, &types, &agent.name, place.grounds)?
        {
            tidying::tidy_for_nobody(&mut opened, context)?;
            let why_not =
                WhyNot { opened: &opened, grounds: place.grounds, types: &types, held_back: &BTreeMap::new() };
            let left = Left::look(&opened)?.for_others(why_not, &agent.name);
            left.show_nothing_ready(&said, out)?;
            return Ok(left.exit());
        }
        let types = types.without(unjudged.keys().cloned().collect());
        let held_back = unjudged.iter().map(|(kind, failure)| (kind.clone(), failure.message.clone())).collect();
        choice::check_judges(&opened.store, wish, (&types, unjudged), &agent.name)?;
        if stage.is_none() {
            stage = Some(Stage::set(out)?);
        }
        let stage = stage.as_mut().expect("it was just set");
        let with = Equipment { config, workflows, gatekeepers, types, held_back, grounds: place.grounds };
        let session = Run { context, args: &args, wish, choice, inside, agent, with };
        if let Some(code) = session.finish(&mut opened, stage, out)? {
            return Ok(code);
        }
        // Somebody was quicker, and has begun the session that was meant: this is about another one.
    }
}

/// Who watches, and who is listened to.
struct Stage {
    control: Control,
    live: Option<Live>,
    listening: Listening,
}

impl Stage {
    fn set(out: &mut Output) -> Result<Self, Stop> {
        let control = Control::new();
        let live = watched(out, 0)?;
        let listening = Listening::start(&control, live.as_ref().map(Live::view), || {})?;
        Ok(Self { control, live, listening })
    }
}

/// A session that can be run.
struct Run<'a> {
    context: &'a Context,
    args: &'a Args,
    wish: Wish<'a>,
    choice: Choice,
    inside: Inside,
    agent: Agent,
    with: Equipment,
}

/// What a session works with.
struct Equipment {
    config: Arc<Config>,
    /// Those that its hooks run.
    workflows: WorkflowSnapshot,
    gatekeepers: Gatekeepers,
    types: Types,
    /// Types that are left alone, each with why.
    held_back: BTreeMap<TypeName, String>,
    grounds: Grounds,
}

impl Run<'_> {
    /// The answer is the exit code, or nothing where somebody else has begun the session at this very moment.
    fn finish(self, opened: &mut Opened, stage: &mut Stage, out: &mut Output) -> Result<Option<u8>, Stop> {
        let Self { context, args, wish, choice, inside, agent, with } = self;
        let Equipment { config, workflows, gatekeepers, types, held_back, grounds } = with;
        let control = &stage.control;
        let view = stage.live.as_ref().map(Live::view);
        stage.listening.follow(&opened.project, control, choice.name(), view)?;
        // After the choice, because whoever was just killed has to be seen to be dead.
        settle(opened, control, Reach::BeforeSession(choice.name()))?;

        let roster = execution::enlist(&opened.project)?;
        let _heart = silent::heart(std::slice::from_ref(&roster), &config)?;
        let owner: OwnerName = roster.name().parse().expect("digits and dashes make a name");
        let job = Job { project: &opened.project, config: &config, agent: &agent, owner: &owner, grounds };
        let left = choice::left_task(&opened.store, args, wish)?;
        let begin = job.begin(&choice, wish, left, args)?;
        let delivers = !grounds.is_in_place();
        show::warn_of_idle_hooks(&config);
        let trusted = serves_agents(context, &inside, &opened.project, &config)?;
        let settings = settings((&opened.project, opened.trust), (&config, &workflows), &owner, choice.name())?;
        let delivery = Delivery { gatekeepers, ..settings.delivery.clone() };
        let rules = Rules { types: types.clone(), ..settings.rules };
        let settings = Settings {
            permission: runner_settings::permission(&config, runner_settings::standing(trusted)),
            delivery,
            rules,
            ..settings
        };
        let tally = tally(opened, &choice, &config, view)?;
        let person = (asking::has_terminal() && !out.is_json()).then_some(Person { view });
        let work = choice.work(wish);
        let mut progress = Progress::new(out, view, tally, work);
        progress.directory = shown_directory(context, &opened.project);
        let outside = Outside {
            now: &environment::steady_now,
            random: &execution::random_bytes,
            tell: &mut |told| progress.tell(told),
            shows_output: view.is_some(),
        };
        let (project, records) = (opened.project.clone(), settings.records.clone());
        let in_use = execution::worktrees_in_use(opened)?;
        let resolved = args.resolve.filter(|_| matches!(choice, Choice::New(_)));
        let offered = resolved
            .map(|id| resolution::OfferedCommands::find(opened, id).map(|offered| (id, offered)))
            .transpose()?;
        let mut dispatch =
            Dispatch::new(&mut opened.store, settings, &roster, control.clone(), outside).map_err(hints::run)?;
        // In place there is nothing to do with changes.
        if delivers {
            dispatch.note_landed(&in_use).map_err(hints::run)?;
        }
        let allowance = runner_settings::turn_allowance(&config, &agent);
        let mut runner = Runner::new(dispatch, agent, allowance);
        let (by, at) = (owner.to_string(), environment::steady_now());
        let origin = Origin { by, at, authority: Authority::Person, run: None, via: inside.via };
        let taken_up = match offered {
            Some((id, offered)) => resolution::take_up(&mut runner, id, (&types, &begin), &offered)?.then_some(id),
            None => None,
        };
        if let Err(error) = runner.begin(&origin, &begin) {
            drop(runner);
            if choice.is_stale(&opened.store)? {
                return Ok(None);
            }
            taken_up.into_iter().for_each(resolution::tell_taken_up);
            return Err(hints::run(error).into());
        }
        if delivers {
            runner.sweep(&in_use).map_err(hints::run)?;
        }
        if let Choice::New(_) = choice {
            changed::remember(&project, &records);
        }
        let ending = turn_on(&mut runner, choice.name(), control, person)?;
        drop(runner);
        let tally = progress.tally;
        // The rows below go before anything else is written.
        drop(stage.live.take());
        let (name, agent, killed) = (choice.name(), args.agent.as_deref(), ending.is_none());
        let (control, why_not) = (&stage.control, WhyNot { opened, grounds, types: &types, held_back: &held_back });
        let over = Over { opened, name, tally, roster: &roster, control, agent, killed, why_not };
        if over.show(out).and_then(|()| out.flush()).is_err() {
            // What is done counts, not who sees it.
            out.give_up();
        }
        Ok(Some(exit_code(ending.unwrap_or(Ending::Cancelled), stage.listening.first())))
    }
}

/// Takes over the hooks that other commands have left behind when they died.
fn settle(opened: &mut Opened, control: &Control, reach: Reach<'_>) -> Result<(), Failure> {
    let done = recovery::settle_dead(opened, control, reach)?;
    if done.hooks > 0 {
        Messages::new().note(&format!("hooks that a dead command had left: {}", done.hooks));
    }
    if done.sessions > 0 {
        Messages::new().note(&format!("cancelled sessions that were ended: {}", done.sessions));
    }
    let untrusted = done.untrusted;
    if untrusted > 0 {
        Messages::new().warning(&format!(
            "hooks that a dead command has left under a configuration that is not trusted now: {untrusted}; \
             `windlass doctor --settle --trust` runs them"
        ));
    }
    Ok(())
}

/// A live view, where a person watches.
fn watched(out: &mut Output, seats: usize) -> Result<Option<Live>, Stop> {
    if !out.is_watched() {
        return Ok(None);
    }
    // From now on lines go to the terminal past this buffer.
    out.flush()?;
    let live = Live::start(out.palette(), seats).map_err(|error| system("cannot start a thread", error))?;
    Ok(Some(live))
}

/// What the session has come to so far. Its clock in the live view goes on from there.
fn tally(opened: &Opened, choice: &Choice, config: &Config, view: Option<&View>) -> Result<Tally, Failure> {
    let tally = match choice {
        Choice::New(_) => Tally::default(),
        Choice::Resume(session) => choice::earlier(&opened.store, session)?,
    };
    if let Some(view) = view {
        view.change(|area| {
            if let Choice::Resume(session) = choice {
                area.taken_up(session.watch.lasted);
                area.used = session.watch.used;
            }
            area.time = config.settings.limits.wall_time.as_ref().map(|time| time.duration());
        });
    }
    Ok(tally)
}

/// Turns until the session is over, or asks a person who is not there. `None` where everything was ended at once.
fn turn_on(
    runner: &mut Runner<'_>,
    name: &SessionName,
    control: &Control,
    person: Option<Person<'_>>,
) -> Result<Option<Ending>, Failure> {
    loop {
        let ending = match runner.run(name) {
            Err(RunError::Killed) => return Ok(None),
            ending => ending.map_err(hints::run)?,
        };
        match asking::ask(runner, name, control, person)? {
            Some(Asked::Answered) => {}
            Some(Asked::Unanswered) | None => {
                runner.part();
                return Ok(Some(ending));
            }
        }
    }
}

/// Where the work is done, if that is not where the command was given.
fn shown_directory(context: &Context, project: &Project) -> Option<String> {
    let here = context.directory.canonicalize().is_ok_and(|directory| directory == project.root);
    (!here).then(|| project.root.to_string_lossy().into_owned())
}

fn system(what: &str, error: io::Error) -> Failure {
    Failure::new(Code::System, what).caused_by(error)
}

/// The project around, or one without a configuration, made for an agent that is named and can be started: in the
/// repository around, or here.
fn found_or_made(context: &Context, agent: Option<&str>) -> Result<Project, Failure> {
    let (place, found) = match (&context.project, environment::project()) {
        (Some(named), _) => {
            let place = context.directory.join(named);
            let found = Project::at(&place)?;
            (place, found)
        }
        // What a variable names is somebody else's to make.
        (None, Some(_)) => return context.project(),
        (None, None) => (project::root_for_new(&context.directory), project::around(&context.directory)?),
    };
    match found {
        Some(project) => Ok(project),
        None => match agent.filter(|_| place.is_dir()) {
            Some(agent) => {
                let agent = agents::resolve(agent, &config::Settings::default())?;
                agent::check(&agent, &place, Grounds::InPlace)?;
                init::prepare_bare(&place)
            }
            None if context.project.is_some() => context.project(),
            None => Err(agent::none_named()),
        },
    }
}

/// A goal without secrets. Where nobody knows them, no session is started either.
fn as_seen(opened: &Opened, goal: &str) -> Result<String, Failure> {
    let config = Config::parse(Inside::look(opened)?.written(opened)?);
    Ok(config.map(|config| runner_settings::mask(&config).text(goal).into_owned()).unwrap_or_else(|_| goal.to_owned()))
}

/// What a session is run with.
struct Job<'a> {
    project: &'a Project,
    config: &'a Config,
    agent: &'a Agent,
    owner: &'a OwnerName,
    grounds: Grounds,
}

impl Job<'_> {
    /// The command that starts a session, or goes on with one.
    fn begin(&self, choice: &Choice, wish: Wish<'_>, left: Option<TaskId>, args: &Args) -> Result<Command, Failure> {
        Ok(match choice {
            Choice::New(name) => Command::StartSession(NewSession {
                name: name.clone(),
                task: args.task.or(left),
                goal: args.goal.clone(),
                work: wish.work(),
                grounds: self.grounds,
                config: self.config.text().to_string(),
                protected: Self::protected(self.project, self.config)?,
                agent: self.agent.to_string(),
                terms: plan::terms(self.config, args.max_iterations),
                owner: self.owner.clone(),
                nonce: execution::nonce()?,
                fresh: args.fresh,
            }),
            Choice::Resume(session) => Command::ResumeSession {
                name: session.name.clone(),
                dead: session.owner.clone(),
                owner: self.owner.clone(),
                max_iterations: args.max_iterations,
            },
        })
    }

    /// What the protected files hold before anybody works on them.
    fn protected(project: &Project, config: &Config) -> Result<Option<String>, Failure> {
        let protected = runner_settings::protected_files(config).hiding(runner_settings::mask(config));
        if protected.is_empty() {
            return Ok(None);
        }
        let look = protected.look(&project.root).map_err(|error| {
            let failure = Failure::new(Code::Config, "cannot watch the files under `protected`");
            let hint = error.hint();
            let failure = failure.caused_by(error);
            if let Some(hint) = hint { failure.hint(hint) } else { failure }
        });
        look.map(Some)
    }
}

fn settings(
    (project, trust): (&Project, bool),
    (config, workflows): (&Arc<Config>, &WorkflowSnapshot),
    owner: &OwnerName,
    session: &SessionName,
) -> Result<Settings, Failure> {
    let records = project.make_records(session.as_str())?;
    let launcher = runner_settings::launcher()?;
    let rules = plan::session_rules(config, owner)?;
    let settings = runner_settings::settings((project, trust), config, rules, records, Some(launcher));
    Ok(Settings { prompt: config.prompt()?, workflows: workflows.finder(), ..settings })
}

/// What a script that called us gets to know.
fn exit_code(ending: Ending, signal: Option<i32>) -> u8 {
    match (ending, signal) {
        (Ending::Completed, _) => 0,
        (Ending::Error, _) => 1,
        (Ending::Limit, _) => 3,
        // It was cancelled before, and left before its end.
        (Ending::Cancelled, None) => 3,
        (Ending::Escalated, _) => 4,
        (Ending::Cancelled, Some(signal)) => 128 + u8::try_from(signal).unwrap_or(2),
    }
}
