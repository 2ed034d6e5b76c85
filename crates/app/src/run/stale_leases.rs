//! Stale leases: tasks held by a living process whose heartbeat has stopped for too long. A run takes such tasks. In a fleet, the
//! service tells for how long the processes of other machines have been silent.
//!
//! A process that works on tasks has a heartbeat. A process that was stopped or hangs has none. When it wakes up, its sessions
//! find that another session holds their tasks, and end.
//!
//! Invariants:
//! - A process never expires a lease of its own.
//! - A process that was suspended cannot tell how long others were. So it checks twice, and takes nothing from an owner whose
//!   heartbeat moved in between.
//! - Leases of dead processes do not expire here: a run resumes their sessions.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use windlass_config::{Config, DurationSetting, plan};
use windlass_engine::{Command, ConfigTrust, Lease, Task, TaskState};
use windlass_process::{HeartbeatThread, OwnerLock, RunControl, heartbeat_age, is_owner_alive, is_this_process};

use crate::context::{OpenedProject, list_tasks_in_states};
use crate::execution::{self, HookExecution};
use crate::fleet::{self, FleetFollower, FollowSettings, config_digest};
use crate::trust::{self, TrustState};
use crate::{Failure, FailureCode, Notice, hints, time_format};

/// The default time without a heartbeat after which a lease is stale.
const DEFAULT_LEASE_TIME: Duration = Duration::from_secs(300);
/// The bounds of the heartbeat interval.
const MAX_HEARTBEAT_INTERVAL: Duration = Duration::from_secs(5);
const MIN_HEARTBEAT_INTERVAL: Duration = Duration::from_millis(50);

fn lease_time(config: &Config) -> Duration {
    config.settings.limits.lease.map_or(DEFAULT_LEASE_TIME, DurationSetting::duration)
}

/// Returns the heartbeat interval for a lease time.
fn heartbeat_interval(lease: Duration) -> Duration {
    (lease / 10).clamp(MIN_HEARTBEAT_INTERVAL, MAX_HEARTBEAT_INTERVAL)
}

/// The heartbeat of some owners: for processes of this machine, and for other machines of a fleet. It ends when it is dropped.
pub struct OwnerHeartbeats {
    _thread: HeartbeatThread,
    _follower: Option<FleetFollower>,
}

/// Starts the heartbeat of these owners. In a fleet, it also follows the log.
pub fn start_heartbeat(
    opened: &OpenedProject,
    owner_locks: &[OwnerLock],
    config: &Config,
) -> Result<OwnerHeartbeats, Failure> {
    let lease = lease_time(config);
    let interval = heartbeat_interval(lease);
    let files: io::Result<Vec<_>> = owner_locks.iter().map(OwnerLock::open_heartbeat).collect();
    let thread = files.and_then(|files| HeartbeatThread::start(files, interval)).map_err(|error| {
        Failure::new(FailureCode::System, "cannot start the heartbeat of this process").with_cause(error)
    })?;
    let follower = FleetFollower::start(
        opened,
        FollowSettings {
            owners: owner_locks.iter().map(|lock| lock.name().to_owned()).collect(),
            interval,
            lifetime: lease * 2,
            config: config_digest(config),
            publishes: config.settings.fleet.publish == Some(true),
        },
    )?;
    Ok(OwnerHeartbeats { _thread: thread, _follower: follower })
}

/// Returns the owners on other machines that hold unfinished work, and have been silent for longer than the lease at two looks.
pub fn list_silent_owners(opened: &OpenedProject, control: &RunControl) -> Result<Vec<String>, Failure> {
    let snapshot = opened.store.begin_snapshot().map_err(hints::store_failure)?;
    let sessions = snapshot.open_sessions().map_err(hints::store_failure)?;
    let effects = snapshot.pending_effects().map_err(hints::store_failure)?;
    let owners = sessions.iter().map(|session| &session.owner).chain(effects.iter().map(|effect| &effect.owner));
    let owners: BTreeSet<String> = owners.map(ToString::to_string).collect();
    let mut elsewhere: Vec<String> =
        owners.into_iter().filter(|owner| opened.project.other_machine(owner).is_some()).collect();
    if elsewhere.is_empty() {
        return Ok(elsewhere);
    }
    let Ok(config) = Config::load(&opened.project.root) else { return Ok(Vec::new()) };
    let lease = lease_time(&execution::restrict_to_trusted(opened, config, false)?);
    elsewhere = fleet::find_silent_owners(&opened.project, &elsewhere, lease)?;
    if elsewhere.is_empty() || !control.wait_unless_cancelled(heartbeat_interval(lease) * 2) {
        return Ok(Vec::new());
    }
    fleet::find_silent_owners(&opened.project, &elsewhere, lease)
}

/// Expires stale leases before a run, under the project's present configuration.
pub fn expire_stale_leases_before_run(opened: &mut OpenedProject) -> Result<(), Failure> {
    // The run itself reports a configuration that cannot be read.
    let Ok(config) = Config::load(&opened.project.root) else { return Ok(()) };
    let config = execution::restrict_to_trusted(opened, config, false)?;
    if find_stale_leases(opened, lease_time(&config))?.is_empty() {
        return Ok(());
    }
    let owner_lock = execution::acquire_owner_lock(&opened.project)?;
    expire_stale_leases(opened, &Arc::new(config), (&owner_lock, &RunControl::new())).map(drop)
}

