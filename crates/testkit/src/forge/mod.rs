//! A forge on a free port of this machine: as much of GitHub's and GitLab's APIs as changes need, with a memory, and with
//! faults on demand.
//!
//! ```text
//! request ─► fault? ─► who asks? ─► github or gitlab (by its paths) ─► Pulls ─► answer
//! ```
//!
//! What git would know, such as the newest commit of a branch, is asked of the [`Ground`]; a test that has a real repository
//! gives its own.

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

/// The only token that is accepted.
pub const TOKEN: &str = "forge-token-0123456789";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flavour {
    GitHub,
    GitLab,
}

/// A change as the forge remembers it.
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
    /// Why it cannot be merged.
    pub refusal: Option<Refusal>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PullStage {
    Open,
    Merged { commit: String },
    Closed,
}

/// How the forge says no to a merge: the status of the answer, its message, and the state that a look at the change shows
/// (`mergeable_state`, `detailed_merge_status`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub status: u16,
    pub message: &'static str,
    pub state: &'static str,
}

/// What becomes of the next request.
#[derive(Debug, Clone)]
pub enum Fault {
    /// It is answered so, and nothing is done.
    Says { status: u16, headers: Vec<(&'static str, String)>, body: String },
    /// Somebody else opens the same change just before.
    Race,
    /// It is answered as ever, but just before the answer is read somebody pushes this commit to the change.
    Push { number: u64, head: String },
    /// It is answered as ever, but just before the answer is read a person merges the change as this commit.
    Merge { number: u64, commit: String },
    /// It is done, and the forge hangs up without an answer.
    Mute,
    /// It is done, and the forge hangs up in the middle of its answer.
    Cut,
    /// Nothing is done, and nobody answers.
    Stall,
    /// It is done, and half of the answer comes, and then nothing.
    Falter,
    /// Two megabytes of spaces.
    Huge,
    /// What is no JSON.
    Garbage,
}

/// What a forge asks git.
pub struct Ground {
    /// The newest commit of a branch; none if there is no such branch.
    pub head: Head,
    /// Merges a change by a method and tells the commit that the base got, or why not.
    pub merge: Merge,
}

pub type Head = Box<dyn Fn(&str) -> Option<String> + Send + Sync>;
pub type Merge = Box<dyn Fn(&Pull, &str) -> Result<String, String> + Send + Sync>;

/// Every branch is there, with a commit that only its name decides.
impl Default for Ground {
    fn default() -> Self {
        Self {
            head: Box::new(|branch| Some(commit(branch))),
            merge: Box::new(|pull, method| Ok(commit(&format!("{method} {}", pull.head)))),
        }
    }
}

/// A commit's name that a text decides.
pub fn commit(text: &str) -> String {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325, step);
    format!("{hash:016x}{:024x}", hash.rotate_left(17))
}

/// A forge that is there until it is dropped.
pub struct Forge {
    address: SocketAddr,
    room: Arc<Room>,
    thread: Option<JoinHandle<()>>,
}

struct Room {
    flavour: Flavour,
    /// `owner/name`
    project: String,
    address: SocketAddr,
    ground: Ground,
    desk: Mutex<Desk>,
}

#[derive(Default)]
struct Desk {
    pulls: Vec<Pull>,
    requests: Vec<Request>,
    faults: VecDeque<(&'static str, Fault)>,
    /// Who is kept waiting.
    stalled: Vec<TcpStream>,
    is_over: bool,
}

impl Forge {
    pub fn start(flavour: Flavour, project: &str, ground: Ground) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let desk = Mutex::new(Desk::default());
        let room = Arc::new(Room { flavour, project: project.to_owned(), address, ground, desk });
        let thread = thread::spawn({
            let room = Arc::clone(&room);
            move || serve(&listener, &room)
        });
        Ok(Self { address, room, thread: Some(thread) })
    }

    /// The address of its API.
    pub fn api(&self) -> String {
        let path = match self.room.flavour {
            Flavour::GitHub => github::ROOT,
            Flavour::GitLab => gitlab::ROOT,
        };
        format!("http://{}{path}", self.address)
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.room.desk().requests.clone()
    }

    pub fn pulls(&self) -> Vec<Pull> {
        self.room.desk().pulls.clone()
    }

    /// Puts a change there that nobody asked for, with the next number.
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

    /// Somebody else does something to a change. A number that is not there is left alone.
    pub fn edit(&self, number: u64, edit: impl FnOnce(&mut Pull)) {
        self.room.desk().edit(number, edit);
    }

    /// The next request with this method meets a fault. More of them are met one after another.
    pub fn fault(&self, method: &'static str, fault: Fault) {
        self.room.desk().faults.push_back((method, fault));
    }
}

impl Drop for Forge {
    fn drop(&mut self) {
        self.room.desk().is_over = true;
        // Whoever waits for a connection gets one.
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        for stream in self.room.desk().stalled.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Desk {
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

    /// Until the forge is dropped, or the other side hangs up.
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

impl Room {
    fn desk(&self) -> MutexGuard<'_, Desk> {
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

    /// The changes that a list wants, newest first, one page of them.
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

fn serve(listener: &TcpListener, room: &Arc<Room>) {
    for stream in listener.incoming() {
        let Ok(stream) = stream else { continue };
        if room.desk().is_over {
            return;
        }
        let room = Arc::clone(room);
        // Whoever stalls must not keep the others waiting.
        thread::spawn(move || attend(stream, &room));
    }
}

/// The other side may hang up at any time.
fn attend(mut stream: TcpStream, room: &Room) {
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

/// An answer that breaks off.
fn half(stream: &mut TcpStream, answer: &Response) -> io::Result<()> {
    let half = &answer.body.as_bytes()[..answer.body.len() / 2];
    let head = format!("HTTP/1.1 {} Cut\r\nContent-Length: {}\r\n\r\n", answer.status, answer.body.len());
    stream.write_all(head.as_bytes())?;
    stream.write_all(half)
}

/// A path in its parts, and the query behind it, all decoded.
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
