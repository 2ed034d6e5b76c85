//! `windlass run`: has an agent work until the work is done.
//!
//! ```text
//! project, configuration, trust ─► which session: a new one, or one that was left ─► runner ─► exit code
//! ```

mod choice;
pub mod plan;
mod progress;

use std::path::Path;
use std::{fs, io};

use windlass_agents::{CommandAgent, ParseAgentError};
use windlass_engine::{Command, Ending, Limits, NewSession, OwnerName, SessionName};
use windlass_process::{Control, Launcher, Roster, signals, sweep};
use windlass_runner::{Outside, RunError, Runner, Settings};
use windlass_store::{Lifetime, Sqlite};

use self::choice::Choice;
use self::progress::Progress;
use super::init;
use crate::SUPERVISE;
use crate::config::Config;
use crate::context::Context;
use crate::environment;
use crate::failure::{Code, Failure};
use crate::output::{Messages, Output, Stop};
use crate::project::{self, Project};
use crate::remedy;
use crate::trust::{self, Trust};

/// Have an agent work on a goal, turn by turn, until the work is done.
///
/// Every step is in the log before it is taken. After a crash, the same command goes on where it was.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass run \"Fix the login\" --agent \"command:claude -p\"     prompt on stdin, answer on stdout
  windlass run \"Fix the login\" --max-iterations 5              with the configuration's agent
  windlass run \"Fix the login\" --fresh                         anew, though one was left

The same command again after a crash goes on with the same session.

Exit codes:
  0 complete   1 error   3 ended without completion   4 a person is needed   64 usage, configuration or trust
  130, 143, 129 ended by SIGINT, SIGTERM, SIGHUP")]
pub struct Args {
    /// What is to be done
    #[arg(value_name = "GOAL")]
    goal: String,
    /// Who does it: `command:CMD` [default: the configuration's `agent`]
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
    /// Trust the project's configuration for this command alone
    #[arg(long)]
    trust: bool,
}

pub fn run(context: &Context, args: Args, out: &mut Output) -> Result<u8, Stop> {
    if args.goal.trim().is_empty() {
        return Err(Failure::new(Code::Usage, "the goal is empty").hint("say what is to be done").into());
    }
    if args.goal.len() > Limits::GOAL {
        let most = Limits::GOAL / 1024;
        return Err(Failure::new(Code::Usage, format!("the goal is longer than {most} KiB"))
            .hint("put the rest into a file, and name the file in the goal")
            .into());
    }
    let named = args.agent.as_deref().map(parse_agent).transpose()?;
    let project = found_or_made(context, named.is_some())?;
    let store = Sqlite::create(&project.store_file(), Lifetime::Service).map_err(remedy::store)?;
    let choice = choice::choose(&store, &args, &project.owners())?;
    let config = configuration(&project, &store, &choice)?;
    check_trust(&project, &config, &choice, args.trust)?;
    plan::check_gates(&config)?;
    let agent = named.map_or_else(|| unnamed_agent(&choice, &config, args.trust), Ok)?;

    // After the choice, because whoever was just killed has to be seen to be dead.
    sweep(&project.owners()).map_err(|error| system("cannot end what an earlier run has left", error))?;
    let roster = Roster::enlist(&project.owners(), nonce()?).map_err(|error| {
        let place = project.owners();
        system(&format!("cannot make a file in `{}`", place.display()), error)
            .hint("check whose directory it is, and whether it can be written to")
    })?;
    let owner: OwnerName = roster.name().parse().expect("digits and dashes make a name");
    let begin = begin(&choice, &args, &config, &agent, &owner)?;
    let settings = settings(&project, &config, agent, &owner, choice.name())?;
    let control = Control::new();
    let received =
        signals::install(&control, asked_to_end).map_err(|error| system("cannot listen to signals", error))?;
    let mut progress = Progress::new(out, shown_directory(context, &project));
    let outside = Outside {
        now: &environment::now,
        random: &|| environment::random().map_err(io::Error::other),
        tell: &mut |told| progress.tell(told),
    };
    let mut runner = Runner::new(store, settings, &roster, control, outside).map_err(failure)?;
    runner.give(&begin).map_err(failure)?;
    match runner.run(choice.name()) {
        Err(RunError::Killed) => Ok(exit_code(Ending::Cancelled, received.first())),
        ending => Ok(exit_code(ending.map_err(failure)?, received.first())),
    }
}

