//! The script of the scripted agent.
//!
//! ```yaml
//! remember: memory.json        # without it, nothing outlives the process
//! turns:
//!   - when: test_login         # only for a prompt that contains this
//!     do:
//!       - say: I mend the login.
//!       - replace: {path: login.sh, old: exit 1, new: exit 0}
//!       - promise: COMPLETE
//! ```

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// A script.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentScript {
    /// A file that keeps the conversation for another process.
    #[serde(default)]
    pub remember: Option<PathBuf>,
    /// Resumes a conversation without replaying it (`session/resume`).
    #[serde(default)]
    pub resume: bool,
    /// Each prompt gets the first turn that matches it and has plays left.
    pub turns: Vec<ScriptTurn>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptTurn {
    /// Text that the prompt has to contain.
    #[serde(default)]
    pub when: Option<String>,
    /// Text that the prompt must not contain.
    #[serde(default)]
    pub unless: Option<String>,
    /// How often the turn is played. 0 means without limit.
    #[serde(default = "once")]
    pub times: u32,
    #[serde(rename = "do")]
    pub steps: Vec<ScriptStep>,
}

fn once() -> u32 {
    1
}

/// A step of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScriptStep {
    /// Sends text.
    Say(String),
    /// Sends a promise: `COMPLETE`, `BLOCKED`, `ESCALATE`.
    Promise(String),
    Write(ScriptFileContent),
    Append(ScriptFileContent),
    /// Replaces the first occurrence of a text in a file.
    Replace(ScriptTextChange),
    /// Runs a shell script. Its exit code does not matter.
    Run(String),
    Wait(ScriptDelay),
    /// Asks for permission. If it is denied, the turn ends.
    Ask(String),
    /// Sends a request of the protocol, and reports the answer as text.
    Request(ScriptRequest),
    /// Calls a tool of an MCP server, and reports the answer as text.
    Call(ScriptToolCall),
    /// Sends an update of the protocol.
    Update(Value),
    /// Ends the turn with this stop reason.
    Stop(String),
    /// Ends the turn with this answer to the prompt.
    Answer(Value),
    /// Answers the prompt with an error.
    Fail(String),
    /// Exits with this code in the middle of the turn.
    Crash(u8),
    /// Stops writing and reading.
    Hang,
    /// Sends this many bytes of text.
    Flood(u64),
    /// Writes this line to standard output, against the protocol.
    Print(String),
    /// Sends a message of this many bytes.
    LongLine(u64),
    /// Answers a request of this number that the client never sent.
    Stray(u64),
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptFileContent {
    pub path: PathBuf,
    pub content: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptTextChange {
    pub path: PathBuf,
    pub old: String,
    pub new: String,
}

/// A request. The player fills in the conversation and the last created terminal.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptRequest {
    pub method: String,
    #[serde(default)]
    pub params: Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptToolCall {
    /// The name of the server. The default is Windlass's own.
    #[serde(default = "own_server")]
    pub server: String,
    pub tool: String,
    #[serde(default)]
    pub arguments: Map<String, Value>,
}

fn own_server() -> String {
    "windlass".to_owned()
}

/// A delay such as `500ms` or `2s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScriptDelay(pub Duration);

impl<'de> Deserialize<'de> for ScriptDelay {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let parsed = match text.strip_suffix("ms") {
            Some(number) => number.trim().parse().ok().map(Duration::from_millis),
            None => text.strip_suffix('s').and_then(|number| number.trim().parse().ok()).map(Duration::from_secs),
        };
        parsed
            .map(Self)
            .ok_or_else(|| serde::de::Error::custom(format!("`{text}` is not a time such as `500ms` or `2s`")))
    }
}

/// An error in a script.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the script: {0}")]
pub struct ScriptError(String);

impl AgentScript {
    pub fn parse_script(text: &str) -> Result<Self, ScriptError> {
        serde_saphyr::from_str(text).map_err(|error| ScriptError(error.to_string()))
    }

    /// Returns the turn for a prompt. `played` counts the plays of each turn.
    pub fn find_next_turn(&self, prompt: &str, played: &[u32]) -> Option<usize> {
        let fits = |turn: &ScriptTurn| {
            turn.when.as_ref().is_none_or(|text| prompt.contains(text))
                && !turn.unless.as_ref().is_some_and(|text| prompt.contains(text))
        };
        let times = |index: usize| played.get(index).copied().unwrap_or(0);
        let left = |index: usize, turn: &ScriptTurn| turn.times == 0 || times(index) < turn.times;
        self.turns.iter().enumerate().position(|(index, turn)| left(index, turn) && fits(turn))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &str = "
remember: memory.json
turns:
  - when: red
    unless: blue
    times: 0
    do:
      - say: hello
      - promise: COMPLETE
      - write: {path: a, content: b}
      - append: {path: a, content: c}
      - replace: {path: a, old: b, new: d}
      - run: ls
      - wait: 20ms
      - ask: may I?
      - request: {method: terminal/create, params: {command: ls}}
      - call: {tool: note_add, arguments: {text: x}}
      - update: {sessionUpdate: plan, entries: []}
      - stop: refusal
      - answer: {stopReason: end_turn}
      - fail: no
      - crash: 3
      - hang
      - flood: 10
      - print: x
      - long_line: 5
      - stray: 9
  - do: [{say: last}]
";

    #[test]
    fn every_step_kind_parses() {
        let script = AgentScript::parse_script(ALL).expect("it is right");
        assert_eq!(script.turns[0].steps.len(), 20);
        assert_eq!(script.turns[0].steps[6], ScriptStep::Wait(ScriptDelay(Duration::from_millis(20))));
        assert_eq!(script.turns[0].steps[15], ScriptStep::Hang);
        assert_eq!(script.turns[1].times, 1);
    }

    #[test]
    fn first_matching_turn_with_plays_left_is_chosen() {
        let script = AgentScript::parse_script(ALL).expect("it is right");
        let check =
            |prompt, played: &[u32], expected| assert_eq!(script.find_next_turn(prompt, played), expected, "{prompt}");
        check("red", &[], Some(0));
        check("red", &[7, 1], Some(0));
        check("red and blue", &[], Some(1));
        check("green", &[0, 0], Some(1));
        check("green", &[0, 1], None);
    }

    #[test]
    fn invalid_script_is_refused_with_its_line() {
        for text in
            ["turns: 3", "turns:\n  - do:\n      - sing: x", "turns: []\nextra: 1", "turns: [{do: [{wait: 3}]}]"]
        {
            let error = AgentScript::parse_script(text).expect_err(text).to_string();
            assert!(error.starts_with("cannot read the script: ") && error.contains("line"), "{error}");
        }
    }
}
