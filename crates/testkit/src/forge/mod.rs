//! A forge on a free local port: the parts of GitHub's and GitLab's APIs that changes need, with a memory, and with faults
//! on demand.
//!
//! ```text
//! request ─► fault? ─► authentication ─► github or gitlab (by its paths) ─► Pulls ─► answer
//! ```
//!
//! The [`GitBackend`] answers questions about git, such as the newest commit of a branch. A test with a real repository passes
//! its own.

mod github;
mod gitlab;

use std::collections::VecDeque;
use std::io::{self, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};

pub use crate::provider::Request;

use crate::provider::http::{Response, drain};

/// The only accepted token.
pub const TOKEN: &str = "forge-token-0123456789";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flavour {
    GitHub,
    GitLab,
}

/// A change, as the forge stores it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pull {
    pub number: u64,
    pub branch: String,
    pub base: String,
    pub head: String,
    pub title: String,
    pub body: String,
    pub draft: bool,
    pub stage: PullStage,
    pub is_from_fork: bool,
    /// Why the change cannot be merged.
    pub refusal: Option<Refusal>,
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
pub struct Refusal {
    pub status: u16,
    pub message: &'static str,
    pub state: &'static str,
}

/// A fault of the next request.
#[derive(Debug, Clone)]
pub enum Fault {
    /// The forge answers this and does nothing.
    Says { status: u16, headers: Vec<(&'static str, String)>, body: String },
    /// Another user opens the same change just before.
    Race,
    /// The forge answers as usual, but another user pushes this commit to the change before the client reads the answer.
    Push { number: u64, head: String },
    /// The forge answers as usual, but a person merges the change as this commit before the client reads the answer.
    Merge { number: u64, commit: String },
    /// The forge acts, and closes the connection without an answer.
    Mute,
    /// The forge acts, and closes the connection in the middle of its answer.
    Cut,
    /// The forge neither acts nor answers.
    Stall,
    /// The forge acts, sends half of its answer, and then stalls.
    Falter,
    /// Two megabytes of spaces.
    Huge,
    /// An answer that is not JSON.
    Garbage,
}

/// The git operations that a forge needs.
pub struct GitBackend {
    /// Returns the newest commit of a branch, or `None` if there is no such branch.
    pub head: Head,
    /// Merges a change by a method. Returns the new commit of the base, or the refusal.
    pub merge: Merge,
}

pub type Head = Box<dyn Fn(&str) -> Option<String> + Send + Sync>;
pub type Merge = Box<dyn Fn(&Pull, &str) -> Result<String, String> + Send + Sync>;

/// A repository with every branch, each with a commit that its name determines.
impl Default for GitBackend {
    fn default() -> Self {
        Self {
            head: Box::new(|branch| Some(commit(branch))),
            merge: Box::new(|pull, method| Ok(commit(&format!("{method} {}", pull.head)))),
        }
    }
}

/// Returns a commit name that a text determines.
pub fn commit(text: &str) -> String {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325, step);
    format!("{hash:016x}{:024x}", hash.rotate_left(17))
}

/// A forge that runs until it is dropped.
pub struct Forge {
    address: SocketAddr,
    room: Arc<ForgeServer>,
    thread: Option<JoinHandle<()>>,
}

struct ForgeServer {
    flavour: Flavour,
    /// `owner/name`
    project: String,
    address: SocketAddr,
    ground: GitBackend,
    desk: Mutex<ForgeState>,
}

#[derive(Default)]
struct ForgeState {
    pulls: Vec<Pull>,
    requests: Vec<Request>,
    faults: VecDeque<(&'static str, Fault)>,
    /// Connections of stalled clients.
    stalled: Vec<TcpStream>,
    is_over: bool,
}

impl Forge {
    pub fn start(flavour: Flavour, project: &str, ground: GitBackend) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let desk = Mutex::new(ForgeState::default());
        let room = Arc::new(ForgeServer { flavour, project: project.to_owned(), address, ground, desk });
        let thread = thread::spawn({
            let room = Arc::clone(&room);
            move || serve(&listener, &room)
        });
        Ok(Self { address, room, thread: Some(thread) })
    }

    /// Returns the address of the API.
    pub fn api(&self) -> String {
        let path = match self.room.flavour {
            Flavour::GitHub => github::ROOT,
            Flavour::GitLab => gitlab::ROOT,
        };
        format!("http://{}{path}", self.address)
    }

    /// Returns all requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.room.desk().requests.clone()
    }

    pub fn pulls(&self) -> Vec<Pull> {
        self.room.desk().pulls.clone()
    }

