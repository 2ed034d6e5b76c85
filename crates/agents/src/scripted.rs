//! What the scripted agent does, as it is written down.
//!
//! ```yaml
//! remember: memory.json        # without it, nothing outlives the process
//! turns:
//!   - when: test_login         # only for a prompt with this in it
//!     do:
//!       - say: I mend the login.
//!       - replace: {path: login.sh, old: exit 1, new: exit 0}
//!       - promise: COMPLETE
//! ```

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// A play of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// A file that keeps the conversation, so that another process can take it up.
    #[serde(default)]
    pub remember: Option<PathBuf>,
    /// Takes it up without telling it again (`session/resume`).
    #[serde(default)]
    pub resume: bool,
    /// Each prompt gets the first of these that fits it and was not played often enough.
    pub turns: Vec<Turn>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    /// What has to be in the prompt.
    #[serde(default)]
    pub when: Option<String>,
    /// What may not be in it.
    #[serde(default)]
    pub unless: Option<String>,
    /// How often it is played; 0 means: as often as it fits.
    #[serde(default = "once")]
    pub times: u32,
    #[serde(rename = "do")]
    pub steps: Vec<Step>,
}

fn once() -> u32 {
    1
}

/// One thing that the agent does.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Says something to the person.
    Say(String),
    /// Claims something: `COMPLETE`, `BLOCKED`, `ESCALATE`.
    Promise(String),
    Write(Content),
    Append(Content),
    /// Changes the first place where a file has this text.
    Replace(Change),
    /// A script for the shell. How it ends does not matter.
    Run(String),
    Wait(Span),
    /// Asks whether it may; if not, the turn is over.
    Ask(String),
    /// Asks for something in the protocol's own words, and says what came of it.
    Request(Question),
    /// Calls a tool of a server that it was handed, and says the answer.
    Call(Call),
    /// Tells of something in the protocol's own words.
    Update(Value),
    /// Ends the turn with this stop reason.
    Stop(String),
    /// Ends the turn with this answer to the prompt.
    Answer(Value),
    /// Answers the prompt with an error.
    Fail(String),
    /// Ends the process with this exit code, in the middle of the turn.
    Crash(u8),
    /// Says nothing any more, and does not listen either.
    Hang,
    /// Says so many bytes.
    Flood(u64),
    /// Writes this to standard output, whatever the protocol says.
    Print(String),
    /// Begins a message that is so many bytes long.
    LongLine(u64),
    /// Answers a question of this number, which nobody has asked.
    Stray(u64),
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Content {
    pub path: PathBuf,
    pub content: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    pub path: PathBuf,
    pub old: String,
    pub new: String,
}

/// The conversation, and the terminal that was made last, are filled in.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    pub method: String,
    #[serde(default)]
    pub params: Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The server's name; without it, Windlass's own.
    #[serde(default = "own_server")]
    pub server: String,
    pub tool: String,
    #[serde(default)]
    pub arguments: Map<String, Value>,
}

fn own_server() -> String {
    "windlass".to_owned()
}

/// `500ms`, `2s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span(pub Duration);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let parsed = match text.strip_suffix("ms") {
            Some(number) => number.trim().parse().ok().map(Duration::from_millis),
            None => text.strip_suffix('s').and_then(|number| number.trim().parse().ok()).map(Duration::from_secs),
        };
        parsed.map(Self).ok_or_else(|| serde::de::Error::custom(format!("`{text}` is no time such as `500ms` or `2s`")))
    }
}

/// A script that cannot be played.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the script: {0}")]
pub struct ScriptError(String);

impl Script {
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        serde_saphyr::from_str(text).map_err(|error| ScriptError(error.to_string()))
    }

    /// The turn for a prompt, given how often each was played.
    pub fn turn(&self, prompt: &str, played: &[u32]) -> Option<usize> {
        let fits = |turn: &Turn| {
            turn.when.as_ref().is_none_or(|text| prompt.contains(text))
                && !turn.unless.as_ref().is_some_and(|text| prompt.contains(text))
        };
        let times = |index: usize| played.get(index).copied().unwrap_or(0);
        let left = |index: usize, turn: &Turn| turn.times == 0 || times(index) < turn.times;
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
    fn every_step_can_be_written() {
        let script = Script::parse(ALL).expect("it is right");
        assert_eq!(script.turns[0].steps.len(), 20);
        assert_eq!(script.turns[0].steps[6], Step::Wait(Span(Duration::from_millis(20))));
        assert_eq!(script.turns[0].steps[15], Step::Hang);
        assert_eq!(script.turns[1].times, 1);
    }

    #[test]
    fn the_first_turn_that_fits_and_is_left_is_played() {
        let script = Script::parse(ALL).expect("it is right");
        let check = |prompt, played: &[u32], expected| assert_eq!(script.turn(prompt, played), expected, "{prompt}");
        check("red", &[], Some(0));
        check("red", &[7, 1], Some(0));
        check("red and blue", &[], Some(1));
        check("green", &[0, 0], Some(1));
        check("green", &[0, 1], None);
    }

    #[test]
    fn a_wrong_script_is_refused_with_the_place() {
        for text in
            ["turns: 3", "turns:\n  - do:\n      - sing: x", "turns: []\nextra: 1", "turns: [{do: [{wait: 3}]}]"]
        {
            let error = Script::parse(text).expect_err(text).to_string();
            assert!(error.starts_with("cannot read the script: ") && error.contains("line"), "{error}");
        }
    }
}
