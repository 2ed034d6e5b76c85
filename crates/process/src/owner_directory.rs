//! The directory of owners, and the files in it.
//!
//! The directory lies where others can write, for example in a repository. So its contents are not trusted:
//!
//! Invariants:
//! - The directory belongs to this user and is no link, and all access goes through one descriptor.
//! - An owner's file is a regular file of this user, under one name only, which has the form of an owner's name. Anything else
//!   is neither read, nor locked, nor removed, and nothing that is put in its place can block us.
//!
//! Not here: the content of the files and their removal (`owner`).

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, fstat, openat, unlinkat};
use rustix::io::Errno;
use rustix::process::{Pid, geteuid};

use crate::MachineTag;

/// Limit for reading a file. Of a longer file only the end is read: early leaders have most likely ended.
const MAX_OWNER_FILE_READ: u64 = 1024 * 1024;

/// Flags for opening without following links and without waiting.
const SAFE_OPEN_FLAGS: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Returns the name of an owner: the number and start time of its process, and a nonce.
pub(crate) fn format_owner_name(pid: Pid, start: u64, nonce: u64) -> String {
    format!("run-{}-{start}-{nonce:016x}", pid.as_raw_nonzero())
}

/// Returns the name of an owner of a fleet, which ends with its machine.
pub(crate) fn format_fleet_owner_name(pid: Pid, start: u64, nonce: u64, machine: &MachineTag) -> String {
    format!("{}-{machine}", format_owner_name(pid, start, nonce))
}

/// Returns the number and start time of the process in an owner's name.
pub(crate) fn parse_owner_name(text: &str) -> Option<(Pid, u64)> {
    let mut words = text.strip_prefix("run-")?.splitn(4, '-');
    let (pid, start, nonce, machine) = (words.next()?, words.next()?, words.next()?, words.next());
    let pid = Pid::from_raw(pid.parse().ok().filter(|pid| *pid > 0)?)?;
    let (start, nonce) = (start.parse().ok()?, u64::from_str_radix(nonce, 16).ok()?);
    let canonical = match machine {
        Some(machine) => format_fleet_owner_name(pid, start, nonce, &machine.parse().ok()?),
        None => format_owner_name(pid, start, nonce),
    };
    // Only the canonical form counts, with nothing before, between or after.
    (canonical == text).then_some((pid, start))
}

/// An open directory of owners.
#[derive(Debug)]
pub(crate) struct OwnerDirectory(OwnedFd);

impl OwnerDirectory {
    pub fn open(path: &Path) -> io::Result<Self> {
        // Without a trailing slash, which would make the kernel follow a link.
        let path: PathBuf = path.components().collect();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | SAFE_OPEN_FLAGS;
        let directory = openat(rustix::fs::CWD, &path, flags, Mode::empty()).map_err(|error| match error {
            Errno::LOOP | Errno::NOTDIR => {
                unusable_directory_error(&path, "it is a link or a file, and not a directory")
            }
            error => error.into(),
        })?;
        if fstat(&directory)?.st_uid != geteuid().as_raw() {
            return Err(unusable_directory_error(&path, "it belongs to another user"));
        }
        Ok(Self(directory))
    }

    pub fn open_or_create(path: &Path) -> io::Result<Self> {
        match Self::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                std::fs::create_dir_all(path)?;
                Self::open(path)
            }
            opened => opened,
        }
    }

    /// Returns the names in it that have the form of an owner's name.
    pub fn owner_names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.0)? {
            let entry = entry?;
            let name = entry.file_name().to_str().ok().filter(|name| parse_owner_name(name).is_some());
            names.extend(name.map(str::to_owned));
        }
        Ok(names)
    }

    /// Opens an owner's file, if it exists and is valid.
    pub fn open_owner_file(&self, name: &str) -> Option<File> {
        parse_owner_name(name)?;
        let file = openat(&self.0, name, OFlags::RDONLY | SAFE_OPEN_FLAGS, Mode::empty()).ok()?;
        is_valid_owner_file(&file).then(|| file.into())
    }

    /// Opens our own file, and creates it if it is missing.
    pub fn create_own_file(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | SAFE_OPEN_FLAGS;
        Ok(openat(&self.0, name, flags, Mode::RUSR | Mode::WUSR)?.into())
    }

    /// Opens our own existing file for writes at any position.
    pub fn open_own_file(&self, name: &str) -> io::Result<File> {
        Ok(openat(&self.0, name, OFlags::WRONLY | SAFE_OPEN_FLAGS, Mode::empty())?.into())
    }

    pub fn remove_owner_file(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&self.0, name, AtFlags::empty())?)
    }
}

