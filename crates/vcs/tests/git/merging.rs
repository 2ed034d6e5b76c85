//! Merges into the base.

use std::fs;
use std::path::Path;

use windlass_vcs::forge::ForgeMergeMethod;
use windlass_vcs::git::{
    BaseBranch, BranchDisposal, Error, GitCommitId, GitOperation, IfCheckedOut, MergeOutcome, MergePlan,
    WorktreeCloseOutcome,
};

use crate::scene::{Scene, read, write};

fn way(message: &str) -> MergePlan<'_> {
    MergePlan { method: ForgeMergeMethod::Merge, message }
}

fn merge(scene: &Scene, head: &GitCommitId, how: IfCheckedOut) -> Result<MergeOutcome, Error> {
    let base = scene.base();
    scene.with(|git| git.merge_into_base(&base, head, way("Merge it"), how))
}

/// A forge may merge an older head while another commit is on its way.
#[test]
fn branch_is_merged_whole_where_its_tip_is_in_what_was_merged() {
    let scene = Scene::with_remote();
    let base = scene.base().commit;
    let (worktree, first) = scene.work("t1", "b", "1");
    let is_whole =
        |merged: &GitCommitId| scene.with(|git| git.is_fully_merged(&worktree.branch, merged, &base)).unwrap();
    assert!(is_whole(&first));
    write(&worktree.path, "b", "2");
    let second = scene.commit(&worktree.path, "more");
    assert!(is_whole(&second) && !is_whole(&first));
    scene.git(&worktree.path, &["reset", "--quiet", "--hard", first.as_str()]);
    assert!(is_whole(&second), "what was merged has more");
    let unknown = GitCommitId::new(&"1".repeat(40)).unwrap();
    assert!(!is_whole(&unknown));
}

#[test]
fn with_a_remote_it_is_pushed_and_nothing_local_moves() {
    let scene = Scene::with_remote();
    let before = scene.head(&scene.root);
    let (_, head) = scene.work("t1", "b", "1");
    let MergeOutcome::Now { commit } = merge(&scene, &head, IfCheckedOut::Refuse).unwrap() else { panic!("now") };
    assert_eq!(scene.commit_at(&scene.path("remote.git"), "main"), commit);
    assert_eq!(
        scene.git(&scene.root, &["log", "-1", "--format=%P %s", commit.as_str()]),
        format!("{before} {head} Merge it")
    );
    assert_eq!(scene.head(&scene.root), before);
    // After a crash that lost the outcome, the next call finds the merge.
    assert_eq!(merge(&scene, &head, IfCheckedOut::Refuse).unwrap(), Merged::Already { commit });
    assert!(!scene.was_hooked());
}

#[test]
fn second_merge_reports_stale_base() {
    let scene = Scene::with_remote();
    let (_, one) = scene.work("t1", "b", "1");
    let (_, two) = scene.work("t2", "c", "2");
    let base = scene.base();
    merge(&scene, &one, IfCheckedOut::Refuse).unwrap();
    let late = scene.with(|git| git.merge_into_base(&base, &two, way("late"), IfCheckedOut::Refuse));
    assert!(matches!(late, Err(Error::Moved { .. })), "{late:?}");
    let stale = merge(&scene, &two, IfCheckedOut::Refuse);
    assert!(matches!(stale, Err(Error::Stale { .. })), "{stale:?}");
}

/// Replace refs cannot change the history of commits.
#[test]
fn what_is_stale_stays_so_with_another_history() {
    let scene = Scene::new();
    let (_, head) = scene.work("t1", "b", "1");
    let base = scene.commit(&scene.root, "newer");
    let is_stale = || matches!(merge(&scene, &head, IfCheckedOut::Refuse), Err(Error::Stale { .. }));
    scene.git(&scene.root, &["replace", "--graft", head.as_str(), base.as_str()]);
    assert!(is_stale(), "by a ref");
    scene.git(&scene.root, &["replace", "--delete", head.as_str()]);
    scene.write(".git/info/grafts", &format!("{head} {base}\n"));
    assert!(is_stale(), "by a graft");
}

#[test]
fn without_a_remote_a_branch_that_is_checked_out_is_refused() {
    let scene = Scene::new();
    let (worktree, head) = scene.work("t1", "b", "1");
    let error = merge(&scene, &head, IfCheckedOut::Refuse).expect_err("main is checked out");
    assert!(matches!(&error, Error::CheckedOut { path, .. } if *path == scene.root), "{error}");
    scene.git(&scene.root, &["checkout", "--quiet", "-b", "elsewhere"]);
    let base = scene.base();
    let MergeOutcome::Now { commit } = merge(&scene, &head, IfCheckedOut::Refuse).unwrap() else { panic!("now") };
    assert_eq!(scene.commit_at(&scene.root, "main"), commit);
    assert!(!scene.root.join("b").exists());
    scene.git(&scene.root, &["update-ref", "refs/heads/main", base.commit.as_str()]);
    let (_, other) = scene.work("t2", "c", "1");
    scene.git(&scene.root, &["update-ref", "refs/heads/main", commit.as_str()]);
    let late = scene.with(|git| git.merge_into_base(&base, &other, way("late"), IfCheckedOut::Refuse));
    assert!(matches!(late, Err(Error::Moved { .. })), "{late:?}");
    let into = BranchDisposal::DeleteIfContained(commit);
    let closed = scene.with(|git| git.close_worktree(&worktree, &into)).unwrap();
    assert_eq!(closed, Closed::Gone);
    assert!(!Path::new(&worktree.path).exists());
    assert_eq!(scene.with(|git| git.branches()).unwrap().len(), 1);
}

