//! Stale leases: tasks held by a living process whose heartbeat has stopped for too long. A run takes such tasks.
//!
//! A process that works on tasks has a heartbeat. A process that was stopped or hangs has none. When it wakes up, its sessions
//! find that another session holds their tasks, and end.
//!
//! Invariants:
//! - A process never expires a lease of its own.
//! - A process that was suspended cannot tell how long others were. So it checks twice, and takes nothing from an owner whose
//!   heartbeat moved in between.
//! - Leases of dead processes do not expire here: a run resumes their sessions.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use windlass_config::{Config, DurationSetting, plan};
use windlass_engine::{Command, Lease, State, Task, Trusted};
use windlass_process::{Control, Heart, Roster, is_alive, is_ours, silence};
use windlass_store::Sqlite;

use crate::context::{Opened, tasks_in};
use crate::execution::{self, HookExecution};
use crate::trust::{self, Trust};
use crate::{Code, Failure, Notice, hints, times};

/// The default time without a heartbeat after which a lease is stale.
const DEFAULT_LEASE: Duration = Duration::from_secs(300);
/// The bounds of the heartbeat interval.
const MAX_HEARTBEAT: Duration = Duration::from_secs(5);
const MIN_HEARTBEAT: Duration = Duration::from_millis(50);

fn lease_time(config: &Config) -> Duration {
    config.settings.limits.lease.map_or(DEFAULT_LEASE, DurationSetting::duration)
}

/// Returns the heartbeat interval for a lease time.
fn heartbeat_interval(lease: Duration) -> Duration {
    (lease / 10).clamp(MIN_HEARTBEAT, MAX_HEARTBEAT)
}

/// Starts the heartbeat of these owners, which ends when the thread handle is dropped.
pub fn start_heartbeat(rosters: &[Roster], config: &Config) -> Result<Heart, Failure> {
    let pulses: io::Result<Vec<_>> = rosters.iter().map(Roster::pulse).collect();
    let heart = pulses.and_then(|pulses| Heart::start(pulses, heartbeat_interval(lease_time(config))));
    heart.map_err(|error| Failure::new(Code::System, "cannot show others that this process goes on").caused_by(error))
}

/// Expires stale leases before a run, under the project's present configuration.
pub fn expire_stale_leases_before_run(opened: &mut Opened) -> Result<(), Failure> {
    // The run itself reports a configuration that cannot be read.
    let Ok(config) = Config::load(&opened.project.root) else { return Ok(()) };
    let config = execution::trusted_part(opened, config, false)?;
    if find_stale_leases(&opened.store, &opened.project.owners(), lease_time(&config))?.is_empty() {
        return Ok(());
    }
    let roster = execution::enlist(&opened.project)?;
    expire_stale_leases(opened, &Arc::new(config), (&roster, &Control::new())).map(drop)
}

/// Expires stale leases, and returns their number.
pub fn expire_stale_leases(
    opened: &mut Opened,
    config: &Arc<Config>,
    (roster, control): (&Roster, &Control),
) -> Result<usize, Failure> {
    let owners = opened.project.owners();
    let lease = lease_time(config);
    let first = find_stale_leases(&opened.store, &owners, lease)?;
    // Two heartbeat intervals suffice for a process that has just woken up.
    if first.is_empty() || !control.wait(heartbeat_interval(lease) * 2) {
        return Ok(0);
    }
    let mut taken = 0;
    for (task, held) in find_stale_leases(&opened.store, &owners, lease)? {
        if !first.iter().any(|(before, lease)| before.id == task.id && lease.epoch == held.epoch) {
            continue;
        }
        let trusted = opened.trust || trust::state(&opened.project, config)? == Trust::Trusted;
        let rules =
            plan::rules(config, &execution::owner_name(roster), if trusted { Trusted::Yes } else { Trusted::No })?;
        let command = Command::ExpireLease { id: task.id, epoch: held.epoch };
        let expired = HookExecution::new(opened, config, control).owned_by(roster, rules).run(|dispatch| {
            // The command fails if another process was faster.
            let expired = dispatch.commit(&command).is_ok();
            dispatch.run_pending().map_err(hints::run)?;
            Ok(expired)
        })?;
        if expired {
            let silent = times::millis(u64::try_from(lease.as_millis()).unwrap_or(u64::MAX));
            let holder = held.holder();
            let silent = format!("{} was held by {holder}, which was not heard of for {silent}", task.id);
            opened.front_end.show(Notice::Note(&silent));
            taken += 1;
        }
    }
    Ok(taken)
}

