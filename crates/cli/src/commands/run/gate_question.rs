//! The question that a session asks at this terminal when stop hooks keep blocking the agent (`on_retry_limit: ask`).

use std::io::{self, BufRead, IsTerminal};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use windlass_app::Failure;
use windlass_app::answers::{GatePrompt, GateReply, PromptInput, to_gate_answer};
use windlass_engine::{GateAnswer, Session};

use super::live::ViewHandle;
use crate::commands::answer::parse_answer;
use crate::output::MessageWriter;

/// Returns whether a person could answer here.
pub fn has_terminal() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// The terminal of a run as the place where a person is asked. The question hides the live view.
pub struct TerminalPrompt<'a> {
    pub view: Option<&'a ViewHandle>,
}

impl GatePrompt for TerminalPrompt<'_> {
    fn open_prompt(&self, session: &Session) {
        self.view.inspect(|view| view.hold_terminal());
        show_question(session);
    }

    fn wait_for_input(&self, timeout: Duration) -> Result<PromptInput, Failure> {
        let stdin = io::stdin();
        let timeout = Timespec::try_from(timeout).ok();
        let ready = poll(&mut [PollFd::new(&stdin, PollFlags::IN)], timeout.as_ref());
        // A signal ends the wait as well, without input.
        if !matches!(ready, Ok(1..)) {
            return Ok(PromptInput::Pending);
        }
        let mut line = String::new();
        if !matches!(stdin.lock().read_line(&mut line), Ok(1..)) {
            return Ok(PromptInput::Closed);
        }
        let Some((reply, text)) = parse_reply(&line) else {
            MessageWriter::new().print_note("continue, ignore-hook, abort or reject?");
            return Ok(PromptInput::Pending);
        };
        Ok(PromptInput::Reply(reply, text.map(str::to_owned)))
    }

    fn close_prompt(&self) {
        self.view.inspect(|view| view.release_terminal());
    }
}

fn show_question(session: &Session) {
    MessageWriter::new().print_question(&format!("{}. What now?", session.describe_block_state()));
    for choice in [
        "  continue     send it back, and restart the count",
        "  ignore-hook  let it pass, this time",
        "  abort        end the session, and leave the task to a person",
        "  reject       end the session; the task fails",
        "Words after it go to the agent, or are the reason.",
    ] {
        MessageWriter::new().print_plain(choice);
    }
}

/// Parses a line into a reply and the words that go with it.
fn parse_reply(line: &str) -> Option<(GateReply, Option<&str>)> {
    let line = line.trim();
    let (word, text) = match line.split_once(char::is_whitespace) {
        // A sentence may begin with a single letter.
        Some((word, text)) if word.len() > 1 => (word, Some(text.trim())),
        Some(_) => return None,
        None => (line, None),
    };
    let answer = match word.to_lowercase().as_str() {
        "c" => GateAnswer::Continue,
        "a" | "abort" => GateAnswer::Abort,
        "i" => GateAnswer::Ignore,
        "r" | "reject" => return Some((GateReply::RejectTask, text)),
        word => to_gate_answer(parse_answer(word)?)?,
    };
    Some((GateReply::Session(answer), text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reply_accepts_letter_word_and_synonym() {
        let table = [
            ("continue", "c", "retry"),
            ("abort", " Abort ", "a"),
            ("reject", "R", "r\n"),
            ("ignore-hook", "ignore", "I\n"),
        ];
        for (shown, other, another) in table {
            assert!(parse_reply(shown).is_some(), "{shown}");
            assert_eq!((parse_reply(shown), parse_reply(shown)), (parse_reply(other), parse_reply(another)), "{shown}");
        }
        assert_eq!((parse_reply("approve"), parse_reply("what?"), parse_reply("")), (None, None, None));
    }

    #[test]
    fn reply_keeps_the_words_after_the_answer() {
        let go_on = GateReply::Session(GateAnswer::Continue);
        assert_eq!(parse_reply(" Continue  Use the new API\n"), Some((go_on, Some("Use the new API"))));
        assert_eq!(parse_reply("reject too slow"), Some((GateReply::RejectTask, Some("too slow"))));
        assert_eq!((parse_reply("I think so"), parse_reply("a test fails"), parse_reply("c now")), (None, None, None));
    }
}
