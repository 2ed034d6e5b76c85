//! Checks of requests: an HTTP address, a known method, headers of one line each.

use windlass_hooks::WebhookTemplate;
use windlass_hooks::http::WebhookMethod;

use super::error::{ConfigProblem, quote_text, suggest_known_name};
use super::hook_settings::{HeaderList, RequestSettings, WordOrMap};
use super::reader::LocatedValue;

const KNOWN_METHODS: &[&str] = &["GET", "POST", "PUT", "PATCH", "DELETE"];

/// Checks a request and expands its short form.
pub fn check_request(http: LocatedValue<WordOrMap<RequestSettings>>) -> Result<RequestSettings, ConfigProblem> {
    let LocatedValue { value, at } = http;
    let request = match value {
        WordOrMap::Word(url) => {
            RequestSettings { url: LocatedValue { value: url, at }, method: None, headers: HeaderList::default() }
        }
        WordOrMap::Full(request) => request,
    };
    if !request.url.starts_with("https://") && !request.url.starts_with("http://") {
        return Err(ConfigProblem::new(format!("{} is not an address of the web", quoted(&request.url)))
            .with_suggestion("an address starts with `https://` or `http://`".to_owned())
            .with_range(request.url.at.clone()));
    }
    request.method.as_ref().map_or(Ok(()), check_method)?;
    request.headers.0.iter().try_for_each(|(name, value)| check_header(name, value))?;
    Ok(request)
}

fn check_method(written: &LocatedValue<String>) -> Result<(), ConfigProblem> {
    match KNOWN_METHODS.contains(&written.as_str()) {
        true => Ok(()),
        false => Err(ConfigProblem::new(format!("unknown method {}", quoted(written)))
            .with_suggestion(suggest_known_name(written, KNOWN_METHODS))
            .with_range(written.at.clone())),
    }
}

fn check_header(name: &LocatedValue<String>, value: &LocatedValue<String>) -> Result<(), ConfigProblem> {
    // The token characters of HTTP.
    let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if name.is_empty() || !name.chars().all(token) {
        return Err(ConfigProblem::new(format!("{} is not the name of a header", quoted(name)))
            .with_suggestion("a name is letters, digits and `-`".to_owned())
            .with_range(name.at.clone()));
    }
    match value.contains(|c: char| c.is_control() && c != '\t') {
        true => Err(ConfigProblem::new(format!(
            "the header {} has a line break or another control character",
            quoted(name)
        ))
        .with_suggestion("a header is one line".to_owned())
        .with_range(value.at.clone())),
        false => Ok(()),
    }
}

impl RequestSettings {
    /// Returns the address that the webhook client uses.
    pub fn webhook_address(&self) -> WebhookTemplate {
        let method = self.method.as_ref().and_then(|method| WebhookMethod::parse_name(method));
        let headers = self.headers.0.iter().map(|(name, value)| (name.value.clone(), value.value.clone()));
        WebhookTemplate { url: self.url.value.clone(), method: method.unwrap_or_default(), headers: headers.collect() }
    }

    pub fn describe_request(&self) -> String {
        format!("{} {}", self.method.as_ref().map_or("POST", |method| method.as_str()), self.url.value)
    }
}
