//! Several clients over HTTP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::{call, initialize, request};
use crate::support::World;

const TOKEN: &str = "correct-horse-battery-staple";

/// A server with its clients.
pub struct Site {
    child: Child,
    url: String,
    host: String,
}

impl Site {
    pub fn start(world: &World) -> Self {
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

    /// An address that needs no headers.
    pub fn whole(&self) -> String {
        format!("{}/{TOKEN}", self.url)
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.host).unwrap()
    }

    /// Posts a body with these headers in place of the usual ones. Returns the status, and the rest of the response.
    fn post(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> (u16, String) {
        let mut stream = self.connect();
        let _ = stream.write_all(&self.head(path, headers, body.len()));
        let _ = stream.write_all(body);
        answer(stream)
    }

    fn head(&self, path: &str, headers: &[(&str, &str)], length: usize) -> Vec<u8> {
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

    /// Ends a session, as clients of older revisions do.
    fn end_session(&self, session: &str) -> u16 {
        let head = String::from_utf8(self.head("/mcp", &[("mcp-session-id", session)], 0)).unwrap();
        let mut stream = self.connect();
        stream.write_all(head.replacen("POST", "DELETE", 1).as_bytes()).unwrap();
        answer(stream).0
    }

    fn initialize(&self, headers: &[(&str, &str)]) -> u16 {
        self.post("/mcp", headers, initialize().as_bytes()).0
    }

    /// Begins a session, as clients of older revisions do.
    fn session(&self) -> String {
        let (_, text) = self.post("/mcp", &[], initialize().as_bytes());
        let id = text.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
        id.unwrap_or_else(|| panic!("no session: {text}")).to_owned()
    }

    pub fn end(mut self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // The child still exists only if a test has failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn answer(mut stream: TcpStream) -> (u16, String) {
    let mut text = String::new();
    let _ = stream.read_to_string(&mut text);
    let status = text.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
    (status.unwrap_or_else(|| panic!("no answer: {text}")), text)
}

/// A call of the newest revision: no handshake, no session.
fn modern(tool: &str, arguments: &Value) -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    request(1, "tools/call", &json!({"name": tool, "arguments": arguments, "_meta": meta}))
}

fn modern_headers(tool: &str) -> [(&'static str, &str); 3] {
    [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", tool)]
}

#[test]
fn requests_without_token_or_from_other_origins_are_refused() {
    let site = Site::start(&World::new());
    assert_eq!(site.initialize(&[]), 200);
    assert_eq!(site.post(&format!("/mcp/{TOKEN}"), &[("authorization", "")], initialize().as_bytes()).0, 200);
    let (status, text) = site.post("/mcp", &[("authorization", "")], initialize().as_bytes());
    assert_eq!((status, text.contains("www-authenticate: Bearer")), (401, true), "{text}");
    assert_eq!(site.initialize(&[("authorization", "Bearer wrong")]), 401);
    assert_eq!(site.post("/mcp/wrong", &[], initialize().as_bytes()).0, 401);
    assert_eq!(site.post("/", &[], initialize().as_bytes()).0, 404);
    assert_eq!(site.initialize(&[("host", "evil.example")]), 403);
    assert_eq!(site.initialize(&[("origin", "http://evil.example")]), 403);
    assert_eq!(site.initialize(&[("origin", "null")]), 403);
    assert_eq!(site.initialize(&[("origin", "http://localhost:3000")]), 200);
    site.end();
}

#[test]
fn bodies_are_bounded_and_broken_ones_refused() {
    let site = Site::start(&World::new());
    let send = |body: &[u8]| site.post("/mcp", &[], body);
    let (status, text) = send(b"{broken");
    assert_eq!((status, text.contains("-32700")), (400, true), "{text}");
    let (status, text) = send(b"[]");
    assert_eq!((status, text.contains("-32600")), (400, true), "{text}");
    assert_eq!(send(b"\xff").0, 400);
    assert_eq!(send(br#"{"jsonrpc":"2.0","method":"no/such"}"#).0, 202);
    let long = vec![b' '; 5 * 1024 * 1024];
    let (status, told) = send(&long);
    assert_eq!(status, 413);
    assert!(told.contains("application/json"), "{told}");
    assert!(told.contains(r#""error":{"code":-32600,"message":"the message is longer than 4 MiB"}"#), "{told}");
    // The same without a content length.
    let mut stream = site.connect();
    stream.write_all(&site.head("/mcp", &[("content-length", ""), ("transfer-encoding", "chunked")], 0)).unwrap();
    for _ in 0..100 {
        // The server may have hung up already.
        let _ = stream.write_all(b"10000\r\n").and_then(|()| stream.write_all(&long[..0x10000]));
        let _ = stream.write_all(b"\r\n");
    }
    assert_eq!(answer(stream).0, 413);
    site.end();
}

#[test]
fn clients_do_not_hold_each_other_up() {
    let world = World::new();
    let site = Site::start(&world);
    // These have connected, begun a request or a body, and send no more.
    let mut slow: Vec<_> = (0..30).map(|_| site.connect()).collect();
    let head = site.head("/mcp", &[], 100);
    for (place, stream) in slow.iter_mut().enumerate() {
        stream.write_all(&head[..head.len() * (place % 3) / 2]).unwrap();
    }
    let create = modern("task_create", &json!({"goal": "One"}));
    let clients: Vec<_> = std::thread::scope(|scope| {
        let one = || site.post("/mcp", &modern_headers("task_create"), create.as_bytes());
        let clients: Vec<_> = (0..8).map(|_| scope.spawn(one)).collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    for (status, text) in clients {
        assert_eq!(status, 200, "{text}");
    }
    assert_eq!(world.lines(&["task", "list"]).len(), 8);
    site.end();
}

/// A client of an older revision has a session, and ends it.
#[test]
fn sessions_are_kept_apart() {
    let site = Site::start(&World::new());
    let (one, other) = (site.session(), site.session());
    assert_ne!(one, other);
    for session in [&one, &other] {
        let (status, text) =
            site.post("/mcp", &[("mcp-session-id", session)], call(1, "task_list", &json!({})).as_bytes());
        assert_eq!((status, text.contains("structuredContent")), (200, true), "{text}");
    }
    let asked = |session: &str| {
        site.post("/mcp", &[("mcp-session-id", session)], call(1, "task_list", &json!({})).as_bytes()).0
    };
    assert_eq!(asked("made-up"), 404);
    assert_eq!((site.end_session(&one), asked(&one), asked(&other)), (204, 404, 200));
    site.end();
}

#[test]
fn sessions_are_bounded() {
    let site = Site::start(&World::new());
    let begun = (0..300).take_while(|_| site.initialize(&[]) == 200).count();
    assert_eq!(begun, 256);
    let (status, text) = site.post("/mcp", &[], initialize().as_bytes());
    assert_eq!((status, text.contains("too many sessions; end one of them, or wait")), (500, true), "{text}");
    site.end();
}

#[test]
fn it_says_where_it_cannot_listen_and_where_it_does() {
    let world = World::new();
    insta::assert_snapshot!(world.fails(&["mcp", "--http", "0.0.0.0:8137"]), @r"
    error: `0.0.0.0` can be reached from other machines
    hint: listen at 127.0.0.1; `ssh -L PORT:127.0.0.1:PORT HOST` brings it to another machine
    [64 usage]
    ");
    insta::assert_snapshot!(world.fails(&["mcp", "--http", "example.com"]), @r"
    error: `example.com` is not an address
    hint: --http 127.0.0.1:8137, or --http alone
    [64 usage]
    ");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    insta::assert_snapshot!(world.fails(&["mcp", "--http", &address]).replace(&address, "ADDRESS"), @r"
    error: cannot listen at ADDRESS
    caused by: Address already in use (os error 98)
    hint: give another port, or none: --http alone finds a free one
    [1 system]
    ");
    insta::assert_snapshot!(world.run_with(("WINDLASS_MCP_TOKEN", "short"), &["mcp", "--http"]), @r"
    error: WINDLASS_MCP_TOKEN is not a valid token
    caused by: a token has 16 to 256 letters, digits, `-`, `.`, `_` or `~`
    hint: unset it to generate a token, or set it to the output of `openssl rand -hex 16`
    [exit 64]
    ");

    let said = |token: &str| {
        let mut command = world.command(&["mcp", "--http", ":0"]);
        let mut child = command.env("WINDLASS_MCP_TOKEN", token).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0));
        line
    };
    assert!(said(TOKEN).ends_with("/mcp\n"), "a token that was given is not printed");
    let line = said("");
    let (before, token) = line.trim_end().rsplit_once('/').unwrap();
    assert!(before.starts_with("serving at http://127.0.0.1:") && before.ends_with("/mcp"), "{line}");
    assert!(token.len() == 32 && token.bytes().all(|byte| byte.is_ascii_hexdigit()), "{line}");
}
