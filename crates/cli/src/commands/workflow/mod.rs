//! `windlass workflow …`: the commands about workflows.

mod list;
mod run;
mod show;

use clap::Subcommand;
use windlass_app::context::Context;
use windlass_app::project::Project;
use windlass_app::{Code, Failure};
use windlass_config::workflow::WorkflowDefinition;
use windlass_text as text;

use crate::output::{Done, Output, Tone};

#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  windlass workflow list
  windlass workflow show create-review-task
  windlass workflow run create-review-task --task T3")]
pub enum Command {
    /// The workflows of this project, and those that come along
    #[command(visible_alias = "ls")]
    List(list::Args),
    /// One of them, step by step
    Show(show::Args),
    /// Run one now
    Run(run::Args),
}

pub fn run(context: &Context, command: Command, out: &mut Output) -> Done {
    match command {
        Command::List(args) => list::run(context, &args, out),
        Command::Show(args) => show::run(context, &args, out),
        Command::Run(args) => run::run(context, args, out),
    }
}

/// Returns the project, if there is one. Built-in workflows can be shown without a project.
fn project(context: &Context) -> Result<Option<Project>, Failure> {
    match context.project() {
        Ok(project) => Ok(Some(project)),
        Err(failure) if failure.code == Code::NoProject => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Prints every step with all that it would do.
pub fn steps(defined: &WorkflowDefinition, indent: usize, out: &mut Output) -> Done {
    for row in crate::show::workflow::rows(defined) {
        let indent = indent + 2 * row.depth;
        let id = out.paint(Tone::Name, text::line(&row.id));
        out.line(format_args!("{:indent$}{id}  {}", "", text::line(&row.what)))?;
        for line in &row.does {
            // The text is not cut, because a person has to judge all of it.
            out.line(format_args!("{:indent$}    {}", "", text::line(line)))?;
        }
    }
    Ok(())
}
