//! Facts that agents register for their own work, in words: stop hooks, series of iterations, checkpoints.

use windlass_engine::{CheckpointId, Event, HookId, IterationSeries, Promise, Seq, SeriesGuard, SeriesId, payload};

/// Summarizes such an event; returns `None` for any other.
pub fn summarize_drive_event(seq: Seq, event: &Event) -> Option<String> {
    Some(match event {
        Event::HookRegistered(registered) => {
            format_stop_hook(HookId(seq.0), registered.hook.name(), registered.enabled)
        }
        Event::HooksCleared(cleared) => {
            let ids: Vec<String> = cleared.hooks.iter().map(HookId::to_string).collect();
            format!("{}: {}", format_count(ids.len(), "hook", "hooks"), ids.join(", "))
        }
        Event::HookSwitched(switched) => {
            let on = if switched.enabled { "enabled" } else { "disabled" };
            format!("{} {on}", switched.hook)
        }
        Event::HookEvaluated(evaluated) => {
            let by = evaluated.hook.map(|hook| format!("{hook} ")).unwrap_or_default();
            let place = if evaluated.series.is_none() { " at the gate" } else { "" };
            format!("{by}{}{place}: {}", evaluated.action.name(), evaluated.reason)
        }
        Event::SeriesStarted(started) => format_series_start(SeriesId(seq.0), started),
        Event::ValidationFinished(finished) => format_validation(finished),
        Event::SeriesAdvanced(advanced) => format!("iteration {} of {}", advanced.iteration, advanced.series),
        Event::SeriesEnded(ended) => {
            let after = format_count(ended.iteration as usize, "iteration", "iterations");
            format!("{} with {} after {after}", ended.series, ended.promise.name())
        }
        Event::CheckpointCreated(made) => format_checkpoint(CheckpointId(seq.0), made),
        _ => return None,
    })
}

/// Formats a registered stop hook.
pub fn format_stop_hook(id: HookId, kind: &str, enabled: bool) -> String {
    format!("{id} {kind}{}", if enabled { "" } else { " (disabled)" })
}

fn format_series_start(id: SeriesId, started: &payload::SeriesStarted) -> String {
    let most = format_count(started.max_iterations as usize, "iteration", "iterations");
    let rules = match started.validation_rules.len() {
        0 => String::new(),
        rules => format!(", {}", format_count(rules, "rule", "rules")),
    };
    let strict = if started.strict { ", strict" } else { "" };
    format!("{id}, up to {most}, until {}{rules}{strict}", format_promises(&started.completion_promises))
}

fn format_validation(finished: &payload::ValidationFinished) -> String {
    let failed = finished.results.iter().filter(|result| !result.passed).count();
    let rules = match (finished.results.len(), failed) {
        (0, _) => String::new(),
        (1, 0) => ", its rule passed".to_owned(),
        (1, _) => ", its rule failed".to_owned(),
        (all, 0) => format!(", all {all} rules passed"),
        (all, failed) => format!(", {failed} of {all} rules failed"),
    };
    let by = match (finished.hook, finished.guard) {
        (_, Some(guard)) => format!(", stopped by {}", describe_guard(guard)),
        (Some(hook), None) => format!(", {hook} decided"),
        (None, None) => String::new(),
    };
    format!("{} iteration {}: {}{rules}{by}", finished.series, finished.iteration, finished.signal.name())
}

/// Formats a checkpoint.
pub fn format_checkpoint(id: CheckpointId, made: &payload::CheckpointCreated) -> String {
    let phase = made.execution_phase.as_ref().map(|phase| format!(", phase {phase}")).unwrap_or_default();
    let step = made.execution_step.map(|step| format!(", step {step}")).unwrap_or_default();
    format!("{id}, number {}, {}{phase}{step}", made.sequence, made.trigger)
}

/// Describes the guard that stopped a series.
pub fn describe_guard(guard: SeriesGuard) -> &'static str {
    match guard {
        SeriesGuard::MaxIterations => "the maximum of iterations",
        SeriesGuard::CircuitBreaker => "the circuit breaker",
        SeriesGuard::Thrashing => "the guard against thrashing",
    }
}

/// Formats the progress of the current series.
pub fn format_series(series: &IterationSeries) -> String {
    let judged = series.judged.map_or("not judged yet".to_owned(), |judged| format!("last {}", judged.signal.name()));
    format!("iteration {} of {} in {}, {judged}", series.iteration, series.max_iterations, series.id)
}

pub fn format_promises(promises: &[Promise]) -> String {
    promises.iter().map(|promise| promise.name()).collect::<Vec<_>>().join(", ")
}

/// Formats a count with its noun.
pub fn format_count(count: usize, one: &str, several: &str) -> String {
    if count == 1 { format!("one {one}") } else { format!("{count} {several}") }
}
