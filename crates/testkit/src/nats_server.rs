//! A NATS server on a free port of this machine, with its streams in a temporary directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// How long a server may take to listen.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// The pause between two looks at a server that starts. Without it, the looks slow the server down.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// A running server. Dropping it ends the process.
pub struct NatsServer {
    process: Child,
    port: u16,
    arguments: Vec<String>,
    directory: TempDir,
}

impl NatsServer {
    /// Starts the server that `scripts/clients` installs; none if it is not installed.
    pub fn start() -> Option<Self> {
        Self::start_with("")
    }

    /// Starts a server with lines of a configuration file.
    pub fn start_with(configuration: &str) -> Option<Self> {
        Self::start_on(0, configuration, &["--jetstream".to_owned()])
    }

    /// Starts a server that has no JetStream.
    pub fn start_without_streams() -> Option<Self> {
        Self::start_on(0, "", &[])
    }

    /// Starts a server on a port, or on a free one.
    pub(crate) fn start_on(port: u16, configuration: &str, arguments: &[String]) -> Option<Self> {
        let program = find_program()?;
        let directory = tempfile::tempdir().expect("a temporary directory");
        fs::write(directory.path().join("server.conf"), configuration).expect("a temporary directory takes files");
        let arguments = arguments.to_vec();
        let process = start_process(&program, &directory, port, &arguments);
        let mut server = Self { process, port, arguments, directory };
        server.port = server.await_port("nats");
        Some(server)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the address of a project's log on this server.
    pub fn log_address(&self, project: &str) -> String {
        format!("nats://127.0.0.1:{}/{project}", self.port)
    }

    pub fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// Kills the process, and starts the server again on the same port with the same data.
    pub fn restart(&mut self) {
        self.stop();
        let program = find_program().expect("it was started before");
        self.process = start_process(&program, &self.directory, self.port, &self.arguments);
        self.await_port("nats");
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

    /// Waits until the server has written a port of its own, and listens there.
    pub(crate) fn await_port(&mut self, protocol: &str) -> u16 {
        let began = Instant::now();
        loop {
            let text = fs::read_to_string(self.port_file()).unwrap_or_default();
            let ports: Value = serde_json::from_str(&text).unwrap_or_default();
            let url = ports[protocol][0].as_str().unwrap_or_default();
            if let Some(port) = url.rsplit(':').next().and_then(|port| port.parse().ok()) {
                return port;
            }
            let ended = self.process.try_wait().expect("a child can be asked for its state");
            assert!(ended.is_none() && began.elapsed() < START_TIMEOUT, "nats-server does not start: {ended:?}");
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Returns the Python that has the official client of NATS; none if it is not installed.
pub fn find_python() -> Option<PathBuf> {
    find_program().map(|program| program.with_file_name("python"))
}

fn find_program() -> Option<PathBuf> {
    let usual = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/clients"));
    let place = std::env::var_os("WINDLASS_CLIENTS").map_or_else(usual, PathBuf::from);
    Some(place.join("python/bin/nats-server")).filter(|program| program.exists())
}

fn start_process(program: &Path, directory: &TempDir, port: u16, arguments: &[String]) -> Child {
    let place = directory.path();
    let port = if port == 0 { "-1".to_owned() } else { port.to_string() };
    let mut command = Command::new(program);
    command.args(["--addr", "127.0.0.1", "--port", &port]).args(arguments);
    command.arg("--config").arg(place.join("server.conf"));
    command.arg("--store_dir").arg(place.join("data")).arg("--ports_file_dir").arg(place);
    let log = fs::File::create(place.join("server.log")).expect("a temporary directory takes files");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    command.spawn().expect("nats-server can be started")
}
