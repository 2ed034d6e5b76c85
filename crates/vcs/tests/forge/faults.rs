//! Failing forges: no action happens twice, and every error says whether a retry helps.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use windlass_process::Environment;
use windlass_testkit::forge::{self as testkit, ForgeFault, ForgeFlavour, GitBackend, PullStage, TOKEN, commit};
use windlass_vcs::forge::{ForgeClient, ForgeError, ForgeOptions, ForgeProject, RetryAdvice};

use crate::{BOTH_FLAVOURS, BRANCH, ForgeFixture, forge_project, new_change, test_token};

fn fixed_answer(status: u16, headers: &[(&'static str, &str)], body: &str) -> ForgeFault {
    let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    ForgeFault::FixedAnswer { status, headers, body: body.to_owned() }
}

#[test]
fn lost_answer_is_found_by_next_attempt() {
    for flavour in BOTH_FLAVOURS {
        for fault in [ForgeFault::LostAnswer, ForgeFault::CutAnswer] {
            let fixture = ForgeFixture::new(flavour);
            fixture.server.fault("POST", fault);
            let error = fixture.forge.open_change(&new_change()).unwrap_err();
            assert_eq!(error.retry_advice(), RetryAdvice::After(None), "{error}");
            assert_eq!(fixture.forge.open_change(&new_change()).unwrap().number, 1);
            assert_eq!((fixture.server.pulls().len(), fixture.count_requests("POST")), (1, 1));
        }
    }
}

#[test]
fn lost_race_returns_change_of_winner() {
    for flavour in BOTH_FLAVOURS {
        let fixture = ForgeFixture::new(flavour);
        fixture.server.fault("POST", ForgeFault::Race);
        assert_eq!(fixture.forge.open_change(&new_change()).unwrap().number, 1);
        assert_eq!(fixture.server.pulls().len(), 1);
    }
}

#[test]
fn outdated_list_opens_no_second_change() {
    for flavour in BOTH_FLAVOURS {
        let fixture = ForgeFixture::new(flavour);
        fixture.server.add_change(BRANCH, "main", PullStage::Open);
        fixture.server.fault("GET", fixed_answer(200, &[], "[]"));
        assert_eq!(fixture.forge.open_change(&new_change()).unwrap().number, 1, "seen the second time");
        fixture.server.fault("GET", fixed_answer(200, &[], "[]"));
        fixture.server.fault("GET", fixed_answer(200, &[], "[]"));
        let error = fixture.forge.open_change(&new_change()).unwrap_err();
        assert!(matches!(error, ForgeError::Hidden { .. }), "{error}");
        assert_eq!(error.retry_advice(), RetryAdvice::After(None));
        assert_eq!(fixture.server.pulls().len(), 1);
    }
}

#[test]
fn rate_limit_tells_when_to_retry() {
    let date = ("Date", "Sun, 06 Nov 1994 08:49:37 GMT");
    let seconds = |seconds| RetryAdvice::After(Some(Duration::from_secs(seconds)));
    for (fault, expected) in [
        (fixed_answer(429, &[("Retry-After", "7")], "{}"), seconds(7)),
        (
            fixed_answer(403, &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "784111797"), date], "{}"),
            seconds(20),
        ),
        (fixed_answer(403, &[], r#"{"message": "You have exceeded a secondary rate limit."}"#), seconds(60)),
        (fixed_answer(503, &[("Retry-After", "3")], "<html>"), seconds(3)),
        (fixed_answer(500, &[], "<html>"), RetryAdvice::After(None)),
        (fixed_answer(502, &[], ""), RetryAdvice::After(None)),
        (fixed_answer(403, &[], r#"{"message": "Resource not accessible"}"#), RetryAdvice::Never),
        (fixed_answer(404, &[], r#"{"message": "Not Found"}"#), RetryAdvice::Never),
        (fixed_answer(410, &[], ""), RetryAdvice::Never),
    ] {
        for flavour in BOTH_FLAVOURS {
            let fixture = ForgeFixture::new(flavour);
            fixture.server.fault("GET", fault.clone());
            let error = fixture.forge.open_change(&new_change()).unwrap_err();
            assert_eq!(error.retry_advice(), expected, "{error}");
            assert!(!error.hint().is_empty());
            assert_eq!(fixture.server.pulls().len(), 0);
            assert_eq!(fixture.forge.open_change(&new_change()).unwrap().number, 1);
        }
    }
}

#[test]
fn malformed_answers_are_errors() {
    for flavour in BOTH_FLAVOURS {
        let fixture = ForgeFixture::new(flavour);
        fixture.server.fault("GET", ForgeFault::HugeAnswer);
        assert!(matches!(fixture.forge.view_change(1), Err(ForgeError::TooLong { .. })));
        for fault in [
            ForgeFault::InvalidAnswer,
            fixed_answer(200, &[], "{}"),
            fixed_answer(200, &[], "[[]]"),
            fixed_answer(200, &[], ""),
        ] {
            fixture.server.fault("GET", fault);
            assert!(matches!(fixture.forge.find_change(BRANCH, "main"), Err(ForgeError::Malformed { .. })));
        }
        fixture.server.fault("GET", ForgeFault::LostAnswer);
        assert!(matches!(
            fixture.forge.view_change(1),
            Err(ForgeError::Unreached { .. } | ForgeError::Malformed { .. })
        ));
    }
}

#[test]
fn slow_forge_times_out() {
    for flavour in BOTH_FLAVOURS {
        let fixture = ForgeFixture::with_backend(flavour, GitBackend::default(), Duration::from_millis(100));
        for fault in [ForgeFault::Stall, ForgeFault::StalledAnswer] {
            fixture.server.fault("GET", fault);
            let error = fixture.forge.view_change(1).unwrap_err();
            assert!(matches!(error, ForgeError::TimedOut { .. }), "{error}");
            assert_eq!(error.retry_advice(), RetryAdvice::After(None));
        }
    }
}

#[test]
fn unreachable_forge_may_be_retried() {
    let fixture = ForgeFixture::new(ForgeFlavour::GitHub);
    let ForgeFixture { server, forge } = fixture;
    drop(server);
    let error = forge.view_change(1).unwrap_err();
    assert!(matches!(error, ForgeError::Unreached { .. }), "{error}");
    assert_eq!(error.retry_advice(), RetryAdvice::After(None));
}

#[test]
fn forge_redirect_is_reported_and_never_followed() {
    for flavour in BOTH_FLAVOURS {
        let fixture = ForgeFixture::new(flavour);
        let eve = testkit::Forge::start(flavour, "o/r", GitBackend::default()).expect("a free port");
        for (method, status) in [("GET", 301), ("GET", 302), ("POST", 307), ("POST", 308)] {
            fixture.server.fault(method, fixed_answer(status, &[("Location", &format!("{}/x", eve.api()))], ""));
            let error = fixture.forge.open_change(&new_change()).unwrap_err();
            assert!(matches!(error, ForgeError::Redirected { .. }), "{error}");
            assert_eq!(error.retry_advice(), RetryAdvice::Never);
        }
        assert!(eve.requests().is_empty());
        assert_eq!(fixture.server.pulls().len(), 0);
    }
}

#[test]
fn forge_errors_redact_token_and_control_characters() {
    for flavour in BOTH_FLAVOURS {
        let ForgeFixture { server, forge } = &ForgeFixture::new(flavour);
        let echo = format!(r#"{{"message": "who is {TOKEN}?\u001b[31m"}}"#);
        for status in [400, 401, 403, 404, 422, 500] {
            server.fault("GET", fixed_answer(status, &[], &echo));
            let error = forge.view_change(1).unwrap_err();
            let shown = format!("{error} {error:?} {}", error.hint());
            assert!(!shown.contains(TOKEN) && shown.contains("who is ***?[31m"), "{shown}");
            assert!(!shown.contains('\u{1b}'));
        }
        assert!(!format!("{forge:?}").contains(TOKEN));
    }
}

#[test]
fn rejected_token_is_reported_as_unauthorized() {
    for flavour in BOTH_FLAVOURS {
        let project = "o/r";
        let server = testkit::Forge::start(flavour, project, GitBackend::default()).expect("a free port");
        let remote_project = forge_project(&server, flavour, project);
        let forge = ForgeClient::new(
            remote_project.clone(),
            test_token(&remote_project, "old"),
            &Environment::new(),
            ForgeClient::DEFAULT_TIMEOUT,
        );
        let error = forge.open_change(&new_change()).unwrap_err();
        assert!(matches!(error, ForgeError::Unauthorized { .. }), "{error}");
        assert!(error.hint().contains("make a new one"));
        assert_eq!(server.pulls().len(), 0);
    }
}

#[test]
fn proxy_from_environment_is_not_used_for_local_forge() {
    let server = testkit::Forge::start(ForgeFlavour::GitHub, "o/r", GitBackend::default()).expect("a free port");
    let remote_project = forge_project(&server, ForgeFlavour::GitHub, "o/r");
    let environment = vec![("https_proxy".into(), "http://127.0.0.1:1".into())];
    let forge = ForgeClient::new(
        remote_project.clone(),
        test_token(&remote_project, TOKEN),
        &environment,
        ForgeClient::DEFAULT_TIMEOUT,
    );
    assert_eq!(forge.open_change(&new_change()).unwrap().head, commit(BRANCH));
}

#[test]
fn https_proxy_receives_forge_host_but_no_token() {
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
    let remote_project =
        ForgeProject::from_remote("git@gitlab.acme.test:a/b", &settings).unwrap().expect("it is a forge");
    let environment = vec![("https_proxy".into(), format!("http://ann:s3cret@{address}").into())];
    let forge = ForgeClient::new(
        remote_project.clone(),
        test_token(&remote_project, TOKEN),
        &environment,
        ForgeClient::DEFAULT_TIMEOUT,
    );
    let error = forge.view_change(1).unwrap_err();
    assert!(matches!(error, ForgeError::Unreached { .. }), "{error}");
    assert!(!format!("{error} {error:?}").contains("s3cret"));
    let seen = seen.join().expect("the proxy does not fail");
    assert!(seen.starts_with("CONNECT gitlab.acme.test:443 ") && !seen.contains(TOKEN), "{seen}");

    for proxy in ["socks5://127.0.0.1:1", "::", "ftp://x"] {
        let environment = vec![("https_proxy".into(), proxy.into())];
        let forge = ForgeClient::new(
            remote_project.clone(),
            test_token(&remote_project, TOKEN),
            &environment,
            ForgeClient::DEFAULT_TIMEOUT,
        );
        assert!(matches!(forge.view_change(1), Err(ForgeError::BadProxy { .. })), "{proxy}");
    }
}
