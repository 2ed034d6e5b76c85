//! Hook runs from the log: history, causes, output and metrics.

mod collector;
mod metrics;
mod output;
mod record;

pub use collector::{RUN_EVENTS, collect_runs, find_newest_runs};
pub use metrics::HookMetrics;
pub use output::{find_turn_record, read_last_recorded_lines, read_recorded_output, turn_record_name};
pub use record::{HookRunOutcome, HookRunRecord, RunCause, RunCauses};
