//! The commands, one module each.

mod agent;
mod answer;
mod backup;
mod change;
mod completions;
mod config;
mod confirmation;
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
use windlass_app::context::CommandContext;
use windlass_app::person::require_person;
use windlass_app::{Failure, FailureCode, environment};

use crate::args::CliInvocation;
use crate::front_end::TerminalFrontEnd;
use crate::output::{EarlyExit, Output};

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
    /// to be answered. Whatever goes wrong, the agent goes on. docs/reference/bridge.md has the
    /// details.
    Hook(hook::Args),
    /// The configuration file
    Config(config::Args),
    /// Say whether this project may run its hooks
    Trust(trust::Args),
    /// Have an agent's own hook system call the hooks of this project
    ///
    /// Shows what would be written into the agent's settings, and asks. What is there stays as it is; `windlass uninstall`
    /// takes exactly this away again. docs/reference/bridge.md lists the files.
    Install(install::Args),
    /// Take out of an agent's settings what `windlass install` has written
    Uninstall(install::uninstall::Args),
    /// Look the project and its store over
    Doctor(doctor::Args),
    /// Copy the store while it is in use
    Backup(backup::Args),
    /// Serve the tools over the Model Context Protocol, for agents that drive themselves
    ///
    /// Over standard input and output for the client that started it, or over streamable HTTP for several.
    /// docs/reference/mcp-tools.md has the entries for agents' settings.
    Mcp(mcp::Args),
    /// List, describe and call the tools of `windlass mcp`
    #[command(subcommand, visible_alias = "tools")]
    Tool(tool::Command),
    /// The scripted agent: speaks the Agent Client Protocol and plays a file
    ///
    /// Any client of the protocol can drive it: `windlass run --agent scripted:FILE` does.
    /// docs/reference/scripted-agent.md has the steps that a script can take.
    Agent(agent::Args),
    /// Completions for a shell
    Completions(completions::Args),
}

impl Command {
    /// Returns whether a person reads the output, rather than an agent's hook system or an MCP client.
    pub fn is_read_by_person(&self) -> bool {
        !matches!(self, Self::Hook(_) | Self::Mcp(_))
    }
}

/// Runs a command and returns the exit code.
pub fn run_invocation(invocation: CliInvocation, out: &mut Output) -> Result<u8, EarlyExit> {
    let directory = match (environment::working_directory(), &invocation.command) {
        (Ok(directory), _) => directory,
        // The payload of an agent names the directory.
        (Err(_), Command::Hook(_)) => PathBuf::from("/"),
        (Err(error), _) => {
            return Err(Failure::new(FailureCode::System, "cannot find the working directory")
                .with_cause(error)
                .with_hint("it may have been deleted: change to another one")
                .into());
        }
    };
    let front_end = Arc::new(TerminalFrontEnd::default());
    let context = CommandContext { project: invocation.project, directory, trust: invocation.trust, front_end };
    // A run that resumes a session uses the configuration that was trusted when the session began.
    let is_run = matches!(invocation.command, Command::Run(_));
    if context.trust
        && !is_run
        && let Ok(project) = context.find_project()
    {
        require_person(&project)?;
    }
    run_command(&context, invocation.command, out)
}

pub fn run_command(context: &CommandContext, command: Command, out: &mut Output) -> Result<u8, EarlyExit> {
    match command {
        Command::Doctor(args) => return doctor::run_doctor(context, args, out),
        Command::Run(args) => return run::run_work_loop(context, args, out),
        Command::Agent(args) => return agent::run_scripted_agent(context, args, out),
        Command::Hook(args) => return hook::run_agent_hook(context, args, out),
        Command::Mcp(args) => return mcp::run_mcp_server(context, args, out),
        Command::Demo(args) => return demo::run_demo(args, out),

        Command::Init(args) => init::run_init(context, args, out).map_err(|stop| match stop {
            EarlyExit::Failed(failure) => failure.without_trust_option().into(),
            EarlyExit::Closed => EarlyExit::Closed,
        }),
        Command::Status(args) => status::run_status(context, args, out),
        Command::Why(args) => why::run_why(context, &args, out),
        Command::Session(command) => session::run_session_command(context, command, out),
        Command::Say(args) => say::run_say(context, args, out),
        Command::Answer(args) => answer::run_answer(context, args, out),
        Command::Task(command) => task::run_task_command(context, command, out),
        Command::Change(command) => change::run_change_command(context, command, out),
        Command::Note(command) => note::run_note_command(context, command, out),
        Command::Events(args) => events::run_events(context, args, out),
        Command::Hooks(command) => hooks::run_hooks_command(context, command, out),
        Command::Workflow(command) => workflow::run_workflow_command(context, command, out),
        Command::Config(args) => config::run_config_command(context, args, out),
        Command::Trust(args) => trust::run_trust(context, args, out),
        Command::Install(args) => install::run_install(context, &args, out),
        Command::Uninstall(args) => install::uninstall::run_uninstall(context, &args, out),
        Command::Backup(args) => backup::run_backup(context, args, out),
        Command::Tool(command) => tool::run_tool_command(context, command, out),
        Command::Completions(args) => completions::run_completions(args, out),
    }
    .map(|()| 0)
}
