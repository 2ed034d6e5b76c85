//! `windlass workflow list`: prints the workflows.

use serde_json::json;
use windlass_app::Failure;
use windlass_app::context::CommandContext;
use windlass_app::workflows::describe_reason;
use windlass_config::workflow::WorkflowLibrary;
use windlass_text as text;

use crate::output::{CommandResult, Output, TextTone};
use crate::show;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass workflow list
  windlass workflow list --json | jq -r .id

Workflows are files in .windlass/workflows/; docs/reference/workflows.md lists their fields.")]
pub struct Args {}

pub fn run_workflow_list(context: &CommandContext, _: &Args, out: &mut Output) -> CommandResult {
    let project = super::find_optional_project(context)?;
    let known = WorkflowLibrary::load(project.as_ref().map(|project| project.root.as_path()))?;
    if out.is_json() {
        known.definitions.iter().try_for_each(|defined| {
            let workflow = &defined.workflow;
            out.print_json(&json!({
                "id": workflow.id, "name": workflow.name, "description": workflow.description,
                "steps": workflow.steps.len(), "file": defined.file,
            }))
        })?;
        return known.unusable.into_iter().try_for_each(|unusable| {
            let (id, file) = (json!(unusable.id), json!(unusable.file));
            let mut object = Failure::from(unusable).to_json();
            (object["id"], object["file"]) = (id, file);
            out.print_json(&object)
        });
    }
    let found = known.definitions.iter().map(|defined| defined.workflow.id.as_str());
    let wrong = known.unusable.iter().map(|wrong| wrong.id.as_str());
    let ids = found.chain(wrong).map(|id| text::display_width(&text::clean_line(id))).max().unwrap_or(0);
    known.definitions.iter().try_for_each(|defined| {
        let workflow = &defined.workflow;
        let steps = show::workflow::format_step_count(u32::try_from(workflow.steps.len()).unwrap_or(u32::MAX));
        let whose = if defined.file.is_some() { "" } else { "  (built-in)" };
        let name = workflow.name.as_deref().map(|name| format!("  {}", text::clean_line(name))).unwrap_or_default();
        let id = out.paint(TextTone::Strong, text::pad_to_width(&workflow.id, ids));
        out.print_line(format_args!("{id}  {steps}{name}{}", out.paint(TextTone::Faint, whose)))
    })?;
    known.unusable.iter().try_for_each(|unusable| {
        let id = out.paint(TextTone::Strong, text::pad_to_width(&text::clean_line(&unusable.id), ids));
        let wrong = out.paint(TextTone::Bad, "wrong");
        out.print_line(format_args!("{id}  {wrong}: {}", text::clean_line(&describe_reason(unusable))))
    })
}
