//! Linux, from 5.4 on: pidfds, `/proc`, and the subreaper.
//!
//! Invariants:
//! - The leader's number is not free before its group was killed: it is reaped after that.
//! - No scan looks for processes that cannot exist: if the leader was the youngest process of the system, or this process has no
//!   child left, one call shows it.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, epoll, eventfd, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, getpid, getppid, kill_process_group, pidfd_open, pidfd_send_signal,
    set_child_subreaper, waitid,
};
use signal_hook::consts::SIGCHLD;

pub(crate) use super::connection::is_connection_below_program;
use super::orphans::{self, RunScope};
use super::proc::{self, ProcessSnapshot};
use super::termination::{self, HeldProcess, KnownPids};
use super::{OrphanSet, ProcessStatus, TreeEndReport};
use crate::event_loop::ProcessTree;
use crate::file::read_kernel_file;
use crate::program::ResolvedProgram;
use crate::spawn::{is_signal_ignored, set_close_on_exec};

/// Limit for the number of ancestors: a chain that changes during the scan might never end.
const MAX_ANCESTORS: usize = 1024;

/// Lower bound for the time between two forks of a system, even if a program tries to use up the numbers.
const MIN_SPAWN_INTERVAL: Duration = Duration::from_micros(5);

/// Limit for repeated scans while other processes start or end.
const MAX_PROC_SCANS: u32 = 10;

/// How long a killed supervisor may take to die.
const KILL_TIMEOUT: Duration = Duration::from_secs(3);

const KILLED_STATUS: ProcessStatus = ProcessStatus::Signal(Signal::KILL.as_raw());

/// Prepares this process for starting others.
pub(crate) fn prepare_process() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // A kernel without it leaves orphans to init: then only the group is ended.
        let _ = set_child_subreaper(Some(getpid()));
        set_close_on_exec();
        // With an ignored SIGCHLD the kernel discards exit statuses.
        if is_signal_ignored(SIGCHLD) {
            let _ = signal_hook::flag::register(SIGCHLD, Arc::default());
        }
    });
}

pub(crate) fn own_program_path() -> io::Result<PathBuf> {
    // Correct even if the file was replaced since the start.
    Ok(PathBuf::from("/proc/self/exe"))
}

pub(crate) fn read_boot_id() -> Option<String> {
    let text = read_kernel_file(Path::new("/proc/sys/kernel/random/boot_id")).ok()?;
    let text = String::from_utf8(text).ok()?;
    Some(text.trim().to_owned()).filter(|boot| !boot.is_empty())
}

/// Returns when a living process was started, in clock ticks since the system started.
pub(crate) fn process_start_time(pid: Pid) -> Option<u64> {
    proc::read_own_process(pid).filter(|process| !process.dead).map(|process| process.start)
}

/// Sends SIGUSR1 to the process with this number and start time. The start time is checked after the pidfd is open, so that the
/// number cannot be another process's.
pub(crate) fn wake_process(pid: Pid, start: u64) -> bool {
    let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { return false };
    process_start_time(pid) == Some(start) && pidfd_send_signal(&process, Signal::USR1).is_ok()
}

/// Returns whether this process descends from the one with this number and start time.
pub(crate) fn descends_from_process(pid: Pid, start: u64) -> bool {
    list_ancestors().any(|process| process.pid == pid && process.start == start)
}

/// Returns how many ancestors were started with these arguments.
pub(crate) fn count_ancestors_with(words: &[&[u8]]) -> usize {
    list_ancestors().filter(|process| proc::read_command_line(process.pid).is_some_and(|found| found == words)).count()
}

/// Returns whether one of those ancestors has a parent that works within a directory.
pub(crate) fn is_below_program(words: &[&[u8]], directory: &Path) -> bool {
    let is_within =
        |pid: i32| std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(directory));
    let is_one = |process: &ProcessSnapshot| proc::read_command_line(process.pid).is_some_and(|found| found == words);
    list_ancestors().any(|process| is_one(&process) && is_within(process.parent))
}

/// Returns whether `/proc` shows all ancestors of this process, or all up to one of another user, which it may hide.
pub fn can_see_ancestors() -> bool {
    let is_first = |process: ProcessSnapshot| Pid::from_raw(process.parent).is_none_or(proc::belongs_to_other_user);
    // An ancestor that ends during the scan leaves its children to another process.
    (0..MAX_PROC_SCANS).any(|_| self_and_ancestors().last().is_some_and(is_first))
}

