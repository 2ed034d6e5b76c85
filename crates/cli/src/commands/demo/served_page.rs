//! The web page of the demo project, served by a real `windlass serve`.

use std::sync::mpsc::channel;
use std::thread::Scope;

use windlass_app::{Failure, FailureCode};
use windlass_process::RunControl;

use super::directory::DemoDirectory;
use crate::output::{CommandResult, Output};

const SERVE_COMMAND: &str = "exec windlass serve --open";
/// The lines that the server prints at its start.
const START_LINES: usize = 3;

/// Starts the server on a thread of its own, and prints what it prints at its start.
pub fn start_page<'scope>(
    scope: &'scope Scope<'scope, '_>,
    stage: &'scope DemoDirectory,
    (tour, page): (&'scope RunControl, &'scope RunControl),
    out: &mut Output,
) -> CommandResult {
    let (sender, printed) = channel();
    scope.spawn(move || {
        // The receiver ends with the first lines.
        let ended = stage.run_shell_command(SERVE_COMMAND, page, &mut |bytes| drop(sender.send(bytes.to_vec())));
        if ended.is_err() {
            tour.cancel_runs();
        }
    });
    let mut text = Vec::new();
    while text.iter().filter(|byte| **byte == b'\n').count() < START_LINES {
        let Ok(bytes) = printed.recv() else {
            return Err(Failure::new(FailureCode::System, "cannot serve the page of the demo")
                .with_cause(String::from_utf8_lossy(&text).trim())
                .into());
        };
        text.extend(bytes);
    }
    out.print_line(String::from_utf8_lossy(&text).trim_end())?;
    out.flush()
}
