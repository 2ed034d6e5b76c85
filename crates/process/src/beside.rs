//! A program that runs beside a live one, for as long as somebody listens to that: it has no input, and its output and
//! its end are looked at when they are wanted.
//!
//! Invariants:
//! - It runs under a supervisor of its own, so nothing of it survives this process, or the value.
//! - Memory does not grow with what it writes: the last bytes are kept.
//! - When its end is known, so is all that it wrote itself.
//!
//! Not here: waiting for it (`live`).

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::PollFlags;

use crate::captured::Keeper;
use crate::pipe::{PIPE_SIZE, count_waiting, read_once};
use crate::ready::Awaited;
use crate::supervised::{Link, Supervised};
use crate::watch::Tree;
use crate::{Capture, Exit, Launcher, NotStarted, Roster, Spec, Stream, file, live};

/// A program that runs, or has run, beside a live one.
pub struct Beside {
    tree: Supervised<Link>,
    /// Both of its outputs, in the order in which they were written.
    output: Option<OwnedFd>,
    keeper: Keeper,
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
        let keeper = Keeper::new(&Capture { head: 0, tail: most, spill: None }, Stream::Stdout);
        Ok(Self { tree, output: Some(ours.into()), keeper, exit: None })
    }

    /// The last of what it has written so far, and whether there was more.
    pub fn output(&self) -> (Vec<u8>, bool) {
        self.keeper.last_bytes()
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
        self.exit.get_or_insert(status.into());
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

    /// What is in the pipe now. More than it holds could only come from somebody who never ends.
    fn drain(&mut self) {
        let mut left = count_waiting(&self.output);
        while left > 0 {
            match self.read() {
                0 => return,
                taken => left = left.saturating_sub(taken),
            }
        }
    }

    /// Reads once. How many bytes there were.
    fn read(&mut self) -> usize {
        let mut piece = Vec::with_capacity(PIPE_SIZE);
        let length = read_once(&mut self.output, &mut piece);
        self.keeper.push(&piece);
        length
    }
}
