//! Limits what a program and its children may write, read and reach.
//!
//! ```text
//!   SandboxPolicy ─► Sandbox::wrap_program ─► bwrap … windlass sandbox-launch … PROGRAM     bubblewrap: namespaces, then seccomp
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

mod forwarder;
pub mod laws;
mod policy;
mod proxy;

pub use forwarder::{FORWARD_COMMAND, ForwarderSetup, run_forward_command, run_forwarder, start_forwarder};
pub use policy::{HostPattern, HostPatternError, NetworkPolicy, ResourceLimits, SandboxPolicy};
pub use proxy::{
    DenialReason, HostResolver, INTERNAL_HOST, INTERNAL_PORT, NetworkProxy, ProxyAddress, ProxyEvent, ProxyListener,
    ProxySettings, RelayHandler, RelayStream, proxy_environment, resolve_host,
};
