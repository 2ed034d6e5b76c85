//! Laws of reading agents' output, for every input. For tests and fuzzing only.
//!
//! Each law takes bytes and panics if it is broken.

use serde_json::{Value, json};
use windlass_process::{OutputStream, ProgramExit};

use crate::acp::{AcpClient, AcpEvent, AgentPermissions, PROMPT, ToolPermission};
use crate::headless::{
    HeadlessDialect, HeadlessTurnEnd, HeadlessTurnReport, StreamEvent as Word, StreamReader, is_conversation_name,
    parse_json_line,
};
use crate::{RateLimitReset, TurnEnd, aider_output, failure};

/// The longest input for patterns, which are slow.
const MAX_PATTERN_INPUT: usize = 160;
/// Out of this many streams, two are searched with patterns.
const STREAMS_PER_PATTERN_SEARCH: usize = 16;
/// The number of ways in which `check_agent_failure` checks a text.
const FAILURE_CHECK_COUNT: usize = 4;

/// Each dialect, with words of which its stream needs one to say how a turn ended.
const DIALECTS: [(HeadlessDialect, &[&str]); 5] = [
    (HeadlessDialect::Claude, &["result"]),
    (HeadlessDialect::Codex, &["turn.completed"]),
    (HeadlessDialect::Opencode, &["step_finish"]),
    (HeadlessDialect::Gemini, &["result"]),
    (HeadlessDialect::Goose, &["complete"]),
];

/// Checks that a stream means the same however it is cut into pieces; that a turn succeeds only if its stream says so; and
/// that a conversation name is safe on a command line. Reads each stream in one of the dialects.
pub fn check_stream(bytes: &[u8]) {
    check_stream_case(bytes, choose_case(bytes, DIALECTS.len() * STREAMS_PER_PATTERN_SEARCH));
}

fn check_stream_case(bytes: &[u8], way: usize) {
    let (dialect, closing) = DIALECTS[way % DIALECTS.len()];
    // Only a failed exit is searched for its cause with patterns.
    let (resumes, bytes, exit) = match way / DIALECTS.len() {
        0 => (true, &bytes[..bytes.len().min(MAX_PATTERN_INPUT)], ProgramExit::Code(1)),
        1 => (false, bytes, ProgramExit::Code(0)),
        _ => (false, bytes, ProgramExit::Cancelled),
    };
    let (whole, words) = read_stream(dialect, resumes, bytes, bytes.len().max(1), exit);
    let (pieces, others) = read_stream(dialect, resumes, bytes, 5, exit);
    assert_eq!(whole, pieces, "{dialect:?}");
    assert_eq!(format_events(&words), format_events(&others), "{dialect:?}");
    let named = words.iter().filter_map(|word| match word {
        Word::Conversation(name) => Some(name),
        Word::Text(_) => None,
    });
    let named: Vec<&String> = named.collect();
    assert!(named.len() <= 1 && named.iter().all(|name| is_conversation_name(name)), "{named:?}");
    if let HeadlessTurnEnd::Turn(TurnEnd::Answered(_)) = &whole.end {
        let text = String::from_utf8_lossy(bytes);
        // Keys may be written with escapes.
        let closed = closing.iter().any(|word| text.contains(word)) || text.contains('\\');
        assert!(closed, "{dialect:?} does not say that its turn has ended");
    }
}

/// Checks that a message instead of an answer is classified or left as it is, and that a reset is never in the past. Reads
/// each text in one of several ways.
pub fn check_agent_failure(bytes: &[u8]) {
    check_failure_case(bytes, choose_case(bytes, FAILURE_CHECK_COUNT));
}

fn check_failure_case(bytes: &[u8], way: usize) {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_PATTERN_INPUT)]);
    match way {
        0 => drop(aider_output::read_aider_output(&text)),
        1 => drop(failure::classify_failed_output(&text, &text)),
        2 => drop(failure::classify_failure_answer(&text)),
        _ => {
            let without = failure::strip_leading_warnings(&text);
            assert!(text.contains(without), "only a part is left");
            if let Some(reset) = RateLimitReset::parse_reset_time(&text) {
                for now in [0, 1_768_644_000_000, i64::MAX] {
                    assert!(reset.to_epoch_millis(now) >= now, "{reset:?} is over");
                }
            }
        }
    }
}

/// Chooses a case by the sum of the bytes.
fn choose_case(bytes: &[u8], many: usize) -> usize {
    bytes.iter().map(|byte| usize::from(*byte)).sum::<usize>() % many
}

