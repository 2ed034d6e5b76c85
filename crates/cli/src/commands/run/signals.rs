//! Signals, and people elsewhere, while a session runs: what they mean, and who is told.

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

/// Nobody is heard after it is dropped.
pub struct SignalListener {
    received: Received,
    nudges: Option<Nudges>,
}

impl SignalListener {
    /// From now on, signals drive the control, and after each of them somebody is woken.
    pub fn start(control: &Control, view: Option<&View>, wake: impl Fn() + Send + 'static) -> Result<Self, Failure> {
        let heard = view.cloned();
        let heed = move |signalled| {
            hear(signalled, heard.as_ref());
            wake();
        };
        let received = signals::install(control, heed).map_err(cannot_listen)?;
        Ok(Self { received, nudges: None })
    }

    /// From now on, those who cancel this session do so too.
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

    /// From now on, somebody looks at the log when another process asks for that.
    pub fn follow_with(&mut self, look: impl Fn() + Send + 'static) -> Result<(), Failure> {
        let nudges = signals::heed_nudges(look).map_err(cannot_listen)?;
        self.nudges = Some(nudges);
        Ok(())
    }

    /// The first signal that asked this process to end.
    pub fn first(&self) -> Option<i32> {
        self.received.first()
    }
}

/// Somebody who has cancelled the session wakes us, and the log says so.
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

/// What a signal means to whoever sees it.
fn hear(signalled: Signalled, view: Option<&View>) {
    match signalled {
        Signalled::End(times) => asked_to_end(times, view),
        Signalled::Stopping | Signalled::Quitting => drop(view.inspect(|view| view.hold())),
        Signalled::Continued => drop(view.inspect(|view| view.release())),
        Signalled::Resized => drop(view.inspect(|view| view.resized())),
    }
}

/// Whoever asks for the end hears at once that it was understood.
fn asked_to_end(times: u32, view: Option<&View>) {
    // Not a hangup: a terminal that is closed sends several.
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
            // Something that nobody reads any more holds us. What we have started ends with us.
            #[expect(clippy::disallowed_methods, reason = "no guard can run while the main thread hangs")]
            std::process::exit(130)
        }
    }
}

/// Says something beside the log, above the live view where there is one.
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
