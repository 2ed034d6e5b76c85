//! Recovery of the effects and cancellations that dead commands have left, and of the sessions and effects of machines that have been
//! silent for longer than the lease.

use std::sync::Arc;

use windlass_config::Config;
use windlass_engine::{
    Authority, Command, ConfigDigest, EffectId, EffectKind, NextAction, OwnerName, PendingEffect, Session, SessionName,
    StateView,
};
use windlass_process::{RunControl, sweep_dead_owners};

use crate::context::OpenedProject;
use crate::execution::{HookExecution, recorded_config_source};
use crate::project::Project;
use crate::run::list_silent_owners;
use crate::trust::{self, TrustState};
use crate::{Failure, FailureCode, Notice, hints, workflows};

/// The effects that a recovery covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecoveryScope<'a> {
    /// All; with `--trust`, those of older configurations, too.
    Everything,
    /// Those that do not belong to the session that is about to run.
    BeforeSession(&'a SessionName),
    /// Those that no session waits for: the workers resume sessions one by one.
    BeforeWork,
}

/// The result of a recovery.
#[derive(Debug, Default)]
pub struct RecoveryReport {
    pub hooks: usize,
    /// Cancelled sessions that have ended now.
    pub sessions: usize,
    /// Hooks and sessions whose configuration is not trusted.
    pub untrusted: usize,
}

/// Ends the sessions that were cancelled since their process died, and adopts orphaned hooks, each under the configuration of its
/// commit.
pub fn recover_orphans(
    opened: &mut OpenedProject,
    control: &RunControl,
    reach: RecoveryScope<'_>,
) -> Result<RecoveryReport, Failure> {
    let project = opened.project.clone();
    let place = project.owner_directory();
    sweep_dead_owners(&place).map_err(|error| {
        let what = format!("cannot stop programs of an earlier command, listed in `{}`", place.display());
        Failure::new(FailureCode::System, what).with_hint(hints::directory_error_hint(&error)).with_cause(error)
    })?;
    let silent = list_silent_owners(opened, control)?;
    release_silent_sessions(opened, &silent)?;
    let mut done = close_cancelled_sessions(opened, control, reach, &silent)?;
    let mut left = list_orphaned_effects(opened, &silent)?;
    if let RecoveryScope::BeforeSession(session) = reach {
        left.retain(|effect| effect.session.as_ref() != Some(session));
    }
    let mut configs: Vec<ConfigDigest> = left.iter().map(|effect| effect.config).collect();
    configs.sort_unstable();
    configs.dedup();
    for digest in configs {
        let config = load_effect_config(opened, digest)?;
        if !may_run_config(opened, &config, reach)? {
            done.untrusted += left.iter().filter(|effect| effect.config == digest).count();
            continue;
        }
        let among: Vec<EffectId> = left.iter().map(|effect| effect.id).collect();
        let is_dead = |owner: &OwnerName| is_gone(&project, owner, &silent);
        done.hooks += HookExecution::new(opened, &config, control).run_with_effects(|dispatch| {
            let meant = |effect: &PendingEffect| {
                effect.config == digest && is_dead(&effect.owner) && among.contains(&effect.id)
            };
            dispatch.adopt_orphaned_hooks(meant).map_err(hints::run_failure)
        })?;
    }
    Ok(done)
}

/// Recovers, and shows the result to the person.
pub fn recover_and_notify(
    opened: &mut OpenedProject,
    control: &RunControl,
    reach: RecoveryScope<'_>,
) -> Result<(), Failure> {
    let done = recover_orphans(opened, control, reach)?;
    let front_end = &opened.front_end;
    if done.hooks > 0 {
        front_end.show_notice(Notice::Note(&format!("ran pending hooks of a dead command: {}", done.hooks)));
    }
    if done.sessions > 0 {
        front_end.show_notice(Notice::Note(&format!("ended cancelled sessions: {}", done.sessions)));
    }
    if done.untrusted > 0 {
        front_end.show_notice(Notice::Warning(&format!(
            "pending hooks of a dead command whose configuration is not trusted now: {}; \
             `windlass doctor --settle --trust` runs them",
            done.untrusted
        )));
    }
    Ok(())
}

/// Returns the configuration of an effect. One that cannot be read has no hooks, so the effect is recorded as failed.
fn load_effect_config(opened: &OpenedProject, digest: ConfigDigest) -> Result<Arc<Config>, Failure> {
    let text = opened
        .store
        .begin_snapshot()
        .map_err(hints::store_failure)?
        .find_config_text(digest)
        .map_err(hints::view_failure)?;
    let config = Config::from_source(recorded_config_source(&opened.project, text.as_deref().unwrap_or_default()));
    Ok(Arc::new(config.unwrap_or_else(|_| Config::without_file(&opened.project.root))))
}

