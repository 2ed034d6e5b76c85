//! Programs in a sandbox: the ways out that are tried (`sandbox/escapes.py`), ordinary work, and limits. Each with each back end.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::json;

use crate::support::WINDLASS;

const BACKENDS: [&str; 2] = ["bubblewrap", "landlock"];
const SECRET: &str = "secret-of-the-person";
/// The interpreter itself: a wrapper of a version manager needs files of the real home directory.
const PYTHON: &str = "/usr/bin/python3";

/// A home directory with secrets, a project with a linked worktree, files of others, servers, and a process to attack. It lies
/// outside of `/tmp`, which a sandbox replaces.
struct HostWorld {
    root: tempfile::TempDir,
    others: tempfile::TempDir,
    shared_memory: tempfile::NamedTempFile,
    memory_key: u32,
    victim: Child,
    inbound_port: u16,
    is_over: Arc<AtomicBool>,
    ports: BTreeMap<&'static str, u16>,
    abstract_name: String,
}

impl HostWorld {
    fn new() -> Self {
        let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let path = root.path().canonicalize().unwrap();
        let secret_files = [
            "home/.ssh/id_ed25519",
            "home/.aws/credentials",
            "home/.netrc",
            "home/.npmrc",
            "home/.git-credentials",
            "home/.bash_history",
            "home/.claude/.credentials.json",
            "home/.config/gh/hosts.yml",
            "state/secret",
            "project/conf/secret",
        ];
        let plain_files = [
            "home/.bashrc",
            "home/.local/bin/tool",
            "home/.config/systemd/user/old.service",
            "state/trusted",
            "outside/file",
            "outside/removable",
            "outside/movable",
            "project/src/readme",
            "project/conf/plain",
        ];
        for (files, text) in [(&secret_files[..], SECRET), (&plain_files, "plain")] {
            for file in files {
                fs::create_dir_all(path.join(file).parent().unwrap()).unwrap();
                fs::write(path.join(file), text).unwrap();
            }
        }
        std::os::unix::fs::symlink("../../outside/file", path.join("project/src/link-outside")).unwrap();
        let others = tempfile::tempdir().unwrap();
        fs::write(others.path().join("file"), SECRET).unwrap();
        let mut shared_memory = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
        shared_memory.write_all(SECRET.as_bytes()).unwrap();
        let victim = Command::new("sleep")
            .arg("1000")
            .env("SECRET", SECRET)
            .current_dir(path.join("home"))
            .process_group(0)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let memory_key = 0x5711_0000 | (std::process::id() & 0xffff);
        let inbound_port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let abstract_name = format!("windlass-test-{}", std::process::id());
        let mut world = Self {
            root,
            others,
            shared_memory,
            memory_key,
            victim,
            inbound_port,
            is_over: Arc::default(),
            ports: BTreeMap::new(),
            abstract_name,
        };
        world.change_shared_memory("create");
        world.start_servers();
        world.create_project();
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(name)
    }

