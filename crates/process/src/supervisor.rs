//! The main function of the supervisor.
//!
//! A process in a session of its own, which adopts every orphan of its runs. It follows orders from the socket on its standard
//! input. When the socket closes, because the owner is done or was killed, it ends its tree and itself.
//!
//! Invariants:
//! - Every process below this one belongs to the run.
//! - SIGINT and SIGHUP do not end it. SIGTERM ends its tree, then itself.
//! - It reaps its children as they end, so that no zombies pile up during a run.
//!
//! Not here: pipes, capture, deadlines (`event_loop`), the other side (`supervised_run`).

use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;

use rustix::event::PollFlags;
use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, wait};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};

use crate::descriptor_poll::poll_descriptors;
use crate::os::{self, DescendantTree, ProcessStatus, StoppedProcesses};
use crate::program::ResolvedProgram;
use crate::spawn::spawn_program;
use crate::wire::{SupervisorOrder, SupervisorReport, receive_order};

/// Serves until the socket on standard input closes. Call this before anything else in the process.
pub fn serve_owner() -> ExitCode {
    match SupervisorService::new().and_then(|mut service| service.serve_until_closed()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

struct SupervisorService {
    socket: UnixStream,
    /// Readable when a child has ended.
    children: UnixStream,
    /// Readable when this process must end.
    terminated: UnixStream,
    /// Readable when the parent has ended, even if another process holds the other end of the socket.
    orphaned: Option<OwnedFd>,
    run: Option<ActiveRun>,
}

/// The run in progress.
struct ActiveRun {
    leader: Pid,
    descendants: DescendantTree,
    /// The leader was reaped: its number may be another process's.
    gone: bool,
    stopped: Option<StoppedProcesses>,
}

impl ActiveRun {
    fn terminate_tree(&self) {
        if self.gone {
            self.descendants.terminate_all();
        } else {
            let _ = kill_process_group(self.leader, Signal::TERM);
            let _ = kill_process_group(self.leader, Signal::CONT);
        }
    }
}

impl SupervisorService {
    fn new() -> io::Result<Self> {
        os::prepare_process();
        for signal in [SIGINT, SIGHUP] {
            signal_hook::flag::register(signal, Arc::default())?;
        }
        let socket = UnixStream::from(rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?);
        let (children, terminated) = (register_signal_socket(SIGCHLD)?, register_signal_socket(SIGTERM)?);
        Ok(Self { socket, children, terminated, orphaned: os::parent_exit_descriptor(), run: None })
    }

    fn serve_until_closed(&mut self) -> io::Result<()> {
        let result = self.handle_events();
        // The owner is gone: a git that is killed at once would leave its locks.
        if let Some(run) = &self.run {
            run.descendants.end_all_gracefully();
        }
        result
    }

    fn handle_events(&mut self) -> io::Result<()> {
        loop {
            let (sockets, orphaned) = ([&self.socket, &self.children, &self.terminated], self.orphaned.as_ref());
            let [socket, children, terminated] = sockets.map(|socket| Some((socket.as_fd(), PollFlags::IN)));
            let orphaned = orphaned.map(|parent| (parent.as_fd(), PollFlags::IN));
            let [ordered, ended, terminated, orphaned] =
                poll_descriptors(&[socket, children, terminated, orphaned], None);
            if terminated || orphaned {
                return Ok(());
            }
            if ended {
                let _ = self.children.read(&mut [0; 256]);
                self.reap_children()?;
            }
            if ordered {
                match receive_order(&self.socket)? {
                    Some(order) => self.handle_order(order)?,
                    None => return Ok(()),
                }
            }
        }
    }

    fn handle_order(&mut self, order: SupervisorOrder) -> io::Result<()> {
        match (order, &mut self.run) {
            (SupervisorOrder::Start(program, descriptors), None) => self.start_run(&program, descriptors),
            (SupervisorOrder::Terminate, Some(run)) => {
                run.terminate_tree();
                Ok(())
            }
            (SupervisorOrder::Stop, Some(run)) => {
                run.stopped = Some(run.descendants.stop());
                SupervisorReport::Stopped.send_report(&self.socket)
            }
            (SupervisorOrder::Resume, Some(run)) => {
                if let Some(stopped) = run.stopped.take() {
                    stopped.resume_all();
                }
                Ok(())
            }
            (SupervisorOrder::End, Some(_)) => self.end_run(),
            // The run ended before the order arrived.
            (SupervisorOrder::Terminate | SupervisorOrder::Resume, None) => Ok(()),
            (SupervisorOrder::Stop, None) => SupervisorReport::Stopped.send_report(&self.socket),
            (SupervisorOrder::End, None) => SupervisorReport::Ended(0).send_report(&self.socket),
            (SupervisorOrder::Start(..), Some(_)) => Err(io::Error::other("cannot start a second run")),
        }
    }

    fn start_run(&mut self, program: &ResolvedProgram, descriptors: [OwnedFd; 3]) -> io::Result<()> {
        match spawn_program(program, descriptors.each_ref().map(AsFd::as_fd)) {
            Ok(leader) => {
                self.run = Some(ActiveRun {
                    leader,
                    descendants: DescendantTree::below_leader(leader),
                    gone: false,
                    stopped: None,
                });
                SupervisorReport::Started(leader.as_raw_nonzero().get()).send_report(&self.socket)
            }
            Err(error) => SupervisorReport::Failed(error.raw_os_error().unwrap_or(libc::EIO)).send_report(&self.socket),
        }
    }

    /// Reaps all children that have ended. Every process below this one is its own, so no other waiter loses a status.
    fn reap_children(&mut self) -> io::Result<()> {
        let mut exited = None;
        let others_left = loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    if self.run.as_ref().is_some_and(|run| run.leader == pid) {
                        exited = Some(ProcessStatus::from(status));
                    }
                }
                Ok(None) => break true,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => break false,
            }
        };
        match exited {
            Some(status) => self.report_leader_exit(status, others_left),
            None => Ok(()),
        }
    }

    fn report_leader_exit(&mut self, status: ProcessStatus, others_left: bool) -> io::Result<()> {
        match &mut self.run {
            Some(run) if others_left => run.gone = true,
            _ => self.run = None,
        }
        SupervisorReport::Exited { status, others_left }.send_report(&self.socket)
    }

    fn end_run(&mut self) -> io::Result<()> {
        let Some(run) = self.run.take() else { return Ok(()) };
        let ended = run.descendants.end_all();
        let mut killed = ended.killed;
        if !run.gone {
            let status = ended.find_status(run.leader).unwrap_or(ProcessStatus::Signal(libc::SIGKILL));
            killed = killed.saturating_sub(usize::from(status == ProcessStatus::Signal(libc::SIGKILL)));
            SupervisorReport::Exited { status, others_left: true }.send_report(&self.socket)?;
        }
        SupervisorReport::Ended(i32::try_from(killed).unwrap_or(i32::MAX)).send_report(&self.socket)
    }
}

/// Returns a socket that becomes readable when the signal comes.
fn register_signal_socket(signal: i32) -> io::Result<UnixStream> {
    let (reader, writer) = UnixStream::pair()?;
    reader.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(signal, writer)?;
    Ok(reader)
}
