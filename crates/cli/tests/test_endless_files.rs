//! Files without an end: fifos, sockets, devices, links to themselves and sparse files in place of files that are read. Every
//! command ends, and names the obstacle.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, mkfifoat};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{TestWorld, WINDLASS};
use crate::test_untrusted::{COMMANDS, INPUT};

/// The limit for a command. It takes far less.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(20);
/// Kilobytes of memory, mapped files included.
const MEMORY_LIMIT: &str = "4194304";

#[derive(Clone, Copy)]
enum EndlessFile {
    Fifo,
    Socket,
    Zero,
    Circle,
    Sparse,
}

use EndlessFile::{Circle, Fifo, Socket, Sparse, Zero};

impl EndlessFile {
    fn create(self, world: &TestWorld, name: &str) {
        let path = world.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _ = fs::remove_file(&path);
        match self {
            Fifo => mkfifoat(CWD, &path, 0o600.into()).unwrap(),
            Socket => drop(UnixListener::bind(&path).unwrap()),
            Zero => symlink("/dev/zero", &path).unwrap(),
            Circle => symlink(path.file_name().unwrap(), &path).unwrap(),
            Sparse => fs::File::create(&path).unwrap().set_len(1 << 40).unwrap(),
        }
    }
}

/// A repository with an agent that is done at once.
fn create_repository() -> TestWorld {
    let world = TestWorld::empty();
    let agent = world.program_directory().join("agent");
    fs::write(&agent, "#!/bin/sh\ncat > /dev/null\necho '<promise>COMPLETE</promise>'\n").unwrap();
    fs::set_permissions(&agent, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    world.write("a.txt", "one\n");
    let script = "git init -q -b main . && git config user.name x && git config user.email x@example.org \
                  && git add a.txt && git commit -qm Begin";
    let ran = world.run_command(world.program("sh").args(["-ec", script]));
    assert_eq!(ran.code, 0, "{ran}");
    world.run_ok(&["init"]);
    world.run_ok(&["task", "add", "Something"]);
    world
}

/// Runs a command within bounds of time and memory. Returns its whole output.
#[track_caller]
fn run_bounded(world: &TestWorld, command: &str) -> String {
    let input = world.write("../input", INPUT);
    let output = world.path("../output");
    let printed = fs::File::create(&output).unwrap();
    let mut bounded = world.program("sh");
    bounded.args(["-c", &format!("ulimit -v {MEMORY_LIMIT}; exec \"$@\""), "sh", WINDLASS]).args(command.split(' '));
    bounded.stdin(fs::File::open(input).unwrap()).stdout(printed.try_clone().unwrap()).stderr(printed);
    let mut child = bounded.spawn().unwrap();
    let pid = Pid::from_child(&child);
    let (send, ended) = mpsc::channel();
    let waiting = thread::spawn(move || send.send(child.wait().unwrap()));
    let status = ended.recv_timeout(COMMAND_TIMEOUT);
    if status.is_err() {
        let _ = kill_process(pid, Signal::KILL);
    }
    waiting.join().unwrap().unwrap();
    let said = read_lossy(&output);
    let status = status.unwrap_or_else(|_| panic!("`{command}` does not end\n{said}"));
    assert!(status.code().is_some_and(|code| code != 101 && code != 134), "`{command}`: {status}\n{said}");
    said
}

fn read_lossy(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned()
}

#[track_caller]
fn check_all_commands(world: &TestWorld) {
    for command in COMMANDS {
        run_bounded(world, command);
    }
}

#[track_caller]
fn check_names_in_output(world: &TestWorld, command: &str, names: &[&str]) {
    let said = run_bounded(world, command);
    for name in names {
        assert!(said.contains(name), "`{command}` does not name {name}\n{said}");
    }
}

#[test]
fn init_names_a_fifo_in_the_place_of_a_build_file() {
    let world = TestWorld::empty();
    Fifo.create(&world, "package.json");
    check_names_in_output(&world, "init", &["`package.json` is a fifo", "remove it"]);
}

#[test]
fn fifos_keep_no_command_waiting() {
    let world = create_repository();
    for name in
        [".gitmodules", "package.json", "Makefile", ".gitignore", ".windlass/workflows/x.yaml", "deep/.gitignore"]
    {
        Fifo.create(&world, name);
    }
    let named =
        ["`.gitmodules` is a fifo", "`package.json` is a fifo", "`Makefile` is a fifo", "`.gitignore` is a fifo"];
    check_names_in_output(&world, "status", &named);
    check_names_in_output(&world, "doctor", &[&named[..], &["x.yaml: is a fifo"]].concat());
    check_names_in_output(&world, "run --trust --agent command:agent", &[".gitignore` is a fifo", "remove it"]);
    check_all_commands(&world);
}

#[test]
fn links_that_git_does_not_open_stop_no_run() {
    let world = create_repository();
    symlink("/dev/null", world.path(".gitignore")).unwrap();
    let agent = "#!/bin/sh\ntouch b\necho '<promise>COMPLETE</promise>'\n";
    fs::write(world.program_directory().join("agent"), agent).unwrap();
    world.run_ok(&["run", "--task", "T1", "--agent", "command:agent"]);
}

#[test]
fn fifos_in_the_directory_of_git_keep_no_command_waiting() {
    let names = ["info/exclude", "HEAD", "shallow", "objects/info/commit-graph", "refs/heads/main"];
    for name in names.map(|name| format!(".git/{name}")) {
        let world = create_repository();
        Fifo.create(&world, &name);
        let named = format!("{name}` is a fifo");
        for command in ["run --task T1 --agent command:agent", "status", "doctor"] {
            check_names_in_output(&world, command, &[&named]);
        }
    }
}

#[test]
fn git_waits_for_no_fifo_in_a_directory_below() {
    let world = create_repository();
    Fifo.create(&world, "deep/.gitignore");
    check_all_commands(&world);
}

/// Git blocks on the agent's fifo until the time of the session is up.
#[test]
fn git_that_waits_ends_with_the_time_of_the_session() {
    let world = create_repository();
    world.write(".windlass/config.yaml", "limits: {wall_time: 1s}\n");
    let agent = "#!/bin/sh\nmkdir deep; mkfifo deep/.gitignore; touch deep/a\necho '<promise>COMPLETE</promise>'\n";
    fs::write(world.program_directory().join("agent"), agent).unwrap();
    check_names_in_output(
        &world,
        "run --task T1 --agent command:agent --trust",
        &["deep/.gitignore` is a fifo, not a file"],
    );
}

/// A git that blocks on a fifo when its run is killed. A writer notices when the reader is gone.
#[test]
fn git_that_waits_ends_when_its_run_is_killed() {
    let world = create_repository();
    let (fifo, output) = (world.path("../fifo"), world.path("../output"));
    Fifo.create(&world, "../fifo");
    let git = world.path("../tools/git");
    let waiting = format!(
        "#!/bin/sh\ncase \"$*\" in *' add '*) exec cat '{}';; esac\nexec '{}' \"$@\"\n",
        fifo.display(),
        git.display()
    );
    for (name, script) in [("git", &*waiting), ("agent", "#!/bin/sh\ntouch b\necho '<promise>COMPLETE</promise>'\n")] {
        let program = world.program_directory().join(name);
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    let mut run = world.command(&["run", "--task", "T1", "--agent", "command:agent"]);
    let printed = fs::File::create(&output).unwrap();
    let mut run = run.stdout(printed.try_clone().unwrap()).stderr(printed).spawn().unwrap();
    let writer = fs::File::options().write(true).open(&fifo).unwrap();
    run.kill().unwrap();
    run.wait().unwrap();
    let timeout = Timespec { tv_sec: 20, tv_nsec: 0 };
    let mut waited = [PollFd::new(&writer, PollFlags::empty())];
    assert_eq!(poll(&mut waited, Some(&timeout)), Ok(1), "git is still there\n{}", read_lossy(&output));
    assert!(waited[0].revents().contains(PollFlags::ERR), "{:?}", waited[0].revents());
}

/// Git includes a fifo in its configuration. A writer notices when the reader is gone.
#[test]
fn git_that_waits_ends_when_its_command_is_interrupted() {
    for words in [&["doctor"][..], &["trust", "--show"]] {
        let world = create_repository();
        Fifo.create(&world, ".git/fifo");
        let config = world.read_file(".git/config");
        world.write(".git/config", format!("{config}[include]\n\tpath = fifo\n"));
        // Another file in its place makes the store a foreign one.
        for name in [".windlass/windlass.db", ".windlass/windlass.db-wal"] {
            let content = fs::read(world.path(name)).unwrap();
            fs::remove_file(world.path(name)).unwrap();
            world.write(name, content);
        }
        let (output, mut command) = (world.path("../output"), world.command(words));
        let printed = fs::File::create(&output).unwrap();
        let mut child = command.stdout(printed.try_clone().unwrap()).stderr(printed).spawn().unwrap();
        let writer = fs::File::options().write(true).open(world.path(".git/fifo")).unwrap();
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        let status = child.wait().unwrap();
        let code = status.code().or(status.signal().map(|signal| 128 + signal));
        assert_eq!(code, Some(130), "{words:?}\n{}", read_lossy(&output));
        let timeout = Timespec { tv_sec: 20, tv_nsec: 0 };
        let mut waited = [PollFd::new(&writer, PollFlags::empty())];
        assert_eq!(poll(&mut waited, Some(&timeout)), Ok(1), "git is still there\n{}", read_lossy(&output));
    }
}

#[test]
fn endless_project_files_are_reported_and_commands_terminate() {
    let world = create_repository();
    let places = [".gitmodules", "package.json", "Makefile", ".gitignore", ".windlass/workflows/x.yaml"];
    for (kind, name) in [Sparse, Circle, Zero, Socket, Sparse].into_iter().zip(places) {
        kind.create(&world, name);
    }
    check_names_in_output(
        &world,
        "doctor",
        &["`Makefile` is a device", "`.gitignore` is a socket", "x.yaml: is larger than 1 MiB"],
    );
    check_all_commands(&world);
}

#[test]
fn endless_config_and_referenced_files_are_reported_and_commands_terminate() {
    for kind in [Fifo, Socket, Zero, Circle, Sparse] {
        let world = create_repository();
        kind.create(&world, ".windlass/config.yaml");
        for command in
            ["status", "doctor", "config check", "trust --show", "run Something --agent command:agent", "init"]
        {
            run_bounded(&world, command);
        }
        check_names_in_output(&world, "config check", &["config.yaml"]);
        world.write("../valid.yaml", "prompt_file: prompt.md\n");
        fs::remove_file(world.path(".windlass/config.yaml")).unwrap();
        fs::rename(world.path("../valid.yaml"), world.path(".windlass/config.yaml")).unwrap();
        kind.create(&world, ".windlass/prompt.md");
        check_names_in_output(&world, "run Something --agent command:agent --trust", &["prompt.md"]);
        fs::remove_file(world.path(".windlass/prompt.md")).unwrap();
        world.write(".windlass/config.yaml", "protected: [gates/]\nhooks: {stop: [{command: 'true'}]}\n");
        kind.create(&world, "gates/check");
        let said = run_bounded(&world, "run Something --agent command:agent --trust");
        assert!(matches!(kind, Circle) || said.contains("`gates/check` "), "{said}");
    }
}
