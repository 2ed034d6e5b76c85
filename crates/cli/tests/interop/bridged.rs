//! Real agents that a person drives, with the bridge installed: their own hook systems call `windlass hook`.

use serde_json::{Value, json};

use crate::agents::{self, Real};
use crate::place::{Place, alone};

/// What the model does: something that is denied, then half of the work, then all of it.
const MODEL: &str = "
- run: echo taken > forbidden.txt
- run: echo half > notes.txt
- say: I have mended notes.txt.
- run: echo whole > notes.txt
- say: Now it is whole.
";

const CONFIG: &str = "
hooks:
  stop:
    - name: gate
      command: 'grep -q whole notes.txt || { echo notes.txt is half mended >&2; exit 2; }'
  pre_tool_use:
    - name: guard
      matcher: Bash
      command: 'jq -r .tool_input.command | grep -q forbidden || exit 0; echo nobody touches that >&2; exit 2'
";

/// Installs the bridge, has a person's agent work, and takes it away again.
fn is_held(test: &str, real: &Real, agent: &str) {
    if !alone(test, real) {
        return;
    }
    let place = Place::new(real, MODEL);
    place.write(".windlass/config.yaml", CONFIG);
    place.windlass(&["trust", "--yes"]);
    let (code, out) = place.windlass(&["install", agent, "--scope", "user", "--yes"]);
    assert_eq!(code, 0, "{out}");
    let (code, out) = place.run(real.program, real.headless);
    assert_eq!(code, 0, "{out}");
    assert_eq!(place.read("notes.txt"), "whole\n", "{out}");
    assert_eq!(place.read("forbidden.txt"), "", "what is denied does not happen: {out}");
    let answers = place.events("bridge_answered");
    let rulings: Vec<_> = answers.iter().map(|answer| json!([answer["point"], answer["ruling"]])).collect();
    let expected = [json!(["pre_tool_use", "block"]), json!(["stop", "block"]), json!(["stop", "pass"])];
    assert_eq!(rulings, expected, "{out}");
    let conversations: Vec<&Value> = answers.iter().map(|answer| &answer["conversation"]).collect();
    assert!(conversations.iter().all(|conversation| *conversation == conversations[0]), "{conversations:?}");
    // The model has read both reasons.
    let last = place.asked().pop().unwrap();
    assert!(last.contains("nobody touches that") && last.contains("notes.txt is half mended"), "{last}");
    let (code, out) = place.windlass(&["uninstall", agent, "--scope", "user", "--yes"]);
    assert_eq!(code, 0, "{out}");
    // Some write into their settings themselves.
    assert!(place.settings().iter().all(|content| !content.contains("windlass")), "nothing is left in its settings");
}

#[test]
fn claude_with_the_bridge() {
    is_held("bridged::claude_with_the_bridge", &agents::CLAUDE, "claude");
}

#[test]
fn codex_with_the_bridge() {
    is_held("bridged::codex_with_the_bridge", &agents::CODEX, "codex");
}

#[test]
fn gemini_with_the_bridge() {
    is_held("bridged::gemini_with_the_bridge", &agents::GEMINI, "gemini");
}

#[test]
fn goose_with_the_bridge() {
    is_held("bridged::goose_with_the_bridge", &agents::GOOSE, "goose");
}
