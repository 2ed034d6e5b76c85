//! Processes of a sandbox itself: this program with another task, beside the program in the sandbox.

use std::io::{self, BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

/// Starts a hidden command of this program, and returns the line with which it says that it is ready. It stays behind when this
/// process becomes another program.
pub(crate) fn start_background_process(command: &str, setup: &str, errors: Stdio) -> io::Result<String> {
    #[expect(clippy::disallowed_methods, reason = "the sandbox's own process: nothing supervises or captures it")]
    let mut process = Command::new(std::env::current_exe()?);
    process.arg(command).arg(setup).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors);
    // A signal to the process group of the program in the sandbox does not reach it.
    let mut child = process.process_group(0).spawn()?;
    let mut line = String::new();
    let output = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    match BufReader::new(output).read_line(&mut line) {
        Ok(1..) => Ok(line.trim_end().to_owned()),
        _ => {
            _ = child.kill();
            let status = child.wait()?;
            Err(io::Error::other(format!("`{command}` does not start: {status}")))
        }
    }
}

/// Tells the starter that this process is ready, and closes its standard output.
pub(crate) fn report_readiness(line: &str) {
    // If the starter has gone, nothing is left to tell it.
    _ = rustix::io::write(rustix::stdio::stdout(), format!("{line}\n").as_bytes());
    if let Ok(null) = std::fs::OpenOptions::new().write(true).open("/dev/null") {
        _ = rustix::stdio::dup2_stdout(&null);
    }
}
