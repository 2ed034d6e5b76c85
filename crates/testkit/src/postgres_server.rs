//! A PostgreSQL server on a socket in a temporary directory.
//!
//! PostgreSQL refuses to run as root. Tests of root run it as the user `postgres`, which its Debian package creates.

use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, geteuid, kill_process};
use tempfile::TempDir;

use crate::nats_server::POLL_INTERVAL;

/// How long a server may take to listen.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// The user that owns the database.
pub const DATABASE_USER: &str = "windlass";

/// A running server. Dropping it ends its processes.
pub struct PostgresServer {
    process: Child,
    port: u16,
    programs: PathBuf,
    directory: TempDir,
}

impl PostgresServer {
    /// Starts the newest installed server; none if there is none. It syncs nothing: tests end its process, not the machine.
    pub fn start() -> Option<Self> {
        Self::start_on(5432, "fsync = off", |_| {})
    }

    /// Starts a server with lines of a configuration file, after `prepare` has put files into the directory that relative paths
    /// begin at. The port is a part of the name of its socket.
    pub fn start_on(port: u16, configuration: &str, prepare: impl FnOnce(&Path)) -> Option<Self> {
        let programs = find_programs()?;
        let directory = tempfile::tempdir().expect("a temporary directory");
        let data = directory.path().join("data");
        fs::create_dir(&data).expect("a temporary directory takes directories");
        give_to_server(directory.path());
        give_to_server(&data);
        let mut initdb = command_of_server(&programs.join("initdb"));
        initdb.arg("--pgdata").arg(&data).args(["--username", DATABASE_USER, "--auth", "trust", "--no-sync"]);
        initdb.args(["--locale", "C", "--encoding", "UTF8", "--wal-segsize", "1"]);
        let output = initdb.output().expect("initdb can be started");
        assert!(output.status.success(), "initdb: {}", String::from_utf8_lossy(&output.stderr));
        let settings = format!(
            "listen_addresses = ''\nport = {port}\nunix_socket_directories = '{}'\n{configuration}\n",
            directory.path().display()
        );
        fs::write(data.join("postgresql.auto.conf"), settings).expect("a temporary directory takes files");
        prepare(&data);
        for entry in fs::read_dir(&data).expect("the directory is there") {
            give_to_server(&entry.expect("it has entries").path());
        }
        let mut server = Self { process: start_process(&programs, directory.path()), port, programs, directory };
        server.await_ready();
        Some(server)
    }

    /// Returns the address of a project's log on this server.
    pub fn log_address(&self, project: &str) -> String {
        let directory = self.socket_directory().replace('/', "%2F");
        format!("postgres://{DATABASE_USER}@{directory}:{}/postgres/{project}", self.port)
    }

    pub fn socket_directory(&self) -> String {
        self.directory.path().display().to_string()
    }

    /// Ends the server as a crash does: it forgets what is not in its write-ahead log.
    pub fn stop(&mut self) {
        let id = i32::try_from(self.process.id()).ok().and_then(Pid::from_raw);
        let _ = kill_process(id.expect("a process has an id"), Signal::QUIT);
        let _ = self.process.wait();
    }

    /// Ends the server as a crash does, and starts it again with the same data.
    pub fn restart(&mut self) {
        self.stop();
        self.process = start_process(&self.programs, self.directory.path());
        self.await_ready();
    }

    /// Waits until the server has written that it is ready.
    fn await_ready(&mut self) {
        let began = Instant::now();
        let file = self.directory.path().join("data/postmaster.pid");
        let id = self.process.id().to_string();
        loop {
            let text = fs::read_to_string(&file).unwrap_or_default();
            let mut lines = text.lines();
            if lines.next() == Some(&id) && lines.any(|line| line.trim() == "ready") {
                return;
            }
            let ended = self.process.try_wait().expect("a child can be asked for its state");
            let log = || fs::read_to_string(self.directory.path().join("server.log")).unwrap_or_default();
            assert!(ended.is_none() && began.elapsed() < START_TIMEOUT, "PostgreSQL does not start: {}", log());
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Returns the directory of the programs of the newest version.
fn find_programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
    let version = |path: &PathBuf| path.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok());
    let newest = versions.map(|entry| entry.path()).max_by_key(version)?;
    Some(newest.join("bin")).filter(|programs| programs.join("initdb").exists())
}

/// Prepares a program that runs as a user whom PostgreSQL accepts.
fn command_of_server(program: &Path) -> Command {
    if !geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]).arg(program);
    command
}

fn give_to_server(path: &Path) {
    if geteuid().is_root() {
        let users = fs::read_to_string("/etc/passwd").expect("the system has users");
        let line = users.lines().find(|line| line.starts_with("postgres:")).expect("the package has a user");
        let mut fields = line.split(':').skip(2).map(|field| field.parse().ok());
        let (user, group) = (fields.next().flatten(), fields.next().flatten());
        chown(path, user, group).expect("root can give a file away");
    }
}

fn start_process(programs: &Path, directory: &Path) -> Child {
    let log = fs::File::create(directory.join("server.log")).expect("a temporary directory takes files");
    let mut command = command_of_server(&programs.join("postgres"));
    command.arg("-D").arg(directory.join("data"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    command.spawn().expect("PostgreSQL can be started")
}
