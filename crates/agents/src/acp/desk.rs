//! Doing what an agent wants done in its name, while its turn goes on.
//!
//! ```text
//!   wish ─► permissions ─► files: at once
//!                       └► a program beside the agent ─► its output, when asked ─► its end, to whoever waits for it
//! ```
//!
//! Invariants:
//! - Nothing here waits: who wants to know the end of a program is answered when it has ended.
//! - Every program is under a supervisor of its own, and ends with the turn at the latest.
//! - Once a turn is to end, or has ended, nothing is changed or begun any more until the next one.
//! - What an agent may not do it may not have done here either. All of it is offered all the same: an agent that is not
//!   offered a terminal runs its commands itself, where nobody can say no.

use std::ffi::OsString;
use std::path::PathBuf;

use serde_json::{Value, json};
use windlass_process::{Beside, Environment, Exit, Invocation, Launcher, Roster, Spec, overlay, signal_name};

use super::files::Files;
use super::permissions::{Permissions, ToolKind};
use super::wire::{NOT_FOUND, REFUSED, Refused};
use super::wish::{CreateTerminal, Wish};

/// The most output of one program that is kept, and what is kept if nobody says how much.
const OUTPUT: usize = 1024 * 1024;
/// How many terminals an agent may have at a time. One whose program has ended makes room for another.
const TERMINALS: usize = 64;
/// What of a path or a command is told.
const TOLD: usize = 400;

/// What came of a wish.
pub struct Served {
    /// Nothing yet, where it waits for an end.
    pub answer: Option<Result<Value, Refused>>,
    /// What whoever watches is to know of it.
    pub told: Option<String>,
}

/// An answer that was waited for: to which question, and what.
pub type Late = (Value, Result<Value, Refused>);

/// Where an agent's wishes are served.
pub struct Desk {
    files: Files,
    permissions: Permissions,
    launcher: Launcher,
    directory: PathBuf,
    environment: Environment,
    /// The names of the terminals, in the order of their programs.
    names: Vec<String>,
    programs: Vec<Beside>,
    /// Questions for the end of a terminal's program.
    waiting: Vec<(Value, String)>,
    /// A turn was ended, and none has begun since.
    closed: bool,
    made: u64,
}

impl Desk {
    /// For an agent that is started like this.
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

    /// What runs, for whoever waits for the agent.
    pub fn programs(&mut self) -> &mut [Beside] {
        &mut self.programs
    }

    /// Does what is wanted. `id` is the question's own.
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

    /// Answers for whoever has waited for an end that has come.
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

    /// Ends what runs, with the turn. What it wrote can still be asked for.
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
            // Some agents give a whole line for the shell, and a program's name is one too.
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

    /// The oldest stay first.
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

/// What a program has written, cut where a letter begins.
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
