//! Copies of a store, made while others go on writing.
//!
//! A copy gets its name only when it is whole and on the disk.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::backup::Backup;

use super::Sqlite;
use crate::{StoreError, failpoint};

impl Sqlite {
    /// Copies the store as it is at this moment, while others go on writing.
    pub fn backup(&self, to: &Path) -> Result<(), StoreError> {
        if to.symlink_metadata().is_ok() {
            return Err(StoreError::Exists(to.to_owned()));
        }
        self.copy(to, &own_part(), |part| match rename_new(part, to) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(StoreError::Exists(to.to_owned())),
            renamed => renamed.map_err(|error| StoreError::io(to, error)),
        })
    }

    /// Copies the store over a copy that was made before. Only one process may do so at a time: what another one that was
    /// killed has left of a copy is written over.
    pub(super) fn replace(&self, to: &Path) -> Result<(), StoreError> {
        self.copy(to, PART, |part| std::fs::rename(part, to).map_err(|error| StoreError::io(to, error)))
    }

    /// Makes a whole and durable copy beside a path, and leaves it to the caller to give it its name.
    fn copy(
        &self,
        to: &Path,
        suffix: &str,
        publish: impl FnOnce(&Path) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let part = part_of(to, suffix)?;
        remove(&part);
        #[expect(clippy::disallowed_methods, reason = "what we have written is opened, to be synced")]
        let sync = |path: &Path| File::open(path).and_then(|file| file.sync_all());
        let copied = copy_pages(&self.connection, &part)
            .map_err(|error| StoreError::sqlite(to, error))
            .and_then(|()| sync(&part).map_err(|error| StoreError::io(to, error)))
            .and_then(|()| failpoint::pass("store.before_copied").map_err(|error| StoreError::io(to, error)))
            .and_then(|()| publish(&part));
        match copied {
            Ok(()) => sync(directory(to)).map_err(|error| StoreError::io(to, error)),
            Err(error) => {
                remove(&part);
                Err(error)
            }
        }
    }
}

/// How the name of a file ends that is not finished yet.
const PART: &str = ".part";

/// Such an end, unlike any other.
fn own_part() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!(".{}-{}{PART}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// The name of a file that is not finished yet.
fn part_of(to: &Path, suffix: &str) -> Result<PathBuf, StoreError> {
    let Some(name) = to.file_name() else {
        return Err(StoreError::io(to, io::Error::new(io::ErrorKind::InvalidInput, "names no file")));
    };
    let mut part = name.to_owned();
    part.push(suffix);
    Ok(to.with_file_name(part))
}

/// Removes what there is of a copy, with what SQLite keeps beside it.
fn remove(part: &Path) {
    for beside in ["", "-journal", "-wal", "-shm"] {
        let mut name = part.as_os_str().to_owned();
        name.push(beside);
        let _ = std::fs::remove_file(name);
    }
}

fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Copies page by page, which does not depend on what the pages say or on how the path is written.
fn copy_pages(from: &Connection, to: &Path) -> rusqlite::Result<()> {
    let mut copy = Connection::open(to)?;
    Backup::new(from, &mut copy)?.run_to_completion(i32::MAX, Duration::from_millis(1), None)?;
    copy.pragma_update(None, "journal_mode", "wal")
}

/// Renames a file, unless there is one of the new name.
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use rustix::io::Errno;
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Not every file system can promise that.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => std::fs::rename(from, to),
        renamed => Ok(renamed?),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
pub fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::rename(from, to)
}
