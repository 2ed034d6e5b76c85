//! Other Unixes: features that all of them offer.
//!
//! Weaker than Linux:
//! - A thread waits for each child, instead of a descriptor.
//! - Only the process group is ended: a process that leaves it with `setsid` survives.
//! - A supervisor ends the group of its leader when its socket closes, not more.
//! - Nothing is swept after a crash: a process's environment and start time are unknown.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process, kill_process_group, waitid, waitpid,
};

use super::{OrphanSet, ProcessStatus, TreeEndReport};
use crate::event_loop::ProcessTree;
use crate::program::ResolvedProgram;
use crate::spawn::spawn_program;

pub(crate) fn prepare_process() {}

pub(crate) fn own_program_path() -> io::Result<PathBuf> {
    std::env::current_exe()
}

pub(crate) fn read_boot_id() -> Option<String> {
    None
}

pub(crate) fn clock_ticks_now() -> u64 {
    0
}

/// Returns how long ago the system started.
pub fn system_uptime() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Duration::try_from(now).unwrap_or_default()
}

pub(crate) fn process_start_time(_: Pid) -> Option<u64> {
    None
}

pub(crate) fn wake_process(_: Pid, _: u64) -> bool {
    // The number may belong to another process by now.
    false
}

pub(crate) fn descends_from_process(_: Pid, _: u64) -> bool {
    false
}

pub fn can_see_ancestors() -> bool {
    true
}

pub(crate) fn has_older_ancestor(_: Pid, _: u64) -> bool {
    true
}

pub(crate) fn count_ancestors_with(_: &[&[u8]]) -> usize {
    0
}

pub(crate) fn is_below_program(_: &[&[u8]], _: &Path) -> bool {
    false
}

pub(crate) fn is_connection_below_program(_: &[&[u8]], _: SocketAddr, _: SocketAddr) -> bool {
    false
}

pub(crate) fn grow_pipe(_: &OwnedFd, _: usize) {}

pub(crate) fn end_lost_run(_: &str, leader: Option<Pid>, supervisor: &SupervisorProcess) -> usize {
    supervisor.kill_supervisor();
    // The group outlives the supervisor only if its leader or another member does, so the number is still its own.
    usize::from(leader.is_some_and(|leader| kill_process_group(leader, Signal::KILL).is_ok()))
}

pub(crate) fn end_left_processes(orphans: &OrphanSet) -> Vec<i32> {
    // These numbers may belong to other processes by now.
    let _ = &orphans.leaders;
    Vec::new()
}

/// A program that runs as a child of this process, with its group.
pub(crate) struct LeaderProcess {
    pid: Pid,
    /// Readable when the leader has ended.
    ended: io::PipeReader,
    status: Option<ProcessStatus>,
}

impl LeaderProcess {
    pub fn start(_: &str, program: &ResolvedProgram, descriptors: [BorrowedFd<'_>; 3]) -> io::Result<Self> {
        let (ended, signal) = io::pipe()?;
        let pid = spawn_program(program, descriptors)?;
        thread::spawn(move || {
            // The leader stays to be reaped, so that its number is not free.
            let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
            drop(signal);
        });
        Ok(Self { pid, ended, status: None })
    }

    pub fn pid(&self) -> Pid {
        self.pid
    }

    fn signal_group(&self, signal: Signal) {
        if self.status.is_none() {
            let _ = kill_process_group(self.pid, signal);
        }
    }
}

impl ProcessTree for LeaderProcess {
    fn leader_descriptor(&self) -> BorrowedFd<'_> {
        self.ended.as_fd()
    }

    fn terminate_tree(&mut self) {
        self.signal_group(Signal::TERM);
        // A stopped process receives the signal only after it continues.
        self.signal_group(Signal::CONT);
    }

    fn stop_tree(&mut self) {
        self.signal_group(Signal::STOP);
    }

    fn resume_tree(&mut self) {
        self.signal_group(Signal::CONT);
    }

