//! The first bytes of a TLS connection: which server the client means.
//!
//! Only the outer ClientHello is read. With Encrypted ClientHello, its name is the one that the client connects to by.
//!
//! Invariants:
//! - A handshake with two names, or with anything before or inside the ClientHello that does not belong there, is malformed.

use super::target::normalize_name;

/// The maximum length of a ClientHello with its records, in bytes. A browser sends less than 4 KiB.
pub(crate) const MAX_HELLO_LENGTH: usize = 32 * 1024;

/// The type of a record that holds a handshake, and of a message that is a ClientHello.
const HANDSHAKE_RECORD: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const RECORD_HEADER_LENGTH: usize = 5;
const MAX_RECORD_LENGTH: usize = 1 << 14;
const SERVER_NAME_EXTENSION: u16 = 0;
const HOST_NAME: u8 = 0;

/// What the first bytes of a client are.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HelloInspection {
    /// More bytes are needed.
    Incomplete,
    NotTls,
    Malformed,
    Complete {
        server_name: Option<String>,
    },
}

/// Inspects the first bytes of a client.
pub(crate) fn inspect_client_hello(bytes: &[u8]) -> HelloInspection {
    let starts_handshake = |bytes: &[u8]| bytes.iter().zip([HANDSHAKE_RECORD, 3]).all(|(byte, known)| *byte == known);
    if !starts_handshake(bytes) {
        return HelloInspection::NotTls;
    }
    let (mut rest, mut message) = (bytes, Vec::new());
    loop {
        if message.first().is_some_and(|kind| *kind != CLIENT_HELLO) {
            return HelloInspection::Malformed;
        }
        if let Some(length) = message_length(&message)
            && message.len() >= length
        {
            // The length includes the four bytes of type and length.
            return match parse_client_hello(&message[4..length]) {
                Some(server_name) => HelloInspection::Complete { server_name },
                None => HelloInspection::Malformed,
            };
        }
        let is_too_long = message_length(&message).is_some_and(|length| length > MAX_HELLO_LENGTH);
        if is_too_long || bytes.len() > MAX_HELLO_LENGTH || !starts_handshake(rest) {
            return HelloInspection::Malformed;
        }
        let Some((header, content)) = rest.split_at_checked(RECORD_HEADER_LENGTH) else {
            return HelloInspection::Incomplete;
        };
        let length = usize::from(u16::from_be_bytes([header[3], header[4]]));
        if !(1..=MAX_RECORD_LENGTH).contains(&length) {
            return HelloInspection::Malformed;
        }
        let Some((content, next)) = content.split_at_checked(length) else {
            return HelloInspection::Incomplete;
        };
        message.extend_from_slice(content);
        rest = next;
    }
}

/// Returns the length of a handshake message with its header.
fn message_length(message: &[u8]) -> Option<usize> {
    let [_, high, middle, low, ..] = message else { return None };
    Some(4 + (usize::from(*high) << 16) + (usize::from(*middle) << 8) + usize::from(*low))
}

/// Returns the server name of a ClientHello, or nothing if it is malformed.
fn parse_client_hello(mut hello: &[u8]) -> Option<Option<String>> {
    let hello = &mut hello;
    // The version and the random bytes; session, cipher suites and compression methods.
    take(hello, 2 + 32)?;
    take_short_vector(hello)?;
    take_vector(hello)?;
    take_short_vector(hello)?;
    if hello.is_empty() {
        return Some(None);
    }
    let mut extensions = take_vector(hello)?;
    let mut server_name = None;
    while !extensions.is_empty() {
        let kind = take_u16(&mut extensions)?;
        let content = take_vector(&mut extensions)?;
        if kind == SERVER_NAME_EXTENSION && server_name.replace(parse_server_name(content)?).is_some() {
            return None;
        }
    }
    hello.is_empty().then_some(server_name)
}

/// Returns the only name of a list of server names.
fn parse_server_name(mut extension: &[u8]) -> Option<String> {
    let mut list = take_vector(&mut extension)?;
    let is_host_name = take(&mut list, 1)? == [HOST_NAME];
    let name = take_vector(&mut list)?;
    let is_only_one = list.is_empty() && extension.is_empty();
    (is_host_name && is_only_one).then(|| std::str::from_utf8(name).ok().and_then(normalize_name))?
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

fn take_u16(bytes: &mut &[u8]) -> Option<u16> {
    let taken = take(bytes, 2)?;
    Some(u16::from_be_bytes([taken[0], taken[1]]))
}

/// Takes bytes that follow their length in one byte.
fn take_short_vector<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = take(bytes, 1)?[0];
    take(bytes, length.into())
}

/// Takes bytes that follow their length in two bytes.
fn take_vector<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = take_u16(bytes)?;
    take(bytes, length.into())
}
