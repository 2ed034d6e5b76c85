//! A scripted server: one answer per connection, on a free port of this machine.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

pub enum Answer {
    /// Reads the request, answers with this, and closes the connection.
    Says(Vec<u8>),
    /// Reads the request, answers with this, and waits until the client closes the connection.
    Stalls(&'static str),
    /// Answers the first bytes with this, without reading a request.
    Interrupts(&'static str),
}

pub struct Server {
    pub address: SocketAddr,
    over: Arc<AtomicBool>,
    thread: JoinHandle<Vec<String>>,
}

impl Server {
    pub fn new(script: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("its address");
        let over = Arc::new(AtomicBool::new(false));
        let thread = thread::spawn({
            let over = Arc::clone(&over);
            move || serve(&listener, script, &over)
        });
        Self { address, over, thread }
    }

    /// A server with one answer: the rest of a status line, headers and body.
    pub fn saying(answer: &str) -> Self {
        Self::new(vec![says(answer)])
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns every request, once all of them are over. A request after the end of the script counts too.
    pub fn seen(self) -> Vec<String> {
        self.over.store(true, Ordering::SeqCst);
        // Wakes the server, which waits for a connection.
        drop(TcpStream::connect(self.address));
        self.thread.join().expect("the server does not fail")
    }
}

pub fn says(answer: &str) -> Answer {
    Answer::Says(format!("HTTP/1.1 {answer}").into_bytes())
}

fn serve(listener: &TcpListener, script: Vec<Answer>, over: &AtomicBool) -> Vec<String> {
    let mut seen = Vec::new();
    let mut script = script.into_iter();
    loop {
        let (stream, _) = listener.accept().expect("a connection");
        if over.load(Ordering::SeqCst) {
            return seen;
        }
        match script.next() {
            Some(answer) => seen.push(play(stream, answer)),
            None => seen.push("more than the script has answers for".to_owned()),
        }
    }
}

/// Plays one answer, and returns the request. The client may close the connection at any time.
fn play(mut stream: TcpStream, answer: Answer) -> String {
    let request = match &answer {
        Answer::Interrupts(_) => {
            let read = stream.read(&mut [0; 16 * 1024]).unwrap_or_default();
            format!("{read} bytes")
        }
        _ => request(&mut stream),
    };
    let hangs_up = matches!(answer, Answer::Says(_));
    let text = match answer {
        Answer::Says(bytes) => bytes,
        Answer::Stalls(text) | Answer::Interrupts(text) => text.into(),
    };
    let _ = stream.write_all(&text);
    if hangs_up {
        let _ = stream.shutdown(Shutdown::Write);
    }
    while stream.read(&mut [0; 1024]).is_ok_and(|read| read > 0) {}
    request
}

/// Head and body, as far as they arrive.
fn request(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    let mut byte = [0];
    while !text.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => text.push(byte[0]),
            _ => break,
        }
    }
    let head = String::from_utf8(text).expect("a head is text").to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    let _ = stream.read_exact(&mut body);
    head + &String::from_utf8(body).expect("a body is text")
}
