//! An HTTP server for tests: one response per connection, on a free local port.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use serde_json::Value;

/// The reaction of a server to a request.
pub enum ServerReply {
    /// The response after `HTTP/1.1 `: status, headers and body.
    Response(String),
    /// No response until the client closes the connection.
    Stall,
}

/// A request that the server has received.
pub struct ReceivedRequest {
    /// The request line and the headers, in lower case.
    pub head: String,
    pub body: Value,
}

impl ReceivedRequest {
    /// Returns the value of a header, or an empty string.
    pub fn header(&self, name: &str) -> &str {
        let value = self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        value.unwrap_or_default()
    }
}

/// A server with a scripted response for each connection.
pub struct TestHttpServer {
    address: SocketAddr,
    requests: Receiver<ReceivedRequest>,
}

impl TestHttpServer {
    /// Starts a server that sends these replies in order, and closes after the last one.
    pub fn new(replies: Vec<ServerReply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, requests) = channel();
        thread::spawn(move || {
            for reply in replies {
                let Ok((stream, _)) = listener.accept() else { return };
                let sender = sender.clone();
                // A stalled connection must not block the next one.
                thread::spawn(move || serve_connection(stream, reply, |request| drop(sender.send(request))));
            }
        });
        Self { address, requests }
    }

    /// Starts a server that accepts every request, and appends it to a file before it responds.
    pub fn recording_to(file: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (_, requests) = channel();
        thread::spawn(move || {
            while let Ok((mut stream, _)) = listener.accept() {
                let request = read_request(&mut stream);
                let mut file = OpenOptions::new().create(true).append(true).open(&file).unwrap();
                writeln!(file, "{}", request.body).unwrap();
                let ServerReply::Response(text) = http_response("200 OK", "") else { continue };
                let _ = stream.write_all(format!("HTTP/1.1 {text}").as_bytes());
            }
        });
        Self { address, requests }
    }

    pub fn host(&self) -> String {
        self.address.to_string()
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Waits for the next request and returns it.
    pub fn next_request(&self) -> ReceivedRequest {
        self.requests.recv().expect("a request within the script")
    }

    /// Returns whether no request is waiting.
    pub fn is_idle(&self) -> bool {
        self.requests.try_recv().is_err()
    }
}

/// Returns a reply with this status and body.
pub fn http_response(status: &str, body: &str) -> ServerReply {
    ServerReply::Response(format!("{status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len()))
}

/// Reads a request, sends the reply, reports the request, and waits until the client closes the connection.
fn serve_connection(mut stream: TcpStream, reply: ServerReply, report: impl FnOnce(ReceivedRequest)) {
    let request = read_request(&mut stream);
    if let ServerReply::Response(text) = reply {
        let _ = stream.write_all(format!("HTTP/1.1 {text}").as_bytes());
        let _ = stream.shutdown(Shutdown::Write);
    }
    report(request);
    while stream.read(&mut [0; 1024]).is_ok_and(|read| read > 0) {}
}

/// Reads the head and the body, as far as they arrive.
fn read_request(stream: &mut TcpStream) -> ReceivedRequest {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    let _ = stream.read_exact(&mut body);
    ReceivedRequest { head, body: serde_json::from_slice(&body).unwrap_or_default() }
}
