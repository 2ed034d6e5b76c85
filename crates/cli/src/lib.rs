//! The program `windlass`: arguments, printing and exit codes. The rules are in `engine`, the application in `app`.
//!
//! It is a library only so that fuzzing can call into it. There is no promise of a stable interface.
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests read files that they have written"))]

mod args;
mod commands;
mod front_end;
mod output;
mod show;
#[cfg(test)]
mod tests;
mod usage;

use std::process::ExitCode;

use windlass_app::{SUPERVISE, environment, project};

use crate::output::{Messages, Output, Stop};

/// Runs the program.
pub fn main() -> ExitCode {
    // A supervisor is started for every session and needs nothing of the rest, so it comes first.
    if environment::first_argument().is_some_and(|argument| argument == SUPERVISE) {
        return windlass_process::supervisor::serve();
    }
    // A failure leaves the default reaction to the signal, which is acceptable.
    let _ = windlass_process::signals::outlive_file_limits();
    if let Some(place) = environment::failpoint() {
        windlass_store::failpoint::arm(&place);
    }
    let (invocation, json) = match args::parse() {
        Ok(parsed) => parsed,
        Err(refused) => return refused.report(),
    };
    let mut out = Output::new(json);
    let named = invocation.project.clone().filter(|_| !json && invocation.command.is_for_people());
    let done = commands::run(invocation, &mut out).and_then(|code| out.flush().map(|()| code));
    let mut names_command = out.names_command();
    let code = match done {
        Ok(code) => code,
        Err(Stop::Closed) => return ExitCode::SUCCESS,
        Err(Stop::Failed(failure)) => {
            if json {
                // The output so far stays valid JSON, line by line.
                let _ = out.object(&failure.to_json()).and_then(|()| out.flush());
            } else {
                let _ = out.flush();
                Messages::new().failure(&failure);
            }
            names_command |= failure.hint.as_deref().is_some_and(output::names_command);
            failure.code.exit()
        }
    };
    if let Some(flag) = named.filter(|_| names_command).and_then(|named| project::flag_needed_here(&named)) {
        Messages::new().note(&format!("from this directory the commands need `{flag}`"));
    }
    ExitCode::from(code)
}
