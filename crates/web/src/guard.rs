//! The checks before every request, and the headers of every answer.
//!
//! Invariants:
//! - A request has one `Host` that the server knows, so a page in a browser cannot reach it under another name.
//! - A request that changes something comes from this page or from a program: its origin is ours, and its body is JSON.
//! - The browser runs only our own script, and reads no markup from data.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, COOKIE, HOST, HeaderName,
    HeaderValue, ORIGIN, REFERRER_POLICY, STRICT_TRANSPORT_SECURITY, TRANSFER_ENCODING, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use windlass_app::web_access::{PageViewer, ViewerRole};

use crate::error::RequestError;
use crate::peer::ConnectionEnds;
use crate::pool::run_blocking;
use crate::state::{ServerState, SharedState};
use crate::tool_route::MCP_PATH;

const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'";
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const CROSS_ORIGIN_OPENER: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const CROSS_ORIGIN_RESOURCE: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
const PERMISSIONS: HeaderName = HeaderName::from_static("permissions-policy");

/// The paths that need no login, because they have a secret of their own.
const QUESTION_PATH: &str = "/api/questions/";

/// The viewer of a request, and the secret that proved it.
#[derive(Clone)]
pub struct AuthenticatedViewer {
    pub viewer: PageViewer,
    pub secret: String,
}

impl AuthenticatedViewer {
    /// Refuses a viewer whose role is too small.
    pub fn require(&self, role: ViewerRole) -> Result<(), RequestError> {
        if self.viewer.role >= role {
            return Ok(());
        }
        let error = format!("{} lacks the role `{role}`", self.viewer.name);
        let hint = format!("a viewer with the role `{role}` can; yours is `{}`", self.viewer.role);
        Err(RequestError::new(StatusCode::FORBIDDEN, "role", &error, &hint))
    }
}

/// Checks a request, finds its viewer, and adds the headers of the answer.
pub async fn check_request(
    State(state): SharedState,
    Extension(ends): Extension<ConnectionEnds>,
    mut request: Request,
    next: Next,
) -> Response {
    let ends_tool_session = request.method() == Method::DELETE && request.uri().path() == MCP_PATH;
    // The end of a session over MCP is checked as a read: it has no body.
    let method = if ends_tool_session { &Method::GET } else { request.method() };
    let checked = check_headers(&state, method, request.headers());
    let admitted = match checked {
        Ok(()) => {
            let secret = find_secret(&state, request.headers());
            let is_open = request.method() != Method::POST && !request.uri().path().starts_with(QUESTION_PATH);
            admit_viewer(state.clone(), secret, is_open, ends).await
        }
        Err(error) => Err(error),
    };
    let mut response = match admitted {
        Ok(viewer) => {
            if let Some(viewer) = viewer {
                request.extensions_mut().insert(viewer);
            }
            next.run(request).await
        }
        Err(error) => error.into_response(),
    };
    add_headers(&state, response.headers_mut());
    response
}

fn check_headers(state: &ServerState, method: &Method, headers: &HeaderMap) -> Result<(), RequestError> {
    let host = single_header(headers, &HOST)?.ok_or_else(|| RequestError::bad_request("the request has no Host"))?;
    if !state.is_known_host(host) {
        let hint = "open the address that `windlass serve` prints; `--host` adds a name";
        return Err(RequestError::new(StatusCode::MISDIRECTED_REQUEST, "host", "this name is not served here", hint));
    }
    if let Some(origin) = single_header(headers, &ORIGIN)?
        && !state.is_own_origin(origin)
    {
        return Err(foreign_origin());
    }
    if matches!(*method, Method::GET | Method::HEAD) {
        let length = single_header(headers, &CONTENT_LENGTH)?.unwrap_or("0");
        return match length == "0" && !headers.contains_key(TRANSFER_ENCODING) {
            true => Ok(()),
            false => Err(RequestError::bad_request("a request that reads has no body")),
        };
    }
    if *method != Method::POST {
        let error = "only GET and POST are served";
        return Err(RequestError::new(StatusCode::METHOD_NOT_ALLOWED, "method", error, ""));
    }
    let site = single_header(headers, &SEC_FETCH_SITE)?;
    if site.is_some_and(|site| site != "same-origin" && site != "none") {
        return Err(foreign_origin());
    }
    let kind = single_header(headers, &CONTENT_TYPE)?.unwrap_or_default();
    if kind.split(';').next().map(str::trim) != Some("application/json") {
        let error = "the body has to be JSON, with `Content-Type: application/json`";
        return Err(RequestError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "content_type", error, ""));
    }
    // A browser with a cookie names its origin. Programs have a token instead.
    if headers.contains_key(COOKIE) && !headers.contains_key(ORIGIN) && site.is_none() {
        return Err(foreign_origin());
    }
    Ok(())
}

fn foreign_origin() -> RequestError {
    RequestError::new(StatusCode::FORBIDDEN, "origin", "the request comes from another page", "")
}

/// Returns a header that may occur once.
fn single_header<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h str>, RequestError> {
    let mut values = headers.get_all(name).iter();
    let value = values.next();
    if values.next().is_some() {
        return Err(RequestError::bad_request("a header occurs twice"));
    }
    value.map(HeaderValue::to_str).transpose().map_err(|_| RequestError::bad_request("a header is not text"))
}

/// Finds the viewer with a secret, and refuses a process below an agent or a hook. An open request without a secret needs neither.
/// Both read files, so they run where they may block.
async fn admit_viewer(
    state: Arc<ServerState>,
    secret: Option<String>,
    is_open: bool,
    ends: ConnectionEnds,
) -> Result<Option<AuthenticatedViewer>, RequestError> {
    if secret.is_none() && is_open {
        return Ok(None);
    }
    run_blocking(move || {
        if ends.comes_from_supervised_process() {
            let hint = "only a person can use the page; agents have `windlass tool`";
            let error = "the request comes from an agent or a hook";
            return Err(RequestError::new(StatusCode::FORBIDDEN, "agent", error, hint));
        }
        let Some(secret) = secret else { return Ok(None) };
        let viewer = state.find_viewer(&secret)?;
        Ok(viewer.map(|viewer| AuthenticatedViewer { viewer, secret }))
    })
    .await
}

/// Returns the token or the cookie of a request.
fn find_secret(state: &ServerState, headers: &HeaderMap) -> Option<String> {
    let token = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    token.or_else(|| find_cookie(headers, state.access().cookie_name())).map(str::to_owned)
}

fn find_cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.into_iter().find(|(own, _)| *own == name).map(|(_, value)| value)
}

fn add_headers(state: &ServerState, headers: &mut HeaderMap) {
    let fixed = [
        (CONTENT_SECURITY_POLICY, CONTENT_POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
        (CROSS_ORIGIN_OPENER, "same-origin"),
        (CROSS_ORIGIN_RESOURCE, "same-origin"),
        (PERMISSIONS, "camera=(), microphone=(), geolocation=()"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if !headers.contains_key(CACHE_CONTROL) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    if state.is_encrypted() {
        headers.insert(STRICT_TRANSPORT_SECURITY, HeaderValue::from_static("max-age=31536000"));
    }
}
