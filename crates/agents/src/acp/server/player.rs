//! Plays one turn of a script: file changes, commands, messages.
//!
//! Not here: the protocol around a turn (`mod`).

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use windlass_process::{
    CaptureLimits, Environment, OwnerLock, ProgramExit, ProgramInvocation, ProgramSpec, RunControl, SupervisorLauncher,
    file, run_program,
};

use super::mcp_client::McpClients;
use crate::acp::json_rpc::{JsonRpcError, JsonRpcMessage};
use crate::acp::methods::{REQUEST_PERMISSION, SESSION_UPDATE};
use crate::scripted::{ScriptRequest, ScriptStep, ScriptTextChange, ScriptToolCall};

/// The most output of a command that is kept.
const MAX_CAPTURED_OUTPUT: usize = 16 * 1024;
/// The largest file in which text is replaced.
const MAX_EDITED_FILE_SIZE: u64 = 64 * 1024 * 1024;
/// The size of one message of a flood.
const FLOOD_CHUNK_SIZE: usize = 8 * 1024;

/// The environment in which the script's commands run.
pub struct ScriptSetting<'a> {
    pub owner_lock: &'a OwnerLock,
    pub environment: Environment,
    /// Starts the programs that stay, such as MCP servers.
    pub launcher: &'a SupervisorLauncher,
}

/// The end of a played turn.
pub enum PlayOutcome {
    /// The turn ends with this stop reason.
    Stopped(String),
    /// The turn ends with this answer.
    Answered(Value),
    /// The turn ends with an error.
    Failed(String),
    /// The process exits at once with this code.
    Crashed(u8),
}

/// Sends a request with this method and these parameters, and waits for the answer.
pub type ClientQuestion<'a> = &'a mut dyn FnMut(&mut dyn Write, &str, Value) -> io::Result<Result<Value, JsonRpcError>>;

/// A turn that is being played.
pub struct ScriptPlayer<'a> {
    pub setting: &'a ScriptSetting<'a>,
    pub out: &'a mut dyn Write,
    pub conversation: &'a str,
    pub directory: &'a Path,
    pub control: &'a RunControl,
    /// Sends requests to the client.
    pub ask: ClientQuestion<'a>,
    /// The text so far, for the memory file.
    pub said: String,
    /// How many tools the agent has used.
    pub tools: u32,
    /// The MCP servers of the session.
    pub servers: &'a mut McpClients,
    /// The terminal that was created last.
    pub terminal: Value,
}

