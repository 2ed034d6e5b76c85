//! Commits that reach the base without Windlass: pushed by an agent, or merged by a person with plain git.

use crate::support::git_project::GitProject;

const DELIVERY_CONFIG: &str = "hooks: {before_submit: [create_pr], before_merge: [merge_pr]}\n";
const WORKING_AGENT: &str = "cat > /dev/null; echo x > work.txt; git add -A; git commit -qm 'Do it'";

/// With a remote that can be reached from a worktree.
fn create_shared_remote() -> GitProject {
    let repo = GitProject::with_remote(DELIVERY_CONFIG);
    repo.git(&["remote", "set-url", "origin", repo.remote_path().to_str().unwrap()]);
    repo
}

#[test]
fn agent_push_to_base_blocks_task_until_person_approves() {
    for words in [&["run"][..], &["run", "--task", "T1"]] {
        let repo = create_shared_remote();
        repo.set_agent(&format!("{WORKING_AGENT}; git push -q origin HEAD:main")).add_task("Work");
        let ran = repo.world.run(&[words, &["--trust", "--agent", "command:agent"]].concat());
        assert_eq!(ran.code, 4, "{ran}");
        let commit = repo.git(&["rev-parse", "--short=10", "origin/main"]);
        let task = repo.show_task("T1");
        let reason = task["blocked"]["reason"].as_str().unwrap();
        let told = format!(
            "origin/main has unjudged work of this task, and windlass has not merged it: {commit} (Do it, by Ann). "
        );
        assert!(reason.starts_with(&told), "{reason}");
        assert!(repo.events_of_type("change_merged").is_empty() && repo.events_of_type("pipeline_failed").is_empty());
        repo.world.run_ok(&["answer", "T1", "approve"]);
        assert_eq!(repo.show_task("T1")["state"], "completed");
        assert!(repo.events_of_type("change_merged").is_empty());
    }
}

/// A person who knows of the commits and lets the task go on is not asked again; later work is judged as usual.
#[test]
fn work_after_agent_push_is_judged_once_person_continues_task() {
    let repo = create_shared_remote();
    repo.set_agent(&format!(
        "test -f work.txt || {{ {WORKING_AGENT}; git push -q origin HEAD:main; }}\ndate +%s%N >> more.txt"
    ));
    let ran = repo.add_task("Work").run_ready_tasks();
    assert_eq!((ran.code, repo.events_of_type("change_opened").len()), (4, 0), "{ran}");
    repo.world.run_ok(&["answer", "T1", "continue", "leave it there"]);
    let ran = repo.run_ready_tasks();
    assert_eq!((ran.code, repo.events_of_type("change_merged").len()), (0, 1), "{ran}");
}

/// Only the runner can record that a person was told of a commit.
#[test]
fn commit_named_in_agent_question_is_still_reported_after_push() {
    let repo = create_shared_remote();
    repo.write_program(
        "agent",
        &format!("{WORKING_AGENT}; echo \"I need help with $(git rev-parse HEAD)\n<promise>BLOCKED</promise>\""),
    );
    assert_eq!(repo.add_task("Work").run_ready_tasks().code, 4);
    let commit = repo.git(&["rev-parse", "windlass/t1-work"]);
    assert!(repo.show_task("T1")["blocked"]["reason"].as_str().unwrap().contains(&commit));
    repo.world.run_ok(&["answer", "T1", "continue"]);
    repo.set_agent("cat > /dev/null; git push -q origin HEAD:main; date > more.txt");
    let ran = repo.run_ready_tasks();
    assert_eq!((ran.code, repo.events_of_type("change_opened").len()), (4, 0), "{ran}");
    assert!(ran.stdout.contains(&commit[..10]), "{ran}");
    assert_eq!(repo.show_task("T1")["blocked"]["commits"], serde_json::json!([commit]));
}

