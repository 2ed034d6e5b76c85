//! `windlass workflow show`

use serde_json::json;
use windlass_engine::workflow::{Step, What};

use crate::context::Context;
use crate::output::{Done, Output, Tone};
use crate::{text, workflow};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass workflow show create-review-task
  windlass workflow show create-review-task --text > .windlass/workflows/create-review-task.yaml")]
pub struct Args {
    #[arg(value_name = "ID")]
    id: String,
    /// The file itself
    #[arg(long)]
    text: bool,
}

pub fn run(context: &Context, args: &Args, out: &mut Output) -> Done {
    let defined = workflow::find(&context.project()?, &args.id)?;
    let workflow = &defined.workflow;
    if args.text {
        return out.line(defined.text.trim_end());
    }
    if out.is_json() {
        let step = |step: &Step| json!({"id": step.id, "type": step.kind(), "onSuccess": step.on_success, "onFailure": step.on_failure});
        return out.object(&json!({
            "id": workflow.id, "name": workflow.name, "description": workflow.description, "file": defined.file,
            "steps": workflow.steps.iter().map(step).collect::<Vec<_>>(), "text": defined.text,
        }));
    }
    let name = workflow.name.as_deref().map(|name| format!("  {}", text::line(name))).unwrap_or_default();
    out.line(format_args!("{}{name}", out.paint(Tone::Strong, &workflow.id)))?;
    if let Some(description) = &workflow.description {
        out.line(format_args!("  {}", text::line(description.trim())))?;
    }
    let file = defined.file.as_ref().map_or("comes along".to_owned(), |file| file.display().to_string());
    out.line(format_args!("  {}\n", out.paint(Tone::Faint, text::line(&file))))?;
    workflow.steps.iter().try_for_each(|step| {
        let (id, kind) = (out.paint(Tone::Name, &step.id), step.kind());
        out.line(format_args!("{id}  {kind}{}", leads(step)))?;
        step.within()
            .iter()
            .try_for_each(|step| out.line(format_args!("  {}  {}", out.paint(Tone::Name, &step.id), step.kind())))
    })
}

/// Where a step leads.
fn leads(step: &Step) -> String {
    let mut ways = Vec::new();
    let mut way = |word: &str, next: Option<&String>| ways.extend(next.map(|next| format!("{word} {next}")));
    if let What::Choose { on_true, on_false, .. } = &step.what {
        way("if so", on_true.as_ref());
        way("if not", on_false.as_ref());
    }
    way("then", step.on_success.as_ref());
    way("if it fails", step.on_failure.as_ref());
    if ways.is_empty() { String::new() } else { format!("  → {}", ways.join(", ")) }
}
