//! Rules with programs that have to succeed: commands, and validators of the configuration.

use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use windlass_engine::in_words;
use windlass_engine::validation::{CommandRule, RuleKind, ValidationRule};
use windlass_hooks::{ShellCommand, clean, cut};
use windlass_process::{Capture, Control, Exit, Finished, Invocation, NotStarted, Spec, overlay, run_apart};

use super::{Finding, Matter, Workshop, quoted};

/// Variable that marks programs which judge work.
const JUDGING: &str = "WINDLASS_JUDGING";
/// Time between the request to end and the kill.
const GRACE: Duration = Duration::from_secs(2);
/// Maximum size of each output stream in memory.
const KEPT: usize = 256 * 1024;
/// Maximum size of the output in a result.
const TOLD: usize = 4 * 1024;

/// A program to run, with its input.
pub struct Order<'a> {
    pub command: &'a CommandRule,
    /// Variables beside those of all programs.
    pub told: Vec<(&'static str, OsString)>,
    pub input: Vec<u8>,
}

/// Reason why a program did not run.
#[derive(Debug, thiserror::Error)]
pub enum NotRun {
    #[error("there is no directory {} in the project; make it, or correct `workingDirectory`", quoted(.0))]
    NoDirectory(String),
    #[error("{} leads out of the project by a link; put a directory in its place, or correct `workingDirectory`", quoted(.0))]
    Outside(String),
    #[error(transparent)]
    NotStarted(#[from] NotStarted),
    /// The program ran, but the program or script that it names does not exist.
    #[error("{0}")]
    Broken(String),
}

impl Workshop<'_> {
    /// Returns whether a directory is inside the project after all links are followed.
    fn holds(&self, directory: &Path) -> bool {
        let real = |path: &Path| fs::canonicalize(path).ok();
        real(directory).zip(real(&self.directory)).is_some_and(|(inner, outer)| inner.starts_with(outer))
    }

    /// Runs a permitted command to its end or its timeout. The returned output is masked.
    pub fn run(&self, order: Order<'_>, control: &Control) -> Result<Finished, NotRun> {
        let below = order.command.working_directory.as_deref().unwrap_or(".");
        let directory = if below == "." { self.directory.clone() } else { self.directory.join(below) };
        if !directory.is_dir() {
            return Err(NotRun::NoDirectory(below.to_owned()));
        }
        if below != "." && !self.holds(&directory) {
            return Err(NotRun::Outside(below.to_owned()));
        }
        let mut told = order.told;
        told.push(("WINDLASS_PROJECT_DIR", self.directory.clone().into()));
        told.push((JUDGING, "1".into()));
        let invocation = Invocation::Shell(order.command.command.clone().into());
        let spec = Spec {
            stdin: order.input,
            timeout: Some(order.command.timeout()),
            grace: GRACE,
            capture: Capture { head: KEPT / 2, tail: KEPT / 2, spill: None },
            ..Spec::new(invocation, directory, overlay(&self.environment, told))
        };
        let ran = run_apart(self.launcher.as_ref(), &spec, self.roster, control)?;
        let text = &order.command.command;
        let broken =
            ShellCommand { text, directory: &spec.directory, environment: &spec.environment }.broken_by(ran.exit);
        if let Some(cause) = broken.filter(|_| !passes(order.command, ran.exit)) {
            return Err(NotRun::Broken(cause));
        }
        // Mask before the output is cut: half a secret is a secret, too.
        Ok(self.mask.run(ran))
    }
}

pub fn look(rule: &ValidationRule, matter: Matter<'_>, workshop: &Workshop<'_>, control: &Control) -> Finding {
    let command = match workshop.permission.program(rule) {
        Ok(Some(command)) => command,
        Ok(None) => return Finding::failed("this rule runs no program"),
        Err(refused) => return Finding::failed(format!("{refused}: {}", refused.remedy)),
    };
    let name = match &rule.kind {
        RuleKind::Custom(custom) => format!("the validator {}", quoted(&custom.validator_id)),
        _ => quoted(&command.command),
    };
    let order = Order { command, told: told(rule, matter), input: input(rule, matter) };
    match workshop.run(order, control) {
        Ok(ran) => finding(&name, command, &ran),
        Err(NotRun::Broken(cause)) => Finding::broken(format!("the rule is broken: {cause}")),
        Err(error @ NotRun::NotStarted(_)) => {
            let why = error.source().map(|why| format!(": {why}")).unwrap_or_default();
            Finding::broken(format!("{name} was not run: {error}{why}"))
        }
        Err(error @ (NotRun::NoDirectory(_) | NotRun::Outside(_))) => {
            Finding::failed(format!("{name} was not run: {error}"))
        }
    }
}

/// Returns the variables of a program. A validator is no turn: its calls of `windlass` are no claims of the agent. Those of the
/// agent's own commands are.
fn told(rule: &ValidationRule, matter: Matter<'_>) -> Vec<(&'static str, OsString)> {
    let text = |name: &str| match &matter.context[name] {
        Value::String(text) if !text.contains('\0') => text.into(),
        Value::Number(number) => number.to_string().into(),
        _ => OsString::new(),
    };
    let mut told = vec![
        ("WINDLASS_RULE", rule.name.replace('\0', "").into()),
        ("WINDLASS_TASK_ID", text("taskId")),
        ("WINDLASS_ITERATION", text("iteration")),
    ];
    if matches!(rule.kind, RuleKind::Custom(_)) {
        told.push(("WINDLASS_RUN", OsString::new()));
    }
    told
}

/// Returns the standard input. A validator gets the context; a command gets nothing.
fn input(rule: &ValidationRule, matter: Matter<'_>) -> Vec<u8> {
    match rule.kind {
        RuleKind::Custom(_) => matter.context.to_string().into_bytes(),
        _ => Vec::new(),
    }
}

/// Returns whether an exit counts as success for a command.
fn passes(command: &CommandRule, exit: Exit) -> bool {
    matches!(exit, Exit::Code(code) if u8::try_from(code).is_ok_and(|code| command.successes().contains(&code)))
}

/// Converts the exit into a result. The message has no measured values, so that the same failure has the same text.
fn finding(name: &str, command: &CommandRule, ran: &Finished) -> Finding {
    let limit = in_words(command.timeout());
    let end = match ran.exit {
        Exit::Code(code) if passes(command, ran.exit) => {
            return Finding::passed(format!("{name} ended with exit {code}"));
        }
        Exit::Code(code) => format!("{name} ended with exit {code}; {} would pass", expected(&command.successes())),
        Exit::Signal(signal) => format!("{name} was ended by signal {signal}"),
        Exit::TimedOut | Exit::Silent => {
            format!(
                "{name} was ended after {limit}, its timeout: make it faster, see why it hangs, or give it more time"
            )
        }
        Exit::Cancelled => format!("{name} was cancelled"),
        Exit::Lost => format!("the end of {name} is unknown: validate again"),
    };
    Finding::failed(match output(ran) {
        said if said.is_empty() => format!("{end}. It wrote nothing"),
        said => format!("{end}. It wrote:\n{said}"),
    })
}

fn expected(successes: &[u8]) -> String {
    let codes: Vec<String> = successes.iter().take(8).map(u8::to_string).collect();
    format!("exit {}", codes.join(" or "))
}

/// Returns the most telling part of the output.
fn output(ran: &Finished) -> String {
    let texts = [&ran.stdout, &ran.stderr].map(|stream| clean(&stream.text()).trim().to_owned());
    let all = texts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n");
    cut(&all, TOLD)
}
