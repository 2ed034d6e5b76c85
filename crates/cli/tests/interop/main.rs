//! Real agents, as people install them, in whole sessions: hooks at every point, and a gate that sends them back into the same
//! conversation. Their model is a script on this machine (`testkit::provider`), and there is no network.
//!
//! `scripts/agents` installs them. A test whose agent is not installed says so and passes.
#![allow(clippy::disallowed_methods, reason = "tests read files that they have written")]
#![expect(clippy::unwrap_used, reason = "what a test cannot do without is there, or the test fails")]
#![expect(clippy::print_stderr, reason = "a test that is left out says so")]

mod agents;
mod bridged;
mod judging;
mod place;

use serde_json::{Value, json};
use windlass_testkit::provider::{CACHED, FRESH, WRITTEN};

use agents::Real;
use place::{Place, alone};

/// The model's script. The model knows its step from the answers in the conversation: in a new one it would begin again, and the
/// gate would never pass.
const MODEL: &str = "
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

/// The figures that an agent reports of its turns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tells {
    Tokens,
    Nothing,
}

/// Runs a whole session of two turns in one conversation.
fn works(test: &str, real: &Real, agent: &str, tells: Tells) {
    if !alone(test, real) {
        return;
    }
    let place = Place::new(real, MODEL);
    place.write(".windlass/config.yaml", CONFIG);
    place.windlass(&["trust", "--yes"]);
    let (code, out) = place.windlass(&["run", "Mend notes.txt", "--agent", agent]);
    assert_eq!(code, 0, "{out}");
    assert_eq!(place.read("notes.txt"), "whole\n", "{out}");
    assert_eq!(place.hooks(), ["session_start", "pre_iteration", "stop", "stop", "post_iteration"], "{out}");
    let openings: Vec<_> = place.events("conversation_opened").iter().map(|opened| opened["opening"].clone()).collect();
    assert_eq!(openings, ["new"], "{out}");
    let turns = place.events("turn_finished");
    let said: Vec<_> = turns.iter().map(|turn| turn["output"].as_str().unwrap().trim().to_owned()).collect();
    assert_eq!(
        said,
        ["I have mended notes.txt. <promise>COMPLETE</promise>", "Now it is whole. <promise>COMPLETE</promise>"]
    );
    if tells == Tells::Tokens {
        // Two answers of the model in each turn.
        let input = 2 * (FRESH + CACHED);
        for turn in &turns {
            let usage = &turn["usage"];
            assert_eq!(
                (usage["input"].as_u64(), usage["output"].as_u64()),
                (Some(input), Some(2 * WRITTEN)),
                "{usage}"
            );
        }
    }
    let asked = place.asked();
    assert!(asked.first().is_some_and(|first| first.contains("the tide is at 17")), "{asked:?}");
    let last = asked.last().unwrap();
    assert!(last.contains("notes.txt is half mended") && last.contains("the tide is at 17"), "it remembers");
}

/// The calls of our tools in a turn after which the model goes on, and in its last one.
const FIRST_NOTE: &str = "
- call: {tool: note_add, input: {text: The tide is at 17.}}
- say: Not yet.
";
const LAST_NOTE: &str = "
- call: {tool: note_add, input: {text: Now it is at 18.}}
- say: Noted. <promise>COMPLETE</promise>
";

/// Claude Code offers tools of servers only to a model that has looked for them.
const SEARCH: &str = "
- call: {tool: ToolSearch, input: {query: 'select:mcp__windlass__note_add'}}
";

/// The agent has our tools, and its calls belong to the turn that it is in.
fn notes(test: &str, real: &Real, agent: &str, model: &[&str]) {
    if !alone(test, real) {
        return;
    }
    let place = Place::new(real, &model.concat());
    let (code, out) = place.windlass(&["run", "Mend notes.txt", "--agent", agent, "--session", "tide"]);
    assert_eq!(code, 0, "{out}");
    let seen = |note: &Value| json!([note["session"], note["iteration"], note["data"]["text"]]);
    let notes: Vec<_> = place.whole_events("note_added").iter().map(seen).collect();
    let expected = match model.contains(&FIRST_NOTE) {
        true => vec![json!(["tide", 1, "The tide is at 17."]), json!(["tide", 2, "Now it is at 18."])],
        false => vec![json!(["tide", 1, "Now it is at 18."])],
    };
    assert_eq!(notes, expected, "{out}");
}

#[test]
fn claude_with_our_tools() {
    notes("claude_with_our_tools", &agents::CLAUDE, "claude", &[SEARCH, FIRST_NOTE, LAST_NOTE]);
}

#[test]
fn goose_with_our_tools() {
    notes("goose_with_our_tools", &agents::GOOSE, "goose", &[FIRST_NOTE, LAST_NOTE]);
}

#[test]
fn goose_over_acp_with_our_tools() {
    let agent = "acp:goose acp --with-builtin developer";
    notes("goose_over_acp_with_our_tools", &agents::GOOSE, agent, &[FIRST_NOTE, LAST_NOTE]);
}

#[test]
fn codex_with_our_tools() {
    notes("codex_with_our_tools", &agents::CODEX, "codex", &[FIRST_NOTE, LAST_NOTE]);
}

/// This agent takes servers of tools over HTTP only.
#[test]
fn copilot_over_acp_with_our_tools() {
    notes("copilot_over_acp_with_our_tools", &agents::COPILOT, "copilot", &[FIRST_NOTE, LAST_NOTE]);
}

/// A turn of this agent takes long, so there is only one.
#[test]
fn opencode_with_our_tools() {
    notes("opencode_with_our_tools", &agents::OPENCODE, "opencode", &[LAST_NOTE]);
}

#[test]
fn goose_headless() {
    works("goose_headless", &agents::GOOSE, "goose", Tells::Tokens);
}

#[test]
fn goose_over_acp() {
    works("goose_over_acp", &agents::GOOSE, "acp:goose acp --with-builtin developer", Tells::Nothing);
}

#[test]
fn codex_headless() {
    works("codex_headless", &agents::CODEX, "codex", Tells::Tokens);
}

#[test]
fn opencode_headless() {
    works("opencode_headless", &agents::OPENCODE, "opencode", Tells::Tokens);
}

#[test]
fn claude_headless() {
    works("claude_headless", &agents::CLAUDE, "claude", Tells::Tokens);
}

#[test]
fn gemini_headless() {
    works("gemini_headless", &agents::GEMINI, "gemini", Tells::Tokens);
}
