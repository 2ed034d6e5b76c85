//! Merges into the base.

use std::fs;
use std::path::Path;

use windlass_vcs::forge::ForgeMergeMethod;
use windlass_vcs::git::{
    BaseBranch, BranchDisposal, Error, GitCommitId, GitOperation, IfCheckedOut, MergeOutcome, MergePlan,
    WorktreeCloseOutcome,
};

use crate::fixture::{GitFixture, read_file, write_file};

fn merge_plan(message: &str) -> MergePlan<'_> {
    MergePlan { method: ForgeMergeMethod::Merge, message }
}

fn merge_worktree(
    fixture: &GitFixture,
    head: &GitCommitId,
    if_checked_out: IfCheckedOut,
) -> Result<MergeOutcome, Error> {
    let base = fixture.fetch_base_branch();
    fixture.with_client(|git| git.merge_into_base(&base, head, merge_plan("Merge it"), if_checked_out))
}

/// A forge may merge an older head while the agent pushes another commit.
#[test]
fn branch_is_merged_whole_where_its_tip_is_in_what_was_merged() {
    let fixture = GitFixture::with_remote();
    let base = fixture.fetch_base_branch().commit;
    let (worktree, first) = fixture.commit_work("t1", "b", "1");
    let is_whole =
        |merged: &GitCommitId| fixture.with_client(|git| git.is_fully_merged(&worktree.branch, merged, &base)).unwrap();
    assert!(is_whole(&first));
    write_file(&worktree.path, "b", "2");
    let second = fixture.commit_files(&worktree.path, "more");
    assert!(is_whole(&second) && !is_whole(&first));
    fixture.run_git(&worktree.path, &["reset", "--quiet", "--hard", first.as_str()]);
    assert!(is_whole(&second), "what was merged has more");
    let unknown = GitCommitId::new(&"1".repeat(40)).unwrap();
    assert!(!is_whole(&unknown));
}

#[test]
fn merge_with_remote_is_pushed_without_moving_local_branch() {
    let fixture = GitFixture::with_remote();
    let before = fixture.read_head(&fixture.root);
    let (_, head) = fixture.commit_work("t1", "b", "1");
    let MergeOutcome::Merged { commit } = merge_worktree(&fixture, &head, IfCheckedOut::Refuse).unwrap() else {
        panic!("now")
    };
    assert_eq!(fixture.resolve_commit(&fixture.path("remote.git"), "main"), commit);
    assert_eq!(
        fixture.run_git(&fixture.root, &["log", "-1", "--format=%P %s", commit.as_str()]),
        format!("{before} {head} Merge it")
    );
    assert_eq!(fixture.read_head(&fixture.root), before);
    // If a crash loses the outcome, the next call finds the merge.
    assert_eq!(merge_worktree(&fixture, &head, IfCheckedOut::Refuse).unwrap(), MergeOutcome::AlreadyMerged { commit });
    assert!(!fixture.has_run_hook());
}

#[test]
fn second_merge_reports_stale_base() {
    let fixture = GitFixture::with_remote();
    let (_, one) = fixture.commit_work("t1", "b", "1");
    let (_, two) = fixture.commit_work("t2", "c", "2");
    let base = fixture.fetch_base_branch();
    merge_worktree(&fixture, &one, IfCheckedOut::Refuse).unwrap();
    let late = fixture.with_client(|git| git.merge_into_base(&base, &two, merge_plan("late"), IfCheckedOut::Refuse));
    assert!(matches!(late, Err(Error::Moved { .. })), "{late:?}");
    let stale = merge_worktree(&fixture, &two, IfCheckedOut::Refuse);
    assert!(matches!(stale, Err(Error::Stale { .. })), "{stale:?}");
}

/// Replace refs cannot change the history of commits.
#[test]
fn stale_merge_is_refused_despite_replace_refs_or_grafts() {
    let fixture = GitFixture::new();
    let (_, head) = fixture.commit_work("t1", "b", "1");
    let base = fixture.commit_files(&fixture.root, "newer");
    let is_stale = || matches!(merge_worktree(&fixture, &head, IfCheckedOut::Refuse), Err(Error::Stale { .. }));
    fixture.run_git(&fixture.root, &["replace", "--graft", head.as_str(), base.as_str()]);
    assert!(is_stale(), "by a ref");
    fixture.run_git(&fixture.root, &["replace", "--delete", head.as_str()]);
    fixture.write_file(".git/info/grafts", &format!("{head} {base}\n"));
    assert!(is_stale(), "by a graft");
}

