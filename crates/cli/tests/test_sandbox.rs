//! Programs in a sandbox: the ways out that are tried (`sandbox/escapes.py`), ordinary work, and limits. Each with each back end.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
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
        let abstract_name = format!("windlass-test-{}", path.file_name().unwrap().display());
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

/// Ordinary programs work in a linked worktree, in which agents work.
#[test]
fn ordinary_programs_work_in_each_backend() {
    for backend in BACKENDS {
        let world = HostWorld::new();
        let cargo = std::env::var("CARGO").unwrap();
        let script = format!(
            "set -e
            echo work > file && git add file && git commit -qm two && git log --oneline | wc -l
            git checkout -q -b topic && git branch --list topic | wc -l && git status --short | wc -l
            mkdir -p fresh && cd fresh && git init -q -b main . && echo x > a && git add a && git commit -qm first
            git rev-parse --verify -q HEAD | wc -l
            cd .. && {cargo} --version | cut -d' ' -f1
            {PYTHON} -c 'import json, tempfile, subprocess; print(json.dumps([len(tempfile.mkdtemp()) > 0]))'
            {PYTHON} -c 'import subprocess; print(subprocess.check_output([\"echo\", \"child\"], text=True).strip())'
            node -e 'setTimeout(() => console.log(require(\"fs\").readFileSync(\"file\", \"utf8\").trim()), 5)'
            printf 'int main(void) {{ return 7; }}' > main.c && cc -o main main.c && {{ ./main || echo $?; }}
            seq 5 | sort -r | head -1; cat < /dev/null; echo x > /dev/null; echo $((1 + 1)) | tee \"$TMPDIR/sum\"
            exit 5"
        );
        let mut command = world.sandboxed(backend, &[], &["bash", "-c", &script.replace("\\\"", "\"")]);
        let output = command.current_dir(world.path("project-other")).output().unwrap();
        assert_eq!(output.status.code(), Some(5), "{backend}: {}", describe(&output));
        let lines = text(&output.stdout).replace('\n', " ");
        assert_eq!(lines, "2 1 0 1 cargo [true] child work 7 5 2", "{backend}: {}", describe(&output));
    }
}

#[test]
fn limits_hold_for_each_backend() {
    for backend in BACKENDS {
        let world = HostWorld::new();
        let run = |options: &[&str], script: &str| {
            let output = world.sandboxed(backend, options, &[PYTHON, "-c", script]).output().unwrap();
            (output.status.code(), text(&output.stdout), text(&output.stderr))
        };
        let memory = "
import sys
sys.stdout.write(str(len(bytearray(1 << 20))) + ' ')
sys.stdout.flush()
bytearray(1 << 29)";
        let (code, out, error) = run(&["--memory", "256M"], memory);
        assert_eq!((code, &*out), (Some(1), "1048576"), "{backend}: {error}");
        assert!(error.contains("MemoryError"), "{backend}: {error}");

        let files = "
import os
try:
    while True:
        last = os.open('/dev/null', os.O_RDONLY)
except OSError as error:
    print(last, error.errno)";
        assert_eq!(run(&["--open-files", "40"], files).1, "39 24", "{backend}");

        let endless = "print('started', flush=True)\nwhile True: pass";
        let (code, out, _) = run(&["--cpu", "1"], endless);
        assert_eq!(out, "started");
        assert_ne!(code, Some(0), "{backend}");

        let processes = "
import os, time
try:
    for number in range(40):
        if os.fork() == 0:
            time.sleep(1)
            os._exit(0)
    print('endless')
except BlockingIOError:
    print('limited')";
        let (code, out, error) = run(&["--processes", "20"], processes);
        if rustix::process::getuid().is_root() || backend == "landlock" {
            assert_eq!(code, Some(1));
            assert!(error.contains("cannot limit the number of processes"), "{backend}: {error}");
        } else {
            assert_eq!(out, "limited", "{backend}: {error}");
        }
    }
}

