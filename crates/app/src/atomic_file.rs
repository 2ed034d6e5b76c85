//! Atomic, durable file operations: a file is complete or absent, even after a power loss.
//!
//! Invariants:
//! - After a crash, a replaced file has its old or its new content, and no temporary file is left beside it.
//! - When a function returns, its effect is on disk: bytes, names, and the directories above them.
//!
//! Not here: the files of the store, which the store syncs itself.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use windlass_process::file;
use windlass_store::{failpoint, rename_new};

/// The users that may read a written file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileReaders {
    /// The owner only.
    Owner,
    /// The readers of the replaced file; all users if there was none.
    AsBefore,
}

impl FileReaders {
    fn permission_bits(self) -> u32 {
        match self {
            Self::Owner => 0o600,
            Self::AsBefore => 0o666,
        }
    }
}

/// Replaces a file by a rename, so that a reader sees the old or the new text. Creates missing directories.
pub fn replace_file(file: &Path, bytes: &[u8], readers: FileReaders) -> io::Result<()> {
    let directory = parent_directory(file);
    make_directories(directory, 0o777)?;
    let old = fs::metadata(file).ok().filter(|_| readers == FileReaders::AsBefore);
    with_temporary_sibling(file, |new| {
        write(new, bytes, readers.permission_bits(), old.as_ref())?;
        fs::rename(new, file)
    })?;
    sync_directory(directory)
}

/// Creates a file with this content. Returns false and changes nothing if the file exists.
pub fn create_file_if_missing(file: &Path, bytes: &[u8]) -> io::Result<bool> {
    let added = UnpublishedFile::create_unpublished(file).and_then(|mut new| {
        new.write_all(bytes)?;
        new.publish_file()
    });
    match added {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        added => added.map(|()| true),
    }
}

/// A new file that gets its name only when it is complete. Dropping it earlier removes it.
pub struct UnpublishedFile {
    to: File,
    beside: PathBuf,
    file: PathBuf,
}

impl UnpublishedFile {
    pub fn create_unpublished(file: &Path) -> io::Result<Self> {
        if fs::symlink_metadata(file).is_ok() {
            return Err(rustix::io::Errno::EXIST.into());
        }
        let beside = temporary_sibling_path(file);
        let to = create_exclusively(&beside, FileReaders::AsBefore.permission_bits())?;
        Ok(Self { to, beside, file: file.to_owned() })
    }

    /// Gives the file its name. Fails if the name is taken meanwhile.
    pub fn publish_file(self) -> io::Result<()> {
        self.to.sync_all()?;
        failpoint::pass("durable.before_named")?;
        rename_new(&self.beside, &self.file)?;
        let file = self.file.clone();
        drop(self);
        sync_directory(parent_directory(&file))
    }
}

impl Write for UnpublishedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.to.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

impl Drop for UnpublishedFile {
    fn drop(&mut self) {
        // Best effort: the file is unused, or has its final name already.
        let _ = fs::remove_file(&self.beside);
    }
}

/// Writes a file into a directory that no other process uses yet. Syncing that directory makes the name durable.
pub fn write_into_new_directory(file: &Path, bytes: &[u8]) -> io::Result<()> {
    write(file, bytes, FileReaders::AsBefore.permission_bits(), None)
}

pub fn remove_file(file: &Path) -> io::Result<()> {
    fs::remove_file(file)?;
    sync_directory(parent_directory(file))
}

/// Creates a directory and its missing parents.
pub fn make_directories(directory: &Path, mode: u32) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    if let Some(above) = directory.parent() {
        make_directories(above, mode)?;
    }
    match DirBuilder::new().mode(mode).create(directory) {
        // Another process was faster, and may not have synced the parent yet.
        Err(error) if error.kind() == ErrorKind::AlreadyExists && directory.is_dir() => {}
        made => made?,
    }
    sync_directory(parent_directory(directory))
}

/// Makes the names in a directory durable.
pub fn sync_directory(directory: &Path) -> io::Result<()> {
    file::sync_directory(directory)
}

