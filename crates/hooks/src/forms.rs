//! How a secret looks in places where it is not written as it is.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};

use crate::mask::SHORTEST;
use crate::text::clean;

/// The shortest line of several that is taken for a secret by itself.
const LINE: usize = 16;
/// So many bytes of a value are known in base64 wherever its lines are broken.
const PIECE: usize = 9;
/// The shortest piece of base64 that is taken for a secret in the middle of something longer.
const INNER: usize = 8;
const UPPER: &[u8; 16] = b"0123456789ABCDEF";
const LOWER: &[u8; 16] = b"0123456789abcdef";

/// The value, and each other form of it once.
pub(crate) fn forms(value: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = vec![value.to_vec()];
    if let Ok(text) = str::from_utf8(value) {
        forms.extend(in_text(text));
        let cleaned = clean(text);
        let cleaned = cleaned.trim();
        forms.extend(in_text(cleaned).into_iter().filter(|_| cleaned.len() >= SHORTEST));
        forms.extend(own_lines(cleaned).flat_map(in_text));
    }
    for digits in [UPPER, LOWER] {
        forms.push(in_url(value, digits, b"-_.~", b"%20"));
        forms.push(in_url(value, digits, b"-_.*", b"+"));
        // What is allowed in a path, and what JavaScript leaves.
        forms.push(in_url(value, digits, b"-_.~!$&'()*+,;=:@/", b"%20"));
        forms.push(in_url(value, digits, b"-_.~!'()*", b"%20"));
    }
    let parts = telling(value);
    for engine in [&STANDARD, &STANDARD_NO_PAD, &URL_SAFE, &URL_SAFE_NO_PAD] {
        forms.push(engine.encode(value).into_bytes());
        forms.extend((0..3).filter_map(|before| within(engine, value, before)));
        // Lines are broken between groups of three bytes, wherever in the value these begin.
        forms.extend(parts.iter().flat_map(|part| part.windows(PIECE)).map(|piece| engine.encode(piece).into_bytes()));
    }
    forms.sort();
    forms.dedup();
    forms
}

/// As it is, and as it looks in JSON.
fn in_text(text: &str) -> [Vec<u8>; 5] {
    let json = in_json(text);
    let slashes = json.replace('/', "\\/");
    [text.to_owned(), slashes, ascii(&json, LOWER), ascii(&json, UPPER), json].map(String::into_bytes)
}

/// The lines of a value that has several, but for those of words or fields, which may stand elsewhere.
fn own_lines(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().map(str::trim).filter(|_| text.contains('\n'));
    lines.filter(|line| line.len() >= LINE && !line.contains(' ') && tells(line.as_bytes()))
}

/// The value without the lines that say nothing about it.
fn telling(value: &[u8]) -> Vec<Vec<u8>> {
    let mut parts = vec![Vec::new()];
    for line in value.split_inclusive(|byte| *byte == b'\n') {
        match parts.last_mut() {
            Some(part) if tells(line) => part.extend_from_slice(line),
            _ => parts.push(Vec::new()),
        }
    }
    parts
}

/// Whether a line says something about the value: what begins and ends a key is in every key.
fn tells(line: &[u8]) -> bool {
    !line.starts_with(b"-----")
}

/// Between the quotes of a JSON string.
fn in_json(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// JSON as those write it who trust nothing but ASCII.
fn ascii(json: &str, digits: &[u8; 16]) -> String {
    let mut plain = String::with_capacity(json.len());
    for letter in json.chars() {
        if letter.is_ascii() {
            plain.push(letter);
            continue;
        }
        for unit in letter.encode_utf16(&mut [0; 2]) {
            plain.push_str("\\u");
            plain.extend([12, 8, 4, 0].map(|shift| char::from(digits[usize::from(*unit >> shift & 15)])));
        }
    }
    plain
}

fn in_url(value: &[u8], digits: &[u8; 16], plain: &[u8], space: &[u8]) -> Vec<u8> {
    let mut encoded = Vec::with_capacity(value.len());
    for byte in value {
        match byte {
            b' ' => encoded.extend_from_slice(space),
            byte if byte.is_ascii_alphanumeric() || plain.contains(byte) => encoded.push(*byte),
            byte => encoded.extend([b'%', digits[usize::from(byte >> 4)], digits[usize::from(byte & 15)]]),
        }
    }
    encoded
}

/// The letters of base64 that stay the same whatever is around the value, if so many bytes, modulo three, are before it.
fn within(engine: &impl Engine, value: &[u8], before: usize) -> Option<Vec<u8>> {
    let bytes = [&[0].repeat(before), value].concat();
    let whole = bytes.len() * 8 / 6;
    let encoded = engine.encode(&bytes).into_bytes();
    let inner = encoded[(before * 8).div_ceil(6)..whole].to_vec();
    (inner.len() >= INNER).then_some(inner)
}
