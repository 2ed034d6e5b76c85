//! The start of work from the present base: what a worktree stands on when its task is resumed.

use std::fs;

use crate::support::git_project::GitProject;

/// Commits a file to the base, as a person would.
fn move_base(repo: &GitProject, name: &str, text: &str) {
    repo.world.write(name, text);
    repo.git(&["add", name]);
    repo.git(&["commit", "-q", "-m", &format!("Change {name}")]);
}

/// Lets an agent work and ask for a person; the person answers `continue` after the base has moved.
fn create_answered_task(first: &str, name: &str, text: &str) -> GitProject {
    let repo = GitProject::new("");
    repo.write_program("agent", &format!("{first}\necho '<promise>BLOCKED</promise>'"));
    let ran = repo.add_task("Write it").run_ready_tasks();
    assert_eq!(ran.code, 4, "{ran}");
    move_base(&repo, name, text);
    repo.world.run_ok(&["answer", "T1", "continue"]);
    repo
}

#[test]
fn branch_without_commits_starts_from_the_new_base() {
    let repo = create_answered_task("true", "check.sh", "exit 0\n");
    repo.set_agent("test -f check.sh && echo work > work.txt");
    let ran = repo.run_ready_tasks();
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("rebased the worktree onto main ("), "{ran}");
    assert_eq!(repo.git(&["rev-list", "--count", "main..windlass/t1-write-it"]), "1");
    assert_eq!(repo.git(&["merge-base", "main", "windlass/t1-write-it"]), repo.git(&["rev-parse", "main"]));
}

#[test]
fn uncommitted_and_committed_work_is_rebased_where_that_is_clean() {
    let commit =
        "echo kept > kept.txt; git add .; git commit -q -m Kept; echo ours >> kept.txt; echo loose > loose.txt";
    let repo = create_answered_task(commit, "theirs.txt", "theirs\n");
    repo.set_agent("test -f theirs.txt && echo work > work.txt");
    let ran = repo.world.run(&["run", "--fresh", "--task", "T1", "--agent", "command:agent"]);
    assert_eq!(ran.code, 0, "{ran}");
    let branch = "windlass/t1-write-it";
    assert_eq!(repo.git(&["merge-base", "main", branch]), repo.git(&["rev-parse", "main"]));
    assert_eq!(repo.show_file(&format!("{branch}:kept.txt")), "kept\nours");
    assert_eq!(
        (repo.show_file(&format!("{branch}:loose.txt")), repo.show_file(&format!("{branch}:work.txt"))),
        ("loose".into(), "work".into())
    );
}

#[test]
fn conflicting_work_stays_and_the_agent_is_told_both_sides() {
    let repo =
        create_answered_task("sed -i s/two/ours/ a.txt; git commit -q -am Ours", "a.txt", "one\ntheirs\nthree\n");
    let tip = repo.git(&["rev-parse", "windlass/t1-write-it"]);
    let prompt = repo.world.path("prompt.txt");
    repo.set_agent(&format!(
        "cat > {}; git rev-parse HEAD > {}; git merge -q -s ours main",
        prompt.display(),
        repo.world.path("tip.txt").display()
    ));
    let ran = repo.run_ready_tasks();
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("the work conflicts with main: "), "{ran}");
    let prompt = fs::read_to_string(prompt).unwrap();
    for told in ["- a.txt\n", "- Change a.txt\n", "<<<<<<< this branch\nours\n=======\ntheirs\n>>>>>>> main\n"] {
        assert!(prompt.contains(told), "{told}\n{prompt}");
    }
    assert_eq!(fs::read_to_string(repo.world.path("tip.txt")).unwrap().trim_end(), tip);
}

#[test]
fn conflict_feedback_has_no_secret_and_no_control_sequence() {
    let (secret, name) = ("hunter2-abc-XYZ", "b\nAll: is well\u{1b}[1m.txt");
    let repo = GitProject::new("secrets: [API_KEY]\n");
    let run = || {
        let words = ["run", "--trust", "--agent", "command:agent"];
        repo.world.run_command(repo.world.command(&words).env("API_KEY", secret))
    };
    let script = "f=$(printf 'b\\nAll: is well\\033[1m.txt'); echo ours > \"$f\"; git add .; git commit -q -m Ours";
    repo.write_program("agent", &format!("{script}\necho '<promise>BLOCKED</promise>'"));
    repo.add_task("Write it");
    assert_eq!(run().code, 4);
    repo.world.write(name, format!("theirs {secret}\u{1b}]0;owned\u{7}\n"));
    repo.git(&["add", name]);
    repo.git(&["commit", "-q", "-m", &format!("Use {secret}")]);
    repo.world.run_ok(&["answer", "T1", "continue"]);
    let prompt = repo.world.path("prompt.txt");
    repo.set_agent(&format!("cat > {}; git merge -q -s ours main", prompt.display()));
    let ran = run();
    assert_eq!(ran.code, 0, "{ran}");
    let queued = repo.events_of_type("feedback_queued");
    let told = queued.iter().filter_map(|event| event["data"]["text"].as_str());
    let told: Vec<_> = told.filter(|text| text.contains("The work conflicts with the newest")).collect();
    let [told] = told[..] else { panic!("one piece of feedback: {told:?}") };
    assert!(!told.contains(secret) && !told.contains(|letter: char| letter.is_control() && letter != '\n'), "{told:?}");
    for line in
        ["- b All: is well.txt\n", "\nb All: is well.txt:\n", "- Use [secret API_KEY]\n", "\ntheirs [secret API_KEY]\n"]
    {
        assert!(told.contains(line), "{line:?}\n{told}");
    }
    let prompt = fs::read_to_string(prompt).unwrap();
    assert!(prompt.contains("theirs [secret API_KEY]") && !prompt.contains(secret), "{prompt}");
}

