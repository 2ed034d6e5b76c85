//! Agents that hide the origin of their commands, or outlive their runner, to pass for a person

use crate::support::TestWorld;
use crate::test_run::create_agent_project;

const RUN: &[&str] = &["run", "--task", "T1", "--session", "one", "--agent", "command:sh agent.sh"];
const GATE_CONFIG: &str = "hooks: {stop: [{name: tests, command: 'echo red >&2; exit 2'}]}";

fn create_gated_project(agent: &str) -> TestWorld {
    let world = create_agent_project(GATE_CONFIG, agent).with_windlass();
    world.run_ok(&["init"]);
    world.run_ok(&["task", "add", "Mend the pump"]);
    world.run_ok(&["task", "add", "Paint the pump"]);
    world
}

/// A project whose agent leaves a process behind that has ended its supervisor and gives commands; `end_runner` is one. Their
/// output comes out of the fifo `said`.
fn create_orphaning_project(before: &str, commands: &str) -> TestWorld {
    let world = create_gated_project(&format!(
        "runner=$(sed -n 's/^PPid:\\s*//p' /proc/$PPID/status)
        {before}
        setsid env -i PATH=\"$PATH\" WINDLASS_STATE_DIR=\"$WINDLASS_STATE_DIR\" HOME=\"$HOME\" sh left.sh $PPID $runner &
        wait"
    ));
    world.run_command(world.program("mkfifo").arg("said"));
    world.write(
        "left.sh",
        format!(
            "exec > said 2>&1
            runner=$2
            end_runner() {{ kill -9 $runner; while test -e /proc/$runner; do :; done; }}
            kill -STOP $runner
            kill -9 $1
            while grep -q 'State:.[^Z]' /proc/$1/status 2> /dev/null; do :; done
            {commands}"
        ),
    );
    world
}

/// Leftovers of an agent that has killed its runner change nothing that the session holds. A process that is older than the
/// session can, without a terminal, too.
#[test]
fn task_stays_held_after_its_runner_was_killed_from_below() {
    let world = create_orphaning_project(
        "",
        "windlass task complete T1 --force
        end_runner
        windlass task complete T1 --force
        WINDLASS_RUN=nosuch.1.00000000000000ff windlass task complete T1 --force
        windlass task complete T2 --force
        windlass task release T1 --force
        windlass task update T1 --goal less
        windlass session cancel one
        windlass hooks disable tests
        echo 'hooks: {}' > .windlass/config.yaml
        windlass trust --yes
        echo '{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"tools/call\", \"params\": {\"name\": \"task_update\", \"arguments\": {\"taskId\": \"T1\", \"goal\": \"less\"}}}' | windlass mcp
        ",
    );
    std::thread::scope(|scope| {
        let ran = scope.spawn(|| world.run(RUN));
        let said = world.read_file("said");
        ran.join().unwrap();
        let refused = "cannot tell a person from the agent of session `one`, which has not ended";
        assert_eq!(said.matches(refused).count(), 11, "{said}");
        assert!(said.contains("caused by: its process is above this one\n"), "{said}");
        assert!(said.contains("this process has no terminal, and none above it is older than the session"), "{said}");
        assert!(said.contains("hint: give the command on a terminal"), "{said}");
    });
    assert_eq!(world.json(&["task", "show", "T1"])["state"], "active");
    assert_eq!(world.json(&["task", "show", "T1"])["goal"], "Mend the pump");
    world.run_ok(&["task", "release", "T1", "--force"]);
    assert_eq!(world.json(&["task", "show", "T1"])["state"], "ready");
}

/// A process that outlived its runner outlives the session, too, if it resumes and ends it.
#[test]
fn session_that_was_gone_on_with_is_still_guarded_after_its_end() {
    let world = create_orphaning_project(
        "if test -e left; then kill -TERM $runner; exec sleep 60; fi; touch left",
        "end_runner
        windlass run --task T1 --session one --agent 'command:sh agent.sh' --trust
        windlass task complete T1 --force
        windlass task complete T1
        windlass task update T1 --goal less
        windlass task update T2 --goal more
        ",
    );
    std::thread::scope(|scope| {
        let ran = scope.spawn(|| world.run(RUN));
        let said = world.read_file("said");
        ran.join().unwrap();
        let refused = "agent of session `one`, which was resumed after its runner had died";
        assert_eq!(said.matches(refused).count(), 3, "{said}");
    });
    assert_eq!(world.event_payloads("session_ended").len(), 1);
    assert_eq!(world.json(&["task", "show", "T1"])["goal"], "Mend the pump");
    assert_eq!(world.json(&["task", "show", "T2"])["goal"], "more");
    world.run_ok(&["task", "complete", "T1", "--force"]);
}

