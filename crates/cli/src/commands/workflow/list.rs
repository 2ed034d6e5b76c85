//! `windlass workflow list`

use serde_json::json;

use crate::context::Context;
use crate::output::{Done, Output, Tone};
use crate::{show, text, workflow};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass workflow list
  windlass workflow list --json | jq -r .id

Workflows are files under .windlass/workflows/; docs/workflows.md has what may stand in one.")]
pub struct Args {}

pub fn run(context: &Context, _: &Args, out: &mut Output) -> Done {
    let project = context.project()?;
    let known = workflow::all(&project).map_err(crate::failure::Failure::from)?;
    if out.is_json() {
        return known.iter().try_for_each(|defined| {
            let workflow = &defined.workflow;
            out.object(&json!({
                "id": workflow.id, "name": workflow.name, "description": workflow.description,
                "steps": workflow.steps.len(), "file": defined.file,
            }))
        });
    }
    let ids = known.iter().map(|defined| defined.workflow.id.len()).max().unwrap_or(0);
    known.iter().try_for_each(|defined| {
        let workflow = &defined.workflow;
        let steps = show::workflow::count(u32::try_from(workflow.steps.len()).unwrap_or(u32::MAX));
        let whose = if defined.file.is_some() { "" } else { "  (comes along)" };
        let name = workflow.name.as_deref().map(|name| format!("  {}", text::line(name))).unwrap_or_default();
        let id = out.paint(Tone::Strong, text::pad(&workflow.id, ids));
        out.line(format_args!("{id}  {steps}{name}{}", out.paint(Tone::Faint, whose)))
    })
}
