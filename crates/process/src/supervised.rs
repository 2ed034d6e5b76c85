//! Running a program under a process of its own, so that nothing of it survives a `kill -9` of this one.
//!
//! The supervisor is started once and does runs one after another. Pipes, capture and deadlines are here, as for other
//! runs; there are only the processes (`supervisor`), reached through `wire`.
//!
//! Invariants:
//! - A supervisor has one run at a time, which `&mut` says.
//! - If it dies, the run is [`Exit::Lost`](crate::Exit), what carries the run's tag is ended from here, and the next run
//!   gets a new supervisor.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::Pid;

use crate::os::{self, Helper, Status};
use crate::program::{Program, c_string, variable};
use crate::run::Start;
use crate::watch::Tree;
use crate::wire::{self, Report};
use crate::{Control, Finished, NotStarted, Roster, Spec, Stream};

/// How long a supervisor may take to stop or end its tree. It bounds itself more tightly.
const PATIENCE: Duration = Duration::from_secs(10);

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

struct Link {
    socket: UnixStream,
    process: Helper,
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
        let began = Instant::now();
        let pid = match self.begin(&start) {
            // It may have died since the last run.
            Err(_) => self.begin(&start),
            begun => begun,
        };
        let pid = pid
            .map_err(|source| NotStarted::other(&self.launcher.program, source))?
            .map_err(|error| NotStarted::explain(start.program.path(), &spec.directory, error))?;
        let link = self.link.as_ref().expect("it has just answered");
        let mut tree = Supervised { socket: &link.socket, pid, tag: start.tag.clone(), exited: None, ended: None };
        let finished = start.follow(&mut tree, pid, began, observe);
        let is_lost = tree.is_lost();
        drop(tree);
        if is_lost {
            self.link = None;
        }
        Ok(finished)
    }

    /// Has the supervisor start the program. The outer error is the supervisor's, the inner one the program's.
    fn begin(&mut self, start: &Start<'_>) -> io::Result<io::Result<Pid>> {
        let link = match &self.link {
            Some(link) => link,
            None => self.link.insert(Link::new(&self.launcher)?),
        };
        let descriptors = start.descriptors()?;
        let answer =
            wire::send_start(&link.socket, &start.program, &descriptors).and_then(|()| Report::receive(&link.socket));
        let begun = match answer {
            Ok(Report::Started(pid)) => Ok(Ok(Pid::from_raw(pid).expect("a process has a number"))),
            Ok(Report::Failed(error)) => Ok(Err(io::Error::from_raw_os_error(error))),
            Ok(_) => Err(io::Error::new(io::ErrorKind::InvalidData, "cannot understand the supervisor")),
            Err(error) => Err(error),
        };
        if begun.is_err() {
            self.link = None;
        }
        begun
    }
}

impl Link {
    fn new(launcher: &Launcher) -> io::Result<Self> {
        let (socket, theirs) = UnixStream::pair()?;
        let mut arguments = vec![c_string(launcher.program.clone().into_os_string())?];
        for argument in &launcher.arguments {
            arguments.push(c_string(argument.clone())?);
        }
        let environment = launcher.environment.iter().map(|(name, value)| variable(name, value));
        let program = Program {
            path: arguments[0].clone(),
            // It must not keep a directory from being removed.
            directory: c_string(OsStr::new("/").to_owned())?,
            arguments,
            environment: environment.collect::<io::Result<_>>()?,
        };
        let null = std::fs::File::options().write(true).open("/dev/null")?;
        let process = Helper::start(&program, [theirs.as_fd(), null.as_fd(), null.as_fd()])?;
        Ok(Self { socket, process })
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // It ends its tree and itself when the socket closes.
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
        self.process.dismiss(PATIENCE);
    }
}

/// The tree of a run under the supervisor.
struct Supervised<'a> {
    socket: &'a UnixStream,
    pid: Pid,
    tag: String,
    /// How the leader ended, and whether others were left then.
    exited: Option<(Status, bool)>,
    ended: Option<(Status, usize)>,
}

impl Supervised<'_> {
    fn is_lost(&self) -> bool {
        matches!(self.exited, Some((Status::Lost, _)))
    }

    /// Waits for a report that the predicate wants, and heeds the others.
    fn await_report(&mut self, wanted: impl Fn(Report) -> bool) -> Option<Report> {
        let give_up = Instant::now() + PATIENCE;
        while !self.is_lost() {
            let mut descriptors = [PollFd::new(self.socket, PollFlags::IN)];
            let left = give_up.saturating_duration_since(Instant::now()).try_into().expect("a short time fits");
            match poll(&mut descriptors, Some(&left)) {
                Err(rustix::io::Errno::INTR) => continue,
                Ok(ready) if ready > 0 => {}
                _ => self.exited = Some((Status::Lost, true)),
            }
            let report = self.receive();
            if report.is_some_and(&wanted) {
                return report;
            }
        }
        None
    }

    fn receive(&mut self) -> Option<Report> {
        if self.is_lost() {
            return None;
        }
        match Report::receive(self.socket) {
            Ok(Report::Exited { status, others_left }) => {
                self.exited = Some((status, others_left));
                None
            }
            Ok(report) => Some(report),
            Err(_) => {
                self.exited = Some((Status::Lost, true));
                None
            }
        }
    }
}

impl Tree for Supervised<'_> {
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn is_gone(&mut self) -> bool {
        self.receive();
        self.exited.is_some()
    }

    fn terminate(&mut self) {
        // A supervisor that is gone is noticed by the loop.
        let _ = wire::send_terminate(self.socket);
    }

    fn stop(&mut self) {
        if wire::send_stop(self.socket).is_ok() {
            self.await_report(|report| report == Report::Stopped);
        }
    }

    fn resume(&mut self) {
        let _ = wire::send_resume(self.socket);
    }

    fn end(&mut self) -> (Status, usize) {
        if let Some(ended) = self.ended {
            return ended;
        }
        let mut others = 0;
        if self.exited.is_none_or(|(_, others_left)| others_left) && wire::send_end(self.socket).is_ok() {
            let report = self.await_report(|report| matches!(report, Report::Ended(_)));
            if let Some(Report::Ended(killed)) = report {
                others = usize::try_from(killed).unwrap_or(0);
            }
        }
        let (status, _) = *self.exited.get_or_insert((Status::Lost, true));
        if status == Status::Lost {
            others = os::end_lost(&self.tag, self.pid);
        }
        *self.ended.insert((status, others))
    }
}

impl Drop for Supervised<'_> {
    fn drop(&mut self) {
        self.end();
    }
}
