//! Reviews: diffs, and read-only checkouts.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use windlass_vcs::git::{CheckoutAccess, Error};

use crate::scene::{Scene, read, write};

#[test]
fn a_diff_is_bounded() {
    let scene = Scene::new();
    let base = scene.base().commit;
    let (_, head) = scene.work("t1", "b", &"line\n".repeat(10_000));
    let diff = scene.with(|git| git.diff_commits(&base, &head, 1 << 20)).unwrap();
    assert!(diff.text.starts_with("diff --git a/b b/b\n") && !diff.cut, "{}", &diff.text[..100]);
    let cut = scene.with(|git| git.diff_commits(&base, &head, 100)).unwrap();
    assert_eq!((cut.text.len(), cut.cut), (100, true));
    let file = &scene.with(|git| git.changed_files(&base, &head)).unwrap()[0];
    assert_eq!((file.added, file.removed), (10_000, 0));
}

#[test]
fn a_reader_gets_a_checkout_that_cannot_be_written() {
    let scene = Scene::new();
    let (worktree, head) = scene.work("t1", "deep/b", "1");
    write(&worktree.path, "unsaved", "not for readers");
    std::os::unix::fs::symlink(scene.root.join("a"), worktree.path.join("link")).unwrap();
    let path = scene.with(|git| git.check_out(&scene.place("review"), &head, CheckoutAccess::Read)).unwrap().path;
    assert_eq!(read(&path, "deep/b"), "1");
    assert!(!path.join("unsaved").exists());
    for name in ["", "a", "deep", "deep/b", ".git"] {
        let mode = fs::metadata(path.join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o222, 0, "{name}");
    }
    assert_eq!(scene.head(&path), head);
    // Again, over a checkout that is half made and half removed.
    fs::remove_dir_all(scene.root.join(".git/worktrees/review")).unwrap();
    fs::write(scene.root.join(".git/windlass/review.making"), path.as_os_str().as_encoded_bytes()).unwrap();
    scene.with(|git| git.check_out(&path, &head, CheckoutAccess::Read)).unwrap();
    // And over the leftovers of a reader.
    let base = scene.base().commit;
    let checkout = scene.with(|git| git.check_out(&path, &base, CheckoutAccess::Read)).unwrap();
    assert_eq!(scene.head(&path), base);
    scene.with(|git| git.sweep_detached(&path)).unwrap();
    assert!(path.exists(), "a sweep leaves alone what is used");
    scene.with(|git| git.remove_detached(checkout)).unwrap();
    assert!(!path.exists());
    assert!(!scene.git(&scene.root, &["worktree", "list"]).contains("review"));
    scene.with(|git| git.sweep_detached(&path)).unwrap();
    // A worktree with a branch, or any other directory, is no reader's checkout.
    assert!(matches!(scene.with(|git| git.sweep_detached(&worktree.path)), Err(Error::Occupied { .. })));
    write(&scene.place("other"), "x", "mine");
    assert!(matches!(
        scene.with(|git| git.check_out(&scene.place("other"), &head, CheckoutAccess::Read)),
        Err(Error::Occupied { .. })
    ));
    assert_eq!(read(&scene.place("other"), "x"), "mine");
}

