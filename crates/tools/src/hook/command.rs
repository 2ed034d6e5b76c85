//! Stop hooks that are commands: their input, and the meaning of their exit.
//!
//! | exit | decision |
//! | --- | --- |
//! | exit 0, a response with `action` | that action |
//! | exit 0, another response, or none | complete, unless it blocks |
//! | exit 2, or a response that blocks | continue, with its output |
//! | the program or script does not exist | failure, which asks for a person |
//! | anything else | failure, which asks for a person |

use std::time::Duration;

use serde_json::Value;
use windlass_engine::{AgentContext, HookOutcome, HookReport, RuleAction, StopRuling};
use windlass_hooks::{
    HookResponse, HookRole, PipeOutput, RunnableHook, RunnableKind, build_report, clean_output, response,
    summarize_output,
};
use windlass_process::{ProgramExit, ProgramOutcome, ProgramStartError, RunControl};

use super::register::command_rule;
use crate::task;
use crate::validation::{ProgramNotRun, ProgramRequest, ValidatorEnv};

/// Maximum size of its output in a prompt.
const MAX_FEEDBACK_BYTES: usize = 16 * 1024;

/// Runs a command, and returns its ruling.
pub(crate) fn run_command_hook(
    command: &str,
    context: &AgentContext,
    workshop: &ValidatorEnv<'_>,
    control: &RunControl,
) -> Result<StopRuling, String> {
    let rule = command_rule(command);
    workshop.permission.permit_supplied_command(&rule).map_err(|refused| format!("{refused}; {}", refused.remedy))?;
    let variables = vec![
        ("WINDLASS_TASK_ID", context.task_id.map(|id| id.to_string()).unwrap_or_default().into()),
        ("WINDLASS_ITERATION", context.iteration.to_string().into()),
    ];
    let order = ProgramRequest { command: &rule, variables, input: context.to_values().to_string().into_bytes() };
    let ran = match workshop.run_program(order, control) {
        Ok(ran) => Ok(ran),
        Err(ProgramNotRun::NotStarted(error)) => Err(error),
        Err(error @ (ProgramNotRun::NoDirectory(_) | ProgramNotRun::Outside(_) | ProgramNotRun::Broken(_))) => {
            return Err(error.to_string());
        }
    };
    let last = ran.as_ref().ok().and_then(summarize_output).map(|line| format!(": {line}")).unwrap_or_default();
    interpret_exit(rule.timeout(), &ran).map_err(|error| format!("{error}{last}"))
}

/// Interprets the exit of a command.
fn interpret_exit(timeout: Duration, ran: &Result<ProgramOutcome, ProgramStartError>) -> Result<StopRuling, String> {
    let said = match ran {
        Ok(ran) if ran.exit == ProgramExit::Code(0) => {
            response::parse_response(&ran.stdout.to_text_lossy()).ok().flatten()
        }
        _ => None,
    };
    let hook = RunnableHook {
        name: "command".to_owned(),
        kind: RunnableKind::Rules(Vec::new()),
        timeout,
        pipes: Some(PipeOutput::Always),
        max_output: MAX_FEEDBACK_BYTES,
        retry: None,
        feedback: None,
    };
    ruling_from_report(build_report(&hook, HookRole::Stop, ran, &Value::Null), said.unwrap_or_default())
}

fn ruling_from_report(report: HookReport, said: HookResponse) -> Result<StopRuling, String> {
    let HookReport { outcome, message, feedback, .. } = report;
    let (action, usual) = match outcome {
        HookOutcome::Success | HookOutcome::Skip => (RuleAction::Complete, "the command agrees"),
        HookOutcome::Block | HookOutcome::Continue | HookOutcome::Again => {
            (RuleAction::Continue, "the command says no")
        }
        HookOutcome::Escalate => (RuleAction::Escalate, "the command asks for a person"),
        HookOutcome::Failure | HookOutcome::TimedOut | HookOutcome::Cancelled | HookOutcome::Interrupted => {
            return Err(message.unwrap_or_else(|| "it failed".to_owned()));
        }
    };
    let feedback = feedback.filter(|_| action == RuleAction::Continue);
    let reason = said
        .reason
        .or(message)
        .or_else(|| feedback.as_deref().map(task::first_line))
        .map(|reason| clean_output(&reason));
    Ok(StopRuling {
        action,
        reason: reason.filter(|reason| !reason.trim().is_empty()).unwrap_or_else(|| usual.to_owned()),
        next_prompt: said.next_prompt.or(feedback).map(|prompt| clean_output(&prompt)),
        checkpoint_data: Some(said.checkpoint_data).filter(|data| !data.is_empty()).map(Value::Object),
        metadata: said.metadata,
    })
}
