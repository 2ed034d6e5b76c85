//! A stop hook that is a command: what it is given, and what its end means.
//!
//! | end | decision |
//! | --- | --- |
//! | exit 0, an answer with `action` | as it says |
//! | exit 0, another answer, or none | complete, if it does not say no |
//! | exit 2, or an answer that says no | continue, with what it wrote |
//! | anything else | it has failed, which asks for a person |

use std::time::Duration;

use serde_json::{Map, Value};
use windlass_engine::{AgentContext, HookOutcome, RuleAction, StopRuling};
use windlass_hooks::{Hook, Kind, Role, Said, answer, clean, gist, said};
use windlass_process::{Capture, Control, Exit, Invocation, Spec, overlay, run};

use super::register::supplied;
use crate::task;
use crate::validation::Workshop;

const TIMEOUT: Duration = Duration::from_mins(1);
const GRACE: Duration = Duration::from_secs(2);
/// What is kept in memory of each stream.
const KEPT: usize = 256 * 1024;
/// What the agent is told of it.
const TOLD: usize = 16 * 1024;

/// Asks a command.
pub(crate) fn ask(
    command: &str,
    context: &AgentContext,
    workshop: Workshop<'_>,
    control: &Control,
) -> Result<StopRuling, String> {
    let rule = supplied(command);
    workshop.permission.supplied(&rule).map_err(|refused| format!("{refused}; {}", refused.remedy))?;
    let roster = workshop.roster.ok_or("no program can be started here")?;
    let told = [
        ("WINDLASS_TASK_ID", context.task_id.to_string().into()),
        ("WINDLASS_ITERATION", context.iteration.to_string().into()),
        ("WINDLASS_PROJECT_DIR", workshop.directory.into()),
    ];
    let spec = Spec {
        invocation: Invocation::Shell(command.to_owned().into()),
        directory: workshop.directory.to_owned(),
        environment: overlay(workshop.environment, told.into_iter().collect()),
        stdin: context.values().to_string().into_bytes(),
        timeout: Some(TIMEOUT),
        silence: None,
        grace: GRACE,
        capture: Capture { head: KEPT / 2, tail: KEPT / 2, spill: None },
    };
    let ran = run(&spec, roster, control, &mut |_, _| {}).map(|ran| workshop.mask.run(ran));
    let said = match &ran {
        Ok(ran) if ran.exit == Exit::Code(0) => said::parse(&ran.stdout.text()).ok().flatten(),
        _ => None,
    };
    let hook = Hook {
        name: "command".to_owned(),
        kind: Kind::Rules(Vec::new()),
        timeout: TIMEOUT,
        pipes: true,
        max_output: TOLD,
        retry: None,
        feedback: None,
    };
    let report = answer(&hook, Role::Stop, &ran, &Value::Null);
    let last = ran.ok().and_then(|ran| gist(&ran)).map(|line| format!(": {line}")).unwrap_or_default();
    ruling(report.outcome, report.message, report.feedback, said.unwrap_or_default())
        .map_err(|error| format!("{error}{last}"))
}

fn ruling(
    outcome: HookOutcome,
    message: Option<String>,
    feedback: Option<String>,
    said: Said,
) -> Result<StopRuling, String> {
    let (action, usual) = match outcome {
        HookOutcome::Success | HookOutcome::Skip => (RuleAction::Complete, "the command has nothing against it"),
        HookOutcome::Block | HookOutcome::Continue => (RuleAction::Continue, "the command says no"),
        HookOutcome::Escalate => (RuleAction::Escalate, "the command asks for a person"),
        HookOutcome::Failure | HookOutcome::TimedOut | HookOutcome::Cancelled | HookOutcome::Interrupted => {
            return Err(message.unwrap_or_else(|| "it did not end well".to_owned()));
        }
    };
    let feedback = feedback.filter(|_| action == RuleAction::Continue);
    let reason =
        said.reason.or(message).or_else(|| feedback.as_deref().map(task::first_line)).map(|reason| clean(&reason));
    Ok(StopRuling {
        action,
        reason: reason.filter(|reason| !reason.trim().is_empty()).unwrap_or_else(|| usual.to_owned()),
        next_prompt: said.next_prompt.or(feedback).map(|prompt| clean(&prompt)),
        checkpoint_data: Some(said.checkpoint_data).filter(|data| !data.is_empty()).map(Value::Object),
        metadata: Map::from_iter(said.metadata),
    })
}
