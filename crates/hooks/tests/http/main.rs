//! Webhooks against servers on this machine.

mod server;

use std::collections::BTreeMap;
use std::error::Error;
use std::time::{Duration, Instant};

use server::{Answer, Server, says};
use windlass_hooks::http::{Ended, Method, Request, Response, Unsent, expand, meaning, send};

/// Long enough for a machine that is busy; no test waits for it.
const PATIENT: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(200);
/// Where nothing listens: the port is reserved, and no server of a test can be given it.
const NOBODY: &str = "127.0.0.1:1";
const DONE: &str = "200 OK\r\nContent-Length: 4\r\n\r\ndone";

fn request(url: String) -> Request {
    Request {
        url,
        method: Method::Post,
        headers: BTreeMap::new(),
        body: br#"{"a":1}"#.to_vec(),
        timeout: PATIENT,
        key: "key-1".to_owned(),
        proxy: None,
    }
}

fn headers(given: &[(&str, &str)]) -> BTreeMap<String, String> {
    given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn whole(status: u16, body: &str) -> Response {
    Response { status, body: body.into(), cut: false, retry_after: None }
}

/// The error's kind and texts, with the port that the test was given written as `PORT`.
#[track_caller]
fn failure(request: &Request) -> (Unsent, String) {
    let error = send(request).expect_err("there is no answer");
    let port = request.url.split(':').nth(2).and_then(|rest| rest.split('/').next()).unwrap_or("none").to_owned();
    let text = error.to_string().replace(&port, "PORT");
    (error, text)
}

#[test]
fn the_request_arrives_whole() {
    let server = Server::saying(DONE);
    let response = send(&request(server.url("/hook?a=b"))).expect("an answer");
    assert_eq!(response, whole(200, "done"));
    assert_eq!(meaning(&Ok(response)), Ended::Ok("done".to_owned()));
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
        let method = Method::named(name).expect("it is known");
        send(&Request { method, ..request(server.url("/")) }).expect("an answer");
        let seen = server.seen().concat();
        assert!(seen.starts_with(&format!("{} / ", name.to_ascii_lowercase())), "{seen}");
        assert_eq!(seen.ends_with(r#"{"a":1}"#), body, "{seen}");
    }
    assert_eq!(Method::named("CONNECT"), None);
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
    send(&Request { headers: headers(&given), ..request(server.url("/")) }).expect("an answer");
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
    assert_eq!(meaning(&send(&request)), Ended::Again { why, after: Some(Duration::from_secs(2)) });
    let why = "the server answered 429 Too Many Requests".to_owned();
    assert_eq!(meaning(&send(&request)), Ended::Again { why, after: None });
    assert_eq!(meaning(&send(&request)), Ended::Ok("done".to_owned()));
    let seen = server.seen();
    assert_eq!(seen.len(), 3);
    assert!(seen.iter().all(|seen| seen.contains("idempotency-key: key-1\r\n")), "{seen:?}");
}

#[test]
fn values_of_the_environment_reach_the_server_and_no_message() {
    let server = Server::saying("403 Forbidden\r\nContent-Length: 0\r\n\r\n");
    let environment = [("TOKEN", "s3cret"), ("PATH_PART", "hook")].map(|(name, value)| (name.into(), value.into()));
    let url = expand(&server.url("/${PATH_PART}?t=${TOKEN}"), &environment).expect("it is set");
    let bearer = expand("Bearer ${TOKEN}", &environment).expect("it is set");
    let request = Request { headers: headers(&[("Authorization", &bearer)]), ..request(url) };
    assert!(!format!("{request:?}").contains("s3cret"), "{request:?}");
    let ended = meaning(&send(&request));
    assert_eq!(ended, Ended::Failed { why: "the server answered 403 Forbidden".to_owned() });
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
        assert_eq!(send(&request(server.url("/"))).expect("an answer"), expected);
        assert_eq!(server.seen().len(), 1);
    }
}

#[test]
fn no_more_is_kept_than_a_mebibyte() {
    const KEPT: usize = 1024 * 1024;
    for (length, cut) in [(KEPT, false), (KEPT + 1, true), (8 * KEPT, true)] {
        let server = Server::saying(&format!("200 OK\r\nContent-Length: {length}\r\n\r\n{}", "x".repeat(length)));
        let response = send(&request(server.url("/"))).expect("an answer");
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
        let (error, text) = failure(&Request { timeout: SHORT, ..request(server.url("/a?b")) });
        assert!(began.elapsed() < 50 * SHORT, "it took {:?}", began.elapsed());
        assert!(matches!(error, Unsent::TimedOut { after: SHORT, .. }), "{error:?}");
        assert_eq!(text, "cannot get an answer from http://127.0.0.1:PORT/a?…: timed out after 200ms");
        assert!(matches!(meaning(&Err(error)), Ended::TimedOut { .. }));
        drop(server.seen());
    }
}

#[test]
fn one_timeout_covers_all_redirects() {
    let server = Server::new(vec![says("307 X\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n"), Answer::Stalls("")]);
    let (error, _) = failure(&Request { timeout: SHORT, ..request(server.url("/a")) });
    assert!(matches!(error, Unsent::TimedOut { after: SHORT, .. }), "{error:?}");
    drop(server.seen());
}

#[test]
fn an_endless_timeout_is_one() {
    let server = Server::saying(DONE);
    send(&Request { timeout: Duration::MAX, ..request(server.url("/")) }).expect("an answer");
    assert_eq!(server.seen().len(), 1);
}

#[test]
fn a_port_without_a_server_refuses() {
    let error = send(&request(format!("http://ann:s3cret@{NOBODY}/"))).expect_err("nobody listens");
    assert!(matches!(error, Unsent::Refused { .. }), "{error:?}");
    let why =
        "cannot connect to 127.0.0.1:1: it refuses the connection; check the port, and that the server is running";
    assert_eq!(meaning(&Err(error)), Ended::Again { why: why.to_owned(), after: None });
    let error = send(&Request { proxy: Some(NOBODY.to_owned()), ..request("http://hooks.test/".to_owned()) });
    let why = "cannot connect to 127.0.0.1:1 (the proxy): it refuses the connection";
    assert_eq!(error.expect_err("nobody listens").to_string(), why);
}

#[test]
fn a_name_that_is_none_is_not_found() {
    // A part of a name has at most 63 letters: nobody has to be asked about this one.
    let host = format!("{}.test", "x".repeat(64));
    let (error, text) = failure(&request(format!("http://{host}/")));
    assert!(matches!(error, Unsent::NotResolved { .. }) && error.source().is_some(), "{error:?}");
    assert_eq!(text, format!("cannot find the host {host}"));
    assert!(matches!(meaning(&Err(error)), Ended::Again { .. }));
}

#[test]
fn a_plain_server_cannot_speak_https() {
    let server = Server::new(vec![Answer::Interrupts("HTTP/1.1 400 Bad Request\r\n\r\n")]);
    let (error, text) = failure(&request(server.url("/").replace("http", "https")));
    assert!(matches!(error, Unsent::Tls { .. }) && error.source().is_some(), "{error:?}");
    assert_eq!(text, "cannot agree with 127.0.0.1:PORT on a secure connection");
    assert!(error.hint().starts_with("check that the port speaks https"), "{}", error.hint());
    assert!(matches!(meaning(&Err(error)), Ended::Failed { .. }));
    assert_eq!(server.seen().len(), 1);
}

#[test]
fn what_is_not_http_is_malformed() {
    let long = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(200 * 1024));
    for answer in [
        "SSH-2.0-OpenSSH_9.9\r\n\r\n",
        "\0\x01\x02\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n",
        "HTTP/1.1 307 X\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 307 X\r\nLocation: http://\r\n\r\n",
        &long,
    ] {
        let server = Server::new(vec![Answer::Says(answer.into())]);
        let (error, text) = failure(&request(server.url("/")));
        assert!(matches!(error, Unsent::Malformed { .. }), "{error:?}");
        assert!(text.starts_with("cannot read the answer of http://127.0.0.1:PORT/: "), "{text}");
        assert!(matches!(meaning(&Err(error)), Ended::Again { .. }));
        drop(server.seen());
    }
}

