//! The commands, one module each.

mod agent;
mod answer;
mod backup;
mod change;
mod completions;
mod config;
mod confirm;
mod demo;
mod doctor;
mod events;
mod hook;
pub mod hooks;
mod init;
mod input;
pub mod install;
mod mcp;
mod note;
mod run;
mod say;
mod session;
mod status;
mod task;
mod tool;
mod trust;
mod why;
mod workflow;

use std::path::PathBuf;
use std::sync::Arc;

use clap::Subcommand;
use windlass_app::context::Context;
use windlass_app::person::require_person;
use windlass_app::{Code, Failure, environment};

use crate::args::Invocation;
use crate::front_end::TerminalFrontEnd;
use crate::output::{Output, Stop};

// `defer` builds the arguments of a command only when that command is used.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub enum Command {
    /// A tour of the real loop in a temporary repository: checks that hold, tasks, a crash that costs nothing
    Demo(demo::Args),
    /// Make a project: look around, write a commented configuration, and trust it
    Init(init::Args),
    /// Have an agent work on a goal, a task or whatever is ready, turn by turn, until the work is done
    ///
    /// A goal becomes a task. Without one the tasks that are ready are worked on one by one, most urgent first, until none
    /// is left; one that needs a person is blocked, and the others go on. An agent that fails again and again ends it all.
    /// Every step is in the log before it is taken. After a crash, the same command goes on where it was.
    Run(run::Args),
    /// Where things stand
    Status(status::Args),
    /// Which hook decided what about a task or a session, and on which evidence
    Why(why::Args),
    /// The sessions: those that run, those that were left, those that ended
    #[command(subcommand, visible_alias = "sessions")]
    Session(session::Command),
    /// Say something to the agent of a running session
    Say(say::Args),
    /// Answer a task that waits for a person
    Answer(answer::Args),
    /// The tasks and what they wait for
    #[command(subcommand, visible_alias = "tasks")]
    Task(task::Command),
    /// Work that can be looked at and merged
    #[command(subcommand, visible_alias = "changes")]
    Change(change::Command),
    /// Add and list task notes
    #[command(subcommand, visible_alias = "notes")]
    Note(note::Command),
    /// Everything that happened, oldest first
    Events(events::Args),
    /// What hooks there are and did; stop hooks of tasks
    #[command(subcommand)]
    Hooks(hooks::Command),
    /// Several steps that are taken by themselves
    #[command(subcommand, visible_alias = "workflows")]
    Workflow(workflow::Command),
    /// The bridge: an agent's own hook system calls this
    ///
    /// Reads what the agent says from standard input, runs the project's hooks of that point, and answers as that agent wants
    /// to be answered. Whatever goes wrong, the agent goes on. docs/bridge.md has it all.
    Hook(hook::Args),
    /// The configuration file
    Config(config::Args),
    /// Say whether this project may run its hooks
    Trust(trust::Args),
    /// Have an agent's own hook system call the hooks of this project
    ///
    /// Shows what would be written into the agent's settings, and asks. What is there stays as it is; `windlass uninstall`
    /// takes exactly this away again. docs/install.md has the files.
    Install(install::Args),
    /// Take out of an agent's settings what `windlass install` has written
    Uninstall(install::uninstall::Args),
    /// Look the project and its store over
    Doctor(doctor::Args),
    /// Copy the store while it is in use
    Backup(backup::Args),
    /// Serve the tools over the Model Context Protocol, for agents that drive themselves
    ///
    /// Over standard input and output for the client that started it, or over streamable HTTP for several. docs/mcp.md has
    /// what to write into an agent's settings.
    Mcp(mcp::Args),
    /// List, describe and call the tools of `windlass mcp`
    #[command(subcommand, visible_alias = "tools")]
    Tool(tool::Command),
    /// The scripted agent: speaks the Agent Client Protocol and plays a file
    ///
    /// Any client of the protocol can drive it: `windlass run --agent scripted:FILE` does. docs/scripted.md has the steps that a
    /// script can take.
    Agent(agent::Args),
    /// Completions for a shell
    Completions(completions::Args),
}

impl Command {
    /// Returns whether a person reads the output, rather than an agent's hook system or an MCP client.
    pub fn is_for_people(&self) -> bool {
        !matches!(self, Self::Hook(_) | Self::Mcp(_))
    }
}

/// Runs a command and returns the exit code.
pub fn run(invocation: Invocation, out: &mut Output) -> Result<u8, Stop> {
    let directory = match (environment::working_directory(), &invocation.command) {
        (Ok(directory), _) => directory,
        // The payload of an agent names the directory.
        (Err(_), Command::Hook(_)) => PathBuf::from("/"),
        (Err(error), _) => {
            return Err(Failure::new(Code::System, "cannot find the working directory")
                .caused_by(error)
                .hint("it may have been deleted: change to another one")
                .into());
        }
    };
    let front_end = Arc::new(TerminalFrontEnd::default());
    let context = Context { project: invocation.project, directory, trust: invocation.trust, front_end };
    // A run that resumes a session uses the configuration that was trusted when the session began.
    let is_run = matches!(invocation.command, Command::Run(_));
    if context.trust
        && !is_run
        && let Ok(project) = context.project()
    {
        require_person(&project)?;
    }
    run_in(&context, invocation.command, out)
}

pub fn run_in(context: &Context, command: Command, out: &mut Output) -> Result<u8, Stop> {
    match command {
        Command::Doctor(args) => return doctor::run(context, args, out),
        Command::Run(args) => return run::run(context, args, out),
        Command::Agent(args) => return agent::run(context, args, out),
        Command::Hook(args) => return hook::run(context, args, out),
        Command::Mcp(args) => return mcp::run(context, args, out),
        Command::Demo(args) => return demo::run(args, out),

        Command::Init(args) => init::run(context, args, out).map_err(|stop| match stop {
            Stop::Failed(failure) => failure.without_trust_option().into(),
            Stop::Closed => Stop::Closed,
        }),
        Command::Status(args) => status::run(context, args, out),
        Command::Why(args) => why::run(context, &args, out),
        Command::Session(command) => session::run(context, command, out),
        Command::Say(args) => say::run(context, args, out),
        Command::Answer(args) => answer::run(context, args, out),
        Command::Task(command) => task::run(context, command, out),
        Command::Change(command) => change::run(context, command, out),
        Command::Note(command) => note::run(context, command, out),
        Command::Events(args) => events::run(context, args, out),
        Command::Hooks(command) => hooks::run(context, command, out),
        Command::Workflow(command) => workflow::run(context, command, out),
        Command::Config(args) => config::run(context, args, out),
        Command::Trust(args) => trust::run(context, args, out),
        Command::Install(args) => install::run(context, &args, out),
        Command::Uninstall(args) => install::uninstall::run(context, &args, out),
        Command::Backup(args) => backup::run(context, args, out),
        Command::Tool(command) => tool::run(context, command, out),
        Command::Completions(args) => completions::run(args, out),
    }
    .map(|()| 0)
}
