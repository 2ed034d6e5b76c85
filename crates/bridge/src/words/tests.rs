//! What is said to whom, as a table, and what holds of it whatever is said.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use crate::Ruling;

fn reply(ruling: Ruling) -> Reply {
    Reply { ruling, ..Reply::default() }
}

fn no() -> Reply {
    reply(Ruling::Block("Not yet.".to_owned()))
}

fn halt() -> Reply {
    Reply { halt: Some("Enough.".to_owned()), ..Reply::default() }
}

fn told() -> Reply {
    Reply { context: Some("Read me.".to_owned()), message: Some("Look.".to_owned()), ..Reply::default() }
}

fn updated() -> Reply {
    let input = Map::from_iter([("command".to_owned(), json!("ls"))]);
    Reply { updated_input: Some(input), ..Reply::default() }
}

/// The words of every agent; those that speak alike stand together.
fn table(moment: Moment, reply: &Reply) -> String {
    let mut said: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for agent in Agent::ALL {
        let Words { stdout, stderr, exit, unsaid } = Words::of(*agent, moment, reply);
        let mut words: Vec<String> = Some(stdout).filter(|text| !text.is_empty()).into_iter().collect();
        words.extend(Some(stderr).filter(|text| !text.is_empty()).map(|text| format!("stderr {text:?}")));
        words.extend((exit != 0).then(|| format!("exit {exit}")));
        words.extend((!unsaid.is_empty()).then(|| format!("unsaid {unsaid:?}")));
        said.entry(words.join(" | ")).or_default().push(agent.name());
    }
    let mut lines: Vec<String> = said.iter().map(|(words, agents)| format!("{}: {words}", agents.join(" "))).collect();
    lines.sort();
    lines.join("\n")
}