#[test]
fn an_answer_that_breaks_off_is_none() {
    for answer in ["", "HTTP/1.1 200", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"] {
        let server = Server::new(vec![Answer::Says(answer.into())]);
        let (error, text) = failure(&request(server.url("/")));
        assert!(matches!(error, Unsent::Broken { .. }), "{error:?}");
        assert_eq!(text, "cannot keep the connection to 127.0.0.1:PORT");
        assert!(matches!(meaning(&Err(error)), Ended::Again { .. }));
        assert_eq!(server.seen().len(), 1);
    }
}

#[test]
fn redirects_to_the_same_server_get_the_same_request() {
    for status in [301, 302, 303, 307, 308] {
        let moved = format!("{status} Moved\r\nLocation: ../b?c\r\nContent-Length: 3\r\n\r\nold");
        let server = Server::new(vec![says(&moved), says(DONE)]);
        let url = server.url("/x/a").replace("//", "//ann:s3cret@");
        assert_eq!(send(&request(url)).expect("an answer"), whole(200, "done"), "{status}");
        let seen = server.seen();
        assert!(seen[0].contains("\r\nauthorization: basic "), "{seen:?}");
        assert_eq!(seen[1], seen[0].replace("post /x/a ", "post /b?c "));
    }
}

#[test]
fn nothing_is_sent_to_another_server() {
    let other = Server::saying(DONE);
    let moved = format!("307 Moved\r\nLocation: {}\r\n\r\n", other.url("/s3cret?s3cret"));
    let server = Server::saying(&moved);
    let error = send(&request(server.url("/s3cret/s3cret"))).expect_err("it leads elsewhere");
    let (from, to) = (server.url(""), other.url(""));
    assert_eq!(
        error.to_string(),
        format!(
            "cannot follow the redirect from {from} to {to}: it leads to another server, and nothing was sent there"
        )
    );
    assert!(matches!(meaning(&Err(error)), Ended::Failed { .. }));
    assert_eq!((server.seen().len(), other.seen().len()), (1, 0));
}

