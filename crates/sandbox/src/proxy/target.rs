//! The host and port that a client asks for, and the addresses that it may stand for.
//!
//! Invariants:
//! - A name never stands for an address of this machine or of a local network, unless a pattern names that address.
//! - A host is compared in one spelling: names in lower case without a final dot, addresses as `std` writes them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::HostPattern;

/// The name that stands for this machine, and for nothing else.
pub(crate) const LOCALHOST: &str = "localhost";

const MAX_NAME_LENGTH: usize = 253;
const MAX_LABEL_LENGTH: usize = 63;

/// A host and a port, as in `example.com:443` or `[::1]:80`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostTarget {
    /// A lower-case name, or an address without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl HostTarget {
    /// Reads the authority of an address. Without a default, the port has to be there.
    pub(crate) fn parse(authority: &[u8], default_port: Option<u16>) -> Option<Self> {
        let text = std::str::from_utf8(authority).ok()?;
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, rest) = rest.split_once(']')?;
                let port = if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) };
                (address.parse::<Ipv6Addr>().ok()?.to_string(), port)
            }
            None => match text.split_once(':') {
                Some((name, port)) => (normalize_name(name)?, Some(port)),
                None => (normalize_name(text)?, None),
            },
        };
        let port = match port {
            Some(digits) if digits.bytes().all(|digit| digit.is_ascii_digit()) => digits.parse().ok()?,
            Some(_) => return None,
            None => default_port?,
        };
        (port > 0).then_some(Self { host, port })
    }

    pub(crate) fn address(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }

    /// Returns whether a pattern allows this host.
    pub(crate) fn is_allowed(&self, hosts: &[HostPattern]) -> bool {
        let is_address = self.address().is_some();
        // `*.0.0.1` names subdomains, not addresses.
        hosts.iter().any(|pattern| pattern.allows(&self.host, self.port) && !(is_address && has_star(pattern)))
    }

    /// Returns whether this host may stand for an address.
    pub(crate) fn may_resolve_to(&self, address: IpAddr, hosts: &[HostPattern]) -> bool {
        let literal = Self { host: address.to_string(), port: self.port };
        match self.host.as_str() {
            LOCALHOST => address.is_loopback(),
            _ => !is_local_address(address) || literal.is_allowed(hosts),
        }
    }

    /// Returns the host as it stands in a `Host` header of plain HTTP.
    pub(crate) fn host_header(&self) -> String {
        match self.port {
            80 => self.bracketed_host(),
            _ => self.to_string(),
        }
    }

    /// Returns a pattern that allows this host and port.
    pub(crate) fn pattern(&self) -> String {
        match self.port {
            80 | 443 => self.bracketed_host(),
            _ => self.to_string(),
        }
    }

    fn bracketed_host(&self) -> String {
        if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() }
    }
}

impl fmt::Display for HostTarget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.bracketed_host(), self.port)
    }
}

fn has_star(pattern: &HostPattern) -> bool {
    pattern.to_string().starts_with("*.")
}

/// Returns a name in lower case and without its final dot, if it is one.
pub(crate) fn normalize_name(name: &str) -> Option<String> {
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_label = |label: &str| {
        let is_sign = |sign: u8| sign.is_ascii_alphanumeric() || sign == b'-' || sign == b'_';
        (1..=MAX_LABEL_LENGTH).contains(&label.len()) && label.bytes().all(is_sign)
    };
    (name.len() <= MAX_NAME_LENGTH && name.split('.').all(is_label)).then(|| name.to_ascii_lowercase())
}

/// Returns whether an address belongs to this machine, to a local network, or to a service that a cloud gives to its machines.
pub(crate) fn is_local_address(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_local_ipv4(address),
        IpAddr::V6(address) => is_local_ipv6(address),
    }
}

fn is_local_ipv4(address: Ipv4Addr) -> bool {
    let [first, second, third, _] = address.octets();
    let is_shared = first == 100 && (64..128).contains(&second);
    let is_protocol_assignment = (first, second, third) == (192, 0, 0);
    let is_benchmark = first == 198 && (second == 18 || second == 19);
    // The agent of a virtual machine in Azure.
    let is_azure_host = address == Ipv4Addr::new(168, 63, 129, 16);
    address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || first == 0
        || first >= 224
        || is_shared
        || is_protocol_assignment
        || is_benchmark
        || is_azure_host
}

