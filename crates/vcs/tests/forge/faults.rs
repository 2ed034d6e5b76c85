//! Failing forges: no action happens twice, and every error tells whether another attempt helps.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use windlass_process::Environment;
use windlass_testkit::forge::{self as testkit, Fault, Flavour, GitBackend, PullStage, TOKEN, commit};
use windlass_vcs::forge::{ForgeClient, ForgeError, ForgeOptions, ForgeProject, RetryAdvice};

use crate::{BOTH, BRANCH, Scene, new, site, token};

fn says(status: u16, headers: &[(&'static str, &str)], body: &str) -> Fault {
    let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    Fault::Says { status, headers, body: body.to_owned() }
}

#[test]
fn lost_answer_is_found_by_next_attempt() {
    for flavour in BOTH {
        for fault in [Fault::Mute, Fault::Cut] {
            let scene = Scene::new(flavour);
            scene.server.fault("POST", fault);
            let error = scene.forge.open_change(&new()).unwrap_err();
            assert_eq!(error.retry(), Retry::After(None), "{error}");
            assert_eq!(scene.forge.open(&new()).unwrap().number, 1);
            assert_eq!((scene.server.pulls().len(), scene.count("POST")), (1, 1));
        }
    }
}

#[test]
fn lost_race_returns_change_of_winner() {
    for flavour in BOTH {
        let scene = Scene::new(flavour);
        scene.server.fault("POST", Fault::Race);
        assert_eq!(scene.forge.open(&new()).unwrap().number, 1);
        assert_eq!(scene.server.pulls().len(), 1);
    }
}

#[test]
fn outdated_list_opens_no_second_change() {
    for flavour in BOTH {
        let scene = Scene::new(flavour);
        scene.server.put(BRANCH, "main", PullStage::Open);
        scene.server.fault("GET", says(200, &[], "[]"));
        assert_eq!(scene.forge.open(&new()).unwrap().number, 1, "seen the second time");
        scene.server.fault("GET", says(200, &[], "[]"));
        scene.server.fault("GET", says(200, &[], "[]"));
        let error = scene.forge.open_change(&new()).unwrap_err();
        assert!(matches!(error, ForgeError::Hidden { .. }), "{error}");
        assert_eq!(error.retry(), Retry::After(None));
        assert_eq!(scene.server.pulls().len(), 1);
    }
}

#[test]
fn rate_limit_tells_when_to_retry() {
    let date = ("Date", "Sun, 06 Nov 1994 08:49:37 GMT");
    let seconds = |seconds| RetryAdvice::After(Some(Duration::from_secs(seconds)));
    for (fault, expected) in [
        (says(429, &[("Retry-After", "7")], "{}"), seconds(7)),
        (says(403, &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "784111797"), date], "{}"), seconds(20)),
        (says(403, &[], r#"{"message": "You have exceeded a secondary rate limit."}"#), seconds(60)),
        (says(503, &[("Retry-After", "3")], "<html>"), seconds(3)),
        (says(500, &[], "<html>"), RetryAdvice::After(None)),
        (says(502, &[], ""), RetryAdvice::After(None)),
        (says(403, &[], r#"{"message": "Resource not accessible"}"#), RetryAdvice::Never),
        (says(404, &[], r#"{"message": "Not Found"}"#), RetryAdvice::Never),
        (says(410, &[], ""), RetryAdvice::Never),
    ] {
        for flavour in BOTH {
            let scene = Scene::new(flavour);
            scene.server.fault("GET", fault.clone());
            let error = scene.forge.open_change(&new()).unwrap_err();
            assert_eq!(error.retry(), expected, "{error}");
            assert!(!error.hint().is_empty());
            assert_eq!(scene.server.pulls().len(), 0);
            assert_eq!(scene.forge.open(&new()).unwrap().number, 1);
        }
    }
}

#[test]
fn malformed_answers_are_errors() {
    for flavour in BOTH {
        let scene = Scene::new(flavour);
        scene.server.fault("GET", Fault::Huge);
        assert!(matches!(scene.forge.look(1), Err(ForgeError::TooLong { .. })));
        for fault in [Fault::Garbage, says(200, &[], "{}"), says(200, &[], "[[]]"), says(200, &[], "")] {
            scene.server.fault("GET", fault);
            assert!(matches!(scene.forge.find(BRANCH, "main"), Err(ForgeError::Malformed { .. })));
        }
        scene.server.fault("GET", Fault::Mute);
        assert!(matches!(scene.forge.look(1), Err(ForgeError::Unreached { .. } | ForgeError::Malformed { .. })));
    }
}

#[test]
fn slow_forge_times_out() {
    for flavour in BOTH {
        let scene = Scene::of(flavour, GitBackend::default(), Duration::from_millis(100));
        for fault in [Fault::Stall, Fault::Falter] {
            scene.server.fault("GET", fault);
            let error = scene.forge.view_change(1).unwrap_err();
            assert!(matches!(error, ForgeError::TimedOut { .. }), "{error}");
            assert_eq!(error.retry(), Retry::After(None));
        }
    }
}

#[test]
fn unreachable_forge_may_be_retried() {
    let scene = Scene::new(Flavour::GitHub);
    let Scene { server, forge } = scene;
    drop(server);
    let error = forge.view_change(1).unwrap_err();
    assert!(matches!(error, ForgeError::Unreached { .. }), "{error}");
    assert_eq!(error.retry(), Retry::After(None));
}

#[test]
fn no_redirect_is_followed() {
    for flavour in BOTH {
        let scene = Scene::new(flavour);
        let eve = testkit::Forge::start(flavour, "o/r", GitBackend::default()).expect("a free port");
        for (method, status) in [("GET", 301), ("GET", 302), ("POST", 307), ("POST", 308)] {
            scene.server.fault(method, says(status, &[("Location", &format!("{}/x", eve.api()))], ""));
            let error = scene.forge.open_change(&new()).unwrap_err();
            assert!(matches!(error, ForgeError::Redirected { .. }), "{error}");
            assert_eq!(error.retry(), Retry::Never);
        }
        assert!(eve.requests().is_empty());
        assert_eq!(scene.server.pulls().len(), 0);
    }
}

#[test]
fn no_error_shows_a_token() {
    for flavour in BOTH {
        let Scene { server, forge } = &Scene::new(flavour);
        let echo = format!(r#"{{"message": "who is {TOKEN}?\u001b[31m"}}"#);
        for status in [400, 401, 403, 404, 422, 500] {
            server.fault("GET", says(status, &[], &echo));
            let error = forge.view_change(1).unwrap_err();
            let shown = format!("{error} {error:?} {}", error.hint());
            assert!(!shown.contains(TOKEN) && shown.contains("who is ***?[31m"), "{shown}");
            assert!(!shown.contains('\u{1b}'));
        }
        assert!(!format!("{forge:?}").contains(TOKEN));
    }
}

#[test]
fn a_wrong_token_is_told_apart() {
    for flavour in BOTH {
        let project = "o/r";
        let server = testkit::Forge::start(flavour, project, GitBackend::default()).expect("a free port");
        let site = site(&server, flavour, project);
        let forge =
            ForgeClient::new(site.clone(), token(&site, "old"), &Environment::new(), ForgeClient::DEFAULT_TIMEOUT);
        let error = forge.open_change(&new()).unwrap_err();
        assert!(matches!(error, ForgeError::Unauthorized { .. }), "{error}");
        assert!(error.hint().contains("make a new one"));
        assert_eq!(server.pulls().len(), 0);
    }
}

#[test]
fn a_proxy_of_the_environment_is_not_used_for_this_machine() {
    let server = testkit::Forge::start(Flavour::GitHub, "o/r", GitBackend::default()).expect("a free port");
    let site = site(&server, Flavour::GitHub, "o/r");
    let environment = vec![("https_proxy".into(), "http://127.0.0.1:1".into())];
    let forge = ForgeClient::new(site.clone(), token(&site, TOKEN), &environment, ForgeClient::DEFAULT_TIMEOUT);
    assert_eq!(forge.open(&new()).unwrap().head, commit(BRANCH));
}

#[test]
fn a_proxy_sees_a_host_and_no_token() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("its address");
    let seen = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("a request");
            head.extend(byte);
        }
        stream.write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n").expect("a client listens");
        String::from_utf8(head).expect("a head is text")
    });
    let settings = ForgeOptions { api: Some("https://gitlab.acme.test/api/v4".to_owned()), ..ForgeOptions::default() };
    let site = ForgeProject::from_remote("git@gitlab.acme.test:a/b", &settings).unwrap().expect("it is a forge");
    let environment = vec![("https_proxy".into(), format!("http://ann:s3cret@{address}").into())];
    let forge = ForgeClient::new(site.clone(), token(&site, TOKEN), &environment, ForgeClient::DEFAULT_TIMEOUT);
    let error = forge.view_change(1).unwrap_err();
    assert!(matches!(error, ForgeError::Unreached { .. }), "{error}");
    assert!(!format!("{error} {error:?}").contains("s3cret"));
    let seen = seen.join().expect("the proxy does not fail");
    assert!(seen.starts_with("CONNECT gitlab.acme.test:443 ") && !seen.contains(TOKEN), "{seen}");

    for proxy in ["socks5://127.0.0.1:1", "::", "ftp://x"] {
        let environment = vec![("https_proxy".into(), proxy.into())];
        let forge = ForgeClient::new(site.clone(), token(&site, TOKEN), &environment, ForgeClient::DEFAULT_TIMEOUT);
        assert!(matches!(forge.look(1), Err(ForgeError::BadProxy { .. })), "{proxy}");
    }
}
