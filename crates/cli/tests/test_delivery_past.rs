//! Commits that reach the base without Windlass: pushed by an agent, or merged by a person with plain git.

use crate::support::delivered::Repo;

const STEPS: &str = "hooks: {before_submit: [create_pr], before_merge: [merge_pr]}\n";
const WORK: &str = "cat > /dev/null; echo x > work.txt; git add -A; git commit -qm 'Do it'";

/// With a remote that can be reached from a worktree.
fn shared() -> Repo {
    let repo = Repo::with_remote(STEPS);
    repo.git(&["remote", "set-url", "origin", repo.remote().to_str().unwrap()]);
    repo
}

#[test]
fn what_an_agent_has_pushed_to_the_base_is_told_to_a_person() {
    for words in [&["run"][..], &["run", "--task", "T1"]] {
        let repo = shared();
        repo.agent(&format!("{WORK}; git push -q origin HEAD:main")).add("Work");
        let ran = repo.world.run(&[words, &["--trust", "--agent", "command:agent"]].concat());
        assert_eq!(ran.code, 4, "{ran}");
        let commit = repo.git(&["rev-parse", "--short=10", "origin/main"]);
        let task = repo.task("T1");
        let reason = task["blocked"]["reason"].as_str().unwrap();
        let told = format!(
            "origin/main has unjudged work of this task, and windlass has not merged it: {commit} (Do it, by Ann). "
        );
        assert!(reason.starts_with(&told), "{reason}");
        assert!(repo.events("change_merged").is_empty() && repo.events("pipeline_failed").is_empty());
        repo.world.ok(&["answer", "T1", "approve"]);
        assert_eq!(repo.task("T1")["state"], "completed");
        assert!(repo.events("change_merged").is_empty());
    }
}

/// A person who knows of the commits and lets the task go on is not asked again; later work is judged as usual.
#[test]
fn what_is_left_after_a_push_is_judged_when_a_person_says_so() {
    let repo = shared();
    repo.agent(&format!("test -f work.txt || {{ {WORK}; git push -q origin HEAD:main; }}\ndate +%s%N >> more.txt"));
    let ran = repo.add("Work").run();
    assert_eq!((ran.code, repo.events("change_opened").len()), (4, 0), "{ran}");
    repo.world.ok(&["answer", "T1", "continue", "leave it there"]);
    let ran = repo.run();
    assert_eq!((ran.code, repo.events("change_merged").len()), (0, 1), "{ran}");
}

/// Only the runner can record that a person was told of a commit.
#[test]
fn an_agent_cannot_speak_for_what_a_person_was_told() {
    let repo = shared();
    repo.program(
        "agent",
        &format!("{WORK}; echo \"I need help with $(git rev-parse HEAD)\n<promise>BLOCKED</promise>\""),
    );
    assert_eq!(repo.add("Work").run().code, 4);
    let commit = repo.git(&["rev-parse", "windlass/t1-work"]);
    assert!(repo.task("T1")["blocked"]["reason"].as_str().unwrap().contains(&commit));
    repo.world.ok(&["answer", "T1", "continue"]);
    repo.agent("cat > /dev/null; git push -q origin HEAD:main; date > more.txt");
    let ran = repo.run();
    assert_eq!((ran.code, repo.events("change_opened").len()), (4, 0), "{ran}");
    assert!(ran.stdout.contains(&commit[..10]), "{ran}");
    assert_eq!(repo.task("T1")["blocked"]["commits"], serde_json::json!([commit]));
}

/// An incomplete reflog proves nothing; a person who has looked is not asked again.
#[test]
fn a_reflog_that_is_not_whole_is_told_to_a_person() {
    for spoil in [
        "rm $(git rev-parse --git-path logs/HEAD)",
        ": > $(git rev-parse --git-path logs/HEAD)",
        "git reflog expire --expire=now --all",
        "git reflog delete HEAD@{0}; git -C ../../.. reflog delete windlass/t1-work@{0}",
        "git reflog delete --rewrite HEAD@{0}",
    ] {
        let repo = shared();
        repo.agent(&format!(
            "test -f work.txt || {{ {WORK}; git push -q origin HEAD:main; {spoil}; }}\ndate > more.txt"
        ));
        let ran = repo.add("Work").run();
        assert_eq!((ran.code, repo.events("change_opened").len()), (4, 0), "{spoil}\n{ran}");
        let told = "cannot tell whether origin/main has unjudged work of this task: cannot tell what was committed in ";
        assert!(repo.task("T1")["blocked"]["reason"].as_str().unwrap().starts_with(told), "{spoil}\n{ran}");
        repo.world.ok(&["answer", "T1", "continue"]);
        let ran = repo.run();
        assert_eq!(ran.code, 0, "{spoil}\n{ran}");
    }
}

/// A commit counts under any subject that an agent gives it.
#[test]
fn a_commit_under_another_name_is_told() {
    let repo = shared();
    repo.agent(&format!("export GIT_REFLOG_ACTION='reset: moving to HEAD'; {WORK}; git push -q origin HEAD:main"));
    let ran = repo.add("Work").run();
    assert_eq!(ran.code, 4, "{ran}");
    assert!(ran.stdout.contains("has unjudged work of this task"), "{ran}");
}

