//! Retention of records: output of agents and hooks that was too long for memory, output of passed checks, and input of hooks.
//!
//! Invariants:
//! - Only regular files below the directory are removed, and empty directories below it; no link is followed.
//! - Every record is examined, however many there are: a skipped one would stay forever.
//! - Young files stay, whatever their size: a process may still be writing them.
//! - A record that cannot be removed stops no command.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use windlass_process::file;

const ONE_HOUR: Duration = Duration::from_secs(60 * 60);
const ONE_GIBIBYTE: u64 = 1024 * 1024 * 1024;

/// The limits of what is kept.
#[derive(Debug, Clone, Copy)]
pub struct RetentionLimits {
    /// Files above this age are removed.
    pub max_age: Duration,
    /// The oldest files are removed until the total size is at most this, in bytes.
    pub max_total_size: u64,
    /// Files and directories below this age stay.
    pub min_age: Duration,
}

/// The limits for the records of a project.
pub const RECORD_RETENTION: RetentionLimits =
    RetentionLimits { max_age: ONE_HOUR.saturating_mul(24 * 30), max_total_size: ONE_GIBIBYTE, min_age: ONE_HOUR };

/// The shortest time between two prunings by any process of a project.
const PRUNE_INTERVAL: Duration = Duration::from_secs(10 * 60);

struct RetainedFile {
    age: Duration,
    size: u64,
    path: PathBuf,
}

/// Prunes records, unless the modification time of the stamp file shows a recent pruning.
pub fn prune_if_due(directory: &Path, stamp: &Path, now: SystemTime) {
    let Ok(file) = file::open_lock_file(stamp) else { return };
    let last = file.metadata().ok().filter(|found| found.len() > 0).and_then(|found| found.modified().ok());
    // Another program has set a time in the future.
    let is_due = last.is_none_or(|last| now.duration_since(last).is_ok_and(|age| age >= PRUNE_INTERVAL) || last > now);
    if is_due && file.try_lock().is_ok() {
        let _ = (&file).write_all(b".").and_then(|()| file.set_len(1)).and_then(|()| file.set_modified(now));
        prune_records(directory, now, RECORD_RETENTION);
    }
}

/// Removes files that are too old, then the oldest files above the size limit, then empty directories.
fn prune_records(directory: &Path, now: SystemTime, keep: RetentionLimits) {
    let (mut files, directories) = list_records(directory, now);
    prune_files(&mut files, keep);
    // A directory that is not empty stays.
    for (_, directory) in directories.iter().rev().filter(|(age, _)| *age >= keep.min_age) {
        let _ = fs::remove_dir(directory);
    }
}

fn prune_files(files: &mut Vec<RetainedFile>, keep: RetentionLimits) {
    files.sort_unstable_by_key(|file| file.age);
    let mut total: u64 = files.iter().map(|file| file.size).sum();
    while let Some(oldest) = files.pop() {
        if oldest.age < keep.min_age || (oldest.age <= keep.max_age && total <= keep.max_total_size) {
            return;
        }
        if fs::remove_file(&oldest.path).is_ok() {
            total -= oldest.size;
        }
    }
}

