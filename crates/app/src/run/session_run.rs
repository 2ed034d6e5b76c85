//! One run of a planned session: from the recovery of orphaned hooks to the end of the session.

use std::sync::Arc;

use windlass_config::{Config, plan};
use windlass_engine::{Authority, Command, Ending, NewSession, Origin, OwnerName, Rules, SessionName, TaskId, Wanted};
use windlass_process::{Control, Roster};
use windlass_runner::{Delivery, EffectRunner, Gatekeepers, RunError, Runner, RunnerEnv, RunnerEvent, RunnerSettings};

use super::changed_files::record_base;
use super::conflict::{OfferedCommands, take_up_conflict, tell_taken_up};
use super::plan::PlannedSession;
use super::session_choice::{SessionChoice, find_left_task};
use super::session_config::serves_agents;
use super::session_tally::SessionTally;
use super::stale_leases::start_heartbeat;
use crate::answers::{GatePrompt, ask_person};
use crate::context::Opened;
use crate::project::Project;
use crate::recovery::{Reach, settle_and_report};
use crate::workflows::WorkflowSnapshot;
use crate::{Code, Failure, Notice, environment, execution, hints, runner_settings};

/// An observer that shows a running session to people.
pub trait SessionObserver {
    fn observe(&mut self, told: RunnerEvent<'_>);

    /// Returns whether the observer shows the output of programs line by line.
    fn shows_output(&self) -> bool {
        false
    }
}

/// The result of running a session.
pub struct SessionReport {
    /// None if the person ended everything at once.
    pub ending: Option<Ending>,
    pub tally: SessionTally,
    /// The owner under which this process ran programs, and still may.
    pub roster: Roster,
}

impl PlannedSession<'_> {
    /// Runs the session until it is over, or until it asks at its gate and there is no answer. Returns `None` if another process
    /// has begun the session meanwhile: the caller then plans the run again.
    pub fn run(
        &self,
        opened: &mut Opened,
        control: &Control,
        observer: &mut dyn SessionObserver,
        prompt: Option<&dyn GatePrompt>,
    ) -> Result<Option<SessionReport>, Failure> {
        let Self { request, target, choice, config, agent, .. } = self;
        // The choice waits until a killed owner counts as dead, so the recovery comes after it.
        settle_and_report(opened, control, Reach::BeforeSession(choice.name()))?;
        let roster = execution::enlist(&opened.project)?;
        let _heart = start_heartbeat(std::slice::from_ref(&roster), config)?;
        let owner = execution::owner_name(&roster);
        let left = find_left_task(&opened.store, request, *target)?;
        let begin = self.begin_command(&opened.project, &owner, left)?;
        warn_of_idle_hooks(opened, config);
        let trusted = serves_agents(opened.trust, &self.inside, &opened.project, config)?;
        let settings = self.settings(opened, &owner, trusted)?;
        let (project, records) = (opened.project.clone(), settings.records.clone());
        let in_use = execution::worktrees_in_use(opened)?;
        let conflicting = request.conflicting_task().filter(|_| matches!(choice, SessionChoice::New(_)));
        let offered =
            conflicting.map(|id| OfferedCommands::find(opened, id).map(|offered| (id, offered))).transpose()?;
        let mut tally = self.earlier_tally(opened)?;
        let shows_output = observer.shows_output();
        let outside = RunnerEnv {
            now: &environment::steady_now,
            random: &execution::random_bytes,
            tell: &mut |told| {
                count(&mut tally, &told);
                observer.observe(told);
            },
            shows_output,
        };
        let mut dispatch =
            EffectRunner::new(&mut opened.store, settings, &roster, control.clone(), outside).map_err(hints::run)?;
        // Work in place has no changes.
        let delivers = !self.grounds.is_in_place();
        if delivers {
            dispatch.record_external_merges(&in_use).map_err(hints::run)?;
        }
        let allowance = runner_settings::turn_allowance(config, agent);
        let mut runner = Runner::new(dispatch, agent.clone(), allowance);
        let taken_up = match offered {
            Some((id, offered)) => take_up_conflict(&mut runner, id, (&self.types, &begin), &offered)?.then_some(id),
            None => None,
        };
        if let Err(error) = runner.begin(&session_origin(&owner, self.inside.via), &begin) {
            drop(runner);
            if choice.is_stale(&opened.store)? {
                return Ok(None);
            }
            taken_up.into_iter().for_each(|id| tell_taken_up(&*opened.front_end, id));
            return Err(hints::run(error));
        }
        if delivers {
            runner.sweep(&in_use).map_err(hints::run)?;
        }
        if let SessionChoice::New(_) = choice {
            record_base(&project, &records);
        }
        let ending = run_to_end(&mut runner, choice.name(), control, prompt)?;
        drop(runner);
        Ok(Some(SessionReport { ending, tally, roster }))
    }

