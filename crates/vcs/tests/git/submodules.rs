//! Worktrees of repositories with submodules.

use std::fs;

use windlass_vcs::git::{BranchDisposal, BranchRebaseOutcome, Error};

use crate::scene::{Scene, read, write};

/// A repository with a submodule `lib`, which has a submodule `deep`.
fn scene() -> Scene {
    let scene = Scene::new();
    for (name, inner) in [("deep", None), ("lib", Some("deep"))] {
        let place = scene.path(name);
        fs::create_dir(&place).unwrap();
        scene.git(&place, &["init", "--quiet", "-b", "main"]);
        write(&place, "x", name);
        if let Some(inner) = inner {
            add(&scene, &place, inner);
        }
        scene.commit(&place, "first");
    }
    add(&scene, &scene.root, "lib");
    let allow = "protocol.file.allow=always";
    scene.git(&scene.root, &["-c", allow, "submodule", "--quiet", "update", "--init", "--recursive"]);
    scene.commit(&scene.root, "with a submodule");
    scene
}

fn add(scene: &Scene, place: &std::path::Path, name: &str) {
    let from = scene.path(name);
    scene
        .git(place, &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", from.to_str().unwrap(), name]);
}

#[test]
fn submodules_are_copied_from_main_worktree() {
    let scene = scene();
    let config = fs::read(scene.root.join(".git/config")).unwrap();
    // Only the main worktree is read.
    for name in ["lib", "deep"] {
        fs::rename(scene.path(name), scene.path(&format!("{name}-away"))).unwrap();
    }
    let worktree = scene.open("t1");
    assert_eq!((read(&worktree.path, "lib/x"), read(&worktree.path, "lib/deep/x")), ("lib".into(), "deep".into()));
    assert_eq!(scene.git(&worktree.path, &["status", "--porcelain"]), "");
    assert_eq!(fs::read(scene.root.join(".git/config")).unwrap(), config);
    let address = scene.git(&worktree.path.join("lib"), &["config", "remote.origin.url"]);
    assert_eq!(address, scene.path("lib").to_str().unwrap());
    assert_eq!(scene.with(|git| git.commit_all(&worktree, "nothing")).unwrap(), None);
}

#[test]
fn submodules_follow_a_rebase() {
    let scene = scene();
    let (worktree, _) = scene.work("t1", "b", "1");
    let lib = scene.root.join("lib");
    write(&lib, "x", "newer");
    let newer = scene.commit(&lib, "newer");
    let base = scene.commit(&scene.root, "a newer submodule");
    let rebased = scene.with(|git| git.rebase_worktree(&worktree, &base)).unwrap();
    assert!(matches!(rebased, Rebased::Done { .. }));
    assert_eq!(scene.head(&worktree.path.join("lib")), newer);
    assert_eq!(scene.with(|git| git.commit_all(&worktree, "nothing")).unwrap(), None);
}

#[test]
fn failed_submodule_checkout_is_named_and_leaves_nothing() {
    let scene = scene();
    scene.git(&scene.root, &["update-index", "--cacheinfo", &format!("160000,{},lib", "1".repeat(40))]);
    scene.git(&scene.root, &["commit", "--quiet", "-m", "a commit that no remote has"]);
    let error = scene.try_open("t1", &[scene.base().commit]).expect_err("no remote has it");
    assert!(matches!(error, Error::Submodule { .. }), "{error}");
    assert!(!scene.place("t1").exists());
    assert_eq!(scene.git(&scene.root, &["for-each-ref", "--format=%(refname)"]), "refs/heads/main");
}

#[test]
fn submodule_commit_outlives_worktree() {
    let scene = scene();
    let worktree = scene.open("t1");
    let (lib, deep) = (worktree.path.join("lib"), worktree.path.join("lib/deep"));
    write(&deep, "x", "deeper");
    let deeper = scene.commit(&deep, "deeper");
    write(&lib, "x", "newer");
    let newer = scene.commit(&lib, "newer");
    let refs = scene.git(&scene.root.join("lib"), &["for-each-ref", "refs/heads"]);
    scene.with(|git| git.commit_all(&worktree, "a newer submodule")).unwrap().expect("a commit");
    scene.with(|git| git.close_worktree(&worktree, &BranchDisposal::Keep)).unwrap();
    for (place, commit) in [("lib", &newer), ("lib/deep", &deeper)] {
        scene.git(&scene.root.join(place), &["cat-file", "-e", commit.as_str()]);
    }
    assert_eq!(scene.git(&scene.root.join("lib"), &["for-each-ref", "refs/heads"]), refs);
    let again = scene.open("t1");
    assert_eq!((read(&again.path, "lib/x"), read(&again.path, "lib/deep/x")), ("newer".into(), "deeper".into()));
}

#[test]
fn submodule_commit_without_remote_is_refused() {
    let scene = scene();
    let worktree = scene.open("t1");
    let from = scene.path("deep");
    let allow = "protocol.file.allow=always";
    scene.git(
        &worktree.path,
        &["-c", allow, "submodule", "--quiet", "add", "--name", "new", from.to_str().unwrap(), "new"],
    );
    scene.with(|git| git.commit_all(&worktree, "a new submodule")).unwrap().expect("its remote has it");
    write(&worktree.path.join("new"), "x", "own");
    scene.commit(&worktree.path.join("new"), "own");
    let refused = scene.with(|git| git.commit_all(&worktree, "own")).expect_err("no remote has it");
    assert!(matches!(&refused, Error::Unkept { path } if path == std::path::Path::new("new")), "{refused:?}");
}
