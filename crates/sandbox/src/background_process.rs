//! Processes of a sandbox itself: this program with another task, beside the program in the sandbox.

use std::io::{self, Read as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

/// The byte with which a process says that it is ready.
const READY: u8 = b'+';

/// Starts a hidden command of this program, and returns when it is ready. It stays behind when this process becomes another program.
pub(crate) fn start_background_process(command: &str, setup: &str, errors: Stdio) -> io::Result<()> {
    #[expect(clippy::disallowed_methods, reason = "the sandbox's own process: nothing supervises or captures it")]
    let mut process = Command::new(std::env::current_exe()?);
    process.arg(command).arg(setup).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors);
    // A signal to the process group of the program in the sandbox does not reach it.
    let mut child = process.process_group(0).spawn()?;
    let mut output = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let mut byte = [0];
    match output.read_exact(&mut byte) {
        Ok(()) if byte == [READY] => Ok(()),
        _ => {
            _ = child.kill();
            let status = child.wait()?;
            Err(io::Error::other(format!("`{command}` does not start: {status}")))
        }
    }
}

/// Tells the starter that this process is ready, and closes its standard output.
pub(crate) fn report_readiness() {
    // If the starter has gone, nothing is left to tell it.
    _ = rustix::io::write(rustix::stdio::stdout(), &[READY]);
    if let Ok(null) = std::fs::OpenOptions::new().write(true).open("/dev/null") {
        _ = rustix::stdio::dup2_stdout(&null);
    }
}
