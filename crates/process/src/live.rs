//! A program that stays and exchanges messages: neither its input nor its output has a fixed end.
//!
//! ```text
//!   InteractiveProcess::start ─► open_session ─► send_input … next_event … send_input ─► open_session again ─► end, or drop
//! ```
//!
//! Invariants:
//! - It runs under a supervisor of its own, so nothing of it survives this process, however that ends, or the value.
//! - Memory does not grow with its output: a caller gets each piece once, and only the head and tail of standard error are kept.
//! - Input is written and output drained at the same time, so that neither can block the other.
//! - During a session, a pause of the control stops the process tree, and no deadline comes nearer meanwhile. Between two
//!   sessions no caller drains the output, and a program that writes then may block.
//! - A session serves the background processes at the same time.
//!
//! Not here: the content of messages (`agents`), background processes (`background`).

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::Errno;

use crate::captured::Keeper;
use crate::control::{Listener, Order};
use crate::os;
use crate::pipe::{PIPE_SIZE, count_waiting, read_once};
use crate::program::Program;
use crate::ready::{ready, ready_of};
use crate::supervised::{Link, StartOutcome, Supervised};
use crate::watch::Tree;
use crate::{Beside, Captured, Control, Exit, Launcher, NotStarted, Roster, Spec, Stream};

/// How long a program may take to exit after its input is closed.
const LEAVE: Duration = Duration::from_secs(2);

/// A running program with which a caller exchanges messages.
pub struct Live {
    tree: Supervised<Link>,
    /// The process tree is stopped until a caller opens a session.
    is_stopped: bool,
    input: Input,
    stdout: Option<OwnedFd>,
    stderr: Option<OwnedFd>,
    keeper: Keeper,
    gone: bool,
    /// When the program, or a background process, last wrote anything. A pause moves it.
    moved: Instant,
}

/// Input that the program has yet to read.
struct Input {
    /// `None` once the pipe is broken, or no more input will come.
    pipe: Option<OwnedFd>,
    rest: VecDeque<u8>,
}

/// The result of waiting in a session.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard {
    /// Bytes from its standard output.
    Said(Vec<u8>),
    /// Its output has ended: the program is gone, or will never write anything again.
    Over,
    /// The deadline has passed, even if output is pending; or nothing is there.
    Late,
    /// A background process has ended.
    Beside,
    /// The control orders to end the work. Reported once.
    Cancelled,
    /// The control orders to end everything now.
    Killed,
}

/// How an interactive process ended.
#[derive(Debug)]
pub struct Left {
    pub exit: Exit,
    pub stderr: Captured,
}

impl Live {
    /// Starts a program under a supervisor of its own. Its input stays open: the input and timeouts of `spec` are ignored. Of its
    /// output only standard error is captured.
    pub fn start(launcher: &Launcher, spec: &Spec, roster: &Roster) -> Result<Self, NotStarted> {
        let bare = |source| NotStarted::other(&spec.directory, source);
        let (stdin, ours) = io::pipe().map_err(bare)?;
        let (stdout, child_stdout) = io::pipe().map_err(bare)?;
        let (stderr, child_stderr) = io::pipe().map_err(bare)?;
        for ours in [ours.as_fd(), stdout.as_fd(), stderr.as_fd()] {
            rustix::io::ioctl_fionbio(ours, true).map_err(|error| bare(error.into()))?;
        }
        let descriptors = [stdin.as_fd(), child_stdout.as_fd(), child_stderr.as_fd()];
        Ok(Self {
            tree: launch(launcher, spec, roster, descriptors)?,
            is_stopped: false,
            input: Input { pipe: Some(ours.into()), rest: VecDeque::new() },
            stdout: Some(stdout.into()),
            stderr: Some(stderr.into()),
            keeper: Keeper::new(&spec.capture, Stream::Stderr),
            gone: false,
            moved: Instant::now(),
        })
    }

    /// Stops the whole process tree until a caller opens a session. When this returns, nothing of it runs; a tree that cannot be
    /// stopped is ended.
    pub fn leave_stopped(&mut self) {
        self.go_on();
        self.tree.stop();
        self.is_stopped = true;
    }

    /// Resumes a program that was left stopped.
    fn go_on(&mut self) {
        if std::mem::take(&mut self.is_stopped) {
            self.tree.resume();
        }
    }

    /// Stops reading its output. Later writes of the program fail, and cannot block it.
    pub fn close_output(&mut self) {
        (self.stdout, self.stderr) = (None, None);
    }

