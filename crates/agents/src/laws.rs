//! Laws of reading agents' output, for every input. For tests and fuzzing only.
//!
//! Each law takes bytes and panics if it is broken.

use serde_json::{Value, json};
use windlass_process::{Exit, Stream};

use crate::acp::{PROMPT, Permission, Permissions, Said, Talk};
use crate::headless::{Dialect, Ended, Heard, Hearing, Said as Word, is_name, parse};
use crate::{Reset, TurnEnd, aider, trouble};

/// The longest input for patterns, which are slow.
const SLOW: usize = 160;
/// Out of this many streams, two are searched with patterns.
const SELDOM: usize = 16;
/// The number of ways in which `trouble` checks a text.
const LOOKS: usize = 4;

/// Each dialect, with words of which its stream needs one to say how a turn ended.
const DIALECTS: [(Dialect, &[&str]); 5] = [
    (Dialect::Claude, &["result"]),
    (Dialect::Codex, &["turn.completed"]),
    (Dialect::Opencode, &["step_finish"]),
    (Dialect::Gemini, &["result"]),
    (Dialect::Goose, &["complete"]),
];

/// Checks that a stream means the same however it is cut into pieces; that a turn succeeds only if its stream says so; and
/// that a conversation name is safe on a command line. Reads each stream in one of the dialects.
pub fn stream(bytes: &[u8]) {
    stream_as(bytes, any_of(bytes, DIALECTS.len() * SELDOM));
}

fn stream_as(bytes: &[u8], way: usize) {
    let (dialect, closing) = DIALECTS[way % DIALECTS.len()];
    // Only a failed exit is searched for its cause with patterns.
    let (resumes, bytes, exit) = match way / DIALECTS.len() {
        0 => (true, &bytes[..bytes.len().min(SLOW)], Exit::Code(1)),
        1 => (false, bytes, Exit::Code(0)),
        _ => (false, bytes, Exit::Cancelled),
    };
    let (whole, words) = heard(dialect, resumes, bytes, bytes.len().max(1), exit);
    let (pieces, others) = heard(dialect, resumes, bytes, 5, exit);
    assert_eq!(whole, pieces, "{dialect:?}");
    assert_eq!(told(&words), told(&others), "{dialect:?}");
    let named = words.iter().filter_map(|word| match word {
        Word::Conversation(name) => Some(name),
        Word::Text(_) => None,
    });
    let named: Vec<&String> = named.collect();
    assert!(named.len() <= 1 && named.iter().all(|name| is_name(name)), "{named:?}");
    if let Ended::Turn(TurnEnd::Said(_)) = &whole.ended {
        let text = String::from_utf8_lossy(bytes);
        // Keys may be written with escapes.
        let closed = closing.iter().any(|word| text.contains(word)) || text.contains('\\');
        assert!(closed, "{dialect:?} does not say that its turn has ended");
    }
}

/// Checks that a message instead of an answer is classified or left as it is, and that a reset is never in the past. Reads
/// each text in one of several ways.
pub fn trouble(bytes: &[u8]) {
    trouble_as(bytes, any_of(bytes, LOOKS));
}

fn trouble_as(bytes: &[u8], way: usize) {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(SLOW)]);
    match way {
        0 => drop(aider::heard(&text)),
        1 => drop(trouble::of_failure(&text, &text)),
        2 => drop(trouble::instead_of_an_answer(&text)),
        _ => {
            let without = trouble::without_warnings(&text);
            assert!(text.contains(without), "only a part is left");
            if let Some(reset) = Reset::read(&text) {
                for now in [0, 1_768_644_000_000, i64::MAX] {
                    assert!(reset.millis(now) >= now, "{reset:?} is over");
                }
            }
        }
    }
}

/// Chooses a case by the sum of the bytes.
fn any_of(bytes: &[u8], many: usize) -> usize {
    bytes.iter().map(|byte| usize::from(*byte)).sum::<usize>() % many
}

