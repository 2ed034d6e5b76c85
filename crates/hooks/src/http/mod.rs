//! Webhooks: a request to somebody else's server, once.
//!
//! ```text
//! text with ${NAME} ─ expand ─► Request ─ send ─► Response or Unsent ─ meaning ─► Ended ─ report ─► HookReport
//! ```
//!
//! Invariants:
//! - The same request carries the same key, however often it is sent: a server can tell a second sending from a second event.
//! - Nothing is sent to a host that the address does not name. Headers and addresses hold secrets.
//! - No message, and no `Debug` text, shows a value of a header, a password or a query.
//! - One timeout covers everything: looking up, connecting, sending, redirects, and the answer.
//! - Nothing of the environment is used that was not given: neither a proxy nor a value.
//!
//! Not here: what a webhook says (its caller makes the body), and waiting between tries (`Retry`).

mod address;
mod asking;
mod expand;
mod meaning;
mod resolver;
mod unsent;

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::time::{Duration, Instant};

use ureq::config::Config;
use ureq::http::header::{
    AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, TRANSFER_ENCODING,
    USER_AGENT,
};
use ureq::unversioned::transport::DefaultConnector;
use ureq::{Agent, Body, Proxy, http};

use address::Address;
pub use asking::{ask, report};
pub use expand::{ExpandError, expand};
pub use meaning::{Ended, meaning};
pub use unsent::Unsent;
use unsent::{Peer, proxy_origin};

/// The most that is kept of an answer.
const KEPT: usize = 1024 * 1024;
/// How many redirects are followed.
const REDIRECTS: usize = 5;
/// More than this is no limit, and cannot be added to every clock.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);
const KEY: HeaderName = HeaderName::from_static("idempotency-key");

#[derive(Clone, PartialEq, Eq)]
pub struct Request {
    pub url: String,
    pub method: Method,
    /// They win over ours, but for the key and the length of the body.
    pub headers: BTreeMap<String, String>,
    /// JSON.
    pub body: Vec<u8>,
    pub timeout: Duration,
    /// The same for every sending of the same request.
    pub key: String,
    /// The address of a proxy that every connection goes through.
    pub proxy: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Method {
    #[default]
    Post,
    Put,
    Patch,
    Delete,
    /// Without the body.
    Get,
}

impl Method {
    /// By its name, in capitals or not.
    pub fn named(name: &str) -> Option<Self> {
        let known = [Self::Post, Self::Put, Self::Patch, Self::Delete, Self::Get];
        known.into_iter().find(|method| method.http().as_str().eq_ignore_ascii_case(name))
    }

    pub fn name(self) -> String {
        self.http().to_string()
    }

