//! Programs that need no supervision: one that takes the place of this process, and one that only answers whether it works.
//!
//! Not here: programs of a run (`run`, `supervised_run`).

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Output, Stdio};

/// Replaces this process with a program, which is looked up in `PATH`. It keeps the descriptors 0, 1 and 2 and the environment
/// with these changes, and loses all other descriptors. Returns only if the program cannot start.
pub fn replace_process(program: &OsStr, arguments: &[OsString], changes: &[(OsString, OsString)]) -> io::Error {
    #[cfg(target_os = "linux")]
    crate::spawn::set_close_on_exec();
    #[expect(clippy::disallowed_methods, reason = "the program is this process, not a child")]
    let mut command = Command::new(program);
    command.args(arguments).envs(changes.iter().map(|(name, value)| (name, value))).exec()
}

/// Runs a program that ends by itself at once, without input, and returns what it wrote.
pub fn run_probe(program: &OsStr, arguments: &[OsString]) -> io::Result<Output> {
    #[expect(
        clippy::disallowed_methods,
        reason = "a run would make this process a subreaper, also after it is replaced"
    )]
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).output()
}
