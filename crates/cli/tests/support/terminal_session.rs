//! A command in a terminal emulator: the test reads the screen, types, and changes the size.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, Command};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use vt100::Parser;

use super::TestWorld;

/// A command in its own controlling terminal.
pub struct TerminalSession {
    master: File,
    child: Child,
    parser: Parser,
    /// Every byte that the command has written.
    pub raw_output: Vec<u8>,
    /// Whether the command has erased the whole screen, which some terminals save into their history.
    pub has_cleared_screen: bool,
}

impl TestWorld {
    /// Starts `windlass` in a terminal.
    pub fn start_in_terminal(
        &self,
        (rows, columns): (u16, u16),
        words: &[&str],
        variables: &[(&str, &str)],
    ) -> TerminalSession {
        let mut command = self.program("setsid");
        command.arg("-c").arg(super::WINDLASS).args(words);
        command.env("TERM", "xterm-256color").envs(variables.iter().copied());
        TerminalSession::start(&mut command, rows, columns)
    }

    /// Starts a shell script in a terminal.
    pub fn start_script_in_terminal(&self, (rows, columns): (u16, u16), script: &str) -> TerminalSession {
        let mut command = self.program("setsid");
        command.arg("-c").args(["sh", "-c", script]).env("TERM", "xterm-256color");
        TerminalSession::start(&mut command, rows, columns)
    }
}

impl TerminalSession {
    fn start(command: &mut Command, rows: u16, columns: u16) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        set_size(&master, rows, columns);
        let name = ptsname(&master, Vec::new()).unwrap();
        let path = Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
        let terminal = OpenOptions::new().read(true).write(true).open(path).unwrap();
        command.stdin(terminal.try_clone().unwrap()).stdout(terminal.try_clone().unwrap());
        let child = command.stderr(terminal).spawn().unwrap();
        // Only the child may hold the terminal, so that the read ends with the child.
        command
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null());
        Self {
            master: File::from(master),
            child,
            parser: Parser::new(nonzero(rows), nonzero(columns), 1000),
            raw_output: Vec::new(),
            has_cleared_screen: false,
        }
    }

    /// Returns the screen without trailing blanks and trailing blank lines.
    pub fn screen(&self) -> String {
        let (_, columns) = self.parser.screen().size();
        let rows: Vec<String> =
            self.parser.screen().rows(0, columns.into()).map(|row| row.trim_end().to_owned()).collect();
        rows.join("\n").trim_end().to_owned()
    }

    /// Returns whether the cursor is visible, and its row and column.
    pub fn cursor(&self) -> (bool, (u16, u16)) {
        (!self.parser.screen().hide_cursor(), self.parser.screen().cursor_position())
    }

    /// Returns whether the alternate screen is shown, which leaves what was before it.
    pub fn is_alternate_screen(&self) -> bool {
        self.parser.screen().alternate_screen()
    }

    /// Returns whether the terminal echoes, and passes on whole lines, as a shell expects it.
    pub fn has_line_mode(&self) -> bool {
        let modes = tcgetattr(&self.master).unwrap();
        modes.local_modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }

    /// Reads until the screen meets a condition.
    #[track_caller]
    pub fn await_screen(&mut self, condition: impl Fn(&str) -> bool) -> String {
        while !condition(&self.screen()) {
            assert!(self.read_output(), "the command has ended\n{}", self.screen());
        }
        self.screen()
    }

    fn read_output(&mut self) -> bool {
        let mut buffer = [0; 4096];
        match self.master.read(&mut buffer) {
            Ok(count @ 1..) => {
                self.process_output(&buffer[..count]);
                self.raw_output.extend_from_slice(&buffer[..count]);
                true
            }
            _ => false,
        }
    }

    fn process_output(&mut self, mut bytes: &[u8]) {
        const ERASE: &[u8] = b"\x1b[J";
        while let Some(position) = bytes.windows(ERASE.len()).position(|window| window == ERASE) {
            self.parser.process(&bytes[..position]);
            self.has_cleared_screen |= self.parser.screen().cursor_position() == (0, 0);
            self.parser.process(ERASE);
            bytes = &bytes[position + ERASE.len()..];
        }
        self.parser.process(bytes);
    }

    pub fn type_keys(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    pub fn resize(&mut self, rows: u16, columns: u16) {
        self.parser.screen_mut().set_size(nonzero(rows), nonzero(columns));
        set_size(&self.master, rows, columns);
    }

    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Waits until a signal has stopped the command.
    pub fn await_stop(&mut self) {
        let (_, status) = waitpid(Some(self.pid()), WaitOptions::UNTRACED).unwrap().unwrap();
        assert!(status.stopped(), "{status:?}");
    }

    pub fn resume(&self) {
        kill_process(self.pid(), Signal::CONT).unwrap();
    }

    /// Closes the terminal, and returns the exit code of the command.
    pub fn hang_up(self) -> i32 {
        let Self { master, mut child, .. } = self;
        drop(master);
        child.wait().unwrap().code().unwrap_or(-1)
    }

    /// Reads until the command ends, and returns its exit code.
    pub fn read_to_end(mut self) -> (Self, i32) {
        while self.read_output() {}
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        (self, code)
    }
}

fn nonzero(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).unwrap()
}

fn set_size(terminal: impl std::os::fd::AsFd, rows: u16, columns: u16) {
    tcsetwinsize(terminal, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
}
