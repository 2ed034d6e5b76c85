//! The person's web browser. It outlives this process.

use std::io;
use std::process::{Command, Stdio};

/// Opens a page in the browser, without waiting for it.
pub fn open_in_browser(url: &str) -> io::Result<()> {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    #[expect(clippy::disallowed_methods, reason = "the browser belongs to the person, not to a run")]
    let mut command = Command::new(program);
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().map(drop)
}
