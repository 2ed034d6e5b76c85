//! The limit of nesting in a payload. Deeper values are cut out, so that the rest can be parsed.
//!
//! A model can nest the input of a tool as deep as it likes. A guard hook that could not parse it would let the tool pass.

use std::borrow::Cow;

/// The deepest nesting that is kept. JSON parsers stop at 128, and the log wraps payloads in further objects.
pub const MAX_JSON_DEPTH: usize = 64;

/// Returns the same JSON, with null in place of every deeper list and object. The function does not recurse.
pub fn cut_deep_values(bytes: &[u8]) -> Cow<'_, [u8]> {
    let (mut depth, mut kept) = (0_usize, None::<Vec<u8>>);
    let (mut within, mut escaped) = (false, false);
    for (at, byte) in bytes.iter().copied().enumerate() {
        let was_deeper = depth > MAX_JSON_DEPTH;
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
        let is_deeper = depth > MAX_JSON_DEPTH;
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
    fn only_values_below_the_depth_limit_are_cut() {
        check("1, \"[[[\", \"\\\"]]\"", "1, \"[[[\", \"\\\"]]\"");
        check("[1, {\"]\": \"\\\\\"}], 2, {}, \"a\\\"[\"", "null, 2, null, \"a\\\"[\"");
        assert!(matches!(cut(b"{\"a\": [[]]}"), Cow::Borrowed(_)));
    }
}
