//! Classifies the response to a webhook, or the lack of one.
//!
//! | response | outcome |
//! | --- | --- |
//! | 2xx | delivered |
//! | 408, 425, 429, 5xx; no response for a transient reason | worth another attempt |
//! | anything else, redirects too; a wrong address or header, no secure connection | not worth another attempt |

use std::error::Error;
use std::time::Duration;

use ureq::http::StatusCode;
use ureq::http::header::{HeaderMap, RETRY_AFTER};

use super::{MAX_RESPONSE_BYTES, WebhookError, WebhookResponse};
use crate::text::clean_output;

/// The longest wait that a server can demand.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(5 * 60);
/// The number of letters that a message quotes from a refusal.
const MAX_QUOTED_LETTERS: usize = 200;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WebhookOutcome {
    /// The server accepted the request. The text is the body as it came.
    Ok(String),
    /// Another attempt may succeed, but not before `after`.
    Retryable { why: String, after: Option<Duration> },
    /// The request timed out; another attempt may succeed.
    TimedOut { why: String },
    /// No attempt can succeed.
    Failed { why: String },
}

pub fn classify_response(result: &Result<WebhookResponse, WebhookError>) -> WebhookOutcome {
    match result {
        Ok(response) => match response.status {
            200..=299 => WebhookOutcome::Ok(body_text(response)),
            408 | 425 | 429 | 500..=599 => {
                WebhookOutcome::Retryable { why: describe_refusal(response), after: response.retry_after }
            }
            301 | 302 | 303 | 307 | 308 => {
                let why = format!(
                    "{}; redirects are not followed: configure the address that it leads to",
                    describe_refusal(response)
                );
                WebhookOutcome::Failed { why }
            }
            _ => WebhookOutcome::Failed { why: describe_refusal(response) },
        },
        Err(unsent @ WebhookError::TimedOut { .. }) => WebhookOutcome::TimedOut { why: describe_error(unsent) },
        Err(unsent) if unsent.is_transient() => WebhookOutcome::Retryable { why: describe_error(unsent), after: None },
        Err(unsent) => WebhookOutcome::Failed { why: describe_error(unsent) },
    }
}

fn body_text(response: &WebhookResponse) -> String {
    let text = String::from_utf8_lossy(&response.body);
    let left_out = format!("\n[more than {} MiB: the rest is left out]\n", MAX_RESPONSE_BYTES / 1024 / 1024);
    if response.cut { text.into_owned() + &left_out } else { text.into_owned() }
}

/// Returns a line such as `the server answered 503 Service Unavailable: try later`.
fn describe_refusal(response: &WebhookResponse) -> String {
    let name = StatusCode::from_u16(response.status).ok().and_then(|status| status.canonical_reason());
    let name = name.map(|name| format!(" {name}")).unwrap_or_default();
    let body = clean_output(&String::from_utf8_lossy(&response.body));
    let line = body.lines().map(str::trim).find(|line| !line.is_empty());
    let quoted =
        line.map(|line| format!(": {}", line.chars().take(MAX_QUOTED_LETTERS).collect::<String>())).unwrap_or_default();
    format!("the server answered {}{name}{quoted}", response.status)
}

/// Returns the error, its causes and its hint.
fn describe_error(unsent: &WebhookError) -> String {
    let mut text = unsent.to_string();
    let mut cause = unsent.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    clean_output(&format!("{text}; {}", unsent.hint()))
}

/// Returns how many seconds the server asks us to wait. A date in that header is ignored.
pub(super) fn parse_retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds: u64 = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(MAX_RETRY_AFTER))
}

#[cfg(test)]
mod tests {
    use std::io;

    use ureq::http::HeaderValue;

    use super::*;

    fn response(status: u16, body: &str) -> Result<WebhookResponse, WebhookError> {
        let retry_after = Some(Duration::from_secs(7));
        Ok(WebhookResponse { status, body: body.as_bytes().to_vec(), cut: false, retry_after })
    }

    #[test]
    fn statuses_map_to_outcomes_as_in_table() {
        for status in [200, 201, 204, 299] {
            assert_eq!(classify_response(&response(status, "fine")), WebhookOutcome::Ok("fine".to_owned()), "{status}");
        }
        for status in [408, 425, 429, 500, 502, 503, 504, 599] {
            let ended = classify_response(&response(status, ""));
            assert!(
                matches!(ended, WebhookOutcome::Retryable { after: Some(after), .. } if after.as_secs() == 7),
                "{status}"
            );
        }
        for status in [300, 304, 400, 401, 403, 404, 409, 410, 422, 451, 600] {
            assert!(matches!(classify_response(&response(status, "")), WebhookOutcome::Failed { .. }), "{status}");
        }
    }

    #[test]
    fn server_refusal_message_quotes_status_and_first_body_line() {
        let why = |status, body: &str| match classify_response(&response(status, body)) {
            WebhookOutcome::Retryable { why, .. }
            | WebhookOutcome::TimedOut { why }
            | WebhookOutcome::Failed { why } => why,
            WebhookOutcome::Ok(text) => panic!("{text}"),
        };
        assert_eq!(why(404, ""), "the server answered 404 Not Found");
        assert_eq!(why(599, " \n"), "the server answered 599");
        assert_eq!(why(503, "\n \x1b[31mlater\x1b[0m \nmore"), "the server answered 503 Service Unavailable: later");
        assert_eq!(why(500, &"ä".repeat(1000)).chars().filter(|letter| *letter == 'ä').count(), MAX_QUOTED_LETTERS);
    }

    #[test]
    fn cut_body_ends_with_notice() {
        let response = WebhookResponse { status: 200, body: b"{\xff".to_vec(), cut: true, retry_after: None };
        assert_eq!(
            classify_response(&Ok(response)),
            WebhookOutcome::Ok("{\u{fffd}\n[more than 1 MiB: the rest is left out]\n".to_owned())
        );
    }

    #[test]
    fn failures_say_their_cause_and_what_to_do() {
        let source = io::Error::other("no such name");
        let ended = classify_response(&Err(WebhookError::ConnectionFailed { host: "hooks.test".to_owned(), source }));
        let why = "cannot complete the request to hooks.test: no such name; check the host and the port, the network, and \
                   that the server is running";
        assert_eq!(ended, WebhookOutcome::Retryable { why: why.to_owned(), after: None });
    }

    #[test]
    fn retry_after_header_is_read_and_bounded() {
        assert_eq!(parse_retry_after(&HeaderMap::new()), None);
        for (given, expected) in [
            ("0", Some(0)),
            (" 17 ", Some(17)),
            ("301", Some(300)),
            ("", None),
            ("-1", None),
            ("1.5", None),
            ("soon", None),
            ("Sun, 06 Nov 1994 08:49:37 GMT", None),
        ] {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static(given))]);
            assert_eq!(parse_retry_after(&headers).map(|wait| wait.as_secs()), expected, "{given}");
        }
    }
}
