//! `windlass fleet`: one project on several machines, each a clone with a state directory of its own

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use windlass_fleet::{FleetAccess, connect_service};
use windlass_testkit::nats_cluster::NatsCluster;
use windlass_testkit::nats_server::NatsServer;
use windlass_testkit::postgres_server::PostgresServer;
use windlass_testkit::{FaultyProxy, SeededRandom};

use crate::support::{CommandOutput, TestWorld};
use crate::test_workers::assert_merged_once;

/// The servers of a fleet's log.
enum LogServers {
    One(NatsServer),
    Three(NatsCluster),
}

impl LogServers {
    fn start(count: usize) -> Self {
        // Clients must not learn of addresses without a proxy.
        let cluster = || NatsCluster::start_with("cluster { no_advertise: true }").map(Self::Three);
        let servers = if count == 1 { NatsServer::start().map(Self::One) } else { cluster() };
        servers.expect("`scripts/clients` installs nats-server")
    }

    fn ports(&self) -> Vec<u16> {
        match self {
            Self::One(server) => vec![server.port()],
            Self::Three(cluster) => cluster.ports(),
        }
    }

    fn stop(&mut self) {
        match self {
            Self::One(server) => server.stop(),
            Self::Three(cluster) => (0..3).for_each(|index| cluster.kill_server(index)),
        }
    }

    fn restart(&mut self) {
        match self {
            Self::One(server) => server.restart(),
            Self::Three(cluster) => cluster.restart_servers(&[0, 1, 2]),
        }
    }

    /// Kills one server, two or all of them, and starts them again after a while.
    fn kill_some(&mut self, random: &mut SeededRandom) {
        let pause = Duration::from_millis(random.next_below(500));
        match self {
            Self::Three(cluster) if !random.is_one_in(4) => {
                let killed: Vec<usize> = (0..1 + random.next_index(2)).collect();
                killed.iter().for_each(|index| cluster.kill_server(*index));
                std::thread::sleep(pause);
                cluster.restart_servers(&killed);
            }
            _ => {
                self.stop();
                std::thread::sleep(pause);
                self.restart();
            }
        }
    }
}

/// Machines that share a repository and servers, each behind networks of its own.
struct TestFleet {
    server: LogServers,
    /// For each machine, its network to each server.
    networks: Vec<Vec<FaultyProxy>>,
    /// The first one has the bare repository beside it.
    machines: Vec<TestWorld>,
}

const WRITING_AGENT: &str = "cat > prompt.md; rm prompt.md; echo $WINDLASS_TASK_ID > part-$WINDLASS_TASK_ID; echo done";

/// The work of an agent is merged at once.
fn merge_config(agent: &str) -> String {
    format!(
        "completion: gate\nagent: writer\nagents:\n  writer: {{command: '{agent}'}}\nlimits: {{lease: 1s}}\n\
         hooks: {{before_submit: [create_pr], before_merge: [merge_pr]}}\n"
    )
}

impl TestFleet {
    /// Creates a repository with a project, clones of it, and a fleet of all of them.
    fn new(config: &str, count: usize) -> Self {
        Self::with_servers(config, count, LogServers::start(1))
    }

    fn with_servers(config: &str, count: usize, server: LogServers) -> Self {
        let mut machines = vec![TestWorld::empty()];
        let first = &machines[0];
        run_shell(
            first,
            "git init -q --bare -b main ../remote.git && git init -q -b main . && git remote add origin ../remote.git
             git config user.name Ann && git config user.email ann@example.com
             mkdir .windlass && printf '*\\n' > .windlass/.gitignore
             echo start > start && git add . && git commit -qm start && git push -q -u origin main && git checkout -q -b desk",
        );
        let remote = first.path("../remote.git").canonicalize().unwrap();
        for _ in 1..count {
            let machine = TestWorld::empty();
            run_shell(
                &machine,
                &format!(
                    "git init -q -b main . && git remote add origin {} && git fetch -q && git checkout -q -b desk origin/main
                     git config user.name Bob && git config user.email bob@example.com",
                    remote.display()
                ),
            );
            machines.push(machine);
        }
        let start_network = |port| FaultyProxy::start(port).unwrap();
        let networks = machines.iter().map(|_| server.ports().into_iter().map(start_network).collect()).collect();
        let fleet = Self { server, networks, machines };
        for (number, machine) in fleet.machines.iter().enumerate() {
            machine.write(".windlass/config.yaml", config);
            machine.run_ok(&["trust", "--yes"]);
            fleet.enter(machine, number);
        }
        fleet
    }