/// Returns whether this process, or an ancestor that is no adopter of orphans, is older than the process with this number and start
/// time. The leader of its session counts too: no process joins an older session, and the children of an owner have their own.
pub(crate) fn has_older_ancestor(pid: Pid, start: u64) -> bool {
    // Of two processes of the same tick, the younger has the higher number.
    let is_older =
        |process: &ProcessSnapshot| (process.start, process.pid.as_raw_nonzero()) < (start, pid.as_raw_nonzero());
    let leader =
        self_and_ancestors().next().and_then(|own| Pid::from_raw(own.session)).and_then(proc::read_own_process);
    leader.is_some_and(|leader| is_older(&leader))
        || self_and_ancestors().any(|process| is_older(&process) && !proc::adopts_orphans(process.pid))
}

/// Returns the ancestors of this process, its parent first.
fn list_ancestors() -> impl Iterator<Item = ProcessSnapshot> {
    self_and_ancestors().skip(1)
}

/// Returns this process and its ancestors.
fn self_and_ancestors() -> impl Iterator<Item = ProcessSnapshot> {
    let above = |process: &ProcessSnapshot| Pid::from_raw(process.parent).and_then(proc::read_own_process);
    std::iter::successors(proc::read_own_process(getpid()), above).take(MAX_ANCESTORS)
}

/// Returns the time now on the scale of start times: in clock ticks since the system started.
pub(crate) fn clock_ticks_now() -> u64 {
    let (now, per_second) = (system_uptime(), rustix::param::clock_ticks_per_second());
    now.as_secs() * per_second + u64::from(now.subsec_nanos()) * per_second / 1_000_000_000
}

/// Returns how long ago the system started, including the time in which it slept.
pub fn system_uptime() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::try_from(now).unwrap_or_default()
}

/// Enlarges a pipe.
pub(crate) fn grow_pipe(pipe: &OwnedFd, size: usize) {
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, size);
}

/// Ends an unusable supervisor, and the rest of its run. Its descendants and the carriers of the tag are ended first: a process that
/// traces the supervisor would keep it from dying. This process adopts its orphans then.
pub(crate) fn end_lost_run(tag: &str, leader: Option<Pid>, supervisor: &SupervisorProcess) -> usize {
    supervisor.send_signal(Signal::KILL);
    let first = termination::end_selected(&|known| orphans::find_below_or_tagged(supervisor.pid, tag, known)).killed;
    supervisor.kill_supervisor();
    let scope = RunScope { tag, session: leader, leader: None, since: None };
    first + termination::end_selected(&|known| scope.find_processes(known)).killed
}

/// Ends the processes that a dead owner left. Returns their numbers.
pub(crate) fn end_left_processes(orphan_set: &OrphanSet) -> Vec<i32> {
    let seen = RefCell::new(BTreeSet::new());
    let left = |known: &KnownPids| {
        let left = orphans::find_left_by_owner(orphan_set, known);
        seen.borrow_mut().extend(left.iter().map(|process| process.pid.as_raw_nonzero().get()));
        left
    };
    termination::end_selected_gracefully(&left);
    // A scan misses a process that forks and exits before it, but the last assigned number shows that it existed.
    for _ in 0..MAX_PROC_SCANS {
        let youngest = proc::last_assigned_pid();
        termination::end_selected(&left);
        if proc::last_assigned_pid() == youngest {
            break;
        }
    }
    seen.into_inner().into_iter().collect()
}

/// Ends the unclaimed orphans after the last run. Returns how many there were.
fn end_unclaimed_orphans(tag: &str, session: Option<Pid>) -> usize {
    if !orphans::unregister_run(tag) {
        return 0;
    }
    let rest = RunScope { tag, session, leader: None, since: None };
    termination::end_selected(&|known| rest.find_processes(known)).killed
}

/// Returns the leader if all its descendants have higher numbers: numbers wrap around, but not so soon.
fn lowest_descendant_pid(leader: Pid, born: Instant) -> Option<Pid> {
    let soonest = MIN_SPAWN_INTERVAL.saturating_mul(proc::max_pid_count()).min(Duration::from_secs(2));
    (born.elapsed() < soonest).then_some(leader)
}