    fn end_tree(&mut self) -> (ProcessStatus, usize) {
        self.signal_group(Signal::KILL);
        let pid = self.pid;
        (*self.status.get_or_insert_with(|| reap(pid)), 0)
    }
}

impl Drop for LeaderProcess {
    fn drop(&mut self) {
        self.end_tree();
    }
}

fn reap(pid: Pid) -> ProcessStatus {
    match waitpid(Some(pid), WaitOptions::empty()) {
        Ok(Some((_, status))) => status.into(),
        _ => ProcessStatus::Lost,
    }
}

/// The group of a supervisor's leader.
pub(crate) struct DescendantTree {
    leader: Pid,
}

pub(crate) struct StoppedProcesses(Pid);

impl StoppedProcesses {
    pub fn resume_all(self) {
        let _ = kill_process_group(self.0, Signal::CONT);
    }
}

impl DescendantTree {
    pub fn below_leader(leader: Pid) -> Self {
        Self { leader }
    }

    pub fn terminate_all(&self) {
        let _ = kill_process_group(self.leader, Signal::TERM);
        let _ = kill_process_group(self.leader, Signal::CONT);
    }

    pub fn stop(&self) -> StoppedProcesses {
        let _ = kill_process_group(self.leader, Signal::STOP);
        StoppedProcesses(self.leader)
    }

    pub fn end_all(&self) -> TreeEndReport {
        let _ = kill_process_group(self.leader, Signal::KILL);
        TreeEndReport { killed: 0, statuses: vec![(self.leader, reap(self.leader))] }
    }

    pub fn end_all_gracefully(&self) {
        self.terminate_all();
        self.end_all();
    }
}

/// The supervisor, as a child of this process.
pub(crate) struct SupervisorProcess(Pid);

impl SupervisorProcess {
    pub fn start(program: &ResolvedProgram, descriptors: [BorrowedFd<'_>; 3]) -> io::Result<Self> {
        spawn_program(program, descriptors).map(Self)
    }

    pub fn pid(&self) -> Pid {
        self.0
    }

    pub fn resume_supervisor(&self) {
        let _ = kill_process(self.0, Signal::CONT);
    }

    pub fn is_stopped(&self) -> bool {
        // A query would take the status away; a supervisor that stays stopped runs into the timeout.
        false
    }

    pub fn kill_supervisor(&self) {
        let _ = kill_process(self.0, Signal::KILL);
        let _ = waitid(WaitId::Pid(self.0), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
    }

    pub fn wait_or_kill(&mut self, patience: Duration) {
        let give_up = Instant::now() + patience;
        while matches!(waitpid(Some(self.0), WaitOptions::NOHANG), Ok(None)) {
            if Instant::now() > give_up {
                let _ = kill_process(self.0, Signal::KILL);
                reap(self.0);
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Unavailable here: no descriptor waits for another parent's child.
pub(crate) struct LeaderWatch(OwnedFd);

impl LeaderWatch {
    pub fn open_watch(_: BorrowedFd<'_>, _: Pid) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl AsFd for LeaderWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

pub(crate) fn parent_exit_descriptor() -> Option<OwnedFd> {
    None
}

/// Wakes a loop from another thread.
pub(crate) struct LoopWaker {
    reader: io::PipeReader,
    writer: io::PipeWriter,
}

impl LoopWaker {
    pub fn new() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        rustix::io::ioctl_fionbio(&reader, true)?;
        rustix::io::ioctl_fionbio(&writer, true)?;
        Ok(Self { reader, writer })
    }

    pub fn wake_loop(&self) {
        let _ = rustix::io::write(&self.writer, &[1]);
    }

    pub fn clear_wakeups(&self) {
        while rustix::io::read(&self.reader, &mut [0; 64]).is_ok_and(|length| length > 0) {}
    }
}

impl AsFd for LoopWaker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }
}