#[test]
fn clean_checked_out_base_is_fast_forwarded_on_request() {
    let scene = Scene::new();
    let (_, head) = scene.work("t1", "b", "1");
    scene.write("a", "unsaved");
    let error = merge(&scene, &head, IfCheckedOut::FastForward).expect_err("it is not clean");
    assert!(matches!(error, Error::Dirty { .. }), "{error}");
    assert_eq!(read(&scene.root, "a"), "unsaved");
    scene.git(&scene.root, &["checkout", "--quiet", "a"]);
    scene.write("b", "in the way");
    for ignored in ["", "b\n"] {
        scene.write(".git/info/exclude", ignored);
        assert!(merge(&scene, &head, IfCheckedOut::FastForward).is_err());
        assert_eq!(read(&scene.root, "b"), "in the way");
    }
    fs::remove_file(scene.root.join("b")).unwrap();
    scene.write("c", "untracked");
    let MergeOutcome::Now { commit } = merge(&scene, &head, IfCheckedOut::FastForward).unwrap() else { panic!("now") };
    assert_eq!((scene.head(&scene.root), read(&scene.root, "b")), (commit, "1".to_owned()));
    assert_eq!(scene.git(&scene.root, &["status", "--porcelain"]), "?? c");
}

/// A clean tree may still be needed as it is.
#[test]
fn tree_in_bisect_is_not_fast_forwarded() {
    let scene = Scene::new();
    let (_, head) = scene.work("t1", "b", "1");
    fs::remove_dir_all(scene.root.join(".git/hooks")).unwrap();
    scene.git(&scene.root, &["bisect", "start"]);
    let error = merge(&scene, &head, IfCheckedOut::FastForward).expect_err("a bisect");
    assert!(matches!(error, Error::Unfinished { operation: Operation::Bisect, .. }), "{error}");
    assert!(!scene.root.join("b").exists());
    scene.git(&scene.root, &["bisect", "reset"]);
    merge(&scene, &head, IfCheckedOut::FastForward).unwrap();
    assert_eq!(read(&scene.root, "b"), "1");
}

#[test]
fn close_removes_only_own_clean_worktrees() {
    let scene = Scene::new();
    let (worktree, _) = scene.work("t1", "b", "1");
    let base = scene.base().commit;
    let close = |branch: &BranchDisposal| scene.with(|git| git.close_worktree(&worktree, branch));
    write(&worktree.path, "new", "unsaved");
    let dirty = close(&BranchDisposal::Delete).unwrap();
    assert_eq!(dirty, Closed::Dirty { files: vec!["new".into()] });
    assert_eq!(read(&worktree.path, "new"), "unsaved");
    fs::remove_file(worktree.path.join("new")).unwrap();
    let unmerged = BranchDisposal::DeleteIfContained(base);
    assert_eq!(close(&unmerged).unwrap(), Closed::BranchKept);
    assert!(!worktree.path.exists());
    scene.git(&scene.root, &["checkout", "--quiet", "windlass/t1"]);
    assert!(matches!(close(&BranchAfter::Gone), Err(Error::CheckedOut { .. })), "a person looks at it");
    scene.git(&scene.root, &["checkout", "--quiet", "main"]);
    assert_eq!(close(&BranchAfter::Gone).unwrap(), Closed::Gone);
    assert_eq!(scene.git(&scene.root, &["for-each-ref", "--format=%(refname)"]), "refs/heads/main");
    assert_eq!(close(&BranchAfter::Gone).unwrap(), Closed::Gone, "twice is no trouble");
    scene.git(&scene.root, &["branch", "windlass/t1"]);
    assert!(matches!(close(&BranchAfter::Gone), Err(Error::BranchTaken { .. })));
    write(&worktree.path, "new", "foreign");
    assert!(matches!(close(&BranchAfter::Kept), Err(Error::Occupied { .. })));
    assert_eq!(read(&worktree.path, "new"), "foreign");
}

#[test]
fn close_keeps_commits_without_branch() {
    let scene = Scene::new();
    let worktree = scene.open("t1");
    scene.git(&worktree.path, &["checkout", "--quiet", "--detach"]);
    write(&worktree.path, "b", "1");
    scene.commit(&worktree.path, "on no branch");
    let close = || scene.with(|git| git.close_worktree(&worktree, &BranchDisposal::Delete));
    assert!(matches!(close(), Err(Error::Strayed { .. })));
    assert_eq!(scene.with(|git| git.commit_all(&worktree, "nothing")).unwrap(), None);
    assert_eq!(close().unwrap(), Closed::Gone);
}

