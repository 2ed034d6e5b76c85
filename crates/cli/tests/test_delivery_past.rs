//! Work that comes into the base past us: by an agent that pushes, or by a person with plain git.

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
            "origin/main has work of this task that nobody has judged, and windlass has not merged it: {commit} (Do it), committed by command:agent in the session "
        );
        assert!(reason.starts_with(&told), "{reason}");
        assert!(repo.events("change_merged").is_empty() && repo.events("pipeline_failed").is_empty());
        repo.world.ok(&["answer", "T1", "approve"]);
        assert_eq!(repo.task("T1")["state"], "completed");
        assert!(repo.events("change_merged").is_empty());
    }
}

/// A person who has been told and lets it go on is not asked again; what comes after is judged like everything.
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

/// What others have done is no work of this task, and neither is what only looks so.
#[test]
fn what_others_have_pushed_is_theirs() {
    let repo = shared();
    repo.others("echo y > other.txt");
    repo.agent("cat > /dev/null; others; git pull -q origin main").add("Work");
    let ran = repo.world.run(&["run", "--trust", "--agent", "command:agent", "--max-iterations", "1"]);
    assert_eq!(ran.code, 3, "{ran}");
    assert!(repo.task("T1")["reason"].as_str().unwrap().starts_with("no_changes"));
}

#[test]
fn a_local_base_that_was_moved_is_told_too() {
    let repo = Repo::new(STEPS);
    repo.git(&["switch", "-q", "-c", "desk"]);
    let ran = repo.agent(&format!("{WORK}; git push -q . HEAD:main")).add("Work").run();
    assert_eq!(ran.code, 4, "{ran}");
    assert!(ran.stdout.contains("main has work of this task that nobody has judged"), "{ran}");
}
