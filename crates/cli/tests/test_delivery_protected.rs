//! Protected files in worktrees: changes that come from the base are no tampering, and all others are.

use crate::support::git_project::GitProject;

const CONFIG: &str = "\
protected: [gate.sh, tests/]
hooks:
  before_submit: [rebase_on_main, {name: gate, command: sh gate.sh}, create_pr]
  before_merge: [merge_pr]
";

/// A project whose gate becomes stricter on `main` while an agent works.
fn create_guarded_project(config: &str) -> GitProject {
    let repo = GitProject::with_remote(config);
    // Agents push and pull elsewhere.
    repo.git(&["remote", "set-url", "origin", repo.remote_path().to_str().unwrap()]);
    repo.world.write("gate.sh", "exit 0\n");
    repo.world.write("tests/a", "a\n");
    repo.world.write("tests/old", "old\n");
    repo.world.write(".gitignore", "*.key\n");
    repo.git(&["add", "."]);
    repo.git(&["commit", "-q", "-m", "Guard it"]);
    repo.git(&["push", "-q", "origin", "main"]);
    repo.push_from_other_clone("echo 'echo strict; exit 0' > gate.sh; echo b > tests/b; git rm -q tests/old");
    repo
}

#[track_caller]
fn check_protection(script: &str, expected: Result<(), &str>) {
    let repo = create_guarded_project(CONFIG);
    let ran =
        repo.set_agent(&format!("cat > /dev/null\necho x > work.txt\n{script}")).add_task("Work").run_ready_tasks();
    let Err(named) = expected else {
        assert_eq!(ran.code, 0, "{script}\n{ran}");
        repo.git(&["fetch", "-q"]);
        assert_eq!(repo.show_file("origin/main:work.txt"), "x", "{script}");
        return;
    };
    assert_eq!(ran.code, 4, "{script}\n{ran}");
    let why = format!("protected files have changed in this session: {named}\n");
    assert!(ran.stdout.contains(&why), "{script}\n{ran}");
    repo.git(&["fetch", "-q"]);
    assert_eq!(repo.git(&["ls-tree", "--name-only", "origin/main", "work.txt"]), "", "{script}");
}

const COMMIT_COMMAND: &str = "git add -A; git commit -qm Work;";

#[test]
fn changes_from_the_base_are_no_tampering() {
    check_protection("true", Ok(()));
    check_protection("others", Ok(()));
    check_protection(&format!("{COMMIT_COMMAND} others; git pull -q --rebase origin main"), Ok(()));
    check_protection(&format!("{COMMIT_COMMAND} others; git fetch -q; git merge -q -m Newer origin/main"), Ok(()));
    check_protection("others; git fetch -q; git merge -q --no-commit --no-ff origin/main", Ok(()));
    check_protection("git stash -qu; git checkout -q --detach; git stash pop -q", Ok(()));
}

#[test]
fn protected_file_changed_by_agent_requires_person_decision() {
    check_protection("echo true > gate.sh", Err("gate.sh"));
    check_protection(&format!("echo true > gate.sh; {COMMIT_COMMAND}"), Err("gate.sh"));
    check_protection("git rm -q --cached gate.sh; echo true > gate.sh", Err("gate.sh"));
    check_protection(
        "rm tests/a tests/old; echo n > tests/new; cp -s ../a.txt tests/old",
        Err("tests/a, tests/new, tests/old"),
    );
    check_protection("echo n > tests/secret.key", Err("tests/secret.key"));
    check_protection("mkdir sub; echo true > sub/gate.sh", Err("sub/gate.sh"));
    check_protection("git update-index --assume-unchanged gate.sh; echo true > gate.sh", Err("gate.sh"));
    let ours = format!("{COMMIT_COMMAND} others; git fetch -q; git merge -q --no-commit origin/main");
    check_protection(&format!("{ours}; git checkout -q HEAD gate.sh; git commit -qm Newer"), Err("gate.sh"));
    let filter = "git config filter.old.clean 'git cat-file blob origin/main:gate.sh'";
    check_protection(
        &format!("{filter}; echo 'gate.sh filter=old' > .gitattributes; echo true > gate.sh"),
        Err(".gitattributes, gate.sh"),
    );
    check_protection("git reset -q --hard HEAD~1; echo x > work.txt", Err("gate.sh, tests/a, tests/old"));
}

/// A gate reads the bytes of a checkout, and attributes change these while the commit stays the same.
#[test]
fn attributes_of_protected_files_are_protected() {
    check_protection(
        &format!("echo 'tests/* text eol=crlf' > .gitattributes; {COMMIT_COMMAND}"),
        Err(".gitattributes"),
    );
    check_protection("echo '* text eol=crlf' > tests/.gitattributes", Err("tests/.gitattributes"));
}

