//! The answers that a person can give, by the names and sentences that every front end shows.
//!
//! Not here: giving an answer (`answers`), and what it does (`engine`).

use std::borrow::Cow;
use std::fmt::{self, Display};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, Serializer};
use serde_json::json;
use windlass_engine::{Task, TaskResolution, TaskState};

/// The answers in the order in which front ends offer them.
const OFFERED_ANSWERS: [TaskResolution; 5] = [
    TaskResolution::Continue,
    TaskResolution::Retry,
    TaskResolution::IgnoreHook,
    TaskResolution::Approve,
    TaskResolution::Reject,
];

/// An answer of a person. In JSON it has its name on the command line; in the log it has another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerChoice(pub TaskResolution);

impl AnswerChoice {
    /// Lists the answers to a session that asks at its gate.
    pub fn list_for_gate() -> Vec<Self> {
        [TaskResolution::Continue, TaskResolution::IgnoreHook, TaskResolution::Reject].map(Self).to_vec()
    }

    /// Lists the answers to a task that waits for a person.
    pub fn list_for_task(task: &Task) -> Vec<Self> {
        let waits = matches!(task.state, TaskState::Blocked | TaskState::Failed);
        let has_hooks = task.blocked.as_ref().is_some_and(|blocked| !blocked.hooks.is_empty());
        let is_offered = |answer: &TaskResolution| {
            waits && answer.applies_to_state(task.state) && (has_hooks || *answer != TaskResolution::IgnoreHook)
        };
        OFFERED_ANSWERS.into_iter().filter(is_offered).map(Self).collect()
    }

    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// Describes the effect of the answer in a sentence.
    pub fn describe(self) -> &'static str {
        match self.0 {
            TaskResolution::Continue => "The work goes on, and the agent reads your text first.",
            TaskResolution::Retry => "The work goes on with your text, and all counts start again.",
            TaskResolution::IgnoreHook => "The work goes on, and the hooks that block it do not count this once.",
            TaskResolution::Approve => "The task is completed, whatever its gates say.",
            TaskResolution::Reject => "The work ends, and the task has failed.",
        }
    }
}

impl Display for AnswerChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Serialize for AnswerChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for AnswerChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = Cow::<str>::deserialize(deserializer)?;
        name.parse().map(Self).map_err(D::Error::custom)
    }
}

impl JsonSchema for AnswerChoice {
    fn schema_name() -> Cow<'static, str> {
        "AnswerChoice".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let choice = |answer: TaskResolution| json!({"const": answer.name(), "description": Self(answer).describe()});
        let choices = OFFERED_ANSWERS.map(choice);
        json_schema!({"description": "An answer of a person.", "type": "string", "oneOf": choices})
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn answer_in_json_has_its_name_on_command_line() {
        for answer in TaskResolution::ALL {
            let text = serde_json::to_string(&AnswerChoice(answer)).unwrap();
            assert_eq!(text, format!("\"{answer}\""));
            assert_eq!(serde_json::from_str::<AnswerChoice>(&text).unwrap(), AnswerChoice(answer));
            assert!(OFFERED_ANSWERS.contains(&answer));
        }
        let error = serde_json::from_str::<AnswerChoice>("\"perhaps\"").unwrap_err().to_string();
        assert!(error.contains("no answer is called `perhaps`; there are continue, retry"), "{error}");
    }

    #[test]
    fn docs_have_sentence_of_every_answer() {
        for page in ["answer-a-blocked-task.md", "answer-from-a-phone.md"] {
            let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/how-to").join(page);
            let text = std::fs::read_to_string(file).unwrap();
            for answer in OFFERED_ANSWERS.map(AnswerChoice) {
                let row = format!("| `{answer}` | {}", answer.describe());
                assert!(text.contains(&row), "{page}: {row}");
            }
        }
    }
}
