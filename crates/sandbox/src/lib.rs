//! Limits what a program and its children may write, read and reach.
//!
//! ```text
//!   SandboxPolicy ─► SandboxWrapper::wrap_program ─► bwrap … windlass sandbox-launch … PROGRAM     bubblewrap: namespaces, then seccomp
//!                                        └──► windlass sandbox-launch … PROGRAM             Landlock and seccomp
//!
//!   PROGRAM ─► forwarder inside the sandbox ─► NetworkProxy of the caller ─► an allowed host
//! ```
//!
//! Invariants:
//! - What a policy asks for holds, or the program does not start. No back end is replaced by a weaker one.
//! - The program cannot widen its sandbox: no setuid, no namespaces of its own, no way around the proxy.
//!
//! Not here: which policy an agent gets (`app`), how programs are started and ended (`process`).

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests read files that they have written"))]

mod backend;
mod background_process;
mod bubblewrap;
mod forwarder;
#[cfg(target_os = "linux")]
mod landlock;
mod launch_setup;
#[cfg(target_os = "linux")]
mod launcher;
pub mod laws;
#[cfg(not(target_os = "linux"))]
mod other;
mod policy;
mod policy_check;
mod proxy;
mod proxy_process;
mod sandbox;
#[cfg(target_os = "linux")]
mod seccomp;

pub use backend::{
    BackendNameError, BackendObstacle, BackendReport, BackendsUnavailable, SandboxBackend, find_backend, probe_backends,
};
pub use forwarder::{FORWARD_COMMAND, ForwarderSetup, run_forward_command, run_forwarder, start_forwarder};
#[cfg(target_os = "linux")]
pub use landlock::LandlockError;
pub use launch_setup::LAUNCH_ARGUMENT;
#[cfg(target_os = "linux")]
pub use launcher::{LaunchError, launch_program};
#[cfg(not(target_os = "linux"))]
pub use other::{UnsupportedPlatform as LaunchError, launch_program, run_proxy_command};
pub use policy::{HostPattern, HostPatternError, NetworkPolicy, ResourceLimits, SandboxPolicy};
pub use policy_check::PolicyError;
pub use proxy::{
    DenialReason, HostResolver, INTERNAL_HOST, INTERNAL_PORT, NetworkProxy, ProxyAddress, ProxyEvent, ProxyListener,
    ProxySettings, RelayHandler, RelayStream, proxy_environment, resolve_host,
};
#[cfg(target_os = "linux")]
pub use proxy_process::run_proxy_command;
pub use proxy_process::{PROXY_COMMAND, ProxyProcessSetup, start_proxy_process};
pub use sandbox::SandboxWrapper;

#[cfg(target_os = "linux")]
use landlock::check_kernel;
#[cfg(not(target_os = "linux"))]
use other::{check_kernel, check_seccomp};
#[cfg(target_os = "linux")]
use seccomp::check_seccomp;
