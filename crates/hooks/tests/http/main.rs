//! Webhooks against servers on this machine.

mod server;

use std::collections::BTreeMap;
use std::error::Error;
use std::time::{Duration, Instant};

use server::{Answer, Server, says};
use windlass_hooks::http::{
    WebhookError, WebhookMethod, WebhookOutcome, WebhookRequest, WebhookResponse, classify_response, expand_variables,
    send_request,
};

/// Long enough for a busy machine; no test waits for it.
const PATIENT: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(200);
/// An address without a listener: the port is reserved, and no test server can get it.
const UNUSED_ADDRESS: &str = "127.0.0.1:1";
const DONE: &str = "200 OK\r\nContent-Length: 4\r\n\r\ndone";

fn request(url: String) -> WebhookRequest {
    WebhookRequest {
        url,
        method: WebhookMethod::Post,
        headers: BTreeMap::new(),
        body: br#"{"a":1}"#.to_vec(),
        timeout: PATIENT,
        key: "key-1".to_owned(),
    }
}

fn headers(given: &[(&str, &str)]) -> BTreeMap<String, String> {
    given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn whole(status: u16, body: &str) -> WebhookResponse {
    WebhookResponse { status, body: body.into(), cut: false, retry_after: None }
}

/// The error's kind and texts, with the port of the test written as `PORT`.
#[track_caller]
fn failure(request: &WebhookRequest) -> (WebhookError, String) {
    let error = send_request(request).expect_err("there is no answer");
    let port = request.url.split(':').nth(2).and_then(|rest| rest.split('/').next()).unwrap_or("none").to_owned();
    let text = error.to_string().replace(&port, "PORT");
    (error, text)
}

#[test]
fn the_request_arrives_whole() {
    let server = Server::saying(DONE);
    let response = send_request(&request(server.url("/hook?a=b"))).expect("an answer");
    assert_eq!(response, whole(200, "done"));
    assert_eq!(classify_response(&Ok(response)), WebhookOutcome::Ok("done".to_owned()));
    let address = server.address;
    let seen = server.seen();
    let [seen] = seen.as_slice() else { panic!("{seen:?}") };
    let (head, body) = seen.split_once("\r\n\r\n").expect("a head and a body");
    let mut lines: Vec<_> = head.lines().collect();
    assert_eq!(lines.remove(0), "post /hook?a=b http/1.1");
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "accept: */*",
            "content-length: 7",
            "content-type: application/json",
            &format!("host: {address}"),
            "idempotency-key: key-1",
            concat!("user-agent: windlass/", env!("CARGO_PKG_VERSION")),
        ]
    );
    assert_eq!(body, r#"{"a":1}"#);
}

