//! The command line of bubblewrap for a policy.
//!
//! ```text
//!   / read-only ─► /dev, /proc, /run, /tmp of its own ─► writable, protected and hidden paths, outer ones first
//! ```
//!
//! Invariants:
//! - Later mounts cover earlier ones, so the innermost path decides.
//! - A directory between a writable one and a protected or hidden path is a mount of its own. It cannot be renamed, which would
//!   take the path out of reach of the policy.
//! - A protected or hidden path that is missing below a writable directory is covered by an empty directory, which bubblewrap
//!   creates there and leaves behind. Elsewhere the program cannot create it, and nothing is done.
//! - A hidden or protected file is one until a program outside replaces it by another file. A directory stays one.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use windlass_process::file;

use crate::policy_check::{RESOLVER_FILE, SHARED_DIRECTORIES, find_innermost, find_missing_part};
use crate::{NetworkPolicy, SandboxPolicy};

/// The program `windlass` inside of the sandbox. It has this path also where its own path is hidden.
pub(crate) const LAUNCHER_PATH: &str = "/run/windlass";
/// The socket of the proxy inside of the sandbox.
pub(crate) const PROXY_SOCKET_PATH: &str = "/run/windlass-proxy.sock";
/// The directory for temporary files inside of the sandbox.
pub(crate) const TEMPORARY_PATH: &str = "/tmp";

/// The name of the program, which is looked up in `PATH`.
pub(crate) const PROGRAM: &str = "bwrap";

/// Options for what a sandbox does not share with the system. A probe uses the same ones.
///
/// With `--die-with-parent`, all processes inside end with bubblewrap, and bubblewrap ends with the thread that has started it. So this
/// thread has to wait for the program.
pub(crate) const NAMESPACE_OPTIONS: [&str; 9] = [
    "--die-with-parent",
    "--unshare-user",
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--disable-userns",
    "--cap-drop",
    "ALL",
];

/// Settings of the whole kernel, which root could change in a namespace, too.
const KERNEL_SETTINGS: [&str; 9] = [
    "/proc/acpi",
    "/proc/bus",
    "/proc/dynamic_debug",
    "/proc/fs",
    "/proc/irq",
    "/proc/mtrr",
    "/proc/scsi",
    "/proc/sys",
    "/proc/sysrq-trigger",
];

/// Entries of `/run` with programs and libraries, on systems that keep them there.
const RUN_DIRECTORIES: [&str; 2] = ["/run/current-system", "/run/opengl-driver"];

const UNIX_SOCKET_TABLE: &str = "/proc/net/unix";
const MAX_SOCKET_TABLE: u64 = 16 * 1024 * 1024;

/// What a mount allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PathAccess {
    Write,
    Read,
    /// A hidden directory, or a missing one in a writable directory.
    EmptyDirectory,
    /// A hidden file.
    EmptyFile,
}

/// Returns the words of bubblewrap up to the `--` before the program.
pub(crate) fn build_arguments(policy: &SandboxPolicy, launcher: &Path, proxy_socket: Option<&Path>) -> Vec<OsString> {
    let mut words: Vec<OsString> = std::iter::once(PROGRAM).chain(NAMESPACE_OPTIONS).map(OsString::from).collect();
    let mut add = |line: &[&dyn AsRef<std::ffi::OsStr>]| words.extend(line.iter().map(|word| word.as_ref().to_owned()));
    if policy.network != NetworkPolicy::All {
        add(&[&"--unshare-net"]);
    }
    add(&[&"--ro-bind", &"/", &"/", &"--dev", &"/dev", &"--proc", &"/proc", &"--tmpfs", &"/run"]);
    for path in KERNEL_SETTINGS {
        add(&[&"--ro-bind-try", &path, &path]);
    }
    for path in run_entries(policy) {
        add(&[&"--ro-bind", &path, &path]);
    }
    add(&[&"--ro-bind", &launcher, &LAUNCHER_PATH]);
    if let Some(socket) = proxy_socket {
        add(&[&"--bind", &socket, &PROXY_SOCKET_PATH]);
    }
    for place in [TEMPORARY_PATH, "/var/tmp"] {
        if Path::new(place).is_dir() {
            add(&[&"--bind", &policy.temporary, &place]);
        }
    }
    let mounts = path_mounts(policy, launcher);
    for (path, access) in &mounts {
        match access {
            PathAccess::Write => add(&[&"--bind", path, path]),
            PathAccess::Read => add(&[&"--ro-bind", path, path]),
            PathAccess::EmptyDirectory => add(&[&"--perms", &"0555", &"--tmpfs", path]),
            PathAccess::EmptyFile => add(&[&"--ro-bind", &"/dev/null", path]),
        }
    }
    // Bubblewrap has made the directories for inner mounts by now.
    let empty = mounts.iter().filter(|(_, access)| **access == PathAccess::EmptyDirectory).map(|(path, _)| path);
    empty.for_each(|path| add(&[&"--remount-ro", path]));
    add(&[&"--remount-ro", &"/run", &"--"]);
    words
}