/// Changes by which code in a checkout could show the next hook other files, or move a branch.
const LEFT_BEHIND: &[(&str, &str)] = &[
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
fn a_checkout_is_put_back_whatever_code_that_ran_there_has_left() {
    for (what, script) in LEFT_BEHIND {
        let scene = Scene::new();
        let (worktree, _) = scene.work("t1", "deep/b", "1\n");
        std::os::unix::fs::symlink("a", worktree.path.join("link")).unwrap();
        write(&worktree.path, ".gitignore", "built/\n");
        scene.git(&worktree.path, &["add", "."]);
        scene.git(&worktree.path, &["commit", "-qm", "More"]);
        let head = scene.head(&worktree.path);
        scene.git(&scene.root, &["branch", "other", "HEAD"]);
        let branches = scene.git(&scene.root, &["for-each-ref", "refs/heads"]);
        let mut checkout =
            scene.with(|git| git.check_out(&scene.place("gate-t1"), &head, CheckoutAccess::Write)).unwrap();
        let path = checkout.path.clone();
        write(&path, "built/kept", "a build");
        write(&path, "conftest.py", "planted");
        let mut shell = std::process::Command::new("sh");
        shell.args(["-ec", script]).env("ROOT", &scene.root).current_dir(&path);
        shell.envs([
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_KEY_0", "core.hooksPath"),
            ("GIT_CONFIG_VALUE_0", "/dev/null"),
        ]);
        assert!(shell.status().unwrap().success(), "{what}");
        let kept = ["built/".to_owned()];
        scene.with(|git| git.restore_checkout(&mut checkout, &kept)).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(read(&path, "deep/b"), "1\n", "{what}");
        assert_eq!(fs::metadata(path.join("deep/b")).unwrap().permissions().mode() & 0o111, 0, "{what}");
        assert_eq!(fs::read_link(path.join("link")).unwrap().to_str(), Some("a"), "{what}");
        assert!(path.join("a").exists() && !path.join("c").exists() && !path.join("conftest.py").exists(), "{what}");
        assert_eq!(scene.head(&path), head, "{what}");
        assert_eq!(scene.git(&scene.root, &["for-each-ref", "refs/heads"]), branches, "{what}");
        assert!(!path.join("deep/.git").exists(), "{what}");
        assert!(!path.join("deep/conftest.py").exists() && !path.join("deep/.gitignore").exists(), "{what}");
        assert_eq!(path.join("built/kept").exists(), *what != "no directory", "{what}");
        assert_eq!(scene.git(&path, &["status", "--porcelain", "--ignored=no"]), "", "{what}");
        scene.with(|git| git.remove_detached(checkout)).unwrap();
    }
}

/// The commit names a commit of another repository there, and has none of its files.
#[test]
fn files_of_a_repository_in_the_worktree_are_beside_the_commit() {
    let scene = Scene::new();
    let (worktree, _) = scene.work("t1", "deep/b", "1");
    write(&worktree.path, "dep/key", "k");
    scene.git(&worktree.path.join("dep"), &["init", "-q"]);
    scene.git(&worktree.path.join("dep"), &["add", "."]);
    scene.git(
        &worktree.path.join("dep"),
        &["-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-qm", "Key"],
    );
    scene.git(&worktree.path, &["add", "dep"]);
    scene.git(&worktree.path, &["commit", "-qm", "Dep"]);
    let head = scene.head(&worktree.path);
    write(&worktree.path, "deep/.git/lib", "hidden");
    let beside = scene.with(|git| git.files_beside_commit(&worktree.path, &head)).unwrap();
    assert_eq!(beside, ["deep/.git", "dep"].map(std::path::PathBuf::from));
    // Nothing stays in a checkout with such an entry.
    let mut checkout = scene.with(|git| git.check_out(&scene.place("gate-t1"), &head, CheckoutAccess::Write)).unwrap();
    write(&checkout.path, "dep/planted", "x");
    scene.with(|git| git.restore_checkout(&mut checkout, &[])).unwrap();
    assert!(!checkout.path.join("dep/planted").exists());
}

/// A kill leaves a directory that the repository does not know.
#[test]
fn checkout_is_made_over_what_an_unknown_one_has_left() {
    let scene = Scene::new();
    let (_, head) = scene.work("t1", "b", "1");
    write(&scene.place("gate-t1"), "left", "x");
    let checkout = scene.with(|git| git.check_out(&scene.place("gate-t1"), &head, CheckoutAccess::Write)).unwrap();
    assert!(!checkout.path.join("left").exists());
    assert_eq!(read(&checkout.path, "b"), "1");
}
