//! Webhooks: one request to an external server.
//!
//! ```text
//! text with ${NAME} ─ expand_variables ─► WebhookRequest ─ send_request ─► WebhookResponse or WebhookError
//!                    ─ classify_response ─► WebhookOutcome ─ build_webhook_report ─► HookReport
//! ```
//!
//! Invariants:
//! - A request carries the same idempotency key each time it is sent, so that a server can tell a repeated request from a
//!   new event.
//! - The client follows no redirect: headers and addresses hold secrets, and go only where the configuration says.
//! - No message, and no `Debug` text, shows a value of a header, a password or a query.
//! - One timeout covers the whole exchange: looking up, connecting, sending, and the answer.
//! - The client uses no proxy, and of the environment only the variables that the caller passed in.
//!
//! Not here: the content of a webhook (the caller builds the body), and waiting between attempts (`RetrySchedule`).

mod address;
mod error;
mod exchange;
mod expand;
mod outcome;

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::time::Duration;

use ureq::config::Config;
use ureq::http::header::{
    AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING, USER_AGENT,
};
use ureq::{Agent, Body, http};

use address::WebhookUrl;
pub use error::WebhookError;
pub use exchange::{build_webhook_report, send_until_cancelled};
pub use expand::{ExpandError, expand_variables};
pub use outcome::{WebhookOutcome, classify_response};

/// The largest part of a response body that is kept.
const MAX_RESPONSE_BYTES: usize = 1024 * 1024;
/// A longer timeout is no limit, and some clocks overflow when it is added.
const MAX_REQUEST_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);
const USER_AGENT_NAME: &str = concat!("windlass/", env!("CARGO_PKG_VERSION"));
const IDEMPOTENCY_KEY_HEADER: HeaderName = HeaderName::from_static("idempotency-key");

#[derive(Clone, PartialEq, Eq)]
pub struct WebhookRequest {
    pub url: String,
    pub method: WebhookMethod,
    /// These replace our own headers, except for the key and the length of the body.
    pub headers: BTreeMap<String, String>,
    /// JSON.
    pub body: Vec<u8>,
    pub timeout: Duration,
    /// The same for each attempt to send the request.
    pub key: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WebhookMethod {
    #[default]
    Post,
    Put,
    Patch,
    Delete,
    /// Without a body.
    Get,
}

impl WebhookMethod {
    /// Returns the method of a name, in upper or lower case.
    pub fn parse_name(name: &str) -> Option<Self> {
        let known = [Self::Post, Self::Put, Self::Patch, Self::Delete, Self::Get];
        known.into_iter().find(|method| method.to_http_method().as_str().eq_ignore_ascii_case(name))
    }

    pub fn name(self) -> String {
        self.to_http_method().to_string()
    }

    fn to_http_method(self) -> http::Method {
        match self {
            Self::Post => http::Method::POST,
            Self::Put => http::Method::PUT,
            Self::Patch => http::Method::PATCH,
            Self::Delete => http::Method::DELETE,
            Self::Get => http::Method::GET,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookResponse {
    pub status: u16,
    pub body: Vec<u8>,
    /// Whether the body was longer than the part that is kept.
    pub cut: bool,
    /// How long the server asks us to wait.
    pub retry_after: Option<Duration>,
}

/// Shows the request without secrets.
impl fmt::Debug for WebhookRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("url", &WebhookUrl::parse(&self.url).map_or("…".to_owned(), |address| address.to_string()))
            .field("method", &self.method)
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .field("timeout", &self.timeout)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

/// Sends a request, and waits for the response.
pub fn send_request(request: &WebhookRequest) -> Result<WebhookResponse, WebhookError> {
    let address = WebhookUrl::parse(&request.url)?;
    let mut sent = http::Request::new(());
    *sent.method_mut() = request.method.to_http_method();
    *sent.uri_mut() = address.request_uri()?;
    *sent.headers_mut() = build_headers(request, &address)?;
    let agent = build_agent(request.timeout.min(MAX_REQUEST_TIMEOUT));
    let answer = match request.method {
        WebhookMethod::Get => agent.run(sent),
        _ => agent.run(sent.map(|()| request.body.as_slice())),
    };
    answer.and_then(read_response).map_err(|error| WebhookError::from_client_error(error, &address, request.timeout))
}

/// Builds an agent for one exchange. It sets every option that ureq would take from the environment.
fn build_agent(timeout: Duration) -> Agent {
    Config::builder()
        .proxy(None)
        .timeout_global(Some(timeout))
        .max_redirects(0)
        .http_status_as_error(false)
        .user_agent(USER_AGENT_NAME)
        .max_idle_connections(0)
        .build()
        .into()
}

fn build_headers(request: &WebhookRequest, address: &WebhookUrl) -> Result<HeaderMap, WebhookError> {
    let mut headers = HeaderMap::new();
    headers.insert(USER_AGENT, HeaderValue::from_static(USER_AGENT_NAME));
    if request.method != WebhookMethod::Get {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    if let Some(authorization) = address.authorization_header() {
        headers.insert(AUTHORIZATION, parse_header_value(AUTHORIZATION.as_str(), &authorization)?);
    }
    for (name, value) in &request.headers {
        let bad =
            |_| WebhookError::BadHeader { name: name.escape_debug().to_string(), why: "no header has such a name" };
        let known = HeaderName::from_bytes(name.as_bytes()).map_err(bad)?;
        if ![CONTENT_LENGTH, TRANSFER_ENCODING].contains(&known) {
            headers.insert(known, parse_header_value(name, value)?);
        }
    }
    headers.insert(IDEMPOTENCY_KEY_HEADER, parse_header_value(IDEMPOTENCY_KEY_HEADER.as_str(), &request.key)?);
    Ok(headers)
}

fn parse_header_value(name: &str, value: &str) -> Result<HeaderValue, WebhookError> {
    HeaderValue::from_bytes(value.as_bytes()).map_err(|_| WebhookError::BadHeader {
        name: name.to_owned(),
        why: if value.contains(['\r', '\n']) {
            "its value has a line break"
        } else {
            "its value has a control character"
        },
    })
}

fn read_response(answer: http::Response<Body>) -> Result<WebhookResponse, ureq::Error> {
    let (head, body) = answer.into_parts();
    let mut kept = Vec::new();
    body.into_reader().take(MAX_RESPONSE_BYTES as u64 + 1).read_to_end(&mut kept)?;
    let cut = kept.len() > MAX_RESPONSE_BYTES;
    kept.truncate(MAX_RESPONSE_BYTES);
    Ok(WebhookResponse {
        status: head.status.as_u16(),
        body: kept,
        cut,
        retry_after: outcome::parse_retry_after(&head.headers),
    })
}
