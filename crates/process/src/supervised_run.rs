//! Runs a program under a process of its own, so that nothing of it survives a `kill -9` of this one.
//!
//! The supervisor is started once and does runs one after another. Pipes, capture and deadlines are on this side, as for other
//! runs; the supervisor (`supervisor`) only has the processes, and `wire` reaches it.
//!
//! Invariants:
//! - A supervisor has one run at a time, which `&mut` enforces.
//! - If it dies, the run is [`ProgramExit::LostTask`](crate::Exit), this process ends all that carries the run's tag, and the next run
//!   gets a new supervisor. A supervisor that does not follow orders is killed, so that its orphans come to us. While its program
//!   traces it, it dies only after that program: no wait for its end is unbounded.
//! - A program that may have been started is not started again.
//! - A stopped supervisor is woken with every order and at the end of its program, and counts as lost if it is stopped again
//!   and again.

use std::borrow::Borrow;
use std::ffi::{OsStr, OsString};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::Pid;

use crate::event_loop::ProcessTree;
use crate::os::{self, LeaderWatch, ProcessStatus, SupervisorProcess};
use crate::program::{ResolvedProgram, environment_entry, to_c_string};
use crate::run::RunStart;
use crate::wire::{self, SupervisorReport};
use crate::{OutputStream, OwnerLock, ProgramOutcome, ProgramSpec, ProgramStartError, RunControl, run_program};

/// How long a supervisor may take to stop or end its tree. Its own bounds are tighter.
const SUPERVISOR_TIMEOUT: Duration = Duration::from_secs(10);
/// How often the wait for a report checks whether the supervisor is stopped, or the run cancelled.
const REPORT_POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// How often a supervisor is woken during the wait for one report.
const MAX_WAKE_ATTEMPTS: u32 = 3;

/// Name of a supervisor in a list of processes.
const SUPERVISOR_NAME: &str = "windlass";

/// The command that starts a supervisor: a program that calls [`supervisor::serve_owner`](crate::supervisor::serve_owner) when it gets
/// these arguments.
#[derive(Debug, Clone)]
pub struct SupervisorLauncher {
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    pub environment: Vec<(OsString, OsString)>,
}

impl SupervisorLauncher {
    /// Launches this same program, with an argument that selects the supervisor.
    pub fn for_own_program(argument: impl Into<OsString>) -> io::Result<Self> {
        Ok(Self { program: os::own_program_path()?, arguments: vec![argument.into()], environment: Vec::new() })
    }
}

/// A process that runs programs for this one, one after another, and ends them when this process dies.
pub struct ProgramSupervisor {
    launcher: SupervisorLauncher,
    link: Option<SupervisorLink>,
}

pub(crate) struct SupervisorLink {
    socket: UnixStream,
    process: SupervisorProcess,
    /// A moment before the start, in clock ticks.
    before: u64,
    /// Set once it is on the list of its owner.
    listed: OnceLock<()>,
}

impl ProgramSupervisor {
    pub fn start(launcher: &SupervisorLauncher) -> io::Result<Self> {
        Ok(Self { launcher: launcher.clone(), link: Some(SupervisorLink::new(launcher)?) })
    }

    /// Does the same as [`run_program`](crate::run_program), under the supervisor.
    pub fn run_program(
        &mut self,
        spec: &ProgramSpec,
        owner_lock: &OwnerLock,
        control: &RunControl,
        observe: &mut dyn FnMut(OutputStream, &[u8]),
    ) -> Result<ProgramOutcome, ProgramStartError> {
        let Some(start) = RunStart::new(spec, owner_lock, control)? else {
            return Ok(ProgramOutcome::cancelled_before_start());
        };
        let begun = match self.start_program(&start) {
            // The supervisor may have died since the last run.
            Err(_) => self.start_program(&start),
            begun => begun,
        };
        let pid = match begun.map_err(|source| ProgramStartError::from_io_error(&self.launcher.program, source))? {
            StartOutcome::Started(pid) => Some(pid),
            StartOutcome::Refused(error) => return Err(start.start_error(error)),
            StartOutcome::Lost(_) => None,
        };
        let link = self.link.as_ref().expect("it has just got the order");
        let mut tree = SupervisedTree::new(link, pid, start.tag.clone());
        let finished = start.watch_to_end(&mut tree, pid, observe);
        let lost = tree.lost;
        drop(tree);
        if lost {
            self.link = None;
        }
        Ok(finished)
    }

