//! The proxy that an environment names for a host, read as curl does.

use windlass_process::Environment;

use super::address::ApiAddress;

const PROXY_VARIABLES: [&str; 4] = ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
const NO_PROXY_VARIABLES: [&str; 2] = ["no_proxy", "NO_PROXY"];

/// Returns the proxy, but none for this machine, because that traffic is not encrypted.
pub(super) fn find_proxy(environment: &Environment, api: &ApiAddress) -> Option<String> {
    let value = |names: &[&str]| {
        let set = |name: &&str| environment.iter().rfind(|(found, _)| found == name)?.1.to_str();
        names.iter().filter_map(set).map(str::trim).find(|value| !value.is_empty())
    };
    let proxy = value(&PROXY_VARIABLES)?;
    let is_excepted =
        value(&NO_PROXY_VARIABLES).is_some_and(|list| list.split(',').any(|rule| rule_covers_api(rule.trim(), api)));
    (!api.is_loopback() && !is_excepted).then(|| proxy.to_owned())
}

/// A rule is `*`, a host with its subdomains, or a host with a port.
fn rule_covers_api(rule: &str, api: &ApiAddress) -> bool {
    if rule == "*" {
        return true;
    }
    let with_port = rule.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)));
    let (rule, port) = with_port.map_or((rule, None), |(host, port)| (host, Some(port)));
    let rule = rule.trim_start_matches('*').trim_start_matches('.').to_ascii_lowercase();
    let is_below = || api.host.strip_suffix(&rule).is_some_and(|rest| rest.ends_with('.'));
    !rule.is_empty() && port.is_none_or(|port| port == api.port) && (api.host == rule || is_below())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(variables: &[(&str, &str)], api: &str, expected: Option<&str>) {
        let environment = variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        assert_eq!(find_proxy(&environment, &ApiAddress::parse(api).unwrap()).as_deref(), expected, "{variables:?}");
    }

    #[test]
    fn proxy_is_bypassed_for_no_proxy_hosts() {
        let api = "https://api.acme.test:8443/x";
        let proxy = ("HTTPS_PROXY", "http://proxy.test:3128");
        check(&[], api, None);
        check(&[proxy], api, Some(proxy.1));
        check(&[proxy, ("https_proxy", "http://other.test")], api, Some("http://other.test"));
        check(&[proxy], "http://127.0.0.1:8/x", None);
        for list in ["*", "acme.test", ".acme.test", "x, *.acme.test", "api.acme.test:8443", "API.ACME.TEST"] {
            check(&[proxy, ("no_proxy", list)], api, None);
        }
        for list in ["", "me.test", "api.acme.test:443", "x.api.acme.test", ","] {
            check(&[proxy, ("NO_PROXY", list)], api, Some(proxy.1));
        }
    }
}
