//! The encodings in which a secret may appear.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};

use crate::mask::MIN_SECRET_BYTES;
use crate::text::clean_output;

/// The shortest line of a multi-line value that counts as a secret by itself.
const MIN_SECRET_LINE_BYTES: usize = 16;
/// The number of bytes of a value that are recognized in base64 with any line breaks.
const BASE64_WINDOW_BYTES: usize = 9;
/// The shortest piece of base64 that counts as a secret inside a longer text.
const MIN_EMBEDDED_BASE64_LETTERS: usize = 8;
const UPPER_HEX_DIGITS: &[u8; 16] = b"0123456789ABCDEF";
const LOWER_HEX_DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Returns the value and each other encoding of it, without duplicates.
pub(crate) fn encode_secret_value(value: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = vec![value.to_vec()];
    if let Ok(text) = str::from_utf8(value) {
        forms.extend(text_encodings(text));
        let cleaned = clean_output(text);
        let cleaned = cleaned.trim();
        forms.extend(text_encodings(cleaned).into_iter().filter(|_| cleaned.len() >= MIN_SECRET_BYTES));
        forms.extend(secret_lines(cleaned).flat_map(text_encodings));
    }
    for digits in [UPPER_HEX_DIGITS, LOWER_HEX_DIGITS] {
        forms.push(percent_encode(value, digits, b"-_.~", b"%20"));
        forms.push(percent_encode(value, digits, b"-_.*", b"+"));
        // The characters that a path allows, and those that JavaScript does not escape.
        forms.push(percent_encode(value, digits, b"-_.~!$&'()*+,;=:@/", b"%20"));
        forms.push(percent_encode(value, digits, b"-_.~!'()*", b"%20"));
    }
    let parts = significant_parts(value);
    for engine in [&STANDARD, &STANDARD_NO_PAD, &URL_SAFE, &URL_SAFE_NO_PAD] {
        forms.push(engine.encode(value).into_bytes());
        forms.extend((0..3).filter_map(|before| embedded_base64(engine, value, before)));
        // Base64 lines break between groups of three bytes, at any offset of the value.
        forms.extend(
            parts
                .iter()
                .flat_map(|part| part.windows(BASE64_WINDOW_BYTES))
                .map(|piece| engine.encode(piece).into_bytes()),
        );
    }
    forms.sort();
    forms.dedup();
    forms
}

/// Returns the text as it is and in the notations of JSON.
fn text_encodings(text: &str) -> [Vec<u8>; 5] {
    let json = escape_json(text);
    let slashes = json.replace('/', "\\/");
    [
        text.to_owned(),
        slashes,
        escape_non_ascii(&json, LOWER_HEX_DIGITS),
        escape_non_ascii(&json, UPPER_HEX_DIGITS),
        json,
    ]
    .map(String::into_bytes)
}

/// Returns the lines of a multi-line value, without lines of words or fields, which may appear elsewhere.
fn secret_lines(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().map(str::trim).filter(|_| text.contains('\n'));
    lines.filter(|line| {
        line.len() >= MIN_SECRET_LINE_BYTES && !line.contains(' ') && is_significant_line(line.as_bytes())
    })
}

/// Returns the value without the lines that reveal nothing about it.
fn significant_parts(value: &[u8]) -> Vec<Vec<u8>> {
    let mut parts = vec![Vec::new()];
    for line in value.split_inclusive(|byte| *byte == b'\n') {
        match parts.last_mut() {
            Some(part) if is_significant_line(line) => part.extend_from_slice(line),
            _ => parts.push(Vec::new()),
        }
    }
    parts
}

/// Returns whether a line reveals something about the value. The first and last line of a key are the same in every key.
fn is_significant_line(line: &[u8]) -> bool {
    !line.starts_with(b"-----")
}

/// Returns the text between the quotes of its JSON string.
fn escape_json(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// Escapes all letters of JSON beyond ASCII, as some programs do.
fn escape_non_ascii(json: &str, digits: &[u8; 16]) -> String {
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

fn percent_encode(value: &[u8], digits: &[u8; 16], plain: &[u8], space: &[u8]) -> Vec<u8> {
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
fn embedded_base64(engine: &impl Engine, value: &[u8], before: usize) -> Option<Vec<u8>> {
    let bytes = [&[0].repeat(before), value].concat();
    let whole = bytes.len() * 8 / 6;
    let encoded = engine.encode(&bytes).into_bytes();
    let inner = encoded[(before * 8).div_ceil(6)..whole].to_vec();
    (inner.len() >= MIN_EMBEDDED_BASE64_LETTERS).then_some(inner)
}
