//! `session_complete`: claims, from inside a turn, that the work is done.

use serde::{Deserialize, Serialize};
use windlass_engine::{Command, Limits, SessionName, TaskId};

use crate::error::{CallerHint, Code, ToolError};
use crate::host::{ToolCall, ToolHost};
use crate::shape::{Field, Kind};
use crate::tool::{Effect, Tool};

pub(crate) const COMPLETE: Tool = Tool {
    name: "session_complete",
    description: "Inside a turn that Windlass runs: claim that its task is done. Gates judge it when the turn ends.",
    example: r#"{"result": "the login works"}"#,
    effect: Effect::Writes,
    fields: &[
        Field::optional("result", "", Kind::Text(Limits::RESULT)),
        Field::optional("artifacts", "", Kind::List(&Kind::Words(Limits::ARTIFACT), 0, Limits::ARTIFACTS)),
    ],
};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Complete {
    result: Option<String>,
    #[serde(default)]
    artifacts: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Claimed {
    session: SessionName,
    task_id: TaskId,
    /// Hint for the caller: nothing is completed yet.
    next: &'static str,
}

pub(crate) fn complete<G: ToolHost>(call: &mut ToolCall<'_, G>, given: Complete) -> Result<Claimed, ToolError> {
    let Some(session) = call.session()? else {
        return Err(ToolError::new(Code::Refused, "this is no turn of a session, so there is no session to complete")
            .hint(CallerHint::tool("iteration_complete", "ends the iterations that you have started"))
            .hint(CallerHint::command("windlass task complete", "completes a task by itself")));
    };
    let Some(id) = session.task else {
        return Err(ToolError::new(Code::Refused, format!("session `{}` has no task now", session.name))
            .hint("end the turn: the session goes on by itself"));
    };
    call.execute(&Command::CompleteTask { id, result: given.result, artifacts: given.artifacts })?;
    Ok(Claimed { session: session.name, task_id: id, next: "end your turn: the gates judge the claim then" })
}
