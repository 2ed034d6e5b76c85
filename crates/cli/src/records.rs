//! Clearing away old records: what agents and hooks have written that was too long for memory, and what they were given.
//!
//! Invariants:
//! - Only regular files below the directory go; no link is followed, and directories stay.
//! - What is young stays, whatever it takes up: somebody may still be writing it.
//! - A record that cannot be removed is no reason not to work.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

const HOUR: Duration = Duration::from_secs(60 * 60);
const GIB: u64 = 1024 * 1024 * 1024;

/// What may stay.
#[derive(Debug, Clone, Copy)]
pub struct Keep {
    /// Older files go.
    pub age: Duration,
    /// The oldest files go until the rest is no larger, in bytes.
    pub size: u64,
    /// Younger files stay.
    pub young: Duration,
    /// How many files and directories are looked at.
    pub entries: usize,
}

/// What is kept of a project's records.
pub const KEEP: Keep = Keep { age: HOUR.saturating_mul(24 * 30), size: GIB, young: HOUR, entries: 10_000 };

/// Who makes many records makes room no more often than that.
pub const SELDOM: Duration = Duration::from_secs(60);

struct Found {
    age: Duration,
    size: u64,
    path: PathBuf,
}

/// Removes what is too old, then the oldest of what is too much.
pub fn prune(directory: &Path, now: SystemTime, keep: Keep) {
    let mut files = found(directory, now, keep.entries);
    files.sort_unstable_by_key(|file| file.age);
    let mut total: u64 = files.iter().map(|file| file.size).sum();
    while let Some(oldest) = files.pop() {
        if oldest.age < keep.young || (oldest.age <= keep.age && total <= keep.size) {
            return;
        }
        if fs::remove_file(&oldest.path).is_ok() {
            total -= oldest.size;
        }
    }
}

fn found(directory: &Path, now: SystemTime, entries: usize) -> Vec<Found> {
    let mut files = Vec::new();
    let mut left = entries;
    let is_real = fs::symlink_metadata(directory).is_ok_and(|metadata| metadata.is_dir());
    let mut directories: Vec<PathBuf> = is_real.then(|| directory.to_owned()).into_iter().collect();
    while let Some(directory) = directories.pop() {
        let Ok(listed) = fs::read_dir(directory) else { continue };
        for entry in listed.flatten() {
            let Some(rest) = left.checked_sub(1) else { return files };
            left = rest;
            // Of the entry itself, not of where a link leads.
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() {
                directories.push(entry.path());
            } else if let (true, Ok(written)) = (metadata.is_file(), metadata.modified()) {
                let age = now.duration_since(written).unwrap_or_default();
                files.push(Found { age, size: metadata.len(), path: entry.path() });
            }
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEEP: Keep = Keep { age: Duration::from_secs(100), size: 10, young: Duration::from_secs(10), entries: 20 };

    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000)
    }

    fn write(path: &Path, seconds_old: i64, size: usize) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, vec![b'x'; size]).unwrap();
        let old = Duration::from_secs(seconds_old.unsigned_abs());
        let written = if seconds_old < 0 { now() + old } else { now() - old };
        fs::File::options().write(true).open(path).unwrap().set_modified(written).unwrap();
    }

    /// Files with their ages and sizes, and which of them are left.
    #[track_caller]
    fn check(files: &[(&str, i64, usize)], left: &[&str]) {
        let directory = tempfile::tempdir().unwrap();
        for (name, age, size) in files {
            write(&directory.path().join(name), *age, *size);
        }
        prune(directory.path(), now(), KEEP);
        let there: Vec<&str> =
            files.iter().map(|file| file.0).filter(|name| directory.path().join(name).exists()).collect();
        assert_eq!(there, left, "{files:?}");
    }

    #[test]
    fn what_is_old_goes_then_the_oldest_of_what_is_too_much() {
        check(&[], &[]);
        check(&[("s/a", 100, 5), ("t/b", 20, 5)], &["s/a", "t/b"]);
        check(&[("s/a", 101, 1), ("t/b", 20, 1)], &["t/b"]);
        check(&[("s/a", 30, 4), ("t/b", 50, 4), ("s/c", 40, 4), ("d", 200, 0)], &["s/a", "s/c"]);
        check(&[("s/a", 30, 11), ("s/b", 20, 10)], &["s/b"]);
    }

    #[test]
    fn what_is_young_stays() {
        check(&[("s/a", 9, 50), ("s/b", -500, 50)], &["s/a", "s/b"]);
        check(&[("s/a", 9, 50), ("s/b", 10, 1)], &["s/a"]);
    }

    #[test]
    fn no_more_than_some_are_looked_at() {
        let directory = tempfile::tempdir().unwrap();
        (0..30).for_each(|number| write(&directory.path().join(number.to_string()), 500, 1));
        prune(directory.path(), now(), KEEP);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 10);
    }

    #[cfg(unix)]
    #[test]
    fn links_are_neither_followed_nor_removed() {
        use std::os::unix::fs::symlink;
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        write(&path("elsewhere/a"), 500, 50);
        write(&path("runs/s/old"), 500, 50);
        symlink(path("elsewhere"), path("runs/s/link")).unwrap();
        symlink(path("elsewhere/a"), path("runs/s/file")).unwrap();
        symlink(path("runs"), path("linked")).unwrap();
        prune(&path("linked"), now(), KEEP);
        assert!(path("runs/s/old").exists());
        prune(&path("missing"), now(), KEEP);
        prune(&path("runs"), now(), KEEP);
        assert!(!path("runs/s/old").exists());
        assert!(path("elsewhere/a").exists());
        assert!(path("runs/s/link").symlink_metadata().is_ok() && path("runs/s/file").symlink_metadata().is_ok());
    }
}
