//! `windlass init` and `windlass status`

use std::fs;

use insta::assert_snapshot;

use crate::support::TestWorld;

#[test]
fn init_creates_project_once_and_status_shows_it() {
    let world = TestWorld::empty();
    world.write("Cargo.toml", "");
    world.write(".git/HEAD", "ref: refs/heads/main\n");
    assert_snapshot!(world.run(&["init"]), @r#"
    created $WORK/.windlass/config.yaml
      tests    cargo test
      agents   none found
      git      main

    Next:
      windlass config check              what the configuration says
      windlass run "what to do"          have an agent do it
      windlass task add "what to do"     or plan it: the first task
    "#);
    assert_snapshot!(world.run(&["init"]), @"
    There is a project already: $WORK
    Nothing was changed.
    ");
    assert_snapshot!(world.run(&["status"]), @"
    project  $WORK
    tasks    none yet; `windlass task add GOAL` makes one
    ");
    assert_snapshot!(world.run(&["config", "check"]), @r"
    ok  $WORK/.windlass/config.yaml
        hooks       1 at stop
        task types  none
        agent       none
    ");
    let ignored = fs::read_to_string(world.path(".windlass/.gitignore")).unwrap();
    assert!(ignored.lines().any(|line| line == "windlass.db*"), "{ignored}");
}

#[test]
fn init_says_that_work_is_pushed_to_origin() {
    let world = TestWorld::empty();
    world.write(".git/HEAD", "ref: refs/heads/main\n");
    world.write(".git/config", "[remote \"origin\"]\n\turl = ../shop.git\n");
    let created = world.run_ok(&["init"]);
    let row = "\n  git      main\n  remote   origin; Windlass pushes the work of each task there as a branch (";
    assert!(created.contains(row), "{created}");
}

#[test]
fn programs_read_the_same() {
    let world = TestWorld::empty();
    world.write("go.mod", "");
    assert_snapshot!(world.run(&["init", "--json"]), @r#"{"config":"$WORK/.windlass/config.yaml","created":true,"found":{"agents":[],"git":null,"tests":"go test ./..."},"project":"$WORK"}"#);
    assert_snapshot!(world.run(&["init", "--json"]), @r#"{"config":"$WORK/.windlass/config.yaml","created":false,"found":{"agents":[],"git":null,"tests":"go test ./..."},"project":"$WORK"}"#);
    world.run_ok(&["task", "add", "One", "--label", "bug"]);
    assert_snapshot!(world.run(&["status", "--json"]), @r#"{"active":[],"changes":[],"events":2,"foreignStore":false,"obstacles":[],"owed":0,"project":"$WORK","ready":[{"createdAt":"<time>","deliverables":[],"epoch":0,"goal":"One","id":"T1","labels":["bug"],"lastEvent":2,"openDependencies":0,"priority":2,"state":"ready","updatedAt":"<time>","version":2}],"sessions":[],"stuck":[],"tasks":{"active":0,"blocked":0,"completed":0,"created":0,"deleted":0,"failed":0,"needs_continuation":0,"ready":1,"submitted":0},"trust":"trusted","unchecked":null}"#);
}

#[test]
fn status_names_held_and_blocked_tasks() {
    let world = TestWorld::with_tasks(&["Parse", "Test", "Ship"]);
    world.run_ok(&["task", "claim", "T1", "--owner", "worker-1"]);
    world.run_ok(&["task", "block", "T2", "--reason", "which framework?"]);
    assert_snapshot!(world.run(&["status"]), @"
    project  $WORK
    tasks    1 ready, 1 active, 1 blocked

    at work
    T1  active  P2  Parse
      T1: held by worker-1 (epoch 1), for 60 min more

    needs a person
    T2  blocked  P2  Test
      T2: which framework?
      windlass answer T2 continue

    next
    T3  ready  P2  Ship
    ");
}

/// A fresh clone has the configuration and no store: that stays out of git.
#[test]
fn clone_without_store_gets_empty_store_from_init() {
    let world = TestWorld::empty();
    world.write(".windlass/config.yaml", "version: 1\nhooks:\n  stop:\n    - command: ./check.sh\n");
    assert_snapshot!(world.expect_failure(&["task", "list"]), @"
    error: there is no store at $WORK/.windlass/windlass.db
    hint: `windlass init` makes it
    [1 store]
    ");
    assert_snapshot!(world.run(&["init"]), @"
    There is a project already: $WORK
    It had no store; now it has an empty one.
    its hooks are not trusted: `windlass trust` shows what would run
    ");
    assert_snapshot!(world.run(&["task", "list"]), @"no tasks; `windlass task add GOAL` makes one");
    assert_snapshot!(world.run(&["trust", "--show"]), @"
    $WORK  never trusted
    Its configuration would run:
      stop[0] (line 4)
          ./check.sh
    Agents may run any command that they supply (`agent_commands: allow`, the default).
    ");
}

/// An earlier creation was killed, or had no room.
#[test]
fn init_completes_interrupted_store_creation() {
    let world = TestWorld::empty();
    world.write(".windlass/config.yaml", "");
    world.write(".windlass/windlass.db", "");
    assert!(world.expect_failure(&["task", "list"]).contains("`windlass init` for an empty store"));
    assert!(world.run_ok(&["init"]).contains("It had no store; now it has an empty one."));
    assert!(world.run_ok(&["task", "add", "One"]).contains("T1"));
    assert!(world.run_ok(&["init"]).contains("Nothing was changed."));
}

#[test]
fn file_in_place_of_project_directory_is_refused() {
    let world = TestWorld::empty();
    world.write(".windlass", "a file");
    assert_snapshot!(world.expect_failure(&["init"]), @"
    error: `$WORK/.windlass` is not a directory
    hint: move it away: a project keeps its configuration and its store in a directory of that name
    [64 no_project]
    ");
    assert_snapshot!(world.expect_failure(&["status"]), @"
    error: `$WORK/.windlass` is not a directory
    hint: move it away: a project keeps its configuration and its store in a directory of that name
    [64 no_project]
    ");
}

/// A repository full of odd files is only read.
#[test]
fn init_succeeds_in_repository_with_malformed_files() {
    let world = TestWorld::empty();
    world.write("package.json", [0xff, 0xfe, 0x00]);
    world.write("Makefile", "x".repeat(3 * 1024 * 1024));
    world.write(".git", "gitdir: /nowhere/at/all\n");
    std::os::unix::fs::symlink("go.mod", world.path("go.mod")).unwrap();
    fs::create_dir(world.path("Cargo.toml")).unwrap();
    assert_snapshot!(world.run(&["init"]), @r#"
    created $WORK/.windlass/config.yaml
      tests    none found
      agents   none found
      git      a repository

    Next:
      windlass config check              what the configuration says
      windlass run "what to do"          have an agent do it
      windlass task add "what to do"     or plan it: the first task
    "#);
}

#[test]
fn init_inside_another_project_prints_note() {
    let world = TestWorld::new();
    fs::create_dir(world.path("inner")).unwrap();
    let ran = world.run_in("inner", &["init"]);
    let expected = "note: this is inside another project, $WORK; commands here now use this one";
    assert!(ran.to_string().starts_with(expected), "{ran}");
}