    /// Orders the supervisor to start the program. An error means that it got no order, and a new supervisor may get it.
    fn start_program(&mut self, start: &RunStart<'_>) -> io::Result<StartOutcome> {
        let link = match &self.link {
            Some(link) => link,
            None => self.link.insert(SupervisorLink::new(&self.launcher)?),
        };
        let descriptors = start.child_descriptors()?;
        link.register_with_owner(start.owner_lock);
        link.process.resume_supervisor();
        let begun = link.start_program(&start.program, &descriptors, || start.is_cancelled());
        if begun.is_err() {
            self.link = None;
        }
        begun
    }
}

/// Does the same as [`run_program`](crate::run_program), under a supervisor of its own if there is a launcher: a supervisor runs one program at
/// a time, and these runs are concurrent.
pub fn run_with_own_supervisor(
    launcher: Option<&SupervisorLauncher>,
    spec: &ProgramSpec,
    owner_lock: &OwnerLock,
    control: &RunControl,
) -> Result<ProgramOutcome, ProgramStartError> {
    let observe = &mut |_, _: &[u8]| {};
    match launcher.cloned() {
        Some(launcher) => ProgramSupervisor { launcher, link: None }.run_program(spec, owner_lock, control, observe),
        None => run_program(spec, owner_lock, control, observe),
    }
}

/// Returns the number of ancestors that are supervisors with this argument.
pub fn count_supervisors_above(argument: &str) -> usize {
    os::count_ancestors_with(&[SUPERVISOR_NAME.as_bytes(), argument.as_bytes()])
}

/// Returns whether an ancestor is a supervisor whose parent works within a directory.
pub fn is_below_supervisor(argument: &str, directory: &Path) -> bool {
    os::is_below_program(&[SUPERVISOR_NAME.as_bytes(), argument.as_bytes()], directory)
}

/// Returns whether a connection may come from a supervisor or a program below one. `peer` and `local` are the addresses as the
/// server sees them. A client on this machine that cannot be found counts, unless another user owns it.
pub fn is_connection_supervised(argument: &str, peer: SocketAddr, local: SocketAddr) -> bool {
    os::is_connection_below_program(&[SUPERVISOR_NAME.as_bytes(), argument.as_bytes()], peer, local)
}

/// The result of an order to start a program.
pub(crate) enum StartOutcome {
    Started(Pid),
    /// The system refused the start.
    Refused(io::Error),
    /// No answer came: the program may have been started.
    Lost(io::Error),
}

impl SupervisorLink {
    pub fn new(launcher: &SupervisorLauncher) -> io::Result<Self> {
        let (socket, theirs) = UnixStream::pair()?;
        socket.set_read_timeout(Some(SUPERVISOR_TIMEOUT))?;
        socket.set_write_timeout(Some(SUPERVISOR_TIMEOUT))?;
        let mut arguments = vec![to_c_string(SUPERVISOR_NAME.into())?];
        for argument in &launcher.arguments {
            arguments.push(to_c_string(argument.clone())?);
        }
        let environment = launcher.environment.iter().map(|(name, value)| environment_entry(name, value));
        let program = ResolvedProgram {
            path: to_c_string(launcher.program.clone().into_os_string())?,
            // A supervisor must not keep a directory from being removed.
            directory: to_c_string(OsStr::new("/").to_owned())?,
            arguments,
            environment: environment.collect::<io::Result<_>>()?,
        };
        let null = std::fs::File::options().write(true).open("/dev/null")?;
        let before = os::clock_ticks_now();
        let process = SupervisorProcess::start(&program, [theirs.as_fd(), null.as_fd(), null.as_fd()])?;
        Ok(Self { socket, process, before, listed: OnceLock::new() })
    }

