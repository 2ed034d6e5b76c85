//! Streams of the known agents: recorded and hostile ones.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use insta::assert_snapshot;
use serde::Deserialize;
use windlass_engine::{AgentUsage, TurnFailure, UsdCost};
use windlass_process::{OutputStream, ProgramExit};

use super::*;
use crate::TurnEnd;

mod command_line;

const ALL: [HeadlessDialect; 5] = [
    HeadlessDialect::Claude,
    HeadlessDialect::Codex,
    HeadlessDialect::Opencode,
    HeadlessDialect::Gemini,
    HeadlessDialect::Goose,
];

/// An entry of `recordings/index.yaml`, with the fields that the tests use.
#[derive(Deserialize)]
struct RecordingEntry {
    argv: Vec<String>,
    exit: i32,
}

#[derive(Deserialize)]
struct AgentRecordings {
    recordings: BTreeMap<String, RecordingEntry>,
}

#[derive(Deserialize)]
struct RecordingIndex {
    agents: BTreeMap<String, AgentRecordings>,
}

fn recordings() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("recordings")
}

fn index() -> RecordingIndex {
    let text = fs::read_to_string(recordings().join("index.yaml")).expect("an index");
    serde_saphyr::from_str(&text).expect("it is right")
}

fn recording(dialect: HeadlessDialect, scenario: &str, stream: &str) -> Vec<u8> {
    fs::read(recordings().join(dialect.program_name()).join(format!("{scenario}.{stream}"))).unwrap_or_default()
}

fn exit(code: i32) -> ProgramExit {
    if code < 0 { ProgramExit::Signal(-code) } else { ProgramExit::Code(code) }
}

/// Reads a stream in pieces. `resumes` says whether a conversation is resumed.
fn heard(
    dialect: HeadlessDialect,
    resumes: bool,
    stdout: &[u8],
    stderr: &[u8],
    exit: ProgramExit,
) -> (HeadlessTurnReport, Vec<StreamEvent>) {
    let mut hearing = StreamReader::new(dialect, resumes);
    let mut said: Vec<StreamEvent> = hearing.receive_bytes(OutputStream::Stderr, stderr);
    said.extend(stdout.chunks(4099).flat_map(|piece| hearing.receive_bytes(OutputStream::Stdout, piece)));
    (hearing.finish_turn(exit), said)
}

fn conversation(said: &[StreamEvent]) -> Option<&str> {
    said.iter().find_map(|said| match said {
        StreamEvent::Conversation(name) => Some(name.as_str()),
        StreamEvent::Text(_) => None,
    })
}

fn transcript_text(said: &[StreamEvent]) -> String {
    let text = |said: &StreamEvent| match said {
        StreamEvent::Text(text) => text.clone(),
        StreamEvent::Conversation(_) => String::new(),
    };
    said.iter().map(text).collect()
}

fn shown(ended: &HeadlessTurnEnd) -> String {
    let line = |text: &str| text.replace('\u{1b}', "").split_whitespace().collect::<Vec<_>>().join(" ");
    let short = |text: &str| line(text).chars().take(60).collect::<String>();
    match ended {
        HeadlessTurnEnd::ConversationLost(why) => format!("gone: {}", short(why)),
        HeadlessTurnEnd::Turn(TurnEnd::Answered(text)) => format!("said: {text}"),
        HeadlessTurnEnd::Turn(TurnEnd::Failed { fault, why }) => format!("{fault:?}: {}", short(why)),
        HeadlessTurnEnd::Turn(TurnEnd::RateLimited { said, reset }) => format!("limited, {reset:?}: {}", short(said)),
        HeadlessTurnEnd::Turn(TurnEnd::AccessDenied { said, remedy }) => {
            format!("locked: {}; {}", short(said), short(remedy))
        }
        HeadlessTurnEnd::Turn(other) => format!("{other:?}"),
    }
}

