//! Plays one turn of a script: file changes, commands, messages.
//!
//! Not here: the protocol around a turn (`mod`).

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use windlass_process::{Capture, Control, Environment, Exit, Invocation, Launcher, Roster, Spec, file, run};

use super::mcp_client::Servers;
use crate::acp::methods::{REQUEST_PERMISSION, UPDATE};
use crate::acp::wire::{Message, Refused};
use crate::scripted::{Call, Change, Question, Step};

/// The most output of a command that is kept.
const OUTPUT: usize = 16 * 1024;
/// The largest file in which text is replaced.
const CONTENT: u64 = 64 * 1024 * 1024;
/// The size of one message of a flood.
const PIECE: usize = 8 * 1024;

/// The environment in which the script's commands run.
pub struct ScriptSetting<'a> {
    pub roster: &'a Roster,
    pub environment: Environment,
    /// Starts the programs that stay, such as MCP servers.
    pub launcher: &'a Launcher,
}

/// The end of a played turn.
pub enum Ended {
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
pub type Ask<'a> = &'a mut dyn FnMut(&mut dyn Write, &str, Value) -> io::Result<Result<Value, Refused>>;

/// A turn that is being played.
pub struct Player<'a> {
    pub setting: &'a ScriptSetting<'a>,
    pub out: &'a mut dyn Write,
    pub conversation: &'a str,
    pub directory: &'a Path,
    pub control: &'a Control,
    /// Sends requests to the client.
    pub ask: Ask<'a>,
    /// The text so far, for the memory file.
    pub said: String,
    /// How many tools the agent has used.
    pub tools: u32,
    /// The MCP servers of the session.
    pub servers: &'a mut Servers,
    /// The terminal that was created last.
    pub terminal: Value,
}

