//! Runs of agents: the session that a request means, what it works with, and several sessions side by side.
//!
//! ```text
//! RunRequest ─► plan_run: configuration, trust, session, agent, place ─► PlannedSession ─► runner ─► SessionReport
//!                                      └─► NothingReady: the tasks that remain, and why
//! WorkerPool ─► SessionScheduler ─► one session after another, on each of N threads
//! ```
//!
//! Not here: the steps of a session (`runner`), its display (a `SessionObserver` of the front end).

mod agent_choice;
mod cancellation;
mod changed_files;
mod cleanup;
mod conflict;
mod dependencies;
mod plan;
mod recorded_config;
mod remaining;
mod session_choice;
mod session_config;
mod session_run;
mod session_tally;
mod stale_leases;
mod target;
mod task_agent;
mod task_check;
mod work_place;
pub mod workers;

pub use cancellation::read_cancellation;
pub use changed_files::{BASE_FILE, ChangedFiles, ChangedFilesQuery};
pub use dependencies::find_open_dependencies;
pub use plan::{NothingReady, PlannedSession, RunPlan, open_project_to_run, plan_run};
pub use recorded_config::{check_trust, find_recorded_config};
pub use remaining::{AgentRestrictions, RemainingTasks};
pub use session_run::{SessionObserver, SessionReport};
pub use session_tally::SessionTally;
pub use target::{RunRequest, RunTarget};
pub use task_agent::find_task_agent;
pub use task_check::{held_in_words, is_left};
pub use work_place::{explain_left_in_place, find_grounds, is_left_in_place};
