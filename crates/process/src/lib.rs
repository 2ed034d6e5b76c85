//! Starts programs. No other crate does.
//!
//! ```text
//!                    ┌ run_program ────────────── os::LeaderProcess ───────┐
//!   ProgramSpec ─────┤                                                     ├── one poll(2) loop ──► ProgramOutcome
//!                    └ Supervisor::run_program ── a process of its own ────┘       ▲
//!                                                 that outlives a `kill -9`        │ RunControl: cancel, kill, pause, resume
//! ```
//!
//! Invariants:
//! - Nothing of a run survives it, however it ended: no process of its group, and no process that left the group.
//! - A failing program is a value ([`Exit`]); only a program that never started is an error ([`NotStarted`]).
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
mod beside;
mod captured;
mod control;
mod course;
mod environment;
pub mod file;
mod heart;
mod live;
mod not_started;
mod nudge;
mod os;
mod owners;
mod pager;
mod pipe;
mod plain;
mod program;
mod ready;
mod roster;
mod run;
pub mod signals;
mod spawn;
mod spec;
mod supervised;
pub mod supervisor;
mod watch;
mod wire;

pub use ancestry::{can_see_ancestors, has_terminal, is_out_of_sight, may_outlive};
pub use beside::Beside;
pub use captured::{Captured, Spilled, create as create_record};
pub use control::Control;
pub use environment::{Environment, overlay};
pub use heart::{Heart, Pulse, silence};
pub use live::{Attended, Heard, Left, Live};
pub use not_started::NotStarted;
pub use nudge::{is_below, nudge};
pub use os::{age, uptime};
pub use pager::{Paged, Pager};
pub use program::{missing, running_program};
pub use roster::{Roster, Swept, is_alive, is_ours, sweep};
pub use run::run;
pub use signal_hook::low_level::signal_name;
pub use spec::{Capture, Exit, Finished, Invocation, Spec, Spill, Stream};
pub use supervised::{Launcher, Supervisor, is_below_supervisor, run_apart, supervisors_above};
