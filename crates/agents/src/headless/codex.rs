//! Codex: `codex exec --json`.
//!
//! An item of type `error` is only a warning, and an `error` event only a failed attempt: `turn.completed` and `turn.failed`
//! end the turn. Usage is that of the whole conversation. The process stays for seconds after the turn.

use serde_json::Value;
use windlass_engine::Usage;

use super::account::{Account, Close, Span};
use super::cause;
use super::words::{Place, Words, has_option};
use crate::{Access, Setup};

/// Options with which a user sets the permissions.
const PERMISSIONS: [&str; 10] = [
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

pub(super) fn words(place: Place<'_>, setup: &Setup) -> Words {
    let mut words = Words::new(&["exec", "--json", "--skip-git-repo-check"], &[]);
    let sandboxed = setup.args.iter().any(|word| word.contains("sandbox_mode"));
    if !sandboxed && !has_option(setup, &PERMISSIONS) {
        match setup.access {
            Access::Full => words.add(&["--dangerously-bypass-approvals-and-sandbox"]),
            Access::ReadOnly => words.add(&["--sandbox", "read-only"]),
        }
    }
    if setup.access == Access::ReadOnly {
        // Disables `AGENTS.md` and skills.
        words.add(&["-c", "project_doc_max_bytes=0", "-c", "skills.include_instructions=false"]);
    }
    if let Some(directory) = &setup.judged {
        // If the user trusts the project, Codex would apply settings that a change brings with it, such as MCP servers.
        let name = Value::from(directory.to_string_lossy());
        words.add(&["-c", &format!(r#"projects={{{name}={{trust_level="untrusted"}}}}"#)]);
    }
    words.add_model("-m", setup);
    if let Place::Before(name) = place {
        words.last.extend(["resume".to_owned(), name.to_owned()]);
    }
    words.last.push("-".to_owned());
    words
}

pub(super) fn read(account: &mut Account, event: &Value) -> bool {
    match event["type"].as_str() {
        Some("thread.started") => account.name(event["thread_id"].as_str()),
        Some("turn.started") => account.close = None,
        Some("item.started") => item(account, &event["item"], false),
        Some("item.completed") => item(account, &event["item"], true),
        Some("item.updated") => {}
        Some("error") => account.error = event["message"].as_str().map(str::to_owned),
        Some("turn.completed") => {
            let number = |key: &str| event["usage"][key].as_u64().unwrap_or(0);
            let (input, cached) = (number("input_tokens"), number("cached_input_tokens"));
            account.usage = Usage { input, cached, output: number("output_tokens"), cost: None };
            account.span = Span::Conversation;
            account.close = Some(Close::Done(None));
        }
        Some("turn.failed") => {
            let words = event["error"]["message"].as_str().or(account.error.as_deref());
            let cause = cause::of_words(words.unwrap_or("it failed, and does not say why"));
            account.fail(cause);
        }
        _ => return false,
    }
    true
}

fn item(account: &mut Account, item: &Value, is_over: bool) {
    let text = |key: &str| item[key].as_str().unwrap_or_default();
    match text("type") {
        "agent_message" if is_over => account.say(Some(text("id")), text("text")),
        "agent_message" | "reasoning" | "error" | "todo_list" | "" => {}
        kind => {
            let title = match kind {
                "command_execution" => text("command").to_owned(),
                "mcp_tool_call" => format!("{} {}", text("server"), text("tool")),
                "web_search" => format!("{kind}: {}", text("query")),
                kind => kind.to_owned(),
            };
            account.call_once(text("id"), &title, is_over);
        }
    }
}
