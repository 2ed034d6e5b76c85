//! `windlass workflow …`: the commands about workflows.

mod list;
mod run;
mod show;

use clap::Subcommand;
use windlass_app::context::CommandContext;
use windlass_app::project::Project;
use windlass_app::{Failure, FailureCode};
use windlass_config::workflow::WorkflowDefinition;
use windlass_text as text;

use crate::output::{CommandResult, Output, TextTone};

#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  windlass workflow list
  windlass workflow show create-review-task
  windlass workflow run create-review-task --task T3")]
pub enum Command {
    /// List the workflows of the project and the built-in ones
    #[command(visible_alias = "ls")]
    List(list::Args),
    /// Show a workflow, step by step
    Show(show::Args),
    /// Run a workflow now
    Run(run::Args),
}

pub fn run_workflow_command(context: &CommandContext, command: Command, out: &mut Output) -> CommandResult {
    match command {
        Command::List(args) => list::run_workflow_list(context, &args, out),
        Command::Show(args) => show::run_workflow_show(context, &args, out),
        Command::Run(args) => run::run_workflow_now(context, args, out),
    }
}

/// Returns the project, if there is one. Built-in workflows can be shown without a project.
fn find_optional_project(context: &CommandContext) -> Result<Option<Project>, Failure> {
    match context.find_project() {
        Ok(project) => Ok(Some(project)),
        Err(failure) if failure.code == FailureCode::NoProject => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Prints every step with all that it would do.
pub fn print_steps(defined: &WorkflowDefinition, indent: usize, out: &mut Output) -> CommandResult {
    for row in crate::show::workflow::build_step_rows(defined) {
        let indent = indent + 2 * row.depth;
        let id = out.paint(TextTone::Name, text::clean_line(&row.id));
        out.print_line(format_args!("{:indent$}{id}  {}", "", text::clean_line(&row.what)))?;
        for line in &row.does {
            // The text is not cut, because a person has to judge all of it.
            out.print_line(format_args!("{:indent$}    {}", "", text::clean_line(line)))?;
        }
    }
    Ok(())
}