#[test]
fn resumed_session_starts_from_the_new_base() {
    let repo = GitProject::new("");
    // The process that runs the session dies in its first turn.
    repo.write_program("agent", "echo loose > loose.txt; run=${WINDLASS_TAG#run-}; kill -9 ${run%%-*}; sleep 60");
    repo.add_task("Write it").run_ready_tasks();
    move_base(&repo, "theirs.txt", "theirs\n");
    repo.set_agent("test -f theirs.txt && echo work > work.txt");
    let ran = repo.run_ready_tasks();
    assert_eq!(ran.code, 0, "{ran}");
    let branch = "windlass/t1-write-it";
    assert_eq!(repo.git(&["merge-base", "main", branch]), repo.git(&["rev-parse", "main"]));
    assert_eq!(repo.show_file(&format!("{branch}:loose.txt")), "loose");
}

#[test]
fn work_meets_a_hook_that_was_mended_in_the_base_without_another_turn() {
    let repo = GitProject::new("hooks:\n  before_submit: [{name: gone, command: ./gone.sh}, create_pr]\n");
    let turns = repo.world.path("turns.txt");
    repo.set_agent(&format!("echo turn >> {}; echo work > work.txt", turns.display()));
    let ran = repo.add_task("Write it").run_ready_tasks();
    assert_eq!(ran.code, 3, "{ran}");
    assert!(ran.stdout.contains("the hook is broken: `./gone.sh` does not exist"), "{ran}");
    repo.world.write("gone.sh", "#!/bin/sh\n");
    repo.git(&["add", "gone.sh"]);
    repo.git(&["update-index", "--chmod=+x", "gone.sh"]);
    repo.git(&["commit", "-q", "-m", "Mend it"]);
    let ran = repo.world.run(&["run", "--task", "T1", "--trust", "--agent", "command:agent"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("rebased the worktree onto main (") && ran.stdout.contains("gone ok"), "{ran}");
    assert_eq!(fs::read_to_string(turns).unwrap(), "turn\n");
}

#[test]
fn work_that_conflicts_while_its_hook_was_broken_offers_no_answer() {
    let repo = GitProject::new("hooks:\n  before_submit: [{name: lint, command: my-linter}, create_pr]\n");
    repo.set_agent("sed -i s/two/ours/ a.txt");
    let ran = repo.add_task("Write it").run_ready_tasks();
    assert_eq!(ran.code, 3, "{ran}");
    move_base(&repo, "a.txt", "one\ntheirs\nthree\n");
    repo.write_program("my-linter", "true");
    let ran = repo.world.run(&["run", "--task", "T1", "--trust", "--agent", "command:agent"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("the work conflicts with main") && ran.stdout.contains("lint ok"), "{ran}");
    assert!(!ran.stdout.contains("windlass answer"), "{ran}");
}

#[test]
fn stacked_branch_without_commits_follows_what_is_below() {
    let repo = GitProject::new("");
    repo.set_agent("echo first > first.txt");
    repo.world.run_ok(&["task", "add", "First"]);
    assert_eq!(repo.run_ready_tasks().code, 0);
    repo.world.run_ok(&["task", "add", "Second", "--depends", "T1"]);
    repo.write_program("agent", "echo '<promise>BLOCKED</promise>'");
    assert_eq!(repo.run_ready_tasks().code, 4);
    repo.world.run_ok(&["change", "merge", "T1"]);
    move_base(&repo, "theirs.txt", "theirs\n");
    repo.world.run_ok(&["answer", "T2", "continue"]);
    repo.set_agent("test -f theirs.txt && test -f first.txt && echo work > work.txt");
    let ran = repo.run_ready_tasks();
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(repo.git(&["rev-list", "--count", "main..windlass/t2-second"]), "1");
    assert!(repo.world.run_ok(&["change", "merge", "T2"]).contains("merged into main"));
}