#[test]
fn methods_are_sent_by_their_names() {
    for (name, body) in [("post", true), ("PUT", true), ("Patch", true), ("delete", true), ("get", false)] {
        let server = Server::saying(DONE);
        let method = WebhookMethod::parse_name(name).expect("it is known");
        send_request(&WebhookRequest { method, ..request(server.url("/")) }).expect("an answer");
        let seen = server.seen().concat();
        assert!(seen.starts_with(&format!("{} / ", name.to_ascii_lowercase())), "{seen}");
        assert_eq!(seen.ends_with(r#"{"a":1}"#), body, "{seen}");
    }
    assert_eq!(WebhookMethod::parse_name("CONNECT"), None);
}

#[test]
fn headers_of_the_user_win_but_not_over_the_key() {
    let server = Server::saying(DONE);
    let given = [
        ("content-TYPE", "application/cloudevents+json"),
        ("User-Agent", "mine"),
        ("idempotency-key", "mine"),
        ("Content-Length", "3"),
        ("X-Name", "J\u{fc}rgen"),
    ];
    send_request(&WebhookRequest { headers: headers(&given), ..request(server.url("/")) }).expect("an answer");
    let seen = server.seen().concat();
    for line in ["content-type: application/cloudevents+json\r\n", "user-agent: mine\r\n", "x-name: j\u{fc}rgen\r\n"] {
        assert!(seen.contains(line), "{seen}");
    }
    assert!(seen.contains("idempotency-key: key-1\r\n") && seen.matches("idempotency-key").count() == 1, "{seen}");
    assert!(seen.contains("content-length: 7\r\n") && seen.matches("content-length").count() == 1, "{seen}");
}

#[test]
fn every_try_carries_the_same_key() {
    let server = Server::new(vec![
        says("503 Service Unavailable\r\nRetry-After: 2\r\nContent-Length: 5\r\n\r\nlater"),
        says("429 Too Many Requests\r\nContent-Length: 0\r\n\r\n"),
        says(DONE),
    ]);
    let request = request(server.url("/"));
    let why = "the server answered 503 Service Unavailable: later".to_owned();
    assert_eq!(
        classify_response(&send_request(&request)),
        WebhookOutcome::Retryable { why, after: Some(Duration::from_secs(2)) }
    );
    let why = "the server answered 429 Too Many Requests".to_owned();
    assert_eq!(classify_response(&send_request(&request)), WebhookOutcome::Retryable { why, after: None });
    assert_eq!(classify_response(&send_request(&request)), WebhookOutcome::Ok("done".to_owned()));
    let seen = server.seen();
    assert_eq!(seen.len(), 3);
    assert!(seen.iter().all(|seen| seen.contains("idempotency-key: key-1\r\n")), "{seen:?}");
}

#[test]
fn values_of_the_environment_reach_the_server_and_no_message() {
    let server = Server::saying("403 Forbidden\r\nContent-Length: 0\r\n\r\n");
    let environment = [("TOKEN", "s3cret"), ("PATH_PART", "hook")].map(|(name, value)| (name.into(), value.into()));
    let url = expand_variables(&server.url("/${PATH_PART}?t=${TOKEN}"), &environment).expect("it is set");
    let bearer = expand_variables("Bearer ${TOKEN}", &environment).expect("it is set");
    let request = WebhookRequest { headers: headers(&[("Authorization", &bearer)]), ..request(url) };
    assert!(!format!("{request:?}").contains("s3cret"), "{request:?}");
    let ended = classify_response(&send_request(&request));
    assert_eq!(ended, WebhookOutcome::Failed { why: "the server answered 403 Forbidden".to_owned() });
    let seen = server.seen().concat();
    assert!(seen.starts_with("post /hook?t=s3cret ") && seen.contains("authorization: bearer s3cret\r\n"), "{seen}");
}

#[test]
fn answers_of_every_shape_are_read() {
    let chunked = "200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n";
    for (answer, expected) in [
        (chunked, whole(200, "hello world")),
        ("204 No Content\r\n\r\n", whole(204, "")),
        ("200 OK\r\n\r\nuntil the end", whole(200, "until the end")),
        ("418 I'm a teapot\r\nContent-Length: 3\r\n\r\npot", whole(418, "pot")),
    ] {
        let server = Server::saying(answer);
        assert_eq!(send_request(&request(server.url("/"))).expect("an answer"), expected);
        assert_eq!(server.seen().len(), 1);
    }
}

#[test]
fn no_more_is_kept_than_a_mebibyte() {
    const KEPT: usize = 1024 * 1024;
    for (length, cut) in [(KEPT, false), (KEPT + 1, true), (8 * KEPT, true)] {
        let server = Server::saying(&format!("200 OK\r\nContent-Length: {length}\r\n\r\n{}", "x".repeat(length)));
        let response = send_request(&request(server.url("/"))).expect("an answer");
        assert_eq!((response.body.len(), response.cut), (KEPT, cut), "{length}");
        drop(server.seen());
    }
}

#[test]
fn servers_that_do_not_answer_are_not_waited_for() {
    let half = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf";
    for answer in ["", "HTTP/1.1 200", half] {
        let server = Server::new(vec![Answer::Stalls(answer)]);
        let began = Instant::now();
        let (error, text) = failure(&WebhookRequest { timeout: SHORT, ..request(server.url("/a?b")) });
        assert!(began.elapsed() < 50 * SHORT, "it took {:?}", began.elapsed());
        assert!(matches!(error, WebhookError::TimedOut { after: SHORT, .. }), "{error:?}");
        assert_eq!(text, "cannot get an answer from http://127.0.0.1:PORT/a?…: timed out after 200ms");
        assert!(matches!(classify_response(&Err(error)), WebhookOutcome::TimedOut { .. }));
        drop(server.seen());
    }
}

#[test]
fn an_endless_timeout_is_one() {
    let server = Server::saying(DONE);
    send_request(&WebhookRequest { timeout: Duration::MAX, ..request(server.url("/")) }).expect("an answer");
    assert_eq!(server.seen().len(), 1);
}

#[test]
fn a_host_that_cannot_be_reached_is_tried_again() {
    // A label has at most 63 letters, so no name server is asked about this one.
    let unknown = format!("{}.test", "x".repeat(64));
    for host in [UNUSED_ADDRESS, &unknown] {
        let error = send_request(&request(format!("http://ann:s3cret@{host}/"))).expect_err("no server listens there");
        assert!(matches!(error, WebhookError::ConnectionFailed { .. }) && error.source().is_some(), "{error:?}");
        assert_eq!(error.to_string(), format!("cannot complete the request to {host}"));
        assert!(matches!(classify_response(&Err(error)), WebhookOutcome::Retryable { .. }));
    }
}

#[test]
fn a_plain_server_cannot_speak_https() {
    let server = Server::new(vec![Answer::Interrupts("HTTP/1.1 400 Bad Request\r\n\r\n")]);
    let (error, text) = failure(&request(server.url("/").replace("http", "https")));
    assert!(matches!(error, WebhookError::Tls { .. }) && error.source().is_some(), "{error:?}");
    assert_eq!(text, "cannot make a secure connection to 127.0.0.1:PORT");
    assert!(error.hint().starts_with("check that the port speaks https"), "{}", error.hint());
    assert!(matches!(classify_response(&Err(error)), WebhookOutcome::Failed { .. }));
    assert_eq!(server.seen().len(), 1);
}

#[test]
fn what_is_not_http_is_malformed() {
    let long = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(200 * 1024));
    for answer in [
        "SSH-2.0-OpenSSH_9.9\r\n\r\n",
        "\0\x01\x02\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n",
        &long,
    ] {
        let server = Server::new(vec![Answer::Says(answer.into())]);
        let (error, text) = failure(&request(server.url("/")));
        assert!(matches!(error, WebhookError::Malformed { .. }), "{error:?}");
        assert!(text.starts_with("cannot read the answer of http://127.0.0.1:PORT/: "), "{text}");
        assert!(matches!(classify_response(&Err(error)), WebhookOutcome::Retryable { .. }));
        drop(server.seen());
    }
}

#[test]
fn an_answer_that_breaks_off_is_none() {
    for answer in ["", "HTTP/1.1 200", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"] {
        let server = Server::new(vec![Answer::Says(answer.into())]);
        let (error, text) = failure(&request(server.url("/")));
        assert!(matches!(error, WebhookError::ConnectionFailed { .. }), "{error:?}");
        assert_eq!(text, "cannot complete the request to 127.0.0.1:PORT");
        assert!(matches!(classify_response(&Err(error)), WebhookOutcome::Retryable { .. }));
        assert_eq!(server.seen().len(), 1);
    }
}

#[test]
fn redirects_are_not_followed() {
    for status in [301, 302, 303, 307, 308] {
        let other = Server::saying(DONE);
        let moved = format!("{status} X\r\nLocation: {}\r\nContent-Length: 3\r\n\r\nold", other.url("/s3cret?s3cret"));
        let server = Server::saying(&moved);
        let WebhookOutcome::Failed { why } = classify_response(&send_request(&request(server.url("/a")))) else {
            panic!("{status}")
        };
        assert!(why.starts_with(&format!("the server answered {status} ")), "{why}");
        assert!(why.ends_with(": old; redirects are not followed: configure the address that it leads to"), "{why}");
        assert_eq!((server.seen().len(), other.seen().len()), (1, 0));
    }
}

#[test]
fn unusable_requests_are_not_sent() {
    let server = Server::new(Vec::new());
    let good = request(server.url("/"));
    let with = |name: &str, value: &str| WebhookRequest { headers: headers(&[(name, value)]), ..good.clone() };
    for (bad, text) in [
        (request("https://ann:s3cret@hooks test/".to_owned()), "cannot use the address …: it cannot be read"),
        (with("X-Token", "s3cret\r\nX: y"), "cannot send the header `X-Token`: its value has a line break"),
        (with("X-Token", "s3cret\0"), "cannot send the header `X-Token`: its value has a control character"),
        (with("X\nToken", "s3cret"), "cannot send the header `X\\nToken`: no header has such a name"),
        (
            WebhookRequest { key: "a\nb".to_owned(), ..good.clone() },
            "cannot send the header `idempotency-key`: its value has a line break",
        ),
    ] {
        let error = send_request(&bad).expect_err("it cannot be sent");
        assert_eq!(error.to_string(), text);
        assert!(matches!(classify_response(&Err(error)), WebhookOutcome::Failed { .. }));
    }
    assert_eq!(server.seen(), Vec::<String>::new());
}

#[test]
fn a_proxy_of_the_environment_is_not_used() {
    let this = std::env::current_exe().expect("the test has a file");
    #[expect(clippy::disallowed_methods, reason = "the variables must not be those of the other tests")]
    let mut test = std::process::Command::new(this);
    for name in ["ALL_PROXY", "HTTP_PROXY", "http_proxy"] {
        test.env(name, format!("http://{UNUSED_ADDRESS}"));
    }
    let output = test.args(["--exact", "the_request_arrives_whole"]).output().expect("it starts");
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && told.contains("1 passed"), "{told}");
}
