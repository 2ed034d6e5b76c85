//! A terminal for tests, to see the output of a person's terminal.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// Returns the output of a command on a terminal of this many columns, and its exit code.
pub fn watch(command: &mut Command, columns: u16) -> (String, i32) {
    answer(command, columns, "")
}

/// The same, with typed input.
pub fn answer(command: &mut Command, columns: u16, typed: &str) -> (String, i32) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    tcsetwinsize(&master, Winsize { ws_row: 50, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let path = Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
    let terminal = OpenOptions::new().read(true).write(true).open(path).unwrap();
    command.env("TERM", "xterm-256color").stdin(terminal.try_clone().unwrap());
    let mut child = command.stdout(terminal.try_clone().unwrap()).stderr(terminal).spawn().unwrap();
    // Our own ends of the terminal are closed with the command, so that reading ends with the child.
    command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let mut shown = Vec::new();
    let mut buffer = [0; 4096];
    let mut master = File::from(master);
    master.write_all(typed.as_bytes()).unwrap();
    while let Ok(count @ 1..) = master.read(&mut buffer) {
        shown.extend_from_slice(&buffer[..count]);
    }
    let code = child.wait().unwrap().code().unwrap_or(-1);
    (String::from_utf8(shown).unwrap().replace("\r\n", "\n"), code)
}

/// A terminal that a command can control, with a person at its keys.
pub struct Terminal {
    master: File,
    side: File,
    shown: String,
}

impl Terminal {
    pub fn open() -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        tcsetwinsize(&master, Winsize { ws_row: 50, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let path = Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
        // Without `NOCTTY` it would become the terminal of the tests.
        let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
        let side = File::from(rustix::fs::open(path, flags, rustix::fs::Mode::empty()).unwrap());
        Self { master: File::from(master), side, shown: String::new() }
    }

    /// Starts a program, for example `setsid -c …`, which makes this the controlling terminal of what it starts.
    pub fn start(&self, command: &mut Command) -> std::process::Child {
        let side = || self.side.try_clone().unwrap();
        command.env("TERM", "xterm-256color").stdin(side()).stdout(side()).stderr(side()).spawn().unwrap()
    }

    pub fn press(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    /// Reads until the output has a text, and returns the output since the last call.
    pub fn read_until(&mut self, text: &str) -> String {
        let mut buffer = [0; 4096];
        while !self.shown.contains(text) {
            let count = self.master.read(&mut buffer).unwrap_or(0);
            assert!(count > 0, "waited in vain for `{text}`:\n{}", self.shown);
            self.shown.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
        std::mem::take(&mut self.shown)
    }
}
