//! `windlass workflow show`: prints one workflow.

use serde_json::json;
use windlass_app::context::CommandContext;
use windlass_app::workflows;
use windlass_text as text;

use crate::output::{CommandResult, Output, TextTone};
use crate::show;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass workflow show create-review-task
  windlass workflow show create-review-task --text > my-review.yaml")]
pub struct Args {
    /// The workflow
    #[arg(value_name = "ID")]
    id: String,
    /// Print the file
    #[arg(long)]
    text: bool,
}

pub fn run_workflow_show(context: &CommandContext, args: &Args, out: &mut Output) -> CommandResult {
    let project = super::find_optional_project(context)?;
    let defined = workflows::find_workflow(project.as_ref(), &args.id)?;
    let workflow = &defined.workflow;
    if args.text {
        return out.print_line(text::clean_lines(defined.text.replace("\r\n", "\n").trim_end()));
    }
    if out.is_json() {
        return out.print_json(&json!({
            "id": workflow.id, "name": workflow.name, "description": workflow.description, "file": defined.file,
            "steps": show::workflow::steps_to_json(&defined), "text": defined.text,
        }));
    }
    let name = workflow.name.as_deref().map(|name| format!("  {}", text::clean_line(name))).unwrap_or_default();
    out.print_line(format_args!("{}{name}", out.paint(TextTone::Strong, &workflow.id)))?;
    if let Some(description) = &workflow.description {
        out.print_line(format_args!("  {}", text::clean_line(description.trim())))?;
    }
    let file = defined.file.as_ref().map_or("built-in".to_owned(), |file| file.display().to_string());
    out.print_line(format_args!("  {}\n", out.paint(TextTone::Faint, text::clean_line(&file))))?;
    super::print_steps(&defined, 0, out)
}
