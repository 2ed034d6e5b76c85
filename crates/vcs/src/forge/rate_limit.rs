//! Rate limits of forges, and how long to wait.

use std::time::Duration;

use jiff::fmt::rfc2822;
use ureq::http::HeaderMap;

/// The longest wait that a forge can demand. The windows of forges are hours at most.
const MAX_WAIT: Duration = Duration::from_secs(60 * 60);
/// The wait that GitHub asks for if it gives no time.
const DEFAULT_WAIT: Duration = Duration::from_secs(60);

/// Returns whether a response reports a rate limit: 429, or GitHub's 403 with a header or a text that says so.
pub(super) fn is_rate_limit(status: u16, headers: &HeaderMap, message: &str) -> bool {
    let is_spent = header_text(headers, "x-ratelimit-remaining") == Some("0");
    let is_said = message.to_ascii_lowercase().contains("rate limit");
    status == 429 || status == 403 && (is_spent || is_said || header_text(headers, "retry-after").is_some())
}

/// Returns the wait: the seconds of `Retry-After`, or else the time until GitHub's reset. The response's own date is the
/// start, so that clocks need not agree.
pub(super) fn parse_wait(headers: &HeaderMap) -> Option<Duration> {
    let seconds = |name| header_text(headers, name)?.parse::<u64>().ok();
    let reset = || {
        let now = rfc2822::DateTimeParser::new().parse_timestamp(header_text(headers, "date")?).ok()?;
        Some(seconds("x-ratelimit-reset")?.saturating_sub(u64::try_from(now.as_second()).ok()?))
    };
    seconds("retry-after").or_else(reset).map(|seconds| Duration::from_secs(seconds).min(MAX_WAIT))
}

pub(super) fn wait_or_default(headers: &HeaderMap) -> Duration {
    parse_wait(headers).unwrap_or(DEFAULT_WAIT)
}

fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

#[cfg(test)]
mod tests {
    use ureq::http::HeaderValue;

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn wait_is_read_from_headers() {
        let date = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");
        for (pairs, seconds) in [
            (vec![], None),
            (vec![("retry-after", "17")], Some(17)),
            (vec![("retry-after", "99999999")], Some(3600)),
            (vec![("retry-after", "soon")], None),
            (vec![date, ("x-ratelimit-reset", "784111797")], Some(20)),
            (vec![date, ("x-ratelimit-reset", "1")], Some(0)),
            (vec![("x-ratelimit-reset", "784111797")], None),
            (vec![date, ("retry-after", "3"), ("x-ratelimit-reset", "784111797")], Some(3)),
        ] {
            assert_eq!(parse_wait(&headers(&pairs)).map(|wait| wait.as_secs()), seconds, "{pairs:?}");
        }
    }

    #[test]
    fn forbidden_response_is_rate_limit_only_with_matching_evidence() {
        assert!(!is_rate_limit(403, &headers(&[("x-ratelimit-remaining", "7")]), "Resource not accessible"));
        assert!(is_rate_limit(403, &headers(&[("x-ratelimit-remaining", "0")]), ""));
        assert!(is_rate_limit(403, &headers(&[]), "You have exceeded a secondary rate limit"));
        assert!(is_rate_limit(403, &headers(&[("retry-after", "30")]), "Wait"));
        assert!(is_rate_limit(429, &headers(&[]), ""));
        assert!(!is_rate_limit(404, &headers(&[("x-ratelimit-remaining", "0")]), ""));
    }
}