    fn create_project(&self) {
        let script = "git init -q -b main . && git add src && git commit -qm one && \
            git worktree add -q ../project-other && \"$WINDLASS\" init --json";
        let output = self.program("sh").args(["-c", script]).env("WINDLASS", WINDLASS).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let output = self.program(WINDLASS).args(["task", "add", "One"]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    /// Returns a command with the environment of the person.
    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(name);
        let path = std::env::var("PATH").unwrap_or_default();
        let agents: Vec<&str> = path.split(':').filter(|directory| !directory.contains("shims")).collect();
        command
            .env_clear()
            .env("PATH", agents.join(":"))
            .env("HOME", self.path("home"))
            .env("WINDLASS_STATE_DIR", self.path("state"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .current_dir(self.path("project"))
            .stdin(Stdio::null());
        for role in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{role}_NAME"), "Ann").env(format!("GIT_{role}_EMAIL"), "ann@example.com");
        }
        command
    }

    /// Returns a command in a sandbox.
    fn sandboxed(&self, backend: &str, options: &[&str], program: &[&str]) -> Command {
        let mut command = self.program(WINDLASS);
        command.args(["sandbox", "run", "--backend", backend]).args(options).arg("--").args(program);
        command
    }

    /// Creates or removes a segment of memory that a process finds by its key.
    fn change_shared_memory(&self, action: &str) {
        let script = "import ctypes, sys
libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_void_p
segment = libc.shmget(int(sys.argv[2]), 4096, 0o1600)
if sys.argv[1] == 'create':
    ctypes.memmove(libc.shmat(segment, None, 0), sys.argv[3].encode(), len(sys.argv[3]))
else:
    libc.shmctl(segment, 0, None)";
        let words = ["-c", script, action, &self.memory_key.to_string(), SECRET];
        assert!(Command::new(PYTHON).args(words).status().unwrap().success());
    }

    /// Starts servers that send back what they get, and a client that connects to whatever listens on `inbound_port`.
    fn start_servers(&mut self) {
        for (name, address) in [("tcp_port", "127.0.0.1:0"), ("tcp6_port", "[::1]:0")] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            self.ports.insert(name, listener.local_addr().unwrap().port());
            thread::spawn(move || listener.incoming().flatten().for_each(answer_client));
        }
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        self.ports.insert("udp_port", server.local_addr().unwrap().port());
        thread::spawn(move || {
            let mut buffer = [0; 64];
            while let Ok((size, client)) = server.recv_from(&mut buffer) {
                let _ = server.send_to(&buffer[..size], client);
            }
        });
        let name = SocketAddr::from_abstract_name(&self.abstract_name).unwrap();
        let sockets = ["outside/docker.sock", "home/bus"].map(|socket| UnixListener::bind(self.path(socket)).unwrap());
        for listener in sockets.into_iter().chain([UnixListener::bind_addr(&name).unwrap()]) {
            thread::spawn(move || listener.incoming().flatten().for_each(answer_client));
        }
        let (is_over, port) = (Arc::clone(&self.is_over), self.inbound_port);
        thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                let _ = TcpStream::connect(("127.0.0.1", port));
                thread::sleep(Duration::from_millis(50));
            }
        });
    }

    /// Runs `escapes.py` with a descriptor of a secret and one of a file outside, and returns what came of each attempt.
    fn try_escapes(&self, backend: &str, mode: &str) -> BTreeMap<String, String> {
        let setting = self.path("setting.json");
        let mut values = json!({
            "backend": backend,
            "outside": self.path("outside"),
            "home": self.path("home"),
            "project": self.path("project"),
            "state": self.path("state"),
            "temporary": self.others.path().join("file"),
            "shared_memory": self.shared_memory.path(),
            "memory_key": self.memory_key,
            "victim": self.victim.id(),
            "victim_group": self.victim.id(),
            "inbound_port": self.inbound_port,
            "abstract": self.abstract_name,
            "windlass": WINDLASS,
            "tcp6_port": 1,
        });
        for (name, port) in &self.ports {
            values[*name] = json!(port);
        }
        fs::write(&setting, values.to_string()).unwrap();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sandbox/escapes.py");
        let start = match mode {
            "control" => format!("{PYTHON} {script} {} --control", setting.display()),
            _ => format!(
                "{WINDLASS} sandbox run --backend {backend} --hide conf/secret -- {PYTHON} {script} {}",
                setting.display()
            ),
        };
        let script = format!("exec 9<$HOME/.netrc 8>>../outside/file; exec {start}");
        let output = self.program("sh").args(["-c", &script]).output().unwrap();
        assert!(output.status.success(), "{backend}: {}", describe(&output));
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().filter_map(|line| line.split_once(' ')).map(|(name, word)| (name.into(), word.into())).collect()
    }

    /// Returns the files outside of the writable directory, with their contents.
    fn outside_files(&self) -> BTreeMap<PathBuf, String> {
        let mut files = BTreeMap::new();
        let mut directories: Vec<PathBuf> =
            ["home", "outside", "state", "project/.git", "project/.windlass", "project/conf", "project-other"]
                .map(|name| self.path(name))
                .into();
        directories.push(self.others.path().to_owned());
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(&directory).unwrap() {
                let path = entry.unwrap().path();
                let kind = path.symlink_metadata().unwrap().file_type();
                if kind.is_dir() {
                    directories.push(path);
                } else {
                    let text = if kind.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
                    files.insert(path, String::from_utf8_lossy(&text).into_owned());
                }
            }
        }
        files
    }
}

impl Drop for HostWorld {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.victim.kill();
        let _ = self.victim.wait();
        self.change_shared_memory("remove");
    }
}

fn answer_client(mut client: impl Read + Write) {
    let mut buffer = [0; 64];
    if let Ok(size) = client.read(&mut buffer) {
        let _ = client.write_all(&buffer[..size]);
    }
}

fn describe(output: &Output) -> String {
    format!("{}\n{}{}", output.status, String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end().to_owned()
}

#[test]
fn escapes_are_refused_by_each_backend_and_work_goes_on() {
    for backend in BACKENDS {
        let mut world = HostWorld::new();
        let before = world.outside_files();
        let results = world.try_escapes(backend, "sandbox");
        let wrong: Vec<_> = results.iter().filter(|(_, word)| !word.starts_with("refused")).collect();
        assert!(wrong.is_empty(), "{backend}: {wrong:#?}");
        assert!(results.len() >= 100, "{backend}: only {} attempts", results.len());
        for name in results.keys() {
            assert!(world.path(&format!("project/src/work-{name}")).is_file(), "{backend}: {name} did not work");
        }
        assert_eq!(world.outside_files(), before, "{backend}: files outside");
        assert!(world.victim.try_wait().unwrap().is_none(), "{backend}: the process outside was ended");
    }
}

/// The attempts are real: without a sandbox they succeed.
#[test]
fn escapes_succeed_without_sandbox() {
    let world = HostWorld::new();
    let results = world.try_escapes("bubblewrap", "control");
    let refused: Vec<_> = results.iter().filter(|(_, word)| *word != "escaped").collect();
    // Some need root, or a part of the kernel.
    let is_root = rustix::process::getuid().is_root();
    assert!(!is_root || refused.is_empty(), "{refused:#?}");
    let broken: Vec<_> = results.iter().filter(|(_, word)| word.starts_with("broken")).collect();
    assert!(broken.is_empty(), "{broken:#?}");
}
