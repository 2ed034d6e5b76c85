//! Rebases onto a newer base.

use std::fs;
use std::path::PathBuf;

use windlass_vcs::git::{BranchRebaseOutcome, Error, GitCommitId, Worktree};

use crate::scene::{Scene, read, write};

#[test]
fn replayed_commits_keep_author_and_message() {
    let scene = Scene::new();
    let worktree = scene.open("t1");
    write(&worktree.path, "a", "one\ntwo\nthree\nfour\nFIVE\n");
    scene.commit(&worktree.path, "subject\n\nbody\n# kept");
    write(&worktree.path, "b", "b");
    fs::write(worktree.path.join("picture"), [0, 1, 2, 0, 255]).unwrap();
    let old = scene.commit(&worktree.path, "second");
    let before = scene.base().commit;
    scene.write("a", "ONE\ntwo\nthree\nfour\nfive\n");
    let base = scene.commit(&scene.root, "the base moves");
    let id = |from, to| scene.with(|git| git.patch_id(from, to)).unwrap();
    let patch = id(&before, &old);
    write(&worktree.path, "new", "untracked");
    let BranchRebaseOutcome::Done { head } = scene.with(|git| git.rebase_worktree(&worktree, &base)).unwrap() else {
        panic!("it moves")
    };
    assert_eq!(scene.head(&worktree.path), head);
    assert_eq!(scene.commit_at(&scene.root, "windlass/t1~2"), base);
    assert_eq!(read(&worktree.path, "a"), "ONE\ntwo\nthree\nfour\nFIVE\n");
    assert_eq!(scene.git(&worktree.path, &["status", "--porcelain"]), "?? new");
    let said = scene.git(&scene.root, &["log", "-1", "--format=%an %ae%n%B", "windlass/t1~1"]);
    assert_eq!(said, "An Agent agent@example.com\nsubject\n\nbody\n# kept");
    assert_eq!(id(&base, &head), patch, "a rebase without conflicts changes no patch");
    write(&worktree.path, "b", "c");
    assert_ne!(id(&base, &scene.commit(&worktree.path, "third")), patch);
    assert_eq!(scene.with(|git| git.rebase_worktree(&worktree, &base)).unwrap(), BranchRebaseOutcome::UpToDate);
    assert!(!scene.was_hooked());
}

#[test]
fn a_conflict_leaves_every_byte_as_it_was() {
    let scene = Scene::new();
    let (worktree, old) = scene.work("t1", "a", "mine\n");
    write(&worktree.path, "new", "untracked");
    write(&worktree.path, "x.log", "ignored");
    scene.write("a", "theirs\n");
    scene.write("x.log", "tracked in the base");
    scene.git(&scene.root, &["add", "--force", "x.log"]);
    let base = scene.commit(&scene.root, "the base moves");
    let index = fs::read(scene.root.join(".git/worktrees/t1/index")).unwrap();
    let BranchRebaseOutcome::Conflict { files, why } = scene.with(|git| git.rebase_worktree(&worktree, &base)).unwrap()
    else {
        panic!("they conflict")
    };
    assert_eq!(files, [PathBuf::from("a")]);
    assert!(why.contains(old.short_id()), "{why}");
    assert_eq!(scene.head(&worktree.path), old);
    assert_eq!(read(&worktree.path, "a"), "mine\n");
    assert_eq!((read(&worktree.path, "new"), read(&worktree.path, "x.log")), ("untracked".into(), "ignored".into()));
    assert_eq!(fs::read(scene.root.join(".git/worktrees/t1/index")).unwrap(), index);
}

#[test]
fn files_that_git_does_not_know_are_never_overwritten() {
    for place in ["new", "x.log", "deep/file"] {
        let scene = Scene::new();
        let (worktree, old) = scene.work("t1", "b", "1");
        let mine = if place == "deep/file" { "deep" } else { place };
        write(&worktree.path, mine, "mine");
        scene.write(place, "theirs");
        scene.git(&scene.root, &["add", "--force", place]);
        let base = scene.commit(&scene.root, "the base has it too");
        let BranchRebaseOutcome::Conflict { files, .. } =
            scene.with(|git| git.rebase_worktree(&worktree, &base)).unwrap()
        else {
            panic!("{place} is in the way")
        };
        assert_eq!(files, [PathBuf::from(place)]);
        assert_eq!((read(&worktree.path, mine).as_str(), scene.head(&worktree.path)), ("mine", old));
    }
}

