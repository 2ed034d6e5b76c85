//! What a hook is given: a JSON payload, variables, and a command with its checked values filled in.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use windlass_engine::{Record, Session};
use windlass_process::{Capture, Environment, Invocation, Spec, Spill, overlay};

use crate::{Carrier, Hook, Script, Values};

/// How long a hook may take to end once it is asked to.
const GRACE: Duration = Duration::from_secs(2);
/// What is kept in memory of each stream; the agent gets at most `max_output` of it.
const KEPT: usize = 256 * 1024;
/// The most that is kept of a stream in a file.
const SPILLED: u64 = 64 * 1024 * 1024;

/// One run of a hook.
#[derive(Debug)]
pub struct Call<'a> {
    pub point: &'a str,
    pub session: &'a Session,
    /// The event that made it owed.
    pub event: &'a Record,
    /// What the agent said last.
    pub last_output: Option<&'a str>,
    pub project: &'a Path,
    /// The environment that hooks get; what is ours is added.
    pub environment: &'a [(OsString, OsString)],
    /// Where output goes that is too long for memory.
    pub spill: &'a Path,
}

impl Call<'_> {
    pub fn spec(&self, hook: &Hook) -> Spec {
        Spec {
            invocation: Invocation::Shell(self.filled(&hook.command).into()),
            directory: self.project.to_owned(),
            environment: self.variables(hook),
            stdin: self.payload(hook).to_string().into_bytes(),
            timeout: Some(hook.timeout),
            grace: GRACE,
            capture: Capture {
                head: KEPT / 2,
                tail: KEPT / 2,
                spill: Some(Spill { path: self.spill.to_owned(), cap: SPILLED }),
            },
        }
    }

    fn filled(&self, command: &Script) -> String {
        let task_id = self.session.task.map(|task| task.to_string()).unwrap_or_default();
        command.fill(&Values {
            session: self.session.name.as_str(),
            iteration: &self.session.iteration.to_string(),
            task_id: &task_id,
            task_content: Carrier::Variable,
            error: Carrier::Variable,
        })
    }

    fn variables(&self, hook: &Hook) -> Environment {
        let session = self.session;
        let iteration = session.iteration.to_string();
        let task = session.task.map(|task| task.to_string()).unwrap_or_default();
        let goal = session.goal.clone().unwrap_or_default();
        let told: [(&str, OsString); 12] = [
            ("WINDLASS_SESSION", session.name.as_str().into()),
            ("WINDLASS_ITERATION", iteration.into()),
            ("WINDLASS_TASK_ID", task.into()),
            ("WINDLASS_TASK_CONTENT", goal.clone().into()),
            ("WINDLASS_GOAL", goal.into()),
            ("WINDLASS_ERROR", OsString::new()),
            ("WINDLASS_EVENT", self.event.kind().name().into()),
            ("WINDLASS_POINT", self.point.into()),
            ("WINDLASS_HOOK", hook.name.clone().into()),
            // A hook is no turn: what it does through `windlass` is not what the agent claims.
            ("WINDLASS_RUN", OsString::new()),
            ("WINDLASS_PAYLOAD_FILE", OsString::new()),
            ("WINDLASS_PROJECT_DIR", self.project.into()),
        ];
        overlay(self.environment, told)
    }

    /// Our own names, and Claude Code's for the same things.
    fn payload(&self, hook: &Hook) -> Value {
        let session = self.session;
        let directory = self.project.to_string_lossy();
        json!({
            "hook": hook.name,
            "point": self.point,
            "session": session.name,
            "iteration": session.iteration,
            "goal": session.goal,
            "taskId": session.task,
            "retries": session.retries,
            "projectDir": directory,
            "event": self.event,
            "session_id": session.name,
            "cwd": directory,
            "hook_event_name": pascal_case(self.point),
            "stop_hook_active": session.retries > 0,
            "last_assistant_message": self.last_output,
        })
    }
}

/// `session_start` as Claude Code writes it: `SessionStart`.
fn pascal_case(name: &str) -> String {
    let capital = |word: &str| {
        let mut letters = word.chars();
        letters.next().map(|first| first.to_ascii_uppercase().to_string() + letters.as_str()).unwrap_or_default()
    };
    name.split('_').map(capital).collect()
}
