//! Event loop of a run: one `poll(2)` loop over the leader, its pipes and the control.
//!
//! Invariants:
//! - Output is drained and input written at the same time, so that neither can block the other.
//! - The loop sleeps until an event or a deadline; it never polls by time.
//! - It returns only when the tree has ended.
//!
//! Not here: when to do what (`run_state`), access to the tree (`os::LeaderProcess`, `supervised_run`).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::Errno;

use crate::capture::OutputCapture;
use crate::control::ControlListener;
use crate::descriptor_poll::poll_descriptors;
use crate::os::{self, ProcessStatus};
use crate::pipe::{count_waiting_bytes, read_pipe_once};
use crate::run_state::{RunAction, RunInterruption, RunObservations, RunStateMachine};
use crate::{OutputStream, ProgramExit, ProgramOutcome, ProgramSpec};

/// Size of a first read. Freeing twice as much, the capacity of a pipe, makes the allocator trim its whole heap.
const FIRST_READ_SIZE: usize = 32 * 1024;
/// Size of the pipe and of reads after a read was full.
const LARGE_READ_SIZE: usize = 1024 * 1024;

/// The processes of a run, with or without a supervisor.
pub(crate) trait ProcessTree {
    /// Returns a descriptor that is readable when the state of the leader may have changed.
    fn leader_descriptor(&self) -> BorrowedFd<'_>;
    /// Returns whether the leader has exited or was lost. Called when the descriptor is readable.
    fn has_leader_exited(&mut self) -> bool {
        true
    }
    /// Sends SIGTERM to the group, or to all remaining processes when the leader is gone, stopped or not.
    fn terminate_tree(&mut self);
    fn stop_tree(&mut self);
    fn resume_tree(&mut self);
    /// Ends all processes. Returns how the leader ended, and how many others had to be killed.
    fn end_tree(&mut self) -> (ProcessStatus, usize);
}

/// This process's ends of the pipes.
pub(crate) struct ParentPipes<'a> {
    pub input: RunInput<'a>,
    pub stdout: OwnedFd,
    pub stderr: OwnedFd,
}

/// Input that the child has yet to get.
pub(crate) struct RunInput<'a> {
    pipe: Option<OwnedFd>,
    rest: &'a [u8],
}

impl RunInput<'_> {
    /// Writes what fits, and closes the pipe after the last byte.
    fn write_pending(&mut self) -> rustix::io::Result<()> {
        let Some(pipe) = &self.pipe else { return Ok(()) };
        while !self.rest.is_empty() {
            match rustix::io::write(pipe, self.rest) {
                Ok(written) => self.rest = &self.rest[written..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                Err(error) => {
                    self.pipe = None;
                    return Err(error);
                }
            }
        }
        self.pipe = None;
        Ok(())
    }
}

/// The child's ends of the pipes.
pub(crate) struct ChildPipes {
    /// `None` stands for `/dev/null`.
    stdin: Option<OwnedFd>,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

pub(crate) type OutputObserver<'a> = &'a mut dyn FnMut(OutputStream, &[u8]);

/// Watches a run until its tree has ended. The outcome has no duration yet.
pub(crate) fn watch_run(
    spec: &ProgramSpec,
    tree: &mut dyn ProcessTree,
    pipes: ParentPipes<'_>,
    listener: &mut ControlListener,
    observe: OutputObserver<'_>,
) -> ProgramOutcome {
    let mut machine = RunStateMachine::new(Instant::now(), spec.timeout, spec.idle_timeout, spec.grace);
    let mut flow = OutputFlow::new(spec, pipes, observe);
    let mut gone = false;
    loop {
        let (order, paused) = listener.current_order();
        if paused != machine.is_paused() {
            apply_pause(&mut machine, tree, listener, paused);
        }
        match machine.next_action(RunObservations { gone, drained: flow.is_drained(), order }, Instant::now()) {
            RunAction::Terminate => tree.terminate_tree(),
            RunAction::Finish => break,
            RunAction::Wait(until) => {
                let leader = (!gone).then(|| tree.leader_descriptor());
                let news = flow.wait_for_io(leader, listener.as_fd(), until);
                if news.has_order {
                    listener.clear_wakeup();
                }
                if news.output {
                    machine.record_output(Instant::now());
                }
                gone = gone || (news.leader && tree.has_leader_exited());
            }
        }
    }
    let was_open = !flow.is_drained();
    let (status, others) = tree.end_tree();
    let is_held = flow.drain_outputs();
    let exit = match machine.interruption() {
        Some(RunInterruption::TimedOut) => ProgramExit::TimedOut,
        Some(RunInterruption::OutputIdle) => ProgramExit::OutputIdle,
        Some(RunInterruption::Cancelled) => ProgramExit::Cancelled,
        None => status.into(),
    };
    let leaky = is_held || machine.interruption().is_none() && (was_open || others > 0);
    let [stdout, stderr] = flow.outputs.map(|output| output.keeper.finish_capture());
    ProgramOutcome { exit, stdout, stderr, leaky, took: Duration::ZERO }
}

fn apply_pause(machine: &mut RunStateMachine, tree: &mut dyn ProcessTree, listener: &mut ControlListener, hold: bool) {
    if hold {
        machine.pause_deadlines(Instant::now());
        tree.stop_tree();
    } else {
        tree.resume_tree();
        machine.resume_deadlines(Instant::now());
    }
    listener.set_tree_stopped(hold);
}

struct CapturedStream {
    stream: OutputStream,
    /// `None` at its end.
    pipe: Option<OwnedFd>,
    keeper: OutputCapture,
    grown: bool,
}

/// The result of a wait.
struct OutputFlowResult {
    output: bool,
    leader: bool,
    has_order: bool,
}

/// The bytes of a run, in both directions.
struct OutputFlow<'a> {
    input: RunInput<'a>,
    outputs: [CapturedStream; 2],
    buffer: Vec<u8>,
    observe: OutputObserver<'a>,
}

