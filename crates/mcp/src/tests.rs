//! Tests of whole conversations with a server that has a few tools of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, duplex, split};
use tokio::io::{ReadHalf, WriteHalf};
use tokio_util::sync::CancellationToken;
use windlass_tools::{CallerHint, RunControl, ToolDefinition, ToolEffect, ToolError, ToolErrorCode};

use crate::router_pool::RouterPool;
use crate::server::{StopHandle, ToolCaller, ToolReply, ToolServer, build_runtime};

const fn define_test_tool(name: &'static str, effect: ToolEffect) -> ToolDefinition {
    ToolDefinition { name, description: "For a test.", example: "{}", effect, fields: &[] }
}

const TOOLS: &[ToolDefinition] = &[
    define_test_tool("echo", ToolEffect::ReadOnly),
    define_test_tool("wait", ToolEffect::Writes),
    define_test_tool("fail", ToolEffect::Writes),
    define_test_tool("panic", ToolEffect::Writes),
];

struct TestRouter;

impl ToolCaller for TestRouter {
    fn call_tool_as_json(&mut self, tool: &str, arguments: Value, control: &RunControl) -> ToolReply {
        match tool {
            "echo" => Ok(to_raw_value(&json!({ "said": arguments })).unwrap()),
            // Stands for the wait for a program.
            "wait" => match control.wait_unless_cancelled(Duration::from_secs(600)) {
                true => Ok(to_raw_value(&json!({})).unwrap()),
                false => Err(ToolError::new(ToolErrorCode::Interrupted, "the program was ended")),
            },
            "fail" => Err(ToolError::new(ToolErrorCode::NotFound, "there is no T9")
                .with_hint(CallerHint::tool("task_list", "shows the tasks"))),
            _ => panic!("this is a test"),
        }
    }
}

/// A router that fails as its arguments say.
struct FailingRouter;

impl ToolCaller for FailingRouter {
    fn call_tool_as_json(&mut self, _: &str, arguments: Value, _: &RunControl) -> ToolReply {
        Err(ToolError::new(
            if arguments == json!("store") { ToolErrorCode::Store } else { ToolErrorCode::Refused },
            "it failed",
        ))
    }
}

#[test]
fn store_is_opened_again_after_it_failed() {
    let opened = Arc::new(AtomicUsize::new(0));
    let count = opened.clone();
    let open = move || {
        count.fetch_add(1, Ordering::Relaxed);
        Ok(FailingRouter)
    };
    let pool = RouterPool::new(open, RunControl::new());
    build_runtime().unwrap().block_on(async {
        for (effect, fails, expected) in [
            (ToolEffect::ReadOnly, "rule", 1),
            (ToolEffect::ReadOnly, "store", 1),
            (ToolEffect::Writes, "store", 2),
            (ToolEffect::Writes, "rule", 3),
            (ToolEffect::ReadOnly, "rule", 3),
        ] {
            assert!(pool.call_tool("any", effect, json!(fails), &CancellationToken::new()).await.is_err());
            assert_eq!(opened.load(Ordering::Relaxed), expected, "{effect:?} {fails}");
        }
    });
}

/// A client of the server.
struct TestClient {
    input: Option<WriteHalf<DuplexStream>>,
    output: Lines<BufReader<ReadHalf<DuplexStream>>>,
    server: tokio::task::JoinHandle<()>,
    stop: StopHandle,
    control: RunControl,
}

impl TestClient {
    fn new() -> Self {
        let (ours, theirs) = duplex(1024 * 1024);
        let (input, output) = split(theirs);
        let control = RunControl::new();
        let stop = StopHandle::new(control.clone());
        let server = ToolServer::new(TOOLS, || Ok(TestRouter), stop.clone());
        let server = tokio::spawn(server.serve_streams(Box::new(input), Box::new(output)));
        let (output, input) = split(ours);
        Self { input: Some(input), output: BufReader::new(output).lines(), server, stop, control }
    }

    async fn send_line(&mut self, line: impl AsRef<[u8]>) {
        let input = self.input.as_mut().expect("it was not closed");
        input.write_all(line.as_ref()).await.unwrap();
        input.write_all(b"\n").await.unwrap();
    }

