//! What `windlass sandbox-launch` still has to apply, as one argument of its command line.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{ForwarderSetup, ResourceLimits, SandboxPolicy};

/// The first argument of the process that applies a setup to itself and becomes the program.
pub const LAUNCH_ARGUMENT: &str = "sandbox-launch";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LaunchSetup {
    pub landlock: Option<LandlockRules>,
    pub system_calls: SystemCallFilter,
    pub limits: ResourceLimits,
    /// The program's `TMPDIR`.
    pub temporary: PathBuf,
    pub forwarder: Option<ForwarderSetup>,
}

/// What Landlock holds in a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LandlockRules {
    /// Only that signals and abstract sockets stay inside. Bubblewrap does the rest.
    Scopes,
    /// The whole policy.
    Policy(SandboxPolicy),
}

/// What the filter for system calls denies besides the list for all sandboxes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SystemCallFilter {
    /// New Unix sockets, except pairs of connected ones.
    pub denies_unix_sockets: bool,
    /// Internet sockets other than those of TCP, and the ways of TCP that Landlock does not see.
    pub allows_tcp_only: bool,
    /// Memory, semaphores and queues that processes find by a number or a name.
    pub denies_shared_ipc: bool,
}
