//! The script of the model.
//!
//! ```yaml
//! - run: echo fixed > login.sh                     # calls the agent's own tool for commands
//! - fail: {status: 500, times: 1}                  # the repeated question gets the answer
//! - say: Done. <promise>COMPLETE</promise>
//! - insist: {tool: Write, input: {path: notes}}    # calls the tool even if the agent does not offer it
//! - fail: {status: 429, retry_after: 60}           # without limit
//! ```
//!
//! Each question contains the whole conversation, so the number of answers in it determines the step. Repeated questions and
//! questions for a title do not move the script. A step that delays an answer, such as `fail`, stands before this answer.

use serde::Deserialize;
use serde_json::Value;

/// The text of a truncated answer. The provider recognises it in later questions.
pub const TRUNCATED_TEXT: &str = "I begin with the first of the";
/// The text of a refusal.
pub const REFUSAL_TEXT: &str = "I cannot help with that.";
/// The text after the last step.
pub const END_OF_SCRIPT_TEXT: &str = "There is nothing left to say.";

/// A step of the script.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ModelStep {
    /// Answers with a text, which ends the agent's turn.
    Say(String),
    /// Makes the agent run a command, with its own tool for commands.
    Run(String),
    /// Makes the agent use a tool.
    Call(ToolInvocation),
    /// Calls a tool by its full name, even if the agent does not offer it.
    Insist(ToolInvocation),
    /// Answers with an HTTP error.
    Fail(HttpFailure),
    /// Does not answer until the client closes the connection.
    Stall(StepRepetition),
    /// Stops in the middle of a sentence, at the token limit.
    Cut(StepRepetition),
    /// Refuses to answer.
    Refuse(StepRepetition),
    /// Answers with an empty message.
    Empty(StepRepetition),
}

/// A tool and its input.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolInvocation {
    /// The end of the tool's name, because agents prefix the name of the server in different ways.
    pub tool: String,
    #[serde(default)]
    pub input: Value,
}

/// An HTTP error of the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpFailure {
    pub status: u16,
    /// The number of repetitions. `None` for no limit.
    #[serde(default)]
    pub times: Option<u32>,
    /// Seconds, for `Retry-After`.
    #[serde(default)]
    pub retry_after: Option<u32>,
}

/// The repetition of a step that delays an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StepRepetition {
    /// The number of repetitions. `None` for no limit.
    pub times: Option<u32>,
}

impl ModelStep {
    pub fn say(text: &str) -> Self {
        Self::Say(text.to_owned())
    }

    pub fn run(command: &str) -> Self {
        Self::Run(command.to_owned())
    }

    /// Returns an HTTP error without limit.
    pub fn fail(status: u16) -> Self {
        Self::Fail(HttpFailure { status, times: None, retry_after: None })
    }

    /// Returns how often the step delays the next answer. `None` for a step that is an answer.
    fn delay_count(&self) -> Option<u32> {
        match self {
            Self::Say(_) | Self::Run(_) | Self::Call(_) | Self::Insist(_) => None,
            Self::Fail(HttpFailure { times, .. }) => Some(times.unwrap_or(u32::MAX)),
            Self::Stall(repetition) | Self::Cut(repetition) | Self::Refuse(repetition) | Self::Empty(repetition) => {
                Some(repetition.times.unwrap_or(u32::MAX))
            }
        }
    }
}

/// A script, with the number of repetitions of each step so far.
#[derive(Debug)]
pub struct ScriptProgress {
    steps: Vec<ModelStep>,
    repeated: Vec<u32>,
}

impl ScriptProgress {
    pub fn new(steps: Vec<ModelStep>) -> Self {
        let repeated = vec![0; steps.len()];
        Self { steps, repeated }
    }

    /// Returns the step for a conversation with this many answers.
    pub fn next_step(&mut self, answers: usize) -> Option<ModelStep> {
        let mut remaining = answers;
        for (step, repeated) in self.steps.iter().zip(&mut self.repeated) {
            match step.delay_count() {
                None if remaining == 0 => return Some(step.clone()),
                None => remaining -= 1,
                Some(times) if remaining == 0 && *repeated < times => {
                    *repeated += 1;
                    return Some(step.clone());
                }
                Some(_) => {}
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL_STEPS: &str = "
- run: echo fixed > login.sh
- fail: {status: 500, times: 1}
- empty: {times: 2}
- say: Done.
- call: {tool: task_list, input: {all: true}}
- insist: {tool: Write}
- fail: {status: 429, retry_after: 60}
- cut: {}
- refuse: {}
- stall: {}
";

    #[test]
    fn every_step_can_be_written() {
        let steps: Vec<ModelStep> = serde_saphyr::from_str(ALL_STEPS).expect("it is right");
        assert_eq!(steps.len(), 10);
        assert_eq!(steps[6], ModelStep::Fail(HttpFailure { status: 429, times: None, retry_after: Some(60) }));
        assert!(serde_saphyr::from_str::<Vec<ModelStep>>("- sing: x").is_err());
        assert!(serde_saphyr::from_str::<Vec<ModelStep>>("- cut: {often: 2}").is_err());
    }

    #[test]
    fn only_answers_move_the_script() {
        let mut progress = ScriptProgress::new(serde_saphyr::from_str(ALL_STEPS).expect("it is right"));
        let mut check = |answers, expected: Option<ModelStep>| assert_eq!(progress.next_step(answers), expected);
        let run = || Some(ModelStep::run("echo fixed > login.sh"));
        check(0, run());
        check(0, run());
        check(1, Some(ModelStep::Fail(HttpFailure { status: 500, times: Some(1), retry_after: None })));
        check(1, Some(ModelStep::Empty(StepRepetition { times: Some(2) })));
        check(0, run());
        check(1, Some(ModelStep::Empty(StepRepetition { times: Some(2) })));
        check(1, Some(ModelStep::say("Done.")));
        let limited = || Some(ModelStep::Fail(HttpFailure { status: 429, times: None, retry_after: Some(60) }));
        check(4, limited());
        check(4, limited());
        check(5, None);
    }
}