/// In a PID namespace of its own an agent has no visible ancestors, with a `/proc` of that namespace or without.
#[test]
fn agent_in_another_namespace_is_no_person() {
    let bare = "env -i PATH=\"$PATH\" WINDLASS_STATE_DIR=\"$WINDLASS_STATE_DIR\" HOME=\"$HOME\"";
    let forces = format!("{bare} windlass task complete T1 --force");
    let world = create_gated_project(&format!(
        "PATH=\"$PATH:/usr/bin:/bin\"
        unshare -rpf sh -c : 2> /dev/null || {{ touch without; exit; }}
        unshare -rpf --mount-proc {forces} > said 2>&1
        unshare -rpf --mount-proc {bare} WINDLASS_RUN=nosuch.1.00000000000000ff windlass task complete T1 --force >> said 2>&1
        unshare -rpf --mount-proc {bare} windlass task complete T2 --force >> said 2>&1
        unshare -rpf {forces} >> said 2>&1
        unshare -rm sh -c 'mount -t tmpfs none /proc && exec {forces}' >> said 2>&1
        mkdir fake; echo 'x' > fake/comm
        unshare -rm sh -c 'echo \"$$ (sh) S 0 $$ $$ 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 1 0 0\" > fake/stat
            mount --bind fake /proc/$$ && {forces}' >> said 2>&1
        unshare -rm sh -c 'mount --bind /proc/1 /proc/$$ && {forces}' >> said 2>&1"
    ));
    let ran = world.run(&[RUN, &["--max-iterations", "1"]].concat());
    assert_ne!(world.json(&["task", "show", "T1"])["state"], "completed", "{ran}");
    assert_eq!(world.json(&["task", "show", "T2"])["state"], "ready", "{ran}");
    // The kernel may forbid namespaces, and then no process can hide in one.
    if world.path("without").exists() {
        return;
    }
    let said = world.read_file("said");
    assert_eq!(said.matches("cannot tell a person from the agent of session `one`").count(), 7, "{said}");
    assert!(said.contains("the process of the session is in another PID namespace"), "{said}");
    assert_eq!(said.matches("/proc does not show the processes above this one").count(), 4, "{said}");
}

/// Whatever an agent removes, it cannot decide about trust.
#[test]
fn agent_that_takes_the_store_or_the_configuration_away_is_no_person() {
    let world = create_gated_project(
        "bare=\"env -i PATH=$PATH WINDLASS_STATE_DIR=$WINDLASS_STATE_DIR HOME=$HOME\"
        exec > said 2>&1
        windlass trust --revoke
        $bare windlass trust --revoke
        cp .windlass/config.yaml kept; echo 'completion: promise' > .windlass/config.yaml
        $bare windlass run 'Do it' --trust --agent 'command:true'
        mkdir away; mv .windlass/windlass.db* away
        $bare windlass trust --yes
        $bare windlass init
        $bare windlass trust --yes
        rm -f .windlass/windlass.db*; mv away/* .windlass/
        rm .windlass/config.yaml; windlass init; $bare windlass init
        mv kept .windlass/config.yaml",
    );
    world.run(&[RUN, &["--max-iterations", "1"]].concat());
    let said = world.read_file("said");
    assert_eq!(said.matches("only a person can trust a project").count(), 6, "{said}");
    assert!(said.contains("another configuration was trusted before"), "{said}");
    assert_eq!(world.json(&["trust", "--show"])["trust"], "trusted");
    assert_eq!(world.event_payloads("session_started").len(), 1, "{said}");
}

/// An agent that cannot force a completion can neither approve nor merge.
#[test]
fn agent_in_another_namespace_neither_answers_nor_merges() {
    let hidden =
        "unshare -rpf --mount-proc env -i PATH=$PATH WINDLASS_STATE_DIR=$WINDLASS_STATE_DIR HOME=$HOME windlass";
    let world = create_gated_project(&format!(
        "PATH=\"$PATH:/usr/bin:/bin\"
        unshare -rpf sh -c : 2> /dev/null || {{ touch without; exit; }}
        {hidden} answer T2 approve > said 2>&1
        {hidden} change merge T2 >> said 2>&1"
    ));
    world.run_ok(&["task", "start", "T2"]);
    world.run_ok(&["task", "block", "T2", "--reason", "which pump"]);
    world.run(&[RUN, &["--max-iterations", "1"]].concat());
    assert_eq!(world.json(&["task", "show", "T2"])["state"], "blocked");
    if !world.path("without").exists() {
        let said = world.read_file("said");
        assert_eq!(said.matches("cannot tell a person from the agent of session `one`").count(), 2, "{said}");
    }
}

/// The first process of a container adopts orphans. A script in that place still counts as a person, by its session.
#[test]
fn script_that_is_the_first_process_counts_as_a_person() {
    // The agent waits forever: the cancellation ends it.
    let world = create_gated_project("echo > begun; cat never");
    world.run_command(world.program("mkfifo").args(["begun", "never"]));
    let run = RUN.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
    world.write(
        "ci.sh",
        format!(
            "windlass {run} > ran 2>&1 & read line < begun
            windlass say hurry --session one > said 2>&1
            windlass task update T1 --goal 'Mend the pump well' >> said 2>&1
            windlass session cancel one >> said 2>&1 || kill $!; wait"
        ),
    );
    let first = |script: &str| {
        let mut unshare = world.program("/usr/bin/unshare");
        world.run_command(unshare.args(["-rpf", "--mount-proc", "/usr/bin/setsid", "sh", "-c", script]))
    };
    // The kernel may forbid namespaces.
    if first(":").code != 0 {
        return;
    }
    let ran = first(". ./ci.sh");
    let said = world.read_file("said");
    assert!(!said.contains("cannot tell a person"), "{said}{ran}");
    assert_eq!(world.json(&["task", "show", "T1"])["goal"], "Mend the pump well", "{said}");
    assert_eq!(world.event_payloads("session_stopping")[0]["ending"], "cancelled", "{said}");
}
