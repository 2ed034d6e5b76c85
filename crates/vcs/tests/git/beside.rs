//! Commits that were made in a worktree and are not on its branch.

use std::path::Path;

use windlass_vcs::git::{GitCommitId, Worktree};

use crate::scene::{Scene, write};

/// Commits a file of this name.
fn add_file(scene: &Scene, at: &Path, name: &str) -> GitCommitId {
    write(at, name, name);
    scene.commit(at, name)
}

/// Returns the places beside the branch, and the subjects of the commits there.
fn places_beside(scene: &Scene, worktree: &Worktree) -> Vec<(String, Vec<String>)> {
    let start = scene.base().commit;
    scene.with(|git| {
        let tip = git.branch_tip(&worktree.branch).unwrap().unwrap();
        let beside = git.commits_made_beside(worktree, &start, &tip).unwrap();
        let subjects =
            beside.into_iter().map(|(place, made)| (place, made.into_iter().map(|made| made.subject).collect()));
        subjects.collect()
    })
}

fn place(name: &str, subjects: &[&str]) -> (String, Vec<String>) {
    (name.to_owned(), subjects.iter().map(|&subject| subject.to_owned()).collect())
}

#[test]
fn commits_left_by_switching_away_are_named_with_their_place() {
    let scene = Scene::new();
    let worktree = scene.open("t1");
    let at = &worktree.path;
    scene.git(at, &["checkout", "--quiet", "--detach"]);
    add_file(&scene, at, "loose");
    scene.git(at, &["checkout", "--quiet", "-b", "mine", "windlass/t1"]);
    add_file(&scene, at, "one");
    add_file(&scene, at, "two");
    scene.git(at, &["switch", "--quiet", "windlass/t1"]);
    add_file(&scene, at, "work");
    assert_eq!(places_beside(&scene, &worktree), [place("mine", &["two", "one"]), place("no branch", &["loose"])]);
    scene.git(at, &["checkout", "--quiet", "--detach"]);
    add_file(&scene, at, "now");
    assert_eq!(places_beside(&scene, &worktree)[0], place("HEAD", &["now"]));
}

#[test]
fn commits_that_were_replaced_dropped_or_taken_over_are_not_left() {
    let scene = Scene::new();
    let worktree = scene.open("t1");
    let at = &worktree.path;
    add_file(&scene, at, "dropped");
    scene.git(at, &["reset", "--quiet", "--hard", "HEAD~1"]);
    add_file(&scene, at, "first");
    scene.git(at, &["commit", "--quiet", "--amend", "-m", "better"]);
    // A checkout of the base, and back.
    scene.git(at, &["checkout", "--quiet", "--detach", "HEAD~1"]);
    scene.git(at, &["checkout", "--quiet", "windlass/t1"]);
    scene.git(at, &["commit", "--quiet", "--amend", "-m", "best"]);
    scene.git(at, &["checkout", "--quiet", "-b", "squashed"]);
    add_file(&scene, at, "one");
    add_file(&scene, at, "two");
    scene.git(at, &["checkout", "--quiet", "windlass/t1"]);
    scene.git(at, &["merge", "--quiet", "--squash", "squashed"]);
    scene.commit(at, "both");
    assert_eq!(places_beside(&scene, &worktree), []);
}
