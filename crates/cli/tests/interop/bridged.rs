//! Real agents that a person drives, with the bridge installed: their own hook systems call `windlass hook`.

use serde_json::{Value, json};

use crate::agents::{self, Real};
use crate::place::{Place, alone};

/// The model's script: first a denied call, then half of the work, then all of it.
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
      command: 'jq -r .tool_input.command | grep -q forbidden || exit 0; echo do not touch that >&2; exit 2'
";

/// A stop hook that always blocks, with new words each time.
const STUBBORN: &str = "
limits: {max_hook_retries: 3}
hooks:
  stop: [{command: 'echo stop >> \"$HOME/hooks\"; wc -l \"$HOME/hooks\" >&2; exit 2'}]
";

/// Whether an agent calls its hooks again at the end of the turn that a stop hook caused.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Calls {
    Again,
    Once,
}

/// Installs the bridge, and lets a person's agent work.
fn work(real: &Real, agent: &str, config: &str) -> (Place, String) {
    let place = Place::new(real, MODEL);
    place.write(".windlass/config.yaml", config);
    place.windlass(&["trust", "--yes"]);
    let (code, out) = place.windlass(&["install", agent, "--scope", "user", "--yes"]);
    assert_eq!(code, 0, "{out}");
    let (code, out) = place.run(real.program, real.headless);
    assert_eq!(code, 0, "{out}");
    (place, out)
}

/// The agent does what it may, and is done when the work is; then the bridge is taken away again.
fn check_work_with_bridge(test: &str, real: &Real, agent: &str, calls: Calls) {
    if !alone(test, real) {
        return;
    }
    let (place, out) = work(real, agent, CONFIG);
    assert_eq!(place.read("notes.txt"), "whole\n", "{out}");
    assert_eq!(place.read("forbidden.txt"), "", "what is denied does not happen: {out}");
    let answers = place.events("bridge_answered");
    let rulings: Vec<_> = answers.iter().map(|answer| json!([answer["point"], answer["ruling"]])).collect();
    let mut expected = vec![json!(["pre_tool_use", "block"]), json!(["stop", "block"])];
    expected.extend((calls == Calls::Again).then(|| json!(["stop", "pass"])));
    assert_eq!(rulings, expected, "{out}");
    let conversations: Vec<&Value> = answers.iter().map(|answer| &answer["conversation"]).collect();
    assert!(conversations.iter().all(|conversation| *conversation == conversations[0]), "{conversations:?}");
    // The model has read both reasons.
    let last = place.asked().pop().unwrap();
    assert!(last.contains("do not touch that") && last.contains("notes.txt is half mended"), "{last}");
    let (code, out) = place.windlass(&["uninstall", agent, "--scope", "user", "--yes"]);
    assert_eq!(code, 0, "{out}");
    // Some agents write into their settings themselves.
    assert!(place.settings().iter().all(|content| !content.contains("windlass")), "nothing is left in its settings");
}

/// One that has no limit of its own, or tells little of why it is there, is let go at ours.
fn check_release_at_limit(test: &str, real: &Real, agent: &str) {
    if !alone(test, real) {
        return;
    }
    let (place, out) = work(real, agent, STUBBORN);
    assert_eq!(place.hooks(), ["stop"; 4], "{out}");
}

#[test]
fn claude_with_the_bridge() {
    check_work_with_bridge("bridged::claude_with_the_bridge", &agents::CLAUDE, "claude", Calls::Again);
}

#[test]
fn codex_with_the_bridge() {
    check_work_with_bridge("bridged::codex_with_the_bridge", &agents::CODEX, "codex", Calls::Again);
}

#[test]
fn gemini_with_the_bridge() {
    check_work_with_bridge("bridged::gemini_with_the_bridge", &agents::GEMINI, "gemini", Calls::Again);
}

#[test]
fn goose_with_the_bridge() {
    check_work_with_bridge("bridged::goose_with_the_bridge", &agents::GOOSE, "goose", Calls::Again);
}

#[test]
fn qwen_with_the_bridge() {
    check_work_with_bridge("bridged::qwen_with_the_bridge", &agents::QWEN, "qwen", Calls::Again);
}

#[test]
fn copilot_with_the_bridge() {
    check_work_with_bridge("bridged::copilot_with_the_bridge", &agents::COPILOT, "copilot", Calls::Again);
}

/// The agent calls at its end once for each prompt.
#[test]
fn kimi_with_the_bridge() {
    check_work_with_bridge("bridged::kimi_with_the_bridge", &agents::KIMI, "kimi", Calls::Once);
}

#[test]
fn codex_with_the_bridge_is_released_at_the_limit() {
    check_release_at_limit("bridged::codex_is_let_go", &agents::CODEX, "codex");
}

#[test]
fn gemini_with_the_bridge_is_released_at_the_limit() {
    check_release_at_limit("bridged::gemini_is_let_go", &agents::GEMINI, "gemini");
}

#[test]
fn goose_with_the_bridge_is_released_at_the_limit() {
    check_release_at_limit("bridged::goose_is_let_go", &agents::GOOSE, "goose");
}