    fn http(self) -> http::Method {
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
pub struct Response {
    pub status: u16,
    pub body: Vec<u8>,
    /// Whether there was more than is kept.
    pub cut: bool,
    /// How long the server wants to be left alone.
    pub retry_after: Option<Duration>,
}

/// Without what may be secret.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("url", &Address::parse(&self.url).map_or("…".to_owned(), |address| address.to_string()))
            .field("method", &self.method)
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .field("timeout", &self.timeout)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

/// Sends a request, and waits for its answer. Redirects that stay with the server get the same request again.
pub fn send(request: &Request) -> Result<Response, Unsent> {
    let started = Instant::now();
    let mut address = Address::parse(&request.url)?;
    let headers = headers(request, &address)?;
    let proxy = request.proxy.as_deref().map(proxy).transpose()?;
    for _ in 0..=REDIRECTS {
        let left = request.timeout.min(LONGEST).saturating_sub(started.elapsed());
        let agent = agent(left, proxy.clone());
        let peer = Peer { address: &address, proxy: request.proxy.as_deref(), timeout: request.timeout };
        let answer = exchange(request, &headers, &agent, &peer)?;
        match location(&answer, &address)? {
            Some(location) => address = address.follow(location)?,
            None => return read(answer).map_err(|error| peer.failed(error)),
        }
    }
    Err(Unsent::TooManyRedirects { url: address.to_string(), most: REDIRECTS })
}

/// An agent for one exchange. What it would take from the environment is set here.
fn agent(timeout: Duration, proxy: Option<Proxy>) -> Agent {
    let config = Config::builder()
        .proxy(proxy)
        .timeout_global(Some(timeout))
        .max_redirects(0)
        .http_status_as_error(false)
        .user_agent(name())
        .max_idle_connections(0)
        .build();
    Agent::with_parts(config, DefaultConnector::default(), resolver::Named::default())
}

fn name() -> &'static str {
    concat!("windlass/", env!("CARGO_PKG_VERSION"))
}

fn proxy(url: &str) -> Result<Proxy, Unsent> {
    let bad = || Unsent::BadProxy { proxy: proxy_origin(url) };
    let proxy = Proxy::new(url).map_err(|_| bad())?;
    if matches!(proxy.protocol(), ureq::ProxyProtocol::Http | ureq::ProxyProtocol::Https) {
        Ok(proxy)
    } else {
        Err(bad())
    }
}

fn headers(request: &Request, address: &Address) -> Result<HeaderMap, Unsent> {
    let mut headers = HeaderMap::new();
    headers.insert(USER_AGENT, HeaderValue::from_static(name()));
    if request.method != Method::Get {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    if let Some(authorization) = address.authorization() {
        headers.insert(AUTHORIZATION, header_value(AUTHORIZATION.as_str(), &authorization)?);
    }
    for (name, value) in &request.headers {
        let bad = |_| Unsent::BadHeader { name: name.escape_debug().to_string(), why: "no header has such a name" };
        let known = HeaderName::from_bytes(name.as_bytes()).map_err(bad)?;
        if ![CONTENT_LENGTH, TRANSFER_ENCODING].contains(&known) {
            headers.insert(known, header_value(name, value)?);
        }
    }
    headers.insert(KEY, header_value(KEY.as_str(), &request.key)?);
    Ok(headers)
}

fn header_value(name: &str, value: &str) -> Result<HeaderValue, Unsent> {
    HeaderValue::from_bytes(value.as_bytes()).map_err(|_| Unsent::BadHeader {
        name: name.to_owned(),
        why: if value.contains(['\r', '\n']) {
            "its value has a line break"
        } else {
            "its value has a control character"
        },
    })
}

/// One request and the beginning of its answer.
fn exchange(
    request: &Request,
    headers: &HeaderMap,
    agent: &Agent,
    peer: &Peer,
) -> Result<http::Response<Body>, Unsent> {
    let mut sent = http::Request::new(());
    *sent.method_mut() = request.method.http();
    *sent.uri_mut() = peer.address.uri()?;
    *sent.headers_mut() = headers.clone();
    let answer = match request.method {
        Method::Get => agent.run(sent),
        _ => agent.run(sent.map(|()| request.body.as_slice())),
    };
    answer.map_err(|error| peer.failed(error))
}

/// Where an answer sends us, if it does.
fn location<'a>(answer: &'a http::Response<Body>, address: &Address) -> Result<Option<&'a str>, Unsent> {
    if !matches!(answer.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let location = answer.headers().get(LOCATION).and_then(|location| location.to_str().ok());
    let malformed = || Unsent::Malformed { url: address.to_string(), why: "its redirect leads nowhere".to_owned() };
    location.map(Some).ok_or_else(malformed)
}

fn read(answer: http::Response<Body>) -> Result<Response, ureq::Error> {
    let (head, body) = answer.into_parts();
    let mut kept = Vec::new();
    body.into_reader().take(KEPT as u64 + 1).read_to_end(&mut kept)?;
    let cut = kept.len() > KEPT;
    kept.truncate(KEPT);
    Ok(Response { status: head.status.as_u16(), body: kept, cut, retry_after: meaning::retry_after(&head.headers) })
}
