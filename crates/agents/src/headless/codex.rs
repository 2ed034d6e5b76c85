//! Codex: `codex exec --json`.
//!
//! An item of type `error` is only a warning, and an `error` event only a failed attempt: `turn.completed` and `turn.failed`
//! end the turn. Usage is that of the whole conversation. The process stays for seconds after the turn.

use serde_json::Value;
use windlass_engine::AgentUsage;

use super::command_line::{CommandLine, PromptTarget, has_option};
use super::failure_cause;
use super::turn_accumulator::{StreamEnd, TurnAccumulator, UsageScope};
use crate::{AgentAccess, AgentSetup};

/// Options with which a user sets the permissions.
const PERMISSION_OPTIONS: [&str; 10] = [
    "-s",
    "--sandbox",
    "-a",
    "--ask-for-approval",
    "--full-auto",
    "--yolo",
    "--dangerously-bypass-approvals-and-sandbox",
    "--approve-for-me",
    "-p",
    "--profile",
];

pub(super) fn build_command_line(place: PromptTarget<'_>, setup: &AgentSetup) -> CommandLine {
    let mut words = CommandLine::new(&["exec", "--json", "--skip-git-repo-check"], &[]);
    let sandboxed = setup.args.iter().any(|word| word.contains("sandbox_mode"));
    if !sandboxed && !has_option(setup, &PERMISSION_OPTIONS) {
        match setup.access {
            AgentAccess::Full => words.add_arguments(&["--dangerously-bypass-approvals-and-sandbox"]),
            AgentAccess::ReadOnly => words.add_arguments(&["--sandbox", "read-only"]),
        }
    }
    if setup.access == AgentAccess::ReadOnly {
        // Disables `AGENTS.md` and skills.
        words.add_arguments(&["-c", "project_doc_max_bytes=0", "-c", "skills.include_instructions=false"]);
    }
    if let Some(directory) = &setup.judged_directory {
        // If the user trusts the project, Codex would apply settings that a change brings with it, such as MCP servers.
        let name = Value::from(directory.to_string_lossy());
        words.add_arguments(&["-c", &format!(r#"projects={{{name}={{trust_level="untrusted"}}}}"#)]);
    }
    words.add_model("-m", setup);
    if let PromptTarget::Existing(name) = place {
        words.last.extend(["resume".to_owned(), name.to_owned()]);
    }
    words.last.push("-".to_owned());
    words
}

pub(super) fn read_event(turn: &mut TurnAccumulator, event: &Value) -> bool {
    match event["type"].as_str() {
        Some("thread.started") => turn.record_conversation(event["thread_id"].as_str()),
        Some("turn.started") => turn.end = None,
        Some("item.started") => read_item(turn, &event["item"], false),
        Some("item.completed") => read_item(turn, &event["item"], true),
        Some("item.updated") => {}
        Some("error") => turn.error = event["message"].as_str().map(str::to_owned),
        Some("turn.completed") => {
            let number = |key: &str| event["usage"][key].as_u64().unwrap_or(0);
            let (input, cached) = (number("input_tokens"), number("cached_input_tokens"));
            turn.usage = AgentUsage { input, cached, output: number("output_tokens"), cost: None };
            turn.span = UsageScope::Conversation;
            turn.end = Some(StreamEnd::Done(None));
        }
        Some("turn.failed") => {
            let words = event["error"]["message"].as_str().or(turn.error.as_deref());
            let cause = failure_cause::failure_from_message(words.unwrap_or("it failed without a reason"));
            turn.record_failure(cause);
        }
        _ => return false,
    }
    true
}

fn read_item(turn: &mut TurnAccumulator, item: &Value, is_over: bool) {
    let text = |key: &str| item[key].as_str().unwrap_or_default();
    match text("type") {
        "agent_message" if is_over => turn.add_message_text(Some(text("id")), text("text")),
        "agent_message" | "reasoning" | "error" | "todo_list" | "" => {}
        kind => {
            let title = match kind {
                "command_execution" => text("command").to_owned(),
                "mcp_tool_call" => format!("{} {}", text("server"), text("tool")),
                "web_search" => format!("{kind}: {}", text("query")),
                kind => kind.to_owned(),
            };
            turn.record_tool_call_once(text("id"), &title, is_over);
        }
    }
}
