//! Protected files in worktrees: changes that come from the base are no tampering, and all others are.

use crate::support::delivered::Repo;

const CONFIG: &str = "\
protected: [gate.sh, tests/]
hooks:
  before_submit: [rebase_on_main, {name: gate, command: sh gate.sh}, create_pr]
  before_merge: [merge_pr]
";

/// A project whose gate becomes stricter on `main` while an agent works.
fn guarded(config: &str) -> Repo {
    let repo = Repo::with_remote(config);
    // Agents push and pull elsewhere.
    repo.git(&["remote", "set-url", "origin", repo.remote().to_str().unwrap()]);
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
fn check(script: &str, expected: Result<(), &str>) {
    let repo = guarded(CONFIG);
    let ran = repo.agent(&format!("cat > /dev/null\necho x > work.txt\n{script}")).add("Work").run();
    let Err(named) = expected else {
        assert_eq!(ran.code, 0, "{script}\n{ran}");
        repo.git(&["fetch", "-q"]);
        assert_eq!(repo.file("origin/main:work.txt"), "x", "{script}");
        return;
    };
    assert_eq!(ran.code, 4, "{script}\n{ran}");
    let why = format!("protected files have changed under this session, which needs a decision by a person: {named}\n");
    assert!(ran.stdout.contains(&why), "{script}\n{ran}");
    repo.git(&["fetch", "-q"]);
    assert_eq!(repo.git(&["ls-tree", "--name-only", "origin/main", "work.txt"]), "", "{script}");
}

const COMMIT: &str = "git add -A; git commit -qm Work;";

#[test]
fn changes_from_the_base_are_no_tampering() {
    check("true", Ok(()));
    check("others", Ok(()));
    check(&format!("{COMMIT} others; git pull -q --rebase origin main"), Ok(()));
    check(&format!("{COMMIT} others; git fetch -q; git merge -q -m Newer origin/main"), Ok(()));
    check("others; git fetch -q; git merge -q --no-commit --no-ff origin/main", Ok(()));
    check("git stash -qu; git checkout -q --detach; git stash pop -q", Ok(()));
}

#[test]
fn what_differs_from_where_the_work_stands_is_the_agents_doing() {
    check("echo true > gate.sh", Err("gate.sh"));
    check(&format!("echo true > gate.sh; {COMMIT}"), Err("gate.sh"));
    check("git rm -q --cached gate.sh; echo true > gate.sh", Err("gate.sh"));
    check("rm tests/a tests/old; echo n > tests/new; cp -s ../a.txt tests/old", Err("tests/a, tests/new, tests/old"));
    check("echo n > tests/secret.key", Err("tests/secret.key"));
    check("mkdir sub; echo true > sub/gate.sh", Err("sub/gate.sh"));
    check("git update-index --assume-unchanged gate.sh; echo true > gate.sh", Err("gate.sh"));
    let ours = format!("{COMMIT} others; git fetch -q; git merge -q --no-commit origin/main");
    check(&format!("{ours}; git checkout -q HEAD gate.sh; git commit -qm Newer"), Err("gate.sh"));
    let filter = "git config filter.old.clean 'git cat-file blob origin/main:gate.sh'";
    check(
        &format!("{filter}; echo 'gate.sh filter=old' > .gitattributes; echo true > gate.sh"),
        Err(".gitattributes, gate.sh"),
    );
    check("git reset -q --hard HEAD~1; echo x > work.txt", Err("gate.sh, tests/a, tests/old"));
}

/// A gate reads the bytes of a checkout, and attributes change these while the commit stays the same.
#[test]
fn attributes_of_protected_files_are_protected() {
    check(&format!("echo 'tests/* text eol=crlf' > .gitattributes; {COMMIT}"), Err(".gitattributes"));
    check("echo '* text eol=crlf' > tests/.gitattributes", Err("tests/.gitattributes"));
}

/// Attributes and filters can make git take any file for any other.
#[test]
fn what_an_agent_has_told_git_about_files_counts_for_nothing() {
    let filter = "git config filter.old.clean 'git cat-file blob origin/main:gate.sh'; echo true > gate.sh";
    let own = "own=$(git rev-parse --git-path info/attributes); mkdir -p ${own%/*}; echo 'gate.sh filter=old' > $own";
    check(&format!("{own}; {filter}"), Err("gate.sh"));
    let elsewhere = "echo 'gate.sh filter=old' > ../../att; git config core.attributesFile $(realpath ../../att)";
    check(&format!("{elsewhere}; {filter}"), Err("gate.sh"));
    check("git config core.autocrlf true; printf 'exit 0\\r\\n' > gate.sh", Err("gate.sh"));
    let replaced = "git replace $(git rev-parse HEAD:gate.sh) $(echo true | git hash-object -w --stdin)";
    check(&format!("{replaced}; echo true > gate.sh"), Err("gate.sh"));
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
        let repo = guarded(&CONFIG.replace("sh gate.sh", "true"));
        repo.world.write(".gitattributes", attributes);
        repo.git(&["add", "."]);
        repo.git(&["commit", "-q", "-m", "Attributes"]);
        repo.git(&["push", "-q", "origin", "main"]);
        repo.git(&["config", "filter.up.clean", "tr A-Z a-z"]);
        repo.git(&["config", set[0], set[1]]);
        let ran = repo.agent(&format!("cat > /dev/null; echo x > work.txt; {script}")).add("Work").run();
        assert_eq!(ran.code, code, "{attributes} {set:?} {script}\n{ran}");
    }
}

