//! `windlass doctor`: the checks of git, worktrees, branches and the forge

use std::fs;

use insta::assert_snapshot;

use crate::support::TestWorld;

/// A project in a repository with one commit on `main`.
fn create_repository() -> TestWorld {
    let world = TestWorld::empty();
    run_script(
        &world,
        "git init -q -b main && git config user.name ann && git config user.email ann@shop.test
                printf '.windlass/\n' > .gitignore && git add . && git commit -qm Begin",
    );
    world.run_ok(&["init"]);
    world
}

fn run_script(world: &TestWorld, words: &str) {
    let ran = world.run_command(world.program("sh").args(["-c", &format!("set -e\n{words}")]));
    assert_eq!(ran.code, 0, "{ran}");
}

/// A task that was worked on, whose change is open.
fn create_open_change() -> TestWorld {
    let world = create_repository();
    world.run_ok(&["task", "add", "Open the door"]);
    let agent = "command:cat > /dev/null; echo open > door; echo '<promise>COMPLETE</promise>'";
    assert_eq!(world.run(&["run", "--agent", agent]).code, 0);
    world
}

/// Returns the output after the line of the agents.
fn git_report(world: &TestWorld) -> String {
    let ran = world.run(&["doctor"]).to_string();
    let place = ran.find("agents ").and_then(|at| ran[at..].find('\n').map(|end| at + end + 1)).unwrap();
    ran[place..].to_owned()
}

#[test]
fn doctor_reports_ok_for_sound_repository() {
    assert_snapshot!(git_report(&create_repository()), @"ok     git            the base is main");
    let world = create_open_change();
    assert_snapshot!(git_report(&world), @"ok     git            the base is main; one branch of a task");
    let json: serde_json::Value = serde_json::from_str(&world.run_ok(&["doctor", "--json"])).unwrap();
    let git = json["checks"].as_array().unwrap().iter().find(|check| check["check"] == "git").unwrap();
    assert_eq!((&git["ok"], &git["problems"]), (&true.into(), &serde_json::json!([])));
}

#[test]
fn doctor_reports_missing_base_branch_and_missing_commits() {
    let world = create_repository();
    world.write(".windlass/config.yaml", "base_branch: trunk\n");
    assert_snapshot!(git_report(&world), @r"
    wrong  git
           cannot find the base branch trunk
           hint: name the base branch in the configuration
    [exit 1]
    ");
    // Tasks that are worked on in place need no base.
    world.write(".windlass/config.yaml", "base_branch: trunk\nworktrees: false\n");
    assert_snapshot!(git_report(&world), @"ok     git            tasks are worked on in place");
    let empty = TestWorld::empty();
    run_script(&empty, "git init -q -b main");
    empty.run_ok(&["init"]);
    assert_snapshot!(git_report(&empty), @r"
    wrong  git
           cannot start from anything in $WORK: there are no commits yet
           hint: make a first commit
    [exit 1]
    ");
}

#[test]
fn doctor_accepts_base_that_exists_only_on_remote() {
    let world = create_repository();
    run_script(
        &world,
        "git init -q --bare ../team.git && git remote add origin ../team.git
                git push -q origin main main:next && git update-ref -d refs/remotes/origin/next",
    );
    world.write(".windlass/config.yaml", "base_branch: next\n");
    assert_snapshot!(git_report(&world), @"ok     git            the base is origin/next");
}

#[test]
fn doctor_reports_missing_forge_token_with_remedy() {
    let world = create_repository();
    run_script(
        &world,
        "git remote add origin https://github.com/shop/door.git && git update-ref refs/remotes/origin/main HEAD",
    );
    assert_snapshot!(git_report(&world), @r"
    ok     git            the base is origin/main
    wrong  forge          shop/door on github.com
           cannot find a token for github.com
           hint: set GH_TOKEN, or run `gh auth login --hostname github.com`
    [exit 1]
    ");
    let ran = world.run_with_variable(("GH_TOKEN", "ghp_x"), &["doctor"]);
    assert!(ran.code == 0 && ran.stdout.contains("ok     forge          shop/door on github.com"), "{ran}");
}

#[test]
fn worktrees_that_are_locked_or_have_vanished() {
    let world = create_open_change();
    run_script(&world, "git worktree lock --reason 'on a stick' .windlass/worktrees/t1-open-the-door");
    assert_snapshot!(git_report(&world), @r"
    ok     git            the base is main; one branch of a task
    wrong  worktrees
           T1: cannot use the worktree $WORK/.windlass/worktrees/t1-open-the-door: it is locked (on a stick)
           hint: `git worktree unlock $WORK/.windlass/worktrees/t1-open-the-door`, if its owner agrees
    [exit 1]
    ");
    run_script(&world, "git worktree unlock .windlass/worktrees/t1-open-the-door");
    fs::remove_dir_all(world.path(".windlass/worktrees/t1-open-the-door")).unwrap();
    assert_snapshot!(git_report(&world), @r"
    ok     git            the base is main; one branch of a task
    wrong  worktrees
           T1: cannot find the worktree $WORK/.windlass/worktrees/t1-open-the-door
           hint: `windlass run` makes $WORK/.windlass/worktrees/t1-open-the-door again from its branch
    [exit 1]
    ");
}

#[test]
fn doctor_reports_branches_and_worktrees_without_task() {
    let world = create_open_change();
    run_script(
        &world,
        "git branch windlass/t1-another && git branch windlass/mine && git branch windlass/t9-gone
                git worktree add -q .windlass/worktrees/t9-gone windlass/t9-gone && mkdir .windlass/worktrees/stray",
    );
    assert_snapshot!(git_report(&world), @r"
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
fn doctor_ignores_remote_without_address() {
    let world = create_repository();
    run_script(&world, "git config remote.origin.prune true");
    assert_snapshot!(git_report(&world), @"ok     git            the base is main");
}
