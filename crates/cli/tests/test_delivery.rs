//! Work on its way from done to accepted: worktrees, gates, remediation, changes.

use std::fs;
use std::process::Stdio;

use crate::support::TestWorld;
use crate::support::git_project::GitProject;

const DELIVERY_CONFIG: &str = "\
test_command: sh check.sh
hooks:
  before_submit: [rebase_on_main, run_tests, create_pr]
  before_merge: [merge_pr]
";

#[test]
fn failing_tests_are_mended_in_the_same_conversation() {
    let repo = GitProject::with_remote(DELIVERY_CONFIG);
    repo.world.write(
        "check.sh",
        "test ! -f work.txt || grep -q mended work.txt || { echo work.txt is not mended; exit 1; }\n",
    );
    repo.git(&["add", "check.sh"]);
    repo.git(&["commit", "-q", "-m", "Check"]);
    repo.git(&["push", "-q", "origin", "main"]);
    repo.set_agent("if grep -q 'is not mended'; then echo mended >> work.txt; else echo first > work.txt; fi");
    let ran = repo.add_task("Write it").run_ready_tasks();
    assert_eq!(ran.code, 0, "{ran}");
    for told in [
        "in a worktree, on windlass/t1-write-it from main",
        "submitting: one commit, one file",
        "sent back to fix it (1 of 3)",
        "its change: branch windlass/t1-write-it",
        "merged as ",
        "T1 is completed",
    ] {
        assert!(ran.stdout.contains(told), "{told}\n{ran}");
    }
    let task = repo.show_task("T1");
    assert_eq!(task["state"], "completed");
    let failed = repo.events_of_type("pipeline_failed");
    assert_eq!((failed.len(), failed[0]["data"]["remedy"].as_str()), (1, Some("remediate")));
    // The work is in the remote's branch, and nothing of it is left.
    repo.git(&["fetch", "-q"]);
    assert_eq!(repo.show_file("origin/main:work.txt"), "first\nmended");
    assert_eq!(repo.git(&["for-each-ref", "--format=%(refname)", "refs/heads/windlass", "refs/windlass"]), "");
    assert_eq!(repo.git_in(&repo.remote_path(), &["branch", "--list", "windlass/*"]), "");
    assert!(fs::read_dir(repo.world.path(".windlass/worktrees")).unwrap().next().is_none());
    // No branch of the user was moved.
    assert_eq!(repo.git(&["log", "--format=%s", "main"]), "Check\nBegin");
    let why = repo.world.run_ok(&["why", "T1", "--full"]);
    for told in [
        "iteration 1 of tasks\n",
        "work.txt is not mended; the agent must fix it (1 of 3)\n",
        "| work.txt is not mended",
        "submission_started        2 commits, one file\n",
        "change_merged ",
    ] {
        assert!(why.contains(told), "{told}\n{why}");
    }
}

#[test]
fn conflict_is_reported_with_files_and_resolved_by_agent() {
    let repo = GitProject::with_remote(DELIVERY_CONFIG.replace("run_tests, ", "").as_str());
    repo.push_from_other_clone("sed -i s/two/theirs/ a.txt");
    repo.set_agent(
        "prompt=$(cat)\ncase $prompt in *'- a.txt'*)\n  \
         git rebase -q origin/main >/dev/null 2>&1; printf 'one\\ntheirs and ours\\nthree\\n' > a.txt; git add a.txt\n  \
         GIT_EDITOR=: git rebase --continue >/dev/null;;\n\
         *) sed -i s/two/ours/ a.txt; others;; esac",
    );
    let ran = repo.add_task("Change two").run_ready_tasks();
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("conflicts with origin/main in one file"), "{ran}");
    assert_eq!(repo.events_of_type("pipeline_failed")[0]["data"]["why"], "conflicts");
    repo.git(&["fetch", "-q"]);
    assert_eq!(repo.show_file("origin/main:a.txt"), "one\ntheirs and ours\nthree");
}

#[test]
fn task_without_changes_opens_no_change_and_needs_continuation() {
    let repo = GitProject::new("");
    repo.set_agent("true");
    let ran = repo.add_task("Do nothing").run_ready_tasks();
    assert_eq!(ran.code, 3, "{ran}");
    let task = repo.show_task("T1");
    assert_eq!(task["state"], "needs_continuation");
    assert!(task["reason"].as_str().unwrap().starts_with("no changes: "), "{task}");
    assert!(repo.events_of_type("change_opened").is_empty());
    let told = repo.world.run_ok(&["task", "complete", "T1"]);
    assert!(!told.contains("windlass/t1-do-nothing"), "{told}");
}