    /// Returns whether the program has ended, whatever it has left behind.
    pub fn has_ended(&mut self) -> bool {
        if !self.gone {
            let [has_news] = ready(&[Some((self.tree.descriptor(), PollFlags::IN))], Some(Instant::now()));
            self.gone = has_news && self.tree.is_gone();
        }
        self.gone
    }

    /// Opens a session, which listens to the program and to the control until it is dropped.
    pub fn attend(&mut self, control: &Control) -> io::Result<Attended<'_>> {
        let listener = control.listen()?;
        self.go_on();
        Ok(Attended { live: self, listener, told: Order::Continue })
    }

    /// Closes its input, gives it a moment to exit, and ends what remains.
    pub fn end(mut self) -> Left {
        self.go_on();
        self.input = Input { pipe: None, rest: VecDeque::new() };
        let until = Instant::now() + LEAVE;
        while !self.gone && Instant::now() < until {
            let mut piece = Vec::new();
            self.wait(None, Some(until), &mut piece, &mut []);
        }
        self.finish()
    }

    /// Ends the whole process tree now.
    pub fn kill(self) -> Left {
        self.finish()
    }

    fn finish(mut self) -> Left {
        self.go_on();
        let (status, _) = self.tree.end();
        // The pipe holds what the program wrote before its end.
        while self.keep_stderr() {}
        Left { exit: status.into(), stderr: self.keeper.finish() }
    }

    /// Waits for anything and moves the bytes that can be moved; `piece` gets those of standard output.
    fn wait(
        &mut self,
        word: Option<BorrowedFd<'_>>,
        until: Option<Instant>,
        piece: &mut Vec<u8>,
        beside: &mut [Beside],
    ) -> News {
        let gone = self.gone;
        let input = self.input.pipe.as_ref().filter(|_| !self.input.rest.is_empty());
        // In the order in which the results are taken below.
        let mut all = vec![
            self.stdout.as_ref().map(|pipe| (pipe.as_fd(), PollFlags::IN)),
            self.stderr.as_ref().map(|pipe| (pipe.as_fd(), PollFlags::IN)),
            input.map(|pipe| (pipe.as_fd(), PollFlags::OUT)),
            (!gone).then(|| (self.tree.descriptor(), PollFlags::IN)),
            word.map(|word| (word, PollFlags::IN)),
        ];
        all.extend(beside.iter().flat_map(Beside::awaited));
        let found = ready_of(&all, until);
        let (own, others) = found.split_at(found.len() - 2 * beside.len());
        let &[out, err, input, leader, word] = own else { unreachable!("there are five of our own") };
        let err = err && self.keep_stderr();
        let out = out && {
            piece.reserve(PIPE_SIZE);
            read_once(&mut self.stdout, piece) > 0
        };
        if input {
            self.input.write();
        }
        self.gone = gone || (leader && self.tree.is_gone());
        let (mut moved, mut ended) = (out || err, false);
        for (beside, ready) in beside.iter_mut().zip(others.chunks_exact(2)) {
            let (its_moved, its_ended) = beside.look(ready[0], ready[1]);
            (moved, ended) = (moved | its_moved, ended | its_ended);
        }
        if moved {
            self.moved = Instant::now();
        }
        News { word, ended }
    }

    /// Reads its standard error once. Returns whether bytes came.
    fn keep_stderr(&mut self) -> bool {
        let mut piece = Vec::with_capacity(PIPE_SIZE);
        let length = read_once(&mut self.stderr, &mut piece);
        self.keeper.push(&piece);
        length > 0
    }
}

/// The result of a wait, apart from bytes.
struct News {
    /// The control has a new order.
    word: bool,
    /// A background process has ended.
    ended: bool,
}

