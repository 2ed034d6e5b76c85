//! Any program as an agent: the prompt on its standard input, the answer on its standard output.
//!
//! Each prompt starts a new process that remembers nothing, so the prompt has to contain everything.

use windlass_engine::TurnFailure;
use windlass_process::{CaptureLimits, ProgramExit, ProgramInvocation, ProgramOutcome, ProgramSpec};

use crate::prompt_spec::{build_prompt_spec, find_last_nonblank_line};
use crate::{Agent, AgentDriver, PromptRequest, TurnBudget, TurnEnd, TurnHost, TurnOutcome, aider_output, failure};

/// How much of an answer is kept, from its start and its end: at the end an agent says how the work went.
const MAX_CAPTURED_HEAD: usize = 16 * 1024;
const MAX_CAPTURED_TAIL: usize = 40 * 1024;

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
    fn run_turn(&mut self, request: &PromptRequest, budget: &mut TurnBudget, host: &mut dyn TurnHost) -> TurnOutcome {
        let asked = host.word_prompt(false).and_then(|prompt| {
            let mut spec = self.agent.build_run_spec(&prompt, request);
            spec.wrapper.clone_from(&request.wrapper);
            (spec.idle_timeout, spec.timeout) = (budget.silence, budget.time_left());
            host.run_program(&spec, None)
        });
        match asked {
            Ok(finished) => TurnOutcome {
                leaky: finished.leaky,
                ..TurnOutcome::from_turn_end(self.agent.classify_finished_run(&finished))
            },
            Err(end) => TurnOutcome::from_turn_end(end),
        }
    }
}

impl Agent {
    /// Returns the spec of a run that answers a prompt.
    fn build_run_spec(&self, prompt: &str, request: &PromptRequest) -> ProgramSpec {
        let capture = CaptureLimits { head: MAX_CAPTURED_HEAD, tail: MAX_CAPTURED_TAIL, spill: None };
        let invocation = ProgramInvocation::Shell(self.append_arguments(self.command_text()).into());
        build_prompt_spec(invocation, prompt, &request.directory, request.environment.clone(), capture)
    }

    /// Returns the turn end for a finished run. Exit code 0 says only that there is an answer.
    fn classify_finished_run(&self, finished: &ProgramOutcome) -> TurnEnd {
        match finished.exit {
            ProgramExit::Code(0) => {
                let printed = finished.stdout.to_text_lossy();
                let heard = aider_output::read_aider_output(&printed)
                    .filter(|_| failure::is_agent_command("aider", self.command_text()));
                match heard.unwrap_or_else(|| failure::classify_failure_answer(&printed).map_or(Ok(printed), Err)) {
                    Ok(said) => TurnEnd::Answered(said),
                    Err(trouble) => trouble.into_turn_end(self.command_text()),
                }
            }
            // The shell exits like this for a missing or invalid program. Output shows that the program did start.
            ProgramExit::Code(126 | 127) if finished.stdout.total == 0 => {
                TurnEnd::Broken(describe_end_with_last_line(finished, "cannot start the program"))
            }
            ProgramExit::Code(code) => self.classify_failed_run(finished, TurnFailure::Failed, &format!("exit {code}")),
            ProgramExit::Signal(signal) => {
                self.classify_failed_run(finished, TurnFailure::Crashed, &format!("ended by signal {signal}"))
            }
            ProgramExit::TimedOut => TurnEnd::TimedOut,
            ProgramExit::OutputIdle => TurnEnd::from_failure(
                TurnFailure::Silent,
                describe_end_with_last_line(finished, "it wrote nothing for too long"),
            ),
            ProgramExit::Cancelled => TurnEnd::Cancelled,
            ProgramExit::Lost => TurnEnd::from_failure(TurnFailure::Crashed, "its supervisor died"),
        }
    }

