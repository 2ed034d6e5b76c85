//! A response of a server, and those of the proxy itself.

use super::DenialReason;
use super::head::{BodyFraming, HeadError, HttpHead, write_field};
use super::target::HostTarget;

/// A response of a server, as the client gets it.
#[derive(Debug)]
pub(crate) struct ForwardResponse {
    /// The head for the client.
    pub(crate) head: Vec<u8>,
    pub(crate) body: BodyFraming,
    /// Whether another response to the same request follows.
    pub(crate) is_interim: bool,
}

impl ForwardResponse {
    /// Reads the head of a response. The client hears that the connection ends with it.
    pub(crate) fn parse(head: &[u8], is_head_only: bool) -> Result<Self, HeadError> {
        let message = HttpHead::parse(head)?;
        let status = parse_status(message.start_line).ok_or(HeadError("the status line is malformed"))?;
        if status == 101 {
            return Err(HeadError("the server changes the protocol"));
        }
        let is_interim = (100..200).contains(&status);
        let framing = message.framing()?;
        let mut head = [message.start_line, b"\r\n"].concat();
        message.write_forwarded_fields(&mut head);
        if let Some(length) = message.single_value("content-length")? {
            write_field(&mut head, "Content-Length", length);
        }
        if let Some(encoding) = message.single_value("transfer-encoding")? {
            write_field(&mut head, "Transfer-Encoding", encoding);
        }
        if !is_interim {
            write_field(&mut head, "Connection", b"close");
        }
        head.extend_from_slice(b"\r\n");
        let has_body = !is_head_only && !is_interim && status != 204 && status != 304;
        let body = if has_body { framing.unwrap_or(BodyFraming::UntilEnd) } else { BodyFraming::Length(0) };
        Ok(Self { head, body, is_interim })
    }
}

fn parse_status(line: &[u8]) -> Option<u16> {
    let rest = line.strip_prefix(b"HTTP/1.1 ").or_else(|| line.strip_prefix(b"HTTP/1.0 "))?;
    let (digits, reason) = rest.split_at_checked(3)?;
    let is_status = digits.iter().all(u8::is_ascii_digit) && (reason.is_empty() || reason[0] == b' ');
    std::str::from_utf8(digits).ok().filter(|_| is_status)?.parse().ok().filter(|status| *status >= 100)
}

/// Writes a response of the proxy: a status with its reason, and a text for the reader. The reason is what clients show of a
/// refused tunnel.
pub(crate) fn proxy_response(status: &str, text: &str) -> Vec<u8> {
    let mut response = format!("HTTP/1.1 {status}\r\n").into_bytes();
    if status.starts_with("407") {
        write_field(&mut response, "Proxy-Authenticate", b"Basic realm=\"windlass\"");
    }
    write_field(&mut response, "Content-Type", b"text/plain; charset=utf-8");
    write_field(&mut response, "Content-Length", (text.len() + 1).to_string().as_bytes());
    write_field(&mut response, "Connection", b"close");
    [&response, b"\r\n".as_slice(), text.as_bytes(), b"\n"].concat()
}

/// Writes the response to a request that the sandbox denies.
pub(crate) fn denial_response(target: &HostTarget, reason: &DenialReason) -> Vec<u8> {
    let advice = match reason {
        DenialReason::HostNotAllowed => {
            format!("A person can add `{}` to the hosts that the sandbox allows.", target.pattern())
        }
        DenialReason::LocalAddress(address) => {
            let address = HostTarget { host: address.to_string(), port: target.port };
            format!("A person can add `{}` to the hosts that the sandbox allows, besides the name.", address.pattern())
        }
        _ => "Use TLS, with the name of this host.".to_owned(),
    };
    let text = format!("The sandbox denies the connection to {target}: {reason}.\n{advice}");
    proxy_response("403 Denied by the Windlass sandbox", &text)
}
