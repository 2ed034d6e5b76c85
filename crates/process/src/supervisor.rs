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

use crate::os::{self, Brood, Status, Stopped};
use crate::program::Program;
use crate::ready::ready;
use crate::spawn::spawn;
use crate::wire::{Order, Report, receive_order};

/// Serves until the socket on standard input closes. Call this before anything else in the process.
pub fn serve() -> ExitCode {
    match Service::new().and_then(|mut service| service.serve()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

struct Service {
    socket: UnixStream,
    /// Readable when a child has ended.
    children: UnixStream,
    /// Readable when this process must end.
    terminated: UnixStream,
    /// Readable when the parent has ended, even if another process holds the other end of the socket.
    orphaned: Option<OwnedFd>,
    run: Option<Run>,
}

/// The run in progress.
struct Run {
    leader: Pid,
    brood: Brood,
    /// The leader was reaped: its number may be another process's.
    gone: bool,
    stopped: Option<Stopped>,
}

impl Run {
    fn terminate(&self) {
        if self.gone {
            self.brood.terminate();
        } else {
            let _ = kill_process_group(self.leader, Signal::TERM);
            let _ = kill_process_group(self.leader, Signal::CONT);
        }
    }
}

impl Service {
    fn new() -> io::Result<Self> {
        os::prepare();
        for signal in [SIGINT, SIGHUP] {
            signal_hook::flag::register(signal, Arc::default())?;
        }
        let socket = UnixStream::from(rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?);
        let (children, terminated) = (on_signal(SIGCHLD)?, on_signal(SIGTERM)?);
        Ok(Self { socket, children, terminated, orphaned: os::end_of_parent(), run: None })
    }

    fn serve(&mut self) -> io::Result<()> {
        let result = self.obey_all();
        // The owner is gone: a git that is killed at once would leave its locks.
        if let Some(run) = &self.run {
            run.brood.end_in_order();
        }
        result
    }

    fn obey_all(&mut self) -> io::Result<()> {
        loop {
            let (sockets, orphaned) = ([&self.socket, &self.children, &self.terminated], self.orphaned.as_ref());
            let [socket, children, terminated] = sockets.map(|socket| Some((socket.as_fd(), PollFlags::IN)));
            let orphaned = orphaned.map(|parent| (parent.as_fd(), PollFlags::IN));
            let [ordered, ended, terminated, orphaned] = ready(&[socket, children, terminated, orphaned], None);
            if terminated || orphaned {
                return Ok(());
            }
            if ended {
                let _ = self.children.read(&mut [0; 256]);
                self.reap()?;
            }
            if ordered {
                match receive_order(&self.socket)? {
                    Some(order) => self.obey(order)?,
                    None => return Ok(()),
                }
            }
        }
    }

    fn obey(&mut self, order: Order) -> io::Result<()> {
        match (order, &mut self.run) {
            (Order::Start(program, descriptors), None) => self.start(&program, descriptors),
            (Order::Terminate, Some(run)) => {
                run.terminate();
                Ok(())
            }
            (Order::Stop, Some(run)) => {
                run.stopped = Some(run.brood.stop());
                Report::Stopped.send(&self.socket)
            }
            (Order::Resume, Some(run)) => {
                if let Some(stopped) = run.stopped.take() {
                    stopped.resume();
                }
                Ok(())
            }
            (Order::End, Some(_)) => self.end(),
            // The run ended before the order arrived.
            (Order::Terminate | Order::Resume, None) => Ok(()),
            (Order::Stop, None) => Report::Stopped.send(&self.socket),
            (Order::End, None) => Report::Ended(0).send(&self.socket),
            (Order::Start(..), Some(_)) => Err(io::Error::other("cannot start a second run")),
        }
    }

    fn start(&mut self, program: &Program, descriptors: [OwnedFd; 3]) -> io::Result<()> {
        match spawn(program, descriptors.each_ref().map(AsFd::as_fd)) {
            Ok(leader) => {
                self.run = Some(Run { leader, brood: Brood::of(leader), gone: false, stopped: None });
                Report::Started(leader.as_raw_nonzero().get()).send(&self.socket)
            }
            Err(error) => Report::Failed(error.raw_os_error().unwrap_or(libc::EIO)).send(&self.socket),
        }
    }

    /// Reaps all children that have ended. Every process below this one is its own, so no other waiter loses a status.
    fn reap(&mut self) -> io::Result<()> {
        let mut exited = None;
        let others_left = loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    if self.run.as_ref().is_some_and(|run| run.leader == pid) {
                        exited = Some(Status::from(status));
                    }
                }
                Ok(None) => break true,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => break false,
            }
        };
        match exited {
            Some(status) => self.exited(status, others_left),
            None => Ok(()),
        }
    }

    fn exited(&mut self, status: Status, others_left: bool) -> io::Result<()> {
        match &mut self.run {
            Some(run) if others_left => run.gone = true,
            _ => self.run = None,
        }
        Report::Exited { status, others_left }.send(&self.socket)
    }

    fn end(&mut self) -> io::Result<()> {
        let Some(run) = self.run.take() else { return Ok(()) };
        let ended = run.brood.end();
        let mut killed = ended.killed;
        if !run.gone {
            let status = ended.status(run.leader).unwrap_or(Status::Signal(libc::SIGKILL));
            killed = killed.saturating_sub(usize::from(status == Status::Signal(libc::SIGKILL)));
            Report::Exited { status, others_left: true }.send(&self.socket)?;
        }
        Report::Ended(i32::try_from(killed).unwrap_or(i32::MAX)).send(&self.socket)
    }
}

/// Returns a socket that becomes readable when the signal comes.
fn on_signal(signal: i32) -> io::Result<UnixStream> {
    let (reader, writer) = UnixStream::pair()?;
    reader.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(signal, writer)?;
    Ok(reader)
}
