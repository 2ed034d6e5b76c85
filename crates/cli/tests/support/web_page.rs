//! The real server of the web page, and a small HTTP client.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::TestWorld;

/// The response to a request.
pub struct PageResponse {
    pub status: u16,
    pub head: String,
    pub text: String,
}

impl PageResponse {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("no JSON: {} {}", self.head, self.text))
    }

    /// Returns the status and the code of an error.
    pub fn error(&self) -> (u16, String) {
        (self.status, self.json()["code"].as_str().unwrap_or_default().to_owned())
    }

    /// Returns the value of a header, or an empty string.
    pub fn header(&self, name: &str) -> &str {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(own, _)| own.eq_ignore_ascii_case(name)).map_or("", |(_, value)| value)
    }
}

/// `windlass serve`, which a drop ends.
pub struct ServedPage {
    child: Child,
    pub host: String,
    /// The code of the printed link.
    pub code: String,
}

impl ServedPage {
    pub fn new(world: &TestWorld, options: &[&str]) -> Self {
        Self::start(world.command(&[&["--json", "serve"], options].concat()))
    }

    /// Starts a server with a command, which prints JSON.
    pub fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let started: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{command:?}: {line:?}"));
        let (_, host) = started["url"].as_str().unwrap().split_once("//").unwrap();
        let (_, code) = started["login"].as_str().unwrap().split_once("#code=").unwrap();
        Self { host: host.to_owned(), code: code.to_owned(), child }
    }

    pub fn port(&self) -> &str {
        self.host.rsplit(':').next().unwrap()
    }

    /// Sends a request of HTTP 1.0, whose response ends with the connection. `headers` has whole lines.
    pub fn send_raw(&self, request: &str, headers: &[String], body: &str) -> PageResponse {
        let mut stream = self.open_request(request, headers, body);
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        let (head, text) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        PageResponse { status, head: head.replace('\r', ""), text: text.to_owned() }
    }

    /// Sends a request, and returns the connection.
    pub fn open_request(&self, request: &str, headers: &[String], body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port().parse().unwrap())).unwrap();
        let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
        let length = body.len();
        let _ = write!(stream, "{request} HTTP/1.0\r\n{headers}Content-Length: {length}\r\n\r\n{body}");
        stream
    }

    fn host_header(&self) -> String {
        format!("Host: {}", self.host)
    }

    /// Reads with a token or without one.
    pub fn get(&self, path: &str, token: &str) -> PageResponse {
        self.send_raw(&format!("GET {path}"), &[self.host_header(), format!("Authorization: Bearer {token}")], "")
    }

    /// Changes something with a token or without one.
    pub fn post(&self, path: &str, token: &str, body: &Value) -> PageResponse {
        let headers =
            [self.host_header(), format!("Authorization: Bearer {token}"), "Content-Type: application/json".to_owned()];
        self.send_raw(&format!("POST {path}"), &headers, &body.to_string())
    }

    /// Returns a token with a role.
    pub fn create_token(world: &TestWorld, role: &str) -> String {
        world.run_ok(&["serve", "invite", "robot", "--may", role, "--token"]).trim().to_owned()
    }

    /// Logs in with the printed code.
    pub fn log_in(&self) -> PageResponse {
        self.post("/api/login", "", &json!({"code": self.code}))
    }

    /// Opens the stream of events after a position.
    pub fn open_events(&self, token: &str, after: u64) -> BufReader<TcpStream> {
        let headers = [self.host_header(), format!("Authorization: Bearer {token}"), format!("Last-Event-ID: {after}")];
        BufReader::new(self.open_request("GET /api/events", &headers, ""))
    }

    pub fn send_signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub fn await_exit(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for ServedPage {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