/// An incomplete reflog proves nothing; a person who has looked is not asked again.
#[test]
fn incomplete_reflog_blocks_task_until_person_continues_it() {
    for spoil in [
        "rm $(git rev-parse --git-path logs/HEAD)",
        ": > $(git rev-parse --git-path logs/HEAD)",
        "git reflog expire --expire=now --all",
        "git reflog delete HEAD@{0}; git -C ../../.. reflog delete windlass/t1-work@{0}",
        "git reflog delete --rewrite HEAD@{0}",
    ] {
        let repo = create_shared_remote();
        repo.set_agent(&format!(
            "test -f work.txt || {{ {WORKING_AGENT}; git push -q origin HEAD:main; {spoil}; }}\ndate > more.txt"
        ));
        let ran = repo.add_task("Work").run_ready_tasks();
        assert_eq!((ran.code, repo.events_of_type("change_opened").len()), (4, 0), "{spoil}\n{ran}");
        let told = "cannot tell whether origin/main has unjudged work of this task: cannot tell what was committed in ";
        assert!(repo.show_task("T1")["blocked"]["reason"].as_str().unwrap().starts_with(told), "{spoil}\n{ran}");
        repo.world.run_ok(&["answer", "T1", "continue"]);
        let ran = repo.run_ready_tasks();
        assert_eq!(ran.code, 0, "{spoil}\n{ran}");
    }
}

/// A commit counts under any subject that an agent gives it.
#[test]
fn pushed_commit_with_forged_reflog_action_is_reported() {
    let repo = create_shared_remote();
    repo.set_agent(&format!(
        "export GIT_REFLOG_ACTION='reset: moving to HEAD'; {WORKING_AGENT}; git push -q origin HEAD:main"
    ));
    let ran = repo.add_task("Work").run_ready_tasks();
    assert_eq!(ran.code, 4, "{ran}");
    assert!(ran.stdout.contains("has unjudged work of this task"), "{ran}");
}

/// Commits of others are no work of this task, and neither are commits that only look like it.
#[test]
fn commits_pulled_from_others_do_not_count_as_task_work() {
    for take in ["git pull -q origin main", "git fetch -q; git cherry-pick --ff origin/main >/dev/null"] {
        let repo = create_shared_remote();
        repo.push_from_other_clone("echo y > other.txt");
        repo.set_agent(&format!("cat > /dev/null; others; {take}")).add_task("Work");
        let ran = repo.world.run(&["run", "--trust", "--agent", "command:agent", "--max-iterations", "1"]);
        assert_eq!(ran.code, 3, "{take}\n{ran}");
        assert!(repo.show_task("T1")["reason"].as_str().unwrap().starts_with("no changes: "), "{take}");
    }
}

#[test]
fn agent_push_to_local_base_is_reported_as_unjudged_work() {
    let repo = GitProject::new(DELIVERY_CONFIG);
    repo.git(&["switch", "-q", "-c", "desk"]);
    let ran = repo.set_agent(&format!("{WORKING_AGENT}; git push -q . HEAD:main")).add_task("Work").run_ready_tasks();
    assert_eq!(ran.code, 4, "{ran}");
    assert!(ran.stdout.contains("main has unjudged work of this task"), "{ran}");
}

/// A change that a person has merged in their own way.
fn create_manual_merge(how: &str) -> GitProject {
    let repo = GitProject::new(
        "hooks: {before_submit: [create_pr], after_merge: [{command: echo $WINDLASS_TASK_ID >> merged.log}]}\n",
    );
    repo.set_agent("cat > /dev/null; echo one > one.txt; git add -A; git commit -qm One; echo two > two.txt")
        .add_task("Work");
    assert_eq!(repo.run_ready_tasks().code, 0);
    repo.world.write("theirs.txt", "x");
    repo.git(&["add", "theirs.txt"]);
    repo.git(&["commit", "-q", "-m", "Mine"]);
    let program = repo.write_program("merge-it", &format!("set -e; cd '{}'; {how}", repo.world.path("").display()));
    let ran = repo.world.run_command(&mut repo.world.program(program.to_str().unwrap()));
    assert_eq!(ran.code, 0, "{ran}");
    repo
}

