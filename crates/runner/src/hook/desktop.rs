//! Notices on the desktop, or in the terminal if there is no desktop.
//!
//! Invariant: a notice never fails. A machine without a desktop is no error.

use std::ffi::OsString;
use std::time::Duration;

use windlass_engine::{HookOutcome, HookReport};
use windlass_hooks::notice;
use windlass_process::{CaptureLimits, ProgramExit, ProgramInvocation, ProgramSpec};

use super::HookRun;
use crate::{EffectRunner, RunError, RunnerEvent};

/// Timeout of the notification service, which usually answers sooner.
const NOTIFICATION_TIMEOUT: Duration = Duration::from_secs(3);

impl EffectRunner<'_> {
    pub(super) fn show_on_desktop(&mut self, run: &HookRun<'_>) -> Result<HookReport, RunError> {
        let (title, words) = (notice::notice_title(&run.values), notice::notice_summary(&run.values));
        let words = self.settings.mask.mask_text(&words).into_owned();
        let (invocation, settings) =
            (ProgramInvocation::Argv(notification_command(&format!("Windlass: {title}"), &words)), &self.settings);
        let spec = ProgramSpec {
            timeout: Some(NOTIFICATION_TIMEOUT),
            capture: CaptureLimits { head: 1024, tail: 0, spill: None },
            ..ProgramSpec::new(invocation, &settings.directory, settings.environment.clone())
        };
        let ran = self.run_program(&spec)?;
        match ran {
            Ok(ran) if ran.exit == ProgramExit::Code(0) => Ok(HookOutcome::Success.into()),
            Ok(ran) if ran.exit == ProgramExit::Cancelled => Ok(HookOutcome::Cancelled.into()),
            _ => {
                (self.env.observe)(RunnerEvent::Notice(&format!("Windlass: {title}: {words}")));
                let message = Some("no desktop shows notices here".to_owned());
                Ok(HookReport { message, ..HookOutcome::Skip.into() })
            }
        }
    }
}

/// Returns the command line. The texts are arguments, never a script, and never an option.
fn notification_command(title: &str, words: &str) -> Vec<OsString> {
    if cfg!(target_os = "macos") {
        let script = ["on run argv", "display notification (item 2 of argv) with title (item 1 of argv)", "end run"];
        let script = script.iter().flat_map(|line| ["-e", line]);
        return ["osascript"].into_iter().chain(script).chain([title, words]).map(Into::into).collect();
    }
    // The service may read the text as markup.
    let words = words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    ["notify-send", "--app-name=windlass", "--", title, &words].map(Into::into).into()
}