    fn enter(&self, machine: &TestWorld, number: usize) {
        let servers: Vec<String> =
            self.networks[number].iter().map(|network| format!("127.0.0.1:{}", network.port())).collect();
        let address = format!("nats://{}/pump", servers.join(","));
        let (name, replicas) = (machine_name(number), servers.len().to_string());
        let create = ["fleet", "create", &address, "--replicas", &replicas, "--accept-loss", "--name", &name];
        let join = ["fleet", "join", &address, "--accept-loss", "--name", &name];
        machine.run_ok(if number == 0 { &create } else { &join });
    }

    /// Checks that all machines have the same log, and that each copy is sound.
    #[track_caller]
    fn assert_copies_are_equal(&self) {
        let logs: Vec<Vec<Value>> = self.machines.iter().map(|machine| machine.json_lines(&["events"])).collect();
        for (number, log) in logs.iter().enumerate() {
            assert!(*log == logs[0], "machine {number} has another log");
            let machine = &self.machines[number];
            machine.run_ok(&["doctor"]);
            assert_eq!(machine.json(&["fleet", "doctor"])["problems"], 0);
        }
        let heads: BTreeSet<Option<String>> = self.machines.iter().map(last_chain_link).collect();
        assert_eq!(heads.len(), 1, "the chains of digests are equal");
    }
}

fn machine_name(number: usize) -> String {
    ["mill", "barn", "shed"][number].to_owned()
}

/// Returns the last link of the chain of digests.
fn last_chain_link(machine: &TestWorld) -> Option<String> {
    let backup = machine.path("../copy.db");
    let _ = std::fs::remove_file(&backup);
    machine.run_ok(&["backup", backup.to_str().unwrap()]);
    let connection = rusqlite::Connection::open(&backup).unwrap();
    connection.query_row("SELECT hex(chain) FROM events ORDER BY seq DESC LIMIT 1", [], |row| row.get(0)).ok()
}

#[track_caller]
fn run_shell(machine: &TestWorld, script: &str) -> String {
    let ran = machine.run_command(machine.program("sh").args(["-c", &format!("set -e\n{script}")]));
    assert_eq!(ran.code, 0, "{ran}");
    ran.stdout
}

/// Starts workers. Their last errors are in the file `workers.err` beside the project.
fn start_workers(machine: &TestWorld) -> Child {
    let errors = std::fs::File::create(machine.path("../workers.err")).unwrap();
    machine.command(&["run", "--workers", "2"]).stdout(Stdio::null()).stderr(errors).spawn().unwrap()
}

/// Returns the machines that have claimed tasks.
fn claiming_machines(machine: &TestWorld) -> BTreeSet<String> {
    let claims = machine.json_lines(&["events", "--type", "task_claimed"]);
    let owner = |claim: &Value| claim["data"]["owner"].as_str().unwrap().to_owned();
    claims.iter().map(|claim| owner(claim).rsplit('-').nth(1).unwrap().to_owned()).collect()
}

#[test]
fn machines_of_fleet_work_on_one_graph() {
    let fleet = TestFleet::new(&merge_config(WRITING_AGENT), 2);
    let (mill, barn) = (&fleet.machines[0], &fleet.machines[1]);
    for number in 1..=8 {
        let goal = format!("Part {number}");
        let after = ["task", "add", &goal, "--depends", "T1"];
        [mill, barn][number % 2].run_ok(if number > 6 { &after } else { &after[..3] });
    }
    let workers: Vec<Child> = fleet.machines.iter().map(start_workers).collect();
    for mut worker in workers {
        worker.wait().unwrap();
    }
    // A machine ends when nothing is ready for it; what the other one made ready is left.
    for machine in &fleet.machines {
        let ran = machine.run(&["run", "--workers", "2"]);
        assert_eq!(ran.code, 0, "{ran}");
    }
    assert_merged_once(barn, 8);
    assert_eq!(claiming_machines(mill), BTreeSet::from(["barn".to_owned(), "mill".to_owned()]));
    fleet.assert_copies_are_equal();
    let sessions = barn.json_lines(&["session", "list"]);
    assert!(sessions.iter().all(|session| ["mill", "barn"].contains(&session["machine"].as_str().unwrap())));
}

