//! Real agents with the bridge, outside of Windlass sessions: their own hook systems call `windlass hook`.

use serde_json::{Value, json};

use crate::agent_home::{AgentHome, is_isolated_run};
use crate::agents::{self, InstalledAgent};

/// The script of the model: a denied call, half of the work, and the whole work.
const MODEL_SCRIPT: &str = "
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

/// A configuration with a stop hook that always blocks, with a new message each time.
const BLOCKING_CONFIG: &str = "
limits: {max_hook_retries: 3}
hooks:
  stop: [{command: 'echo stop >> \"$HOME/hooks\"; wc -l \"$HOME/hooks\" >&2; exit 2'}]
";

/// The number of calls of the stop hook: an agent may or may not call it at the end of a turn that the stop hook caused.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StopHookCalls {
    Repeated,
    Once,
}

/// Installs the bridge and runs the agent.
fn run_agent_with_bridge(real_agent: &InstalledAgent, agent: &str, config: &str) -> (AgentHome, String) {
    let home = AgentHome::new(real_agent, MODEL_SCRIPT);
    home.write_file(".windlass/config.yaml", config);
    home.run_windlass(&["trust", "--yes"]);
    let (code, out) = home.run_windlass(&["install", agent, "--scope", "user", "--yes"]);
    assert_eq!(code, 0, "{out}");
    let (code, out) = home.run_program(real_agent.program, real_agent.headless);
    assert_eq!(code, 0, "{out}");
    (home, out)
}

/// Checks that hooks deny a call and send the agent back, and that an uninstallation removes the bridge from its settings.
fn check_work_with_bridge(test: &str, real_agent: &InstalledAgent, agent: &str, expected_calls: StopHookCalls) {
    if !is_isolated_run(test, real_agent) {
        return;
    }
    let (home, out) = run_agent_with_bridge(real_agent, agent, CONFIG);
    assert_eq!(home.read_file("notes.txt"), "whole\n", "{out}");
    assert_eq!(home.read_file("forbidden.txt"), "", "what is denied does not happen: {out}");
    let answers = home.event_payloads("bridge_answered");
    let rulings: Vec<_> = answers.iter().map(|answer| json!([answer["point"], answer["ruling"]])).collect();
    let mut expected = vec![json!(["pre_tool_use", "block"]), json!(["stop", "block"])];
    expected.extend((expected_calls == StopHookCalls::Repeated).then(|| json!(["stop", "pass"])));
    assert_eq!(rulings, expected, "{out}");
    let conversations: Vec<&Value> = answers.iter().map(|answer| &answer["conversation"]).collect();
    assert!(conversations.iter().all(|conversation| *conversation == conversations[0]), "{conversations:?}");
    // The model has read both reasons.
    let last = home.model_requests().pop().unwrap();
    assert!(last.contains("do not touch that") && last.contains("notes.txt is half mended"), "{last}");
    let (code, out) = home.run_windlass(&["uninstall", agent, "--scope", "user", "--yes"]);
    assert_eq!(code, 0, "{out}");
    // Some agents write into their settings themselves.
    assert!(
        home.read_settings().iter().all(|content| !content.contains("windlass")),
        "nothing is left in its settings"
    );
}

/// Checks that the limit of Windlass releases an agent without its own limit.
fn check_release_at_limit(test: &str, real_agent: &InstalledAgent, agent: &str) {
    if !is_isolated_run(test, real_agent) {
        return;
    }
    let (home, out) = run_agent_with_bridge(real_agent, agent, BLOCKING_CONFIG);
    assert_eq!(home.read_hooks(), ["stop"; 4], "{out}");
}

#[test]
fn claude_with_the_bridge() {
    check_work_with_bridge(
        "bridge_sessions::claude_with_the_bridge",
        &agents::CLAUDE,
        "claude",
        StopHookCalls::Repeated,
    );
}

#[test]
fn codex_with_the_bridge() {
    check_work_with_bridge("bridge_sessions::codex_with_the_bridge", &agents::CODEX, "codex", StopHookCalls::Repeated);
}

#[test]
fn gemini_with_the_bridge() {
    check_work_with_bridge(
        "bridge_sessions::gemini_with_the_bridge",
        &agents::GEMINI,
        "gemini",
        StopHookCalls::Repeated,
    );
}

#[test]
fn goose_with_the_bridge() {
    check_work_with_bridge("bridge_sessions::goose_with_the_bridge", &agents::GOOSE, "goose", StopHookCalls::Repeated);
}

#[test]
fn qwen_with_the_bridge() {
    check_work_with_bridge("bridge_sessions::qwen_with_the_bridge", &agents::QWEN, "qwen", StopHookCalls::Repeated);
}

#[test]
fn copilot_with_the_bridge() {
    check_work_with_bridge(
        "bridge_sessions::copilot_with_the_bridge",
        &agents::COPILOT,
        "copilot",
        StopHookCalls::Repeated,
    );
}

/// The agent calls its stop hook once for each prompt.
#[test]
fn kimi_with_the_bridge() {
    check_work_with_bridge("bridge_sessions::kimi_with_the_bridge", &agents::KIMI, "kimi", StopHookCalls::Once);
}

#[test]
fn codex_with_the_bridge_is_released_at_the_limit() {
    check_release_at_limit("bridge_sessions::codex_with_the_bridge_is_released_at_the_limit", &agents::CODEX, "codex");
}

#[test]
fn gemini_with_the_bridge_is_released_at_the_limit() {
    check_release_at_limit(
        "bridge_sessions::gemini_with_the_bridge_is_released_at_the_limit",
        &agents::GEMINI,
        "gemini",
    );
}

#[test]
fn goose_with_the_bridge_is_released_at_the_limit() {
    check_release_at_limit("bridge_sessions::goose_with_the_bridge_is_released_at_the_limit", &agents::GOOSE, "goose");
}
