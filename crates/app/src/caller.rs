//! The caller of a command: a person, or a program inside a run.

use windlass_config::ConfigSource;
use windlass_engine::{Command, ConfigDigest, EffectId, OwnerName, PendingEffect, RunId, Session, View};
use windlass_process::{is_alive, is_below, supervisors_above};

use crate::context::Opened;
use crate::execution::recorded;
use crate::person::{self, ConcernedSessions};
use crate::{Code, Failure, SUPERVISE, environment, hints};

/// The turn or the hook that this command comes from.
#[derive(Clone)]
pub struct Inside {
    pub run: Option<RunId>,
    pub via: Option<EffectId>,
    /// The configuration of the session or hook, while its process lives.
    pub config: Option<ConfigDigest>,
}

impl Inside {
    pub fn look(opened: &Opened) -> Result<Self, Failure> {
        // Ids of runs and hooks are meaningless in another project.
        if environment::project_of_run().is_some_and(|project| project != opened.project.root) {
            return Ok(Self { run: None, via: None, config: None });
        }
        let run = environment::run().map(|run| run.parse::<RunId>()).transpose().map_err(|error| {
            Failure::from_error(Code::Usage, &error).hint("WINDLASS_RUN is set by Windlass for the programs it starts")
        })?;
        let effect = environment::effect().and_then(|effect| effect.parse::<EffectId>().ok());
        if run.is_none() && effect.is_none() {
            return Ok(Self { run, via: None, config: None });
        }
        let alive = |owner: &OwnerName| is_alive(&opened.project.owners(), owner.as_str());
        let snapshot = opened.store.snapshot().map_err(hints::store)?;
        // A hook that is over does not count: processes that it has left behind have no caller.
        let effect = effect.map(|id| snapshot.effect(id)).transpose().map_err(hints::view)?.flatten();
        let effect = effect.filter(|effect| effect.attempts > 0 && alive(&effect.owner) && is_of(effect));
        let session = run.as_ref().map(|run| snapshot.session(&run.session)).transpose().map_err(hints::view)?;
        let session = session.flatten().filter(|session| alive(&session.owner));
        // A persistent agent has the run id of the turn in which it was started.
        let current = session.as_ref().zip(run.as_ref()).and_then(|(session, run)| {
            let stays = session.conversation.is_some() && session.nonce == run.nonce;
            session.turn().filter(|_| stays).map(|turn| turn.run.clone())
        });
        let run = current.or(run);
        let config = effect.as_ref().map(|effect| effect.config).or(session.map(|session| session.config));
        Ok(Self { run, via: effect.map(|effect| effect.id), config })
    }

    /// Detects the caller of a command that only a person may give: also searches the ancestors of this process for the runner of
    /// a session. An agent can unset variables, but cannot change its parent processes.
    pub fn look_above(opened: &Opened) -> Result<Self, Failure> {
        let inside = Self::look(opened)?;
        // Every agent runs below a supervisor, so most commands need no search.
        if inside.via.is_some() || supervisors_above(SUPERVISE) == 0 {
            return Ok(inside);
        }
        let snapshot = opened.store.snapshot().map_err(hints::store)?;
        let above = |session: &Session| !session.is_over() && is_below(session.owner.as_str());
        let named = inside.run.as_ref().map(|run| snapshot.session(&run.session)).transpose().map_err(hints::view)?;
        // The variable may name a run of another session, or an invented one.
        if named.flatten().is_some_and(|session| above(&session)) {
            return Ok(inside);
        }
        let sessions = snapshot.sessions().map_err(hints::store)?;
        Ok(match sessions.into_iter().find(above) {
            Some(session) => {
                Self { run: Some(session.run(session.iteration)), via: None, config: Some(session.config) }
            }
            None => inside,
        })
    }

    /// Detects the caller of a command for persons, and refuses it if the caller could be the agent of a session.
    pub fn look_for_person(opened: &Opened, concern: ConcernedSessions<'_>) -> Result<Self, Failure> {
        let inside = Self::look_above(opened)?;
        if !inside.is_seen(opened)? {
            person::refuse(opened, concern, inside.run.as_ref())?;
        }
        Ok(inside)
    }

    /// Returns whether the process of the run or the hook is an ancestor of this one. A variable alone proves nothing.
    fn is_seen(&self, opened: &Opened) -> Result<bool, Failure> {
        let snapshot = opened.store.snapshot().map_err(hints::store)?;
        let session = self.run.as_ref().map(|run| snapshot.session(&run.session)).transpose().map_err(hints::view)?;
        Ok(self.via.is_some() || session.flatten().is_some_and(|session| is_below(session.owner.as_str())))
    }

    /// Detects the caller, with the check for a person if the command needs one.
    pub fn look_for(opened: &Opened, command: &Command) -> Result<Self, Failure> {
        match is_for_persons(command) {
            true => Self::look_for_person(opened, ConcernedSessions::of(command)),
            false => Self::look(opened),
        }
    }

    /// Returns the configuration for the caller: inside a run that of the run, elsewhere the file.
    pub fn written(&self, opened: &Opened) -> Result<ConfigSource, Failure> {
        let Some(digest) = self.config else { return Ok(ConfigSource::load(&opened.project.root)?) };
        let text = opened.store.snapshot().map_err(hints::store)?.config(digest).map_err(hints::view)?;
        Ok(recorded(&opened.project, text.as_deref().unwrap_or_default()))
    }
}

/// Returns whether the owner of the effect is an ancestor of this process, where the platform shows ancestors. A variable alone
/// proves nothing.
fn is_of(effect: &PendingEffect) -> bool {
    cfg!(not(target_os = "linux")) || is_below(effect.owner.as_str())
}

/// Returns whether only a person may give this command, at least about the caller's own task.
pub fn is_for_persons(command: &Command) -> bool {
    if matches!(command, Command::SwitchHook { .. }) {
        return true;
    }
    command.subject().is_some() || matches!(command, Command::ClearHooks { .. } | Command::StartSeries { .. })
}
