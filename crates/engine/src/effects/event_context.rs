//! The context of a hook run, as values for conditions and payloads.
//!
//! Invariant: every name always exists, with an empty value where it does not apply, so that a condition never fails over a
//! field that a point does not have.

use serde_json::{Value, json};

use crate::bridge::BridgeCall;
use crate::delivery::Workspace;
use crate::effects::hook_point::HookPoint;
use crate::log::event::{Event, EventEnvelope, payload};
use crate::log::id::TaskId;
use crate::session::promise::Promise;
use crate::session::{Session, SessionPhase};
use crate::task::Task;

/// An event with the context that its hooks may use.
#[derive(Debug, Clone, Copy)]
pub struct EventContext<'a> {
    pub point: Option<&'a HookPoint>,
    pub hook: &'a str,
    pub envelope: &'a EventEnvelope,
    pub session: Option<&'a Session>,
    /// The event's task, else the session's.
    pub task: Option<&'a Task>,
    /// The agent's last output.
    pub output: Option<&'a str>,
    /// The promise in that output.
    pub promise: Option<Promise>,
    /// The call of an agent's own hook system.
    pub call: Option<&'a BridgeCall>,
    /// The directory of the project.
    pub project: &'a str,
}

impl EventContext<'_> {
    /// Returns every name with its empty value: the start of a trial run.
    pub fn empty_values() -> Value {
        let mut values = Self::bare_values(None, payload::TaskReady {}.into(), None);
        values["event"]["type"] = json!("");
        values
    }

    /// Returns the values of a call before its hooks have names: the start of a trial run of a call.
    pub fn values_of_call(call: &BridgeCall) -> Value {
        Self::bare_values(Some(&call.point), call.build_called_event().into(), Some(call))
    }

    /// Returns the context of an event alone, with the agent's output in it and nothing around it.
    pub fn from_envelope(envelope: &EventEnvelope) -> EventContext<'_> {
        let output = match &envelope.event {
            Event::TurnFinished(finished) => Some(finished.output.as_str()),
            _ => None,
        };
        let (session, task, promise, call) = (None, None, None, None);
        EventContext { point: None, hook: "", envelope, session, task, output, promise, call, project: "" }
    }

    fn bare_values(point: Option<&HookPoint>, event: Event, call: Option<&BridgeCall>) -> Value {
        EventContext { point, call, ..EventContext::from_envelope(&EventEnvelope::with_default_metadata(event)) }
            .to_values()
    }

    pub fn to_values(&self) -> Value {
        let task_id = self.task.map(|task| task.id.to_string()).unwrap_or_default();
        json!({
            "point": self.point.map_or("", HookPoint::name),
            "hook": self.hook,
            "session": self.session_name(),
            "iteration": self.iteration(),
            "retries": self.retries(),
            "max_retries": self.max_retries(),
            "hook_retries": self.hook_retries(),
            "goal": self.goal(),
            "agent": self.agent(),
            "conversation": self.call.map_or("", |call| &call.caller.conversation),
            "error": self.error().unwrap_or_default(),
            "output": self.output(),
            "prompt": self.call.map_or("", |call| &call.prompt),
            "promise": self.promise.map_or_else(|| json!(""), |promise| json!(promise)),
            "task_id": task_id,
            "taskId": task_id,
            "task_content": self.task_content(),
            "task": task_values(self.task),
            "task_title": self.task.map_or("", |task| &task.goal),
            // Tasks are not in files.
            "task_path": "",
            "task_type": self.task.and_then(|task| task.kind.as_ref()).map_or("", |kind| kind.as_str()),
            "branch_name": self.workspace().map_or("", |workspace| &workspace.branch),
            "base_branch": self.workspace().map_or("", |workspace| &workspace.base),
            "worktree": "",
            "agent_name": self.agent(),
            "commits_count": self.commits_count(),
            "extra": self.extra_values(),
            "event": self.event_values(),
            "tool_name": self.call.and_then(|call| call.tool.as_deref()).unwrap_or_default(),
            "tool_input": self.call.map_or_else(|| json!({}), |call| call.tool_input.clone()),
            "tool_response": self.call.map_or_else(|| json!({}), |call| call.tool_response.clone()),
            "project_dir": self.project,
        })
    }

    /// Returns the worktree of the task.
    fn workspace(&self) -> Option<&Workspace> {
        self.task.and_then(|task| task.workspace.as_ref())
    }

    /// Returns how many commits are being submitted or merged, else 0.
    fn commits_count(&self) -> u32 {
        let work = match (&self.envelope.event, self.session.map(|session| &session.phase)) {
            (Event::SubmissionStarted(started), _) => started.work.as_ref(),
            (_, Some(SessionPhase::Pipeline(pipeline))) => pipeline.work.as_ref(),
            _ => None,
        };
        work.map_or(0, |work| work.commits)
    }

    /// Returns further values about submission and merge.
    fn extra_values(&self) -> Value {
        let change = self.task.and_then(|task| task.change.as_ref());
        let url = change.and_then(|change| change.at.url.as_deref());
        let stacked_on: &[TaskId] = self.workspace().map_or(&[], |workspace| &workspace.stacked_on);
        json!({
            "remediations": self.session.map_or(0, |session| session.remediations),
            "rejections": self.task.map_or(0, |task| task.rejections),
            "change_url": url.unwrap_or_default(),
            "change_number": change.and_then(|change| change.at.number),
            "stacked_on": stacked_on,
        })
    }

    fn retries(&self) -> u32 {
        match (&self.envelope.event, self.session) {
            (Event::BridgeCalled(called), _) => called.retries,
            (_, session) => session.map_or(0, |session| session.retries),
        }
    }

    fn max_retries(&self) -> u32 {
        let called = self.call.map(|call| call.max_retries);
        called.or(self.session.map(|session| session.terms.max_hook_retries)).unwrap_or(0)
    }

    /// Returns how often this hook has sent the agent back in this iteration.
    fn hook_retries(&self) -> u32 {
        let session = self.session.filter(|_| self.call.is_none());
        session.and_then(|session| session.sent_back.get(self.hook)).copied().unwrap_or(0)
    }

    fn agent(&self) -> &str {
        let called = self.call.map(|call| call.caller.agent.as_str());
        self.session.map(|session| session.agent.as_str()).or(called).unwrap_or_default()
    }

    fn output(&self) -> &str {
        self.output.or(self.call.map(|call| call.output.as_str())).unwrap_or_default()
    }

    pub fn session_name(&self) -> &str {
        self.envelope.session.as_ref().map_or("", |name| name.as_str())
    }

    /// Returns 0 outside every iteration.
    pub fn iteration(&self) -> u32 {
        self.envelope.iteration.unwrap_or(0)
    }

    /// Returns the session's goal, else the task's.
    pub fn goal(&self) -> &str {
        let session = self.session.and_then(|session| session.goal.as_deref());
        session.or(self.task.map(|task| task.goal.as_str())).unwrap_or_default()
    }

    /// Returns the task's content; of a session that works on a goal, the goal.
    pub fn task_content(&self) -> String {
        self.task.map_or_else(|| self.goal().to_owned(), Task::goal_and_body)
    }

    /// Returns the error, if the event has one.
    pub fn error(&self) -> Option<&str> {
        match &self.envelope.event {
            Event::IterationFailed(failed) => Some(&failed.error),
            Event::DeliveryFailed(failed) => Some(&failed.error),
            Event::HookError(failed) => Some(&failed.error),
            Event::ActionError(failed) => Some(&failed.error),
            Event::TaskFailed(failed) => Some(&failed.reason),
            _ => None,
        }
    }

    fn event_values(&self) -> Value {
        let EventEnvelope { timestamp, node, session, iteration, event, metadata } = self.envelope;
        json!({
            "type": event.shown_type_name(),
            "nodeId": node,
            "node_id": node,
            "timestamp": timestamp,
            "session": session.as_ref().map_or("", |name| name.as_str()),
            "iteration": iteration.unwrap_or(0),
            "data": hook_event_data(event),
            "triggeredBy": metadata.triggered_by,
            "triggered_by": metadata.triggered_by,
            "depth": metadata.depth,
            "metadata": {"triggeredBy": metadata.triggered_by, "depth": metadata.depth},
        })
    }
}

