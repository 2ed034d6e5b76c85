//! Protocol between this process and its supervisor, over a socket.
//!
//! ```text
//!   Start ──►            ◄── Started, or Failed
//!   Terminate, Resume ──►
//!   Stop ──►             ◄── Stopped
//!                        ◄── Exited       the leader is gone; are others left?
//!   End ──►              ◄── Ended        nothing is left
//! ```
//!
//! Invariants:
//! - An order is a kind, a length and a body; only `Start` has a body, and it brings three descriptors.
//! - A report is nine bytes: a kind and two numbers.
//! - A closed socket is the end of the other side, at any point.

use std::ffi::CString;
use std::io::{self, IoSlice, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};

use crate::os::ProcessStatus;
use crate::program::ResolvedProgram;

#[derive(Debug)]
pub(crate) enum SupervisorOrder {
    Start(ResolvedProgram, [OwnedFd; 3]),
    /// SIGTERM to the group, or to all remaining processes when the leader is gone.
    Terminate,
    Stop,
    Resume,
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SupervisorReport {
    Started(i32),
    /// Holds the error number.
    Failed(i32),
    Exited {
        status: ProcessStatus,
        others_left: bool,
    },
    Stopped,
    /// Holds the number of other processes that had to be killed.
    Ended(i32),
}

const START_ORDER: u8 = 1;
pub(crate) const TERMINATE_ORDER: u8 = 2;
pub(crate) const STOP_ORDER: u8 = 3;
pub(crate) const RESUME_ORDER: u8 = 4;
pub(crate) const END_ORDER: u8 = 5;

/// Limit for a body, longer than any argument list that a kernel takes.
const MAX_ORDER_BODY: usize = 64 * 1024 * 1024;

pub(crate) fn send_start_order(
    socket: &UnixStream,
    program: &ResolvedProgram,
    descriptors: &[BorrowedFd<'_>; 3],
) -> io::Result<()> {
    send(socket, START_ORDER, &encode_program(program), descriptors)
}

/// Sends an order that has no body.
pub(crate) fn send_bodyless_order(socket: &UnixStream, kind: u8) -> io::Result<()> {
    send(socket, kind, &[], &[])
}

fn send(socket: &UnixStream, kind: u8, body: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut message = vec![kind];
    message.extend(u32::try_from(body.len()).map_err(io::Error::other)?.to_ne_bytes());
    message.extend(body);
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    let mut rest = &message[..];
    while !rest.is_empty() {
        match sendmsg(socket, &[IoSlice::new(rest)], &mut ancillary, SendFlags::empty()) {
            Ok(sent) => {
                rest = &rest[sent..];
                ancillary.clear();
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Receives the next order. `None` if the other side is gone.
pub(crate) fn receive_order(mut socket: &UnixStream) -> io::Result<Option<SupervisorOrder>> {
    let mut header = [0; 5];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let length = recvmsg(socket, &mut [IoSliceMut::new(&mut header)], &mut ancillary, FLAGS)?.bytes;
    if length == 0 {
        return Ok(None);
    }
    let descriptors: Vec<OwnedFd> = ancillary
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        })
        .flatten()
        .collect();
    socket.read_exact(&mut header[length..])?;
    let [kind, length @ ..] = header;
    let length = u32::from_ne_bytes(length) as usize;
    if length > MAX_ORDER_BODY {
        return Err(malformed_order_error());
    }
    let mut body = vec![0; length];
    socket.read_exact(&mut body)?;
    Ok(Some(match kind {
        START_ORDER => SupervisorOrder::Start(
            decode_program(&body)?,
            ensure_close_on_exec(descriptors)?.try_into().map_err(|_| malformed_order_error())?,
        ),
        TERMINATE_ORDER => SupervisorOrder::Terminate,
        STOP_ORDER => SupervisorOrder::Stop,
        RESUME_ORDER => SupervisorOrder::Resume,
        END_ORDER => SupervisorOrder::End,
        _ => return Err(malformed_order_error()),
    }))
}

#[cfg(target_os = "linux")]
const FLAGS: RecvFlags = RecvFlags::CMSG_CLOEXEC;
#[cfg(not(target_os = "linux"))]
const FLAGS: RecvFlags = RecvFlags::empty();

/// Sets the flag on descriptors where it cannot be requested with the message.
fn ensure_close_on_exec(descriptors: Vec<OwnedFd>) -> io::Result<Vec<OwnedFd>> {
    if FLAGS.is_empty() {
        for descriptor in &descriptors {
            rustix::io::fcntl_setfd(descriptor, rustix::io::FdFlags::CLOEXEC)?;
        }
    }
    Ok(descriptors)
}

fn malformed_order_error() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "cannot read an order to the supervisor")
}

/// Encodes the number of arguments, then every string with its terminating zero.
fn encode_program(program: &ResolvedProgram) -> Vec<u8> {
    let mut body = (program.arguments.len() as u64).to_ne_bytes().to_vec();
    let strings = [&program.path, &program.directory].into_iter().chain(&program.arguments).chain(&program.environment);
    for string in strings {
        body.extend(string.as_bytes_with_nul());
    }
    body
}

fn decode_program(body: &[u8]) -> io::Result<ResolvedProgram> {
    let (count, strings) = body.split_first_chunk().ok_or_else(malformed_order_error)?;
    let count = u64::from_ne_bytes(*count);
    let mut strings = strings
        .split_inclusive(|byte| *byte == 0)
        .map(|string| CString::from_vec_with_nul(string.to_vec()).map_err(|_| malformed_order_error()));
    let mut next = || strings.next().unwrap_or_else(|| Err(malformed_order_error()));
    let (path, directory) = (next()?, next()?);
    let arguments = (0..count).map(|_| next()).collect::<io::Result<_>>()?;
    let environment = strings.collect::<io::Result<_>>()?;
    Ok(ResolvedProgram { path, directory, arguments, environment })
}

impl SupervisorReport {
    pub fn send_report(self, socket: &UnixStream) -> io::Result<()> {
        let (kind, first, second) = match self {
            Self::Started(pid) => (1, pid, 0),
            Self::Failed(error) => (2, error, 0),
            Self::Exited { status: ProcessStatus::Code(code), others_left } => (3, code, i32::from(others_left)),
            Self::Exited { status: ProcessStatus::Signal(signal), others_left } => (4, signal, i32::from(others_left)),
            Self::Exited { status: ProcessStatus::Lost, others_left } => (5, 0, i32::from(others_left)),
            Self::Stopped => (6, 0, 0),
            Self::Ended(killed) => (7, killed, 0),
        };
        let mut message = [0; 9];
        message[0] = kind;
        message[1..5].copy_from_slice(&i32::to_ne_bytes(first));
        message[5..].copy_from_slice(&i32::to_ne_bytes(second));
        rustix::net::send(socket, &message, SendFlags::empty())?;
        Ok(())
    }

    /// Receives the next report. Fails if the other side is gone.
    pub fn receive_report(mut socket: &UnixStream) -> io::Result<Self> {
        let mut message = [0; 9];
        socket.read_exact(&mut message)?;
        let [kind, a, b, c, d, second @ ..] = message;
        let (first, second) = (i32::from_ne_bytes([a, b, c, d]), i32::from_ne_bytes(second));
        let exited = |status| Self::Exited { status, others_left: second != 0 };
        Ok(match kind {
            1 => Self::Started(first),
            2 => Self::Failed(first),
            3 => exited(ProcessStatus::Code(first)),
            4 => exited(ProcessStatus::Signal(first)),
            5 => exited(ProcessStatus::Lost),
            6 => Self::Stopped,
            7 => Self::Ended(first),
            _ => return Err(io::Error::new(io::ErrorKind::InvalidData, "cannot read a report of the supervisor")),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn supervisor_orders_round_trip_unchanged_over_socket() {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let text = |text: &str| CString::new(text).expect("no zero");
        let program = ResolvedProgram {
            path: text("/bin/sh"),
            directory: text("/tmp"),
            arguments: vec![text("sh"), text(""), text("\u{1}x=y\n")],
            environment: vec![text("A="), text("B=c d")],
        };
        let file = std::fs::File::open("/dev/null").expect("a file");
        send_start_order(&ours, &program, &[file.as_fd(), file.as_fd(), file.as_fd()]).expect("sent");
        send_bodyless_order(&ours, TERMINATE_ORDER).expect("sent");
        drop(ours);
        let Some(SupervisorOrder::Start(arrived, _)) = receive_order(&theirs).expect("whole") else {
            panic!("another order")
        };
        assert_eq!(arrived, program);
        assert!(matches!(receive_order(&theirs), Ok(Some(SupervisorOrder::Terminate))));
        assert!(matches!(receive_order(&theirs), Ok(None)), "then nothing more");
    }

    #[test]
    fn supervisor_reports_round_trip_unchanged_over_socket() {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let exited = |status, others_left| SupervisorReport::Exited { status, others_left };
        for report in [
            SupervisorReport::Started(77),
            SupervisorReport::Failed(2),
            exited(ProcessStatus::Code(255), true),
            exited(ProcessStatus::Signal(9), false),
            exited(ProcessStatus::Lost, true),
            SupervisorReport::Stopped,
            SupervisorReport::Ended(50),
        ] {
            report.send_report(&ours).expect("sent");
            assert_eq!(SupervisorReport::receive_report(&theirs).expect("whole"), report);
        }
    }

    #[test]
    fn truncated_order_is_an_error() {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        rustix::io::write(&ours, &[START_ORDER, 200, 0, 0, 0, 1, 2, 3]).expect("sent");
        drop(ours);
        assert!(receive_order(&theirs).is_err());
    }
}
