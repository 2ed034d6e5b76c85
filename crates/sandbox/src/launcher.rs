//! Applies to this process what is left of a sandbox, and becomes the program.
//!
//! ```text
//!   no privileges ─► Landlock ─► limits ─► filter for system calls ─► forwarder ─► exec
//! ```
//!
//! Invariants:
//! - If one step fails, the program does not start.
//! - The program gets the descriptors 0, 1 and 2 and no others.

use std::ffi::{OsStr, OsString};
use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set, remove_capability_from_bounding_set,
    set_capabilities, set_no_new_privs,
};
use windlass_process::replace_process;

use crate::forwarder::start_forwarder;
use crate::landlock::{LandlockError, apply_rules};
use crate::launch_setup::LaunchSetup;
use crate::{ResourceLimits, seccomp};

/// The reason why a program did not start in its sandbox.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error("cannot read the setup of the sandbox")]
    Setup(#[source] serde_json::Error),
    #[error("cannot start the forwarder to the proxy")]
    Forwarder(#[source] io::Error),
    #[error("cannot limit {what}")]
    Limit { what: &'static str, source: io::Error },
    #[error("cannot give up privileges")]
    Privileges(#[source] io::Error),
    #[error(transparent)]
    Landlock(LandlockError),
    #[error("cannot filter system calls: {0}")]
    SystemCalls(String),
    #[error("cannot start `{}` in the sandbox", .program.display())]
    Program { program: OsString, source: io::Error },
}

impl LaunchError {
    /// Returns what a person can do.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Setup(_) => "`windlass sandbox run -- PROGRAM` makes one",
            Self::Forwarder(_) => "look whether the limits leave room for a second process, and try again",
            Self::Limit { .. } => "leave out the limit, or choose a lower one than the system's",
            Self::Privileges(_) | Self::Landlock(_) => "use bubblewrap, or a newer kernel",
            Self::SystemCalls(_) => "the kernel needs seccomp (CONFIG_SECCOMP_FILTER)",
            Self::Program { .. } => "it has to be in `PATH`, and the sandbox must not hide it",
        }
    }
}

/// Applies the setup to this process and replaces it with the program. Returns only if that fails.
pub fn launch_program(setup: &str, program: &OsStr, arguments: &[OsString]) -> LaunchError {
    let setup = match serde_json::from_str::<LaunchSetup>(setup) {
        Ok(setup) => setup,
        Err(error) => return LaunchError::Setup(error),
    };
    if let Err(error) = apply_setup(&setup) {
        return error;
    }
    let temporary = (OsString::from("TMPDIR"), setup.temporary.into_os_string());
    let source = replace_process(program, arguments, &[temporary]);
    LaunchError::Program { program: program.to_owned(), source }
}

fn apply_setup(setup: &LaunchSetup) -> Result<(), LaunchError> {
    drop_privileges().map_err(LaunchError::Privileges)?;
    if let Some(rules) = &setup.landlock {
        apply_rules(rules).map_err(LaunchError::Landlock)?;
    }
    apply_limits(&setup.limits)?;
    let programs =
        seccomp::build_filter(setup.system_calls).map_err(|error| LaunchError::SystemCalls(error.to_string()))?;
    for program in programs {
        seccompiler::apply_filter(&program).map_err(|error| LaunchError::SystemCalls(error.to_string()))?;
    }
    // The forwarder is held by the sandbox, too: the program could take it over.
    if let Some(forwarder) = &setup.forwarder {
        start_forwarder(forwarder).map_err(LaunchError::Forwarder)?;
    }
    Ok(())
}

/// Gives up all capabilities, for good: neither the superuser nor a setuid program gets one again.
fn drop_privileges() -> io::Result<()> {
    set_no_new_privs(true)?;
    let held = capabilities(None)?;
    if held.effective.contains(CapabilitySet::SETPCAP) {
        for capability in CapabilitySet::all().iter() {
            match remove_capability_from_bounding_set(capability) {
                // The kernel is older than this capability.
                Err(rustix::io::Errno::INVAL) => {}
                outcome => outcome?,
            }
        }
    }
    clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    Ok(())
}

/// Sets limits that the program cannot raise. The memory limit counts memory that can be written and is not shared: interpreters
/// reserve far more addresses than they use.
fn apply_limits(limits: &ResourceLimits) -> Result<(), LaunchError> {
    let wanted = [
        ("the memory", Resource::Data, limits.memory_bytes),
        ("the number of processes", Resource::Nproc, limits.processes),
        ("the number of open files", Resource::Nofile, limits.open_files),
        ("the processor time", Resource::Cpu, limits.cpu_seconds),
    ];
    for (what, resource, most) in wanted {
        let Some(most) = most else { continue };
        let present = getrlimit(resource).maximum.unwrap_or(u64::MAX);
        let most = Some(most.min(present));
        setrlimit(resource, Rlimit { current: most, maximum: most })
            .map_err(|error| LaunchError::Limit { what, source: error.into() })?;
    }
    Ok(())
}