/// Returns the data of an event as hooks get it: the `result` of a completed task always exists.
pub fn hook_event_data(event: &Event) -> Value {
    let mut data = event.shown_data();
    if matches!(event, Event::TaskCompleted(completed) if completed.result.is_none()) {
        data["result"] = json!("");
    }
    data
}

/// Returns a task as values; without one, every name with its empty value.
pub(crate) fn task_values(task: Option<&Task>) -> Value {
    let Some(task) = task else {
        return json!({
            "id": "", "goal": "", "body": "", "content": "", "labels": [], "deliverables": [], "priority": null,
            "type": "", "state": "",
        });
    };
    json!({
        "id": task.id,
        "goal": task.goal,
        "body": task.body.as_deref().unwrap_or_default(),
        "content": task.goal_and_body(),
        "labels": task.labels,
        "deliverables": task.deliverables,
        "priority": task.priority,
        "type": task.kind.as_ref().map_or("", |kind| kind.as_str()),
        "state": task.state,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_of_a_completed_task_is_always_there() {
        let data = |result: Option<&str>| {
            let completed = payload::TaskCompleted { result: result.map(str::to_owned), artifacts: vec![] };
            EventContext::bare_values(Some(&HookPoint::OnTaskComplete), completed.into(), None)["event"]["data"].clone()
        };
        assert_eq!(data(None), json!({"result": "", "artifacts": []}));
        assert_eq!(data(Some("done")), json!({"result": "done", "artifacts": []}));
    }
}
