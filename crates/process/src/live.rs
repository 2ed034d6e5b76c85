//! A program that stays, and is spoken with: what goes in and what comes out have no end of their own.
//!
//! ```text
//!   Live::start ──► attend ──► say … hear … say … hear ──► attend again, later ──► end, or drop
//! ```
//!
//! Invariants:
//! - It runs under a supervisor of its own, so nothing of it survives this process, however that ends, or the value.
//! - Memory does not grow with what it says: a caller gets each piece once, and of its standard error a start and an end
//!   are kept.
//! - Input is written and output drained at the same time, so that neither can block the other.
//! - While somebody attends to it, it hears the control: a pause stops its tree, and no deadline comes nearer meanwhile.
//!   Between two times nobody drains it, and one that talks then is blocked until somebody listens.
//!
//! Not here: what is said (`agents`).

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::Pid;

use crate::captured::Keeper;
use crate::control::{Listener, Order};
use crate::os::{self, Status};
use crate::program::Program;
use crate::ready::ready;
use crate::supervised::{Link, Supervised};
use crate::watch::Tree;
use crate::wire::{self, Report};
use crate::{Captured, Control, Exit, Launcher, NotStarted, Roster, Spec, Stream};

/// What a read takes at most; a pipe holds as much.
const PIECE: usize = 64 * 1024;
/// How long one that is asked to end may take to do so by itself.
const LEAVE: Duration = Duration::from_secs(2);

/// A program that is under way.
pub struct Live {
    tree: Supervised<Link>,
    input: Input,
    stdout: Option<OwnedFd>,
    stderr: Option<OwnedFd>,
    keeper: Keeper,
    gone: bool,
}

/// What it has yet to be given.
struct Input {
    /// `None` once nobody reads it, or nothing more is to come.
    pipe: Option<OwnedFd>,
    rest: VecDeque<u8>,
}

/// What came of listening.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard {
    /// It wrote this to its standard output.
    Said(Vec<u8>),
    /// Its output is over: it is gone, or will never say anything again.
    Over,
    /// The time is up, whatever it goes on to say, or nothing is there.
    Late,
    /// The control says that the work is to end. Told once.
    Cancelled,
    /// The control says that everything is to end now.
    Killed,
}

/// How a program ended that has stayed.
#[derive(Debug)]
pub struct Left {
    pub exit: Exit,
    pub stderr: Captured,
}

impl Live {
    /// Starts a program under a supervisor of its own. Its input stays open: what the spec says of input and timeout does
    /// not count. Of its output only standard error is kept.
    pub fn start(launcher: &Launcher, spec: &Spec, roster: &Roster) -> Result<Self, NotStarted> {
        let tag = roster.next_tag();
        let program = Program::of(spec, &tag)?;
        let other = |source| NotStarted::other(program.path(), source);
        let (stdin, ours) = io::pipe().map_err(other)?;
        let (stdout, child_stdout) = io::pipe().map_err(other)?;
        let (stderr, child_stderr) = io::pipe().map_err(other)?;
        for ours in [ours.as_fd(), stdout.as_fd(), stderr.as_fd()] {
            rustix::io::ioctl_fionbio(ours, true).map_err(|error| other(error.into()))?;
        }
        let before = os::ticks();
        let link = Link::new(launcher).map_err(|source| NotStarted::other(&launcher.program, source))?;
        let pid = match begin(&link, &program, [stdin.as_fd(), child_stdout.as_fd(), child_stderr.as_fd()]) {
            Ok(Ok(pid)) => pid,
            Ok(Err(refused)) => return Err(NotStarted::explain(program.path(), &spec.directory, refused)),
            Err(lost) => {
                link.kill();
                return Err(NotStarted::other(&launcher.program, lost));
            }
        };
        roster.note(pid, before);
        Ok(Self {
            tree: Supervised::new(link, Some(pid), tag),
            input: Input { pipe: Some(ours.into()), rest: VecDeque::new() },
            stdout: Some(stdout.into()),
            stderr: Some(stderr.into()),
            keeper: Keeper::new(&spec.capture, Stream::Stderr),
            gone: false,
        })
    }