/// Attributes and filters can make git take any file for any other.
#[test]
fn git_settings_of_agent_do_not_hide_protected_changes() {
    let filter = "git config filter.old.clean 'git cat-file blob origin/main:gate.sh'; echo true > gate.sh";
    let own = "own=$(git rev-parse --git-path info/attributes); mkdir -p ${own%/*}; echo 'gate.sh filter=old' > $own";
    check_protection(&format!("{own}; {filter}"), Err("gate.sh"));
    let elsewhere = "echo 'gate.sh filter=old' > ../../att; git config core.attributesFile $(realpath ../../att)";
    check_protection(&format!("{elsewhere}; {filter}"), Err("gate.sh"));
    check_protection("git config core.autocrlf true; printf 'exit 0\\r\\n' > gate.sh", Err("gate.sh"));
    let replaced = "git replace $(git rev-parse HEAD:gate.sh) $(echo true | git hash-object -w --stdin)";
    check_protection(&format!("{replaced}; echo true > gate.sh"), Err("gate.sh"));
}

/// Conversions by the user's own configuration are no tampering.
#[test]
fn files_may_be_checked_out_otherwise_than_they_are_kept() {
    let filter = "tests/a filter=up\n";
    for (attributes, set, script, code) in [
        ("", ["core.autocrlf", "true"], "true", 0),
        ("", ["core.autocrlf", "true"], "others; git pull -q origin main", 4),
        ("", ["core.autocrlf", "true"], "printf 'b\\r\\n' > tests/a", 4),
        ("", ["core.autocrlf", "true"], "printf 'a\\n' > tests/a", 0),
        (filter, ["filter.up.smudge", "tr a-z A-Z"], "grep -q A tests/a && others", 0),
        (filter, ["filter.up.smudge", "tr a-z A-Z"], "echo B > tests/a; git config filter.up.clean 'echo a'", 4),
    ] {
        let repo = create_guarded_project(&CONFIG.replace("sh gate.sh", "true"));
        repo.world.write(".gitattributes", attributes);
        repo.git(&["add", "."]);
        repo.git(&["commit", "-q", "-m", "Attributes"]);
        repo.git(&["push", "-q", "origin", "main"]);
        repo.git(&["config", "filter.up.clean", "tr A-Z a-z"]);
        repo.git(&["config", set[0], set[1]]);
        let ran =
            repo.set_agent(&format!("cat > /dev/null; echo x > work.txt; {script}")).add_task("Work").run_ready_tasks();
        assert_eq!(ran.code, code, "{attributes} {set:?} {script}\n{ran}");
    }
}

/// A push does not turn the agent's change into the base's.
#[test]
fn protected_change_pushed_to_base_by_agent_is_still_reported() {
    let stop = "hooks:\n  stop: [{name: early, command: sh gate.sh}]\n";
    let repo = create_guarded_project(&CONFIG.replace("hooks:\n", stop));
    repo.set_agent(&format!(
        "cat > /dev/null; echo true > gate.sh; {COMMIT_COMMAND} git push -q origin HEAD:main; echo x > work.txt"
    ));
    let ran = repo.add_task("Work").run_ready_tasks();
    assert_eq!(ran.code, 4, "{ran}");
    assert!(ran.stdout.contains("protected files have changed in this session: gate.sh\n"), "{ran}");
}

/// A kill between a rebase and the next step is no tampering.
#[test]
fn rebase_before_crash_is_not_reported_as_tampering() {
    let broken = "before_submit: [{name: broken, command: test -f $WINDLASS_PROJECT_DIR/mended}, ";
    let repo = create_guarded_project(&CONFIG.replace("before_submit: [", broken));
    repo.set_agent("cat > /dev/null; echo x > work.txt; test -f ../../../mended || others");
    let ran = repo.add_task("Work").run_ready_tasks();
    assert_eq!(ran.code, 3, "{ran}");
    // The state of the kill: on top of the newest base, and the log knows nothing of it.
    repo.git(&["fetch", "-q"]);
    repo.git_in(&repo.world.path(".windlass/worktrees/t1-work"), &["rebase", "-q", "origin/main"]);
    repo.world.write("mended", "");
    let ran = repo.run_ready_tasks();
    assert_eq!(ran.code, 0, "{ran}");
    repo.git(&["fetch", "-q"]);
    assert_eq!(repo.show_file("origin/main:work.txt"), "x");
}