    async fn call_tool(&mut self, id: u64, tool: &str) {
        self.send_line(request_line(id, "tools/call", json!({"name": tool, "arguments": {"a": id}}))).await;
    }

    async fn next_answer(&mut self) -> Value {
        serde_json::from_str(&self.output.next_line().await.unwrap().expect("an answer")).unwrap()
    }

    async fn send_and_receive(&mut self, line: impl AsRef<[u8]>) -> Value {
        self.send_line(line).await;
        self.next_answer().await
    }

    /// Closes the input, and waits for the end of the server.
    async fn close_and_wait(mut self) {
        self.input.take().unwrap().shutdown().await.unwrap();
        assert_eq!(self.output.next_line().await.unwrap(), None);
        self.server.await.unwrap();
    }
}

fn request_line(id: u64, method: &str, params: Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

fn initialize_line(version: &str) -> String {
    let client = json!({"name": "test", "version": "1"});
    request_line(0, "initialize", json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client}))
}

/// Adds the metadata of a client of the revision without a handshake.
fn with_modern_metadata(params: Value) -> Value {
    let mut params = params;
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    params
}

fn run_async(test: impl Future<Output = ()>) {
    build_runtime().unwrap().block_on(test);
}

#[test]
fn server_negotiates_every_revision() {
    run_async(async {
        let answers = [
            ("2024-11-05", "2024-11-05"),
            ("2025-03-26", "2025-03-26"),
            ("2025-06-18", "2025-06-18"),
            ("2025-11-25", "2025-11-25"),
            ("2026-07-28", "2025-11-25"),
            ("1999-01-01", "2025-11-25"),
        ];
        for (asked, answered) in answers {
            let mut client = TestClient::new();
            let hello = client.send_and_receive(initialize_line(asked)).await;
            assert_eq!(hello["result"]["protocolVersion"], answered, "{asked}");
            assert_eq!(hello["result"]["capabilities"], json!({"tools": {}, "prompts": {}}));
            assert_eq!(hello["result"]["serverInfo"]["name"], "windlass");
            assert!(hello["result"]["instructions"].as_str().unwrap().lines().count() <= 7);
            client.send_line(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
            assert_eq!(
                client.send_and_receive(request_line(1, "ping", json!({}))).await,
                json!({"jsonrpc": "2.0", "id": 1, "result": {}})
            );
            let tools = client.send_and_receive(request_line(2, "tools/list", json!({}))).await;
            assert_eq!(tools["result"]["tools"].as_array().unwrap().len(), TOOLS.len());
            assert_eq!(tools["result"]["resultType"], Value::Null, "{asked}");
            client.close_and_wait().await;
        }
    });
}

#[test]
fn server_answers_revision_without_handshake() {
    run_async(async {
        let mut client = TestClient::new();
        let found = client.send_and_receive(request_line(1, "server/discover", with_modern_metadata(json!({})))).await;
        assert!(found["result"]["supportedVersions"].as_array().unwrap().contains(&json!("2026-07-28")), "{found}");
        assert_eq!(found["result"]["capabilities"], json!({"tools": {}, "prompts": {}}));
        // A notification gets no answer, and the next request gets its own.
        client.send_line(r#"{"jsonrpc":"2.0","method":"notifications/made_up"}"#).await;
        let tools = client.send_and_receive(request_line(2, "tools/list", with_modern_metadata(json!({})))).await;
        assert_eq!(tools["result"]["resultType"], "complete");
        let called = client
            .send_and_receive(request_line(
                3,
                "tools/call",
                with_modern_metadata(json!({"name": "echo", "arguments": {"a": 1}})),
            ))
            .await;
        assert_eq!(called["result"]["structuredContent"], json!({"said": {"a": 1}}));
        assert_eq!(called["result"]["resultType"], "complete");
        // A client with incomplete metadata is refused for every method.
        let mut bare = with_modern_metadata(json!({"name": "echo"}));
        bare["_meta"].as_object_mut().unwrap().remove("io.modelcontextprotocol/clientCapabilities");
        assert_eq!(client.send_and_receive(request_line(3, "tools/call", bare)).await["error"]["code"], -32602);
        let wrong = with_modern_metadata(json!({}));
        let wrong = wrong.to_string().replace("2026-07-28", "2099-01-01");
        let refused =
            client.send_and_receive(request_line(4, "tools/list", serde_json::from_str(&wrong).unwrap())).await;
        assert_eq!(refused["error"]["code"], -32022, "{refused}");
        // A client that has found the server this way may still use the handshake.
        assert_eq!(
            client.send_and_receive(initialize_line("2025-11-25")).await["result"]["protocolVersion"],
            "2025-11-25"
        );
        client.close_and_wait().await;
    });
}

#[test]
fn answers_have_text_and_structured_content() {
    run_async(async {
        let mut client = TestClient::new();
        client.send_and_receive(initialize_line("2025-06-18")).await;
        client.call_tool(1, "echo").await;
        let answer = json!({"said": {"a": 1}});
        let result = json!({
            "content": [{"type": "text", "text": answer.to_string()}],
            "structuredContent": answer,
            "isError": false,
        });
        assert_eq!(client.next_answer().await["result"], result);
        client.call_tool(2, "fail").await;
        let error = json!({"code": "not_found", "message": "there is no T9", "causes": [], "hint": "`task_list` shows the tasks"});
        let result = json!({
            "content": [{"type": "text", "text": "there is no T9\nhint: `task_list` shows the tasks"}],
            "structuredContent": {"error": error},
            "isError": true,
        });
        assert_eq!(client.next_answer().await["result"], result);
        let listed = client.send_and_receive(request_line(3, "tools/list", json!({}))).await["result"]["tools"].take();
        assert_eq!(listed[0]["annotations"], json!({"readOnlyHint": true}));
        assert_eq!(listed[1]["annotations"], Value::Null);
        assert_eq!(listed[1]["inputSchema"]["type"], "object");
        client.close_and_wait().await;
    });
}

#[test]
fn wrong_request_is_a_protocol_error() {
    run_async(async {
        let mut client = TestClient::new();
        let unknown = client.send_and_receive(request_line(1, "tools/call", json!({"name": "ech\u{7}o"}))).await;
        assert_eq!(unknown["error"]["code"], -32602);
        assert_eq!(unknown["error"]["message"], "there is no tool `ech\\u{7}o`; there are echo, wait, fail, panic");
        assert_eq!(
            client.send_and_receive(request_line(2, "prompts/list", json!({}))).await["result"]["prompts"],
            json!([])
        );
        let unknown = client.send_and_receive(request_line(2, "prompts/get", json!({"name": "a\u{7}"}))).await;
        assert_eq!(unknown["error"]["code"], -32602);
        let expected = "there is no prompt `a\\u{7}`; there are none, only tools: tools/list";
        assert_eq!(unknown["error"]["message"], expected);
        for method in ["made/up", "resources/read"] {
            let params = json!({"uri": "a:b", "name": "a"});
            let error = &client.send_and_receive(request_line(2, method, params)).await["error"];
            let expected = format!("there is no method `{method}` here; there are tools: tools/list, tools/call");
            assert_eq!((&error["code"], &error["message"]), (&json!(-32601), &json!(expected)));
        }
        assert_eq!(client.send_and_receive(request_line(3, "initialize", json!({}))).await["error"]["code"], -32602);
        assert_eq!(client.send_and_receive("{broken").await["error"]["code"], -32700);
        assert_eq!(client.send_and_receive("[]").await["error"]["code"], -32600);
        assert_eq!(client.send_and_receive(b"\xff\xfe").await["error"]["code"], -32700);
        assert_eq!(
            client.send_and_receive(vec![b'x'; 100_000_000]).await["error"]["message"],
            "the message is longer than 4 MiB"
        );
        client.call_tool(4, "echo").await;
        assert_eq!(client.next_answer().await["id"], 4);
        client.close_and_wait().await;
    });
}

/// A client would take an answer with that ID for the answer to the first request.
#[test]
fn id_in_use_is_refused() {
    run_async(async {
        let mut client = TestClient::new();
        client.call_tool(1, "wait").await;
        client.call_tool(1, "echo").await;
        let refused = client.next_answer().await;
        assert_eq!(refused.get("id").filter(|id| !id.is_null()), None);
        assert_eq!(refused["error"]["message"], "a request with the id `1` is not answered yet; give each its own");
        let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
        client.send_line(cancelled.to_string()).await;
        client.call_tool(1, "echo").await;
        assert_eq!(client.next_answer().await["id"], 1);
        client.close_and_wait().await;
    });
}

#[test]
fn panic_fails_one_call_and_not_the_server() {
    run_async(async {
        let mut client = TestClient::new();
        client.call_tool(1, "panic").await;
        let answer = client.next_answer().await;
        assert_eq!(answer["result"]["isError"], true);
        assert_eq!(
            answer["result"]["structuredContent"]["error"]["message"],
            "the call failed by a defect of Windlass"
        );
        client.call_tool(2, "echo").await;
        assert_eq!(client.next_answer().await["id"], 2);
        client.close_and_wait().await;
    });
}

#[test]
fn cancelled_call_ends_its_program_while_others_are_answered() {
    run_async(async {
        let mut client = TestClient::new();
        client.call_tool(1, "wait").await;
        client.call_tool(2, "echo").await;
        assert_eq!(client.next_answer().await["id"], 2);
        assert_eq!(client.send_and_receive(request_line(3, "ping", json!({}))).await["id"], 3);
        client.send_line(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#).await;
        client.call_tool(4, "echo").await;
        assert_eq!(client.next_answer().await["id"], 4);
        // The server ends only after its programs, and the cancelled call got no answer.
        client.close_and_wait().await;
    });
}

#[test]
fn number_of_threaded_calls_is_bounded() {
    run_async(async {
        let mut client = TestClient::new();
        let many = u64::try_from(crate::router_pool::MAX_THREADED_CALLS).unwrap();
        for id in 0..=many {
            client.call_tool(id, "wait").await;
        }
        // The last call waits for its turn, and other requests do not wait for it.
        assert_eq!(client.send_and_receive(request_line(99, "ping", json!({}))).await["id"], 99);
        client.control.cancel_runs();
        for _ in 0..=many {
            assert_eq!(client.next_answer().await["result"]["structuredContent"]["error"]["code"], "interrupted");
        }
        client.close_and_wait().await;
    });
}

#[test]
fn stopped_server_answers_calls_in_progress() {
    run_async(async {
        let mut client = TestClient::new();
        client.call_tool(1, "wait").await;
        assert_eq!(client.send_and_receive(request_line(2, "ping", json!({}))).await["id"], 2);
        client.control.cancel_runs();
        client.stop.stop_server();
        client.server.await.unwrap();
        // Calls in progress are answered, too.
        assert_eq!(client.output.next_line().await.unwrap().map(|line| line.contains("interrupted")), Some(true));
    });
}

/// A client that sends requests, but reads nothing, cannot make the server hold all answers.
#[test]
fn unread_answers_stop_the_server_from_reading() {
    run_async(async {
        let mut client = TestClient::new();
        let mut input = client.input.take().unwrap();
        let text = "x".repeat(1024);
        let writing = tokio::spawn(async move {
            for id in 0..10_000 {
                let call = request_line(id, "tools/call", json!({"name": "echo", "arguments": {"text": text}}));
                input.write_all(format!("{call}\n").as_bytes()).await.unwrap();
            }
            input.shutdown().await.unwrap();
        });
        // This is far more than fits into the pipes, so the writer has to wait.
        for _ in 0..1000 {
            tokio::task::yield_now().await;
        }
        assert!(!writing.is_finished());
        let mut answers = 0;
        while let Some(line) = client.output.next_line().await.unwrap() {
            assert!(line.starts_with("{\"jsonrpc\":\"2.0\",\"id\":"), "{line}");
            answers += 1;
        }
        assert_eq!(answers, 10_000);
        writing.await.unwrap();
        client.server.await.unwrap();
    });
}
