//! The agent's side of the protocol: the scripted agent, which plays a file.
//!
//! ```text
//!   standard input ──► a thread ──► messages ──► initialize, session/new, session/load, session/prompt ──► player
//!                         └─ session/cancel, end of input ──► the running turn
//! ```
//!
//! The demo, the tests and the benchmarks run this agent: a real process that speaks the real protocol, and makes the
//! mistakes of other agents on purpose.

mod mcp_client;
mod player;

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass_process::{RunControl, file};

use mcp_client::McpClients;
pub use player::ScriptSetting;
use player::{PlayOutcome, ScriptPlayer, build_message_chunk, write_session_update};

use super::json_rpc::{BoundedLineBuffer, JsonRpcError, JsonRpcMessage, NO_SUCH_METHOD, REQUEST_REFUSED};
use super::methods::{CANCEL, INITIALIZE, LOAD_SESSION, NEW_SESSION, PROMPT, PROTOCOL_VERSION, RESUME_SESSION};
use crate::scripted::AgentScript;

/// The client waits for each answer, so only few messages are queued.
const MAX_QUEUED_MESSAGES: usize = 16;
/// The largest memory file that is read.
const MAX_MEMORY_FILE_SIZE: u64 = 64 * 1024 * 1024;

/// The state that outlives the process.
#[derive(Debug, Default, Serialize, Deserialize)]
struct ScriptMemory {
    conversation: String,
    /// How often each turn of the script was played.
    played: Vec<u32>,
    /// The text of each played turn.
    said: Vec<String>,
}

/// Plays a script for the client at the other end of the pipes. Returns the exit code.
pub fn serve(
    script: AgentScript,
    setting: &ScriptSetting<'_>,
    nonce: u128,
    input: impl Read + Send + 'static,
    out: &mut dyn Write,
) -> io::Result<u8> {
    let turn = Arc::new(Mutex::new(RunControl::new()));
    let (sender, messages) = sync_channel(MAX_QUEUED_MESSAGES);
    let heard = turn.clone();
    std::thread::spawn(move || forward_messages(input, &sender, &heard));
    let memory = ScriptMemory { conversation: format!("scripted-{nonce:032x}"), ..ScriptMemory::default() };
    let (directory, servers) = (PathBuf::new(), McpClients::default());
    ScriptServer { script, setting, memory, directory, messages, turn, tools: 0, servers }.serve_requests(out)
}

/// Forwards messages until the input ends. A cancellation reaches the running turn at once.
fn forward_messages(mut input: impl Read, messages: &SyncSender<JsonRpcMessage>, turn: &Mutex<RunControl>) {
    let turn = || turn.lock().expect("nothing panics while it holds the turn");
    let (mut lines, mut buffer) = (BoundedLineBuffer::default(), vec![0; 64 * 1024]);
    while let Ok(length @ 1..) = input.read(&mut buffer) {
        lines.push(&buffer[..length]);
        while let Ok(Some(line)) = lines.next() {
            match JsonRpcMessage::parse_line(&line) {
                Ok(JsonRpcMessage::Notice { method, .. }) if method == CANCEL => turn().cancel_runs(),
                Ok(message) => {
                    // The control is replaced before the prompt is forwarded, so that a cancellation right after it is not lost.
                    if matches!(&message, Message::Request { method, .. } if method == PROMPT) {
                        *turn() = RunControl::new();
                    }
                    if messages.send(message).is_err() {
                        return;
                    }
                }
                Err(_) => {}
            }
        }
    }
    turn().cancel_runs();
}

struct ScriptServer<'a> {
    script: AgentScript,
    setting: &'a ScriptSetting<'a>,
    memory: ScriptMemory,
    directory: PathBuf,
    messages: Receiver<JsonRpcMessage>,
    /// Cancels the running turn.
    turn: Arc<Mutex<RunControl>>,
    tools: u32,
    servers: McpClients,
}

