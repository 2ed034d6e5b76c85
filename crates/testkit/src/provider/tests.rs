//! Requests to the provider over the wire.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::*;

/// Sends a request and returns the head and the body of the answer. Empty without an answer.
fn send_question(provider: &ScriptedProvider, path: &str, body: &Value) -> String {
    let mut stream = open_request(provider, path, body);
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer
}

fn open_request(provider: &ScriptedProvider, path: &str, body: &Value) -> TcpStream {
    let mut stream = TcpStream::connect(provider.address).unwrap();
    let body = body.to_string();
    write!(stream, "POST {path} HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    stream
}

fn response_body(answer: &str) -> Value {
    let (_, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    serde_json::from_str(body).expect("JSON")
}

fn start_provider(steps: &[ModelStep]) -> ScriptedProvider {
    ScriptedProvider::start(steps.to_vec()).unwrap()
}

/// Returns a question in each API, with an agent's shell tool, after this many answers.
fn questions(answers: usize) -> [(&'static str, Value); 4] {
    let schema = |name: &str, kind: &str| json!({"type": "object", "properties": {name: {"type": kind}}});
    let repeat_item = |item: Value| Value::Array(vec![item; answers]);
    [
        (
            "/v1/chat/completions",
            json!({
                "model": "stub", "messages": repeat_item(json!({"role": "assistant", "content": "Well."})),
                "tools": [{"function": {"name": "developer__shell", "parameters": schema("command", "string")}}],
            }),
        ),
        (
            "/v1/responses",
            json!({
                "model": "stub", "input": repeat_item(json!({"type": "function_call", "name": "exec_command"})),
                "tools": [{"type": "function", "name": "exec_command", "parameters": schema("cmd", "string")}],
            }),
        ),
        (
            "/v1/messages?beta=true",
            json!({
                "model": "stub", "messages": repeat_item(json!({"role": "assistant", "content": [{"text": "Well."}]})),
                "tools": [{"name": "Bash", "input_schema": schema("command", "string")}],
            }),
        ),
        (
            "/v1beta/models/stub:generateContent",
            json!({
                "contents": repeat_item(json!({"role": "model", "parts": [{"functionCall": {}}]})),
                "tools": [{"functionDeclarations": [{"name": "run_shell_command", "parameters": schema("command", "STRING")}]}],
            }),
        ),
    ]
}

#[test]
fn every_api_calls_the_shell_that_is_offered() {
    let provider = start_provider(&[ModelStep::run("ls -l")]);
    let calls = questions(0).map(|(path, question)| {
        let answer = response_body(&send_question(&provider, path, &question));
        let places = [
            "/choices/0/message/tool_calls/0/function",
            "/output/0",
            "/content/0",
            "/candidates/0/content/parts/0/functionCall",
        ];
        let call = places.iter().find_map(|place| answer.pointer(place)).expect("a call").clone();
        let input = ["arguments", "input", "args"].iter().find_map(|name| call.get(name)).expect("arguments").clone();
        let input = input.as_str().map_or(input.clone(), |text| serde_json::from_str(text).unwrap());
        (call["name"].as_str().unwrap().to_owned(), input)
    });
    assert_eq!(
        calls.map(|(name, input)| format!("{name} {input}")),
        [
            r#"developer__shell {"command":"ls -l"}"#,
            r#"exec_command {"cmd":"ls -l"}"#,
            r#"Bash {"command":"ls -l"}"#,
            r#"run_shell_command {"command":"ls -l"}"#,
        ]
    );
}

#[test]
fn every_api_streams() {
    let provider = start_provider(&[ModelStep::run("ls"), ModelStep::say("All done.")]);
    for (path, mut question) in questions(1) {
        question["stream"] = json!(true);
        let path = path.replace(":generateContent", ":streamGenerateContent?alt=sse");
        let answer = send_question(&provider, &path, &question);
        assert!(answer.contains("Content-Type: text/event-stream"), "{answer}");
        assert!(answer.contains(r#""All ""#) && answer.contains(r#""done.""#), "{path}: {answer}");
        assert!(answer.contains("34"), "{path} tells its usage: {answer}");
    }
}

#[test]
fn every_api_says_why_it_stops() {
    let provider = start_provider(&[
        ModelStep::Cut(StepRepetition { times: Some(4) }),
        ModelStep::Refuse(StepRepetition { times: Some(4) }),
    ]);
    let mut answers = String::new();
    for (path, question) in questions(0).into_iter().chain(questions(0)) {
        answers += &send_question(&provider, path, &question);
    }
    for reason in ["length", "max_output_tokens", "max_tokens", "MAX_TOKENS", "content_filter", "refusal", "SAFETY"] {
        assert!(answers.contains(&format!(r#""{reason}""#)), "{reason}: {answers}");
    }
}

#[test]
fn failures_are_worded_as_the_api_does() {
    let limited = HttpFailure { status: 429, times: None, retry_after: Some(60) };
    let provider = start_provider(&[ModelStep::Fail(limited)]);
    let kinds = ["rate_limit_exceeded", "rate_limit_exceeded", "rate_limit_error", "RESOURCE_EXHAUSTED"];
    for ((path, question), kind) in questions(0).into_iter().zip(kinds) {
        let answer = send_question(&provider, path, &question);
        assert!(answer.starts_with("HTTP/1.1 429 Too Many Requests\r\n"), "{answer}");
        assert!(answer.contains("Retry-After: 60\r\n") && answer.contains(kind), "{answer}");
    }
}

#[test]
fn titles_and_repetitions_do_not_move_the_script() {
    let provider = start_provider(&[ModelStep::fail(500), ModelStep::say("never")]);
    let title = json!({"model": "stub", "messages": [{"role": "user", "content": "Name this."}]});
    let [(path, question), ..] = questions(0);
    for _ in 0..2 {
        assert!(send_question(&provider, path, &question).starts_with("HTTP/1.1 500 "));
        assert_eq!(
            response_body(&send_question(&provider, path, &title))["choices"][0]["message"]["content"],
            TITLE_TEXT
        );
    }
    let asked: Vec<_> = provider.requests().into_iter().map(|request| request.body).collect();
    assert_eq!(asked, [&question, &title, &question, &title].map(Value::clone));
}

#[test]
fn provider_answer_fits_schema_of_question() {
    let provider = start_provider(&[]);
    let schema = json!({
        "type": "OBJECT", "required": ["choice", "sure"],
        "properties": {"choice": {"type": "STRING", "enum": ["small", "large"]}, "sure": {"type": "BOOLEAN"}},
    });
    let question = json!({"contents": [], "generationConfig": {"responseJsonSchema": schema}});
    let answer = response_body(&send_question(&provider, "/v1beta/models/stub:generateContent", &question));
    assert_eq!(answer["candidates"][0]["content"]["parts"][0]["text"], r#"{"choice":"small","sure":false}"#);
}

/// Codex offers the tools of its MCP servers like this.
#[test]
fn tools_in_a_namespace_are_called_in_it() {
    let call = "- call: {tool: note_add, input: {text: hi}}";
    let provider = ScriptedProvider::start(serde_saphyr::from_str(call).expect("it is right")).expect("a free port");
    let tools = json!([{"type": "namespace", "name": "mcp__windlass", "tools": [
        {"type": "function", "name": "note_add", "parameters": {}},
    ]}]);
    let answer = response_body(&send_question(
        &provider,
        "/v1/responses",
        &json!({"model": "stub", "input": [], "tools": tools}),
    ));
    let called = &answer["output"][0];
    assert_eq!([&called["namespace"], &called["name"]], ["mcp__windlass", "note_add"]);
    assert_eq!(called["arguments"], r#"{"text":"hi"}"#);
}

#[test]
fn call_of_unoffered_tool_is_refused_unless_step_insists() {
    let provider =
        start_provider(&[ModelStep::Call(ToolInvocation { tool: "task_list".to_owned(), input: Value::Null })]);
    let [(path, mut question), ..] = questions(0);
    assert!(send_question(&provider, path, &question).starts_with("HTTP/1.1 400 "));
    let insisting_provider =
        start_provider(&[ModelStep::Insist(ToolInvocation { tool: "Write".to_owned(), input: json!({"path": "a"}) })]);
    let call = &response_body(&send_question(&insisting_provider, path, &question))["choices"][0]["message"]["tool_calls"]
        [0]["function"];
    assert_eq!([&call["name"], &call["arguments"]], ["Write", r#"{"path":"a"}"#]);
    question["tools"] = json!([{"function": {"name": "windlass__task_list"}}]);
    let answer = response_body(&send_question(&provider, path, &question));
    assert_eq!(answer["choices"][0]["message"]["tool_calls"][0]["function"]["name"], "windlass__task_list");
}

#[test]
fn waiting_client_is_released_at_the_end() {
    let provider = start_provider(&[ModelStep::Stall(StepRepetition::default())]);
    let [(path, question), ..] = questions(0);
    let mut stream = open_request(&provider, path, &question);
    assert_eq!(provider.request(0).body, question);
    drop(provider);
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    assert_eq!(answer, "");
}

#[test]
fn auxiliary_requests_are_answered_but_not_recorded() {
    let provider = start_provider(&[]);
    let mut stream = TcpStream::connect(provider.address).unwrap();
    stream.write_all(b"GET /v1/models HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert_eq!(response_body(&answer)["data"][0]["id"], "stub");
    assert!(send_question(&provider, "/v1/messages/count_tokens", &json!({})).contains("input_tokens"));
    assert!(send_question(&provider, "/elsewhere", &json!({})).starts_with("HTTP/1.1 404 "));
    assert!(provider.requests().is_empty());
}
