//! Rebases onto a newer base.

use std::fs;
use std::path::PathBuf;

use windlass_vcs::git::{BranchRebaseOutcome, Error, GitCommitId, Worktree};

use crate::fixture::{GitFixture, read_file, write_file};

#[test]
fn replayed_commits_keep_author_and_message() {
    let fixture = GitFixture::new();
    let worktree = fixture.open_base_worktree("t1");
    write_file(&worktree.path, "a", "one\ntwo\nthree\nfour\nFIVE\n");
    fixture.commit_files(&worktree.path, "subject\n\nbody\n# kept");
    write_file(&worktree.path, "b", "b");
    fs::write(worktree.path.join("picture"), [0, 1, 2, 0, 255]).unwrap();
    let old = fixture.commit_files(&worktree.path, "second");
    let before = fixture.fetch_base_branch().commit;
    fixture.write_file("a", "ONE\ntwo\nthree\nfour\nfive\n");
    let base = fixture.commit_files(&fixture.root, "the base moves");
    let id = |from, to| fixture.with_client(|git| git.patch_id(from, to)).unwrap();
    let patch = id(&before, &old);
    write_file(&worktree.path, "new", "untracked");
    let BranchRebaseOutcome::Done { head } = fixture.with_client(|git| git.rebase_worktree(&worktree, &base)).unwrap()
    else {
        panic!("it moves")
    };
    assert_eq!(fixture.read_head(&worktree.path), head);
    assert_eq!(fixture.resolve_commit(&fixture.root, "windlass/t1~2"), base);
    assert_eq!(read_file(&worktree.path, "a"), "ONE\ntwo\nthree\nfour\nFIVE\n");
    assert_eq!(fixture.run_git(&worktree.path, &["status", "--porcelain"]), "?? new");
    let log_text = fixture.run_git(&fixture.root, &["log", "-1", "--format=%an %ae%n%B", "windlass/t1~1"]);
    assert_eq!(log_text, "An Agent agent@example.com\nsubject\n\nbody\n# kept");
    assert_eq!(id(&base, &head), patch, "a rebase without conflicts changes no patch");
    write_file(&worktree.path, "b", "c");
    assert_ne!(id(&base, &fixture.commit_files(&worktree.path, "third")), patch);
    assert_eq!(
        fixture.with_client(|git| git.rebase_worktree(&worktree, &base)).unwrap(),
        BranchRebaseOutcome::UpToDate
    );
    assert!(!fixture.has_run_hook());
}

#[test]
fn rebase_conflict_leaves_worktree_and_index_unchanged() {
    let fixture = GitFixture::new();
    let (worktree, old) = fixture.commit_work("t1", "a", "mine\n");
    write_file(&worktree.path, "new", "untracked");
    write_file(&worktree.path, "x.log", "ignored");
    fixture.write_file("a", "theirs\n");
    fixture.write_file("x.log", "tracked in the base");
    fixture.run_git(&fixture.root, &["add", "--force", "x.log"]);
    let base = fixture.commit_files(&fixture.root, "the base moves");
    let index = fs::read(fixture.root.join(".git/worktrees/t1/index")).unwrap();
    let BranchRebaseOutcome::Conflict { files, why } =
        fixture.with_client(|git| git.rebase_worktree(&worktree, &base)).unwrap()
    else {
        panic!("they conflict")
    };
    assert_eq!(files, [PathBuf::from("a")]);
    assert!(why.contains(old.short_id()), "{why}");
    assert_eq!(fixture.read_head(&worktree.path), old);
    assert_eq!(read_file(&worktree.path, "a"), "mine\n");
    assert_eq!(
        (read_file(&worktree.path, "new"), read_file(&worktree.path, "x.log")),
        ("untracked".into(), "ignored".into())
    );
    assert_eq!(fs::read(fixture.root.join(".git/worktrees/t1/index")).unwrap(), index);
}