fn changed_paths(shown: &serde_json::Value) -> Vec<&str> {
    shown["changed"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect()
}

const LATER_COMMIT: &str = "echo later > later.txt; git add later.txt; git commit -qm Later";

/// A person's statement of a merge leads to the same record: without later commits.
#[test]
fn change_merge_records_manual_merge_without_later_commits() {
    for (how, seen) in [
        ("git merge -q -m Theirs windlass/t1-work", "main has the branch windlass/t1-work"),
        (
            "git reset -q --hard HEAD~1; git merge -q --squash windlass/t1-work; git commit -qm Theirs",
            "main has all of it in one commit",
        ),
        ("git cherry-pick windlass/t1-work~1 windlass/t1-work >/dev/null", "main has all of it in other commits"),
        // The present files do not show the merge: later work has changed them.
        (
            "git cherry-pick windlass/t1-work~1 windlass/t1-work >/dev/null; echo 2 > two.txt; git commit -qam Two",
            "main has all of it in other commits",
        ),
    ] {
        let repo = create_manual_merge(&format!("{how}; {LATER_COMMIT}"));
        let merged = repo.world.run_ok(&["change", "merge", "T1", "--trust"]);
        assert_eq!(merged, format!("T1  already in main: {seen}\n"), "{how}");
        let later = repo.git(&["rev-parse", "main"]);
        let noted = repo.events_of_type("change_merged");
        assert_ne!(noted[0]["data"]["commit"].as_str(), Some(later.as_str()), "{how}");
        let shown = repo.world.json(&["change", "show", "T1"]);
        assert_eq!(
            (changed_paths(&shown), shown["seen"].as_str()),
            (vec!["one.txt", "two.txt"], Some(seen)),
            "{how}\n{shown}"
        );
    }
}

#[test]
fn manual_git_merge_is_detected_and_recorded_by_next_run() {
    for (how, seen) in [
        ("git merge -q -m Theirs windlass/t1-work", "main has the branch windlass/t1-work"),
        ("git merge -q --squash windlass/t1-work; git commit -qm Theirs", "main has all of it in other commits"),
        ("git cherry-pick windlass/t1-work~1 windlass/t1-work >/dev/null", "main has all of it in other commits"),
        (
            "git reset -q --hard HEAD~1; git merge -q --squash windlass/t1-work; git commit -qm Theirs",
            "main has all of it in one commit",
        ),
        ("git reset -q --hard HEAD~1; git merge -q --ff-only windlass/t1-work", "main has the branch windlass/t1-work"),
    ] {
        let repo = create_manual_merge(how);
        let listed = repo.world.run_ok(&["change", "list"]);
        let note = format!("\n  {seen}; `windlass change merge T1` or the next run records it\n");
        assert!(listed.starts_with("T1  merged  windlass/t1-work → main") && listed.contains(&note), "{how}\n{listed}");
        let shown = repo.world.json(&["change", "show", "T1"]);
        assert_eq!((shown["state"].as_str(), shown["seen"].as_str()), (Some("merged"), Some(seen)), "{how}");
        assert_eq!(changed_paths(&shown), ["one.txt", "two.txt"], "{how}\n{shown}");
        assert!(repo.events_of_type("change_merged").is_empty());

        let ran = repo.add_task("More").run_ready_tasks();
        let told = format!("  note: the change of T1 is merged: {seen}\n");
        assert!(ran.stdout.starts_with(&told) && !ran.stdout.contains("merged as"), "{how}\n{ran}");
        let noted = repo.events_of_type("change_merged");
        assert_eq!((noted.len(), noted[0]["data"]["seen"].as_str()), (1, Some(seen)), "{how}");
        assert!(!repo.world.path(".windlass/worktrees/t1-work").exists(), "{how}\n{ran}");
        assert_eq!(repo.git(&["branch", "--list", "windlass/t1-work"]), "", "{how}");
        let shown = repo.world.json(&["change", "show", "T1"]);
        assert_eq!(
            (changed_paths(&shown), shown["seen"].as_str()),
            (vec!["one.txt", "two.txt"], Some(seen)),
            "{how}\n{shown}"
        );
        assert_eq!(std::fs::read_to_string(repo.world.path("merged.log")).unwrap(), "T1\n", "{how}");
        let why = repo.world.run_ok(&["why", "T1"]);
        assert!(why.contains(seen), "{why}");
        repo.add_task("Still more").run_ready_tasks();
        assert_eq!(repo.events_of_type("change_merged").len(), 1, "{how}");
    }
}

/// A branch that was reset to the base, or is merged only in part, is not merged.
#[test]
fn change_merged_only_partly_or_reset_stays_open() {
    for how in
        ["git cherry-pick windlass/t1-work~1 >/dev/null", "git -C .windlass/worktrees/t1-work reset -q --hard main"]
    {
        let repo = create_manual_merge(how);
        assert!(repo.world.run_ok(&["change", "list"]).starts_with("T1  open"), "{how}");
        if how.contains("reset") {
            let refused = repo.world.expect_failure(&["change", "merge", "T1", "--trust"]);
            assert!(refused.contains("windlass/t1-work has no commits that main does not have"), "{refused}");
            assert!(refused.contains("hint: `git -C .windlass/worktrees/t1-work reset --hard "), "{refused}");
        }
        repo.add_task("More").run_ready_tasks();
        assert!(repo.events_of_type("change_merged").is_empty(), "{how}");
    }
}

/// Workers record it, too, from pushes of others.
#[test]
fn squash_merge_by_others_on_remote_is_recorded_by_workers() {
    let repo = GitProject::with_remote("hooks: {before_submit: [create_pr]}\n");
    repo.set_agent("cat > /dev/null; echo one > one.txt").add_task("Work");
    assert_eq!(repo.run_ready_tasks().code, 0);
    let others = repo.push_from_other_clone("git merge -q --squash origin/windlass/t1-work");
    assert_eq!(repo.world.run_command(&mut repo.world.program(others.to_str().unwrap())).code, 0);
    repo.add_task("More");
    repo.world.run(&["run", "--workers", "1", "--trust", "--agent", "command:agent"]);
    assert_eq!(repo.events_of_type("change_merged").len(), 1);
    assert!(!repo.world.path(".windlass/worktrees/t1-work").exists());
}

/// A run with nothing to work on records it, too, and says what it waits for.
#[test]
fn merge_by_others_is_recorded_when_no_task_is_ready() {
    let repo = GitProject::untrusted("hooks: {before_submit: [create_pr]}\n").push_to_remote();
    repo.set_agent("cat > /dev/null; echo one > one.txt").add_task("Work");
    assert_eq!(repo.run_ready_tasks().code, 0);
    let others = repo.push_from_other_clone("git merge -q --squash origin/windlass/t1-work");
    assert_eq!(repo.world.run_command(&mut repo.world.program(others.to_str().unwrap())).code, 0);
    let ran = repo.world.run(&["run", "--agent", "command:agent"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "every task is completed\n"), "{ran}");
    assert!(ran.stderr.contains("merged changes are not looked for: cannot use the configuration"), "{ran}");
    let ran = repo.run_ready_tasks();
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "every task is completed\n"), "{ran}");
    let told = "note: fetching origin/main, to see which changes are merged\nnote: the change of T1 is merged: ";
    assert!(ran.stderr.starts_with(told), "{ran}");
    assert_eq!(repo.events_of_type("change_merged").len(), 1);
    assert!(!repo.world.path(".windlass/worktrees/t1-work").exists());
    assert!(repo.run_ready_tasks().stderr.is_empty());
}

