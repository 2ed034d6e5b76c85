//! Reviews: diffs, and read-only checkouts.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use windlass_vcs::git::{CheckoutAccess, Error};

use crate::fixture::{GitFixture, read_file, write_file};

#[test]
fn diff_is_truncated_at_byte_limit() {
    let fixture = GitFixture::new();
    let base = fixture.fetch_base_branch().commit;
    let (_, head) = fixture.commit_work("t1", "b", &"line\n".repeat(10_000));
    let diff = fixture.with_client(|git| git.diff_commits(&base, &head, 1 << 20)).unwrap();
    assert!(diff.text.starts_with("diff --git a/b b/b\n") && !diff.cut, "{}", &diff.text[..100]);
    let cut = fixture.with_client(|git| git.diff_commits(&base, &head, 100)).unwrap();
    assert_eq!((cut.text.len(), cut.cut), (100, true));
    let file = &fixture.with_client(|git| git.changed_files(&base, &head)).unwrap()[0];
    assert_eq!((file.added, file.removed), (10_000, 0));
}

#[test]
fn renamed_file_is_one_change_with_both_names() {
    let fixture = GitFixture::new();
    let (worktree, base) = fixture.commit_work("t1", "old name", &"line\n".repeat(20));
    fs::rename(worktree.path.join("old name"), worktree.path.join("new\nname")).unwrap();
    let head = fixture.with_client(|git| git.commit_all(&worktree, "rename it")).unwrap().unwrap();
    let files = fixture.with_client(|git| git.changed_files_with_renames(&base, &head)).unwrap();
    let names: Vec<_> = files.iter().map(|file| (file.old_path.as_deref(), file.path.as_path())).collect();
    assert_eq!(names, [(Some(Path::new("old name")), Path::new("new\nname"))]);
    let diff = fixture.with_client(|git| git.diff_commits(&base, &head, 1 << 20)).unwrap();
    assert!(diff.text.contains("\nrename from old name\n") && !diff.text.contains("@@"), "{}", diff.text);
    assert_eq!(fixture.with_client(|git| git.changed_files(&base, &head)).unwrap().len(), 2);
}

#[test]
fn review_checkout_is_read_only_and_recreated_over_leftovers() {
    let fixture = GitFixture::new();
    let (worktree, head) = fixture.commit_work("t1", "deep/b", "1");
    write_file(&worktree.path, "unsaved", "not for readers");
    std::os::unix::fs::symlink(fixture.root.join("a"), worktree.path.join("link")).unwrap();
    let path = fixture
        .with_client(|git| git.check_out(&fixture.worktree_path("review"), &head, CheckoutAccess::Read))
        .unwrap()
        .path;
    assert_eq!(read_file(&path, "deep/b"), "1");
    assert!(!path.join("unsaved").exists());
    for name in ["", "a", "deep", "deep/b", ".git"] {
        let mode = fs::metadata(path.join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o222, 0, "{name}");
    }
    assert_eq!(fixture.read_head(&path), head);
    // Create the checkout again over an incomplete one.
    fs::remove_dir_all(fixture.root.join(".git/worktrees/review")).unwrap();
    fs::write(fixture.root.join(".git/windlass/review.making"), path.as_os_str().as_encoded_bytes()).unwrap();
    fixture.with_client(|git| git.check_out(&path, &head, CheckoutAccess::Read)).unwrap();
    // Create the checkout again over the files of an earlier reader.
    let base = fixture.fetch_base_branch().commit;
    let checkout = fixture.with_client(|git| git.check_out(&path, &base, CheckoutAccess::Read)).unwrap();
    assert_eq!(fixture.read_head(&path), base);
    fixture.with_client(|git| git.sweep_detached(&path)).unwrap();
    assert!(path.exists(), "a sweep leaves alone what is used");
    fixture.with_client(|git| git.remove_detached(checkout)).unwrap();
    assert!(!path.exists());
    assert!(!fixture.run_git(&fixture.root, &["worktree", "list"]).contains("review"));
    fixture.with_client(|git| git.sweep_detached(&path)).unwrap();
    // A worktree with a branch, or any other directory, is not a checkout for reviews.
    assert!(matches!(fixture.with_client(|git| git.sweep_detached(&worktree.path)), Err(Error::Occupied { .. })));
    write_file(&fixture.worktree_path("other"), "x", "mine");
    assert!(matches!(
        fixture.with_client(|git| git.check_out(&fixture.worktree_path("other"), &head, CheckoutAccess::Read)),
        Err(Error::Occupied { .. })
    ));
    assert_eq!(read_file(&fixture.worktree_path("other"), "x"), "mine");
}