#[test]
fn completing_a_task_by_hand_names_the_branch_that_has_work() {
    for work in ["echo work > work.txt", "echo work > work.txt; git add .; git commit -q -m Work"] {
        let repo = GitProject::new("");
        repo.write_program("agent", &format!("{work}; echo '<promise>BLOCKED</promise>'"));
        assert_eq!(repo.add_task("Write it").run_ready_tasks().code, 4);
        let told = repo.world.run_ok(&["task", "complete", "T1", "--force"]);
        assert!(told.contains("no change was opened: what was done is on the branch windlass/t1-write-it"), "{told}");
    }
}

#[test]
fn completed_task_opens_change_with_empty_configuration() {
    let repo = GitProject::new("");
    repo.set_agent("echo work > work.txt");
    let ran = repo.add_task("Write it").run_ready_tasks();
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("next: windlass change merge T1  # look first: windlass change show T1\n"), "{ran}");
    assert_eq!(repo.show_task("T1")["state"], "completed");
    let change = repo.world.json(&["change", "list"]);
    assert_eq!((&change["id"], &change["state"], &change["base"]), (&"T1".into(), &"open".into(), &"main".into()));
    assert_eq!((&change["commits"], &change["files"]), (&1.into(), &1.into()));
    assert!(repo.world.run_ok(&["status"]).contains("1 open change: `windlass change list`"));
    let shown = repo.world.run_ok(&["task", "show", "T1"]);
    for told in
        ["windlass/t1-write-it from main", ".windlass/worktrees/t1-write-it", "branch windlass/t1-write-it, open"]
    {
        assert!(shown.contains(told), "{told}\n{shown}");
    }
}

#[test]
fn task_type_hooks_apply_only_to_tasks_of_that_type() {
    let config = "\
hooks:
  before_submit: [create_pr]
task_types:
  docs:
    hooks:
      before_submit:
        - name: spelled
          command: grep -q spelled work.txt || { echo not spelled >&2; exit 2; }
        - create_pr
";
    let repo = GitProject::new(config);
    repo.set_agent("if grep -q 'not spelled'; then echo spelled >> work.txt; else echo work > work.txt; fi");
    repo.world.run_ok(&["task", "add", "A document", "--type", "docs"]);
    let ran = repo.add_task("Any other").run_ready_tasks();
    assert_eq!(ran.code, 0, "{ran}");
    let sent_back = repo.events_of_type("pipeline_failed");
    assert_eq!(sent_back.len(), 1, "{ran}");
    assert_eq!((&sent_back[0]["nodeId"], &sent_back[0]["data"]["hook"]), (&"T1".into(), &"spelled".into()));
    assert_eq!(repo.events_of_type("change_opened").len(), 2);
}

#[test]
fn dependent_task_stacks_on_unmerged_work_and_merges_after_it() {
    let repo = GitProject::new("");
    repo.set_agent("if [ -f first.txt ]; then echo second > second.txt; else echo first > first.txt; fi");
    repo.add_task("The first");
    repo.world.run_ok(&["task", "add", "The second", "--depends", "T1"]);
    let ran = repo.run_ready_tasks();
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(repo.show_task("T2")["workspace"]["stackedOn"][0], "T1");
    let seen = repo.world.json(&["change", "show", "T2"]);
    assert_eq!(seen["changed"].as_array().unwrap().len(), 1, "{seen}");
    let refused = repo.world.expect_failure(&["change", "merge", "T2"]);
    assert!(
        refused.contains("it stands on the work of T1") && refused.contains("`windlass change merge T1` first"),
        "{refused}"
    );
    repo.world.run_ok(&["change", "merge", "T1"]);
    repo.world.run_ok(&["change", "merge", "T2"]);
    assert_eq!(
        (repo.show_file("main:first.txt"), repo.show_file("main:second.txt")),
        ("first".into(), "second".into())
    );
    // The tree that has the branch checked out was updated, too.
    assert_eq!(fs::read_to_string(repo.world.path("second.txt")).unwrap(), "second\n");
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    assert_eq!(repo.git(&["for-each-ref", "refs/heads/windlass"]), "");
}

