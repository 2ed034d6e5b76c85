//! Commits of an agent that are not on its task's branch when it is done.

use crate::support::git_project::GitProject;

const DELIVERY_CONFIG: &str = "hooks: {before_submit: [create_pr], before_merge: [merge_pr]}\n\
    task_types: {audit: {result: report}, code: {}}\n";
const STRAY_COMMIT_COMMAND: &str = "echo d > d.txt; git add .; git commit -qm Lost; git rev-parse HEAD >";

/// Runs an agent on a task of this type. It leaves the id of a commit in a file.
fn run_agent(kind: &str, script: &str) -> (GitProject, String, String) {
    let repo = GitProject::with_remote(DELIVERY_CONFIG);
    let noted = repo.world.path("commit.txt");
    repo.set_agent(&script.replace("COMMIT", &format!("{STRAY_COMMIT_COMMAND} {}", noted.display())));
    repo.world.run_ok(&["task", "add", "Work", "--type", kind]);
    let ran = repo.run_ready_tasks();
    let commit = std::fs::read_to_string(noted).unwrap();
    (repo, ran.stdout, commit[..10].to_owned())
}

#[test]
fn commits_left_beside_a_change_are_noted_with_id_and_place() {
    for (leave, place) in [("--detach", "no branch"), ("-b mine", "mine")] {
        let script = format!("git checkout -q {leave}; COMMIT; git checkout -q windlass/t1-work; echo e > e.txt");
        let (repo, said, commit) = run_agent("code", &script);
        let note = format!(
            "T1: the agent left commits that are not part of its change: committed on {place}: {commit} (Lost)\n"
        );
        assert!(said.contains(&note), "{said}");
        assert_eq!(repo.events_of_type("change_merged").len(), 1, "{said}");
    }
}

#[test]
fn detached_commit_left_beside_a_report_is_noted_as_on_no_branch() {
    let script = "git checkout -q --detach; COMMIT; git checkout -q -; echo Done.";
    let (_repo, said, commit) = run_agent("audit", script);
    assert!(said.contains(&format!("is not merged: committed on no branch: {commit} (Lost)\n")), "{said}");
}

#[test]
fn work_on_a_renamed_branch_is_merged() {
    let (repo, said, _) = run_agent("code", "COMMIT; git branch -m renamed");
    assert_eq!(
        (repo.events_of_type("change_merged").len(), repo.events_of_type("pipeline_failed").len()),
        (1, 0),
        "{said}"
    );
    assert_eq!(repo.show_file("origin/main:d.txt"), "d");
}

#[test]
fn removed_branch_is_named_to_people_and_to_the_agent() {
    let script = "prompt=$(cat); case $prompt in *'were removed'*) echo e > e.txt;; *)\n\
        COMMIT; cd ../../..; git worktree remove --force .windlass/worktrees/t1-work; git branch -qD windlass/t1-work;; esac";
    let (repo, said, _) = run_agent("code", script);
    let note = "T1: its worktree t1-work and its branch windlass/t1-work were removed, and are made again\n";
    assert!(said.contains(note), "{said}");
    assert!(
        said.contains("the branch windlass/t1-work was removed with its worktree, and has no commit since"),
        "{said}"
    );
    assert!(!said.contains("nothing was committed") && !said.contains("without commits"), "{said}");
    assert_eq!(repo.events_of_type("change_merged").len(), 1, "{said}");
}

#[test]
fn task_without_commits_after_a_task_with_a_removed_branch_fails_as_unchanged() {
    let repo = GitProject::with_remote(DELIVERY_CONFIG);
    let script = "case $PWD in *t2-rest) ;; *) test -e ROOT/second && { echo '<promise>BLOCKED</promise>'; exit; }\n\
        touch ROOT/second; cd ROOT; git worktree remove --force .windlass/worktrees/t1-work; git branch -qD windlass/t1-work; exit;; esac";
    repo.set_agent(&script.replace("ROOT", &repo.world.directory.display().to_string()));
    repo.add_task("Work").add_task("Rest");
    let said = repo.run_ready_tasks().stdout;
    assert!(said.contains("its branch windlass/t1-work were removed, and are made again"), "{said}");
    assert_eq!(repo.show_task("T1")["state"], "blocked", "{said}");
    let failed = repo.events_of_type("pipeline_failed");
    let hooks: Vec<_> = failed.iter().map(|event| event["data"]["hook"].as_str().unwrap()).collect();
    assert_eq!(hooks, ["no_changes"], "{said}");
}

#[test]
fn change_whose_worktree_has_no_reflog_is_noted_as_unknown() {
    let (_repo, said, _) = run_agent("code", "COMMIT; git reflog expire --expire=now --all");
    let note = "T1: cannot tell whether the agent left commits that are not part of its change: ";
    assert!(said.contains(note), "{said}");
}
