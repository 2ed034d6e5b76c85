//! Work that is stacked on the work of other tasks.

use crate::support::git_project::GitProject;

const SUBMIT_CONFIG: &str = "hooks: {before_submit: [create_pr]}\n";
/// Each task commits twice to a file of its own, the second time over the first.
const TWO_COMMITS_AGENT: &str = "f=$(git branch --show-current | tr / -)\necho b > $f; git add .; git commit -qm one; echo c > $f; git commit -qam two";

fn create_stacked_changes(remote: bool) -> GitProject {
    let repo = if remote { GitProject::with_remote(SUBMIT_CONFIG) } else { GitProject::new(SUBMIT_CONFIG) };
    repo.set_agent(TWO_COMMITS_AGENT).add_task("First");
    repo.world.run_ok(&["task", "add", "Second", "--depends", "T1"]);
    let ran = repo.run_ready_tasks();
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("in a worktree, on windlass/t2-second on top of T1"), "{ran}");
    repo
}

fn push_by_others(repo: &GitProject, script: &str) {
    let others = repo.push_from_other_clone(script);
    let ran = repo.world.run_command(&mut repo.world.program(others.to_str().unwrap()));
    assert_eq!(ran.code, 0, "{ran}");
}

#[test]
fn stacked_change_merges_after_parent_was_rebased_and_merged() {
    let repo = create_stacked_changes(true);
    push_by_others(&repo, "echo y > other.txt");
    repo.world.run_ok(&["change", "merge", "T1", "--trust"]);
    let seen = repo.world.json(&["change", "show", "T2"]);
    assert_eq!((seen["log"].as_array().unwrap().len(), &seen["stackedOn"][0]), (2, &"T1".into()), "{seen}");
    repo.world.run_ok(&["change", "merge", "T2", "--trust"]);
    repo.git(&["fetch", "-q"]);
    assert_eq!(repo.show_file("origin/main:windlass-t2-second"), "c");
}

/// With it would come work that is not merged.
#[test]
fn stacked_change_merge_is_refused_until_parent_is_merged() {
    let repo = GitProject::with_remote(&format!(
        "{SUBMIT_CONFIG}task_types: {{docs: {{hooks: {{before_merge: [merge_pr]}}}}}}\n"
    ));
    repo.set_agent(TWO_COMMITS_AGENT).add_task("First");
    repo.world.run_ok(&["task", "add", "Second", "--type", "docs", "--depends", "T1"]);
    let ran = repo.run_ready_tasks();
    assert_eq!(ran.code, 4, "{ran}");
    let why = "it stands on the work of T1, whose change is not merged yet; `windlass change merge T1` first";
    assert!(ran.stdout.contains(why), "{ran}");
    assert_eq!(repo.git_in(&repo.remote_path(), &["log", "--format=%s", "main"]), "Begin");
}

#[test]
fn stacked_change_merges_after_parent_was_manually_merged_or_squashed() {
    for how in ["--no-ff -m Merged", "--squash"] {
        let repo = create_stacked_changes(true);
        push_by_others(&repo, &format!("git merge -q {how} origin/windlass/t1-first; echo x > x.txt"));
        repo.world.run_ok(&["change", "merge", "T2", "--trust"]);
        repo.git(&["fetch", "-q"]);
        assert_eq!(repo.show_file("origin/main:windlass-t2-second"), "c");
        let noted = repo.world.run_ok(&["change", "merge", "T1", "--trust"]);
        assert!(noted.contains("already in") && !noted.contains("rebased"), "{noted}");
    }
}

#[test]
fn change_stacked_on_deleted_task_merges_after_hinted_git_command() {
    let repo = create_stacked_changes(false);
    repo.world.run_ok(&["task", "delete", "T1", "--force"]);
    let refused = repo.world.expect_failure(&["change", "merge", "T2", "--trust"]);
    assert!(refused.contains("it stands on the work of T1, which was deleted and is not merged"), "{refused}");
    let told = refused.split("`git ").nth(1).and_then(|rest| rest.split('`').next()).expect("a way out");
    let words: Vec<&str> = told.split(' ').collect();
    repo.git_in(&repo.world.path(".windlass/worktrees/t2-second"), &words);
    repo.world.run_ok(&["change", "merge", "T2", "--trust"]);
    assert_eq!(
        repo.git(&["ls-tree", "--name-only", "main", "windlass-t1-first", "windlass-t2-second"]),
        "windlass-t2-second"
    );
}

