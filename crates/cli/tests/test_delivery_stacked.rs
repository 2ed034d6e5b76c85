//! Work that is stacked on the work of other tasks.

use crate::support::delivered::Repo;

const CHANGES: &str = "hooks: {before_submit: [create_pr]}\n";
/// Each task commits twice to a file of its own, the second time over the first.
const OWN: &str = "f=$(git branch --show-current | tr / -)\necho b > $f; git add .; git commit -qm one; echo c > $f; git commit -qam two";

fn stacked(remote: bool) -> Repo {
    let repo = if remote { Repo::with_remote(CHANGES) } else { Repo::new(CHANGES) };
    repo.agent(OWN).add("First");
    repo.world.ok(&["task", "add", "Second", "--depends", "T1"]);
    let ran = repo.run();
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("in a worktree, on windlass/t2-second on top of T1"), "{ran}");
    repo
}

fn by_others(repo: &Repo, script: &str) {
    let others = repo.push_from_other_clone(script);
    let ran = repo.world.finish(&mut repo.world.program(others.to_str().unwrap()));
    assert_eq!(ran.code, 0, "{ran}");
}

#[test]
fn it_goes_along_when_what_is_below_was_rebased_and_merged() {
    let repo = stacked(true);
    by_others(&repo, "echo y > other.txt");
    repo.world.ok(&["change", "merge", "T1", "--trust"]);
    let seen = repo.world.json(&["change", "show", "T2"]);
    assert_eq!((seen["log"].as_array().unwrap().len(), &seen["stackedOn"][0]), (2, &"T1".into()), "{seen}");
    repo.world.ok(&["change", "merge", "T2", "--trust"]);
    repo.git(&["fetch", "-q"]);
    assert_eq!(repo.file("origin/main:windlass-t2-second"), "c");
}

/// With it would come work that is not merged.
#[test]
fn it_is_not_merged_before_what_is_below() {
    let repo = Repo::with_remote(&format!("{CHANGES}task_types: {{docs: {{hooks: {{before_merge: [merge_pr]}}}}}}\n"));
    repo.agent(OWN).add("First");
    repo.world.ok(&["task", "add", "Second", "--type", "docs", "--depends", "T1"]);
    let ran = repo.run();
    assert_eq!(ran.code, 4, "{ran}");
    let why = "it stands on the work of T1, whose change is not merged yet; `windlass change merge T1` first";
    assert!(ran.stdout.contains(why), "{ran}");
    assert_eq!(repo.git_in(&repo.remote(), &["log", "--format=%s", "main"]), "Begin");
}

#[test]
fn what_a_person_has_merged_or_squashed_counts() {
    for how in ["--no-ff -m Merged", "--squash"] {
        let repo = stacked(true);
        by_others(&repo, &format!("git merge -q {how} origin/windlass/t1-first; echo x > x.txt"));
        repo.world.ok(&["change", "merge", "T2", "--trust"]);
        repo.git(&["fetch", "-q"]);
        assert_eq!(repo.file("origin/main:windlass-t2-second"), "c");
        let noted = repo.world.ok(&["change", "merge", "T1", "--trust"]);
        assert!(noted.contains("already in") && !noted.contains("rebased"), "{noted}");
    }
}

#[test]
fn a_deleted_task_below_leads_into_no_dead_end() {
    let repo = stacked(false);
    repo.world.ok(&["task", "delete", "T1", "--force"]);
    let refused = repo.world.fails(&["change", "merge", "T2", "--trust"]);
    assert!(refused.contains("it stands on the work of T1, which was deleted and is not merged"), "{refused}");
    let told = refused.split("`git ").nth(1).and_then(|rest| rest.split('`').next()).expect("a way out");
    let words: Vec<&str> = told.split(' ').collect();
    repo.git_in(&repo.world.path(".windlass/worktrees/t2-second"), &words);
    repo.world.ok(&["change", "merge", "T2", "--trust"]);
    assert_eq!(
        repo.git(&["ls-tree", "--name-only", "main", "windlass-t1-first", "windlass-t2-second"]),
        "windlass-t2-second"
    );
}

