//! The script of the model.
//!
//! ```yaml
//! - run: echo fixed > login.sh                     # calls the agent's own tool for commands
//! - fail: {status: 500, times: 1}                  # then the same question gets its answer
//! - say: Done. <promise>COMPLETE</promise>
//! - insist: {tool: Write, input: {path: notes}}    # whether there is such a tool or not
//! - fail: {status: 429, retry_after: 60}           # for ever
//! ```
//!
//! Each question carries the whole conversation, so the number of answers in it determines the step: repeated questions, and
//! questions for a title, do not move the script. A mishap comes before the answer that it delays.

use serde::Deserialize;
use serde_json::Value;

/// The text of a truncated answer. If an agent sends it again, the provider recognises it.
pub const CUT: &str = "I begin with the first of the";
/// The text of a refusal.
pub const REFUSED: &str = "I cannot help with that.";
/// The text after the last step.
pub const NOTHING_LEFT: &str = "There is nothing left to say.";

/// A step of the model.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// Answers with a text, which ends the agent's turn.
    Say(String),
    /// Makes the agent run a command, with its own tool for commands.
    Run(String),
    /// Makes the agent use a tool.
    Call(Use),
    /// Calls a tool by its full name, even if the agent does not offer it.
    Insist(Use),
    /// Answers with an HTTP error.
    Fail(Failure),
    /// Does not answer until the client closes the connection.
    Stall(Mishap),
    /// Stops in the middle of a sentence, at the token limit.
    Cut(Mishap),
    /// Refuses to answer.
    Refuse(Mishap),
    /// Answers with an empty message.
    Empty(Mishap),
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Use {
    /// The end of the tool's name: agents add the name of the server in different ways.
    pub tool: String,
    #[serde(default)]
    pub input: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    pub status: u16,
    /// How often, or without limit.
    #[serde(default)]
    pub times: Option<u32>,
    /// Seconds, for `Retry-After`.
    #[serde(default)]
    pub retry_after: Option<u32>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Mishap {
    /// How often, or without limit.
    pub times: Option<u32>,
}

impl Step {
    pub fn say(text: &str) -> Self {
        Self::Say(text.to_owned())
    }

    pub fn run(command: &str) -> Self {
        Self::Run(command.to_owned())
    }

    /// Returns an HTTP error without limit.
    pub fn fail(status: u16) -> Self {
        Self::Fail(Failure { status, times: None, retry_after: None })
    }

    /// Returns how often the step delays the next answer. `None` for an answer.
    fn keeps_back(&self) -> Option<u32> {
        match self {
            Self::Say(_) | Self::Run(_) | Self::Call(_) | Self::Insist(_) => None,
            Self::Fail(Failure { times, .. }) => Some(times.unwrap_or(u32::MAX)),
            Self::Stall(mishap) | Self::Cut(mishap) | Self::Refuse(mishap) | Self::Empty(mishap) => {
                Some(mishap.times.unwrap_or(u32::MAX))
            }
        }
    }
}

/// A script and the progress of its mishaps.
#[derive(Debug)]
pub struct Play {
    steps: Vec<Step>,
    played: Vec<u32>,
}

impl Play {
    pub fn new(steps: Vec<Step>) -> Self {
        let played = vec![0; steps.len()];
        Self { steps, played }
    }

    /// Returns the step for a conversation with this many answers.
    pub fn next(&mut self, answers: usize) -> Option<Step> {
        let mut left = answers;
        for (step, played) in self.steps.iter().zip(&mut self.played) {
            match step.keeps_back() {
                None if left == 0 => return Some(step.clone()),
                None => left -= 1,
                Some(times) if left == 0 && *played < times => {
                    *played += 1;
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

    const ALL: &str = "
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
        let steps: Vec<Step> = serde_saphyr::from_str(ALL).expect("it is right");
        assert_eq!(steps.len(), 10);
        assert_eq!(steps[6], Step::Fail(Failure { status: 429, times: None, retry_after: Some(60) }));
        assert!(serde_saphyr::from_str::<Vec<Step>>("- sing: x").is_err());
        assert!(serde_saphyr::from_str::<Vec<Step>>("- cut: {often: 2}").is_err());
    }

    #[test]
    fn only_answers_move_the_script() {
        let mut play = Play::new(serde_saphyr::from_str(ALL).expect("it is right"));
        let mut check = |answers, expected: Option<Step>| assert_eq!(play.next(answers), expected);
        let run = || Some(Step::run("echo fixed > login.sh"));
        check(0, run());
        check(0, run());
        check(1, Some(Step::Fail(Failure { status: 500, times: Some(1), retry_after: None })));
        check(1, Some(Step::Empty(Mishap { times: Some(2) })));
        check(0, run());
        check(1, Some(Step::Empty(Mishap { times: Some(2) })));
        check(1, Some(Step::say("Done.")));
        let limited = || Some(Step::Fail(Failure { status: 429, times: None, retry_after: Some(60) }));
        check(4, limited());
        check(4, limited());
        check(5, None);
    }
}
