//! Properties of every function here that reads foreign input, for any input. For tests and fuzzing only.
//!
//! Each law takes bytes and panics when they break it.

use crate::session::promise::neutralize_claims;
use crate::{Digest, Promise, decode_event, encode_event, explain_uncounted_claim, find_promise, find_promises};

/// Checks that the bytes of an event have one meaning, and that this meaning has one encoding.
pub fn check_event_encoding(bytes: &[u8]) {
    match decode_event(bytes) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(event) => {
            let written = encode_event(&event);
            let again = decode_event(&written).expect("what was written can be read");
            assert_eq!(again, event, "reading what was written gives the same event");
            assert_eq!(encode_event(&again), written, "an event has one encoding");
            assert_eq!(Digest::of_bytes(&encode_event(&again)), Digest::of_bytes(&written));
        }
    }
}

/// Checks that the position of the tags in a message alone decides what it claims.
pub fn check_promise_rule(bytes: &[u8]) {
    let message = String::from_utf8_lossy(bytes);
    let claims = find_promises(&message);
    assert_eq!(find_promise(&message), claims.first().copied(), "the first of all counts");
    assert!(claims.len() <= 1 || !claims.contains(&Promise::Complete), "an agent is stuck or done: {claims:?}");
    let has_tag = message.to_ascii_lowercase().contains("<promise>complete</promise>");
    assert_eq!(
        explain_uncounted_claim(&message).is_some(),
        has_tag && claims.is_empty(),
        "it is told what does not count"
    );
    let same = |text: &str, why: &str| assert_eq!(find_promises(text), claims, "{why}: {text:?}");
    same(&message.to_ascii_uppercase(), "in capitals");
    same(&message.replace("\r\n", "\n").replace('\n', "\r\n"), "with other line ends");
    same(&format!("\n{message}\n \t\n"), "with blank lines around it");
    let none = |text: &str, why: &str| assert_eq!(find_promises(text), [], "{why}: {text:?}");
    none(&neutralize_claims(&message), "a message that is quoted");
    let marks = "`".repeat(message.matches('`').count() + 3);
    none(&format!("{marks}\n{message}\n{marks}"), "a message in a code fence");
    let stuck: Vec<Promise> = claims.iter().copied().filter(|promise| *promise != Promise::Complete).collect();
    let followed = find_promises(&format!("{message}\nMore follows"));
    assert_eq!(followed, stuck, "COMPLETE counts on the last line alone");
    let ended = find_promises(&format!("{message}\nSo it is: **<promise>Complete</promise>**."));
    assert_eq!(ended, if stuck.is_empty() { vec![Promise::Complete] } else { stuck }, "the last line counts");
}

#[cfg(test)]
mod tests {
    use windlass_testkit::hostile::check_law;

    #[test]
    fn event_encoding_is_unique() {
        check_law("event", super::check_event_encoding);
    }

    #[test]
    fn promises_are_found_by_their_place() {
        check_law("promise", super::check_promise_rule);
    }
}
