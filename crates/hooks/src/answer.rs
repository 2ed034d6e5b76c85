//! What the end of a hook means.
//!
//! | end | at a gate | elsewhere |
//! | --- | --- | --- |
//! | exit 0 | success, unless a JSON object on stdout says no: then block, with its reason | success |
//! | exit 2 | block: stderr, a blank line, stdout go to the agent | failure |
//! | anything else | failure, and its output goes to the agent | failure |
//!
//! Where output is piped, it is stdout, then stderr, then a line that names the failure, whatever the exit.

use serde_json::Value;
use windlass_engine::{HookOutcome, HookReport};
use windlass_process::{Exit, Finished, NotStarted};

use crate::text::{clean, cut};
use crate::{Hook, Role};

/// Reads the end of a run.
pub fn answer(hook: &Hook, role: Role, ran: &Result<Finished, NotStarted>) -> HookReport {
    let (outcome, failure) = match ran {
        Err(error) => (HookOutcome::Failure, Some(error.to_string())),
        Ok(finished) => match (ended(hook, role, finished.exit), objection(&finished.stdout.text())) {
            ((HookOutcome::Success, _), Some(reason)) if role == Role::Gate => return blocked(hook, &reason),
            (ended, _) => ended,
        },
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
    if outcome == HookOutcome::Block {
        return blocked(hook, &told);
    }
    let told = Some(cut(&told, hook.max_output)).filter(|told| !told.trim().is_empty());
    let leaky = ran.as_ref().is_ok_and(|finished| finished.leaky);
    let leaky = leaky.then(|| "it left processes behind, which were ended".to_owned());
    let message = [failure, leaky].into_iter().flatten().collect::<Vec<_>>().join("; ");
    HookReport { message: Some(message).filter(|message| !message.is_empty()), feedback: told, ..outcome.into() }
}

/// Why a JSON object says that the work is not done, in whichever words hooks have for that.
fn objection(stdout: &str) -> Option<String> {
    let Ok(Value::Object(said)) = serde_json::from_str(stdout.trim()) else { return None };
    let word = |key: &str| said.get(key).and_then(Value::as_str);
    let objects = matches!(word("decision"), Some("block" | "deny"))
        || matches!(word("action"), Some("continue" | "escalate"))
        || word("status") == Some("failure")
        || said.get("continue") == Some(&Value::Bool(false));
    let reasons = ["reason", "nextPrompt", "remediation_prompt", "stopReason", "message"];
    objects.then(|| reasons.into_iter().find_map(word).unwrap_or_default().to_owned())
}

fn blocked(hook: &Hook, reason: &str) -> HookReport {
    let reason = clean(reason);
    let told = match reason.trim().is_empty() {
        true => format!("`{}` says that the work is not done, and not why.", hook.name),
        false => cut(&reason, hook.max_output),
    };
    HookReport { feedback: Some(told), ..HookOutcome::Block.into() }
}

fn ended(hook: &Hook, role: Role, exit: Exit) -> (HookOutcome, Option<String>) {
    match exit {
        Exit::Code(0) => (HookOutcome::Success, None),
        Exit::Code(2) if role == Role::Gate => (HookOutcome::Block, None),
        Exit::Code(code) => (HookOutcome::Failure, Some(format!("exit {code}"))),
        Exit::Signal(signal) => (HookOutcome::Failure, Some(format!("ended by signal {signal}"))),
        Exit::TimedOut => (HookOutcome::TimedOut, Some(format!("timed out after {:?}", hook.timeout))),
        Exit::Cancelled => (HookOutcome::Cancelled, None),
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
        let command = crate::Script::parse("make test").unwrap();
        Hook { name: "tests".to_owned(), command, timeout, pipes, max_output: 160 }
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
        check(true, Gate, Exit::Cancelled, (Cancelled, None, None));
    }

    #[test]
    fn a_success_that_says_no_is_none() {
        let gate = |stdout: &str| answer(&hook(false), Role::Gate, &ran(Exit::Code(0), stdout, ""));
        for (stdout, told) in [
            (r#"{"decision": "block", "reason": "two tests fail"}"#, "two tests fail"),
            ("{\"action\":\"continue\",\"nextPrompt\":\"go on\"}\n", "go on"),
            (r#"{"status": "failure", "message": "red"}"#, "red"),
            (r#"{"continue": false}"#, "`tests` says that the work is not done, and not why."),
        ] {
            let said = gate(stdout);
            assert_eq!((said.outcome, said.feedback.as_deref()), (HookOutcome::Block, Some(told)), "{stdout}");
        }
        for stdout in ["", "ok", "{}", "[1]", r#"{"decision": "approve"}"#, r#"{"continue": true}"#] {
            assert_eq!(gate(stdout).outcome, HookOutcome::Success, "{stdout}");
        }
        let observer = answer(&hook(false), Role::Observer, &ran(Exit::Code(0), r#"{"decision": "block"}"#, ""));
        assert_eq!(observer.outcome, HookOutcome::Success);
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