    /// Puts the supervisor on the list of an owner, so that a sweep ends it after the owner's death if it cannot end itself: its
    /// agent may have stopped it.
    pub fn register_with_owner(&self, owner_lock: &OwnerLock) {
        self.listed.get_or_init(|| owner_lock.record_leader(self.process.pid(), self.before));
    }

    /// Orders the supervisor to start a program. An error means that it got no order. A supervisor that does not follow the order
    /// is killed.
    pub fn start_program(
        &self,
        program: &ResolvedProgram,
        descriptors: &[BorrowedFd<'_>; 3],
        is_called_off: impl Fn() -> bool,
    ) -> io::Result<StartOutcome> {
        wire::send_start_order(&self.socket, program, descriptors).inspect_err(|_| self.process.kill_supervisor())?;
        let lost = match self.receive_report(is_called_off) {
            Ok(SupervisorReport::Started(pid)) if pid > 0 => {
                return Ok(StartOutcome::Started(Pid::from_raw(pid).expect("no process has the number 0")));
            }
            Ok(SupervisorReport::Failed(error)) => {
                return Ok(StartOutcome::Refused(io::Error::from_raw_os_error(error)));
            }
            Ok(_) => io::ErrorKind::InvalidData.into(),
            Err(error) => error,
        };
        self.process.kill_supervisor();
        Ok(StartOutcome::Lost(lost))
    }

    /// Returns the next report, if there is one soon. Wakes a stopped supervisor meanwhile.
    fn poll_report(&self) -> Option<io::Result<SupervisorReport>> {
        match poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&REPORT_POLL_INTERVAL)) {
            Ok(0) => {
                self.process.resume_supervisor();
                None
            }
            Err(Errno::INTR) => None,
            Ok(_) => Some(SupervisorReport::receive_report(&self.socket)),
            Err(error) => Some(Err(error.into())),
        }
    }

    /// Returns the next report. Fails if the supervisor is dead, is kept from working, takes too long, or if the run was cancelled
    /// meanwhile.
    fn receive_report(&self, is_called_off: impl Fn() -> bool) -> io::Result<SupervisorReport> {
        let give_up = Instant::now() + SUPERVISOR_TIMEOUT;
        let mut wakings = 0;
        loop {
            match poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&REPORT_POLL_INTERVAL)) {
                Ok(0) if Instant::now() > give_up || wakings == MAX_WAKE_ATTEMPTS || is_called_off() => {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                Ok(0) if self.process.is_stopped() => {
                    self.process.resume_supervisor();
                    wakings += 1;
                }
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return SupervisorReport::receive_report(&self.socket),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Drop for SupervisorLink {
    fn drop(&mut self) {
        // The supervisor ends its tree and itself when the socket closes.
        self.process.resume_supervisor();
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
        self.process.wait_or_kill(SUPERVISOR_TIMEOUT);
    }
}

/// The tree of a run, under a borrowed supervisor or its own.
pub(crate) struct SupervisedTree<L: Borrow<SupervisorLink>> {
    link: L,
    /// `None` if there was no answer.
    pid: Option<Pid>,
    tag: String,
    /// How the leader ended, and whether other processes were left then.
    exited: Option<(ProcessStatus, bool)>,
    /// Wakes the loop on a report, or at the end of the leader, which a stopped supervisor does not report.
    leader_watch: Option<LeaderWatch>,
    /// When the leader had ended without a report.
    unreported_since: Option<Instant>,
    /// The supervisor is dead or unusable.
    lost: bool,
    ended: Option<(ProcessStatus, usize)>,
}

impl<L: Borrow<SupervisorLink>> SupervisedTree<L> {
    /// Takes `None` as `pid` if it is unknown whether the leader was started.
    pub fn new(link: L, pid: Option<Pid>, tag: String) -> Self {
        let leader_watch = pid.and_then(|pid| LeaderWatch::open_watch(link.borrow().socket.as_fd(), pid).ok());
        Self { link, pid, tag, exited: None, leader_watch, unreported_since: None, lost: pid.is_none(), ended: None }
    }

    /// Returns how the leader ended, if it has.
    pub fn leader_status(&self) -> Option<ProcessStatus> {
        self.exited.map(|(status, _)| status)
    }

    /// Sends an order, unless the supervisor is lost. Returns whether it was sent.
    fn send_tree_order(&self, kind: u8) -> bool {
        self.link.borrow().process.resume_supervisor();
        !self.lost && wire::send_bodyless_order(&self.link.borrow().socket, kind).is_ok()
    }

    /// Waits for a matching report, and handles the others.
    fn await_report_matching(&mut self, wanted: impl Fn(SupervisorReport) -> bool) -> Option<SupervisorReport> {
        while !self.lost {
            let report = self.link.borrow().receive_report(|| false);
            if let Some(report) = self.handle_report(report).filter(|report| wanted(*report)) {
                return Some(report);
            }
        }
        None
    }

    fn handle_report(&mut self, report: io::Result<SupervisorReport>) -> Option<SupervisorReport> {
        match report {
            Ok(SupervisorReport::Exited { status, others_left }) => self.exited = Some((status, others_left)),
            Ok(report) => return Some(report),
            Err(_) => self.lost = true,
        }
        None
    }

    /// Ends the processes that the supervisor left.
    fn end_lost_tree(&mut self) -> usize {
        self.lost = true;
        os::end_lost_run(&self.tag, self.pid, &self.link.borrow().process)
    }
}

impl<L: Borrow<SupervisorLink>> ProcessTree for SupervisedTree<L> {
    fn leader_descriptor(&self) -> BorrowedFd<'_> {
        // A leader that is already gone has been reported on the socket.
        self.leader_watch.as_ref().map_or_else(|| self.link.borrow().socket.as_fd(), LeaderWatch::as_fd)
    }

    fn has_leader_exited(&mut self) -> bool {
        if !self.lost {
            match self.link.borrow().poll_report() {
                Some(report) => drop(self.handle_report(report)),
                // The leader is gone, and the supervisor that should report it is stopped or traced.
                None => {
                    self.lost = self.unreported_since.get_or_insert_with(Instant::now).elapsed() > SUPERVISOR_TIMEOUT
                }
            }
        }
        self.lost || self.exited.is_some()
    }

    fn terminate_tree(&mut self) {
        // The loop notices a lost supervisor; the processes that it left cannot be asked any more.
        if !self.send_tree_order(wire::TERMINATE_ORDER) {
            self.end_tree();
        }
    }

    fn stop_tree(&mut self) {
        if self.send_tree_order(wire::STOP_ORDER) {
            self.await_report_matching(|report| report == SupervisorReport::Stopped);
        }
        if self.lost {
            self.end_tree();
        }
    }

    fn resume_tree(&mut self) {
        self.send_tree_order(wire::RESUME_ORDER);
    }

    fn end_tree(&mut self) -> (ProcessStatus, usize) {
        if let Some(ended) = self.ended {
            return ended;
        }
        let mut others = 0;
        if self.exited.is_none_or(|(_, others_left)| others_left) {
            let report = match self.send_tree_order(wire::END_ORDER) {
                true => self.await_report_matching(|report| matches!(report, SupervisorReport::Ended(_))),
                false => None,
            };
            match report {
                Some(SupervisorReport::Ended(killed)) => others = usize::try_from(killed).unwrap_or(0),
                _ => others = self.end_lost_tree(),
            }
        }
        let status = self.exited.map_or(ProcessStatus::Lost, |(status, _)| status);
        *self.ended.insert((status, others))
    }
}

impl<L: Borrow<SupervisorLink>> Drop for SupervisedTree<L> {
    fn drop(&mut self) {
        self.end_tree();
    }
}