#[test]
fn at_the_end() {
    insta::assert_snapshot!(table(Moment::Stop, &no()), @r#"
    claude codex gemini qwen copilot goose kimi: {"decision":"block","reason":"Not yet."} | stderr "Not yet." | exit 2
    cursor: {"followup_message":"Not yet."}
    "#);
    insta::assert_snapshot!(table(Moment::Stop, &halt()), @r#"
    claude codex gemini: {"continue":false,"stopReason":"Enough."}
    copilot goose kimi cursor: stderr "Enough." | unsaid [Halt]
    qwen: {"systemMessage":"Enough."} | unsaid [Halt]
    "#);
    insta::assert_snapshot!(table(Moment::Stop, &told()), @r#"
    claude codex gemini qwen: {"systemMessage":"Look."} | unsaid [Context]
    copilot goose kimi cursor: stderr "Look." | unsaid [Context]
    "#);
    insta::assert_snapshot!(table(Moment::Stop, &Reply { ruling: no().ruling, ..told() }), @r#"
    claude codex gemini qwen: {"decision":"block","reason":"Not yet.\n\nRead me.","systemMessage":"Look."} | stderr "Not yet.\n\nRead me." | exit 2
    copilot goose kimi: {"decision":"block","reason":"Not yet.\n\nRead me."} | stderr "Not yet.\n\nRead me." | exit 2 | unsaid [Message]
    cursor: {"followup_message":"Not yet.\n\nRead me."} | stderr "Look."
    "#);
    insta::assert_snapshot!(table(Moment::SubagentStop, &no()), @r#"
    claude codex gemini qwen copilot goose: {"decision":"block","reason":"Not yet."} | stderr "Not yet." | exit 2
    cursor: {"followup_message":"Not yet."}
    kimi: stderr "Not yet." | unsaid [Block]
    "#);
}

#[test]
fn before_a_tool() {
    insta::assert_snapshot!(table(Moment::PreToolUse, &no()), @r#"
    claude codex qwen copilot goose kimi: {"decision":"block","hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"Not yet."},"reason":"Not yet."}
    cursor: {"agent_message":"Not yet.","permission":"deny","user_message":"Not yet."}
    gemini: {"decision":"block","hookSpecificOutput":{"hookEventName":"BeforeTool","permissionDecision":"deny","permissionDecisionReason":"Not yet."},"reason":"Not yet."}
    "#);
    insta::assert_snapshot!(table(Moment::PreToolUse, &halt()), @r#"
    claude: {"continue":false,"decision":"block","hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"Enough."},"reason":"Enough.","stopReason":"Enough."}
    codex qwen copilot goose kimi: {"decision":"block","hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"Enough."},"reason":"Enough."} | unsaid [Halt]
    cursor: {"agent_message":"Enough.","permission":"deny","user_message":"Enough."} | unsaid [Halt]
    gemini: {"continue":false,"decision":"block","hookSpecificOutput":{"hookEventName":"BeforeTool","permissionDecision":"deny","permissionDecisionReason":"Enough."},"reason":"Enough.","stopReason":"Enough."}
    "#);
    insta::assert_snapshot!(table(Moment::PreToolUse, &reply(Ruling::Ask("Sure?".to_owned()))), @r#"
    claude qwen copilot: {"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask","permissionDecisionReason":"Sure?"}}
    codex: {"decision":"block","hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"Sure?\n\nA person has to agree, and Codex cannot be made to ask: it is not done."},"reason":"Sure?\n\nA person has to agree, and Codex cannot be made to ask: it is not done."} | unsaid [Ask]
    cursor: {"agent_message":"Sure?\n\nA person has to agree, and Cursor cannot be made to ask: it is not done.","permission":"deny","user_message":"Sure?\n\nA person has to agree, and Cursor cannot be made to ask: it is not done."} | unsaid [Ask]
    gemini: {"decision":"block","hookSpecificOutput":{"hookEventName":"BeforeTool","permissionDecision":"deny","permissionDecisionReason":"Sure?\n\nA person has to agree, and Gemini CLI cannot be made to ask: it is not done."},"reason":"Sure?\n\nA person has to agree, and Gemini CLI cannot be made to ask: it is not done."} | unsaid [Ask]
    goose: {"decision":"block","hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"Sure?\n\nA person has to agree, and goose cannot be made to ask: it is not done."},"reason":"Sure?\n\nA person has to agree, and goose cannot be made to ask: it is not done."} | unsaid [Ask]
    kimi: {"decision":"block","hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"Sure?\n\nA person has to agree, and Kimi Code cannot be made to ask: it is not done."},"reason":"Sure?\n\nA person has to agree, and Kimi Code cannot be made to ask: it is not done."} | unsaid [Ask]
    "#);
    insta::assert_snapshot!(table(Moment::PreToolUse, &reply(Ruling::Allow("Fine.".to_owned()))), @r#"
    claude qwen copilot: {"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","permissionDecisionReason":"Fine."}}
    codex gemini goose kimi: unsaid [Allow]
    cursor: {"permission":"allow"}
    "#);
    insta::assert_snapshot!(table(Moment::PreToolUse, &updated()), @r#"
    claude copilot: {"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"command":"ls"}}}
    codex: {"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","updatedInput":{"command":"ls"}}}
    cursor: {"permission":"allow","updated_input":{"command":"ls"}}
    gemini: {"hookSpecificOutput":{"hookEventName":"BeforeTool","tool_input":{"command":"ls"}}}
    goose: {"decision":"block","hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"A hook wants another input for this tool, and goose takes none from hooks: it is not done. Use the tool again, with this input: {\"command\":\"ls\"}"},"reason":"A hook wants another input for this tool, and goose takes none from hooks: it is not done. Use the tool again, with this input: {\"command\":\"ls\"}"} | unsaid [UpdatedInput]
    kimi: {"decision":"block","hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"A hook wants another input for this tool, and Kimi Code takes none from hooks: it is not done. Use the tool again, with this input: {\"command\":\"ls\"}"},"reason":"A hook wants another input for this tool, and Kimi Code takes none from hooks: it is not done. Use the tool again, with this input: {\"command\":\"ls\"}"} | unsaid [UpdatedInput]
    qwen: {"decision":"block","hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"A hook wants another input for this tool, and Qwen Code takes none from hooks: it is not done. Use the tool again, with this input: {\"command\":\"ls\"}"},"reason":"A hook wants another input for this tool, and Qwen Code takes none from hooks: it is not done. Use the tool again, with this input: {\"command\":\"ls\"}"} | unsaid [UpdatedInput]
    "#);
    insta::assert_snapshot!(table(Moment::PreToolUse, &told()), @r#"
    claude codex: {"hookSpecificOutput":{"additionalContext":"Read me.","hookEventName":"PreToolUse"},"systemMessage":"Look."}
    copilot: {"additionalContext":"Read me."} | stderr "Look."
    gemini qwen: {"systemMessage":"Look."} | unsaid [Context]
    goose kimi cursor: stderr "Look." | unsaid [Context]
    "#);
}

#[test]
fn after_a_tool() {
    insta::assert_snapshot!(table(Moment::PostToolUse, &no()), @r#"
    claude codex gemini copilot: {"decision":"block","reason":"Not yet."}
    cursor: {"additional_context":"Not yet."}
    goose kimi: stderr "Not yet." | unsaid [Block]
    qwen: {"hookSpecificOutput":{"additionalContext":"Not yet.","hookEventName":"PostToolUse"}}
    "#);
    insta::assert_snapshot!(table(Moment::PostToolUse, &halt()), @r#"
    claude gemini: {"continue":false,"stopReason":"Enough."}
    codex copilot: {"decision":"block","reason":"Enough."} | unsaid [Halt]
    cursor: {"additional_context":"Enough."} | unsaid [Halt]
    goose kimi: stderr "Enough." | unsaid [Halt, Block]
    qwen: {"hookSpecificOutput":{"additionalContext":"Enough.","hookEventName":"PostToolUse"}} | unsaid [Halt]
    "#);
    insta::assert_snapshot!(table(Moment::PostToolUse, &told()), @r#"
    claude codex qwen: {"hookSpecificOutput":{"additionalContext":"Read me.","hookEventName":"PostToolUse"},"systemMessage":"Look."}
    copilot: {"additionalContext":"Read me."} | stderr "Look."
    cursor: {"additional_context":"Read me."} | stderr "Look."
    gemini: {"hookSpecificOutput":{"additionalContext":"Read me.","hookEventName":"AfterTool"},"systemMessage":"Look."}
    goose kimi: stderr "Look." | unsaid [Context]
    "#);
}

#[test]
fn before_a_prompt() {
    insta::assert_snapshot!(table(Moment::UserPromptSubmit, &no()), @r#"
    claude codex gemini qwen copilot kimi: {"decision":"block","reason":"Not yet."} | stderr "Not yet." | exit 2
    cursor: {"continue":false,"user_message":"Not yet."}
    goose: stderr "Not yet." | unsaid [Block]
    "#);
    insta::assert_snapshot!(table(Moment::UserPromptSubmit, &halt()), @r#"
    claude codex gemini qwen: {"continue":false,"stopReason":"Enough."}
    copilot kimi: {"decision":"block","reason":"Enough."} | stderr "Enough." | exit 2 | unsaid [Halt]
    cursor: {"continue":false,"user_message":"Enough."}
    goose: stderr "Enough." | unsaid [Halt, Block]
    "#);
    insta::assert_snapshot!(table(Moment::UserPromptSubmit, &told()), @r#"
    claude codex qwen: {"hookSpecificOutput":{"additionalContext":"Read me.","hookEventName":"UserPromptSubmit"},"systemMessage":"Look."}
    copilot: {"additionalContext":"Read me."} | stderr "Look."
    gemini: {"hookSpecificOutput":{"additionalContext":"Read me.","hookEventName":"BeforeAgent"},"systemMessage":"Look."}
    goose cursor: stderr "Look." | unsaid [Context]
    kimi: {"message":"Read me."} | stderr "Look."
    "#);
}

#[test]
fn where_nothing_can_be_kept_from_happening() {
    insta::assert_snapshot!(table(Moment::SessionStart, &told()), @r#"
    claude codex gemini qwen: {"hookSpecificOutput":{"additionalContext":"Read me.","hookEventName":"SessionStart"},"systemMessage":"Look."}
    copilot: {"additionalContext":"Read me."} | stderr "Look."
    cursor: {"additional_context":"Read me."} | stderr "Look."
    goose kimi: stderr "Look." | unsaid [Context]
    "#);
    insta::assert_snapshot!(table(Moment::SessionStart, &halt()), @r#"
    claude gemini qwen: {"systemMessage":"Enough."} | unsaid [Halt]
    codex: {"continue":false,"stopReason":"Enough."}
    copilot goose kimi cursor: stderr "Enough." | unsaid [Halt]
    "#);
    insta::assert_snapshot!(table(Moment::SessionStart, &no()), @r#"
    claude codex gemini qwen: {"systemMessage":"Not yet."} | unsaid [Block]
    copilot goose kimi cursor: stderr "Not yet." | unsaid [Block]
    "#);
    insta::assert_snapshot!(table(Moment::SessionEnd, &told()), @r#"
    claude gemini qwen: {"systemMessage":"Look."} | unsaid [Context]
    codex copilot goose kimi cursor: stderr "Look." | unsaid [Context]
    "#);
    insta::assert_snapshot!(table(Moment::PreCompact, &told()), @r#"
    claude codex gemini qwen: {"systemMessage":"Look."} | unsaid [Context]
    copilot goose kimi: stderr "Look." | unsaid [Context]
    cursor: {"user_message":"Look."} | unsaid [Context]
    "#);
    assert_eq!(table(Moment::Notification, &Reply::default()), table(Moment::Stop, &Reply::default()));
}

#[test]
fn people_are_told_what_was_left_out() {
    let check = |agent, moment, reply: &Reply, expected: &[&str]| {
        assert_eq!(Words::of(agent, moment, reply).left_out(agent, moment), expected);
    };
    let input = "goose cannot be given another input for a tool: it is not used, and the reason says what is wanted";
    check(Agent::Goose, Moment::PreToolUse, &updated(), &[input]);
    check(Agent::Claude, Moment::PreToolUse, &updated(), &[]);
    check(Agent::Kimi, Moment::SessionStart, &told(), &["Kimi Code cannot be told anything at this point"]);
    check(Agent::Copilot, Moment::Stop, &halt(), &[]);
    check(Agent::Codex, Moment::PreToolUse, &halt(), &["Codex cannot be made to end at this point"]);
    let held = "goose cannot be held back at this point: it goes on all the same";
    check(Agent::Goose, Moment::UserPromptSubmit, &no(), &[held]);
}

/// What a hook has changed for good reason is not used as it was.
#[test]
fn an_input_that_cannot_be_changed_is_not_used() {
    for ruling in [Ruling::Pass, Ruling::Allow("Fine.".to_owned()), Ruling::Ask("Sure?".to_owned())] {
        let words = Words::of(Agent::Qwen, Moment::PreToolUse, &Reply { ruling, ..updated() });
        assert!(blocks(&words) && words.stdout.contains(r#"{\"command\":\"ls\"}"#), "{words:?}");
    }
}

#[test]
fn who_says_nothing_is_not_heard() {
    for (agent, moment) in everywhere() {
        assert_eq!(Words::of(agent, moment, &Reply::default()), Words::default(), "{agent} {moment:?}");
    }
}

/// A refusal without a reason is none to some.
#[test]
fn there_is_always_a_reason() {
    for (agent, moment) in everywhere() {
        let words = Words::of(agent, moment, &reply(Ruling::Block(" \n".to_owned())));
        assert!(!words.stdout.contains("\" \\n\""));
        assert_eq!(words.stderr.trim().is_empty(), words.stderr.is_empty());
    }
}

fn everywhere() -> impl Iterator<Item = (Agent, Moment)> {
    Agent::ALL.iter().flat_map(|agent| Moment::ALL.iter().map(|moment| (*agent, *moment)))
}

#[test]
fn another_output_of_a_tool_is_for_claude_code() {
    let reply = Reply { updated_output: Some(json!({"stdout": "masked"})), ..Reply::default() };
    let words = Words::of(Agent::Claude, Moment::PostToolUse, &reply);
    assert_eq!(
        words.stdout,
        r#"{"hookSpecificOutput":{"hookEventName":"PostToolUse","updatedToolOutput":{"stdout":"masked"}}}"#
    );
    let other = Words::of(Agent::Gemini, Moment::PostToolUse, &reply);
    assert_eq!((other.stdout.as_str(), other.unsaid), ("", vec![Unsaid::UpdatedOutput]));
    assert_eq!(Words::of(Agent::Claude, Moment::PreToolUse, &reply), Words::default());
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), Just(" \n".to_owned()), Just("{\"decision\": \"block\"}".to_owned()), "\\PC{1,12}"]
}

fn some_reply() -> impl Strategy<Value = Reply> {
    let some = || proptest::option::of(text());
    let ruling = (0..4, text()).prop_map(|(which, why)| match which {
        0 => Ruling::Pass,
        1 => Ruling::Allow(why),
        2 => Ruling::Ask(why),
        _ => Ruling::Block(why),
    });
    let input = proptest::option::of(text().prop_map(|text| Map::from_iter([("command".to_owned(), json!(text))])));
    let output = proptest::option::of(text().prop_map(Value::from));
    (ruling, some(), some(), input, output, some()).prop_map(
        |(ruling, halt, context, updated_input, updated_output, message)| Reply {
            ruling,
            halt,
            context,
            updated_input,
            updated_output,
            message,
        },
    )
}

/// Whether these words keep something from happening.
fn blocks(words: &Words) -> bool {
    let answer: Value = serde_json::from_str(&words.stdout).unwrap_or_default();
    let specific = &answer["hookSpecificOutput"];
    words.exit == 2
        || answer["decision"] == "block"
        || specific["permissionDecision"] == "deny"
        || answer["permission"] == "deny"
        || answer.get("followup_message").is_some()
}

/// The fields that Codex knows in its answers. It rejects those with any other.
fn known_to_codex(moment: Moment) -> (&'static [&'static str], &'static [&'static str]) {
    const COMMON: &[&str] = &["continue", "stopReason", "suppressOutput", "systemMessage"];
    const DECIDING: &[&str] = &["continue", "stopReason", "suppressOutput", "systemMessage", "decision", "reason"];
    const BOTH: &[&str] =
        &["continue", "stopReason", "suppressOutput", "systemMessage", "decision", "reason", "hookSpecificOutput"];
    const STARTING: &[&str] = &["continue", "stopReason", "suppressOutput", "systemMessage", "hookSpecificOutput"];
    match moment {
        Moment::SessionStart => (STARTING, &["hookEventName", "additionalContext"]),
        Moment::UserPromptSubmit | Moment::PostToolUse => (BOTH, &["hookEventName", "additionalContext"]),
        Moment::PreToolUse => (
            &["systemMessage", "decision", "reason", "hookSpecificOutput"],
            &["hookEventName", "additionalContext", "permissionDecision", "permissionDecisionReason", "updatedInput"],
        ),
        Moment::Stop | Moment::SubagentStop => (DECIDING, &[]),
        Moment::PreCompact => (COMMON, &[]),
        Moment::SessionEnd => (&[], &[]),
        // It has no such event.
        Moment::Notification => (COMMON, &[]),
    }
}

proptest! {
    #[test]
    fn nothing_but_a_no_blocks(reply in some_reply()) {
        for (agent, moment) in everywhere() {
            let words = Words::of(agent, moment, &reply);
            let deliberate = match &reply.ruling {
                Ruling::Block(_) => true,
                // Nobody can be asked.
                Ruling::Ask(_) => moment == Moment::PreToolUse && words.unsaid.contains(&Unsaid::Ask),
                Ruling::Pass | Ruling::Allow(_) => false,
            };
            // It has no other way to keep the old input from being used.
            let deliberate = deliberate || words.unsaid.contains(&Unsaid::UpdatedInput);
            prop_assert!(!blocks(&words) || deliberate || reply.halt.is_some(), "{agent} {moment:?} {words:?}");
            let answer: Value = serde_json::from_str(&words.stdout).unwrap_or_default();
            prop_assert!(answer["continue"] != false || reply.halt.is_some() || agent == Agent::Cursor && blocks_prompt(&reply));
            if moment == Moment::Stop {
                let sends_back = matches!(reply.ruling, Ruling::Block(_)) && reply.halt.is_none();
                prop_assert_eq!(blocks(&words), sends_back);
            }
        }
    }

    #[test]
    fn a_no_is_not_lost(why in "[a-z]{3,9}", context in proptest::option::of("[a-z]{3,9}")) {
        let reply = Reply { ruling: Ruling::Block(why.clone()), context, ..Reply::default() };
        for (agent, moment) in everywhere() {
            let words = Words::of(agent, moment, &reply);
            prop_assert!(words.stdout.contains(&why) || words.stderr.contains(&why), "{agent} {moment:?}");
            let can_block = !matches!(moment, Moment::PostToolUse);
            if can_block && !words.unsaid.contains(&Unsaid::Block) {
                let refuses = words.stdout.contains("\"continue\":false");
                prop_assert!(blocks(&words) || refuses, "{agent} {moment:?}");
            }
        }
    }

    #[test]
    fn words_have_their_form(reply in some_reply()) {
        for (agent, moment) in everywhere() {
            let Words { stdout, stderr, exit, .. } = Words::of(agent, moment, &reply);
            let answer: Value = if stdout.is_empty() { json!({}) } else { serde_json::from_str(&stdout).unwrap() };
            prop_assert!(answer.is_object() && !stdout.contains('\n'));
            prop_assert!(exit == 0 || exit == 2 && !stderr.trim().is_empty());
            if agent == Agent::Codex {
                let (top, inner) = known_to_codex(moment);
                let specific = answer["hookSpecificOutput"].as_object().cloned().unwrap_or_default();
                prop_assert!(answer.as_object().unwrap().keys().all(|key| top.contains(&key.as_str())), "{moment:?} {stdout}");
                prop_assert!(specific.keys().all(|key| inner.contains(&key.as_str())), "{moment:?} {stdout}");
                // Allowing without another input is a mistake to it, and so is asking.
                let decision = &specific.get("permissionDecision").cloned().unwrap_or_default();
                prop_assert!(decision != "ask" && (decision != "allow" || specific.contains_key("updatedInput")));
            }
        }
    }
}

fn blocks_prompt(reply: &Reply) -> bool {
    matches!(reply.ruling, Ruling::Block(_))
}
