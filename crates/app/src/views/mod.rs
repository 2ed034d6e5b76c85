//! What the web page and `windlass top` show: plain values, made from one snapshot of the store.
//!
//! ```text
//! store, configuration, git ─► NowView, TaskPage, SessionTimeline, … ─► JSON of the web API, screens of the terminal
//! ```
//!
//! Invariants:
//! - A view is bounded: it says when it left something out.
//! - A view writes nothing and starts no program, except git for a change.
//!
//! Not here: rules (`engine`), the text of events (`event_text`), HTTP (`windlass-web`).

mod budget;
mod change;
mod cost;
mod engine_names;
mod hooks;
mod log;
mod now;
mod question;
mod session;
mod task;
mod timeline;
mod usage;
mod why;

use schemars::JsonSchema;
use serde::Serialize;

pub use budget::{BudgetLimits, BudgetReport, SessionBudget};
pub use change::{
    ChangeDetails, ChangeSummary, CheckResult, DiffHunk, DiffLine, DiffLineKind, FileDiff, FileDiffStatus,
    list_change_summaries, load_change_details,
};
pub use cost::{CostReport, CostRow, HookDuration, StateTime, UsageCounter, build_cost_report};
pub use engine_names::{EventTypeName, TaskStateName};
pub use hooks::{HookPage, HookSummary, load_hook_page};
pub use log::{LogEntry, LogPage, LogQuery, read_log_event, read_log_page};
pub use now::{NowView, StateCount, WaitingItem, WaitingKind, build_now_view, find_waiting_item};
pub use question::OpenQuestion;
pub use session::{SessionPage, SessionSummary, list_session_summaries};
pub use task::{
    TaskDetails, TaskGraphEdge, TaskGraphView, TaskNote, TaskPage, TaskQuery, TaskSummary, list_task_summaries,
    load_task_details, load_task_graph,
};
pub use timeline::{SessionTimeline, TimelineGroup, TimelineItem, TimelineItemKind, build_session_timeline};
pub use usage::UsageTotals;
pub use why::{WhyFactView, WhyView, build_why_view};

/// A text with a label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LabelledText {
    pub label: String,
    pub text: String,
}

impl LabelledText {
    pub fn new(label: &str, text: impl Into<String>) -> Self {
        Self { label: label.to_owned(), text: text.into() }
    }
}

/// Cuts a text for a view, at a whole character.
fn excerpt(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
