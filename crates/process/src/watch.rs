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

use crate::captured::Keeper;
use crate::control::Listener;
use crate::course::{Course, Facts, Interference, Step};
use crate::os::{self, Status};
use crate::pipe::{count_waiting, read_once};
use crate::ready::ready;
use crate::{Exit, Finished, Spec, Stream};

/// Size of a first read. Freeing twice as much, the capacity of a pipe, makes the allocator trim its whole heap.
const SMALL: usize = 32 * 1024;
/// Size of the pipe and of reads after a read was full.
const LARGE: usize = 1024 * 1024;

/// The processes of a run, with or without a supervisor.
pub(crate) trait Tree {
    /// Returns a descriptor that is readable when the state of the leader may have changed.
    fn descriptor(&self) -> BorrowedFd<'_>;
    /// Returns whether the leader has exited or was lost. Called when the descriptor is readable.
    fn is_gone(&mut self) -> bool {
        true
    }
    /// Sends SIGTERM to the group, or to all remaining processes when the leader is gone, stopped or not.
    fn terminate(&mut self);
    fn stop(&mut self);
    fn resume(&mut self);
    /// Ends all processes. Returns how the leader ended, and how many others had to be killed.
    fn end(&mut self) -> (Status, usize);
}

/// This process's ends of the pipes.
pub(crate) struct Pipes<'a> {
    pub input: Input<'a>,
    pub stdout: OwnedFd,
    pub stderr: OwnedFd,
}

/// Input that the child has yet to get.
pub(crate) struct Input<'a> {
    pipe: Option<OwnedFd>,
    rest: &'a [u8],
}

