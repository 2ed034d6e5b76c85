//! A forge on a free local port: the parts of GitHub's and GitLab's APIs that changes need, with stored changes, and with
//! injected faults.
//!
//! ```text
//! request ─► fault? ─► authentication ─► github or gitlab (by its paths) ─► ForgeState ─► response
//! ```
//!
//! The [`GitBackend`] runs the git operations, such as a lookup of the newest commit of a branch. A test with a real repository
//! passes its own backend.

mod github;
mod gitlab;

use std::collections::VecDeque;
use std::io::{self, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};

pub use crate::provider::HttpRequest;

use crate::provider::http::{HttpResponse, drain};

/// The only accepted token.
pub const TOKEN: &str = "forge-token-0123456789";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForgeFlavour {
    GitHub,
    GitLab,
}

/// A change, as the forge stores it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForgePull {
    pub number: u64,
    pub branch: String,
    pub base: String,
    pub head: String,
    pub title: String,
    pub body: String,
    pub draft: bool,
    pub stage: PullStage,
    pub is_from_fork: bool,
    /// The reason why the forge refuses to merge the change.
    pub refusal: Option<MergeRefusal>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PullStage {
    Open,
    Merged { commit: String },
    Closed,
}

/// A refused merge: the status and the message of the answer, and the state of the change (`mergeable_state`,
/// `detailed_merge_status`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeRefusal {
    pub status: u16,
    pub message: &'static str,
    pub state: &'static str,
}

/// A fault of the next request.
#[derive(Debug, Clone)]
pub enum ForgeFault {
    /// The forge sends this answer and does nothing else.
    FixedAnswer { status: u16, headers: Vec<(&'static str, String)>, body: String },
    /// Another user opens the same change immediately before.
    Race,
    /// The forge answers as usual, but another user pushes this commit to the change before the client reads the answer.
    Push { number: u64, head: String },
    /// The forge answers as usual, but a person merges the change as this commit before the client reads the answer.
    Merge { number: u64, commit: String },
    /// The forge acts, and closes the connection without an answer.
    LostAnswer,
    /// The forge acts, and closes the connection in the middle of its answer.
    CutAnswer,
    /// The forge neither acts nor answers.
    Stall,
    /// The forge acts, sends half of its answer, and then stalls.
    StalledAnswer,
    /// The forge answers with two megabytes of spaces.
    HugeAnswer,
    /// The forge sends an answer that is not JSON.
    InvalidAnswer,
}

/// The git operations that a forge needs.
pub struct GitBackend {
    /// Returns the newest commit of a branch, or `None` if there is no such branch.
    pub head: HeadLookup,
    /// Merges a change by a method. Returns the new commit of the base, or the refusal.
    pub merge: MergeFunction,
}

pub type HeadLookup = Box<dyn Fn(&str) -> Option<String> + Send + Sync>;
pub type MergeFunction = Box<dyn Fn(&ForgePull, &str) -> Result<String, String> + Send + Sync>;

/// A repository with every branch, each with a commit that its name determines.
impl Default for GitBackend {
    fn default() -> Self {
        Self {
            head: Box::new(|branch| Some(commit(branch))),
            merge: Box::new(|pull, method| Ok(commit(&format!("{method} {}", pull.head)))),
        }
    }
}

/// Returns a commit hash that a text determines.
pub fn commit(text: &str) -> String {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325, step);
    format!("{hash:016x}{:024x}", hash.rotate_left(17))
}

/// A forge that runs until it is dropped.
pub struct Forge {
    address: SocketAddr,
    server: Arc<ForgeServer>,
    thread: Option<JoinHandle<()>>,
}

struct ForgeServer {
    flavour: ForgeFlavour,
    /// `owner/name`
    project: String,
    address: SocketAddr,
    backend: GitBackend,
    state: Mutex<ForgeState>,
}

#[derive(Default)]
struct ForgeState {
    pulls: Vec<ForgePull>,
    requests: Vec<HttpRequest>,
    faults: VecDeque<(&'static str, ForgeFault)>,
    /// Connections of stalled clients.
    stalled: Vec<TcpStream>,
    is_stopped: bool,
}

impl Forge {
    pub fn start(flavour: ForgeFlavour, project: &str, backend: GitBackend) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let state = Mutex::new(ForgeState::default());
        let server = Arc::new(ForgeServer { flavour, project: project.to_owned(), address, backend, state });
        let thread = thread::spawn({
            let server = Arc::clone(&server);
            move || serve(&listener, &server)
        });
        Ok(Self { address, server, thread: Some(thread) })
    }

