//! Runs a program under a process of its own, so that nothing of it survives a `kill -9` of this one.
//!
//! The supervisor is started once and does runs one after another. Pipes, capture and deadlines are on this side, as for other
//! runs; the supervisor (`supervisor`) only has the processes, and `wire` reaches it.
//!
//! Invariants:
//! - A supervisor has one run at a time, which `&mut` enforces.
//! - If it dies, the run is [`Exit::Lost`](crate::Exit), this process ends all that carries the run's tag, and the next run
//!   gets a new supervisor. A supervisor that does not follow orders is killed, so that its orphans come to us. While its program
//!   traces it, it dies only after that program: no wait for its end is unbounded.
//! - A program that may have been started is not started again.
//! - A stopped supervisor is woken with every order and at the end of its program, and counts as lost if it is stopped again
//!   and again.

use std::borrow::Borrow;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::Pid;

use crate::os::{self, Helper, News, Status};
use crate::program::{Program, c_string, variable};
use crate::run::Start;
use crate::watch::Tree;
use crate::wire::{self, Report};
use crate::{Control, Finished, NotStarted, Roster, Spec, Stream, run};

/// How long a supervisor may take to stop or end its tree. Its own bounds are tighter.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often the wait for a report checks whether the supervisor is stopped, or the run cancelled.
const SILENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// How often a supervisor is woken during the wait for one report.
const WAKINGS: u32 = 3;

/// Name of a supervisor in a list of processes.
const NAME: &str = "windlass";

/// The command that starts a supervisor: a program that calls [`supervisor::serve`](crate::supervisor::serve) when it gets
/// these arguments.
#[derive(Debug, Clone)]
pub struct Launcher {
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    pub environment: Vec<(OsString, OsString)>,
}

impl Launcher {
    /// Launches this same program, with an argument that selects the supervisor.
    pub fn own(argument: impl Into<OsString>) -> io::Result<Self> {
        Ok(Self { program: os::own_program()?, arguments: vec![argument.into()], environment: Vec::new() })
    }
}

/// A process that runs programs for this one, one after another, and ends them when this process dies.
pub struct Supervisor {
    launcher: Launcher,
    link: Option<Link>,
}

pub(crate) struct Link {
    socket: UnixStream,
    process: Helper,
    /// A moment before the start, in clock ticks.
    before: u64,
    /// Set once it is on the list of its owner.
    listed: OnceLock<()>,
}

impl Supervisor {
    pub fn start(launcher: &Launcher) -> io::Result<Self> {
        Ok(Self { launcher: launcher.clone(), link: Some(Link::new(launcher)?) })
    }

    /// Does the same as [`run`](crate::run()), under the supervisor.
    pub fn run(
        &mut self,
        spec: &Spec,
        roster: &Roster,
        control: &Control,
        observe: &mut dyn FnMut(Stream, &[u8]),
    ) -> Result<Finished, NotStarted> {
        let Some(start) = Start::new(spec, roster, control)? else { return Ok(Finished::cancelled()) };
        let begun = match self.begin(&start) {
            // The supervisor may have died since the last run.
            Err(_) => self.begin(&start),
            begun => begun,
        };
        let pid = match begun.map_err(|source| NotStarted::other(&self.launcher.program, source))? {
            StartOutcome::Started(pid) => Some(pid),
            StartOutcome::Refused(error) => return Err(start.refused(error)),
            StartOutcome::Lost(_) => None,
        };
        let link = self.link.as_ref().expect("it has just got the order");
        let mut tree = Supervised::new(link, pid, start.tag.clone());
        let finished = start.follow(&mut tree, pid, observe);
        let lost = tree.lost;
        drop(tree);
        if lost {
            self.link = None;
        }
        Ok(finished)
    }

    /// Orders the supervisor to start the program. An error means that it got no order, and a new supervisor may get it.
    fn begin(&mut self, start: &Start<'_>) -> io::Result<StartOutcome> {
        let link = match &self.link {
            Some(link) => link,
            None => self.link.insert(Link::new(&self.launcher)?),
        };
        let descriptors = start.descriptors()?;
        link.list(start.roster);
        link.process.wake();
        let begun = link.begin(&start.program, &descriptors, || start.is_called_off());
        if begun.is_err() {
            self.link = None;
        }
        begun
    }
}

