//! Hooks for requests from an agent's own hook system.
//!
//! ```text
//! inside a Windlass run? ─ yes ─► the configuration of the run ──────────┐
//!        └─ no ─► hooks for this point and tool in the file? ─► trusted? ─┴─► commit ─► hooks ─► AgentHookResponse
//!                      └─ no ─► nothing is opened, nothing recorded
//! ```
//!
//! Invariants:
//! - Inside a Windlass hook no hook runs: otherwise a hook would judge the agent that this hook asks for help.
//! - A running session handles its own points by itself.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use windlass_bridge::{AgentHookEvent, AgentHookRequest, AgentHookResponse};
use windlass_config::{Config, ConfigSource, plan};
use windlass_engine::{Authority, Command, CommandOrigin, EventType, PlannedHook, RunId, StateView, hooks_for_call};
use windlass_runner::RunnerEvent;
use windlass_store::{Lifetime, Store};

use crate::caller::CallerContext;
use crate::context::OpenedProject;
use crate::execution::{HookExecution, listen_to_signals, random_u128};
use crate::project::{self, Project};
use crate::runner_settings::{build_secret_mask, supervisor_launcher};
use crate::trust::{self, TrustState};
use crate::{Failure, SilentFrontEnd, environment, hints, store_records};

/// The message to the person if the project has hooks that are not trusted.
const UNTRUSTED_HOOKS_MESSAGE: &str = "windlass: the hooks of this project are not trusted, so nothing was checked. \
                         `windlass trust` shows what would run.";

/// Runs the hooks of a request, if there are any, and returns the combined response. `directory` is where the agent works,
/// `within` how long it waits.
pub fn answer_hook_request(
    project: Project,
    mut request: AgentHookRequest,
    directory: &Path,
    within: Option<Duration>,
    trust: bool,
) -> Result<AgentHookResponse, Failure> {
    let nothing = AgentHookResponse::default;
    if environment::effect_variable().is_some() || environment::is_judging_process() {
        return Ok(nothing());
    }
    // Inside a run, the run's configuration applies, whatever the file says now.
    if environment::run_variable().is_some() {
        let mut opened = open_or_create_store(&project, trust)?;
        let inside = CallerContext::detect_from_variables(&opened)?;
        if inside.config.is_some() {
            return answer_request_in_session(&mut opened, inside, request, (directory, within));
        }
    }
    // A run that is over does not count: a person uses the agent now.
    let config = Config::from_source(ConfigSource::load(&project.root)?)?;
    let planned = plan_bridge_hooks(&config);
    if planned.is_empty() {
        return Ok(nothing());
    }
    apply_config_to_request(&config, &mut request);
    let is_trusted = || Ok::<_, Failure>(trust || trust::find_trust_state(&project, &config)? == TrustState::Trusted);
    let has_stop_hooks = planned.iter().any(|planned| planned.hook.point.is_stop());
    let planned = hooks_for_call(&request.call, planned);
    if planned.is_empty() {
        // Hooks at other points do not run either, and the person would not learn of it.
        if shows_trust_warning(request.event) && !is_trusted()? {
            return Ok(AgentHookResponse::with_message(UNTRUSTED_HOOKS_MESSAGE.to_owned()));
        }
        if has_stop_hooks && request.call.anew && request.event == AgentHookEvent::UserPromptSubmit {
            record_prompt_without_hooks(&project, &config, &request, trust)?;
        }
        return Ok(nothing());
    }
    if !is_trusted()? {
        return Ok(AgentHookResponse::with_message(UNTRUSTED_HOOKS_MESSAGE.to_owned()));
    }
    let (mut opened, config) = (open_or_create_store(&project, trust)?, Arc::new(config));
    run_planned_hooks(&mut opened, (&config, planned), &person_origin_in_run(None), request, (directory, within))
}

/// Applies the settings of a configuration to a request.
fn apply_config_to_request(config: &Config, request: &mut AgentHookRequest) {
    request.call.max_retries = config.settings.limits.max_hook_retries;
    request.call.about = build_secret_mask(config).mask_text(&request.call.about).into_owned();
}