impl Input<'_> {
    /// Writes what fits, and closes the pipe after the last byte.
    fn write(&mut self) -> rustix::io::Result<()> {
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
pub(crate) struct Ends {
    /// `None` stands for `/dev/null`.
    stdin: Option<OwnedFd>,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

pub(crate) type Observe<'a> = &'a mut dyn FnMut(Stream, &[u8]);

/// Watches a run until its tree has ended. The outcome has no duration yet.
pub(crate) fn watch(
    spec: &Spec,
    tree: &mut dyn Tree,
    pipes: Pipes<'_>,
    listener: &mut Listener,
    observe: Observe<'_>,
) -> Finished {
    let mut course = Course::new(Instant::now(), spec.timeout, spec.silence, spec.grace);
    let mut flow = Flow::new(spec, pipes, observe);
    let mut gone = false;
    loop {
        let (order, paused) = listener.word();
        if paused != course.is_held() {
            hold_or_release(&mut course, tree, listener, paused);
        }
        match course.step(Facts { gone, drained: flow.is_drained(), order }, Instant::now()) {
            Step::Terminate => tree.terminate(),
            Step::Finish => break,
            Step::Wait(until) => {
                let leader = (!gone).then(|| tree.descriptor());
                let news = flow.wait(leader, listener.as_fd(), until);
                if news.word {
                    listener.clear();
                }
                if news.output {
                    course.heard(Instant::now());
                }
                gone = gone || (news.leader && tree.is_gone());
            }
        }
    }
    let was_open = !flow.is_drained();
    let (status, others) = tree.end();
    let is_held = flow.drain();
    let exit = match course.interference() {
        Some(Interference::TimedOut) => Exit::TimedOut,
        Some(Interference::Silent) => Exit::Silent,
        Some(Interference::Cancelled) => Exit::Cancelled,
        None => status.into(),
    };
    let leaky = is_held || course.interference().is_none() && (was_open || others > 0);
    let [stdout, stderr] = flow.outputs.map(|output| output.keeper.finish());
    Finished { exit, stdout, stderr, leaky, took: Duration::ZERO }
}

fn hold_or_release(course: &mut Course, tree: &mut dyn Tree, listener: &mut Listener, hold: bool) {
    if hold {
        course.hold(Instant::now());
        tree.stop();
    } else {
        tree.resume();
        course.release(Instant::now());
    }
    listener.set_still(hold);
}

struct Output {
    stream: Stream,
    /// `None` at its end.
    pipe: Option<OwnedFd>,
    keeper: Keeper,
    grown: bool,
}

/// The result of a wait.
struct News {
    output: bool,
    leader: bool,
    word: bool,
}

/// The bytes of a run, in both directions.
struct Flow<'a> {
    input: Input<'a>,
    outputs: [Output; 2],
    buffer: Vec<u8>,
    observe: Observe<'a>,
}

impl<'a> Flow<'a> {
    fn new(spec: &Spec, pipes: Pipes<'a>, observe: Observe<'a>) -> Self {
        let output = |stream, pipe| Output {
            stream,
            pipe: Some(pipe),
            keeper: Keeper::new(&spec.capture, stream),
            grown: false,
        };
        let outputs = [output(Stream::Stdout, pipes.stdout), output(Stream::Stderr, pipes.stderr)];
        let buffer = Vec::with_capacity(SMALL);
        Self { input: pipes.input, outputs, buffer, observe }
    }

    fn is_drained(&self) -> bool {
        self.outputs.iter().all(|output| output.pipe.is_none())
    }

    /// Waits for anything, moves the bytes that can be moved, and returns the other events.
    fn wait(&mut self, leader: Option<BorrowedFd<'_>>, word: BorrowedFd<'_>, until: Option<Instant>) -> News {
        let [stdout, stderr] = &self.outputs;
        // In the order in which the results are taken below.
        let all = [
            stdout.pipe.as_ref().map(|pipe| (pipe.as_fd(), PollFlags::IN)),
            stderr.pipe.as_ref().map(|pipe| (pipe.as_fd(), PollFlags::IN)),
            self.input.pipe.as_ref().map(|pipe| (pipe.as_fd(), PollFlags::OUT)),
            leader.map(|leader| (leader, PollFlags::IN)),
            Some((word, PollFlags::IN)),
        ];
        let [out, err, input, leader, word] = ready(&all, until);
        for (index, ready) in [out, err].into_iter().enumerate() {
            if ready {
                self.read(index);
            }
        }
        if input {
            // A child may close its input early.
            let _ = self.input.write();
        }
        News { output: out || err, leader, word }
    }

    /// Reads once. Returns the number of bytes.
    fn read(&mut self, index: usize) -> usize {
        let output = &mut self.outputs[index];
        let length = read_once(&mut output.pipe, &mut self.buffer);
        if length == 0 {
            return 0;
        }
        output.keeper.push(&self.buffer);
        (self.observe)(output.stream, &self.buffer);
        if let (true, false, Some(pipe)) = (length >= SMALL, output.grown, &output.pipe) {
            output.grown = true;
            os::grow(pipe, LARGE);
            self.buffer.clear();
            self.buffer.reserve(LARGE);
        }
        length
    }

    /// Reads what is in the pipes now. Returns whether a process outside of the tree holds one of them: its later output is lost.
    fn drain(&mut self) -> bool {
        self.input.pipe = None;
        let mut left = self.outputs.each_ref().map(|output| count_waiting(&output.pipe));
        loop {
            // In turn, and once even if nothing is there, to see the end.
            for (index, left) in left.iter_mut().enumerate() {
                *left = match self.read(index) {
                    0 => 0,
                    taken => left.saturating_sub(taken),
                };
            }
            if left == [0, 0] {
                break;
            }
        }
        for index in 0..self.outputs.len() {
            self.read(index);
        }
        !self.is_drained()
    }
}

/// Creates the pipes of a run: those of this process, and those of the child.
pub(crate) fn pipes(spec: &Spec) -> io::Result<(Pipes<'_>, Ends)> {
    let (stdout, child_stdout) = io::pipe()?;
    let (stderr, child_stderr) = io::pipe()?;
    // A child may open its output for reading and take bytes that `poll` has announced.
    rustix::io::ioctl_fionbio(&stdout, true)?;
    rustix::io::ioctl_fionbio(&stderr, true)?;
    let mut input = Input { pipe: None, rest: &spec.stdin };
    let mut child_stdin = None;
    if !spec.stdin.is_empty() {
        let (child, ours) = io::pipe()?;
        rustix::io::ioctl_fionbio(&ours, true)?;
        let ours = OwnedFd::from(ours);
        if spec.stdin.len() > SMALL {
            os::grow(&ours, spec.stdin.len().min(LARGE));
        }
        (input.pipe, child_stdin) = (Some(ours), Some(OwnedFd::from(child)));
        // Written before the child exists: if this process is killed in between, the child still has all of it. A failure to write is an
        // error: git would take missing input for an empty message.
        input.write()?;
    }
    let ours = Pipes { input, stdout: stdout.into(), stderr: stderr.into() };
    Ok((ours, Ends { stdin: child_stdin, stdout: child_stdout.into(), stderr: child_stderr.into() }))
}

impl Ends {
    pub fn descriptors(&self) -> io::Result<[BorrowedFd<'_>; 3]> {
        let stdin = match &self.stdin {
            Some(stdin) => stdin.as_fd(),
            None => nothing()?.as_fd(),
        };
        Ok([stdin, self.stdout.as_fd(), self.stderr.as_fd()])
    }
}

/// Returns what a child without input reads.
fn nothing() -> io::Result<&'static OwnedFd> {
    static NULL: OnceLock<OwnedFd> = OnceLock::new();
    if let Some(null) = NULL.get() {
        return Ok(null);
    }
    let null = crate::file::open_null()?;
    Ok(NULL.get_or_init(|| null.into()))
}