/// Returns the tasks of sessions whose process is alive, is not this one, and has had no heartbeat for the lease time.
fn find_stale_leases(store: &Sqlite, owners: &Path, lease: Duration) -> Result<Vec<(Task, Lease)>, Failure> {
    let with_lease = |mut task: Task| {
        let lease = task.lease.take().filter(|lease| lease.session.is_some())?;
        Some((task, lease))
    };
    let tasks = tasks_in(store, &[State::Active, State::Submitted])?;
    let mut held: Vec<(Task, Lease)> = tasks.into_iter().filter_map(with_lease).collect();
    held.retain(|(_, held)| {
        let name = held.owner.as_str();
        !is_ours(name) && silence(owners, name).is_some_and(|silent| silent > lease) && is_alive(owners, name)
    });
    Ok(held)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use windlass_engine::{
        Authority, Grounds, NewSession, NewTask, Origin, Registry, Rules, TaskId, Terms, Timestamp, View, Work,
    };
    use windlass_store::{Lifetime, Store};

    use super::*;

    #[test]
    fn a_heart_beats_many_times_in_a_lease() {
        let millis = |lease: u64| heartbeat_interval(Duration::from_millis(lease)).as_millis();
        assert_eq!([300_000, 10_000, 1000, 500, 200].map(millis), [5000, 1000, 100, 50, 50]);
    }

    /// After a suspension all threads of the process go on together, so its own leases are valid.
    #[test]
    fn nobody_takes_from_its_own_process() {
        let place = tempfile::tempdir().expect("a directory");
        let owners = place.path().join("owners");
        let roster = Roster::enlist(&owners, 7).expect("owners can be kept");
        let mut store = Sqlite::create(&place.path().join("store.db"), Lifetime::Command).expect("a store");
        let rules = Rules { registry: Registry::with_builtins(), ..Rules::default() };
        let at = Timestamp::from_millis(1_768_644_000_000);
        let origin = Origin { by: "ada".to_owned(), at, authority: Authority::Person, run: None, via: None };
        let add = Command::CreateTask(NewTask { goal: "One".to_owned(), ..NewTask::default() });
        let begin = Command::StartSession(NewSession {
            name: "main".parse().expect("a name"),
            task: Some(TaskId(1)),
            goal: None,
            work: Work::Given,
            grounds: Grounds::InPlace,
            config: "hooks: {}".to_owned(),
            protected: None,
            agent: "command:true".to_owned(),
            terms: Terms::default(),
            owner: roster.name().parse().expect("a name"),
            nonce: 7,
            fresh: false,
        });
        for (nonce, command) in [(1, add), (2, begin)] {
            store.execute(&rules, &origin, &command, nonce).expect("it is taken");
        }
        let _pulse = roster.pulse().expect("a first beat");
        while silence(&owners, roster.name()).expect("it has a pulse").is_zero() {
            thread::yield_now();
        }
        let task = store.snapshot().expect("a moment").task(TaskId(1)).expect("it can be read").expect("it is there");
        assert!(task.lease.is_some_and(|lease| lease.session.is_some()) && is_alive(&owners, roster.name()));
        assert_eq!(find_stale_leases(&store, &owners, Duration::ZERO).ok().map(|held| held.len()), Some(0));
    }
}
