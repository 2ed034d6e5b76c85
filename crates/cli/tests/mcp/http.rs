//! Several clients over HTTP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::{call_request, initialize_request, request_line};
use crate::support::TestWorld;

const TOKEN: &str = "correct-horse-battery-staple";

/// A running `windlass mcp --http`, with requests to it.
pub struct HttpServerProcess {
    child: Child,
    url: String,
    host: String,
}

impl HttpServerProcess {
    pub fn start(world: &TestWorld) -> Self {
        let mut command = world.command(&["mcp", "--http", "--json"]);
        let mut child = command.env("WINDLASS_MCP_TOKEN", TOKEN).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(ready["token"], Value::Null, "a token that was given is not printed");
        let url = ready["url"].as_str().unwrap().to_owned();
        let host = url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap().to_owned();
        Self { child, url, host }
    }

    /// Returns an address that contains the token, so that a request needs no headers.
    pub fn url_with_token(&self) -> String {
        format!("{}/{TOKEN}", self.url)
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.host).unwrap()
    }

    /// Posts a body with these headers in place of the usual ones. Returns the status, and the rest of the response.
    fn post_request(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> (u16, String) {
        let mut stream = self.connect();
        let _ = stream.write_all(&self.request_head(path, headers, body.len()));
        let _ = stream.write_all(body);
        read_response(stream)
    }

    fn request_head(&self, path: &str, headers: &[(&str, &str)], length: usize) -> Vec<u8> {
        let authorization = format!("Bearer {TOKEN}");
        let length = length.to_string();
        let mut all = vec![
            ("host", self.host.as_str()),
            ("authorization", &authorization),
            ("accept", "application/json, text/event-stream"),
            ("content-type", "application/json"),
            ("content-length", &length),
            ("connection", "close"),
        ];
        all.retain(|(name, _)| !headers.iter().any(|(other, _)| other == name));
        all.extend(headers.iter().filter(|(_, value)| !value.is_empty()));
        let lines: String = all.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        format!("POST {path} HTTP/1.1\r\n{lines}\r\n").into_bytes()
    }

    /// Ends a session with the request of clients of older revisions.
    fn end_session(&self, session: &str) -> u16 {
        let head = String::from_utf8(self.request_head("/mcp", &[("mcp-session-id", session)], 0)).unwrap();
        let mut stream = self.connect();
        stream.write_all(head.replacen("POST", "DELETE", 1).as_bytes()).unwrap();
        read_response(stream).0
    }

    fn initialize(&self, headers: &[(&str, &str)]) -> u16 {
        self.post_request("/mcp", headers, initialize_request().as_bytes()).0
    }

    /// Opens a session with the request of clients of older revisions. Returns its ID.
    fn open_session(&self) -> String {
        let (_, text) = self.post_request("/mcp", &[], initialize_request().as_bytes());
        let id = text.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
        id.unwrap_or_else(|| panic!("no session: {text}")).to_owned()
    }

    pub fn shut_down(mut self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

impl Drop for HttpServerProcess {
    fn drop(&mut self) {
        // The child still exists only if a test has failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read_response(mut stream: TcpStream) -> (u16, String) {
    let mut text = String::new();
    let _ = stream.read_to_string(&mut text);
    let status = text.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
    (status.unwrap_or_else(|| panic!("no answer: {text}")), text)
}

/// Returns a call of the newest revision, without a handshake and without a session.
fn modern_call_request(tool: &str, arguments: &Value) -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    request_line(1, "tools/call", &json!({"name": tool, "arguments": arguments, "_meta": meta}))
}

fn modern_headers(tool: &str) -> [(&'static str, &str); 3] {
    [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", tool)]
}

#[test]
fn requests_without_token_or_from_other_origins_are_refused() {
    let server = HttpServerProcess::start(&TestWorld::new());
    assert_eq!(server.initialize(&[]), 200);
    assert_eq!(
        server.post_request(&format!("/mcp/{TOKEN}"), &[("authorization", "")], initialize_request().as_bytes()).0,
        200
    );
    let (status, text) = server.post_request("/mcp", &[("authorization", "")], initialize_request().as_bytes());
    assert_eq!((status, text.contains("www-authenticate: Bearer")), (401, true), "{text}");
    assert_eq!(server.initialize(&[("authorization", "Bearer wrong")]), 401);
    assert_eq!(server.post_request("/mcp/wrong", &[], initialize_request().as_bytes()).0, 401);
    assert_eq!(server.post_request("/", &[], initialize_request().as_bytes()).0, 404);
    assert_eq!(server.initialize(&[("host", "evil.example")]), 403);
    assert_eq!(server.initialize(&[("origin", "http://evil.example")]), 403);
    assert_eq!(server.initialize(&[("origin", "null")]), 403);
    assert_eq!(server.initialize(&[("origin", "http://localhost:3000")]), 200);
    server.shut_down();
}

#[test]
fn bodies_are_bounded_and_broken_ones_refused() {
    let server = HttpServerProcess::start(&TestWorld::new());
    let send = |body: &[u8]| server.post_request("/mcp", &[], body);
    let (status, text) = send(b"{broken");
    assert_eq!((status, text.contains("-32700")), (400, true), "{text}");
    let (status, text) = send(b"[]");
    assert_eq!((status, text.contains("-32600")), (400, true), "{text}");
    assert_eq!(send(b"\xff").0, 400);
    assert_eq!(send(br#"{"jsonrpc":"2.0","method":"no/such"}"#).0, 202);
    let long = vec![b' '; 5 * 1024 * 1024];
    let (status, text) = send(&long);
    assert_eq!(status, 413);
    assert!(text.contains("application/json"), "{text}");
    assert!(text.contains(r#""error":{"code":-32600,"message":"the message is longer than 4 MiB"}"#), "{text}");
    // Send the same body without a content length.
    let mut stream = server.connect();
    stream
        .write_all(&server.request_head("/mcp", &[("content-length", ""), ("transfer-encoding", "chunked")], 0))
        .unwrap();
    for _ in 0..100 {
        // The server may have closed the connection already.
        let _ = stream.write_all(b"10000\r\n").and_then(|()| stream.write_all(&long[..0x10000]));
        let _ = stream.write_all(b"\r\n");
    }
    assert_eq!(read_response(stream).0, 413);
    server.shut_down();
}

#[test]
fn clients_do_not_hold_each_other_up() {
    let world = TestWorld::new();
    let server = HttpServerProcess::start(&world);
    // These clients have connected, or have sent a part of a request, and then stall.
    let mut slow: Vec<_> = (0..30).map(|_| server.connect()).collect();
    let head = server.request_head("/mcp", &[], 100);
    for (place, stream) in slow.iter_mut().enumerate() {
        stream.write_all(&head[..head.len() * (place % 3) / 2]).unwrap();
    }
    let create = modern_call_request("task_create", &json!({"goal": "One"}));
    let clients: Vec<_> = std::thread::scope(|scope| {
        let post_call = || server.post_request("/mcp", &modern_headers("task_create"), create.as_bytes());
        let clients: Vec<_> = (0..8).map(|_| scope.spawn(post_call)).collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    for (status, text) in clients {
        assert_eq!(status, 200, "{text}");
    }
    assert_eq!(world.json_lines(&["task", "list"]).len(), 8);
    server.shut_down();
}

/// A client of an older revision opens a session and ends it.
#[test]
fn sessions_are_kept_apart() {
    let server = HttpServerProcess::start(&TestWorld::new());
    let (one, other) = (server.open_session(), server.open_session());
    assert_ne!(one, other);
    for session in [&one, &other] {
        let (status, text) = server.post_request(
            "/mcp",
            &[("mcp-session-id", session)],
            call_request(1, "task_list", &json!({})).as_bytes(),
        );
        assert_eq!((status, text.contains("structuredContent")), (200, true), "{text}");
    }
    let list_status = |session: &str| {
        server
            .post_request("/mcp", &[("mcp-session-id", session)], call_request(1, "task_list", &json!({})).as_bytes())
            .0
    };
    assert_eq!(list_status("made-up"), 404);
    assert_eq!((server.end_session(&one), list_status(&one), list_status(&other)), (204, 404, 200));
    server.shut_down();
}

#[test]
fn sessions_are_bounded() {
    let server = HttpServerProcess::start(&TestWorld::new());
    let session_count = (0..300).take_while(|_| server.initialize(&[]) == 200).count();
    assert_eq!(session_count, 256);
    let (status, text) = server.post_request("/mcp", &[], initialize_request().as_bytes());
    assert_eq!((status, text.contains("too many sessions; end one of them, or wait")), (500, true), "{text}");
    server.shut_down();
}

#[test]
fn http_server_reports_startup_errors_and_prints_serving_url() {
    let world = TestWorld::new();
    insta::assert_snapshot!(world.expect_failure(&["mcp", "--http", "0.0.0.0:8137"]), @r"
    error: `0.0.0.0` can be reached from other machines
    hint: listen at 127.0.0.1; `ssh -L PORT:127.0.0.1:PORT HOST` brings it to another machine
    [64 usage]
    ");
    insta::assert_snapshot!(world.expect_failure(&["mcp", "--http", "example.com"]), @r"
    error: `example.com` is not an address
    hint: --http 127.0.0.1:8137, or --http alone
    [64 usage]
    ");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    insta::assert_snapshot!(world.expect_failure(&["mcp", "--http", &address]).replace(&address, "ADDRESS"), @r"
    error: cannot listen at ADDRESS
    caused by: Address already in use (os error 98)
    hint: give another port, or none: --http alone finds a free one
    [1 system]
    ");
    insta::assert_snapshot!(world.run_with_variable(("WINDLASS_MCP_TOKEN", "short"), &["mcp", "--http"]), @r"
    error: WINDLASS_MCP_TOKEN is not a valid token
    caused by: a token has 16 to 256 letters, digits, `-`, `.`, `_` or `~`
    hint: unset it to generate a token, or set it to the output of `openssl rand -hex 16`
    [exit 64]
    ");

    let startup_line = |token: &str| {
        let mut command = world.command(&["mcp", "--http", ":0"]);
        let mut child = command.env("WINDLASS_MCP_TOKEN", token).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0));
        line
    };
    assert!(startup_line(TOKEN).ends_with("/mcp\n"), "a token that was given is not printed");
    let line = startup_line("");
    let (before, token) = line.trim_end().rsplit_once('/').unwrap();
    assert!(before.starts_with("serving at http://127.0.0.1:") && before.ends_with("/mcp"), "{line}");
    assert!(token.len() == 32 && token.bytes().all(|byte| byte.is_ascii_hexdigit()), "{line}");
}