#[test]
fn merge_into_checked_out_base_without_remote_is_refused() {
    let fixture = GitFixture::new();
    let (worktree, head) = fixture.commit_work("t1", "b", "1");
    let error = merge_worktree(&fixture, &head, IfCheckedOut::Refuse).expect_err("main is checked out");
    assert!(matches!(&error, Error::CheckedOut { path, .. } if *path == fixture.root), "{error}");
    fixture.run_git(&fixture.root, &["checkout", "--quiet", "-b", "elsewhere"]);
    let base = fixture.fetch_base_branch();
    let MergeOutcome::Merged { commit } = merge_worktree(&fixture, &head, IfCheckedOut::Refuse).unwrap() else {
        panic!("now")
    };
    assert_eq!(fixture.resolve_commit(&fixture.root, "main"), commit);
    assert!(!fixture.root.join("b").exists());
    fixture.run_git(&fixture.root, &["update-ref", "refs/heads/main", base.commit.as_str()]);
    let (_, other) = fixture.commit_work("t2", "c", "1");
    fixture.run_git(&fixture.root, &["update-ref", "refs/heads/main", commit.as_str()]);
    let late = fixture.with_client(|git| git.merge_into_base(&base, &other, merge_plan("late"), IfCheckedOut::Refuse));
    assert!(matches!(late, Err(Error::Moved { .. })), "{late:?}");
    let into = BranchDisposal::DeleteIfContained(commit);
    let closed = fixture.with_client(|git| git.close_worktree(&worktree, &into)).unwrap();
    assert_eq!(closed, WorktreeCloseOutcome::Removed);
    assert!(!Path::new(&worktree.path).exists());
    assert_eq!(fixture.with_client(|git| git.list_branches()).unwrap().len(), 1);
}

#[test]
fn clean_checked_out_base_is_fast_forwarded_on_request() {
    let fixture = GitFixture::new();
    let (_, head) = fixture.commit_work("t1", "b", "1");
    fixture.write_file("a", "unsaved");
    let error = merge_worktree(&fixture, &head, IfCheckedOut::FastForward).expect_err("it is not clean");
    assert!(matches!(error, Error::Dirty { .. }), "{error}");
    assert_eq!(read_file(&fixture.root, "a"), "unsaved");
    fixture.run_git(&fixture.root, &["checkout", "--quiet", "a"]);
    fixture.write_file("b", "in the way");
    for ignored in ["", "b\n"] {
        fixture.write_file(".git/info/exclude", ignored);
        assert!(merge_worktree(&fixture, &head, IfCheckedOut::FastForward).is_err());
        assert_eq!(read_file(&fixture.root, "b"), "in the way");
    }
    fs::remove_file(fixture.root.join("b")).unwrap();
    fixture.write_file("c", "untracked");
    let MergeOutcome::Merged { commit } = merge_worktree(&fixture, &head, IfCheckedOut::FastForward).unwrap() else {
        panic!("now")
    };
    assert_eq!((fixture.read_head(&fixture.root), read_file(&fixture.root, "b")), (commit, "1".to_owned()));
    assert_eq!(fixture.run_git(&fixture.root, &["status", "--porcelain"]), "?? c");
}

/// A clean tree may still be in the middle of another operation.
#[test]
fn tree_in_bisect_is_not_fast_forwarded() {
    let fixture = GitFixture::new();
    let (_, head) = fixture.commit_work("t1", "b", "1");
    fs::remove_dir_all(fixture.root.join(".git/hooks")).unwrap();
    fixture.run_git(&fixture.root, &["bisect", "start"]);
    let error = merge_worktree(&fixture, &head, IfCheckedOut::FastForward).expect_err("a bisect");
    assert!(matches!(error, Error::Unfinished { operation: GitOperation::Bisect, .. }), "{error}");
    assert!(!fixture.root.join("b").exists());
    fixture.run_git(&fixture.root, &["bisect", "reset"]);
    merge_worktree(&fixture, &head, IfCheckedOut::FastForward).unwrap();
    assert_eq!(read_file(&fixture.root, "b"), "1");
}

