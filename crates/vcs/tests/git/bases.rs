//! The base branch and its lookup.

use std::fs;

use windlass_vcs::git::{Error, GitRepository, RemoteName};

use crate::fixture::{GitFixture, branch_name};

#[test]
fn repository_is_discovered_from_subdirectories_and_worktrees() {
    let fixture = GitFixture::new();
    let found = |path: &std::path::Path| GitRepository::discover(path).unwrap();
    let main = found(&fixture.root).expect("a repository");
    assert_eq!((&main.root, &main.common), (&fixture.root, &fixture.root.join(".git")));
    fs::create_dir_all(fixture.root.join("deep/er")).unwrap();
    assert_eq!(found(&fixture.root.join("deep/er")).as_ref(), Some(&main));
    let worktree = fixture.open_base_worktree("t1");
    assert_eq!(found(&worktree.path).as_ref(), Some(&main));
    assert_eq!(found(&fixture.path("home")), None);
    fixture.run_git(&fixture.root, &["init", "--quiet", "--bare", fixture.path("bare.git").to_str().unwrap()]);
    assert!(matches!(GitRepository::discover(&fixture.path("bare.git")), Err(Error::Bare { .. })));
    fs::create_dir(fixture.path("broken")).unwrap();
    fs::write(fixture.path("broken/.git"), "gitdir: /nowhere\n").unwrap();
    assert!(matches!(GitRepository::discover(&fixture.path("broken")), Err(Error::NotARepository { .. })));
}

#[test]
fn base_without_remote_is_local_branch() {
    let fixture = GitFixture::new();
    let base = fixture.fetch_base_branch();
    assert_eq!((base.branch.as_str(), base.remote, base.stale), ("main", None, None));
    assert_eq!(base.commit, fixture.read_head(&fixture.root));
    // The base does not depend on the checked-out branch or on a detached HEAD.
    fixture.run_git(&fixture.root, &["checkout", "--quiet", "-b", "feature"]);
    fixture.commit_files(&fixture.root, "feature");
    assert_eq!(fixture.fetch_base_branch().commit, base.commit);
    fixture.run_git(&fixture.root, &["checkout", "--quiet", "--detach"]);
    assert_eq!(fixture.fetch_base_branch().commit, base.commit);
    let feature = fixture.with_client(|git| git.fetch_base(Some(&branch_name("feature")))).unwrap();
    assert_eq!(feature.commit, fixture.read_head(&fixture.root));
}

#[test]
fn base_without_common_name_is_checked_out_branch_or_refused() {
    let fixture = GitFixture::new();
    fixture.run_git(&fixture.root, &["branch", "-m", "main", "odd"]);
    assert_eq!(fixture.fetch_base_branch().branch, branch_name("odd"));
    fixture.run_git(&fixture.root, &["checkout", "--quiet", "--detach"]);
    assert!(matches!(fixture.with_client(|git| git.fetch_base(None)), Err(Error::NoBase { .. })));
    assert!(matches!(
        fixture.with_client(|git| git.fetch_base(Some(&branch_name("gone")))),
        Err(Error::UnknownBase { .. })
    ));
}

#[test]
fn repository_without_commits_has_no_base() {
    let fixture = GitFixture::without_commits();
    assert!(matches!(fixture.with_client(|git| git.fetch_base(None)), Err(Error::NoCommits { .. })));
}

#[test]
fn base_with_remote_is_fetched() {
    let fixture = GitFixture::with_remote();
    let other = fixture.path("other");
    fixture.run_git(
        &fixture.root,
        &["clone", "--quiet", fixture.path("remote.git").to_str().unwrap(), other.to_str().unwrap()],
    );
    let newer = fixture.commit_files(&other, "by another user");
    fixture.run_git(&other, &["tag", "v1"]);
    fixture.run_git(&other, &["push", "--quiet", "--tags", "origin", "main"]);
    let base = fixture.fetch_base_branch();
    assert_eq!((base.commit, base.stale), (newer.clone(), None));
    assert_eq!(base.remote, Some(RemoteName::new("origin").unwrap()));
    assert_ne!(fixture.read_head(&fixture.root), newer, "the user's branch stays");
    assert_eq!(fixture.run_git(&fixture.root, &["tag"]), "", "and nothing else comes along");
    assert!(!fixture.root.join(".git/FETCH_HEAD").exists());
}

#[test]
fn named_remote_overrides_default() {
    let fixture = GitFixture::with_remote();
    let remote_path = fixture.path("remote.git");
    fixture.run_git(&fixture.root, &["remote", "add", "team", remote_path.to_str().unwrap()]);
    fixture.run_git(&fixture.root, &["remote", "set-url", "origin", "/nowhere"]);
    let remote = |name: &str| Some(RemoteName::new(name).unwrap());
    let fetch_base_of = |name| fixture.with_client_for_remote(remote(name), |git| git.fetch_base(None));
    assert_eq!(fetch_base_of("team").unwrap().remote, remote("team"));
    assert!(matches!(fetch_base_of("gone"), Err(Error::UnknownRemote { .. })));
}

#[test]
fn base_missing_on_remote_resolves_to_local_branch() {
    let fixture = GitFixture::with_remote();
    fixture.run_git(&fixture.root, &["branch", "develop"]);
    let base = fixture.with_client(|git| git.fetch_base(Some(&branch_name("develop")))).unwrap();
    assert_eq!((base.branch, base.remote), (branch_name("develop"), None));
}

#[test]
fn base_renamed_on_remote_is_unknown_despite_local_branch() {
    let fixture = GitFixture::with_remote();
    fixture.fetch_base_branch();
    fixture.run_git(&fixture.path("remote.git"), &["branch", "-m", "main", "renamed"]);
    assert!(matches!(fixture.with_client(|git| git.fetch_base(None)), Err(Error::UnknownBase { .. })));
}

#[test]
fn unreachable_remote_gives_last_known_base() {
    let fixture = GitFixture::with_remote();
    let known = fixture.fetch_base_branch().commit;
    fs::rename(fixture.path("remote.git"), fixture.path("away.git")).unwrap();
    let base = fixture.fetch_base_branch();
    assert_eq!(base.commit, known);
    assert!(base.stale.is_some(), "{base:?}");
    fixture.run_git(&fixture.root, &["update-ref", "-d", "refs/remotes/origin/main"]);
    assert!(matches!(fixture.with_client(|git| git.fetch_base(None)), Err(Error::Unreachable { .. })));
}

#[test]
fn credentials_in_addresses_are_never_told() {
    let fixture = GitFixture::new();
    fixture.run_git(&fixture.root, &["remote", "add", "origin", "http://me:secret@127.0.0.1:1/x.git"]);
    let error = fixture.with_client(|git| git.fetch_base(None)).expect_err("no remote is there");
    assert!(!format!("{error} {error:?}").contains("secret"), "{error:?}");
    let address = fixture.with_client(|git| git.remote_address(&RemoteName::new("origin").unwrap())).unwrap();
    assert_eq!(address, "http://127.0.0.1:1/x.git");
}

#[test]
fn cancelled_git_call_returns_cancelled_error() {
    let fixture = GitFixture::new();
    fixture.control.cancel_runs();
    assert!(matches!(fixture.with_client(|git| git.fetch_base(None)), Err(Error::Cancelled { .. })));
}
