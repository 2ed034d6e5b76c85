//! Starts programs. No other crate does.
//!
//! ```text
//!                    ┌ run_program ────────────────────── os::LeaderProcess ──────┐
//!   ProgramSpec ─────┤                                                            ├── one poll(2) loop ──► ProgramOutcome
//!                    └ ProgramSupervisor::run_program ── a process of its own ────┘       ▲
//!                                                        that outlives a `kill -9`        │ RunControl: cancel, kill, pause, resume
//! ```
//!
//! Invariants:
//! - Nothing of a run survives it, however it ended: no process of its group, and no process that left the group.
//! - A failing program is a value ([`ProgramExit`]); only a program that never started is an error ([`ProgramStartError`]).
//! - Memory does not grow with the output, and captured bytes are kept unchanged.
//! - No unrelated process is ever signalled, and no unrelated exit status taken.
//! - Every child has a session of its own, no terminal, an empty signal mask, and no descriptor but 0, 1 and 2.
//!
//! The first run changes this process: it becomes a subreaper (Linux), so that orphans of its runs become its children, and
//! no later child inherits the descriptors that it inherited. From then on it must start programs only here, or at least not in
//! sessions of their own, since the crate would take those for orphans. SIGPIPE must stay ignored, as Rust's runtime has it.
//!
//! Not here: which program runs and why, what its output means, where the environment comes from.
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests read files that they have written"))]

mod ancestry;
mod background;
mod browser;
mod capture;
mod control;
mod descriptor_poll;
mod environment;
mod event_loop;
pub mod file;
mod heartbeat;
mod interactive;
mod machine_tag;
mod os;
mod owner;
mod owner_directory;
mod pager;
mod pipe;
mod plain_script;
mod program;
mod replacement;
mod run;
mod run_state;
pub mod signals;
mod spawn;
mod spec;
mod start_error;
mod supervised_run;
pub mod supervisor;
mod wake;
mod wire;

pub use ancestry::{can_see_ancestors, has_controlling_terminal, is_owner_in_other_namespace, may_be_left_by_owner};
pub use background::BackgroundProcess;
pub use browser::open_in_browser;
pub use capture::{CapturedOutput, SpillFile, create_record_file as create_record};
pub use control::RunControl;
pub use environment::{Environment, overlay_environment};
pub use heartbeat::{HeartbeatFile, HeartbeatThread, heartbeat_age};
pub use interactive::{InteractiveExit, InteractiveProcess, IoSession, ProcessEvent};
pub use machine_tag::{MachineTag, MachineTagError};
pub use os::{process_age, system_uptime};
pub use owner::{OwnerLock, SweptOwner, is_owner_alive, is_this_process, sweep_dead_owners};
pub use pager::{PagerOutcome, TerminalPager};
pub use program::{find_missing_program, running_program_path};
pub use replacement::{replace_process, run_probe};
pub use run::run_program;
pub use signal_hook::low_level::signal_name;
pub use spec::{CaptureLimits, OutputStream, ProgramExit, ProgramInvocation, ProgramOutcome, ProgramSpec, SpillTarget};
pub use start_error::ProgramStartError;
pub use supervised_run::{
    ProgramSupervisor, SupervisorLauncher, count_supervisors_above, is_below_supervisor, is_connection_supervised,
    run_with_own_supervisor,
};
pub use wake::{is_below_owner, wake_owner};
