//! The tools over the Model Context Protocol, with a test client that can violate the protocol, and clients of other projects.

mod clients;
mod http;
mod stdio;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::TestWorld;

/// Returns the line of a request.
fn request_line(id: u64, method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

fn initialize_request() -> String {
    let client = json!({"name": "test", "version": "1"});
    request_line(0, "initialize", &json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}))
}

fn call_request(id: u64, tool: &str, arguments: &Value) -> String {
    request_line(id, "tools/call", &json!({"name": tool, "arguments": arguments}))
}

/// A running `windlass mcp` with standard streams.
struct McpServerProcess {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl McpServerProcess {
    fn start(world: &TestWorld, words: &[&str]) -> Self {
        Self::spawn(&mut world.command(&[&["mcp"], words].concat()))
    }

    fn spawn(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, input, output }
    }

    fn send_line(&mut self, line: impl AsRef<[u8]>) {
        let mut input = self.input.as_ref().expect("it is open");
        input.write_all(line.as_ref()).unwrap();
        input.write_all(b"\n").unwrap();
    }

    fn read_message(&mut self) -> Value {
        let mut line = String::new();
        assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "the server has ended");
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("not of the protocol: {line}"))
    }

    fn send_request(&mut self, line: impl AsRef<[u8]>) -> Value {
        self.send_line(line);
        self.read_message()
    }

    /// Returns the structured result of a tool.
    fn call_tool(&mut self, tool: &str, arguments: &Value) -> Value {
        self.send_request(call_request(7, tool, arguments))["result"]["structuredContent"].take()
    }

    fn send_signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Returns the peak memory of the server, in bytes.
    fn peak_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() * 1024
    }

    /// Closes the input. Returns the exit code and the rest of both streams.
    fn close_input(mut self) -> (Option<i32>, String) {
        self.input = None;
        self.wait_for_exit()
    }

    fn wait_for_exit(mut self) -> (Option<i32>, String) {
        use std::io::Read;
        let mut output_text = String::new();
        self.output.read_to_string(&mut output_text).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut output_text).unwrap();
        (self.child.wait().unwrap().code(), output_text)
    }
}

impl Drop for McpServerProcess {
    fn drop(&mut self) {
        // The child still exists only if a test has failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