/// With the whole network, the servers of the machine can be reached, and its Unix sockets still cannot.
#[test]
fn whole_network_has_no_unix_sockets_of_others() {
    for backend in BACKENDS {
        let world = HostWorld::new();
        let script = "
import socket, sys
def echo(family, address):
    try:
        with socket.socket(family) as client:
            client.settimeout(2)
            client.connect(address)
            client.send(b'x')
            return client.recv(1) == b'x'
    except OSError:
        return False
print(echo(socket.AF_INET, ('127.0.0.1', int(sys.argv[1]))),
    echo(socket.AF_UNIX, '\\0' + sys.argv[2]), *[echo(socket.AF_UNIX, path) for path in sys.argv[3:]])";
        let sockets = ["home/bus", "outside/docker.sock"].map(|name| world.path(name).display().to_string());
        let port = world.ports["tcp_port"].to_string();
        let program = [PYTHON, "-c", script, &port, &world.abstract_name, &sockets[0], &sockets[1]];
        let output = world.sandboxed(backend, &["--network", "all"], &program).output().unwrap();
        assert_eq!(text(&output.stdout), "True False False False", "{backend}: {}", describe(&output));
    }
}

#[test]
fn listed_hosts_are_reached_through_the_proxy_alone() {
    let world = HostWorld::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        _ = client.read(&mut [0; 4096]).unwrap();
        client.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nserved").unwrap();
    });
    let own_server = "
import http.server, threading, urllib.request
server = http.server.HTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(urllib.request.urlopen('http://127.0.0.1:%d/' % server.server_port).status)";
    let script = format!(
        "curl -sS --noproxy '*' -m 5 http://127.0.0.1:{port}/; curl -sS --noproxy '' http://127.0.0.1:{port}/; echo
         curl -sS http://evil.test/; {PYTHON} -c \"$1\" 2>/dev/null"
    );
    let hosts = format!("127.0.0.1:{port},example.com");
    let output = world
        .sandboxed("bubblewrap", &["--network", &hosts], &["sh", "-c", &script, "sh", own_server])
        .output()
        .unwrap();
    server.join().unwrap();
    let (printed, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(printed.starts_with("served\nThe sandbox denies the connection to evil.test:80"), "{}", describe(&output));
    assert!(printed.ends_with("\n200"), "a server of its own is reached: {}", describe(&output));
    assert!(errors.contains("warning: the sandbox denies evil.test:80: the host is not allowed"), "{errors}");
}

#[test]
fn program_that_is_left_behind_ends_with_the_sandbox() {
    let world = HostWorld::new();
    // The program that is left behind holds the standard output.
    let output = world.sandboxed("bubblewrap", &[], &["sh", "-c", "sleep 600 & echo started"]).output().unwrap();
    assert_eq!(text(&output.stdout), "started", "{}", describe(&output));
}

#[test]
fn sandbox_that_cannot_be_made_is_an_error() {
    let world = HostWorld::new();
    let failure = |options: &[&str], program: &str| {
        let output = world.sandboxed("landlock", options, &[program]).output().unwrap();
        (output.status.code(), text(&output.stderr))
    };
    let (code, error) = failure(&["--network", "example.com"], "true");
    assert_eq!((code, error.contains("install bubblewrap")), (Some(1), true), "{error}");
    let (code, error) = failure(&["--write", "/"], "true");
    assert_eq!((code, error.contains("whole system")), (Some(1), true), "{error}");
    let (code, error) = failure(&["--write", "missing"], "true");
    assert_eq!((code, error.contains("create it first")), (Some(1), true), "{error}");
    let mut command = world.sandboxed("landlock", &[], &["true"]);
    let output = command.current_dir(world.path("home")).output().unwrap();
    assert!(text(&output.stderr).contains("it holds the home directory"), "{}", describe(&output));
    let (code, error) = failure(&[], "no-such-program");
    assert_eq!((code, error.contains("cannot start `no-such-program`")), (Some(126), true), "{error}");
    let output = world.program(WINDLASS).args(["sandbox-launch", "{}", "true"]).output().unwrap();
    assert_eq!(output.status.code(), Some(126));
    assert!(text(&output.stderr).contains("cannot read the setup"), "{}", describe(&output));

    let mut command = world.sandboxed("bubblewrap", &[], &["true"]);
    let output = command.env("PATH", "/nonexistent").output().unwrap();
    assert!(text(&output.stderr).contains("install the package `bubblewrap`"), "{}", describe(&output));
}