#[test]
fn outside_git_work_is_done_in_place() {
    let world = TestWorld::new();
    world.write(".windlass/config.yaml", DELIVERY_CONFIG);
    world.write("check.sh", "true\n");
    let agent = world.write("agent.sh", "echo work > work.txt\necho '<promise>COMPLETE</promise>'\n");
    let agent = format!("command:sh {}", agent.display());
    world.run_ok(&["task", "add", "Write it"]);
    let ran = world.run(&["run", "--trust", "--agent", &agent]);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("create_pr skipped: the work was done in place"), "{ran}");
    assert!(world.path("work.txt").exists());
    assert!(world.expect_failure(&["change", "merge", "T1"]).contains("T1 has no change"));
}

/// The user's files, byte for byte.
fn snapshot_user_files(repo: &GitProject) -> Vec<(String, String)> {
    let mut seen: Vec<(String, String)> = [
        &["rev-parse", "HEAD"][..],
        &["stash", "list", "--format=%H"],
        &["for-each-ref", "refs/heads/main", "refs/heads/mine", "refs/tags"],
        &["status", "--porcelain=v2", "--untracked-files=all", "--ignored"],
        &["diff"],
        &["diff", "--cached"],
    ]
    .iter()
    .map(|words| (words.join(" "), repo.git(words)))
    .collect();
    let index = fs::read(repo.world.path(".git/index")).unwrap();
    seen.push(("index".to_owned(), format!("{index:?}")));
    seen.push(("HEAD".to_owned(), fs::read_to_string(repo.world.path(".git/HEAD")).unwrap()));
    for name in ["a.txt", "b.txt", "untracked.txt"] {
        seen.push((name.to_owned(), fs::read_to_string(repo.world.path(name)).unwrap()));
    }
    seen.retain(|(what, _)| !what.starts_with("status"));
    seen
}

#[test]
fn delivery_leaves_user_worktree_index_and_stash_unchanged() {
    for detached in [false, true] {
        let repo = GitProject::with_remote(DELIVERY_CONFIG.replace("run_tests, ", "").as_str());
        repo.world.write("b.txt", "b\n");
        repo.git(&["add", "b.txt"]);
        repo.world.write("a.txt", "stashed\n");
        repo.git(&["stash", "push", "-q", "a.txt"]);
        repo.world.write("a.txt", "messy\n");
        repo.world.write("b.txt", "b, changed after it was added\n");
        repo.world.write("untracked.txt", "untracked\n");
        if detached {
            repo.git(&["checkout", "-q", "--detach"]);
        } else {
            repo.git(&["checkout", "-q", "-b", "mine"]);
        }
        // `git status` may refresh the index, so it runs before and not only after.
        repo.git(&["status"]);
        let before = snapshot_user_files(&repo);
        repo.set_agent("echo work > work.txt");
        repo.add_task("Write it");
        let elsewhere = repo.world.path("../elsewhere");
        let mut command = repo.world.command(&["run", "--trust", "--agent", "command:agent"]);
        command
            .env("GIT_DIR", &elsewhere)
            .env("GIT_INDEX_FILE", elsewhere.join("index"))
            .env("GIT_WORK_TREE", &elsewhere);
        let ran = repo.world.run_command(&mut command);
        assert_eq!(ran.code, 0, "{ran}");
        assert!(ran.stdout.contains("merged as "), "{ran}");
        assert!(!elsewhere.exists());
        assert_eq!(before, snapshot_user_files(&repo), "detached: {detached}");
        repo.git(&["fetch", "-q"]);
        assert_eq!(repo.show_file("origin/main:work.txt"), "work");
        assert_eq!(repo.git(&["ls-tree", "--name-only", "origin/main", "b.txt", "untracked.txt"]), "");
    }
}

