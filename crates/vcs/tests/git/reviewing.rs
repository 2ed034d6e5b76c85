//! Reading: diffs, and checkouts that nobody writes to.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use windlass_vcs::git::{Access, Error};

use crate::scene::{Scene, read, write};

#[test]
fn a_diff_is_bounded() {
    let scene = Scene::new();
    let base = scene.base().commit;
    let (_, head) = scene.work("t1", "b", &"line\n".repeat(10_000));
    let diff = scene.with(|git| git.diff(&base, &head, 1 << 20)).unwrap();
    assert!(diff.text.starts_with("diff --git a/b b/b\n") && !diff.cut, "{}", &diff.text[..100]);
    let cut = scene.with(|git| git.diff(&base, &head, 100)).unwrap();
    assert_eq!((cut.text.len(), cut.cut), (100, true));
    let file = &scene.with(|git| git.files(&base, &head)).unwrap()[0];
    assert_eq!((file.added, file.removed), (10_000, 0));
}

#[test]
fn a_reader_gets_a_checkout_that_cannot_be_written() {
    let scene = Scene::new();
    let (worktree, head) = scene.work("t1", "deep/b", "1");
    write(&worktree.path, "unsaved", "not for readers");
    std::os::unix::fs::symlink(scene.root.join("a"), worktree.path.join("link")).unwrap();
    let path = scene.with(|git| git.check_out(&scene.place("review"), &head, Access::Read)).unwrap();
    assert_eq!(read(&path, "deep/b"), "1");
    assert!(!path.join("unsaved").exists());
    for name in ["", "a", "deep", "deep/b", ".git"] {
        let mode = fs::metadata(path.join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o222, 0, "{name}");
    }
    assert_eq!(scene.head(&path), head);
    // Again, over what was half made and half taken back.
    fs::remove_dir_all(scene.root.join(".git/worktrees/review")).unwrap();
    fs::write(scene.root.join(".git/windlass/review.making"), path.as_os_str().as_encoded_bytes()).unwrap();
    scene.with(|git| git.check_out(&path, &head, Access::Read)).unwrap();
    // And over what a reader has left.
    let base = scene.base().commit;
    scene.with(|git| git.check_out(&path, &base, Access::Read)).unwrap();
    assert_eq!(scene.head(&path), base);
    scene.with(|git| git.remove_detached(&path)).unwrap();
    assert!(!path.exists());
    assert!(!scene.git(&scene.root, &["worktree", "list"]).contains("review"));
    scene.with(|git| git.remove_detached(&path)).unwrap();
    // A worktree with a branch, or something else, is not a reader's.
    assert!(matches!(scene.with(|git| git.remove_detached(&worktree.path)), Err(Error::Occupied { .. })));
    write(&scene.place("other"), "x", "mine");
    assert!(matches!(
        scene.with(|git| git.check_out(&scene.place("other"), &head, Access::Read)),
        Err(Error::Occupied { .. })
    ));
    assert_eq!(read(&scene.place("other"), "x"), "mine");
}