/// Returns the files below a directory, and the directories with their ages, each after those above it.
fn list_records(directory: &Path, now: SystemTime) -> (Vec<RetainedFile>, Vec<(Duration, PathBuf)>) {
    let (mut files, mut found) = (Vec::new(), Vec::new());
    let is_real = fs::symlink_metadata(directory).is_ok_and(|metadata| metadata.is_dir());
    let mut directories: Vec<PathBuf> = is_real.then(|| directory.to_owned()).into_iter().collect();
    while let Some(directory) = directories.pop() {
        let Ok(listed) = fs::read_dir(directory) else { continue };
        for entry in listed.flatten() {
            // These are the metadata of the entry itself, not of a link's target.
            let Ok(metadata) = entry.metadata() else { continue };
            let Ok(written) = metadata.modified() else { continue };
            let age = now.duration_since(written).unwrap_or_default();
            if metadata.is_dir() {
                directories.push(entry.path());
                found.push((age, entry.path()));
            } else if metadata.is_file() {
                files.push(RetainedFile { age, size: metadata.len(), path: entry.path() });
            }
        }
    }
    (files, found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEEP: RetentionLimits =
        RetentionLimits { max_age: Duration::from_secs(100), max_total_size: 10, min_age: Duration::from_secs(10) };

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

    /// Checks which of these files, given with ages and sizes, remain after a pruning.
    #[track_caller]
    fn check(files: &[(&str, i64, usize)], left: &[&str]) {
        let directory = tempfile::tempdir().unwrap();
        for (name, age, size) in files {
            write(&directory.path().join(name), *age, *size);
        }
        prune_records(directory.path(), now(), KEEP);
        let there: Vec<&str> =
            files.iter().map(|file| file.0).filter(|name| directory.path().join(name).exists()).collect();
        assert_eq!(there, left, "{files:?}");
    }

    #[test]
    fn pruning_removes_expired_then_oldest_over_size_limit() {
        check(&[], &[]);
        check(&[("s/a", 100, 5), ("t/b", 20, 5)], &["s/a", "t/b"]);
        check(&[("s/a", 101, 1), ("t/b", 20, 1)], &["t/b"]);
        check(&[("s/a", 30, 4), ("t/b", 50, 4), ("s/c", 40, 4), ("d", 200, 0)], &["s/a", "s/c"]);
        check(&[("s/a", 30, 11), ("s/b", 20, 10)], &["s/b"]);
    }

    #[test]
    fn files_below_minimum_age_are_kept() {
        check(&[("s/a", 9, 50), ("s/b", -500, 50)], &["s/a", "s/b"]);
        check(&[("s/a", 9, 50), ("s/b", 10, 1)], &["s/a"]);
    }

    #[test]
    fn all_expired_records_are_pruned_however_many() {
        let directory = tempfile::tempdir().unwrap();
        (0..10_050).for_each(|number| fs::write(directory.path().join(number.to_string()), "").unwrap());
        let much_later = SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 33);
        prune_records(directory.path(), much_later, KEEP);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn empty_directories_are_removed_unless_young() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        write(&path("old/deep/file"), 500, 1);
        write(&path("kept/file"), 20, 1);
        fs::create_dir(path("young")).unwrap();
        for (name, age) in [("old/deep", 500), ("old", 500), ("kept", 500), ("young", 9)] {
            fs::File::open(path(name)).unwrap().set_modified(now() - Duration::from_secs(age)).unwrap();
        }
        prune_records(directory.path(), now(), KEEP);
        let mut left: Vec<_> =
            fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["kept", "young"]);
    }

    #[test]
    fn pruning_runs_at_most_once_per_interval() {
        let directory = tempfile::tempdir().unwrap();
        let (runs, stamp) = (directory.path().join("runs"), directory.path().join("prune.lock"));
        let is_pruned = |now: SystemTime| {
            let old = runs.join("old");
            write(&old, 60 * 60 * 24 * 40, 1);
            prune_if_due(&runs, &stamp, now);
            !old.exists()
        };
        assert_eq!([now(), now() + Duration::from_secs(599)].map(is_pruned), [true, false]);
        assert_eq!([now() + Duration::from_secs(600), now()].map(is_pruned), [true, true]);
        fs::remove_file(&stamp).unwrap();
        std::os::unix::fs::symlink("elsewhere", &stamp).unwrap();
        assert!(!is_pruned(now()) && !directory.path().join("elsewhere").exists());
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
        prune_records(&path("linked"), now(), KEEP);
        assert!(path("runs/s/old").exists());
        prune_records(&path("missing"), now(), KEEP);
        prune_records(&path("runs"), now(), KEEP);
        assert!(!path("runs/s/old").exists());
        assert!(path("elsewhere/a").exists());
        assert!(path("runs/s/link").symlink_metadata().is_ok() && path("runs/s/file").symlink_metadata().is_ok());
    }
}