/// Expires stale leases, and returns their number.
pub fn expire_stale_leases(
    opened: &mut OpenedProject,
    config: &Arc<Config>,
    (owner_lock, control): (&OwnerLock, &RunControl),
) -> Result<usize, Failure> {
    let lease = lease_time(config);
    let first = find_stale_leases(opened, lease)?;
    // Two heartbeat intervals suffice for a process that has just woken up.
    if first.is_empty() || !control.wait_unless_cancelled(heartbeat_interval(lease) * 2) {
        return Ok(0);
    }
    let mut taken = 0;
    for (task, held) in find_stale_leases(opened, lease)? {
        if !first.iter().any(|(before, lease)| before.id == task.id && lease.epoch == held.epoch) {
            continue;
        }
        let trusted = opened.trust || trust::find_trust_state(&opened.project, config)? == TrustState::Trusted;
        let rules = plan::engine_rules(
            config,
            &execution::owner_name(owner_lock),
            if trusted { ConfigTrust::Yes } else { ConfigTrust::No },
        )?;
        let command = Command::ExpireLease { id: task.id, epoch: held.epoch };
        let expired =
            HookExecution::new(opened, config, control).with_owner(owner_lock, rules).run_with_effects(|dispatch| {
                // The command fails if another process was faster.
                let expired = dispatch.commit_command(&command).is_ok();
                dispatch.run_pending_effects().map_err(hints::run_failure)?;
                Ok(expired)
            })?;
        if expired {
            let silent = time_format::format_millis(u64::try_from(lease.as_millis()).unwrap_or(u64::MAX));
            let holder = held.holder_name();
            let silent = format!("{} was held by {holder}, which sent no heartbeat for {silent}", task.id);
            opened.front_end.show_notice(Notice::Note(&silent));
            taken += 1;
        }
    }
    Ok(taken)
}

/// Returns the tasks of sessions whose process is not known to be dead, is not this one, and has had no heartbeat for the lease time.
fn find_stale_leases(opened: &OpenedProject, lease: Duration) -> Result<Vec<(Task, Lease)>, Failure> {
    let with_lease = |mut task: Task| {
        let lease = task.lease.take().filter(|lease| lease.session.is_some())?;
        Some((task, lease))
    };
    let tasks = list_tasks_in_states(&opened.store, &[TaskState::Active, TaskState::Submitted])?;
    let mut held: Vec<(Task, Lease)> = tasks.into_iter().filter_map(with_lease).collect();
    let is_elsewhere = |held: &Lease| opened.project.other_machine(held.owner.as_str()).is_some();
    let elsewhere = held.iter().filter(|(_, held)| is_elsewhere(held));
    let elsewhere: Vec<String> = elsewhere.map(|(_, held)| held.owner.to_string()).collect();
    let silent = fleet::find_silent_owners(&opened.project, &elsewhere, lease)?;
    let owners = opened.project.owner_directory();
    held.retain(|(_, held)| {
        let name = held.owner.as_str();
        if is_elsewhere(held) {
            return silent.iter().any(|silent| silent == name);
        }
        !is_this_process(name)
            && heartbeat_age(&owners, name).is_some_and(|silent| silent > lease)
            && is_owner_alive(&owners, name)
    });
    Ok(held)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use windlass_engine::{
        Authority, CommandOrigin, EngineRules, HookRegistry, NewSession, NewTask, StateView, TaskId, Timestamp,
    };
    use windlass_store::{Lifetime, SqliteStore, Store};
    use windlass_testkit::sample_session;

    use crate::SilentFrontEnd;
    use crate::project::Project;

    use super::*;

    #[test]
    fn heartbeat_interval_is_a_tenth_of_lease_within_bounds() {
        let millis = |lease: u64| heartbeat_interval(Duration::from_millis(lease)).as_millis();
        assert_eq!([300_000, 10_000, 1000, 500, 200].map(millis), [5000, 1000, 100, 50, 50]);
    }

    /// After a suspension all threads of the process go on together, so its own leases are valid.
    #[test]
    fn stale_lease_of_own_process_is_not_found() {
        let place = tempfile::tempdir().expect("a directory");
        let owners = place.path().join(".windlass/owners");
        std::fs::create_dir_all(&owners).expect("a directory");
        let owner_lock = OwnerLock::acquire(&owners, 7).expect("owners can be kept");
        let mut store = SqliteStore::create(&place.path().join("store.db"), Lifetime::Command).expect("a store");
        let rules = EngineRules { registry: HookRegistry::with_builtins(), ..EngineRules::default() };
        let at = Timestamp::from_millis(1_768_644_000_000);
        let origin = CommandOrigin { by: "ada".to_owned(), at, authority: Authority::Person, run: None, via: None };
        let add = Command::CreateTask(NewTask { goal: "One".to_owned(), ..NewTask::default() });
        let begin =
            Command::StartSession(NewSession { owner: owner_lock.name().parse().expect("a name"), ..sample_session() });
        for (nonce, command) in [(1, add), (2, begin)] {
            store.execute_command(&rules, &origin, &command, nonce).expect("it is taken");
        }
        let _heartbeat = owner_lock.open_heartbeat().expect("a first beat");
        while heartbeat_age(&owners, owner_lock.name()).expect("it has a heartbeat").is_zero() {
            thread::yield_now();
        }
        let task = store
            .begin_snapshot()
            .expect("a moment")
            .find_task(TaskId(1))
            .expect("it can be read")
            .expect("it is there");
        assert!(task.lease.is_some_and(|lease| lease.session.is_some()) && is_owner_alive(&owners, owner_lock.name()));
        let project = Project { root: place.path().to_owned() };
        let opened = OpenedProject::new(project, store, false, Arc::new(SilentFrontEnd));
        assert_eq!(find_stale_leases(&opened, Duration::ZERO).ok().map(|held| held.len()), Some(0));
    }
}
