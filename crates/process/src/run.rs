//! Running a program as a child of this process.
//!
//! As fast as `posix_spawn` itself. It does not survive a `kill -9` of this process for long: what is left then is
//! swept by the next one (`roster`). What must not survive at all goes under a [`Supervisor`](crate::Supervisor).

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
    let descriptors = start.descriptors();
    let leader = descriptors.and_then(|descriptors| Leader::start(&start.tag, &start.program, descriptors));
    let mut leader = leader.map_err(|error| start.refused(error))?;
    let pid = leader.pid();
    Ok(start.follow(&mut leader, Some(pid), observe))
}

/// Everything that is needed to start a run, whichever way.
pub(crate) struct Start<'a> {
    pub tag: String,
    pub program: Program,
    spec: &'a Spec,
    pub roster: &'a Roster,
    listener: Listener,
    ours: Pipes<'a>,
    theirs: Ends,
    /// A moment before it is started, and the same moment in ticks.
    began: Instant,
    before: u64,
}

impl<'a> Start<'a> {
    /// `None` if the run was cancelled before it began.
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

    /// The child's three descriptors.
    pub fn descriptors(&self) -> io::Result<[BorrowedFd<'_>; 3]> {
        self.theirs.descriptors()
    }

    /// Why the program did not start.
    pub fn refused(&self, error: io::Error) -> NotStarted {
        NotStarted::explain(self.program.path(), &self.spec.directory, error)
    }

    /// Whether the run was cancelled since.
    pub fn is_called_off(&self) -> bool {
        self.listener.word().0 != Order::Continue
    }

    /// Watches the tree that was started to its end.
    pub fn follow(mut self, tree: &mut dyn Tree, leader: Option<Pid>, observe: Observe<'_>) -> Finished {
        // Only the children may hold these now, or there would never be an end.
        drop(self.theirs);
        if let Some(leader) = leader {
            self.roster.note(leader, self.before);
        }
        let finished = watch(self.spec, tree, self.ours, &mut self.listener, observe);
        Finished { took: self.began.elapsed(), ..finished }
    }
}

impl Finished {
    /// What comes of a run that was cancelled before it began.
    pub(crate) fn cancelled() -> Self {
        let none = Captured::default;
        Self { exit: Exit::Cancelled, stdout: none(), stderr: none(), leaky: false, took: Duration::ZERO }
    }
}
