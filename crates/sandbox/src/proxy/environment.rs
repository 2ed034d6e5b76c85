//! Variables that make programs use the proxy.

/// Variables that name a proxy. Programs know one spelling or the other: curl takes `http_proxy` in lower case only.
///
/// These are enough for curl, git, cargo, pip, npm, yarn, Go, and libraries of Python and Rust.
const PROXY_VARIABLES: [&str; 6] = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];

/// Variables that name hosts which are reached without the proxy. A list from outside the sandbox does not hold in it.
const EXCEPTION_VARIABLES: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// Makes Node from 22.21 and 24.5 on use the variables.
const NODE_VARIABLE: &str = "NODE_USE_ENV_PROXY";

/// The sandbox's own addresses, where it has a network of its own.
const OWN_ADDRESSES: &str = "localhost,127.0.0.1,::1";

/// Returns the variables that lead programs to a proxy on a port of 127.0.0.1. An empty token is left out: a forwarder needs none, and its
/// sandbox has a network of its own.
pub fn proxy_environment(port: u16, token: &str) -> Vec<(String, String)> {
    let credentials = if token.is_empty() { String::new() } else { format!("{}:{token}@", super::PROXY_USER) };
    let address = format!("http://{credentials}127.0.0.1:{port}");
    let proxies = PROXY_VARIABLES.iter().map(|name| ((*name).to_owned(), address.clone()));
    let direct = if token.is_empty() { OWN_ADDRESSES } else { "" };
    let exceptions = EXCEPTION_VARIABLES.iter().map(|name| ((*name).to_owned(), direct.to_owned()));
    proxies.chain(exceptions).chain([(NODE_VARIABLE.to_owned(), "1".to_owned())]).collect()
}