#[test]
fn close_removes_only_own_clean_worktrees() {
    let fixture = GitFixture::new();
    let (worktree, _) = fixture.commit_work("t1", "b", "1");
    let base = fixture.fetch_base_branch().commit;
    let close = |branch: &BranchDisposal| fixture.with_client(|git| git.close_worktree(&worktree, branch));
    write_file(&worktree.path, "new", "unsaved");
    let dirty = close(&BranchDisposal::Delete).unwrap();
    assert_eq!(dirty, WorktreeCloseOutcome::Dirty { files: vec!["new".into()] });
    assert_eq!(read_file(&worktree.path, "new"), "unsaved");
    fs::remove_file(worktree.path.join("new")).unwrap();
    let unmerged = BranchDisposal::DeleteIfContained(base);
    assert_eq!(close(&unmerged).unwrap(), WorktreeCloseOutcome::BranchKept);
    assert!(!worktree.path.exists());
    fixture.run_git(&fixture.root, &["checkout", "--quiet", "windlass/t1"]);
    assert!(matches!(close(&BranchDisposal::Delete), Err(Error::CheckedOut { .. })), "a person looks at it");
    fixture.run_git(&fixture.root, &["checkout", "--quiet", "main"]);
    assert_eq!(close(&BranchDisposal::Delete).unwrap(), WorktreeCloseOutcome::Removed);
    assert_eq!(fixture.run_git(&fixture.root, &["for-each-ref", "--format=%(refname)"]), "refs/heads/main");
    assert_eq!(close(&BranchDisposal::Delete).unwrap(), WorktreeCloseOutcome::Removed, "twice is no trouble");
    fixture.run_git(&fixture.root, &["branch", "windlass/t1"]);
    assert!(matches!(close(&BranchDisposal::Delete), Err(Error::BranchTaken { .. })));
    write_file(&worktree.path, "new", "foreign");
    assert!(matches!(close(&BranchDisposal::Keep), Err(Error::Occupied { .. })));
    assert_eq!(read_file(&worktree.path, "new"), "foreign");
}

#[test]
fn close_keeps_commits_without_branch() {
    let fixture = GitFixture::new();
    let worktree = fixture.open_base_worktree("t1");
    fixture.run_git(&worktree.path, &["checkout", "--quiet", "--detach"]);
    write_file(&worktree.path, "b", "1");
    fixture.commit_files(&worktree.path, "on no branch");
    let close = || fixture.with_client(|git| git.close_worktree(&worktree, &BranchDisposal::Delete));
    assert!(matches!(close(), Err(Error::Strayed { .. })));
    assert_eq!(fixture.with_client(|git| git.commit_all(&worktree, "nothing")).unwrap(), None);
    assert_eq!(close().unwrap(), WorktreeCloseOutcome::Removed);
}

/// Some people work only in worktrees of a bare repository.
#[test]
fn bare_repository_branch_merges_unless_checked_out_in_worktree() {
    let mut fixture = GitFixture::new();
    let bare = fixture.path("bare.git");
    fixture.run_git(
        &fixture.root,
        &["clone", "--quiet", "--bare", fixture.root.to_str().unwrap(), bare.to_str().unwrap()],
    );
    fixture.run_git(&bare, &["remote", "remove", "origin"]);
    let place = fixture.path("linked");
    fixture.run_git(&bare, &["worktree", "add", "--quiet", "-b", "mine", place.to_str().unwrap()]);
    fixture.root = fs::canonicalize(place).unwrap();
    let (_, head) = fixture.commit_work("t1", "b", "1");
    let MergeOutcome::Merged { commit } = merge_worktree(&fixture, &head, IfCheckedOut::Refuse).unwrap() else {
        panic!("now")
    };
    assert_eq!(fixture.resolve_commit(&bare, "main"), commit);
    let mine = windlass_vcs::git::BranchName::new("mine").unwrap();
    let base = fixture.with_client(|git| git.fetch_base(Some(&mine))).unwrap();
    let refused = fixture.with_client(|git| git.merge_into_base(&base, &head, merge_plan("x"), IfCheckedOut::Refuse));
    assert!(matches!(&refused, Err(Error::CheckedOut { path, .. }) if *path == fixture.root), "{refused:?}");
}

