//! `windlass change`: how a person inspects and merges work.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::support::git_project::GitProject;

fn create_change(config: &str, script: &str) -> GitProject {
    let repo = GitProject::new(config);
    repo.set_agent(script);
    let ran = repo.add_task("Write it").run_ready_tasks();
    assert_eq!(ran.code, 0, "{ran}");
    repo
}

#[test]
fn change_merge_with_uncommitted_user_work_is_refused() {
    let repo = create_change("", "sed -i s/two/2/ a.txt");
    repo.world.write("a.txt", "mine\n");
    let refused = repo.world.expect_failure(&["change", "merge", "T1"]);
    assert!(refused.contains("there is uncommitted work in a.txt"), "{refused}");
    assert!(refused.contains("hint: commit or stash that"), "{refused}");
    assert_eq!(fs::read_to_string(repo.world.path("a.txt")).unwrap(), "mine\n");
    repo.git(&["checkout", "-q", "a.txt"]);
    let merged = repo.world.run_ok(&["change", "merge", "T1"]);
    assert!(merged.starts_with("T1  merged into main as "), "{merged}");
    assert_eq!(fs::read_to_string(repo.world.path("a.txt")).unwrap(), "one\n2\nthree\n");
    assert!(repo.world.run_ok(&["change", "merge", "T1"]).contains("is merged already"));
    assert!(repo.world.run_ok(&["change", "list"]).starts_with("no open changes"));
    let all = repo.world.json(&["change", "list", "--all"]);
    assert_eq!(all["state"], "merged");
    let shown = repo.world.run_ok(&["change", "show", "T1"]);
    assert!(shown.contains("+2\n") && shown.contains("merged as "), "{shown}");
    assert!(repo.world.run_ok(&["why", "T1"]).contains(" by ann"));
}

#[test]
fn change_merge_rebases_onto_newer_base_and_reruns_checks() {
    let config = "test_command: sh check.sh\nhooks:\n  before_submit: [run_tests, create_pr]\n  after_merge:\n    - command: echo after >> after.log\n";
    let repo = GitProject::untrusted(config);
    repo.world.write("check.sh", "test ! -f theirs.txt || test ! -f work.txt\n");
    repo.git(&["add", "."]);
    repo.git(&["commit", "-q", "-m", "Check"]);
    repo.set_agent("echo work > work.txt");
    let ran = repo.add_task("Write it").run_ready_tasks();
    assert_eq!(ran.code, 0, "{ran}");
    repo.world.write("theirs.txt", "theirs\n");
    repo.git(&["add", "theirs.txt"]);
    repo.git(&["commit", "-q", "-m", "Theirs"]);
    assert!(
        repo.world.expect_failure(&["change", "merge", "T1"]).contains("--no-check merges without running anything")
    );
    let refused = repo.world.expect_failure(&["change", "merge", "T1", "--trust"]);
    assert!(refused.contains("`before_submit[0]:run_tests` does not pass on top of the newest main"), "{refused}");
    repo.world.write("check.sh", "true\n");
    repo.git(&["commit", "-q", "-am", "Check less"]);
    let merged = repo.world.run_ok(&["change", "merge", "T1", "--trust"]);
    assert!(merged.contains("rebased onto the newest base, where before_submit[0]:run_tests passed"), "{merged}");
    assert_eq!(repo.show_file("main:work.txt"), "work");
    assert_eq!(fs::read_to_string(repo.world.path("after.log")).unwrap(), "after\n");
}

