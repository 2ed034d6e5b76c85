//! Every printed command can be typed, in every state in which it is printed.

use std::process::Stdio;

use serde_json::Value;

use crate::support::TestWorld;
use crate::support::git_project::GitProject;
use crate::support::web_page::ServedPage;
use crate::test_next::{create_escalated_task, create_killed_session};
use crate::test_run::RUN;

const AGENT: &[&str] = &["--agent", "command:sh agent.sh"];
const COMPLETING_AGENT: &str = "cat > /dev/null; echo '<promise>COMPLETE</promise>'\n";
const SUBMIT_CONFIG: &str = "hooks: {before_submit: [create_pr]}\n";

/// Returns the output of these commands, whether or not they are refused.
fn command_outputs(world: &TestWorld, commands: &[&[&str]]) -> String {
    let both = |words: &&[&str]| {
        let ran = world.run(words);
        format!("{}{}", ran.stdout, ran.stderr)
    };
    commands.iter().map(both).collect()
}

/// A repository whose session on T1 was killed in its first turn; T2 waits for T1, T3 is ready.
fn create_killed_task_session() -> GitProject {
    let repo = GitProject::new("");
    repo.add_task("Parse").add_task("Print");
    repo.world.run_ok(&["task", "add", "Join", "--depends", "T1"]);
    repo.write_program("agent", "cat > /dev/null; echo > $HOME/begun; exec sleep 1000");
    let words = ["run", "--task", "T1", "--agent", "command:agent"];
    let mut killed = repo.world.command(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while !repo.world.path("../home/begun").exists() {
        std::thread::yield_now();
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    repo.set_agent("echo work > work.txt");
    GitProject { world: repo.world.with_windlass() }
}

#[test]
fn session_left_by_dead_process_offers_what_goes_on() {
    let world = create_killed_session("");
    let shown = command_outputs(&world, &[&["status"], &["session", "show", "mend-the-pump-e01275de"], &["run"]]);
    let offers = world.run_printed_commands(&shown);
    assert!(offers.iter().any(|offer| offer.starts_with("windlass run --session ")), "{offers:?}");
    let other = ["run", "Mend the pump", "--agent", "command:true"];
    assert!(!world.run_printed_commands(&command_outputs(&world, &[&other])).is_empty());
}

#[test]
fn task_held_by_dead_session_is_told_with_what_leads_on() {
    let GitProject { world } = create_killed_task_session();
    let held = "held by session `t1-parse`; next step: `windlass run --session t1-parse --agent command:agent`";
    world.run_ok(&["task", "block", "T2", "--reason", "later"]);
    let plain = world.run(&["run", "--agent", "command:agent"]);
    assert!(plain.code == 4 && plain.stdout.contains(held), "{plain}");
    let workers = world.run(&["run", "--workers", "2", "--agent", "command:true"]);
    assert!(workers.stdout.contains(held), "{workers}");
    world.run_ok(&["task", "unblock", "T2"]);

    let other = &["run", "--task", "T1", "--agent", "command:true"][..];
    let fresh = &["run", "--task", "T1", "--fresh", "--agent", "command:agent"][..];
    let below = &["run", "--task", "T3", "--agent", "command:agent"][..];
    let named = &["run", "--session", "t1-parse", "--agent", "command:true"][..];
    let shown = command_outputs(&world, &[other, fresh, below, named, &["status"], &["session", "show", "t1-parse"]]);
    assert!(!shown.contains("--fresh"), "another session cannot have the task: {shown}");
    world.run_printed_commands(&shown);
    let workers = world.run(&["run", "--workers", "2", "--agent", "command:true", "--max-iterations", "1"]);
    assert!(workers.stdout.contains(held), "{workers}");
    assert!(workers.stdout.contains("next: windlass run --session t1-parse --agent command:agent\n"), "{workers}");
}

#[test]
fn blocked_and_failed_tasks_offer_answers_that_fit() {
    let world = create_escalated_task("");
    world.write("agent.sh", COMPLETING_AGENT);
    let shown = command_outputs(
        &world,
        &[&["status"], &["session", "show", "mend-the-pump-e01275de"], &["run", "--task", "T1"]],
    );
    world.run_printed_commands(&shown);

    // A failed task cannot be told to continue.
    let world = TestWorld::with_tasks(&["Parse", "Print"]).with_windlass();
    world.write("agent.sh", COMPLETING_AGENT);
    world.run_ok(&["task", "fail", "T1", "--reason", "no parser"]);
    world.run_ok(&["task", "add", "Join", "--depends", "T1"]);
    let ran = world.run(&[&["run"], AGENT].concat());
    assert!(ran.stdout.contains("\n  next: windlass answer T1 retry\n"), "{ran}");
    let refused: [&[&str]; 2] = [&["run", "--task", "T1", "--agent", "command:true"], &["run", "--task", "T3"]];
    let shown =
        command_outputs(&world, &refused) + &ran.stdout + &world.run_ok(&["status"]) + &world.run_ok(&["why", "T3"]);
    assert!(world.run_printed_commands(&shown).contains(&"windlass answer T1 retry".to_owned()), "{shown}");

    // There is nothing left to wait for: a person lets it go on.
    world.run_ok(&["task", "delete", "T1", "--force"]);
    let shown = command_outputs(&world, &[&["run", "--task", "T3", "--agent", "command:true"], &["status"]]);
    assert_eq!(world.run_printed_commands(&shown), ["windlass answer T3 continue"], "{shown}");
}

#[test]
fn stacked_changes_offer_the_lowest_one() {
    let repo = GitProject::new(SUBMIT_CONFIG);
    repo.set_agent("f=$(git branch --show-current | tr / -); echo b > $f; git add .; git commit -qm one");
    repo.add_task("First");
    repo.world.run_ok(&["task", "add", "Second", "--depends", "T1"]);
    repo.world.run_ok(&["trust", "--yes"]);
    let first = repo.world.run(&["run", "--agent", "command:agent"]);
    let merge = "windlass change merge T1  # look first: windlass change show T1\n";
    assert!(first.stdout.ends_with(&format!("  next: {merge}")), "{first}");
    let repo = GitProject { world: repo.world.with_windlass() };
    let shown =
        first.stdout + &command_outputs(&repo.world, &[&["task", "show", "T2"], &["why", "T2"], &["change", "list"]]);
    let merge = "windlass change merge T1  # T1 comes first; look first: windlass change show T1\n";
    assert!(shown.contains(&format!("next          {merge}")) && !shown.contains("change merge T2"), "{shown}");
    let page = ServedPage::new(&repo.world, &[]);
    let now = page.get("/api/now", &ServedPage::create_token(&repo.world, "look")).json();
    let reasons: Vec<Value> = now["waiting"].as_array().unwrap().iter().map(|item| item["reason"].clone()).collect();
    let [first, second] = ["t1-first into main", "t2-second into main, after the change of T1"];
    assert_eq!(reasons, [first, second].map(|change| format!("look at its change windlass/{change}")));
    drop(page);
    repo.world.run_printed_commands(&shown);

    // The task below was reopened: its work comes first.
    repo.world.run_ok(&["task", "reopen", "T1", "--force", "--reason", "not yet"]);
    let shown = repo.world.run_ok(&["task", "show", "T2"]);
    let run = "windlass run --task T1 --agent command:agent  # T1 comes first\n";
    assert!(shown.contains(&format!("next          {run}")), "{shown}");
    repo.world.run_printed_commands(&shown);
    let refused = repo.world.expect_failure(&["change", "merge", "T2"]);
    assert!(refused.contains("hint: T1 is ready: its work must be accepted first; `windlass why T1`"), "{refused}");
}

#[test]
fn unclean_tree_of_the_base_offers_what_comes_before_the_merge() {
    let repo = GitProject::new("hooks:\n  before_submit: [create_pr]\n  before_merge: [merge_pr]\n");
    repo.set_agent("echo b > b.txt").add_task("First");
    repo.world.write("a.txt", "mine\n");
    let ran = repo.run_ready_tasks();
    assert_eq!(ran.code, 4, "{ran}");
    let first = "commit or stash a.txt, or switch that tree to another branch";
    assert!(ran.stdout.contains(&format!("; {first}, then `windlass change merge T1` merges it there")), "{ran}");
    let repo = GitProject { world: repo.world.with_windlass() };
    let all: &[&[&str]] = &[&["status"], &["task", "show", "T1"], &["why", "T1"], &["change", "list"]];
    let shown = ran.stdout + &command_outputs(&repo.world, all);
    let place = repo.world.path("").canonicalize().unwrap();
    let status = format!("git -C {} status  # {first}; then windlass change merge T1\n", place.display());
    assert!(
        shown.contains(&format!("next          {status}")) && shown.contains(&format!("next: {status}")),
        "{shown}"
    );
    repo.world.run_printed_commands(&shown);
    let resolved = repo.world.expect_failure(&["run", "--resolve", "T1", "--agent", "command:agent"]);
    assert!(resolved.contains(&format!("{first}, then `windlass change merge T1` merges it")), "{resolved}");

    repo.git(&["stash", "-q"]);
    let shown = command_outputs(&repo.world, all);
    assert!(shown.contains("next          windlass change merge T1  # look first"), "{shown}");
    repo.world.run_printed_commands(&shown);
}

#[test]
fn trust_that_was_said_is_offered_with_the_merge() {
    let repo = GitProject::untrusted(SUBMIT_CONFIG);
    repo.set_agent("echo b > b.txt").add_task("First");
    let ran = repo.run_ready_tasks();
    assert!(
        ran.stdout.ends_with("  next: windlass change merge T1 --trust  # look first: windlass change show T1\n"),
        "{ran}"
    );
    let shown = repo.world.run_ok(&["task", "show", "T1"]);
    assert!(
        shown.contains("windlass change merge T1  # not trusted now: see `windlass trust`, or say --trust\n"),
        "{shown}"
    );
    repo.world.with_windlass().run_printed_commands(&ran.stdout);
}

#[test]
fn task_held_by_person_offers_to_take_it_away() {
    let GitProject { world } = create_killed_task_session();
    world.run_ok(&["task", "claim", "T2", "--owner", "ann", "--lease", "1h"]);
    let shown = command_outputs(&world, &[&["run", "--task", "T2", "--agent", "command:agent"], &["status"]]);
    assert!(world.run_printed_commands(&shown).contains(&"windlass task release T2 --force".to_owned()), "{shown}");
}

#[test]
fn task_begun_in_place_is_told_by_status() {
    let repo = GitProject::new("");
    let half = "cat > /dev/null; test -e half.txt && echo '<promise>COMPLETE</promise>' && exit; echo half > half.txt; \
                echo '<promise>BLOCKED</promise>'";
    repo.write_program("agent", half);
    assert_eq!(repo.world.run(&["run", "Do it here", "--agent", "command:agent"]).code, 4);
    repo.world.run_ok(&["answer", "T1", "continue"]);
    let world = repo.world.with_windlass();
    let shown = world.run_ok(&["status"]);
    let note = "T1: started in place; `windlass run --task T1 --agent command:agent` resumes it there\n";
    assert!(shown.contains(note), "{shown}");
    world.run_printed_commands(&shown);
}

#[test]
fn ended_sessions_offer_what_their_tasks_take() {
    for (config, agent, code) in [
        ("", "echo work", 3),
        ("", "echo '<promise>BLOCKED</promise>'", 4),
        ("on_retry_limit: ask\nlimits: {max_hook_retries: 0}\nhooks: {stop: [{command: exit 2}]}", COMPLETING_AGENT, 4),
        ("hooks: {stop: [{command: 'echo no; exit 2'}]}\nlimits: {max_hook_retries: 0}", COMPLETING_AGENT, 4),
    ] {
        let world = crate::test_run::create_agent_project(config, agent);
        let ran = world.run(&[RUN, &["--max-iterations", "1"]].concat());
        assert!(ran.code == code && ran.stdout.contains("  next: "), "{ran}");
        let shown =
            ran.stdout + &world.run_ok(&["status"]) + &world.run_ok(&["session", "show", "mend-the-pump-e01275de"]);
        world.with_windlass().run_printed_commands(&shown);
    }
}