    /// Listens to it, and to the control, for as long as the answer lives.
    pub fn attend(&mut self, control: &Control) -> io::Result<Attended<'_>> {
        let listener = control.listen()?;
        Ok(Attended { live: self, listener, told: Order::Continue })
    }

    /// Closes its input, gives it a moment to leave, and ends whatever is left.
    pub fn end(mut self) -> Left {
        self.input = Input { pipe: None, rest: VecDeque::new() };
        let until = Instant::now() + LEAVE;
        while !self.gone && Instant::now() < until {
            let mut piece = Vec::new();
            self.wait(None, Some(until), &mut piece);
        }
        self.finish()
    }

    /// Ends it and everything below it now.
    pub fn kill(self) -> Left {
        self.finish()
    }

    fn finish(mut self) -> Left {
        let (status, _) = self.tree.end();
        // What it wrote before its end is in the pipe.
        let mut piece = Vec::new();
        while self.stderr.is_some() && self.read(Stream::Stderr, &mut piece) > 0 {}
        let exit = match status {
            Status::Code(code) => Exit::Code(code),
            Status::Signal(signal) => Exit::Signal(signal),
            Status::Lost => Exit::Lost,
        };
        Left { exit, stderr: self.keeper.finish() }
    }

    /// Waits for anything and moves the bytes that can be moved; `piece` gets what came on standard output. Answers whether
    /// there is a word of the control.
    fn wait(&mut self, word: Option<BorrowedFd<'_>>, until: Option<Instant>, piece: &mut Vec<u8>) -> bool {
        let timeout = until.map(|until| timespec(until.saturating_duration_since(Instant::now())));
        let input = self.input.pipe.as_ref().filter(|_| !self.input.rest.is_empty());
        // In the order in which they are looked at below.
        let all = [
            self.stdout.as_ref().map(|pipe| (pipe.as_fd(), PollFlags::IN)),
            self.stderr.as_ref().map(|pipe| (pipe.as_fd(), PollFlags::IN)),
            input.map(|pipe| (pipe.as_fd(), PollFlags::OUT)),
            (!self.gone).then(|| (self.tree.descriptor(), PollFlags::IN)),
            word.map(|word| (word, PollFlags::IN)),
        ];
        let [out, err, input, leader, word] = ready(&all, timeout.as_ref());
        if err {
            self.read(Stream::Stderr, &mut Vec::new());
        }
        if out {
            self.read(Stream::Stdout, piece);
        }
        if input {
            self.input.write();
        }
        self.gone = self.gone || (leader && self.tree.is_gone());
        word
    }

    /// Reads once. How many bytes there were.
    fn read(&mut self, stream: Stream, piece: &mut Vec<u8>) -> usize {
        let place = if stream == Stream::Stdout { &mut self.stdout } else { &mut self.stderr };
        let Some(pipe) = place else { return 0 };
        piece.clear();
        piece.reserve(PIECE);
        match rustix::io::read(&*pipe, spare_capacity(piece)) {
            Ok(length) if length > 0 => {
                if stream == Stream::Stderr {
                    self.keeper.push(piece);
                }
                length
            }
            Err(Errno::INTR | Errno::AGAIN) => 0,
            Ok(_) | Err(_) => {
                *place = None;
                0
            }
        }
    }
}

/// Has the supervisor start the program. The outer error means that it is good for nothing.
fn begin(link: &Link, program: &Program, descriptors: [BorrowedFd<'_>; 3]) -> io::Result<io::Result<Pid>> {
    wire::send_start(link.socket(), program, &descriptors)?;
    match link.report(|| false)? {
        Report::Started(pid) => Ok(Ok(Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidData)?)),
        Report::Failed(error) => Ok(Err(io::Error::from_raw_os_error(error))),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

impl Input {
    /// Writes what fits.
    fn write(&mut self) {
        while let (Some(pipe), false) = (&self.pipe, self.rest.is_empty()) {
            match rustix::io::write(pipe, self.rest.as_slices().0) {
                Ok(written) => drop(self.rest.drain(..written)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                // Nobody reads any more, which is noticed where its output ends.
                Err(_) => {
                    self.pipe = None;
                    self.rest.clear();
                }
            }
        }
    }
}

/// A live program, and somebody who listens.
pub struct Attended<'a> {
    live: &'a mut Live,
    listener: Listener,
    /// What of the control's orders was told already.
    told: Order,
}

impl Attended<'_> {
    /// Gives it something to read. What does not fit now is written while it is listened to.
    pub fn say(&mut self, bytes: &[u8]) {
        if self.live.input.pipe.is_some() {
            self.live.input.rest.extend(bytes);
            self.live.input.write();
        }
    }

    /// What comes next, at most until then. Time that passes in a pause is not counted, and moves the deadline.
    pub fn hear(&mut self, until: &mut Option<Instant>) -> Heard {
        loop {
            if let Some(ordered) = self.order(until) {
                return ordered;
            }
            // First: one that never falls silent has no more time than any other.
            if until.is_some_and(|until| Instant::now() >= until) {
                return Heard::Late;
            }
            if let Some(heard) = self.look(*until) {
                return heard;
            }
        }
    }

    /// What is there already.
    pub fn hear_now(&mut self) -> Heard {
        let ordered = self.order(&mut None);
        ordered.or_else(|| self.look(Some(Instant::now()))).unwrap_or(Heard::Late)
    }

    /// What the control wants and was not told yet. Stands still for as long as it wants that.
    fn order(&mut self, until: &mut Option<Instant>) -> Option<Heard> {
        loop {
            let (order, paused) = self.listener.word();
            if order > self.told {
                self.told = order;
                return Some(if order == Order::Kill { Heard::Killed } else { Heard::Cancelled });
            }
            if !paused {
                return None;
            }
            self.stand_still(until);
        }
    }

    /// Waits once.
    fn look(&mut self, until: Option<Instant>) -> Option<Heard> {
        if self.live.stdout.is_none() {
            return Some(Heard::Over);
        }
        let mut piece = Vec::new();
        if self.live.wait(Some(self.listener.as_fd()), until, &mut piece) {
            self.listener.clear();
        }
        if !piece.is_empty() {
            return Some(Heard::Said(piece));
        }
        // Its output may be held open by what it left; whatever it wrote itself was in the pipe.
        (self.live.gone && self.live.waiting() == 0).then_some(Heard::Over)
    }

    fn stand_still(&mut self, until: &mut Option<Instant>) {
        let since = Instant::now();
        self.live.tree.stop();
        self.listener.set_still(true);
        while self.listener.word().1 {
            ready(&[Some((self.listener.as_fd(), PollFlags::IN))], None);
            self.listener.clear();
        }
        self.live.tree.resume();
        self.listener.set_still(false);
        *until = until.and_then(|until| until.checked_add(since.elapsed()));
    }
}

impl Live {
    /// How many bytes of its output are in the pipe.
    fn waiting(&self) -> u64 {
        self.stdout.as_ref().and_then(|pipe| rustix::io::ioctl_fionread(pipe).ok()).unwrap_or(0)
    }
}

fn timespec(duration: Duration) -> Timespec {
    duration.try_into().unwrap_or(Timespec { tv_sec: i64::from(i32::MAX), tv_nsec: 0 })
}
