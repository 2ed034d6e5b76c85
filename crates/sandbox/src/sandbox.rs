//! Changes the command line of a program so that it runs in a sandbox.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::bubblewrap::{self, LAUNCHER_PATH, PROXY_SOCKET_PATH, TEMPORARY_PATH};
use crate::launch_setup::{LAUNCH_ARGUMENT, LandlockRules, LaunchSetup, SystemCallFilter};
use crate::policy_check::check_policy;
use crate::{ForwarderSetup, NetworkPolicy, PolicyError, SandboxBackend, SandboxPolicy, check_kernel};

/// A sandbox for programs.
#[derive(Debug, Clone)]
pub struct SandboxWrapper {
    pub backend: SandboxBackend,
    pub policy: SandboxPolicy,
    /// The binary `windlass`. The program cannot change it.
    pub launcher: PathBuf,
    /// The socket of the proxy, for a policy with a list of hosts, and the port on which a forwarder inside listens.
    pub forwarder: Option<ForwarderSetup>,
}

impl SandboxWrapper {
    /// Returns the command line that runs a program in this sandbox.
    pub fn wrap_program(&self, argv: &[OsString]) -> Result<Vec<OsString>, PolicyError> {
        check_policy(&self.policy)?;
        self.check_process_limit()?;
        if self.backend == SandboxBackend::Landlock && matches!(self.policy.network, NetworkPolicy::Hosts(_)) {
            return Err(PolicyError::HostListNeedsBubblewrap);
        }
        let mut policy = self.policy.clone();
        policy.protected.extend(self.launcher.canonicalize());
        let (mut words, setup) = match self.backend {
            SandboxBackend::Bubblewrap => {
                let socket = self.forwarder.as_ref().map(|forwarder| forwarder.socket.as_path());
                let words = bubblewrap::build_arguments(&policy, &self.launcher, socket);
                ([words, vec![LAUNCHER_PATH.into()]].concat(), self.bubblewrap_setup())
            }
            SandboxBackend::Landlock => (vec![self.launcher.clone().into()], self.landlock_setup(policy)),
        };
        let setup = serde_json::to_string(&setup).map_err(|_| PolicyError::NotUtf8(self.policy.temporary.clone()))?;
        words.extend([LAUNCH_ARGUMENT.into(), setup.into()]);
        words.extend_from_slice(argv);
        Ok(words)
    }

    /// Bubblewrap has done most of it. Only a network that is shared lets abstract sockets through.
    fn bubblewrap_setup(&self) -> LaunchSetup {
        let shares_network = self.policy.network == NetworkPolicy::All;
        let has_landlock = shares_network && check_kernel().is_ok();
        LaunchSetup {
            landlock: has_landlock.then_some(LandlockRules::Scopes),
            system_calls: SystemCallFilter {
                denies_unix_sockets: shares_network && !has_landlock,
                ..SystemCallFilter::default()
            },
            limits: self.policy.limits.clone(),
            temporary: TEMPORARY_PATH.into(),
            forwarder: self
                .forwarder
                .as_ref()
                .map(|outside| ForwarderSetup { socket: PROXY_SOCKET_PATH.into(), port: outside.port }),
        }
    }

    fn landlock_setup(&self, policy: SandboxPolicy) -> LaunchSetup {
        LaunchSetup {
            system_calls: SystemCallFilter {
                denies_unix_sockets: true,
                allows_tcp_only: policy.network != NetworkPolicy::All,
                denies_shared_ipc: true,
            },
            limits: policy.limits.clone(),
            temporary: policy.temporary.clone(),
            landlock: Some(LandlockRules::Policy(policy)),
            forwarder: None,
        }
    }

    /// The kernel counts the processes of a user, except those of root. Only bubblewrap's user namespace has a count of its own.
    fn check_process_limit(&self) -> Result<(), PolicyError> {
        if self.policy.limits.processes.is_none() {
            return Ok(());
        }
        if rustix::process::getuid().is_root() {
            return Err(PolicyError::ProcessLimit("the kernel does not count the processes of root"));
        }
        match self.backend {
            SandboxBackend::Bubblewrap => Ok(()),
            SandboxBackend::Landlock => {
                Err(PolicyError::ProcessLimit("with Landlock, the kernel counts all processes of the user"))
            }
        }
    }
}