fn unusable_directory_error(path: &Path, why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("cannot keep owners in {}: {why}", path.display()))
}

/// Returns whether this is a regular file of this user, under one name.
pub(crate) fn is_valid_owner_file(file: impl rustix::fd::AsFd) -> bool {
    fstat(file).is_ok_and(|stat| {
        FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
            && stat.st_uid == geteuid().as_raw()
            && stat.st_nlink == 1
    })
}

/// Reads the whole lines at the end of a file.
pub(crate) fn read_last_lines(mut file: &File) -> io::Result<String> {
    let skipped = file.metadata()?.len().saturating_sub(MAX_OWNER_FILE_READ);
    file.seek(SeekFrom::Start(skipped))?;
    let mut bytes = Vec::new();
    file.take(MAX_OWNER_FILE_READ).read_to_end(&mut bytes)?;
    if skipped > 0 {
        // The first line may be cut, and would then name another process.
        let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
        bytes.drain(..end);
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owner_name_encodes_pid_start_time_and_nonce() {
        let pid = Pid::from_raw(i32::MAX).expect("a number");
        let longest = format_owner_name(pid, u64::MAX, u64::MAX);
        assert!(longest.len() <= 64, "{longest}");
        assert_eq!(parse_owner_name(&longest), Some((pid, u64::MAX)));
        assert_eq!(format_owner_name(pid, 7, 0xab), "run-2147483647-7-00000000000000ab");
    }

    #[test]
    fn fleet_owner_name_ends_with_machine() {
        let machine = MachineTag::new("a_long_name_here", 0x1a2b_3c4d);
        // The largest number of a process on Linux, 31 years after its start.
        let name = format_fleet_owner_name(Pid::from_raw(4_194_304).expect("a number"), 99_999_999_999, 7, &machine);
        assert_eq!(name, "run-4194304-99999999999-0000000000000007-a_long_name_-1a2b3c4d");
        assert!(name.len() <= 64, "{name}");
        assert!(parse_owner_name(&name).is_some());
        assert_eq!(parse_owner_name(&format!("{name}-x")), None);
    }

    #[test]
    fn other_names_are_no_owners() {
        let nonce = "0123456789abcdef";
        assert!(parse_owner_name(&format!("run-1-2-{nonce}")).is_some());
        for name in ["", "run-", "run-1-2", "README", ".", "..", "run-1-2-", "run-1-2-ab", "run-1-2-0123456789abcdeF"] {
            assert_eq!(parse_owner_name(name), None, "{name}");
        }
        for start in ["run-0-2", "run--1-2", "run-+1-2", "run-01-2", "run-1-", "run-1-2-3", "run-1- 2", "x/run-1-2"] {
            assert_eq!(parse_owner_name(&format!("{start}-{nonce}")), None, "{start}");
        }
        assert_eq!(parse_owner_name(&format!("run-1-2-{nonce}/../x")), None);
    }

    #[test]
    fn long_owner_file_read_returns_only_last_complete_lines() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("file");
        let lines = (0..200_000).map(|number| format!("{number:07}\n")).collect::<String>();
        std::fs::write(&path, &lines[3..]).expect("a file");
        let text = read_last_lines(&File::open(&path).expect("it is there")).expect("it can be read");
        assert!(text.len() as u64 <= MAX_OWNER_FILE_READ && text.ends_with("\n0199999\n"));
        assert!(text.lines().all(|line| line.is_empty() || line.len() == 7), "no part of a line");
    }
}
