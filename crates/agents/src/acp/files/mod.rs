//! Files that Windlass reads and writes on behalf of an agent.
//!
//! Invariants:
//! - Only plain files inside the workspace are read or written, also through symbolic links.
//! - `.windlass` and `.git` are never written: an agent that is denied these directories must not reach them through
//!   Windlass.
//! - A file is replaced whole or not at all, and keeps its mode.
//! - Memory and time are bounded for every file.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use super::client_request::{ReadFileRequest, WriteFileRequest};
use super::json_rpc::{INVALID_PARAMS, JsonRpcError, REQUEST_REFUSED, RESOURCE_NOT_FOUND};

/// The most bytes in one answer.
const MAX_READ_BYTES: u64 = 8 * 1024 * 1024;
/// The last byte of a file that can be read.
const MAX_READ_OFFSET: u64 = 256 * 1024 * 1024;
/// Directories that are never written.
const PROTECTED_DIRECTORIES: [&str; 2] = [".windlass", ".git"];

/// The files of one workspace.
#[derive(Debug)]
pub struct WorkspaceFiles {
    directory: PathBuf,
}

impl WorkspaceFiles {
    pub fn new(directory: &Path) -> Self {
        Self { directory: directory.canonicalize().unwrap_or_else(|_| directory.to_owned()) }
    }

    /// Reads the requested lines.
    pub fn read_requested_lines(&self, wanted: &ReadFileRequest) -> Result<String, JsonRpcError> {
        let fail = |error: io::Error| io_failure_response("read", &wanted.path, &error);
        let path = self.directory.join(&wanted.path).canonicalize().map_err(fail)?;
        self.check_path_inside("read", &wanted.path, &path)?;
        // Opening must not block if the file is a pipe, or becomes one after the check above.
        let mut options = File::options();
        let file = options.read(true).custom_flags(NONBLOCK | NOFOLLOW).open(&path).map_err(fail)?;
        if !file.metadata().map_err(fail)?.is_file() {
            return Err(refusal_response("read", &wanted.path, "it is not a regular file"));
        }
        let mut lines = BufReader::new(file.take(MAX_READ_OFFSET));
        let before = wanted.line.unwrap_or(1).saturating_sub(1);
        for _ in 0..before {
            if lines.skip_until(b'\n').map_err(fail)? == 0 {
                return Ok(String::new());
            }
        }
        let bytes = read_bounded_lines(&mut lines, wanted.limit).map_err(fail)?;
        let Some(bytes) = bytes else {
            let why = format!("it has more than {} MiB: ask for some of its lines", MAX_READ_BYTES / (1024 * 1024));
            return Err(refusal_response("read", &wanted.path, &why));
        };
        String::from_utf8(bytes).map_err(|_| refusal_response("read", &wanted.path, "it is not text"))
    }

    /// Writes a file, and replaces the one that is there.
    pub fn write_requested_file(&self, wanted: &WriteFileRequest) -> Result<(), JsonRpcError> {
        let fail = |error: io::Error| io_failure_response("write", &wanted.path, &error);
        let path = self.resolve_write_path(&wanted.path)?;
        let before = match fs::symlink_metadata(&path) {
            Ok(found) if !found.is_file() => {
                return Err(refusal_response("write", &wanted.path, "there is something else"));
            }
            Ok(found) => Some(found.permissions()),
            Err(_) => None,
        };
        let directory = path.parent().unwrap_or(&self.directory);
        fs::create_dir_all(directory).map_err(fail)?;
        let mode = before.unwrap_or_else(|| fs::Permissions::from_mode(0o666));
        let mut new = tempfile::Builder::new().permissions(mode.clone()).tempfile_in(directory).map_err(fail)?;
        new.write_all(wanted.content.as_bytes()).map_err(fail)?;
        if path.exists() {
            // The umask may have removed bits from the mode of the new file.
            new.as_file().set_permissions(mode).map_err(fail)?;
        }
        new.persist(&path).map(drop).map_err(|error| fail(error.error))
    }

    /// Returns the resolved path of a file that is to be written. The file need not exist yet.
    fn resolve_write_path(&self, wanted: &Path) -> Result<PathBuf, JsonRpcError> {
        let whole = self.directory.join(wanted);
        if whole.components().any(|part| part == Component::ParentDir) || whole.file_name().is_none() {
            return Err(refusal_response("write", wanted, "a file cannot be there"));
        }
        // Only the existing part of the path can contain links, so that part is resolved.
        let there = whole.ancestors().find(|path| fs::symlink_metadata(path).is_ok()).unwrap_or(&self.directory);
        let rest = whole.strip_prefix(there).unwrap_or(&whole);
        let there = there.canonicalize().map_err(|error| io_failure_response("write", wanted, &error))?;
        let path = if rest.as_os_str().is_empty() { there } else { there.join(rest) };
        self.check_path_inside("write", wanted, &path)?;
        let inside = path.strip_prefix(&self.directory).unwrap_or(&path);
        let is_kept =
            |part: Component<'_>| PROTECTED_DIRECTORIES.iter().any(|kept| part.as_os_str().eq_ignore_ascii_case(kept));
        if inside.components().any(is_kept) {
            return Err(refusal_response("write", wanted, "agents have no access to it"));
        }
        Ok(path)
    }

    fn check_path_inside(&self, verb: &str, wanted: &Path, path: &Path) -> Result<(), JsonRpcError> {
        match path.starts_with(&self.directory) {
            true => Ok(()),
            false => {
                let why = format!("it is outside of `{}`", self.directory.display());
                Err(refusal_response(verb, wanted, &why))
            }
        }
    }
}

const NONBLOCK: i32 = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
const NOFOLLOW: i32 = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();

/// Reads as many lines as requested, or all. Returns `None` if they exceed `MAX_READ_BYTES`.
fn read_bounded_lines(lines: &mut impl BufRead, limit: Option<u64>) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    let mut bounded = lines.take(MAX_READ_BYTES + 1);
    match limit {
        None => drop(bounded.read_to_end(&mut bytes)?),
        Some(limit) => {
            for _ in 0..limit {
                if bounded.read_until(b'\n', &mut bytes)? == 0 {
                    break;
                }
            }
        }
    }
    Ok((bytes.len() as u64 <= MAX_READ_BYTES).then_some(bytes))
}

fn io_failure_response(verb: &str, path: &Path, error: &io::Error) -> JsonRpcError {
    let code = if error.kind() == io::ErrorKind::NotFound { RESOURCE_NOT_FOUND } else { REQUEST_REFUSED };
    JsonRpcError::new(code, format!("cannot {verb} `{}`: {error}", path.display()))
}

fn refusal_response(verb: &str, path: &Path, why: &str) -> JsonRpcError {
    JsonRpcError::new(INVALID_PARAMS, format!("cannot {verb} `{}`: {why}", path.display()))
}

#[cfg(test)]
mod tests;