    /// Adds a change that no request asked for, with the next number.
    pub fn put(&self, branch: &str, base: &str, stage: PullStage) -> u64 {
        let head = (self.room.ground.head)(branch).unwrap_or_default();
        self.room.desk().add(Pull {
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

    /// Edits a change as another user would. An unknown number is ignored.
    pub fn edit(&self, number: u64, edit: impl FnOnce(&mut Pull)) {
        self.room.desk().edit(number, edit);
    }

    /// Queues a fault for the next request with this method.
    pub fn fault(&self, method: &'static str, fault: Fault) {
        self.room.desk().faults.push_back((method, fault));
    }
}

impl Drop for Forge {
    fn drop(&mut self) {
        self.room.desk().is_over = true;
        // Wakes the server, which waits for a connection.
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        for stream in self.room.desk().stalled.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl ForgeState {
    fn add(&mut self, pull: Pull) -> u64 {
        let number = self.pulls.len() as u64 + 1;
        self.pulls.push(Pull { number, ..pull });
        number
    }

    fn edit(&mut self, number: u64, edit: impl FnOnce(&mut Pull)) {
        if let Some(pull) = self.pulls.iter_mut().find(|pull| pull.number == number) {
            edit(pull);
        }
    }

    /// Keeps a client waiting until the forge is dropped or the client closes the connection.
    fn keep_waiting(&mut self, stream: &TcpStream) -> io::Result<()> {
        if self.is_over {
            return stream.shutdown(Shutdown::Both);
        }
        self.stalled.push(stream.try_clone()?);
        Ok(())
    }

    fn take_fault(&mut self, method: &str) -> Option<Fault> {
        let place = self.faults.iter().position(|(wanted, _)| *wanted == method)?;
        self.faults.remove(place).map(|(_, fault)| fault)
    }
}

impl ForgeServer {
    fn desk(&self) -> MutexGuard<'_, ForgeState> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, request: &Request) -> Response {
        let token = request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
        if token != Some(TOKEN) {
            return says(401, "Bad credentials");
        }
        match self.flavour {
            Flavour::GitHub => github::answer(self, request),
            Flavour::GitLab => gitlab::answer(self, request),
        }
    }

    /// Returns one page of a list of changes, newest first.
    fn list(&self, query: &Query, is_wanted: impl Fn(&Pull) -> bool, shape: impl Fn(&Pull) -> Value) -> Response {
        let (size, page) = (query.number("per_page", 30), query.number("page", 1));
        let desk = self.desk();
        let wanted = desk.pulls.iter().rev().filter(|pull| is_wanted(pull));
        let shown: Vec<Value> = wanted.skip(size * page.saturating_sub(1)).take(size).map(shape).collect();
        Response::json(200, &Value::Array(shown))
    }
}

fn says(status: u16, message: &str) -> Response {
    Response::json(status, &json!({"message": message}))
}

fn serve(listener: &TcpListener, room: &Arc<ForgeServer>) {
    for stream in listener.incoming() {
        let Ok(stream) = stream else { continue };
        if room.desk().is_over {
            return;
        }
        let room = Arc::clone(room);
        // A stalled connection must not block the others.
        thread::spawn(move || attend(stream, &room));
    }
}

/// Answers one connection, which the client may close at any time.
fn attend(mut stream: TcpStream, room: &ForgeServer) {
    let Ok(request) = Request::read(&stream) else { return };
    let fault = {
        let mut desk = room.desk();
        desk.requests.push(request.clone());
        desk.take_fault(&request.method)
    };
    let written = match fault {
        None => room.answer(&request).write(&mut stream),
        Some(Fault::Says { status, headers, body }) => Response { status, headers, body }.write(&mut stream),
        Some(Fault::Race) => {
            room.answer(&request);
            room.answer(&request).write(&mut stream)
        }
        Some(Fault::Push { number, head }) => {
            let answer = room.answer(&request);
            room.desk().edit(number, |pull| pull.head = head);
            answer.write(&mut stream)
        }
        Some(Fault::Merge { number, commit }) => {
            let answer = room.answer(&request);
            room.desk().edit(number, |pull| pull.stage = PullStage::Merged { commit });
            answer.write(&mut stream)
        }
        Some(Fault::Mute) => {
            room.answer(&request);
            stream.shutdown(Shutdown::Both)
        }
        Some(Fault::Cut) => half(&mut stream, &room.answer(&request)).and_then(|()| stream.shutdown(Shutdown::Both)),
        Some(Fault::Falter) => {
            half(&mut stream, &room.answer(&request)).and_then(|()| room.desk().keep_waiting(&stream))
        }
        Some(Fault::Stall) => room.desk().keep_waiting(&stream),
        Some(Fault::Huge) => {
            Response { status: 200, headers: Vec::new(), body: " ".repeat(2 * 1024 * 1024) }.write(&mut stream)
        }
        Some(Fault::Garbage) => {
            Response { status: 200, headers: Vec::new(), body: "<html>\u{1b}[31m".to_owned() }.write(&mut stream)
        }
    };
    drop(written);
    drain(&stream);
}

/// Writes an incomplete answer.
fn half(stream: &mut TcpStream, answer: &Response) -> io::Result<()> {
    let half = &answer.body.as_bytes()[..answer.body.len() / 2];
    let head = format!("HTTP/1.1 {} Cut\r\nContent-Length: {}\r\n\r\n", answer.status, answer.body.len());
    stream.write_all(head.as_bytes())?;
    stream.write_all(half)
}

/// The decoded path segments and query parameters of a request.
struct Query {
    path: Vec<String>,
    pairs: Vec<(String, String)>,
}

impl Query {
    fn of(request: &Request, root: &str) -> Self {
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        let path = path.strip_prefix(root).unwrap_or_default().split('/').skip(1).map(decoded).collect();
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        Self { path, pairs: pairs.map(|(name, value)| (decoded(name), decoded(value))).collect() }
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    fn number(&self, name: &str, otherwise: usize) -> usize {
        self.get(name).and_then(|value| value.parse().ok()).unwrap_or(otherwise)
    }
}

fn decoded(text: &str) -> String {
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