#[test]
fn files_that_git_does_not_know_are_never_overwritten() {
    for place in ["new", "x.log", "deep/file"] {
        let fixture = GitFixture::new();
        let (worktree, old) = fixture.commit_work("t1", "b", "1");
        let mine = if place == "deep/file" { "deep" } else { place };
        write_file(&worktree.path, mine, "mine");
        fixture.write_file(place, "theirs");
        fixture.run_git(&fixture.root, &["add", "--force", place]);
        let base = fixture.commit_files(&fixture.root, "the base has it too");
        let BranchRebaseOutcome::Conflict { files, .. } =
            fixture.with_client(|git| git.rebase_worktree(&worktree, &base)).unwrap()
        else {
            panic!("{place} is in the way")
        };
        assert_eq!(files, [PathBuf::from(place)]);
        assert_eq!((read_file(&worktree.path, mine).as_str(), fixture.read_head(&worktree.path)), ("mine", old));
    }
}

#[test]
fn rebase_replaces_file_with_directory_and_vice_versa() {
    let fixture = GitFixture::new();
    fixture.write_file("d/x", "x");
    fixture.write_file("f", "f");
    fixture.commit_files(&fixture.root, "both");
    let (worktree, _) = fixture.commit_work("t1", "b", "1");
    fs::remove_dir_all(fixture.root.join("d")).unwrap();
    fs::remove_file(fixture.root.join("f")).unwrap();
    fixture.write_file("d", "now a file");
    fixture.write_file("f/y", "now a directory");
    let base = fixture.commit_files(&fixture.root, "swapped");
    assert!(matches!(
        fixture.with_client(|git| git.rebase_worktree(&worktree, &base)).unwrap(),
        BranchRebaseOutcome::Done { .. }
    ));
    assert_eq!(
        (read_file(&worktree.path, "d"), read_file(&worktree.path, "f/y")),
        ("now a file".into(), "now a directory".into())
    );
}

#[test]
fn rebase_skips_changes_in_base() {
    let fixture = GitFixture::new();
    let (worktree, commit) = fixture.commit_work("t1", "b", "1");
    fixture.commit_files(&fixture.root, "apart");
    fixture.run_git(&fixture.root, &["cherry-pick", commit.as_str()]);
    let base = fixture.read_head(&fixture.root);
    assert_eq!(
        fixture.with_client(|git| git.rebase_worktree(&worktree, &base)).unwrap(),
        BranchRebaseOutcome::Done { head: base }
    );
}

#[test]
fn rebase_keeps_resolved_merges() {
    let fixture = GitFixture::new();
    let (worktree, _) = fixture.commit_work("t1", "a", "mine\n");
    fixture.write_file("a", "theirs\n");
    fixture.commit_files(&fixture.root, "the base moves");
    fixture.try_run_git(&worktree.path, &["merge", "main"]);
    write_file(&worktree.path, "a", "both\n");
    fixture.run_git(&worktree.path, &["add", "a"]);
    fixture.with_client(|git| git.commit_all(&worktree, "resolved")).unwrap();
    fixture.write_file("b", "more");
    let base = fixture.commit_files(&fixture.root, "the base moves again");
    let BranchRebaseOutcome::Done { head } = fixture.with_client(|git| git.rebase_worktree(&worktree, &base)).unwrap()
    else {
        panic!("no conflict")
    };
    assert_eq!((read_file(&worktree.path, "a"), read_file(&worktree.path, "b")), ("both\n".into(), "more".into()));
    assert_eq!(fixture.resolve_commit(&fixture.root, &format!("{head}^2")), base);
}

#[test]
fn uncommitted_work_is_refused() {
    let fixture = GitFixture::new();
    let (worktree, _) = fixture.commit_work("t1", "b", "1");
    let base = fixture.commit_files(&fixture.root, "the base moves");
    write_file(&worktree.path, "b", "2");
    assert!(matches!(fixture.with_client(|git| git.rebase_worktree(&worktree, &base)), Err(Error::Dirty { .. })));
    fixture.run_git(&worktree.path, &["checkout", "--quiet", "--detach"]);
    assert!(matches!(fixture.with_client(|git| git.rebase_worktree(&worktree, &base)), Err(Error::Strayed { .. })));
}