/// Does the same as [`run`](crate::run()), under a supervisor of its own if there is a launcher: a supervisor runs one program at
/// a time, and these runs are concurrent.
pub fn run_apart(
    launcher: Option<&Launcher>,
    spec: &Spec,
    roster: &Roster,
    control: &Control,
) -> Result<Finished, NotStarted> {
    let observe = &mut |_, _: &[u8]| {};
    match launcher.cloned() {
        Some(launcher) => Supervisor { launcher, link: None }.run(spec, roster, control, observe),
        None => run(spec, roster, control, observe),
    }
}

/// Returns the number of ancestors that are supervisors with this argument.
pub fn supervisors_above(argument: &str) -> usize {
    os::above_with(&[NAME.as_bytes(), argument.as_bytes()])
}

/// Returns whether an ancestor is a supervisor whose parent works within a directory.
pub fn is_below_supervisor(argument: &str, directory: &Path) -> bool {
    os::is_below_program(&[NAME.as_bytes(), argument.as_bytes()], directory)
}

/// The result of an order to start a program.
pub(crate) enum StartOutcome {
    Started(Pid),
    /// The system refused the start.
    Refused(io::Error),
    /// No answer came: the program may have been started.
    Lost(io::Error),
}

impl Link {
    pub fn new(launcher: &Launcher) -> io::Result<Self> {
        let (socket, theirs) = UnixStream::pair()?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        let mut arguments = vec![c_string(NAME.into())?];
        for argument in &launcher.arguments {
            arguments.push(c_string(argument.clone())?);
        }
        let environment = launcher.environment.iter().map(|(name, value)| variable(name, value));
        let program = Program {
            path: c_string(launcher.program.clone().into_os_string())?,
            // A supervisor must not keep a directory from being removed.
            directory: c_string(OsStr::new("/").to_owned())?,
            arguments,
            environment: environment.collect::<io::Result<_>>()?,
        };
        let null = std::fs::File::options().write(true).open("/dev/null")?;
        let before = os::ticks();
        let process = Helper::start(&program, [theirs.as_fd(), null.as_fd(), null.as_fd()])?;
        Ok(Self { socket, process, before, listed: OnceLock::new() })
    }

    /// Puts the supervisor on the list of an owner, so that a sweep ends it after the owner's death if it cannot end itself: its
    /// agent may have stopped it.
    pub fn list(&self, roster: &Roster) {
        self.listed.get_or_init(|| roster.note(self.process.pid(), self.before));
    }

    /// Orders the supervisor to start a program. An error means that it got no order. A supervisor that does not follow the order
    /// is killed.
    pub fn begin(
        &self,
        program: &Program,
        descriptors: &[BorrowedFd<'_>; 3],
        is_called_off: impl Fn() -> bool,
    ) -> io::Result<StartOutcome> {
        wire::send_start(&self.socket, program, descriptors).inspect_err(|_| self.process.kill())?;
        let lost = match self.report(is_called_off) {
            Ok(Report::Started(pid)) if pid > 0 => {
                return Ok(StartOutcome::Started(Pid::from_raw(pid).expect("no process has the number 0")));
            }
            Ok(Report::Failed(error)) => return Ok(StartOutcome::Refused(io::Error::from_raw_os_error(error))),
            Ok(_) => io::ErrorKind::InvalidData.into(),
            Err(error) => error,
        };
        self.process.kill();
        Ok(StartOutcome::Lost(lost))
    }

    /// Returns the next report, if there is one soon. Wakes a stopped supervisor meanwhile.
    fn report_soon(&self) -> Option<io::Result<Report>> {
        match poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&SILENCE)) {
            Ok(0) => {
                self.process.wake();
                None
            }
            Err(Errno::INTR) => None,
            Ok(_) => Some(Report::receive(&self.socket)),
            Err(error) => Some(Err(error.into())),
        }
    }

    /// Returns the next report. Fails if the supervisor is dead, is kept from working, takes too long, or if the run was cancelled
    /// meanwhile.
    fn report(&self, is_called_off: impl Fn() -> bool) -> io::Result<Report> {
        let give_up = Instant::now() + PATIENCE;
        let mut wakings = 0;
        loop {
            match poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&SILENCE)) {
                Ok(0) if Instant::now() > give_up || wakings == WAKINGS || is_called_off() => {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                Ok(0) if self.process.is_stopped() => {
                    self.process.wake();
                    wakings += 1;
                }
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Report::receive(&self.socket),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // The supervisor ends its tree and itself when the socket closes.
        self.process.wake();
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
        self.process.dismiss(PATIENCE);
    }
}

