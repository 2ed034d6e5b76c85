//! A program that runs beside a live one, for as long as somebody listens to that: it has no input, and its output and
//! its end are looked at when they are wanted.
//!
//! Invariants:
//! - It runs under a supervisor of its own, so nothing of it survives this process, or the value.
//! - Memory does not grow with what it writes: the last bytes are kept.
//! - When its end is known, so is all that it wrote itself.
//!
//! Not here: waiting for it (`live`).

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::buffer::spare_capacity;
use rustix::event::PollFlags;
use rustix::io::Errno;

use crate::os::Status;
use crate::ready::Awaited;
use crate::supervised::{Link, Supervised};
use crate::watch::Tree;
use crate::{Exit, Launcher, NotStarted, Roster, Spec, file, live};

/// What a read takes at most; a pipe holds as much.
const PIECE: usize = 64 * 1024;

/// A program that runs, or has run, beside a live one.
pub struct Beside {
    tree: Supervised<Link>,
    /// Both of its outputs, in the order in which they were written.
    output: Option<OwnedFd>,
    kept: VecDeque<u8>,
    most: usize,
    left_out: bool,
    exit: Option<Exit>,
}

impl Beside {
    /// Starts a program of which the last bytes of output are kept, at most so many. What the spec says of input, timeout,
    /// grace and capture does not count.
    pub fn start(launcher: &Launcher, spec: &Spec, roster: &Roster, most: usize) -> Result<Self, NotStarted> {
        let bare = |source| NotStarted::other(&spec.directory, source);
        let stdin = file::open_null().map_err(bare)?;
        let (ours, theirs) = io::pipe().map_err(bare)?;
        rustix::io::ioctl_fionbio(&ours, true).map_err(|error| bare(error.into()))?;
        let tree = live::launch(launcher, spec, roster, [stdin.as_fd(), theirs.as_fd(), theirs.as_fd()])?;
        Ok(Self { tree, output: Some(ours.into()), kept: VecDeque::new(), most, left_out: false, exit: None })
    }

    /// The last of what it has written so far, and whether there was more.
    pub fn output(&self) -> (Vec<u8>, bool) {
        (self.kept.iter().copied().collect(), self.left_out)
    }

    /// How it ended, once it has.
    pub fn exit(&self) -> Option<Exit> {
        self.exit
    }

    /// Ends it, and everything that it has left.
    pub fn end(&mut self) {
        let (status, _) = self.tree.end();
        self.drain();
        self.output = None;
        self.exit.get_or_insert(exit(status));
    }

    /// What is to be waited for, in the order in which `look` is told of it.
    pub(crate) fn awaited(&self) -> [Awaited<'_>; 2] {
        let output = self.output.as_ref().map(|pipe| (pipe.as_fd(), PollFlags::IN));
        let leader = self.exit.is_none().then(|| (self.tree.descriptor(), PollFlags::IN));
        [output, leader]
    }

    /// Takes what there is. Answers whether bytes came, and whether its end did.
    pub(crate) fn look(&mut self, output: bool, leader: bool) -> (bool, bool) {
        let moved = output && self.read() > 0;
        let ended = leader && self.exit.is_none() && self.tree.is_gone();
        if ended {
            // Before anybody is told of the end.
            self.drain();
            self.exit = Some(self.tree.status().map_or(Exit::Lost, exit));
        }
        (moved, ended)
    }

    pub(crate) fn stop(&mut self) {
        self.tree.stop();
    }

    pub(crate) fn resume(&mut self) {
        self.tree.resume();
    }

    /// What is in the pipe now. More than it holds could only come from somebody who never ends.
    fn drain(&mut self) {
        let waiting = self.output.as_ref().and_then(|pipe| rustix::io::ioctl_fionread(pipe).ok()).unwrap_or(0);
        let mut left = usize::try_from(waiting).unwrap_or(usize::MAX);
        while left > 0 {
            match self.read() {
                0 => return,
                taken => left = left.saturating_sub(taken),
            }
        }
    }

    /// Reads once. How many bytes there were.
    fn read(&mut self) -> usize {
        let Some(pipe) = &self.output else { return 0 };
        let mut piece = Vec::with_capacity(PIECE);
        match rustix::io::read(pipe, spare_capacity(&mut piece)) {
            Ok(length) if length > 0 => {
                self.keep(&piece);
                length
            }
            Err(Errno::INTR | Errno::AGAIN) => 0,
            Ok(_) | Err(_) => {
                self.output = None;
                0
            }
        }
    }

    fn keep(&mut self, piece: &[u8]) {
        let last = &piece[piece.len().saturating_sub(self.most)..];
        let over = (self.kept.len() + last.len()).saturating_sub(self.most);
        self.left_out |= over > 0 || last.len() < piece.len();
        self.kept.drain(..over);
        self.kept.extend(last);
    }
}

fn exit(status: Status) -> Exit {
    match status {
        Status::Code(code) => Exit::Code(code),
        Status::Signal(signal) => Exit::Signal(signal),
        Status::Lost => Exit::Lost,
    }
}