/// Commits of others are no work of this task, and neither are commits that only look like it.
#[test]
fn what_others_have_pushed_is_theirs() {
    for take in ["git pull -q origin main", "git fetch -q; git cherry-pick --ff origin/main >/dev/null"] {
        let repo = shared();
        repo.push_from_other_clone("echo y > other.txt");
        repo.agent(&format!("cat > /dev/null; others; {take}")).add("Work");
        let ran = repo.world.run(&["run", "--trust", "--agent", "command:agent", "--max-iterations", "1"]);
        assert_eq!(ran.code, 3, "{take}\n{ran}");
        assert!(repo.task("T1")["reason"].as_str().unwrap().starts_with("no_changes"), "{take}");
    }
}

#[test]
fn a_local_base_that_was_moved_is_told_too() {
    let repo = Repo::new(STEPS);
    repo.git(&["switch", "-q", "-c", "desk"]);
    let ran = repo.agent(&format!("{WORK}; git push -q . HEAD:main")).add("Work").run();
    assert_eq!(ran.code, 4, "{ran}");
    assert!(ran.stdout.contains("main has unjudged work of this task"), "{ran}");
}

/// A change that a person has merged in their own way.
fn merged_by_hand(how: &str) -> Repo {
    let repo = Repo::new(
        "hooks: {before_submit: [create_pr], after_merge: [{command: echo $WINDLASS_TASK_ID >> merged.log}]}\n",
    );
    repo.agent("cat > /dev/null; echo one > one.txt; git add -A; git commit -qm One; echo two > two.txt").add("Work");
    assert_eq!(repo.run().code, 0);
    repo.world.write("theirs.txt", "x");
    repo.git(&["add", "theirs.txt"]);
    repo.git(&["commit", "-q", "-m", "Mine"]);
    let program = repo.program("merge-it", &format!("set -e; cd '{}'; {how}", repo.world.path("").display()));
    let ran = repo.world.finish(&mut repo.world.program(program.to_str().unwrap()));
    assert_eq!(ran.code, 0, "{ran}");
    repo
}

fn files(shown: &serde_json::Value) -> Vec<&str> {
    shown["changed"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect()
}

const LATER: &str = "echo later > later.txt; git add later.txt; git commit -qm Later";

/// A person's statement of a merge leads to the same record: without later commits.
#[test]
fn what_a_person_has_merged_and_says_so_is_what_was_merged() {
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
        let repo = merged_by_hand(&format!("{how}; {LATER}"));
        let merged = repo.world.ok(&["change", "merge", "T1", "--trust"]);
        assert_eq!(merged, format!("T1  already in main: {seen}\n"), "{how}");
        let later = repo.git(&["rev-parse", "main"]);
        let noted = repo.events("change_merged");
        assert_ne!(noted[0]["data"]["commit"].as_str(), Some(later.as_str()), "{how}");
        let shown = repo.world.json(&["change", "show", "T1"]);
        assert_eq!((files(&shown), shown["seen"].as_str()), (vec!["one.txt", "two.txt"], Some(seen)), "{how}\n{shown}");
    }
}

#[test]
fn what_a_person_has_merged_with_plain_git_is_merged() {
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
        let repo = merged_by_hand(how);
        let listed = repo.world.ok(&["change", "list"]);
        let note = format!("\n  {seen}; `windlass change merge T1` or the next run records it\n");
        assert!(listed.starts_with("T1  merged  windlass/t1-work → main") && listed.contains(&note), "{how}\n{listed}");
        let shown = repo.world.json(&["change", "show", "T1"]);
        assert_eq!((shown["state"].as_str(), shown["seen"].as_str()), (Some("merged"), Some(seen)), "{how}");
        assert_eq!(files(&shown), ["one.txt", "two.txt"], "{how}\n{shown}");
        assert!(repo.events("change_merged").is_empty());

        let ran = repo.add("More").run();
        let told = format!("  note: the change of T1 is merged: {seen}\n");
        assert!(ran.stdout.starts_with(&told) && !ran.stdout.contains("merged as"), "{how}\n{ran}");
        let noted = repo.events("change_merged");
        assert_eq!((noted.len(), noted[0]["data"]["seen"].as_str()), (1, Some(seen)), "{how}");
        assert!(!repo.world.path(".windlass/worktrees/t1-work").exists(), "{how}\n{ran}");
        assert_eq!(repo.git(&["branch", "--list", "windlass/t1-work"]), "", "{how}");
        let shown = repo.world.json(&["change", "show", "T1"]);
        assert_eq!((files(&shown), shown["seen"].as_str()), (vec!["one.txt", "two.txt"], Some(seen)), "{how}\n{shown}");
        assert_eq!(std::fs::read_to_string(repo.world.path("merged.log")).unwrap(), "T1\n", "{how}");
        let why = repo.world.ok(&["why", "T1"]);
        assert!(why.contains(seen), "{why}");
        repo.add("Still more").run();
        assert_eq!(repo.events("change_merged").len(), 1, "{how}");
    }
}

