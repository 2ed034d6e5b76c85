//! A scripted server: one answer per connection, on a free port of this machine.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

pub enum StubAnswer {
    /// Reads the request, sends these bytes, and closes the connection.
    Close(Vec<u8>),
    /// Reads the request, sends this text, and waits until the client closes the connection.
    Stall(&'static str),
    /// Sends this text after the first bytes of the client, without reading a whole request.
    Interrupt(&'static str),
}

pub struct StubServer {
    pub address: SocketAddr,
    is_stopped: Arc<AtomicBool>,
    thread: JoinHandle<Vec<String>>,
}

impl StubServer {
    pub fn new(script: Vec<StubAnswer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("its address");
        let is_stopped = Arc::new(AtomicBool::new(false));
        let thread = thread::spawn({
            let is_stopped = Arc::clone(&is_stopped);
            move || serve(&listener, script, &is_stopped)
        });
        Self { address, is_stopped, thread }
    }

    /// Starts a server with one answer: the rest of a status line, headers and body.
    pub fn with_answer(answer: &str) -> Self {
        Self::new(vec![http_answer(answer)])
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Stops the server and returns all requests, including those after the end of the script.
    pub fn into_requests(self) -> Vec<String> {
        self.is_stopped.store(true, Ordering::SeqCst);
        // Wakes the server, which waits for a connection.
        drop(TcpStream::connect(self.address));
        self.thread.join().expect("the server does not fail")
    }
}

pub fn http_answer(answer: &str) -> StubAnswer {
    StubAnswer::Close(format!("HTTP/1.1 {answer}").into_bytes())
}

fn serve(listener: &TcpListener, script: Vec<StubAnswer>, is_stopped: &AtomicBool) -> Vec<String> {
    let mut requests = Vec::new();
    let mut script = script.into_iter();
    loop {
        let (stream, _) = listener.accept().expect("a connection");
        if is_stopped.load(Ordering::SeqCst) {
            return requests;
        }
        match script.next() {
            Some(answer) => requests.push(send_answer(stream, answer)),
            None => requests.push("more than the script has answers for".to_owned()),
        }
    }
}

/// Sends one answer, and returns the request. The client may close the connection at any time.
fn send_answer(mut stream: TcpStream, answer: StubAnswer) -> String {
    let request = match &answer {
        StubAnswer::Interrupt(_) => {
            let read = stream.read(&mut [0; 16 * 1024]).unwrap_or_default();
            format!("{read} bytes")
        }
        _ => read_request(&mut stream),
    };
    let hangs_up = matches!(answer, StubAnswer::Close(_));
    let text = match answer {
        StubAnswer::Close(bytes) => bytes,
        StubAnswer::Stall(text) | StubAnswer::Interrupt(text) => text.into(),
    };
    let _ = stream.write_all(&text);
    if hangs_up {
        let _ = stream.shutdown(Shutdown::Write);
    }
    while stream.read(&mut [0; 1024]).is_ok_and(|read| read > 0) {}
    request
}

/// Reads the head and the body of a request, up to the end of the connection.
fn read_request(stream: &mut TcpStream) -> String {
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
