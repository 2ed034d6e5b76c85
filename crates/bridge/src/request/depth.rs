//! What lies too deep in a payload is cut out, so that the rest can be read.
//!
//! Whoever says what a tool is called with may nest it as deep as it likes. A guard that could not read it would let go.

use std::borrow::Cow;

/// As deep as anything that a hook looks at, with room for what is put around a payload in the log: readers of JSON end at 128.
pub const DEEPEST: usize = 64;

/// The same JSON, with null for every list and object that lies deeper than that. There is no recursion in it.
pub fn cut(bytes: &[u8]) -> Cow<'_, [u8]> {
    let (mut depth, mut kept) = (0_usize, None::<Vec<u8>>);
    let (mut within, mut escaped) = (false, false);
    for (at, byte) in bytes.iter().copied().enumerate() {
        let was_deeper = depth > DEEPEST;
        if within {
            within = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
        } else {
            match byte {
                b'"' => within = true,
                b'[' | b'{' => depth += 1,
                b']' | b'}' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        let is_deeper = depth > DEEPEST;
        match &mut kept {
            None if is_deeper => kept = Some([&bytes[..at], b"null"].concat()),
            Some(kept) if is_deeper && !was_deeper => kept.extend(b"null"),
            Some(kept) if !is_deeper && !was_deeper => kept.push(byte),
            _ => {}
        }
    }
    kept.map_or(Cow::Borrowed(bytes), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(inner: &str, expected: &str) {
        let around = |inner: &str| format!("{}{inner}{}", "[".repeat(DEEPEST), "]".repeat(DEEPEST));
        assert_eq!(String::from_utf8_lossy(&cut(around(inner).as_bytes())), around(expected));
    }

    #[test]
    fn only_what_lies_too_deep_is_cut() {
        check("1, \"[[[\", \"\\\"]]\"", "1, \"[[[\", \"\\\"]]\"");
        check("[1, {\"]\": \"\\\\\"}], 2, {}, \"a\\\"[\"", "null, 2, null, \"a\\\"[\"");
        assert!(matches!(cut(b"{\"a\": [[]]}"), Cow::Borrowed(_)));
    }
}
