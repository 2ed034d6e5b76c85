//! Admission of clients: each request needs the token.
//!
//! A client sends it as `Authorization: Bearer TOKEN`, or as the last part of the path if it cannot send headers. rmcp checks Host
//! and Origin, so that a page in a browser cannot get here under another name. Each of these headers occurs at most once, and
//! the request target is a path alone, so that rmcp and a client cannot read them differently.
//!
//! Invariants:
//! - The time of a refusal does not depend on how much of a token is right.
//! - Nothing of a request but its head is read before it is admitted.

use std::fmt;

use hyper::header::{AUTHORIZATION, HOST, HeaderValue, ORIGIN, WWW_AUTHENTICATE};
use hyper::{Request, StatusCode};
use subtle::ConstantTimeEq;

use super::{Answer, PATH, answer};

/// Minimum and maximum length of a token. A shorter one could be guessed.
const SHORTEST: usize = 16;
const LONGEST: usize = 256;

/// A secret that clients have to send.
#[derive(Clone)]
pub struct Token(String);

#[derive(Debug, thiserror::Error)]
#[error("a token has {SHORTEST} to {LONGEST} letters, digits, `-`, `.`, `_` or `~`")]
pub struct TokenError;

impl Token {
    pub fn new(text: &str) -> Result<Self, TokenError> {
        // Only characters that a path can have.
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        match (SHORTEST..=LONGEST).contains(&text.len()) && text.bytes().all(plain) {
            true => Ok(Self(text.to_owned())),
            false => Err(TokenError),
        }
    }

    fn is(&self, given: &str) -> bool {
        self.0.as_bytes().ct_eq(given.as_bytes()).into()
    }
}

/// Hides the secret.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// Refusal of a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Refused {
    AmbiguousHost,
    NoSuchPath,
    NoToken,
    WrongToken,
}

impl Refused {
    pub fn answer(&self) -> Answer {
        let (status, text) = match self {
            Self::AmbiguousHost => {
                (StatusCode::BAD_REQUEST, "send one `Host`, at most one `Origin`, and a path that begins with `/`")
            }
            Self::NoSuchPath => (StatusCode::NOT_FOUND, "there is only /mcp here"),
            Self::NoToken => {
                (StatusCode::UNAUTHORIZED, "send `Authorization: Bearer TOKEN`, or /mcp/TOKEN as the path")
            }
            Self::WrongToken => (StatusCode::UNAUTHORIZED, "this is not the token of this server"),
        };
        let mut answer = answer(status, text);
        if status == StatusCode::UNAUTHORIZED {
            answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        answer
    }
}

/// Checks that a request has the token.
pub fn admit<B>(request: &Request<B>, token: &Token) -> Result<(), Refused> {
    let headers = request.headers();
    let is_single = |name| headers.get_all(name).iter().count() <= 1;
    let names_address =
        |name| headers.get(name).is_some_and(|value| value.as_bytes().iter().any(|byte| b"/@".contains(byte)));
    if request.uri().authority().is_some() || !is_single(HOST) || !is_single(ORIGIN) || names_address(HOST) {
        return Err(Refused::AmbiguousHost);
    }
    let in_path = match request.uri().path().strip_prefix(PATH) {
        Some("" | "/") => None,
        Some(below) => Some(below.strip_prefix('/').ok_or(Refused::NoSuchPath)?),
        None => return Err(Refused::NoSuchPath),
    };
    let in_header = headers.get(AUTHORIZATION).and_then(|value| bearer(value.to_str().ok()?));
    match in_path.or(in_header) {
        Some(given) if token.is(given) => Ok(()),
        Some(_) => Err(Refused::WrongToken),
        None => Err(Refused::NoToken),
    }
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef";

    #[track_caller]
    fn check(path: &str, header: Option<&str>, expected: Result<(), Refused>) {
        let mut request = Request::builder().uri(path);
        if let Some(header) = header {
            request = request.header("authorization", header);
        }
        assert_eq!(admit(&request.body(()).unwrap(), &Token::new(TOKEN).unwrap()), expected);
    }

    #[test]
    fn only_who_has_the_token_is_admitted() {
        check("/mcp", Some("Bearer 0123456789abcdef"), Ok(()));
        check("/mcp/", Some("bearer  0123456789abcdef"), Ok(()));
        check("/mcp/0123456789abcdef", None, Ok(()));
        check("/mcp/0123456789abcdef?x=1", None, Ok(()));
        check("http://localhost/mcp/0123456789abcdef", None, Err(Refused::AmbiguousHost));
        check("/mcp", None, Err(Refused::NoToken));
        check("/mcp", Some("0123456789abcdef"), Err(Refused::NoToken));
        check("/mcp", Some("Basic 0123456789abcdef"), Err(Refused::NoToken));
        check("/mcp", Some("Bearer 0123456789abcdeF"), Err(Refused::WrongToken));
        check("/mcp", Some("Bearer 0123456789abcde"), Err(Refused::WrongToken));
        check("/mcp", Some("Bearer "), Err(Refused::WrongToken));
        check("/mcp/0123456789abcdef/", None, Err(Refused::WrongToken));
        check("/mcp/wrong", Some("Bearer 0123456789abcdef"), Err(Refused::WrongToken));
        check("/mcpx", Some("Bearer 0123456789abcdef"), Err(Refused::NoSuchPath));
        check("/", Some("Bearer 0123456789abcdef"), Err(Refused::NoSuchPath));
        check("/.well-known/oauth-protected-resource", None, Err(Refused::NoSuchPath));
    }

    #[test]
    fn host_and_origin_have_one_meaning() {
        let admitted = |headers: &[(&str, &str)]| {
            let mut request = Request::builder().uri("/mcp/0123456789abcdef");
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            admit(&request.body(()).unwrap(), &Token::new(TOKEN).unwrap())
        };
        assert_eq!(admitted(&[("host", "localhost:1"), ("origin", "http://localhost:1")]), Ok(()));
        for headers in [
            [("host", "localhost"), ("host", "evil.test")],
            [("host", "localhost"), ("host", "localhost")],
            [("origin", "http://localhost"), ("origin", "http://evil.test")],
            [("host", "http://localhost"), ("origin", "http://localhost")],
        ] {
            assert_eq!(admitted(&headers), Err(Refused::AmbiguousHost), "{headers:?}");
        }
    }

    #[test]
    fn tokens_are_long_and_plain() {
        assert!(Token::new(TOKEN).is_ok());
        for wrong in ["", "short", "0123456789abcde", "0123456789abcde/", "0123456789abcde ", "0123456789abcdé"] {
            assert!(Token::new(wrong).is_err(), "{wrong}");
        }
        assert!(Token::new(&"x".repeat(256)).is_ok());
        assert!(Token::new(&"x".repeat(257)).is_err());
        assert_eq!(format!("{:?}", Token::new(TOKEN).unwrap()), "Token");
    }
}