#[test]
fn change_stacked_on_two_tasks_lists_only_own_commits() {
    let repo = GitProject::new(SUBMIT_CONFIG);
    repo.set_agent(TWO_COMMITS_AGENT).add_task("First").add_task("Second");
    repo.world.run_ok(&["task", "add", "Join", "--depends", "T1", "--depends", "T2"]);
    let ran = repo.run_ready_tasks();
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("in a worktree, on windlass/t3-join on top of T1, T2"), "{ran}");
    let seen = repo.world.json(&["change", "show", "T3"]);
    let subjects: Vec<_> = seen["log"].as_array().unwrap().iter().map(|commit| commit["subject"].clone()).collect();
    assert_eq!((subjects, seen["changed"].as_array().unwrap().len()), (vec!["two".into(), "one".into()], 1), "{seen}");
    assert!(repo.world.run_ok(&["change", "list"]).contains("windlass/t3-join → main on top of T1, T2"));
    assert!(repo.world.run_ok(&["change", "show", "T3"]).contains("\n  on top of T1, T2\n"));
    for id in ["T1", "T2", "T3"] {
        repo.world.run_ok(&["change", "merge", id, "--trust"]);
    }
    assert_eq!(repo.show_file("main:windlass-t3-join"), "c");
    let shown = repo.git(&["log", "--format=%s", "main"]);
    assert!(!shown.contains("to start from both"), "{shown}");
}

#[test]
fn tasks_that_do_not_go_together_are_named() {
    let repo = GitProject::new(SUBMIT_CONFIG);
    repo.set_agent("git branch --show-current > same.txt").add_task("First").add_task("Second");
    repo.world.run_ok(&["task", "add", "Join", "--depends", "T1", "--depends", "T2"]);
    repo.run_ready_tasks();
    let why = repo.world.run_ok(&["why", "T3"]);
    assert!(why.contains("cannot combine T1 and T2: both change same.txt"), "{why}");
}

#[test]
fn commits_that_change_nothing_are_nothing_to_submit() {
    for script in
        ["git commit -q --allow-empty -m Nothing", "others; git fetch -q; git merge -q --no-ff -m Newer origin/main"]
    {
        let repo = GitProject::with_remote(SUBMIT_CONFIG);
        repo.push_from_other_clone("echo y > other.txt");
        repo.set_agent(script).add_task("Do nothing");
        let ran = repo.world.run(&["run", "--trust", "--agent", "command:agent", "--max-iterations", "1"]);
        assert!(ran.code != 0 && repo.events_of_type("change_opened").is_empty(), "{ran}");
        let task = repo.show_task("T1");
        assert!(task["reason"].as_str().unwrap_or_default().starts_with("no changes: "), "{task}");
    }
}

/// Two tasks side by side, of which one is merged, and a third one that needs both.
fn create_half_merged_project(script: &str) -> GitProject {
    let repo = GitProject::new(SUBMIT_CONFIG);
    repo.set_agent(script).add_task("First").add_task("Second");
    assert_eq!(repo.run_ready_tasks().code, 0);
    repo.world.run_ok(&["change", "merge", "T1", "--trust"]);
    repo
}

#[test]
fn worktree_contains_work_of_merged_and_unmerged_dependencies() {
    let repo = create_half_merged_project(TWO_COMMITS_AGENT);
    repo.world.run_ok(&["task", "add", "Join", "--depends", "T1", "--depends", "T2"]);
    repo.set_agent(&format!("cat windlass-t1-first windlass-t2-second > both || exit 1; {TWO_COMMITS_AGENT}"));
    let ran = repo.run_ready_tasks();
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("in a worktree, on windlass/t3-join on top of T2\n"), "{ran}");
    assert_eq!(repo.show_file("windlass/t3-join:both"), "c\nc");
    let seen = repo.world.json(&["change", "show", "T3"]);
    assert_eq!((seen["log"].as_array().unwrap().len(), seen["changed"].as_array().unwrap().len()), (2, 2), "{seen}");
    repo.world.run_ok(&["change", "merge", "T2", "--trust"]);
    repo.world.run_ok(&["change", "merge", "T3", "--trust"]);
    assert_eq!(repo.show_file("main:both"), "c\nc");
    let shown = repo.git(&["log", "--format=%s", "main"]);
    assert!(!shown.contains("to start from both"), "{shown}");
}

#[test]
fn base_conflict_blocks_only_task_that_needs_merged_work() {
    let repo = create_half_merged_project("git branch --show-current > same.txt");
    repo.world.run_ok(&["task", "add", "Both", "--depends", "T1", "--depends", "T2"]);
    repo.world.run_ok(&["task", "add", "One", "--depends", "T2"]);
    repo.set_agent("echo x > own.txt");
    let ran = repo.run_ready_tasks();
    assert!(ran.stdout.contains("on windlass/t4-one on top of T2\n"), "{ran}");
    let why = repo.world.run_ok(&["why", "T3"]);
    assert!(why.contains("cannot combine T2 and main: both change same.txt"), "{why}");
}

