//! The choice of a command's project

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;

use insta::assert_snapshot;

use crate::support::{TestWorld, WINDLASS};

#[test]
fn commands_without_project_fail_and_create_nothing() {
    let world = TestWorld::empty();
    assert_snapshot!(world.expect_failure(&["task", "list"]), @"
    error: there is no project here
    caused by: `$WORK` and its parents have no `.windlass` directory
    hint: `windlass init` makes one here
    [64 no_project]
    ");
    for words in
        [&["status"][..], &["events"], &["doctor"], &["trust", "--show"], &["backup", "x.db"], &["config", "check"]]
    {
        assert!(world.expect_failure(words).ends_with("[64 no_project]"), "{words:?}");
    }
    assert_eq!(fs::read_dir(&world.directory).unwrap().count(), 0, "looking leaves nothing behind");
}

#[test]
fn project_is_found_from_subdirectory_flag_and_variable() {
    let world = TestWorld::with_tasks(&["Here"]);
    fs::create_dir_all(world.path("deep/er")).unwrap();
    assert_snapshot!(world.run_in("deep/er", &["task", "list"]), @"T1  ready  P2  Here");
    assert_eq!(world.run(&["init", "--project", "other place"]).code, 0);
    world.run_ok(&["task", "add", "There", "--project", "other place"]);
    assert_snapshot!(world.run(&["--project", "other place", "task", "list"]), @"T1  ready  P2  There");
    assert_snapshot!(world.run_in("deep", &["--project", "../other place", "task", "list"]), @"T1  ready  P2  There");
    let there = world.path("other place");
    let variable = ("WINDLASS_PROJECT", there.to_str().unwrap());
    assert_snapshot!(world.run_with_variable(variable, &["task", "list"]), @"T1  ready  P2  There");
    assert_snapshot!(world.run_with_variable(variable, &["task", "list", "--project", "."]), @"T1  ready  P2  Here");
    assert_snapshot!(world.run_with_variable(("WINDLASS_PROJECT", ""), &["task", "list"]), @"T1  ready  P2  Here");
}

#[test]
fn commands_that_are_named_for_another_project_come_with_its_flag() {
    let world = TestWorld::empty();
    assert_eq!(world.run(&["init", "--project", "other place"]).code, 0);
    let note = "note: from this directory the commands need `--project 'other place'`\n";
    let status = world.run(&["--project", "other place", "status"]);
    assert!(status.stdout.contains("`windlass task add GOAL` makes one") && status.stderr == note, "{status}");
    let refused = world.run(&["--project", "other place", "task", "show", "T9"]);
    assert!(refused.stderr.ends_with(note), "{refused}");
    world.run_ok(&["task", "add", "There", "--project", "other place"]);
    for words in [&["task", "list"][..], &["status", "--json"]] {
        let quiet = world.run(&[&["--project", "other place"], words].concat());
        assert_eq!(quiet.stderr, "", "{quiet}");
    }
    let inside = world.run_in("other place", &["--project", ".", "task", "show", "T9"]);
    assert!(inside.code == 1 && !inside.stderr.contains("note: "), "{inside}");
}

/// A project is created where the next command looks for it.
#[test]
fn project_variable_sets_where_init_creates_project() {
    let world = TestWorld::empty();
    let there = world.path("there");
    let variable = ("WINDLASS_PROJECT", there.to_str().unwrap());
    assert_eq!(world.run_with_variable(variable, &["init"]).code, 0);
    assert!(there.join(".windlass").is_dir() && !world.path(".windlass").exists());
    assert_snapshot!(world.run_with_variable(variable, &["task", "add", "One"]), @"T1  ready  P2  One");
    assert_eq!(world.run_with_variable(variable, &["init", "--project", "here"]).code, 0);
    assert!(world.path("here/.windlass").is_dir());
}

#[test]
fn named_but_not_there() {
    let world = TestWorld::with_tasks(&["Here"]);
    assert_snapshot!(world.expect_failure(&["--project", "nowhere at all", "task", "list"]), @"
    error: there is no project here
    caused by: --project names `$WORK/nowhere at all`, which has no `.windlass` directory
    hint: `windlass init --project '$WORK/nowhere at all'` makes one there
    [64 no_project]
    ");
    assert_snapshot!(world.run_with_variable(("WINDLASS_PROJECT", "/nowhere"), &["task", "list"]), @"
    error: there is no project here
    caused by: WINDLASS_PROJECT names `/nowhere`, which has no `.windlass` directory
    hint: `windlass init --project /nowhere` makes one there
    [exit 64]
    ");
}

/// A directory may have any name that the system allows.
#[test]
fn names_that_are_no_text() {
    let world = TestWorld::empty();
    let odd = world.directory.join(OsStr::from_bytes(b"caf\xe9 \x1b[31m"));
    fs::create_dir(&odd).unwrap();
    for words in [
        &["init"][..],
        &["task", "add", "One"],
        &["status"],
        &["doctor"],
        &["trust", "--show"],
        &["config", "check"],
        &["backup", "copy.db"],
        &["doctor", "--export", "sound.jsonl"],
    ] {
        for json in [&[][..], &["--json"]] {
            let _ = fs::remove_file(odd.join("copy.db"));
            let _ = fs::remove_file(odd.join("sound.jsonl"));
            let ran = world.run_command(world.command(&[json, words].concat()).current_dir(&odd));
            assert!(ran.code == 0 && !ran.stdout.contains('\u{1b}'), "{words:?}\n{ran}");
        }
    }
    let mut command = world.command(&["doctor", "--json", "--export"]);
    let ran = world.run_command(command.arg(OsStr::from_bytes(b"\xff.jsonl")).current_dir(&odd));
    assert!(ran.code == 0, "{ran}");
}

/// A linked git worktree, as git writes it, belongs to the main one.
#[test]
fn linked_worktree_uses_project_of_main_worktree() {
    let world = TestWorld::empty();
    world.write("main/.git/worktrees/linked/commondir", "../..\n");
    world.write("main/.git/worktrees/linked/gitdir", format!("{}\n", world.path("linked/.git").display()));
    world.write("linked/.git", format!("gitdir: {}\n", world.path("main/.git/worktrees/linked").display()));
    assert_eq!(world.run(&["init", "--project", "main"]).code, 0);
    assert_snapshot!(world.run_in("linked", &["init"]), @"
    There is a project already: $WORK/main
    Nothing was changed.
    ");
    assert_snapshot!(world.run_in("linked", &["task", "add", "From the worktree"]), @"T1  ready  P2  From the worktree");
    assert_snapshot!(world.run_in("main", &["task", "list"]), @"T1  ready  P2  From the worktree");
    assert!(!world.path("linked/.windlass").exists());
}

#[test]
fn deleted_working_directory_is_reported() {
    let world = TestWorld::new();
    fs::create_dir(world.path("gone")).unwrap();
    // The shell stands in a directory that is removed during the command.
    let script = format!("cd gone && rmdir ../gone && exec '{WINDLASS}' task list");
    let ran = world.run_command(world.program("sh").args(["-c", &script]));
    assert_snapshot!(ran, @"
    error: cannot find the working directory
    caused by: No such file or directory (os error 2)
    hint: it may have been deleted: change to another one
    [exit 1]
    ");
}

/// A project of another user can be read even if it is not writable. Each user has to decide about its store.
#[test]
fn read_only_for_another_user() {
    let world = TestWorld::with_tasks(&["One"]);
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let mut above = world.directory.clone();
    while above.pop() && above != std::env::temp_dir() && above.parent().is_some() {
        let _ = fs::set_permissions(&above, fs::Permissions::from_mode(0o755));
    }
    let as_unknown_user = |words: &[&str]| {
        let mut command = world.program("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", WINDLASS]).args(words);
        world.run_command(&mut command)
    };
    let listed = as_unknown_user(&["task", "list"]);
    if listed.stderr.contains("setpriv") {
        return;
    }
    assert_snapshot!(listed.stdout, @"T1  ready  P2  One");
    assert!(listed.stderr.starts_with("note: the store "), "{listed}");
    assert_snapshot!(as_unknown_user(&["events", "--trust"]), @"
    1  <time>  T1     task_created              One
    2  <time>  T1     task_ready
    ");
    assert_eq!(as_unknown_user(&["task", "add", "Two"]).code, 64);
    assert_snapshot!(as_unknown_user(&["task", "add", "Two", "--trust"]), @"
    error: cannot write the store $WORK/.windlass/windlass.db
    hint: check the permissions of the directory and whether its disk is read-only
    [exit 1]
    ");
    assert_snapshot!(as_unknown_user(&["doctor", "--trust"]), @"
    ok     configuration  0 hooks that run something; trust: never
    ok     store          2 events
    ok     agents         none found
    ");
}

#[test]
fn run_of_a_goal_makes_its_project_in_the_root_of_the_repository() {
    let world = TestWorld::empty();
    fs::create_dir_all(world.path("repo/deep/er")).unwrap();
    fs::create_dir_all(world.path(".git")).unwrap();
    let git = world.run_command(world.program("git").args(["init", "-q", "repo"]));
    assert_eq!(git.code, 0, "{git}");
    let goal = ["run", "Mend it", "--agent", "command:echo '<promise>COMPLETE</promise>'"];
    let ran = world.run_in("repo/deep/er", &goal);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(world.path("repo/.windlass").is_dir() && !world.path("repo/deep/er/.windlass").exists(), "{ran}");
    // An empty `.git` is no repository.
    fs::create_dir_all(world.path("plain")).unwrap();
    assert_eq!(world.run_in("plain", &goal).code, 0);
    assert!(world.path("plain/.windlass").is_dir() && !world.path(".windlass").exists());
}

#[test]
fn second_run_in_the_same_directory_warns() {
    let world = TestWorld::new();
    let inner = format!("{WINDLASS} run Other --agent 'command:echo \"<promise>COMPLETE</promise>\"' > inner.txt 2>&1");
    let agent = world.write("agent.sh", format!("{inner}; echo '<promise>COMPLETE</promise>'"));
    let ran = world.run(&["run", "Mend it", "--agent", &format!("command:sh {}", agent.display())]);
    assert_eq!(ran.code, 0, "{ran}");
    let inner = fs::read_to_string(world.path("inner.txt")).unwrap();
    assert!(inner.contains("warning: session `mend-it-") && inner.contains("works in the same directory"), "{inner}");
    assert!(!ran.stderr.contains("works in the same directory"), "{ran}");
}
