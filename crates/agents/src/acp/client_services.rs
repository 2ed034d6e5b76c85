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
//! - The wrapper of the agent wraps its terminals. An agent with a wrapper reads and writes files itself.

use std::ffi::OsString;
use std::path::PathBuf;

use serde_json::{Value, json};
use windlass_process::{
    BackgroundProcess, Environment, OwnerLock, ProgramExit, ProgramInvocation, ProgramSpec, SupervisorLauncher,
    overlay_environment, signal_name,
};

use super::client_request::{ClientRequest, CreateTerminalRequest};
use super::files::WorkspaceFiles;
use super::json_rpc::{JsonRpcError, REQUEST_REFUSED, RESOURCE_NOT_FOUND};
use super::permissions::{AgentPermissions, ToolKind};

/// The most output of one program that is kept. Also the default if a request names no limit.
const MAX_TERMINAL_OUTPUT: usize = 1024 * 1024;
/// How many terminals an agent may have at a time. A terminal whose program has ended makes room for another.
const MAX_TERMINALS: usize = 64;
/// The longest path or command in the transcript.
const MAX_REPORTED_LENGTH: usize = 400;

/// The outcome of a request.
pub struct ServiceResponse {
    /// The answer. `None` while the request waits for the end of a program.
    pub answer: Option<Result<Value, JsonRpcError>>,
    /// A line for the transcript.
    pub note: Option<String>,
}

/// The id of a request and its answer, which had to wait for the end of a program.
pub type DeferredResponse = (Value, Result<Value, JsonRpcError>);

/// The services that answer an agent's requests.
pub struct ClientServices {
    files: WorkspaceFiles,
    permissions: AgentPermissions,
    launcher: SupervisorLauncher,
    directory: PathBuf,
    environment: Environment,
    wrapper: Vec<OsString>,
    /// The names of the terminals, in the order of `programs`.
    names: Vec<String>,
    programs: Vec<BackgroundProcess>,
    /// The ids of requests that wait for the end of a terminal's program, with the terminal.
    waiting: Vec<(Value, String)>,
    /// Whether a turn has ended and none has begun since.
    closed: bool,
    made: u64,
}

impl ClientServices {
    /// Creates the services for an agent that is started with this spec.
    pub fn new(launcher: &SupervisorLauncher, spec: &ProgramSpec, permissions: AgentPermissions) -> Self {
        Self {
            files: WorkspaceFiles::new(&spec.directory),
            permissions,
            launcher: launcher.clone(),
            directory: spec.directory.clone(),
            environment: spec.environment.clone(),
            wrapper: spec.wrapper.clone(),
            names: Vec::new(),
            programs: Vec::new(),
            waiting: Vec::new(),
            closed: false,
            made: 0,
        }
    }

    /// Returns what the services offer, as the protocol encodes it.
    pub fn describe_capabilities(&self) -> Value {
        let has_files = self.wrapper.is_empty();
        json!({"fs": {"readTextFile": has_files, "writeTextFile": has_files}, "terminal": true})
    }

    /// Returns the running programs. The caller waits for their events together with the agent's.
    pub fn programs(&mut self) -> &mut [BackgroundProcess] {
        &mut self.programs
    }

    /// Serves a request. `id` is the id of the JSON-RPC request.
    pub fn serve_request(&mut self, id: &Value, request: ClientRequest, owner_lock: &OwnerLock) -> ServiceResponse {
        let done = |answer| ServiceResponse { answer: Some(answer), note: None };
        match request {
            ClientRequest::Read(_) | ClientRequest::Write(_) if !self.wrapper.is_empty() => {
                done(Err(JsonRpcError::new(REQUEST_REFUSED, "the client offers no files to an agent in a sandbox")))
            }
            ClientRequest::Read(wanted) => {
                let note = format!("reads {}", wanted.path.display());
                self.serve_if_permitted(ToolKind::Read, note, |services| {
                    Ok(json!({"content": services.files.read_requested_lines(&wanted)?}))
                })
            }
            ClientRequest::Write(wanted) => {
                let note = format!("writes {}", wanted.path.display());
                self.serve_if_permitted(ToolKind::Edit, note, |services| {
                    services.files.write_requested_file(&wanted).map(|()| json!({}))
                })
            }
            ClientRequest::Create(wanted) => {
                let words: Vec<&str> =
                    std::iter::once(&wanted.command).chain(&wanted.args).map(String::as_str).collect();
                let note = format!("runs {}", words.join(" "));
                self.serve_if_permitted(ToolKind::Execute, note, |services| {
                    services.create_terminal(&wanted, owner_lock)
                })
            }
            ClientRequest::Output(name) => done(self.find_program(&name).map(read_terminal_output)),
            ClientRequest::Kill(name) => done(self.find_program(&name).map(|program| {
                program.end_tree();
                json!({})
            })),
            ClientRequest::Release(name) => done(self.release_terminal(&name)),
            ClientRequest::WaitForExit(name) => match self.find_program(&name).map(|program| program.exit()) {
                Err(refused) => done(Err(refused)),
                Ok(Some(exit)) => done(Ok(format_exit_status(exit))),
                Ok(None) => {
                    self.waiting.push((id.clone(), name));
                    ServiceResponse { answer: None, note: None }
                }
            },
        }
    }

