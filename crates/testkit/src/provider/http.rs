//! The parts of HTTP that agents need: one request and one response per connection.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};

use serde_json::Value;

/// A request of a client.
#[derive(Debug, Clone)]
pub struct HttpRequest {
    pub method: String,
    pub path: String,
    /// Header names in lower case.
    pub headers: Vec<(String, String)>,
    /// The parsed JSON body. Null for any other body.
    pub body: Value,
}

impl HttpRequest {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    pub fn read(stream: &TcpStream) -> io::Result<Self> {
        let mut reader = BufReader::new(stream);
        let first = read_line(&mut reader)?;
        let mut words = first.split(' ').map(str::to_owned);
        let (Some(method), Some(path)) = (words.next(), words.next()) else {
            return Err(invalid_data("no request line"));
        };
        let mut headers = Vec::new();
        loop {
            let line = read_line(&mut reader)?;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut request = Self { method, path, headers, body: Value::Null };
        let length = request.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        let chunked = request.header("transfer-encoding").is_some_and(|coding| coding.contains("chunked"));
        let body = if chunked { read_chunks(&mut reader)? } else { read_exactly_bytes(&mut reader, length)? };
        request.body = serde_json::from_slice(&body).unwrap_or_default();
        Ok(request)
    }
}

/// A response of the server.
#[derive(Debug, Clone)]
pub struct HttpResponse {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: String,
}

impl HttpResponse {
    pub fn json(status: u16, body: &Value) -> Self {
        Self { status, headers: vec![("Content-Type", "application/json".to_owned())], body: body.to_string() }
    }

    /// Returns a response with server-sent events.
    pub fn events(events: &[ServerSentEvent]) -> Self {
        let mut body = String::new();
        for ServerSentEvent { name, data } in events {
            if let Some(name) = name {
                body += &format!("event: {name}\n");
            }
            body += &format!("data: {data}\n\n");
        }
        Self { status: 200, headers: vec![("Content-Type", "text/event-stream".to_owned())], body }
    }

    pub fn write(&self, stream: &mut TcpStream) -> io::Result<()> {
        let mut head = format!("HTTP/1.1 {} {}\r\n", self.status, status_reason(self.status));
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += &format!("Content-Length: {}\r\nConnection: close\r\n\r\n", self.body.len());
        stream.write_all(head.as_bytes())?;
        stream.write_all(self.body.as_bytes())?;
        stream.shutdown(Shutdown::Write)
    }
}

/// An event of a stream. Some APIs have events without names.
#[derive(Debug, Clone)]
pub struct ServerSentEvent {
    pub name: Option<&'static str>,
    pub data: String,
}

impl ServerSentEvent {
    pub fn plain(data: &Value) -> Self {
        Self { name: None, data: data.to_string() }
    }

    pub fn named(name: &'static str, data: &Value) -> Self {
        Self { name: Some(name), data: data.to_string() }
    }
}

/// Reads until the client closes the connection.
pub fn drain(mut stream: &TcpStream) {
    while stream.read(&mut [0; 1024]).is_ok_and(|read| read > 0) {}
}

fn read_line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Err(invalid_data("the other side hung up"));
    }
    line.truncate(line.trim_end().len());
    Ok(line)
}

fn read_exactly_bytes(reader: &mut impl Read, length: usize) -> io::Result<Vec<u8>> {
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(body)
}

fn read_chunks(reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let size = usize::from_str_radix(&read_line(reader)?, 16).map_err(|_| invalid_data("no length of a chunk"))?;
        body.extend(read_exactly_bytes(reader, size)?);
        read_line(reader)?;
        if size == 0 {
            return Ok(body);
        }
    }
}

fn invalid_data(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

fn status_reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        404 => "Not Found",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        _ => "Other",
    }
}
