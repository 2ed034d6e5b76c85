//! The cost of hooks that an event does not match.

use std::path::Path;
use std::time::Instant;

use windlass_engine::{
    Command, EngineRules, EventType, HookClass, HookEffect, HookFailurePolicy, HookPlan, HookPoint, HookRegistry,
    PureHook, TaskId,
};
use windlass_store::{Lifetime, SqliteStore, Store};

use crate::report::{Report, Times, at_most, ratio, shown};
use crate::stores::{fill, origin, rules};
use crate::{Effort, Outcome};

const FEW: usize = 10;
const MANY: usize = 1_000;
/// The measured event.
const HEARD: EventType = EventType::TaskStarted;

pub fn measure(effort: Effort, report: &mut Report) -> Outcome<()> {
    report.section("A thousand hooks, beside ten");
    let directory = tempfile::tempdir()?;
    let times = Times::of(effort.commands, |_| closures(MANY).map(drop))?;
    report.fact(&format!("registering {MANY} closures"), shown(times.p50()));
    compare(effort, directory.path(), "closures of which one matches", [closures(FEW)?, closures(MANY)?], report)?;
    compare(effort, directory.path(), "planned hooks of other events", [planned(FEW), planned(MANY)], report)
}

/// Registers closures in addition to the built-ins, one of them for the measured event.
fn closures(count: usize) -> Outcome<EngineRules> {
    let mut registry = HookRegistry::with_builtins();
    registry.register(PureHook::new("heard", [HEARD], |_, _| Ok(vec![])))?;
    for (number, event) in (1..count).zip(others()) {
        registry.register(PureHook::new(format!("closure {number}"), [event], |_, _| Ok(vec![])))?;
    }
    Ok(EngineRules { registry, ..EngineRules::default() })
}

/// Plans hooks, none of them for the measured event.
fn planned(count: usize) -> EngineRules {
    let mut effects = HookPlan::for_all_tasks("", "bench".parse().expect("an owner's name"), []);
    for (number, event) in (0..count).zip(others()) {
        let hook = HookEffect {
            hook: format!("planned {number}"),
            point: HookPoint::Event(event),
            class: HookClass::Other,
            on_failure: HookFailurePolicy::Ignore,
            send_backs: None,
        };
        effects.hooks.entry(event).or_default().push(hook.into());
    }
    EngineRules { effects: Some(effects), ..rules() }
}

/// Repeats all other events without end.
fn others() -> impl Iterator<Item = EventType> {
    EventType::ALL.iter().copied().filter(|event| *event != HEARD).cycle()
}

/// Starts tasks with few hooks and with many, by turns: once with a sync for each, and once without the disk, whose time would hide
/// the difference.
fn compare(effort: Effort, directory: &Path, what: &str, ways: [EngineRules; 2], report: &mut Report) -> Outcome<()> {
    let mut store = SqliteStore::create(&directory.join(format!("{what}.db")), Lifetime::Service)?;
    let turns = 2 * effort.many;
    fill(&mut store, 2 * turns as u64)?;
    let origin = origin();
    let durable = in_turns(turns, |turn| {
        Ok(store.execute_command(&ways[turn % 2], &origin, &start(turn), turn as u128).map(drop)?)
    })?;
    let decided = store.run_transaction(|transaction| {
        Ok(in_turns(turns, |turn| {
            let done =
                transaction.execute_command(&ways[turn % 2], &origin, &start(turns + turn), (turns + turn) as u128);
            Ok(done.map(drop)?)
        }))
    })??;
    for ([few, many], how) in [(durable, "durable"), (decided, "beyond the sync")] {
        let value = ratio(many.p50(), few.p50());
        let measured = format!("{} = {value:.2} × {}", many.shown(), few.shown());
        report.figure(&format!("an event with {MANY} {what}, {how}"), measured, value, at_most(1.1, " × ten"));
    }
    Ok(())
}

fn start(turn: usize) -> Command {
    Command::StartTask { id: TaskId(turn as u64 + 1), context: Default::default() }
}

/// Returns the times of the even turns and of the odd ones.
fn in_turns(turns: usize, mut run: impl FnMut(usize) -> Outcome<()>) -> Outcome<[Times; 2]> {
    let mut times = [Vec::new(), Vec::new()];
    for turn in 0..turns {
        let began = Instant::now();
        run(turn)?;
        times[turn % 2].push(began.elapsed());
    }
    Ok(times.map(Times::from))
}
