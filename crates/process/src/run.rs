//! Runs a program as a child of this process.
//!
//! As fast as `posix_spawn` itself. A `kill -9` of this process leaves the program alive until the next process sweeps it
//! (`owner`). A program that must not survive at all runs under a [`Supervisor`](crate::Supervisor).

use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Pid;

use crate::control::{Listener, Order};
use crate::os::{self, Leader};
use crate::program::Program;
use crate::watch::{Ends, Observe, Pipes, Tree, pipes, watch};
use crate::{Captured, Control, Exit, Finished, NotStarted, Roster, Spec, Stream};

/// Runs a program until it ends, or until its timeout or the control ends it.
///
/// `observe` sees the output as it comes.
pub fn run(
    spec: &Spec,
    roster: &Roster,
    control: &Control,
    observe: &mut dyn FnMut(Stream, &[u8]),
) -> Result<Finished, NotStarted> {
    let Some(start) = Start::new(spec, roster, control)? else { return Ok(Finished::cancelled()) };
    let descriptors = start.descriptors();
    let leader = descriptors.and_then(|descriptors| Leader::start(&start.tag, &start.program, descriptors));
    let mut leader = leader.map_err(|error| start.refused(error))?;
    let pid = leader.pid();
    Ok(start.follow(&mut leader, Some(pid), observe))
}

/// Everything that is needed to start a run, with or without a supervisor.
pub(crate) struct Start<'a> {
    pub tag: String,
    pub program: Program,
    spec: &'a Spec,
    pub roster: &'a Roster,
    listener: Listener,
    ours: Pipes<'a>,
    theirs: Ends,
    /// A moment before the start, and the same moment in clock ticks.
    began: Instant,
    before: u64,
}

impl<'a> Start<'a> {
    /// Prepares a run. `None` if it was cancelled before it began.
    pub fn new(spec: &'a Spec, roster: &'a Roster, control: &Control) -> Result<Option<Self>, NotStarted> {
        let bare = |source| NotStarted::other(Path::new("a program"), source);
        let listener = control.listen().map_err(bare)?;
        if !listener.may_begin() {
            return Ok(None);
        }
        let tag = roster.next_tag();
        let program = Program::of(spec, &tag)?;
        let (ours, theirs) = pipes(spec).map_err(|source| NotStarted::other(program.path(), source))?;
        Ok(Some(Self {
            tag,
            program,
            spec,
            roster,
            listener,
            ours,
            theirs,
            began: Instant::now(),
            before: os::ticks(),
        }))
    }

    /// Returns the child's three descriptors.
    pub fn descriptors(&self) -> io::Result<[BorrowedFd<'_>; 3]> {
        self.theirs.descriptors()
    }

    /// Returns the reason why the program did not start.
    pub fn refused(&self, error: io::Error) -> NotStarted {
        NotStarted::explain(self.program.path(), &self.spec.directory, error)
    }

    /// Returns whether the run was cancelled since.
    pub fn is_called_off(&self) -> bool {
        self.listener.word().0 != Order::Continue
    }

    /// Watches the started tree until its end.
    pub fn follow(mut self, tree: &mut dyn Tree, leader: Option<Pid>, observe: Observe<'_>) -> Finished {
        // Only the children may hold these ends now, or the output would never end.
        drop(self.theirs);
        if let Some(leader) = leader {
            self.roster.note(leader, self.before);
        }
        let finished = watch(self.spec, tree, self.ours, &mut self.listener, observe);
        Finished { took: self.began.elapsed(), ..finished }
    }
}

impl Finished {
    /// Returns the outcome of a run that was cancelled before it began.
    pub(crate) fn cancelled() -> Self {
        let none = Captured::default;
        Self { exit: Exit::Cancelled, stdout: none(), stderr: none(), leaky: false, took: Duration::ZERO }
    }
}