/// Returns a line for every recording: usage (input, of it cached, output, cost), whether it is that of the whole
/// conversation, whether the conversation was named, and how the turn ended.
fn table() -> String {
    let mut table = String::new();
    for (agent, all) in index().agents {
        let dialect = ALL.into_iter().find(|dialect| dialect.program_name() == agent).expect("a dialect");
        for (scenario, recorded) in all.recordings {
            let stdout = recording(dialect, &scenario, "jsonl");
            let stderr = recording(dialect, &scenario, "stderr");
            let resumes = ["resumed", "lost"].contains(&scenario.as_str());
            let (heard, said) = heard(dialect, resumes, &stdout, &stderr, exit(recorded.exit));
            let usage = heard.usage;
            let cost = usage.cost.map(|cost| format!(" {cost}")).unwrap_or_default();
            let used = match usage.is_nothing() {
                true => "-".to_owned(),
                false => format!("{}/{}/{}{cost}", usage.input, usage.cached, usage.output),
            };
            let whole = if heard.usage_scope == UsageScope::Conversation { " of all" } else { "" };
            let named = if conversation(&said).is_some() { "named" } else { "-" };
            table += &format!("{agent} {scenario} | {used}{whole} | {named} | {}\n", shown(&heard.end));
        }
    }
    table
}