/// Scripts in a checkout that could change the files for the next hook, or move a branch.
const CHECKOUT_MANIPULATIONS: &[(&str, &str)] = &[
    ("a changed file", "echo 2 > deep/b; rm a; echo 3 > c; git add c"),
    ("a branch", "git checkout -q other"),
    ("a mark in the index", "git update-index --skip-worktree deep/b; echo 2 > deep/b"),
    ("an assumption in the index", "git update-index --assume-unchanged deep/b; echo 2 > deep/b"),
    ("a sparse checkout", "git sparse-checkout set nowhere"),
    (
        "settings that hide a change",
        "git config core.trustctime false; git config core.checkStat minimal; \
      touch -r deep/b ../time; echo 2 > deep/b; touch -r ../time deep/b",
    ),
    (
        "settings that change files",
        "git config core.autocrlf true; git config core.eol crlf; git config core.symlinks false; \
      rm deep/b link; git checkout -q .",
    ),
    ("a mode", "git config core.fileMode false; chmod +x deep/b"),
    (
        "a filter",
        "git config filter.x=y.smudge 'sed s/1/2/'; echo 'deep/b filter=x=y' > .gitattributes; rm deep/b; \
      git checkout -q deep/b; rm .gitattributes; echo 'deep/b filter=x=y' > $(git rev-parse --git-common-dir)/info/attributes",
    ),
    (
        "a split index",
        "git config core.splitIndex true; git update-index --split-index --skip-worktree deep/b; echo 2 > deep/b",
    ),
    ("an exclusion", "echo 'conftest.py' >> $(git rev-parse --git-common-dir)/info/exclude"),
    ("an ignore file", "printf '*\\n' > deep/.gitignore; cp conftest.py deep/conftest.py"),
    ("a repository in a directory", "mkdir deep/.git; echo planted > deep/.git/lib"),
    ("a lock", "git worktree lock ."),
    (
        "a directory for the index",
        "own=$(git rev-parse --git-dir); rm $own/index; mkdir $own/index; touch $own/HEAD.lock",
    ),
    ("no directory", "rm -rf ../gate-t1"),
    ("another repository", "echo gitdir: $ROOT/.git > .git"),
    ("no repository", "rm -rf .git; git init -q ."),
    ("a merge", "git -c user.name=x -c user.email=x@example.org merge -q other --no-commit || true"),
];

