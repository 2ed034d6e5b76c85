//! Files that keep git waiting without end.
//!
//! Git opens some files of a tree by itself. A fifo in the place of one is waited for until another program writes to it.

use std::fs;
use std::path::Path;

use windlass_process::file::{self, UnreadableFile};

use super::Error;

/// What git opens in any directory of a tree.
const READ_BY_GIT: [&str; 3] = [".gitattributes", ".gitignore", ".gitmodules"];
/// The most files and directories that are looked at when git took too long.
const ENTRIES: usize = 100_000;

/// Refuses a directory with a file that git would wait for.
pub(super) fn check(directory: &Path) -> Result<(), Error> {
    let obstacle = READ_BY_GIT.iter().map(|name| directory.join(name)).find_map(|path| {
        let reason = file::obstacle(&path)?;
        // Git passes over directories.
        (reason != UnreadableFile::NotRegular("a directory")).then_some((path, reason))
    });
    obstacle.map_or(Ok(()), |(path, reason)| Err(Error::Obstacle { path, reason }))
}

/// Refuses a tree with such a file in any of its directories, as far as they are looked at.
pub(super) fn find(root: &Path) -> Result<(), Error> {
    let (mut left, mut directories) = (ENTRIES, vec![root.to_owned()]);
    while let Some(directory) = directories.pop() {
        check(&directory)?;
        let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_name() != ".git") {
            let Some(rest) = left.checked_sub(1) else { return Ok(()) };
            left = rest;
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                directories.push(entry.path());
            }
        }
    }
    Ok(())
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
        assert!(find(root.path()).is_ok());
        let _socket = UnixListener::bind(root.path().join("deep/.gitattributes")).unwrap();
        assert!(check(root.path()).is_ok());
        let said = |result: Result<(), Error>| {
            let error = result.unwrap_err();
            format!("{error}; {}", error.hint().unwrap()).replace(&root.path().display().to_string(), "ROOT")
        };
        assert_eq!(
            said(find(root.path())),
            "cannot ask git: `ROOT/deep/.gitattributes` is a socket, not a file; remove it, or put a file in its place"
        );
        std::os::unix::fs::symlink("/dev/zero", root.path().join(".gitmodules")).unwrap();
        assert!(said(check(root.path())).contains("`ROOT/.gitmodules` is a device, not a file"));
    }
}
