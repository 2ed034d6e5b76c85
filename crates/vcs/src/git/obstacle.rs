//! Files that block git without end.
//!
//! Git opens some files of a tree, and its own files, on its own initiative. A fifo in the place of one blocks it until
//! another program writes to the fifo.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use windlass_process::file::{self, UnreadableFile};

use super::Error;
use super::repository::{self, WorktreeHead};

/// The files that git opens in any directory of a tree, unless they are links.
const READ_BY_GIT: [&str; 3] = [".gitattributes", ".gitignore", ".gitmodules"];
/// The files that git opens in its own directory, also through links.
const SHARED_GIT_FILES: [&str; 11] = [
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
/// The most files and directories that are examined after a timeout.
const MAX_WALKED_ENTRIES: usize = 100_000;

/// Finds the files of a directory that would block git.
pub fn find_directory_obstacles(directory: &Path) -> impl Iterator<Item = (PathBuf, UnreadableFile)> {
    let found = READ_BY_GIT.iter().map(|name| directory.join(name));
    let found = found.filter_map(|path| file::find_obstacle_besides_links(&path).map(|reason| (path, reason)));
    // Git skips directories.
    found.filter(|(_, reason)| *reason != UnreadableFile::NotRegular("a directory"))
}

/// Finds the files of the common directory that would block git: its own files, and the ref of the checked-out branch.
pub fn find_common_obstacles(common: &Path) -> impl Iterator<Item = (PathBuf, UnreadableFile)> {
    let branch = repository::head(common).ok().and_then(|head| match head {
        WorktreeHead::Branch(branch) => Some(common.join(branch.full_ref())),
        WorktreeHead::Detached(_) | WorktreeHead::Unknown => None,
    });
    let found = SHARED_GIT_FILES.iter().map(|name| common.join(name)).chain(branch);
    let found = found.filter_map(|path| file::find_obstacle(&path).map(|reason| (path, reason)));
    found.filter(|(_, reason)| *reason != UnreadableFile::NotRegular("a directory"))
}

/// Refuses a repository with a file that would block git.
pub(super) fn check_common_directory(common: &Path) -> Result<(), Error> {
    refuse_obstacle(find_common_obstacles(common).next())
}

/// Refuses a directory with a file that would block git.
pub(super) fn check_directory(directory: &Path) -> Result<(), Error> {
    refuse_obstacle(find_directory_obstacles(directory).next())
}

fn refuse_obstacle(obstacle: Option<(PathBuf, UnreadableFile)>) -> Result<(), Error> {
    obstacle.map_or(Ok(()), |(path, reason)| Err(Error::Obstacle { path, reason }))
}

/// Refuses a tree with such a file in any of its directories, up to the limit.
pub(super) fn check_tree(root: &Path) -> Result<(), Error> {
    check_directory(root)?;
    walk_entries(root, |path, is_directory| match is_directory && path.file_name() != Some(OsStr::new(".git")) {
        true => check_directory(path).map(|()| true),
        false => Ok(false),
    })
}

/// Visits every entry below a directory, up to the limit. `enters` returns whether the walk enters the entry.
fn walk_entries(root: &Path, mut enters: impl FnMut(&Path, bool) -> Result<bool, Error>) -> Result<(), Error> {
    let (mut left, mut directories) = (MAX_WALKED_ENTRIES, vec![root.to_owned()]);
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let Some(rest) = left.checked_sub(1) else { return Ok(()) };
            left = rest;
            if enters(&entry.path(), entry.file_type().is_ok_and(|kind| kind.is_dir()))? {
                directories.push(entry.path());
            }
        }
    }
    Ok(())
}