#[test]
fn a_file_may_become_a_directory_and_back() {
    let scene = Scene::new();
    scene.write("d/x", "x");
    scene.write("f", "f");
    scene.commit(&scene.root, "both");
    let (worktree, _) = scene.work("t1", "b", "1");
    fs::remove_dir_all(scene.root.join("d")).unwrap();
    fs::remove_file(scene.root.join("f")).unwrap();
    scene.write("d", "now a file");
    scene.write("f/y", "now a directory");
    let base = scene.commit(&scene.root, "swapped");
    assert!(matches!(
        scene.with(|git| git.rebase_worktree(&worktree, &base)).unwrap(),
        BranchRebaseOutcome::Done { .. }
    ));
    assert_eq!(
        (read(&worktree.path, "d"), read(&worktree.path, "f/y")),
        ("now a file".into(), "now a directory".into())
    );
}

#[test]
fn rebase_skips_changes_in_base() {
    let scene = Scene::new();
    let (worktree, commit) = scene.work("t1", "b", "1");
    scene.commit(&scene.root, "apart");
    scene.git(&scene.root, &["cherry-pick", commit.as_str()]);
    let base = scene.head(&scene.root);
    assert_eq!(
        scene.with(|git| git.rebase_worktree(&worktree, &base)).unwrap(),
        BranchRebaseOutcome::Done { head: base }
    );
}

#[test]
fn rebase_keeps_resolved_merges() {
    let scene = Scene::new();
    let (worktree, _) = scene.work("t1", "a", "mine\n");
    scene.write("a", "theirs\n");
    scene.commit(&scene.root, "the base moves");
    scene.try_git(&worktree.path, &["merge", "main"]);
    write(&worktree.path, "a", "both\n");
    scene.git(&worktree.path, &["add", "a"]);
    scene.with(|git| git.commit_all(&worktree, "resolved")).unwrap();
    scene.write("b", "more");
    let base = scene.commit(&scene.root, "the base moves again");
    let BranchRebaseOutcome::Done { head } = scene.with(|git| git.rebase_worktree(&worktree, &base)).unwrap() else {
        panic!("no conflict")
    };
    assert_eq!((read(&worktree.path, "a"), read(&worktree.path, "b")), ("both\n".into(), "more".into()));
    assert_eq!(scene.commit_at(&scene.root, &format!("{head}^2")), base);
}

#[test]
fn uncommitted_work_is_refused() {
    let scene = Scene::new();
    let (worktree, _) = scene.work("t1", "b", "1");
    let base = scene.commit(&scene.root, "the base moves");
    write(&worktree.path, "b", "2");
    assert!(matches!(scene.with(|git| git.rebase_worktree(&worktree, &base)), Err(Error::Dirty { .. })));
    scene.git(&worktree.path, &["checkout", "--quiet", "--detach"]);
    assert!(matches!(scene.with(|git| git.rebase_worktree(&worktree, &base)), Err(Error::Strayed { .. })));
}

/// Two commits of `t1`, the second in conflict with the first, and a task on top of them.
fn stacked(scene: &Scene) -> (Worktree, Worktree, GitCommitId) {
    let (below, _) = scene.work("t1", "b", "1");
    write(&below.path, "b", "2");
    let start = scene.commit(&below.path, "second");
    let above = scene.try_open("t2", std::slice::from_ref(&start)).unwrap().worktree;
    write(&above.path, "c", "own");
    scene.commit(&above.path, "own");
    (below, above, start)
}

#[test]
fn work_below_that_was_done_again_or_squashed_is_not_done_again() {
    for squash in [false, true] {
        let scene = Scene::new();
        let (below, above, start) = stacked(&scene);
        scene.write("d", "theirs");
        let base = scene.commit(&scene.root, "the base moves");
        if squash {
            scene.git(&scene.root, &["merge", "--quiet", "--squash", "windlass/t1"]);
            scene.commit(&scene.root, "squashed");
        } else {
            scene.with(|git| git.rebase_worktree(&below, &base)).unwrap();
            scene.git(&scene.root, &["merge", "--quiet", "--no-ff", "-m", "merged", "windlass/t1"]);
        }
        scene.write("b", "3");
        let base = scene.commit(&scene.root, "and goes on");
        let brought = scene.with(|git| git.rebase_after(&above, Some(&start), &base)).unwrap();
        assert!(matches!(brought, BranchRebaseOutcome::Done { .. }), "{brought:?}");
        assert_eq!(scene.commit_at(&scene.root, "windlass/t2~1"), base);
        assert_eq!((read(&above.path, "b"), read(&above.path, "c")), ("3".into(), "own".into()));
    }
}

#[test]
fn squashed_work_does_not_conflict_with_itself() {
    let scene = Scene::new();
    let (below, _, _) = stacked(&scene);
    scene.git(&scene.root, &["merge", "--quiet", "--squash", "windlass/t1"]);
    let base = scene.commit(&scene.root, "squashed");
    assert!(scene.with(|git| git.has_all_changes(&base, &git.branch_tip(&below.branch)?.unwrap())).unwrap());
    assert_eq!(scene.with(|git| git.rebase_worktree(&below, &base)).unwrap(), BranchRebaseOutcome::Done { head: base });
}

