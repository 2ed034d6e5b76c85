//! One run of a planned session: from the recovery of orphaned hooks to the end of the session.

use std::sync::Arc;

use windlass_config::{Config, plan};
use windlass_engine::{
    Authority, Command, CommandOrigin, EngineRules, NewSession, NextAction, OwnerName, SessionEndKind, SessionName,
    TaskId,
};
use windlass_process::{OwnerLock, RunControl};
use windlass_runner::{
    DeliverySettings, EffectRunner, GatekeeperSettings, RunError, Runner, RunnerEnv, RunnerEvent, RunnerSettings,
};

use super::changed_files::record_base_commit;
use super::conflict::{OfferedCommands, notify_task_reopened, reopen_conflicting_task};
use super::run_plan::PlannedSession;
use super::session_choice::{SessionChoice, find_left_task};
use super::session_config::may_run_agent_programs;
use super::session_tally::SessionTally;
use super::stale_leases::start_heartbeat;
use crate::answers::{GatePrompt, ask_person};
use crate::context::OpenedProject;
use crate::fleet;
use crate::project::Project;
use crate::recovery::{RecoveryScope, recover_and_notify};
use crate::workflows::WorkflowSnapshot;
use crate::{Failure, FailureCode, Notice, environment, execution, hints, runner_settings};

/// An observer that shows a running session to people.
pub trait SessionObserver {
    fn observe_event(&mut self, event: RunnerEvent<'_>);

    /// Returns whether the observer shows the output of programs line by line.
    fn shows_output(&self) -> bool {
        false
    }
}

/// The result of running a session.
pub struct SessionReport {
    /// None if the person ended everything at once.
    pub ending: Option<SessionEndKind>,
    pub tally: SessionTally,
    /// The owner under which this process ran programs, and still may.
    pub owner_lock: OwnerLock,
}

impl PlannedSession<'_> {
    /// Runs the session until it is over, or until it asks at its gate and there is no answer. Returns `None` if another process
    /// has begun the session meanwhile: the caller then plans the run again.
    pub fn run_session(
        &self,
        opened: &mut OpenedProject,
        control: &RunControl,
        observer: &mut dyn SessionObserver,
        prompt: Option<&dyn GatePrompt>,
    ) -> Result<Option<SessionReport>, Failure> {
        let Self { request, target, choice, config, agent, .. } = self;
        // The choice waits until a killed owner counts as dead, so the recovery comes after it.
        recover_and_notify(opened, control, RecoveryScope::BeforeSession(choice.session_name()))?;
        let owner_lock = execution::acquire_owner_lock(&opened.project)?;
        fleet::wait_for_log_until_cancelled(opened, control);
        let _heartbeat = start_heartbeat(opened, std::slice::from_ref(&owner_lock), config)?;
        let owner = execution::owner_name(&owner_lock);
        let left = find_left_task(&opened.store, request, *target)?;
        let begin = self.begin_command(&opened.project, &owner, left)?;
        warn_of_idle_hooks(opened, config);
        let trusted = may_run_agent_programs(opened.trust, &self.inside, &opened.project, config)?;
        let settings = self.runner_settings(opened, &owner, trusted)?;
        let (project, records) = (opened.project.clone(), settings.records.clone());
        let in_use = execution::worktrees_in_use(opened)?;
        let conflicting = request.conflicting_task().filter(|_| matches!(choice, SessionChoice::New(_)));
        let offered = conflicting
            .map(|id| OfferedCommands::find_for_task(opened, id).map(|offered| (id, offered)))
            .transpose()?;
        let mut tally = self.tally_before_resume(opened)?;
        let shows_output = observer.shows_output();
        let outside = RunnerEnv {
            now: &environment::steady_timestamp,
            random: &execution::random_u128_or_io_error,
            observe: &mut |event| {
                count_runner_event(&mut tally, &event);
                observer.observe_event(event);
            },
            shows_output,
        };
        let mut dispatch = EffectRunner::new(&mut opened.store, settings, &owner_lock, control.clone(), outside)
            .map_err(hints::run_failure)?;
        // Work in place has no changes.
        let delivers = !self.workspace_mode.is_in_place();
        if delivers {
            dispatch.record_external_merges(&in_use).map_err(hints::run_failure)?;
        }
        let allowance = runner_settings::turn_allowance(config, agent);
        let mut runner = Runner::new(dispatch, agent.clone(), allowance);
        let taken_up = match offered {
            Some((id, offered)) => {
                reopen_conflicting_task(&mut runner, id, (&self.types, &begin), &offered)?.then_some(id)
            }
            None => None,
        };
        if let Err(error) = runner.commit_and_report(&session_origin(&owner, self.inside.via), &begin) {
            drop(runner);
            if choice.is_stale(&opened.store)? {
                return Ok(None);
            }
            taken_up.into_iter().for_each(|id| notify_task_reopened(&*opened.front_end, id));
            return Err(hints::run_failure(error));
        }
        if delivers {
            runner.sweep_and_report(&in_use).map_err(hints::run_failure)?;
        }
        if let SessionChoice::New(_) = choice {
            record_base_commit(&project, &records);
        }
        let ending = run_until_over(&mut runner, choice.session_name(), control, prompt)?;
        drop(runner);
        Ok(Some(SessionReport { ending, tally, owner_lock }))
    }

