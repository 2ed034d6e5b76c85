//! The user's own tree, which Windlass does not change in any state.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use windlass_vcs::forge::ForgeMergeMethod;
use windlass_vcs::git::{BranchDisposal, CheckoutAccess, IfCheckedOut, MergePlan, RemoteName};

use crate::fixture::{GitFixture, write_file};

/// Returns all user data: files, index, HEAD, stash, configuration, branches, and unfinished operations.
fn snapshot_user_files(fixture: &GitFixture) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    collect_files(&fixture.root, &fixture.root, &mut found);
    let refs = fixture.run_git(
        &fixture.root,
        &["for-each-ref", "--format=%(objectname) %(refname)", "refs/heads", "refs/stash", "refs/tags"],
    );
    let user_refs = refs.lines().filter(|line| !line.contains("refs/heads/windlass/")).collect::<Vec<_>>().join("\n");
    found.insert("refs".into(), user_refs.into_bytes());
    found
}

/// Collects files, except those of Windlass and those that git changes for every worktree.
fn collect_files(root: &Path, directory: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    const SHARED_PATHS: [&str; 7] = [
        ".windlass",
        ".git/objects",
        ".git/refs",
        ".git/worktrees",
        ".git/windlass",
        ".git/packed-refs",
        ".git/logs/refs",
    ];
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        let name = path.strip_prefix(root).unwrap().to_owned();
        if SHARED_PATHS.iter().any(|shared| name == Path::new(shared)) {
            continue;
        }
        if path.is_dir() {
            collect_files(root, &path, found);
        } else {
            found.insert(name, fs::read(&path).unwrap());
        }
    }
}

/// Creates staged, unstaged, untracked, ignored and stashed work.
fn create_unsaved_work(fixture: &GitFixture) {
    fixture.write_file("a", "stashed\n");
    fixture.run_git(&fixture.root, &["stash", "--quiet"]);
    fixture.write_file("a", "staged\n");
    fixture.run_git(&fixture.root, &["add", "a"]);
    fixture.write_file("a", "unstaged\n");
    fixture.write_file("untracked", "mine");
    fixture.write_file("x.log", "ignored");
}

/// Creates two branches of the user that conflict with each other.
fn create_conflicting_branches(fixture: &GitFixture) {
    fixture.run_git(&fixture.root, &["checkout", "--quiet", "-b", "other"]);
    fixture.write_file("a", "other\n");
    fixture.commit_files(&fixture.root, "other");
    fixture.run_git(&fixture.root, &["checkout", "--quiet", "-b", "users", "main"]);
    fixture.write_file("a", "users\n");
    fixture.commit_files(&fixture.root, "users");
}

fn run_all_operations(fixture: &GitFixture) {
    let check = |before: &BTreeMap<_, _>, step: &str| {
        let after = snapshot_user_files(fixture);
        let changed: Vec<_> =
            before.iter().filter(|(name, held)| after.get(*name) != Some(held)).map(|(name, _)| name).collect();
        let added: Vec<_> = after.keys().filter(|name| !before.contains_key(*name)).collect();
        assert!(changed.is_empty() && added.is_empty(), "{step}: changed {changed:?}, new {added:?}");
    };
    let before = snapshot_user_files(fixture);
    let base = fixture.fetch_base_branch();
    check(&before, "base");
    let (one, _) = fixture.commit_work("t1", "b", "1");
    check(&before, "open and commit");
    let (two, second) = fixture.commit_work("t2", "a", "mine\n");
    let (_, third) = fixture.commit_work("t3", "c", "3");
    let _ = fixture.try_open_worktree("t4", &[second.clone(), third.clone()]).unwrap();
    check(&before, "stacked");
    let rebased = fixture.with_client(|git| git.rebase_worktree(&one, &third)).unwrap();
    check(&before, "rebase");
    let head = match rebased {
        windlass_vcs::git::BranchRebaseOutcome::Done { head } => head,
        other => panic!("{other:?}"),
    };
    write_file(&two.path, "a", "other words\n");
    fixture.with_client(|git| git.commit_all(&two, "more")).unwrap();
    fixture.with_client(|git| git.rebase_worktree(&two, &head)).unwrap();
    check(&before, "another rebase");
    let origin = RemoteName::new("origin").unwrap();
    fixture.with_client(|git| git.push_branch(&origin, &one.branch, &head, None)).unwrap();
    check(&before, "push");
    let plan = MergePlan { method: ForgeMergeMethod::Merge, message: "Merge" };
    fixture.with_client(|git| git.merge_into_base(&base, &head, plan, IfCheckedOut::Refuse)).unwrap();
    check(&before, "merge");
    let checkout = fixture
        .with_client(|git| git.check_out(&fixture.worktree_path("review"), &head, CheckoutAccess::Read))
        .unwrap();
    fixture.with_client(|git| git.remove_detached(checkout)).unwrap();
    check(&before, "review");
    fs::remove_dir_all(&two.path).unwrap();
    fixture.try_open_worktree("t2", &[]).unwrap();
    check(&before, "vanished and opened");
    fixture.with_client(|git| git.close_worktree(&one, &BranchDisposal::Delete)).unwrap();
    fixture.with_client(|git| git.close_worktree(&two, &BranchDisposal::Delete)).unwrap();
    check(&before, "close");
    assert!(!fixture.has_run_hook());
}

#[test]
fn messy_tree_stays_untouched() {
    let fixture = GitFixture::with_remote();
    create_unsaved_work(&fixture);
    run_all_operations(&fixture);
}

#[test]
fn detached_head_stays_untouched() {
    let fixture = GitFixture::with_remote();
    fixture.run_git(&fixture.root, &["checkout", "--quiet", "--detach"]);
    fixture.commit_files(&fixture.root, "on no branch");
    create_unsaved_work(&fixture);
    run_all_operations(&fixture);
}

#[test]
fn merge_in_progress_stays_untouched() {
    let fixture = GitFixture::with_remote();
    create_conflicting_branches(&fixture);
    fixture.try_run_git(&fixture.root, &["merge", "other"]);
    assert!(fixture.root.join(".git/MERGE_HEAD").exists());
    run_all_operations(&fixture);
}

#[test]
fn rebase_in_progress_stays_untouched() {
    let fixture = GitFixture::with_remote();
    create_conflicting_branches(&fixture);
    fixture.try_run_git(&fixture.root, &["rebase", "other"]);
    assert!(fixture.root.join(".git/rebase-merge").exists());
    run_all_operations(&fixture);
}