#[test]
fn base_is_not_needed_for_a_task_completed_by_hand_without_commits() {
    let repo = GitProject::new(SUBMIT_CONFIG);
    repo.set_agent("case $PWD in *t1-*) ;; *) echo x > same.txt;; esac").add_task("First").add_task("Second");
    repo.run_ready_tasks();
    repo.world.run_ok(&["task", "complete", "T1", "--force"]);
    repo.world.write("same.txt", "y");
    repo.git(&["add", "same.txt"]);
    repo.git(&["commit", "-qm", "Main"]);
    repo.world.run_ok(&["task", "add", "Join", "--depends", "T1", "--depends", "T2"]);
    repo.set_agent("echo x > own.txt");
    let ran = repo.run_ready_tasks();
    assert!(ran.stdout.contains("in a worktree, on windlass/t3-join on top of T2\n"), "{ran}");
}

/// A list at `before_submit` without `create_pr` opens no change.
#[test]
fn task_starts_from_completed_work_that_has_no_change() {
    for how in [&["run"][..], &["run", "--workers", "1"]] {
        let repo = GitProject::new("hooks: {before_submit: [{name: lint, command: 'true'}]}\n");
        let run = || repo.world.run(&[how, &["--trust", "--agent", "command:agent"]].concat());
        repo.set_agent(TWO_COMMITS_AGENT).add_task("First");
        let ran = run();
        assert_eq!(ran.code, 0, "{ran}");
        let note = "no change was opened for T1: its work is on the branch windlass/t1-first; `create_pr` at `before_submit` opens one\n";
        assert!(ran.stdout.contains(note), "{ran}");
        repo.world.run_ok(&["task", "add", "Second", "--depends", "T1"]);
        let ran = run();
        assert_eq!(ran.code, 0, "{ran}");
        assert_eq!(repo.show_file("windlass/t2-second:windlass-t1-first"), "c", "{ran}");
        assert_eq!(repo.git(&["rev-list", "--count", "windlass/t1-first..windlass/t2-second"]), "2");
    }
}

#[test]
fn work_without_a_change_is_noted_after_eight_tasks_that_have_none() {
    for how in [&["run"][..], &["run", "--workers", "1"]] {
        let repo = GitProject::new(
            "hooks: {before_submit: [{name: lint, command: 'true'}]}\ntask_types: {audit: {result: report}, code: {}}\n",
        );
        repo.set_agent("echo x > x.txt; echo Done.");
        for at in 1..=17 {
            repo.world.run_ok(&["task", "add", "Work", "--type", if at <= 8 { "audit" } else { "code" }]);
        }
        let ran = repo.world.run(&[how, &["--trust", "--agent", "command:agent"]].concat());
        assert_eq!(ran.code, 0, "{ran}");
        for id in 9..=16 {
            assert!(ran.stdout.contains(&format!("no change was opened for T{id}: ")), "{id}\n{ran}");
        }
        let more = "1 more completed without a change: `windlass task show ID` names the branch\n";
        assert!(ran.stdout.contains(more), "{ran}");
        assert!(repo.world.run_ok(&["task", "show", "T17"]).contains("windlass/t17-work"));
    }
}

#[test]
fn change_is_merged_after_work_without_a_change_below() {
    let repo = GitProject::new(
        "hooks: {before_submit: [{name: lint, command: 'true'}]}\n\
         task_types: {docs: {hooks: {before_submit: [create_pr]}}}\n",
    );
    repo.set_agent(TWO_COMMITS_AGENT).add_task("First");
    repo.world.run_ok(&["task", "add", "Second", "--type", "docs", "--depends", "T1"]);
    let ran = repo.run_ready_tasks();
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("next: windlass change show T2\n"), "{ran}");
    let refused = repo.world.expect_failure(&["change", "merge", "T2", "--trust"]);
    assert!(refused.contains("it stands on the work of T1, which has no change and is not merged yet"), "{refused}");
    assert!(refused.contains("merge the branch windlass/t1-first of T1 into main yourself first"), "{refused}");
    repo.git(&["merge", "-q", "--no-ff", "-m", "By hand", "windlass/t1-first"]);
    repo.world.run_ok(&["change", "merge", "T2", "--trust"]);
    assert_eq!(
        (repo.show_file("main:windlass-t1-first"), repo.show_file("main:windlass-t2-second")),
        ("c".into(), "c".into())
    );
}
