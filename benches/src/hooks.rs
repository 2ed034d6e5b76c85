//! The cost of hooks that an event does not match.

use std::path::Path;
use std::time::Instant;

use windlass_engine::{
    Command, EngineRules, EventType, HookClass, HookEffect, HookFailurePolicy, HookPlan, HookPoint, HookRegistry,
    PureHook, TaskId,
};
use windlass_store::{Lifetime, SqliteStore, Store};

use crate::report::{BenchReport, SortedDurations, at_most, format_duration, ratio};
use crate::stores::{bench_origin, builtin_rules, fill_store};
use crate::{BenchResult, BenchScale};

const FEW_HOOKS: usize = 10;
const MANY_HOOKS: usize = 1_000;
/// The measured event.
const MATCHED_EVENT: EventType = EventType::TaskStarted;

pub fn measure(scale: BenchScale, report: &mut BenchReport) -> BenchResult<()> {
    report.begin_section("A thousand hooks, beside ten");
    let directory = tempfile::tempdir()?;
    let times = SortedDurations::measure(scale.command_repetitions, |_| register_closures(MANY_HOOKS).map(drop))?;
    report.add_fact(&format!("registering {MANY_HOOKS} closures"), format_duration(times.p50()));
    compare_hook_counts(
        scale,
        directory.path(),
        "closures of which one matches",
        [register_closures(FEW_HOOKS)?, register_closures(MANY_HOOKS)?],
        report,
    )?;
    compare_hook_counts(
        scale,
        directory.path(),
        "planned hooks of other events",
        [plan_hooks(FEW_HOOKS), plan_hooks(MANY_HOOKS)],
        report,
    )
}

/// Registers closures in addition to the built-ins, one of them for the measured event.
fn register_closures(count: usize) -> BenchResult<EngineRules> {
    let mut registry = HookRegistry::with_builtins();
    registry.register(PureHook::new("heard", [MATCHED_EVENT], |_, _| Ok(vec![])))?;
    for (number, event) in (1..count).zip(cycle_other_events()) {
        registry.register(PureHook::new(format!("closure {number}"), [event], |_, _| Ok(vec![])))?;
    }
    Ok(EngineRules { registry, ..EngineRules::default() })
}

/// Plans hooks, none of them for the measured event.
fn plan_hooks(count: usize) -> EngineRules {
    let mut effects = HookPlan::for_all_tasks("", "bench".parse().expect("an owner's name"), []);
    for (number, event) in (0..count).zip(cycle_other_events()) {
        let hook = HookEffect {
            hook: format!("planned {number}"),
            point: HookPoint::Event(event),
            class: HookClass::Other,
            on_failure: HookFailurePolicy::Ignore,
            send_backs: None,
        };
        effects.hooks.entry(event).or_default().push(hook.into());
    }
    EngineRules { effects: Some(effects), ..builtin_rules() }
}

/// Repeats all other events without end.
fn cycle_other_events() -> impl Iterator<Item = EventType> {
    EventType::ALL.iter().copied().filter(|event| *event != MATCHED_EVENT).cycle()
}

/// Starts tasks with few hooks and with many, by turns: once with a sync for each, and once without the disk, whose time would hide
/// the difference.
fn compare_hook_counts(
    scale: BenchScale,
    directory: &Path,
    what: &str,
    rule_sets: [EngineRules; 2],
    report: &mut BenchReport,
) -> BenchResult<()> {
    let mut store = SqliteStore::create(&directory.join(format!("{what}.db")), Lifetime::Service)?;
    let turns = 2 * scale.repetitions;
    fill_store(&mut store, 2 * turns as u64)?;
    let origin = bench_origin();
    let durable = measure_in_turns(turns, |turn| {
        Ok(store.execute_command(&rule_sets[turn % 2], &origin, &start_task_command(turn), turn as u128).map(drop)?)
    })?;
    let decided = store.run_transaction(|transaction| {
        Ok(measure_in_turns(turns, |turn| {
            let done = transaction.execute_command(
                &rule_sets[turn % 2],
                &origin,
                &start_task_command(turns + turn),
                (turns + turn) as u128,
            );
            Ok(done.map(drop)?)
        }))
    })??;
    for ([few, many], how) in [(durable, "durable"), (decided, "beyond the sync")] {
        let value = ratio(many.p50(), few.p50());
        let measured = format!("{} = {value:.2} × {}", many.format_percentiles(), few.format_percentiles());
        report.add_figure(
            &format!("an event with {MANY_HOOKS} {what}, {how}"),
            measured,
            value,
            at_most(1.1, " × ten"),
        );
    }
    Ok(())
}

fn start_task_command(turn: usize) -> Command {
    Command::StartTask { id: TaskId(turn as u64 + 1), context: Default::default() }
}

/// Returns the times of the even turns and of the odd ones.
fn measure_in_turns(turns: usize, mut run: impl FnMut(usize) -> BenchResult<()>) -> BenchResult<[SortedDurations; 2]> {
    let mut times = [Vec::new(), Vec::new()];
    for turn in 0..turns {
        let began = Instant::now();
        run(turn)?;
        times[turn % 2].push(began.elapsed());
    }
    Ok(times.map(SortedDurations::from_unsorted))
}