/// Creates two commits of `t1` that change the same line, and a task on top of them.
fn stack_tasks(fixture: &GitFixture) -> (Worktree, Worktree, GitCommitId) {
    let (below, _) = fixture.commit_work("t1", "b", "1");
    write_file(&below.path, "b", "2");
    let start = fixture.commit_files(&below.path, "second");
    let above = fixture.try_open_worktree("t2", std::slice::from_ref(&start)).unwrap().worktree;
    write_file(&above.path, "c", "own");
    fixture.commit_files(&above.path, "own");
    (below, above, start)
}

#[test]
fn work_below_that_was_done_again_or_squashed_is_not_done_again() {
    for squash in [false, true] {
        let fixture = GitFixture::new();
        let (below, above, start) = stack_tasks(&fixture);
        fixture.write_file("d", "theirs");
        let base = fixture.commit_files(&fixture.root, "the base moves");
        if squash {
            fixture.run_git(&fixture.root, &["merge", "--quiet", "--squash", "windlass/t1"]);
            fixture.commit_files(&fixture.root, "squashed");
        } else {
            fixture.with_client(|git| git.rebase_worktree(&below, &base)).unwrap();
            fixture.run_git(&fixture.root, &["merge", "--quiet", "--no-ff", "-m", "merged", "windlass/t1"]);
        }
        fixture.write_file("b", "3");
        let base = fixture.commit_files(&fixture.root, "and goes on");
        let outcome = fixture.with_client(|git| git.rebase_after(&above, Some(&start), &base)).unwrap();
        assert!(matches!(outcome, BranchRebaseOutcome::Done { .. }), "{outcome:?}");
        assert_eq!(fixture.resolve_commit(&fixture.root, "windlass/t2~1"), base);
        assert_eq!((read_file(&above.path, "b"), read_file(&above.path, "c")), ("3".into(), "own".into()));
    }
}

#[test]
fn squashed_work_does_not_conflict_with_itself() {
    let fixture = GitFixture::new();
    let (below, _, _) = stack_tasks(&fixture);
    fixture.run_git(&fixture.root, &["merge", "--quiet", "--squash", "windlass/t1"]);
    let base = fixture.commit_files(&fixture.root, "squashed");
    assert!(fixture.with_client(|git| git.has_all_changes(&base, &git.branch_tip(&below.branch)?.unwrap())).unwrap());
    assert_eq!(
        fixture.with_client(|git| git.rebase_worktree(&below, &base)).unwrap(),
        BranchRebaseOutcome::Done { head: base }
    );
}

#[test]
fn commits_that_change_nothing_are_no_work() {
    let fixture = GitFixture::new();
    let worktree = fixture.open_base_worktree("t1");
    fixture.run_git(&worktree.path, &["commit", "--quiet", "--allow-empty", "-m", "nothing"]);
    let base = fixture.fetch_base_branch().commit;
    let work = fixture.with_client(|git| git.read_branch_work(&worktree.branch, &base)).unwrap();
    assert_eq!((work.commits, work.commit_count()), (1, 0));
}

#[test]
fn restart_moves_branch_tree_and_mark_to_the_new_start() {
    let fixture = GitFixture::new();
    let worktree = fixture.open_base_worktree("t1");
    fixture.write_file("new", "here");
    let base = fixture.commit_files(&fixture.root, "the base moves");
    assert_eq!(
        fixture.with_client(|git| git.restart_branch(&worktree, std::slice::from_ref(&base))).unwrap(),
        Some(base.clone())
    );
    assert_eq!((fixture.read_head(&worktree.path), read_file(&worktree.path, "new")), (base.clone(), "here".into()));
    assert_eq!(fixture.try_open_worktree("t1", &[]).unwrap().start, base);
    write_file(&worktree.path, "new", "changed");
    assert!(matches!(fixture.with_client(|git| git.restart_branch(&worktree, &[base])), Err(Error::Dirty { .. })));
}