#[test]
fn commits_that_change_nothing_are_no_work() {
    let scene = Scene::new();
    let worktree = scene.open("t1");
    scene.git(&worktree.path, &["commit", "--quiet", "--allow-empty", "-m", "nothing"]);
    let base = scene.base().commit;
    let work = scene.with(|git| git.read_branch_work(&worktree.branch, &base)).unwrap();
    assert_eq!((work.commits, work.commit_count()), (1, 0));
}

#[test]
fn restart_moves_branch_tree_and_mark_to_the_new_start() {
    let scene = Scene::new();
    let worktree = scene.open("t1");
    scene.write("new", "here");
    let base = scene.commit(&scene.root, "the base moves");
    assert_eq!(
        scene.with(|git| git.restart_branch(&worktree, std::slice::from_ref(&base))).unwrap(),
        Some(base.clone())
    );
    assert_eq!((scene.head(&worktree.path), read(&worktree.path, "new")), (base.clone(), "here".into()));
    assert_eq!(scene.try_open("t1", &[]).unwrap().start, base);
    write(&worktree.path, "new", "changed");
    assert!(matches!(scene.with(|git| git.restart_branch(&worktree, &[base])), Err(Error::Dirty { .. })));
}

#[test]
fn conflict_text_shows_both_sides_by_their_names() {
    let scene = Scene::new();
    let (_, ours) = scene.work("t1", "a", "mine\n");
    scene.write("a", "theirs\n");
    let theirs = scene.commit(&scene.root, "the base moves");
    let files = ["a".into()];
    let text = scene.with(|git| git.conflict_text((&ours, &theirs), &files, "main", 4096)).unwrap();
    assert!(text.starts_with("CONFLICT (content): "), "{text}");
    assert!(text.ends_with("a:\n<<<<<<< this branch\nmine\n=======\ntheirs\n>>>>>>> main\n"), "{text}");
}

#[test]
fn conflict_text_leaves_out_long_files_by_name_and_shows_the_others() {
    let scene = Scene::new();
    let worktree = scene.open("t1");
    for (name, lines) in [("a.lock", 2000), ("z", 1)] {
        write(&worktree.path, name, &"mine\n".repeat(lines));
        scene.write(name, &"theirs\n".repeat(lines));
    }
    let (ours, theirs) = (scene.commit(&worktree.path, "mine"), scene.commit(&scene.root, "theirs"));
    let files = ["a.lock".into(), "z".into()];
    let text = scene.with(|git| git.conflict_text((&ours, &theirs), &files, "main", 4096)).unwrap();
    assert!(text.contains("\nz:\n<<<<<<< this branch\nmine\n=======\ntheirs\n>>>>>>> main\n"), "{text}");
    assert!(text.ends_with("\nToo long to show here: a.lock\n") && text.len() < 4096, "{text}");
}

/// A rebase stops at the first commit that conflicts, although others may conflict, too.
#[test]
fn conflict_names_the_files_of_every_commit() {
    let scene = Scene::new();
    let (worktree, first) = scene.work("t1", "a", "mine\n");
    write(&worktree.path, "b", "mine\n");
    scene.commit(&worktree.path, "later");
    scene.write("a", "theirs\n");
    scene.write("b", "theirs\n");
    let base = scene.commit(&scene.root, "the base moves");
    let BranchRebaseOutcome::Conflict { files, why } = scene.with(|git| git.rebase_worktree(&worktree, &base)).unwrap()
    else {
        panic!("they conflict")
    };
    assert_eq!(files, [PathBuf::from("a"), PathBuf::from("b")]);
    assert_eq!(why, format!("the commit {} and {} change the same lines", first.short_id(), base.short_id()));
}

#[test]
fn conflict_between_commits_alone_says_that_a_merge_has_none() {
    let scene = Scene::new();
    let (worktree, _) = scene.work("t1", "a", "on the way\n");
    write(&worktree.path, "a", "the same\n");
    write(&worktree.path, "b", "mine\n");
    scene.commit(&worktree.path, "there");
    scene.write("a", "the same\n");
    let base = scene.commit(&scene.root, "the base moves");
    let BranchRebaseOutcome::Conflict { files, why } = scene.with(|git| git.rebase_worktree(&worktree, &base)).unwrap()
    else {
        panic!("the first commit conflicts")
    };
    assert_eq!(files, [PathBuf::from("a")]);
    assert!(why.ends_with("change the same lines; a merge of the whole branch has no conflict"), "{why}");
    scene.git(&worktree.path, &["merge", "--quiet", "--no-edit", base.as_str()]);
}
