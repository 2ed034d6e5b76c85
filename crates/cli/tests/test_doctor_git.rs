//! `windlass doctor`: the checks of git, worktrees, branches and the forge

use std::fs;

use insta::assert_snapshot;

use crate::support::World;

/// A project in a repository with one commit on `main`.
fn repository() -> World {
    let world = World::empty();
    sh(
        &world,
        "git init -q -b main && git config user.name ann && git config user.email ann@shop.test
                printf '.windlass/\n' > .gitignore && git add . && git commit -qm Begin",
    );
    world.ok(&["init"]);
    world
}

fn sh(world: &World, words: &str) {
    let ran = world.finish(world.program("sh").args(["-c", &format!("set -e\n{words}")]));
    assert_eq!(ran.code, 0, "{ran}");
}

/// A task that was worked on, whose change is open.
fn worked() -> World {
    let world = repository();
    world.ok(&["task", "add", "Open the door"]);
    let agent = "command:cat > /dev/null; echo open > door; echo '<promise>COMPLETE</promise>'";
    assert_eq!(world.run(&["run", "--agent", agent]).code, 0);
    world
}

/// Returns the output after the line of the agents.
fn said(world: &World) -> String {
    let ran = world.run(&["doctor"]).to_string();
    let place = ran.find("agents ").and_then(|at| ran[at..].find('\n').map(|end| at + end + 1)).unwrap();
    ran[place..].to_owned()
}

#[test]
fn a_repository_that_is_in_order() {
    assert_snapshot!(said(&repository()), @"ok     git            the base is main");
    let world = worked();
    assert_snapshot!(said(&world), @"ok     git            the base is main; one branch of a task");
    let json: serde_json::Value = serde_json::from_str(&world.ok(&["doctor", "--json"])).unwrap();
    let git = json["checks"].as_array().unwrap().iter().find(|check| check["check"] == "git").unwrap();
    assert_eq!((&git["ok"], &git["problems"]), (&true.into(), &serde_json::json!([])));
}

#[test]
fn a_base_that_is_not_there() {
    let world = repository();
    world.write(".windlass/config.yaml", "base_branch: trunk\n");
    assert_snapshot!(said(&world), @r"
    wrong  git
           cannot find the base branch trunk
           hint: name the base branch in the configuration
    [exit 1]
    ");
    // Tasks that are worked on in place need no base.
    world.write(".windlass/config.yaml", "base_branch: trunk\nworktrees: false\n");
    assert_snapshot!(said(&world), @"ok     git            tasks are worked on in place");
    let empty = World::empty();
    sh(&empty, "git init -q -b main");
    empty.ok(&["init"]);
    assert_snapshot!(said(&empty), @r"
    wrong  git
           cannot start from anything in $WORK: there are no commits yet
           hint: make a first commit
    [exit 1]
    ");
}

#[test]
fn a_base_that_only_the_remote_has() {
    let world = repository();
    sh(
        &world,
        "git init -q --bare ../team.git && git remote add origin ../team.git
                git push -q origin main main:next && git update-ref -d refs/remotes/origin/next",
    );
    world.write(".windlass/config.yaml", "base_branch: next\n");
    assert_snapshot!(said(&world), @"ok     git            the base is origin/next");
}

#[test]
fn a_forge_without_a_token() {
    let world = repository();
    sh(
        &world,
        "git remote add origin https://github.com/shop/door.git && git update-ref refs/remotes/origin/main HEAD",
    );
    assert_snapshot!(said(&world), @r"
    ok     git            the base is origin/main
    wrong  forge          shop/door on github.com
           cannot find a token for github.com
           hint: set GH_TOKEN, or run `gh auth login --hostname github.com`
    [exit 1]
    ");
    let ran = world.run_with(("GH_TOKEN", "ghp_x"), &["doctor"]);
    assert!(ran.code == 0 && ran.stdout.contains("ok     forge          shop/door on github.com"), "{ran}");
}

#[test]
fn worktrees_that_are_locked_or_have_vanished() {
    let world = worked();
    sh(&world, "git worktree lock --reason 'on a stick' .windlass/worktrees/t1-open-the-door");
    assert_snapshot!(said(&world), @r"
    ok     git            the base is main; one branch of a task
    wrong  worktrees
           T1: cannot use the worktree $WORK/.windlass/worktrees/t1-open-the-door: it is locked (on a stick)
           hint: `git worktree unlock $WORK/.windlass/worktrees/t1-open-the-door`, if its owner agrees
    [exit 1]
    ");
    sh(&world, "git worktree unlock .windlass/worktrees/t1-open-the-door");
    fs::remove_dir_all(world.path(".windlass/worktrees/t1-open-the-door")).unwrap();
    assert_snapshot!(said(&world), @r"
    ok     git            the base is main; one branch of a task
    wrong  worktrees
           T1: cannot find the worktree $WORK/.windlass/worktrees/t1-open-the-door
           hint: `windlass run` makes $WORK/.windlass/worktrees/t1-open-the-door again from its branch
    [exit 1]
    ");
}

#[test]
fn what_belongs_to_no_task() {
    let world = worked();
    sh(
        &world,
        "git branch windlass/t1-another && git branch windlass/mine && git branch windlass/t9-gone
                git worktree add -q .windlass/worktrees/t9-gone windlass/t9-gone && mkdir .windlass/worktrees/stray",
    );
    assert_snapshot!(said(&world), @r"
    wrong  git            the base is main; one branch of a task
           the branch windlass/mine belongs to no task
           the branch windlass/t1-another belongs to no task
           the branch windlass/t9-gone belongs to no task
           hint: look at it with `git log`, then rename the branch, or remove it with `git branch -D`
    wrong  worktrees
           $WORK/.windlass/worktrees/t9-gone belongs to no task
           hint: check whether you need anything in it, then `git worktree remove $WORK/.windlass/worktrees/t9-gone`, or move it away; `git worktree prune` forgets missing worktrees
    wrong  worktrees
           $WORK/.windlass/worktrees/stray is not a worktree of this repository
           hint: check its content, and move it away: `mv $WORK/.windlass/worktrees/stray $WORK/.windlass/worktrees/stray.old`
    [exit 1]
    ");
}

/// The settings for a remote without an address are for a future one.
#[test]
fn a_remote_without_an_address_is_none() {
    let world = repository();
    sh(&world, "git config remote.origin.prune true");
    assert_snapshot!(said(&world), @"ok     git            the base is main");
}
