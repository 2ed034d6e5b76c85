//! Requests about one hook: switch it on or off, and test it with a payload.
//!
//! Invariant: the page never trusts a configuration. A switched hook waits for a person at a terminal, and a test needs trust.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_app::config_file::replace_config_file;
use windlass_app::hook_switch::SwitchableHook;
use windlass_app::hook_trial::input::{TrialPayload, build_trial_input};
use windlass_app::hook_trial::{HookTrial, HookTrialRunner, list_testable_hooks};
use windlass_app::trust::{self, TrustState};
use windlass_app::{Failure, FailureCode, hints};
use windlass_config::{Config, parse_hook_point};
use windlass_process::RunControl;

use crate::body::JsonBody;
use crate::error::RequestError;
use crate::read::Answer;
use crate::role_check::ManagingViewer;
use crate::state::SharedState;
use crate::write::run_command_as;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HookSwitchBody {
    pub enabled: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookSwitchReport {
    pub changed: bool,
    /// Whether a person has to trust the configuration again, at a terminal.
    pub needs_trust: bool,
}

/// Switches a hook of the configuration on or off.
pub async fn switch_hook(
    State(state): SharedState,
    ManagingViewer(viewer): ManagingViewer,
    Path(name): Path<String>,
    JsonBody(body): JsonBody<HookSwitchBody>,
) -> Answer<HookSwitchReport> {
    run_command_as(&state, viewer.name, move |opened| {
        let project = &opened.project;
        let config = Config::load(&project.root).map_err(Failure::from)?;
        let hook = SwitchableHook::find_by_name(&config, &name, body.enabled)?;
        let changed = hook.is_enabled(&config) != body.enabled;
        if changed {
            let edited = hook
                .edit_config(&config, body.enabled)
                .map_err(|obstacle| hook.explain_edit_obstacle(&config, body.enabled, &obstacle))?;
            replace_config_file(project, &config, edited.text())?;
        }
        let written = Config::load(&project.root).map_err(Failure::from)?;
        let needs_trust = trust::find_trust_state(project, &written)? != TrustState::Trusted;
        Ok(HookSwitchReport { changed, needs_trust })
    })
    .await
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HookTestBody {
    /// The point of the hook, such as `stop`.
    pub point: String,
    /// A JSON object with the names that conditions use.
    #[serde(default)]
    pub payload: Option<Value>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookTestReport {
    pub command: Option<String>,
    /// The reason why the hook would not run with this payload.
    pub skip_reason: Option<String>,
    pub outcome: Option<String>,
    pub message: Option<String>,
    /// The text that the agent would get.
    pub feedback: Option<String>,
    pub hint: Option<String>,
    pub duration_ms: Option<u64>,
    /// The exit code of the program that the hook started; absent if it ended without one.
    pub exit_code: Option<i32>,
    /// What the program wrote: standard output, then standard error.
    pub output: Option<String>,
}

/// Cancels the programs of a request when the request ends.
struct CancelGuard(RunControl);

impl Drop for CancelGuard {
    fn drop(&mut self) {
        self.0.cancel_own_runs();
    }
}

/// Runs a hook outside any session. Nothing is recorded.
pub async fn test_hook(
    State(state): SharedState,
    ManagingViewer(viewer): ManagingViewer,
    Path(name): Path<String>,
    JsonBody(body): JsonBody<HookTestBody>,
) -> Answer<HookTestReport> {
    // A client that goes away takes its test along.
    let control = state.control.with_own_cancel();
    let _guard = CancelGuard(control.clone());
    let _place = state.hook_tests.clone().try_acquire_owned().map_err(|_| {
        let hint = "wait until another test of a hook has ended";
        RequestError::new(StatusCode::TOO_MANY_REQUESTS, "busy", "too many tests of hooks run now", hint)
    })?;
    run_command_as(&state, viewer.name, move |opened| {
        let project = &opened.project;
        let config = Config::load(&project.root).map_err(Failure::from)?;
        if trust::find_trust_state(project, &config)? != TrustState::Trusted {
            let failure = Failure::new(FailureCode::Trust, "cannot use the configuration of this project");
            return Err(failure.with_cause("it is not trusted as it is now").with_hint(hints::HOW_TO_TRUST).into());
        }
        let unknown = || RequestError::bad_request(&format!("there is no point `{}`", body.point));
        let point = parse_hook_point(&body.point).ok_or_else(unknown)?;
        let payload = body.payload.map(|value| TrialPayload { value, name: "payload".to_owned() });
        let mut input = build_trial_input(payload.as_ref(), &point, None)?;
        let subject = input.complete_values(project);
        let hooks = list_testable_hooks(&config, &subject, &point, Some(&name))?;
        let runner = HookTrialRunner::new((project, &config), point, input, control)?;
        let trial = runner.try_hook(hooks[0], true)?;
        Ok(describe_trial(&trial))
    })
    .await
}

fn describe_trial(trial: &HookTrial<'_>) -> HookTestReport {
    let skip_reason = match &trial.condition {
        _ if !trial.matches => Some("its matcher does not match the tool".to_owned()),
        Ok(true) => None,
        Ok(false) => Some("its condition does not hold".to_owned()),
        Err(fault) => Some(format!("its condition cannot be answered: {fault}")),
    };
    let report = trial.report.as_ref();
    let outcome = report.and_then(|report| serde_json::to_value(report.outcome).ok());
    HookTestReport {
        command: trial.command.clone(),
        skip_reason: skip_reason.filter(|_| report.is_none()),
        outcome: outcome.and_then(|outcome| outcome.as_str().map(str::to_owned)),
        message: report.and_then(|report| report.message.clone()),
        feedback: report.and_then(|report| report.feedback.clone()),
        hint: trial.exit_code_hint(),
        duration_ms: report
            .and_then(|report| report.took)
            .map(|took| u64::try_from(took.as_millis()).unwrap_or(u64::MAX)),
        exit_code: trial.program.as_ref().and_then(|program| program.exit_code),
        output: trial.program.as_ref().map(|program| program.output.clone()),
    }
}
