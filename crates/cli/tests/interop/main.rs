//! Installed agents in complete sessions, with hooks at every point and a gate that sends them back into the same conversation.
//! The model is a script on this machine (`testkit::provider`), and the network namespace has no external network.
//!
//! `scripts/agents` installs the agents. A test whose agent is missing prints a message and passes.
#![allow(clippy::disallowed_methods, reason = "tests read files that they have written")]
#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
#![expect(clippy::print_stderr, reason = "a skipped test prints a message")]

mod agent_home;
mod agents;
mod bridge_sessions;
mod review_agents;

use serde_json::{Value, json};
use windlass_testkit::provider::{CACHED_TOKENS, OUTPUT_TOKENS, UNCACHED_TOKENS};

use agent_home::{AgentHome, is_isolated_run};
use agents::InstalledAgent;

/// The script of the model. The answers in the conversation determine the step, so a new conversation would start at the first
/// step, and the gate would never pass.
const MODEL_SCRIPT: &str = "
- run: echo half > notes.txt
- say: I have mended notes.txt. <promise>COMPLETE</promise>
- run: echo whole > notes.txt
- say: Now it is whole. <promise>COMPLETE</promise>
";

const CONFIG: &str = "
hooks:
  session_start: [{command: 'echo session_start >> \"$HOME/hooks\"'}]
  pre_iteration: [{command: 'echo pre_iteration >> \"$HOME/hooks\"; echo the tide is at 17', pipe_output: true}]
  post_iteration: [{command: 'echo post_iteration >> \"$HOME/hooks\"'}]
  stop: [{command: 'echo stop >> \"$HOME/hooks\"; grep -q whole notes.txt || { echo notes.txt is half mended >&2; exit 2; }'}]
";

/// The usage that an agent reports for its turns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UsageReport {
    Tokens,
    Nothing,
}

/// Checks a complete session of two turns in one conversation.
fn check_session(test: &str, real_agent: &InstalledAgent, agent: &str, usage_report: UsageReport) {
    if !is_isolated_run(test, real_agent) {
        return;
    }
    let home = AgentHome::new(real_agent, MODEL_SCRIPT);
    home.write_file(".windlass/config.yaml", CONFIG);
    home.run_windlass(&["trust", "--yes"]);
    let (code, out) = home.run_windlass(&["run", "Mend notes.txt", "--agent", agent]);
    assert_eq!(code, 0, "{out}");
    assert_eq!(home.read_file("notes.txt"), "whole\n", "{out}");
    assert_eq!(home.read_hooks(), ["session_start", "pre_iteration", "stop", "stop", "post_iteration"], "{out}");
    let openings: Vec<_> =
        home.event_payloads("conversation_opened").iter().map(|opened| opened["opening"].clone()).collect();
    assert_eq!(openings, ["new"], "{out}");
    let turns = home.event_payloads("turn_finished");
    let outputs: Vec<_> = turns.iter().map(|turn| turn["output"].as_str().unwrap().trim().to_owned()).collect();
    assert_eq!(
        outputs,
        ["I have mended notes.txt. <promise>COMPLETE</promise>", "Now it is whole. <promise>COMPLETE</promise>"]
    );
    if usage_report == UsageReport::Tokens {
        // The model answers twice in each turn.
        let input = 2 * (UNCACHED_TOKENS + CACHED_TOKENS);
        for turn in &turns {
            let usage = &turn["usage"];
            assert_eq!(
                (usage["input"].as_u64(), usage["output"].as_u64()),
                (Some(input), Some(2 * OUTPUT_TOKENS)),
                "{usage}"
            );
        }
    }
    let requests = home.model_requests();
    assert!(requests.first().is_some_and(|first| first.contains("the tide is at 17")), "{requests:?}");
    let last = requests.last().unwrap();
    assert!(last.contains("notes.txt is half mended") && last.contains("the tide is at 17"), "it remembers");
}

