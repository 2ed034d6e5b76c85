//! Any program as an agent: the prompt on its standard input, the answer on its standard output.
//!
//! Each prompt starts a new process that remembers nothing, so the prompt has to contain everything.

use windlass_engine::Fault;
use windlass_process::{Capture, Exit, Finished, Invocation, Spec, Spill};

use crate::prompt_run::{last_line_of, prompted};
use crate::{Agent, AgentDriver, PromptRequest, TurnBudget, TurnEnd, TurnHost, TurnOutcome, aider, trouble};

/// How much of an answer is kept, from its start and its end: at the end an agent says how the work went.
const HEAD: usize = 16 * 1024;
const TAIL: usize = 40 * 1024;
/// The most bytes of a stream that are kept in a file.
const SPILLED: u64 = 256 * 1024 * 1024;

/// The driver that starts a program for each prompt.
pub(crate) struct CommandDriver {
    agent: Agent,
}

impl CommandDriver {
    pub fn new(agent: Agent) -> Self {
        Self { agent }
    }
}

impl AgentDriver for CommandDriver {
    fn prompt(&mut self, request: &PromptRequest, budget: &mut TurnBudget, host: &mut dyn TurnHost) -> TurnOutcome {
        let asked = host.word_prompt(false).and_then(|prompt| {
            let mut spec = self.agent.spec(&prompt, request);
            (spec.silence, spec.timeout) = (budget.silence, budget.time_left());
            host.run_program(&spec, None)
        });
        match asked {
            Ok(finished) => TurnOutcome { leaky: finished.leaky, ..TurnOutcome::ended(self.agent.answer(&finished)) },
            Err(end) => TurnOutcome::ended(end),
        }
    }
}

impl Agent {
    /// Returns the spec of a run that answers a prompt.
    fn spec(&self, prompt: &str, request: &PromptRequest) -> Spec {
        let spill = Some(Spill { path: request.record.clone(), cap: SPILLED });
        let capture = Capture { head: HEAD, tail: TAIL, spill };
        let invocation = Invocation::Shell(self.with_arguments(self.words()).into());
        prompted(invocation, prompt, &request.directory, request.environment.clone(), capture)
    }

    /// Returns the turn end for a finished run. Exit code 0 says only that there is an answer.
    fn answer(&self, finished: &Finished) -> TurnEnd {
        match finished.exit {
            Exit::Code(0) => {
                let printed = finished.stdout.text();
                let heard = aider::heard(&printed).filter(|_| trouble::is_agent("aider", self.words()));
                match heard.unwrap_or_else(|| trouble::instead_of_an_answer(&printed).map_or(Ok(printed), Err)) {
                    Ok(said) => TurnEnd::Said(said),
                    Err(trouble) => trouble.end(self.words()),
                }
            }
            // The shell exits like this for a missing or invalid program. Output shows that the program did start.
            Exit::Code(126 | 127) if finished.stdout.total == 0 => {
                TurnEnd::Broken(last_words(finished, "the program cannot be started"))
            }
            Exit::Code(code) => self.failed(finished, Fault::Failed, &format!("exit {code}")),
            Exit::Signal(signal) => self.failed(finished, Fault::Crashed, &format!("ended by signal {signal}")),
            Exit::TimedOut => TurnEnd::TimedOut,
            Exit::Silent => TurnEnd::failed(Fault::Silent, last_words(finished, "it wrote nothing for too long")),
            Exit::Cancelled => TurnEnd::Cancelled,
            Exit::Lost => TurnEnd::failed(Fault::Crashed, "its supervisor died"),
        }
    }

    fn failed(&self, finished: &Finished, fault: Fault, end: &str) -> TurnEnd {
        let trouble = trouble::of_failure(&finished.stdout.text(), &finished.stderr.text());
        trouble.map_or_else(|| TurnEnd::failed(fault, last_words(finished, end)), |trouble| trouble.end(self.words()))
    }
}

/// Describes the end of a run, with the last line of its output.
fn last_words(finished: &Finished, end: &str) -> String {
    let (stderr, stdout) = (finished.stderr.text(), finished.stdout.text());
    match last_line_of(&stderr).or_else(|| last_line_of(&stdout)) {
        Some(line) => format!("{end}: {line}"),
        None => end.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use windlass_process::Captured;

    use super::*;
    use crate::AgentKind;

    #[track_caller]
    fn check(exit: Exit, stdout: &str, stderr: &str, expected: TurnEnd) {
        let captured =
            |text: &str| Captured { head: text.as_bytes().to_vec(), total: text.len() as u64, ..Captured::default() };
        let (stdout, stderr) = (captured(stdout), captured(stderr));
        let agent = Agent::plain("agent", AgentKind::Command("agent".to_owned()));
        let finished = Finished { exit, stdout, stderr, leaky: false, took: Duration::ZERO };
        assert_eq!(agent.answer(&finished), expected);
    }

    #[test]
    fn ends_are_told_apart() {
        check(Exit::Code(0), "done\n", "noise\n", TurnEnd::Said("done\n".to_owned()));
        check(Exit::Code(1), "half\n", "no network\n\n", TurnEnd::failed(Fault::Failed, "exit 1: no network"));
        check(Exit::Code(3), "half\n", "", TurnEnd::failed(Fault::Failed, "exit 3: half"));
        check(Exit::Code(127), "", "sh: 1: nope: not found\n", {
            TurnEnd::Broken("the program cannot be started: sh: 1: nope: not found".to_owned())
        });
        check(Exit::Code(127), "half", "sh: 1: nope: not found\n", {
            TurnEnd::failed(Fault::Failed, "exit 127: sh: 1: nope: not found")
        });
        check(Exit::Code(126), "", "sh: 1: ./a: Permission denied\n", {
            TurnEnd::Broken("the program cannot be started: sh: 1: ./a: Permission denied".to_owned())
        });
        check(Exit::Silent, "half\n", "", TurnEnd::failed(Fault::Silent, "it wrote nothing for too long: half"));
        check(Exit::Lost, "half\n", "", TurnEnd::failed(Fault::Crashed, "its supervisor died"));
        check(Exit::Signal(9), "", "", TurnEnd::failed(Fault::Crashed, "ended by signal 9"));
        check(Exit::Cancelled, "half", "", TurnEnd::Cancelled);
        check(Exit::TimedOut, "half", "429 Too Many Requests", TurnEnd::TimedOut);
        let said = || "429 Too Many Requests".to_owned();
        check(Exit::Code(1), "half", "429 Too Many Requests\n", TurnEnd::Limited { said: said(), reset: None });
        let remedy = || "log the agent in, or set its API key".to_owned();
        let said = || "Not logged in".to_owned();
        check(Exit::Code(1), "", "Not logged in\n", TurnEnd::Locked { said: said(), remedy: remedy() });
        check(Exit::Code(0), "Not logged in\n", "", TurnEnd::Locked { said: said(), remedy: remedy() });
    }
}
