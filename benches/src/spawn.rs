//! `posix_spawn` and `waitpid` and nothing else: the floor for starting a program.
#![expect(unsafe_code, reason = "the floor is the call into C itself")]

use std::ffi::CString;
use std::io;
use std::ptr;

use rustix::process::{Pid, WaitOptions, waitpid};

/// A program with prepared arguments, so that starting it is only the call.
pub struct PlainSpawn {
    strings: Vec<CString>,
    variable: CString,
}

impl PlainSpawn {
    /// Prepares `sh -c` with a script.
    pub fn shell(script: &str) -> Self {
        let text = |text: &str| CString::new(text).expect("no zero in it");
        Self { strings: ["/bin/sh", "-c", script].map(text).into(), variable: text("PATH=/usr/bin:/bin") }
    }

    /// Starts the program and waits for its end.
    pub fn run(&self) -> io::Result<()> {
        let list = |strings: &[CString]| -> Vec<_> {
            strings.iter().map(|string| string.as_ptr().cast_mut()).chain([ptr::null_mut()]).collect()
        };
        let (arguments, environment) = (list(&self.strings), list(std::slice::from_ref(&self.variable)));
        let mut pid = 0;
        // SAFETY: the strings outlive the call, both lists end in null, and the two null pointers ask for the defaults.
        let failed = unsafe {
            let (path, actions, attributes) = (self.strings[0].as_ptr(), ptr::null(), ptr::null());
            libc::posix_spawn(&mut pid, path, actions, attributes, arguments.as_ptr(), environment.as_ptr())
        };
        if failed != 0 {
            return Err(io::Error::from_raw_os_error(failed));
        }
        waitpid(Pid::from_raw(pid), WaitOptions::empty())?;
        Ok(())
    }
}
