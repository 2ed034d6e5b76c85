//! The person's web browser. It outlives this process.

use std::io;
use std::process::{Command, Stdio};
use std::thread;

/// Opens a page in the browser, without waiting for it. If no browser starts, `on_failure` gets the reason.
pub fn open_in_browser(url: String, on_failure: impl FnOnce(io::Error) + Send + 'static) -> io::Result<()> {
    let open = move || {
        if let Err(error) = run_opener(&url) {
            on_failure(error);
        }
    };
    thread::Builder::new().name("browser".to_owned()).spawn(open).map(drop)
}

fn run_opener(url: &str) -> io::Result<()> {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    #[expect(clippy::disallowed_methods, reason = "the browser belongs to the person, not to a run")]
    let mut command = Command::new(program);
    let status = command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(io::Error::other(format!("`{program}` ended with {status}"))),
        Err(error) => Err(io::Error::new(error.kind(), format!("cannot start `{program}`: {error}"))),
    }
}
