//! Reasons why a program did not start.
//!
//! The kernel reports several causes with one number, so after a failure this module inspects the files.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

/// Error of a program that did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramStartError {
    #[error("cannot find the program {}", program.display())]
    NotFound { program: PathBuf },
    #[error("cannot execute {}: it is there, but is not an executable file or names an interpreter that is not there", program.display())]
    NotExecutable { program: PathBuf },
    #[error("cannot start {} in {}: there is no such directory, or it may not be entered", program.display(), directory.display())]
    NoDirectory { program: PathBuf, directory: PathBuf },
    #[error("cannot start {}: its arguments and environment are longer than the system allows", program.display())]
    ArgumentsTooLong { program: PathBuf },
    #[error("cannot start {}: {why}", program.display())]
    Other { program: PathBuf, why: io::Error },
}

impl ProgramStartError {
    pub(crate) fn from_io_error(program: &Path, why: io::Error) -> Self {
        Self::Other { program: program.to_owned(), why }
    }

    /// Maps an error of `posix_spawn` to its cause.
    pub(crate) fn from_spawn_error(program: &Path, directory: &Path, source: io::Error) -> Self {
        let program = program.to_owned();
        match source.raw_os_error() {
            Some(libc::E2BIG) => Self::ArgumentsTooLong { program },
            Some(libc::ENOENT | libc::ENOTDIR | libc::EACCES | libc::ENOEXEC | libc::EISDIR | libc::ELOOP) => {
                if !directory.is_dir() || access(directory, Access::EXEC_OK).is_err() {
                    Self::NoDirectory { program, directory: directory.to_owned() }
                } else if directory.join(&program).exists() {
                    Self::NotExecutable { program }
                } else {
                    Self::NotFound { program }
                }
            }
            _ => Self::Other { program, why: source },
        }
    }
}
