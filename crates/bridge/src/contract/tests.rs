//! The output for every agent and event as tables, and properties of every output.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use windlass_engine::CallRuling;

use crate::{AgentHookOutput, AgentHookResponse, UnsupportedPart};

fn reply(ruling: CallRuling, reason: &str) -> AgentHookResponse {
    AgentHookResponse { ruling, reason: reason.to_owned(), ..AgentHookResponse::default() }
}

fn no() -> AgentHookResponse {
    reply(CallRuling::Block, "Not yet.")
}

fn halt() -> AgentHookResponse {
    AgentHookResponse { halt: Some("Enough.".to_owned()), ..AgentHookResponse::default() }
}

fn told() -> AgentHookResponse {
    AgentHookResponse {
        context: Some("Read me.".to_owned()),
        message: Some("Look.".to_owned()),
        ..AgentHookResponse::default()
    }
}

fn updated() -> AgentHookResponse {
    let input = Map::from_iter([("command".to_owned(), json!("ls"))]);
    AgentHookResponse { updated_input: Some(input), ..AgentHookResponse::default() }
}

/// Returns the output for every agent, with equal outputs grouped.
fn table(event: AgentHookEvent, reply: &AgentHookResponse) -> String {
    let mut said: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for agent in BridgeAgent::ALL {
        let AgentHookOutput { stdout, stderr, exit, unsupported } = AgentHookOutput::new(*agent, event, reply);
        let mut words: Vec<String> = Some(stdout).filter(|text| !text.is_empty()).into_iter().collect();
        words.extend(Some(stderr).filter(|text| !text.is_empty()).map(|text| format!("stderr {text:?}")));
        words.extend((exit != 0).then(|| format!("exit {exit}")));
        words.extend((!unsupported.is_empty()).then(|| format!("unsaid {unsupported:?}")));
        said.entry(words.join(" | ")).or_default().push(agent.name());
    }
    let mut lines: Vec<String> = said.iter().map(|(words, agents)| format!("{}: {words}", agents.join(" "))).collect();
    lines.sort();
    lines.join("\n")
}