fn is_local_ipv6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let [.., high, low] = segments;
    let embedded = |high: u16, low: u16| {
        let [[a, b], [c, d]] = [high.to_be_bytes(), low.to_be_bytes()];
        is_local_ipv4(Ipv4Addr::new(a, b, c, d))
    };
    match segments {
        // Unspecified, loopback and IPv4-compatible.
        [0, 0, 0, 0, 0, 0, _, _] => true,
        // IPv4-mapped, IPv4-translated and NAT64.
        [0, 0, 0, 0, 0, 0xffff, _, _] | [0, 0, 0, 0, 0xffff, 0, _, _] | [0x64, 0xff9b, 0, 0, 0, 0, _, _] => {
            embedded(high, low)
        }
        // NAT64 of a local network, and Teredo, which hides an address of its own.
        [0x64, 0xff9b, 1, ..] | [0x2001, 0, ..] => true,
        // 6to4.
        [0x2002, high, low, ..] => embedded(high, low),
        // Unique local, link-local, site-local and multicast.
        [first, ..] => first & 0xfe00 == 0xfc00 || first & 0xff80 == 0xfe80 || first & 0xff00 == 0xff00,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(authority: &str) -> Option<String> {
        HostTarget::parse(authority.as_bytes(), None).map(|target| target.to_string())
    }

    #[test]
    fn authority_has_one_spelling() {
        assert_eq!(parsed("API.Example.com.:443").unwrap(), "api.example.com:443");
        assert_eq!(parsed("[0:0::0001]:80").unwrap(), "[::1]:80");
        assert_eq!(parsed("127.0.0.1:8080").unwrap(), "127.0.0.1:8080");
    }

    #[test]
    fn text_without_host_or_port_is_no_authority() {
        let long = format!("{}:80", "a".repeat(64));
        for text in [
            "",
            ":80",
            "host",
            "host:",
            "host:0",
            "host:+80",
            "host:65536",
            "host:80:80",
            "a..b:80",
            "host..:80",
            "user@host:80",
            "ho st:80",
            "host\0:80",
            "[::1]",
            "[::1%1]:80",
            "[::1]80",
            "::1:80",
            "hóst:80",
            "a/b:80",
            &long,
        ] {
            assert_eq!(parsed(text), None, "{text}");
        }
    }

    #[test]
    fn local_addresses_are_recognized_in_every_form() {
        for text in [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.100.100.200",
            "192.0.0.192",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "168.63.129.16",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2001::1",
            "::ffff:0:a00:1",
            "fe80::1",
            "fec0::1",
            "fc00::1",
            "fd00:ec2::254",
            "ff02::1",
        ] {
            assert!(is_local_address(text.parse().unwrap()), "{text}");
        }
        for text in ["1.1.1.1", "203.0.113.7", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101", "172.32.0.1"] {
            assert!(!is_local_address(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn name_stands_for_local_address_only_if_pattern_names_it() {
        let hosts = ["example.com", "*.0.0.1", "10.0.0.7", "localhost"].map(|pattern| pattern.parse().unwrap());
        let target = |host: &str| HostTarget { host: host.into(), port: 80 };
        let may_resolve = |host: &str, address: &str| target(host).may_resolve_to(address.parse().unwrap(), &hosts);
        assert!(may_resolve("example.com", "203.0.113.7"));
        assert!(may_resolve("example.com", "10.0.0.7"));
        assert!(!may_resolve("example.com", "10.0.0.8"));
        assert!(!may_resolve("example.com", "127.0.0.1"));
        assert!(!may_resolve("example.com", "::ffff:10.0.0.7"));
        assert!(may_resolve("localhost", "::1"));
        assert!(!may_resolve("localhost", "169.254.169.254"));
        assert!(!target("127.0.0.1").is_allowed(&hosts));
        assert!(target("10.0.0.7").is_allowed(&hosts));
    }
}
