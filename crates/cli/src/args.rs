//! The command line of the binary.
//!
//! Exit codes here are ours, not clap's: a wrong command line exits with 64, never with 2, which means "blocked" to an agent.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser};
use windlass_app::{Failure, environment};

use crate::commands::Command;
use crate::output::{MessageWriter, Output};
use crate::usage;

/// The maximum width of help in columns.
pub const MAX_HELP_WIDTH: usize = 80;

/// Run a coding agent until your checks pass.
#[derive(Debug, Parser)]
#[command(name = "windlass", version, about, max_term_width = MAX_HELP_WIDTH, after_help = HELP_EXAMPLES)]
#[command(disable_help_subcommand = true, subcommand_required = true, arg_required_else_help = true)]
pub struct CliInvocation {
    /// Use this project [default: $WINDLASS_PROJECT, else nearest .windlass/]
    #[arg(long, global = true, value_name = "DIR", help_heading = "Everywhere")]
    pub project: Option<PathBuf>,
    /// Print JSON: one object, or one object per line
    #[arg(long, global = true, help_heading = "Everywhere")]
    pub json: bool,
    /// Trust the project's configuration and store for this command only
    #[arg(long, global = true, help_heading = "Everywhere")]
    pub trust: bool,
    #[command(subcommand)]
    pub command: Command,
}

const HELP_EXAMPLES: &str = "\
Examples:
  windlass run \"Fix the login\" --agent claude  work until the checks pass
  windlass run                                 work on all ready tasks
  windlass init                                create a project here
  windlass demo                                take a tour of the real loop
  windlass task add \"Fix the login\" --priority 1
  windlass task add \"Release\" --depends T1     waits until T1 is completed
  windlass task ready                          list the tasks that are ready
  windlass events --follow                     watch new events";

/// A command line that clap rejects, or that only asks for help or the version.
pub struct CommandLineError {
    error: clap::Error,
    words: Vec<OsString>,
    json: bool,
}

pub fn parse_command_line() -> Result<(CliInvocation, bool), CommandLineError> {
    let mut words = environment::command_line_arguments();
    if let Some(asked) = find_help_argument(&words) {
        words.remove(asked);
        words.push("--help".into());
    }
    parse_command_line_from(words)
}

/// Returns the position of a `help` that stands where a command could: `windlass help task add`, `windlass task help add`.
fn find_help_argument(words: &[OsString]) -> Option<usize> {
    let place = words.iter().take(3).skip(1).position(|word| word == "help")? + 1;
    let root = build_clap_command();
    let parents =
        words[1..place].iter().all(|word| root.find_subcommand(word).is_some_and(clap::Command::has_subcommands));
    parents.then_some(place)
}

pub fn parse_command_line_from(words: Vec<OsString>) -> Result<(CliInvocation, bool), CommandLineError> {
    let json = words.iter().skip(1).take_while(|word| *word != "--").any(|word| word == "--json");
    let mut command = CliInvocation::command();
    let parsed = command
        .try_get_matches_from_mut(&words)
        .and_then(|mut matches| CliInvocation::from_arg_matches_mut(&mut matches))
        .map_err(|error| error.format(&mut command));
    match parsed {
        Ok(invocation) => {
            let json = invocation.json;
            Ok((invocation, json))
        }
        Err(error) => Err(CommandLineError { error, words, json }),
    }
}

/// Returns the whole command line as clap sees it, for completions and the reference.
pub fn build_clap_command() -> clap::Command {
    let mut command = CliInvocation::command();
    command.build();
    command
}

impl CommandLineError {
    pub fn print_and_exit_code(self) -> ExitCode {
        let asked = matches!(self.error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
        if asked {
            // The reader may have closed the pipe; that is no error for help.
            let _ = self.error.print();
            return ExitCode::SUCCESS;
        }
        let failure = self.to_failure();
        if self.json {
            let mut out = Output::new(true);
            let _ = out.print_json(&failure.to_json()).and_then(|()| out.flush());
        } else if self.error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
            let _ = self.error.print();
        } else {
            MessageWriter::new().print_failure(&failure);
        }
        ExitCode::from(failure.code.exit_code())
    }

    pub fn to_failure(&self) -> Failure {
        usage::usage_failure(&self.error, &self.words)
    }
}