    /// Takes the answers of requests whose program has ended meanwhile.
    pub fn take_deferred_responses(&mut self) -> Vec<DeferredResponse> {
        let (names, programs) = (&self.names, &self.programs);
        let mut late = Vec::new();
        self.waiting.retain(|(id, name)| {
            let found = names.iter().position(|known| known == name);
            let answer = match found.map(|index| programs[index].exit()) {
                Some(None) => return true,
                Some(Some(exit)) => Ok(format_exit_status(exit)),
                None => Err(unknown_terminal_error(name)),
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
        self.programs.iter_mut().for_each(BackgroundProcess::end_tree);
    }

    fn serve_if_permitted(
        &mut self,
        kind: ToolKind,
        mut note: String,
        serve: impl FnOnce(&mut Self) -> Result<Value, JsonRpcError>,
    ) -> ServiceResponse {
        note.truncate(note.floor_char_boundary(MAX_REPORTED_LENGTH));
        if !self.permissions.allows_tool_kind(kind) {
            let why = format!("not allowed: `permissions` deny {} here", kind.name());
            return ServiceResponse {
                answer: Some(Err(JsonRpcError::new(REQUEST_REFUSED, why))),
                note: Some(format!("{note}: denied")),
            };
        }
        let answer = match self.closed && kind != ToolKind::Read {
            true => Err(JsonRpcError::new(REQUEST_REFUSED, "the turn is over")),
            false => serve(self),
        };
        let note = match &answer {
            Ok(_) => note,
            Err(refused) => {
                format!("{note}: {}", &refused.message[..refused.message.floor_char_boundary(MAX_REPORTED_LENGTH)])
            }
        };
        ServiceResponse { answer: Some(answer), note: Some(note) }
    }

    fn create_terminal(
        &mut self,
        wanted: &CreateTerminalRequest,
        owner_lock: &OwnerLock,
    ) -> Result<Value, JsonRpcError> {
        if self.programs.len() >= MAX_TERMINALS {
            let Some(over) = self.programs.iter().position(|program| program.exit().is_some()) else {
                return Err(JsonRpcError::new(
                    REQUEST_REFUSED,
                    format!("there are {MAX_TERMINALS} terminals already: release some"),
                ));
            };
            self.remove_terminal(over);
        }
        let invocation = match wanted.args.as_slice() {
            // Some agents send a whole shell line as the command. A plain program name works in a shell too.
            [] => ProgramInvocation::Shell(wanted.command.clone().into()),
            args => ProgramInvocation::Argv(std::iter::once(&wanted.command).chain(args).map(OsString::from).collect()),
        };
        let added = wanted.env.iter().map(|variable| (variable.name.as_str(), OsString::from(&variable.value)));
        let directory = wanted.cwd.as_ref().map_or_else(|| self.directory.clone(), |cwd| self.directory.join(cwd));
        let environment = overlay_environment(&self.environment, added.collect());
        let spec =
            ProgramSpec { wrapper: self.wrapper.clone(), ..ProgramSpec::new(invocation, directory, environment) };
        let most = wanted.output_byte_limit.map_or(MAX_TERMINAL_OUTPUT, |most| {
            usize::try_from(most).unwrap_or(MAX_TERMINAL_OUTPUT).min(MAX_TERMINAL_OUTPUT)
        });
        let started = BackgroundProcess::start(&self.launcher, &spec, owner_lock, most);
        let program = started.map_err(|error| JsonRpcError::new(REQUEST_REFUSED, error.to_string()))?;
        self.made += 1;
        let name = format!("terminal-{}", self.made);
        self.names.push(name.clone());
        self.programs.push(program);
        Ok(json!({"terminalId": name}))
    }

    fn release_terminal(&mut self, name: &str) -> Result<Value, JsonRpcError> {
        let index = self.find_terminal_index(name)?;
        self.remove_terminal(index).end_tree();
        Ok(json!({}))
    }

    /// Removes a terminal and keeps the order of the others: the oldest is released first.
    fn remove_terminal(&mut self, index: usize) -> BackgroundProcess {
        self.names.remove(index);
        self.programs.remove(index)
    }

    fn find_program(&mut self, name: &str) -> Result<&mut BackgroundProcess, JsonRpcError> {
        let index = self.find_terminal_index(name)?;
        Ok(&mut self.programs[index])
    }

    fn find_terminal_index(&self, name: &str) -> Result<usize, JsonRpcError> {
        self.names.iter().position(|known| known == name).ok_or_else(|| unknown_terminal_error(name))
    }
}

fn unknown_terminal_error(name: &str) -> JsonRpcError {
    JsonRpcError::new(RESOURCE_NOT_FOUND, format!("there is no terminal `{name}`"))
}

/// Returns the output of a program. Truncated output starts at a character boundary.
fn read_terminal_output(program: &mut BackgroundProcess) -> Value {
    let (bytes, truncated) = program.output();
    let broken = bytes.iter().take_while(|byte| (0x80..0xc0).contains(*byte)).count();
    let whole = if truncated { &bytes[broken.min(3)..] } else { &bytes[..] };
    let mut answer = json!({"output": String::from_utf8_lossy(whole), "truncated": truncated});
    if let Some(exit) = program.exit() {
        answer["exitStatus"] = format_exit_status(exit);
    }
    answer
}

fn format_exit_status(exit: ProgramExit) -> Value {
    match exit {
        ProgramExit::Code(code) => json!({"exitCode": code, "signal": null}),
        ProgramExit::Signal(number) => json!({"exitCode": null, "signal": signal_name(number)}),
        ProgramExit::TimedOut | ProgramExit::OutputIdle | ProgramExit::Cancelled | ProgramExit::Lost => {
            json!({"exitCode": null, "signal": null})
        }
    }
}
