//! The caller of a command: a person, or a program inside a run.

use windlass_config::ConfigSource;
use windlass_engine::{Command, ConfigDigest, EffectId, OwnerName, PendingEffect, RunId, Session, StateView};
use windlass_process::{count_supervisors_above, is_below_owner};

use crate::context::OpenedProject;
use crate::execution::recorded_config_source;
use crate::fleet::OwnerLiveness;
use crate::person::{self, ConcernedSessions};
use crate::{Failure, FailureCode, SUPERVISE_ARGUMENT, environment, hints};

/// The turn or the hook that this command comes from.
#[derive(Clone)]
pub struct CallerContext {
    pub run: Option<RunId>,
    pub via: Option<EffectId>,
    /// The configuration of the session or hook, while its process lives.
    pub config: Option<ConfigDigest>,
}

impl CallerContext {
    pub fn detect_from_variables(opened: &OpenedProject) -> Result<Self, Failure> {
        // Ids of runs and hooks are meaningless in another project.
        if environment::run_project_directory().is_some_and(|project| project != opened.project.root) {
            return Ok(Self { run: None, via: None, config: None });
        }
        let run = environment::run_variable().map(|run| run.parse::<RunId>()).transpose().map_err(|error| {
            Failure::from_error(FailureCode::Usage, &error)
                .with_hint("WINDLASS_RUN is set by Windlass for the programs it starts")
        })?;
        let effect = environment::effect_variable().and_then(|effect| effect.parse::<EffectId>().ok());
        if run.is_none() && effect.is_none() {
            return Ok(Self { run, via: None, config: None });
        }
        let alive = |owner: &OwnerName| opened.project.owner_liveness(owner.as_str()) == OwnerLiveness::Alive;
        let snapshot = opened.store.begin_snapshot().map_err(hints::store_failure)?;
        // A hook that is over does not count: processes that it has left behind have no caller.
        let effect = effect.map(|id| snapshot.find_effect(id)).transpose().map_err(hints::view_failure)?.flatten();
        let effect =
            effect.filter(|effect| effect.attempts > 0 && alive(&effect.owner) && is_below_effect_owner(effect));
        let session =
            run.as_ref().map(|run| snapshot.find_session(&run.session)).transpose().map_err(hints::view_failure)?;
        let session = session.flatten().filter(|session| alive(&session.owner));
        // A persistent agent has the run id of the turn in which it was started.
        let current = session.as_ref().zip(run.as_ref()).and_then(|(session, run)| {
            let stays = session.conversation.is_some() && session.nonce == run.nonce;
            session.current_turn().filter(|_| stays).map(|turn| turn.run.clone())
        });
        let run = current.or(run);
        let config = effect.as_ref().map(|effect| effect.config).or(session.map(|session| session.config));
        Ok(Self { run, via: effect.map(|effect| effect.id), config })
    }

    /// Detects the caller of a command that only a person may give: also searches the ancestors of this process for the runner of
    /// a session. An agent can unset variables, but cannot change its parent processes.
    pub fn detect_from_ancestors(opened: &OpenedProject) -> Result<Self, Failure> {
        let inside = Self::detect_from_variables(opened)?;
        // Every agent runs below a supervisor, so most commands need no search.
        if inside.via.is_some() || count_supervisors_above(SUPERVISE_ARGUMENT) == 0 {
            return Ok(inside);
        }
        let snapshot = opened.store.begin_snapshot().map_err(hints::store_failure)?;
        let above = |session: &Session| !session.is_over() && is_below_owner(session.owner.as_str());
        let named = inside
            .run
            .as_ref()
            .map(|run| snapshot.find_session(&run.session))
            .transpose()
            .map_err(hints::view_failure)?;
        // The variable may name a run of another session, or an invented one.
        if named.flatten().is_some_and(|session| above(&session)) {
            return Ok(inside);
        }
        let sessions = snapshot.open_sessions().map_err(hints::store_failure)?;
        Ok(match sessions.into_iter().find(above) {
            Some(session) => {
                Self { run: Some(session.run_id_for(session.iteration)), via: None, config: Some(session.config) }
            }
            None => inside,
        })
    }

    /// Detects the caller of a command for persons, and refuses it if the caller could be the agent of a session.
    pub fn detect_for_person(opened: &OpenedProject, concern: ConcernedSessions<'_>) -> Result<Self, Failure> {
        let inside = Self::detect_from_ancestors(opened)?;
        if !inside.is_verified_by_ancestors(opened)? {
            person::refuse_possible_agent(opened, concern, inside.run.as_ref())?;
        }
        Ok(inside)
    }

    /// Returns whether the process of the run or the hook is an ancestor of this one. A variable alone proves nothing.
    fn is_verified_by_ancestors(&self, opened: &OpenedProject) -> Result<bool, Failure> {
        let snapshot = opened.store.begin_snapshot().map_err(hints::store_failure)?;
        let session = self
            .run
            .as_ref()
            .map(|run| snapshot.find_session(&run.session))
            .transpose()
            .map_err(hints::view_failure)?;
        Ok(self.via.is_some() || session.flatten().is_some_and(|session| is_below_owner(session.owner.as_str())))
    }

    /// Detects the caller, with the check for a person if the command needs one.
    pub fn detect_for_command(opened: &OpenedProject, command: &Command) -> Result<Self, Failure> {
        match requires_person(command) {
            true => Self::detect_for_person(opened, ConcernedSessions::of_command_subject(command)),
            false => Self::detect_from_variables(opened),
        }
    }

    /// Returns the configuration for the caller: inside a run that of the run, elsewhere the file.
    pub fn load_config_source(&self, opened: &OpenedProject) -> Result<ConfigSource, Failure> {
        let Some(digest) = self.config else { return Ok(ConfigSource::load(&opened.project.root)?) };
        let text = opened
            .store
            .begin_snapshot()
            .map_err(hints::store_failure)?
            .find_config_text(digest)
            .map_err(hints::view_failure)?;
        Ok(recorded_config_source(&opened.project, text.as_deref().unwrap_or_default()))
    }
}

/// Returns whether the owner of the effect is an ancestor of this process, where the platform shows ancestors. A variable alone
/// proves nothing.
fn is_below_effect_owner(effect: &PendingEffect) -> bool {
    cfg!(not(target_os = "linux")) || is_below_owner(effect.owner.as_str())
}

/// Returns whether only a person may give this command, at least about the caller's own task.
pub fn requires_person(command: &Command) -> bool {
    if matches!(command, Command::SwitchHook { .. }) {
        return true;
    }
    command.subject_task().is_some() || matches!(command, Command::ClearHooks { .. } | Command::StartSeries { .. })
}