/// Refuses a repository with a fifo or a device anywhere in its own directory, up to the limit. Git opens more of its files
/// than any list can name: every ref, and all files that its configuration includes.
pub(super) fn check_common_tree(common: &Path) -> Result<(), Error> {
    check_common_directory(common)?;
    walk_entries(common, |path, is_directory| {
        // A socket fails at once, like a missing file, and `/dev/null` ends at once.
        if let Some(reason @ UnreadableFile::NotRegular("a fifo" | "a device")) = file::find_obstacle(path)
            && fs::canonicalize(path).is_ok_and(|target| target != Path::new("/dev/null"))
        {
            return Err(Error::Obstacle { path: path.to_owned(), reason });
        }
        // Git opens a loose object only when a command needs it.
        Ok(is_directory && !is_object_directory(path))
    })
}

/// Returns whether a directory holds loose objects: `objects/3f`.
fn is_object_directory(directory: &Path) -> bool {
    let name = |path: &Path| path.file_name().map(OsStr::to_os_string);
    let is_of_objects = directory.parent().and_then(name).is_some_and(|above| above == "objects");
    is_of_objects && name(directory).is_some_and(|name| name.len() == 2)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn obstacles_are_named() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("deep/.gitignore")).unwrap();
        fs::write(root.path().join(".gitattributes"), "").unwrap();
        assert!(check_tree(root.path()).is_ok());
        let _socket = UnixListener::bind(root.path().join("deep/.gitattributes")).unwrap();
        assert!(check_directory(root.path()).is_ok());
        let said = |result: Result<(), Error>| {
            let error = result.unwrap_err();
            format!("{error}; {}", error.hint().unwrap()).replace(&root.path().display().to_string(), "ROOT")
        };
        assert_eq!(
            said(check_tree(root.path())),
            "cannot ask git: `ROOT/deep/.gitattributes` is a socket, not a file; remove it, or put a file in its place"
        );
    }

    #[test]
    fn obstacles_of_the_repository_are_named() {
        for name in SHARED_GIT_FILES {
            let common = tempfile::tempdir().unwrap();
            let path = common.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "").unwrap();
            assert!(check_common_directory(common.path()).is_ok());
            fs::remove_file(&path).unwrap();
            std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
            let said = check_common_directory(common.path()).unwrap_err().to_string();
            assert!(said.ends_with(&format!("/{name}` is a device, not a file")), "{said}");
        }
    }

    #[test]
    fn branch_that_is_checked_out_is_an_obstacle() {
        let common = tempfile::tempdir().unwrap();
        fs::write(common.path().join("HEAD"), "ref: refs/heads/a/b\n").unwrap();
        assert!(check_common_directory(common.path()).is_ok());
        fs::create_dir_all(common.path().join("refs/heads/a/b")).unwrap();
        assert!(check_common_directory(common.path()).is_ok());
        fs::remove_dir(common.path().join("refs/heads/a/b")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", common.path().join("refs/heads/a/b")).unwrap();
        let said = check_common_directory(common.path()).unwrap_err().to_string();
        assert!(said.ends_with("/refs/heads/a/b` is a device, not a file"), "{said}");
    }

    #[test]
    fn obstacles_are_found_anywhere_in_the_directory_of_git() {
        for (name, is_named) in [("refs/heads/other", true), ("worktrees/t1/index", true), ("objects/3f/0", false)] {
            let common = tempfile::tempdir().unwrap();
            let path = common.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let _socket = UnixListener::bind(common.path().join("fsmonitor--daemon.ipc")).unwrap();
            std::os::unix::fs::symlink("/dev/null", common.path().join("hook")).unwrap();
            assert!(check_common_tree(common.path()).is_ok());
            std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
            assert!(check_common_directory(common.path()).is_ok());
            assert_eq!(check_common_tree(common.path()).is_err(), is_named, "{name}");
        }
    }

    #[test]
    fn links_that_git_does_not_open_are_no_obstacles() {
        let root = tempfile::tempdir().unwrap();
        for (name, target) in READ_BY_GIT.iter().zip(["/dev/null", "/dev/zero", "/dev/tty"]) {
            std::os::unix::fs::symlink(target, root.path().join(name)).unwrap();
        }
        assert!(check_directory(root.path()).is_ok());
    }
}