/// Runs the hooks of a request from inside a session.
fn answer_request_in_session(
    opened: &mut OpenedProject,
    inside: CallerContext,
    mut request: AgentHookRequest,
    around: (&Path, Option<Duration>),
) -> Result<AgentHookResponse, Failure> {
    // The session itself judges at these points.
    if is_handled_by_session(request.event) {
        return Ok(AgentHookResponse::default());
    }
    let config = Config::from_source(inside.load_config_source(opened)?)?;
    apply_config_to_request(&config, &mut request);
    let planned = plan_bridge_hooks(&config);
    if !planned.iter().any(|planned| planned.matches_call(&request.call)) {
        return Ok(AgentHookResponse::default());
    }
    run_planned_hooks(opened, (&Arc::new(config), planned), &person_origin_in_run(inside.run), request, around)
}

/// Returns the hooks for calls of agents' own hook systems, in the order in which they run.
fn plan_bridge_hooks(config: &Config) -> Vec<PlannedHook> {
    plan::plan_hooks(config).remove(&EventType::BridgeCalled).unwrap_or_default()
}

fn open_or_create_store(project: &Project, trust: bool) -> Result<OpenedProject, Failure> {
    // A project that came with a repository has no store yet.
    let mut store = store_records::open_or_create_store(project, Lifetime::Command, trust)?;
    // The agent waits for the answer.
    store.set_outage_policy(|_| false);
    Ok(OpenedProject::new(project.clone(), store, trust, Arc::new(SilentFrontEnd)))
}

/// Records a prompt of the person that no hook handles, because it resets the state of the conversation.
fn record_prompt_without_hooks(
    project: &Project,
    config: &Config,
    request: &AgentHookRequest,
    trust: bool,
) -> Result<(), Failure> {
    // Without a store there is no state to reset.
    if !project.store_file().exists() {
        return Ok(());
    }
    let mut store = store_records::open_store(project, Lifetime::Command, trust)?;
    store.set_outage_policy(|_| false);
    let call = &request.call;
    let row = store
        .begin_snapshot()
        .map_err(hints::store_failure)?
        .find_conversation(&call.caller)
        .map_err(hints::view_failure)?;
    if row.is_some_and(|row| !row.is_sent_back_prompt(&call.prompt)) {
        let call = Command::Call(Box::new(call.clone()));
        let rules = plan::pure_rules(config)?;
        store
            .execute_command(&rules, &person_origin_in_run(None), &call, random_u128()?)
            .map_err(hints::execute_failure)?;
    }
    Ok(())
}

fn person_origin_in_run(run: Option<RunId>) -> CommandOrigin {
    CommandOrigin {
        by: environment::user_name(),
        at: environment::current_timestamp(),
        authority: Authority::Person,
        run,
        via: None,
    }
}

/// Returns whether the person is warned at this event that no hook runs. Once per turn is enough.
fn shows_trust_warning(event: AgentHookEvent) -> bool {
    matches!(event, AgentHookEvent::SessionStart | AgentHookEvent::UserPromptSubmit | AgentHookEvent::Stop)
}

/// Returns whether a running session handles this event by itself.
fn is_handled_by_session(event: AgentHookEvent) -> bool {
    matches!(event, AgentHookEvent::Stop | AgentHookEvent::SessionStart | AgentHookEvent::SessionEnd)
}

/// Runs the planned hooks of a request, and returns the combined response.
fn run_planned_hooks(
    opened: &mut OpenedProject,
    (config, planned): (&Arc<Config>, Vec<PlannedHook>),
    origin: &CommandOrigin,
    request: AgentHookRequest,
    (directory, within): (&Path, Option<Duration>),
) -> Result<AgentHookResponse, Failure> {
    let (control, received) = listen_to_signals()?;
    if let Some(time) = within {
        let control = control.clone();
        // The thread ends with the process, if not before.
        thread::spawn(move || {
            if control.wait_unless_cancelled(time) {
                control.cancel_runs()
            }
        });
    }
    // An agent that runs out of patience kills this process, and a gate may run long: its programs must not survive.
    let outlasts = matches!(request.event, AgentHookEvent::Stop | AgentHookEvent::SubagentStop);
    let launcher = outlasts.then(supervisor_launcher).transpose()?;
    // The agent has worked in its worktree, so the hooks run there.
    let directory = project::find_project_worktree(&opened.project, directory);
    // The response is the only output to the agent.
    let mut unheard = |_: RunnerEvent<'_>| {};
    let execution = HookExecution::new(opened, config, &control).in_directory(directory).with_supervisor(launcher);
    let execution = execution.with_planned_hooks(EventType::BridgeCalled, planned);
    execution
        .with_observer(&mut unheard)
        .run_with_effects(|dispatch| dispatch.answer_request(origin, request).map_err(hints::run_failure))
        .map_err(|failure| failure.with_signal(received.first_signal()))
}
