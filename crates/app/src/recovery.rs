//! Recovery of the effects and cancellations that dead commands have left.

use std::sync::Arc;

use windlass_config::Config;
use windlass_engine::{
    ConfigDigest, EffectId, EffectKind, OwnerName, PendingEffect, Session, SessionName, View, Wanted,
};
use windlass_process::{Control, is_alive, sweep};

use crate::context::Opened;
use crate::execution::{HookExecution, recorded};
use crate::trust::{self, Trust};
use crate::{Code, Failure, Notice, hints, workflows};

/// The effects that a recovery covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach<'a> {
    /// All; with `--trust`, those of older configurations, too.
    Everything,
    /// Those that do not belong to the session that is about to run.
    BeforeSession(&'a SessionName),
    /// Those that no session waits for: the workers resume sessions one by one.
    BeforeWork,
}

/// The result of a recovery.
#[derive(Debug, Default)]
pub struct Settled {
    pub hooks: usize,
    /// Cancelled sessions that have ended now.
    pub sessions: usize,
    /// Hooks and sessions whose configuration is not trusted.
    pub untrusted: usize,
}

/// Ends the sessions that were cancelled since their process died, and adopts orphaned hooks, each under the configuration of its
/// commit.
pub fn settle_dead(opened: &mut Opened, control: &Control, reach: Reach<'_>) -> Result<Settled, Failure> {
    let project = opened.project.clone();
    let place = project.owners();
    sweep(&place).map_err(|error| {
        let what = format!("cannot end what an earlier command has left, by its files in `{}`", place.display());
        Failure::new(Code::System, what).hint(hints::directory(&error)).caused_by(error)
    })?;
    let mut done = close_cancelled(opened, control, reach)?;
    let mut left = left_by_the_dead(opened)?;
    if let Reach::BeforeSession(session) = reach {
        left.retain(|effect| effect.session.as_ref() != Some(session));
    }
    let mut configs: Vec<ConfigDigest> = left.iter().map(|effect| effect.config).collect();
    configs.sort_unstable();
    configs.dedup();
    for digest in configs {
        let config = config_of_effect(opened, digest)?;
        if !may_run(opened, &config, reach)? {
            done.untrusted += left.iter().filter(|effect| effect.config == digest).count();
            continue;
        }
        let among: Vec<EffectId> = left.iter().map(|effect| effect.id).collect();
        let is_dead = |owner: &OwnerName| !is_alive(&project.owners(), owner.as_str());
        done.hooks += HookExecution::new(opened, &config, control).run(|dispatch| {
            let meant = |effect: &PendingEffect| {
                effect.config == digest && is_dead(&effect.owner) && among.contains(&effect.id)
            };
            dispatch.adopt_orphans(meant).map_err(hints::run)
        })?;
    }
    Ok(done)
}

/// Recovers, and shows the result to the person.
pub fn settle_and_report(opened: &mut Opened, control: &Control, reach: Reach<'_>) -> Result<(), Failure> {
    let done = settle_dead(opened, control, reach)?;
    let front_end = &opened.front_end;
    if done.hooks > 0 {
        front_end.show(Notice::Note(&format!("hooks that a dead command had left: {}", done.hooks)));
    }
    if done.sessions > 0 {
        front_end.show(Notice::Note(&format!("cancelled sessions that were ended: {}", done.sessions)));
    }
    if done.untrusted > 0 {
        front_end.show(Notice::Warning(&format!(
            "hooks that a dead command has left under a configuration that is not trusted now: {}; \
             `windlass doctor --settle --trust` runs them",
            done.untrusted
        )));
    }
    Ok(())
}

/// Returns the configuration of an effect. One that cannot be read has no hooks, so the effect is recorded as failed.
fn config_of_effect(opened: &Opened, digest: ConfigDigest) -> Result<Arc<Config>, Failure> {
    let text = opened.store.snapshot().map_err(hints::store)?.config(digest).map_err(hints::view)?;
    let config = Config::parse(recorded(&opened.project, text.as_deref().unwrap_or_default()));
    Ok(Arc::new(config.unwrap_or_else(|_| Config::absent(&opened.project.root))))
}

/// Returns the sessions that were cancelled while no process ran them.
pub fn orphaned_cancellations(opened: &Opened) -> Result<Vec<Session>, Failure> {
    let mut sessions = opened.store.snapshot().map_err(hints::store)?.sessions().map_err(hints::store)?;
    let owners = opened.project.owners();
    sessions.retain(|session| {
        session.stopping.is_some() && session.ended().is_none() && !is_alive(&owners, session.owner.as_str())
    });
    Ok(sessions)
}

/// Returns the sessions whose process has died, and that can be resumed.
pub fn interrupted(opened: &Opened) -> Result<Vec<Session>, Failure> {
    let mut sessions = opened.store.snapshot().map_err(hints::store)?.sessions().map_err(hints::store)?;
    let owners = opened.project.owners();
    sessions.retain(|session| {
        session.stopping.is_none()
            && session.ended().is_none()
            && session.wanted() != Wanted::Answer
            // A task that was taken from the session belongs to another holder now.
            && (session.task.is_none() || session.epoch().is_some())
            && !is_alive(&owners, session.owner.as_str())
    });
    Ok(sessions)
}

fn close_cancelled(opened: &mut Opened, control: &Control, reach: Reach<'_>) -> Result<Settled, Failure> {
    let mut done = Settled::default();
    for session in orphaned_cancellations(opened)? {
        if reach == Reach::BeforeSession(&session.name) {
            continue;
        }
        let config = config_of_effect(opened, session.config)?;
        if !config.effectful_hooks().is_empty() && !may_run(opened, &config, reach)? {
            done.untrusted += 1;
            continue;
        }
        let closed = HookExecution::new(opened, &config, control)
            .run(|dispatch| dispatch.close(&session).map_err(hints::run))?;
        done.sessions += usize::from(closed);
    }
    Ok(done)
}

/// Returns the hooks whose owner is dead, and that no open session waits for. An ended session waits only for the hooks of its
/// end.
pub fn left_by_the_dead(opened: &Opened) -> Result<Vec<PendingEffect>, Failure> {
    let snapshot = opened.store.snapshot().map_err(hints::store)?;
    let mut effects = snapshot.effects().map_err(hints::store)?;
    let open = snapshot.sessions().map_err(hints::store)?.into_iter().filter(|session| session.ended().is_none());
    let waited: Vec<EffectId> = open.flat_map(|session| session.owed).collect();
    let owners = opened.project.owners();
    effects.retain(|effect| {
        matches!(effect.kind, EffectKind::Hook(_))
            && !waited.contains(&effect.id)
            && !is_alive(&owners, effect.owner.as_str())
    });
    Ok(effects)
}

/// Returns whether a configuration may run. A run accepts only the present one: a store can come with a repository, and no person
/// has reviewed the configurations in it.
fn may_run(opened: &Opened, config: &Config, reach: Reach<'_>) -> Result<bool, Failure> {
    let present = Config::load(&opened.project.root).is_ok_and(|present| present.text() == config.text());
    let told = opened.trust && (present || reach == Reach::Everything);
    // Without a configuration there may still be workflows.
    let is_bare = !config.exists() && !workflows::has_files(&opened.project)?;
    Ok(told || is_bare || (present && trust::state(&opened.project, config)? == Trust::Trusted))
}
