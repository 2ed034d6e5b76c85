//! Where indexes of configurations are kept: beside the trust decisions, outside every project.
//!
//! Invariants:
//! - A file is replaced as a whole. One that is torn, foreign or gone is only made again, so none is synced.
//! - There are at most so many files, each at most so long; whoever adds one removes the oldest.
//! - A directory that cannot be written to costs one attempt and no more: nothing is made that could not be kept.
//!
//! Not here: what is in the files (`config::Index`).

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use windlass_engine::{ConfigDigest, Digest};
use windlass_process::file;

use crate::environment;

/// Of a configuration of a mebibyte, with room for hooks of several events.
const SIZE: usize = 4 * 1024 * 1024;
const FILES: usize = 32;
/// Changes with the layout of the files.
const FORMAT: &str = "windlass plan 1";

/// The indexes of one person.
#[derive(Debug)]
pub struct Shelf {
    directory: PathBuf,
    /// What tells this very program from every other that might read the same configuration otherwise.
    program: String,
}

impl Shelf {
    /// This person's; `None` where there is no place for it.
    pub fn find() -> Option<Self> {
        Some(Self::under(&environment::state_directory()?, environment::program()?))
    }

    pub fn under(state: &Path, program: String) -> Self {
        Self { directory: state.join("plans"), program }
    }

    /// Stands for a configuration as this program understands it.
    pub fn key(&self, config: ConfigDigest) -> Digest {
        let Self { program, .. } = self;
        Digest::of(format!("{FORMAT}\0{}\0{program}\0{config}", env!("CARGO_PKG_VERSION")).as_bytes())
    }

    fn file(&self, key: Digest) -> PathBuf {
        self.directory.join(format!("{key}.plan"))
    }

    pub fn read(&self, key: Digest) -> Option<Vec<u8>> {
        file::read(&self.file(key), SIZE as u64).ok()
    }

    /// Makes an index and keeps it, if it can be kept. Nobody waits for it, and nobody misses it.
    pub fn keep(&self, key: Digest, make: impl FnOnce() -> Option<Vec<u8>>) {
        let file = self.file(key);
        let beside = file.with_extension(format!("{}.new", std::process::id()));
        let Ok(to) = self.begin(&beside) else { return };
        let kept = make().filter(|bytes| bytes.len() <= SIZE).is_some_and(|bytes| replace(to, &bytes, &beside, &file));
        if kept {
            self.prune();
        } else {
            let _ = fs::remove_file(&beside);
        }
    }

    fn begin(&self, beside: &Path) -> io::Result<File> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(beside)
    }

    /// Removes an index that turned out to be damaged.
    pub fn forget(&self, key: Digest) {
        let _ = fs::remove_file(self.file(key));
    }

    /// Removes the oldest files, and among them what a killed process left half written.
    fn prune(&self) {
        let Ok(listed) = fs::read_dir(&self.directory) else { return };
        let mut files: Vec<(SystemTime, PathBuf)> = listed
            .filter_map(|entry| entry.ok())
            .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
            .collect();
        files.sort_unstable_by(|one, other| other.cmp(one));
        for (_, file) in files.into_iter().skip(FILES) {
            let _ = fs::remove_file(file);
        }
    }
}

fn replace(mut to: File, bytes: &[u8], beside: &Path, file: &Path) -> bool {
    to.write_all(bytes).and_then(|()| fs::rename(beside, file)).is_ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn shelf(state: &Path) -> Shelf {
        Shelf::under(state, "this program".to_owned())
    }

    fn key(number: usize) -> Digest {
        Digest::of(&number.to_le_bytes())
    }

    #[test]
    fn what_is_kept_is_found_again_and_private() {
        let state = tempfile::tempdir().unwrap();
        let shelf = shelf(&state.path().join("state"));
        assert_eq!(shelf.read(key(1)), None);
        shelf.keep(key(1), || Some(b"index".to_vec()));
        assert_eq!(shelf.read(key(1)).as_deref(), Some(&b"index"[..]));
        assert_eq!(shelf.read(key(2)), None);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&shelf.directory), mode(&shelf.file(key(1)))), (0o700, 0o600));
        shelf.forget(key(1));
        assert_eq!(shelf.read(key(1)), None);
    }

    #[test]
    fn neither_many_nor_large_nor_half_written_ones_stay() {
        let state = tempfile::tempdir().unwrap();
        let shelf = shelf(state.path());
        shelf.keep(key(0), || None);
        shelf.keep(key(0), || Some(vec![0; SIZE + 1]));
        assert_eq!(fs::read_dir(&shelf.directory).unwrap().count(), 0);
        for number in 0..FILES + 5 {
            shelf.keep(key(number), || Some(vec![1]));
            let old = File::open(shelf.file(key(number))).unwrap();
            old.set_modified(SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(number as u64)).unwrap();
        }
        shelf.keep(key(99), || Some(vec![1]));
        assert_eq!(fs::read_dir(&shelf.directory).unwrap().count(), FILES);
        assert_eq!((shelf.read(key(0)), shelf.read(key(99))), (None, Some(vec![1])));
    }

    #[test]
    fn nothing_is_made_where_nothing_can_be_kept() {
        let state = tempfile::tempdir().unwrap();
        fs::write(state.path().join("file"), "").unwrap();
        shelf(&state.path().join("file")).keep(key(1), || panic!("it could not be kept"));
    }

    #[test]
    fn another_program_or_configuration_has_another_key() {
        let state = tempfile::tempdir().unwrap();
        let (this, other) = (shelf(state.path()), Shelf::under(state.path(), "that program".to_owned()));
        let (one, two) = (Digest::of(b"one"), Digest::of(b"two"));
        assert_eq!(this.key(one), shelf(state.path()).key(one));
        assert_ne!(this.key(one), this.key(two));
        assert_ne!(this.key(one), other.key(one));
    }
}
