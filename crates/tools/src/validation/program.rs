//! Programs that have to end well: commands of a rule, and validators of the configuration.

use std::ffi::OsString;
use std::time::Duration;

use serde_json::Value;
use windlass_engine::in_words;
use windlass_engine::validation::{CommandRule, RuleKind, ValidationRule};
use windlass_hooks::{clean, cut};
use windlass_process::{Capture, Control, Exit, Finished, Invocation, Roster, Spec, overlay, run};

use super::{Finding, Matter, Workshop, quoted};

/// How long a program may take to end once it is asked to.
const GRACE: Duration = Duration::from_secs(2);
/// What is kept in memory of each stream.
const KEPT: usize = 256 * 1024;
/// What a result tells of it.
const TOLD: usize = 4 * 1024;

pub fn look(rule: &ValidationRule, matter: Matter<'_>, workshop: Workshop<'_>, control: &Control) -> Finding {
    let command = match workshop.permission.program(rule) {
        Ok(Some(command)) => command,
        Ok(None) => return Finding::failed("this rule runs no program"),
        Err(refused) => return Finding::failed(format!("{refused}: {}", refused.remedy)),
    };
    let Some(roster) = workshop.roster else {
        return Finding::failed("no program can be started here: validate where Windlass runs programs");
    };
    let name = match &rule.kind {
        RuleKind::Custom(custom) => format!("the validator {}", quoted(&custom.validator_id)),
        _ => quoted(&command.command),
    };
    let directory = match &command.working_directory {
        None => workshop.directory.to_owned(),
        Some(below) => workshop.directory.join(below),
    };
    if !directory.is_dir() {
        let below = command.working_directory.as_deref().unwrap_or(".");
        return Finding::failed(format!(
            "{name} was not run: there is no directory {} in the project; make it, or correct `workingDirectory`",
            quoted(below)
        ));
    }
    let spec = Spec {
        invocation: Invocation::Shell(command.command.clone().into()),
        directory,
        environment: overlay(workshop.environment, told(rule, matter, workshop)),
        stdin: input(rule, matter),
        timeout: Some(command.timeout()),
        silence: None,
        grace: GRACE,
        capture: Capture { head: KEPT / 2, tail: KEPT / 2, spill: None },
    };
    finding(&name, command, &spec, workshop, (roster, control))
}

/// What a program finds in its environment. A validator is no turn: what it does through `windlass` is not what the agent
/// claims. What the agent itself has run, is.
fn told(rule: &ValidationRule, matter: Matter<'_>, workshop: Workshop<'_>) -> Vec<(&'static str, OsString)> {
    let text = |name: &str| match &matter.context[name] {
        Value::String(text) if !text.contains('\0') => text.into(),
        Value::Number(number) => number.to_string().into(),
        _ => OsString::new(),
    };
    let mut told = vec![
        ("WINDLASS_RULE", rule.name.replace('\0', "").into()),
        ("WINDLASS_TASK_ID", text("taskId")),
        ("WINDLASS_ITERATION", text("iteration")),
        ("WINDLASS_PROJECT_DIR", workshop.directory.into()),
    ];
    if matches!(rule.kind, RuleKind::Custom(_)) {
        told.push(("WINDLASS_RUN", OsString::new()));
    }
    told
}

/// A validator is told what is judged. A command is run as it would be in a shell, without anything to read.
fn input(rule: &ValidationRule, matter: Matter<'_>) -> Vec<u8> {
    match rule.kind {
        RuleKind::Custom(_) => matter.context.to_string().into_bytes(),
        _ => Vec::new(),
    }
}

fn finding(
    name: &str,
    command: &CommandRule,
    spec: &Spec,
    workshop: Workshop<'_>,
    (roster, control): (&Roster, &Control),
) -> Finding {
    let ran = match run(spec, roster, control, &mut |_, _| {}) {
        // Before anything is cut out of it: half a secret is one too.
        Ok(ran) => workshop.mask.run(ran),
        Err(error) => {
            let why = std::error::Error::source(&error).map(|why| format!(": {why}")).unwrap_or_default();
            return Finding::failed(format!("{name} was not run: {error}{why}; correct the command"));
        }
    };
    let took = in_words(Duration::from_millis(u64::try_from(ran.took.as_millis()).unwrap_or(u64::MAX)));
    let limit = in_words(command.timeout());
    let successes = command.successes();
    let end = match ran.exit {
        Exit::Code(code) if u8::try_from(code).is_ok_and(|code| successes.contains(&code)) => {
            return Finding::passed(format!("{name} ended with exit {code} after {took}"));
        }
        Exit::Code(code) => format!("{name} ended with exit {code} after {took}; {} would pass", expected(&successes)),
        Exit::Signal(signal) => format!("{name} was ended by signal {signal} after {took}"),
        Exit::TimedOut | Exit::Silent => {
            format!(
                "{name} was ended after {limit}, its timeout: make it faster, see why it hangs, or give it more time"
            )
        }
        Exit::Cancelled => format!("{name} was cancelled"),
        Exit::Lost => format!("nobody knows how {name} ended: validate again"),
    };
    Finding::failed(match output(&ran) {
        said if said.is_empty() => format!("{end}. It wrote nothing"),
        said => format!("{end}. It wrote:\n{said}"),
    })
}

fn expected(successes: &[u8]) -> String {
    let codes: Vec<String> = successes.iter().take(8).map(u8::to_string).collect();
    format!("exit {}", codes.join(" or "))
}

/// What it wrote, as far as it tells what is wrong.
fn output(ran: &Finished) -> String {
    let texts = [&ran.stdout, &ran.stderr].map(|stream| clean(&stream.text()).trim().to_owned());
    let all = texts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n");
    cut(&all, TOLD)
}
