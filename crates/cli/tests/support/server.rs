//! A web server for tests: one response per connection, on a free port of this machine.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use serde_json::Value;

/// The reaction of a server to a request.
pub enum Answer {
    /// The end of a status line, headers and a body.
    Says(String),
    /// Nothing, until the other side hangs up.
    Stalls,
}

/// A request that the server got.
pub struct Asked {
    /// The headers in lower case.
    pub head: String,
    pub body: Value,
}

impl Asked {
    pub fn header(&self, name: &str) -> &str {
        let found = self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        found.unwrap_or_default()
    }
}

pub struct Server {
    address: SocketAddr,
    asked: Receiver<Asked>,
}

impl Server {
    /// A request after the last response gets none.
    pub fn new(answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, asked) = channel();
        thread::spawn(move || {
            for answer in answers {
                let Ok((stream, _)) = listener.accept() else { return };
                let tell = tell.clone();
                // A stalled connection must not block the next one.
                thread::spawn(move || play(stream, answer, |asked| drop(tell.send(asked))));
            }
        });
        Self { address, asked }
    }

    /// A server that accepts every request, and writes it into a file before it responds.
    pub fn keeping(file: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (_, asked) = channel();
        thread::spawn(move || {
            while let Ok((mut stream, _)) = listener.accept() {
                let asked = request(&mut stream);
                let mut file = OpenOptions::new().create(true).append(true).open(&file).unwrap();
                writeln!(file, "{}", asked.body).unwrap();
                let Answer::Says(text) = says("200 OK", "") else { continue };
                let _ = stream.write_all(format!("HTTP/1.1 {text}").as_bytes());
            }
        });
        Self { address, asked }
    }

    pub fn host(&self) -> String {
        self.address.to_string()
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns the next request.
    pub fn asked(&self) -> Asked {
        self.asked.recv().expect("a request within the script")
    }

    pub fn is_idle(&self) -> bool {
        self.asked.try_recv().is_err()
    }
}

pub fn says(status: &str, body: &str) -> Answer {
    Answer::Says(format!("{status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len()))
}

fn play(mut stream: TcpStream, answer: Answer, tell: impl FnOnce(Asked)) {
    let asked = request(&mut stream);
    if let Answer::Says(text) = answer {
        let _ = stream.write_all(format!("HTTP/1.1 {text}").as_bytes());
        let _ = stream.shutdown(Shutdown::Write);
    }
    tell(asked);
    while stream.read(&mut [0; 1024]).is_ok_and(|read| read > 0) {}
}

/// Reads head and body, as far as they arrive.
fn request(stream: &mut TcpStream) -> Asked {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    let _ = stream.read_exact(&mut body);
    Asked { head, body: serde_json::from_slice(&body).unwrap_or_default() }
}
