//! Hooks for requests from an agent's own hook system.
//!
//! ```text
//! inside a run of ours? ─ yes ─► the configuration of the run ───────────┐
//!        └─ no ─► hooks for this point and tool in the file? ─► trusted? ─┴─► commit ─► hooks ─► AgentHookResponse
//!                      └─ no ─► nothing is opened, nothing recorded
//! ```
//!
//! Invariants:
//! - Inside a hook of ours no hook runs: otherwise a hook would judge the agent that this hook asks for help.
//! - A running session handles its own points by itself.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use windlass_bridge::{AgentHookEvent, AgentHookRequest, AgentHookResponse};
use windlass_config::{Config, ConfigSource, plan};
use windlass_engine::{Authority, Command, EventType, Origin, PlannedHook, RunId, View, hooks_for_call};
use windlass_runner::RunnerEvent;
use windlass_store::{Lifetime, Store};

use crate::caller::Inside;
use crate::context::Opened;
use crate::execution::{HookExecution, listen, random};
use crate::project::{self, Project};
use crate::runner_settings::{launcher, mask};
use crate::trust::{self, Trust};
use crate::{Failure, SilentFrontEnd, environment, hints, store_records};

/// The message to the person if the project has hooks that are not trusted.
const UNTRUSTED: &str = "windlass: the hooks of this project are not trusted, so nothing was checked. \
                         `windlass trust` shows what would run.";

/// Runs the hooks of a request, if there are any, and returns the combined response. `directory` is where the agent works,
/// `within` how long it waits.
pub fn answer_request(
    project: Project,
    mut request: AgentHookRequest,
    directory: &Path,
    within: Option<Duration>,
    trust: bool,
) -> Result<AgentHookResponse, Failure> {
    let nothing = AgentHookResponse::default;
    if environment::effect().is_some() || environment::is_judging() {
        return Ok(nothing());
    }
    // Inside a run, the run's configuration applies, whatever the file says now.
    if environment::run().is_some() {
        let mut opened = open(&project, trust)?;
        let inside = Inside::look(&opened)?;
        if inside.config.is_some() {
            return answer_inside(&mut opened, inside, request, (directory, within));
        }
    }
    // A run that is over does not count: a person uses the agent now.
    let config = Config::parse(ConfigSource::load(&project.root)?)?;
    let planned = planned_for_calls(&config);
    if planned.is_empty() {
        return Ok(nothing());
    }
    apply(&config, &mut request);
    let is_trusted = || Ok::<_, Failure>(trust || trust::state(&project, &config)? == Trust::Trusted);
    let has_stop_hooks = planned.iter().any(|planned| planned.hook.point.is_stop());
    let planned = hooks_for_call(&request.call, planned);
    if planned.is_empty() {
        // Hooks at other points do not run either, and the person would not learn of it.
        if is_noticed(request.event) && !is_trusted()? {
            return Ok(AgentHookResponse::message(UNTRUSTED.to_owned()));
        }
        if has_stop_hooks && request.call.anew && request.event == AgentHookEvent::UserPromptSubmit {
            forget(&project, &config, &request, trust)?;
        }
        return Ok(nothing());
    }
    if !is_trusted()? {
        return Ok(AgentHookResponse::message(UNTRUSTED.to_owned()));
    }
    let (mut opened, config) = (open(&project, trust)?, Arc::new(config));
    run_hooks(&mut opened, (&config, planned), &person(None), request, (directory, within))
}

/// Applies the settings of a configuration to a request.
fn apply(config: &Config, request: &mut AgentHookRequest) {
    request.call.max_retries = config.settings.limits.max_hook_retries;
    request.call.about = mask(config).text(&request.call.about).into_owned();
}

