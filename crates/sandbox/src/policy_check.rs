//! Checks that the paths of a policy mean the same in each back end, and at each time.

use std::io;
use std::path::{Path, PathBuf};

use crate::SandboxPolicy;

/// Directories of the kernel. No policy opens one of them, and each back end has rules of its own for them.
const KERNEL_DIRECTORIES: [&str; 3] = ["/dev", "/proc", "/sys"];

/// The reason why a policy cannot hold.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    #[error("cannot use `{0}` in a sandbox: the path is not absolute")]
    Relative(PathBuf),
    #[error("cannot use `{path}` in a sandbox: it leads to `{target}`; name that path")]
    Link { path: PathBuf, target: PathBuf },
    #[error("cannot allow writes to `{path}`")]
    Unusable { path: PathBuf, source: io::Error },
    #[error(
        "cannot allow writes to `{0}`: it holds the whole system, or belongs to the kernel; name a directory below it"
    )]
    TooWide(PathBuf),
    #[error("cannot use `{0}` in a sandbox: the path is not UTF-8")]
    NotUtf8(PathBuf),
    #[error(
        "cannot keep temporary files in `{0}`: other programs use it, too; make a directory for this program alone"
    )]
    SharedTemporary(PathBuf),
    #[error(
        "cannot limit the number of processes: {0}; use bubblewrap as another user than root, or leave out the limit"
    )]
    ProcessLimit(&'static str),
    #[error(
        "cannot allow single hosts with Landlock, which sees ports and no addresses; install bubblewrap, or allow all of the network or \
         none of it"
    )]
    HostListNeedsBubblewrap,
}

/// Checks every path. Those in `write` and `temporary` have to exist. Those in `protected` and `hidden` may be missing.
pub(crate) fn check_policy(policy: &SandboxPolicy) -> Result<(), PolicyError> {
    for path in policy.write.iter().chain([&policy.temporary]) {
        check_spelling(path)?;
        let is_kernel_path = KERNEL_DIRECTORIES.iter().any(|directory| path.starts_with(directory));
        if is_kernel_path || path.parent().is_none() {
            return Err(PolicyError::TooWide(path.clone()));
        }
        let target = path.canonicalize().map_err(|source| PolicyError::Unusable { path: path.clone(), source })?;
        check_target(path, target)?;
    }
    if SHARED_DIRECTORIES.iter().any(|shared| policy.temporary == Path::new(shared)) {
        return Err(PolicyError::SharedTemporary(policy.temporary.clone()));
    }
    for path in policy.protected.iter().chain(&policy.hidden) {
        check_spelling(path)?;
        let existing = path.ancestors().find(|above| above.symlink_metadata().is_ok()).unwrap_or(Path::new("/"));
        // A link that leads nowhere cannot be hidden: its target may appear.
        let target = existing.canonicalize().unwrap_or_default();
        check_target(existing, target)?;
    }
    Ok(())
}

/// Directories that programs share. A program in a sandbox sees its own temporary directory in place of the last two.
pub(crate) const SHARED_DIRECTORIES: [&str; 3] = ["/run", "/tmp", "/var/tmp"];

/// The file of the name servers, often a link into `/run`.
pub(crate) const RESOLVER_FILE: &str = "/etc/resolv.conf";

fn check_spelling(path: &Path) -> Result<(), PolicyError> {
    match path {
        _ if !path.is_absolute() => Err(PolicyError::Relative(path.to_owned())),
        _ if path.to_str().is_none() => Err(PolicyError::NotUtf8(path.to_owned())),
        _ => Ok(()),
    }
}

fn check_target(path: &Path, target: PathBuf) -> Result<(), PolicyError> {
    // The comparison by text refuses `..` and `.`, too.
    if target.as_os_str() == path.as_os_str() {
        Ok(())
    } else {
        Err(PolicyError::Link { path: path.to_owned(), target })
    }
}

/// Returns the first part of a path that does not exist, or `None` if the whole path exists.
pub(crate) fn find_missing_part(path: &Path) -> Option<&Path> {
    path.ancestors().take_while(|above| above.symlink_metadata().is_err()).last()
}

/// Returns the innermost path of a list that is this path or a directory above it.
pub(crate) fn find_innermost<'a>(paths: &'a [PathBuf], path: &Path) -> Option<&'a PathBuf> {
    paths.iter().filter(|above| path.starts_with(above)).max_by_key(|above| above.components().count())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn policy_with_unclear_paths_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        for name in ["work", "temporary"] {
            std::fs::create_dir(root.join(name)).unwrap();
        }
        symlink(root.join("work"), root.join("link")).unwrap();
        symlink(root.join("missing"), root.join("broken")).unwrap();
        let base =
            SandboxPolicy { write: vec![root.join("work")], temporary: root.join("temporary"), ..Default::default() };
        let message = |change: &dyn Fn(&mut SandboxPolicy)| {
            let mut policy = base.clone();
            change(&mut policy);
            check_policy(&policy).err().map(|error| error.to_string())
        };
        assert_eq!(message(&|_| ()), None);
        assert_eq!(message(&|policy| policy.hidden.push(root.join("work/later/secret"))), None);
        for wrong in ["link", "work/../work", "broken", "link/secret"] {
            let text = message(&|policy| policy.hidden.push(root.join(wrong))).unwrap();
            assert!(text.contains("it leads to"), "{wrong}: {text}");
        }
        assert!(message(&|policy| policy.write.push("work".into())).unwrap().contains("not absolute"));
        assert!(message(&|policy| policy.write.push(root.join("missing"))).unwrap().contains("cannot allow writes"));
        for wide in ["/", "/proc/self", "/dev"] {
            assert!(message(&|policy| policy.write.push(wide.into())).unwrap().contains("whole system"), "{wide}");
        }
        assert!(message(&|policy| policy.temporary = "/tmp".into()).unwrap().contains("other programs"));
    }
}
