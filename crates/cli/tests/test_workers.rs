//! `windlass run --workers N`: several tasks of the graph at a time

use std::collections::BTreeSet;
use std::fs;
use std::process::{Child, Stdio};

use insta::assert_snapshot;
use rustix::process::{Pid, Signal, kill_process};

use crate::support::hook_project::COMPLETING_AGENT;
use crate::support::{TestWorld, normalize_durations};

/// A project in a clone of a bare repository, whose worker agents each write one line.
fn create_cloned_project(config: &str, tasks: usize) -> TestWorld {
    let world = TestWorld::empty();
    let git = |words: &str| {
        let ran = world.run_command(world.program("sh").args(["-c", &format!("set -e\n{words}")]));
        assert_eq!(ran.code, 0, "{ran}");
    };
    git("git init -q --bare -b main ../remote.git && git init -q -b main . && git remote add origin ../remote.git
         git config user.name Ann && git config user.email ann@example.com
         echo start > start && git add . && git commit -qm start && git push -q -u origin main && git checkout -q -b desk");
    world.write(".windlass/config.yaml", config);
    world.run_ok(&["trust", "--yes"]);
    world.run_ok(&["init"]);
    add_tasks(&world, tasks);
    world
}

fn add_tasks(world: &TestWorld, tasks: usize) {
    let goals: String = (1..=tasks).map(|number| format!("windlass task add 'Part {number}'\n")).collect();
    std::os::unix::fs::symlink(crate::support::WINDLASS, world.program_directory().join("windlass")).unwrap();
    assert_eq!(world.run_command(world.program("sh").args(["-c", &goals])).code, 0);
}

fn run_git(world: &TestWorld, words: &str) -> String {
    let ran = world.run_command(world.program("git").args(words.split(' ')));
    assert_eq!(ran.code, 0, "{ran}");
    ran.stdout
}

const WRITING_AGENT: &str =
    r#"cat > prompt.md; rm prompt.md; echo $WINDLASS_TASK_ID > part-$WINDLASS_TASK_ID; echo done"#;

fn merge_config(agent: &str) -> String {
    format!(
        "completion: gate\nagent: writer\nagents:\n  writer: {{command: '{agent}'}}\nlimits: {{lease: 1s}}\n\
         hooks: {{before_submit: [create_pr], before_merge: [merge_pr]}}\n"
    )
}

/// Checks that every task is completed, and in main once.
#[track_caller]
pub fn assert_merged_once(world: &TestWorld, tasks: usize) {
    let listed = world.json_lines(&["task", "list", "--all", "--json"]);
    let states: BTreeSet<&str> = listed.iter().filter_map(|task| task["state"].as_str()).collect();
    assert_eq!((listed.len(), states), (tasks, BTreeSet::from(["completed"])));
    run_git(world, "fetch -q --prune origin");
    let merges = run_git(world, "log --first-parent --merges --format=%s origin/main");
    let mut merged: Vec<&str> = merges.lines().collect();
    merged.sort_unstable();
    let mut expected: Vec<String> = (1..=tasks).map(|number| format!("Merge T{number}: Part {number}")).collect();
    expected.sort_unstable();
    assert_eq!(merged, expected);
    for number in 1..=tasks {
        assert_eq!(run_git(world, &format!("show origin/main:part-T{number}")), format!("T{number}\n"));
    }
}

/// Everything is in main once, and nothing else is left of the tasks.
#[track_caller]
fn assert_all_merged_once(world: &TestWorld, tasks: usize) {
    assert_merged_once(world, tasks);
    assert_eq!(
        run_git(world, "for-each-ref --format=%(refname) refs/heads refs/remotes refs/windlass"),
        "refs/heads/desk\nrefs/heads/main\nrefs/remotes/origin/main\n"
    );
    assert_eq!(run_git(world, "worktree list --porcelain").matches("worktree ").count(), 1);
    assert_eq!(run_git(world, "status --porcelain"), "?? .windlass/\n");
}

#[test]
fn every_task_is_merged_once() {
    let world = create_cloned_project(&merge_config(WRITING_AGENT), 8);
    let ran = world.run(&["run", "--workers", "4"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("\ndone: T1, T2, T3, T4, T5, T6, T7, T8\n"), "{ran}");
    assert_all_merged_once(&world, 8);
}

/// Workers are killed again and again at any moment, and run again. `scripts/workers` has more of them, for longer.
#[test]
fn killed_workers_leave_no_task_undone_or_done_twice() {
    #[expect(clippy::disallowed_methods, reason = "the script that wants more of it says so")]
    let is_long = std::env::var_os("WINDLASS_TEST_WORKERS").is_some();
    let (tasks, rounds) = if is_long { (60, 12_u64) } else { (6, 3) };
    let world = create_cloned_project(&merge_config(WRITING_AGENT), tasks);
    let mut kills = 0;
    for round in 0..rounds {
        let mut child =
            world.command(&["run", "--workers", "4"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // Any moment will do, and each round has another one.
        std::thread::sleep(std::time::Duration::from_millis(150 + round * 7919 % 2500));
        // Only workers with a task are killed.
        kills += u32::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let ran = world.run(&["run", "--workers", "4"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert_all_merged_once(&world, tasks);
    assert!(kills > 0, "no worker was killed");
    if is_long {
        println!("workers killed: {kills} kills");
    }
}

#[test]
fn idle_worker_waits_for_tasks_that_become_ready() {
    let world = TestWorld::empty();
    world.write(".windlass/config.yaml", "completion: gate\nworktrees: false\n");
    world.run_ok(&["trust", "--yes"]);
    world.run_ok(&["init"]);
    world.run_ok(&["task", "add", "First"]);
    world.run_ok(&["task", "add", "Second", "--depends", "T1"]);
    world.run_ok(&["task", "add", "Third", "--depends", "T2"]);
    let ran = world.run(&["run", "--workers", "2", "--agent", "command:cat > prompt; echo ok"]);
    assert_eq!(ran.code, 0, "{ran}");
    let done: Vec<&str> = ran.stdout.lines().filter(|line| line.ends_with("complete after one iteration")).collect();
    assert_eq!(
        done,
        ["T1 complete after one iteration", "T2 complete after one iteration", "T3 complete after one iteration"]
    );
    assert_eq!(world.run_ok(&["run", "--workers", "2", "--agent", "command:cat"]), "every task is completed\n");
}

#[test]
fn run_summary_lists_unfinished_tasks_with_next_commands() {
    let world = TestWorld::empty();
    world.write(".windlass/config.yaml", "worktrees: false\n");
    world.run_ok(&["trust", "--yes"]);
    world.run_ok(&["init"]);
    for goal in ["Good", "Stuck", "Never"] {
        world.run_ok(&["task", "add", goal]);
    }
    world.write(
        "agent.sh",
        "cat > /dev/null; case $WINDLASS_TASK_ID in T1) echo '<promise>COMPLETE</promise>';;
         T2) echo 'which version?'; echo '<promise>BLOCKED</promise>';; *) echo 'not yet';; esac",
    );
    let words = ["run", "--workers", "1", "--max-iterations", "1", "--agent", "command:sh agent.sh"];
    let ran = world.run(&words);
    assert_eq!(ran.code, 4, "{ran}");
    assert_snapshot!(normalize_durations(&ran.stdout), @r"
    T1 session t1-good
    T1   command:sh agent.sh, at most one iteration
    T1 task Good
    T1 iteration 1
    T1   the agent says that it is done
    T1 complete after one iteration
    T2 session t2-stuck
    T2   command:sh agent.sh, at most one iteration
    T2 task Stuck
    T2 iteration 1
    T2   agent: which version?
    T2   the agent says that it is blocked
    T2   T2 is blocked: the agent says it is blocked: which version?
    T2 a person is needed after one iteration: the agent says it is blocked
    T3 session t3-never
    T3   command:sh agent.sh, at most one iteration
    T3 task Never
    T3 iteration 1
    T3   agent: not yet
    T3   T3 needs continuation: one iteration is the limit
    T3 ended after one iteration: one iteration is the limit
    done: T1
    left: T3  Never: one iteration is the limit
    for a person: T2  Stuck: the agent says it is blocked: which version?
    took: <took> 3 turns
    note: nothing checked this work; add a check, such as `hooks: {stop: [run_tests]}`, to .windlass/config.yaml
    next: windlass answer T2 continue  # or: windlass why T2
    next: windlass run --workers 1 --agent 'command:sh agent.sh'
    ");
    let ran = world.run(&words);
    assert_eq!(ran.code, 3, "{ran}");
    assert!(ran.stdout.contains("left: T2  Stuck: the agent says it is blocked: which version?\n"), "{ran}");
    assert!(ran.stdout.contains("next: windlass answer T2 continue  # or: windlass why T2\n"), "{ran}");
    assert!(world.path(".windlass/runs/t3-never-2").is_dir(), "each attempt has records of its own");
}

/// With several workers no person watches each of them: a question becomes a task for a person.
#[test]
fn worker_session_at_retry_limit_escalates_instead_of_asking() {
    let world = TestWorld::with_tasks(&["One", "Two"]);
    let config = "worktrees: false\nlimits: {max_hook_retries: 0}\non_retry_limit: ask\n\
                  hooks: {stop: [{name: check, command: 'test $WINDLASS_TASK_ID = T2 || exit 2'}]}\n";
    world.write(".windlass/config.yaml", config);
    world.run_ok(&["trust", "--yes"]);
    world.write("agent.sh", COMPLETING_AGENT);
    let ran = world.run(&["run", "--workers", "1", "--agent", "command:sh agent.sh"]);
    assert_eq!(ran.code, 4, "{ran}");
    let endings: Vec<_> = world.event_payloads("session_ended").iter().map(|ended| ended["ending"].clone()).collect();
    assert_eq!(endings, ["escalated", "completed"], "{ran}");
    assert_eq!(world.json(&["task", "show", "T1"])["state"], "blocked");
}

/// An agent that cannot be started is no fault of the tasks.
#[test]
fn agents_that_cannot_be_started_pause_the_run() {
    let world = TestWorld::empty();
    let config = "worktrees: false\ncompletion: gate\nagents: {gone: {command: ./no-such-agent}}\n\
                  task_types: {fix: {agents: {implementer: [gone]}}}\n";
    world.write(".windlass/config.yaml", config);
    world.run_ok(&["trust", "--yes"]);
    world.run_ok(&["init"]);
    for goal in ["One", "Two", "Three"] {
        world.run_ok(&["task", "add", goal, "--type", "fix"]);
    }
    let ran = world.run(&["run", "--workers", "1"]);
    assert_eq!(ran.code, 1, "{ran}");
    assert_snapshot!(normalize_durations(&ran.stdout).replace(world.directory.to_str().unwrap(), "."), @r"
    T1 session t1-one
    T1   gone, at most 25 iterations
    T1 task One
    T1 iteration 1
    T1 failed after one iteration: cannot start the program: sh: 1: ./no-such-agent: not found
    T1 session t1-one-2
    T1   gone, at most 25 iterations
    T1 task One
    T1 iteration 1
    T1 failed after one iteration: cannot start the program: sh: 1: ./no-such-agent: not found
    done: nothing
    paused: twice in a row a task could not be worked on or judged: cannot start the program: sh: 1: ./no-such-agent: not found
    took: <took> 2 turns
    next: windlass run --workers 1  # after you fix this; no task has lost work
    ");
    assert_eq!(world.event_payloads("task_released").len(), 2);
    assert!(world.run_ok(&["task", "list"]).lines().all(|line| line.contains("ready")));
}

#[test]
fn broken_stop_hook_pauses_the_run_after_two_tasks() {
    let world = TestWorld::with_tasks(&["One", "Two", "Three"]);
    world.write(".windlass/config.yaml", "worktrees: false\nhooks: {stop: [{command: ./gone.sh}]}\n");
    world.run_ok(&["trust", "--yes"]);
    world.write("agent.sh", COMPLETING_AGENT);
    let ran = world.run(&["run", "--workers", "1", "--agent", "command:sh agent.sh"]);
    assert_eq!(ran.code, 1, "{ran}");
    assert_eq!(world.event_payloads("turn_finished").len(), 2, "{ran}");
    assert!(ran.stdout.contains("\npaused: "), "{ran}");
    assert_eq!(world.json(&["task", "show", "T3"])["state"], "ready");
}

/// The same holds for a gatekeeper, and a task that waits for it is not worked on again.
#[test]
fn gatekeepers_that_cannot_be_started_pause_the_run() {
    let config = merge_config(WRITING_AGENT).replace("[merge_pr]", "[gatekeeper, merge_pr]")
        + "task_types: {fix: {agents: {gatekeeper: [judge]}}}\n";
    let config = |judge: &str| config.replace("agents:\n", &format!("agents:\n  judge: {{command: '{judge}'}}\n"));
    let world = create_cloned_project(&config("./no-such-judge"), 0);
    for goal in ["One", "Two", "Three"] {
        world.run_ok(&["task", "add", goal, "--type", "fix"]);
    }
    let ran = world.run(&["run", "--workers", "1"]);
    assert_eq!(ran.code, 1, "{ran}");
    let end = normalize_durations(&ran.stdout);
    let end: Vec<&str> = end.lines().skip_while(|line| !line.starts_with("done:")).collect();
    assert_snapshot!(end.join("\n").replace(world.directory.to_str().unwrap(), "."), @"
    done: nothing
    left: T1  One: before_merge: `before_merge[0]:gatekeeper`: `judge` could not judge it (review): cannot start the program: sh: 1: ./no-such-judge: not found
    left: T2  Two: before_merge: `before_merge[0]:gatekeeper`: `judge` could not judge it (review): cannot start the program: sh: 1: ./no-such-judge: not found
    paused: twice in a row a task could not be worked on or judged: before_merge: `before_merge[0]:gatekeeper`: `judge` could not judge it (review): cannot start the program: sh: 1: ./no-such-judge: not found
    took: <took> 2 turns
    next: windlass run --workers 1  # after you fix this; no task has lost work
    ");
    assert_eq!(world.event_payloads("turn_finished").len(), 2, "no agent works while no gatekeeper can judge");
    world.write(".windlass/config.yaml", config(r#"echo "{\"approved\": true, \"summary\": \"Fine.\"}""#));
    world.run_ok(&["trust", "--yes"]);
    let ran = world.run(&["run", "--workers", "1"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(world.event_payloads("turn_finished").len(), 3, "{ran}");
}

#[test]
fn each_type_gets_one_of_its_agents() {
    let world = TestWorld::empty();
    let config = "worktrees: false\ncompletion: gate\nagent: usual\nagents:\n  usual: {command: 'cat > /dev/null; echo usual'}\n  \
                  fixer: {command: 'cat > /dev/null; echo fixer'}\ntask_types: {fix: {agents: {implementer: [fixer]}}, closed: {agents: {implementer: []}}}\n";
    world.write(".windlass/config.yaml", config);
    world.run_ok(&["trust", "--yes"]);
    world.run_ok(&["init"]);
    world.run_ok(&["task", "add", "Mend", "--type", "fix"]);
    world.run_ok(&["task", "add", "Any"]);
    world.run_ok(&["task", "add", "Closed", "--type", "closed"]);
    let ran = world.run(&["run", "--workers", "2"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("T1   agent: fixer\n") && ran.stdout.contains("T2   agent: usual\n"), "{ran}");
    assert!(ran.stdout.contains("\nleft: T3  Closed: no agent may work on tasks of its type\n"), "{ran}");
    let summary = world.json_lines(&["run", "--workers", "2", "--agent", "usual", "--json"]);
    assert_eq!(summary[0]["left"][0]["why"], "no agent may work on tasks of its type");
}

/// A run whose agent reports its start, and waits for a word.
fn start_run(world: &TestWorld, words: &[&str]) -> Child {
    world.make_pipe("began");
    world.make_pipe("go");
    let child = world.command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    world.await_pipe("began");
    child
}

fn send_signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// Waits until the heartbeat of a process has been missing for longer than its lease.
fn sleep_past_lease() {
    std::thread::sleep(std::time::Duration::from_millis(1300));
}

const SLOW_AGENT: &str =
    r#"cat > prompt.md; rm prompt.md; echo slow > slow; cd ../../..; echo > began; cat go; echo done"#;

#[test]
fn worker_stopped_past_its_lease_cannot_submit() {
    let config = merge_config(SLOW_AGENT)
        .replace("agents:\n", "agents:\n  quick: {command: 'cat > /dev/null; echo quick > quick; echo done'}\n");
    let world = create_cloned_project(&config, 1);
    let stopped = start_run(&world, &["run", "--workers", "1"]);
    send_signal(&stopped, Signal::STOP);
    sleep_past_lease();
    let ran = world.run(&["run", "--workers", "1", "--agent", "quick"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(ran.stderr, "note: T1 was held by session `t1-part-1`, which sent no heartbeat for 1.0 s\n");
    send_signal(&stopped, Signal::CONT);
    world.write("go", "go\n");
    let ended = stopped.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(3), "{ended:?}");
    let shown = String::from_utf8(ended.stdout).unwrap();
    assert_snapshot!(normalize_durations(&shown[shown.find("T1 cancelled").unwrap()..]), @r"
    T1 cancelled after one iteration: T1 was taken by session `t1-part-1-2` (epoch 2), and is completed now; the work of this session stays on windlass/t1-part-1
    done: nothing
    taken away: T1 was taken by session `t1-part-1-2` (epoch 2), and is completed now; the work of this session stays on windlass/t1-part-1
    took: <took> one turn
    next: windlass why T1
    ");
    let former = "former        windlass/t1-part-1, taken from session `t1-part-1` (epoch 1)\n";
    assert!(world.run_ok(&["task", "show", "T1"]).contains(former) && world.run_ok(&["why", "T1"]).contains(former));
    assert!(world.run_ok(&["doctor"]).contains("; of earlier attempts: windlass/t1-part-1 (T1)\n"));
    run_git(&world, "fetch -q --prune origin");
    assert_eq!(run_git(&world, "ls-tree --name-only origin/main"), "quick\nstart\n");
    assert_eq!(run_git(&world, "show windlass/t1-part-1:slow"), "slow\n", "what it has done stays on its branch");
    assert_eq!(run_git(&world, "worktree list --porcelain").matches("worktree ").count(), 1);
    let opened: Vec<_> =
        world.event_payloads("workspace_opened").iter().map(|data| data["workspace"]["branch"].clone()).collect();
    assert_eq!(opened, ["windlass/t1-part-1", "windlass/t1-part-1-2"]);
    assert_eq!(world.event_payloads("task_completed").len(), 1);
}

/// No person has agreed to the present configuration.
#[test]
fn expired_lease_runs_no_untrusted_hook() {
    let world = create_cloned_project(&merge_config(SLOW_AGENT), 1);
    let stopped = start_run(&world, &["run", "--workers", "1"]);
    send_signal(&stopped, Signal::STOP);
    sleep_past_lease();
    let told = merge_config(SLOW_AGENT).replace("hooks: {", "hooks: {lease_expired: [{command: touch ran}], ");
    world.write(".windlass/config.yaml", told);
    let ran = world.run(&["run"]);
    assert_eq!((ran.code, world.has_file("ran")), (0, false), "{ran}");
    send_signal(&stopped, Signal::CONT);
    world.write("go", "go\n");
    stopped.wait_with_output().unwrap();
}

/// The process may wake up, and its agent goes on there meanwhile.
#[test]
fn worktree_of_living_process_without_heartbeat_is_kept() {
    let config = merge_config(SLOW_AGENT)
        .replace("agents:\n", "agents:\n  quick: {command: 'cat > /dev/null; echo quick > quick; echo done'}\n");
    let world = create_cloned_project(&config, 1);
    let mut stopped = start_run(&world, &["run", "--workers", "1"]);
    send_signal(&stopped, Signal::STOP);
    sleep_past_lease();
    assert_eq!(world.run(&["run", "--workers", "1", "--agent", "quick"]).code, 0);
    let ran = world.run(&["run"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "every task is completed\n"), "{ran}");
    let place = world.path(".windlass/worktrees/t1-part-1");
    assert!(place.join("slow").exists(), "{ran}");
    assert_eq!(run_git(&world, &format!("-C {} status --porcelain", place.display())), "?? slow\n");
    send_signal(&stopped, Signal::CONT);
    world.write("go", "go\n");
    assert_eq!(stopped.wait().unwrap().code(), Some(3));
    assert!(!place.exists());
    assert_eq!(run_git(&world, "show windlass/t1-part-1:slow"), "slow\n");
}

/// In every kind of run, and with every last word of its agent.
#[test]
fn session_that_lost_its_task_exits_cancelled_in_every_mode() {
    let quick = "agents:\n  quick: {command: 'cat > /dev/null; echo quick > quick; echo done'}\n";
    for (words, says) in [
        (&["run"][..], "done"),
        (&["run", "--task", "T1", "--json"], "done"),
        (&["run", "--workers", "1", "--json"], "done"),
        (&["run", "--task", "T1"], "<promise>BLOCKED</promise>"),
    ] {
        let agent = SLOW_AGENT.replace("echo done", &format!("echo \"{says}\""));
        let world = create_cloned_project(&merge_config(&agent).replace("agents:\n", quick), 1);
        let stopped = start_run(&world, words);
        send_signal(&stopped, Signal::STOP);
        sleep_past_lease();
        assert_eq!(world.run(&["run", "--workers", "1", "--agent", "quick"]).code, 0);
        send_signal(&stopped, Signal::CONT);
        world.write("go", "go\n");
        let ended = stopped.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(3), "{words:?}: {ended:?}");
        let shown = String::from_utf8(ended.stdout).unwrap();
        assert!(shown.contains("T1 was taken by session `t1-part-1"), "{words:?}: {shown}");
        let stays = "(epoch 2), and is completed now; the work of this session stays on windlass/t1-part-1";
        assert!(shown.contains(stays), "{words:?}: {shown}");
        if words.contains(&"--json") {
            let last: Vec<serde_json::Value> = shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            let ended = last.iter().find(|line| line["type"] == "session_ended").unwrap();
            assert_eq!(ended["data"]["ending"], "cancelled");
        } else {
            assert!(shown.ends_with("  next: windlass why T1\n"), "{shown}");
        }
        // A lease belongs to the epoch of the claim that it was given with.
        let why = world.run_ok(&["why", "T1", "--full"]);
        let line = why.lines().find(|line| line.contains(" lease_expired ")).unwrap();
        assert!(line.contains("(epoch 1)"), "{why}");
    }
}

/// The whole process is suspended, and no other process looks: it goes on as before.
#[test]
fn suspended_process_resumes_its_tasks_without_new_claim() {
    let world = create_cloned_project(&merge_config(SLOW_AGENT), 1);
    let mut stopped = start_run(&world, &["run", "--workers", "2"]);
    send_signal(&stopped, Signal::STOP);
    sleep_past_lease();
    send_signal(&stopped, Signal::CONT);
    world.write("go", "go\n");
    assert!(stopped.wait().unwrap().success());
    assert_eq!((world.event_payloads("lease_expired").len(), world.event_payloads("task_claimed").len()), (0, 1));
    run_git(&world, "fetch -q origin");
    assert_eq!(run_git(&world, "show origin/main:slow"), "slow\n");
}

/// Another process looks, but the pause is shorter than a lease.
#[test]
fn worker_paused_shorter_than_lease_keeps_its_task() {
    let world = create_cloned_project(&merge_config(SLOW_AGENT).replace("lease: 1s", "lease: 10m"), 1);
    let mut stopped = start_run(&world, &["run", "--workers", "1"]);
    send_signal(&stopped, Signal::STOP);
    let ran = world.run(&["run", "--workers", "1"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(ran.stdout, "nothing is ready\n  left: T1  active  Part 1: held by session `t1-part-1`\n");
    send_signal(&stopped, Signal::CONT);
    world.write("go", "go\n");
    assert!(stopped.wait().unwrap().success());
    assert_eq!((world.event_payloads("lease_expired").len(), world.event_payloads("task_claimed").len()), (0, 1));
}

#[test]
fn session_of_dead_worker_is_resumed_without_new_claim() {
    let world = create_cloned_project(&merge_config(SLOW_AGENT), 1);
    let mut killed = start_run(&world, &["run", "--workers", "1"]);
    killed.kill().unwrap();
    killed.wait().unwrap();
    let next = world.command(&["run", "--workers", "2"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    world.await_pipe("began");
    world.write("go", "go\n");
    let ran = next.wait_with_output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let claims = world.event_payloads("task_claimed").len();
    assert_eq!(
        (claims, world.event_payloads("session_resumed").len(), world.event_payloads("task_completed").len()),
        (1, 1, 1)
    );
}

/// It would keep its first configuration, and a person has trusted another one since.
#[test]
fn session_of_dead_worker_with_outdated_configuration_is_not_resumed() {
    let world = create_cloned_project(&merge_config(SLOW_AGENT), 1);
    let mut killed = start_run(&world, &["run", "--workers", "1"]);
    killed.kill().unwrap();
    killed.wait().unwrap();
    for pipe in ["began", "go"] {
        fs::remove_file(world.path(pipe)).unwrap();
        world.write(pipe, "");
    }
    world.write(".windlass/config.yaml", merge_config(WRITING_AGENT));
    world.run_ok(&["trust", "--yes"]);
    let ran = world.run(&["run", "--workers", "1"]);
    assert_eq!(ran.code, 64, "{ran}");
    assert!(ran.stderr.contains("`t1-part-1` works with an older configuration than the trusted one"), "{ran}");
    assert_eq!(world.event_payloads("session_resumed").len(), 0);
}

/// A store that came with a repository brings no program along.
#[test]
fn session_of_dead_worker_with_unnamed_agent_is_left_alone() {
    let world = create_cloned_project(&merge_config(WRITING_AGENT), 1);
    let mut killed = start_run(&world, &["run", "--workers", "1", "--agent", &format!("command:{SLOW_AGENT}")]);
    killed.kill().unwrap();
    killed.wait().unwrap();
    ["began", "go"].iter().for_each(|pipe| fs::remove_file(world.path(pipe)).unwrap());
    let ran = world.run(&["run", "--workers", "1"]);
    assert!(ran.stderr.contains("; `windlass run --session t1-part-1 --agent 'command:"), "{ran}");
    assert_eq!(world.event_payloads("session_resumed").len(), 0);
}

#[test]
fn one_signal_ends_all_of_them_in_order() {
    let world = create_cloned_project(&merge_config(SLOW_AGENT), 2);
    let child = start_run(&world, &["run", "--workers", "2"]);
    send_signal(&child, Signal::INT);
    let ran = child.wait_with_output().unwrap();
    assert_eq!(ran.status.code(), Some(130), "{ran:?}");
    assert_eq!(world.event_payloads("session_ended").len(), world.event_payloads("session_started").len());
    assert!(world.run_ok(&["task", "list"]).lines().all(|line| !line.contains("active")));
}

/// A viewer sees a row for each worker.
#[test]
fn view_shows_one_row_per_worker() {
    let world = create_cloned_project(&merge_config(SLOW_AGENT), 1);
    world.make_pipe("began");
    world.make_pipe("go");
    let mut watched = world.start_in_terminal((12, 70), &["run", "--workers", "2"], &[]);
    world.await_pipe("began");
    let screen =
        watched.await_screen(|screen| screen.contains("waits for a task") && screen.contains("the agent works"));
    let shown = normalize_durations(&screen);
    assert!(shown.contains("── 1 at work · 0 done · 0 ready"), "{shown}");
    assert!(shown.contains(" T1 Part 1") && shown.contains("the agent works"), "{shown}");
    fs::write(world.path("go"), "go\n").unwrap();
    let (watched, code) = watched.read_to_end();
    assert_eq!(code, 0);
    let screen = watched.screen();
    assert!(screen.contains("  done         T1\n") && !screen.contains("at work"), "{screen}");
}

/// A worker that waits for another one's merge is shown as waiting.
#[test]
fn view_shows_worker_waiting_for_another_merge() {
    let world = create_cloned_project(&merge_config(WRITING_AGENT), 1);
    let merging = fs::File::create(world.path(".windlass/merge.lock")).unwrap();
    merging.lock().unwrap();
    let mut watched = world.start_in_terminal((12, 100), &["run", "--workers", "1"], &[]);
    let row = " 1  T1 Part 1";
    let waits = "merge waiting for another task to be merged";
    watched.await_screen(|screen| screen.lines().any(|line| line.starts_with(row) && line.contains(waits)));
    drop(merging);
    let (watched, code) = watched.read_to_end();
    assert_eq!(code, 0, "{}", watched.screen());
}

#[test]
fn programs_get_a_summary_and_people_the_open_changes() {
    let world = create_cloned_project(&merge_config(WRITING_AGENT).replace(", before_merge: [merge_pr]", ""), 1);
    let ran = world.json_lines(&["run", "--workers", "2", "--json"]);
    let last = ran.last().unwrap();
    assert_eq!((&last["type"], &last["done"]), (&"run_summary".into(), &serde_json::json!(["T1"])));
    assert_eq!(last["next"], serde_json::json!(["windlass change merge T1  # look first: windlass change show T1"]));
    let next = "next          windlass change merge T1  # look first: windlass change show T1\n";
    assert!(world.run_ok(&["task", "show", "T1"]).contains(next) && world.run_ok(&["why", "T1"]).contains(next));
}

#[test]
fn tasks_without_an_agent_are_named_and_left_alone() {
    let config = "completion: gate\nworktrees: false\nagents:\n  writer: {command: 'cat > prompt; echo done'}\n\
                  task_types: {docs: {agents: {implementer: [writer]}}}\n";
    let world = create_cloned_project(config, 1);
    for count in ["abc", "0", "65"] {
        assert!(world.expect_failure(&["run", "--workers", count]).contains("it is a number from 1 to 64"));
    }
    let refused = world.run(&["run", "--workers", "1"]);
    assert_eq!(refused.code, 64, "{refused}");
    assert!(refused.stderr.contains("T1 is ready, but no agent is named for it"), "{refused}");
    world.run_ok(&["task", "add", "Write docs", "--type", "docs"]);
    let ran = world.run(&["run", "--workers", "1"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stderr.contains("no agent is named for T1") && ran.stdout.contains("done: T2\n"), "{ran}");
    assert!(ran.stdout.contains("\nleft: T1  Part 1: no agent is named for it\n"), "{ran}");
    // A type names its agent for a single task, too.
    world.run_ok(&["task", "add", "Write more docs", "--type", "docs"]);
    assert_eq!(world.run(&["run", "--task", "T3"]).code, 0);
}
