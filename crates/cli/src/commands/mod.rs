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
mod fleet;
mod hook;
pub mod hooks;
mod init;
mod input;
pub mod install;
mod mcp;
mod note;
mod run;
mod sandbox;
mod say;
mod serve;
mod session;
mod status;
mod task;
mod tool;
mod top;
mod trust;
mod why;
mod workflow;

pub use sandbox::{launch_sandboxed_program, serve_sandbox};

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
    /// Run a tour of gates, tasks and crash recovery
    Demo(demo::Args),
    /// Create a project with a commented configuration, and trust it
    Init(init::Args),
    /// Run an agent on a goal, a task or all ready tasks until done
    ///
    /// A goal becomes a task. Without a goal, Windlass works on the ready tasks one by one, most urgent first, until no
    /// task is ready. A task that needs a person is blocked, and the others continue. An agent that fails repeatedly ends
    /// the run. Every step is in the log before it begins. After a crash, the same command resumes the work.
    Run(run::Args),
    /// Show project status
    Status(status::Args),
    /// Explain the decisions about a task, session, hook or conversation
    Why(why::Args),
    /// List, inspect and cancel sessions
    #[command(subcommand, visible_alias = "sessions")]
    Session(session::Command),
    /// Send a message to the agent of a session
    Say(say::Args),
    /// Answer a task that waits for a person
    Answer(answer::Args),
    /// Add, list and change tasks
    #[command(subcommand, visible_alias = "tasks")]
    Task(task::Command),
    /// List, show and merge changes
    #[command(subcommand, visible_alias = "changes")]
    Change(change::Command),
    /// Add and list task notes
    #[command(subcommand, visible_alias = "notes")]
    Note(note::Command),
    /// Show the event log, oldest first
    Events(events::Args),
    /// List, test and inspect hooks
    #[command(subcommand)]
    Hooks(hooks::Command),
    /// List, show and run workflows
    #[command(subcommand, visible_alias = "workflows")]
    Workflow(workflow::Command),
    /// Answer a call of an agent's own hook system (the bridge)
    ///
    /// Reads the payload of the agent from standard input, runs the project's hooks of that point, and answers in the
    /// format of that agent. If anything fails, the agent continues. docs/reference/bridge.md has the details.
    Hook(hook::Args),
    /// Check, describe and extend the configuration
    Config(config::Args),
    /// Trust the configuration and the store, or revoke the trust
    Trust(trust::Args),
    /// Set up an agent's own hook system to call the project's hooks
    ///
    /// Shows the changes to the agent's settings, and asks. Existing entries stay unchanged; `windlass uninstall` removes
    /// exactly the new entries. docs/reference/bridge.md lists the files.
    Install(install::Args),
    /// Remove from an agent's settings what `windlass install` wrote
    Uninstall(install::uninstall::Args),
    /// Run a program in a sandbox
    ///
    /// The program and its children may write only their own directory and the project. They cannot read passwords, keys,
    /// logins of agents and Windlass's store.
    #[command(subcommand)]
    Sandbox(sandbox::Command),
    /// Check the project and its store, and repair them
    Doctor(doctor::Args),
    /// Copy the store to a file, even while it is in use
    Backup(backup::Args),
    /// Share the project with other machines
    #[command(subcommand)]
    Fleet(fleet::Command),
    /// Serve the web page of the project
    Serve(serve::Args),
    /// Watch and steer agents in the terminal
    Top(top::Args),
    /// Serve the tools over the Model Context Protocol (MCP)
    ///
    /// For agents that drive themselves: over standard input and output for one client, or over streamable HTTP for
    /// several. docs/reference/mcp-tools.md has the entries for agents' settings.
    Mcp(mcp::Args),
    /// List, describe and call MCP tools
    #[command(subcommand, visible_alias = "tools")]
    Tool(tool::Command),
    /// Run a scripted agent over the Agent Client Protocol
    ///
    /// Any client of the protocol can drive it, as `windlass run --agent scripted:FILE` does.
    /// docs/reference/scripted-agent.md lists the steps of a script.
    Agent(agent::Args),
    /// Print shell completions
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
        Command::Fleet(command) => return fleet::run_fleet_command(context, command, out),
        Command::Run(args) => return run::run_work_loop(context, args, out),
        Command::Agent(args) => return agent::run_scripted_agent(context, args, out),
        Command::Hook(args) => return hook::run_agent_hook(context, args, out),
        Command::Sandbox(command) => return sandbox::run_sandbox_command(context, command, out),
        Command::Serve(args) => return serve::run_serve(context, args, out),
        Command::Top(args) => return top::run_top_screen(context, args, out),
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