fn heard(dialect: Dialect, resumes: bool, bytes: &[u8], size: usize, exit: Exit) -> (Heard, Vec<Word>) {
    let mut hearing = Hearing::new(dialect, resumes);
    let mut said = hearing.hear(Stream::Stderr, &bytes[..bytes.len().min(80)]);
    said.extend(bytes.chunks(size).flat_map(|piece| hearing.hear(Stream::Stdout, piece)));
    // The end of a stream ends its last line.
    said.extend(hearing.hear(Stream::Stdout, b"\n"));
    (hearing.end(exit), said)
}

fn told(words: &[Word]) -> String {
    let text = |word: &Word| match word {
        Word::Text(text) => text.clone(),
        Word::Conversation(name) => format!("<{name}>"),
    };
    words.iter().map(text).collect()
}

/// Checks that every request of an agent is answered once, or left to the caller; that only one answer is accepted; and that
/// the meaning does not depend on how the bytes are cut.
pub fn acp(bytes: &[u8]) {
    let lines = talked(bytes.split_inclusive(|byte| *byte == b'\n'));
    // Never two lines at once: a protocol error drops the events that came with it, except an answer.
    assert_eq!(lines, talked(bytes.chunks(1)), "however it is cut");
    let whole = talked(std::iter::once(bytes));
    let is_answer = |said: &Said| matches!(said, Said::Answer(_));
    let answers = lines.said.iter().filter(|said| is_answer(said)).count();
    assert!(answers <= 1, "one question, {answers} answers");
    if lines.broken {
        // Events up to the answer count.
        let heard = lines.said.iter().position(is_answer).map_or(0, |at| at + 1);
        assert!(whole.broken || heard > 0 && whole.said.starts_with(&lines.said[..heard]), "however it is cut");
        return;
    }
    assert_eq!(lines, whole, "however it is cut");
    let wishes = lines.said.iter().filter_map(|said| match said {
        Said::Wish { id, .. } => Some(id.clone()),
        _ => None,
    });
    let mut answered: Vec<Value> = wishes.collect();
    for line in lines.out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let message: Value = serde_json::from_slice(line).expect("what we say is JSON, a message a line");
        assert_eq!(message["jsonrpc"], "2.0");
        assert!(message.get("result").is_some() != message.get("error").is_some(), "{message}");
        answered.push(message["id"].clone());
    }
    let sorted = |mut ids: Vec<Value>| {
        ids.sort_by_key(Value::to_string);
        ids
    };
    assert_eq!(sorted(answered), sorted(questions(bytes)), "every question is answered once");
}

/// Returns the ids of an agent's requests.
fn questions(bytes: &[u8]) -> Vec<Value> {
    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    // An incomplete line is no message.
    lines.pop();
    let parsed = lines
        .into_iter()
        .map(|line| line.trim_ascii())
        .filter_map(|line| parse(line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)).ok().filter(Value::is_object));
    parsed.filter(|message| message["method"].is_string()).filter_map(|message| message.get("id").cloned()).collect()
}

#[derive(Debug, PartialEq)]
struct Talked {
    said: Vec<Said>,
    out: Vec<u8>,
    speech: String,
    broken: bool,
}

fn talked<'b>(pieces: impl Iterator<Item = &'b [u8]>) -> Talked {
    let mut talk = Talk::new(Permissions::all(Permission::Allow));
    talk.listen_to("s");
    talk.ask(PROMPT, json!({}));
    talk.take_out();
    let (mut said, mut broken) = (Vec::new(), false);
    for piece in pieces {
        match talk.hear(piece) {
            Ok(more) => said.extend(more),
            Err(breach) => {
                assert!(!breach.to_string().is_empty());
                broken = true;
                break;
            }
        }
    }
    Talked { said, out: talk.take_out(), speech: talk.take_speech(), broken }
}

#[cfg(test)]
mod tests {
    use windlass_testkit::hostile::check;

    #[test]
    fn streams_are_heard() {
        check("stream", |bytes| (0..3 * super::DIALECTS.len()).for_each(|way| super::stream_as(bytes, way)));
    }

    #[test]
    fn troubles_are_understood_or_left() {
        check("trouble", |bytes| (0..super::LOOKS).for_each(|way| super::trouble_as(bytes, way)));
    }

    #[test]
    fn questions_are_answered() {
        check("acp", super::acp);
    }
}
