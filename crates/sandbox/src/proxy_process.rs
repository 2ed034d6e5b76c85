//! A proxy in a process of its own, for a program that takes the place of its starter.

use std::io;
use std::process::Stdio;

use serde::{Deserialize, Serialize};

use crate::background_process::start_background_process;
use crate::{HostPattern, ProxyListener};

/// The hidden command of the program that runs a proxy. Its only argument is a [`ProxyProcessSetup`] in JSON.
pub const PROXY_COMMAND: &str = "sandbox-proxy";

/// What a proxy in a process of its own allows, and where it listens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProxyProcessSetup {
    pub hosts: Vec<HostPattern>,
    pub listen: ProxyListener,
}

/// Starts a proxy, which ends with this process, also after this process has become another program. Denials are written to standard
/// error.
pub fn start_proxy_process(setup: &ProxyProcessSetup) -> io::Result<()> {
    start_background_process(PROXY_COMMAND, &serde_json::to_string(setup)?, Stdio::inherit())
}

/// Runs the hidden command. `report_denial` gets the host, the port and the reason of each denied connection.
#[cfg(target_os = "linux")]
pub fn run_proxy_command(
    setup: &str,
    report_denial: impl Fn(&str, u16, &str) + Send + Sync + 'static,
) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::process::{PidfdFlags, getppid, pidfd_open};

    use crate::background_process::report_readiness;
    use crate::{NetworkProxy, ProxyEvent, ProxySettings};

    let setup: ProxyProcessSetup = serde_json::from_str(setup)?;
    let starter = getppid().ok_or(io::ErrorKind::NotFound)?;
    let ended = pidfd_open(starter, PidfdFlags::empty())?;
    let settings = ProxySettings::new(setup.hosts, setup.listen, String::new());
    let _proxy = NetworkProxy::start(settings, move |event| {
        if let ProxyEvent::Denied { host, port, reason } = event {
            report_denial(&host, port, &reason.to_string());
        }
    })?;
    report_readiness();
    while poll(&mut [PollFd::new(&ended, PollFlags::IN)], None).is_err() {}
    Ok(())
}
