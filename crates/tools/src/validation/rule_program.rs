//! Rules with programs that have to succeed: commands, and validators of the configuration.

use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use windlass_engine::duration_in_words;
use windlass_engine::validation::{CommandRule, ValidationRule, ValidationRuleKind};
use windlass_hooks::{ShellCommand, clean_output, excerpt_text};
use windlass_process::{
    CaptureLimits, ProgramExit, ProgramInvocation, ProgramOutcome, ProgramSpec, ProgramStartError, RunControl,
    overlay_environment, run_with_own_supervisor,
};

use super::{RuleFinding, ValidationInput, ValidatorEnv, quote_excerpt};

/// Variable that marks programs which judge work.
const JUDGING_VARIABLE: &str = "WINDLASS_JUDGING";
/// Time between the request to end and the kill.
const KILL_GRACE: Duration = Duration::from_secs(2);
/// Maximum size of each output stream in memory.
const MAX_CAPTURED_OUTPUT: usize = 256 * 1024;
/// Maximum size of the output in a result.
const MAX_REPORTED_OUTPUT: usize = 4 * 1024;

/// A program to run, with its input.
pub struct ProgramRequest<'a> {
    pub command: &'a CommandRule,
    /// Variables beside those of all programs.
    pub variables: Vec<(&'static str, OsString)>,
    pub input: Vec<u8>,
}

/// Reason why a program did not run.
#[derive(Debug, thiserror::Error)]
pub enum ProgramNotRun {
    #[error("there is no directory {} in the project; make it, or correct `workingDirectory`", quote_excerpt(.0))]
    NoDirectory(String),
    #[error("{} leads out of the project by a link; put a directory in its place, or correct `workingDirectory`", quote_excerpt(.0))]
    Outside(String),
    #[error(transparent)]
    NotStarted(#[from] ProgramStartError),
    /// The program ran, but the program or script that it names does not exist.
    #[error("{0}")]
    Broken(String),
}

impl ValidatorEnv<'_> {
    /// Returns whether a directory is inside the project after all links are followed.
    fn contains_directory(&self, directory: &Path) -> bool {
        let real = |path: &Path| fs::canonicalize(path).ok();
        real(directory).zip(real(&self.directory)).is_some_and(|(inner, outer)| inner.starts_with(outer))
    }

    /// Runs a permitted command to its end or its timeout. The returned output is masked.
    pub fn run_program(
        &self,
        order: ProgramRequest<'_>,
        control: &RunControl,
    ) -> Result<ProgramOutcome, ProgramNotRun> {
        let below = order.command.working_directory.as_deref().unwrap_or(".");
        let directory = if below == "." { self.directory.clone() } else { self.directory.join(below) };
        if !directory.is_dir() {
            return Err(ProgramNotRun::NoDirectory(below.to_owned()));
        }
        if below != "." && !self.contains_directory(&directory) {
            return Err(ProgramNotRun::Outside(below.to_owned()));
        }
        let mut variables = order.variables;
        variables.push(("WINDLASS_PROJECT_DIR", self.directory.clone().into()));
        variables.push((JUDGING_VARIABLE, "1".into()));
        let invocation = ProgramInvocation::Shell(order.command.command.clone().into());
        let spec = ProgramSpec {
            stdin: order.input,
            timeout: Some(order.command.timeout()),
            grace: KILL_GRACE,
            capture: CaptureLimits { head: MAX_CAPTURED_OUTPUT / 2, tail: MAX_CAPTURED_OUTPUT / 2, spill: None },
            ..ProgramSpec::new(invocation, directory, overlay_environment(&self.environment, variables))
        };
        let ran = run_with_own_supervisor(self.launcher.as_ref(), &spec, self.owner_lock, control)?;
        let text = &order.command.command;
        let broken = ShellCommand { text, directory: &spec.directory, environment: &spec.environment }
            .broken_command_cause(ran.exit);
        if let Some(cause) = broken.filter(|_| !is_success(order.command, ran.exit)) {
            return Err(ProgramNotRun::Broken(cause));
        }
        // Mask before the output is cut: half a secret is a secret, too.
        Ok(self.mask.mask_run(ran))
    }
}