impl<'a> OutputFlow<'a> {
    fn new(spec: &ProgramSpec, pipes: ParentPipes<'a>, observe: OutputObserver<'a>) -> Self {
        let output = |stream, pipe| CapturedStream {
            stream,
            pipe: Some(pipe),
            keeper: OutputCapture::new(&spec.capture, stream),
            grown: false,
        };
        let outputs = [output(OutputStream::Stdout, pipes.stdout), output(OutputStream::Stderr, pipes.stderr)];
        let buffer = Vec::with_capacity(FIRST_READ_SIZE);
        Self { input: pipes.input, outputs, buffer, observe }
    }

    fn is_drained(&self) -> bool {
        self.outputs.iter().all(|output| output.pipe.is_none())
    }

    /// Waits for anything, moves the bytes that can be moved, and returns the other events.
    fn wait_for_io(
        &mut self,
        leader: Option<BorrowedFd<'_>>,
        word: BorrowedFd<'_>,
        until: Option<Instant>,
    ) -> OutputFlowResult {
        let [stdout, stderr] = &self.outputs;
        // In the order in which the results are taken below.
        let all = [
            stdout.pipe.as_ref().map(|pipe| (pipe.as_fd(), PollFlags::IN)),
            stderr.pipe.as_ref().map(|pipe| (pipe.as_fd(), PollFlags::IN)),
            self.input.pipe.as_ref().map(|pipe| (pipe.as_fd(), PollFlags::OUT)),
            leader.map(|leader| (leader, PollFlags::IN)),
            Some((word, PollFlags::IN)),
        ];
        let [out, err, input, leader, word] = poll_descriptors(&all, until);
        for (index, ready) in [out, err].into_iter().enumerate() {
            if ready {
                self.read_output(index);
            }
        }
        if input {
            // A child may close its input early.
            let _ = self.input.write_pending();
        }
        OutputFlowResult { output: out || err, leader, has_order: word }
    }

    /// Reads once. Returns the number of bytes.
    fn read_output(&mut self, index: usize) -> usize {
        let output = &mut self.outputs[index];
        let length = read_pipe_once(&mut output.pipe, &mut self.buffer);
        if length == 0 {
            return 0;
        }
        output.keeper.push(&self.buffer);
        (self.observe)(output.stream, &self.buffer);
        if let (true, false, Some(pipe)) = (length >= FIRST_READ_SIZE, output.grown, &output.pipe) {
            output.grown = true;
            os::grow_pipe(pipe, LARGE_READ_SIZE);
            self.buffer.clear();
            self.buffer.reserve(LARGE_READ_SIZE);
        }
        length
    }

    /// Reads what is in the pipes now. Returns whether a process outside of the tree holds one of them: its later output is lost.
    fn drain_outputs(&mut self) -> bool {
        self.input.pipe = None;
        let mut left = self.outputs.each_ref().map(|output| count_waiting_bytes(&output.pipe));
        loop {
            // In turn, and once even if nothing is there, to see the end.
            for (index, left) in left.iter_mut().enumerate() {
                *left = match self.read_output(index) {
                    0 => 0,
                    taken => left.saturating_sub(taken),
                };
            }
            if left == [0, 0] {
                break;
            }
        }
        for index in 0..self.outputs.len() {
            self.read_output(index);
        }
        !self.is_drained()
    }
}

/// Creates the pipes of a run: those of this process, and those of the child.
pub(crate) fn create_pipes(spec: &ProgramSpec) -> io::Result<(ParentPipes<'_>, ChildPipes)> {
    let (stdout, child_stdout) = io::pipe()?;
    let (stderr, child_stderr) = io::pipe()?;
    // A child may open its output for reading and take bytes that `poll` has announced.
    rustix::io::ioctl_fionbio(&stdout, true)?;
    rustix::io::ioctl_fionbio(&stderr, true)?;
    let mut input = RunInput { pipe: None, rest: &spec.stdin };
    let mut child_stdin = None;
    if !spec.stdin.is_empty() {
        let (child, ours) = io::pipe()?;
        rustix::io::ioctl_fionbio(&ours, true)?;
        let ours = OwnedFd::from(ours);
        if spec.stdin.len() > FIRST_READ_SIZE {
            os::grow_pipe(&ours, spec.stdin.len().min(LARGE_READ_SIZE));
        }
        (input.pipe, child_stdin) = (Some(ours), Some(OwnedFd::from(child)));
        // Written before the child exists: if this process is killed in between, the child still has all of it. A failure to write is an
        // error: git would take missing input for an empty message.
        input.write_pending()?;
    }
    let ours = ParentPipes { input, stdout: stdout.into(), stderr: stderr.into() };
    Ok((ours, ChildPipes { stdin: child_stdin, stdout: child_stdout.into(), stderr: child_stderr.into() }))
}

impl ChildPipes {
    pub fn child_descriptors(&self) -> io::Result<[BorrowedFd<'_>; 3]> {
        let stdin = match &self.stdin {
            Some(stdin) => stdin.as_fd(),
            None => null_descriptor()?.as_fd(),
        };
        Ok([stdin, self.stdout.as_fd(), self.stderr.as_fd()])
    }
}

/// Returns what a child without input reads.
fn null_descriptor() -> io::Result<&'static OwnedFd> {
    static NULL: OnceLock<OwnedFd> = OnceLock::new();
    if let Some(null) = NULL.get() {
        return Ok(null);
    }
    let null = crate::file::open_null_device()?;
    Ok(NULL.get_or_init(|| null.into()))
}
