//! Properties of the proxy, for tests and fuzzing only.
//!
//! Each law takes bytes and panics if it does not hold.

use std::io::BufReader;

use crate::HostPattern;
use crate::proxy::body::copy_body;
use crate::proxy::client_hello::{HelloInspection, inspect_client_hello};
use crate::proxy::head::{BodyFraming, HttpHead, read_head};
use crate::proxy::request::{ForwardRequest, ProxyRequest};
use crate::proxy::response::ForwardResponse;

/// Checks that a request leads to an allowed host only, and that the server cannot read it in another way than the proxy.
pub fn check_proxy_request(bytes: &[u8]) {
    check_first_bytes(bytes);
    _ = ForwardResponse::parse(bytes, false);
    let mut rest = bytes;
    let Ok(Some(head)) = read_head(&mut rest, || Ok(())) else { return };
    assert_eq!([&head, rest].concat(), bytes, "the head and the rest are what the client sent");
    let Ok(request) = HttpHead::parse(&head).and_then(|message| ProxyRequest::parse(&message)) else { return };
    let target = request.target();
    let hosts = ["allowed.example", "*.below.example:8080", "127.0.0.1"].map(|pattern| pattern.parse::<HostPattern>());
    let is_allowed = target.is_allowed(&hosts.map(|pattern| pattern.expect("a pattern")));
    let is_web_port = target.port == 80 || target.port == 443;
    let is_expected = match target.host.as_str() {
        "allowed.example" | "127.0.0.1" => is_web_port,
        host => host.ends_with(".below.example") && target.port == 8080,
    };
    assert_eq!(is_allowed, is_expected, "{target}");
    if let ProxyRequest::Forward(request) = &request {
        check_forwarded_head(request);
        check_forwarded_body(request.body, rest);
    }
}

/// Checks that more bytes do not change what the first bytes of a tunnel are.
fn check_first_bytes(bytes: &[u8]) {
    let whole = inspect_client_hello(bytes);
    for length in (0..bytes.len()).step_by(bytes.len() / 16 + 1) {
        let part = inspect_client_hello(&bytes[..length]);
        assert!(part == HelloInspection::Incomplete || part == whole, "{part:?} became {whole:?}");
    }
}

/// Checks a head that a server gets: each line is one line, and what decides over host and body occurs once.
fn check_forwarded_head(request: &ForwardRequest) {
    let head = String::from_utf8_lossy(&request.head);
    let text = head.strip_suffix("\r\n\r\n").expect("the head ends");
    let lines: Vec<&str> = text.split("\r\n").collect();
    assert!(lines.iter().all(|line| !line.is_empty() && !line.contains(['\r', '\n', '\0'])), "{lines:?}");
    let parts: Vec<&str> = lines[0].split_whitespace().collect();
    assert!(parts.len() == 3 && parts[1].starts_with('/') && parts[2].starts_with("HTTP/1."), "{}", lines[0]);
    let values = |name: &str| {
        let fields = lines[1..].iter().map(|line| line.split_once(':').expect("a field"));
        let named = fields.filter(|(found, _)| found.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.trim().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(values("host"), [request.target.host_header()]);
    assert_eq!(values("connection"), ["close"]);
    assert!(values("proxy-authorization").is_empty() && values("upgrade").is_empty(), "{lines:?}");
    match (request.body, &values("content-length")[..], &values("transfer-encoding")[..]) {
        (BodyFraming::Length(0), [], []) => {}
        (BodyFraming::Length(length), [written], []) => assert_eq!(length.to_string(), *written),
        (BodyFraming::Chunked, [], [encoding]) => assert_eq!(encoding, "chunked"),
        (body, ..) => panic!("{body:?} in {lines:?}"),
    }
}

/// Checks that a body that a server gets ends where the server expects its end.
fn check_forwarded_body(framing: BodyFraming, bytes: &[u8]) {
    let mut written = Vec::new();
    let outcome = copy_body(&mut BufReader::new(bytes), &mut written, framing);
    match (framing, outcome) {
        (BodyFraming::Length(length), Ok(())) => assert_eq!(Some(&*written), bytes.get(..length as usize)),
        (BodyFraming::Chunked, Ok(())) => {
            let mut rest = &written[..];
            while let Some(end) = rest.windows(2).position(|window| window == b"\r\n") {
                let line = std::str::from_utf8(&rest[..end]).expect("digits");
                let length = usize::from_str_radix(line, 16).expect("a length");
                assert!(rest[end + 2 + length..].starts_with(b"\r\n"), "a chunk ends");
                rest = &rest[end + 2 + length + 2..];
                assert_eq!(length == 0, rest.is_empty(), "the last chunk is the end");
            }
            assert!(rest.is_empty());
        }
        (_, Ok(())) => panic!("the body of a request ends before the connection does"),
        (_, Err(_)) => {}
    }
}

#[cfg(test)]
mod tests {
    use windlass_testkit::hostile::check_law;

    #[test]
    fn proxy_request_leads_to_allowed_host_only() {
        check_law("proxy_request", super::check_proxy_request);
    }
}
