//! The head of an HTTP/1 message: its lines, its fields, and how long its body is.
//!
//! Invariants:
//! - The head is read in one way only. A line that ends without `\r\n`, a folded field, a name with a space and a control character
//!   are errors, because two programs could read them differently.
//! - The length of a body has one source: one `Content-Length`, or `Transfer-Encoding: chunked`, and never both.

use std::io::{self, BufRead};

/// The maximum length of a head, in bytes.
pub(crate) const MAX_HEAD_LENGTH: usize = 64 * 1024;

const MAX_FIELDS: usize = 256;
const HEAD_END: &[u8] = b"\r\n\r\n";

/// The maximum number of digits of a length, so that it fits into 64 bits.
const MAX_LENGTH_DIGITS: usize = 18;

/// Fields that concern one connection only, beside those that `Connection` names and those of the proxy.
const CONNECTION_FIELDS: &[&str] =
    &["connection", "http2-settings", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"];

/// A head that cannot be read, and the reason.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct HeadError(pub(crate) &'static str);

/// Why no head arrived.
#[derive(Debug)]
pub(crate) enum HeadReadError {
    Io(io::Error),
    TooLong,
    Malformed,
}

/// The length of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyFraming {
    Length(u64),
    Chunked,
    /// The body ends with the connection.
    UntilEnd,
}

/// A start line and the fields below it.
#[derive(Debug)]
pub(crate) struct HttpHead<'a> {
    pub(crate) start_line: &'a [u8],
    pub(crate) fields: Vec<HeadField<'a>>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct HeadField<'a> {
    pub(crate) name: &'a str,
    /// The value without space around it.
    pub(crate) value: &'a [u8],
}

/// Reads a head to the empty line at its end. `before_read` is called before each read. If the stream ends before its first byte,
/// there is no head.
pub(crate) fn read_head(
    reader: &mut impl BufRead,
    mut before_read: impl FnMut() -> io::Result<()>,
) -> Result<Option<Vec<u8>>, HeadReadError> {
    let mut head = Vec::new();
    loop {
        before_read().map_err(HeadReadError::Io)?;
        let available = match reader.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            available => available.map_err(HeadReadError::Io)?,
        };
        if available.is_empty() {
            return if head.is_empty() { Ok(None) } else { Err(HeadReadError::Malformed) };
        }
        let (known, length) = (head.len(), available.len());
        head.extend_from_slice(available);
        let start = known.saturating_sub(HEAD_END.len() - 1);
        let end = head[start..].windows(HEAD_END.len()).position(|window| window == HEAD_END);
        let end = end.map(|position| start + position + HEAD_END.len());
        let checked = &head[..end.unwrap_or(head.len())];
        if checked.len() > MAX_HEAD_LENGTH {
            return Err(HeadReadError::TooLong);
        }
        // A client of another protocol hears of it at once.
        let is_line_broken = |at: usize| checked[at] == b'\n' && (at == 0 || checked[at - 1] != b'\r');
        if !checked[0].is_ascii_alphabetic() || (known..checked.len()).any(is_line_broken) {
            return Err(HeadReadError::Malformed);
        }
        reader.consume(end.map_or(length, |end| end - known));
        if let Some(end) = end {
            head.truncate(end);
            return Ok(Some(head));
        }
    }
}

impl<'a> HttpHead<'a> {
    pub(crate) fn parse(head: &'a [u8]) -> Result<Self, HeadError> {
        let text = head.strip_suffix(HEAD_END).ok_or(HeadError("the head does not end"))?;
        let mut lines = text.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        let start_line = lines.next().unwrap_or_default();
        let fields = lines.map(HeadField::parse).collect::<Option<Vec<_>>>();
        let fields = fields.ok_or(HeadError("a header field is malformed"))?;
        let line_ends = text.windows(2).filter(|pair| pair == b"\r\n").count();
        let is_control = |byte: &u8| byte.is_ascii_control() && *byte != b'\t';
        // All control characters are those of the line ends.
        if text.iter().filter(|byte| is_control(byte)).count() != 2 * line_ends || fields.len() > MAX_FIELDS {
            return Err(HeadError("the head has control characters or too many fields"));
        }
        Ok(Self { start_line, fields })
    }

