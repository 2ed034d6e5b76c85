//! Signals, and cancellations by other processes, while a session runs.

use std::io;
use std::time::Instant;

use windlass_app::project::Project;
use windlass_app::run::read_cancellation;
use windlass_app::{Failure, FailureCode};
use windlass_engine::SessionName;
use windlass_process::RunControl;
use windlass_process::signals::{self, SignalEvent, SignalHandlers, WakeHandler};
use windlass_text as text;

use super::live::ViewHandle;
use crate::output::MessageWriter;

/// A listener for signals and for nudges of other processes, until it is dropped.
pub struct SignalListener {
    received: SignalHandlers,
    nudges: Option<WakeHandler>,
}

impl SignalListener {
    /// Makes signals drive the control. `wake` runs after each of them.
    pub fn start(
        control: &RunControl,
        view: Option<&ViewHandle>,
        wake: impl Fn() + Send + 'static,
    ) -> Result<Self, Failure> {
        let view = view.cloned();
        let on_signal = move |signalled| {
            handle_signal(signalled, view.as_ref());
            wake();
        };
        let received = signals::install_handlers(control, on_signal).map_err(listen_failure)?;
        Ok(Self { received, nudges: None })
    }

    /// Ends the session also when another process cancels it.
    pub fn follow_session(
        &mut self,
        project: &Project,
        control: &RunControl,
        name: &SessionName,
        view: Option<&ViewHandle>,
    ) -> Result<(), Failure> {
        self.nudges = Some(watch_for_cancellation(project, control, name, view.cloned())?);
        Ok(())
    }

    /// Calls `look` whenever another process asks this one to read the log.
    pub fn follow_log(&mut self, look: impl Fn() + Send + 'static) -> Result<(), Failure> {
        let nudges = signals::install_wake_handler(look).map_err(listen_failure)?;
        self.nudges = Some(nudges);
        Ok(())
    }

    /// Returns the first signal that asked this process to end.
    pub fn first_signal(&self) -> Option<i32> {
        self.received.first_signal()
    }
}

/// Watches for nudges, and cancels the control when the log says that the session is cancelled.
fn watch_for_cancellation(
    project: &Project,
    control: &RunControl,
    name: &SessionName,
    view: Option<ViewHandle>,
) -> Result<WakeHandler, Failure> {
    let (file, control, name) = (project.store_file(), control.clone(), name.clone());
    let heed = move || {
        if let Some(closing) = read_cancellation(&file, &name)
            && !control.is_cancelled()
        {
            control.cancel_runs();
            let why = closing.reason.map(|why| format!(" ({})", text::clean_line(&why))).unwrap_or_default();
            if let Some(view) = &view {
                view.update_areas(|area| area.begin_ending(Instant::now(), "Ctrl-C twice ends everything now"));
            }
            print_note(&format!("ending: the session was cancelled{why}"), view.as_ref());
        }
    };
    signals::install_wake_handler(heed).map_err(listen_failure)
}

/// Passes a signal on to the live view.
fn handle_signal(signalled: SignalEvent, view: Option<&ViewHandle>) {
    match signalled {
        SignalEvent::End(times) => handle_end_request(times, view),
        SignalEvent::Stopping | SignalEvent::Quitting => drop(view.inspect(|view| view.hold_terminal())),
        SignalEvent::Continued => drop(view.inspect(|view| view.release_terminal())),
        SignalEvent::Resized => drop(view.inspect(|view| view.handle_resize())),
    }
}

/// Confirms a request to end at once, and exits at the third.
fn handle_end_request(times: u32, view: Option<&ViewHandle>) {
    // The text does not name a hangup: a closed terminal sends several.
    const END_NOTICE: &str =
        "ending: running work is stopped, pending feedback stays with the task; Ctrl-C or SIGTERM ends everything now";
    match (times, view) {
        (1, None) => print_note(END_NOTICE, None),
        (1, Some(view)) => {
            view.update_areas(|area| area.begin_ending(Instant::now(), "Ctrl-C once more ends everything now"));
            print_note(END_NOTICE, Some(view));
        }
        (2, _) => {}
        (_, view) => {
            if let Some(view) = view {
                view.hold_terminal();
            }
            // The main thread hangs in a write that is not read. The programs of this process end with it.
            #[expect(clippy::disallowed_methods, reason = "no guard can run while the main thread hangs")]
            std::process::exit(130)
        }
    }
}

/// Prints a note that is not in the log, above the live view if there is one.
fn print_note(words: &str, view: Option<&ViewHandle>) {
    match view {
        Some(view) => {
            let columns = view.columns();
            let rows = text::wrap_to_width(&format!("note: {words}"), columns, columns.saturating_sub(2));
            view.print_line(rows.join("\n  "));
        }
        None => MessageWriter::new().print_note(words),
    }
}

fn listen_failure(error: io::Error) -> Failure {
    Failure::new(FailureCode::System, "cannot listen to signals").with_cause(error)
}
