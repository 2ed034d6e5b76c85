//! The input of a hook: a JSON payload, environment variables, and a command with checked values filled in.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value, json};
use windlass_engine::{EffectId, HookPoint};
use windlass_process::{CaptureLimits, ProgramInvocation, ProgramSpec, SpillTarget, overlay_environment};

use crate::input_files::{HookInputFiles, fits_variable};
use crate::notice;
use crate::script::{HookScript, ScriptValues};

/// The time between the request to end and the kill.
const TERMINATION_GRACE: Duration = Duration::from_secs(2);
/// The bytes of each stream that are kept in memory. The agent gets at most `max_output` of them.
const MAX_CAPTURED_BYTES: usize = 256 * 1024;
/// The bytes of each stream that are kept in a file.
const MAX_SPILLED_BYTES: u64 = 64 * 1024 * 1024;

const CLAUDE_PROJECT_DIR: &str = "CLAUDE_PROJECT_DIR";

/// The input of one run of a hook.
#[derive(Debug, Clone, Copy)]
pub struct HookInput<'a> {
    /// The subject of the run, in the form of [`EventContext::to_values`](windlass_engine::EventContext::to_values).
    pub values: &'a Value,
    /// The event that enqueued the hook.
    pub event: &'a Value,
    /// The payload of an agent's own hook system, if that called.
    pub agent_payload: Option<&'a Map<String, Value>>,
    /// The pending effect of this run; a trial has none.
    pub effect: Option<EffectId>,
    pub project: &'a Path,
    /// The working directory: the project, or a worktree of it.
    pub directory: &'a Path,
    /// The inherited environment of hooks. `environment_variables` adds ours.
    pub environment: &'a [(OsString, OsString)],
}

impl<'a> HookInput<'a> {
    /// Returns a shell command that is ready to run.
    pub fn build_spec(&self, script: &HookScript, timeout: Duration, files: &HookInputFiles) -> ProgramSpec {
        self.build_program_spec(ProgramInvocation::Shell(self.fill_script(script, files).into()), timeout, files)
    }

    /// Returns the same for any program.
    pub fn build_program_spec(
        &self,
        invocation: ProgramInvocation,
        timeout: Duration,
        files: &HookInputFiles,
    ) -> ProgramSpec {
        let environment = overlay_environment(self.environment, self.environment_variables(files));
        ProgramSpec {
            stdin: self.build_payload().to_string().into_bytes(),
            timeout: Some(timeout),
            grace: TERMINATION_GRACE,
            capture: CaptureLimits {
                head: MAX_CAPTURED_BYTES / 2,
                tail: MAX_CAPTURED_BYTES / 2,
                spill: Some(SpillTarget { path: files.place().to_owned(), cap: MAX_SPILLED_BYTES }),
            },
            ..ProgramSpec::new(invocation, self.directory, environment)
        }
    }

    /// Returns the command as the shell gets it.
    pub fn fill_script(&self, script: &HookScript, files: &HookInputFiles) -> String {
        script.fill_values(&ScriptValues {
            session: self.text_at("/session"),
            iteration: &self.iteration_text(),
            task_id: self.text_at("/task_id"),
            task_content: files.task_content().input_channel(),
            error: files.error().input_channel(),
        })
    }

    /// Returns the variables that Windlass adds to the inherited environment.
    pub fn environment_variables(&self, files: &HookInputFiles) -> Vec<(&'static str, OsString)> {
        let short = |path: &str| Some(self.text_at(path)).filter(|text| fits_variable(text)).unwrap_or_default();
        let mut variables: Vec<(&str, OsString)> = vec![
            ("WINDLASS_SESSION", self.text_at("/session").into()),
            ("WINDLASS_ITERATION", self.iteration_text().into()),
            ("WINDLASS_GOAL", short("/goal").into()),
            ("WINDLASS_ENDING", self.text_at("/event/data/ending").into()),
            ("WINDLASS_REASON", short("/event/data/reason").into()),
            ("WINDLASS_TASK_ID", self.text_at("/task_id").into()),
            ("WINDLASS_TASK_TYPE", self.text_at("/task/type").into()),
            ("WINDLASS_EVENT", self.text_at("/event/type").into()),
            ("WINDLASS_POINT", self.text_at("/point").into()),
            ("WINDLASS_HOOK", self.text_at("/hook").into()),
            // A hook is no turn: its calls of `windlass` are not claims of the agent.
            ("WINDLASS_RUN", OsString::new()),
            ("WINDLASS_DEBT", self.effect.map(|effect| effect.to_string()).unwrap_or_default().into()),
            ("WINDLASS_PAYLOAD_FILE", files.payload().into()),
            ("WINDLASS_PROJECT_DIR", self.project.into()),
        ];
        // Hooks written for Claude Code find their files by this variable. If Claude Code itself called, its own value stays.
        if !self.environment.iter().any(|(name, _)| name == CLAUDE_PROJECT_DIR) {
            variables.push((CLAUDE_PROJECT_DIR, self.directory.into()));
        }
        for (value, file, carried) in [
            ("WINDLASS_TASK_CONTENT", "WINDLASS_TASK_CONTENT_FILE", files.task_content()),
            ("WINDLASS_ERROR", "WINDLASS_ERROR_FILE", files.error()),
        ] {
            variables.push((value, carried.variable_value().into()));
            variables.push((file, carried.file_path().map_or_else(OsString::new, Into::into)));
        }
        variables
    }

    /// Returns the payload: Windlass's own fields, and Claude Code's names for the same things. Fields of an agent's
    /// payload keep their values. A notice has fewer fields.
    pub fn build_payload(&self) -> Value {
        if self.text_at("/point") == HookPoint::Notify.name() {
            return notice::notice_payload(self.values, self.project);
        }
        let (project, directory) = (self.project.to_string_lossy(), self.directory.to_string_lossy());
        let mut payload = self.values.clone();
        // Hooks of a gate run in the worktree of the work that they judge.
        let in_worktree = !self.text_at("/branch_name").is_empty() && self.directory != self.project;
        let more = json!({
            "worktree": if in_worktree { &directory } else { "" },
            "project_dir": project,
            "projectDir": project,
            "event": self.event,
            "session_id": self.text_at("/session"),
            "transcript_path": "",
            "cwd": directory,
            "hook_event_name": to_pascal_case(self.text_at("/point")),
            "stop_hook_active": self.values["retries"].as_u64().is_some_and(|retries| retries > 0),
            "last_assistant_message": self.text_at("/output"),
        });
        if let (Value::Object(fields), Value::Object(more)) = (&mut payload, more) {
            fields.extend(more);
            if fields.get("tool_name").is_some_and(|name| name == "") {
                fields.remove("tool_name");
                fields.remove("tool_input");
                fields.remove("tool_response");
            }
            fields.extend(self.agent_payload.into_iter().flatten().map(|(name, value)| (name.clone(), value.clone())));
        }
        payload
    }

    /// Returns the text at a path of the values, or an empty text.
    pub(crate) fn text_at(&self, path: &str) -> &'a str {
        self.values.pointer(path).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns an empty text outside of iterations.
    fn iteration_text(&self) -> String {
        let number = self.values["iteration"].as_u64().filter(|number| *number > 0);
        number.map(|number| number.to_string()).unwrap_or_default()
    }
}

/// Converts `session_start` to Claude Code's spelling, `SessionStart`.
fn to_pascal_case(name: &str) -> String {
    let capital = |word: &str| {
        let mut letters = word.chars();
        letters.next().map(|first| first.to_ascii_uppercase().to_string() + letters.as_str()).unwrap_or_default()
    };
    name.split('_').map(capital).collect()
}