/// The call of a Windlass tool in a turn that another turn follows, and in the last turn.
const FIRST_NOTE: &str = "
- call: {tool: note_add, input: {text: The tide is at 17.}}
- say: Not yet.
";
const LAST_NOTE: &str = "
- call: {tool: note_add, input: {text: Now it is at 18.}}
- say: Noted. <promise>COMPLETE</promise>
";

/// Claude Code offers tools of servers only to a model that has searched for them.
const SEARCH: &str = "
- call: {tool: ToolSearch, input: {query: 'select:mcp__windlass__note_add'}}
";

/// Checks that the agent has the tools of Windlass, and that their calls belong to the current turn.
fn check_notes(test: &str, real_agent: &InstalledAgent, agent: &str, model: &[&str]) {
    if !is_isolated_run(test, real_agent) {
        return;
    }
    let home = AgentHome::new(real_agent, &model.concat());
    let (code, out) = home.run_windlass(&["run", "Mend notes.txt", "--agent", agent, "--session", "tide"]);
    assert_eq!(code, 0, "{out}");
    let note_fields = |note: &Value| json!([note["session"], note["iteration"], note["data"]["text"]]);
    let notes: Vec<_> = home.full_events("note_added").iter().map(note_fields).collect();
    let expected = match model.contains(&FIRST_NOTE) {
        true => vec![json!(["tide", 1, "The tide is at 17."]), json!(["tide", 2, "Now it is at 18."])],
        false => vec![json!(["tide", 1, "Now it is at 18."])],
    };
    assert_eq!(notes, expected, "{out}");
}

#[test]
fn claude_with_our_tools() {
    check_notes("claude_with_our_tools", &agents::CLAUDE, "claude", &[SEARCH, FIRST_NOTE, LAST_NOTE]);
}

#[test]
fn goose_with_our_tools() {
    check_notes("goose_with_our_tools", &agents::GOOSE, "goose", &[FIRST_NOTE, LAST_NOTE]);
}

#[test]
fn goose_over_acp_with_our_tools() {
    let agent = "acp:goose acp --with-builtin developer";
    check_notes("goose_over_acp_with_our_tools", &agents::GOOSE, agent, &[FIRST_NOTE, LAST_NOTE]);
}

#[test]
fn codex_with_our_tools() {
    check_notes("codex_with_our_tools", &agents::CODEX, "codex", &[FIRST_NOTE, LAST_NOTE]);
}

/// This agent supports tool servers only over HTTP.
#[test]
fn copilot_over_acp_with_our_tools() {
    check_notes("copilot_over_acp_with_our_tools", &agents::COPILOT, "copilot", &[FIRST_NOTE, LAST_NOTE]);
}

/// A turn of this agent takes long, so the session has only one.
#[test]
fn opencode_with_our_tools() {
    check_notes("opencode_with_our_tools", &agents::OPENCODE, "opencode", &[LAST_NOTE]);
}

#[test]
fn goose_headless_session_passes_gate_on_second_turn() {
    check_session("goose_headless_session_passes_gate_on_second_turn", &agents::GOOSE, "goose", UsageReport::Tokens);
}

#[test]
fn goose_over_acp() {
    check_session("goose_over_acp", &agents::GOOSE, "acp:goose acp --with-builtin developer", UsageReport::Nothing);
}

#[test]
fn codex_headless_session_passes_gate_on_second_turn() {
    check_session("codex_headless_session_passes_gate_on_second_turn", &agents::CODEX, "codex", UsageReport::Tokens);
}

#[test]
fn opencode_headless_session_passes_gate_on_second_turn() {
    check_session(
        "opencode_headless_session_passes_gate_on_second_turn",
        &agents::OPENCODE,
        "opencode",
        UsageReport::Tokens,
    );
}

#[test]
fn claude_headless_session_passes_gate_on_second_turn() {
    check_session("claude_headless_session_passes_gate_on_second_turn", &agents::CLAUDE, "claude", UsageReport::Tokens);
}

#[test]
fn gemini_headless_session_passes_gate_on_second_turn() {
    check_session("gemini_headless_session_passes_gate_on_second_turn", &agents::GEMINI, "gemini", UsageReport::Tokens);
}