impl ScriptPlayer<'_> {
    pub fn play_steps(&mut self, steps: &[ScriptStep]) -> io::Result<PlayOutcome> {
        for step in steps {
            if self.control.is_cancelled() {
                return Ok(PlayOutcome::Stopped("cancelled".to_owned()));
            }
            if let Some(ended) = self.play_step(step)? {
                return Ok(ended);
            }
        }
        let reason = if self.control.is_cancelled() { "cancelled" } else { "end_turn" };
        Ok(PlayOutcome::Stopped(reason.to_owned()))
    }

    fn play_step(&mut self, step: &ScriptStep) -> io::Result<Option<PlayOutcome>> {
        match step {
            ScriptStep::Say(text) => self.say_text(&format!("{text}\n"))?,
            ScriptStep::Promise(claim) => self.say_text(&format!("<promise>{claim}</promise>\n"))?,
            ScriptStep::Write(file) => {
                return self.edit_file("Write", &file.path, |path| fs::write(path, &file.content));
            }
            ScriptStep::Append(file) => {
                return self.edit_file("Append to", &file.path, |path| {
                    fs::OpenOptions::new().create(true).append(true).open(path)?.write_all(file.content.as_bytes())
                });
            }
            ScriptStep::Replace(change) => {
                return self.edit_file("Change", &change.path, |path| replace_file_text(path, change));
            }
            ScriptStep::Run(script) => self.run_command(script)?,
            ScriptStep::Wait(span) => drop(self.control.wait_unless_cancelled(span.0)),
            ScriptStep::Ask(title) => return self.request_permission(title),
            ScriptStep::Request(question) => self.send_request(question)?,
            ScriptStep::Call(call) => self.call_server_tool(call)?,
            ScriptStep::Update(update) => write_session_update(self.out, self.conversation, update.clone())?,
            ScriptStep::Answer(answer) => return Ok(Some(PlayOutcome::Answered(answer.clone()))),
            ScriptStep::Stop(reason) => return Ok(Some(PlayOutcome::Stopped(reason.clone()))),
            ScriptStep::Fail(why) => return Ok(Some(PlayOutcome::Failed(why.clone()))),
            ScriptStep::Crash(code) => return Ok(Some(PlayOutcome::Crashed(*code))),
            ScriptStep::Hang => loop {
                std::thread::park();
            },
            ScriptStep::Flood(bytes) => {
                for _ in 0..bytes.div_ceil(FLOOD_CHUNK_SIZE as u64) {
                    self.say_text(&"x".repeat(FLOOD_CHUNK_SIZE))?;
                }
            }
            ScriptStep::Print(text) => writeln!(self.out, "{text}")?,
            ScriptStep::LongLine(bytes) => {
                self.out.write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"")?;
                for _ in 0..bytes.div_ceil(FLOOD_CHUNK_SIZE as u64) {
                    self.out.write_all(&[b'x'; FLOOD_CHUNK_SIZE])?;
                }
                self.out.write_all(b"\"}\n")?;
            }
            ScriptStep::Stray(id) => {
                let answer = JsonRpcMessage::Answer { id: (*id).into(), outcome: Ok(Value::Null) };
                self.out.write_all(&answer.to_line())?;
            }
        }
        self.out.flush()?;
        Ok(None)
    }

    fn say_text(&mut self, text: &str) -> io::Result<()> {
        self.said.push_str(text);
        write_session_update(self.out, self.conversation, build_message_chunk("agent_message_chunk", text))
    }

    fn edit_file(
        &mut self,
        verb: &str,
        name: &Path,
        edit: impl FnOnce(&Path) -> io::Result<()>,
    ) -> io::Result<Option<PlayOutcome>> {
        let (path, title) = (self.directory.join(name), format!("{verb} {}", name.display()));
        let tool = self.begin_tool_use(&title, "edit", &path)?;
        let done = edit(&path);
        let error = done.as_ref().err().map(|error| format!("cannot change `{}`: {error}", name.display()));
        self.end_tool_use(&tool, done.is_ok(), error.clone().unwrap_or_default())?;
        Ok(error.map(PlayOutcome::Failed))
    }

    fn run_command(&mut self, script: &str) -> io::Result<()> {
        let tool = self.begin_tool_use(script, "execute", self.directory.to_owned().as_path())?;
        let spec = ProgramSpec {
            grace: Duration::from_secs(1),
            capture: CaptureLimits { head: MAX_CAPTURED_OUTPUT / 2, tail: MAX_CAPTURED_OUTPUT / 2, spill: None },
            ..ProgramSpec::new(
                ProgramInvocation::Shell(script.into()),
                self.directory,
                self.setting.environment.clone(),
            )
        };
        let (success, output) = match run_program(&spec, self.setting.owner_lock, self.control, &mut |_, _| {}) {
            Ok(finished) => (
                finished.exit == ProgramExit::Code(0),
                finished.stdout.to_text_lossy() + &finished.stderr.to_text_lossy(),
            ),
            Err(error) => (false, error.to_string()),
        };
        self.end_tool_use(&tool, success, output)
    }

    fn request_permission(&mut self, title: &str) -> io::Result<Option<PlayOutcome>> {
        let tool = self.begin_tool_use(title, "other", self.directory.to_owned().as_path())?;
        let option = |id: &str| json!({"optionId": format!("{id}-option"), "name": id, "kind": id});
        let answer = (self.ask)(
            self.out,
            REQUEST_PERMISSION,
            json!({
                "sessionId": self.conversation,
                "toolCall": {"toolCallId": tool, "title": title},
                "options": [option("reject_once"), option("allow_always"), option("allow_once")],
            }),
        )?;
        let answer = answer.unwrap_or_default();
        let chosen = answer["outcome"]["optionId"].as_str().unwrap_or("nothing").to_owned();
        let allowed = chosen.starts_with("allow");
        self.end_tool_use(&tool, allowed, String::new())?;
        if !allowed {
            self.say_text(&format!("I may not do this: {title} ({chosen})\n"))?;
        }
        Ok((!allowed).then(|| PlayOutcome::Stopped("end_turn".to_owned())))
    }

    fn send_request(&mut self, ScriptRequest { method, params }: &ScriptRequest) -> io::Result<()> {
        let mut params = params.clone();
        params.entry("sessionId").or_insert_with(|| self.conversation.into());
        if method.starts_with("terminal/") && method != "terminal/create" {
            params.entry("terminalId").or_insert_with(|| self.terminal.clone());
        }
        let answer = (self.ask)(self.out, method, params.into())?;
        if let Ok(Some(terminal)) = answer.as_ref().map(|answer| answer.get("terminalId")) {
            self.terminal = terminal.clone();
        }
        match answer {
            Ok(answer) => self.say_text(&format!("{method}: {answer}\n")),
            Err(refused) => self.say_text(&format!("{method} failed: {} ({})\n", refused.message, refused.code)),
        }
    }

    fn call_server_tool(&mut self, ScriptToolCall { server, tool, arguments }: &ScriptToolCall) -> io::Result<()> {
        let shown = self.begin_tool_use(&format!("{server} {tool}"), "other", self.directory.to_owned().as_path())?;
        let wanted = (tool.as_str(), &Value::Object(arguments.clone()));
        let called = self.servers.call_tool(server, wanted, (self.setting, self.directory, self.control));
        let (success, text) = called.unwrap_or_else(|why| (false, why));
        self.end_tool_use(&shown, success, text.clone())?;
        let verb = if success { "" } else { " failed" };
        self.say_text(&format!("{tool}{verb}: {text}\n"))
    }

    fn begin_tool_use(&mut self, title: &str, kind: &str, path: &Path) -> io::Result<String> {
        self.tools += 1;
        let id = format!("tool-{}", self.tools);
        let call = json!({
            "sessionUpdate": "tool_call", "toolCallId": id, "title": title, "kind": kind, "status": "in_progress",
            "locations": [{"path": path}],
        });
        write_session_update(self.out, self.conversation, call)?;
        Ok(id)
    }

    fn end_tool_use(&mut self, id: &str, success: bool, output: String) -> io::Result<()> {
        let status = if success { "completed" } else { "failed" };
        let content = json!([{"type": "content", "content": {"type": "text", "text": output}}]);
        let call = json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": status, "content": content});
        write_session_update(self.out, self.conversation, call)
    }
}

pub fn build_message_chunk(kind: &str, text: &str) -> Value {
    json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}})
}

pub fn write_session_update(out: &mut dyn Write, conversation: &str, update: Value) -> io::Result<()> {
    let params = json!({"sessionId": conversation, "update": update});
    out.write_all(&JsonRpcMessage::Notice { method: SESSION_UPDATE.to_owned(), params }.to_line())?;
    out.flush()
}

fn replace_file_text(path: &Path, change: &ScriptTextChange) -> io::Result<()> {
    let text = String::from_utf8(file::read_bounded(path, MAX_EDITED_FILE_SIZE)?).map_err(io::Error::other)?;
    if !text.contains(&change.old) {
        return Err(io::Error::other("it does not have the text that is to be replaced"));
    }
    fs::write(path, text.replacen(&change.old, &change.new, 1))
}
