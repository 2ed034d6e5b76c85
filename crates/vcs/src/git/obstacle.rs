//! Files that keep git waiting without end.
//!
//! Git opens some files of a tree, and its own files, by itself. A fifo in the place of one is waited for until another program
//! writes to it.
//!
//! Not here: such files in directories below, and refs that are not checked out. A call that waits for one of these ends when its
//! time is up (`ask`).

use std::path::{Path, PathBuf};

use windlass_process::file::{self, UnreadableFile};

use super::Error;
use super::repository::{self, Head};

/// What git opens in any directory of a tree, unless it is a link.
const READ_BY_GIT: [&str; 3] = [".gitattributes", ".gitignore", ".gitmodules"];
/// What git opens in its own directory, also by links.
const READ_IN_COMMON: [&str; 11] = [
    "HEAD",
    "commondir",
    "config",
    "index",
    "packed-refs",
    "shallow",
    "info/attributes",
    "info/exclude",
    "objects/info/alternates",
    "objects/info/commit-graph",
    "objects/info/commit-graphs/commit-graph-chain",
];

/// Finds what git would wait for in a directory.
pub fn obstacles_in(directory: &Path) -> impl Iterator<Item = (PathBuf, UnreadableFile)> {
    let found = READ_BY_GIT.iter().map(|name| directory.join(name));
    let found = found.filter_map(|path| file::obstacle_besides_links(&path).map(|reason| (path, reason)));
    // Git passes over directories.
    found.filter(|(_, reason)| *reason != UnreadableFile::NotRegular("a directory"))
}

/// Finds what git would wait for in what all worktrees share: its own files, and the branch that is checked out.
pub fn obstacles_in_common(common: &Path) -> impl Iterator<Item = (PathBuf, UnreadableFile)> {
    let branch = repository::head(common).ok().and_then(|head| match head {
        Head::Branch(branch) => Some(common.join(branch.full())),
        Head::Detached(_) | Head::Unknown => None,
    });
    let found = READ_IN_COMMON.iter().map(|name| common.join(name)).chain(branch);
    let found = found.filter_map(|path| file::obstacle(&path).map(|reason| (path, reason)));
    found.filter(|(_, reason)| *reason != UnreadableFile::NotRegular("a directory"))
}

/// Refuses a repository with a file that git would wait for.
pub(super) fn check_common(common: &Path) -> Result<(), Error> {
    refuse(obstacles_in_common(common).next())
}

/// Refuses a directory with a file that git would wait for.
pub(super) fn check(directory: &Path) -> Result<(), Error> {
    refuse(obstacles_in(directory).next())
}

fn refuse(obstacle: Option<(PathBuf, UnreadableFile)>) -> Result<(), Error> {
    obstacle.map_or(Ok(()), |(path, reason)| Err(Error::Obstacle { path, reason }))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn obstacles_are_named() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join(".gitignore")).unwrap();
        fs::write(root.path().join(".gitattributes"), "").unwrap();
        assert!(check(root.path()).is_ok());
        let _socket = UnixListener::bind(root.path().join(".gitmodules")).unwrap();
        let said = |result: Result<(), Error>| {
            let error = result.unwrap_err();
            format!("{error}; {}", error.hint().unwrap()).replace(&root.path().display().to_string(), "ROOT")
        };
        assert_eq!(
            said(check(root.path())),
            "cannot ask git: `ROOT/.gitmodules` is a socket, not a file; remove it, or put a file in its place"
        );
    }

    #[test]
    fn obstacles_of_the_repository_are_named() {
        for name in READ_IN_COMMON {
            let common = tempfile::tempdir().unwrap();
            let path = common.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "").unwrap();
            assert!(check_common(common.path()).is_ok());
            fs::remove_file(&path).unwrap();
            std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
            let said = check_common(common.path()).unwrap_err().to_string();
            assert!(said.ends_with(&format!("/{name}` is a device, not a file")), "{said}");
        }
    }

    #[test]
    fn branch_that_is_checked_out_is_an_obstacle() {
        let common = tempfile::tempdir().unwrap();
        fs::write(common.path().join("HEAD"), "ref: refs/heads/a/b\n").unwrap();
        assert!(check_common(common.path()).is_ok());
        fs::create_dir_all(common.path().join("refs/heads/a/b")).unwrap();
        assert!(check_common(common.path()).is_ok());
        fs::remove_dir(common.path().join("refs/heads/a/b")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", common.path().join("refs/heads/a/b")).unwrap();
        let said = check_common(common.path()).unwrap_err().to_string();
        assert!(said.ends_with("/refs/heads/a/b` is a device, not a file"), "{said}");
    }

    #[test]
    fn links_that_git_does_not_open_are_no_obstacles() {
        let root = tempfile::tempdir().unwrap();
        for (name, target) in READ_BY_GIT.iter().zip(["/dev/null", "/dev/zero", "/dev/tty"]) {
            std::os::unix::fs::symlink(target, root.path().join(name)).unwrap();
        }
        assert!(check(root.path()).is_ok());
    }
}
