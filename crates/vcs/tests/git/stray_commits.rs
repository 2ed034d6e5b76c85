//! Commits in a worktree that are not on its branch.

use std::path::Path;

use windlass_vcs::git::{GitCommitId, Worktree};

use crate::fixture::{GitFixture, write_file};

/// Commits a file of this name.
fn add_file(fixture: &GitFixture, at: &Path, name: &str) -> GitCommitId {
    write_file(at, name, name);
    fixture.commit_files(at, name)
}

/// Returns the places of stray commits, each with the subjects of its commits.
fn read_stray_commits(fixture: &GitFixture, worktree: &Worktree) -> Vec<(String, Vec<String>)> {
    let start = fixture.fetch_base_branch().commit;
    fixture.with_client(|git| {
        let tip = git.branch_tip(&worktree.branch).unwrap().unwrap();
        let stray = git.commits_made_beside(worktree, &start, &tip).unwrap();
        let subjects =
            stray.into_iter().map(|(place, made)| (place, made.into_iter().map(|made| made.subject).collect()));
        subjects.collect()
    })
}

fn stray_commits_at(name: &str, subjects: &[&str]) -> (String, Vec<String>) {
    (name.to_owned(), subjects.iter().map(|&subject| subject.to_owned()).collect())
}

#[test]
fn commits_left_by_switching_away_are_named_with_their_place() {
    let fixture = GitFixture::new();
    let worktree = fixture.open_base_worktree("t1");
    let at = &worktree.path;
    fixture.run_git(at, &["checkout", "--quiet", "--detach"]);
    add_file(&fixture, at, "loose");
    fixture.run_git(at, &["checkout", "--quiet", "-b", "mine", "windlass/t1"]);
    add_file(&fixture, at, "one");
    add_file(&fixture, at, "two");
    fixture.run_git(at, &["switch", "--quiet", "windlass/t1"]);
    add_file(&fixture, at, "work");
    assert_eq!(
        read_stray_commits(&fixture, &worktree),
        [stray_commits_at("mine", &["two", "one"]), stray_commits_at("no branch", &["loose"])]
    );
    fixture.run_git(at, &["checkout", "--quiet", "--detach"]);
    add_file(&fixture, at, "now");
    assert_eq!(read_stray_commits(&fixture, &worktree)[0], stray_commits_at("HEAD", &["now"]));
}

#[test]
fn commits_that_were_replaced_dropped_or_taken_over_are_not_left() {
    let fixture = GitFixture::new();
    let worktree = fixture.open_base_worktree("t1");
    let at = &worktree.path;
    add_file(&fixture, at, "dropped");
    fixture.run_git(at, &["reset", "--quiet", "--hard", "HEAD~1"]);
    add_file(&fixture, at, "first");
    fixture.run_git(at, &["commit", "--quiet", "--amend", "-m", "better"]);
    // Check out the base, and then the branch again.
    fixture.run_git(at, &["checkout", "--quiet", "--detach", "HEAD~1"]);
    fixture.run_git(at, &["checkout", "--quiet", "windlass/t1"]);
    fixture.run_git(at, &["commit", "--quiet", "--amend", "-m", "best"]);
    fixture.run_git(at, &["checkout", "--quiet", "-b", "squashed"]);
    add_file(&fixture, at, "one");
    add_file(&fixture, at, "two");
    fixture.run_git(at, &["checkout", "--quiet", "windlass/t1"]);
    fixture.run_git(at, &["merge", "--quiet", "--squash", "squashed"]);
    fixture.commit_files(at, "both");
    assert_eq!(read_stray_commits(&fixture, &worktree), []);
}