/// Returns whether an owner is dead, or one of those that have been silent for too long.
fn is_gone(project: &Project, owner: &OwnerName, silent: &[String]) -> bool {
    project.is_owner_dead(owner.as_str()) || silent.iter().any(|silent| silent == owner.as_str())
}

/// Cancels the sessions of silent machines whose tasks others have taken: only the end is left of them.
fn release_silent_sessions(opened: &mut OpenedProject, silent: &[String]) -> Result<(), Failure> {
    if silent.is_empty() {
        return Ok(());
    }
    let mut sessions =
        opened.store.begin_snapshot().map_err(hints::store_failure)?.open_sessions().map_err(hints::store_failure)?;
    sessions.retain(|session| {
        let has_lost_task = session.task.is_some() && session.held_epoch().is_none();
        has_lost_task
            && session.stopping.is_none()
            && session.ending_kind().is_none()
            && silent.iter().any(|owner| owner == session.owner.as_str())
    });
    for session in sessions {
        let reason = Some("its machine has been silent, and another one has taken its task".to_owned());
        let cancel = Command::CancelSession { name: session.name, reason };
        if let Err(failure) = opened.execute_command(&cancel, Authority::Person) {
            // The next recovery tries again.
            opened.front_end.show_notice(Notice::Failure(&failure));
        }
    }
    Ok(())
}

/// Returns the sessions that were cancelled while no process ran them.
pub fn list_orphaned_cancellations(opened: &OpenedProject, silent: &[String]) -> Result<Vec<Session>, Failure> {
    let mut sessions =
        opened.store.begin_snapshot().map_err(hints::store_failure)?.open_sessions().map_err(hints::store_failure)?;
    sessions.retain(|session| {
        session.stopping.is_some()
            && session.ending_kind().is_none()
            && is_gone(&opened.project, &session.owner, silent)
    });
    Ok(sessions)
}

/// Returns the sessions whose process has died, and that can be resumed.
pub fn list_interrupted_sessions(opened: &OpenedProject) -> Result<Vec<Session>, Failure> {
    let mut sessions =
        opened.store.begin_snapshot().map_err(hints::store_failure)?.open_sessions().map_err(hints::store_failure)?;
    sessions.retain(|session| {
        session.stopping.is_none()
            && session.ending_kind().is_none()
            && session.next_action() != NextAction::Answer
            // A task that was taken from the session belongs to another holder now.
            && (session.task.is_none() || session.held_epoch().is_some())
            && opened.project.is_owner_dead(session.owner.as_str())
    });
    Ok(sessions)
}

fn close_cancelled_sessions(
    opened: &mut OpenedProject,
    control: &RunControl,
    reach: RecoveryScope<'_>,
    silent: &[String],
) -> Result<RecoveryReport, Failure> {
    let mut done = RecoveryReport::default();
    for session in list_orphaned_cancellations(opened, silent)? {
        if reach == RecoveryScope::BeforeSession(&session.name) {
            continue;
        }
        let config = load_effect_config(opened, session.config)?;
        if !config.effectful_hooks().is_empty() && !may_run_config(opened, &config, reach)? {
            done.untrusted += 1;
            continue;
        }
        let closed = HookExecution::new(opened, &config, control)
            .run_with_effects(|dispatch| dispatch.close_cancelled_session(&session).map_err(hints::run_failure))?;
        done.sessions += usize::from(closed);
    }
    Ok(done)
}

/// Returns the hooks whose owner is dead, and that no open session waits for. An ended session waits only for the hooks of its
/// end.
pub fn list_orphaned_effects(opened: &OpenedProject, silent: &[String]) -> Result<Vec<PendingEffect>, Failure> {
    let snapshot = opened.store.begin_snapshot().map_err(hints::store_failure)?;
    let mut effects = snapshot.pending_effects().map_err(hints::store_failure)?;
    let open = snapshot
        .open_sessions()
        .map_err(hints::store_failure)?
        .into_iter()
        .filter(|session| session.ending_kind().is_none());
    let waited: Vec<EffectId> = open.flat_map(|session| session.pending_hooks).collect();
    effects.retain(|effect| {
        matches!(effect.kind, EffectKind::Hook(_))
            && !waited.contains(&effect.id)
            && is_gone(&opened.project, &effect.owner, silent)
    });
    Ok(effects)
}

/// Returns whether a configuration may run. A run accepts only the present one: a store can come with a repository, and no person
/// has reviewed the configurations in it.
fn may_run_config(opened: &OpenedProject, config: &Config, reach: RecoveryScope<'_>) -> Result<bool, Failure> {
    let present = Config::load(&opened.project.root).is_ok_and(|present| present.text() == config.text());
    let option_applies = opened.trust && (present || reach == RecoveryScope::Everything);
    // Without a configuration there may still be workflows.
    let is_bare = !config.has_file() && !workflows::has_workflow_files(&opened.project)?;
    Ok(option_applies
        || is_bare
        || (present && trust::find_trust_state(&opened.project, config)? == TrustState::Trusted))
}
