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

use windlass_app::{SUPERVISE_ARGUMENT, environment, project};
use windlass_sandbox::{FORWARD_COMMAND, LAUNCH_ARGUMENT, PROXY_COMMAND};

use crate::output::{EarlyExit, MessageWriter, Output};

/// Runs the program.
pub fn main() -> ExitCode {
    // The launcher of a sandbox starts before each program in one, and becomes it.
    if let Some(argument) = environment::first_argument() {
        match argument.to_str() {
            Some(LAUNCH_ARGUMENT) => {
                return commands::launch_sandboxed_program(&environment::command_line_arguments());
            }
            Some(FORWARD_COMMAND | PROXY_COMMAND) => {
                return commands::serve_sandbox(&environment::command_line_arguments());
            }
            _ => {}
        }
    }
    // A supervisor is started for every session and needs nothing of the rest, so it comes first.
    if environment::first_argument().is_some_and(|argument| argument == SUPERVISE_ARGUMENT) {
        return windlass_process::supervisor::serve_owner();
    }
    // A failure leaves the default reaction to the signal, which is acceptable.
    let _ = windlass_process::signals::handle_file_size_signal();
    if let Some(place) = environment::failpoint_variable() {
        windlass_store::failpoint::arm_failpoint(&place);
    }
    let (invocation, json) = match args::parse_command_line() {
        Ok(parsed) => parsed,
        Err(refused) => return refused.print_and_exit_code(),
    };
    let mut out = Output::new(json);
    let named = invocation.project.clone().filter(|_| !json && invocation.command.is_read_by_person());
    let done = commands::run_invocation(invocation, &mut out).and_then(|code| out.flush().map(|()| code));
    let mut names_command = out.has_named_command();
    let code = match done {
        Ok(code) => code,
        Err(EarlyExit::Closed) => return ExitCode::SUCCESS,
        Err(EarlyExit::Failed(failure)) => {
            if json {
                // The output so far stays valid JSON, line by line.
                let _ = out.print_json(&failure.to_json()).and_then(|()| out.flush());
            } else {
                let _ = out.flush();
                MessageWriter::new().print_failure(&failure);
            }
            names_command |= failure.hint.as_deref().is_some_and(output::mentions_command);
            failure.code.exit_code()
        }
    };
    if let Some(flag) = named.filter(|_| names_command).and_then(|named| project::project_flag_if_needed(&named)) {
        MessageWriter::new().print_note(&format!("from this directory the commands need `{flag}`"));
    }
    ExitCode::from(code)
}
