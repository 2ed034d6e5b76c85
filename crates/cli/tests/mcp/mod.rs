//! The tools over the Model Context Protocol: a client of our own that can violate the protocol, and clients of other projects.

mod clients;
mod http;
mod stdio;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::World;

/// A request as it goes over the wire.
fn request(id: u64, method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

fn initialize() -> String {
    let client = json!({"name": "test", "version": "1"});
    request(0, "initialize", &json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}))
}

fn call(id: u64, tool: &str, arguments: &Value) -> String {
    request(id, "tools/call", &json!({"name": tool, "arguments": arguments}))
}

/// A server on standard streams.
struct Served {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Served {
    fn start(world: &World, words: &[&str]) -> Self {
        Self::of(&mut world.command(&[&["mcp"], words].concat()))
    }

    fn of(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, input, output }
    }

    fn send(&mut self, line: impl AsRef<[u8]>) {
        let mut input = self.input.as_ref().expect("it is open");
        input.write_all(line.as_ref()).unwrap();
        input.write_all(b"\n").unwrap();
    }

    fn next(&mut self) -> Value {
        let mut line = String::new();
        assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "the server has ended");
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("not of the protocol: {line}"))
    }

    fn ask(&mut self, line: impl AsRef<[u8]>) -> Value {
        self.send(line);
        self.next()
    }

    /// Returns the structured result of a tool.
    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.ask(call(7, tool, arguments))["result"]["structuredContent"].take()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Returns its peak memory, in bytes.
    fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() * 1024
    }

    /// Closes its input; returns its exit and the rest of both streams.
    fn close(mut self) -> (Option<i32>, String) {
        self.input = None;
        self.ended()
    }

    fn ended(mut self) -> (Option<i32>, String) {
        use std::io::Read;
        let mut left = String::new();
        self.output.read_to_string(&mut left).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut left).unwrap();
        (self.child.wait().unwrap().code(), left)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // The child still exists only if a test has failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