/// Commits in a submodule come with the base like all other changes.
#[test]
fn protected_submodule_is_compared_with_commit_recorded_in_base() {
    for (script, code) in [("true", 0), ("echo no > gates/check", 4), ("echo no > gates/more", 4)] {
        let repo = create_guarded_project(&CONFIG.replace("tests/", "gates/"));
        let gates = repo.world.path("../gates");
        repo.git(&["init", "-q", "-b", "main", "../gates"]);
        let commit = |text: &str| {
            std::fs::write(gates.join("check"), text).unwrap();
            repo.git_in(&gates, &["add", "."]);
            let by = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-qm", "Check"];
            repo.git_in(&gates, &by);
        };
        commit("one");
        repo.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../gates"]);
        repo.git(&["commit", "-q", "-m", "Gates"]);
        repo.git(&["push", "-q", "origin", "main"]);
        commit("two");
        repo.push_from_other_clone("git -c protocol.file.allow=always submodule --quiet update --init --remote");
        repo.set_agent(&format!("cat > /dev/null; echo x > work.txt; others 2>/dev/null; {script}"));
        // Another user has fetched the commit that the base names: nothing is fetched into submodules by itself.
        let gates = repo.world.path("gates");
        repo.git_in(&gates, &["-c", "protocol.file.allow=always", "fetch", "-q"]);
        let ran = repo.add_task("Work").run_ready_tasks();
        assert_eq!(ran.code, code, "{script}\n{ran}");
    }
}

/// Of files that git keeps, and of others.
#[test]
fn secret_in_protected_file_name_is_redacted() {
    for (script, named) in [
        ("true", None),
        ("echo n > tests/new-$API_KEY", Some("tests/new-[secret API_KEY]")),
        ("echo n > tests/new-$API_KEY.key", Some("tests/new-[secret API_KEY].key")),
        ("echo n > tests/$API_KEY; git add -A; git commit -qm Work", Some("tests/[secret API_KEY]")),
    ] {
        let repo = create_guarded_project(&format!("secrets: [API_KEY]\n{CONFIG}"));
        let others = repo.push_from_other_clone("echo s > tests/hunter2-abc; echo s > tests/again-hunter2-abc");
        assert_eq!(repo.world.run_command(&mut repo.world.program(others)).code, 0);
        repo.set_agent(&format!("cat > /dev/null\necho x > work.txt\n{script}")).add_task("Work");
        let words = ["run", "--trust", "--agent", "command:agent"];
        let ran = repo.world.run_with_variable(("API_KEY", "hunter2-abc"), &words);
        assert_eq!(ran.code, if named.is_some() { 4 } else { 0 }, "{script}\n{ran}");
        assert!(
            named.is_none_or(|named| ran.stdout.contains(&format!("in this session: {named}\n"))),
            "{script}\n{ran}"
        );
        let log = repo.world.run_ok(&["events", "--json"]);
        assert!(!log.contains("hunter2-abc") && !ran.to_string().contains("hunter2-abc"), "{script}\n{log}");
    }
}

/// Files that lie only in the project's own directory were never in the worktree, in whichever session it is resumed.
#[test]
fn ignored_protected_file_is_compared_with_worktree_not_project_directory() {
    for (script, code) in [("true", 0), ("echo mine > tests/local.key", 4)] {
        let repo = create_guarded_project(CONFIG);
        repo.world.write("tests/local.key", "local");
        repo.set_agent(&format!("cat > /dev/null; test -f ../../../again || exit 1; echo x > work.txt; {script}"));
        let words = ["run", "--trust", "--agent", "command:agent", "--max-iterations", "1"];
        assert_eq!(repo.add_task("Work").world.run(&words).code, 3);
        repo.world.write("again", "");
        let ran = repo.run_ready_tasks();
        assert_eq!(ran.code, code, "{script}\n{ran}");
        assert_eq!(ran.stdout.contains("in this session: tests/local.key\n"), code == 4, "{script}\n{ran}");
        assert_eq!(repo.events_of_type("workspace_opened").len(), 2, "{ran}");
    }
}

/// An agent that worked before the pattern existed may have changed the file already.
#[test]
fn pattern_added_after_work_began_compares_kept_files_with_the_commit() {
    let repo = create_guarded_project(&CONFIG.replace("protected: [gate.sh, tests/]\n", ""));
    repo.set_agent("cat > /dev/null; test -f ../../../again || { echo true > gate.sh; exit 1; }; echo x > work.txt");
    let words = ["run", "--trust", "--agent", "command:agent", "--max-iterations", "1"];
    assert_eq!(repo.add_task("Work").world.run(&words).code, 3);
    repo.world.write("again", "");
    repo.world.write(".windlass/config.yaml", CONFIG);
    let ran = repo.run_ready_tasks();
    assert_eq!(ran.code, 4, "{ran}");
    assert!(ran.stdout.contains("in this session: gate.sh\n"), "{ran}");
}
