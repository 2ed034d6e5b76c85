//! Checks of requests: an HTTP address, a known method, headers of one line each.

use windlass_hooks::WebhookAddress;
use windlass_hooks::http::Method;

use super::entry::{Brief, Headers, Request};
use super::error::{ConfigProblem, quoted, suggestion};
use super::reader::Located;

const METHODS: &[&str] = &["GET", "POST", "PUT", "PATCH", "DELETE"];

/// Checks a request and expands its short form.
pub fn request(http: Located<Brief<Request>>) -> Result<Request, ConfigProblem> {
    let Located { value, at } = http;
    let request = match value {
        Brief::Word(url) => Request { url: Located { value: url, at }, method: None, headers: Headers::default() },
        Brief::Full(request) => request,
    };
    if !request.url.starts_with("https://") && !request.url.starts_with("http://") {
        return Err(ConfigProblem::new(format!("{} is not an address of the web", quoted(&request.url)))
            .suggest("an address starts with `https://` or `http://`".to_owned())
            .at(request.url.at.clone()));
    }
    request.method.as_ref().map_or(Ok(()), method)?;
    request.headers.0.iter().try_for_each(|(name, value)| header(name, value))?;
    Ok(request)
}

fn method(written: &Located<String>) -> Result<(), ConfigProblem> {
    match METHODS.contains(&written.as_str()) {
        true => Ok(()),
        false => Err(ConfigProblem::new(format!("unknown method {}", quoted(written)))
            .suggest(suggestion(written, METHODS))
            .at(written.at.clone())),
    }
}

fn header(name: &Located<String>, value: &Located<String>) -> Result<(), ConfigProblem> {
    // The token characters of HTTP.
    let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if name.is_empty() || !name.chars().all(token) {
        return Err(ConfigProblem::new(format!("{} is not the name of a header", quoted(name)))
            .suggest("a name is letters, digits and `-`".to_owned())
            .at(name.at.clone()));
    }
    match value.contains(|c: char| c.is_control() && c != '\t') {
        true => Err(ConfigProblem::new(format!(
            "the header {} has a line break or another control character",
            quoted(name)
        ))
        .suggest("a header is one line".to_owned())
        .at(value.at.clone())),
        false => Ok(()),
    }
}

impl Request {
    /// Returns the address that the webhook client uses.
    pub fn address(&self) -> WebhookAddress {
        let method = self.method.as_ref().and_then(|method| Method::named(method));
        let headers = self.headers.0.iter().map(|(name, value)| (name.value.clone(), value.value.clone()));
        WebhookAddress { url: self.url.value.clone(), method: method.unwrap_or_default(), headers: headers.collect() }
    }

    pub fn describe(&self) -> String {
        format!("{} {}", self.method.as_ref().map_or("POST", |method| method.as_str()), self.url.value)
    }
}
