//! Notices on the desktop, or in the terminal if there is no desktop.
//!
//! Invariant: a notice never fails. A machine without a desktop is no error.

use std::ffi::OsString;
use std::time::Duration;

use windlass_engine::{HookOutcome, HookReport};
use windlass_hooks::notice;
use windlass_process::{Capture, Exit, Invocation, Spec};

use super::HookRun;
use crate::{EffectRunner, RunError, RunnerEvent};

/// Timeout of the notification service, which usually answers sooner.
const TIMEOUT: Duration = Duration::from_secs(3);

impl EffectRunner<'_> {
    pub(super) fn show_on_desktop(&mut self, run: &HookRun<'_>) -> Result<HookReport, RunError> {
        let (title, words) = (notice::title(&run.values), notice::words(&run.values));
        let words = self.settings.mask.text(&words).into_owned();
        let (invocation, settings) = (Invocation::Argv(program(&format!("Windlass: {title}"), &words)), &self.settings);
        let spec = Spec {
            timeout: Some(TIMEOUT),
            capture: Capture { head: 1024, tail: 0, spill: None },
            ..Spec::new(invocation, &settings.directory, settings.environment.clone())
        };
        let ran = self.start(&spec)?;
        match ran {
            Ok(ran) if ran.exit == Exit::Code(0) => Ok(HookOutcome::Success.into()),
            Ok(ran) if ran.exit == Exit::Cancelled => Ok(HookOutcome::Cancelled.into()),
            _ => {
                (self.outside.tell)(RunnerEvent::Notice(&format!("Windlass: {title}: {words}")));
                let message = Some("no desktop takes notices here".to_owned());
                Ok(HookReport { message, ..HookOutcome::Skip.into() })
            }
        }
    }
}

/// Returns the command line. The texts are arguments, never a script, and never an option.
fn program(title: &str, words: &str) -> Vec<OsString> {
    if cfg!(target_os = "macos") {
        let script = ["on run argv", "display notification (item 2 of argv) with title (item 1 of argv)", "end run"];
        let script = script.iter().flat_map(|line| ["-e", line]);
        return ["osascript"].into_iter().chain(script).chain([title, words]).map(Into::into).collect();
    }
    // The service may read the text as markup.
    let words = words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    ["notify-send", "--app-name=windlass", "--", title, &words].map(Into::into).into()
}