/// A branch that was reset to the base, or is merged only in part, is not merged.
#[test]
fn what_the_base_has_not_stays_open() {
    for how in
        ["git cherry-pick windlass/t1-work~1 >/dev/null", "git -C .windlass/worktrees/t1-work reset -q --hard main"]
    {
        let repo = merged_by_hand(how);
        assert!(repo.world.ok(&["change", "list"]).starts_with("T1  open"), "{how}");
        if how.contains("reset") {
            let refused = repo.world.fails(&["change", "merge", "T1", "--trust"]);
            assert!(refused.contains("windlass/t1-work has no commits that main does not have"), "{refused}");
            assert!(refused.contains("hint: `git -C .windlass/worktrees/t1-work reset --hard "), "{refused}");
        }
        repo.add("More").run();
        assert!(repo.events("change_merged").is_empty(), "{how}");
    }
}

/// Workers record it, too, from pushes of others.
#[test]
fn what_others_have_merged_on_the_remote_is_noted_by_workers() {
    let repo = Repo::with_remote("hooks: {before_submit: [create_pr]}\n");
    repo.agent("cat > /dev/null; echo one > one.txt").add("Work");
    assert_eq!(repo.run().code, 0);
    let others = repo.push_from_other_clone("git merge -q --squash origin/windlass/t1-work");
    assert_eq!(repo.world.finish(&mut repo.world.program(others.to_str().unwrap())).code, 0);
    repo.add("More");
    repo.world.run(&["run", "--workers", "1", "--trust", "--agent", "command:agent"]);
    assert_eq!(repo.events("change_merged").len(), 1);
    assert!(!repo.world.path(".windlass/worktrees/t1-work").exists());
}

/// A run with nothing to work on records it, too, and says what it waits for.
#[test]
fn what_others_have_merged_is_noted_although_nothing_is_ready() {
    let repo = Repo::untrusted("hooks: {before_submit: [create_pr]}\n").pushed();
    repo.agent("cat > /dev/null; echo one > one.txt").add("Work");
    assert_eq!(repo.run().code, 0);
    let others = repo.push_from_other_clone("git merge -q --squash origin/windlass/t1-work");
    assert_eq!(repo.world.finish(&mut repo.world.program(others.to_str().unwrap())).code, 0);
    let ran = repo.world.run(&["run", "--agent", "command:agent"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "every task is completed\n"), "{ran}");
    assert!(ran.stderr.contains("merged changes are not looked for: this project may not run"), "{ran}");
    let ran = repo.run();
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "every task is completed\n"), "{ran}");
    let told = "note: fetching origin/main, to see which changes are merged\nnote: the change of T1 is merged: ";
    assert!(ran.stderr.starts_with(told), "{ran}");
    assert_eq!(repo.events("change_merged").len(), 1);
    assert!(!repo.world.path(".windlass/worktrees/t1-work").exists());
    assert!(repo.run().stderr.is_empty());
}

/// Work in place has no changes: no fetch delays it.
#[test]
fn work_in_place_fetches_nothing() {
    let repo = Repo::with_remote("hooks: {before_submit: [create_pr]}\n");
    repo.agent("cat > /dev/null; echo one > one.txt").add("Work");
    assert_eq!(repo.run().code, 0);
    repo.git(&["config", "remote.origin.uploadpack", "touch fetched; false"]);
    repo.git(&["remote", "set-url", "origin", repo.remote().to_str().unwrap()]);
    let ran = repo.world.run(&["run", "Do it here", "--trust", "--agent", "command:agent"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(!ran.stdout.contains("fetching") && !repo.world.path("fetched").exists(), "{ran}");
    repo.add("More").run();
    assert!(repo.world.path("fetched").exists());
}

/// The list names the command that records the merge, and the command does so.
#[test]
fn change_list_names_what_records_an_external_merge() {
    let list = |repo: &Repo| {
        let listed = repo.world.ok(&["change", "list"]);
        listed.lines().last().unwrap().split_once("; ").unwrap().1.to_owned()
    };
    let repo = merged_by_hand("git merge -q -m Theirs windlass/t1-work");
    assert_eq!(list(&repo), "`windlass change merge T1` or the next run records it");
    repo.world.ok(&["task", "reopen", "T1", "--force", "--reason", "more"]);
    let told = list(&repo);
    assert_eq!(
        told,
        "T1 is ready: the next run works on it; `windlass task complete T1` accepts it, and `windlass change merge T1` \
         records it then"
    );
    repo.world.ok(&["task", "complete", "T1"]);
    repo.world.ok(&["change", "merge", "T1", "--trust"]);
    assert_eq!(repo.events("change_merged").len(), 1);

    let repo = merged_by_hand("git merge -q -m Theirs windlass/t1-work");
    repo.world.ok(&["task", "reopen", "T1", "--force", "--reason", "more"]);
    repo.world.ok(&["task", "block", "T1", "--reason", "wait"]);
    assert_eq!(list(&repo), "`windlass change merge T1` records it, and completes the task");
    repo.world.ok(&["change", "merge", "T1", "--trust"]);
    assert_eq!(repo.task("T1")["state"], "completed");
}
