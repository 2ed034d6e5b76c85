//! Services that Windlass provides to an agent during its turn: files and terminals.
//!
//! ```text
//!   request ─► permissions ─► files: answered at once
//!                         └► a program beside the agent ─► its output, on request ─► its end, as a deferred response
//! ```
//!
//! Invariants:
//! - No service blocks. A request for the end of a program is answered when the program has ended.
//! - Every program has its own supervisor, and ends with the turn at the latest.
//! - From the moment a turn is asked to end until the next turn begins, the services change nothing and start nothing.
//! - The permissions of the agent apply to these services as well. Windlass offers all of them anyway: an agent without a
//!   client terminal runs its commands itself, and Windlass cannot deny those.

use std::ffi::OsString;
use std::path::PathBuf;

use serde_json::{Value, json};
use windlass_process::{Beside, Environment, Exit, Invocation, Launcher, Roster, Spec, overlay, signal_name};

use super::files::Files;
use super::permissions::{Permissions, ToolKind};
use super::wire::{NOT_FOUND, REFUSED, Refused};
use super::wish::{CreateTerminal, Wish};

/// The most output of one program that is kept. Also the default if a request names no limit.
const OUTPUT: usize = 1024 * 1024;
/// How many terminals an agent may have at a time. A terminal whose program has ended makes room for another.
const TERMINALS: usize = 64;
/// The longest path or command in the transcript.
const TOLD: usize = 400;

/// The outcome of a request.
pub struct Served {
    /// The answer. `None` while the request waits for the end of a program.
    pub answer: Option<Result<Value, Refused>>,
    /// A line for the transcript.
    pub told: Option<String>,
}

/// The id of a request and its answer, which had to wait for the end of a program.
pub type Late = (Value, Result<Value, Refused>);

/// The services that answer an agent's requests.
pub struct Desk {
    files: Files,
    permissions: Permissions,
    launcher: Launcher,
    directory: PathBuf,
    environment: Environment,
    /// The names of the terminals, in the order of `programs`.
    names: Vec<String>,
    programs: Vec<Beside>,
    /// The ids of requests that wait for the end of a terminal's program, with the terminal.
    waiting: Vec<(Value, String)>,
    /// Whether a turn has ended and none has begun since.
    closed: bool,
    made: u64,
}

impl Desk {
    /// Creates the services for an agent that is started with this spec.
    pub fn new(launcher: &Launcher, spec: &Spec, permissions: Permissions) -> Self {
        Self {
            files: Files::new(&spec.directory),
            permissions,
            launcher: launcher.clone(),
            directory: spec.directory.clone(),
            environment: spec.environment.clone(),
            names: Vec::new(),
            programs: Vec::new(),
            waiting: Vec::new(),
            closed: false,
            made: 0,
        }
    }

    /// Returns the running programs. The caller waits for their events together with the agent's.
    pub fn programs(&mut self) -> &mut [Beside] {
        &mut self.programs
    }

    /// Serves a request. `id` is the id of the JSON-RPC request.
    pub fn serve(&mut self, id: &Value, wish: Wish, roster: &Roster) -> Served {
        let done = |answer| Served { answer: Some(answer), told: None };
        match wish {
            Wish::Read(wanted) => {
                let told = format!("reads {}", wanted.path.display());
                self.permitted(ToolKind::Read, told, |desk| Ok(json!({"content": desk.files.read(&wanted)?})))
            }
            Wish::Write(wanted) => {
                let told = format!("writes {}", wanted.path.display());
                self.permitted(ToolKind::Edit, told, |desk| desk.files.write(&wanted).map(|()| json!({})))
            }
            Wish::Create(wanted) => {
                let words: Vec<&str> =
                    std::iter::once(&wanted.command).chain(&wanted.args).map(String::as_str).collect();
                let told = format!("runs {}", words.join(" "));
                self.permitted(ToolKind::Execute, told, |desk| desk.create(&wanted, roster))
            }
            Wish::Output(name) => done(self.program(&name).map(output)),
            Wish::Kill(name) => done(self.program(&name).map(|program| {
                program.end();
                json!({})
            })),
            Wish::Release(name) => done(self.release(&name)),
            Wish::WaitForExit(name) => match self.program(&name).map(|program| program.exit()) {
                Err(refused) => done(Err(refused)),
                Ok(Some(exit)) => done(Ok(status(exit))),
                Ok(None) => {
                    self.waiting.push((id.clone(), name));
                    Served { answer: None, told: None }
                }
            },
        }
    }

