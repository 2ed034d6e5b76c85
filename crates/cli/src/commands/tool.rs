//! `windlass tool …`: the tools of `windlass mcp`, for scripts and people. The tools word their errors and hints.

use std::path::Path;

use clap::Subcommand;
use serde_json::{Value, json};
use windlass_app::context::Context;
use windlass_app::tool_host::ProjectToolHost;
use windlass_app::{Code, Failure, execution};
use windlass_text as text;
use windlass_tools::{Effect, Need, Tool, ToolRouter, catalogue, find};

use super::input::read_text;
use crate::output::{Done, Output, Tone};

#[derive(Debug, Subcommand)]
#[command(
    defer = true,
    after_help = "Examples:
  windlass tool list
  windlass tool show iteration_start
  windlass tool call iteration_start '{\"taskId\": \"T3\", \"maxIterations\": 5, \"completionPromises\": [\"COMPLETE\"]}'

docs/mcp.md has the whole flow."
)]
pub enum Command {
    /// List the tools
    #[command(
        visible_alias = "ls",
        after_help = "Examples:
  windlass tool list
  windlass tool list --json | jq -r '.[].name'"
    )]
    List,
    /// Describe a tool: what it does, its arguments, an example call
    #[command(after_help = "Examples:
  windlass tool show hook_register
  windlass tool show hook_register --json      the JSON schema of its arguments")]
    Show {
        /// The tool, such as iteration_start
        name: String,
    },
    /// Call a tool and print its answer as JSON
    #[command(after_help = "Examples:
  windlass tool call task_next
  windlass tool call hook_clear '{\"taskId\": \"T3\"}'
  jq -Rs '{iterationId: \"IT-12\", agentOutput: .}' said.txt | windlass tool call iteration_validate -
  windlass tool call checkpoint_list '{\"taskId\": \"T3\"}' --json | jq -r '.checkpoints[].id'

With --json the answer is one line.")]
    Call {
        /// The tool, such as iteration_start
        name: String,
        /// The arguments as a JSON object; `-` reads them from standard input
        #[arg(value_name = "JSON", default_value = "{}")]
        arguments: String,
    },
}

pub fn run(context: &Context, command: Command, out: &mut Output) -> Done {
    match command {
        Command::List => list(out),
        Command::Show { name } => show(find(&name).map_err(Failure::from)?, out),
        Command::Call { name, arguments } => {
            let answer = call(context, &name, &arguments)?;
            if out.is_json() { out.object(&answer) } else { out.indented(&answer) }
        }
    }
}

fn list(out: &mut Output) -> Done {
    if out.is_json() {
        let tools = catalogue().iter().map(|tool| json!({"name": tool.name, "description": tool.description}));
        return out.object(&tools.collect::<Vec<_>>());
    }
    let width = catalogue().iter().map(|tool| tool.name.len()).max().unwrap_or_default();
    catalogue().iter().try_for_each(|tool| {
        let first_sentence = tool.description.split_inclusive(". ").next().unwrap_or_default().trim_end();
        let name = out.paint(Tone::Strong, text::pad(tool.name, width)).to_string();
        out.line(format_args!("{name}  {first_sentence}"))
    })
}

fn show(tool: &Tool, out: &mut Output) -> Done {
    if out.is_json() {
        return out.object(&tool.schema());
    }
    let name = out.paint(Tone::Strong, tool.name).to_string();
    out.line(format_args!("{name}  {}\n", tool.description))?;
    for field in tool.fields {
        let need = if field.need == Need::Required { " (required)" } else { "" };
        let about = if field.about.is_empty() { String::new() } else { format!("; {}", field.about) };
        let name = out.paint(Tone::Strong, field.name).to_string();
        out.line(format_args!("  {name}{need}: {}{about}", field.kind.expected()))?;
    }
    out.line(format_args!("\nExample:\n  windlass tool call {} '{}'", tool.name, tool.example))?;
    out.line(format_args!("\nThe JSON schema of all arguments: windlass tool show {} --json", tool.name))
}

fn call(context: &Context, name: &str, arguments: &str) -> Result<Value, Failure> {
    let tool = find(name)?;
    let piped = if arguments == "-" { Some(read_text(Path::new(arguments))?) } else { None };
    let arguments = serde_json::from_str(piped.as_deref().unwrap_or(arguments)).map_err(|error| {
        Failure::new(Code::Usage, "the arguments are not JSON")
            .caused_by(error)
            .hint(format!("`windlass tool show {name}` shows an example"))
    })?;
    let opened = if tool.effect == Effect::ReadOnly { context.open_to_read()? } else { context.open()? };
    let (control, received) = execution::listen()?;
    let answer = ToolRouter::new(ProjectToolHost::new(opened)).call(name, arguments, &control);
    answer.map_err(|error| {
        let failure = Failure::from(error).by(received.first());
        match failure.hint {
            None if failure.code == Code::Usage => {
                failure.hint(format!("`windlass tool show {name}` shows its arguments and an example"))
            }
            _ => failure,
        }
    })
}
