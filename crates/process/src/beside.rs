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

use crate::captured::Keeper;
use crate::pipe::{PIPE_SIZE, count_waiting, read_once};
use crate::ready::Awaited;
use crate::supervised::{Link, Supervised};
use crate::watch::Tree;
use crate::{Capture, Exit, Launcher, NotStarted, Roster, Spec, Stream, file, live};

/// A program that runs, or has run, in the background of an interactive process.
pub struct Beside {
    tree: Supervised<Link>,
    /// Standard output and standard error in one pipe, in the order of the writes.
    output: Option<OwnedFd>,
    keeper: Keeper,
    exit: Option<Exit>,
}

impl Beside {
    /// Starts a program and keeps at most the last `most` bytes of its output. The input, timeouts, grace and capture limits of
    /// `spec` are ignored.
    pub fn start(launcher: &Launcher, spec: &Spec, roster: &Roster, most: usize) -> Result<Self, NotStarted> {
        let bare = |source| NotStarted::other(&spec.directory, source);
        let stdin = file::open_null().map_err(bare)?;
        let (ours, theirs) = io::pipe().map_err(bare)?;
        rustix::io::ioctl_fionbio(&ours, true).map_err(|error| bare(error.into()))?;
        let tree = live::launch(launcher, spec, roster, [stdin.as_fd(), theirs.as_fd(), theirs.as_fd()])?;
        let keeper = Keeper::new(&Capture { head: 0, tail: most, spill: None }, Stream::Stdout);
        Ok(Self { tree, output: Some(ours.into()), keeper, exit: None })
    }

    /// Returns the last bytes of output so far, and whether earlier bytes were dropped.
    pub fn output(&self) -> (Vec<u8>, bool) {
        self.keeper.last_bytes()
    }

    /// Returns how the program ended, once it has.
    pub fn exit(&self) -> Option<Exit> {
        self.exit
    }

    /// Ends the program and everything that it started.
    pub fn end(&mut self) {
        let (status, _) = self.tree.end();
        self.drain();
        self.output = None;
        self.exit.get_or_insert(status.into());
    }

    /// Returns the descriptors to poll, in the order of the arguments of `handle_ready`.
    pub(crate) fn awaited(&self) -> [Awaited<'_>; 2] {
        let output = self.output.as_ref().map(|pipe| (pipe.as_fd(), PollFlags::IN));
        let leader = self.exit.is_none().then(|| (self.tree.descriptor(), PollFlags::IN));
        [output, leader]
    }

    /// Reads what is ready. Returns whether bytes came, and whether the program ended.
    pub(crate) fn look(&mut self, output: bool, leader: bool) -> (bool, bool) {
        let moved = output && self.read() > 0;
        let ended = leader && self.exit.is_none() && self.tree.is_gone();
        if ended {
            // The output must be complete before a caller learns of the end.
            self.drain();
            self.exit = Some(self.tree.status().map_or(Exit::Lost, Exit::from));
        }
        (moved, ended)
    }

    pub(crate) fn stop(&mut self) {
        self.tree.stop();
    }

    pub(crate) fn resume(&mut self) {
        self.tree.resume();
    }

    /// Reads what is in the pipe now. Later bytes could only come from a process that writes without end.
    fn drain(&mut self) {
        let mut left = count_waiting(&self.output);
        while left > 0 {
            match self.read() {
                0 => return,
                taken => left = left.saturating_sub(taken),
            }
        }
    }

    /// Reads once. Returns the number of bytes.
    fn read(&mut self) -> usize {
        let mut piece = Vec::with_capacity(PIPE_SIZE);
        let length = read_once(&mut self.output, &mut piece);
        self.keeper.push(&piece);
        length
    }
}
