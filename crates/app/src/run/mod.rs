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
mod ended_lease;
mod recorded_config;
mod remaining_tasks;
mod run_plan;
mod run_target;
mod session_choice;
mod session_config;
mod session_run;
mod session_tally;
mod stale_leases;
mod task_agent;
mod task_check;
pub mod workers;
mod workspace_choice;

pub use cancellation::read_cancellation;
pub use changed_files::{BASE_FILE, ChangedFiles, ChangedFilesQuery};
pub use dependencies::find_open_dependencies;
pub use recorded_config::{check_config_trust, read_recorded_config};
pub use remaining_tasks::{AgentRestrictions, RemainingTasks};
pub use run_plan::{NothingReady, PlannedSession, RunPlan, open_project_to_run, plan_run};
pub use run_target::{RunRequest, RunTarget};
pub use session_run::{SessionObserver, SessionReport};
pub use session_tally::SessionTally;
pub use stale_leases::list_silent_owners;
pub use task_agent::find_task_agent;
pub use task_check::{describe_holder, is_held_by_idle_session};
pub use workspace_choice::{explain_left_in_place, find_workspace_mode, is_left_in_place};