/// A program that runs as a child of this process, with all its descendants.
pub(crate) struct LeaderProcess {
    pid: Pid,
    descriptor: OwnedFd,
    born: Instant,
    tag: String,
    stopped: Vec<HeldProcess>,
    /// How the leader ended, and how many others were killed, once all is over.
    ended: Option<(ProcessStatus, usize)>,
}

impl LeaderProcess {
    pub fn start(tag: &str, program: &ResolvedProgram, descriptors: [BorrowedFd<'_>; 3]) -> io::Result<Self> {
        orphans::register_run(tag);
        let (pid, descriptor) = orphans::spawn_child(program, descriptors).inspect_err(|_| {
            end_unclaimed_orphans(tag, None);
        })?;
        let born = Instant::now();
        Ok(Self { pid, descriptor, born, tag: tag.to_owned(), stopped: Vec::new(), ended: None })
    }

    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Ends what an exited leader left: its group, and its orphans.
    fn end_orphans(&self) -> (ProcessStatus, usize) {
        let _ = kill_process_group(self.pid, Signal::KILL);
        let status = termination::reap(&self.descriptor).unwrap_or(ProcessStatus::Lost);
        orphans::forget_child(self.pid);
        if orphans::is_childless() || proc::is_youngest_process(self.pid) {
            return (status, 0);
        }
        (status, termination::end_selected(&|known| self.find_processes(known)).killed)
    }

    fn end_all(&self) -> (ProcessStatus, usize) {
        let ended = termination::end_selected(&|known| self.find_processes(known));
        let status = ended.find_status(self.pid).unwrap_or(ProcessStatus::Lost);
        (status, ended.killed.saturating_sub(usize::from(status == KILLED_STATUS)))
    }

    fn find_processes(&self, known: &KnownPids) -> Vec<ProcessSnapshot> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let is_reaped = waitid(WaitId::PidFd(self.descriptor.as_fd()), options).is_err();
        let scope = RunScope {
            tag: &self.tag,
            session: Some(self.pid),
            leader: (!is_reaped).then_some(self.pid),
            since: lowest_descendant_pid(self.pid, self.born),
        };
        scope.find_processes(known)
    }
}

impl ProcessTree for LeaderProcess {
    fn leader_descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    fn terminate_tree(&mut self) {
        if is_readable(&self.descriptor) {
            termination::terminate_selected(&|known| self.find_processes(known));
        } else {
            let _ = kill_process_group(self.pid, Signal::TERM);
            // A stopped process receives the signal only after it continues.
            let _ = kill_process_group(self.pid, Signal::CONT);
        }
    }

    fn stop_tree(&mut self) {
        self.stopped = termination::stop_selected(&|known| self.find_processes(known));
    }

    fn resume_tree(&mut self) {
        for process in self.stopped.drain(..) {
            process.send_signal(Signal::CONT);
        }
    }

    fn end_tree(&mut self) -> (ProcessStatus, usize) {
        if let Some(ended) = self.ended {
            return ended;
        }
        let (status, mut others) = if is_readable(&self.descriptor) { self.end_orphans() } else { self.end_all() };
        orphans::forget_child(self.pid);
        others += end_unclaimed_orphans(&self.tag, Some(self.pid));
        *self.ended.insert((status, others))
    }
}

impl Drop for LeaderProcess {
    fn drop(&mut self) {
        self.end_tree();
    }
}

/// All descendants of a supervisor, which has one run at a time.
pub(crate) struct DescendantTree {
    leader: Pid,
    born: Instant,
}

/// Processes that were stopped, until they are resumed.
pub(crate) struct StoppedProcesses(Vec<HeldProcess>);

impl StoppedProcesses {
    pub fn resume_all(self) {
        for process in self.0 {
            process.send_signal(Signal::CONT);
        }
    }
}

impl DescendantTree {
    pub fn below_leader(leader: Pid) -> Self {
        Self { leader, born: Instant::now() }
    }

    /// Sends SIGTERM to all of them.
    pub fn terminate_all(&self) {
        termination::terminate_selected(&|known| self.find_processes(known));
    }

    pub fn stop(&self) -> StoppedProcesses {
        let stopped = termination::stop_selected(&|known| self.find_processes(known));
        termination::await_stopped(&stopped);
        StoppedProcesses(stopped)
    }