    pub(crate) fn values(&self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        self.fields.iter().filter(move |field| field.name.eq_ignore_ascii_case(name)).map(|field| field.value)
    }

    /// Returns the only value of a field, if it has one.
    pub(crate) fn single_value(&self, name: &str) -> Result<Option<&'a [u8]>, HeadError> {
        let mut values = self.values(name);
        match (values.next(), values.next()) {
            (value, None) => Ok(value),
            _ => Err(HeadError("a header field occurs twice")),
        }
    }

    /// Returns the length of the body, if the head says it.
    pub(crate) fn framing(&self) -> Result<Option<BodyFraming>, HeadError> {
        match (self.single_value("content-length")?, self.single_value("transfer-encoding")?) {
            (None, None) => Ok(None),
            (Some(digits), None) => {
                let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
                let digits = std::str::from_utf8(digits).ok().filter(|digits| digits.len() <= MAX_LENGTH_DIGITS);
                let length = digits.filter(|_| is_number).and_then(|digits| digits.parse().ok());
                length.map(|length| Some(BodyFraming::Length(length))).ok_or(HeadError("Content-Length is no number"))
            }
            (None, Some(encoding)) if encoding.eq_ignore_ascii_case(b"chunked") => Ok(Some(BodyFraming::Chunked)),
            (None, Some(_)) => Err(HeadError("Transfer-Encoding is not `chunked`")),
            (Some(_), Some(_)) => Err(HeadError("Content-Length and Transfer-Encoding contradict each other")),
        }
    }

    /// Writes the fields that concern the other end of the path, not this connection. Lengths and `Host` are not among them.
    pub(crate) fn write_forwarded_fields(&self, head: &mut Vec<u8>) {
        let named: Vec<String> = self
            .values("connection")
            .flat_map(|value| value.split(|byte| *byte == b','))
            .map(|name| String::from_utf8_lossy(name.trim_ascii()).to_ascii_lowercase())
            .collect();
        for HeadField { name, value } in &self.fields {
            let lower = name.to_ascii_lowercase();
            let is_replaced = lower == "host" || lower == "content-length";
            let is_of_connection = CONNECTION_FIELDS.contains(&lower.as_str()) || lower.starts_with("proxy-");
            if !is_replaced && !is_of_connection && !named.contains(&lower) {
                write_field(head, name, value);
            }
        }
    }
}

/// Writes a field of a head.
pub(crate) fn write_field(head: &mut Vec<u8>, name: &str, value: &[u8]) {
    for part in [name.as_bytes(), b": ", value, b"\r\n"] {
        head.extend_from_slice(part);
    }
}

/// Writes the field that tells how long a body is.
pub(crate) fn write_framing(head: &mut Vec<u8>, framing: Option<BodyFraming>) {
    match framing {
        Some(BodyFraming::Length(length)) => write_field(head, "Content-Length", length.to_string().as_bytes()),
        Some(BodyFraming::Chunked) => write_field(head, "Transfer-Encoding", b"chunked"),
        Some(BodyFraming::UntilEnd) | None => {}
    }
}

impl<'a> HeadField<'a> {
    fn parse(line: &'a [u8]) -> Option<Self> {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let name = std::str::from_utf8(&line[..colon]).ok().filter(|name| is_token(name.as_bytes()))?;
        Some(Self { name, value: line[colon + 1..].trim_ascii() })
    }
}

/// Returns whether a text is a token: a method, or the name of a field.
pub(crate) fn is_token(text: &[u8]) -> bool {
    let is_sign = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !text.is_empty() && text.iter().all(is_sign)
}
