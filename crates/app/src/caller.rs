//! Whether a command comes from inside a run, and what that means for it.

use windlass_config::ConfigSource;
use windlass_engine::{Command, ConfigDigest, EffectId, OwnerName, PendingEffect, RunId, Session, View};
use windlass_process::{is_alive, is_below, supervisors_above};

use crate::context::Opened;
use crate::execution::recorded;
use crate::person::{self, ConcernedSessions};
use crate::{Code, Failure, SUPERVISE, environment, hints};

/// The turn or the hook from inside which this command is given.
#[derive(Clone)]
pub struct Inside {
    pub run: Option<RunId>,
    pub via: Option<EffectId>,
    /// What whoever runs it works with, while that lives.
    pub config: Option<ConfigDigest>,
}

impl Inside {
    pub fn look(opened: &Opened) -> Result<Self, Failure> {
        // Names of runs and hooks mean something else, or nothing, in another project.
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
        // A hook that is over has no say any more: what it left running is anybody's.
        let effect = effect.map(|id| snapshot.effect(id)).transpose().map_err(hints::view)?.flatten();
        let effect = effect.filter(|effect| effect.attempts > 0 && alive(&effect.owner) && is_of(effect));
        let session = run.as_ref().map(|run| snapshot.session(&run.session)).transpose().map_err(hints::view)?;
        let session = session.flatten().filter(|session| alive(&session.owner));
        // An agent that stays has the run of the turn in which it was started.
        let current = session.as_ref().zip(run.as_ref()).and_then(|(session, run)| {
            let stays = session.conversation.is_some() && session.nonce == run.nonce;
            session.turn().filter(|_| stays).map(|turn| turn.run.clone())
        });
        let run = current.or(run);
        let config = effect.as_ref().map(|effect| effect.config).or(session.map(|session| session.config));
        Ok(Self { run, via: effect.map(|effect| effect.id), config })
    }

    /// The same for commands that only a person may give: whoever runs a session is looked for above this process too. An
    /// agent can take variables away, but not its parents.
    pub fn look_above(opened: &Opened) -> Result<Self, Failure> {
        let inside = Self::look(opened)?;
        // An agent is below a supervisor, and there are many more commands than agents.
        if inside.via.is_some() || supervisors_above(SUPERVISE) == 0 {
            return Ok(inside);
        }
        let snapshot = opened.store.snapshot().map_err(hints::store)?;
        let above = |session: &Session| !session.is_over() && is_below(session.owner.as_str());
        let named = inside.run.as_ref().map(|run| snapshot.session(&run.session)).transpose().map_err(hints::view)?;
        // It can also name a run of somebody else, or one that never was.
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

    /// The same where only a person may go on: refused where it cannot be told that the agent of a session does not ask.
    pub fn look_for_person(opened: &Opened, concern: ConcernedSessions<'_>) -> Result<Self, Failure> {
        let inside = Self::look_above(opened)?;
        if !inside.is_seen(opened)? {
            person::refuse(opened, concern, inside.run.as_ref())?;
        }
        Ok(inside)
    }

    /// Whether the process of the run or the hook is above this one. A name alone, which is a variable, proves nothing.
    fn is_seen(&self, opened: &Opened) -> Result<bool, Failure> {
        let snapshot = opened.store.snapshot().map_err(hints::store)?;
        let session = self.run.as_ref().map(|run| snapshot.session(&run.session)).transpose().map_err(hints::view)?;
        Ok(self.via.is_some() || session.flatten().is_some_and(|session| is_below(session.owner.as_str())))
    }

    /// The same where a command may change what an agent is held to.
    pub fn look_for(opened: &Opened, command: &Command) -> Result<Self, Failure> {
        match is_for_persons(command) {
            true => Self::look_for_person(opened, ConcernedSessions::of(command)),
            false => Self::look(opened),
        }
    }

    /// What holds inside a run is what the run works with; elsewhere it is the file.
    pub fn written(&self, opened: &Opened) -> Result<ConfigSource, Failure> {
        let Some(digest) = self.config else { return Ok(ConfigSource::load(&opened.project.root)?) };
        let text = opened.store.snapshot().map_err(hints::store)?.config(digest).map_err(hints::view)?;
        Ok(recorded(&opened.project, text.as_deref().unwrap_or_default()))
    }
}

/// Whether this process is of a hook, and has not only its name: whoever runs the hook is above it, where that can be seen.
fn is_of(effect: &PendingEffect) -> bool {
    cfg!(not(target_os = "linux")) || is_below(effect.owner.as_str())
}

/// Whether an agent is refused what a person may do with this, of its own task at least.
pub fn is_for_persons(command: &Command) -> bool {
    if matches!(command, Command::SwitchHook { .. }) {
        return true;
    }
    command.subject().is_some() || matches!(command, Command::ClearHooks { .. } | Command::StartSeries { .. })
}
