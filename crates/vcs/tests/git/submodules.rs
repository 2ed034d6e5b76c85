//! Worktrees of repositories with submodules.

use std::fs;

use windlass_vcs::git::{BranchDisposal, BranchRebaseOutcome, Error};

use crate::fixture::{GitFixture, read_file, write_file};

/// Creates a repository with a submodule `lib`, which has a submodule `deep`.
fn fixture_with_submodules() -> GitFixture {
    let fixture = GitFixture::new();
    for (name, inner) in [("deep", None), ("lib", Some("deep"))] {
        let place = fixture.path(name);
        fs::create_dir(&place).unwrap();
        fixture.run_git(&place, &["init", "--quiet", "-b", "main"]);
        write_file(&place, "x", name);
        if let Some(inner) = inner {
            add_submodule(&fixture, &place, inner);
        }
        fixture.commit_files(&place, "first");
    }
    add_submodule(&fixture, &fixture.root, "lib");
    let allow = "protocol.file.allow=always";
    fixture.run_git(&fixture.root, &["-c", allow, "submodule", "--quiet", "update", "--init", "--recursive"]);
    fixture.commit_files(&fixture.root, "with a submodule");
    fixture
}

fn add_submodule(fixture: &GitFixture, place: &std::path::Path, name: &str) {
    let from = fixture.path(name);
    fixture.run_git(
        place,
        &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", from.to_str().unwrap(), name],
    );
}

#[test]
fn submodules_are_copied_from_main_worktree() {
    let fixture = fixture_with_submodules();
    let config = fs::read(fixture.root.join(".git/config")).unwrap();
    // Windlass reads only the main worktree.
    for name in ["lib", "deep"] {
        fs::rename(fixture.path(name), fixture.path(&format!("{name}-away"))).unwrap();
    }
    let worktree = fixture.open_base_worktree("t1");
    assert_eq!(
        (read_file(&worktree.path, "lib/x"), read_file(&worktree.path, "lib/deep/x")),
        ("lib".into(), "deep".into())
    );
    assert_eq!(fixture.run_git(&worktree.path, &["status", "--porcelain"]), "");
    assert_eq!(fs::read(fixture.root.join(".git/config")).unwrap(), config);
    let address = fixture.run_git(&worktree.path.join("lib"), &["config", "remote.origin.url"]);
    assert_eq!(address, fixture.path("lib").to_str().unwrap());
    assert_eq!(fixture.with_client(|git| git.commit_all(&worktree, "nothing")).unwrap(), None);
}

#[test]
fn submodules_follow_a_rebase() {
    let fixture = fixture_with_submodules();
    let (worktree, _) = fixture.commit_work("t1", "b", "1");
    let lib = fixture.root.join("lib");
    write_file(&lib, "x", "newer");
    let newer = fixture.commit_files(&lib, "newer");
    let base = fixture.commit_files(&fixture.root, "a newer submodule");
    let rebased = fixture.with_client(|git| git.rebase_worktree(&worktree, &base)).unwrap();
    assert!(matches!(rebased, BranchRebaseOutcome::Done { .. }));
    assert_eq!(fixture.read_head(&worktree.path.join("lib")), newer);
    assert_eq!(fixture.with_client(|git| git.commit_all(&worktree, "nothing")).unwrap(), None);
}

#[test]
fn failed_submodule_checkout_is_named_and_leaves_nothing() {
    let fixture = fixture_with_submodules();
    fixture.run_git(&fixture.root, &["update-index", "--cacheinfo", &format!("160000,{},lib", "1".repeat(40))]);
    fixture.run_git(&fixture.root, &["commit", "--quiet", "-m", "a commit that no remote has"]);
    let error = fixture.try_open_worktree("t1", &[fixture.fetch_base_branch().commit]).expect_err("no remote has it");
    assert!(matches!(error, Error::Submodule { .. }), "{error}");
    assert!(!fixture.worktree_path("t1").exists());
    assert_eq!(fixture.run_git(&fixture.root, &["for-each-ref", "--format=%(refname)"]), "refs/heads/main");
}

#[test]
fn submodule_commit_outlives_worktree() {
    let fixture = fixture_with_submodules();
    let worktree = fixture.open_base_worktree("t1");
    let (lib, deep) = (worktree.path.join("lib"), worktree.path.join("lib/deep"));
    write_file(&deep, "x", "deeper");
    let deeper = fixture.commit_files(&deep, "deeper");
    write_file(&lib, "x", "newer");
    let newer = fixture.commit_files(&lib, "newer");
    let refs = fixture.run_git(&fixture.root.join("lib"), &["for-each-ref", "refs/heads"]);
    fixture.with_client(|git| git.commit_all(&worktree, "a newer submodule")).unwrap().expect("a commit");
    fixture.with_client(|git| git.close_worktree(&worktree, &BranchDisposal::Keep)).unwrap();
    for (place, commit) in [("lib", &newer), ("lib/deep", &deeper)] {
        fixture.run_git(&fixture.root.join(place), &["cat-file", "-e", commit.as_str()]);
    }
    assert_eq!(fixture.run_git(&fixture.root.join("lib"), &["for-each-ref", "refs/heads"]), refs);
    let again = fixture.open_base_worktree("t1");
    assert_eq!(
        (read_file(&again.path, "lib/x"), read_file(&again.path, "lib/deep/x")),
        ("newer".into(), "deeper".into())
    );
}

#[test]
fn submodule_commit_without_remote_is_refused() {
    let fixture = fixture_with_submodules();
    let worktree = fixture.open_base_worktree("t1");
    let from = fixture.path("deep");
    let allow = "protocol.file.allow=always";
    fixture.run_git(
        &worktree.path,
        &["-c", allow, "submodule", "--quiet", "add", "--name", "new", from.to_str().unwrap(), "new"],
    );
    fixture.with_client(|git| git.commit_all(&worktree, "a new submodule")).unwrap().expect("its remote has it");
    write_file(&worktree.path.join("new"), "x", "own");
    fixture.commit_files(&worktree.path.join("new"), "own");
    let refused = fixture.with_client(|git| git.commit_all(&worktree, "own")).expect_err("no remote has it");
    assert!(matches!(&refused, Error::Unkept { path } if path == std::path::Path::new("new")), "{refused:?}");
}
