//! The merged commit is one that the gates have judged: not the files around it, and not a later state of the branch.

use crate::support::git_project::GitProject;

/// The variable with the worktree of the task, for hooks in any directory.
const TASK_WORKTREE: &str = "$WINDLASS_PROJECT_DIR/.windlass/worktrees/t1-work";

fn count_matches(text: &str, part: &str) -> usize {
    text.matches(part).count()
}

/// Makes git ignore files, for every user.
fn ignore_files(repo: &GitProject, patterns: &str) {
    repo.world.write(".gitignore", patterns);
    repo.git(&["add", ".gitignore"]);
    repo.git(&["commit", "-qm", "Ignore"]);
    if repo.remote_path().exists() {
        repo.git(&["push", "-q", "origin", "main"]);
    }
}

#[test]
fn commit_amended_by_merge_hook_is_judged_again_before_merge() {
    let repo = GitProject::with_remote(
        "hooks:\n  before_submit: [{name: clean, command: test ! -e evil || exit 2}, create_pr]\n  \
         before_merge: [{name: amends, command: sh $WINDLASS_PROJECT_DIR/amend.sh}, merge_pr]\n",
    );
    let amend = format!(
        "cd {TASK_WORKTREE}; [ -e ../amended ] || {{ touch ../amended evil; git add evil; git commit -q --amend -m x; }}"
    );
    repo.world.write("amend.sh", &amend);
    repo.set_agent("if grep -q clean; then git rm -qf evil; else echo x > work.txt; fi").add_task("Work");
    let ran = repo.run_ready_tasks();
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("has moved while it was judged"), "{ran}");
    assert!(ran.stdout.contains("clean blocks"), "{ran}");
    repo.git(&["fetch", "-q"]);
    assert_eq!(repo.show_file("origin/main:work.txt"), "x");
    assert_eq!(repo.git(&["ls-tree", "--name-only", "origin/main", "evil"]), "");
    let merged = repo.events_of_type("merge_started").pop().unwrap();
    let judged = repo.events_of_type("submission_started").pop().unwrap();
    assert!(merged["seq"].as_u64() > judged["seq"].as_u64());
    let head = judged["data"]["work"]["head"].as_str().unwrap();
    assert_eq!(repo.git(&["rev-parse", "origin/main^2"]), head);
    assert_eq!(repo.git(&["worktree", "list"]).lines().count(), 1, "no checkout is left");
}

/// A stop hook sees the agent's worktree; files that git ignores pass there, and would be missing in what is merged.
#[test]
fn stop_hook_relying_on_ignored_file_blocks_on_fresh_checkout() {
    let repo = GitProject::with_remote(
        "hooks:\n  stop: [{name: has-key, command: test -e a.key || exit 2}]\n  before_merge: [merge_pr]\n",
    );
    ignore_files(&repo, "*.key\n");
    repo.set_agent("touch a.key; echo x > work.txt; ! grep -q has-key || git add -f a.key").add_task("Work");
    let ran = repo.run_ready_tasks();
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(count_matches(&ran.stdout, "has-key blocks"), 1, "{ran}");
    repo.git(&["fetch", "-q"]);
    assert_eq!(repo.git(&["ls-tree", "--name-only", "origin/main", "a.key"]), "a.key");
}

#[test]
fn commit_altered_by_git_filter_is_blocked_and_not_merged() {
    let repo = GitProject::with_remote(
        "limits: {max_iterations: 1}\nhooks:\n  stop: [{name: good, command: grep -q good work.txt || exit 2}]\n  \
         before_merge: [merge_pr]\n",
    );
    repo.set_agent(
        "own=$(git rev-parse --git-common-dir)/info; mkdir -p $own; echo 'work.txt filter=swap' > $own/attributes\n\
         git config filter.swap.clean 'echo evil'; git config filter.swap.smudge 'echo good'; echo good > work.txt",
    );
    let ran = repo.add_task("Work").run_ready_tasks();
    assert_ne!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("good blocks"), "{ran}");
    repo.git(&["fetch", "-q"]);
    assert_eq!(repo.git(&["ls-tree", "--name-only", "origin/main", "work.txt"]), "");
}

#[test]
fn files_that_change_while_a_stop_hook_judges_are_judged_again() {
    let repo = GitProject::with_remote(
        "hooks:\n  stop: [{name: good, command: 'grep -q good work.txt || exit 2; [ -e ../swapped ] || { touch ../swapped; \
         echo evil > work.txt; }'}]\n  before_merge: [merge_pr]\n",
    );
    let ran = repo.set_agent("cat > /dev/null; echo good > work.txt").add_task("Work").run_ready_tasks();
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(count_matches(&ran.stdout, "good blocks"), 1, "{ran}");
    repo.git(&["fetch", "-q"]);
    assert_eq!(repo.show_file("origin/main:work.txt"), "good");
}

