//! Directories for the temporary files of programs in a sandbox.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use crate::{Failure, FailureCode, environment};

/// The start of a directory's name. The number of the process follows, which the program of a sandbox keeps.
const NAME_PREFIX: &str = "windlass-sandbox-";

/// Creates the directory of this process, and removes those of processes that have ended.
pub fn create_temporary_directory() -> Result<PathBuf, Failure> {
    let parent = environment::temporary_directory();
    remove_left_directories(&parent);
    let directory = parent.join(format!("{NAME_PREFIX}{}", std::process::id()));
    DirBuilder::new().mode(0o700).create(&directory).map_err(|error| {
        Failure::new(FailureCode::System, format!("cannot make the directory `{}`", directory.display()))
            .with_cause(error)
            .with_hint("set TMPDIR to a directory that can be written")
    })?;
    Ok(directory)
}

/// Removes the directories of this user whose process does not exist, or is this one: its number was used before.
fn remove_left_directories(parent: &Path) {
    let user = rustix::process::getuid().as_raw();
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(NAME_PREFIX)?.parse::<u32>().ok());
        let Some(number) = number else { continue };
        let is_left = number == std::process::id() || !Path::new("/proc").join(number.to_string()).exists();
        let is_ours = entry.metadata().is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == user);
        if is_left && is_ours {
            // What cannot be removed stays for the next time.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