#[test]
fn redirects_come_to_an_end() {
    let again = || says("308 X\r\nLocation: /a\r\nContent-Length: 0\r\n\r\n");
    let server = Server::new((0..10).map(|_| again()).collect());
    let (error, text) = failure(&request(server.url("/a")));
    assert!(matches!(error, Unsent::TooManyRedirects { .. }), "{error:?}");
    assert_eq!(text, "cannot follow http://127.0.0.1:PORT/a: more than 5 redirects");
    assert_eq!(server.seen().len(), 6);
    let server = Server::new((0..5).map(|_| again()).chain([says(DONE)]).collect());
    assert_eq!(send(&request(server.url("/a"))).expect("an answer"), whole(200, "done"));
    drop(server.seen());
}

#[test]
fn unusable_requests_are_not_sent() {
    let server = Server::new(Vec::new());
    let good = request(server.url("/"));
    let with = |name: &str, value: &str| Request { headers: headers(&[(name, value)]), ..good.clone() };
    let by = |proxy: &str| Request { proxy: Some(proxy.to_owned()), ..good.clone() };
    for (bad, text) in [
        (request("https://ann:s3cret@hooks test/".to_owned()), "cannot use the address https://…: it cannot be read"),
        (with("X-Token", "s3cret\r\nX: y"), "cannot send the header `X-Token`: its value has a line break"),
        (with("X-Token", "s3cret\0"), "cannot send the header `X-Token`: its value has a control character"),
        (with("X\nToken", "s3cret"), "cannot send the header `X\\nToken`: no header has such a name"),
        (
            Request { key: "a\nb".to_owned(), ..good.clone() },
            "cannot send the header `idempotency-key`: its value has a line break",
        ),
        (by("ftp://ann:s3cret@proxy.test"), "cannot use the proxy …"),
        (by("socks5://proxy.test"), "cannot use the proxy …"),
    ] {
        let error = send(&bad).expect_err("it cannot be sent");
        assert_eq!(error.to_string(), text);
        assert!(matches!(meaning(&Err(error)), Ended::Failed { .. }));
    }
    assert_eq!(server.seen(), Vec::<String>::new());
}

#[test]
fn a_proxy_that_is_given_is_used() {
    let proxy = Server::new(vec![
        Answer::Tunnels("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone"),
        says("407 Proxy Authentication Required\r\n\r\n"),
    ]);
    let given = format!("http://ann:s3cret@{}", proxy.address);
    let request = Request { proxy: Some(given), ..request("http://hooks.test/a".to_owned()) };
    assert_eq!(send(&request).expect("an answer"), whole(200, "done"));
    let error = send(&request).expect_err("the proxy refuses");
    assert!(error.to_string().starts_with(&format!("cannot get through the proxy {}: ", proxy.address)), "{error}");
    let seen = proxy.seen();
    assert!(seen[0].starts_with("connect hooks.test:80 ") && seen[0].contains("\r\n\r\npost /a "), "{}", seen[0]);
    assert!(!seen[1].contains("key-1"), "{}", seen[1]);
}

#[test]
fn a_proxy_of_the_environment_is_not_used() {
    let this = std::env::current_exe().expect("the test has a file");
    #[expect(clippy::disallowed_methods, reason = "the variables must not be those of the other tests")]
    let mut test = std::process::Command::new(this);
    for name in ["ALL_PROXY", "HTTP_PROXY", "http_proxy"] {
        test.env(name, format!("http://{NOBODY}"));
    }
    let output = test.args(["--exact", "the_request_arrives_whole"]).output().expect("it starts");
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && told.contains("1 passed"), "{told}");
}
