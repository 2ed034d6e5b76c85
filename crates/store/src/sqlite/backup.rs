//! Copies of a store, made while other processes write.
//!
//! A copy gets its name only when it is whole and on the disk.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::backup::Backup;

use super::SqliteStore;
use crate::{StoreError, failpoint};

impl SqliteStore {
    /// Copies the store as it is at this moment, while other processes write.
    pub fn backup_to(&self, to: &Path) -> Result<(), StoreError> {
        if to.symlink_metadata().is_ok() {
            return Err(StoreError::Exists(to.to_owned()));
        }
        self.copy_store(to, &unique_part_suffix(), |part| match rename_new(part, to) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(StoreError::Exists(to.to_owned())),
            renamed => renamed.map_err(|error| StoreError::from_io_error(to, error)),
        })
    }

    /// Copies the store over an earlier copy. Only one process may do so at a time: it overwrites the partial copy of a killed process.
    pub(super) fn replace_backup(&self, to: &Path) -> Result<(), StoreError> {
        self.copy_store(to, PART_SUFFIX, |part| {
            std::fs::rename(part, to).map_err(|error| StoreError::from_io_error(to, error))
        })
    }

    /// Makes a whole and durable copy beside a path. The caller gives it its name.
    fn copy_store(
        &self,
        to: &Path,
        suffix: &str,
        publish: impl FnOnce(&Path) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let part = part_path(to, suffix)?;
        remove_part_files(&part);
        #[expect(clippy::disallowed_methods, reason = "what we have written is opened, to be synced")]
        let sync = |path: &Path| File::open(path).and_then(|file| file.sync_all());
        let copied = copy_pages(&self.connection, &part)
            .map_err(|error| StoreError::from_sqlite_error(to, error))
            .and_then(|()| sync(&part).map_err(|error| StoreError::from_io_error(to, error)))
            .and_then(|()| failpoint::pass("store.before_copied").map_err(|error| StoreError::from_io_error(to, error)))
            .and_then(|()| publish(&part));
        match copied {
            Ok(()) => sync(parent_directory(to)).map_err(|error| StoreError::from_io_error(to, error)),
            Err(error) => {
                remove_part_files(&part);
                Err(error)
            }
        }
    }
}

/// Suffix of an unfinished copy.
const PART_SUFFIX: &str = ".part";

/// Returns such a suffix that no other copy uses.
fn unique_part_suffix() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!(".{}-{}{PART}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Returns the path of an unfinished copy.
fn part_path(to: &Path, suffix: &str) -> Result<PathBuf, StoreError> {
    let Some(name) = to.file_name() else {
        return Err(StoreError::from_io_error(to, io::Error::new(io::ErrorKind::InvalidInput, "names no file")));
    };
    let mut part = name.to_owned();
    part.push(suffix);
    Ok(to.with_file_name(part))
}

/// Removes a partial copy, with the files that SQLite keeps beside it.
fn remove_part_files(part: &Path) {
    for beside in ["", "-journal", "-wal", "-shm"] {
        let mut name = part.as_os_str().to_owned();
        name.push(beside);
        let _ = std::fs::remove_file(name);
    }
}

fn parent_directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Copies page by page, independent of the content of the pages and the form of the path.
fn copy_pages(from: &Connection, to: &Path) -> rusqlite::Result<()> {
    let mut copy = Connection::open(to)?;
    Backup::new(from, &mut copy)?.run_to_completion(i32::MAX, Duration::from_millis(1), None)?;
    copy.pragma_update(None, "journal_mode", "wal")
}

/// Renames a file, unless the new name is taken.
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use rustix::io::Errno;
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Not every file system supports the flag.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => std::fs::rename(from, to),
        renamed => Ok(renamed?),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
pub fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::rename(from, to)
}