fn read_stream(
    dialect: HeadlessDialect,
    resumes: bool,
    bytes: &[u8],
    size: usize,
    exit: ProgramExit,
) -> (HeadlessTurnReport, Vec<Word>) {
    let mut hearing = StreamReader::new(dialect, resumes);
    let mut said = hearing.receive_bytes(OutputStream::Stderr, &bytes[..bytes.len().min(80)]);
    said.extend(bytes.chunks(size).flat_map(|piece| hearing.receive_bytes(OutputStream::Stdout, piece)));
    // The end of a stream ends its last line.
    said.extend(hearing.receive_bytes(OutputStream::Stdout, b"\n"));
    (hearing.finish_turn(exit), said)
}

fn format_events(words: &[Word]) -> String {
    let text = |word: &Word| match word {
        Word::Text(text) => text.clone(),
        Word::Conversation(name) => format!("<{name}>"),
    };
    words.iter().map(text).collect()
}

/// Checks that every request of an agent is answered once, or left to the caller; that only one answer is accepted; and that
/// the meaning does not depend on how the bytes are cut.
pub fn check_acp(bytes: &[u8]) {
    let lines = run_client(bytes.split_inclusive(|byte| *byte == b'\n'));
    // Never two lines at once: a protocol error drops the events that came with it, except an answer.
    assert_eq!(lines, run_client(bytes.chunks(1)), "however it is cut");
    let whole = run_client(std::iter::once(bytes));
    let is_answer = |said: &AcpEvent| matches!(said, AcpEvent::Answer(_));
    let answers = lines.said.iter().filter(|said| is_answer(said)).count();
    assert!(answers <= 1, "one question, {answers} answers");
    if lines.broken {
        // Events up to the answer count.
        let heard = lines.said.iter().position(is_answer).map_or(0, |at| at + 1);
        assert!(whole.broken || heard > 0 && whole.said.starts_with(&lines.said[..heard]), "however it is cut");
        return;
    }
    assert_eq!(lines, whole, "however it is cut");
    let requests = lines.said.iter().filter_map(|said| match said {
        AcpEvent::Request { id, .. } => Some(id.clone()),
        _ => None,
    });
    let mut answered: Vec<Value> = requests.collect();
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
    assert_eq!(sorted(answered), sorted(list_request_ids(bytes)), "every question is answered once");
}

/// Returns the ids of an agent's requests.
fn list_request_ids(bytes: &[u8]) -> Vec<Value> {
    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    // An incomplete line is no message.
    lines.pop();
    let parsed = lines.into_iter().map(|line| line.trim_ascii()).filter_map(|line| {
        parse_json_line(line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)).ok().filter(Value::is_object)
    });
    parsed.filter(|message| message["method"].is_string()).filter_map(|message| message.get("id").cloned()).collect()
}

#[derive(Debug, PartialEq)]
struct ClientTranscript {
    said: Vec<AcpEvent>,
    out: Vec<u8>,
    speech: String,
    broken: bool,
}

fn run_client<'b>(pieces: impl Iterator<Item = &'b [u8]>) -> ClientTranscript {
    let mut client = AcpClient::new(AgentPermissions::uniform(ToolPermission::Allow));
    client.set_conversation("s");
    client.send_request(PROMPT, json!({}));
    client.take_outgoing();
    let (mut said, mut broken) = (Vec::new(), false);
    for piece in pieces {
        match client.receive_bytes(piece) {
            Ok(more) => said.extend(more),
            Err(breach) => {
                assert!(!breach.to_string().is_empty());
                broken = true;
                break;
            }
        }
    }
    ClientTranscript { said, out: client.take_outgoing(), speech: client.take_final_message(), broken }
}

#[cfg(test)]
mod tests {
    use windlass_testkit::hostile::check_law;

    #[test]
    fn stream_law_holds_for_hostile_input() {
        check_law("stream", |bytes| {
            (0..3 * super::DIALECTS.len()).for_each(|way| super::check_stream_case(bytes, way))
        });
    }

    #[test]
    fn agent_failure_law_holds_for_hostile_input() {
        check_law("agent_failure", |bytes| {
            (0..super::FAILURE_CHECK_COUNT).for_each(|way| super::check_failure_case(bytes, way))
        });
    }

    #[test]
    fn acp_law_holds_for_hostile_input() {
        check_law("acp", super::check_acp);
    }
}
