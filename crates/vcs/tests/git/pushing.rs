//! Pushes to a remote, onto exactly the expected commit.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use windlass_vcs::git::{BranchName, Error, PushOutcome, RemoteBranch, RemoteName};

use crate::scene::{Scene, write};

#[test]
fn a_branch_is_pushed_once_and_only_onto_what_was_expected() {
    let scene = Scene::with_remote();
    let origin = RemoteName::new("origin").unwrap();
    let (worktree, first) = scene.work("t1", "b", "1");
    let push = |commit, expected| scene.with(|git| git.push_branch(&origin, &worktree.branch, commit, expected));
    let there = || scene.with(|git| git.remote_tip(&origin, &worktree.branch)).unwrap();
    let other = format!("{first}:refs/x/{}", worktree.branch.full());
    scene.git(&scene.root, &["push", "--quiet", "origin", &other]);
    assert_eq!(there(), None, "another ref ends with the same words");
    scene.git(&worktree.path, &["tag", "-m", "one", "v1"]);
    assert_eq!(push(&first, None).unwrap(), Pushed::Now);
    assert_eq!(scene.git(&scene.path("remote.git"), &["tag"]), "");
    assert_eq!(push(&first, None).unwrap(), Pushed::Already, "after a crash");
    // An amended commit: no descendant of the first one.
    scene.git(&worktree.path, &["commit", "--quiet", "--amend", "-m", "again"]);
    let second = scene.head(&worktree.path);
    assert!(matches!(push(&second, None), Err(Error::Moved { .. })));
    assert_eq!(push(&second, Some(&first)).unwrap(), Pushed::Now);
    assert_eq!(there().as_ref(), Some(&second));
    assert!(matches!(push(&first, Some(&first)), Err(Error::Moved { .. })));
    let away = |expected| scene.with(|git| git.delete_remote_branch(&origin, &worktree.branch, expected));
    assert!(matches!(away(&first), Err(Error::Moved { .. })));
    assert_eq!(away(&second).unwrap(), Pushed::Now);
    assert_eq!(away(&second).unwrap(), Pushed::Already);
    assert_eq!(there(), None);
    let config = fs::read_to_string(scene.root.join(".git/config")).unwrap();
    assert!(!config.contains("windlass"), "{config}");
    assert!(!scene.was_hooked());
}

#[test]
fn remote_rejection_is_reported() {
    let scene = Scene::with_remote();
    let hook = scene.path("remote.git/hooks/pre-receive");
    fs::write(&hook, "#!/bin/sh\necho 'only on weekdays' >&2\nexit 1\n").unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let (worktree, commit) = scene.work("t1", "b", "1");
    let origin = RemoteName::new("origin").unwrap();
    let error = scene.with(|git| git.push_branch(&origin, &worktree.branch, &commit, None)).expect_err("refused");
    assert!(matches!(error, Error::Rejected { .. }), "{error:?}");
    assert!(error.to_string().contains("only on weekdays"), "{error}");
    let gone = RemoteName::new("gone").unwrap();
    write(&worktree.path, "c", "1");
    let error = scene.with(|git| git.push_branch(&gone, &worktree.branch, &commit, None)).expect_err("no such remote");
    assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
}

#[test]
fn foreign_push_is_neither_overwritten_nor_deleted() {
    let scene = Scene::with_remote();
    let (worktree, first) = scene.work("t1", "b", "1");
    let origin = RemoteName::new("origin").unwrap();
    let shared =
        RemoteBranch { remote: origin.clone(), branch: worktree.branch.clone(), local: worktree.branch.clone() };
    let share = |commit| scene.with(|git| git.publish_branch(&shared, commit));
    assert_eq!(share(&first).unwrap(), Pushed::Now);
    let full = shared.branch.full_ref();
    // A colleague continues the branch, and every clone has fetched that.
    scene.git(&scene.root, &["checkout", "--quiet", "--detach", first.as_str()]);
    scene.write("theirs", "1");
    let theirs = scene.commit(&scene.root, "theirs");
    scene.git(&scene.root, &["push", "--quiet", "--no-verify", "origin", &format!("HEAD:{full}")]);
    scene.git(&scene.root, &["fetch", "--quiet", "origin"]);
    scene.git(&worktree.path, &["commit", "--quiet", "--no-verify", "--amend", "-m", "again"]);
    let second = scene.head(&worktree.path);
    let error = share(&second).expect_err("theirs");
    assert!(matches!(error, Error::Foreign { .. }), "{error:?}");
    assert!(matches!(scene.with(|git| git.unshare(&shared)), Err(Error::Foreign { .. })));
    assert_eq!(scene.with(|git| git.on_remote(&origin, &shared.branch)).unwrap(), Some(theirs.clone()));
    // A commit that is in our work may be rewritten with it.
    scene.git(&worktree.path, &["merge", "--quiet", "--no-verify", "--no-ff", "-m", "both", theirs.as_str()]);
    scene.git(&worktree.path, &["reset", "--quiet", "--hard", second.as_str()]);
    assert_eq!(share(&second).unwrap(), Pushed::Now);
    assert_eq!(scene.with(|git| git.unshare(&shared)).unwrap(), Pushed::Now);
    assert_eq!(scene.git(&scene.root, &["for-each-ref", "refs/windlass/pushed/"]), "");
}