/// Whoever asks for the end hears at once that it was understood.
fn asked_to_end(times: u32) {
    match times {
        1 => Messages::new()
            .note("ending: the turn is given up, and what is pending is said; once more ends everything now"),
        2 => {}
        // Something that nobody reads any more holds us. What we have started ends with us.
        #[expect(clippy::disallowed_methods, reason = "no guard can run while the main thread hangs")]
        _ => std::process::exit(130),
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

/// The project around, or one without a configuration, made here for an agent that is named.
fn found_or_made(context: &Context, has_agent: bool) -> Result<Project, Failure> {
    let (place, found) = match (&context.project, environment::project()) {
        (Some(named), _) => {
            let place = context.directory.join(named);
            let found = Project::at(&place)?;
            (place, found)
        }
        // What a variable names is somebody else's to make.
        (None, Some(_)) => return context.project(),
        (None, None) => (context.directory.clone(), project::around(&context.directory)?),
    };
    match found {
        Some(project) => Ok(project),
        None if has_agent && place.is_dir() => init::prepare_bare(&place),
        None if context.project.is_some() => context.project(),
        None => Err(no_agent()),
    }
}

/// What the session works with: the configuration that it was started with, else the present one.
fn configuration(project: &Project, store: &Sqlite, choice: &Choice) -> Result<Config, Failure> {
    let Choice::Resume(session) = choice else { return Config::load(project) };
    let text = choice::recorded(store, session)?;
    let config = if text.is_empty() { Config::absent(project) } else { Config::of(&project.config_file(), &text)? };
    if Config::load(project).is_ok_and(|present| present.text() != text) {
        Messages::new().note("the configuration has changed; this session goes on with the one that it started with");
    }
    Ok(config)
}

/// A configuration that would run something needs a person's trust.
fn check_trust(project: &Project, config: &Config, choice: &Choice, given: bool) -> Result<(), Failure> {
    if given || config.effectful_hooks().is_empty() && config.settings.agent.is_none() {
        return Ok(());
    }
    let state = trust::state(project, config)?;
    if state == Trust::Trusted {
        return Ok(());
    }
    let failure = Failure::new(Code::Trust, "this project may not run what its configuration says");
    let older = Config::load(project).is_ok_and(|present| present.text() != config.text());
    Err(match (choice, state) {
        (Choice::Resume(session), _) if older => failure
            .caused_by(format!("session `{}` works with an older configuration than the trusted one", session.name))
            .hint("--trust goes on with that one, for this command alone; --fresh starts anew with the present one"),
        (_, Trust::Changed) => failure.caused_by("it has changed since it was trusted").hint(HOW_TO_TRUST),
        _ => failure.caused_by("nobody has trusted it yet").hint(HOW_TO_TRUST),
    })
}

const HOW_TO_TRUST: &str = "`windlass trust` shows what would run and asks; --trust allows it for this command alone";

/// The agent that a session was started with, else the configuration's. What only the project's own store says is not
/// believed: somebody else may have put it there.
fn unnamed_agent(choice: &Choice, config: &Config, trusted: bool) -> Result<CommandAgent, Failure> {
    let configured = config.settings.agent.as_ref().map(|agent| agent.as_str());
    match (choice, &config.settings.agent) {
        (Choice::Resume(session), _) if trusted || configured == Some(session.agent.as_str()) => {
            parse_agent(&session.agent)
        }
        (Choice::Resume(session), _) => Err(Failure::new(Code::Trust, "no agent is named")
            .caused_by(format!("session `{}` works with `{}`", session.name, session.agent))
            .hint("name it again with --agent, or say --trust if that is what you want to run")),
        (Choice::New(_), Some(agent)) => parse_agent(agent),
        (Choice::New(_), None) => Err(no_agent()),
    }
}

fn no_agent() -> Failure {
    Failure::new(Code::Usage, "no agent is named")
        .hint("--agent command:CMD names one; CMD gets the prompt on standard input")
}

fn parse_agent(name: &str) -> Result<CommandAgent, Failure> {
    name.parse().map_err(|error: ParseAgentError| {
        Failure::from_error(Code::Usage, &error)
            .hint("this version drives `command:CMD`: any program that reads a prompt and prints its answer")
    })
}

/// The command that starts a session, or goes on with one.
fn begin(
    choice: &Choice,
    args: &Args,
    config: &Config,
    agent: &CommandAgent,
    owner: &OwnerName,
) -> Result<Command, Failure> {
    Ok(match choice {
        Choice::New(name) => Command::StartSession(NewSession {
            name: name.clone(),
            task: None,
            goal: Some(args.goal.clone()),
            config: config.text().to_owned(),
            agent: agent.to_string(),
            terms: plan::terms(config, args.max_iterations),
            owner: owner.clone(),
            nonce: nonce()?,
        }),
        Choice::Resume(session) => Command::ResumeSession {
            name: session.name.clone(),
            dead: session.owner.clone(),
            owner: owner.clone(),
            max_iterations: args.max_iterations,
        },
    })
}

fn settings(
    project: &Project,
    config: &Config,
    agent: CommandAgent,
    owner: &OwnerName,
    session: &SessionName,
) -> Result<Settings, Failure> {
    let records = project.records().join(session.as_str());
    for directory in [&project.records(), &records] {
        make_directory(directory)
            .map_err(|error| system(&format!("cannot make the directory `{}`", directory.display()), error))?;
    }
    let launcher = Launcher::own(SUPERVISE).map_err(|error| system("cannot find this very program", error))?;
    plan::warn_of_unused(config);
    Ok(Settings {
        agent,
        hooks: plan::hooks(config),
        rules: plan::rules(config, owner)?,
        // A goal is worked on in place.
        directory: project.root.clone(),
        records,
        environment: environment::inherited(),
        launcher,
    })
}

/// A directory that is there, or is made. A link in its place may lead anywhere.
fn make_directory(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match fs::symlink_metadata(path)?.is_dir() {
            true => Ok(()),
            false => Err(io::Error::other("there is something else in its place")),
        },
        made => made,
    }
}

fn nonce() -> Result<u64, Failure> {
    let random = environment::random()
        .map_err(|error| Failure::new(Code::System, "cannot get random bytes").caused_by(error))?;
    Ok(u64::try_from(random & u128::from(u64::MAX)).expect("it was cut to size"))
}

fn failure(error: RunError) -> Failure {
    match error {
        RunError::Execute(error) => remedy::execute(error),
        RunError::Store(error) => remedy::store(error),
        RunError::View(error) => remedy::view(error),
        other => Failure::from_error(Code::System, &other),
    }
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
