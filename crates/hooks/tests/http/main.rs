//! Webhooks against servers on this machine.

mod server;

use std::collections::BTreeMap;
use std::error::Error;
use std::time::{Duration, Instant};

use server::{StubAnswer, StubServer, http_answer};
use windlass_hooks::http::{
    WebhookError, WebhookMethod, WebhookOutcome, WebhookRequest, WebhookResponse, classify_response, expand_variables,
    send_request,
};

/// A timeout for a busy machine. No test waits until it passes.
const LONG_TIMEOUT: Duration = Duration::from_secs(60);
const SHORT_TIMEOUT: Duration = Duration::from_millis(200);
/// An address without a listener: the port is reserved, and no test server can get it.
const UNUSED_ADDRESS: &str = "127.0.0.1:1";
const DONE_ANSWER: &str = "200 OK\r\nContent-Length: 4\r\n\r\ndone";

fn post_request(url: String) -> WebhookRequest {
    WebhookRequest {
        url,
        method: WebhookMethod::Post,
        headers: BTreeMap::new(),
        body: br#"{"a":1}"#.to_vec(),
        timeout: LONG_TIMEOUT,
        key: "key-1".to_owned(),
    }
}

fn header_map(given: &[(&str, &str)]) -> BTreeMap<String, String> {
    given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn complete_response(status: u16, body: &str) -> WebhookResponse {
    WebhookResponse { status, body: body.into(), cut: false, retry_after: None }
}

/// Sends a request that fails. Returns the error and its text, in which `PORT` replaces the port of the test.
#[track_caller]
fn send_failing_request(request: &WebhookRequest) -> (WebhookError, String) {
    let error = send_request(request).expect_err("there is no answer");
    let port = request.url.split(':').nth(2).and_then(|rest| rest.split('/').next()).unwrap_or("none").to_owned();
    let text = error.to_string().replace(&port, "PORT");
    (error, text)
}

#[test]
fn request_arrives_with_all_headers_and_body() {
    let server = StubServer::with_answer(DONE_ANSWER);
    let response = send_request(&post_request(server.url("/hook?a=b"))).expect("an answer");
    assert_eq!(response, complete_response(200, "done"));
    assert_eq!(classify_response(&Ok(response)), WebhookOutcome::Ok("done".to_owned()));
    let address = server.address;
    let requests = server.into_requests();
    let [requests] = requests.as_slice() else { panic!("{requests:?}") };
    let (head, body) = requests.split_once("\r\n\r\n").expect("a head and a body");
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
        let server = StubServer::with_answer(DONE_ANSWER);
        let method = WebhookMethod::parse_name(name).expect("it is known");
        send_request(&WebhookRequest { method, ..post_request(server.url("/")) }).expect("an answer");
        let requests = server.into_requests().concat();
        assert!(requests.starts_with(&format!("{} / ", name.to_ascii_lowercase())), "{requests}");
        assert_eq!(requests.ends_with(r#"{"a":1}"#), body, "{requests}");
    }
    assert_eq!(WebhookMethod::parse_name("CONNECT"), None);
}

#[test]
fn headers_of_the_user_win_but_not_over_the_key() {
    let server = StubServer::with_answer(DONE_ANSWER);
    let given = [
        ("content-TYPE", "application/cloudevents+json"),
        ("User-Agent", "mine"),
        ("idempotency-key", "mine"),
        ("Content-Length", "3"),
        ("X-Name", "J\u{fc}rgen"),
    ];
    send_request(&WebhookRequest { headers: header_map(&given), ..post_request(server.url("/")) }).expect("an answer");
    let requests = server.into_requests().concat();
    for line in ["content-type: application/cloudevents+json\r\n", "user-agent: mine\r\n", "x-name: j\u{fc}rgen\r\n"] {
        assert!(requests.contains(line), "{requests}");
    }
    assert!(
        requests.contains("idempotency-key: key-1\r\n") && requests.matches("idempotency-key").count() == 1,
        "{requests}"
    );
    assert!(
        requests.contains("content-length: 7\r\n") && requests.matches("content-length").count() == 1,
        "{requests}"
    );
}

#[test]
fn every_try_carries_the_same_key() {
    let server = StubServer::new(vec![
        http_answer("503 Service Unavailable\r\nRetry-After: 2\r\nContent-Length: 5\r\n\r\nlater"),
        http_answer("429 Too Many Requests\r\nContent-Length: 0\r\n\r\n"),
        http_answer(DONE_ANSWER),
    ]);
    let request = post_request(server.url("/"));
    let why = "the server answered 503 Service Unavailable: later".to_owned();
    assert_eq!(
        classify_response(&send_request(&request)),
        WebhookOutcome::Retryable { why, after: Some(Duration::from_secs(2)) }
    );
    let why = "the server answered 429 Too Many Requests".to_owned();
    assert_eq!(classify_response(&send_request(&request)), WebhookOutcome::Retryable { why, after: None });
    assert_eq!(classify_response(&send_request(&request)), WebhookOutcome::Ok("done".to_owned()));
    let requests = server.into_requests();
    assert_eq!(requests.len(), 3);
    assert!(requests.iter().all(|requests| requests.contains("idempotency-key: key-1\r\n")), "{requests:?}");
}

#[test]
fn values_of_the_environment_reach_the_server_and_no_message() {
    let server = StubServer::with_answer("403 Forbidden\r\nContent-Length: 0\r\n\r\n");
    let environment = [("TOKEN", "s3cret"), ("PATH_PART", "hook")].map(|(name, value)| (name.into(), value.into()));
    let url = expand_variables(&server.url("/${PATH_PART}?t=${TOKEN}"), &environment).expect("it is set");
    let bearer = expand_variables("Bearer ${TOKEN}", &environment).expect("it is set");
    let request = WebhookRequest { headers: header_map(&[("Authorization", &bearer)]), ..post_request(url) };
    assert!(!format!("{request:?}").contains("s3cret"), "{request:?}");
    let ended = classify_response(&send_request(&request));
    assert_eq!(ended, WebhookOutcome::Failed { why: "the server answered 403 Forbidden".to_owned() });
    let requests = server.into_requests().concat();
    assert!(
        requests.starts_with("post /hook?t=s3cret ") && requests.contains("authorization: bearer s3cret\r\n"),
        "{requests}"
    );
}

#[test]
fn answers_of_every_shape_are_read() {
    let chunked = "200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n";
    for (answer, expected) in [
        (chunked, complete_response(200, "hello world")),
        ("204 No Content\r\n\r\n", complete_response(204, "")),
        ("200 OK\r\n\r\nuntil the end", complete_response(200, "until the end")),
        ("418 I'm a teapot\r\nContent-Length: 3\r\n\r\npot", complete_response(418, "pot")),
    ] {
        let server = StubServer::with_answer(answer);
        assert_eq!(send_request(&post_request(server.url("/"))).expect("an answer"), expected);
        assert_eq!(server.into_requests().len(), 1);
    }
}

#[test]
fn response_body_beyond_one_mebibyte_is_truncated() {
    const MAX_BODY: usize = 1024 * 1024;
    for (length, cut) in [(MAX_BODY, false), (MAX_BODY + 1, true), (8 * MAX_BODY, true)] {
        let server =
            StubServer::with_answer(&format!("200 OK\r\nContent-Length: {length}\r\n\r\n{}", "x".repeat(length)));
        let response = send_request(&post_request(server.url("/"))).expect("an answer");
        assert_eq!((response.body.len(), response.cut), (MAX_BODY, cut), "{length}");
        drop(server.into_requests());
    }
}

#[test]
fn servers_that_do_not_answer_are_not_waited_for() {
    let half = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf";
    for answer in ["", "HTTP/1.1 200", half] {
        let server = StubServer::new(vec![StubAnswer::Stall(answer)]);
        let began = Instant::now();
        let (error, text) =
            send_failing_request(&WebhookRequest { timeout: SHORT_TIMEOUT, ..post_request(server.url("/a?b")) });
        assert!(began.elapsed() < 50 * SHORT_TIMEOUT, "it took {:?}", began.elapsed());
        assert!(matches!(error, WebhookError::TimedOut { after: SHORT_TIMEOUT, .. }), "{error:?}");
        assert_eq!(text, "cannot get an answer from http://127.0.0.1:PORT/a?…: timed out after 200ms");
        assert!(matches!(classify_response(&Err(error)), WebhookOutcome::TimedOut { .. }));
        drop(server.into_requests());
    }
}

#[test]
fn request_with_maximum_timeout_duration_succeeds() {
    let server = StubServer::with_answer(DONE_ANSWER);
    send_request(&WebhookRequest { timeout: Duration::MAX, ..post_request(server.url("/")) }).expect("an answer");
    assert_eq!(server.into_requests().len(), 1);
}

#[test]
fn request_to_unreachable_host_is_retryable() {
    // A label has at most 63 letters, so the resolver asks no name server about this one.
    let unknown = format!("{}.test", "x".repeat(64));
    for host in [UNUSED_ADDRESS, &unknown] {
        let error =
            send_request(&post_request(format!("http://ann:s3cret@{host}/"))).expect_err("no server listens there");
        assert!(matches!(error, WebhookError::ConnectionFailed { .. }) && error.source().is_some(), "{error:?}");
        assert_eq!(error.to_string(), format!("cannot complete the request to {host}"));
        assert!(matches!(classify_response(&Err(error)), WebhookOutcome::Retryable { .. }));
    }
}

#[test]
fn https_request_to_plain_server_fails_with_tls_error() {
    let server = StubServer::new(vec![StubAnswer::Interrupt("HTTP/1.1 400 Bad Request\r\n\r\n")]);
    let (error, text) = send_failing_request(&post_request(server.url("/").replace("http", "https")));
    assert!(matches!(error, WebhookError::Tls { .. }) && error.source().is_some(), "{error:?}");
    assert_eq!(text, "cannot make a secure connection to 127.0.0.1:PORT");
    assert!(error.hint().starts_with("check that the port speaks https"), "{}", error.hint());
    assert!(matches!(classify_response(&Err(error)), WebhookOutcome::Failed { .. }));
    assert_eq!(server.into_requests().len(), 1);
}

#[test]
fn invalid_http_response_is_reported_as_malformed() {
    let long = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(200 * 1024));
    for answer in [
        "SSH-2.0-OpenSSH_9.9\r\n\r\n",
        "\0\x01\x02\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n",
        &long,
    ] {
        let server = StubServer::new(vec![StubAnswer::Close(answer.into())]);
        let (error, text) = send_failing_request(&post_request(server.url("/")));
        assert!(matches!(error, WebhookError::Malformed { .. }), "{error:?}");
        assert!(text.starts_with("cannot read the answer of http://127.0.0.1:PORT/: "), "{text}");
        assert!(matches!(classify_response(&Err(error)), WebhookOutcome::Retryable { .. }));
        drop(server.into_requests());
    }
}

#[test]
fn incomplete_response_is_reported_as_connection_failure() {
    for answer in ["", "HTTP/1.1 200", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"] {
        let server = StubServer::new(vec![StubAnswer::Close(answer.into())]);
        let (error, text) = send_failing_request(&post_request(server.url("/")));
        assert!(matches!(error, WebhookError::ConnectionFailed { .. }), "{error:?}");
        assert_eq!(text, "cannot complete the request to 127.0.0.1:PORT");
        assert!(matches!(classify_response(&Err(error)), WebhookOutcome::Retryable { .. }));
        assert_eq!(server.into_requests().len(), 1);
    }
}

#[test]
fn redirects_are_not_followed() {
    for status in [301, 302, 303, 307, 308] {
        let other = StubServer::with_answer(DONE_ANSWER);
        let redirect =
            format!("{status} X\r\nLocation: {}\r\nContent-Length: 3\r\n\r\nold", other.url("/s3cret?s3cret"));
        let server = StubServer::with_answer(&redirect);
        let WebhookOutcome::Failed { why } = classify_response(&send_request(&post_request(server.url("/a")))) else {
            panic!("{status}")
        };
        assert!(why.starts_with(&format!("the server answered {status} ")), "{why}");
        assert!(why.ends_with(": old; redirects are not followed: configure the address that it leads to"), "{why}");
        assert_eq!((server.into_requests().len(), other.into_requests().len()), (1, 0));
    }
}

#[test]
fn unusable_requests_are_not_sent() {
    let server = StubServer::new(Vec::new());
    let good = post_request(server.url("/"));
    let with_header =
        |name: &str, value: &str| WebhookRequest { headers: header_map(&[(name, value)]), ..good.clone() };
    for (bad, text) in [
        (post_request("https://ann:s3cret@hooks test/".to_owned()), "cannot use the address …: it cannot be read"),
        (with_header("X-Token", "s3cret\r\nX: y"), "cannot send the header `X-Token`: its value has a line break"),
        (with_header("X-Token", "s3cret\0"), "cannot send the header `X-Token`: its value has a control character"),
        (with_header("X\nToken", "s3cret"), "cannot send the header `X\\nToken`: no header has such a name"),
        (
            WebhookRequest { key: "a\nb".to_owned(), ..good.clone() },
            "cannot send the header `idempotency-key`: its value has a line break",
        ),
    ] {
        let error = send_request(&bad).expect_err("it cannot be sent");
        assert_eq!(error.to_string(), text);
        assert!(matches!(classify_response(&Err(error)), WebhookOutcome::Failed { .. }));
    }
    assert_eq!(server.into_requests(), Vec::<String>::new());
}

#[test]
fn proxy_from_environment_variables_is_ignored() {
    let this = std::env::current_exe().expect("the test has a file");
    #[expect(clippy::disallowed_methods, reason = "the variables must not be those of the other tests")]
    let mut test = std::process::Command::new(this);
    for name in ["ALL_PROXY", "HTTP_PROXY", "http_proxy"] {
        test.env(name, format!("http://{UNUSED_ADDRESS}"));
    }
    let output = test.args(["--exact", "request_arrives_with_all_headers_and_body"]).output().expect("it starts");
    let output_text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && output_text.contains("1 passed"), "{output_text}");
}