/// One check too many is better than one too few.
#[test]
fn merge_check_runs_when_its_condition_cannot_be_evaluated() {
    let config = "hooks:\n  before_submit:\n    - {name: check, when: 'tool_input.missing.deep == 1', command: test ! -f theirs.txt}\n    - create_pr\n";
    let repo = create_change(config, "echo work > work.txt");
    repo.world.write("theirs.txt", "theirs\n");
    repo.git(&["add", "theirs.txt"]);
    repo.git(&["commit", "-q", "-m", "Theirs"]);
    let refused = repo.world.expect_failure(&["change", "merge", "T1", "--trust"]);
    assert!(refused.contains("`check` does not pass on top of the newest main"), "{refused}");
    // The words of the hint for the agent reach it.
    let offered = "hint: `windlass task reopen T1 --force --reason 'check does not pass on top of main'` and `windlass run \
                   --task T1 --agent command:agent --trust` have an agent fix it";
    assert!(refused.contains(offered), "{refused}");
    repo.world.run_ok(&["task", "reopen", "T1", "--force", "--reason", "check does not pass on top of main"]);
    let prompt = repo.world.path("prompt.txt");
    repo.set_agent(&format!("cat > {}; git rm -q theirs.txt; git commit -q -m Mended", prompt.display()));
    let ran = repo.world.run(&["run", "--task", "T1", "--agent", "command:agent", "--trust"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(fs::read_to_string(prompt).unwrap().contains("check does not pass on top of main"));
}

#[test]
fn blocked_task_whose_check_fails_at_the_merge_is_offered_an_answer() {
    let config = "hooks:\n  before_submit:\n    - {name: check, command: test ! -f theirs.txt}\n    - create_pr\n  \
                  before_merge:\n    - {name: never, command: exit 1, on_failure: escalate}\n";
    let repo = GitProject::new(config);
    repo.set_agent("echo work > work.txt");
    assert_eq!(repo.add_task("Write it").run_ready_tasks().code, 4);
    repo.world.write("theirs.txt", "theirs\n");
    repo.git(&["add", "theirs.txt"]);
    repo.git(&["commit", "-q", "-m", "Theirs"]);
    let refused = repo.world.expect_failure(&["change", "merge", "T1", "--trust"]);
    let offered =
        "hint: `windlass answer T1 continue 'check does not pass on top of main'` and `windlass run --task T1";
    assert!(refused.contains(offered), "{refused}");
    repo.world.run_ok(&["answer", "T1", "continue", "check does not pass on top of main"]);
    assert_eq!(repo.show_task("T1")["state"], "ready");
}

/// A check that is broken, late or asks for a person has not blocked.
#[test]
fn check_that_cannot_judge_is_not_told_as_a_verdict() {
    let asks = r#"test ! -f theirs.txt || echo '{"action": "escalate", "reason": "ask Bob"}'"#;
    for (command, cause, said, hint) in [
        (
            "./check.sh",
            "`check` could not judge the work",
            "`./check.sh` does not exist",
            "fix the hook, and try again",
        ),
        (
            "test ! -f theirs.txt || sleep 60",
            "`check` ran out of time",
            "timed out",
            "give it more `timeout`, and try again",
        ),
        (asks, "`check` asks for a person", "ask Bob", "look at what it says"),
    ] {
        let command = command.replace('\'', "''");
        let config = |timeout| {
            let check = format!("{{name: check, command: '{command}'{timeout}}}");
            format!("hooks:\n  before_submit:\n    - {check}\n    - create_pr\n")
        };
        let repo = GitProject::new(&config(""));
        repo.world.write("check.sh", "#!/bin/sh\n");
        repo.git(&["add", "check.sh"]);
        repo.git(&["update-index", "--chmod=+x", "check.sh"]);
        repo.git(&["commit", "-q", "-m", "Check"]);
        repo.set_agent("echo work > work.txt");
        let ran = repo.add_task("Write it").run_ready_tasks();
        assert_eq!(ran.code, 0, "{ran}");
        repo.world.write("theirs.txt", "theirs\n");
        repo.git(&["rm", "-q", "--cached", "check.sh"]);
        repo.git(&["add", "theirs.txt"]);
        repo.git(&["commit", "-q", "-m", "Theirs"]);
        if said == "timed out" {
            repo.world.write(".windlass/config.yaml", config(", timeout: 300ms"));
        }
        let refused = repo.world.expect_failure(&["change", "merge", "T1", "--trust"]);
        assert!(refused.contains(&format!("caused by: {cause} on top of the newest main\n")), "{refused}");
        assert!(refused.contains(said) && !refused.contains("does not pass"), "{refused}");
        assert!(refused.contains(&format!("hint: {hint}; --no-check merges it unchecked")), "{refused}");
    }
}

#[test]
fn merge_by_hand_that_rebases_asks_the_stop_hooks_that_judge_files() {
    let rules = "{name: rules, rules: [{when: 'iteration > 90', action: escalate}]}";
    let check = "{name: together, command: 'test ! -e theirs.txt || { echo red together; exit 2; }'}";
    let repo = create_change(&format!("hooks:\n  stop:\n    - {check}\n    - {rules}\n"), "echo work > work.txt");
    repo.world.write("theirs.txt", "theirs\n");
    repo.git(&["add", "theirs.txt"]);
    repo.git(&["commit", "-q", "-m", "Theirs"]);
    let refused = repo.world.expect_failure(&["change", "merge", "T1", "--trust"]);
    assert!(refused.contains("`together` does not pass on top of the newest main"), "{refused}");
    assert!(refused.contains("red together"), "{refused}");
    repo.git(&["rm", "-q", "theirs.txt"]);
    repo.git(&["commit", "-q", "-m", "Without"]);
    let merged = repo.world.run_ok(&["change", "merge", "T1", "--trust"]);
    assert!(merged.contains("rebased onto the newest base, where together passed\n"), "{merged}");
    assert!(merged.contains("not run without an agent's turn: rules (stop)\n"), "{merged}");
}

#[test]
fn merge_by_hand_that_rebases_tells_stop_hooks_of_the_work_and_names_those_not_asked() {
    let knows = r#"{name: knows, command: 'jq -e ''(.agentOutput|test("COMPLETE")) and .filesModified == ["work.txt"]'' || exit 2', when: 'promise == "COMPLETE"'}"#;
    let late = "{name: late, command: 'true', when: 'iteration > 90'}";
    let other = "{name: other, command: 'true', when: 'task_type == \"bug\"'}";
    let agents = "agents: {own: {driver: command, command: agent, hooks: {stop: [{name: own, command: 'true'}]}}}";
    let config = format!(
        "agent: own\n{agents}\nvalidation: [{{type: command, name: there, config: {{command: 'true'}}}}]\nhooks: {{stop: [{knows}, {late}, {other}]}}\n"
    );
    let repo = GitProject::new(&config);
    repo.set_agent("echo work > work.txt");
    let ran = repo.add_task("Write it").world.run(&["run", "--trust"]);
    assert_eq!(ran.code, 0, "{ran}");
    repo.world.write("theirs.txt", "theirs\n");
    repo.git(&["add", "theirs.txt"]);
    repo.git(&["commit", "-q", "-m", "Theirs"]);
    let merged = repo.world.json(&["change", "merge", "T1", "--trust"]);
    assert_eq!(merged["checks"], serde_json::json!(["knows", "own"]), "{merged}");
    assert_eq!(merged["unasked"], serde_json::json!(["validation", "late"]), "{merged}");
}

#[test]
fn check_with_retry_is_tried_again_before_a_merge_by_hand() {
    let config = "hooks:\n  before_submit:\n    - {name: flaky, command: 'echo x >> tries; test $(wc -l < tries) -ge 3', retry: {max: 3, backoff: 1ms}}\n    - create_pr\n";
    let repo = create_change(&config.replace("tries", "$WINDLASS_PROJECT_DIR/tries"), "echo work > work.txt");
    fs::remove_file(repo.world.path("tries")).unwrap();
    repo.world.write("theirs.txt", "theirs\n");
    repo.git(&["add", "theirs.txt"]);
    repo.git(&["commit", "-q", "-m", "Theirs"]);
    let merged = repo.world.run_ok(&["change", "merge", "T1", "--trust"]);
    assert!(merged.contains("rebased onto the newest base, where flaky passed"), "{merged}");
    assert_eq!(fs::read_to_string(repo.world.path("tries")).unwrap(), "x\nx\nx\n");
    assert!(repo.world.run_ok(&["doctor"]).contains("ok"), "what is tried by hand owes nothing");
}

#[test]
fn conflicts_are_shown_and_change_nothing() {
    let repo = create_change("", "sed -i s/two/ours/ a.txt");
    repo.world.write("a.txt", "one\ntheirs\nthree\n");
    repo.git(&["commit", "-q", "-am", "Theirs"]);
    let before = repo.git(&["for-each-ref"]);
    let refused = repo.world.expect_failure(&["change", "merge", "T1"]);
    assert!(refused.contains("caused by: a.txt") && refused.contains("nothing has changed"), "{refused}");
    assert_eq!(before, repo.git(&["for-each-ref"]));
}

/// The command that a refusal offers is typed as it is printed.
#[test]
fn offered_command_has_the_agent_resolve_the_conflict() {
    let repo = create_change("", "sed -i s/two/ours/ a.txt");
    repo.world.write("a.txt", "one\ntheirs\nthree\n");
    repo.git(&["commit", "-q", "-am", "Theirs"]);
    let refused = repo.world.expect_failure(&["change", "merge", "T1"]);
    let (_, offered) = refused.split_once("nothing has changed; `windlass ").unwrap();
    let (offered, rest) = offered.split_once('`').unwrap();
    assert_eq!(offered, "run --resolve T1 --agent command:agent");
    assert!(rest.starts_with(" has the agent resolve them, or do it yourself in "), "{refused}");
    let prompt = repo.world.path("prompt.txt");
    repo.set_agent(&format!(
        "cat > {}\ngit merge -q main >/dev/null 2>&1; printf 'one\\nboth\\nthree\\n' > a.txt; git commit -q -am Both",
        prompt.display()
    ));
    let ran = repo.world.run(&offered.split(' ').collect::<Vec<_>>());
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(ran.stdout.matches("ann says: ").count(), 1, "{ran}");
    let prompt = fs::read_to_string(prompt).unwrap();
    for told in ["- a.txt\n", "<<<<<<< this branch\nours\n=======\ntheirs\n>>>>>>> main\n"] {
        assert!(prompt.contains(told), "{told}\n{prompt}");
    }
    assert!(repo.world.run_ok(&["change", "merge", "T1"]).contains("merged into main"));
    assert_eq!(repo.show_file("main:a.txt"), "one\nboth\nthree");
    assert!(
        repo.world
            .expect_failure(&["run", "--resolve", "T1", "--agent", "command:agent"])
            .contains("it has no open change")
    );
}

#[test]
fn resolve_without_a_conflict_offers_the_merge_with_the_trust_it_needs() {
    let repo = GitProject::untrusted("hooks: {before_submit: [{name: ok, command: 'true'}, create_pr]}\n");
    assert_eq!(repo.set_agent("echo x > work.txt").add_task("Write it").run_ready_tasks().code, 0);
    let refused = repo.world.expect_failure(RESOLVE_COMMAND);
    let offered = "windlass change merge T1 --trust";
    assert!(refused.contains(&format!("hint: `{offered}` merges it\n")), "{refused}");
    repo.world.run_ok(&offered.split(' ').skip(1).collect::<Vec<_>>());
}

/// The agent claims once without having done anything. The conflict that it has to resolve keeps its work from being submitted.
#[test]
fn agent_that_leaves_the_conflict_is_sent_back_with_both_sides() {
    let repo = create_change("", "sed -i s/two/ours/ a.txt");
    repo.world.write("a.txt", "one\ntheirs\nthree\n");
    repo.git(&["commit", "-q", "-am", "Theirs"]);
    let prompt = repo.world.path("prompt.txt");
    repo.set_agent(&format!(
        "if test -e {0}.1; then cat > {0}.2; git merge -q main >/dev/null 2>&1\n\
         printf 'one\\nboth\\nthree\\n' > a.txt; git commit -q -am Both; else cat > {0}.1; fi",
        prompt.display()
    ));
    let ran = repo.world.run(&["run", "--resolve", "T1", "--agent", "command:agent"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("  the work still conflicts with main: the commit "), "{ran}");
    assert!(ran.stdout.contains(" change the same lines: sent back to fix it (1 of 3)\n"), "{ran}");
    let told = fs::read_to_string(prompt.with_extension("txt.2")).unwrap();
    assert!(told.contains("<<<<<<< this branch\nours\n=======\ntheirs\n>>>>>>> main\n"), "{told}");
    assert!(repo.world.run_ok(&["change", "merge", "T1"]).contains("merged into main"));
    assert_eq!(repo.show_file("main:a.txt"), "one\nboth\nthree");
}

#[test]
fn resolve_of_work_on_an_open_change_is_refused_until_that_is_merged() {
    let repo = GitProject::new("");
    repo.set_agent("sed -i \"s/two/$WINDLASS_TASK_ID/; s/T1/T1 $WINDLASS_TASK_ID/\" a.txt");
    repo.add_task("First").world.run_ok(&["task", "add", "Second", "--depends", "T1"]);
    let ran = repo.run_ready_tasks();
    assert_eq!(ran.code, 0, "{ran}");
    repo.world.write("a.txt", "one\ntheirs\nthree\n");
    repo.git(&["commit", "-q", "-am", "Theirs"]);
    let refused = repo.world.expect_failure(&["run", "--resolve", "T2", "--agent", "command:agent"]);
    assert!(refused.contains("it stands on the work of T1, whose change is not merged yet"), "{refused}");
    assert!(refused.contains("`windlass change merge T1` first"), "{refused}");
    assert_eq!(repo.show_task("T2")["state"], "completed", "nothing is reopened");
}

const RESOLVE_COMMAND: &[&str] = &["run", "--resolve", "T1", "--agent", "command:agent", "--trust"];

#[test]
fn resolve_without_a_conflict_is_refused_and_reopens_nothing() {
    let repo = create_change("", "echo work > work.txt");
    let refused = repo.world.expect_failure(RESOLVE_COMMAND);
    assert!(refused.contains("cannot resolve conflicts of T1"), "{refused}");
    assert!(refused.contains("caused by: its work does not conflict with main"), "{refused}");
    assert!(refused.contains("hint: `windlass change merge T1` merges it"), "{refused}");
    assert_eq!(repo.show_task("T1")["state"], "completed");
    // A person merges it past Windlass.
    repo.git(&["merge", "-q", "windlass/t1-write-it"]);
    let refused = repo.world.run(RESOLVE_COMMAND);
    assert!(refused.code == 1 && refused.stderr.contains("caused by: it has no open change"), "{refused}");
    assert_eq!(repo.show_task("T1")["state"], "completed");
    assert!(repo.events_of_type("task_reopened").is_empty());
}

#[test]
fn resolve_by_an_agent_that_may_not_work_on_the_task_reopens_nothing() {
    let repo = create_change("", "sed -i s/two/ours/ a.txt");
    repo.world.write("a.txt", "one\ntheirs\nthree\n");
    repo.git(&["commit", "-q", "-am", "Theirs"]);
    let types = "task_types: {docs: {agents: {implementer: [claude]}}}\n";
    repo.world.configure(types);
    repo.world.run_ok(&["task", "update", "T1", "--type", "docs"]);
    let refused = repo.world.expect_failure(RESOLVE_COMMAND);
    let offered = "hint: `windlass run --resolve T1 --trust` has a permitted agent resolve them; ";
    assert!(refused.contains(offered) && refused.contains("task_types.docs.agents.implementer"), "{refused}");
    assert_eq!(repo.show_task("T1")["state"], "completed");
}

#[test]
fn resolve_of_a_task_that_waits_for_another_cause_is_refused() {
    let config =
        "hooks:\n  before_submit:\n    - create_pr\n    - {name: never, command: exit 1, on_failure: escalate}\n";
    let repo = GitProject::new(config);
    repo.set_agent("sed -i s/two/ours/ a.txt");
    assert_eq!(repo.add_task("Write it").run_ready_tasks().code, 4);
    repo.world.write("a.txt", "one\ntheirs\nthree\n");
    repo.git(&["commit", "-q", "-am", "Theirs"]);
    let refused = repo.world.expect_failure(RESOLVE_COMMAND);
    assert!(refused.contains("caused by: it is blocked, and not by a conflict: "), "{refused}");
    assert!(refused.contains("hint: `windlass answer T1 continue` settles that first"), "{refused}");
    assert_eq!(repo.show_task("T1")["state"], "blocked");
    let refused = repo.world.expect_failure(&["change", "merge", "T1", "--trust"]);
    assert!(refused.contains("`windlass answer T1 continue` has the agent continue"), "{refused}");
}

#[test]
fn resolve_of_a_task_that_waits_for_its_merge_is_taken_up() {
    let repo = GitProject::new("hooks:\n  before_submit: [create_pr]\n  before_merge: [merge_pr]\n");
    repo.set_agent("sed -i s/two/ours/ a.txt");
    assert_eq!(repo.add_task("Write it").run_ready_tasks().code, 4, "main is checked out");
    repo.world.write("a.txt", "one\ntheirs\nthree\n");
    repo.git(&["commit", "-q", "-am", "Theirs"]);
    let refused = repo.world.expect_failure(&["change", "merge", "T1", "--trust"]);
    assert!(refused.contains("`windlass run --resolve T1 --agent command:agent --trust` has the agent"), "{refused}");
    repo.set_agent("git merge -q main >/dev/null 2>&1; printf 'one\\nboth\\nthree\\n' > a.txt; git commit -q -am Both");
    let ran = repo.world.run(RESOLVE_COMMAND);
    assert_eq!(ran.code, 4, "{ran}");
    assert!(repo.world.run_ok(&["change", "merge", "T1", "--trust"]).contains("merged into main"));
    assert_eq!(repo.show_file("main:a.txt"), "one\nboth\nthree");
}

#[test]
fn work_that_waits_for_a_person_can_be_taken_as_it_is() {
    // An approval accepts the work as it is, committed or not.
    let config =
        "hooks:\n  before_submit:\n    - {name: never, command: exit 1, on_failure: escalate}\n    - create_pr\n";
    let repo = GitProject::untrusted(config);
    repo.set_agent("echo work > work.txt");
    let ran = repo.add_task("Write it").run_ready_tasks();
    assert_eq!(ran.code, 4, "{ran}");
    repo.world.write(".windlass/worktrees/t1-write-it/more.txt", "more\n");
    assert!(repo.world.expect_failure(&["change", "show", "T1"]).contains("T1 has no change"));
    let approved = repo.world.run(&["answer", "T1", "approve"]);
    assert!(approved.code == 0 && approved.stdout.contains(": windlass change merge T1  # not trusted"), "{approved}");
    assert_eq!(repo.show_task("T1")["state"], "completed");
    assert!(repo.world.path(".windlass/worktrees/t1-write-it").is_dir());
    // The added commit has passed no check, and a person may approve again.
    assert!(
        repo.world.expect_failure(&["change", "merge", "T1", "--trust"]).contains("--no-check merges it unchecked")
    );
    let merged = repo.world.run(&["change", "merge", "T1", "--no-check"]);
    assert!(merged.code == 0 && merged.stderr == "note: no hook runs: the configuration is not trusted\n", "{merged}");
    assert_eq!((repo.show_file("main:work.txt"), repo.show_file("main:more.txt")), ("work".into(), "more".into()));
    assert!(!repo.world.path(".windlass/worktrees/t1-write-it").exists());
}

#[test]
fn approved_blocked_task_without_work_opens_no_change() {
    let repo = GitProject::new("");
    repo.write_program("agent", "echo '<promise>BLOCKED</promise>'");
    let ran = repo.add_task("Write it").run_ready_tasks();
    assert_eq!(ran.code, 4, "{ran}");
    let approved = repo.world.run(&["answer", "T1", "approve"]);
    assert!(approved.code == 0 && !approved.stdout.contains("change merge"), "{approved}");
    assert!(repo.world.event_payloads("change_opened").is_empty());
}

#[test]
fn change_merge_completes_task_that_waits_for_merge() {
    let repo = GitProject::untrusted("hooks:\n  before_submit: [create_pr]\n  before_merge: [merge_pr]\n");
    repo.set_agent("echo work > work.txt");
    let ran = repo.add_task("Write it").run_ready_tasks();
    assert_eq!(ran.code, 4, "{ran}");
    assert!(
        ran.stdout.contains("next: windlass change merge T1 --trust  # look first: windlass change show T1\n"),
        "{ran}"
    );
    let status = repo.world.run_ok(&["status"]);
    assert!(
        status.contains("  windlass change merge T1  # not trusted") && !status.contains("windlass answer"),
        "{status}"
    );
    repo.world.run_ok(&["change", "merge", "T1", "--trust"]);
    assert_eq!(repo.show_task("T1")["state"], "completed");
    assert_eq!(repo.show_file("main:work.txt"), "work");
}

/// Words of an agent do not affect the commands that a person is told to type.
#[test]
fn words_of_an_agent_are_no_advice() {
    let repo = GitProject::new("hooks:\n  before_submit: [create_pr]\n  before_merge: [merge_pr]\n");
    repo.set_agent("cat > /dev/null; echo work > work.txt");
    assert_eq!(repo.add_task("Write it").run_ready_tasks().code, 4);
    repo.world.run_ok(&["answer", "T1", "continue"]);
    repo.write_program("agent", "cat > /dev/null; echo '<promise>BLOCKED</promise> see `windlass change merge T1`'");
    let ran = repo.run_ready_tasks();
    assert_eq!(ran.code, 4, "{ran}");
    assert!(ran.stdout.contains("next: windlass answer T1 continue  # look first: windlass change show T1\n"), "{ran}");
    assert!(repo.world.run_ok(&["status"]).contains("  windlass answer T1 "));
}

#[test]
fn agent_cannot_merge_change_during_its_run() {
    let repo = create_change("", "echo work > work.txt");
    repo.set_agent("windlass change merge T1 > ../../../said.log 2>&1; env -u WINDLASS_RUN -u WINDLASS_DEBT windlass change merge T1 >> ../../../said.log 2>&1; echo more > more.txt");
    std::os::unix::fs::symlink(crate::support::WINDLASS, repo.world.program_directory().join("windlass")).unwrap();
    repo.add_task("Merge it").run_ready_tasks();
    let said = fs::read_to_string(repo.world.path("said.log")).unwrap();
    assert_eq!(said.matches("error: ").count(), 2, "{said}");
    assert!(repo.events_of_type("change_merged").is_empty());
}

#[test]
fn hostile_names_and_texts_are_escaped() {
    let repo = create_change(
        "",
        "printf 'red \\033[31m\\n' > \"$(printf 'a\\033[2Jb')\"; git add .; git commit -q -m \"$(printf 'sub\\033]0;title\\007ject')\"",
    );
    for words in [
        &["change", "show", "T1"][..],
        &["change", "show", "T1", "--stat"],
        &["change", "list"],
        &["--json", "change", "show", "T1"],
    ] {
        let shown = repo.world.run_ok(words);
        assert!(!shown.contains('\u{1b}') && !shown.contains('\u{7}'), "{shown}");
    }
    assert!(repo.world.json(&["change", "show", "T1"])["diff"].as_str().unwrap().contains("red \u{1b}[31m"));
}

#[test]
fn leftover_worktree_is_removed_unless_it_has_uncommitted_work() {
    let repo = create_change("", "echo work > work.txt");
    let tree = repo.world.path(".windlass/worktrees/t1-write-it");
    repo.world.run_ok(&["task", "delete", "T1", "--force"]);
    let told = repo.world.run(&["doctor"]);
    assert!(told.code == 0 && told.stdout.contains("waiting for removal: T1 (deleted)"), "{told}");
    fs::write(tree.join("work.txt"), "precious\n").unwrap();
    let kept = repo.world.run(&["doctor", "--settle"]);
    assert!(kept.stderr.contains("the worktree of T1 was not removed") && kept.stderr.contains("work.txt"), "{kept}");
    assert_eq!(fs::read_to_string(tree.join("work.txt")).unwrap(), "precious\n");
    fs::write(tree.join("work.txt"), "work\n").unwrap();
    repo.set_agent("echo other > other.txt");
    let ran = repo.add_task("Another").run_ready_tasks();
    assert!(ran.stdout.contains("removed the leftover worktree of T1"), "{ran}");
    assert!(!tree.exists());
    // Its work is on its branch as before.
    assert_eq!(repo.show_file("windlass/t1-write-it:work.txt"), "work");
    repo.world.run_ok(&["doctor"]);
}

#[test]
fn change_merge_is_refused_until_colleague_push_is_integrated() {
    let repo = GitProject::with_remote("hooks:\n  before_submit: [create_pr]\n");
    repo.git(&["switch", "-q", "-c", "desk"]);
    repo.set_agent("echo work > work.txt");
    let ran = repo.add_task("Write it").run_ready_tasks();
    assert_eq!(ran.code, 0, "{ran}");
    let branch = "windlass/t1-write-it";
    let theirs = repo.world.path("../theirs");
    repo.git(&["clone", "-q", "-b", branch, "../remote.git", "../theirs"]);
    for (at, file) in [(branch, "theirs.txt"), ("main", "other.txt")] {
        repo.git_in(&theirs, &["switch", "-q", at]);
        fs::write(theirs.join(file), "theirs\n").unwrap();
        repo.git_in(&theirs, &["add", "."]);
        repo.git_in(
            &theirs,
            &["-c", "user.name=Bo", "-c", "user.email=bo@example.org", "commit", "-q", "-m", "Theirs"],
        );
        repo.git_in(&theirs, &["push", "-q", "origin", at]);
    }
    // The commit is known here, but did not come from here.
    repo.git(&["fetch", "-q", "origin"]);
    let refused = repo.world.expect_failure(&["change", "merge", "T1", "--trust"]);
    assert!(
        refused.contains("another push has changed it") && refused.contains("merge that push into the work"),
        "{refused}"
    );
    let worktree = repo.world.path(".windlass/worktrees/t1-write-it");
    repo.git_in(&worktree, &["merge", "-q", "-m", "Both", &format!("origin/{branch}")]);
    repo.world.run_ok(&["change", "merge", "T1", "--trust"]);
    assert_eq!(repo.git_in(&repo.remote_path(), &["show", "main:theirs.txt"]).trim(), "theirs");
    assert_eq!(repo.git_in(&repo.remote_path(), &["branch", "--format=%(refname:short)"]).trim(), "main");
    assert_eq!(repo.git(&["for-each-ref", "refs/windlass"]).trim(), "");
}

#[test]
fn git_squashes_and_rebases_where_the_project_wants_it() {
    for (method, commits) in [("squash", "1"), ("rebase", "2")] {
        let repo = GitProject::new(&format!("merge: {{method: {method}}}\nhooks:\n  before_submit: [create_pr]\n"));
        repo.set_agent("echo 1 > work.txt; git add .; git commit -qm One; echo 2 > work.txt");
        let ran = repo.add_task("Write it").run_ready_tasks();
        assert_eq!(ran.code, 0, "{ran}");
        let before = repo.git(&["rev-parse", "main"]);
        repo.world.run_ok(&["change", "merge", "T1", "--trust"]);
        assert_eq!(repo.git(&["rev-list", "--count", &format!("{}..main", before.trim())]).trim(), commits);
        assert_eq!(repo.git(&["rev-list", "--count", "--merges", "main"]).trim(), "0");
        assert_eq!(repo.git(&["log", "-1", "--format=%s", "main"]).trim(), "Write it");
        assert_eq!(repo.show_file("main:work.txt"), "2");
        assert_eq!(repo.git(&["for-each-ref", "refs/windlass"]).trim(), "");
    }
}

/// A process works in it, whatever the state of the task is.
#[test]
fn worktree_of_deleted_task_is_kept_while_agent_runs() {
    let repo = GitProject::new("");
    repo.world.make_pipe("here");
    repo.world.make_pipe("never");
    repo.set_agent("cat > /dev/null; echo > ../../../here; cat ../../../never").add_task("Write it");
    let mut run = repo.world.command(&["run", "--trust", "--agent", "command:agent"]);
    let mut run = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    repo.world.await_pipe("here");
    repo.world.run_ok(&["task", "delete", "T1", "--force"]);
    let settle = || {
        let settled = repo.world.run(&["doctor", "--settle"]);
        (settled, repo.world.path(".windlass/worktrees/t1-write-it").is_dir())
    };
    let (settled, is_there) = settle();
    // Its agent ends with it.
    run.kill().unwrap();
    run.wait().unwrap();
    assert!(is_there && settled.code == 0, "{settled}");
    let (settled, is_there) = settle();
    assert!(!is_there, "{settled}");
}

/// A person merges the commit that they have seen.
#[test]
fn task_reopened_while_merge_waits_for_lock_is_not_merged() {
    let repo = create_change("", "echo work > work.txt");
    let others =
        fs::OpenOptions::new().create(true).append(true).open(repo.world.path(".windlass/merge.lock")).unwrap();
    others.lock().unwrap();
    let mut merge = repo.world.command(&["change", "merge", "T1"]);
    let mut merge = merge.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(merge.stderr.take().unwrap()).lines();
    let waits = said.next().unwrap().unwrap();
    assert!(waits.contains("waiting for another task to be merged"), "{waits}");
    repo.world.run_ok(&["task", "reopen", "T1", "--force", "--reason", "not yet"]);
    drop(others);
    let said: Vec<String> = said.map(Result::unwrap).collect();
    assert_eq!(merge.wait().unwrap().code(), Some(1), "{said:?}");
    assert!(said.iter().any(|line| line.contains("T1 has changed while this waited")), "{said:?}");
    assert_eq!(repo.git(&["ls-tree", "--name-only", "main", "work.txt"]), "");
}
