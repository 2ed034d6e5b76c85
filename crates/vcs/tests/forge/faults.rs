//! Failing forges: no action happens twice, and every error tells whether another attempt helps.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use windlass_process::Environment;
use windlass_testkit::forge::{self as testkit, Fault, Flavour, Ground, PullStage, TOKEN, commit};
use windlass_vcs::forge::{Forge, ForgeError, Retry, Settings, Site};

use crate::{BOTH, BRANCH, Scene, new, site, token};

fn says(status: u16, headers: &[(&'static str, &str)], body: &str) -> Fault {
    let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    Fault::Says { status, headers, body: body.to_owned() }
}

#[test]
fn a_forge_that_dies_after_the_deed_is_asked_again() {
    for flavour in BOTH {
        for fault in [Fault::Mute, Fault::Cut] {
            let scene = Scene::new(flavour);
            scene.server.fault("POST", fault);
            let error = scene.forge.open(&new()).unwrap_err();
            assert_eq!(error.retry(), Retry::After(None), "{error}");
            assert_eq!(scene.forge.open(&new()).unwrap().number, 1);
            assert_eq!((scene.server.pulls().len(), scene.count("POST")), (1, 1));
        }
    }
}

#[test]
fn a_race_ends_with_the_change_of_the_other() {
    for flavour in BOTH {
        let scene = Scene::new(flavour);
        scene.server.fault("POST", Fault::Race);
        assert_eq!(scene.forge.open(&new()).unwrap().number, 1);
        assert_eq!(scene.server.pulls().len(), 1);
    }
}

#[test]
fn a_list_that_is_behind_opens_nothing_twice() {
    for flavour in BOTH {
        let scene = Scene::new(flavour);
        scene.server.put(BRANCH, "main", PullStage::Open);
        scene.server.fault("GET", says(200, &[], "[]"));
        assert_eq!(scene.forge.open(&new()).unwrap().number, 1, "seen the second time");
        scene.server.fault("GET", says(200, &[], "[]"));
        scene.server.fault("GET", says(200, &[], "[]"));
        let error = scene.forge.open(&new()).unwrap_err();
        assert!(matches!(error, ForgeError::Hidden { .. }), "{error}");
        assert_eq!(error.retry(), Retry::After(None));
        assert_eq!(scene.server.pulls().len(), 1);
    }
}

#[test]
fn a_forge_says_when_to_come_back() {
    let date = ("Date", "Sun, 06 Nov 1994 08:49:37 GMT");
    let seconds = |seconds| Retry::After(Some(Duration::from_secs(seconds)));
    for (fault, expected) in [
        (says(429, &[("Retry-After", "7")], "{}"), seconds(7)),
        (says(403, &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "784111797"), date], "{}"), seconds(20)),
        (says(403, &[], r#"{"message": "You have exceeded a secondary rate limit."}"#), seconds(60)),
        (says(503, &[("Retry-After", "3")], "<html>"), seconds(3)),
        (says(500, &[], "<html>"), Retry::After(None)),
        (says(502, &[], ""), Retry::After(None)),
        (says(403, &[], r#"{"message": "Resource not accessible"}"#), Retry::Never),
        (says(404, &[], r#"{"message": "Not Found"}"#), Retry::Never),
        (says(410, &[], ""), Retry::Never),
    ] {
        for flavour in BOTH {
            let scene = Scene::new(flavour);
            scene.server.fault("GET", fault.clone());
            let error = scene.forge.open(&new()).unwrap_err();
            assert_eq!(error.retry(), expected, "{error}");
            assert!(!error.hint().is_empty());
            assert_eq!(scene.server.pulls().len(), 0);
            assert_eq!(scene.forge.open(&new()).unwrap().number, 1);
        }
    }
}

#[test]
fn what_is_no_answer_is_none() {
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
fn nobody_waits_for_ever() {
    for flavour in BOTH {
        let scene = Scene::of(flavour, Ground::default(), Duration::from_millis(100));
        for fault in [Fault::Stall, Fault::Falter] {
            scene.server.fault("GET", fault);
            let error = scene.forge.look(1).unwrap_err();
            assert!(matches!(error, ForgeError::TimedOut { .. }), "{error}");
            assert_eq!(error.retry(), Retry::After(None));
        }
    }
}

#[test]
fn a_forge_that_is_not_there_may_come_back() {
    let scene = Scene::new(Flavour::GitHub);
    let Scene { server, forge } = scene;
    drop(server);
    let error = forge.look(1).unwrap_err();
    assert!(matches!(error, ForgeError::Unreached { .. }), "{error}");
    assert_eq!(error.retry(), Retry::After(None));
}

#[test]
fn no_redirect_is_followed() {
    for flavour in BOTH {
        let scene = Scene::new(flavour);
        let eve = testkit::Forge::start(flavour, "o/r", Ground::default()).expect("a free port");
        for (method, status) in [("GET", 301), ("GET", 302), ("POST", 307), ("POST", 308)] {
            scene.server.fault(method, says(status, &[("Location", &format!("{}/x", eve.api()))], ""));
            let error = scene.forge.open(&new()).unwrap_err();
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
            let error = forge.look(1).unwrap_err();
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
        let server = testkit::Forge::start(flavour, project, Ground::default()).expect("a free port");
        let site = site(&server, flavour, project);
        let forge = Forge::new(site.clone(), token(&site, "old"), &Environment::new(), Forge::TIMEOUT);
        let error = forge.open(&new()).unwrap_err();
        assert!(matches!(error, ForgeError::Unauthorized { .. }), "{error}");
        assert!(error.hint().contains("make a new one"));
        assert_eq!(server.pulls().len(), 0);
    }
}

#[test]
fn a_proxy_of_the_environment_is_not_used_for_this_machine() {
    let server = testkit::Forge::start(Flavour::GitHub, "o/r", Ground::default()).expect("a free port");
    let site = site(&server, Flavour::GitHub, "o/r");
    let environment = vec![("https_proxy".into(), "http://127.0.0.1:1".into())];
    let forge = Forge::new(site.clone(), token(&site, TOKEN), &environment, Forge::TIMEOUT);
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
    let settings = Settings { api: Some("https://gitlab.acme.test/api/v4".to_owned()), ..Settings::default() };
    let site = Site::of("git@gitlab.acme.test:a/b", &settings).unwrap().expect("it is a forge");
    let environment = vec![("https_proxy".into(), format!("http://ann:s3cret@{address}").into())];
    let forge = Forge::new(site.clone(), token(&site, TOKEN), &environment, Forge::TIMEOUT);
    let error = forge.look(1).unwrap_err();
    assert!(matches!(error, ForgeError::Unreached { .. }), "{error}");
    assert!(!format!("{error} {error:?}").contains("s3cret"));
    let seen = seen.join().expect("the proxy does not fail");
    assert!(seen.starts_with("CONNECT gitlab.acme.test:443 ") && !seen.contains(TOKEN), "{seen}");

    for proxy in ["socks5://127.0.0.1:1", "::", "ftp://x"] {
        let environment = vec![("https_proxy".into(), proxy.into())];
        let forge = Forge::new(site.clone(), token(&site, TOKEN), &environment, Forge::TIMEOUT);
        assert!(matches!(forge.look(1), Err(ForgeError::BadProxy { .. })), "{proxy}");
    }
}
