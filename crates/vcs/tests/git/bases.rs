//! The base branch.

use std::fs;

use windlass_vcs::git::{Error, GitRepository, RemoteName};

use crate::scene::{Scene, branch};

#[test]
fn a_repository_is_found_by_its_files() {
    let scene = Scene::new();
    let found = |path: &std::path::Path| GitRepository::discover(path).unwrap();
    let main = found(&scene.root).expect("a repository");
    assert_eq!((&main.root, &main.common), (&scene.root, &scene.root.join(".git")));
    fs::create_dir_all(scene.root.join("deep/er")).unwrap();
    assert_eq!(found(&scene.root.join("deep/er")).as_ref(), Some(&main));
    let worktree = scene.open("t1");
    assert_eq!(found(&worktree.path).as_ref(), Some(&main));
    assert_eq!(found(&scene.path("home")), None);
    scene.git(&scene.root, &["init", "--quiet", "--bare", scene.path("bare.git").to_str().unwrap()]);
    assert!(matches!(Repository::find(&scene.path("bare.git")), Err(Error::Bare { .. })));
    fs::create_dir(scene.path("broken")).unwrap();
    fs::write(scene.path("broken/.git"), "gitdir: /nowhere\n").unwrap();
    assert!(matches!(Repository::find(&scene.path("broken")), Err(Error::NotARepository { .. })));
}

#[test]
fn base_without_remote_is_local_branch() {
    let scene = Scene::new();
    let base = scene.base();
    assert_eq!((base.branch.as_str(), base.remote, base.stale), ("main", None, None));
    assert_eq!(base.commit, scene.head(&scene.root));
    // Neither the checked-out branch nor a detached HEAD matters.
    scene.git(&scene.root, &["checkout", "--quiet", "-b", "feature"]);
    scene.commit(&scene.root, "feature");
    assert_eq!(scene.base().commit, base.commit);
    scene.git(&scene.root, &["checkout", "--quiet", "--detach"]);
    assert_eq!(scene.base().commit, base.commit);
    let feature = scene.with(|git| git.fetch_base(Some(&branch("feature")))).unwrap();
    assert_eq!(feature.commit, scene.head(&scene.root));
}

#[test]
fn base_without_common_name_is_checked_out_branch_or_refused() {
    let scene = Scene::new();
    scene.git(&scene.root, &["branch", "-m", "main", "odd"]);
    assert_eq!(scene.base().branch, branch("odd"));
    scene.git(&scene.root, &["checkout", "--quiet", "--detach"]);
    assert!(matches!(scene.with(|git| git.base(None)), Err(Error::NoBase { .. })));
    assert!(matches!(scene.with(|git| git.base(Some(&branch("gone")))), Err(Error::UnknownBase { .. })));
}

#[test]
fn repository_without_commits_has_no_base() {
    let scene = Scene::empty();
    assert!(matches!(scene.with(|git| git.base(None)), Err(Error::NoCommits { .. })));
}

#[test]
fn base_with_remote_is_fetched() {
    let scene = Scene::with_remote();
    let other = scene.path("other");
    scene.git(&scene.root, &["clone", "--quiet", scene.path("remote.git").to_str().unwrap(), other.to_str().unwrap()]);
    let newer = scene.commit(&other, "by another user");
    scene.git(&other, &["tag", "v1"]);
    scene.git(&other, &["push", "--quiet", "--tags", "origin", "main"]);
    let base = scene.base();
    assert_eq!((base.commit, base.stale), (newer.clone(), None));
    assert_eq!(base.remote, Some(RemoteName::new("origin").unwrap()));
    assert_ne!(scene.head(&scene.root), newer, "the user's branch stays");
    assert_eq!(scene.git(&scene.root, &["tag"]), "", "and nothing else comes along");
    assert!(!scene.root.join(".git/FETCH_HEAD").exists());
}

#[test]
fn named_remote_overrides_default() {
    let scene = Scene::with_remote();
    let there = scene.path("remote.git");
    scene.git(&scene.root, &["remote", "add", "team", there.to_str().unwrap()]);
    scene.git(&scene.root, &["remote", "set-url", "origin", "/nowhere"]);
    let remote = |name: &str| Some(RemoteName::new(name).unwrap());
    let through = |name| scene.with_remote_named(remote(name), |git| git.fetch_base(None));
    assert_eq!(through("team").unwrap().remote, remote("team"));
    assert!(matches!(through("gone"), Err(Error::UnknownRemote { .. })));
}

#[test]
fn a_branch_that_only_we_have_is_the_local_one() {
    let scene = Scene::with_remote();
    scene.git(&scene.root, &["branch", "develop"]);
    let base = scene.with(|git| git.fetch_base(Some(&branch("develop")))).unwrap();
    assert_eq!((base.branch, base.remote), (branch("develop"), None));
}

#[test]
fn a_branch_that_the_remote_had_does_not_become_the_users_own() {
    let scene = Scene::with_remote();
    scene.base();
    scene.git(&scene.path("remote.git"), &["branch", "-m", "main", "renamed"]);
    assert!(matches!(scene.with(|git| git.base(None)), Err(Error::UnknownBase { .. })));
}

#[test]
fn unreachable_remote_gives_last_known_base() {
    let scene = Scene::with_remote();
    let known = scene.base().commit;
    fs::rename(scene.path("remote.git"), scene.path("away.git")).unwrap();
    let base = scene.base();
    assert_eq!(base.commit, known);
    assert!(base.stale.is_some(), "{base:?}");
    scene.git(&scene.root, &["update-ref", "-d", "refs/remotes/origin/main"]);
    assert!(matches!(scene.with(|git| git.base(None)), Err(Error::Unreachable { .. })));
}

#[test]
fn credentials_in_addresses_are_never_told() {
    let scene = Scene::new();
    scene.git(&scene.root, &["remote", "add", "origin", "http://me:secret@127.0.0.1:1/x.git"]);
    let error = scene.with(|git| git.fetch_base(None)).expect_err("no remote is there");
    assert!(!format!("{error} {error:?}").contains("secret"), "{error:?}");
    let address = scene.with(|git| git.remote_address(&RemoteName::new("origin").unwrap())).unwrap();
    assert_eq!(address, "http://127.0.0.1:1/x.git");
}

#[test]
fn a_cancelled_call_is_its_own_error() {
    let scene = Scene::new();
    scene.control.cancel_runs();
    assert!(matches!(scene.with(|git| git.base(None)), Err(Error::Cancelled { .. })));
}
