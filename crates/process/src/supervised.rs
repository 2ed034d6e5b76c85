//! Running a program under a process of its own, so that nothing of it survives a `kill -9` of this one.
//!
//! The supervisor is started once and does runs one after another. Pipes, capture and deadlines are here, as for other
//! runs; there are only the processes (`supervisor`), reached through `wire`.
//!
//! Invariants:
//! - A supervisor has one run at a time, which `&mut` says.
//! - If it dies, the run is [`Exit::Lost`](crate::Exit), what carries the run's tag is ended from here, and the next run
//!   gets a new supervisor. One that does not do what it is told is killed, so that its orphans come to us. If what it runs
//!   traces it, it is dead only when that is: nothing waits for its end without a bound.
//! - A program that may have been started is not started again.
//! - A supervisor that somebody stopped is woken with every word to it and at the end of what it runs, and lost if it is
//!   stopped again and again.

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

/// How long a supervisor may take to stop or end its tree. It bounds itself more tightly.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long it may be silent before we look whether it is stopped, or the run called off.
const SILENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// How often it is woken while we wait for a report.
const WAKINGS: u32 = 3;

/// What a supervisor is called in a list of processes.
const NAME: &str = "windlass";

/// How a supervisor is started: a program that calls [`supervisor::serve`](crate::supervisor::serve) when it gets these
/// arguments.
#[derive(Debug, Clone)]
pub struct Launcher {
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    pub environment: Vec<(OsString, OsString)>,
}

impl Launcher {
    /// This very program, with an argument that says what it is to be.
    pub fn own(argument: impl Into<OsString>) -> io::Result<Self> {
        Ok(Self { program: os::own_program()?, arguments: vec![argument.into()], environment: Vec::new() })
    }
}

/// A process that runs programs for us, one after another, and ends them when we die.
pub struct Supervisor {
    launcher: Launcher,
    link: Option<Link>,
}

pub(crate) struct Link {
    socket: UnixStream,
    process: Helper,
    /// A moment before it was started, in ticks.
    before: u64,
    /// Set once it is on the list of its owner.
    listed: OnceLock<()>,
}

impl Supervisor {
    pub fn start(launcher: &Launcher) -> io::Result<Self> {
        Ok(Self { launcher: launcher.clone(), link: Some(Link::new(launcher)?) })
    }

    /// As [`run`](crate::run()), but under the supervisor.
    pub fn run(
        &mut self,
        spec: &Spec,
        roster: &Roster,
        control: &Control,
        observe: &mut dyn FnMut(Stream, &[u8]),
    ) -> Result<Finished, NotStarted> {
        let Some(start) = Start::new(spec, roster, control)? else { return Ok(Finished::cancelled()) };
        let begun = match self.begin(&start) {
            // It may have died since the last run.
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

    /// Has the supervisor start the program. An error means that it got no order, and another one may be asked.
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

/// As [`run`](crate::run()), but under a supervisor of its own where there is how to start one: a supervisor runs one program
/// at a time, and these are run side by side.
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

/// Within how many supervisors that were started with this argument this process runs.
pub fn supervisors_above(argument: &str) -> usize {
    os::above_with(&[NAME.as_bytes(), argument.as_bytes()])
}

/// Whether a process above this one supervises programs for one that works within a directory.
pub fn is_below_supervisor(argument: &str, directory: &Path) -> bool {
    os::is_below_program(&[NAME.as_bytes(), argument.as_bytes()], directory)
}

/// What came of an order to start a program.
pub(crate) enum StartOutcome {
    Started(Pid),
    /// The system would not.
    Refused(io::Error),
    /// There was no answer: it may have been started.
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
            // It must not keep a directory from being removed.
            directory: c_string(OsStr::new("/").to_owned())?,
            arguments,
            environment: environment.collect::<io::Result<_>>()?,
        };
        let null = std::fs::File::options().write(true).open("/dev/null")?;
        let before = os::ticks();
        let process = Helper::start(&program, [theirs.as_fd(), null.as_fd(), null.as_fd()])?;
        Ok(Self { socket, process, before, listed: OnceLock::new() })
    }

    /// Puts it on the list of an owner, so that it is ended after the owner's death if it cannot end itself: its agent may
    /// have stopped it.
    pub fn list(&self, roster: &Roster) {
        self.listed.get_or_init(|| roster.note(self.process.pid(), self.before));
    }

    /// Has the supervisor start a program. An error means that it got no order. One that does not do what it is told is
    /// killed.
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

    /// The next report, if there is one soon. A supervisor that somebody stopped is woken meanwhile.
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

    /// The next report. An error if the supervisor is dead, is kept from working, takes too long, or if the run was
    /// called off while it took its time.
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
        // It ends its tree and itself when the socket closes.
        self.process.wake();
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
        self.process.dismiss(PATIENCE);
    }
}

/// The tree of a run under a supervisor that is borrowed, or its own.
pub(crate) struct Supervised<L: Borrow<Link>> {
    link: L,
    /// Unknown if there was no answer.
    pid: Option<Pid>,
    tag: String,
    /// How the leader ended, and whether others were left then.
    exited: Option<(Status, bool)>,
    /// What is waited for: a word of the supervisor, or the end of the leader, of which one that was stopped says nothing.
    news: Option<News>,
    /// When the leader had ended and nobody had told of it.
    unheard_since: Option<Instant>,
    /// The supervisor is dead, or good for nothing any more.
    lost: bool,
    ended: Option<(Status, usize)>,
}

impl<L: Borrow<Link>> Supervised<L> {
    /// Without a number if it is not known whether it was started.
    pub fn new(link: L, pid: Option<Pid>, tag: String) -> Self {
        let news = pid.and_then(|pid| News::of(link.borrow().socket.as_fd(), pid).ok());
        Self { link, pid, tag, exited: None, news, unheard_since: None, lost: pid.is_none(), ended: None }
    }

    /// How the leader ended, if it has.
    pub fn status(&self) -> Option<Status> {
        self.exited.map(|(status, _)| status)
    }

    /// Sends an order, to one that can hear it. Says whether it was sent.
    fn order(&self, kind: u8) -> bool {
        self.link.borrow().process.wake();
        !self.lost && wire::send_order(&self.link.borrow().socket, kind).is_ok()
    }

    /// Waits for a report that the predicate wants, and heeds the others.
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

    /// Ends what the supervisor did not.
    fn end_lost(&mut self) -> usize {
        self.lost = true;
        os::end_lost(&self.tag, self.pid, &self.link.borrow().process)
    }
}

impl<L: Borrow<Link>> Tree for Supervised<L> {
    fn descriptor(&self) -> BorrowedFd<'_> {
        // One that is gone already has been told of.
        self.news.as_ref().map_or_else(|| self.link.borrow().socket.as_fd(), News::as_fd)
    }

    fn is_gone(&mut self) -> bool {
        if !self.lost {
            match self.link.borrow().report_soon() {
                Some(report) => drop(self.heed(report)),
                // The leader is gone, and who should say so is stopped or traced.
                None => self.lost = self.unheard_since.get_or_insert_with(Instant::now).elapsed() > PATIENCE,
            }
        }
        self.lost || self.exited.is_some()
    }

    fn terminate(&mut self) {
        // One that is gone is noticed by the loop; what it left cannot be asked any more.
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