    /// Returns the address of the API.
    pub fn api(&self) -> String {
        let path = match self.server.flavour {
            ForgeFlavour::GitHub => github::ROOT,
            ForgeFlavour::GitLab => gitlab::ROOT,
        };
        format!("http://{}{path}", self.address)
    }

    /// Returns all requests so far.
    pub fn requests(&self) -> Vec<HttpRequest> {
        self.server.state().requests.clone()
    }

    pub fn pulls(&self) -> Vec<ForgePull> {
        self.server.state().pulls.clone()
    }

    /// Adds a change with the next number, without a request.
    pub fn add_change(&self, branch: &str, base: &str, stage: PullStage) -> u64 {
        let head = (self.server.backend.head)(branch).unwrap_or_default();
        self.server.state().add_pull(ForgePull {
            number: 0,
            branch: branch.to_owned(),
            base: base.to_owned(),
            head,
            title: branch.to_owned(),
            body: String::new(),
            draft: false,
            stage,
            is_from_fork: false,
            refusal: None,
        })
    }

    /// Edits a change in the name of another user. Ignores an unknown number.
    pub fn edit(&self, number: u64, edit: impl FnOnce(&mut ForgePull)) {
        self.server.state().edit(number, edit);
    }

    /// Queues a fault for the next request with this method.
    pub fn fault(&self, method: &'static str, fault: ForgeFault) {
        self.server.state().faults.push_back((method, fault));
    }
}

impl Drop for Forge {
    fn drop(&mut self) {
        self.server.state().is_stopped = true;
        // Wakes the server, which waits for a connection.
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        for stream in self.server.state().stalled.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl ForgeState {
    fn add_pull(&mut self, pull: ForgePull) -> u64 {
        let number = self.pulls.len() as u64 + 1;
        self.pulls.push(ForgePull { number, ..pull });
        number
    }

    fn edit(&mut self, number: u64, edit: impl FnOnce(&mut ForgePull)) {
        if let Some(pull) = self.pulls.iter_mut().find(|pull| pull.number == number) {
            edit(pull);
        }
    }

    /// Keeps a client waiting until the forge is dropped or the client closes the connection.
    fn keep_waiting(&mut self, stream: &TcpStream) -> io::Result<()> {
        if self.is_stopped {
            return stream.shutdown(Shutdown::Both);
        }
        self.stalled.push(stream.try_clone()?);
        Ok(())
    }

    fn take_fault(&mut self, method: &str) -> Option<ForgeFault> {
        let place = self.faults.iter().position(|(wanted, _)| *wanted == method)?;
        self.faults.remove(place).map(|(_, fault)| fault)
    }
}

impl ForgeServer {
    fn state(&self) -> MutexGuard<'_, ForgeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn respond(&self, request: &HttpRequest) -> HttpResponse {
        let token = request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
        if token != Some(TOKEN) {
            return error_response(401, "Bad credentials");
        }
        match self.flavour {
            ForgeFlavour::GitHub => github::respond(self, request),
            ForgeFlavour::GitLab => gitlab::respond(self, request),
        }
    }

    /// Returns one page of a list of changes, newest first.
    fn list_page(
        &self,
        query: &RequestQuery,
        is_wanted: impl Fn(&ForgePull) -> bool,
        to_json: impl Fn(&ForgePull) -> Value,
    ) -> HttpResponse {
        let (size, page) = (query.number("per_page", 30), query.number("page", 1));
        let state = self.state();
        let wanted = state.pulls.iter().rev().filter(|pull| is_wanted(pull));
        let shown: Vec<Value> = wanted.skip(size * page.saturating_sub(1)).take(size).map(to_json).collect();
        HttpResponse::json(200, &Value::Array(shown))
    }
}

fn error_response(status: u16, message: &str) -> HttpResponse {
    HttpResponse::json(status, &json!({"message": message}))
}

fn serve(listener: &TcpListener, server: &Arc<ForgeServer>) {
    for stream in listener.incoming() {
        let Ok(stream) = stream else { continue };
        if server.state().is_stopped {
            return;
        }
        let server = Arc::clone(server);
        // A stalled connection must not block the others.
        thread::spawn(move || serve_connection(stream, &server));
    }
}

/// Answers one connection, which the client may close at any time.
fn serve_connection(mut stream: TcpStream, server: &ForgeServer) {
    let Ok(request) = HttpRequest::read(&stream) else { return };
    let fault = {
        let mut state = server.state();
        state.requests.push(request.clone());
        state.take_fault(&request.method)
    };
    let written = match fault {
        None => server.respond(&request).write(&mut stream),
        Some(ForgeFault::FixedAnswer { status, headers, body }) => {
            HttpResponse { status, headers, body }.write(&mut stream)
        }
        Some(ForgeFault::Race) => {
            server.respond(&request);
            server.respond(&request).write(&mut stream)
        }
        Some(ForgeFault::Push { number, head }) => {
            let answer = server.respond(&request);
            server.state().edit(number, |pull| pull.head = head);
            answer.write(&mut stream)
        }
        Some(ForgeFault::Merge { number, commit }) => {
            let answer = server.respond(&request);
            server.state().edit(number, |pull| pull.stage = PullStage::Merged { commit });
            answer.write(&mut stream)
        }
        Some(ForgeFault::LostAnswer) => {
            server.respond(&request);
            stream.shutdown(Shutdown::Both)
        }
        Some(ForgeFault::CutAnswer) => {
            write_half(&mut stream, &server.respond(&request)).and_then(|()| stream.shutdown(Shutdown::Both))
        }
        Some(ForgeFault::StalledAnswer) => {
            write_half(&mut stream, &server.respond(&request)).and_then(|()| server.state().keep_waiting(&stream))
        }
        Some(ForgeFault::Stall) => server.state().keep_waiting(&stream),
        Some(ForgeFault::HugeAnswer) => {
            HttpResponse { status: 200, headers: Vec::new(), body: " ".repeat(2 * 1024 * 1024) }.write(&mut stream)
        }
        Some(ForgeFault::InvalidAnswer) => {
            HttpResponse { status: 200, headers: Vec::new(), body: "<html>\u{1b}[31m".to_owned() }.write(&mut stream)
        }
    };
    drop(written);
    drain(&stream);
}

/// Writes an incomplete answer.
fn write_half(stream: &mut TcpStream, answer: &HttpResponse) -> io::Result<()> {
    let write_half = &answer.body.as_bytes()[..answer.body.len() / 2];
    let head = format!("HTTP/1.1 {} Cut\r\nContent-Length: {}\r\n\r\n", answer.status, answer.body.len());
    stream.write_all(head.as_bytes())?;
    stream.write_all(write_half)
}

/// The decoded path segments and query parameters of a request.
struct RequestQuery {
    path: Vec<String>,
    pairs: Vec<(String, String)>,
}

impl RequestQuery {
    fn parse(request: &HttpRequest, root: &str) -> Self {
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        let path = path.strip_prefix(root).unwrap_or_default().split('/').skip(1).map(percent_decode).collect();
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        Self { path, pairs: pairs.map(|(name, value)| (percent_decode(name), percent_decode(value))).collect() }
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    fn number(&self, name: &str, otherwise: usize) -> usize {
        self.get(name).and_then(|value| value.parse().ok()).unwrap_or(otherwise)
    }
}

fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, others)) = rest.split_first() {
        let code = others.get(..2).and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()).filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &others[2..];
            }
            None => {
                bytes.push(*first);
                rest = others;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
