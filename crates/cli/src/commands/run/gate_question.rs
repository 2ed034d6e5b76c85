//! The question that a session asks where stop hooks do not let the agent go (`on_retry_limit: ask`).
//!
//! The first answer counts: from this terminal, or from another command. Without a terminal the session waits as it is, and any
//! person can answer it.

use std::io::{self, BufRead, IsTerminal};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use windlass_app::{Failure, environment, hints};
use windlass_engine::{Authority, Command, GateAnswer, Origin, Resolution, Session, Wanted};
use windlass_process::Control;
use windlass_runner::Runner;

use super::live::View;
use crate::commands::answer::{read, to_gate};
use crate::output::Messages;

/// How long an answer from elsewhere may wait.
const ANSWER_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Returns whether a person could answer here.
pub fn has_terminal() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Asks the person at this terminal about a session at its gate. Returns whether an answer is in the log, or the end was asked
/// for, so that the session goes on.
pub fn ask_person(
    runner: &mut Runner<'_>,
    session: &Session,
    control: &Control,
    view: Option<&View>,
) -> Result<bool, Failure> {
    // The question stands where the view was.
    view.inspect(|view| view.hold());
    let is_answered = listen(runner, session, control);
    view.inspect(|view| view.release());
    is_answered
}

fn listen(runner: &mut Runner<'_>, session: &Session, control: &Control) -> Result<bool, Failure> {
    let name = &session.name;
    question(session);
    while !control.is_cancelled() && runner.session(name).map_err(hints::run)?.wanted() == Wanted::Answer {
        match typed()? {
            Typed::Nothing => {}
            Typed::Gone => return Ok(false),
            Typed::Line(line) => match answer(&line) {
                Some((answer, text)) => {
                    // Another command may have been quicker.
                    let (by, at) = (environment::user(), environment::steady_now());
                    let origin = Origin { by, at, authority: Authority::Person, run: None, via: None };
                    drop(runner.begin(&origin, &answer.command(session, text)));
                }
                None => Messages::new().note("continue, ignore-hook, abort or reject?"),
            },
        }
    }
    Ok(true)
}

fn question(session: &Session) {
    Messages::new().question(&format!("{}. What now?", session.still_blocked()));
    for choice in [
        "  continue     send it back, and count anew",
        "  ignore-hook  let it pass, this time",
        "  abort        end the session, and leave the task to a person",
        "  reject       end the session; the task has failed",
        "Words after it go to the agent, or are the reason.",
    ] {
        Messages::new().plain(choice);
    }
}

enum Typed {
    Nothing,
    Gone,
    Line(String),
}

/// What was typed, if something was within a while.
fn typed() -> Result<Typed, Failure> {
    let stdin = io::stdin();
    let while_ = Timespec { tv_sec: 0, tv_nsec: ANSWER_POLL_INTERVAL.subsec_nanos().into() };
    let ready = poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&while_));
    // Somebody who asks for the end wakes us up.
    if !matches!(ready, Ok(1..)) {
        return Ok(Typed::Nothing);
    }
    let mut line = String::new();
    match stdin.lock().read_line(&mut line) {
        Ok(0) | Err(_) => Ok(Typed::Gone),
        Ok(_) => Ok(Typed::Line(line)),
    }
}

/// What somebody answers on the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Gate(GateAnswer),
    /// It is about the task, and not only about the session.
    Reject,
}

impl Answer {
    fn command(self, session: &Session, text: Option<&str>) -> Command {
        let text = text.map(str::to_owned);
        let answer = match (self, session.task) {
            (Self::Reject, Some(id)) => {
                return Command::AnswerTask { id, answer: Resolution::Reject, text, ignores: vec![], work: None };
            }
            (Self::Reject, None) => GateAnswer::Abort,
            (Self::Gate(answer), _) => answer,
        };
        Command::AnswerGate { session: session.name.clone(), answer, text }
    }
}

/// An answer, and what is said with it.
fn answer(line: &str) -> Option<(Answer, Option<&str>)> {
    let line = line.trim();
    let (word, text) = match line.split_once(char::is_whitespace) {
        // A sentence may begin with a single letter.
        Some((word, text)) if word.len() > 1 => (word, Some(text.trim())),
        Some(_) => return None,
        None => (line, None),
    };
    Some((meant(word)?, text))
}

fn meant(word: &str) -> Option<Answer> {
    let gate = match word.to_lowercase().as_str() {
        "c" => GateAnswer::Continue,
        "a" | "abort" => GateAnswer::Abort,
        "i" => GateAnswer::Ignore,
        "r" | "reject" => return Some(Answer::Reject),
        word => to_gate(read(word)?)?,
    };
    Some(Answer::Gate(gate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_word_is_as_good_as_another() {
        let table = [
            ("continue", "c", "retry"),
            ("abort", " Abort ", "a"),
            ("reject", "R", "r\n"),
            ("ignore-hook", "ignore", "I\n"),
        ];
        for (shown, other, another) in table {
            assert!(answer(shown).is_some(), "{shown}");
            assert_eq!((answer(shown), answer(shown)), (answer(other), answer(another)), "{shown}");
        }
        assert_eq!((answer("approve"), answer("what?"), answer("")), (None, None, None));
    }

    #[test]
    fn words_after_an_answer_go_with_it() {
        let go_on = Answer::Gate(GateAnswer::Continue);
        assert_eq!(answer(" Continue  Use the new API\n"), Some((go_on, Some("Use the new API"))));
        assert_eq!(answer("reject too slow"), Some((Answer::Reject, Some("too slow"))));
        assert_eq!((answer("I think so"), answer("a test fails"), answer("c now")), (None, None, None));
    }
}