#[test]
fn conflict_text_shows_both_sides_by_their_names() {
    let fixture = GitFixture::new();
    let (_, ours) = fixture.commit_work("t1", "a", "mine\n");
    fixture.write_file("a", "theirs\n");
    let theirs = fixture.commit_files(&fixture.root, "the base moves");
    let files = ["a".into()];
    let text = fixture.with_client(|git| git.conflict_text((&ours, &theirs), &files, "main", 4096)).unwrap();
    assert!(text.starts_with("CONFLICT (content): "), "{text}");
    assert!(text.ends_with("a:\n<<<<<<< this branch\nmine\n=======\ntheirs\n>>>>>>> main\n"), "{text}");
}

#[test]
fn conflict_text_leaves_out_long_files_by_name_and_shows_the_others() {
    let fixture = GitFixture::new();
    let worktree = fixture.open_base_worktree("t1");
    for (name, lines) in [("a.lock", 2000), ("z", 1)] {
        write_file(&worktree.path, name, &"mine\n".repeat(lines));
        fixture.write_file(name, &"theirs\n".repeat(lines));
    }
    let (ours, theirs) = (fixture.commit_files(&worktree.path, "mine"), fixture.commit_files(&fixture.root, "theirs"));
    let files = ["a.lock".into(), "z".into()];
    let text = fixture.with_client(|git| git.conflict_text((&ours, &theirs), &files, "main", 4096)).unwrap();
    assert!(text.contains("\nz:\n<<<<<<< this branch\nmine\n=======\ntheirs\n>>>>>>> main\n"), "{text}");
    assert!(text.ends_with("\nToo long to show here: a.lock\n") && text.len() < 4096, "{text}");
}

/// A rebase stops at the first commit with a conflict, although later commits may also have conflicts.
#[test]
fn conflict_names_the_files_of_every_commit() {
    let fixture = GitFixture::new();
    let (worktree, first) = fixture.commit_work("t1", "a", "mine\n");
    write_file(&worktree.path, "b", "mine\n");
    fixture.commit_files(&worktree.path, "later");
    fixture.write_file("a", "theirs\n");
    fixture.write_file("b", "theirs\n");
    let base = fixture.commit_files(&fixture.root, "the base moves");
    let BranchRebaseOutcome::Conflict { files, why } =
        fixture.with_client(|git| git.rebase_worktree(&worktree, &base)).unwrap()
    else {
        panic!("they conflict")
    };
    assert_eq!(files, [PathBuf::from("a"), PathBuf::from("b")]);
    assert_eq!(why, format!("the commit {} and {} change the same lines", first.short_id(), base.short_id()));
}

#[test]
fn conflict_between_commits_alone_says_that_a_merge_has_none() {
    let fixture = GitFixture::new();
    let (worktree, _) = fixture.commit_work("t1", "a", "on the way\n");
    write_file(&worktree.path, "a", "the same\n");
    write_file(&worktree.path, "b", "mine\n");
    fixture.commit_files(&worktree.path, "there");
    fixture.write_file("a", "the same\n");
    let base = fixture.commit_files(&fixture.root, "the base moves");
    let BranchRebaseOutcome::Conflict { files, why } =
        fixture.with_client(|git| git.rebase_worktree(&worktree, &base)).unwrap()
    else {
        panic!("the first commit conflicts")
    };
    assert_eq!(files, [PathBuf::from("a")]);
    assert!(why.ends_with("change the same lines; a merge of the whole branch has no conflict"), "{why}");
    fixture.run_git(&worktree.path, &["merge", "--quiet", "--no-edit", base.as_str()]);
}
