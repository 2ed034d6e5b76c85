//! Rules: conditions over what the agent did, looked at here because some of it is only known outside the log.

use std::time::Duration;

use serde_json::{Value, json};
use windlass_engine::{HookOutcome, HookReport, Rule, RuleAction, Ruling, judge};
use windlass_hooks::Role;
use windlass_process::{Capture, Invocation, Spec};

use super::Running;
use crate::{Dispatch, RunError};

/// Looking at a repository takes no longer.
const LOOK: Duration = Duration::from_secs(10);
/// Names of files that are looked at.
const NAMES: usize = 256 * 1024;

impl Dispatch<'_> {
    pub(super) fn judge(&mut self, running: &Running<'_>, rules: &[Rule]) -> Result<HookReport, RunError> {
        let values = self.agent_context(running)?;
        Ok(match judge(rules, &values) {
            Err(fault) => HookReport { message: Some(fault.to_string()), ..HookOutcome::Failure.into() },
            Ok(None) => HookOutcome::Success.into(),
            Ok(Some(ruling)) => report(running, ruling),
        })
    }

    /// What rules see: what every hook sees, and what the agent did.
    fn agent_context(&mut self, running: &Running<'_>) -> Result<Value, RunError> {
        let mut values = running.values.clone();
        let promises =
            running.scene.promise.map(|promise| json!({"type": promise, "detected": true, "content": promise}));
        let more = json!({
            "executionPhase": null,
            "filesModified": self.modified_files(running)?,
            "validationResults": [],
            "completionPromises": promises.into_iter().collect::<Vec<_>>(),
            "agentOutput": running.scene.output.as_deref().unwrap_or_default(),
            "draftContent": null,
            "draftType": null,
        });
        if let (Value::Object(values), Value::Object(more)) = (&mut values, more) {
            values.extend(more);
        }
        Ok(values)
    }

    /// What git sees as changed; nothing where there is no repository.
    fn modified_files(&mut self, running: &Running<'_>) -> Result<Vec<String>, RunError> {
        let words = ["git", "status", "--porcelain", "-z", "--untracked-files=all", "--no-renames"];
        let spec = Spec {
            invocation: Invocation::Argv(words.map(Into::into).into()),
            directory: self.settings.directory.clone(),
            environment: self.settings.environment.clone(),
            stdin: Vec::new(),
            timeout: Some(LOOK),
            grace: Duration::ZERO,
            capture: Capture { head: NAMES, tail: 0, spill: None },
        };
        let Ok(ran) = self.start(&spec, running.resolve)? else { return Ok(vec![]) };
        let listed = ran.stdout.bytes();
        let names = listed.split(|byte| *byte == 0).filter_map(|entry| entry.get(3..));
        Ok(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
    }
}

fn report(running: &Running<'_>, ruling: Ruling) -> HookReport {
    let outcome = match (ruling.action, running.role()) {
        (RuleAction::Complete, _) => HookOutcome::Success,
        (RuleAction::Continue, Role::Stop) => HookOutcome::Continue,
        (RuleAction::Continue, Role::Pipeline) => HookOutcome::Block,
        (RuleAction::Continue, Role::Observer) => HookOutcome::Success,
        (RuleAction::Escalate, _) => HookOutcome::Escalate,
    };
    let told = ruling.next_prompt.clone().or_else(|| ruling.reason.clone());
    let told = told.filter(|_| running.hook.pipes || (running.role().is_gate() && outcome != HookOutcome::Success));
    HookReport { message: ruling.reason, feedback: told, ..outcome.into() }
}