impl Player<'_> {
    pub fn play(&mut self, steps: &[Step]) -> io::Result<Ended> {
        for step in steps {
            if self.control.is_cancelled() {
                return Ok(Ended::Stopped("cancelled".to_owned()));
            }
            if let Some(ended) = self.step(step)? {
                return Ok(ended);
            }
        }
        let reason = if self.control.is_cancelled() { "cancelled" } else { "end_turn" };
        Ok(Ended::Stopped(reason.to_owned()))
    }

    fn step(&mut self, step: &Step) -> io::Result<Option<Ended>> {
        match step {
            Step::Say(text) => self.say(&format!("{text}\n"))?,
            Step::Promise(claim) => self.say(&format!("<promise>{claim}</promise>\n"))?,
            Step::Write(file) => return self.edit("Write", &file.path, |path| fs::write(path, &file.content)),
            Step::Append(file) => {
                return self.edit("Append to", &file.path, |path| {
                    fs::OpenOptions::new().create(true).append(true).open(path)?.write_all(file.content.as_bytes())
                });
            }
            Step::Replace(change) => return self.edit("Change", &change.path, |path| replace(path, change)),
            Step::Run(script) => self.run(script)?,
            Step::Wait(span) => drop(self.control.wait(span.0)),
            Step::Ask(title) => return self.permission(title),
            Step::Request(question) => self.request(question)?,
            Step::Call(call) => self.call(call)?,
            Step::Update(told) => update(self.out, self.conversation, told.clone())?,
            Step::Answer(answer) => return Ok(Some(Ended::Answered(answer.clone()))),
            Step::Stop(reason) => return Ok(Some(Ended::Stopped(reason.clone()))),
            Step::Fail(why) => return Ok(Some(Ended::Failed(why.clone()))),
            Step::Crash(code) => return Ok(Some(Ended::Crashed(*code))),
            Step::Hang => loop {
                std::thread::park();
            },
            Step::Flood(bytes) => {
                for _ in 0..bytes.div_ceil(PIECE as u64) {
                    self.say(&"x".repeat(PIECE))?;
                }
            }
            Step::Print(text) => writeln!(self.out, "{text}")?,
            Step::LongLine(bytes) => {
                self.out.write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"")?;
                for _ in 0..bytes.div_ceil(PIECE as u64) {
                    self.out.write_all(&[b'x'; PIECE])?;
                }
                self.out.write_all(b"\"}\n")?;
            }
            Step::Stray(id) => {
                let answer = Message::Answer { id: (*id).into(), outcome: Ok(Value::Null) };
                self.out.write_all(&answer.line())?;
            }
        }
        self.out.flush()?;
        Ok(None)
    }

    fn say(&mut self, text: &str) -> io::Result<()> {
        self.said.push_str(text);
        update(self.out, self.conversation, chunk("agent_message_chunk", text))
    }

    fn edit(
        &mut self,
        verb: &str,
        name: &Path,
        edit: impl FnOnce(&Path) -> io::Result<()>,
    ) -> io::Result<Option<Ended>> {
        let (path, title) = (self.directory.join(name), format!("{verb} {}", name.display()));
        let tool = self.begin_tool(&title, "edit", &path)?;
        let done = edit(&path);
        let error = done.as_ref().err().map(|error| format!("cannot change `{}`: {error}", name.display()));
        self.end_tool(&tool, done.is_ok(), error.clone().unwrap_or_default())?;
        Ok(error.map(Ended::Failed))
    }

    fn run(&mut self, script: &str) -> io::Result<()> {
        let tool = self.begin_tool(script, "execute", self.directory.to_owned().as_path())?;
        let spec = Spec {
            grace: Duration::from_secs(1),
            capture: Capture { head: OUTPUT / 2, tail: OUTPUT / 2, spill: None },
            ..Spec::new(Invocation::Shell(script.into()), self.directory, self.setting.environment.clone())
        };
        let (success, output) = match run(&spec, self.setting.roster, self.control, &mut |_, _| {}) {
            Ok(finished) => (finished.exit == Exit::Code(0), finished.stdout.text() + &finished.stderr.text()),
            Err(error) => (false, error.to_string()),
        };
        self.end_tool(&tool, success, output)
    }

    fn permission(&mut self, title: &str) -> io::Result<Option<Ended>> {
        let tool = self.begin_tool(title, "other", self.directory.to_owned().as_path())?;
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
        self.end_tool(&tool, allowed, String::new())?;
        if !allowed {
            self.say(&format!("I may not do this: {title} ({chosen})\n"))?;
        }
        Ok((!allowed).then(|| Ended::Stopped("end_turn".to_owned())))
    }

    fn request(&mut self, Question { method, params }: &Question) -> io::Result<()> {
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
            Ok(answer) => self.say(&format!("{method}: {answer}\n")),
            Err(refused) => self.say(&format!("{method} failed: {} ({})\n", refused.message, refused.code)),
        }
    }

    fn call(&mut self, Call { server, tool, arguments }: &Call) -> io::Result<()> {
        let shown = self.begin_tool(&format!("{server} {tool}"), "other", self.directory.to_owned().as_path())?;
        let wanted = (tool.as_str(), &Value::Object(arguments.clone()));
        let called = self.servers.call(server, wanted, (self.setting, self.directory, self.control));
        let (success, text) = called.unwrap_or_else(|why| (false, why));
        self.end_tool(&shown, success, text.clone())?;
        let verb = if success { "" } else { " failed" };
        self.say(&format!("{tool}{verb}: {text}\n"))
    }

    fn begin_tool(&mut self, title: &str, kind: &str, path: &Path) -> io::Result<String> {
        self.tools += 1;
        let id = format!("tool-{}", self.tools);
        let call = json!({
            "sessionUpdate": "tool_call", "toolCallId": id, "title": title, "kind": kind, "status": "in_progress",
            "locations": [{"path": path}],
        });
        update(self.out, self.conversation, call)?;
        Ok(id)
    }

    fn end_tool(&mut self, id: &str, success: bool, output: String) -> io::Result<()> {
        let status = if success { "completed" } else { "failed" };
        let content = json!([{"type": "content", "content": {"type": "text", "text": output}}]);
        let call = json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": status, "content": content});
        update(self.out, self.conversation, call)
    }
}

pub fn chunk(kind: &str, text: &str) -> Value {
    json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}})
}

pub fn update(out: &mut dyn Write, conversation: &str, update: Value) -> io::Result<()> {
    let params = json!({"sessionId": conversation, "update": update});
    out.write_all(&Message::Notice { method: UPDATE.to_owned(), params }.line())?;
    out.flush()
}

fn replace(path: &Path, change: &Change) -> io::Result<()> {
    let text = String::from_utf8(file::read(path, CONTENT)?).map_err(io::Error::other)?;
    if !text.contains(&change.old) {
        return Err(io::Error::other("it does not have the text that is to be replaced"));
    }
    fs::write(path, text.replacen(&change.old, &change.new, 1))
}
