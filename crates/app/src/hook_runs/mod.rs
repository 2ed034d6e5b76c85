//! Runs of hooks as the log tells of them: history, causes and metrics.

mod collector;
mod metrics;
mod record;

pub use collector::{RUN_EVENTS, collect_runs, find_newest_runs};
pub use metrics::HookMetrics;
pub use record::{HookRunOutcome, HookRunRecord, RunCause, RunCauses};