    /// Returns the command that starts or resumes the session.
    fn begin_command(&self, project: &Project, owner: &OwnerName, left: Option<TaskId>) -> Result<Command, Failure> {
        Ok(match &self.choice {
            SessionChoice::New(name) => Command::StartSession(NewSession {
                name: name.clone(),
                task: self.request.task.or(left),
                goal: self.request.goal.clone(),
                work: self.target.work_source(),
                workspace_mode: self.workspace_mode,
                config: self.config.text().to_string(),
                protected: read_protected_files(project, &self.config)?,
                agent: self.agent.to_string(),
                terms: plan::session_terms(&self.config, self.request.max_iterations),
                owner: owner.clone(),
                nonce: execution::random_nonce()?,
                fresh: self.request.fresh,
            }),
            SessionChoice::Resume(session) => Command::ResumeSession {
                name: session.name.clone(),
                dead: session.owner.clone(),
                owner: owner.clone(),
                max_iterations: self.request.max_iterations,
            },
        })
    }

    fn runner_settings(
        &self,
        opened: &OpenedProject,
        owner: &OwnerName,
        trusted: bool,
    ) -> Result<RunnerSettings, Failure> {
        let gatekeepers = self.gatekeepers.clone();
        let workflows = (&self.config, &self.workflows);
        let settings = session_runner_settings(opened, workflows, owner, (self.session_name(), gatekeepers, trusted))?;
        let rules = EngineRules { types: self.types.clone(), ..settings.rules };
        Ok(RunnerSettings { rules, ..settings })
    }
}

/// Returns the settings of a runner for a session.
pub(super) fn session_runner_settings(
    opened: &OpenedProject,
    (config, workflows): (&Arc<Config>, &WorkflowSnapshot),
    owner: &OwnerName,
    (session, gatekeepers, trusted): (&SessionName, GatekeeperSettings, bool),
) -> Result<RunnerSettings, Failure> {
    let records = opened.project.create_record_directory(session.as_str())?;
    let launcher = runner_settings::supervisor_launcher()?;
    let rules = plan::session_rules(config, owner)?;
    let project = (&opened.project, opened.trust);
    let settings = runner_settings::build_runner_settings(project, config, rules, records, Some(launcher));
    Ok(RunnerSettings {
        prompt: config.prompt_template()?,
        workflows: workflows.to_workflow_finder(),
        permission: runner_settings::validator_permission(config, runner_settings::validator_trust(trusted)),
        delivery: DeliverySettings { gatekeepers, ..settings.delivery },
        ..settings
    })
}

/// Returns the origin of the command that begins a session.
pub(super) fn session_origin(owner: &OwnerName, via: Option<windlass_engine::EffectId>) -> CommandOrigin {
    let (by, at) = (owner.to_string(), environment::steady_timestamp());
    CommandOrigin { by, at, authority: Authority::Person, run: None, via }
}

/// Counts an event of the runner.
pub(super) fn count_runner_event(tally: &mut SessionTally, event: &RunnerEvent<'_>) {
    match event {
        RunnerEvent::Event(record) => tally.count_event(record),
        RunnerEvent::Waiting(_) => tally.stop_turn_clock(),
        RunnerEvent::Prompting => tally.start_turn_clock(environment::current_timestamp()),
        RunnerEvent::TaskClaimed(_)
        | RunnerEvent::Output(..)
        | RunnerEvent::Notice(_)
        | RunnerEvent::Note(_)
        | RunnerEvent::Queueing => {}
    }
}

/// Warns of configured hooks that never run.
pub(super) fn warn_of_idle_hooks(opened: &OpenedProject, config: &Config) {
    let idle: Vec<&str> = plan::find_inactive_hooks(config).map(|hook| hook.name.as_str()).collect();
    if !idle.is_empty() {
        let warning = format!("these hooks do not run, or only at some of their points: {}", idle.join(", "));
        opened.front_end.show_notice(Notice::Warning(&warning));
    }
}

/// Returns the content of the protected files before a session works on them.
pub(super) fn read_protected_files(project: &Project, config: &Config) -> Result<Option<String>, Failure> {
    let protected = runner_settings::protected_files(config).with_mask(runner_settings::build_secret_mask(config));
    if protected.is_empty() {
        return Ok(None);
    }
    let look = protected.take_snapshot(&project.root).map_err(|error| {
        let failure = Failure::new(FailureCode::Config, "cannot watch the files under `protected`");
        let hint = error.hint();
        let failure = failure.with_cause(error);
        if let Some(hint) = hint { failure.with_hint(hint) } else { failure }
    });
    look.map(Some)
}

/// Runs a session until it is over, or asks at its gate without an answer. Returns `None` if everything was ended at once.
fn run_until_over(
    runner: &mut Runner<'_>,
    name: &SessionName,
    control: &RunControl,
    prompt: Option<&dyn GatePrompt>,
) -> Result<Option<SessionEndKind>, Failure> {
    loop {
        let ending = match runner.run_session(name) {
            Err(RunError::Killed) => return Ok(None),
            ending => ending.map_err(hints::run_failure)?,
        };
        let session = runner.load_session(name).map_err(hints::run_failure)?;
        let is_answered = match prompt.filter(|_| session.next_action() == NextAction::Answer) {
            Some(prompt) => ask_person(runner, &session, control, prompt)?,
            None => false,
        };
        if !is_answered {
            runner.close_agent();
            return Ok(Some(ending));
        }
    }
}