#[test]
fn work_is_judged_again_when_base_moves_before_merge() {
    let config = "\
test_command: echo tested >> $WINDLASS_PROJECT_DIR/tested.log
hooks:
  before_submit: [rebase_on_main, run_tests, create_pr]
  before_merge:
    - name: meanwhile
      command: test -f $WINDLASS_PROJECT_DIR/moved || { touch $WINDLASS_PROJECT_DIR/moved; others; }
    - run_tests
    - merge_pr
";
    let repo = GitProject::with_remote(config);
    repo.push_from_other_clone("echo theirs > theirs.txt");
    repo.set_agent("echo work > work.txt");
    let ran = repo.add_task("Write it").run_ready_tasks();
    assert_eq!(ran.code, 0, "{ran}");
    let moved: Vec<&str> = ran.stdout.lines().filter(|line| line.contains("main has moved; on top of ")).collect();
    assert!(moved.len() == 1 && moved[0].ends_with(": judged again"), "{ran}");
    assert!(ran.stdout.contains("  merging\n") && !ran.stdout.contains("wants another iteration"), "{ran}");
    assert!(repo.world.run_ok(&["why", "T1", "--full"]).contains(": judged again\n"));
    assert_eq!(repo.events_of_type("pipeline_failed")[0]["data"]["remedy"], "again");
    // An outcome of its own, not a failure.
    let merging = ["hooks", "history", "--hook", "before_merge[2]:merge_pr"];
    let history = repo.world.run_ok(&merging);
    assert!(history.contains("  judged again  ") && !history.contains("another iteration"), "{history}");
    let ended = repo.world.json_lines(&[&merging[..], &["--json"]].concat());
    assert_eq!(ended.iter().map(|run| run["outcome"].clone()).collect::<Vec<_>>(), ["again", "success"]);
    let metrics = repo.world.json_lines(&["hooks", "metrics", "--hook", "before_merge[2]:merge_pr", "--json"]);
    let total = &metrics[0]["total"];
    assert_eq!(
        (&total["again"], &total["other"], &total["failure"], &total["success"]),
        (&1.into(), &0.into(), &0.into(), &1.into())
    );
    // Once before the submission and once before the merge, and both again on top of the new base.
    assert_eq!(fs::read_to_string(repo.world.path("tested.log")).unwrap().lines().count(), 4);
    repo.git(&["fetch", "-q"]);
    assert_eq!(
        (repo.show_file("origin/main:work.txt"), repo.show_file("origin/main:theirs.txt")),
        ("work".into(), "theirs".into())
    );
}

/// The merge was about to begin when the base moved, and the work does not pass on top of it.
#[test]
fn task_that_is_worked_on_again_does_not_block_merges_of_others() {
    let config = "\
hooks:
  before_submit: [create_pr]
  before_merge:
    - name: check
      command: cd $WINDLASS_PROJECT_DIR; if [ -f worked ]; then exit 0; elif [ -f moved ]; then exit 2; else touch moved; others; fi
    - merge_pr
";
    let repo = GitProject::with_remote(config);
    repo.push_from_other_clone("echo theirs > theirs.txt");
    repo.set_agent("echo work >> work.txt; cd ../../..; if [ -f moved ]; then touch worked; echo > began; cat go; fi");
    ["began", "go"].iter().for_each(|pipe| repo.world.make_pipe(pipe));
    repo.add_task("Write it");
    let mut run = repo.world.command(&["run", "--trust", "--agent", "command:agent"]);
    let run = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    repo.world.await_pipe("began");
    let merging = fs::File::open(repo.world.path(".windlass/merge.lock")).unwrap().try_lock();
    repo.world.write("go", "go\n");
    let ran = run.wait_with_output().unwrap();
    assert!(ran.status.success() && merging.is_ok(), "{merging:?} {ran:?}");
}

/// A git hook that calls us means its own repository; the agent and the steps mean the worktree.
#[test]
fn git_variables_of_caller_reach_neither_agent_nor_steps() {
    let repo =
        GitProject::new("test_command: git add -A; git diff --cached --quiet\nhooks: {before_submit: [run_tests]}\n");
    repo.set_agent("cat > /dev/null; echo x > work.txt; git add -A; git commit -qm work");
    repo.add_task("Work");
    let at = |name: &str| repo.world.path(name);
    let before = (repo.git(&["rev-parse", "HEAD"]), fs::read(at(".git/index")).unwrap());
    let mut command = repo.world.command(&["run", "--trust", "--agent", "command:agent"]);
    command.env("GIT_DIR", at(".git")).env("GIT_WORK_TREE", at("")).env("GIT_INDEX_FILE", at(".git/index"));
    let ran = repo.world.run_command(&mut command);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!((repo.git(&["rev-parse", "HEAD"]), fs::read(at(".git/index")).unwrap()), before);
    assert_eq!(repo.show_file("windlass/t1-work:work.txt"), "x");
}

