//! `windlass workflow list`

use serde_json::json;

use crate::context::Context;
use crate::output::{Done, Output, Tone};
use crate::workflow::Wrong;
use crate::{show, text, workflow};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass workflow list
  windlass workflow list --json | jq -r .id

Workflows are files under .windlass/workflows/; docs/workflows.md has what may stand in one.")]
pub struct Args {}

pub fn run(context: &Context, _: &Args, out: &mut Output) -> Done {
    let project = super::project(context)?;
    let known = workflow::known(project.as_ref())?;
    if out.is_json() {
        known.found.iter().try_for_each(|defined| {
            let workflow = &defined.workflow;
            out.object(&json!({
                "id": workflow.id, "name": workflow.name, "description": workflow.description,
                "steps": workflow.steps.len(), "file": defined.file,
            }))
        })?;
        return known.wrong.iter().try_for_each(|Wrong { id, file, failure, .. }| {
            let mut told = failure.to_json();
            told["id"] = json!(id);
            told["file"] = json!(file);
            out.object(&told)
        });
    }
    let found = known.found.iter().map(|defined| defined.workflow.id.as_str());
    let wrong = known.wrong.iter().map(|wrong| wrong.id.as_str());
    let ids = found.chain(wrong).map(|id| text::width(&text::line(id))).max().unwrap_or(0);
    known.found.iter().try_for_each(|defined| {
        let workflow = &defined.workflow;
        let steps = show::workflow::count(u32::try_from(workflow.steps.len()).unwrap_or(u32::MAX));
        let whose = if defined.file.is_some() { "" } else { "  (comes along)" };
        let name = workflow.name.as_deref().map(|name| format!("  {}", text::line(name))).unwrap_or_default();
        let id = out.paint(Tone::Strong, text::pad(&workflow.id, ids));
        out.line(format_args!("{id}  {steps}{name}{}", out.paint(Tone::Faint, whose)))
    })?;
    known.wrong.iter().try_for_each(|Wrong { id, failure, .. }| {
        let id = out.paint(Tone::Strong, text::pad(&text::line(id), ids));
        let wrong = out.paint(Tone::Bad, "wrong");
        out.line(format_args!("{id}  {wrong}: {}", text::line(&failure.message)))
    })
}
