//! Signals, and cancellations by other processes, while a session runs.

use std::io;
use std::time::Instant;

use windlass_app::project::Project;
use windlass_app::run::read_cancellation;
use windlass_app::{Code, Failure};
use windlass_engine::SessionName;
use windlass_process::Control;
use windlass_process::signals::{self, Nudges, Received, Signalled};
use windlass_text as text;

use super::live::View;
use crate::output::Messages;

/// A listener for signals and for nudges of other processes, until it is dropped.
pub struct SignalListener {
    received: Received,
    nudges: Option<Nudges>,
}

impl SignalListener {
    /// Makes signals drive the control. `wake` runs after each of them.
    pub fn start(control: &Control, view: Option<&View>, wake: impl Fn() + Send + 'static) -> Result<Self, Failure> {
        let heard = view.cloned();
        let heed = move |signalled| {
            hear(signalled, heard.as_ref());
            wake();
        };
        let received = signals::install(control, heed).map_err(cannot_listen)?;
        Ok(Self { received, nudges: None })
    }

    /// Ends the session also when another process cancels it.
    pub fn follow(
        &mut self,
        project: &Project,
        control: &Control,
        name: &SessionName,
        view: Option<&View>,
    ) -> Result<(), Failure> {
        self.nudges = Some(heed_nudges(project, control, name, view.cloned())?);
        Ok(())
    }

    /// Calls `look` whenever another process asks this one to read the log.
    pub fn follow_with(&mut self, look: impl Fn() + Send + 'static) -> Result<(), Failure> {
        let nudges = signals::heed_nudges(look).map_err(cannot_listen)?;
        self.nudges = Some(nudges);
        Ok(())
    }

    /// Returns the first signal that asked this process to end.
    pub fn first(&self) -> Option<i32> {
        self.received.first()
    }
}

/// Watches for nudges, and cancels the control when the log says that the session is cancelled.
fn heed_nudges(
    project: &Project,
    control: &Control,
    name: &SessionName,
    view: Option<View>,
) -> Result<Nudges, Failure> {
    let (file, control, name) = (project.store_file(), control.clone(), name.clone());
    let heed = move || {
        if let Some(closing) = read_cancellation(&file, &name)
            && !control.is_cancelled()
        {
            control.cancel();
            let why = closing.reason.map(|why| format!(" ({})", text::line(&why))).unwrap_or_default();
            if let Some(view) = &view {
                view.change(|area| area.end(Instant::now(), "Ctrl-C twice ends everything now"));
            }
            note(&format!("ending: somebody has cancelled the session{why}"), view.as_ref());
        }
    };
    signals::heed_nudges(heed).map_err(cannot_listen)
}

/// Passes a signal on to the live view.
fn hear(signalled: Signalled, view: Option<&View>) {
    match signalled {
        Signalled::End(times) => asked_to_end(times, view),
        Signalled::Stopping | Signalled::Quitting => drop(view.inspect(|view| view.hold())),
        Signalled::Continued => drop(view.inspect(|view| view.release())),
        Signalled::Resized => drop(view.inspect(|view| view.resized())),
    }
}

/// Confirms a request to end at once, and exits at the third.
fn asked_to_end(times: u32, view: Option<&View>) {
    // The text does not name a hangup: a closed terminal sends several.
    const UNDERSTOOD: &str =
        "ending: what runs is given up, pending feedback stays with the task; Ctrl-C or SIGTERM ends everything now";
    match (times, view) {
        (1, None) => note(UNDERSTOOD, None),
        (1, Some(view)) => {
            view.change(|area| area.end(Instant::now(), "Ctrl-C once more ends everything now"));
            note(UNDERSTOOD, Some(view));
        }
        (2, _) => {}
        (_, view) => {
            if let Some(view) = view {
                view.hold();
            }
            // The main thread hangs in a write that is not read. The programs of this process end with it.
            #[expect(clippy::disallowed_methods, reason = "no guard can run while the main thread hangs")]
            std::process::exit(130)
        }
    }
}

/// Prints a note that is not in the log, above the live view if there is one.
fn note(words: &str, view: Option<&View>) {
    match view {
        Some(view) => {
            let columns = view.columns();
            let rows = text::wrap(&format!("note: {words}"), columns, columns.saturating_sub(2));
            view.line(rows.join("\n  "));
        }
        None => Messages::new().note(words),
    }
}

fn cannot_listen(error: io::Error) -> Failure {
    Failure::new(Code::System, "cannot listen to signals").caused_by(error)
}
