//! Starts programs: the only place that does.
//!
//! ```text
//!             ┌ run ────────────── os::Leader ──────────────┐
//!   Spec ─────┤                                             ├── watch: one poll(2) loop ──► Finished
//!             └ Supervisor::run ── a process of its own ────┘       ▲
//!                                  that outlives a `kill -9`        │ Control: cancel, kill, pause, resume
//! ```
//!
//! Invariants:
//! - Nothing of a run survives it, however it ended: not what it left in its group, and not what left the group.
//! - A failing program is a value ([`Exit`]); only what never started is an error ([`NotStarted`]).
//! - Memory does not grow with the output, and every byte that is kept is kept as it was.
//! - Nobody else's process is ever signalled, and nobody else's exit status taken.
//! - Every child has a session of its own, no terminal, an empty signal mask, and no descriptor but 0, 1 and 2.
//!
//! What a process takes upon itself with its first run: it becomes a subreaper (Linux), so that orphans of its runs
//! become its children; descriptors that it inherited are kept from all later children; and it starts programs here and
//! nowhere else, or at least not in sessions of their own, since those would be taken for orphans. SIGPIPE must stay
//! ignored, as Rust's runtime has it.
//!
//! Not here: what is run and why, what its output means, where the environment comes from.
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
