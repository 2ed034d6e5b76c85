//! Requests to a forge's API, with limits and checks on the responses.
//!
//! Invariants:
//! - Every request goes to the API's own origin, through a proxy or not, and carries the token; a redirect is an error.
//! - One timeout covers a request: looking up, connecting, and the answer.
//! - Error messages quote the forge without the token, shortened, and without control characters.

use std::io::{self, Read};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;
use ureq::config::Config;
use ureq::http::header::{AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use ureq::http::{HeaderMap, HeaderValue, Method, Request, Response};
use ureq::{Agent, Body, Proxy, ProxyProtocol};

use super::address::ApiAddress;
use super::{ForgeError, ForgeProject, ForgeToken, rate_limit, text};

/// The longest response that is read.
const MAX_RESPONSE_BYTES: usize = 1024 * 1024;

pub(super) struct ForgeApi {
    address: ApiAddress,
    token: ForgeToken,
    proxy: Option<String>,
    timeout: Duration,
    /// Headers that the forge requires in every request.
    extra_headers: ExtraHeaders,
    /// For messages.
    project: String,
}

/// The response of the API, with any status.
pub(super) struct ApiResponse {
    pub(super) status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
}

pub(super) type ExtraHeaders = &'static [(&'static str, &'static str)];

impl ForgeApi {
    pub(super) fn new(
        site: &ForgeProject,
        token: ForgeToken,
        proxy: Option<String>,
        timeout: Duration,
        extra_headers: ExtraHeaders,
    ) -> Self {
        Self { address: site.api.clone(), token, proxy, timeout, extra_headers, project: site.project.clone() }
    }

    fn host(&self) -> String {
        self.address.host_and_port()
    }

    /// Fetches a path, which begins with a slash and may have a query.
    pub(super) fn fetch_json<T: DeserializeOwned>(&self, path: &str) -> Result<T, ForgeError> {
        let answer = self.send_request(&Method::GET, path, None)?;
        if answer.status == 200 { self.parse_body(&answer) } else { Err(self.refusal_error(&answer)) }
    }

    /// Sends a request. Responses with the same meaning everywhere become errors: a rate limit, a failure of the forge, a
    /// rejected token.
    pub(super) fn send_request(
        &self,
        method: &Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<ApiResponse, ForgeError> {
        let answer = self.exchange_request(method, path, body)?;
        let message = self.error_message(&answer);
        let host = self.host();
        if rate_limit::is_rate_limit(answer.status, &answer.headers, &message) {
            return Err(ForgeError::Limited { host, after: Some(rate_limit::wait_or_default(&answer.headers)) });
        }
        match answer.status {
            401 => Err(ForgeError::Unauthorized { host, why: message }),
            status @ (408 | 500..) => {
                Err(ForgeError::Failing { host, status, why: message, after: rate_limit::parse_wait(&answer.headers) })
            }
            _ => Ok(answer),
        }
    }

    /// Turns an unexpected response into an error.
    pub(super) fn refusal_error(&self, answer: &ApiResponse) -> ForgeError {
        let (host, why) = (self.host(), self.error_message(answer));
        match answer.status {
            403 => ForgeError::Forbidden { host, project: self.project.clone(), why },
            404 => ForgeError::NotFound { host, project: self.project.clone(), why },
            status => ForgeError::Refused { host, status, why },
        }
    }

    pub(super) fn parse_body<T: DeserializeOwned>(&self, answer: &ApiResponse) -> Result<T, ForgeError> {
        // The error's own text may contain parts of the response.
        serde_json::from_slice(&answer.body)
            .map_err(|error| self.malformed_error(&format!("it is not what was expected at line {}", error.line())))
    }

    pub(super) fn malformed_error(&self, why: &str) -> ForgeError {
        ForgeError::Malformed { host: self.host(), why: why.to_owned() }
    }

    /// Returns the forge's own reason for an error.
    pub(super) fn error_message(&self, answer: &ApiResponse) -> String {
        let said =
            serde_json::from_slice(&answer.body).map(|value: Value| collect_error_texts(&value)).unwrap_or_default();
        let said = text::quote_line(&self.token.mask_text(&said.join("; ")));
        if said.is_empty() { "it does not say why".to_owned() } else { said }
    }

    fn exchange_request(&self, method: &Method, path: &str, body: Option<&Value>) -> Result<ApiResponse, ForgeError> {
        let mut token =
            HeaderValue::from_str(&self.token.authorization_value()).expect("a token is of letters, digits and signs");
        token.set_sensitive(true);
        let url = format!("{}{}{path}", self.address.origin(), self.address.path);
        let request = Request::builder().method(method).uri(url).header(AUTHORIZATION, token);
        let request = request.header(USER_AGENT, concat!("windlass/", env!("CARGO_PKG_VERSION")));
        let request = self.extra_headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let bad = |_| self.malformed_error("it redirects to an invalid address");
        let agent = build_agent(self.timeout, self.parse_proxy()?);
        let response = match body.map(Value::to_string) {
            Some(body) => agent.run(request.header(CONTENT_TYPE, "application/json").body(body).map_err(bad)?),
            None => agent.run(request.body(()).map_err(bad)?),
        };
        let response = response.map_err(|error| self.convert_client_error(error))?;
        if response.status().is_redirection() {
            return Err(ForgeError::Redirected { host: self.host(), project: self.project.clone() });
        }
        self.read_bounded_body(response)
    }

    fn parse_proxy(&self) -> Result<Option<Proxy>, ForgeError> {
        let Some(url) = &self.proxy else { return Ok(None) };
        let is_usable = |proxy: &Proxy| matches!(proxy.protocol(), ProxyProtocol::Http | ProxyProtocol::Https);
        let proxy = Proxy::new(url).ok().filter(is_usable);
        proxy.map(Some).ok_or_else(|| ForgeError::BadProxy { host: self.host() })
    }

    fn read_bounded_body(&self, response: Response<Body>) -> Result<ApiResponse, ForgeError> {
        let (head, body) = response.into_parts();
        let mut kept = Vec::new();
        let read = body.into_reader().take(MAX_RESPONSE_BYTES as u64 + 1).read_to_end(&mut kept);
        read.map_err(|error| self.convert_client_error(error.into()))?;
        if kept.len() > MAX_RESPONSE_BYTES {
            return Err(ForgeError::TooLong { host: self.host(), most: MAX_RESPONSE_BYTES });
        }
        Ok(ApiResponse { status: head.status.as_u16(), headers: head.headers, body: kept })
    }

    /// Returns the client's error as ours. The client's own texts may hold addresses, so only those of other layers are kept.
    fn convert_client_error(&self, error: ureq::Error) -> ForgeError {
        let host = self.host();
        match error {
            ureq::Error::Timeout(_) => ForgeError::TimedOut { host, after: self.timeout },
            ureq::Error::Io(source) if source.kind() == io::ErrorKind::TimedOut => {
                ForgeError::TimedOut { host, after: self.timeout }
            }
            // A socket never reports `InvalidData`: only the TLS reader does.
            ureq::Error::Io(source) if source.kind() == io::ErrorKind::InvalidData => {
                ForgeError::Tls { host, source: source.into() }
            }
            ureq::Error::Io(source) => ForgeError::Unreached { host, source },
            ureq::Error::Rustls(source) => ForgeError::Tls { host, source: source.into() },
            ureq::Error::Tls(why) => ForgeError::Tls { host, source: why.into() },
            ureq::Error::HostNotFound => {
                ForgeError::Unreached { host, source: io::Error::other("its name has no address") }
            }
            ureq::Error::ConnectProxyFailed(_) => {
                ForgeError::Unreached { host, source: io::Error::other("the proxy refuses the connection") }
            }
            ureq::Error::Protocol(_) | ureq::Error::Http(_) | ureq::Error::LargeResponseHeader(..) => {
                ForgeError::Malformed { host, why: "it is not HTTP".to_owned() }
            }
            _ => ForgeError::Unreached { host, source: io::Error::other("the connection broke") },
        }
    }
}

/// Builds an agent for one exchange. It sets every option that ureq would take from the environment.
fn build_agent(timeout: Duration, proxy: Option<Proxy>) -> Agent {
    let config = Config::builder()
        .proxy(proxy)
        .timeout_global(Some(timeout))
        .max_redirects(0)
        .http_status_as_error(false)
        .max_idle_connections(0)
        .build();
    config.new_agent()
}

/// Collects the texts of an error. GitHub sends a message and errors with messages; GitLab a text, a list, or lists by field.
fn collect_error_texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(values) => values.iter().flat_map(collect_error_texts).collect(),
        Value::Object(fields) => {
            let names = ["message", "error", "error_description", "errors"];
            let known: Vec<String> =
                names.iter().filter_map(|name| fields.get(*name)).flat_map(collect_error_texts).collect();
            let coded = || match (fields.get("field"), fields.get("code")) {
                (Some(field), Some(code)) => {
                    vec![format!("{}: {}", collect_error_texts(field).concat(), collect_error_texts(code).concat())]
                }
                _ => fields
                    .iter()
                    .map(|(name, value)| format!("{name}: {}", collect_error_texts(value).join(", ")))
                    .collect(),
            };
            if known.is_empty() { coded() } else { known }
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn error_texts_are_found_in_all_shapes() {
        for (body, said) in [
            (json!({"message": "Not Found", "documentation_url": "https://x"}), "Not Found"),
            (
                json!({"message": "Validation Failed", "errors": [{"code": "custom", "message": "No commits between a and b"}]}),
                "Validation Failed; No commits between a and b",
            ),
            (
                json!({"message": "Validation Failed", "errors": [{"field": "head", "code": "invalid"}]}),
                "Validation Failed; head: invalid",
            ),
            (
                json!({"message": ["Another open merge request already exists"]}),
                "Another open merge request already exists",
            ),
            (json!({"message": {"title": ["is too long"]}}), "title: is too long"),
            (
                json!({"error": "invalid_token", "error_description": "Token was revoked."}),
                "invalid_token; Token was revoked.",
            ),
            (json!([]), ""),
        ] {
            assert_eq!(collect_error_texts(&body).join("; "), said);
        }
    }
}