    /// Takes the answers of requests whose program has ended meanwhile.
    pub fn ended(&mut self) -> Vec<Late> {
        let (names, programs) = (&self.names, &self.programs);
        let mut late = Vec::new();
        self.waiting.retain(|(id, name)| {
            let found = names.iter().position(|known| known == name);
            let answer = match found.map(|index| programs[index].exit()) {
                Some(None) => return true,
                Some(Some(exit)) => Ok(status(exit)),
                None => Err(unknown(name)),
            };
            late.push((id.clone(), answer));
            false
        });
        late
    }

    pub fn begin_turn(&mut self) {
        self.closed = false;
    }

    /// Ends the running programs with the turn. Their output can still be requested.
    pub fn end_turn(&mut self) {
        self.closed = true;
        self.programs.iter_mut().for_each(Beside::end);
    }

    fn permitted(
        &mut self,
        kind: ToolKind,
        mut told: String,
        serve: impl FnOnce(&mut Self) -> Result<Value, Refused>,
    ) -> Served {
        told.truncate(told.floor_char_boundary(TOLD));
        if !self.permissions.allow(kind) {
            let why = format!("not allowed: `permissions` deny {} here", kind.name());
            return Served { answer: Some(Err(Refused::new(REFUSED, why))), told: Some(format!("{told}: denied")) };
        }
        let answer = match self.closed && kind != ToolKind::Read {
            true => Err(Refused::new(REFUSED, "the turn is over")),
            false => serve(self),
        };
        let told = match &answer {
            Ok(_) => told,
            Err(refused) => format!("{told}: {}", &refused.message[..refused.message.floor_char_boundary(TOLD)]),
        };
        Served { answer: Some(answer), told: Some(told) }
    }

    fn create(&mut self, wanted: &CreateTerminal, roster: &Roster) -> Result<Value, Refused> {
        if self.programs.len() >= TERMINALS {
            let Some(over) = self.programs.iter().position(|program| program.exit().is_some()) else {
                return Err(Refused::new(REFUSED, format!("there are {TERMINALS} terminals already: release some")));
            };
            self.remove(over);
        }
        let invocation = match wanted.args.as_slice() {
            // Some agents send a whole shell line as the command. A plain program name works in a shell too.
            [] => Invocation::Shell(wanted.command.clone().into()),
            args => Invocation::Argv(std::iter::once(&wanted.command).chain(args).map(OsString::from).collect()),
        };
        let added = wanted.env.iter().map(|variable| (variable.name.as_str(), OsString::from(&variable.value)));
        let directory = wanted.cwd.as_ref().map_or_else(|| self.directory.clone(), |cwd| self.directory.join(cwd));
        let spec = Spec::new(invocation, directory, overlay(&self.environment, added.collect()));
        let most = wanted.output_byte_limit.map_or(OUTPUT, |most| usize::try_from(most).unwrap_or(OUTPUT).min(OUTPUT));
        let started = Beside::start(&self.launcher, &spec, roster, most);
        let program = started.map_err(|error| Refused::new(REFUSED, error.to_string()))?;
        self.made += 1;
        let name = format!("terminal-{}", self.made);
        self.names.push(name.clone());
        self.programs.push(program);
        Ok(json!({"terminalId": name}))
    }

    fn release(&mut self, name: &str) -> Result<Value, Refused> {
        let index = self.find(name)?;
        self.remove(index).end();
        Ok(json!({}))
    }

    /// Removes a terminal and keeps the order of the others: the oldest is released first.
    fn remove(&mut self, index: usize) -> Beside {
        self.names.remove(index);
        self.programs.remove(index)
    }

    fn program(&mut self, name: &str) -> Result<&mut Beside, Refused> {
        let index = self.find(name)?;
        Ok(&mut self.programs[index])
    }

    fn find(&self, name: &str) -> Result<usize, Refused> {
        self.names.iter().position(|known| known == name).ok_or_else(|| unknown(name))
    }
}

fn unknown(name: &str) -> Refused {
    Refused::new(NOT_FOUND, format!("there is no terminal `{name}`"))
}

/// Returns the output of a program. Truncated output starts at a character boundary.
fn output(program: &mut Beside) -> Value {
    let (bytes, truncated) = program.output();
    let broken = bytes.iter().take_while(|byte| (0x80..0xc0).contains(*byte)).count();
    let whole = if truncated { &bytes[broken.min(3)..] } else { &bytes[..] };
    let mut answer = json!({"output": String::from_utf8_lossy(whole), "truncated": truncated});
    if let Some(exit) = program.exit() {
        answer["exitStatus"] = status(exit);
    }
    answer
}

fn status(exit: Exit) -> Value {
    match exit {
        Exit::Code(code) => json!({"exitCode": code, "signal": null}),
        Exit::Signal(number) => json!({"exitCode": null, "signal": signal_name(number)}),
        Exit::TimedOut | Exit::Silent | Exit::Cancelled | Exit::Lost => json!({"exitCode": null, "signal": null}),
    }
}