/// The tree of a run, under a borrowed supervisor or its own.
pub(crate) struct Supervised<L: Borrow<Link>> {
    link: L,
    /// `None` if there was no answer.
    pid: Option<Pid>,
    tag: String,
    /// How the leader ended, and whether other processes were left then.
    exited: Option<(Status, bool)>,
    /// Wakes the loop on a report, or at the end of the leader, which a stopped supervisor does not report.
    news: Option<News>,
    /// When the leader had ended without a report.
    unheard_since: Option<Instant>,
    /// The supervisor is dead or unusable.
    lost: bool,
    ended: Option<(Status, usize)>,
}

impl<L: Borrow<Link>> Supervised<L> {
    /// Takes `None` as `pid` if it is unknown whether the leader was started.
    pub fn new(link: L, pid: Option<Pid>, tag: String) -> Self {
        let news = pid.and_then(|pid| News::of(link.borrow().socket.as_fd(), pid).ok());
        Self { link, pid, tag, exited: None, news, unheard_since: None, lost: pid.is_none(), ended: None }
    }

    /// Returns how the leader ended, if it has.
    pub fn status(&self) -> Option<Status> {
        self.exited.map(|(status, _)| status)
    }

    /// Sends an order, unless the supervisor is lost. Returns whether it was sent.
    fn order(&self, kind: u8) -> bool {
        self.link.borrow().process.wake();
        !self.lost && wire::send_order(&self.link.borrow().socket, kind).is_ok()
    }

    /// Waits for a matching report, and handles the others.
    fn await_report(&mut self, wanted: impl Fn(Report) -> bool) -> Option<Report> {
        while !self.lost {
            let report = self.link.borrow().report(|| false);
            if let Some(report) = self.heed(report).filter(|report| wanted(*report)) {
                return Some(report);
            }
        }
        None
    }

    fn heed(&mut self, report: io::Result<Report>) -> Option<Report> {
        match report {
            Ok(Report::Exited { status, others_left }) => self.exited = Some((status, others_left)),
            Ok(report) => return Some(report),
            Err(_) => self.lost = true,
        }
        None
    }

    /// Ends the processes that the supervisor left.
    fn end_lost(&mut self) -> usize {
        self.lost = true;
        os::end_lost(&self.tag, self.pid, &self.link.borrow().process)
    }
}

impl<L: Borrow<Link>> Tree for Supervised<L> {
    fn descriptor(&self) -> BorrowedFd<'_> {
        // A leader that is already gone has been reported on the socket.
        self.news.as_ref().map_or_else(|| self.link.borrow().socket.as_fd(), News::as_fd)
    }

    fn is_gone(&mut self) -> bool {
        if !self.lost {
            match self.link.borrow().report_soon() {
                Some(report) => drop(self.heed(report)),
                // The leader is gone, and the supervisor that should report it is stopped or traced.
                None => self.lost = self.unheard_since.get_or_insert_with(Instant::now).elapsed() > PATIENCE,
            }
        }
        self.lost || self.exited.is_some()
    }

    fn terminate(&mut self) {
        // The loop notices a lost supervisor; the processes that it left cannot be asked any more.
        if !self.order(wire::TERMINATE) {
            self.end();
        }
    }

    fn stop(&mut self) {
        if self.order(wire::STOP) {
            self.await_report(|report| report == Report::Stopped);
        }
        if self.lost {
            self.end();
        }
    }

    fn resume(&mut self) {
        self.order(wire::RESUME);
    }

    fn end(&mut self) -> (Status, usize) {
        if let Some(ended) = self.ended {
            return ended;
        }
        let mut others = 0;
        if self.exited.is_none_or(|(_, others_left)| others_left) {
            let report = match self.order(wire::END) {
                true => self.await_report(|report| matches!(report, Report::Ended(_))),
                false => None,
            };
            match report {
                Some(Report::Ended(killed)) => others = usize::try_from(killed).unwrap_or(0),
                _ => others = self.end_lost(),
            }
        }
        let status = self.exited.map_or(Status::Lost, |(status, _)| status);
        *self.ended.insert((status, others))
    }
}

impl<L: Borrow<Link>> Drop for Supervised<L> {
    fn drop(&mut self) {
        self.end();
    }
}
