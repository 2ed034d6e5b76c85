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
pub enum Readers {
    /// The owner only.
    Owner,
    /// The readers of the replaced file; all users if there was none.
    AsBefore,
}

impl Readers {
    fn mode(self) -> u32 {
        match self {
            Self::Owner => 0o600,
            Self::AsBefore => 0o666,
        }
    }
}

/// Replaces a file by a rename, so that a reader sees the old or the new text. Creates missing directories.
pub fn replace(file: &Path, bytes: &[u8], readers: Readers) -> io::Result<()> {
    let directory = parent(file);
    make_directories(directory, 0o777)?;
    let old = fs::metadata(file).ok().filter(|_| readers == Readers::AsBefore);
    beside(file, |new| {
        write(new, bytes, readers.mode(), old.as_ref())?;
        fs::rename(new, file)
    })?;
    sync_directory(directory)
}

/// Creates a file with this content. Returns false and changes nothing if the file exists.
pub fn add(file: &Path, bytes: &[u8]) -> io::Result<bool> {
    let added = New::begin(file).and_then(|mut new| {
        new.write_all(bytes)?;
        new.publish()
    });
    match added {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        added => added.map(|()| true),
    }
}

/// A new file that gets its name only when it is complete. Dropping it earlier removes it.
pub struct New {
    to: File,
    beside: PathBuf,
    file: PathBuf,
}

impl New {
    pub fn begin(file: &Path) -> io::Result<Self> {
        if fs::symlink_metadata(file).is_ok() {
            return Err(rustix::io::Errno::EXIST.into());
        }
        let beside = name_beside(file);
        let to = open(&beside, Readers::AsBefore.mode())?;
        Ok(Self { to, beside, file: file.to_owned() })
    }

    /// Gives the file its name. Fails if the name is taken meanwhile.
    pub fn publish(self) -> io::Result<()> {
        self.to.sync_all()?;
        failpoint::pass("durable.before_named")?;
        rename_new(&self.beside, &self.file)?;
        let file = self.file.clone();
        drop(self);
        sync_directory(parent(&file))
    }
}

impl Write for New {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.to.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

impl Drop for New {
    fn drop(&mut self) {
        // Best effort: the file is unused, or has its final name already.
        let _ = fs::remove_file(&self.beside);
    }
}

/// Writes a file into a directory that no other process uses yet. Syncing that directory makes the name durable.
pub fn write_into(file: &Path, bytes: &[u8]) -> io::Result<()> {
    write(file, bytes, Readers::AsBefore.mode(), None)
}

pub fn remove(file: &Path) -> io::Result<()> {
    fs::remove_file(file)?;
    sync_directory(parent(file))
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
    sync_directory(parent(directory))
}

/// Makes the names in a directory durable.
pub fn sync_directory(directory: &Path) -> io::Result<()> {
    file::sync_directory(directory)
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns a free name beside a file.
fn name_beside(file: &Path) -> PathBuf {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let new = parent(file).join(format!(".{name}.{}.new", std::process::id()));
    // A dead process with the same id may have left this file.
    let _ = fs::remove_file(&new);
    new
}

fn open(file: &Path, mode: u32) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(mode).open(file)
}

/// Runs `put` with a temporary file beside this one, and removes that file if `put` fails.
fn beside(file: &Path, put: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let new = name_beside(file);
    put(&new).inspect_err(|_| {
        // Best effort: the caller needs the error of `put`.
        let _ = fs::remove_file(&new);
    })
}

/// Writes and syncs a new file, with the owner and mode of an old one if given.
fn write(file: &Path, bytes: &[u8], mode: u32, old: Option<&Metadata>) -> io::Result<()> {
    // The file is private until it has its final mode.
    let first = if old.is_some() { 0o600 } else { mode };
    let mut to = open(file, first)?;
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
    fn a_file_is_replaced_and_nothing_is_left_beside_it() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("new/deep/file");
        replace(&file, b"one", Readers::AsBefore).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        replace(&file, b"two", Readers::AsBefore).unwrap();
        assert_eq!((fs::read(&file).unwrap().as_slice(), mode(&file)), (&b"two"[..], 0o640));
        replace(&file, b"three", Readers::Owner).unwrap();
        assert_eq!((fs::read(&file).unwrap().as_slice(), mode(&file)), (&b"three"[..], 0o600));
        assert_eq!(names(parent(&file)), ["file"]);
    }

    #[test]
    fn what_cannot_be_replaced_stays_and_nothing_is_left_beside_it() {
        let place = tempfile::tempdir().unwrap();
        let taken = place.path().join("taken");
        fs::create_dir(&taken).unwrap();
        assert!(replace(&taken, b"text", Readers::AsBefore).is_err());
        assert!(replace(&taken.join("..").join("taken"), b"text", Readers::Owner).is_err());
        assert_eq!(names(place.path()), ["taken"]);
    }

    #[test]
    fn only_what_is_missing_is_added() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        assert!(add(&file, b"one").unwrap());
        assert!(!add(&file, b"two").unwrap());
        assert_eq!((fs::read(&file).unwrap().as_slice(), names(place.path())), (&b"one"[..], vec!["file".to_owned()]));
    }

    /// The file in the way is a leftover of a dead process, or a link planted to redirect the write.
    #[test]
    fn what_is_in_the_way_is_not_written_to() {
        let place = tempfile::tempdir().unwrap();
        let (file, other) = (place.path().join("file"), place.path().join("other"));
        fs::write(&other, "theirs").unwrap();
        let new = place.path().join(format!(".file.{}.new", std::process::id()));
        std::os::unix::fs::symlink(&other, &new).unwrap();
        replace(&file, b"ours", Readers::AsBefore).unwrap();
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