/// Work in place has no changes: no fetch delays it.
#[test]
fn work_in_place_fetches_nothing() {
    let repo = GitProject::with_remote("hooks: {before_submit: [create_pr]}\n");
    repo.set_agent("cat > /dev/null; echo one > one.txt").add_task("Work");
    assert_eq!(repo.run_ready_tasks().code, 0);
    repo.git(&["config", "remote.origin.uploadpack", "touch fetched; false"]);
    repo.git(&["remote", "set-url", "origin", repo.remote_path().to_str().unwrap()]);
    let ran = repo.world.run(&["run", "Do it here", "--trust", "--agent", "command:agent"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(!ran.stdout.contains("fetching") && !repo.world.path("fetched").exists(), "{ran}");
    repo.add_task("More").run_ready_tasks();
    assert!(repo.world.path("fetched").exists());
}

/// The list names the command that records the merge, and the command does so.
#[test]
fn change_list_names_what_records_an_external_merge() {
    let list = |repo: &GitProject| {
        let listed = repo.world.run_ok(&["change", "list"]);
        listed.lines().last().unwrap().split_once("; ").unwrap().1.to_owned()
    };
    let repo = create_manual_merge("git merge -q -m Theirs windlass/t1-work");
    assert_eq!(list(&repo), "`windlass change merge T1` or the next run records it");
    repo.world.run_ok(&["task", "reopen", "T1", "--force", "--reason", "more"]);
    let told = list(&repo);
    assert_eq!(
        told,
        "T1 is ready: the next run works on it; `windlass task complete T1` accepts it, and `windlass change merge T1` \
         records it then"
    );
    repo.world.run_ok(&["task", "complete", "T1"]);
    repo.world.run_ok(&["change", "merge", "T1", "--trust"]);
    assert_eq!(repo.events_of_type("change_merged").len(), 1);

    let repo = create_manual_merge("git merge -q -m Theirs windlass/t1-work");
    repo.world.run_ok(&["task", "reopen", "T1", "--force", "--reason", "more"]);
    repo.world.run_ok(&["task", "block", "T1", "--reason", "wait"]);
    assert_eq!(list(&repo), "`windlass change merge T1` records it, and completes the task");
    repo.world.run_ok(&["change", "merge", "T1", "--trust"]);
    assert_eq!(repo.show_task("T1")["state"], "completed");
}
