//! `posix_spawn`, and the two other calls for which there is no safe wrapper.
//!
//! The only Windlass module with `unsafe` in it. `posix_spawn` and not `fork`: it is as fast in a large process as in a
//! small one, and reports why the program did not start.
//!
//! Invariants:
//! - The child leads a session and a group of its own, and has no controlling terminal.
//! - Its signal mask is empty and every signal has its default action.
//! - It has the three given descriptors and none of ours.
#![allow(unsafe_code, reason = "posix_spawn, close_range and sigaction are calls into C")]

use std::ffi::{CString, c_char, c_int};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;

use rustix::process::Pid;

use crate::program::ResolvedProgram;

#[cfg(target_vendor = "apple")]
const SETSID: libc::c_short = 0x0400;
#[cfg(not(target_vendor = "apple"))]
const SETSID: libc::c_short = libc::POSIX_SPAWN_SETSID as libc::c_short;

/// Starts a program. The errors are those of `chdir` and `execve`.
pub(crate) fn spawn_program(program: &ResolvedProgram, descriptors: [BorrowedFd<'_>; 3]) -> io::Result<Pid> {
    let actions = SpawnActions::new(program, descriptors)?;
    let attributes = SpawnAttributes::new()?;
    let arguments = null_terminated_pointers(&program.arguments);
    let environment = null_terminated_pointers(&program.environment);
    let mut pid = 0;
    // SAFETY: every pointer is to a live value of the type it is declared with, and the two lists end in null.
    check_return_code(unsafe {
        libc::posix_spawn(
            &mut pid,
            program.path.as_ptr(),
            &actions.raw,
            &attributes.raw,
            arguments.as_ptr(),
            environment.as_ptr(),
        )
    })?;
    Ok(Pid::from_raw(pid).expect("posix_spawn gives the number of a process"))
}

/// Marks inherited descriptors close-on-exec, so that children do not get them.
#[cfg(target_os = "linux")]
pub(crate) fn set_close_on_exec() {
    // SAFETY: this sets a flag and closes nothing. An old kernel that refuses leaves things as they are.
    unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
}

/// Returns whether the parent wants a signal ignored, as `nohup` does.
pub(crate) fn is_signal_ignored(signal: c_int) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: with a null second argument the call only writes the present action, for which there is room.
    let result = unsafe { libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) };
    // SAFETY: zeroes are a valid action, and the call has written over them if it succeeded.
    result == 0 && unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN
}

/// Returns the strings as a list for C. They must outlive it.
fn null_terminated_pointers(strings: &[CString]) -> Vec<*mut c_char> {
    strings.iter().map(|string| string.as_ptr().cast_mut()).chain([ptr::null_mut()]).collect()
}

fn check_return_code(result: c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(result)) }
}

/// The steps of the child between the spawn and the program.
struct SpawnActions {
    raw: libc::posix_spawn_file_actions_t,
    /// Copies that must stay open until the child has started.
    _held: Vec<OwnedFd>,
}

impl SpawnActions {
    fn new(program: &ResolvedProgram, descriptors: [BorrowedFd<'_>; 3]) -> io::Result<Self> {
        let mut raw = MaybeUninit::uninit();
        // SAFETY: the call initialises what it is given.
        check_return_code(unsafe { libc::posix_spawn_file_actions_init(raw.as_mut_ptr()) })?;
        // SAFETY: it succeeded.
        let mut actions = Self { raw: unsafe { raw.assume_init() }, _held: Vec::new() };
        // SAFETY: the directory is a C string, which the call copies.
        check_return_code(unsafe {
            libc::posix_spawn_file_actions_addchdir_np(&mut actions.raw, program.directory.as_ptr())
        })?;
        for (number, descriptor) in (0..).zip(descriptors) {
            let mut source = descriptor.as_raw_fd();
            if source < 3 {
                // A source among the three would be overwritten before it is copied.
                let copy = rustix::io::fcntl_dupfd_cloexec(descriptor.as_fd(), 3)?;
                source = copy.as_raw_fd();
                actions._held.push(copy);
            }
            // SAFETY: only numbers are noted.
            check_return_code(unsafe { libc::posix_spawn_file_actions_adddup2(&mut actions.raw, source, number) })?;
        }
        Ok(actions)
    }
}

impl Drop for SpawnActions {
    fn drop(&mut self) {
        // SAFETY: initialised in `new`, and destroyed once.
        unsafe { libc::posix_spawn_file_actions_destroy(&mut self.raw) };
    }
}

/// The attributes of the child: session, signal mask and signal actions.
struct SpawnAttributes {
    raw: libc::posix_spawnattr_t,
}

impl SpawnAttributes {
    fn new() -> io::Result<Self> {
        let mut raw = MaybeUninit::uninit();
        // SAFETY: the call initialises what it is given.
        check_return_code(unsafe { libc::posix_spawnattr_init(raw.as_mut_ptr()) })?;
        // SAFETY: it succeeded.
        let mut attributes = Self { raw: unsafe { raw.assume_init() } };
        let flags = SETSID | (libc::POSIX_SPAWN_SETSIGMASK | libc::POSIX_SPAWN_SETSIGDEF) as libc::c_short;
        let mut none = MaybeUninit::uninit();
        let mut all = MaybeUninit::uninit();
        // SAFETY: the two sets are initialised by the first two calls, which cannot fail, and then only read.
        unsafe {
            libc::sigemptyset(none.as_mut_ptr());
            libc::sigfillset(all.as_mut_ptr());
            check_return_code(libc::posix_spawnattr_setflags(&mut attributes.raw, flags))?;
            check_return_code(libc::posix_spawnattr_setsigmask(&mut attributes.raw, none.as_ptr()))?;
            check_return_code(libc::posix_spawnattr_setsigdefault(&mut attributes.raw, all.as_ptr()))?;
        }
        Ok(attributes)
    }
}

impl Drop for SpawnAttributes {
    fn drop(&mut self) {
        // SAFETY: initialised in `new`, and destroyed once.
        unsafe { libc::posix_spawnattr_destroy(&mut self.raw) };
    }
}
