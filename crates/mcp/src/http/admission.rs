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

use super::{ENDPOINT_PATH, HttpAnswer, answer};

/// Minimum and maximum length of a token. A shorter one could be guessed.
const MIN_TOKEN_LENGTH: usize = 16;
const MAX_TOKEN_LENGTH: usize = 256;

/// A secret that clients have to send.
#[derive(Clone)]
pub struct AccessToken(String);

#[derive(Debug, thiserror::Error)]
#[error("a token has {MIN_TOKEN_LENGTH} to {MAX_TOKEN_LENGTH} letters, digits, `-`, `.`, `_` or `~`")]
pub struct AccessTokenError;

impl AccessToken {
    pub fn new(text: &str) -> Result<Self, AccessTokenError> {
        // Only characters that a path can have.
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        match (MIN_TOKEN_LENGTH..=MAX_TOKEN_LENGTH).contains(&text.len()) && text.bytes().all(plain) {
            true => Ok(Self(text.to_owned())),
            false => Err(AccessTokenError),
        }
    }

    fn matches_secret(&self, given: &str) -> bool {
        self.0.as_bytes().ct_eq(given.as_bytes()).into()
    }
}

/// Hides the secret.
impl fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// Refusal of a request.
#[derive(Debug, PartialEq, Eq)]
pub enum AdmissionError {
    AmbiguousHost,
    NoSuchPath,
    NoToken,
    WrongToken,
}

impl AdmissionError {
    pub fn answer(&self) -> HttpAnswer {
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
pub fn admit_request<B>(request: &Request<B>, token: &AccessToken) -> Result<(), AdmissionError> {
    let headers = request.headers();
    let is_single = |name| headers.get_all(name).iter().count() <= 1;
    let names_address =
        |name| headers.get(name).is_some_and(|value| value.as_bytes().iter().any(|byte| b"/@".contains(byte)));
    if request.uri().authority().is_some() || !is_single(HOST) || !is_single(ORIGIN) || names_address(HOST) {
        return Err(AdmissionError::AmbiguousHost);
    }
    let in_path = match request.uri().path().strip_prefix(ENDPOINT_PATH) {
        Some("" | "/") => None,
        Some(below) => Some(below.strip_prefix('/').ok_or(AdmissionError::NoSuchPath)?),
        None => return Err(AdmissionError::NoSuchPath),
    };
    let in_header = headers.get(AUTHORIZATION).and_then(|value| bearer_token(value.to_str().ok()?));
    match in_path.or(in_header) {
        Some(given) if token.matches_secret(given) => Ok(()),
        Some(_) => Err(AdmissionError::WrongToken),
        None => Err(AdmissionError::NoToken),
    }
}

fn bearer_token(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef";

    #[track_caller]
    fn check_admission(path: &str, header: Option<&str>, expected: Result<(), AdmissionError>) {
        let mut request = Request::builder().uri(path);
        if let Some(header) = header {
            request = request.header("authorization", header);
        }
        assert_eq!(admit(&request.body(()).unwrap(), &Token::new(TOKEN).unwrap()), expected);
    }

    #[test]
    fn request_needs_the_token() {
        check_admission("/mcp", Some("Bearer 0123456789abcdef"), Ok(()));
        check_admission("/mcp/", Some("bearer  0123456789abcdef"), Ok(()));
        check_admission("/mcp/0123456789abcdef", None, Ok(()));
        check_admission("/mcp/0123456789abcdef?x=1", None, Ok(()));
        check_admission("http://localhost/mcp/0123456789abcdef", None, Err(AdmissionError::AmbiguousHost));
        check_admission("/mcp", None, Err(AdmissionError::NoToken));
        check_admission("/mcp", Some("0123456789abcdef"), Err(AdmissionError::NoToken));
        check_admission("/mcp", Some("Basic 0123456789abcdef"), Err(AdmissionError::NoToken));
        check_admission("/mcp", Some("Bearer 0123456789abcdeF"), Err(AdmissionError::WrongToken));
        check_admission("/mcp", Some("Bearer 0123456789abcde"), Err(AdmissionError::WrongToken));
        check_admission("/mcp", Some("Bearer "), Err(AdmissionError::WrongToken));
        check_admission("/mcp/0123456789abcdef/", None, Err(AdmissionError::WrongToken));
        check_admission("/mcp/wrong", Some("Bearer 0123456789abcdef"), Err(AdmissionError::WrongToken));
        check_admission("/mcpx", Some("Bearer 0123456789abcdef"), Err(AdmissionError::NoSuchPath));
        check_admission("/", Some("Bearer 0123456789abcdef"), Err(AdmissionError::NoSuchPath));
        check_admission("/.well-known/oauth-protected-resource", None, Err(AdmissionError::NoSuchPath));
    }

    #[test]
    fn ambiguous_host_or_origin_is_refused() {
        let admitted = |headers: &[(&str, &str)]| {
            let mut request = Request::builder().uri("/mcp/0123456789abcdef");
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            admit_request(&request.body(()).unwrap(), &AccessToken::new(TOKEN).unwrap())
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
    fn short_or_unsafe_tokens_are_refused() {
        assert!(AccessToken::new(TOKEN).is_ok());
        for wrong in ["", "short", "0123456789abcde", "0123456789abcde/", "0123456789abcde ", "0123456789abcdé"] {
            assert!(AccessToken::new(wrong).is_err(), "{wrong}");
        }
        assert!(AccessToken::new(&"x".repeat(256)).is_ok());
        assert!(AccessToken::new(&"x".repeat(257)).is_err());
        assert_eq!(format!("{:?}", Token::new(TOKEN).unwrap()), "Token");
    }
}
