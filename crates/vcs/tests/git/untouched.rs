//! Windlass changes nothing of the user's own tree, in any state of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use windlass_vcs::forge::ForgeMergeMethod;
use windlass_vcs::git::{BranchDisposal, CheckoutAccess, IfCheckedOut, MergePlan, RemoteName};

use crate::scene::{Scene, write};

/// Everything of the user's: files, index, HEAD, stash, configuration, branches, and unfinished operations.
fn snapshot(scene: &Scene) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    gather(&scene.root, &scene.root, &mut found);
    let refs = scene.git(
        &scene.root,
        &["for-each-ref", "--format=%(objectname) %(refname)", "refs/heads", "refs/stash", "refs/tags"],
    );
    let theirs = refs.lines().filter(|line| !line.contains("refs/heads/windlass/")).collect::<Vec<_>>().join("\n");
    found.insert("refs".into(), theirs.into_bytes());
    found
}

/// Skips the files that git changes for every worktree, and ours.
fn gather(root: &Path, directory: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    const SHARED: [&str; 7] = [
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
        if SHARED.iter().any(|shared| name == Path::new(shared)) {
            continue;
        }
        if path.is_dir() {
            gather(root, &path, found);
        } else {
            found.insert(name, fs::read(&path).unwrap());
        }
    }
}

/// Staged, unstaged, untracked, ignored and stashed work.
fn mess(scene: &Scene) {
    scene.write("a", "stashed\n");
    scene.git(&scene.root, &["stash", "--quiet"]);
    scene.write("a", "staged\n");
    scene.git(&scene.root, &["add", "a"]);
    scene.write("a", "unstaged\n");
    scene.write("untracked", "mine");
    scene.write("x.log", "ignored");
}

/// A user's branch that conflicts with another.
fn clash(scene: &Scene) {
    scene.git(&scene.root, &["checkout", "--quiet", "-b", "other"]);
    scene.write("a", "other\n");
    scene.commit(&scene.root, "other");
    scene.git(&scene.root, &["checkout", "--quiet", "-b", "users", "main"]);
    scene.write("a", "users\n");
    scene.commit(&scene.root, "users");
}

fn everything_we_do(scene: &Scene) {
    let check = |before: &BTreeMap<_, _>, step: &str| {
        let after = snapshot(scene);
        let differ: Vec<_> =
            before.iter().filter(|(name, held)| after.get(*name) != Some(held)).map(|(name, _)| name).collect();
        let added: Vec<_> = after.keys().filter(|name| !before.contains_key(*name)).collect();
        assert!(differ.is_empty() && added.is_empty(), "{step}: changed {differ:?}, new {added:?}");
    };
    let before = snapshot(scene);
    let base = scene.base();
    check(&before, "base");
    let (one, _) = scene.work("t1", "b", "1");
    check(&before, "open and commit");
    let (two, second) = scene.work("t2", "a", "mine\n");
    let (_, third) = scene.work("t3", "c", "3");
    let _ = scene.try_open("t4", &[second.clone(), third.clone()]).unwrap();
    check(&before, "stacked");
    let rebased = scene.with(|git| git.rebase_worktree(&one, &third)).unwrap();
    check(&before, "rebase");
    let head = match rebased {
        windlass_vcs::git::BranchRebaseOutcome::Done { head } => head,
        other => panic!("{other:?}"),
    };
    write(&two.path, "a", "other words\n");
    scene.with(|git| git.commit_all(&two, "more")).unwrap();
    scene.with(|git| git.rebase_worktree(&two, &head)).unwrap();
    check(&before, "another rebase");
    let origin = RemoteName::new("origin").unwrap();
    scene.with(|git| git.push_branch(&origin, &one.branch, &head, None)).unwrap();
    check(&before, "push");
    let way = MergePlan { method: ForgeMergeMethod::Merge, message: "Merge" };
    scene.with(|git| git.merge_into_base(&base, &head, way, IfCheckedOut::Refuse)).unwrap();
    check(&before, "merge");
    let checkout = scene.with(|git| git.check_out(&scene.place("review"), &head, CheckoutAccess::Read)).unwrap();
    scene.with(|git| git.remove_detached(checkout)).unwrap();
    check(&before, "review");
    fs::remove_dir_all(&two.path).unwrap();
    scene.try_open("t2", &[]).unwrap();
    check(&before, "vanished and opened");
    scene.with(|git| git.close_worktree(&one, &BranchDisposal::Delete)).unwrap();
    scene.with(|git| git.close_worktree(&two, &BranchDisposal::Delete)).unwrap();
    check(&before, "close");
    assert!(!scene.was_hooked());
}

#[test]
fn messy_tree_stays_untouched() {
    let scene = Scene::with_remote();
    mess(&scene);
    everything_we_do(&scene);
}

#[test]
fn detached_head_stays_untouched() {
    let scene = Scene::with_remote();
    scene.git(&scene.root, &["checkout", "--quiet", "--detach"]);
    scene.commit(&scene.root, "on no branch");
    mess(&scene);
    everything_we_do(&scene);
}

#[test]
fn merge_in_progress_stays_untouched() {
    let scene = Scene::with_remote();
    clash(&scene);
    scene.try_git(&scene.root, &["merge", "other"]);
    assert!(scene.root.join(".git/MERGE_HEAD").exists());
    everything_we_do(&scene);
}

#[test]
fn rebase_in_progress_stays_untouched() {
    let scene = Scene::with_remote();
    clash(&scene);
    scene.try_git(&scene.root, &["rebase", "other"]);
    assert!(scene.root.join(".git/rebase-merge").exists());
    everything_we_do(&scene);
}