/// An agent without a worktree gets no prompt: it would read it in the person's own tree.
#[test]
fn agent_never_works_in_users_tree_when_its_worktree_is_missing() {
    let repo = GitProject::new("");
    repo.set_agent("cat > /dev/null; echo x > work.txt");
    repo.add_task("Work").git(&["branch", "windlass/t1-work"]);
    assert_eq!(repo.run_ready_tasks().code, 4);
    repo.world.run_ok(&["answer", "T1", "continue", "use another name"]);
    let ran = repo.run_ready_tasks();
    assert_eq!(ran.code, 4, "{ran}");
    assert!(!repo.world.path("work.txt").exists(), "{ran}");
}

/// Only a person may override, whatever an agent does to its environment.
#[test]
fn agent_cannot_force_complete_its_task_past_failing_hook() {
    let repo = GitProject::new("hooks: {before_submit: [{command: exit 2}]}\nlimits: {max_remediations: 0}\n");
    let own = env!("CARGO_BIN_EXE_windlass");
    repo.set_agent(&format!(
        "cat > /dev/null; echo x > work.txt\nunset WINDLASS_RUN WINDLASS_DEBT\n{own} task complete T1 --force 2>> said\nrm -f said"
    ));
    let ran = repo.add_task("Work").run_ready_tasks();
    assert_eq!((ran.code, repo.show_task("T1")["state"].as_str()), (3, Some("needs_continuation")), "{ran}");
}

#[test]
fn failing_submission_hook_is_retried_before_work_is_sent_back() {
    let flaky = "echo x >> ../tries; test $(wc -l < ../tries) -ge 3 || { echo no browser; exit 2; }";
    let repo = GitProject::new(&format!(
        "test_command: '{flaky}'\nhooks: {{before_submit: [{{name: tests, use: run_tests, retry: {{max: 2, backoff: 1ms}}}}, create_pr]}}\n"
    ));
    repo.set_agent("cat > /dev/null; echo x > work.txt").add_task("Work");
    let ran = repo.run_ready_tasks();
    assert_eq!(ran.code, 0, "{ran}");
    assert!(!ran.stdout.contains("sent back"), "{ran}");
    let tries: Vec<_> = repo.events_of_type("hook_started").iter().map(|event| event["data"]["hook"].clone()).collect();
    assert_eq!(tries.iter().filter(|hook| *hook == "tests").count(), 3, "{tries:?}");
}

#[test]
fn rules_between_done_and_accepted_know_what_the_work_changes() {
    let rule = "{when: \"'auth/login.txt' in filesModified\", action: escalate, reason: 'for a person: {{ filesModified | join(\", \") }}'}";
    let repo = GitProject::new(&format!(
        "hooks:\n  before_submit: [create_pr]\n  before_merge: [{{name: guard, rules: [{rule}]}}, merge_pr]\n"
    ));
    repo.git(&["switch", "-q", "-c", "mine"]);
    repo.set_agent("cat > /dev/null; mkdir -p auth; echo $WINDLASS_TASK_ID > auth/login.txt; git add .; git commit -qm Mine; echo x > b.txt")
        .add_task("Work");
    let ran = repo.run_ready_tasks();
    assert_eq!(ran.code, 4, "{ran}");
    assert!(ran.stdout.contains("guard asks for a person: for a person: auth/login.txt, b.txt"), "{ran}");
    repo.set_agent("cat > /dev/null; echo x > c.txt").add_task("Other work");
    let ran = repo.run_ready_tasks();
    assert!(ran.stdout.contains("T2 is completed"), "{ran}");
}

