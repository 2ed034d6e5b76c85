//! Pushes to a remote, onto exactly the expected commit.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use windlass_vcs::git::{BranchName, Error, PushOutcome, RemoteBranch, RemoteName};

use crate::fixture::{GitFixture, write_file};

#[test]
fn branch_is_pushed_once_and_only_over_expected_tip() {
    let fixture = GitFixture::with_remote();
    let origin = RemoteName::new("origin").unwrap();
    let (worktree, first) = fixture.commit_work("t1", "b", "1");
    let push =
        |commit, expected| fixture.with_client(|git| git.push_branch(&origin, &worktree.branch, commit, expected));
    let remote_tip = || fixture.with_client(|git| git.remote_tip(&origin, &worktree.branch)).unwrap();
    let other = format!("{first}:refs/x/{}", worktree.branch.full_ref());
    fixture.run_git(&fixture.root, &["push", "--quiet", "origin", &other]);
    assert_eq!(remote_tip(), None, "another ref ends with the same words");
    fixture.run_git(&worktree.path, &["tag", "-m", "one", "v1"]);
    assert_eq!(push(&first, None).unwrap(), PushOutcome::Pushed);
    assert_eq!(fixture.run_git(&fixture.path("remote.git"), &["tag"]), "");
    assert_eq!(push(&first, None).unwrap(), PushOutcome::AlreadyPushed, "after a crash");
    // An amended commit is no descendant of the first one.
    fixture.run_git(&worktree.path, &["commit", "--quiet", "--amend", "-m", "again"]);
    let second = fixture.read_head(&worktree.path);
    assert!(matches!(push(&second, None), Err(Error::Moved { .. })));
    assert_eq!(push(&second, Some(&first)).unwrap(), PushOutcome::Pushed);
    assert_eq!(remote_tip().as_ref(), Some(&second));
    assert!(matches!(push(&first, Some(&first)), Err(Error::Moved { .. })));
    let away = |expected| fixture.with_client(|git| git.delete_remote_branch(&origin, &worktree.branch, expected));
    assert!(matches!(away(&first), Err(Error::Moved { .. })));
    assert_eq!(away(&second).unwrap(), PushOutcome::Pushed);
    assert_eq!(away(&second).unwrap(), PushOutcome::AlreadyPushed);
    assert_eq!(remote_tip(), None);
    let config = fs::read_to_string(fixture.root.join(".git/config")).unwrap();
    assert!(!config.contains("windlass"), "{config}");
    assert!(!fixture.has_run_hook());
}

#[test]
fn remote_rejection_is_reported() {
    let fixture = GitFixture::with_remote();
    let hook = fixture.path("remote.git/hooks/pre-receive");
    fs::write(&hook, "#!/bin/sh\necho 'only on weekdays' >&2\nexit 1\n").unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let (worktree, commit) = fixture.commit_work("t1", "b", "1");
    let origin = RemoteName::new("origin").unwrap();
    let error =
        fixture.with_client(|git| git.push_branch(&origin, &worktree.branch, &commit, None)).expect_err("refused");
    assert!(matches!(error, Error::Rejected { .. }), "{error:?}");
    assert!(error.to_string().contains("only on weekdays"), "{error}");
    let gone = RemoteName::new("gone").unwrap();
    write_file(&worktree.path, "c", "1");
    let error =
        fixture.with_client(|git| git.push_branch(&gone, &worktree.branch, &commit, None)).expect_err("no such remote");
    assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
}

#[test]
fn foreign_push_is_neither_overwritten_nor_deleted() {
    let fixture = GitFixture::with_remote();
    let (worktree, first) = fixture.commit_work("t1", "b", "1");
    let origin = RemoteName::new("origin").unwrap();
    let shared =
        RemoteBranch { remote: origin.clone(), branch: worktree.branch.clone(), local: worktree.branch.clone() };
    let publish = |commit| fixture.with_client(|git| git.publish_branch(&shared, commit));
    assert_eq!(publish(&first).unwrap(), PushOutcome::Pushed);
    let full = shared.branch.full_ref();
    // A colleague continues the branch, and every clone has fetched that.
    fixture.run_git(&fixture.root, &["checkout", "--quiet", "--detach", first.as_str()]);
    fixture.write_file("theirs", "1");
    let theirs = fixture.commit_files(&fixture.root, "theirs");
    fixture.run_git(&fixture.root, &["push", "--quiet", "--no-verify", "origin", &format!("HEAD:{full}")]);
    fixture.run_git(&fixture.root, &["fetch", "--quiet", "origin"]);
    fixture.run_git(&worktree.path, &["commit", "--quiet", "--no-verify", "--amend", "-m", "again"]);
    let second = fixture.read_head(&worktree.path);
    let error = publish(&second).expect_err("theirs");
    assert!(matches!(error, Error::Foreign { .. }), "{error:?}");
    assert!(matches!(fixture.with_client(|git| git.unpublish_branch(&shared)), Err(Error::Foreign { .. })));
    assert_eq!(fixture.with_client(|git| git.remote_tip(&origin, &shared.branch)).unwrap(), Some(theirs.clone()));
    // A push may rewrite a remote commit that is part of the work.
    fixture.run_git(&worktree.path, &["merge", "--quiet", "--no-verify", "--no-ff", "-m", "both", theirs.as_str()]);
    fixture.run_git(&worktree.path, &["reset", "--quiet", "--hard", second.as_str()]);
    assert_eq!(publish(&second).unwrap(), PushOutcome::Pushed);
    assert_eq!(fixture.with_client(|git| git.unpublish_branch(&shared)).unwrap(), PushOutcome::Pushed);
    assert_eq!(fixture.run_git(&fixture.root, &["for-each-ref", "refs/windlass/pushed/"]), "");
}

