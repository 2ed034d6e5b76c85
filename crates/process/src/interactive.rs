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

use crate::capture::OutputCapture;
use crate::control::{ControlListener, ControlOrder};
use crate::descriptor_poll::{poll_descriptor_list, poll_descriptors};
use crate::event_loop::ProcessTree;
use crate::os;
use crate::pipe::{PIPE_SIZE, count_waiting_bytes, read_pipe_once};
use crate::program::ResolvedProgram;
use crate::supervised_run::{StartOutcome, SupervisedTree, SupervisorLink};
use crate::{
    BackgroundProcess, CapturedOutput, OutputStream, OwnerLock, ProgramExit, ProgramSpec, ProgramStartError,
    RunControl, SupervisorLauncher,
};

/// How long a program may take to exit after its input is closed.
const EXIT_GRACE: Duration = Duration::from_secs(2);

/// A running program with which a caller exchanges messages.
pub struct InteractiveProcess {
    tree: SupervisedTree<SupervisorLink>,
    /// The process tree is stopped until a caller opens a session.
    is_stopped: bool,
    input: InteractiveInput,
    stdout: Option<OwnedFd>,
    stderr: Option<OwnedFd>,
    keeper: OutputCapture,
    gone: bool,
    /// When the program, or a background process, last wrote anything. A pause moves it.
    last_output_at: Instant,
}

/// Input that the program has yet to read.
struct InteractiveInput {
    /// `None` once the pipe is broken, or no more input will come.
    pipe: Option<OwnedFd>,
    rest: VecDeque<u8>,
}

/// The result of waiting in a session.
#[derive(Debug, PartialEq, Eq)]
pub enum ProcessEvent {
    /// Bytes from its standard output.
    Output(Vec<u8>),
    /// Its output has ended: the program is gone, or will never write anything again.
    OutputEnded,
    /// The deadline has passed, even if output is pending; or nothing is there.
    DeadlinePassed,
    /// A background process has ended.
    BackgroundEnded,
    /// The control orders to end the work. Reported once.
    Cancelled,
    /// The control orders to end everything now.
    Killed,
}

/// How an interactive process ended.
#[derive(Debug)]
pub struct InteractiveExit {
    pub exit: ProgramExit,
    pub stderr: CapturedOutput,
}

impl InteractiveProcess {
    /// Starts a program under a supervisor of its own. Its input stays open: the input and timeouts of `spec` are ignored. Of its
    /// output only standard error is captured.
    pub fn start(
        launcher: &SupervisorLauncher,
        spec: &ProgramSpec,
        owner_lock: &OwnerLock,
    ) -> Result<Self, ProgramStartError> {
        let bare = |source| ProgramStartError::from_io_error(&spec.directory, source);
        let (stdin, ours) = io::pipe().map_err(bare)?;
        let (stdout, child_stdout) = io::pipe().map_err(bare)?;
        let (stderr, child_stderr) = io::pipe().map_err(bare)?;
        for ours in [ours.as_fd(), stdout.as_fd(), stderr.as_fd()] {
            rustix::io::ioctl_fionbio(ours, true).map_err(|error| bare(error.into()))?;
        }
        let descriptors = [stdin.as_fd(), child_stdout.as_fd(), child_stderr.as_fd()];
        Ok(Self {
            tree: launch_supervised(launcher, spec, owner_lock, descriptors)?,
            is_stopped: false,
            input: InteractiveInput { pipe: Some(ours.into()), rest: VecDeque::new() },
            stdout: Some(stdout.into()),
            stderr: Some(stderr.into()),
            keeper: OutputCapture::new(&spec.capture, OutputStream::Stderr),
            gone: false,
            last_output_at: Instant::now(),
        })
    }

    /// Stops the whole process tree until a caller opens a session. When this returns, nothing of it runs; a tree that cannot be
    /// stopped is ended.
    pub fn suspend_tree(&mut self) {
        self.resume_suspended_tree();
        self.tree.stop_tree();
        self.is_stopped = true;
    }

    /// Resumes a program that was left stopped.
    fn resume_suspended_tree(&mut self) {
        if std::mem::take(&mut self.is_stopped) {
            self.tree.resume_tree();
        }
    }

    /// Stops reading its output. Later writes of the program fail, and cannot block it.
    pub fn close_output(&mut self) {
        (self.stdout, self.stderr) = (None, None);
    }

    /// Returns whether the program has ended, whatever it has left behind.
    pub fn has_ended(&mut self) -> bool {
        if !self.gone {
            let [has_news] =
                poll_descriptors(&[Some((self.tree.leader_descriptor(), PollFlags::IN))], Some(Instant::now()));
            self.gone = has_news && self.tree.has_leader_exited();
        }
        self.gone
    }

