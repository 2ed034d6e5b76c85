//! Tasks that are held by a process which is alive, and has not been heard of for too long: they are taken from it.
//!
//! A process that works on tasks has a pulse. One that was stopped has none, and neither has one that hangs. When it wakes
//! up, its sessions find that their tasks are somebody else's, and end.
//!
//! Invariants:
//! - Nobody takes a task from its own process: when that wakes up, all of it does.
//! - Who has stood still itself does not know for how long others did. So it is looked twice, and nothing is taken from
//!   whoever was heard in between.
//! - What belongs to the dead is not looked at here: sessions of theirs are taken up.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use windlass_app::context::{Opened, tasks_in};
use windlass_app::execution::{self, HookExecution};
use windlass_app::trust::{self, Trust};
use windlass_app::{Failure, hints};
use windlass_config::{Config, DurationSetting, plan};
use windlass_engine::{Command, Lease, State, Task, Trusted};
use windlass_process::{Control, Heart, Roster, is_alive, is_ours, silence};
use windlass_store::Sqlite;

use super::system;
use crate::output::Messages;
use crate::show;

/// How long nothing may be heard of whoever works on a task.
const LEASE: Duration = Duration::from_secs(300);
/// The longest and the shortest time between two beats.
const SLOW: Duration = Duration::from_secs(5);
const QUICK: Duration = Duration::from_millis(50);

fn lease(config: &Config) -> Duration {
    config.settings.limits.lease.map_or(LEASE, DurationSetting::duration)
}

/// How often somebody is heard who goes on.
fn beat(lease: Duration) -> Duration {
    (lease / 10).clamp(QUICK, SLOW)
}

/// Shows others that these go on, until it is dropped.
pub fn heart(rosters: &[Roster], config: &Config) -> Result<Heart, Failure> {
    let pulses: io::Result<Vec<_>> = rosters.iter().map(Roster::pulse).collect();
    let heart = pulses.and_then(|pulses| Heart::start(pulses, beat(lease(config))));
    heart.map_err(|error| system("cannot show others that this process goes on", error))
}

/// Takes tasks over before a run, under the project's present configuration.
pub fn take_over(opened: &mut Opened) -> Result<(), Failure> {
    // One that cannot be read is complained about by whoever needs it.
    let Ok(config) = Config::load(&opened.project.root) else { return Ok(()) };
    let config = execution::trusted_part(opened, config, false)?;
    if held_by_the_silent(&opened.store, &opened.project.owners(), lease(&config))?.is_empty() {
        return Ok(());
    }
    let roster = execution::enlist(&opened.project)?;
    take(opened, &Arc::new(config), (&roster, &Control::new())).map(drop)
}

/// Takes the tasks of those over who have been silent for too long. Answers how many there were.
pub fn take(
    opened: &mut Opened,
    config: &Arc<Config>,
    (roster, control): (&Roster, &Control),
) -> Result<usize, Failure> {
    let owners = opened.project.owners();
    let lease = lease(config);
    let first = held_by_the_silent(&opened.store, &owners, lease)?;
    // Two beats are time enough for whoever has only just woken up.
    if first.is_empty() || !control.wait(beat(lease) * 2) {
        return Ok(0);
    }
    let mut taken = 0;
    for (task, held) in held_by_the_silent(&opened.store, &owners, lease)? {
        if !first.iter().any(|(before, lease)| before.id == task.id && lease.epoch == held.epoch) {
            continue;
        }
        let trusted = opened.trust || trust::state(&opened.project, config)? == Trust::Trusted;
        let rules =
            plan::rules(config, &execution::owner_name(roster), if trusted { Trusted::Yes } else { Trusted::No })?;
        let command = Command::ExpireLease { id: task.id, epoch: held.epoch };
        let expired = HookExecution::new(opened, config, control).owned_by(roster, rules).run(|dispatch| {
            // Another process that was quicker has it.
            let expired = dispatch.give(&command).is_ok();
            dispatch.settle().map_err(hints::run)?;
            Ok(expired)
        })?;
        if expired {
            let silent = show::millis(u64::try_from(lease.as_millis()).unwrap_or(u64::MAX));
            let holder = held.holder();
            Messages::new().note(&format!("{} was held by {holder}, which was not heard of for {silent}", task.id));
            taken += 1;
        }
    }
    Ok(taken)
}

/// Tasks of sessions whose process is alive, is not this one, and has been silent for so long.
fn held_by_the_silent(store: &Sqlite, owners: &Path, lease: Duration) -> Result<Vec<(Task, Lease)>, Failure> {
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
        let millis = |lease: u64| beat(Duration::from_millis(lease)).as_millis();
        assert_eq!([300_000, 10_000, 1000, 500, 200].map(millis), [5000, 1000, 100, 50, 50]);
    }

    /// When it wakes up, all of it does: what it holds is in good hands.
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
        assert_eq!(held_by_the_silent(&store, &owners, Duration::ZERO).ok().map(|held| held.len()), Some(0));
    }
}