/// A deletion of the remote branch would lose the commits that only this branch has.
#[test]
fn remote_branch_with_a_commit_that_is_not_merged_is_kept() {
    let fixture = GitFixture::with_remote();
    let (worktree, first) = fixture.commit_work("t1", "b", "1");
    let origin = RemoteName::new("origin").unwrap();
    let shared =
        RemoteBranch { remote: origin.clone(), branch: worktree.branch.clone(), local: worktree.branch.clone() };
    fixture.with_client(|git| git.publish_branch(&shared, &first)).unwrap();
    // The agent pushes another commit by itself, and removes it from its branch.
    write_file(&worktree.path, "b", "2");
    let later = fixture.commit_files(&worktree.path, "later");
    fixture.run_git(
        &worktree.path,
        &["push", "--quiet", "--no-verify", "origin", &format!("HEAD:{}", shared.branch.full_ref())],
    );
    fixture.run_git(&worktree.path, &["reset", "--quiet", "--hard", first.as_str()]);
    assert!(matches!(fixture.with_client(|git| git.unpublish_branch(&shared)), Err(Error::Foreign { .. })));
    assert_eq!(fixture.with_client(|git| git.remote_tip(&origin, &shared.branch)).unwrap(), Some(later));
}

/// The branch of an earlier attempt has another name on the remote than in the repository.
#[test]
fn commit_that_is_only_on_the_own_remote_branch_is_not_merged() {
    let fixture = GitFixture::with_remote();
    let base = fixture.fetch_base_branch().commit;
    let (worktree, first) = fixture.commit_work("t1-2", "b", "1");
    let (origin, known) = (RemoteName::new("origin").unwrap(), BranchName::new("windlass/t1").unwrap());
    let shared = RemoteBranch { remote: origin, branch: known.clone(), local: worktree.branch.clone() };
    fixture.with_client(|git| git.publish_branch(&shared, &first)).unwrap();
    let refuse = || fixture.with_client(|git| git.refuse_unmerged_branch(&worktree.branch, &known, &base));
    refuse().expect("what was pushed to be merged counts as merged");
    write_file(&worktree.path, "b", "2");
    fixture.commit_files(&worktree.path, "later");
    fixture
        .run_git(&worktree.path, &["push", "--quiet", "--no-verify", "origin", &format!("HEAD:{}", known.full_ref())]);
    assert!(matches!(refuse(), Err(Error::Unmerged { .. })));
}

#[test]
fn branch_that_the_remote_has_lost_is_pushed_again_and_is_no_trouble_to_remove() {
    let fixture = GitFixture::with_remote();
    let (worktree, first) = fixture.commit_work("t1", "b", "1");
    let remote = RemoteName::new("origin").unwrap();
    let shared = RemoteBranch { remote, branch: worktree.branch.clone(), local: worktree.branch.clone() };
    let remove_on_remote =
        || fixture.run_git(&fixture.path("remote.git"), &["update-ref", "-d", &shared.branch.full_ref()]);
    assert_eq!(fixture.with_client(|git| git.publish_branch(&shared, &first)).unwrap(), PushOutcome::Pushed);
    assert_eq!(fixture.with_client(|git| git.publish_branch(&shared, &first)).unwrap(), PushOutcome::AlreadyPushed);
    remove_on_remote();
    assert_eq!(fixture.with_client(|git| git.publish_branch(&shared, &first)).unwrap(), PushOutcome::Pushed);
    remove_on_remote();
    assert_eq!(fixture.with_client(|git| git.unpublish_branch(&shared)).unwrap(), PushOutcome::AlreadyPushed);
    assert_eq!(fixture.run_git(&fixture.root, &["for-each-ref", "refs/windlass/pushed/"]), "");
}
