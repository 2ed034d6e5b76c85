//! Running a program as a child of this process.
//!
//! As fast as `posix_spawn` itself. It does not survive a `kill -9` of this process for long: what is left then is
//! swept by the next one (`roster`). What must not survive at all goes under a [`Supervisor`](crate::Supervisor).

use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Pid;

use crate::control::Listener;
use crate::os::{self, Leader, Status};
use crate::program::Program;
use crate::watch::{Ends, Observe, Pipes, Tree, pipes, watch};
use crate::{Captured, Control, Exit, Finished, NotStarted, Roster, Spec, Stream};

/// Runs a program to its end, or to the end that its timeout or the control make.
///
/// `observe` sees the output as it comes.
pub fn run(
    spec: &Spec,
    roster: &Roster,
    control: &Control,
    observe: &mut dyn FnMut(Stream, &[u8]),
) -> Result<Finished, NotStarted> {
    let Some(start) = Start::new(spec, roster, control)? else { return Ok(Finished::cancelled()) };
    let began = Instant::now();
    let mut leader = start
        .descriptors()
        .and_then(|descriptors| Leader::start(&start.tag, &start.program, descriptors))
        .map_err(|error| NotStarted::explain(start.program.path(), &spec.directory, error))?;
    let pid = leader.pid();
    Ok(start.follow(&mut leader, pid, began, observe))
}

impl Tree for Leader {
    fn descriptor(&self) -> BorrowedFd<'_> {
        Leader::descriptor(self)
    }

    fn is_gone(&mut self) -> bool {
        true
    }

    fn terminate(&mut self) {
        Leader::terminate(self);
    }

    fn stop(&mut self) {
        Leader::stop(self);
    }

    fn resume(&mut self) {
        Leader::resume(self);
    }

    fn end(&mut self) -> (Status, usize) {
        Leader::end(self)
    }
}

/// Everything that is needed to start a run, whichever way.
pub(crate) struct Start<'a> {
    pub tag: String,
    pub program: Program,
    spec: &'a Spec,
    roster: &'a Roster,
    listener: Listener,
    ours: Pipes<'a>,
    theirs: Ends,
    /// A moment before it is started.
    before: u64,
}

impl<'a> Start<'a> {
    /// `None` if the run was cancelled before it began.
    pub fn new(spec: &'a Spec, roster: &'a Roster, control: &Control) -> Result<Option<Self>, NotStarted> {
        let bare = |source| NotStarted::other(Path::new("a program"), source);
        let mut listener = control.listen().map_err(bare)?;
        if !listener.may_begin() {
            return Ok(None);
        }
        let tag = roster.next_tag();
        let program = Program::of(spec, &tag)?;
        let (ours, theirs) = pipes(spec).map_err(|source| NotStarted::other(program.path(), source))?;
        Ok(Some(Self { tag, program, spec, roster, listener, ours, theirs, before: os::ticks() }))
    }

    /// The child's three descriptors.
    pub fn descriptors(&self) -> io::Result<[BorrowedFd<'_>; 3]> {
        self.theirs.descriptors()
    }

    /// Watches the tree that was started to its end.
    pub fn follow(mut self, tree: &mut dyn Tree, leader: Pid, began: Instant, observe: Observe<'_>) -> Finished {
        // Only the children may hold these now, or there would never be an end.
        drop(self.theirs);
        self.roster.note(leader, self.before);
        let outcome = watch(self.spec, tree, self.ours, &mut self.listener, observe);
        Finished {
            exit: outcome.exit,
            stdout: outcome.stdout,
            stderr: outcome.stderr,
            leaky: outcome.leaky,
            took: began.elapsed(),
        }
    }
}

impl Finished {
    /// What comes of a run that was cancelled before it began.
    pub(crate) fn cancelled() -> Self {
        let none = Captured::default;
        Self { exit: Exit::Cancelled, stdout: none(), stderr: none(), leaky: false, took: Duration::ZERO }
    }
}