/// Runs the hooks of a request from inside a session.
fn answer_inside(
    opened: &mut Opened,
    inside: Inside,
    mut request: AgentHookRequest,
    around: (&Path, Option<Duration>),
) -> Result<AgentHookResponse, Failure> {
    // The session itself judges at these points.
    if is_its_own(request.event) {
        return Ok(AgentHookResponse::default());
    }
    let config = Config::parse(inside.written(opened)?)?;
    apply(&config, &mut request);
    let planned = planned_for_calls(&config);
    if !planned.iter().any(|planned| planned.is_for(&request.call)) {
        return Ok(AgentHookResponse::default());
    }
    run_hooks(opened, (&Arc::new(config), planned), &person(inside.run), request, around)
}

/// Returns the hooks for calls of agents' own hook systems, in the order in which they run.
fn planned_for_calls(config: &Config) -> Vec<PlannedHook> {
    plan::planned_hooks(config).remove(&EventType::BridgeCalled).unwrap_or_default()
}

fn open(project: &Project, trust: bool) -> Result<Opened, Failure> {
    // A project that came with a repository has no store yet.
    let store = store_records::create(project, Lifetime::Command, trust)?;
    Ok(Opened { store, project: project.clone(), trust, front_end: Arc::new(SilentFrontEnd) })
}

/// Records a prompt of the person that no hook handles, because it resets the state of the conversation.
fn forget(project: &Project, config: &Config, request: &AgentHookRequest, trust: bool) -> Result<(), Failure> {
    // Without a store there is no state to reset.
    if !project.store_file().exists() {
        return Ok(());
    }
    let mut store = store_records::open(project, Lifetime::Command, trust)?;
    let call = &request.call;
    let row = store.snapshot().map_err(hints::store)?.conversation(&call.caller).map_err(hints::view)?;
    if row.is_some_and(|row| !row.was_told(&call.prompt)) {
        let call = Command::Call(Box::new(call.clone()));
        let rules = plan::pure_rules(config)?;
        store.execute(&rules, &person(None), &call, random()?).map_err(hints::execute)?;
    }
    Ok(())
}

fn person(run: Option<RunId>) -> Origin {
    Origin { by: environment::user(), at: environment::now(), authority: Authority::Person, run, via: None }
}

/// Returns whether the person is warned at this event that no hook runs. Once per turn is enough.
fn is_noticed(event: AgentHookEvent) -> bool {
    matches!(event, AgentHookEvent::SessionStart | AgentHookEvent::UserPromptSubmit | AgentHookEvent::Stop)
}

/// Returns whether a running session handles this event by itself.
fn is_its_own(event: AgentHookEvent) -> bool {
    matches!(event, AgentHookEvent::Stop | AgentHookEvent::SessionStart | AgentHookEvent::SessionEnd)
}

/// Runs the planned hooks of a request, and returns the combined response.
fn run_hooks(
    opened: &mut Opened,
    (config, planned): (&Arc<Config>, Vec<PlannedHook>),
    origin: &Origin,
    request: AgentHookRequest,
    (directory, within): (&Path, Option<Duration>),
) -> Result<AgentHookResponse, Failure> {
    let (control, received) = listen()?;
    if let Some(time) = within {
        let control = control.clone();
        // The thread ends with the process, if not before.
        thread::spawn(move || {
            if control.wait(time) {
                control.cancel()
            }
        });
    }
    // An agent that runs out of patience kills this process, and a gate may run long: its programs must not survive.
    let outlasts = matches!(request.event, AgentHookEvent::Stop | AgentHookEvent::SubagentStop);
    let launcher = outlasts.then(launcher).transpose()?;
    // The agent has worked in its worktree, so the hooks run there.
    let directory = project::worktree(&opened.project, directory);
    // The response is the only output to the agent.
    let mut unheard = |_: RunnerEvent<'_>| {};
    let execution = HookExecution::new(opened, config, &control).in_directory(directory).supervised(launcher);
    let execution = execution.with_planned(EventType::BridgeCalled, planned);
    execution
        .observed_by(&mut unheard)
        .run(|dispatch| dispatch.answer_request(origin, request).map_err(hints::run))
        .map_err(|failure| failure.by(received.first()))
}
