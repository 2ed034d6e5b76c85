//! Heads, bodies and TLS handshakes, without connections.

use std::io::BufReader;

use crate::proxy::body::copy_body;
use crate::proxy::client_hello::{HelloInspection, MAX_HELLO_LENGTH, inspect_client_hello};
use crate::proxy::head::{BodyFraming, HeadReadError, HttpHead, MAX_HEAD_LENGTH, read_head};
use crate::proxy::proxy_environment;
use crate::proxy::request::ProxyRequest;
use crate::proxy::response::ForwardResponse;

fn parse(head: &str) -> Result<ProxyRequest, String> {
    let message = HttpHead::parse(head.as_bytes()).map_err(|error| error.to_string())?;
    ProxyRequest::parse(&message).map_err(|error| error.to_string())
}

fn forwarded(head: &str) -> String {
    match parse(head) {
        Ok(ProxyRequest::Forward(request)) => String::from_utf8(request.head).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn copied(body: &str, framing: BodyFraming) -> Option<String> {
    let mut written = Vec::new();
    copy_body(&mut BufReader::with_capacity(3, body.as_bytes()), &mut written, framing).ok()?;
    Some(String::from_utf8(written).unwrap())
}

#[test]
fn request_for_server_names_checked_host_and_drops_fields_of_connection() {
    let head = "POST http://API.example.com:8080?q=1 HTTP/1.1\r\nHost: evil.org\r\nProxy-Authorization: Basic x\r\n\
                Connection: X-Secret, keep-alive\r\nX-Secret: 1\r\nAccept: a\r\nTE: trailers\r\nUpgrade: h2c\r\n\
                Content-Length: 3\r\n\r\n";
    let expected = "POST /?q=1 HTTP/1.1\r\nHost: api.example.com:8080\r\nAccept: a\r\nContent-Length: 3\r\n\
                    Connection: close\r\n\r\n";
    assert_eq!(forwarded(head), expected);
    assert_eq!(
        forwarded("GET HTTP://h/a?b HTTP/1.0\r\n\r\n"),
        "GET /a?b HTTP/1.0\r\nHost: h\r\nConnection: close\r\n\r\n"
    );
}

#[test]
fn connection_field_cannot_remove_length_of_body() {
    let head = "POST http://h/ HTTP/1.1\r\nConnection: content-length, host\r\nContent-Length: 3\r\n\r\n";
    let expected = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nConnection: close\r\n\r\n";
    assert_eq!(forwarded(head), expected);
}

#[test]
fn request_that_two_programs_could_read_differently_is_refused() {
    for request in [
        "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET https://h/ HTTP/1.1\r\n\r\n",
        "GET ftp://h/ HTTP/1.1\r\n\r\n",
        "GET http://user@h/ HTTP/1.1\r\n\r\n",
        "GET http://h\\@evil/ HTTP/1.1\r\n\r\n",
        "GET http://h#@evil/ HTTP/1.1\r\n\r\n",
        "GET http://h/a b HTTP/1.1\r\n\r\n",
        "GET http://h/a\tb HTTP/1.1\r\n\r\n",
        "GET http:///a HTTP/1.1\r\n\r\n",
        "GET http://h/ HTTP/2.0\r\n\r\n",
        "GET  http://h/ HTTP/1.1\r\n\r\n",
        "G(T http://h/ HTTP/1.1\r\n\r\n",
        "GET * HTTP/1.1\r\n\r\n",
        "CONNECT h HTTP/1.1\r\n\r\n",
        "CONNECT http://h:80/ HTTP/1.1\r\n\r\n",
        "CONNECT h:443/ HTTP/1.1\r\n\r\n",
        "CONNECT h:443 HTTP/1.1\r\nContent-Length: 5\r\n\r\n",
        "CONNECT h:443 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "GET http://h/ HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n",
        "GET http://h/ HTTP/1.1\r\nA : b\r\n\r\n",
        "GET http://h/ HTTP/1.1\r\nA: b\r\n c\r\n\r\n",
        "GET http://h/ HTTP/1.1\r\nA: b\rc\r\n\r\n",
        "GET http://h/ HTTP/1.1\r\nA: b\nB: c\r\n\r\n",
        "GET http://h/ HTTP/1.1\r\nA: b\r\r\n\r\n",
        "GET http://h/ HTTP/1.1\r\nA: b\0\r\n\r\n",
        "GET http://h/ HTTP/1.1\r\nno field\r\n\r\n",
        "POST http://h/ HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n",
        "POST http://h/ HTTP/1.1\r\nContent-Length: 3, 3\r\n\r\n",
        "POST http://h/ HTTP/1.1\r\nContent-Length: +3\r\n\r\n",
        "POST http://h/ HTTP/1.1\r\nContent-Length:\r\n\r\n",
        "POST http://h/ HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "POST http://h/ HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST http://h/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n",
        "POST http://h/ HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        "POST http://h/ HTTP/1.1\r\nTransfer-Encoding: \x0bchunked\r\n\r\n",
        "POST http://h/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
    ] {
        assert!(parse(request).is_err(), "{request:?}");
    }
}

#[test]
fn head_is_read_up_to_its_end_and_refused_early() {
    let read = |mut bytes: &[u8]| read_head(&mut bytes, || Ok(())).map(|head| (head, bytes.len()));
    assert_eq!(read(b"GET\r\n\r\nrest").unwrap(), (Some(b"GET\r\n\r\n".to_vec()), 4));
    assert_eq!(read(b"").unwrap(), (None, 0));
    for malformed in [&b"GET\r\n"[..], b"GET\n\n", b"\r\n\r\n", b"\x16\x03\x01"] {
        assert!(matches!(read(malformed), Err(HeadReadError::Malformed)), "{malformed:?}");
    }
    let long = [b"GET ".as_slice(), &vec![b'a'; MAX_HEAD_LENGTH], b"\r\n\r\n"].concat();
    assert!(matches!(read(&long), Err(HeadReadError::TooLong)));
    let mut slow = BufReader::with_capacity(1, b"GET\r\nA: b\r\n\r\nrest".as_slice());
    assert_eq!(read_head(&mut slow, || Ok(())).unwrap().unwrap(), b"GET\r\nA: b\r\n\r\n");
}

#[test]
fn body_is_copied_to_its_end_and_no_further() {
    assert_eq!(copied("abcdef", BodyFraming::Length(4)).unwrap(), "abcd");
    assert_eq!(copied("abc", BodyFraming::Length(4)), None);
    assert_eq!(copied("abc", BodyFraming::UntilEnd).unwrap(), "abc");
    let chunks = "4;a=b\r\nabcd\r\n00A ; x\r\n0123456789\r\n0\r\nTrailer: t\r\n\r\nGET / HTTP/1.1\r\n\r\n";
    assert_eq!(copied(chunks, BodyFraming::Chunked).unwrap(), "4\r\nabcd\r\na\r\n0123456789\r\n0\r\n\r\n");
}

#[test]
fn chunk_that_is_malformed_ends_the_body() {
    for body in [
        "4\nabcd\r\n0\r\n\r\n",
        "4\r\nabcde\r\n0\r\n\r\n",
        "\r\nabcd\r\n",
        "+4\r\nabcd\r\n0\r\n\r\n",
        "0x4\r\nabcd\r\n",
        "-1\r\n",
        "4 4\r\nabcd\r\n",
        "10000000000000000\r\n",
        "4\r\nabcd\r\n0\r\n",
        "4\r\nab",
        "4\r\rabcd\r\n0\r\n\r\n",
    ] {
        assert_eq!(copied(body, BodyFraming::Chunked), None, "{body:?}");
    }
}

#[test]
fn response_ends_connection_of_client() {
    let parse = |head: &str| ForwardResponse::parse(head.as_bytes(), false);
    let head = "HTTP/1.1 200 OK\r\nKeep-Alive: 5\r\nConnection: keep-alive, X\r\nX: 1\r\nContent-Length: 3\r\n\r\n";
    let response = parse(head).unwrap();
    assert_eq!(response.head, b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\n");
    assert_eq!(response.body, BodyFraming::Length(3));
    assert_eq!(parse("HTTP/1.0 200\r\n\r\n").unwrap().body, BodyFraming::UntilEnd);
    assert_eq!(parse("HTTP/1.1 304 A\r\nContent-Length: 3\r\n\r\n").unwrap().body, BodyFraming::Length(0));
    assert!(parse("HTTP/1.1 100 Continue\r\n\r\n").unwrap().is_interim);
    for head in ["HTTP/1.1 101 A\r\n\r\n", "HTTP/1.1 20 A\r\n\r\n", "HTTP/1.1 2000\r\n\r\n", "ICY 200 OK\r\n\r\n"] {
        assert!(parse(head).is_err(), "{head:?}");
    }
}

/// Returns a handshake message with these extensions.
pub(super) fn hello_message(extensions: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let mut list = Vec::new();
    for (kind, content) in extensions {
        list.extend_from_slice(&kind.to_be_bytes());
        list.extend_from_slice(&(content.len() as u16).to_be_bytes());
        list.extend_from_slice(content);
    }
    let body =
        [&[3, 3][..], &[7; 32], &[0], &[0, 2, 0x13, 1], &[1, 0], &(list.len() as u16).to_be_bytes(), &list].concat();
    [&[1][..], &(body.len() as u32).to_be_bytes()[1..], &body].concat()
}

pub(super) fn server_name(name: &str) -> (u16, Vec<u8>) {
    let entry = [&[0][..], &(name.len() as u16).to_be_bytes(), name.as_bytes()].concat();
    (0, [&(entry.len() as u16).to_be_bytes()[..], &entry].concat())
}

/// Returns a message in records of at most this length.
pub(super) fn records(message: &[u8], length: usize) -> Vec<u8> {
    let record = |part: &[u8]| [&[22, 3, 1][..], &(part.len() as u16).to_be_bytes(), part].concat();
    message.chunks(length).flat_map(record).collect()
}

#[test]
pub(super) fn server_name_is_found_however_the_handshake_is_split() {
    let message = hello_message(&[(0x2b, vec![2, 3, 4]), server_name("API.example.com")]);
    let expected = HelloInspection::Complete { server_name: Some("api.example.com".into()) };
    for length in 1..=message.len() {
        let bytes = records(&message, length);
        assert_eq!(inspect_client_hello(&bytes), expected, "records of {length} bytes");
        for end in 0..bytes.len() {
            assert_eq!(
                inspect_client_hello(&bytes[..end]),
                HelloInspection::Incomplete,
                "{end} of records of {length}"
            );
        }
    }
}

#[test]
fn handshake_without_name_is_complete() {
    let expected = HelloInspection::Complete { server_name: None };
    assert_eq!(inspect_client_hello(&records(&hello_message(&[(0x2b, vec![2, 3, 4])]), 999)), expected);
}

#[test]
fn handshake_with_two_names_or_foreign_bytes_is_malformed() {
    let name = server_name("a.example");
    let mut list = name.1.clone();
    list.extend_from_slice(&name.1[2..]);
    let length = (list.len() as u16 - 2).to_be_bytes();
    list[..2].copy_from_slice(&length);
    let valid = hello_message(std::slice::from_ref(&name));
    let server_hello = [&[2][..], &valid[1..]].concat();
    let oversized = [&[1, 0xff, 0xff, 0xff][..], &valid[4..]].concat();
    let mut alert_between = records(&valid[..20], 20);
    alert_between.extend_from_slice(&[21, 3, 1, 0, 2, 1, 0]);
    for bytes in [
        records(&hello_message(&[name.clone(), name.clone()]), 999),
        records(&hello_message(&[(0, list)]), 999),
        records(&hello_message(&[server_name("a\0.example")]), 999),
        records(&hello_message(&[server_name("")]), 999),
        records(&hello_message(&[(0, vec![0, 9, 0])]), 999),
        records(&server_hello, 999),
        records(&oversized, 999),
        alert_between,
        vec![22, 3, 1, 0, 0],
        vec![22, 3, 1, 0xff, 0xff],
    ] {
        assert_eq!(inspect_client_hello(&bytes), HelloInspection::Malformed, "{bytes:?}");
    }
    let endless = records(&[&[1, 0, 0x7f, 0xff][..], &[0; MAX_HELLO_LENGTH]].concat(), 1);
    assert_eq!(inspect_client_hello(&endless[..MAX_HELLO_LENGTH + 1]), HelloInspection::Malformed);
    for bytes in [&b"GET / HTTP/1.1\r\n"[..], &[0x80, 0x2e, 1], &[22, 2], b"SSH-2.0"] {
        assert_eq!(inspect_client_hello(bytes), HelloInspection::NotTls);
    }
}

#[test]
fn environment_names_the_proxy_in_both_spellings() {
    let variables = proxy_environment(8080, "secret");
    let value = |name: &str| variables.iter().find(|(known, _)| known == name).unwrap().1.as_str();
    assert_eq!(value("HTTPS_PROXY"), "http://windlass:secret@127.0.0.1:8080");
    assert_eq!(value("http_proxy"), value("ALL_PROXY"));
    assert_eq!((value("NO_PROXY"), value("no_proxy")), ("", ""));
    assert_eq!(proxy_environment(1, "")[0].1, "http://127.0.0.1:1");
}
