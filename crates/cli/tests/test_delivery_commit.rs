//! The merged commit is one that the gates have judged: not the files around it, and not a later state of the branch.

use crate::support::delivered::Repo;

/// The variable with the worktree of the task, for hooks in any directory.
const WORKTREE: &str = "$WINDLASS_PROJECT_DIR/.windlass/worktrees/t1-work";

fn count(text: &str, part: &str) -> usize {
    text.matches(part).count()
}

/// Makes git ignore files, for every user.
fn ignore(repo: &Repo, patterns: &str) {
    repo.world.write(".gitignore", patterns);
    repo.git(&["add", ".gitignore"]);
    repo.git(&["commit", "-qm", "Ignore"]);
    if repo.remote().exists() {
        repo.git(&["push", "-q", "origin", "main"]);
    }
}

#[test]
fn a_commit_that_code_under_test_amends_while_it_is_judged_is_judged_again() {
    let repo = Repo::with_remote(
        "hooks:\n  before_submit: [{name: clean, command: test ! -e evil || exit 2}, create_pr]\n  \
         before_merge: [{name: amends, command: sh $WINDLASS_PROJECT_DIR/amend.sh}, merge_pr]\n",
    );
    let amend = format!(
        "cd {WORKTREE}; [ -e ../amended ] || {{ touch ../amended evil; git add evil; git commit -q --amend -m x; }}"
    );
    repo.world.write("amend.sh", &amend);
    repo.agent("if grep -q clean; then git rm -qf evil; else echo x > work.txt; fi").add("Work");
    let ran = repo.run();
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("has moved while it was judged"), "{ran}");
    assert!(ran.stdout.contains("clean blocks"), "{ran}");
    repo.git(&["fetch", "-q"]);
    assert_eq!(repo.file("origin/main:work.txt"), "x");
    assert_eq!(repo.git(&["ls-tree", "--name-only", "origin/main", "evil"]), "");
    let merged = repo.events("merge_started").pop().unwrap();
    let judged = repo.events("submission_started").pop().unwrap();
    assert!(merged["seq"].as_u64() > judged["seq"].as_u64());
    let head = judged["data"]["work"]["head"].as_str().unwrap();
    assert_eq!(repo.git(&["rev-parse", "origin/main^2"]), head);
    assert_eq!(repo.git(&["worktree", "list"]).lines().count(), 1, "no checkout is left");
}

/// A stop hook sees the agent's worktree; files that git ignores pass there, and would be missing in what is merged.
#[test]
fn a_stop_hook_that_passes_by_an_ignored_file_judges_the_commit_again() {
    let repo = Repo::with_remote(
        "hooks:\n  stop: [{name: has-key, command: test -e a.key || exit 2}]\n  before_merge: [merge_pr]\n",
    );
    ignore(&repo, "*.key\n");
    repo.agent("touch a.key; echo x > work.txt; ! grep -q has-key || git add -f a.key").add("Work");
    let ran = repo.run();
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(count(&ran.stdout, "has-key blocks"), 1, "{ran}");
    repo.git(&["fetch", "-q"]);
    assert_eq!(repo.git(&["ls-tree", "--name-only", "origin/main", "a.key"]), "a.key");
}

#[test]
fn a_filter_that_commits_other_content_than_was_tested_passes_no_gate() {
    let repo = Repo::with_remote(
        "limits: {max_iterations: 1}\nhooks:\n  stop: [{name: good, command: grep -q good work.txt || exit 2}]\n  \
         before_merge: [merge_pr]\n",
    );
    repo.agent(
        "own=$(git rev-parse --git-common-dir)/info; mkdir -p $own; echo 'work.txt filter=swap' > $own/attributes\n\
         git config filter.swap.clean 'echo evil'; git config filter.swap.smudge 'echo good'; echo good > work.txt",
    );
    let ran = repo.add("Work").run();
    assert_ne!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("good blocks"), "{ran}");
    repo.git(&["fetch", "-q"]);
    assert_eq!(repo.git(&["ls-tree", "--name-only", "origin/main", "work.txt"]), "");
}

#[test]
fn files_that_change_while_a_stop_hook_judges_are_judged_again() {
    let repo = Repo::with_remote(
        "hooks:\n  stop: [{name: good, command: 'grep -q good work.txt || exit 2; [ -e ../swapped ] || { touch ../swapped; \
         echo evil > work.txt; }'}]\n  before_merge: [merge_pr]\n",
    );
    let ran = repo.agent("cat > /dev/null; echo good > work.txt").add("Work").run();
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(count(&ran.stdout, "good blocks"), 1, "{ran}");
    repo.git(&["fetch", "-q"]);
    assert_eq!(repo.file("origin/main:work.txt"), "good");
}

