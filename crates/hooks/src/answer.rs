//! What the end of a hook means.
//!
//! | end | at a gate | elsewhere |
//! | --- | --- | --- |
//! | exit 0 | success | success |
//! | exit 2 | block: stderr, a blank line, stdout go to the agent | failure |
//! | anything else | failure, and its output goes to the agent | failure |
//!
//! Where output is piped, it is stdout, then stderr, then a line that names the failure, whatever the exit.

use windlass_engine::HookOutcome;
use windlass_process::{Exit, Finished, NotStarted};

use crate::text::{clean, cut};
use crate::{Hook, Role};

/// What came of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub outcome: HookOutcome,
    /// For people: why it is no success.
    pub message: Option<String>,
    /// For the agent.
    pub feedback: Option<String>,
}

/// Reads the end of a run.
pub fn answer(hook: &Hook, role: Role, ran: &Result<Finished, NotStarted>) -> Answer {
    let (outcome, failure) = match ran {
        Err(error) => (HookOutcome::Failure, Some(error.to_string())),
        Ok(finished) => ended(hook, role, finished.exit),
    };
    let parts = match ran {
        Err(_) => [String::new(), String::new()],
        Ok(finished) => [finished.stdout.text(), finished.stderr.text()],
    };
    let [stdout, stderr] = parts.map(|part| clean(&part));
    let told = match outcome {
        HookOutcome::Block => join(&[stderr.trim_end(), stdout.trim_end()], "\n\n"),
        HookOutcome::Cancelled => String::new(),
        _ if hook.pipes || (role == Role::Gate && failure.is_some()) => {
            let failure = failure.as_ref().map(|failure| format!("[{failure}]")).unwrap_or_default();
            join(&[stdout.trim_end(), stderr.trim_end(), &failure], "\n")
        }
        _ => String::new(),
    };
    let told = match (outcome, told.trim().is_empty()) {
        (HookOutcome::Block, true) => Some(format!("`{}` says that the work is not done, and not why.", hook.name)),
        (_, true) => None,
        (_, false) => Some(cut(&told, hook.max_output)),
    };
    let leaky = ran.as_ref().is_ok_and(|finished| finished.leaky);
    let leaky = leaky.then(|| "it left processes behind, which were ended".to_owned());
    let message = [failure, leaky].into_iter().flatten().collect::<Vec<_>>().join("; ");
    Answer { outcome, message: Some(message).filter(|message| !message.is_empty()), feedback: told }
}

fn ended(hook: &Hook, role: Role, exit: Exit) -> (HookOutcome, Option<String>) {
    match exit {
        Exit::Code(0) => (HookOutcome::Success, None),
        Exit::Code(2) if role == Role::Gate => (HookOutcome::Block, None),
        Exit::Code(code) => (HookOutcome::Failure, Some(format!("exit {code}"))),
        Exit::Signal(signal) => (HookOutcome::Failure, Some(format!("ended by signal {signal}"))),
        Exit::TimedOut => (HookOutcome::TimedOut, Some(format!("timed out after {:?}", hook.timeout))),
        Exit::Cancelled => (HookOutcome::Cancelled, Some("cancelled".to_owned())),
        Exit::Lost => (HookOutcome::Failure, Some("it was lost with its supervisor".to_owned())),
    }
}

fn join(parts: &[&str], between: &str) -> String {
    let parts: Vec<&str> = parts.iter().copied().filter(|part| !part.is_empty()).collect();
    parts.join(between)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use windlass_process::Captured;

    use super::*;

    fn hook(pipes: bool) -> Hook {
        let timeout = Duration::from_secs(30);
        Hook { name: "tests".to_owned(), command: "make test".to_owned(), timeout, pipes, max_output: 100 }
    }

    fn ran(exit: Exit, stdout: &str, stderr: &str) -> Result<Finished, NotStarted> {
        let captured =
            |text: &str| Captured { head: text.as_bytes().to_vec(), total: text.len() as u64, ..Captured::default() };
        let (stdout, stderr) = (captured(stdout), captured(stderr));
        Ok(Finished { exit, stdout, stderr, leaky: false, took: Duration::ZERO })
    }

    #[track_caller]
    fn check(pipes: bool, role: Role, exit: Exit, expected: (HookOutcome, Option<&str>, Option<&str>)) {
        let answer = answer(&hook(pipes), role, &ran(exit, "out\n", "err\n"));
        assert_eq!((answer.outcome, answer.message.as_deref(), answer.feedback.as_deref()), expected);
    }

    #[test]
    fn ends_mean_what_the_table_says() {
        use HookOutcome::{Block, Cancelled, Failure, Success, TimedOut};
        use Role::{Gate, Observer};
        check(false, Gate, Exit::Code(0), (Success, None, None));
        check(true, Observer, Exit::Code(0), (Success, None, Some("out\nerr")));
        check(false, Gate, Exit::Code(2), (Block, None, Some("err\n\nout")));
        check(true, Gate, Exit::Code(2), (Block, None, Some("err\n\nout")));
        check(false, Observer, Exit::Code(2), (Failure, Some("exit 2"), None));
        check(true, Observer, Exit::Code(1), (Failure, Some("exit 1"), Some("out\nerr\n[exit 1]")));
        check(false, Gate, Exit::Code(1), (Failure, Some("exit 1"), Some("out\nerr\n[exit 1]")));
        check(false, Observer, Exit::TimedOut, (TimedOut, Some("timed out after 30s"), None));
        check(false, Observer, Exit::Signal(9), (Failure, Some("ended by signal 9"), None));
        check(true, Gate, Exit::Cancelled, (Cancelled, Some("cancelled"), None));
    }

    #[test]
    fn a_block_without_a_word_still_says_something() {
        let answer = answer(&hook(false), Role::Gate, &ran(Exit::Code(2), " \n", ""));
        assert_eq!(answer.feedback.as_deref(), Some("`tests` says that the work is not done, and not why."));
    }

    #[test]
    fn what_the_agent_gets_is_cut_and_clean() {
        let long = format!("\x1b[31mfirst\x1b[0m\n{}last\n", "x\0\n".repeat(200));
        let answer = answer(&hook(true), Role::Observer, &ran(Exit::Code(0), &long, ""));
        let feedback = answer.feedback.expect("it is piped");
        assert!(feedback.starts_with("first\nx\n") && feedback.ends_with("last"), "{feedback}");
        assert!(feedback.contains("bytes left out]"), "{feedback}");
    }
}
