//! Pseudo-terminals for tests: the output of a command on a terminal, and a controlling terminal with typed input.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// Runs a command on a terminal with this number of columns. Returns its output and its exit code.
pub fn run_in_terminal(command: &mut Command, columns: u16) -> (String, i32) {
    run_in_terminal_with_input(command, columns, "")
}

/// Runs a command on a terminal, with typed input. Returns its output and its exit code.
pub fn run_in_terminal_with_input(command: &mut Command, columns: u16, typed: &str) -> (String, i32) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    tcsetwinsize(&master, Winsize { ws_row: 50, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let path = Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
    let terminal = OpenOptions::new().read(true).write(true).open(path).unwrap();
    command.env("TERM", "xterm-256color").stdin(terminal.try_clone().unwrap());
    let mut child = command.stdout(terminal.try_clone().unwrap()).stderr(terminal).spawn().unwrap();
    // The command holds our copies of the terminal. Replacing them lets the read end with the child.
    command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let mut output = Vec::new();
    let mut buffer = [0; 4096];
    let mut master = File::from(master);
    master.write_all(typed.as_bytes()).unwrap();
    while let Ok(count @ 1..) = master.read(&mut buffer) {
        output.extend_from_slice(&buffer[..count]);
    }
    let code = child.wait().unwrap().code().unwrap_or(-1);
    (String::from_utf8(output).unwrap().replace("\r\n", "\n"), code)
}

/// A terminal that can be the controlling terminal of a command, with simulated input of a person.
pub struct ControllingTerminal {
    master: File,
    client_side: File,
    output: String,
}

impl ControllingTerminal {
    pub fn open() -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        tcsetwinsize(&master, Winsize { ws_row: 50, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let path = Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
        // Without `NOCTTY` it would become the controlling terminal of the test process.
        let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
        let client_side = File::from(rustix::fs::open(path, flags, rustix::fs::Mode::empty()).unwrap());
        Self { master: File::from(master), client_side, output: String::new() }
    }

    /// Starts a command on this terminal. `setsid -c …` makes it the controlling terminal of the command.
    pub fn start(&self, command: &mut Command) -> std::process::Child {
        let stream = || self.client_side.try_clone().unwrap();
        command.env("TERM", "xterm-256color").stdin(stream()).stdout(stream()).stderr(stream()).spawn().unwrap()
    }

    pub fn send_keys(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    /// Reads until the output has a text, and returns the output since the last call.
    pub fn read_until(&mut self, text: &str) -> String {
        let mut buffer = [0; 4096];
        while !self.output.contains(text) {
            let count = self.master.read(&mut buffer).unwrap_or(0);
            assert!(count > 0, "waited in vain for `{text}`:\n{}", self.output);
            self.output.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
        std::mem::take(&mut self.output)
    }
}