    /// Returns the command that starts or resumes the session.
    fn begin_command(&self, project: &Project, owner: &OwnerName, left: Option<TaskId>) -> Result<Command, Failure> {
        Ok(match &self.choice {
            SessionChoice::New(name) => Command::StartSession(NewSession {
                name: name.clone(),
                task: self.request.task.or(left),
                goal: self.request.goal.clone(),
                work: self.target.work(),
                grounds: self.grounds,
                config: self.config.text().to_string(),
                protected: read_protected_files(project, &self.config)?,
                agent: self.agent.to_string(),
                terms: plan::terms(&self.config, self.request.max_iterations),
                owner: owner.clone(),
                nonce: execution::nonce()?,
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

    fn settings(&self, opened: &Opened, owner: &OwnerName, trusted: bool) -> Result<RunnerSettings, Failure> {
        let gatekeepers = self.gatekeepers.clone();
        let workflows = (&self.config, &self.workflows);
        let settings = session_settings(opened, workflows, owner, (self.name(), gatekeepers, trusted))?;
        let rules = Rules { types: self.types.clone(), ..settings.rules };
        Ok(RunnerSettings { rules, ..settings })
    }
}

/// Returns the settings of a runner for a session.
pub(super) fn session_settings(
    opened: &Opened,
    (config, workflows): (&Arc<Config>, &WorkflowSnapshot),
    owner: &OwnerName,
    (session, gatekeepers, trusted): (&SessionName, Gatekeepers, bool),
) -> Result<RunnerSettings, Failure> {
    let records = opened.project.make_records(session.as_str())?;
    let launcher = runner_settings::launcher()?;
    let rules = plan::session_rules(config, owner)?;
    let project = (&opened.project, opened.trust);
    let settings = runner_settings::settings(project, config, rules, records, Some(launcher));
    Ok(RunnerSettings {
        prompt: config.prompt()?,
        workflows: workflows.finder(),
        permission: runner_settings::permission(config, runner_settings::standing(trusted)),
        delivery: Delivery { gatekeepers, ..settings.delivery },
        ..settings
    })
}

/// Returns the origin of the command that begins a session.
pub(super) fn session_origin(owner: &OwnerName, via: Option<windlass_engine::EffectId>) -> Origin {
    let (by, at) = (owner.to_string(), environment::steady_now());
    Origin { by, at, authority: Authority::Person, run: None, via }
}

/// Counts an event of the runner.
pub(super) fn count(tally: &mut SessionTally, told: &RunnerEvent<'_>) {
    match told {
        RunnerEvent::Event(record) => tally.count(record),
        RunnerEvent::Waiting(_) => tally.wait(),
        RunnerEvent::Asking => tally.ask(environment::now()),
        RunnerEvent::TakesUp(_)
        | RunnerEvent::Output(..)
        | RunnerEvent::Notice(_)
        | RunnerEvent::Note(_)
        | RunnerEvent::Queueing => {}
    }
}

/// Warns of configured hooks that never run.
pub(super) fn warn_of_idle_hooks(opened: &Opened, config: &Config) {
    let idle: Vec<&str> = plan::silent(config).map(|hook| hook.name.as_str()).collect();
    if !idle.is_empty() {
        let warning = format!("these hooks do not run, or only at some of their points: {}", idle.join(", "));
        opened.front_end.show(Notice::Warning(&warning));
    }
}

/// Returns the content of the protected files before a session works on them.
pub(super) fn read_protected_files(project: &Project, config: &Config) -> Result<Option<String>, Failure> {
    let protected = runner_settings::protected_files(config).hiding(runner_settings::mask(config));
    if protected.is_empty() {
        return Ok(None);
    }
    let look = protected.look(&project.root).map_err(|error| {
        let failure = Failure::new(Code::Config, "cannot watch the files under `protected`");
        let hint = error.hint();
        let failure = failure.caused_by(error);
        if let Some(hint) = hint { failure.hint(hint) } else { failure }
    });
    look.map(Some)
}

/// Runs a session until it is over, or asks at its gate without an answer. Returns `None` if everything was ended at once.
fn run_to_end(
    runner: &mut Runner<'_>,
    name: &SessionName,
    control: &Control,
    prompt: Option<&dyn GatePrompt>,
) -> Result<Option<Ending>, Failure> {
    loop {
        let ending = match runner.run(name) {
            Err(RunError::Killed) => return Ok(None),
            ending => ending.map_err(hints::run)?,
        };
        let session = runner.session(name).map_err(hints::run)?;
        let is_answered = match prompt.filter(|_| session.wanted() == Wanted::Answer) {
            Some(prompt) => ask_person(runner, &session, control, prompt)?,
            None => false,
        };
        if !is_answered {
            runner.close_agent();
            return Ok(Some(ending));
        }
    }
}
