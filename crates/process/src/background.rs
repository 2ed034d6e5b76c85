//! A program that runs in the background of an interactive process. It has no input. The session of the interactive process
//! polls its output and its end.
//!
//! Invariants:
//! - It runs under a supervisor of its own, so nothing of it survives this process, or the value.
//! - Memory does not grow with its output: only the last bytes are kept.
//! - When its end is known, all that it wrote itself is known too.
//!
//! Not here: waiting for it (`interactive`).

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::PollFlags;

use crate::capture::OutputCapture;
use crate::descriptor_poll::PollRequest;
use crate::event_loop::ProcessTree;
use crate::pipe::{PIPE_SIZE, count_waiting_bytes, read_pipe_once};
use crate::supervised_run::{SupervisedTree, SupervisorLink};
use crate::{
    CaptureLimits, OutputStream, OwnerLock, ProgramExit, ProgramSpec, ProgramStartError, SupervisorLauncher, file,
    interactive,
};

/// A program that runs, or has run, in the background of an interactive process.
pub struct BackgroundProcess {
    tree: SupervisedTree<SupervisorLink>,
    /// Standard output and standard error in one pipe, in the order of the writes.
    output: Option<OwnedFd>,
    keeper: OutputCapture,
    exit: Option<ProgramExit>,
}

impl BackgroundProcess {
    /// Starts a program and keeps at most the last `most` bytes of its output. The input, timeouts, grace and capture limits of
    /// `spec` are ignored.
    pub fn start(
        launcher: &SupervisorLauncher,
        spec: &ProgramSpec,
        owner_lock: &OwnerLock,
        most: usize,
    ) -> Result<Self, ProgramStartError> {
        let bare = |source| ProgramStartError::from_io_error(&spec.directory, source);
        let stdin = file::open_null_device().map_err(bare)?;
        let (ours, theirs) = io::pipe().map_err(bare)?;
        rustix::io::ioctl_fionbio(&ours, true).map_err(|error| bare(error.into()))?;
        let tree = interactive::launch_supervised(
            launcher,
            spec,
            owner_lock,
            [stdin.as_fd(), theirs.as_fd(), theirs.as_fd()],
        )?;
        let keeper = OutputCapture::new(&CaptureLimits { head: 0, tail: most, spill: None }, OutputStream::Stdout);
        Ok(Self { tree, output: Some(ours.into()), keeper, exit: None })
    }

    /// Returns the last bytes of output so far, and whether earlier bytes were dropped.
    pub fn output(&self) -> (Vec<u8>, bool) {
        self.keeper.last_bytes()
    }

    /// Returns how the program ended, once it has.
    pub fn exit(&self) -> Option<ProgramExit> {
        self.exit
    }

    /// Ends the program and everything that it started.
    pub fn end_tree(&mut self) {
        let (status, _) = self.tree.end_tree();
        self.drain_output();
        self.output = None;
        self.exit.get_or_insert(status.into());
    }

    /// Returns the descriptors to poll, in the order of the arguments of `handle_ready`.
    pub(crate) fn poll_requests(&self) -> [PollRequest<'_>; 2] {
        let output = self.output.as_ref().map(|pipe| (pipe.as_fd(), PollFlags::IN));
        let leader = self.exit.is_none().then(|| (self.tree.leader_descriptor(), PollFlags::IN));
        [output, leader]
    }

    /// Reads what is ready. Returns whether bytes came, and whether the program ended.
    pub(crate) fn handle_ready(&mut self, output: bool, leader: bool) -> (bool, bool) {
        let moved = output && self.read_output() > 0;
        let ended = leader && self.exit.is_none() && self.tree.has_leader_exited();
        if ended {
            // The output must be complete before a caller learns of the end.
            self.drain_output();
            self.exit = Some(self.tree.leader_status().map_or(ProgramExit::Lost, ProgramExit::from));
        }
        (moved, ended)
    }

    pub(crate) fn stop_tree(&mut self) {
        self.tree.stop_tree();
    }

    pub(crate) fn resume_tree(&mut self) {
        self.tree.resume_tree();
    }

    /// Reads what is in the pipe now. Later bytes could only come from a process that writes without end.
    fn drain_output(&mut self) {
        let mut left = count_waiting_bytes(&self.output);
        while left > 0 {
            match self.read_output() {
                0 => return,
                taken => left = left.saturating_sub(taken),
            }
        }
    }

    /// Reads once. Returns the number of bytes.
    fn read_output(&mut self) -> usize {
        let mut piece = Vec::with_capacity(PIPE_SIZE);
        let length = read_pipe_once(&mut self.output, &mut piece);
        self.keeper.push(&piece);
        length
    }
}