    fn classify_failed_run(&self, finished: &ProgramOutcome, fault: TurnFailure, end: &str) -> TurnEnd {
        let trouble =
            failure::classify_failed_output(&finished.stdout.to_text_lossy(), &finished.stderr.to_text_lossy());
        trouble.map_or_else(
            || TurnEnd::from_failure(fault, describe_end_with_last_line(finished, end)),
            |trouble| trouble.into_turn_end(self.command_text()),
        )
    }
}

/// Describes the end of a run, with the last line of its output.
fn describe_end_with_last_line(finished: &ProgramOutcome, end: &str) -> String {
    let (stderr, stdout) = (finished.stderr.to_text_lossy(), finished.stdout.to_text_lossy());
    match find_last_nonblank_line(&stderr).or_else(|| find_last_nonblank_line(&stdout)) {
        Some(line) => format!("{end}: {line}"),
        None => end.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use windlass_process::CapturedOutput;

    use super::*;
    use crate::AgentKind;

    #[track_caller]
    fn check(exit: ProgramExit, stdout: &str, stderr: &str, expected: TurnEnd) {
        let captured = |text: &str| CapturedOutput {
            head: text.as_bytes().to_vec(),
            total: text.len() as u64,
            ..CapturedOutput::default()
        };
        let (stdout, stderr) = (captured(stdout), captured(stderr));
        let agent = Agent::with_default_setup("agent", AgentKind::Command("agent".to_owned()));
        let finished = ProgramOutcome { exit, stdout, stderr, leaky: false, took: Duration::ZERO };
        assert_eq!(agent.classify_finished_run(&finished), expected);
    }

    #[test]
    fn exit_kinds_map_to_turn_ends() {
        check(ProgramExit::Code(0), "done\n", "noise\n", TurnEnd::Answered("done\n".to_owned()));
        check(
            ProgramExit::Code(1),
            "half\n",
            "no network\n\n",
            TurnEnd::from_failure(TurnFailure::Failed, "exit 1: no network"),
        );
        check(ProgramExit::Code(3), "half\n", "", TurnEnd::from_failure(TurnFailure::Failed, "exit 3: half"));
        check(ProgramExit::Code(127), "", "sh: 1: nope: not found\n", {
            TurnEnd::Broken("cannot start the program: sh: 1: nope: not found".to_owned())
        });
        check(ProgramExit::Code(127), "half", "sh: 1: nope: not found\n", {
            TurnEnd::from_failure(TurnFailure::Failed, "exit 127: sh: 1: nope: not found")
        });
        check(ProgramExit::Code(126), "", "sh: 1: ./a: Permission denied\n", {
            TurnEnd::Broken("cannot start the program: sh: 1: ./a: Permission denied".to_owned())
        });
        check(
            ProgramExit::OutputIdle,
            "half\n",
            "",
            TurnEnd::from_failure(TurnFailure::Silent, "it wrote nothing for too long: half"),
        );
        check(ProgramExit::Lost, "half\n", "", TurnEnd::from_failure(TurnFailure::Crashed, "its supervisor died"));
        check(ProgramExit::Signal(9), "", "", TurnEnd::from_failure(TurnFailure::Crashed, "ended by signal 9"));
        check(ProgramExit::Cancelled, "half", "", TurnEnd::Cancelled);
        check(ProgramExit::TimedOut, "half", "429 Too Many Requests", TurnEnd::TimedOut);
        let said = || "429 Too Many Requests".to_owned();
        check(
            ProgramExit::Code(1),
            "half",
            "429 Too Many Requests\n",
            TurnEnd::RateLimited { said: said(), reset: None },
        );
        let remedy = || "log the agent in, or set its API key".to_owned();
        let said = || "Not logged in".to_owned();
        check(ProgramExit::Code(1), "", "Not logged in\n", TurnEnd::AccessDenied { said: said(), remedy: remedy() });
        check(ProgramExit::Code(0), "Not logged in\n", "", TurnEnd::AccessDenied { said: said(), remedy: remedy() });
    }
}