/// The task was taken away during the check of the base: the rest belongs to its new holder.
#[test]
fn task_claimed_by_another_owner_during_merge_is_not_merged() {
    let config = "hooks: {before_merge: [{name: judge, command: ': > \"$WINDLASS_PROJECT_DIR\"/judged'}, merge_pr]}\n";
    let repo = GitProject::with_remote(config);
    repo.world.make_pipe("looked");
    repo.world.make_pipe("go");
    let [judged, looked, go] = ["judged", "looked", "go"].map(|name| repo.world.path(name).display().to_string());
    let pack = format!("if rm '{judged}' 2>&-; then echo > '{looked}'; cat '{go}'; fi\nexec git-upload-pack \"$@\"");
    repo.git(&["config", "remote.origin.uploadpack", repo.write_program("pack", &pack).to_str().unwrap()]);
    repo.set_agent("cat > /dev/null; echo x > work.txt").add_task("Work");
    let before = repo.git(&["ls-remote", "origin", "main"]);
    let mut run = repo.world.command(&["run", "--trust", "--agent", "command:agent"]);
    let run = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    repo.world.await_pipe("looked");
    repo.world.run_ok(&["task", "release", "T1", "--force"]);
    repo.world.run_ok(&["task", "claim", "T1", "--owner", "bob"]);
    repo.world.write("go", "");
    let ended = run.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(3), "{ended:?}");
    assert_eq!(repo.git(&["ls-remote", "origin", "main"]), before);
    assert_eq!(repo.show_task("T1")["lease"]["owner"], "bob");
}

/// The delivery turn comes before the merge: its commits are merged, too.
#[test]
fn commit_of_delivery_turn_is_merged() {
    let config = "hooks:
  post_iteration: [{command: echo by the way, pipe_output: true}]
  before_submit: [create_pr]
  before_merge: [merge_pr]
";
    let repo = GitProject::with_remote(config);
    repo.set_agent(
        "if grep -q 'by the way'; then echo last > last.txt; git add last.txt; git commit -q -m Last
         else echo first > work.txt; fi",
    );
    let ran = repo.add_task("Write it").run_ready_tasks();
    assert_eq!(ran.code, 0, "{ran}");
    repo.git(&["fetch", "-q"]);
    assert_eq!(
        (repo.show_file("origin/main:work.txt"), repo.show_file("origin/main:last.txt")),
        ("first".into(), "last".into())
    );
    assert_eq!(repo.git(&["for-each-ref", "--format=%(refname)", "refs/heads/windlass", "refs/windlass"]), "");
}

#[test]
fn hook_that_blocks_after_the_merge_ends_the_run_for_a_person() {
    let repo = GitProject::with_remote(
        "hooks:\n  before_submit: [create_pr]\n  before_merge: [merge_pr, {name: deploy, command: 'echo no room >&2; exit 2'}]\n  \
         on_task_complete: [{command: 'true'}]\n",
    );
    repo.set_agent("echo work > work.txt");
    repo.world.run_ok(&["task", "add", "Write it"]);
    let ran = repo.run_ready_tasks();
    assert_eq!(ran.code, 4, "{ran}");
    assert!(ran.stdout.contains("`deploy` does not pass after the merge: no room\n"), "{ran}");
    assert!(ran.stdout.contains("next: windlass why "), "{ran}");
    assert_eq!(repo.show_task("T1")["state"], "completed");
    assert!(ran.stdout.contains("on_task_complete[0] ok"), "the hooks of the completion run: {ran}");
}

#[test]
fn workers_whose_completed_tasks_have_an_objection_end_for_a_person() {
    let check = |after_merge: &str, at_completion: &str, why: &str| {
        let repo = GitProject::with_remote(&format!(
            "hooks:\n  before_submit: [create_pr]\n  before_merge: [merge_pr{after_merge}]\n  \
             on_task_complete: [{at_completion}]\n"
        ));
        repo.set_agent("echo work > $WINDLASS_TASK_ID.txt");
        repo.world.run_ok(&["task", "add", "One"]);
        repo.world.run_ok(&["task", "add", "Two"]);
        let ran = repo.world.run(&["run", "--workers", "1", "--trust", "--agent", "command:agent"]);
        assert_eq!(ran.code, 4, "{ran}");
        for (id, goal) in [("T1", "One"), ("T2", "Two")] {
            assert_eq!(repo.show_task(id)["state"], "completed");
            assert!(ran.stdout.contains(&format!("for a person: {id}  {goal}: {why}\n")), "{ran}");
            assert!(ran.stdout.contains(&format!("next: windlass why {id}\n")), "{ran}");
        }
    };
    let deploy = ", {name: deploy, command: 'echo no room >&2; exit 2'}";
    check(deploy, "", "`deploy` does not pass after the merge: no room");
    let tell = "{name: tell, command: 'echo no line >&2; exit 1', on_failure: escalate}";
    check("", tell, "`tell` asks for a person: exit 1: no line");
}