#[test]
fn recorded_streams_are_understood() {
    assert_snapshot!(table(), @r#"
    claude broken | 40/0/4 $0.00024 | named | Outage: API Error: Connection lost mid-response. The response above 
    claude capped | 1200/200/34 $0.00472 | named | OutOfTurns: Reached maximum number of turns (1)
    claude cut | 4800/800/136 $0.01888 | named | OutOfTokens: API Error: Claude's response exceeded the 128000 output toke
    claude denied | 2400/400/68 $0.00944 | named | said: I have mended notes.txt. <promise>COMPLETE</promise>
    claude empty | 2400/400/68 $0.00944 | named | Empty: the agent ended its turn without a message
    claude keyless | - | named | locked: Not logged in · Please run /login; run `claude` and type /login, or set ANTHROPIC_API_KEY
    claude limited | - | named | limited, Some(After(60s)): API Error: Request rejected (429) · Rate limit reached for r
    claude lost | - | - | gone: No conversation found with session ID: 99999999-2222-4333-84
    claude ok | 2400/400/68 $0.00944 | named | said: I have mended notes.txt. <promise>COMPLETE</promise>
    claude outage | - | named | Outage: API Error: 500 The server had an error while processing your
    claude refused | 2400/400/68 $0.00944 | named | Refused: API Error: Opus 5.5's safeguards flagged this message (https
    claude resumed | 2400/400/68 $0.00944 | named | said: It is still mended. <promise>COMPLETE</promise>
    claude retried | 2400/400/68 $0.00944 | named | said: I have mended notes.txt. <promise>COMPLETE</promise>
    claude rooted | - | - | Broken("--dangerously-skip-permissions cannot be used with root/sudo privileges for security reasons; if this machine is a sandbox in which the agent may do anything, set `IS_SANDBOX: \"1\"` under `env` of the agent in the configuration; else run as another user")
    claude stalled | - | named | Crashed: it ended in the middle of its turn (exit 143)
    claude unauthorized | - | named | locked: Failed to authenticate. API Error: 401 Incorrect API key pro; run `claude` and type /login, or set ANTHROPIC_API_KEY
    codex cut | - | named | OutOfTokens: Incomplete response returned, reason: max_output_tokens
    codex empty | 1200/200/34 of all | named | Empty: the agent ended its turn without a message
    codex keyless | - | named | locked: Missing environment variable: `STUB_KEY`.; run `codex login`, or set OPENAI_API_KEY
    codex limited | - | named | limited, None: exceeded retry limit, last status: 429 Too Many Requests
    codex lost | - | - | gone: Error: thread/resume: thread/resume failed: no rollout found
    codex ok | 2400/400/68 of all | named | said: I have mended notes.txt. <promise>COMPLETE</promise>
    codex outage | - | named | Outage: We’re currently experiencing high demand, which may cause te
    codex refused | - | named | Refused: stream disconnected before completion: Incomplete response r
    codex resumed | 4800/800/136 of all | named | said: It is still mended. <promise>COMPLETE</promise>
    codex retried | 2400/400/68 of all | named | said: I have mended notes.txt. <promise>COMPLETE</promise>
    codex stalled | - | named | Crashed: it ended in the middle of its turn (ended by signal 15)
    codex unauthorized | - | named | locked: unexpected status 401 Unauthorized: Incorrect API key provid; run `codex login`, or set OPENAI_API_KEY
    gemini broken | - | named | Outage: [API Error: terminated]
    gemini cut | 1200/200/34 | named | said: I begin with the first of the
    gemini empty | 2400/400/68 | named | Empty: The model returned an empty response with no text or thought
    gemini ended | 40/0/12 | named | Outage: Model stream ended without a finish reason.
    gemini exhausted | - | named | limited, None: [API Error: You have exhausted your daily quota on this mode
    gemini full | - | named | OutOfTokens: [API Error: {"error":{"code":400,"message":"The input token 
    gemini keyless | - | - | locked: When using Gemini API, you must specify the GEMINI_API_KEY e; run `gemini` once and choose how to log in, or set GEMINI_AP
    gemini limited | - | named | limited, Some(After(60s)): [API Error: Rate limit reached for requests. Please try agai
    gemini lost | - | - | gone: Error resuming session: No previous sessions found for this 
    gemini ok | 2400/400/68 | named | said: I have mended notes.txt. <promise>COMPLETE</promise>
    gemini outage | - | named | Outage: [API Error: {"error":{"code":500,"message":"The server had a
    gemini quota | - | named | limited, Some(After(600s)): * Quota exceeded for metric: generativelanguage.googleapis.c
    gemini refused | 1200/200/34 | named | said: I cannot help with that.
    gemini resumed | 2400/400/68 | named | said: It is still mended. <promise>COMPLETE</promise>
    gemini retried | 2400/400/68 | named | said: I have mended notes.txt. <promise>COMPLETE</promise>
    gemini stalled | - | named | Crashed: it ended in the middle of its turn (ended by signal 9): Ripg
    gemini unauthorized | - | named | locked: [API Error: {"error":{"code":401,"message":"Incorrect API ke; run `gemini` once and choose how to log in, or set GEMINI_AP
    goose broken | - of all | - | Outage: Network error: Stream decode error: error decoding response 
    goose cut | 1200/200/34 of all | - | OutOfTokens: the model's answer was cut off at its limit of tokens
    goose empty | 4800/800/136 of all | - | Empty: The model returned an empty response. Please resend your mes
    goose ended | - of all | - | said: I have mended half of
    goose full | - of all | - | OutOfTokens: Ran into this error trying to compact: Failed to compact: th
    goose limited | - of all | - | limited, None: Ran into this error: Rate limit exceeded: Rate limit reached
    goose lost | - | - | gone: Error: No session found with name 'windlass-1'
    goose ok | 2400/400/68 of all | - | said: I have mended notes.txt. <promise>COMPLETE</promise>
    goose outage | - of all | - | Outage: Ran into this error: Server error: Server error (500 Interna
    goose refused | 4800/800/136 of all | - | Empty: The model returned an empty response. Please resend your mes
    goose resumed | 4800/800/136 of all | - | said: It is still mended. <promise>COMPLETE</promise>
    goose retried | 2400/400/68 of all | - | said: I have mended notes.txt. <promise>COMPLETE</promise>
    goose stalled | - | - | Crashed: ended by signal 15
    goose unauthorized | - | - | locked: Ran into this error: Authentication error: Authentication fa; run `goose configure`
    opencode cut | 1200/200/34 $0.001068 | named | OutOfTokens: the model's answer was cut off at its limit of tokens
    opencode empty | 1200/200/34 $0.001068 | named | Empty: the agent ended its turn without a message
    opencode limited | - | named | limited, Some(After(2s)): Rate limit reached for requests. Please try again later.
    opencode lost | - | - | gone: [91m[1mError: [0mSession not found
    opencode ok | 2400/400/68 $0.002136 | named | said: I have mended notes.txt. <promise>COMPLETE</promise>
    opencode outage | - | named | Outage: The server had an error while processing your request.
    opencode refused | 1200/200/34 $0.001068 | named | Refused: The response was blocked by the provider's content filter
    opencode resumed | 2400/400/68 $0.002136 | named | said: It is still mended. <promise>COMPLETE</promise>
    opencode retried | 2400/400/68 $0.002136 | named | said: I have mended notes.txt. <promise>COMPLETE</promise>
    opencode stalled | - | - | Crashed: ended by signal 15
    opencode unauthorized | - | named | locked: Incorrect API key provided: dummy.; run `opencode auth login`
    "#);
}

/// Versions without the usage since the last result: with or without the tokens of the turn, and with several results.
#[test]
fn usage_of_older_claude_versions_is_counted_once() {
    let result = |main: &str, more: &str| {
        format!("{{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"Done.\"{main}{more}}}\n")
    };
    let main = |tokens: u64| format!(r#","usage":{{"input_tokens":{tokens}}}"#);
    let all = |tokens: u64, cost: f64| {
        format!(r#","total_cost_usd":{cost},"modelUsage":{{"m":{{"inputTokens":{tokens},"costUSD":{cost}}}}}"#)
    };
    let used = |input: u64, cost: u64| AgentUsage { input, cost: Some(UsdCost(cost)), ..AgentUsage::default() };
    let check = |stream: &str, before: AgentUsage, expected: AgentUsage| {
        let (heard, _) = heard(HeadlessDialect::Claude, true, stream.as_bytes(), b"", ProgramExit::Code(0));
        assert_eq!(heard.usage_since(before), expected, "{stream}");
    };
    let before = used(100, 30_000);
    check(&result(&main(50), &all(150, 0.04)), AgentUsage::default(), used(150, 40_000));
    check(&result(&main(50), &all(150, 0.04)), before, used(50, 10_000));
    check(&result(&main(100), &all(100, 0.03)), before, used(100, 30_000));
    check(&result(&main(120), &all(150, 0.04)), before, used(150, 40_000));
    check(&result(&main(0), &all(100, 0.03)), before, used(0, 0));
    check(&result("", &all(100, 0.03)), before, used(100, 30_000));
    check(&result("", &all(150, 0.04)), before, used(50, 10_000));
    check(&result(&main(7), r#","total_cost_usd":0.05"#), before, used(7, 50_000));
    check(&result(&main(7), r#","total_cost_usd":0.05,"modelUsage":{}"#), before, used(7, 50_000));
    let twice = result(&main(20), &all(120, 0.035)) + &result(&main(30), &all(150, 0.04));
    check(&twice, before, used(50, 10_000));
}

#[test]
fn usage_since_last_result_is_added() {
    let result = |tokens: u64| {
        format!(r#"{{"type":"result","model_usage_since_last_result":{{"m":{{"inputTokens":{tokens}}}}}}}"#)
    };
    let stream = format!("{}\n{}", result(20), result(30));
    let (heard, _) = heard(HeadlessDialect::Claude, false, stream.as_bytes(), b"", ProgramExit::Code(0));
    assert_eq!(heard.usage.input, 50);
}

/// The options are those of the recorded commands, in any order.
#[test]
fn command_lines_are_those_that_were_recorded() {
    let sorted = |mut words: Vec<String>| {
        words.sort();
        words
    };
    for (name, all) in index().agents {
        let mut agent: Agent = name.parse().expect("a known one");
        let crate::AgentKind::Headless(dialect) = agent.kind else { panic!("{name}") };
        agent.setup.model = (name == "gemini").then(|| "gemini-2.5-pro".to_owned());
        for (scenario, is_new) in [("ok", true), ("resumed", false)] {
            let argv = &all.recordings[scenario].argv;
            let is_id = |word: &&String| {
                is_conversation_name(word) && (word.len() == 36 || word.starts_with("ses_") || *word == "windlass-1")
            };
            let id = argv.iter().find(is_id).map(String::as_str);
            let place =
                if is_new { PromptTarget::NewConversation(id) } else { PromptTarget::Existing(id.expect("an id")) };
            let words = build_prompt_script(&agent, dialect, place, None).split(' ').map(str::to_owned).collect();
            assert_eq!(sorted(words), sorted(argv.clone()), "{name} {scenario}");
        }
    }
}

#[test]
fn conversation_names_are_valid_or_ignored() {
    assert_eq!(
        HeadlessDialect::Claude.new_conversation_name(0).as_deref(),
        Some("00000000-0000-4000-8000-000000000000")
    );
    assert_eq!(
        HeadlessDialect::Gemini.new_conversation_name(u128::MAX).as_deref(),
        Some("ffffffff-ffff-4fff-bfff-ffffffffffff")
    );
    for dialect in ALL {
        assert!(dialect.new_conversation_name(7).is_none_or(|name| is_conversation_name(&name)));
    }
    for name in ["", "-x", "--resume", "a b", "a'b", "é", "a\nb", "$(x)", &"x".repeat(201)] {
        assert!(!is_conversation_name(name), "{name}");
    }
    let stream = br#"{"type":"thread.started","thread_id":"--oh"}"#;
    let (_, said) = heard(HeadlessDialect::Codex, false, stream, b"", ProgramExit::Code(0));
    assert_eq!(conversation(&said), None);
}

/// Each name goes into the log, so a stream with many names must not fill it.
#[test]
fn only_first_conversation_name_is_reported() {
    let started = |number: u32| format!("{{\"type\":\"thread.started\",\"thread_id\":\"t{number}\"}}\n");
    let stream: String = (0..100).map(started).collect();
    let (_, said) = heard(HeadlessDialect::Codex, false, stream.as_bytes(), b"", ProgramExit::Code(0));
    assert_eq!(said, [StreamEvent::Conversation("t0".to_owned())]);
}

/// After some work, a message that looks like a lost conversation must not repeat the turn.
#[test]
fn conversation_with_output_is_not_lost() {
    let began =
        "{\"type\":\"item.completed\",\"item\":{\"id\":\"1\",\"type\":\"agent_message\",\"text\":\"I look.\"}}\n";
    let failed = r#"{"type":"turn.failed","error":{"message":"the session of the tool server was not found"}}"#;
    let ended = |stream: &str| heard(HeadlessDialect::Codex, true, stream.as_bytes(), b"", ProgramExit::Code(1)).0.end;
    assert!(matches!(ended(failed), HeadlessTurnEnd::ConversationLost(_)));
    assert!(matches!(ended(&format!("{began}{failed}")), HeadlessTurnEnd::Turn(TurnEnd::Failed { .. })));
}

/// Observers see the agent's text and actions, line by line.
#[test]
fn transcript_shows_tool_calls_and_answer_as_lines() {
    for dialect in ALL {
        let (_, said) = heard(dialect, false, &recording(dialect, "ok", "jsonl"), b"", ProgramExit::Code(0));
        let transcript = transcript_text(&said);
        let lines: Vec<&str> = transcript.lines().collect();
        assert!(lines[0].starts_with('[') && lines[0].contains("echo mended > notes.txt"), "{dialect:?} {lines:?}");
        assert_eq!(lines[1..], ["I have mended notes.txt. <promise>COMPLETE</promise>"], "{dialect:?}");
    }
}

/// A stream that is cut anywhere is no success, and the text before the cut is no answer.
#[test]
fn truncated_stream_is_a_failure() {
    for dialect in ALL {
        let whole = recording(dialect, "ok", "jsonl");
        let last = whole.trim_ascii_end().iter().rposition(|byte| *byte == b'\n').expect("lines") + 1;
        for cut in (0..last).step_by(97).chain([last, last + 5]) {
            for exit in [ProgramExit::Code(0), ProgramExit::Code(1), ProgramExit::Signal(9)] {
                let (heard, _) = heard(dialect, false, &whole[..cut], b"", exit);
                let fault = match &heard.end {
                    HeadlessTurnEnd::Turn(TurnEnd::Failed { fault, .. }) => *fault,
                    other => panic!("{dialect:?} cut at {cut}: {other:?}"),
                };
                assert!(
                    [TurnFailure::Crashed, TurnFailure::Garbage, TurnFailure::Failed].contains(&fault),
                    "{dialect:?} {cut} {fault:?}"
                );
            }
        }
        let (heard, _) = heard(dialect, false, whole.trim_ascii_end(), b"", ProgramExit::Signal(9));
        let said = TurnEnd::Answered("I have mended notes.txt. <promise>COMPLETE</promise>".to_owned());
        assert_eq!(heard.end, HeadlessTurnEnd::Turn(said), "{dialect:?}: what was said to the end stands");
    }
}

#[test]
fn noise_lines_are_skipped_and_noise_alone_is_garbage() {
    let deep = "[".repeat(100_000);
    let noise =
        format!("starting up\n\n{{}}\n[1]\n3\n{{\"type\":7}}\n{{\"type\":\"hello\"}}\n{{\"a\":{deep}\n\u{1b}[31m\n");
    for dialect in ALL {
        let mut noisy = noise.clone().into_bytes();
        for line in recording(dialect, "ok", "jsonl").split_inclusive(|byte| *byte == b'\n') {
            noisy.extend_from_slice(line);
            noisy.extend_from_slice(b"\xff\xfe noise\n");
        }
        let (good, _) = heard(dialect, false, &noisy, b"", ProgramExit::Code(0));
        assert!(matches!(good.end, HeadlessTurnEnd::Turn(TurnEnd::Answered(_))), "{dialect:?} {good:?}");
        let (bad, _) = heard(dialect, true, noise.as_bytes(), b"", ProgramExit::Code(0));
        let HeadlessTurnEnd::Turn(TurnEnd::Failed { fault: TurnFailure::Garbage, why }) = bad.end else {
            panic!("{dialect:?}")
        };
        assert!(why.contains("`starting up`"), "{why}");
        let (none, _) = heard(dialect, false, b"", b"", ProgramExit::Code(0));
        assert_eq!(shown(&none.end), "Garbage: it wrote nothing at all (exit 0)");
    }
}

#[test]
fn endless_line_is_bounded() {
    let mut hearing = StreamReader::new(HeadlessDialect::Claude, false);
    let piece = vec![b'x'; 1 << 20];
    let lasted = (0..100).take_while(|_| {
        hearing.receive_bytes(OutputStream::Stdout, &piece);
        !hearing.is_finished()
    });
    assert_eq!(lasted.count(), 16);
    hearing.receive_bytes(OutputStream::Stdout, &recording(HeadlessDialect::Claude, "ok", "jsonl"));
    assert_eq!(shown(&hearing.finish_turn(ProgramExit::Cancelled).end), "Garbage: it wrote a line of more than 16 MiB");
}

#[test]
fn stderr_keeps_its_last_lines() {
    let complaints = format!("error: of old\n{}", "more\n".repeat(4000));
    let (heard, _) = heard(HeadlessDialect::Claude, false, b"", complaints.as_bytes(), ProgramExit::Code(1));
    assert_eq!(shown(&heard.end), "Failed: exit 1: more");
}

/// Replaces every value of every event by one of another type: the reader neither panics nor invents an answer.
#[test]
fn events_with_wrong_types_do_not_panic() {
    fn twisted(value: &serde_json::Value, with: &serde_json::Value, left: &mut i32) -> serde_json::Value {
        *left -= 1;
        if *left == 0 {
            return with.clone();
        }
        match value {
            serde_json::Value::Object(fields) => {
                fields.iter().map(|(key, field)| (key.clone(), twisted(field, with, left))).collect()
            }
            serde_json::Value::Array(items) => items.iter().map(|item| twisted(item, with, left)).collect(),
            other => other.clone(),
        }
    }
    let strange = [
        serde_json::json!(null),
        serde_json::json!([[]]),
        serde_json::json!({"x": -1.5}),
        serde_json::json!("x"),
        serde_json::json!(1e300),
    ];
    for dialect in ALL {
        let stream = recording(dialect, "ok", "jsonl");
        let lines: Vec<serde_json::Value> =
            stream.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
        for (place, line) in lines.iter().enumerate() {
            for (number, with) in (1..60).zip(strange.iter().cycle()) {
                let mut all = lines.clone();
                all[place] = twisted(line, with, &mut { number });
                let text: String = all.iter().map(|line| format!("{line}\n")).collect();
                let (heard, _) = heard(dialect, false, text.as_bytes(), b"", ProgramExit::Code(0));
                if let HeadlessTurnEnd::Turn(TurnEnd::Answered(said)) = heard.end {
                    assert!(said.len() < 100, "{said}");
                }
            }
        }
    }
}

/// Output of tools, the prompt and text of subagents are not the agent's answer.
#[test]
fn only_the_agents_last_message_is_its_answer() {
    let claim = "<promise>COMPLETE</promise>";
    let check = |dialect, lines: &[String], expected: &str| {
        let text = lines.join("\n");
        let (heard, _) = heard(dialect, false, text.as_bytes(), b"", ProgramExit::Code(0));
        assert_eq!(heard.end, HeadlessTurnEnd::Turn(TurnEnd::Answered(expected.to_owned())), "{dialect:?}");
    };
    let gemini = |kind: &str, more: &str| format!(r#"{{"type":"{kind}",{more}}}"#);
    check(
        HeadlessDialect::Gemini,
        &[
            gemini("message", &format!(r#""role":"user","content":"{claim}""#)),
            gemini("message", &format!(r#""role":"assistant","content":"I begin. {claim}","delta":true"#)),
            gemini("tool_use", r#""tool_name":"x","tool_id":"1","parameters":{}"#),
            gemini("tool_result", &format!(r#""tool_id":"1","status":"success","output":"{claim}""#)),
            gemini("result", r#""status":"success","stats":{}"#),
        ],
        "",
    );
    let claude = |parent: &str, text: &str| {
        format!(
            r#"{{"type":"assistant","parent_tool_use_id":{parent},"message":{{"id":"m","content":[{{"type":"text","text":"{text}"}}]}}}}"#
        )
    };
    check(
        HeadlessDialect::Claude,
        &[
            claude("null", "Not yet."),
            claude("\"toolu_1\"", claim),
            format!(
                r#"{{"type":"user","message":{{"content":[{{"type":"text","text":"{claim}"}}]}},"isSynthetic":true}}"#
            ),
            r#"{"type":"result","subtype":"success","is_error":false}"#.to_owned(),
        ],
        "Not yet.",
    );
    let goose = |id: &str, role: &str, content: &str| {
        format!(
            r#"{{"type":"message","message":{{"id":"{id}","role":"{role}","content":[{content}],"metadata":{{"inference":{{}}}}}}}}"#
        )
    };
    let text = |text: &str| format!(r#"{{"type":"text","text":"{text}"}}"#);
    check(
        HeadlessDialect::Goose,
        &[
            goose("1", "assistant", &text(claim)),
            goose("2", "user", &text(claim)),
            goose("3", "assistant", &text("Ran into this error: ")),
            goose("3", "assistant", &text("I quote it.")),
            r#"{"type":"complete"}"#.to_owned(),
        ],
        "Ran into this error: I quote it.",
    );
}

/// Commands that outlast the answer, results without text, unusual finish reasons, other line ends.
#[test]
fn answers_survive_unusual_streams() {
    let check = |dialect, text: &str, named: bool| {
        let (heard, said) = heard(dialect, false, text.as_bytes(), b"", ProgramExit::Code(0));
        assert_eq!(heard.end, HeadlessTurnEnd::Turn(TurnEnd::Answered("Done.".to_owned())), "{text}");
        assert_eq!(conversation(&said).is_some(), named, "{text}");
    };
    let run = |event: &str, id: &str| {
        format!(r#"{{"type":"item.{event}","item":{{"id":"{id}","type":"command_execution","command":"make"}}}}"#)
    };
    let codex = [
        r#"{"type":"thread.started","thread_id":"t"}"#.to_owned(),
        run("started", "1"),
        run("started", "2"),
        run("completed", "1"),
        r#"{"type":"item.completed","item":{"id":"3","type":"agent_message","text":"Done."}}"#.to_owned(),
        run("completed", "2"),
        r#"{"type":"turn.completed"}"#.to_owned(),
    ];
    check(HeadlessDialect::Codex, &codex.join("\n"), true);
    check(HeadlessDialect::Codex, &format!("\u{feff}{}", codex.join("\r\n")), true);
    let claude = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"Done."}]}}
        {"type":"result","subtype":"success","is_error":false,"result":""}"#;
    check(HeadlessDialect::Claude, claude, false);
    let opencode = r#"{"type":"text","part":{"text":"Done."}}
        {"type":"step_finish","part":{"reason":"other"}}"#;
    check(HeadlessDialect::Opencode, opencode, false);
}

/// Neither an exit code nor a success field suffices.
#[test]
fn claimed_success_is_checked() {
    let result =
        |more: &str| format!(r#"{{"type":"result","subtype":"success","result":"Done.","session_id":"s"{more}}}"#);
    for (more, expected) in [
        ("", "Failed: Done."),
        (r#","is_error":"no""#, "Failed: Done."),
        (r#","is_error":true,"api_error_status":500"#, "Outage: Done."),
        (r#","is_error":false,"terminal_reason":"api_error""#, "GaveUp: the agent ended its turn early: api_error"),
        (r#","is_error":false,"stop_reason":"refusal""#, "Refused: Done."),
        (
            r#","is_error":false,"stop_reason":"max_tokens""#,
            "OutOfTokens: the model's answer was cut off at its limit of tokens",
        ),
        (r#","is_error":false,"terminal_reason":"completed""#, "said: Done."),
        (r#","is_error":true,"api_error_status":429"#, "limited, None: Done."),
    ] {
        let (heard, _) = heard(HeadlessDialect::Claude, false, result(more).as_bytes(), b"", ProgramExit::Code(0));
        assert_eq!(shown(&heard.end), expected, "{more}");
    }
    let limited = r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1800000000}}"#;
    let stream = format!("{limited}\n{}", result(r#","is_error":true,"api_error_status":429"#));
    let ended = |stream: &str| {
        shown(&heard(HeadlessDialect::Claude, false, stream.as_bytes(), b"", ProgramExit::Code(1)).0.end)
    };
    assert_eq!(ended(&stream), "limited, Some(At(2027-01-15T08:00:00Z)): Done.");
    assert_eq!(ended(&stream.replace("rejected", "allowed")), "limited, None: Done.", "of another limit");
}

#[test]
fn restarted_turn_is_not_finished() {
    let said = r#"{"type":"item.completed","item":{"id":"1","type":"agent_message","text":"Done."}}"#;
    let stream = format!("{said}\n{{\"type\":\"turn.completed\"}}\n{{\"type\":\"turn.started\"}}");
    let (heard, _) = heard(HeadlessDialect::Codex, false, stream.as_bytes(), b"", ProgramExit::Code(1));
    assert_eq!(shown(&heard.end), "Crashed: it ended in the middle of its turn (exit 1)");
}

#[test]
fn missing_program_differs_from_failing_program() {
    let ended = |exit, stdout: &str, stderr: &str| {
        shown(&heard(HeadlessDialect::Codex, true, stdout.as_bytes(), stderr.as_bytes(), exit).0.end)
    };
    assert_eq!(
        ended(ProgramExit::Code(127), "", "sh: 1: codex: not found"),
        "Broken(\"cannot start the program: sh: 1: codex: not found\")"
    );
    assert_eq!(
        ended(ProgramExit::Code(1), "", "error: unexpected argument '--json'"),
        "Failed: exit 1: error: unexpected argument '--json'"
    );
    assert_eq!(
        ended(ProgramExit::Code(1), "", "Not logged in"),
        "locked: Not logged in; run `codex login`, or set OPENAI_API_KEY"
    );
    assert_eq!(
        ended(ProgramExit::Code(1), "Please log in first\n", ""),
        "locked: Please log in first; run `codex login`, or set OPENAI_API_KEY"
    );
    assert_eq!(ended(ProgramExit::OutputIdle, "", ""), "Silent: it wrote nothing for too long");
    assert_eq!(ended(ProgramExit::TimedOut, "", ""), "TimedOut");
    assert_eq!(ended(ProgramExit::Cancelled, "", ""), "Cancelled");
}
