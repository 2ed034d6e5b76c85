//! A request of a client to the proxy, and the request that the server gets instead.

use super::head::{BodyFraming, HeadError, HttpHead, is_token, write_field, write_framing};
use super::target::HostTarget;

/// What a client asks the proxy for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ProxyRequest {
    /// `CONNECT host:port`.
    Tunnel(HostTarget),
    /// A request with an address, as in `GET http://host/path`.
    Forward(ForwardRequest),
}

/// A request that the server gets in another form.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ForwardRequest {
    pub(crate) target: HostTarget,
    /// The head for the server.
    pub(crate) head: Vec<u8>,
    pub(crate) body: BodyFraming,
    /// Whether the response has no body, whatever its head says.
    pub(crate) is_head_only: bool,
}

impl ProxyRequest {
    pub(crate) fn target(&self) -> &HostTarget {
        match self {
            Self::Tunnel(target) => target,
            Self::Forward(request) => &request.target,
        }
    }

    /// Reads a request of a client.
    pub(crate) fn parse(message: &HttpHead<'_>) -> Result<Self, HeadError> {
        let parts: Vec<&[u8]> = message.start_line.split(|byte| *byte == b' ').collect();
        let [method, address, version] = parts[..] else {
            return Err(HeadError("the request line has no three parts"));
        };
        let is_old = version == b"HTTP/1.0";
        if !is_token(method) || !(is_old || version == b"HTTP/1.1") {
            return Err(HeadError("the request line is malformed"));
        }
        message.single_value("host")?;
        let framing = message.framing()?;
        if is_old && framing == Some(BodyFraming::Chunked) {
            return Err(HeadError("HTTP/1.0 has no Transfer-Encoding"));
        }
        if method == b"CONNECT" {
            if !matches!(framing, None | Some(BodyFraming::Length(0))) {
                return Err(HeadError("CONNECT has no body"));
            }
            return HostTarget::parse(address, None).map(Self::Tunnel).ok_or(HeadError("CONNECT needs HOST:PORT"));
        }
        let (target, path) = split_address(address)
            .ok_or(HeadError("the request needs an address `http://HOST/…` or the method CONNECT"))?;
        let mut head = [method, b" ", &path, b" ", version, b"\r\n"].concat();
        write_field(&mut head, "Host", target.host_header().as_bytes());
        message.write_forwarded_fields(&mut head);
        write_framing(&mut head, framing);
        write_field(&mut head, "Connection", b"close");
        head.extend_from_slice(b"\r\n");
        let body = framing.unwrap_or(BodyFraming::Length(0));
        Ok(Self::Forward(ForwardRequest { target, head, body, is_head_only: method == b"HEAD" }))
    }
}

/// Splits an address of plain HTTP into its host and its path with the query.
fn split_address(address: &[u8]) -> Option<(HostTarget, Vec<u8>)> {
    let (scheme, rest) = address.split_at_checked(b"http://".len())?;
    // Some servers end a path at a tab.
    let is_misleading = |byte: &u8| byte.is_ascii_whitespace() || byte.is_ascii_control() || *byte == b'#';
    if !scheme.eq_ignore_ascii_case(b"http://") || rest.iter().any(is_misleading) {
        return None;
    }
    let end = rest.iter().position(|byte| *byte == b'/' || *byte == b'?').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let target = HostTarget::parse(authority, Some(80))?;
    let prefix: &[u8] = if path.starts_with(b"/") { b"" } else { b"/" };
    Some((target, [prefix, path].concat()))
}
