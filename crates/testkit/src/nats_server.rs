//! A NATS server on a free port of this machine, with its stream in a temporary directory.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// How long a server may take to listen.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// A running server. Dropping it ends the process.
pub struct NatsServer {
    process: Child,
    port: u16,
    directory: TempDir,
}

impl NatsServer {
    /// Starts the server that `scripts/clients` installs; none if it is not installed.
    pub fn start() -> Option<Self> {
        let program = find_program()?;
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut server = Self { process: start_process(&program, &directory, -1), port: 0, directory };
        server.port = server.await_port();
        Some(server)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the address of a project's log on this server.
    pub fn log_address(&self, project: &str) -> String {
        format!("nats://127.0.0.1:{}/{project}", self.port)
    }

    /// Kills the process, and starts the server again on the same port with the same data.
    pub fn restart(&mut self) {
        self.stop();
        let program = find_program().expect("it was started before");
        self.process = start_process(&program, &self.directory, i32::from(self.port));
        self.await_port();
    }

    /// Kills the process.
    pub fn stop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_file(self.port_file());
    }

    fn port_file(&self) -> PathBuf {
        self.directory.path().join(format!("nats-server_{}.ports", self.process.id()))
    }

    /// Waits until the server has written its port, and listens there.
    fn await_port(&mut self) -> u16 {
        let began = Instant::now();
        loop {
            let text = fs::read_to_string(self.port_file()).unwrap_or_default();
            let ports: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
            let url = ports["nats"][0].as_str().unwrap_or_default();
            if let Some(port) = url.rsplit(':').next().and_then(|port| port.parse().ok()) {
                return port;
            }
            let ended = self.process.try_wait().expect("a child can be asked for its state");
            assert!(ended.is_none() && began.elapsed() < START_TIMEOUT, "nats-server does not start: {ended:?}");
            std::thread::yield_now();
        }
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.stop();
    }
}

fn find_program() -> Option<PathBuf> {
    let usual = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/clients"));
    let place = std::env::var_os("WINDLASS_CLIENTS").map_or_else(usual, PathBuf::from);
    Some(place.join("python/bin/nats-server")).filter(|program| program.exists())
}

fn start_process(program: &PathBuf, directory: &TempDir, port: i32) -> Child {
    let place = directory.path();
    let mut command = Command::new(program);
    command.args(["--addr", "127.0.0.1", "--port", &port.to_string(), "--jetstream"]);
    command.arg("--store_dir").arg(place.join("data")).arg("--ports_file_dir").arg(place);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("nats-server can be started")
}