/// A push does not turn the agent's change into the base's.
#[test]
fn what_an_agent_has_pushed_to_the_base_is_still_its_doing() {
    let stop = "hooks:\n  stop: [{name: early, command: sh gate.sh}]\n";
    let repo = guarded(&CONFIG.replace("hooks:\n", stop));
    repo.agent(&format!(
        "cat > /dev/null; echo true > gate.sh; {COMMIT} git push -q origin HEAD:main; echo x > work.txt"
    ));
    let ran = repo.add("Work").run();
    assert_eq!(ran.code, 4, "{ran}");
    assert!(ran.stdout.contains("needs a decision by a person: gate.sh\n"), "{ran}");
}

/// A kill between a rebase and the next step is no tampering.
#[test]
fn a_crash_after_a_rebase_is_no_tampering() {
    let broken = "before_submit: [{name: broken, command: test -f $WINDLASS_PROJECT_DIR/mended}, ";
    let repo = guarded(&CONFIG.replace("before_submit: [", broken));
    repo.agent("cat > /dev/null; echo x > work.txt; test -f ../../../mended || others");
    let ran = repo.add("Work").run();
    assert_eq!(ran.code, 3, "{ran}");
    // The state of the kill: on top of the newest base, and the log knows nothing of it.
    repo.git(&["fetch", "-q"]);
    repo.git_in(&repo.world.path(".windlass/worktrees/t1-work"), &["rebase", "-q", "origin/main"]);
    repo.world.write("mended", "");
    let ran = repo.run();
    assert_eq!(ran.code, 0, "{ran}");
    repo.git(&["fetch", "-q"]);
    assert_eq!(repo.file("origin/main:work.txt"), "x");
}

/// Commits in a submodule come with the base like all other changes.
#[test]
fn a_submodule_counts_as_its_commit_has_it() {
    for (script, code) in [("true", 0), ("echo no > gates/check", 4), ("echo no > gates/more", 4)] {
        let repo = guarded(&CONFIG.replace("tests/", "gates/"));
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
        repo.agent(&format!("cat > /dev/null; echo x > work.txt; others 2>/dev/null; {script}"));
        // Another user has fetched the commit that the base names: nothing is fetched into submodules by itself.
        let gates = repo.world.path("gates");
        repo.git_in(&gates, &["-c", "protocol.file.allow=always", "fetch", "-q"]);
        let ran = repo.add("Work").run();
        assert_eq!(ran.code, code, "{script}\n{ran}");
    }
}

/// Of files that git keeps, and of others.
#[test]
fn no_secret_is_in_the_name_of_a_protected_file() {
    for (script, named) in [
        ("true", None),
        ("echo n > tests/new-$API_KEY", Some("tests/new-[secret API_KEY]")),
        ("echo n > tests/new-$API_KEY.key", Some("tests/new-[secret API_KEY].key")),
        ("echo n > tests/$API_KEY; git add -A; git commit -qm Work", Some("tests/[secret API_KEY]")),
    ] {
        let repo = guarded(&format!("secrets: [API_KEY]\n{CONFIG}"));
        let others = repo.push_from_other_clone("echo s > tests/hunter2-abc; echo s > tests/again-hunter2-abc");
        assert_eq!(repo.world.finish(&mut repo.world.program(others)).code, 0);
        repo.agent(&format!("cat > /dev/null\necho x > work.txt\n{script}")).add("Work");
        let words = ["run", "--trust", "--agent", "command:agent"];
        let ran = repo.world.run_with(("API_KEY", "hunter2-abc"), &words);
        assert_eq!(ran.code, if named.is_some() { 4 } else { 0 }, "{script}\n{ran}");
        assert!(named.is_none_or(|named| ran.stdout.contains(&format!("by a person: {named}\n"))), "{script}\n{ran}");
        let log = repo.world.ok(&["events", "--json"]);
        assert!(!log.contains("hunter2-abc") && !ran.to_string().contains("hunter2-abc"), "{script}\n{log}");
    }
}

/// Files that lie only in the project's own directory were never in the worktree, in whichever session it is resumed.
#[test]
fn what_git_does_not_keep_counts_as_the_worktree_had_it() {
    for (script, code) in [("true", 0), ("echo mine > tests/local.key", 4)] {
        let repo = guarded(CONFIG);
        repo.world.write("tests/local.key", "local");
        repo.agent(&format!("cat > /dev/null; test -f ../../../again || exit 1; echo x > work.txt; {script}"));
        let words = ["run", "--trust", "--agent", "command:agent", "--max-iterations", "1"];
        assert_eq!(repo.add("Work").world.run(&words).code, 3);
        repo.world.write("again", "");
        let ran = repo.run();
        assert_eq!(ran.code, code, "{script}\n{ran}");
        assert_eq!(ran.stdout.contains("by a person: tests/local.key\n"), code == 4, "{script}\n{ran}");
        assert_eq!(repo.events("workspace_opened").len(), 2, "{ran}");
    }
}

/// An agent that worked before the pattern existed may have changed the file already.
#[test]
fn pattern_added_after_work_began_compares_kept_files_with_the_commit() {
    let repo = guarded(&CONFIG.replace("protected: [gate.sh, tests/]\n", ""));
    repo.agent("cat > /dev/null; test -f ../../../again || { echo true > gate.sh; exit 1; }; echo x > work.txt");
    let words = ["run", "--trust", "--agent", "command:agent", "--max-iterations", "1"];
    assert_eq!(repo.add("Work").world.run(&words).code, 3);
    repo.world.write("again", "");
    repo.world.write(".windlass/config.yaml", CONFIG);
    let ran = repo.run();
    assert_eq!(ran.code, 4, "{ran}");
    assert!(ran.stdout.contains("by a person: gate.sh\n"), "{ran}");
}