    /// Opens a session, which listens to the program and to the control until it is dropped.
    pub fn open_session(&mut self, control: &RunControl) -> io::Result<IoSession<'_>> {
        let listener = control.add_listener()?;
        self.resume_suspended_tree();
        Ok(IoSession { live: self, listener, reported_order: ControlOrder::Continue })
    }

    /// Closes its input, gives it a moment to exit, and ends what remains.
    pub fn end_gracefully(mut self) -> InteractiveExit {
        self.resume_suspended_tree();
        self.input = InteractiveInput { pipe: None, rest: VecDeque::new() };
        let until = Instant::now() + EXIT_GRACE;
        while !self.gone && Instant::now() < until {
            let mut piece = Vec::new();
            self.wait_for_io(None, Some(until), &mut piece, &mut []);
        }
        self.finish_process()
    }

    /// Ends the whole process tree now.
    pub fn kill_tree(self) -> InteractiveExit {
        self.finish_process()
    }

    fn finish_process(mut self) -> InteractiveExit {
        self.resume_suspended_tree();
        let (status, _) = self.tree.end_tree();
        // The pipe holds what the program wrote before its end.
        while self.capture_stderr() {}
        InteractiveExit { exit: status.into(), stderr: self.keeper.finish_capture() }
    }

    /// Waits for anything and moves the bytes that can be moved; `piece` gets those of standard output.
    fn wait_for_io(
        &mut self,
        word: Option<BorrowedFd<'_>>,
        until: Option<Instant>,
        piece: &mut Vec<u8>,
        beside: &mut [BackgroundProcess],
    ) -> WaitReport {
        let gone = self.gone;
        let input = self.input.pipe.as_ref().filter(|_| !self.input.rest.is_empty());
        // In the order in which the results are taken below.
        let mut all = vec![
            self.stdout.as_ref().map(|pipe| (pipe.as_fd(), PollFlags::IN)),
            self.stderr.as_ref().map(|pipe| (pipe.as_fd(), PollFlags::IN)),
            input.map(|pipe| (pipe.as_fd(), PollFlags::OUT)),
            (!gone).then(|| (self.tree.leader_descriptor(), PollFlags::IN)),
            word.map(|word| (word, PollFlags::IN)),
        ];
        all.extend(beside.iter().flat_map(BackgroundProcess::poll_requests));
        let found = poll_descriptor_list(&all, until);
        let (own, others) = found.split_at(found.len() - 2 * beside.len());
        let &[out, err, input, leader, word] = own else { unreachable!("there are five of our own") };
        let err = err && self.capture_stderr();
        let out = out && {
            piece.reserve(PIPE_SIZE);
            read_pipe_once(&mut self.stdout, piece) > 0
        };
        if input {
            self.input.write_pending();
        }
        self.gone = gone || (leader && self.tree.has_leader_exited());
        let (mut moved, mut ended) = (out || err, false);
        for (beside, ready) in beside.iter_mut().zip(others.chunks_exact(2)) {
            let (its_moved, its_ended) = beside.handle_ready(ready[0], ready[1]);
            (moved, ended) = (moved | its_moved, ended | its_ended);
        }
        if moved {
            self.last_output_at = Instant::now();
        }
        WaitReport { has_order: word, ended }
    }

    /// Reads its standard error once. Returns whether bytes came.
    fn capture_stderr(&mut self) -> bool {
        let mut piece = Vec::with_capacity(PIPE_SIZE);
        let length = read_pipe_once(&mut self.stderr, &mut piece);
        self.keeper.push(&piece);
        length > 0
    }
}

/// The result of a wait, apart from bytes.
struct WaitReport {
    /// The control has a new order.
    has_order: bool,
    /// A background process has ended.
    ended: bool,
}

