//! Reports of a worktree, a branch or a forge that is unavailable: the place, the cause, and the command to type.

use std::fs;

use crate::support::git_project::GitProject;

const SUBMIT_CONFIG: &str = "hooks: {before_submit: [create_pr]}\n";

/// Returns the commands in a text.
fn suggested_commands(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Follows the hint, and lets the task go on.
fn follow_hint(repo: &GitProject, command: &str) {
    let words: Vec<&str> = command.strip_prefix("git ").expect("a command of git").split(' ').collect();
    repo.git(&words);
    repo.world.run_ok(&["answer", "T1", "continue"]);
    let ran = repo.run_ready_tasks();
    assert_eq!(ran.code, 0, "{command}\n{ran}");
}

fn run_until_blocked(repo: &GitProject) -> String {
    let ran = repo.run_ready_tasks();
    assert_eq!(ran.code, 4, "{ran}");
    repo.show_task("T1")["blocked"]["reason"].as_str().unwrap().to_owned()
}

#[test]
fn branch_of_another_owner_is_named_with_what_to_do() {
    let repo = GitProject::new(SUBMIT_CONFIG);
    repo.set_agent("cat > /dev/null; echo x > work.txt").add_task("Work").git(&["branch", "windlass/t1-work"]);
    let reason = run_until_blocked(&repo);
    assert!(
        reason.starts_with(
            "cannot take the branch windlass/t1-work: it is there already, and was not made by windlass; "
        ),
        "{reason}"
    );
    let commands = suggested_commands(&reason);
    assert_eq!(commands, ["git branch -m windlass/t1-work OTHER", "git branch -D windlass/t1-work"]);
    follow_hint(&repo, &commands[0]);
    assert_eq!(repo.show_file("windlass/t1-work:work.txt"), "x");
}

#[test]
fn branch_checked_out_elsewhere_blocks_task_and_reports_path() {
    let repo = GitProject::new(SUBMIT_CONFIG);
    repo.set_agent("cat > /dev/null; git switch -q --detach; exit 1").add_task("Work");
    repo.world.run(&["run", "--trust", "--agent", "command:agent", "--max-iterations", "1"]);
    repo.git(&["worktree", "remove", "--force", ".windlass/worktrees/t1-work"]);
    repo.git(&["switch", "-q", "windlass/t1-work"]);
    let reason = run_until_blocked(&repo);
    let place = fs::canonicalize(repo.world.path("")).unwrap();
    let place = place.to_str().unwrap().trim_end_matches('/');
    assert!(reason.contains(&format!("it is checked out in {place}; ")), "{reason}");
    repo.set_agent("cat > /dev/null; echo x > work.txt");
    follow_hint(&repo, &suggested_commands(&reason)[0].replace("OTHER", "main"));
}

#[test]
fn locked_worktree_blocks_task_and_reports_reason_and_unlock_command() {
    let repo = GitProject::new(SUBMIT_CONFIG);
    repo.set_agent("cat > /dev/null; exit 1").add_task("Work");
    repo.world.run(&["run", "--trust", "--agent", "command:agent", "--max-iterations", "1"]);
    let path = fs::canonicalize(repo.world.path(".windlass/worktrees/t1-work")).unwrap();
    repo.git(&["worktree", "lock", "--reason", "on a stick", ".windlass/worktrees/t1-work"]);
    // A locked worktree may be absent for a while.
    fs::remove_dir_all(&path).unwrap();
    let reason = run_until_blocked(&repo);
    let path = path.display();
    assert_eq!(
        reason,
        format!(
            "cannot use the worktree {path}: it is locked (on a stick); `git worktree unlock {path}`, if its \
             owner agrees"
        )
    );
    repo.set_agent("cat > /dev/null; echo x > work.txt");
    follow_hint(&repo, &suggested_commands(&reason)[0]);
}

#[test]
fn something_else_where_a_worktree_belongs_is_left_alone() {
    let repo = GitProject::new(SUBMIT_CONFIG);
    repo.set_agent("cat > /dev/null; echo x > work.txt").add_task("Work");
    repo.world.write(".windlass/worktrees/t1-work/mine.txt", "mine");
    let reason = run_until_blocked(&repo);
    let path = fs::canonicalize(repo.world.path(".windlass/worktrees/t1-work")).unwrap();
    let command = format!("mv {0} {0}.old", path.display());
    assert!(reason.ends_with(&format!("move it away: `{command}`")), "{reason}");
    fs::rename(&path, path.with_extension("old")).unwrap();
    repo.world.run_ok(&["answer", "T1", "continue"]);
    assert_eq!(repo.run_ready_tasks().code, 0);
}

/// A removed worktree is created again, and the work is on its branch.
#[test]
fn change_is_shown_and_merged_after_worktree_removal() {
    let repo = GitProject::new(SUBMIT_CONFIG);
    repo.set_agent("cat > /dev/null; echo x > work.txt").add_task("Work");
    assert_eq!(repo.run_ready_tasks().code, 0);
    fs::remove_dir_all(repo.world.path(".windlass/worktrees/t1-work")).unwrap();
    assert!(repo.world.run_ok(&["change", "show", "T1"]).contains("work.txt"));
    repo.world.run_ok(&["change", "merge", "T1", "--trust"]);
    assert_eq!(repo.show_file("main:work.txt"), "x");
}

#[test]
fn forge_config_without_matching_remote_is_reported_as_warning() {
    let check = |config: &str, address: Option<&str>, expected: Option<&str>| {
        let repo = GitProject::new(&format!("{config}{SUBMIT_CONFIG}"));
        if let Some(address) = address {
            repo.git(&["remote", "add", "origin", address]);
        }
        let checked = repo.world.run_ok(&["config", "check"]);
        let warned = checked.lines().find_map(|line| line.strip_prefix("warning  `forge` is configured "));
        let tail = ": changes are only in the log, not on a forge";
        assert_eq!(warned, expected.map(|expected| format!("{expected}{tail}")).as_deref(), "{config}\n{checked}");
        repo
    };
    let github = "forge: {kind: github}\n";
    let nowhere = "(github), and there is no remote";
    let repo = check(github, None, Some(nowhere));
    let ran = repo.set_agent("cat > /dev/null; echo x > work.txt").add_task("Work").run_ready_tasks();
    let said = format!("create_pr ok: the change is the branch windlass/t1-work; `forge` is configured {nowhere}\n");
    assert!(ran.stdout.contains(&said), "{ran}");
    let path = "(github), and the remote's address /srv/team.git is not the address of a project on one";
    check(github, Some("/srv/team.git"), Some(path));
    let other = "(github), and the remote's address https://gitlab.com/a/b.git is on gitlab";
    check(github, Some("https://gitlab.com/a/b.git"), Some(other));
    check(github, Some("https://github.com/a/b.git"), None);
    check(github, Some("git@code.example.org:a/b.git"), None);
    check("", Some("/srv/team.git"), None);
}

/// A server that checks pushes.
fn create_rejecting_remote(config: &str, script: &str) -> GitProject {
    let repo = GitProject::with_remote(config);
    let hook = repo.remote_path().join("hooks/pre-receive");
    fs::write(&hook, format!("#!/bin/sh\nwhile read old new ref; do\n{script}\ndone\n")).unwrap();
    fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    repo
}

const REJECT_SECRETS_SCRIPT: &str =
    "git show \"$new:work.txt\" | grep -q secret && { echo 'policy: work.txt contains a secret'; exit 1; }; true";

/// A server that refuses the work has given an answer: the agent gets it as feedback.
#[test]
fn push_rejected_by_server_is_fed_back_to_agent() {
    let repo = create_rejecting_remote(SUBMIT_CONFIG, REJECT_SECRETS_SCRIPT);
    repo.set_agent("grep -q 'policy: work.txt contains a secret' && echo x > work.txt || echo secret > work.txt")
        .add_task("Work");
    let ran = repo.run_ready_tasks();
    assert_eq!(ran.code, 0, "{ran}");
    let failed = repo.events_of_type("pipeline_failed");
    assert_eq!((failed.len(), failed[0]["data"]["remedy"].as_str()), (1, Some("remediate")), "{ran}");
    let reason = failed[0]["data"]["reason"].as_str().unwrap();
    assert!(reason.starts_with("origin refuses windlass/t1-work: "), "{reason}");
    assert!(reason.contains("policy: work.txt contains a secret"), "{reason}");
    assert_eq!(repo.show_file("origin/windlass/t1-work:work.txt"), "x");
}

/// An agent that cannot fix it does not try forever.
#[test]
fn repeatedly_rejected_push_ends_session_after_remediation_limit() {
    let repo = create_rejecting_remote(SUBMIT_CONFIG, REJECT_SECRETS_SCRIPT);
    repo.set_agent("cat > /dev/null; echo secret >> work.txt").add_task("Work");
    let ran = repo.run_ready_tasks();
    assert_eq!((ran.code, repo.events_of_type("pipeline_failed").len()), (3, 4), "{ran}");
    let task = repo.show_task("T1");
    assert!(task["reason"].as_str().unwrap().contains("policy: work.txt contains a secret"), "{task}");
}

const NESTED_REPOSITORY_AGENT: &str = "test -e inside || git init -q inside";

/// A tree that git cannot read is the fault of its agent, and does not hold up the other tasks.
#[test]
fn uncommittable_tree_is_fed_back_without_blocking_other_tasks() {
    let repo = GitProject::new(SUBMIT_CONFIG);
    let mends = "grep -q 'does not have a commit checked out' && rm -rf inside && touch work.txt";
    repo.set_agent(&format!("{mends} || {{ {NESTED_REPOSITORY_AGENT}; }}")).add_task("Work");
    let ran = repo.run_ready_tasks();
    assert_eq!((ran.code, repo.events_of_type("pipeline_failed").len()), (0, 1), "{ran}");
    repo.set_agent(&format!(
        "cat > /dev/null; echo x > work.txt\ncase $PWD in *more*) {NESTED_REPOSITORY_AGENT};; esac"
    ))
    .add_task("More")
    .add_task("Last");
    let ran = repo.run_ready_tasks();
    assert_eq!((ran.code, repo.events_of_type("pipeline_failed").len()), (3, 5), "{ran}");
    let reason = repo.show_task("T2")["reason"].as_str().unwrap().to_owned();
    assert!(reason.contains("'inside/' does not have a commit checked out"), "{reason}");
    assert_eq!(repo.show_task("T3")["state"], "completed", "{ran}");
}

/// Failures without a connection to the work are reported as such, and not retried forever.
#[test]
fn unusable_git_filter_ends_run_within_two_turns() {
    let filter = "git config filter.own.clean false; git config filter.own.required true";
    let spoils = format!("{filter}; echo '* filter=own' > .gitattributes; echo x > work.txt; echo >> ../../turns");
    for (words, code) in [(["--task", "T1"], 1), (["--workers", "1"], 1)] {
        let repo = GitProject::new(SUBMIT_CONFIG);
        repo.set_agent(&format!("cat > /dev/null\n{spoils}")).add_task("Work");
        let ran = repo.world.run(&[&["run", "--trust", "--agent", "command:agent"], &words[..]].concat());
        assert_eq!(ran.code, code, "{ran}");
        assert!(ran.stdout.contains("cannot use files that go through a filter"), "{ran}");
        let turns = fs::read_to_string(repo.world.path(".windlass/turns")).unwrap().len();
        assert!((1..=2).contains(&turns), "{turns}\n{ran}");
    }
}

/// Failures of the machine are no fault of the work either.
#[test]
fn killed_or_write_denied_git_ends_run_leaving_task_ready() {
    let denied = "error: insufficient permission for adding an object to repository database .git/objects";
    for (does, said) in
        [("kill -9 $$", "it was ended by signal 9"), (&format!("echo '{denied}' >&2; exit 128"), denied)]
    {
        let repo = GitProject::new(SUBMIT_CONFIG);
        repo.set_agent("cat > /dev/null; echo x > work.txt").add_task("Work");
        let git = repo.world.program_directory().join("../tools/git");
        repo.write_program(
            "git",
            &format!("case \" $* \" in *' add --all '*) {does};; esac\nexec {} \"$@\"", git.display()),
        );
        let ran = repo.run_ready_tasks();
        assert_eq!((ran.code, repo.events_of_type("turn_started").len()), (1, 1), "{ran}");
        assert!(ran.stdout.contains(said), "{ran}");
        assert_eq!(repo.show_task("T1")["state"], "ready");
    }
}

/// The agent cannot fix a refusal that is about the base.
#[test]
fn base_push_rejected_by_server_blocks_task_without_agent_retry() {
    let config = "hooks: {before_submit: [create_pr], before_merge: [merge_pr]}\n";
    let repo = create_rejecting_remote(
        config,
        "test $ref != refs/heads/main || { echo 'main is closed until Monday'; exit 1; }",
    );
    repo.set_agent("cat > /dev/null; echo x > work.txt").add_task("Work");
    let reason = run_until_blocked(&repo);
    assert!(reason.contains("origin refuses to change main: "), "{reason}");
    assert!(reason.contains("main is closed until Monday"), "{reason}");
    assert_eq!(repo.events_of_type("iteration_started").len(), 1);
}

/// A person who merges sees the cause, and one hint.
#[test]
fn refused_merge_reports_cause_and_exactly_one_hint() {
    let repo = GitProject::new(SUBMIT_CONFIG);
    repo.set_agent("cat > /dev/null; echo x > work.txt").add_task("Work");
    assert_eq!(repo.run_ready_tasks().code, 0);
    let path = fs::canonicalize(repo.world.path(".windlass/worktrees/t1-work")).unwrap();
    fs::remove_dir_all(&path).unwrap();
    repo.git(&["worktree", "prune"]);
    repo.world.write(".windlass/worktrees/t1-work/mine.txt", "mine");
    let refused = repo.world.expect_failure(&["change", "merge", "T1", "--trust"]);
    let cause = "it exists, and is not a worktree of this repository\nhint: check its content, and move it away: `mv ";
    assert!(refused.contains(cause) && refused.matches("hint").count() == 1, "{refused}");
}

/// Commits that were pushed to it meanwhile cannot be seen either.
#[test]
fn merge_is_refused_when_newest_base_cannot_be_fetched() {
    let repo = GitProject::with_remote("hooks: {before_submit: [create_pr], before_merge: [merge_pr]}\n");
    repo.push_from_other_clone("echo theirs > theirs.txt");
    // What was pushed is there, and cannot be read.
    let file = "objects/$(git rev-parse main:theirs.txt | sed s:..:\\&/:)";
    repo.set_agent(&format!("echo work > work.txt; others; cd {}; rm -f {file}", repo.remote_path().display()));
    let ran = repo.add_task("Write it").run_ready_tasks();
    assert_eq!(ran.code, 3, "{ran}");
    assert!(ran.stdout.contains("merge_pr failed: cannot tell where main is now: "), "{ran}");
    repo.world.run_ok(&["task", "complete", "T1"]);
    let refused = repo.world.expect_failure(&["change", "merge", "T1", "--no-check"]);
    assert!(refused.contains("a merge needs the newest base"), "{refused}");
}
