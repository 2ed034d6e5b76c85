//! What a hook is given: a JSON payload, variables, and a command with its checked values filled in.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use windlass_engine::{DebtId, Record, Situation};
use windlass_process::{Capture, Environment, Invocation, Spec, Spill, overlay};

use crate::papers::{Papers, fits};
use crate::script::{Script, Values};

/// How long a hook may take to end once it is asked to.
const GRACE: Duration = Duration::from_secs(2);
/// What is kept in memory of each stream; the agent gets at most `max_output` of it.
const KEPT: usize = 256 * 1024;
/// The most that is kept of a stream in a file.
const SPILLED: u64 = 64 * 1024 * 1024;

/// One run of a hook.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    pub situation: Situation<'a>,
    /// The event that made it owed.
    pub event: &'a Record,
    pub debt: DebtId,
    pub project: &'a Path,
    /// The environment that hooks get; what is ours is added.
    pub environment: &'a [(OsString, OsString)],
}

impl Call<'_> {
    /// A command that is ready to be run.
    pub fn spec(&self, script: &Script, timeout: Duration, papers: &Papers) -> Spec {
        Spec {
            invocation: Invocation::Shell(self.filled(script, papers).into()),
            directory: self.project.to_owned(),
            environment: self.variables(papers),
            stdin: self.payload().to_string().into_bytes(),
            timeout: Some(timeout),
            grace: GRACE,
            capture: Capture {
                head: KEPT / 2,
                tail: KEPT / 2,
                spill: Some(Spill { path: papers.place().to_owned(), cap: SPILLED }),
            },
        }
    }

    /// The command as the shell gets it.
    pub fn filled(&self, script: &Script, papers: &Papers) -> String {
        script.fill(&Values {
            session: self.situation.session_name(),
            iteration: &self.situation.iteration().to_string(),
            task_id: &self.task_id(),
            task_content: papers.task_content().carrier(),
            error: papers.error().carrier(),
        })
    }

    fn task_id(&self) -> String {
        self.situation.task.map(|task| task.id.to_string()).unwrap_or_default()
    }

    /// What the program finds in its environment beside what we have found in ours.
    pub fn told(&self, papers: &Papers) -> Vec<(&'static str, OsString)> {
        let situation = &self.situation;
        let kind = situation.task.and_then(|task| task.kind.as_ref()).map_or("", |kind| kind.as_str());
        let carried = [
            ("WINDLASS_TASK_CONTENT", "WINDLASS_TASK_CONTENT_FILE", papers.task_content()),
            ("WINDLASS_ERROR", "WINDLASS_ERROR_FILE", papers.error()),
        ];
        let carried = carried.into_iter().flat_map(|(value, file, carried)| {
            [(value, carried.value().into()), (file, carried.file().map_or_else(OsString::new, Into::into))]
        });
        let plain: [(&str, OsString); 11] = [
            ("WINDLASS_SESSION", situation.session_name().into()),
            ("WINDLASS_ITERATION", some(situation.iteration()).into()),
            ("WINDLASS_TASK_ID", self.task_id().into()),
            ("WINDLASS_TASK_TYPE", kind.into()),
            ("WINDLASS_EVENT", self.event.kind().name().into()),
            ("WINDLASS_POINT", situation.point.into()),
            ("WINDLASS_HOOK", situation.hook.into()),
            // A hook is no turn: what it does through `windlass` is not what the agent claims.
            ("WINDLASS_RUN", OsString::new()),
            ("WINDLASS_DEBT", self.debt.to_string().into()),
            ("WINDLASS_PAYLOAD_FILE", papers.payload().into()),
            ("WINDLASS_PROJECT_DIR", self.project.into()),
        ];
        let goal = if fits(situation.goal()) { situation.goal().into() } else { OsString::new() };
        plain.into_iter().chain(carried).chain([("WINDLASS_GOAL", goal)]).collect()
    }

    fn variables(&self, papers: &Papers) -> Environment {
        overlay(self.environment, self.told(papers))
    }

    /// Our own names, and Claude Code's for the same things.
    pub fn payload(&self) -> Value {
        let Situation { point, session, output, .. } = self.situation;
        let directory = self.project.to_string_lossy();
        let mut payload = self.situation.values();
        let more = json!({
            "project_dir": directory,
            "projectDir": directory,
            "event": self.event,
            "session_id": self.situation.session_name(),
            "transcript_path": "",
            "cwd": directory,
            "hook_event_name": pascal_case(point),
            "stop_hook_active": session.is_some_and(|session| session.retries > 0),
            "last_assistant_message": output,
        });
        let (Value::Object(fields), Value::Object(more)) = (&mut payload, more) else { return payload };
        fields.extend(more);
        for none in ["tool_name", "tool_input"] {
            fields.remove(none);
        }
        payload
    }
}

/// A number that is there.
fn some(number: u32) -> String {
    if number == 0 { String::new() } else { number.to_string() }
}

/// `session_start` as Claude Code writes it: `SessionStart`.
fn pascal_case(name: &str) -> String {
    let capital = |word: &str| {
        let mut letters = word.chars();
        letters.next().map(|first| first.to_ascii_uppercase().to_string() + letters.as_str()).unwrap_or_default()
    };
    name.split('_').map(capital).collect()
}