/// Starts a program under a supervisor of its own.
pub(crate) fn launch_supervised(
    launcher: &SupervisorLauncher,
    spec: &ProgramSpec,
    owner_lock: &OwnerLock,
    descriptors: [BorrowedFd<'_>; 3],
) -> Result<SupervisedTree<SupervisorLink>, ProgramStartError> {
    let tag = owner_lock.next_run_tag();
    let program = ResolvedProgram::resolve_spec(spec, &tag)?;
    let before = os::clock_ticks_now();
    let link =
        SupervisorLink::new(launcher).map_err(|source| ProgramStartError::from_io_error(&launcher.program, source))?;
    link.register_with_owner(owner_lock);
    match link.start_program(&program, &descriptors, || false) {
        Ok(StartOutcome::Started(pid)) => {
            owner_lock.record_leader(pid, before);
            Ok(SupervisedTree::new(link, Some(pid), tag))
        }
        Ok(StartOutcome::Refused(error)) => {
            Err(ProgramStartError::from_spawn_error(program.path(), &spec.directory, error))
        }
        Ok(StartOutcome::Lost(error)) | Err(error) => Err(ProgramStartError::from_io_error(&launcher.program, error)),
    }
}

impl InteractiveInput {
    /// Writes what fits into the pipe.
    fn write_pending(&mut self) {
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
pub struct IoSession<'a> {
    live: &'a mut InteractiveProcess,
    listener: ControlListener,
    /// The strictest order that was reported already.
    reported_order: ControlOrder,
}

impl IoSession<'_> {
    /// Sends bytes to its standard input. What does not fit now is written during later waits.
    pub fn send_input(&mut self, bytes: &[u8]) {
        if self.live.input.pipe.is_some() {
            self.live.input.rest.extend(bytes);
            self.live.input.write_pending();
        }
    }

    /// Returns the number of bytes that it has not read yet.
    pub fn unread_byte_count(&self) -> usize {
        self.live.input.rest.len()
    }

    /// Returns when the program, or a background process, last wrote anything. Time that passes in a pause is not counted.
    pub fn last_output_at(&self) -> Instant {
        self.live.last_output_at
    }

    /// Restarts the wait for output now, whatever it wrote before.
    pub fn reset_last_output(&mut self) {
        self.live.last_output_at = Instant::now();
    }

    /// Returns the next event, waiting at most until the deadline. Time that passes in a pause moves the deadline.
    pub fn next_event(&mut self, until: &mut Option<Instant>) -> ProcessEvent {
        self.next_event_with_background(until, &mut [])
    }

    /// Does the same with background processes.
    pub fn next_event_with_background(
        &mut self,
        until: &mut Option<Instant>,
        beside: &mut [BackgroundProcess],
    ) -> ProcessEvent {
        loop {
            if let Some(ordered) = self.take_new_order(until, beside) {
                return ordered;
            }
            // Checked first: a program that never stops writing gets no more time than any other.
            if until.is_some_and(|until| Instant::now() >= until) {
                return ProcessEvent::DeadlinePassed;
            }
            if let Some(heard) = self.wait_for_event(*until, beside) {
                return heard;
            }
        }
    }

    /// Returns an event that is there already, without waiting.
    pub fn poll_event(&mut self) -> ProcessEvent {
        let ordered = self.take_new_order(&mut None, &mut []);
        ordered.or_else(|| self.wait_for_event(Some(Instant::now()), &mut [])).unwrap_or(ProcessEvent::DeadlinePassed)
    }

    /// Returns an order that was not reported yet. Waits as long as the control is paused.
    fn take_new_order(
        &mut self,
        until: &mut Option<Instant>,
        beside: &mut [BackgroundProcess],
    ) -> Option<ProcessEvent> {
        loop {
            let (order, paused) = self.listener.current_order();
            if order > self.reported_order {
                self.reported_order = order;
                return Some(if order == ControlOrder::Kill { ProcessEvent::Killed } else { ProcessEvent::Cancelled });
            }
            if !paused {
                return None;
            }
            self.wait_while_paused(until, beside);
        }
    }

    /// Waits once.
    fn wait_for_event(&mut self, until: Option<Instant>, beside: &mut [BackgroundProcess]) -> Option<ProcessEvent> {
        if self.live.stdout.is_none() {
            return Some(ProcessEvent::OutputEnded);
        }
        let mut piece = Vec::new();
        let news = self.live.wait_for_io(Some(self.listener.as_fd()), until, &mut piece, beside);
        if news.has_order {
            self.listener.clear_wakeup();
        }
        if !piece.is_empty() {
            return Some(ProcessEvent::Output(piece));
        }
        if news.ended {
            return Some(ProcessEvent::BackgroundEnded);
        }
        // A descendant may hold the output open; all that the program itself wrote was in the pipe.
        let is_over = self.live.stdout.is_none() || self.live.gone && count_waiting_bytes(&self.live.stdout) == 0;
        is_over.then_some(ProcessEvent::OutputEnded)
    }

    fn wait_while_paused(&mut self, until: &mut Option<Instant>, beside: &mut [BackgroundProcess]) {
        let since = Instant::now();
        self.live.tree.stop_tree();
        beside.iter_mut().for_each(BackgroundProcess::stop_tree);
        self.listener.set_tree_stopped(true);
        // Waits until the control resumes, or orders an end.
        while self.listener.current_order().1 {
            poll_descriptors(&[Some((self.listener.as_fd(), PollFlags::IN))], None);
            self.listener.clear_wakeup();
        }
        beside.iter_mut().for_each(BackgroundProcess::resume_tree);
        self.live.tree.resume_tree();
        self.listener.set_tree_stopped(false);
        let later = |moment: Instant| moment.checked_add(since.elapsed());
        *until = until.and_then(later);
        self.live.last_output_at = later(self.live.last_output_at).unwrap_or(since);
    }
}
