//! `windlass tool …`: the tools of `windlass mcp`, for scripts and people. The tools word their errors and hints.

use std::path::Path;

use clap::Subcommand;
use serde_json::{Value, json};
use windlass_app::context::CommandContext;
use windlass_app::tool_host::ProjectToolHost;
use windlass_app::{Failure, FailureCode, execution};
use windlass_text as text;
use windlass_tools::{FieldPresence, ToolDefinition, ToolEffect, ToolRouter, find_tool, tool_catalogue};

use super::input::read_text;
use crate::output::{CommandResult, Output, TextTone};

#[derive(Debug, Subcommand)]
#[command(
    defer = true,
    after_help = "Examples:
  windlass tool list
  windlass tool show iteration_start
  windlass tool call iteration_start - < arguments.json

docs/reference/mcp-tools.md has the whole flow."
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
    /// Show a tool, its arguments and an example call
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
  windlass tool call checkpoint_list '{\"taskId\": \"T3\"}' --json
  windlass tool call iteration_validate - < arguments.json

With --json, the answer is one line.")]
    Call {
        /// The tool, such as iteration_start
        name: String,
        /// The arguments as a JSON object; `-` reads them from standard input
        #[arg(value_name = "JSON", default_value = "{}")]
        arguments: String,
    },
}

pub fn run_tool_command(context: &CommandContext, command: Command, out: &mut Output) -> CommandResult {
    match command {
        Command::List => list_tools(out),
        Command::Show { name } => describe_tool(find_tool(&name).map_err(Failure::from)?, out),
        Command::Call { name, arguments } => {
            let answer = call_tool(context, &name, &arguments)?;
            if out.is_json() { out.print_json(&answer) } else { out.print_indented_json(&answer) }
        }
    }
}

fn list_tools(out: &mut Output) -> CommandResult {
    if out.is_json() {
        let tools = tool_catalogue().iter().map(|tool| json!({"name": tool.name, "description": tool.description}));
        return out.print_json(&tools.collect::<Vec<_>>());
    }
    let width = tool_catalogue().iter().map(|tool| tool.name.len()).max().unwrap_or_default();
    tool_catalogue().iter().try_for_each(|tool| {
        let first_sentence = tool.description.split_inclusive(". ").next().unwrap_or_default().trim_end();
        let name = out.paint(TextTone::Strong, text::pad_to_width(tool.name, width)).to_string();
        out.print_line(format_args!("{name}  {first_sentence}"))
    })
}

fn describe_tool(tool: &ToolDefinition, out: &mut Output) -> CommandResult {
    if out.is_json() {
        return out.print_json(&tool.input_schema());
    }
    let name = out.paint(TextTone::Strong, tool.name).to_string();
    out.print_line(format_args!("{name}  {}\n", tool.description))?;
    for field in tool.fields {
        let need = if field.need == FieldPresence::Required { " (required)" } else { "" };
        let about = if field.about.is_empty() { String::new() } else { format!("; {}", field.about) };
        let name = out.paint(TextTone::Strong, field.name).to_string();
        out.print_line(format_args!("  {name}{need}: {}{about}", field.kind.expected()))?;
    }
    out.print_line(format_args!("\nExample:\n  windlass tool call {} '{}'", tool.name, tool.example))?;
    out.print_line(format_args!("\nThe JSON schema of all arguments: windlass tool show {} --json", tool.name))
}

fn call_tool(context: &CommandContext, name: &str, arguments: &str) -> Result<Value, Failure> {
    let tool = find_tool(name)?;
    let piped = if arguments == "-" { Some(read_text(Path::new(arguments))?) } else { None };
    let arguments = serde_json::from_str(piped.as_deref().unwrap_or(arguments)).map_err(|error| {
        Failure::new(FailureCode::Usage, "the arguments are not JSON")
            .with_cause(error)
            .with_hint(format!("`windlass tool show {name}` shows an example"))
    })?;
    let opened =
        if tool.effect == ToolEffect::ReadOnly { context.open_project_to_read()? } else { context.open_project()? };
    let (control, received) = execution::listen_to_signals()?;
    let answer = ToolRouter::new(ProjectToolHost::new(opened)).call_tool(name, arguments, &control);
    answer.map_err(|error| {
        let failure = Failure::from(error).with_signal(received.first_signal());
        match failure.hint {
            None if failure.code == FailureCode::Usage => {
                failure.with_hint(format!("`windlass tool show {name}` shows its arguments and an example"))
            }
            _ => failure,
        }
    })
}