#[test]
fn locked_worktree_is_kept_and_close_refused() {
    let fixture = GitFixture::new();
    let worktree = fixture.open_base_worktree("t1");
    fixture.run_git(&fixture.root, &["worktree", "lock", worktree.path.to_str().unwrap()]);
    let closed = fixture.with_client(|git| git.close_worktree(&worktree, &BranchDisposal::Delete));
    assert!(matches!(closed, Err(Error::WorktreeLocked { .. })));
    assert!(worktree.path.join("a").exists());
}

#[test]
fn squash_creates_one_commit_and_rebase_fast_forwards() {
    for method in [ForgeMergeMethod::Squash, ForgeMergeMethod::Rebase] {
        let fixture = GitFixture::with_remote();
        let before = fixture.read_head(&fixture.root);
        let (worktree, _) = fixture.commit_work("t1", "b", "1");
        write_file(&worktree.path, "b", "2");
        let head = fixture.commit_files(&worktree.path, "more");
        let seen = fixture.fetch_base_branch();
        let plan = MergePlan { method, message: "All of it" };
        let merge_at_base = |base: &BaseBranch| {
            fixture.with_client(|git| git.merge_into_base(base, &head, plan, IfCheckedOut::Refuse)).unwrap()
        };
        let MergeOutcome::Merged { commit } = merge_at_base(&seen) else { panic!("now") };
        assert_eq!(fixture.resolve_commit(&fixture.path("remote.git"), "main"), commit);
        let log_line = fixture.run_git(&fixture.root, &["log", "-1", "--format=%P %s", commit.as_str()]);
        match method {
            ForgeMergeMethod::Squash => assert_eq!(log_line, format!("{before} All of it")),
            _ => assert_eq!(commit, head),
        }
        assert_eq!(fixture.run_git(&fixture.root, &["diff", "--stat", commit.as_str(), head.as_str()]), "");
        // The next call also finds the merge after later merges by other people.
        assert_eq!(merge_at_base(&fixture.fetch_base_branch()), MergeOutcome::AlreadyMerged { commit: commit.clone() });
        let (_, next) = fixture.commit_work("t2", "c", "1");
        fixture
            .with_client(|git| git.merge_into_base(&fixture.fetch_base_branch(), &next, plan, IfCheckedOut::Refuse))
            .unwrap();
        assert_eq!(merge_at_base(&fixture.fetch_base_branch()), MergeOutcome::AlreadyMerged { commit });
    }
}

/// Only the branch has a commit that follows the merge, even if the forge reports the branch as merged.
#[test]
fn branch_with_commit_after_its_merge_is_refused() {
    let fixture = GitFixture::with_remote();
    let (worktree, head) = fixture.commit_work("t1", "b", "1");
    let MergeOutcome::Merged { commit } = merge_worktree(&fixture, &head, IfCheckedOut::Refuse).unwrap() else {
        panic!("now")
    };
    let refuse = || fixture.with_client(|git| git.refuse_unmerged_branch(&worktree.branch, &worktree.branch, &commit));
    refuse().unwrap();
    write_file(&worktree.path, "b", "2");
    fixture.commit_files(&worktree.path, "too late");
    let (branch, path) = (&worktree.branch, worktree.path.display());
    let hint = |error: Error| error.hint().unwrap_or_default().into_owned();
    let keep_hint = format!("`git merge {branch}` keeps them; `");
    let remove = [format!("git worktree remove {path}"), format!("git branch -D {branch}")];
    let refused = refuse().unwrap_err();
    assert!(matches!(refused, Error::Unmerged { .. }));
    assert_eq!(hint(refused), format!("{keep_hint}{} && {}` removes them", remove[0], remove[1]));
    let run_command = |command: &str| fixture.run_git(&fixture.root, &command.split(' ').skip(1).collect::<Vec<_>>());
    run_command(&remove[0]);
    assert_eq!(hint(refuse().unwrap_err()), format!("{keep_hint}{}` removes them", remove[1]));
    run_command(&remove[1]);
    refuse().unwrap();
}
