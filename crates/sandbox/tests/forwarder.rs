//! The forwarder as a process of its own: this program is started again, as the launcher of a sandbox is.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "this is a test without the usual harness")]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use windlass_sandbox::{FORWARD_COMMAND, ForwarderSetup, run_forward_command, start_forwarder};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [FORWARD_COMMAND, setup] => run_forward_command(setup).expect("a forwarder"),
        // A test runner asks for the names first, and for those that are ignored.
        _ if arguments.iter().any(|argument| argument == "--list") => {
            if !arguments.iter().any(|argument| argument == "--ignored") {
                println!("forwarder_process_listens_when_start_returns: test");
            }
        }
        _ => forwarder_process_listens_when_start_returns(),
    }
}

fn forwarder_process_listens_when_start_returns() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("proxy");
    let proxy = UnixListener::bind(&socket).unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let setup = ForwarderSetup { socket, port };
    start_forwarder(&setup).unwrap();
    let process = ForwarderProcess::find(&serde_json::to_string(&setup).unwrap());
    thread::spawn(move || {
        let (mut stream, _) = proxy.accept().unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        stream.write_all(text.to_uppercase().as_bytes()).unwrap();
    });
    let mut client = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    client.write_all(b"some text").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut text = String::new();
    client.read_to_string(&mut text).unwrap();
    assert_eq!(text, "SOME TEXT");
    let taken = start_forwarder(&setup).unwrap_err().to_string();
    assert!(taken.starts_with("`sandbox-forward` does not start"), "{taken}");
    for stream in 0..3 {
        let target = std::fs::read_link(process.directory.join("fd").join(stream.to_string())).unwrap();
        assert_eq!(target, Path::new("/dev/null"), "stream {stream}");
    }
}

/// A forwarder in the background. It ends with the test.
struct ForwarderProcess {
    directory: PathBuf,
}

impl ForwarderProcess {
    /// Finds the process with this setup.
    fn find(setup: &str) -> Self {
        let is_forwarder = |directory: &PathBuf| {
            #[expect(clippy::disallowed_methods, reason = "a process is looked for")]
            let command = std::fs::read(directory.join("cmdline")).unwrap_or_default();
            command.split(|byte| *byte == 0).nth(2) == Some(setup.as_bytes())
        };
        let mut processes = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        Self { directory: processes.find(is_forwarder).expect("the forwarder runs") }
    }
}

impl Drop for ForwarderProcess {
    fn drop(&mut self) {
        let id = self.directory.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse().ok());
        if let Some(process) = id.and_then(Pid::from_raw) {
            _ = kill_process(process, Signal::KILL);
        }
    }
}