fn parent_directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns a free name beside a file.
fn temporary_sibling_path(file: &Path) -> PathBuf {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let new = parent_directory(file).join(format!(".{name}.{}.new", std::process::id()));
    // A dead process with the same id may have left this file.
    let _ = fs::remove_file(&new);
    new
}

fn create_exclusively(file: &Path, mode: u32) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(mode).open(file)
}

/// Runs `put` with a temporary file beside this one, and removes that file if `put` fails.
fn with_temporary_sibling(file: &Path, put: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let new = temporary_sibling_path(file);
    put(&new).inspect_err(|_| {
        // Best effort: the caller needs the error of `put`.
        let _ = fs::remove_file(&new);
    })
}

/// Writes and syncs a new file, with the owner and mode of an old one if given.
fn write(file: &Path, bytes: &[u8], mode: u32, old: Option<&Metadata>) -> io::Result<()> {
    // The file is private until it has its final mode.
    let first = if old.is_some() { 0o600 } else { mode };
    let mut to = create_exclusively(file, first)?;
    to.write_all(bytes)?;
    if let Some(old) = old {
        // Only root can change the owner; for other users the file has the right owner already.
        let _ = std::os::unix::fs::fchown(&to, Some(old.uid()), Some(old.gid()));
        to.set_permissions(Permissions::from_mode(old.permissions().mode() & 0o7777))?;
    }
    to.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn replaced_file_leaves_no_temporary_sibling() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("new/deep/file");
        replace_file(&file, b"one", FileReaders::AsBefore).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        replace_file(&file, b"two", FileReaders::AsBefore).unwrap();
        assert_eq!((fs::read(&file).unwrap().as_slice(), mode(&file)), (&b"two"[..], 0o640));
        replace_file(&file, b"three", FileReaders::Owner).unwrap();
        assert_eq!((fs::read(&file).unwrap().as_slice(), mode(&file)), (&b"three"[..], 0o600));
        assert_eq!(names(parent(&file)), ["file"]);
    }

    #[test]
    fn failed_replacement_keeps_target_and_leaves_no_sibling() {
        let place = tempfile::tempdir().unwrap();
        let taken = place.path().join("taken");
        fs::create_dir(&taken).unwrap();
        assert!(replace_file(&taken, b"text", FileReaders::AsBefore).is_err());
        assert!(replace_file(&taken.join("..").join("taken"), b"text", FileReaders::Owner).is_err());
        assert_eq!(names(place.path()), ["taken"]);
    }

    #[test]
    fn existing_file_is_not_overwritten_by_creation() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        assert!(create_file_if_missing(&file, b"one").unwrap());
        assert!(!create_file_if_missing(&file, b"two").unwrap());
        assert_eq!((fs::read(&file).unwrap().as_slice(), names(place.path())), (&b"one"[..], vec!["file".to_owned()]));
    }

    /// The file in the way is a leftover of a dead process, or a link planted to redirect the write.
    #[test]
    fn symlink_at_temporary_path_is_not_written_through() {
        let place = tempfile::tempdir().unwrap();
        let (file, other) = (place.path().join("file"), place.path().join("other"));
        fs::write(&other, "theirs").unwrap();
        let new = place.path().join(format!(".file.{}.new", std::process::id()));
        std::os::unix::fs::symlink(&other, &new).unwrap();
        replace_file(&file, b"ours", FileReaders::AsBefore).unwrap();
        assert_eq!(fs::read_to_string(&other).unwrap(), "theirs");
        assert_eq!(names(place.path()), ["file", "other"]);
    }

    #[test]
    fn directories_that_are_there_are_left_alone() {
        let place = tempfile::tempdir().unwrap();
        let inner = place.path().join("a/b");
        make_directories(&inner, 0o700).unwrap();
        assert_eq!((mode(&place.path().join("a")), mode(&inner)), (0o700, 0o700));
        make_directories(&inner, 0o777).unwrap();
        assert_eq!(mode(&inner), 0o700);
        fs::write(inner.join("file"), "").unwrap();
        assert!(make_directories(&inner.join("file/below"), 0o777).is_err());
    }
}
