//! Which agent works, as people name it.

use std::ffi::OsString;
use std::fmt::{self, Display};
use std::path::Path;
use std::str::FromStr;

use windlass_process::Invocation;

use crate::{CommandAgent, TurnEnd, trouble};

/// Not the name of an agent that can be driven.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no agent that this version can drive")]
pub struct ParseAgentError(String);

/// An agent, and the driver that speaks to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Agent {
    /// `command:CMD`: a new process for each prompt.
    Command(CommandAgent),
    /// `acp:CMD`: one process that speaks the Agent Client Protocol.
    Acp(String),
    /// `scripted:FILE`: the built-in agent, which plays a script.
    Scripted(String),
}

impl Agent {
    /// Whether it stays from turn to turn, and is spoken with.
    pub fn stays(&self) -> bool {
        !matches!(self, Self::Command(_))
    }

    /// How it is started. `own` is this very program.
    pub fn invocation(&self, own: &Path) -> Invocation {
        match self {
            Self::Command(CommandAgent { command }) | Self::Acp(command) => Invocation::Shell(command.into()),
            Self::Scripted(file) => {
                let words: [OsString; 3] = [own.into(), "agent".into(), file.into()];
                Invocation::Argv(words.into())
            }
        }
    }
}

impl Agent {
    /// What the end of a conversation's turn means, where an agent says in words that it cannot work.
    pub fn understood(&self, end: TurnEnd) -> TurnEnd {
        let Self::Acp(command) = self else { return end };
        let found = match &end {
            TurnEnd::Said(said) => trouble::instead_of_an_answer(said),
            TurnEnd::Failed(why) | TurnEnd::Broken(why) => trouble::of_failure("", why),
            _ => None,
        };
        found.map_or(end, |trouble| trouble.end(command))
    }
}

impl FromStr for Agent {
    type Err = ParseAgentError;

    fn from_str(text: &str) -> Result<Self, ParseAgentError> {
        match text.split_once(':').filter(|(_, what)| !what.trim().is_empty()) {
            Some(("command", command)) => Ok(Self::Command(CommandAgent { command: command.to_owned() })),
            Some(("acp", command)) => Ok(Self::Acp(command.to_owned())),
            Some(("scripted", file)) => Ok(Self::Scripted(file.to_owned())),
            _ => Err(ParseAgentError(text.to_owned())),
        }
    }
}

impl Display for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(agent) => write!(f, "command:{}", agent.command),
            Self::Acp(command) => write!(f, "acp:{command}"),
            Self::Scripted(file) => write!(f, "scripted:{file}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_reads_what_it_prints() {
        for text in ["command:claude -p", "command:sh -c 'x:y'", "acp:goose acp", "scripted:a b.yaml"] {
            assert_eq!(text.parse::<Agent>().map(|agent| agent.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "command:", "command: ", "claude", "acp:", "scripted:\t", "acp", "ACP:x"] {
            assert!(text.parse::<Agent>().is_err(), "{text}");
        }
    }

    #[test]
    fn words_of_an_agent_that_stays_are_understood() {
        let agent: Agent = "acp:goose acp".parse().unwrap();
        let failed = |why: &str| agent.understood(TurnEnd::Failed(why.to_owned()));
        let limited = failed("the agent failed: 429 Too Many Requests, retry after 90 seconds");
        assert!(matches!(limited, TurnEnd::Limited { reset: Some(_), .. }), "{limited:?}");
        let locked =
            agent.understood(TurnEnd::Broken("the agent refused `session/new`: Authentication required".to_owned()));
        assert!(matches!(locked, TurnEnd::Locked { .. }), "{locked:?}");
        assert_eq!(
            failed("the agent failed: out of luck"),
            TurnEnd::Failed("the agent failed: out of luck".to_owned())
        );
        let answer = || TurnEnd::Said("I have raised the rate limit to 429 requests.".to_owned());
        assert_eq!(agent.understood(answer()), answer());
    }
}