#[test]
fn project_enters_and_leaves_fleet_with_same_positions() {
    let server = NatsServer::start().expect("`scripts/clients` installs nats-server");
    let (mill, barn) = (TestWorld::with_tasks(&["One", "Two"]), TestWorld::new());
    let before = mill.json_lines(&["events"]);
    let address = server.log_address("pump");
    let refused = mill.expect_failure(&["fleet", "create", &address, "--replicas", "1"]);
    assert!(refused.contains("could lose acknowledged events") && refused.contains("--accept-loss"), "{refused}");
    mill.run_ok(&["fleet", "create", &address, "--replicas", "1", "--accept-loss"]);
    barn.run_ok(&["fleet", "join", &address, "--accept-loss"]);
    assert_eq!(barn.json_lines(&["events"]), before);
    barn.run_ok(&["task", "add", "Three"]);
    assert_eq!(mill.json_lines(&["task", "list"]).len(), 3);

    barn.run_ok(&["fleet", "leave", "--yes"]);
    barn.run_ok(&["task", "add", "Alone"]);
    assert_eq!(mill.json_lines(&["task", "list"]).len(), 3);
    let all = barn.json_lines(&["events"]);
    assert_eq!(all[..before.len()], before);
    barn.run_ok(&["doctor"]);
    let refused = barn.expect_failure(&["fleet", "join", &address, "--accept-loss"]);
    assert!(refused.contains("a log of this project's own") && refused.contains("--discard"), "{refused}");
    let joined = barn.json(&["fleet", "join", &address, "--accept-loss", "--discard"]);
    assert!(joined["discarded"].as_str().unwrap().contains(".windlass/backups/"), "{joined}");
    assert_eq!(barn.json_lines(&["events"]), mill.json_lines(&["events"]));

    let shed = TestWorld::with_tasks(&["Done", "Four"]);
    shed.run_ok(&["task", "add", "Five", "--depends", "T2"]);
    shed.run_ok(&["task", "complete", "T1", "--force"]);
    let joined = shed.json(&["fleet", "join", &address, "--accept-loss", "--import-open"]);
    assert_eq!(joined["imported"], json!([{"old": "T2", "new": "T4"}, {"old": "T3", "new": "T5"}]));
    assert_eq!(shed.json(&["task", "show", "T5"])["openDependencies"], 1);
    // What the fleet has already is not created again.
    shed.run_ok(&["fleet", "leave", "--yes"]);
    shed.run_ok(&["task", "add", "Six"]);
    let joined = shed.json(&["fleet", "join", &address, "--accept-loss", "--import-open"]);
    assert_eq!(joined["imported"], json!([{"old": "T6", "new": "T6"}]));
    assert_eq!(barn.json_lines(&["events"]), mill.json_lines(&["events"]));
}

#[test]
fn fleet_on_postgres_shares_one_log() {
    let server = PostgresServer::start().expect("`scripts/setup` installs PostgreSQL");
    let (mill, barn) = (TestWorld::with_tasks(&["One"]), TestWorld::new());
    let address = server.log_address("pump");
    mill.run_ok(&["fleet", "create", &address, "--accept-loss"]);
    barn.run_ok(&["fleet", "join", &address, "--accept-loss"]);
    barn.run_ok(&["task", "add", "Two"]);
    barn.run_ok(&["task", "complete", "T1", "--force"]);
    assert_eq!(mill.json(&["task", "show", "T1"])["state"], "completed");
    assert_eq!(mill.json_lines(&["events"]), barn.json_lines(&["events"]));
    assert_eq!(mill.json(&["fleet", "doctor"])["problems"], 0);
}

#[test]
fn events_are_published_by_commands_and_runs() {
    let fleet = TestFleet::new("worktrees: false\ncompletion: gate\nagent: command:cat\nfleet: {publish: true}\n", 1);
    let machine = &fleet.machines[0];
    let address = format!("nats://127.0.0.1:{}/pump", fleet.server.ports()[0]).parse().unwrap();
    let mut service = connect_service(FleetAccess { address, credentials: None, certificates: None }).unwrap();
    for words in [&["task", "add", "One"][..], &["run"]] {
        let ran = machine.run(words);
        assert_eq!(ran.code, 0, "{ran}");
        assert_eq!(service.last_published_event().unwrap(), machine.json_lines(&["events"]).len() as u64);
    }
}

