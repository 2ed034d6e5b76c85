//! What a hook is given: a JSON payload, variables, and a command with its checked values filled in.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value, json};
use windlass_engine::{EffectId, HookPoint};
use windlass_process::{Capture, Invocation, Spec, Spill, overlay};

use crate::notice;
use crate::papers::{Papers, fits};
use crate::script::{Script, Values};

/// How long a hook may take to end once it is asked to.
const GRACE: Duration = Duration::from_secs(2);
/// What is kept in memory of each stream; the agent gets at most `max_output` of it.
const KEPT: usize = 256 * 1024;
/// The most that is kept of a stream in a file.
const SPILLED: u64 = 64 * 1024 * 1024;

const CLAUDE_PROJECT_DIR: &str = "CLAUDE_PROJECT_DIR";

/// What one run of a hook is given.
#[derive(Debug, Clone, Copy)]
pub struct HookInput<'a> {
    /// What it is run for, as [`Situation::values`](windlass_engine::Situation::values) names it.
    pub values: &'a Value,
    /// The event that made it owed.
    pub event: &'a Value,
    /// What an agent's own hook system said, where it called.
    pub agent_payload: Option<&'a Map<String, Value>>,
    /// What it is owed under; a trial is owed by nobody.
    pub effect: Option<EffectId>,
    pub project: &'a Path,
    /// Where it works: the project, or a worktree of it.
    pub directory: &'a Path,
    /// The environment that hooks get; what is ours is added.
    pub environment: &'a [(OsString, OsString)],
}

impl<'a> HookInput<'a> {
    /// Returns a command that is ready to be run.
    pub fn spec(&self, script: &Script, timeout: Duration, papers: &Papers) -> Spec {
        self.spec_of(Invocation::Shell(self.filled(script, papers).into()), timeout, papers)
    }

    /// Returns the same for any program.
    pub fn spec_of(&self, invocation: Invocation, timeout: Duration, papers: &Papers) -> Spec {
        Spec {
            invocation,
            directory: self.directory.to_owned(),
            environment: overlay(self.environment, self.told(papers)),
            stdin: self.payload().to_string().into_bytes(),
            timeout: Some(timeout),
            silence: None,
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
            session: self.text("/session"),
            iteration: &self.iteration(),
            task_id: self.text("/task_id"),
            task_content: papers.task_content().carrier(),
            error: papers.error().carrier(),
        })
    }

    /// What the program finds in its environment beside what we have found in ours.
    pub fn told(&self, papers: &Papers) -> Vec<(&'static str, OsString)> {
        let short = |path: &str| Some(self.text(path)).filter(|text| fits(text)).unwrap_or_default();
        let mut told: Vec<(&str, OsString)> = vec![
            ("WINDLASS_SESSION", self.text("/session").into()),
            ("WINDLASS_ITERATION", self.iteration().into()),
            ("WINDLASS_GOAL", short("/goal").into()),
            ("WINDLASS_ENDING", self.text("/event/data/ending").into()),
            ("WINDLASS_REASON", short("/event/data/reason").into()),
            ("WINDLASS_TASK_ID", self.text("/task_id").into()),
            ("WINDLASS_TASK_TYPE", self.text("/task/type").into()),
            ("WINDLASS_EVENT", self.text("/event/type").into()),
            ("WINDLASS_POINT", self.text("/point").into()),
            ("WINDLASS_HOOK", self.text("/hook").into()),
            // A hook is no turn: what it does through `windlass` is not what the agent claims.
            ("WINDLASS_RUN", OsString::new()),
            ("WINDLASS_DEBT", self.effect.map(|effect| effect.to_string()).unwrap_or_default().into()),
            ("WINDLASS_PAYLOAD_FILE", papers.payload().into()),
            ("WINDLASS_PROJECT_DIR", self.project.into()),
        ];
        // Hooks that were written for Claude Code find their files by it. Where Claude Code calls, it has its own word.
        if !self.environment.iter().any(|(name, _)| name == CLAUDE_PROJECT_DIR) {
            told.push((CLAUDE_PROJECT_DIR, self.directory.into()));
        }
        for (value, file, carried) in [
            ("WINDLASS_TASK_CONTENT", "WINDLASS_TASK_CONTENT_FILE", papers.task_content()),
            ("WINDLASS_ERROR", "WINDLASS_ERROR_FILE", papers.error()),
        ] {
            told.push((value, carried.value().into()));
            told.push((file, carried.file().map_or_else(OsString::new, Into::into)));
        }
        told
    }

    /// Our own names, and Claude Code's for the same things. What an agent said by itself stays as it said it. A notice says
    /// less.
    pub fn payload(&self) -> Value {
        if self.text("/point") == HookPoint::Notify.name() {
            return notice::payload(self.values, self.project);
        }
        let (project, directory) = (self.project.to_string_lossy(), self.directory.to_string_lossy());
        let mut payload = self.values.clone();
        // Of work that lies in a worktree, a hook of its gates runs there.
        let in_worktree = !self.text("/branch_name").is_empty() && self.directory != self.project;
        let more = json!({
            "worktree": if in_worktree { &directory } else { "" },
            "project_dir": project,
            "projectDir": project,
            "event": self.event,
            "session_id": self.text("/session"),
            "transcript_path": "",
            "cwd": directory,
            "hook_event_name": pascal_case(self.text("/point")),
            "stop_hook_active": self.values["retries"].as_u64().is_some_and(|retries| retries > 0),
            "last_assistant_message": self.text("/output"),
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

    /// A text among the values, by its path; empty where there is none.
    pub(crate) fn text(&self, path: &str) -> &'a str {
        self.values.pointer(path).and_then(Value::as_str).unwrap_or_default()
    }

    /// Nothing outside every iteration.
    fn iteration(&self) -> String {
        let number = self.values["iteration"].as_u64().filter(|number| *number > 0);
        number.map(|number| number.to_string()).unwrap_or_default()
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