#[test]
fn a_worktree_with_nothing_but_the_commit_and_caches_is_judged_once() {
    let repo = Repo::with_remote(
        "caches: [target]\nhooks:\n  stop: [{name: tests, command: echo ran >> ../ran}]\n  before_merge: [merge_pr]\n",
    );
    ignore(&repo, "target/\n");
    let ran = repo.agent("cat > /dev/null; mkdir target; echo x > target/x; echo x > work.txt").add("Work").run();
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(repo.world.read(".windlass/worktrees/ran"), "ran\n");
    assert_eq!(count(&ran.stdout, "tests ok"), 1, "{ran}");
}

/// Programs that search parent directories for a file, as npm does, find none of the person's there.
#[test]
fn gate_does_not_find_in_a_directory_above_what_the_commit_lacks() {
    let repo = Repo::with_remote(
        "limits: {max_remediations: 0}\nhooks:\n  before_submit: [{name: suite, command: \
         'while [ $PWD != / ]; do ! test -e a.txt || exit 0; cd ..; done; exit 2'}]\n",
    );
    let ran = repo.agent("cat > /dev/null; git rm -q a.txt; echo x > work.txt").add("Work").run();
    assert!(ran.stdout.contains("suite blocks"), "{ran}");
    assert_ne!(repo.world.json(&["task", "show", "T1"])["state"], "completed");
}

/// Code under test can write the repository's settings, exclusions and ignore files. None of that keeps a planted file.
#[test]
fn file_that_one_hook_plants_is_gone_for_the_next() {
    let plant = "own=$(git rev-parse --git-common-dir); mkdir -p $own/info; echo planted >> $own/info/exclude; \
         printf \"*\\n\" > .gitignore; touch planted";
    let repo = Repo::with_remote(&format!(
        "hooks:\n  before_submit: [{{name: plants, command: '{plant}'}}, {{name: clean, command: test ! -e planted || exit 2}}]\n"
    ));
    let ran = repo.agent("cat > /dev/null; echo x > work.txt").add("Work").run();
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("plants ok") && ran.stdout.contains("clean ok"), "{ran}");
}

/// With this setting git ignores a file whose name differs only in case from a tracked one.
#[test]
fn file_that_git_passes_over_in_the_worktree_is_seen_beside_the_commit() {
    let repo = Repo::with_remote(
        "limits: {max_iterations: 1}\nhooks:\n  stop: [{name: tests, command: test -e A.TXT || exit 2}]\n  before_merge: [merge_pr]\n",
    );
    repo.agent("cat > /dev/null; git config core.ignorecase true; touch A.TXT; echo x > work.txt").add("Work");
    let ran = repo.run();
    assert!(ran.stdout.contains("files that are not in the commit: A.TXT"), "{ran}");
    assert!(ran.stdout.contains("tests blocks"), "{ran}");
}

#[test]
fn a_gate_finds_the_commit_and_the_caches_of_the_worktree_and_no_other_files() {
    let repo = Repo::with_remote(
        "caches: [kept/]\nhooks:\n  before_submit: [{name: look, command: '{ ls -A; cat kept/x; \
         git status --porcelain; git rev-parse HEAD; } > $WINDLASS_PROJECT_DIR/listed'}]\n",
    );
    ignore(&repo, "kept/\nother\nlisted\n");
    let ran = repo
        .agent("cat > /dev/null; mkdir kept; echo cached > kept/x; touch other; echo x > work.txt")
        .add("Work")
        .run();
    assert_eq!(ran.code, 0, "{ran}");
    let head = repo.git(&["rev-parse", "windlass/t1-work"]);
    assert_eq!(
        repo.world.read("listed"),
        format!(".git\n.gitignore\n.windlass\na.txt\nkept\nwork.txt\ncached\n{head}\n")
    );
    assert_eq!(repo.git(&["worktree", "list"]).lines().count(), 2, "the checkout of the gate is removed");
}

#[test]
fn a_hook_that_is_tried_again_finds_the_files_of_the_commit() {
    let repo = Repo::new(
        "hooks:\n  before_submit: [{name: snapshots, command: 'grep -q good work.txt && exit 0; echo good > work.txt; exit 1', \
         retry: {max: 2, backoff: 1ms}}, create_pr]\n",
    );
    let ran = repo.agent("cat > /dev/null; echo evil > work.txt").add("Work").run();
    assert_ne!(ran.code, 0, "{ran}");
    assert!(!ran.stdout.contains("snapshots ok"), "{ran}");
}