#[test]
fn commands_about_missing_fleets_say_what_to_do() {
    let world = TestWorld::new();
    let failures = [
        world.expect_failure(&["fleet", "status"]),
        world.expect_failure(&["fleet", "leave", "--yes"]),
        world.expect_failure(&["fleet", "repair"]),
        world.expect_failure(&["fleet", "join", "localhost"]),
        world.expect_failure(&["fleet", "join", "nats://127.0.0.1:1/pump"]),
        world.expect_failure(&["fleet", "join", "nats://example.org/pump"]),
    ];
    insta::assert_snapshot!(failures.join("\n\n"), @r"
    error: this project is in no fleet
    hint: `windlass fleet create URL` makes one, `windlass fleet join URL` joins one
    [1 fleet]

    error: this project is in no fleet
    hint: `windlass fleet create URL` makes one, `windlass fleet join URL` joins one
    [1 fleet]

    error: this project is in no fleet
    hint: `windlass fleet create URL` makes one, `windlass fleet join URL` joins one
    [1 fleet]

    error: `localhost` is no address of a fleet: it has to begin with `nats://`, `tls://` or `postgres://`
    hint: for example `nats://127.0.0.1:4222/shop`: the server, and the name of the project there
    [64 usage]

    error: cannot reach the log of the fleet
    caused by: IO error: Connection refused (os error 111)
    hint: check that the servers run and that this machine can reach them
    [1 fleet]

    error: cannot use the log of the fleet
    caused by: cannot send a log to another machine without encryption: write `tls://` instead of `nats://`
    hint: check the address, the credentials and the version of the servers
    [1 fleet]
    ");
}

#[test]
fn unreachable_log_leaves_reads_and_names_their_time() {
    let mut fleet = TestFleet::new("worktrees: false\n", 1);
    fleet.machines[0].run_ok(&["task", "add", "One"]);
    fleet.server.stop();
    let machine = &fleet.machines[0];
    let listed = machine.run(&["task", "list"]);
    assert_eq!((listed.code, listed.stdout.as_str()), (0, "T1  ready  P2  One\n"), "{listed}");
    insta::assert_snapshot!(listed.to_string(), @r"
    T1  ready  P2  One
    warning: the log of the fleet cannot be reached: this is the copy of this machine, as of <time>
    ");
    let report = machine.json(&["fleet", "status"]);
    assert_eq!((&report["service"], &report["position"]), (&Value::Null, &json!(2)));
    let doctor = machine.run(&["fleet", "doctor"]);
    assert_eq!(doctor.code, 1, "{doctor}");
    fleet.server.restart();
    fleet.machines[0].run_ok(&["task", "add", "Two"]);
}

#[test]
fn worktrees_without_shared_remote_are_refused() {
    let fleet = TestFleet::new(&merge_config(WRITING_AGENT), 1);
    let machine = &fleet.machines[0];
    run_shell(machine, "git remote remove origin");
    machine.run_ok(&["task", "add", "Part 1"]);
    for words in [&["run"][..], &["run", "--workers", "2"]] {
        let refused = machine.run(words);
        assert!(refused.code != 0 && refused.stderr.contains("no remote that all machines share"), "{refused}");
    }
}

#[test]
fn session_on_other_machine_is_cancelled_there() {
    let fleet = TestFleet::new("worktrees: false\nagent: command:sleep 600\n", 2);
    let (mill, barn) = (&fleet.machines[0], &fleet.machines[1]);
    let mut run = mill.command(&["run", "Wait"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let session = await_session(barn);
    assert_eq!((&session["machine"], &session["state"]), (&json!("mill"), &json!("running")));
    let name = session["session"].as_str().unwrap();
    let refused = barn.run(&["run", "Wait", "--session", name]);
    assert!(refused.stderr.contains("runs on mill"), "{refused}");
    barn.run_ok(&["session", "cancel", name]);
    run.wait().unwrap();
    assert_eq!(barn.json_lines(&["session", "list"])[0]["state"], "ended");
    fleet.assert_copies_are_equal();
}

/// Waits until another machine has a session with a turn in progress.
fn await_session(machine: &TestWorld) -> Value {
    loop {
        let begun = machine.json_lines(&["events", "--type", "turn_started"]);
        if !begun.is_empty() {
            return machine.json_lines(&["session", "list"]).remove(0);
        }
    }
}

/// Runs a command on a machine whose clock is ahead.
fn run_with_clock_ahead(machine: &TestWorld, seconds: u32, words: &[&str]) -> CommandOutput {
    let library = "/usr/$LIB/faketime/libfaketime.so.1";
    let mut command = machine.command(words);
    command.env("LD_PRELOAD", library).env("FAKETIME", format!("+{seconds}s")).env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    machine.run_command(command.stdin(Stdio::null()))
}

#[test]
fn machine_with_wrong_clock_takes_no_work_of_living_machine() {
    let config = "worktrees: false\nagent: command:test ! -e $HOME/busy || sleep 600\nlimits: {lease: 20s}\n";
    let fleet = TestFleet::new(config, 2);
    let (mill, barn) = (&fleet.machines[0], &fleet.machines[1]);
    mill.write("../home/busy", "");
    let mut run = mill.command(&["run", "Wait"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let session = await_session(barn);
    let ran = run_with_clock_ahead(barn, 50, &["run", "--workers", "1"]);
    assert!(ran.code == 0 && ran.stderr.contains("s ahead of the clock of NATS"), "{ran}");
    assert_eq!(barn.json_lines(&["session", "list"])[0]["state"], "running", "50 s are more than the lease");
    let refused = run_with_clock_ahead(barn, 90, &["run", "--workers", "1"]);
    assert!(refused.code != 0 && refused.stderr.contains("set the clock"), "{refused}");
    barn.run_ok(&["session", "cancel", session["session"].as_str().unwrap()]);
    run.wait().unwrap();
    fleet.assert_copies_are_equal();
}

/// A machine that is gone keeps no task: another one takes it over, from the commits that were pushed.
#[test]
fn task_of_silent_machine_goes_on_elsewhere_from_pushed_work() {
    // The second turn never ends on a machine that is stuck.
    let agent = "cat > prompt.md; rm prompt.md; test -e begun || { echo begin > begun; git add .; git commit -qm begin; exit; }; \
                 test -e $HOME/stuck && sleep 600; echo end > ended; echo \"<promise>COMPLETE</promise>\"";
    let config = merge_config(agent).replace("completion: gate\n", "");
    let fleet = TestFleet::new(&config, 2);
    let (mill, barn) = (&fleet.machines[0], &fleet.machines[1]);
    mill.run_ok(&["task", "add", "Part 1"]);
    mill.write("../home/stuck", "");
    let mut run = start_workers(mill);
    while barn.json_lines(&["events", "--type", "turn_started"]).len() < 2 {}
    run.kill().unwrap();
    run.wait().unwrap();
    let took_over = loop {
        let ran = barn.run(&["run", "--workers", "1"]);
        assert_eq!(ran.code, 0, "{ran}");
        if !barn.json_lines(&["events", "--type", "task_completed"]).is_empty() {
            break ran;
        }
    };
    assert!(took_over.stdout.contains("complete after one iteration"), "{took_over}");
    run_shell(barn, "git fetch -q --prune origin");
    assert_eq!(run_shell(barn, "git show origin/main:begun origin/main:ended"), "begin\nend\n");
    // The machine comes back, and finds that it has lost the task.
    std::fs::remove_file(mill.path("../home/stuck")).unwrap();
    let ran = mill.run(&["run", "--workers", "1"]);
    assert!(ran.stdout.contains("T1 was taken by session `t1-part-1-2`"), "{ran}");
    fleet.assert_copies_are_equal();
}

/// The merge is on the remote, and its machine is lost before it records that.
#[test]
fn task_merged_by_lost_machine_is_completed_elsewhere() {
    let fleet = TestFleet::new(&merge_config(WRITING_AGENT), 2);
    let (mill, barn) = (&fleet.machines[0], &fleet.machines[1]);
    mill.run_ok(&["task", "add", "Part 1"]);
    let (pid, git) = (mill.path("../run.pid"), mill.path("../tools/git").canonicalize().unwrap());
    let script = format!(
        "#!/bin/sh\n{0} \"$@\"\ncode=$?\ncase \"$*\" in *push*:refs/heads/main*) kill -9 $(cat {1});; esac\nexit $code\n",
        git.display(),
        pid.display()
    );
    let wrapper = mill.program_directory().join("git");
    std::fs::write(&wrapper, script).unwrap();
    std::fs::set_permissions(&wrapper, std::fs::Permissions::from_mode(0o755)).unwrap();
    let windlass = crate::support::WINDLASS;
    let words = format!("echo $$ > {}; exec {windlass} run --workers 1", pid.display());
    let ran = mill.run_command(mill.program("sh").args(["-c", &words]));
    assert_eq!(ran.code, 128 + 9, "{ran}");
    std::fs::remove_file(&wrapper).unwrap();
    while barn.json(&["task", "show", "T1"])["state"] != "completed" {
        let ran = barn.run(&["run", "--workers", "1"]);
        assert_eq!(ran.code, 0, "{ran}");
    }
    assert_merged_once(barn, 1);
    // The other machine never returns, so its session is ended here.
    let is_open = |session: &Value| session["session"] == "t1-part-1" && session["state"] != "ended";
    while barn.json_lines(&["session", "list"]).iter().any(is_open) {
        let ran = barn.run(&["run", "--workers", "1"]);
        assert_eq!(ran.code, 0, "{ran}");
    }
}

/// Workers, machines and the server are killed, and networks are cut, again and again. `scripts/workers` has more tasks, for longer.
#[test]
fn broken_machines_and_networks_merge_every_task_once() {
    #[expect(clippy::disallowed_methods, reason = "the script that wants more of it says so")]
    let is_long = std::env::var_os("WINDLASS_TEST_WORKERS").is_some();
    let (tasks, rounds) = if is_long { (60, 60) } else { (9, 4) };
    let mut random = SeededRandom::new(7);
    let pause = if is_long { "1.5" } else { "0.2" };
    let config = merge_config(&format!("sleep {pause}; {WRITING_AGENT}"));
    let mut fleet = TestFleet::with_servers(&config, 3, LogServers::start(if is_long { 3 } else { 1 }));
    for number in 1..=tasks {
        let (goal, machine) = (format!("Part {number}"), &fleet.machines[number % 3]);
        let before = format!("T{}", 1 + random.next_below(number.max(2) as u64 - 1));
        let depends = ["task", "add", &goal, "--depends", &before];
        machine.run_ok(if number > 3 && number % 3 == 0 { &depends } else { &depends[..3] });
    }
    let mut workers: Vec<Child> = fleet.machines.iter().map(start_workers).collect();
    let (mut kills, mut cuts) = (0, 0);
    for round in 0..rounds {
        // Any moment will do.
        std::thread::sleep(Duration::from_millis(100 + random.next_below(700)));
        let number = random.next_below(3) as usize;
        match round % 4 {
            2 => fleet.server.kill_some(&mut random),
            3 if random.is_one_in(2) => {
                // A machine that sleeps, and wakes up.
                let pid = Pid::from_child(&workers[number]);
                if workers[number].try_wait().unwrap().is_none() {
                    kill_process(pid, Signal::STOP).unwrap();
                    std::thread::sleep(Duration::from_millis(random.next_below(3000)));
                    kill_process(pid, Signal::CONT).unwrap();
                }
            }
            0 | 3 => {
                // The supervisor ends everything else that the machine runs.
                kills += u32::from(workers[number].try_wait().unwrap().is_none());
                workers[number].kill().unwrap();
            }
            _ => {
                cuts += 1;
                fleet.networks[number].iter().for_each(FaultyProxy::hold_bytes);
                let time = if is_long { 30_000 } else { 1500 };
                std::thread::sleep(Duration::from_millis(random.next_below(time)));
                fleet.networks[number].iter().for_each(FaultyProxy::heal);
            }
        }
        for (worker, machine) in workers.iter_mut().zip(&fleet.machines) {
            if let Some(status) = worker.try_wait().unwrap() {
                // Killed, or at the end of the work; 3 after a loss of its task, 4 with a question. Work does not begin without
                // the log.
                let errors = std::fs::read_to_string(machine.path("../workers.err")).unwrap();
                let is_cut = status.code() == Some(1) && errors.contains("cannot reach the log of the fleet");
                assert!(is_cut || matches!(status.code(), None | Some(0 | 3 | 4)), "{status}: {errors}");
                *worker = start_workers(machine);
            }
        }
    }
    for mut worker in workers {
        worker.wait().unwrap();
    }
    assert!(kills > 0 && cuts > 0, "{kills} kills, {cuts} cuts");
    // In the end every machine looks for work until nothing is left.
    while fleet.machines[0].json_lines(&["task", "list", "--all"]).iter().any(|task| task["state"] != "completed") {
        for machine in &fleet.machines {
            let ran = machine.run(&["run", "--workers", "2"]);
            assert!([0, 3, 4].contains(&ran.code), "{ran}");
        }
    }
    // A machine that has lost a task still has its worktree, until it looks for work again.
    for machine in &fleet.machines {
        let ran = machine.run(&["run", "--workers", "2"]);
        assert_eq!(ran.code, 0, "{ran}");
    }
    assert_merged_once(&fleet.machines[0], tasks);
    fleet.assert_copies_are_equal();
    println!("machines of a fleet killed: {kills} kills, 0 of them wrong");
    println!("networks of a fleet cut: {cuts} cuts, 0 of them wrong");
}
