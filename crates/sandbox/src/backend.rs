//! The back ends of a sandbox, and which of them work on this system.

use std::ffi::OsString;
use std::fmt;
use std::str::FromStr;

use windlass_process::run_probe;

use crate::bubblewrap::{NAMESPACE_OPTIONS, PROGRAM};
use crate::{check_kernel, check_seccomp};

/// The part of the system that holds a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SandboxBackend {
    Bubblewrap,
    Landlock,
}

/// Whether a back end works here.
#[derive(Debug)]
pub struct BackendReport {
    pub backend: SandboxBackend,
    /// Why it does not work, and what helps.
    pub obstacle: Option<BackendObstacle>,
}

/// The reason why a back end does not work, and the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendObstacle {
    pub cause: String,
    pub remedy: &'static str,
}

/// No back end works, or the wanted one does not.
#[derive(Debug, thiserror::Error)]
#[error("cannot make a sandbox: {}", describe_reports(.0))]
pub struct BackendsUnavailable(pub Vec<BackendReport>);

/// A text that names no back end.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no back end: write `bubblewrap` or `landlock`")]
pub struct BackendNameError(String);

const BACKENDS: [SandboxBackend; 2] = [SandboxBackend::Bubblewrap, SandboxBackend::Landlock];

/// Returns the wanted back end, or else the first that works.
pub fn find_backend(wanted: Option<SandboxBackend>) -> Result<SandboxBackend, BackendsUnavailable> {
    let mut reports = Vec::new();
    for backend in BACKENDS.into_iter().filter(|backend| wanted.is_none_or(|wanted| wanted == *backend)) {
        let report = probe_backend(backend);
        if report.obstacle.is_none() {
            return Ok(backend);
        }
        reports.push(report);
    }
    Err(BackendsUnavailable(reports))
}

/// Tries each back end.
pub fn probe_backends() -> Vec<BackendReport> {
    BACKENDS.map(probe_backend).into()
}

fn probe_backend(backend: SandboxBackend) -> BackendReport {
    let works = match backend {
        SandboxBackend::Bubblewrap => probe_bubblewrap(),
        SandboxBackend::Landlock => {
            check_kernel().map_err(|error| BackendObstacle { cause: error.to_string(), remedy: "use a newer kernel" })
        }
    };
    let seccomp = || {
        check_seccomp().map_err(|cause| BackendObstacle { cause, remedy: "use a kernel with CONFIG_SECCOMP_FILTER" })
    };
    BackendReport { backend, obstacle: works.and_then(|()| seccomp()).err() }
}

/// Starts bubblewrap with the options of a sandbox.
fn probe_bubblewrap() -> Result<(), BackendObstacle> {
    let mounts = ["--unshare-net", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--", "true"];
    let arguments: Vec<OsString> = NAMESPACE_OPTIONS.iter().chain(&mounts).map(OsString::from).collect();
    let output = run_probe(PROGRAM.as_ref(), &arguments).map_err(|error| BackendObstacle {
        cause: format!("cannot start `{PROGRAM}`: {error}"),
        remedy: "install the package `bubblewrap`",
    })?;
    if output.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&output.stderr);
    let cause = words.lines().next().unwrap_or("it failed without a message").to_owned();
    let remedy = if cause.contains("Unknown option") {
        "install bubblewrap 0.8 or newer"
    } else {
        "allow user namespaces: an AppArmor profile for `bwrap`, or the settings \
         `kernel.apparmor_restrict_unprivileged_userns=0` and `user.max_user_namespaces`; in a container, its own options"
    };
    Err(BackendObstacle { cause, remedy })
}

fn describe_reports(reports: &[BackendReport]) -> String {
    let lines = reports.iter().filter_map(|report| {
        let obstacle = report.obstacle.as_ref()?;
        Some(format!("{} does not work: {} ({})", report.backend, obstacle.cause, obstacle.remedy))
    });
    lines.collect::<Vec<_>>().join("; ")
}

impl FromStr for SandboxBackend {
    type Err = BackendNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        BACKENDS
            .into_iter()
            .find(|backend| backend.to_string() == text)
            .ok_or_else(|| BackendNameError(text.to_owned()))
    }
}

impl fmt::Display for SandboxBackend {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Bubblewrap => "bubblewrap",
            Self::Landlock => "landlock",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_names_cause_and_remedy_of_each_backend() {
        let report = |backend, cause: &str, remedy| BackendReport {
            backend,
            obstacle: Some(BackendObstacle { cause: cause.to_owned(), remedy }),
        };
        let error = BackendsUnavailable(vec![
            report(SandboxBackend::Bubblewrap, "cannot start `bwrap`", "install the package `bubblewrap`"),
            report(SandboxBackend::Landlock, "the kernel has no Landlock", "use a newer kernel"),
        ]);
        assert_eq!(
            error.to_string(),
            "cannot make a sandbox: bubblewrap does not work: cannot start `bwrap` (install the package `bubblewrap`); \
             landlock does not work: the kernel has no Landlock (use a newer kernel)"
        );
        assert_eq!("landlock".parse(), Ok(SandboxBackend::Landlock));
        assert_eq!("Seatbelt".parse::<SandboxBackend>(), Err(BackendNameError("Seatbelt".to_owned())));
    }
}