#[test]
fn a_commit_that_is_judged_again_has_its_reason_told_to_the_person_and_to_the_agent() {
    let repo = Repo::new(
        "limits: {max_iterations: 2}\nhooks:\n  stop: [{name: env, command: 'test -e .env || { echo no .env >&2; exit 2; }'}]\n  \
         before_submit: [create_pr]\n",
    );
    ignore(&repo, ".env\n");
    let ran = repo.agent("cat > ../prompt; touch .env; echo $$ > work.txt").add("Work").run();
    assert_ne!(ran.code, 0, "{ran}");
    let reason =
        "in a fresh checkout: the worktree has files that are not in the commit: .env (`caches` names what hooks need)";
    assert!(ran.stdout.contains(reason) || ran.stderr.contains(reason), "{ran}");
    let prompt = repo.world.read(".windlass/worktrees/prompt");
    assert!(prompt.contains("no .env") && prompt.contains("in a fresh checkout of your commit"), "{prompt}");
}

#[test]
fn a_stop_hook_that_was_told_to_let_work_pass_does_not_judge_the_commit_again() {
    let repo = Repo::new(
        "limits: {max_hook_retries: 0}\non_retry_limit: complete\nhooks:\n  stop: [{name: no, command: exit 2}]\n  \
         before_submit: [create_pr]\n",
    );
    ignore(&repo, "built\n");
    let ran = repo.agent("cat > /dev/null; touch built; echo x > work.txt").add("Work").run();
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(count(&ran.stdout, "no blocks"), 1, "{ran}");
}

#[test]
fn a_merge_by_hand_checks_a_fresh_checkout_of_what_it_merges() {
    let repo = Repo::new("hooks:\n  before_submit: [{name: whole, command: test ! -e stray || exit 2}, create_pr]\n");
    ignore(&repo, "stray\n");
    let ran = repo.agent("cat > /dev/null; echo x > work.txt; touch stray").add("Work").run();
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
fn a_protected_file_that_only_the_commit_has_changed_is_named() {
    let repo = Repo::with_remote(
        "protected: [gate.sh]\nhooks:\n  before_submit: [{name: gate, command: sh gate.sh}, create_pr]\n  before_merge: [merge_pr]\n",
    );
    repo.world.write("gate.sh", "exit 2\n");
    repo.git(&["add", "gate.sh"]);
    repo.git(&["commit", "-qm", "A gate"]);
    repo.git(&["push", "-q", "origin", "main"]);
    repo.agent(
        "cat > /dev/null; echo x > work.txt; echo exit 0 > gate.sh; git add -A; git commit -qm Work\n\
         git update-index --assume-unchanged gate.sh; echo exit 2 > gate.sh",
    );
    let ran = repo.add("Work").run();
    assert_eq!(ran.code, 4, "{ran}");
    assert!(ran.stdout.contains("protected files have changed under this session"), "{ran}");
}

#[test]
fn work_in_place_that_changes_while_a_stop_hook_judges_it_is_named() {
    let repo = Repo::new("hooks:\n  stop: [{name: tests, command: 'grep -q good work.txt && echo evil > work.txt'}]\n");
    repo.agent("cat > /dev/null; echo good > work.txt");
    let ran = repo.world.run(&["run", "Work", "--trust", "--agent", "command:agent"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("files have changed while the stop hooks judged the work"), "{ran}");
}

#[test]
fn work_that_changes_under_a_stop_hook_of_the_bridge_is_named() {
    let said = "files have changed while the stop hooks judged the work: what is there now was not judged";
    for (gate, named) in [("grep -q good work.txt && echo evil > work.txt", true), ("grep -q good work.txt", false)] {
        let repo = Repo::new(&format!("hooks:\n  stop: [{{name: tests, command: '{gate}'}}]\n"));
        repo.world.write("work.txt", "good\n");
        let payload = serde_json::json!({
            "session_id": "one", "cwd": repo.world.directory, "hook_event_name": "Stop", "stop_hook_active": false,
        });
        let ran = repo.world.feed(&["hook", "stop", "--as", "claude"], payload.to_string().as_bytes());
        assert_eq!((ran.code, ran.stdout.contains(said)), (0, named), "{gate}\n{ran}");
    }
}