    pub fn end_all(&self) -> TreeEndReport {
        termination::end_selected(&|known| self.find_processes(known))
    }

    /// Asks them to end, gives them a moment for that, and ends them.
    pub fn end_all_gracefully(&self) {
        termination::end_selected_gracefully(&|known| self.find_processes(known));
    }

    fn find_processes(&self, known: &KnownPids) -> Vec<ProcessSnapshot> {
        orphans::find_descendants(lowest_descendant_pid(self.leader, self.born), known)
    }
}

/// The supervisor, as a child of this process.
pub(crate) struct SupervisorProcess {
    pid: Pid,
    descriptor: OwnedFd,
}

impl SupervisorProcess {
    pub fn start(program: &ResolvedProgram, descriptors: [BorrowedFd<'_>; 3]) -> io::Result<Self> {
        let (pid, descriptor) = orphans::spawn_child(program, descriptors)?;
        Ok(Self { pid, descriptor })
    }

    pub fn pid(&self) -> Pid {
        self.pid
    }

    fn send_signal(&self, signal: Signal) {
        let _ = pidfd_send_signal(&self.descriptor, signal);
    }

    /// Continues it if another process stopped it.
    pub fn resume_supervisor(&self) {
        self.send_signal(Signal::CONT);
    }

    pub fn is_stopped(&self) -> bool {
        let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        waitid(WaitId::PidFd(self.descriptor.as_fd()), options).is_ok_and(|status| status.is_some())
    }

    /// Kills it, and returns when it is dead, or does not die. `wait_or_kill` still has to reap it.
    pub fn kill_supervisor(&self) {
        self.send_signal(Signal::KILL);
        self.has_ended_within(KILL_TIMEOUT);
    }

    /// Waits until it has ended, kills it if it does not, and reaps it. While another process traces it, only the tracer gets its
    /// status, so the wait is bounded.
    pub fn wait_or_kill(&mut self, patience: Duration) {
        if !self.has_ended_within(patience) {
            self.kill_supervisor();
        }
        let give_up = Instant::now() + KILL_TIMEOUT;
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        while let Ok(None) = waitid(WaitId::PidFd(self.descriptor.as_fd()), options) {
            if Instant::now() > give_up {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        orphans::forget_child(self.pid);
    }

    /// Returns whether it is dead, or dies within that time. It may still have to be reaped.
    fn has_ended_within(&self, patience: Duration) -> bool {
        let mut descriptors = [PollFd::new(&self.descriptor, PollFlags::IN)];
        let give_up = Instant::now() + patience;
        loop {
            let left = give_up.saturating_duration_since(Instant::now());
            match poll(&mut descriptors, Some(&left.try_into().expect("a short time fits"))) {
                Err(rustix::io::Errno::INTR) => {}
                found => return found == Ok(1),
            }
        }
    }
}

/// Waits for a socket and the end of another parent's child at once.
pub(crate) struct LeaderWatch {
    both: OwnedFd,
    /// Polled as long as it is open.
    _process: OwnedFd,
}

impl LeaderWatch {
    pub fn open_watch(socket: BorrowedFd<'_>, pid: Pid) -> io::Result<Self> {
        let process = pidfd_open(pid, PidfdFlags::empty())?;
        let both = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for descriptor in [socket, process.as_fd()] {
            epoll::add(&both, descriptor, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
        }
        Ok(Self { both, _process: process })
    }
}

impl AsFd for LeaderWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.both.as_fd()
    }
}

/// Returns a descriptor that is readable when the parent of this process has ended.
pub(crate) fn parent_exit_descriptor() -> Option<OwnedFd> {
    pidfd_open(getppid()?, PidfdFlags::empty()).ok()
}

fn is_readable(descriptor: &OwnedFd) -> bool {
    let mut descriptors = [PollFd::new(descriptor, PollFlags::IN)];
    poll(&mut descriptors, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

/// Wakes a loop from another thread.
pub(crate) struct LoopWaker(OwnedFd);

impl LoopWaker {
    pub fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    pub fn wake_loop(&self) {
        // It fails only when the counter is full, and then the loop wakes up anyway.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    pub fn clear_wakeups(&self) {
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for LoopWaker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