/// Starts a program under a supervisor of its own.
pub(crate) fn launch(
    launcher: &Launcher,
    spec: &Spec,
    roster: &Roster,
    descriptors: [BorrowedFd<'_>; 3],
) -> Result<Supervised<Link>, NotStarted> {
    let tag = roster.next_tag();
    let program = Program::of(spec, &tag)?;
    let before = os::ticks();
    let link = Link::new(launcher).map_err(|source| NotStarted::other(&launcher.program, source))?;
    link.list(roster);
    match link.begin(&program, &descriptors, || false) {
        Ok(StartOutcome::Started(pid)) => {
            roster.note(pid, before);
            Ok(Supervised::new(link, Some(pid), tag))
        }
        Ok(StartOutcome::Refused(error)) => Err(NotStarted::explain(program.path(), &spec.directory, error)),
        Ok(StartOutcome::Lost(error)) | Err(error) => Err(NotStarted::other(&launcher.program, error)),
    }
}

impl Input {
    /// Writes what fits into the pipe.
    fn write(&mut self) {
        while let (Some(pipe), false) = (&self.pipe, self.rest.is_empty()) {
            match rustix::io::write(pipe, self.rest.as_slices().0) {
                Ok(written) => drop(self.rest.drain(..written)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                // The reader is gone. The session notices that at the end of the output.
                Err(_) => {
                    self.pipe = None;
                    self.rest.clear();
                }
            }
        }
    }
}

/// A caller's session with an interactive process.
pub struct Attended<'a> {
    live: &'a mut Live,
    listener: Listener,
    /// The strictest order that was reported already.
    told: Order,
}

impl Attended<'_> {
    /// Sends bytes to its standard input. What does not fit now is written during later waits.
    pub fn say(&mut self, bytes: &[u8]) {
        if self.live.input.pipe.is_some() {
            self.live.input.rest.extend(bytes);
            self.live.input.write();
        }
    }

    /// Returns the number of bytes that it has not read yet.
    pub fn unread(&self) -> usize {
        self.live.input.rest.len()
    }

    /// Returns when the program, or a background process, last wrote anything. Time that passes in a pause is not counted.
    pub fn last_moved(&self) -> Instant {
        self.live.moved
    }

    /// Restarts the wait for output now, whatever it wrote before.
    pub fn begin_waiting(&mut self) {
        self.live.moved = Instant::now();
    }

    /// Returns the next event, waiting at most until the deadline. Time that passes in a pause moves the deadline.
    pub fn hear(&mut self, until: &mut Option<Instant>) -> Heard {
        self.hear_beside(until, &mut [])
    }

    /// Does the same with background processes.
    pub fn hear_beside(&mut self, until: &mut Option<Instant>, beside: &mut [Beside]) -> Heard {
        loop {
            if let Some(ordered) = self.order(until, beside) {
                return ordered;
            }
            // Checked first: a program that never stops writing gets no more time than any other.
            if until.is_some_and(|until| Instant::now() >= until) {
                return Heard::Late;
            }
            if let Some(heard) = self.look(*until, beside) {
                return heard;
            }
        }
    }

    /// Returns an event that is there already, without waiting.
    pub fn hear_now(&mut self) -> Heard {
        let ordered = self.order(&mut None, &mut []);
        ordered.or_else(|| self.look(Some(Instant::now()), &mut [])).unwrap_or(Heard::Late)
    }

    /// Returns an order that was not reported yet. Waits as long as the control is paused.
    fn order(&mut self, until: &mut Option<Instant>, beside: &mut [Beside]) -> Option<Heard> {
        loop {
            let (order, paused) = self.listener.word();
            if order > self.told {
                self.told = order;
                return Some(if order == Order::Kill { Heard::Killed } else { Heard::Cancelled });
            }
            if !paused {
                return None;
            }
            self.stand_still(until, beside);
        }
    }

    /// Waits once.
    fn look(&mut self, until: Option<Instant>, beside: &mut [Beside]) -> Option<Heard> {
        if self.live.stdout.is_none() {
            return Some(Heard::Over);
        }
        let mut piece = Vec::new();
        let news = self.live.wait(Some(self.listener.as_fd()), until, &mut piece, beside);
        if news.word {
            self.listener.clear();
        }
        if !piece.is_empty() {
            return Some(Heard::Said(piece));
        }
        if news.ended {
            return Some(Heard::Beside);
        }
        // A descendant may hold the output open; all that the program itself wrote was in the pipe.
        let is_over = self.live.stdout.is_none() || self.live.gone && count_waiting(&self.live.stdout) == 0;
        is_over.then_some(Heard::Over)
    }

    fn stand_still(&mut self, until: &mut Option<Instant>, beside: &mut [Beside]) {
        let since = Instant::now();
        self.live.tree.stop();
        beside.iter_mut().for_each(Beside::stop);
        self.listener.set_still(true);
        // Waits until the control resumes, or orders an end.
        while self.listener.word().1 {
            ready(&[Some((self.listener.as_fd(), PollFlags::IN))], None);
            self.listener.clear();
        }
        beside.iter_mut().for_each(Beside::resume);
        self.live.tree.resume();
        self.listener.set_still(false);
        let later = |moment: Instant| moment.checked_add(since.elapsed());
        *until = until.and_then(later);
        self.live.moved = later(self.live.moved).unwrap_or(since);
    }
}