#[test]
fn writable_checkout_is_restored_after_executed_code_modified_it() {
    for (description, script) in CHECKOUT_MANIPULATIONS {
        let fixture = GitFixture::new();
        let (worktree, _) = fixture.commit_work("t1", "deep/b", "1\n");
        std::os::unix::fs::symlink("a", worktree.path.join("link")).unwrap();
        write_file(&worktree.path, ".gitignore", "built/\n");
        fixture.run_git(&worktree.path, &["add", "."]);
        fixture.run_git(&worktree.path, &["commit", "-qm", "More"]);
        let head = fixture.read_head(&worktree.path);
        fixture.run_git(&fixture.root, &["branch", "other", "HEAD"]);
        let branches = fixture.run_git(&fixture.root, &["for-each-ref", "refs/heads"]);
        let mut checkout = fixture
            .with_client(|git| git.check_out(&fixture.worktree_path("gate-t1"), &head, CheckoutAccess::Write))
            .unwrap();
        let path = checkout.path.clone();
        write_file(&path, "built/kept", "a build");
        write_file(&path, "conftest.py", "planted");
        let mut shell = std::process::Command::new("sh");
        shell.args(["-ec", script]).env("ROOT", &fixture.root).current_dir(&path);
        shell.envs([
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_KEY_0", "core.hooksPath"),
            ("GIT_CONFIG_VALUE_0", "/dev/null"),
        ]);
        assert!(shell.status().unwrap().success(), "{description}");
        let kept_paths = ["built/".to_owned()];
        fixture
            .with_client(|git| git.restore_checkout(&mut checkout, &kept_paths))
            .unwrap_or_else(|error| panic!("{description}: {error}"));
        assert_eq!(read_file(&path, "deep/b"), "1\n", "{description}");
        assert_eq!(fs::metadata(path.join("deep/b")).unwrap().permissions().mode() & 0o111, 0, "{description}");
        assert_eq!(fs::read_link(path.join("link")).unwrap().to_str(), Some("a"), "{description}");
        assert!(
            path.join("a").exists() && !path.join("c").exists() && !path.join("conftest.py").exists(),
            "{description}"
        );
        assert_eq!(fixture.read_head(&path), head, "{description}");
        assert_eq!(fixture.run_git(&fixture.root, &["for-each-ref", "refs/heads"]), branches, "{description}");
        assert!(!path.join("deep/.git").exists(), "{description}");
        assert!(!path.join("deep/conftest.py").exists() && !path.join("deep/.gitignore").exists(), "{description}");
        assert_eq!(path.join("built/kept").exists(), *description != "no directory", "{description}");
        assert_eq!(fixture.run_git(&path, &["status", "--porcelain", "--ignored=no"]), "", "{description}");
        fixture.with_client(|git| git.remove_detached(checkout)).unwrap();
    }
}

/// The commit refers to a commit of another repository at this path, and contains none of its files.
#[test]
fn files_of_a_repository_in_the_worktree_are_beside_the_commit() {
    let fixture = GitFixture::new();
    let (worktree, _) = fixture.commit_work("t1", "deep/b", "1");
    write_file(&worktree.path, "dep/key", "k");
    fixture.run_git(&worktree.path.join("dep"), &["init", "-q"]);
    fixture.run_git(&worktree.path.join("dep"), &["add", "."]);
    fixture.run_git(
        &worktree.path.join("dep"),
        &["-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-qm", "Key"],
    );
    fixture.run_git(&worktree.path, &["add", "dep"]);
    fixture.run_git(&worktree.path, &["commit", "-qm", "Dep"]);
    let head = fixture.read_head(&worktree.path);
    write_file(&worktree.path, "deep/.git/lib", "hidden");
    let beside = fixture.with_client(|git| git.files_beside_commit(&worktree.path, &head)).unwrap();
    assert_eq!(beside, ["deep/.git", "dep"].map(std::path::PathBuf::from));
    // A checkout with such an entry keeps no other files.
    let mut checkout = fixture
        .with_client(|git| git.check_out(&fixture.worktree_path("gate-t1"), &head, CheckoutAccess::Write))
        .unwrap();
    write_file(&checkout.path, "dep/planted", "x");
    fixture.with_client(|git| git.restore_checkout(&mut checkout, &[])).unwrap();
    assert!(!checkout.path.join("dep/planted").exists());
}

/// After a kill, the repository does not know the directory of the checkout.
#[test]
fn checkout_is_made_over_what_an_unknown_one_has_left() {
    let fixture = GitFixture::new();
    let (_, head) = fixture.commit_work("t1", "b", "1");
    write_file(&fixture.worktree_path("gate-t1"), "left", "x");
    let checkout = fixture
        .with_client(|git| git.check_out(&fixture.worktree_path("gate-t1"), &head, CheckoutAccess::Write))
        .unwrap();
    assert!(!checkout.path.join("left").exists());
    assert_eq!(read_file(&checkout.path, "b"), "1");
}
