//! Every printed command can be typed, in every state in which it is printed.

use std::process::Stdio;

use crate::support::World;
use crate::support::delivered::Repo;
use crate::test_next::{escalated, left};
use crate::test_run::RUN;

const AGENT: &[&str] = &["--agent", "command:sh agent.sh"];
const DONE: &str = "cat > /dev/null; echo '<promise>COMPLETE</promise>'\n";
const CHANGES: &str = "hooks: {before_submit: [create_pr]}\n";

/// Returns the output of these commands, whether or not they are refused.
fn said(world: &World, commands: &[&[&str]]) -> String {
    let both = |words: &&[&str]| {
        let ran = world.run(words);
        format!("{}{}", ran.stdout, ran.stderr)
    };
    commands.iter().map(both).collect()
}

/// A repository whose session on T1 was killed in its first turn; T2 waits for T1, T3 is ready.
fn killed_on_task() -> Repo {
    let repo = Repo::new("");
    repo.add("Parse").add("Print");
    repo.world.ok(&["task", "add", "Join", "--depends", "T1"]);
    repo.program("agent", "cat > /dev/null; echo > $HOME/begun; exec sleep 1000");
    let words = ["run", "--task", "T1", "--agent", "command:agent"];
    let mut killed = repo.world.command(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while !repo.world.path("../home/begun").exists() {
        std::thread::yield_now();
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    repo.agent("echo work > work.txt");
    Repo { world: repo.world.with_windlass() }
}

#[test]
fn session_left_by_dead_process_offers_what_goes_on() {
    let world = left("");
    let shown = said(&world, &[&["status"], &["session", "show", "mend-the-pump-e01275de"], &["run"]]);
    let offers = world.types_offers(&shown);
    assert!(offers.iter().any(|offer| offer.starts_with("windlass run --session ")), "{offers:?}");
    let other = ["run", "Mend the pump", "--agent", "command:true"];
    assert!(!world.types_offers(&said(&world, &[&other])).is_empty());
}

#[test]
fn task_held_by_dead_session_is_told_with_what_leads_on() {
    let Repo { world } = killed_on_task();
    let held = "held by session `t1-parse`; next step: `windlass run --session t1-parse --agent command:agent`";
    world.ok(&["task", "block", "T2", "--reason", "later"]);
    let plain = world.run(&["run", "--agent", "command:agent"]);
    assert!(plain.code == 4 && plain.stdout.contains(held), "{plain}");
    let workers = world.run(&["run", "--workers", "2", "--agent", "command:true"]);
    assert!(workers.stdout.contains(held), "{workers}");
    world.ok(&["task", "unblock", "T2"]);

    let other = &["run", "--task", "T1", "--agent", "command:true"][..];
    let fresh = &["run", "--task", "T1", "--fresh", "--agent", "command:agent"][..];
    let below = &["run", "--task", "T3", "--agent", "command:agent"][..];
    let named = &["run", "--session", "t1-parse", "--agent", "command:true"][..];
    let shown = said(&world, &[other, fresh, below, named, &["status"], &["session", "show", "t1-parse"]]);
    assert!(!shown.contains("--fresh"), "another session cannot have the task: {shown}");
    world.types_offers(&shown);
    let workers = world.run(&["run", "--workers", "2", "--agent", "command:true", "--max-iterations", "1"]);
    assert!(workers.stdout.contains(held), "{workers}");
    assert!(workers.stdout.contains("next: windlass run --session t1-parse --agent command:agent\n"), "{workers}");
}

#[test]
fn blocked_and_failed_tasks_offer_answers_that_fit() {
    let world = escalated("");
    world.write("agent.sh", DONE);
    let shown = said(&world, &[&["status"], &["session", "show", "mend-the-pump-e01275de"], &["run", "--task", "T1"]]);
    world.types_offers(&shown);

    // A failed task cannot be told to continue.
    let world = World::with_tasks(&["Parse", "Print"]).with_windlass();
    world.write("agent.sh", DONE);
    world.ok(&["task", "fail", "T1", "--reason", "no parser"]);
    world.ok(&["task", "add", "Join", "--depends", "T1"]);
    let ran = world.run(&[&["run"], AGENT].concat());
    assert!(ran.stdout.contains("\n  next: windlass answer T1 retry\n"), "{ran}");
    let refused: [&[&str]; 2] = [&["run", "--task", "T1", "--agent", "command:true"], &["run", "--task", "T3"]];
    let shown = said(&world, &refused) + &ran.stdout + &world.ok(&["status"]) + &world.ok(&["why", "T3"]);
    assert!(world.types_offers(&shown).contains(&"windlass answer T1 retry".to_owned()), "{shown}");

    // There is nothing left to wait for: a person lets it go on.
    world.ok(&["task", "delete", "T1", "--force"]);
    let shown = said(&world, &[&["run", "--task", "T3", "--agent", "command:true"], &["status"]]);
    assert_eq!(world.types_offers(&shown), ["windlass answer T3 continue"], "{shown}");
}

#[test]
fn stacked_changes_offer_the_lowest_one() {
    let repo = Repo::new(CHANGES);
    repo.agent("f=$(git branch --show-current | tr / -); echo b > $f; git add .; git commit -qm one");
    repo.add("First");
    repo.world.ok(&["task", "add", "Second", "--depends", "T1"]);
    repo.world.ok(&["trust", "--yes"]);
    let first = repo.world.run(&["run", "--agent", "command:agent"]);
    let merge = "windlass change merge T1  # look first: windlass change show T1\n";
    assert!(first.stdout.ends_with(&format!("  next: {merge}")), "{first}");
    let repo = Repo { world: repo.world.with_windlass() };
    let shown = first.stdout + &said(&repo.world, &[&["task", "show", "T2"], &["why", "T2"], &["change", "list"]]);
    assert!(shown.contains(&format!("next          {merge}")) && !shown.contains("change merge T2"), "{shown}");
    repo.world.types_offers(&shown);

    // The task below was reopened: its work comes first.
    repo.world.ok(&["task", "reopen", "T1", "--force", "--reason", "not yet"]);
    let shown = repo.world.ok(&["task", "show", "T2"]);
    assert!(shown.contains("next          windlass run --task T1 --agent command:agent\n"), "{shown}");
    repo.world.types_offers(&shown);
    let refused = repo.world.fails(&["change", "merge", "T2"]);
    assert!(refused.contains("hint: T1 is ready: its work must be accepted first; `windlass why T1`"), "{refused}");
}

#[test]
fn unclean_tree_of_the_base_offers_what_comes_before_the_merge() {
    let repo = Repo::new("hooks:\n  before_submit: [create_pr]\n  before_merge: [merge_pr]\n");
    repo.agent("echo b > b.txt").add("First");
    repo.world.write("a.txt", "mine\n");
    let ran = repo.run();
    assert_eq!(ran.code, 4, "{ran}");
    let first = "commit or stash a.txt, or switch that tree to another branch";
    assert!(ran.stdout.contains(&format!("; {first}, then `windlass change merge T1` merges it there")), "{ran}");
    let repo = Repo { world: repo.world.with_windlass() };
    let all: &[&[&str]] = &[&["status"], &["task", "show", "T1"], &["why", "T1"], &["change", "list"]];
    let shown = ran.stdout + &said(&repo.world, all);
    let place = repo.world.path("").canonicalize().unwrap();
    let status = format!("git -C {} status  # {first}; then windlass change merge T1\n", place.display());
    assert!(
        shown.contains(&format!("next          {status}")) && shown.contains(&format!("next: {status}")),
        "{shown}"
    );
    repo.world.types_offers(&shown);
    let resolved = repo.world.fails(&["run", "--resolve", "T1", "--agent", "command:agent"]);
    assert!(resolved.contains(&format!("{first}, then `windlass change merge T1` merges it")), "{resolved}");

    repo.git(&["stash", "-q"]);
    let shown = said(&repo.world, all);
    assert!(shown.contains("next          windlass change merge T1  # look first"), "{shown}");
    repo.world.types_offers(&shown);
}

#[test]
fn trust_that_was_said_is_offered_with_the_merge() {
    let repo = Repo::untrusted(CHANGES);
    repo.agent("echo b > b.txt").add("First");
    let ran = repo.run();
    assert!(
        ran.stdout.ends_with("  next: windlass change merge T1 --trust  # look first: windlass change show T1\n"),
        "{ran}"
    );
    let shown = repo.world.ok(&["task", "show", "T1"]);
    assert!(
        shown.contains("windlass change merge T1  # not trusted now: see `windlass trust`, or say --trust\n"),
        "{shown}"
    );
    repo.world.with_windlass().types_offers(&ran.stdout);
}

#[test]
fn task_held_by_person_offers_to_take_it_away() {
    let Repo { world } = killed_on_task();
    world.ok(&["task", "claim", "T2", "--owner", "ann", "--lease", "1h"]);
    let shown = said(&world, &[&["run", "--task", "T2", "--agent", "command:agent"], &["status"]]);
    assert!(world.types_offers(&shown).contains(&"windlass task release T2 --force".to_owned()), "{shown}");
}

#[test]
fn task_begun_in_place_is_told_by_status() {
    let repo = Repo::new("");
    let half = "cat > /dev/null; test -e half.txt && echo '<promise>COMPLETE</promise>' && exit; echo half > half.txt; \
                echo '<promise>BLOCKED</promise>'";
    repo.program("agent", half);
    assert_eq!(repo.world.run(&["run", "Do it here", "--agent", "command:agent"]).code, 4);
    repo.world.ok(&["answer", "T1", "continue"]);
    let world = repo.world.with_windlass();
    let shown = world.ok(&["status"]);
    let note = "T1: started in place; `windlass run --task T1 --agent command:agent` resumes it there\n";
    assert!(shown.contains(note), "{shown}");
    world.types_offers(&shown);
}

#[test]
fn ended_sessions_offer_what_their_tasks_take() {
    for (config, agent, code) in [
        ("", "echo work", 3),
        ("", "echo '<promise>BLOCKED</promise>'", 4),
        ("on_retry_limit: ask\nlimits: {max_hook_retries: 0}\nhooks: {stop: [{command: exit 2}]}", DONE, 4),
        ("hooks: {stop: [{command: 'echo no; exit 2'}]}\nlimits: {max_hook_retries: 0}", DONE, 4),
    ] {
        let world = crate::test_run::world(config, agent);
        let ran = world.run(&[RUN, &["--max-iterations", "1"]].concat());
        assert!(ran.code == code && ran.stdout.contains("  next: "), "{ran}");
        let shown = ran.stdout + &world.ok(&["status"]) + &world.ok(&["session", "show", "mend-the-pump-e01275de"]);
        world.with_windlass().types_offers(&shown);
    }
}