/// Commits that only the remote's side of a branch has are lost with that side.
#[test]
fn remote_branch_with_a_commit_that_is_not_merged_is_kept() {
    let scene = Scene::with_remote();
    let (worktree, first) = scene.work("t1", "b", "1");
    let origin = RemoteName::new("origin").unwrap();
    let shared =
        RemoteBranch { remote: origin.clone(), branch: worktree.branch.clone(), local: worktree.branch.clone() };
    scene.with(|git| git.publish_branch(&shared, &first)).unwrap();
    // The agent pushes another commit by itself, and removes it from its branch.
    write(&worktree.path, "b", "2");
    let later = scene.commit(&worktree.path, "later");
    scene.git(&worktree.path, &["push", "--quiet", "--no-verify", "origin", &format!("HEAD:{}", shared.branch.full())]);
    scene.git(&worktree.path, &["reset", "--quiet", "--hard", first.as_str()]);
    assert!(matches!(scene.with(|git| git.unshare(&shared)), Err(Error::Foreign { .. })));
    assert_eq!(scene.with(|git| git.on_remote(&origin, &shared.branch)).unwrap(), Some(later));
}

/// The branch of an earlier attempt has another name on the remote than here.
#[test]
fn commit_that_is_only_on_the_own_remote_branch_is_not_merged() {
    let scene = Scene::with_remote();
    let base = scene.base().commit;
    let (worktree, first) = scene.work("t1-2", "b", "1");
    let (origin, known) = (RemoteName::new("origin").unwrap(), BranchName::new("windlass/t1").unwrap());
    let shared = RemoteBranch { remote: origin, branch: known.clone(), local: worktree.branch.clone() };
    scene.with(|git| git.publish_branch(&shared, &first)).unwrap();
    let refuse = || scene.with(|git| git.refuse_unmerged_branch(&worktree.branch, &known, &base));
    refuse().expect("what was pushed to be merged counts as merged");
    write(&worktree.path, "b", "2");
    scene.commit(&worktree.path, "later");
    scene.git(&worktree.path, &["push", "--quiet", "--no-verify", "origin", &format!("HEAD:{}", known.full())]);
    assert!(matches!(refuse(), Err(Error::Unmerged { .. })));
}

#[test]
fn branch_that_the_remote_has_lost_is_pushed_again_and_is_no_trouble_to_remove() {
    let scene = Scene::with_remote();
    let (worktree, first) = scene.work("t1", "b", "1");
    let remote = RemoteName::new("origin").unwrap();
    let shared = RemoteBranch { remote, branch: worktree.branch.clone(), local: worktree.branch.clone() };
    let lose = || scene.git(&scene.path("remote.git"), &["update-ref", "-d", &shared.branch.full_ref()]);
    assert_eq!(scene.with(|git| git.share(&shared, &first)).unwrap(), Pushed::Now);
    assert_eq!(scene.with(|git| git.share(&shared, &first)).unwrap(), Pushed::Already);
    lose();
    assert_eq!(scene.with(|git| git.share(&shared, &first)).unwrap(), Pushed::Now);
    lose();
    assert_eq!(scene.with(|git| git.unshare(&shared)).unwrap(), Pushed::Already);
    assert_eq!(scene.git(&scene.root, &["for-each-ref", "refs/windlass/pushed/"]), "");
}