/// Returns the mounts of the paths of a policy and of the directories around them, outer ones first.
fn path_mounts(policy: &SandboxPolicy, launcher: &Path) -> BTreeMap<PathBuf, PathAccess> {
    // The order of a map of paths is by their parts, so that a directory comes before its entries.
    let mut mounts: BTreeMap<PathBuf, PathAccess> = BTreeMap::new();
    for path in &policy.write {
        mounts.insert(path.clone(), PathAccess::Write);
    }
    let own_program = launcher.to_owned();
    let protected = || policy.protected.iter().chain([&own_program]).filter(|path| is_shown(policy, path));
    let hidden = || policy.hidden.iter().filter(|path| is_shown(policy, path));
    for path in protected().filter(|path| path.exists()) {
        mounts.insert(path.clone(), PathAccess::Read);
    }
    let sockets = outside_sockets(policy);
    for path in hidden().chain(&sockets) {
        match path.symlink_metadata() {
            Ok(metadata) if metadata.is_dir() => mounts.insert(path.clone(), PathAccess::EmptyDirectory),
            Ok(_) => mounts.insert(path.clone(), PathAccess::EmptyFile),
            Err(_) => None,
        };
    }
    for path in protected().chain(hidden()) {
        let missing = find_missing_part(path);
        let parent = missing.unwrap_or(path).parent().unwrap_or(Path::new("/"));
        let writable = parent.ancestors().take_while(|above| innermost_access(&mounts, above) == PathAccess::Write);
        let around: Vec<PathBuf> = writable.map(Path::to_path_buf).collect();
        if let Some(missing) = missing.filter(|_| !around.is_empty()) {
            mounts.insert(missing.to_owned(), PathAccess::EmptyDirectory);
        }
        for directory in around {
            mounts.insert(directory, PathAccess::Write);
        }
    }
    mounts
}

/// Returns the access of the innermost mount around a path.
fn innermost_access(mounts: &BTreeMap<PathBuf, PathAccess>, path: &Path) -> PathAccess {
    path.ancestors().find_map(|above| mounts.get(above)).copied().unwrap_or(PathAccess::Read)
}

/// Returns whether the sandbox would show a path: not below a directory that it replaces.
fn is_shown(policy: &SandboxPolicy, path: &Path) -> bool {
    let is_replaced = SHARED_DIRECTORIES.iter().any(|shared| path.starts_with(shared));
    !is_replaced || find_innermost(&policy.write, path).is_some()
}

/// Returns the entries of `/run` that a program needs.
fn run_entries(policy: &SandboxPolicy) -> Vec<PathBuf> {
    let directories = RUN_DIRECTORIES.iter().map(PathBuf::from).filter(|path| path.exists());
    let resolver = Path::new(RESOLVER_FILE).canonicalize().ok();
    let resolver = resolver.filter(|path| path.starts_with("/run") && policy.network == NetworkPolicy::All);
    directories.chain(resolver).collect()
}

/// Returns the Unix sockets that exist now and that the program could reach by their paths. A read-only mount does not keep a
/// program from connecting. Those in writable directories belong to the work.
fn outside_sockets(policy: &SandboxPolicy) -> Vec<PathBuf> {
    let table = file::read_text_file(Path::new(UNIX_SOCKET_TABLE), MAX_SOCKET_TABLE).unwrap_or_default();
    let path = |line: &str| line.find(" /").map(|start| PathBuf::from(&line[start + 1..]));
    let is_covered = |path: &PathBuf| {
        let covers = |directory: &str| path.starts_with(directory);
        SHARED_DIRECTORIES.iter().any(|shared| covers(shared))
            || ["/dev", "/proc"].iter().any(|kernel| covers(kernel))
            || find_innermost(&policy.write, path).is_some()
            || find_innermost(&policy.hidden, path).is_some()
    };
    let mut found: Vec<PathBuf> = table.lines().filter_map(path).filter_map(|path| path.canonicalize().ok()).collect();
    found.retain(|path| !is_covered(path));
    found.sort();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_go_from_outer_to_inner_paths_and_keep_directories_in_place() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        for directory in ["work/.git/hooks", "work/.windlass/worktrees/one", "work/deep/er"] {
            std::fs::create_dir_all(root.join(directory)).unwrap();
        }
        std::fs::write(root.join("work/deep/er/secret"), "").unwrap();
        let policy = SandboxPolicy {
            write: vec![root.join("work/.windlass/worktrees/one"), root.join("work")],
            protected: vec![
                root.join("work/.git/hooks"),
                root.join("work/.windlass"),
                root.join("work/new/dir"),
                root.join("etc"),
            ],
            hidden: vec![root.join("work/deep/er/secret"), root.join("work/.windlass/missing")],
            temporary: root.clone(),
            ..Default::default()
        };
        let mounts: Vec<String> = path_mounts(&policy, Path::new("/usr/bin/windlass"))
            .iter()
            .map(|(path, access)| format!("{} {access:?}", path.strip_prefix(&root).unwrap().display()))
            .collect();
        let expected = [
            "work Write",
            "work/.git Write",
            "work/.git/hooks Read",
            "work/.windlass Read",
            "work/.windlass/worktrees/one Write",
            "work/deep Write",
            "work/deep/er Write",
            "work/deep/er/secret EmptyFile",
            "work/new EmptyDirectory",
        ];
        assert_eq!(mounts, expected);
    }

    #[test]
    fn network_is_shared_only_if_all_of_it_is_allowed() {
        let words = |network| {
            let policy = SandboxPolicy { network, temporary: "/tmp/x".into(), ..Default::default() };
            build_arguments(&policy, Path::new("/usr/bin/windlass"), None)
        };
        let unshares = |network| words(network).contains(&"--unshare-net".into());
        assert!(unshares(NetworkPolicy::None));
        assert!(unshares(NetworkPolicy::Hosts(Vec::new())));
        assert!(!unshares(NetworkPolicy::All));
    }
}