#[test]
fn on_two_tasks_only_its_own_is_its_own() {
    let repo = Repo::new(CHANGES);
    repo.agent(OWN).add("First").add("Second");
    repo.world.ok(&["task", "add", "Join", "--depends", "T1", "--depends", "T2"]);
    let ran = repo.run();
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("in a worktree, on windlass/t3-join on top of T1, T2"), "{ran}");
    let seen = repo.world.json(&["change", "show", "T3"]);
    let subjects: Vec<_> = seen["log"].as_array().unwrap().iter().map(|commit| commit["subject"].clone()).collect();
    assert_eq!((subjects, seen["changed"].as_array().unwrap().len()), (vec!["two".into(), "one".into()], 1), "{seen}");
    assert!(repo.world.ok(&["change", "list"]).contains("windlass/t3-join → main on top of T1, T2"));
    assert!(repo.world.ok(&["change", "show", "T3"]).contains("\n  on top of T1, T2\n"));
    for id in ["T1", "T2", "T3"] {
        repo.world.ok(&["change", "merge", id, "--trust"]);
    }
    assert_eq!(repo.file("main:windlass-t3-join"), "c");
    let shown = repo.git(&["log", "--format=%s", "main"]);
    assert!(!shown.contains("to start from both"), "{shown}");
}

#[test]
fn tasks_that_do_not_go_together_are_named() {
    let repo = Repo::new(CHANGES);
    repo.agent("git branch --show-current > same.txt").add("First").add("Second");
    repo.world.ok(&["task", "add", "Join", "--depends", "T1", "--depends", "T2"]);
    repo.run();
    let why = repo.world.ok(&["why", "T3"]);
    assert!(why.contains("cannot combine T1 and T2: both change same.txt"), "{why}");
}

#[test]
fn commits_that_change_nothing_are_nothing_to_submit() {
    for script in
        ["git commit -q --allow-empty -m Nothing", "others; git fetch -q; git merge -q --no-ff -m Newer origin/main"]
    {
        let repo = Repo::with_remote(CHANGES);
        repo.push_from_other_clone("echo y > other.txt");
        repo.agent(script).add("Do nothing");
        let ran = repo.world.run(&["run", "--trust", "--agent", "command:agent", "--max-iterations", "1"]);
        assert!(ran.code != 0 && repo.events("change_opened").is_empty(), "{ran}");
        let task = repo.task("T1");
        assert!(task["reason"].as_str().unwrap_or_default().starts_with("no_changes"), "{task}");
    }
}

/// Two tasks side by side, of which one is merged, and a third one that needs both.
fn half_merged(script: &str) -> Repo {
    let repo = Repo::new(CHANGES);
    repo.agent(script).add("First").add("Second");
    assert_eq!(repo.run().code, 0);
    repo.world.ok(&["change", "merge", "T1", "--trust"]);
    repo
}

#[test]
fn what_is_merged_is_there_beside_what_is_not() {
    let repo = half_merged(OWN);
    repo.world.ok(&["task", "add", "Join", "--depends", "T1", "--depends", "T2"]);
    repo.agent(&format!("cat windlass-t1-first windlass-t2-second > both || exit 1; {OWN}"));
    let ran = repo.run();
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("in a worktree, on windlass/t3-join on top of T2\n"), "{ran}");
    assert_eq!(repo.file("windlass/t3-join:both"), "c\nc");
    let seen = repo.world.json(&["change", "show", "T3"]);
    assert_eq!((seen["log"].as_array().unwrap().len(), seen["changed"].as_array().unwrap().len()), (2, 2), "{seen}");
    repo.world.ok(&["change", "merge", "T2", "--trust"]);
    repo.world.ok(&["change", "merge", "T3", "--trust"]);
    assert_eq!(repo.file("main:both"), "c\nc");
    let shown = repo.git(&["log", "--format=%s", "main"]);
    assert!(!shown.contains("to start from both"), "{shown}");
}

#[test]
fn a_base_that_is_in_the_way_counts_where_it_is_needed() {
    let repo = half_merged("git branch --show-current > same.txt");
    repo.world.ok(&["task", "add", "Both", "--depends", "T1", "--depends", "T2"]);
    repo.world.ok(&["task", "add", "One", "--depends", "T2"]);
    repo.agent("echo x > own.txt");
    let ran = repo.run();
    assert!(ran.stdout.contains("on windlass/t4-one on top of T2\n"), "{ran}");
    let why = repo.world.ok(&["why", "T3"]);
    assert!(why.contains("cannot combine T2 and main: both change same.txt"), "{why}");
}