impl ScriptServer<'_> {
    fn serve_requests(&mut self, out: &mut dyn Write) -> io::Result<u8> {
        while let Ok(message) = self.messages.recv() {
            let JsonRpcMessage::Request { id, method, params } = message else { continue };
            let outcome = match method.as_str() {
                INITIALIZE => Ok(json!({
                    "protocolVersion": PROTOCOL_VERSION,
                    "agentCapabilities": self.agent_capabilities(),
                    "agentInfo": {"name": "windlass-scripted", "version": env!("CARGO_PKG_VERSION")},
                    "authMethods": [],
                })),
                NEW_SESSION => self.begin_session(&params),
                LOAD_SESSION | RESUME_SESSION => self.load_session(&params, method == LOAD_SESSION, out)?,
                PROMPT => match self.play_prompt(&params, out)? {
                    PlayOutcome::Stopped(reason) => Ok(json!({"stopReason": reason})),
                    PlayOutcome::Answered(answer) => Ok(answer),
                    PlayOutcome::Failed(why) => Err(JsonRpcError::new(REQUEST_REFUSED, why)),
                    PlayOutcome::Crashed(code) => return Ok(code),
                },
                _ => Err(JsonRpcError::new(NO_SUCH_METHOD, format!("`{method}` is not served here"))),
            };
            out.write_all(&JsonRpcMessage::Answer { id, outcome }.to_line())?;
            out.flush()?;
        }
        Ok(0)
    }

    fn agent_capabilities(&self) -> Value {
        match (&self.script.remember, self.script.resume) {
            (Some(_), true) => json!({"loadSession": false, "sessionCapabilities": {"resume": {}}}),
            (remember, _) => json!({"loadSession": remember.is_some()}),
        }
    }

    /// Sets the working directory and the MCP servers of the session.
    fn set_session_params(&mut self, params: &Value) {
        self.directory = PathBuf::from(params["cwd"].as_str().unwrap_or("."));
        self.servers.set_servers(params);
    }

    fn begin_session(&mut self, params: &Value) -> Result<Value, JsonRpcError> {
        self.set_session_params(params);
        self.save_memory()
            .map_err(|error| JsonRpcError::new(REQUEST_REFUSED, format!("cannot remember anything: {error}")))?;
        Ok(json!({"sessionId": self.memory.conversation}))
    }

    /// Loads a conversation of an earlier process, and replays it if the method asks for that.
    fn load_session(
        &mut self,
        params: &Value,
        tells: bool,
        out: &mut dyn Write,
    ) -> io::Result<Result<Value, JsonRpcError>> {
        self.set_session_params(params);
        let name = params["sessionId"].as_str().unwrap_or_default();
        let kept = self.memory_file_path().and_then(|path| file::read_bounded(&path, MAX_MEMORY_FILE_SIZE).ok());
        let kept = kept.and_then(|bytes| serde_json::from_slice::<ScriptMemory>(&bytes).ok());
        let Some(kept) = kept.filter(|kept| kept.conversation == name) else {
            return Ok(Err(JsonRpcError::new(REQUEST_REFUSED, format!("there is no conversation `{name}`"))));
        };
        for said in kept.said.iter().filter(|_| tells) {
            write_session_update(out, name, build_message_chunk("user_message_chunk", "…"))?;
            write_session_update(out, name, build_message_chunk("agent_message_chunk", said))?;
        }
        self.memory = kept;
        Ok(Ok(Value::Null))
    }

    fn play_prompt(&mut self, params: &Value, out: &mut dyn Write) -> io::Result<PlayOutcome> {
        let blocks = params["prompt"].as_array().map(Vec::as_slice).unwrap_or_default();
        let prompt: String = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
        let Some(index) = self.script.find_next_turn(&prompt, &self.memory.played) else {
            return Ok(PlayOutcome::Failed("the script has no turn for this prompt".to_owned()));
        };
        self.memory.played.resize(self.script.turns.len(), 0);
        self.memory.played[index] += 1;
        self.memory.said.push(String::new());
        // The turn counts as played from now on, even if the process is killed while it runs.
        self.save_memory()?;
        let control = self.turn.lock().expect("nothing panics while it holds the turn").clone();
        let messages = &self.messages;
        let mut player = ScriptPlayer {
            setting: self.setting,
            out,
            conversation: &self.memory.conversation,
            directory: &self.directory,
            control: &control,
            ask: &mut |out, method, params| ask_client(messages, out, method, params),
            said: String::new(),
            tools: self.tools,
            servers: &mut self.servers,
            terminal: Value::Null,
        };
        let ended = player.play_steps(&self.script.turns[index].steps);
        let (said, tools) = (std::mem::take(&mut player.said), player.tools);
        self.tools = tools;
        if let Some(last) = self.memory.said.last_mut() {
            *last = said;
        }
        self.save_memory()?;
        ended
    }

    fn memory_file_path(&self) -> Option<PathBuf> {
        self.script.remember.as_ref().map(|file| self.directory.join(file))
    }

    fn save_memory(&self) -> io::Result<()> {
        match self.memory_file_path() {
            Some(file) => write_file_atomically(&file, &serde_json::to_vec(&self.memory)?),
            None => Ok(()),
        }
    }
}

/// Sends a request to the client and waits for the answer.
fn ask_client(
    messages: &Receiver<JsonRpcMessage>,
    out: &mut dyn Write,
    method: &str,
    params: Value,
) -> io::Result<Result<Value, JsonRpcError>> {
    let request = JsonRpcMessage::Request { id: "ask".into(), method: method.to_owned(), params };
    out.write_all(&request.to_line())?;
    out.flush()?;
    loop {
        match messages.recv() {
            Ok(JsonRpcMessage::Answer { outcome, .. }) => return Ok(outcome),
            Ok(_) => {}
            Err(_) => return Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// Writes a file completely or not at all, even if the process is killed.
fn write_file_atomically(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut new = file.to_owned().into_os_string();
    new.push(".new");
    fs::write(&new, bytes)?;
    fs::rename(&new, file)
}
