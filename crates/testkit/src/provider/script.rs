//! What the model says, as it is written down.
//!
//! ```yaml
//! - run: echo fixed > login.sh                     # calls the agent's own tool for commands
//! - fail: {status: 500, times: 1}                  # then the same question gets its answer
//! - say: Done. <promise>COMPLETE</promise>
//! - insist: {tool: Write, input: {path: notes}}    # whether there is such a tool or not
//! - fail: {status: 429, retry_after: 60}           # for ever
//! ```
//!
//! Each question carries the whole conversation, so what was said already tells the step: asking again, or asking for a
//! title in between, does not move the script. Only answers count. A mishap stands before the answer that it keeps back.

use serde::Deserialize;
use serde_json::Value;

/// What a model says that is cut off. Where an agent sends it along again, it is known by it.
pub const CUT: &str = "I begin with the first of the";
/// What a model says that refuses.
pub const REFUSED: &str = "I cannot help with that.";
/// What it says after the last step.
pub const NOTHING_LEFT: &str = "There is nothing left to say.";

/// One thing that the model does.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// Says something, which ends the agent's turn.
    Say(String),
    /// Has the agent run a command, with whatever tool it offers for that.
    Run(String),
    /// Has the agent use a tool.
    Call(Use),
    /// The same by its whole name, whether it is offered or not: nothing keeps a model from asking.
    Insist(Use),
    /// Answers with an HTTP error.
    Fail(Failure),
    /// Does not answer, until somebody hangs up.
    Stall(Mishap),
    /// Stops in mid-sentence, for want of tokens.
    Cut(Mishap),
    /// Declines.
    Refuse(Mishap),
    /// Answers with nothing at all.
    Empty(Mishap),
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Use {
    /// How the tool's name ends: agents put the server's name before it, each in its own way.
    pub tool: String,
    #[serde(default)]
    pub input: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    pub status: u16,
    /// How often; for ever without it.
    #[serde(default)]
    pub times: Option<u32>,
    /// Seconds, for `Retry-After`.
    #[serde(default)]
    pub retry_after: Option<u32>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Mishap {
    /// How often; for ever without it.
    pub times: Option<u32>,
}

impl Step {
    pub fn say(text: &str) -> Self {
        Self::Say(text.to_owned())
    }

    pub fn run(command: &str) -> Self {
        Self::Run(command.to_owned())
    }

    /// An HTTP error, for ever.
    pub fn fail(status: u16) -> Self {
        Self::Fail(Failure { status, times: None, retry_after: None })
    }

    /// How often it keeps the next answer back; an answer does not.
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

/// A script, and how far its mishaps have been played.
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

    /// The step for a conversation with so many answers in it.
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
