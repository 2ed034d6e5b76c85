//! Runs a program as a child of this process.
//!
//! As fast as `posix_spawn` itself. A `kill -9` of this process leaves the program alive until the next process sweeps it
//! (`owner`). A program that must not survive at all runs under a [`ProgramSupervisor`](crate::ProgramSupervisor).

use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Pid;

use crate::control::{ControlListener, ControlOrder};
use crate::event_loop::{ChildPipes, OutputObserver, ParentPipes, ProcessTree, create_pipes, watch_run};
use crate::os::{self, LeaderProcess};
use crate::program::ResolvedProgram;
use crate::{
    CapturedOutput, OutputStream, OwnerLock, ProgramExit, ProgramOutcome, ProgramSpec, ProgramStartError, RunControl,
};

/// Runs a program until it ends, or until its timeout or the control ends it.
///
/// `observe` sees the output as it comes.
pub fn run_program(
    spec: &ProgramSpec,
    owner_lock: &OwnerLock,
    control: &RunControl,
    observe: &mut dyn FnMut(OutputStream, &[u8]),
) -> Result<ProgramOutcome, ProgramStartError> {
    let Some(start) = RunStart::new(spec, owner_lock, control)? else {
        return Ok(ProgramOutcome::cancelled_before_start());
    };
    let descriptors = start.child_descriptors();
    let leader = descriptors.and_then(|descriptors| LeaderProcess::start(&start.tag, &start.program, descriptors));
    let mut leader = leader.map_err(|error| start.start_error(error))?;
    let pid = leader.pid();
    Ok(start.watch_to_end(&mut leader, Some(pid), observe))
}

/// Everything that is needed to start a run, with or without a supervisor.
pub(crate) struct RunStart<'a> {
    pub tag: String,
    pub program: ResolvedProgram,
    spec: &'a ProgramSpec,
    pub owner_lock: &'a OwnerLock,
    listener: ControlListener,
    ours: ParentPipes<'a>,
    theirs: ChildPipes,
    /// A moment before the start, and the same moment in clock ticks.
    began: Instant,
    before: u64,
}

impl<'a> RunStart<'a> {
    /// Prepares a run. `None` if it was cancelled before it began.
    pub fn new(
        spec: &'a ProgramSpec,
        owner_lock: &'a OwnerLock,
        control: &RunControl,
    ) -> Result<Option<Self>, ProgramStartError> {
        let bare = |source| ProgramStartError::from_io_error(Path::new("a program"), source);
        let listener = control.add_listener().map_err(bare)?;
        if !listener.wait_while_paused() {
            return Ok(None);
        }
        let tag = owner_lock.next_run_tag();
        let program = ResolvedProgram::resolve_spec(spec, &tag)?;
        let (ours, theirs) =
            create_pipes(spec).map_err(|source| ProgramStartError::from_io_error(program.path(), source))?;
        Ok(Some(Self {
            tag,
            program,
            spec,
            owner_lock,
            listener,
            ours,
            theirs,
            began: Instant::now(),
            before: os::clock_ticks_now(),
        }))
    }

    /// Returns the child's three descriptors.
    pub fn child_descriptors(&self) -> io::Result<[BorrowedFd<'_>; 3]> {
        self.theirs.child_descriptors()
    }

    /// Returns the reason why the program did not start.
    pub fn start_error(&self, error: io::Error) -> ProgramStartError {
        ProgramStartError::from_spawn_error(self.program.path(), &self.spec.directory, error)
    }

    /// Returns whether the run was cancelled since.
    pub fn is_cancelled(&self) -> bool {
        self.listener.current_order().0 != ControlOrder::Continue
    }

    /// Watches the started tree until its end.
    pub fn watch_to_end(
        mut self,
        tree: &mut dyn ProcessTree,
        leader: Option<Pid>,
        observe: OutputObserver<'_>,
    ) -> ProgramOutcome {
        // Only the children may hold these ends now, or the output would never end.
        drop(self.theirs);
        if let Some(leader) = leader {
            self.owner_lock.record_leader(leader, self.before);
        }
        let finished = watch_run(self.spec, tree, self.ours, &mut self.listener, observe);
        ProgramOutcome { took: self.began.elapsed(), ..finished }
    }
}

impl ProgramOutcome {
    /// Returns the outcome of a run that was cancelled before it began.
    pub(crate) fn cancelled_before_start() -> Self {
        let none = CapturedOutput::default;
        Self { exit: ProgramExit::Cancelled, stdout: none(), stderr: none(), leaky: false, took: Duration::ZERO }
    }
}
