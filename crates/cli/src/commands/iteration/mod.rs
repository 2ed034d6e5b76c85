//! `windlass iteration …`: a series of iterations that an agent, or a script around one, runs by itself.

mod start;
mod steps;

use std::path::PathBuf;

use clap::Subcommand;

use super::task::read_text;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::{Done, Output};

#[derive(Debug, Subcommand)]
#[command(
    defer = true,
    after_help = "Examples:
  windlass iteration start T3 --max-iterations 5 --promise COMPLETE --promise BLOCKED
  windlass iteration validate IT-12 --output-file said.txt
  windlass iteration next IT-12
  windlass iteration complete IT-12 COMPLETE

docs/mcp.md has the whole flow."
)]
pub enum Command {
    /// Set out on a series of iterations on a task
    Start(start::Args),
    /// Run the rules of the present iteration, ask the hooks, and say what to do now
    Validate(steps::Validate),
    /// Go on to the next iteration
    Next(steps::Next),
    /// End the series with one of its promises
    Complete(steps::Complete),
}

pub fn run(context: &Context, command: Command, out: &mut Output) -> Done {
    match command {
        Command::Start(args) => start::run(context, args, out),
        Command::Validate(args) => steps::validate(context, &args, out),
        Command::Next(args) => steps::next(context, &args, out),
        Command::Complete(args) => steps::complete(context, &args, out),
    }
}

// What an agent said and changed in an iteration.
#[derive(Debug, clap::Args)]
pub struct Heard {
    /// What the agent said
    #[arg(long, value_name = "TEXT", conflicts_with = "output_file", allow_hyphen_values = true)]
    output: Option<String>,
    /// What the agent said, from a file, or from standard input with `-`
    #[arg(long, value_name = "FILE")]
    output_file: Option<PathBuf>,
    /// A file that it changed; may be given several times
    #[arg(long = "file", value_name = "PATH")]
    files: Vec<String>,
}

impl Heard {
    pub fn output(&self) -> Result<Option<String>, Failure> {
        match &self.output_file {
            Some(file) => read_text(file).map(Some),
            None => Ok(self.output.clone()),
        }
    }

    pub fn files(&self) -> &[String] {
        &self.files
    }
}