/// Some people work only in worktrees of a bare repository.
#[test]
fn a_bare_repository_has_nothing_checked_out() {
    let mut scene = Scene::new();
    let bare = scene.path("bare.git");
    scene.git(&scene.root, &["clone", "--quiet", "--bare", scene.root.to_str().unwrap(), bare.to_str().unwrap()]);
    scene.git(&bare, &["remote", "remove", "origin"]);
    let place = scene.path("linked");
    scene.git(&bare, &["worktree", "add", "--quiet", "-b", "mine", place.to_str().unwrap()]);
    scene.root = fs::canonicalize(place).unwrap();
    let (_, head) = scene.work("t1", "b", "1");
    let MergeOutcome::Now { commit } = merge(&scene, &head, IfCheckedOut::Refuse).unwrap() else { panic!("now") };
    assert_eq!(scene.commit_at(&bare, "main"), commit);
    let mine = windlass_vcs::git::BranchName::new("mine").unwrap();
    let base = scene.with(|git| git.fetch_base(Some(&mine))).unwrap();
    let refused = scene.with(|git| git.merge_into_base(&base, &head, way("x"), IfCheckedOut::Refuse));
    assert!(matches!(&refused, Err(Error::CheckedOut { path, .. }) if *path == scene.root), "{refused:?}");
}

#[test]
fn a_locked_worktree_stays() {
    let scene = Scene::new();
    let worktree = scene.open("t1");
    scene.git(&scene.root, &["worktree", "lock", worktree.path.to_str().unwrap()]);
    let closed = scene.with(|git| git.close_worktree(&worktree, &BranchDisposal::Delete));
    assert!(matches!(closed, Err(Error::WorktreeLocked { .. })));
    assert!(worktree.path.join("a").exists());
}

#[test]
fn a_squash_is_one_commit_on_top_and_a_rebase_none() {
    for method in [ForgeMergeMethod::Squash, ForgeMergeMethod::Rebase] {
        let scene = Scene::with_remote();
        let before = scene.head(&scene.root);
        let (worktree, _) = scene.work("t1", "b", "1");
        write(&worktree.path, "b", "2");
        let head = scene.commit(&worktree.path, "more");
        let seen = scene.base();
        let way = MergePlan { method, message: "All of it" };
        let merge =
            |base: &BaseBranch| scene.with(|git| git.merge_into_base(base, &head, way, IfCheckedOut::Refuse)).unwrap();
        let MergeOutcome::Now { commit } = merge(&seen) else { panic!("now") };
        assert_eq!(scene.commit_at(&scene.path("remote.git"), "main"), commit);
        let said = scene.git(&scene.root, &["log", "-1", "--format=%P %s", commit.as_str()]);
        match method {
            ForgeMergeMethod::Squash => assert_eq!(said, format!("{before} All of it")),
            _ => assert_eq!(commit, head),
        }
        assert_eq!(scene.git(&scene.root, &["diff", "--stat", commit.as_str(), head.as_str()]), "");
        // After a crash that lost the outcome, and later merges of others.
        assert_eq!(merge(&scene.base()), Merged::Already { commit: commit.clone() });
        let (_, next) = scene.work("t2", "c", "1");
        scene.with(|git| git.merge_into_base(&scene.base(), &next, way, IfCheckedOut::Refuse)).unwrap();
        assert_eq!(merge(&scene.base()), Merged::Already { commit });
    }
}

/// A commit after the merge is nowhere else, whatever is reported as merged.
#[test]
fn branch_with_commit_after_its_merge_is_refused() {
    let scene = Scene::with_remote();
    let (worktree, head) = scene.work("t1", "b", "1");
    let MergeOutcome::Now { commit } = merge(&scene, &head, IfCheckedOut::Refuse).unwrap() else { panic!("now") };
    let refuse = || scene.with(|git| git.refuse_unmerged_branch(&worktree.branch, &worktree.branch, &commit));
    refuse().unwrap();
    write(&worktree.path, "b", "2");
    scene.commit(&worktree.path, "too late");
    let (branch, path) = (&worktree.branch, worktree.path.display());
    let hint = |error: Error| error.hint().unwrap_or_default().into_owned();
    let merge = format!("`git merge {branch}` keeps them; `");
    let remove = [format!("git worktree remove {path}"), format!("git branch -D {branch}")];
    let refused = refuse().unwrap_err();
    assert!(matches!(refused, Error::Unmerged { .. }));
    assert_eq!(hint(refused), format!("{merge}{} && {}` removes them", remove[0], remove[1]));
    let give = |command: &str| scene.git(&scene.root, &command.split(' ').skip(1).collect::<Vec<_>>());
    give(&remove[0]);
    assert_eq!(hint(refuse().unwrap_err()), format!("{merge}{}` removes them", remove[1]));
    give(&remove[1]);
    refuse().unwrap();
}