#[test]
fn base_is_not_needed_for_a_task_completed_by_hand_without_commits() {
    let repo = Repo::new(CHANGES);
    repo.agent("case $PWD in *t1-*) ;; *) echo x > same.txt;; esac").add("First").add("Second");
    repo.run();
    repo.world.ok(&["task", "complete", "T1", "--force"]);
    repo.world.write("same.txt", "y");
    repo.git(&["add", "same.txt"]);
    repo.git(&["commit", "-qm", "Main"]);
    repo.world.ok(&["task", "add", "Join", "--depends", "T1", "--depends", "T2"]);
    repo.agent("echo x > own.txt");
    let ran = repo.run();
    assert!(ran.stdout.contains("in a worktree, on windlass/t3-join on top of T2\n"), "{ran}");
}

/// A list at `before_submit` without `create_pr` opens no change.
#[test]
fn task_starts_from_completed_work_that_has_no_change() {
    for how in [&["run"][..], &["run", "--workers", "1"]] {
        let repo = Repo::new("hooks: {before_submit: [{name: lint, command: 'true'}]}\n");
        let run = || repo.world.run(&[how, &["--trust", "--agent", "command:agent"]].concat());
        repo.agent(OWN).add("First");
        let ran = run();
        assert_eq!(ran.code, 0, "{ran}");
        let note = "no change was opened for T1: its work is on the branch windlass/t1-first; `create_pr` at `before_submit` opens one\n";
        assert!(ran.stdout.contains(note), "{ran}");
        repo.world.ok(&["task", "add", "Second", "--depends", "T1"]);
        let ran = run();
        assert_eq!(ran.code, 0, "{ran}");
        assert_eq!(repo.file("windlass/t2-second:windlass-t1-first"), "c", "{ran}");
        assert_eq!(repo.git(&["rev-list", "--count", "windlass/t1-first..windlass/t2-second"]), "2");
    }
}

#[test]
fn work_without_a_change_is_noted_after_eight_tasks_that_have_none() {
    for how in [&["run"][..], &["run", "--workers", "1"]] {
        let repo = Repo::new(
            "hooks: {before_submit: [{name: lint, command: 'true'}]}\ntask_types: {audit: {result: report}, code: {}}\n",
        );
        repo.agent("echo x > x.txt; echo Done.");
        for at in 1..=17 {
            repo.world.ok(&["task", "add", "Work", "--type", if at <= 8 { "audit" } else { "code" }]);
        }
        let ran = repo.world.run(&[how, &["--trust", "--agent", "command:agent"]].concat());
        assert_eq!(ran.code, 0, "{ran}");
        for id in 9..=16 {
            assert!(ran.stdout.contains(&format!("no change was opened for T{id}: ")), "{id}\n{ran}");
        }
        let more = "1 more completed without a change: `windlass task show ID` names the branch\n";
        assert!(ran.stdout.contains(more), "{ran}");
        assert!(repo.world.ok(&["task", "show", "T17"]).contains("windlass/t17-work"));
    }
}

#[test]
fn change_is_merged_after_work_without_a_change_below() {
    let repo = Repo::new(
        "hooks: {before_submit: [{name: lint, command: 'true'}]}\n\
         task_types: {docs: {hooks: {before_submit: [create_pr]}}}\n",
    );
    repo.agent(OWN).add("First");
    repo.world.ok(&["task", "add", "Second", "--type", "docs", "--depends", "T1"]);
    let ran = repo.run();
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("next: windlass change show T2\n"), "{ran}");
    let refused = repo.world.fails(&["change", "merge", "T2", "--trust"]);
    assert!(refused.contains("it stands on the work of T1, which has no change and is not merged yet"), "{refused}");
    assert!(refused.contains("merge the branch windlass/t1-first of T1 into main yourself first"), "{refused}");
    repo.git(&["merge", "-q", "--no-ff", "-m", "By hand", "windlass/t1-first"]);
    repo.world.ok(&["change", "merge", "T2", "--trust"]);
    assert_eq!((repo.file("main:windlass-t1-first"), repo.file("main:windlass-t2-second")), ("c".into(), "c".into()));
}
