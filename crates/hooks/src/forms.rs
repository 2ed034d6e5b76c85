//! The encodings in which a secret may appear.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};

use crate::mask::SHORTEST;
use crate::text::clean;

/// The shortest line of a multi-line value that counts as a secret by itself.
const LINE: usize = 16;
/// The number of bytes of a value that are recognized in base64 with any line breaks.
const PIECE: usize = 9;
/// The shortest piece of base64 that counts as a secret inside a longer text.
const INNER: usize = 8;
const UPPER: &[u8; 16] = b"0123456789ABCDEF";
const LOWER: &[u8; 16] = b"0123456789abcdef";

/// Returns the value and each other encoding of it, without duplicates.
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
        // The characters that a path allows, and those that JavaScript does not escape.
        forms.push(in_url(value, digits, b"-_.~!$&'()*+,;=:@/", b"%20"));
        forms.push(in_url(value, digits, b"-_.~!'()*", b"%20"));
    }
    let parts = telling(value);
    for engine in [&STANDARD, &STANDARD_NO_PAD, &URL_SAFE, &URL_SAFE_NO_PAD] {
        forms.push(engine.encode(value).into_bytes());
        forms.extend((0..3).filter_map(|before| within(engine, value, before)));
        // Base64 lines break between groups of three bytes, at any offset of the value.
        forms.extend(parts.iter().flat_map(|part| part.windows(PIECE)).map(|piece| engine.encode(piece).into_bytes()));
    }
    forms.sort();
    forms.dedup();
    forms
}

/// Returns the text as it is and in the notations of JSON.
fn in_text(text: &str) -> [Vec<u8>; 5] {
    let json = in_json(text);
    let slashes = json.replace('/', "\\/");
    [text.to_owned(), slashes, ascii(&json, LOWER), ascii(&json, UPPER), json].map(String::into_bytes)
}

/// Returns the lines of a multi-line value, without lines of words or fields, which may appear elsewhere.
fn own_lines(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().map(str::trim).filter(|_| text.contains('\n'));
    lines.filter(|line| line.len() >= LINE && !line.contains(' ') && tells(line.as_bytes()))
}

/// Returns the value without the lines that reveal nothing about it.
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

/// Returns whether a line reveals something about the value. The first and last line of a key are the same in every key.
fn tells(line: &[u8]) -> bool {
    !line.starts_with(b"-----")
}

/// Returns the text between the quotes of its JSON string.
fn in_json(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// Escapes all letters of JSON beyond ASCII, as some programs do.
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

/// Returns the base64 letters that do not depend on the bytes around the value, for `before` bytes, modulo three, in front of it.
fn within(engine: &impl Engine, value: &[u8], before: usize) -> Option<Vec<u8>> {
    let bytes = [&[0].repeat(before), value].concat();
    let whole = bytes.len() * 8 / 6;
    let encoded = engine.encode(&bytes).into_bytes();
    let inner = encoded[(before * 8).div_ceil(6)..whole].to_vec();
    (inner.len() >= INNER).then_some(inner)
}