#[test]
fn stop_hook_runs_once_when_worktree_equals_commit_plus_caches() {
    let repo = GitProject::with_remote(
        "caches: [target]\nhooks:\n  stop: [{name: tests, command: echo ran >> ../ran}]\n  before_merge: [merge_pr]\n",
    );
    ignore_files(&repo, "target/\n");
    let ran = repo
        .set_agent("cat > /dev/null; mkdir target; echo x > target/x; echo x > work.txt")
        .add_task("Work")
        .run_ready_tasks();
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(repo.world.read_file(".windlass/worktrees/ran"), "ran\n");
    assert_eq!(count_matches(&ran.stdout, "tests ok"), 1, "{ran}");
}

/// Programs that search parent directories for a file, as npm does, find none of the person's there.
#[test]
fn gate_does_not_find_in_a_directory_above_what_the_commit_lacks() {
    let repo = GitProject::with_remote(
        "limits: {max_remediations: 0}\nhooks:\n  before_submit: [{name: suite, command: \
         'while [ $PWD != / ]; do ! test -e a.txt || exit 0; cd ..; done; exit 2'}]\n",
    );
    let ran = repo.set_agent("cat > /dev/null; git rm -q a.txt; echo x > work.txt").add_task("Work").run_ready_tasks();
    assert!(ran.stdout.contains("suite blocks"), "{ran}");
    assert_ne!(repo.world.json(&["task", "show", "T1"])["state"], "completed");
}

/// Code under test can write the repository's settings, exclusions and ignore files. None of that keeps a planted file.
#[test]
fn file_that_one_hook_plants_is_gone_for_the_next() {
    let plant = "own=$(git rev-parse --git-common-dir); mkdir -p $own/info; echo planted >> $own/info/exclude; \
         printf \"*\\n\" > .gitignore; touch planted";
    let repo = GitProject::with_remote(&format!(
        "hooks:\n  before_submit: [{{name: plants, command: '{plant}'}}, {{name: clean, command: test ! -e planted || exit 2}}]\n"
    ));
    let ran = repo.set_agent("cat > /dev/null; echo x > work.txt").add_task("Work").run_ready_tasks();
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("plants ok") && ran.stdout.contains("clean ok"), "{ran}");
}

/// With this setting git ignores a file whose name differs only in case from a tracked one.
#[test]
fn file_that_git_passes_over_in_the_worktree_is_seen_beside_the_commit() {
    let repo = GitProject::with_remote(
        "limits: {max_iterations: 1}\nhooks:\n  stop: [{name: tests, command: test -e A.TXT || exit 2}]\n  before_merge: [merge_pr]\n",
    );
    repo.set_agent("cat > /dev/null; git config core.ignorecase true; touch A.TXT; echo x > work.txt").add_task("Work");
    let ran = repo.run_ready_tasks();
    assert!(ran.stdout.contains("files that are not in the commit: A.TXT"), "{ran}");
    assert!(ran.stdout.contains("tests blocks"), "{ran}");
}

#[test]
fn gate_checkout_contains_only_commit_and_configured_caches() {
    let repo = GitProject::with_remote(
        "caches: [kept/]\nhooks:\n  before_submit: [{name: look, command: '{ ls -A; cat kept/x; \
         git status --porcelain; git rev-parse HEAD; } > $WINDLASS_PROJECT_DIR/listed'}]\n",
    );
    ignore_files(&repo, "kept/\nother\nlisted\n");
    let ran = repo
        .set_agent("cat > /dev/null; mkdir kept; echo cached > kept/x; touch other; echo x > work.txt")
        .add_task("Work")
        .run_ready_tasks();
    assert_eq!(ran.code, 0, "{ran}");
    let head = repo.git(&["rev-parse", "windlass/t1-work"]);
    assert_eq!(
        repo.world.read_file("listed"),
        format!(".git\n.gitignore\n.windlass\na.txt\nkept\nwork.txt\ncached\n{head}\n")
    );
    assert_eq!(repo.git(&["worktree", "list"]).lines().count(), 2, "the checkout of the gate is removed");
}

#[test]
fn retried_hook_sees_committed_files_not_its_earlier_edits() {
    let repo = GitProject::new(
        "hooks:\n  before_submit: [{name: snapshots, command: 'grep -q good work.txt && exit 0; echo good > work.txt; exit 1', \
         retry: {max: 2, backoff: 1ms}}, create_pr]\n",
    );
    let ran = repo.set_agent("cat > /dev/null; echo evil > work.txt").add_task("Work").run_ready_tasks();
    assert_ne!(ran.code, 0, "{ran}");
    assert!(!ran.stdout.contains("snapshots ok"), "{ran}");
}

