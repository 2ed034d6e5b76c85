//! Hook runs from the log: history, causes and metrics.

mod collector;
mod metrics;
mod record;

pub use collector::{RUN_EVENTS, collect_runs, find_newest_runs};
pub use metrics::HookMetrics;
pub use record::{HookRunOutcome, HookRunRecord, RunCause, RunCauses};