#[test]
fn stop_events_are_worded_for_every_agent() {
    insta::assert_snapshot!(table(AgentHookEvent::Stop, &no()), @r#"
    claude codex gemini qwen copilot goose kimi: {"decision":"block","reason":"Not yet."} | stderr "Not yet." | exit 2
    cursor: {"followup_message":"Not yet."}
    "#);
    insta::assert_snapshot!(table(AgentHookEvent::Stop, &halt()), @r#"
    claude codex gemini: {"continue":false,"stopReason":"Enough."}
    copilot goose kimi cursor: stderr "Enough." | unsaid [Halt]
    qwen: {"systemMessage":"Enough."} | unsaid [Halt]
    "#);
    insta::assert_snapshot!(table(AgentHookEvent::Stop, &told()), @r#"
    claude codex gemini qwen: {"systemMessage":"Look."} | unsaid [Context]
    copilot goose kimi cursor: stderr "Look." | unsaid [Context]
    "#);
    insta::assert_snapshot!(table(AgentHookEvent::Stop, &AgentHookResponse { context: told().context, message: told().message, ..no() }), @r#"
    claude codex gemini qwen: {"decision":"block","reason":"Not yet.\n\nRead me.","systemMessage":"Look."} | stderr "Not yet.\n\nRead me." | exit 2
    copilot goose kimi: {"decision":"block","reason":"Not yet.\n\nRead me."} | stderr "Not yet.\n\nRead me." | exit 2 | unsaid [Message]
    cursor: {"followup_message":"Not yet.\n\nRead me."} | stderr "Look."
    "#);
    insta::assert_snapshot!(table(AgentHookEvent::SubagentStop, &no()), @r#"
    claude codex gemini qwen copilot goose: {"decision":"block","reason":"Not yet."} | stderr "Not yet." | exit 2
    cursor: {"followup_message":"Not yet."}
    kimi: stderr "Not yet." | unsaid [Block]
    "#);
}

#[test]
fn pre_tool_use_is_worded_for_every_agent() {
    insta::assert_snapshot!(table(AgentHookEvent::PreToolUse, &no()), @r#"
    claude codex qwen copilot goose kimi: {"decision":"block","hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"Not yet."},"reason":"Not yet."}
    cursor: {"agent_message":"Not yet.","permission":"deny","user_message":"Not yet."}
    gemini: {"decision":"block","hookSpecificOutput":{"hookEventName":"BeforeTool","permissionDecision":"deny","permissionDecisionReason":"Not yet."},"reason":"Not yet."}
    "#);
    insta::assert_snapshot!(table(AgentHookEvent::PreToolUse, &halt()), @r#"
    claude: {"continue":false,"decision":"block","hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"Enough."},"reason":"Enough.","stopReason":"Enough."}
    codex qwen copilot goose kimi: {"decision":"block","hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"Enough."},"reason":"Enough."} | unsaid [Halt]
    cursor: {"agent_message":"Enough.","permission":"deny","user_message":"Enough."} | unsaid [Halt]
    gemini: {"continue":false,"decision":"block","hookSpecificOutput":{"hookEventName":"BeforeTool","permissionDecision":"deny","permissionDecisionReason":"Enough."},"reason":"Enough.","stopReason":"Enough."}
    "#);
    insta::assert_snapshot!(table(AgentHookEvent::PreToolUse, &reply(CallRuling::Ask, "Sure?")), @r#"
    claude qwen copilot: {"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask","permissionDecisionReason":"Sure?"}}
    codex: {"decision":"block","hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"Sure?\n\nA person must agree, and Codex cannot ask: the tool is not used."},"reason":"Sure?\n\nA person must agree, and Codex cannot ask: the tool is not used."} | unsaid [Ask]
    cursor: {"agent_message":"Sure?\n\nA person must agree, and Cursor cannot ask: the tool is not used.","permission":"deny","user_message":"Sure?\n\nA person must agree, and Cursor cannot ask: the tool is not used."} | unsaid [Ask]
    gemini: {"decision":"block","hookSpecificOutput":{"hookEventName":"BeforeTool","permissionDecision":"deny","permissionDecisionReason":"Sure?\n\nA person must agree, and Gemini CLI cannot ask: the tool is not used."},"reason":"Sure?\n\nA person must agree, and Gemini CLI cannot ask: the tool is not used."} | unsaid [Ask]
    goose: {"decision":"block","hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"Sure?\n\nA person must agree, and goose cannot ask: the tool is not used."},"reason":"Sure?\n\nA person must agree, and goose cannot ask: the tool is not used."} | unsaid [Ask]
    kimi: {"decision":"block","hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"Sure?\n\nA person must agree, and Kimi Code cannot ask: the tool is not used."},"reason":"Sure?\n\nA person must agree, and Kimi Code cannot ask: the tool is not used."} | unsaid [Ask]
    "#);
    insta::assert_snapshot!(table(AgentHookEvent::PreToolUse, &reply(CallRuling::Allow, "Fine.")), @r#"
    claude qwen copilot: {"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","permissionDecisionReason":"Fine."}}
    codex gemini goose kimi: unsaid [Allow]
    cursor: {"permission":"allow"}
    "#);
    insta::assert_snapshot!(table(AgentHookEvent::PreToolUse, &updated()), @r#"
    claude copilot: {"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"command":"ls"}}}
    codex: {"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","updatedInput":{"command":"ls"}}}
    cursor: {"permission":"allow","updated_input":{"command":"ls"}}
    gemini: {"hookSpecificOutput":{"hookEventName":"BeforeTool","tool_input":{"command":"ls"}}}
    goose: {"decision":"block","hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"A hook wants another input for this tool, and goose accepts none from hooks: the tool was not used. Use the tool again, with this input: {\"command\":\"ls\"}"},"reason":"A hook wants another input for this tool, and goose accepts none from hooks: the tool was not used. Use the tool again, with this input: {\"command\":\"ls\"}"} | unsaid [UpdatedInput]
    kimi: {"decision":"block","hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"A hook wants another input for this tool, and Kimi Code accepts none from hooks: the tool was not used. Use the tool again, with this input: {\"command\":\"ls\"}"},"reason":"A hook wants another input for this tool, and Kimi Code accepts none from hooks: the tool was not used. Use the tool again, with this input: {\"command\":\"ls\"}"} | unsaid [UpdatedInput]
    qwen: {"decision":"block","hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"A hook wants another input for this tool, and Qwen Code accepts none from hooks: the tool was not used. Use the tool again, with this input: {\"command\":\"ls\"}"},"reason":"A hook wants another input for this tool, and Qwen Code accepts none from hooks: the tool was not used. Use the tool again, with this input: {\"command\":\"ls\"}"} | unsaid [UpdatedInput]
    "#);
    insta::assert_snapshot!(table(AgentHookEvent::PreToolUse, &told()), @r#"
    claude codex: {"hookSpecificOutput":{"additionalContext":"Read me.","hookEventName":"PreToolUse"},"systemMessage":"Look."}
    copilot: {"additionalContext":"Read me."} | stderr "Look."
    gemini qwen: {"systemMessage":"Look."} | unsaid [Context]
    goose kimi cursor: stderr "Look." | unsaid [Context]
    "#);
}

#[test]
fn post_tool_use_is_worded_for_every_agent() {
    insta::assert_snapshot!(table(AgentHookEvent::PostToolUse, &no()), @r#"
    claude codex gemini copilot: {"decision":"block","reason":"Not yet."}
    cursor: {"additional_context":"Not yet."}
    goose kimi: stderr "Not yet." | unsaid [Block]
    qwen: {"hookSpecificOutput":{"additionalContext":"Not yet.","hookEventName":"PostToolUse"}}
    "#);
    insta::assert_snapshot!(table(AgentHookEvent::PostToolUse, &halt()), @r#"
    claude gemini: {"continue":false,"stopReason":"Enough."}
    codex copilot: {"decision":"block","reason":"Enough."} | unsaid [Halt]
    cursor: {"additional_context":"Enough."} | unsaid [Halt]
    goose kimi: stderr "Enough." | unsaid [Halt, Block]
    qwen: {"hookSpecificOutput":{"additionalContext":"Enough.","hookEventName":"PostToolUse"}} | unsaid [Halt]
    "#);
    insta::assert_snapshot!(table(AgentHookEvent::PostToolUse, &told()), @r#"
    claude codex qwen: {"hookSpecificOutput":{"additionalContext":"Read me.","hookEventName":"PostToolUse"},"systemMessage":"Look."}
    copilot: {"additionalContext":"Read me."} | stderr "Look."
    cursor: {"additional_context":"Read me."} | stderr "Look."
    gemini: {"hookSpecificOutput":{"additionalContext":"Read me.","hookEventName":"AfterTool"},"systemMessage":"Look."}
    goose kimi: stderr "Look." | unsaid [Context]
    "#);
}

#[test]
fn user_prompt_submit_is_worded_for_every_agent() {
    insta::assert_snapshot!(table(AgentHookEvent::UserPromptSubmit, &no()), @r#"
    claude codex gemini qwen copilot kimi: {"decision":"block","reason":"Not yet."} | stderr "Not yet." | exit 2
    cursor: {"continue":false,"user_message":"Not yet."}
    goose: stderr "Not yet." | unsaid [Block]
    "#);
    insta::assert_snapshot!(table(AgentHookEvent::UserPromptSubmit, &halt()), @r#"
    claude codex gemini qwen: {"continue":false,"stopReason":"Enough."}
    copilot kimi: {"decision":"block","reason":"Enough."} | stderr "Enough." | exit 2 | unsaid [Halt]
    cursor: {"continue":false,"user_message":"Enough."}
    goose: stderr "Enough." | unsaid [Halt, Block]
    "#);
    insta::assert_snapshot!(table(AgentHookEvent::UserPromptSubmit, &told()), @r#"
    claude codex qwen: {"hookSpecificOutput":{"additionalContext":"Read me.","hookEventName":"UserPromptSubmit"},"systemMessage":"Look."}
    copilot: {"additionalContext":"Read me."} | stderr "Look."
    gemini: {"hookSpecificOutput":{"additionalContext":"Read me.","hookEventName":"BeforeAgent"},"systemMessage":"Look."}
    goose cursor: stderr "Look." | unsaid [Context]
    kimi: {"message":"Read me."} | stderr "Look."
    "#);
}

#[test]
fn events_that_cannot_block_are_worded_for_every_agent() {
    insta::assert_snapshot!(table(AgentHookEvent::SessionStart, &told()), @r#"
    claude codex gemini qwen: {"hookSpecificOutput":{"additionalContext":"Read me.","hookEventName":"SessionStart"},"systemMessage":"Look."}
    copilot: {"additionalContext":"Read me."} | stderr "Look."
    cursor: {"additional_context":"Read me."} | stderr "Look."
    goose kimi: stderr "Look." | unsaid [Context]
    "#);
    insta::assert_snapshot!(table(AgentHookEvent::SessionStart, &halt()), @r#"
    claude gemini qwen: {"systemMessage":"Enough."} | unsaid [Halt]
    codex: {"continue":false,"stopReason":"Enough."}
    copilot goose kimi cursor: stderr "Enough." | unsaid [Halt]
    "#);
    insta::assert_snapshot!(table(AgentHookEvent::SessionStart, &no()), @r#"
    claude codex gemini qwen: {"systemMessage":"Not yet."} | unsaid [Block]
    copilot goose kimi cursor: stderr "Not yet." | unsaid [Block]
    "#);
    insta::assert_snapshot!(table(AgentHookEvent::SessionEnd, &told()), @r#"
    claude gemini qwen: {"systemMessage":"Look."} | unsaid [Context]
    codex copilot goose kimi cursor: stderr "Look." | unsaid [Context]
    "#);
    insta::assert_snapshot!(table(AgentHookEvent::PreCompact, &told()), @r#"
    claude codex gemini qwen: {"systemMessage":"Look."} | unsaid [Context]
    copilot goose kimi: stderr "Look." | unsaid [Context]
    cursor: {"user_message":"Look."} | unsaid [Context]
    "#);
    assert_eq!(
        table(AgentHookEvent::Notification, &AgentHookResponse::default()),
        table(AgentHookEvent::Stop, &AgentHookResponse::default())
    );
}

#[test]
fn unsupported_parts_are_described() {
    let check = |agent, event, reply: &AgentHookResponse, expected: &[&str]| {
        assert_eq!(AgentHookOutput::new(agent, event, reply).describe_unsupported(agent, event), expected);
    };
    let input =
        "goose accepts no other tool input from hooks: the tool is not used, and the reason names the wanted input";
    check(BridgeAgent::Goose, AgentHookEvent::PreToolUse, &updated(), &[input]);
    check(BridgeAgent::Claude, AgentHookEvent::PreToolUse, &updated(), &[]);
    check(
        BridgeAgent::Kimi,
        AgentHookEvent::SessionStart,
        &told(),
        &["Kimi Code gets no messages from hooks at this point"],
    );
    check(BridgeAgent::Copilot, AgentHookEvent::Stop, &halt(), &[]);
    check(BridgeAgent::Codex, AgentHookEvent::PreToolUse, &halt(), &["Codex cannot be ended at this point"]);
    let held = "goose cannot be stopped at this point: it continues";
    check(BridgeAgent::Goose, AgentHookEvent::UserPromptSubmit, &no(), &[held]);
}

/// A tool must not run with an input that a hook wants to change.
#[test]
fn unsupported_input_change_blocks_the_tool() {
    for ruling in [CallRuling::Pass, CallRuling::Allow, CallRuling::Ask] {
        let words = AgentHookOutput::new(
            BridgeAgent::Qwen,
            AgentHookEvent::PreToolUse,
            &AgentHookResponse { ruling, ..updated() },
        );
        assert!(blocks(&words) && words.stdout.contains(r#"{\"command\":\"ls\"}"#), "{words:?}");
    }
}

#[test]
fn empty_response_writes_nothing() {
    for (agent, event) in everywhere() {
        assert_eq!(
            AgentHookOutput::new(agent, event, &AgentHookResponse::default()),
            AgentHookOutput::default(),
            "{agent} {event:?}"
        );
    }
}

/// Some agents ignore a block without a reason.
#[test]
fn block_always_has_a_reason() {
    for (agent, event) in everywhere() {
        let words = AgentHookOutput::new(agent, event, &reply(CallRuling::Block, " \n"));
        assert!(!words.stdout.contains("\" \\n\""));
        assert_eq!(words.stderr.trim().is_empty(), words.stderr.is_empty());
    }
}

fn everywhere() -> impl Iterator<Item = (BridgeAgent, AgentHookEvent)> {
    BridgeAgent::ALL.iter().flat_map(|agent| AgentHookEvent::ALL.iter().map(|event| (*agent, *event)))
}

#[test]
fn updated_output_is_for_claude_code_only() {
    let reply = AgentHookResponse { updated_output: Some(json!({"stdout": "masked"})), ..AgentHookResponse::default() };
    let words = AgentHookOutput::new(BridgeAgent::Claude, AgentHookEvent::PostToolUse, &reply);
    assert_eq!(
        words.stdout,
        r#"{"hookSpecificOutput":{"hookEventName":"PostToolUse","updatedToolOutput":{"stdout":"masked"}}}"#
    );
    let other = AgentHookOutput::new(BridgeAgent::Gemini, AgentHookEvent::PostToolUse, &reply);
    assert_eq!((other.stdout.as_str(), other.unsupported), ("", vec![UnsupportedPart::UpdatedOutput]));
    assert_eq!(
        AgentHookOutput::new(BridgeAgent::Claude, AgentHookEvent::PreToolUse, &reply),
        AgentHookOutput::default()
    );
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), Just(" \n".to_owned()), Just("{\"decision\": \"block\"}".to_owned()), "\\PC{1,12}"]
}

fn some_reply() -> impl Strategy<Value = AgentHookResponse> {
    let some = || proptest::option::of(text());
    let ruling =
        proptest::sample::select(vec![CallRuling::Pass, CallRuling::Allow, CallRuling::Ask, CallRuling::Block]);
    let ruling = (ruling, text());
    let input = proptest::option::of(text().prop_map(|text| Map::from_iter([("command".to_owned(), json!(text))])));
    let output = proptest::option::of(text().prop_map(Value::from));
    (ruling, some(), some(), input, output, some()).prop_map(
        |((ruling, reason), halt, context, updated_input, updated_output, message)| AgentHookResponse {
            ruling,
            reason,
            halt,
            context,
            updated_input,
            updated_output,
            message,
        },
    )
}

/// Returns whether an output blocks.
fn blocks(words: &AgentHookOutput) -> bool {
    let answer: Value = serde_json::from_str(&words.stdout).unwrap_or_default();
    let specific = &answer["hookSpecificOutput"];
    words.exit == 2
        || answer["decision"] == "block"
        || specific["permissionDecision"] == "deny"
        || answer["permission"] == "deny"
        || answer.get("followup_message").is_some()
}

/// Returns the fields that Codex accepts. It rejects answers with any other field.
fn known_to_codex(event: AgentHookEvent) -> (&'static [&'static str], &'static [&'static str]) {
    const COMMON: &[&str] = &["continue", "stopReason", "suppressOutput", "systemMessage"];
    const DECIDING: &[&str] = &["continue", "stopReason", "suppressOutput", "systemMessage", "decision", "reason"];
    const BOTH: &[&str] =
        &["continue", "stopReason", "suppressOutput", "systemMessage", "decision", "reason", "hookSpecificOutput"];
    const STARTING: &[&str] = &["continue", "stopReason", "suppressOutput", "systemMessage", "hookSpecificOutput"];
    match event {
        AgentHookEvent::SessionStart => (STARTING, &["hookEventName", "additionalContext"]),
        AgentHookEvent::UserPromptSubmit | AgentHookEvent::PostToolUse => {
            (BOTH, &["hookEventName", "additionalContext"])
        }
        AgentHookEvent::PreToolUse => (
            &["systemMessage", "decision", "reason", "hookSpecificOutput"],
            &["hookEventName", "additionalContext", "permissionDecision", "permissionDecisionReason", "updatedInput"],
        ),
        AgentHookEvent::Stop | AgentHookEvent::SubagentStop => (DECIDING, &[]),
        AgentHookEvent::PreCompact => (COMMON, &[]),
        AgentHookEvent::SessionEnd => (&[], &[]),
        // Codex has no such event.
        AgentHookEvent::Notification => (COMMON, &[]),
    }
}

proptest! {
    #[test]
    fn only_a_block_blocks(reply in some_reply()) {
        for (agent, event) in everywhere() {
            let words = AgentHookOutput::new(agent, event, &reply);
            let deliberate = match reply.ruling {
                CallRuling::Block => true,
                // The agent cannot ask the user, so the tool is blocked.
                CallRuling::Ask => event == AgentHookEvent::PreToolUse && words.unsupported.contains(&UnsupportedPart::Ask),
                CallRuling::Pass | CallRuling::Allow => false,
            };
            // Blocking the tool is the only way to prevent its old input.
            let deliberate = deliberate || words.unsupported.contains(&UnsupportedPart::UpdatedInput);
            prop_assert!(!blocks(&words) || deliberate || reply.halt.is_some(), "{agent} {event:?} {words:?}");
            let answer: Value = serde_json::from_str(&words.stdout).unwrap_or_default();
            prop_assert!(answer["continue"] != false || reply.halt.is_some() || agent == BridgeAgent::Cursor && blocks_prompt(&reply));
            if event == AgentHookEvent::Stop {
                let sends_back = (reply.ruling == CallRuling::Block) && reply.halt.is_none();
                prop_assert_eq!(blocks(&words), sends_back);
            }
        }
    }

    #[test]
    fn block_is_never_lost(why in "[a-z]{3,9}", context in proptest::option::of("[a-z]{3,9}")) {
        let reply = AgentHookResponse { context, ..reply(CallRuling::Block, &why) };
        for (agent, event) in everywhere() {
            let words = AgentHookOutput::new(agent, event, &reply);
            prop_assert!(words.stdout.contains(&why) || words.stderr.contains(&why), "{agent} {event:?}");
            let can_block = !matches!(event, AgentHookEvent::PostToolUse);
            if can_block && !words.unsupported.contains(&UnsupportedPart::Block) {
                let refuses = words.stdout.contains("\"continue\":false");
                prop_assert!(blocks(&words) || refuses, "{agent} {event:?}");
            }
        }
    }

    #[test]
    fn output_has_the_agents_form(reply in some_reply()) {
        for (agent, event) in everywhere() {
            let AgentHookOutput { stdout, stderr, exit, .. } = AgentHookOutput::new(agent, event, &reply);
            let answer: Value = if stdout.is_empty() { json!({}) } else { serde_json::from_str(&stdout).unwrap() };
            prop_assert!(answer.is_object() && !stdout.contains('\n'));
            prop_assert!(exit == 0 || exit == 2 && !stderr.trim().is_empty());
            if agent == BridgeAgent::Codex {
                let (top, inner) = known_to_codex(event);
                let specific = answer["hookSpecificOutput"].as_object().cloned().unwrap_or_default();
                prop_assert!(answer.as_object().unwrap().keys().all(|key| top.contains(&key.as_str())), "{event:?} {stdout}");
                prop_assert!(specific.keys().all(|key| inner.contains(&key.as_str())), "{event:?} {stdout}");
                // Codex rejects a permission without an updated input, and any question.
                let decision = &specific.get("permissionDecision").cloned().unwrap_or_default();
                prop_assert!(decision != "ask" && (decision != "allow" || specific.contains_key("updatedInput")));
            }
        }
    }
}

fn blocks_prompt(reply: &AgentHookResponse) -> bool {
    reply.ruling == CallRuling::Block
}
