//! `session_complete`: claims, from inside a turn, that the work is done.

use serde::{Deserialize, Serialize};
use windlass_engine::{Command, EngineLimits, SessionName, TaskId};

use crate::error::{CallerHint, ToolError, ToolErrorCode};
use crate::host::{ToolCall, ToolHost};
use crate::schema::{FieldKind, ToolField};
use crate::tool::{ToolDefinition, ToolEffect};

pub(crate) const COMPLETE: ToolDefinition = ToolDefinition {
    name: "session_complete",
    description: "Inside a turn that Windlass runs: claim that its task is done. Gates judge it when the turn ends.",
    example: r#"{"result": "the login works"}"#,
    effect: ToolEffect::Writes,
    fields: &[
        ToolField::optional("result", "", FieldKind::Text(EngineLimits::RESULT_BYTES)),
        ToolField::optional(
            "artifacts",
            "",
            FieldKind::List(&FieldKind::Words(EngineLimits::ARTIFACT_BYTES), 0, EngineLimits::ARTIFACT_COUNT),
        ),
    ],
};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CompleteSessionInput {
    result: Option<String>,
    #[serde(default)]
    artifacts: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CompleteSessionOutput {
    session: SessionName,
    task_id: TaskId,
    /// Hint for the caller: nothing is completed yet.
    next: &'static str,
}

pub(crate) fn complete_session<G: ToolHost>(
    call: &mut ToolCall<'_, G>,
    given: CompleteSessionInput,
) -> Result<CompleteSessionOutput, ToolError> {
    let Some(session) = call.calling_session()? else {
        return Err(ToolError::new(
            ToolErrorCode::Refused,
            "this is not a turn of a session, so there is no session to complete",
        )
        .with_hint(CallerHint::tool("iteration_complete", "ends the iterations that you have started"))
        .with_hint(CallerHint::command("windlass task complete", "completes a task by itself")));
    };
    let Some(id) = session.task else {
        return Err(ToolError::new(ToolErrorCode::Refused, format!("session `{}` has no task now", session.name))
            .with_hint("end the turn: the session continues by itself"));
    };
    call.execute_command(&Command::CompleteTask { id, result: given.result, artifacts: given.artifacts })?;
    Ok(CompleteSessionOutput {
        session: session.name,
        task_id: id,
        next: "end your turn: the gates judge the claim then",
    })
}