#[test]
fn fresh_checkout_judgement_reports_reason_to_person_and_agent() {
    let repo = GitProject::new(
        "limits: {max_iterations: 2}\nhooks:\n  stop: [{name: env, command: 'test -e .env || { echo no .env >&2; exit 2; }'}]\n  \
         before_submit: [create_pr]\n",
    );
    ignore_files(&repo, ".env\n");
    let ran = repo.set_agent("cat > ../prompt; touch .env; echo $$ > work.txt").add_task("Work").run_ready_tasks();
    assert_ne!(ran.code, 0, "{ran}");
    let reason =
        "in a fresh checkout: the worktree has files that are not in the commit: .env (`caches` names what hooks need)";
    assert!(ran.stdout.contains(reason) || ran.stderr.contains(reason), "{ran}");
    let prompt = repo.world.read_file(".windlass/worktrees/prompt");
    assert!(prompt.contains("no .env") && prompt.contains("in a fresh checkout of your commit"), "{prompt}");
}

#[test]
fn stop_hook_passed_by_retry_limit_does_not_rejudge_commit() {
    let repo = GitProject::new(
        "limits: {max_hook_retries: 0}\non_retry_limit: complete\nhooks:\n  stop: [{name: no, command: exit 2}]\n  \
         before_submit: [create_pr]\n",
    );
    ignore_files(&repo, "built\n");
    let ran = repo.set_agent("cat > /dev/null; touch built; echo x > work.txt").add_task("Work").run_ready_tasks();
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(count_matches(&ran.stdout, "no blocks"), 1, "{ran}");
}

#[test]
fn manual_merge_runs_checks_in_fresh_checkout_and_removes_it() {
    let repo =
        GitProject::new("hooks:\n  before_submit: [{name: whole, command: test ! -e stray || exit 2}, create_pr]\n");
    ignore_files(&repo, "stray\n");
    let ran = repo.set_agent("cat > /dev/null; echo x > work.txt; touch stray").add_task("Work").run_ready_tasks();
    assert_eq!(ran.code, 0, "{ran}");
    repo.world.write("b.txt", "b\n");
    repo.git(&["add", "b.txt"]);
    repo.git(&["commit", "-qm", "Another"]);
    let merged = repo.world.run(&["change", "merge", "T1", "--trust"]);
    assert_eq!(merged.code, 0, "{merged}");
    assert!(merged.stdout.contains("whole"), "{merged}");
    assert_eq!(repo.git(&["worktree", "list"]).lines().count(), 1, "nothing is left");
}

#[test]
fn protected_file_changed_only_in_commit_is_reported() {
    let repo = GitProject::with_remote(
        "protected: [gate.sh]\nhooks:\n  before_submit: [{name: gate, command: sh gate.sh}, create_pr]\n  before_merge: [merge_pr]\n",
    );
    repo.world.write("gate.sh", "exit 2\n");
    repo.git(&["add", "gate.sh"]);
    repo.git(&["commit", "-qm", "A gate"]);
    repo.git(&["push", "-q", "origin", "main"]);
    repo.set_agent(
        "cat > /dev/null; echo x > work.txt; echo exit 0 > gate.sh; git add -A; git commit -qm Work\n\
         git update-index --assume-unchanged gate.sh; echo exit 2 > gate.sh",
    );
    let ran = repo.add_task("Work").run_ready_tasks();
    assert_eq!(ran.code, 4, "{ran}");
    assert!(ran.stdout.contains("protected files have changed in this session"), "{ran}");
}

#[test]
fn work_in_place_that_changes_while_a_stop_hook_judges_it_is_named() {
    let repo =
        GitProject::new("hooks:\n  stop: [{name: tests, command: 'grep -q good work.txt && echo evil > work.txt'}]\n");
    repo.set_agent("cat > /dev/null; echo good > work.txt");
    let ran = repo.world.run(&["run", "Work", "--trust", "--agent", "command:agent"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("files have changed while the stop hooks judged the work"), "{ran}");
}

#[test]
fn work_that_changes_under_a_stop_hook_of_the_bridge_is_named() {
    let said = "files have changed while the stop hooks judged the work: what is there now was not judged";
    for (gate, named) in [("grep -q good work.txt && echo evil > work.txt", true), ("grep -q good work.txt", false)] {
        let repo = GitProject::new(&format!("hooks:\n  stop: [{{name: tests, command: '{gate}'}}]\n"));
        repo.world.write("work.txt", "good\n");
        let payload = serde_json::json!({
            "session_id": "one", "cwd": repo.world.directory, "hook_event_name": "Stop", "stop_hook_active": false,
        });
        let ran = repo.world.run_with_input(&["hook", "stop", "--as", "claude"], payload.to_string().as_bytes());
        assert_eq!((ran.code, ran.stdout.contains(said)), (0, named), "{gate}\n{ran}");
    }
}