pub fn check_program(
    rule: &ValidationRule,
    matter: ValidationInput<'_>,
    workshop: &ValidatorEnv<'_>,
    control: &RunControl,
) -> RuleFinding {
    let command = match workshop.permission.permitted_program(rule) {
        Ok(Some(command)) => command,
        Ok(None) => return RuleFinding::failed("this rule runs no program"),
        Err(refused) => return RuleFinding::failed(format!("{refused}: {}", refused.remedy)),
    };
    let name = match &rule.kind {
        ValidationRuleKind::Custom(custom) => format!("the validator {}", quote_excerpt(&custom.validator_id)),
        _ => quote_excerpt(&command.command),
    };
    let order =
        ProgramRequest { command, variables: rule_variables(rule, matter), input: validator_input(rule, matter) };
    match workshop.run_program(order, control) {
        Ok(ran) => finding_from_exit(&name, command, &ran),
        Err(ProgramNotRun::Broken(cause)) => RuleFinding::broken(format!("the rule is broken: {cause}")),
        Err(error @ ProgramNotRun::NotStarted(_)) => {
            let why = error.source().map(|why| format!(": {why}")).unwrap_or_default();
            RuleFinding::broken(format!("{name} was not run: {error}{why}"))
        }
        Err(error @ (ProgramNotRun::NoDirectory(_) | ProgramNotRun::Outside(_))) => {
            RuleFinding::failed(format!("{name} was not run: {error}"))
        }
    }
}

/// Returns the variables of a program. A validator is no turn: its calls of `windlass` are no claims of the agent. Those of the
/// agent's own commands are.
fn rule_variables(rule: &ValidationRule, matter: ValidationInput<'_>) -> Vec<(&'static str, OsString)> {
    let text = |name: &str| match &matter.context[name] {
        Value::String(text) if !text.contains('\0') => text.into(),
        Value::Number(number) => number.to_string().into(),
        _ => OsString::new(),
    };
    let mut variables = vec![
        ("WINDLASS_RULE", rule.name.replace('\0', "").into()),
        ("WINDLASS_TASK_ID", text("taskId")),
        ("WINDLASS_ITERATION", text("iteration")),
    ];
    if matches!(rule.kind, ValidationRuleKind::Custom(_)) {
        variables.push(("WINDLASS_RUN", OsString::new()));
    }
    variables
}

/// Returns the standard input. A validator gets the context; a command gets nothing.
fn validator_input(rule: &ValidationRule, matter: ValidationInput<'_>) -> Vec<u8> {
    match rule.kind {
        ValidationRuleKind::Custom(_) => matter.context.to_string().into_bytes(),
        _ => Vec::new(),
    }
}

/// Returns whether an exit counts as success for a command.
fn is_success(command: &CommandRule, exit: ProgramExit) -> bool {
    matches!(exit, ProgramExit::Code(code) if u8::try_from(code).is_ok_and(|code| command.success_codes().contains(&code)))
}

/// Converts the exit into a result. The message has no measured values, so that the same failure has the same text.
fn finding_from_exit(name: &str, command: &CommandRule, ran: &ProgramOutcome) -> RuleFinding {
    let limit = duration_in_words(command.timeout());
    let end = match ran.exit {
        ProgramExit::Code(code) if is_success(command, ran.exit) => {
            return RuleFinding::passed(format!("{name} ended with exit {code}"));
        }
        ProgramExit::Code(code) => {
            format!("{name} ended with exit {code}; {} would pass", expected_exit_codes(&command.success_codes()))
        }
        ProgramExit::Signal(signal) => format!("{name} was ended by signal {signal}"),
        ProgramExit::TimedOut | ProgramExit::OutputIdle => {
            format!(
                "{name} was ended after {limit}, its timeout: make it faster, see why it hangs, or give it more time"
            )
        }
        ProgramExit::Cancelled => format!("{name} was cancelled"),
        ProgramExit::Lost => format!("the end of {name} is unknown: validate again"),
    };
    RuleFinding::failed(match output_excerpt(ran) {
        said if said.is_empty() => format!("{end}. It wrote nothing"),
        said => format!("{end}. It wrote:\n{said}"),
    })
}

fn expected_exit_codes(successes: &[u8]) -> String {
    let codes: Vec<String> = successes.iter().take(8).map(u8::to_string).collect();
    format!("exit {}", codes.join(" or "))
}

/// Returns the most telling part of the output.
fn output_excerpt(ran: &ProgramOutcome) -> String {
    let texts = [&ran.stdout, &ran.stderr].map(|stream| clean_output(&stream.to_text_lossy()).trim().to_owned());
    let all = texts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n");
    excerpt_text(&all, MAX_REPORTED_OUTPUT)
}
