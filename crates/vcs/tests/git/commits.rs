//! Commits of an agent's work, and refusals with their reasons.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use windlass_vcs::git::{Error, GitOperation, Worktree};

use crate::fixture::{GitFixture, read_file, write_file};

fn commit_worktree(fixture: &GitFixture, worktree: &Worktree) -> Result<Option<windlass_vcs::git::GitCommitId>, Error> {
    fixture.with_client(|git| git.commit_all(worktree, "-work on it\n\n# not a comment\n"))
}

#[test]
fn everything_but_what_is_ignored_is_committed() {
    let fixture = GitFixture::new();
    let worktree = fixture.open_base_worktree("t1");
    assert_eq!(commit_worktree(&fixture, &worktree).unwrap(), None);
    write_file(&worktree.path, "new", "1");
    write_file(&worktree.path, "x.log", "ignored");
    fs::remove_file(worktree.path.join("a")).unwrap();
    let done = commit_worktree(&fixture, &worktree).unwrap().expect("work");
    assert_eq!(done, fixture.resolve_commit(&fixture.root, "windlass/t1"));
    assert_eq!(fixture.run_git(&fixture.root, &["ls-tree", "--name-only", "windlass/t1"]), ".gitignore\nnew");
    let message = fixture.run_git(&fixture.root, &["log", "-1", "--format=%an%n%B", "windlass/t1"]);
    assert_eq!(message, "A User\n-work on it\n\n# not a comment");
    assert_eq!(commit_worktree(&fixture, &worktree).unwrap(), None);
    assert!(!fixture.has_run_hook());
}

#[test]
fn commit_without_user_name_gets_default_author() {
    let fixture = GitFixture::new();
    fs::remove_file(fixture.path("home/.gitconfig")).unwrap();
    let (_, commit) = fixture.commit_work("t1", "new", "1");
    let author = fixture.run_git(&fixture.root, &["log", "-1", "--format=%an <%ae>", commit.as_str()]);
    assert_eq!(author, "Windlass <windlass@localhost>");
}

#[test]
fn names_of_files_may_be_anything() {
    let fixture = GitFixture::new();
    let worktree = fixture.open_base_worktree("t1");
    let names: [&[u8]; 6] = [b"--all", b"a\nb", b"\xff\xfe", b":(glob)*", b"\"q\"\t", b" lead"];
    for name in names {
        fs::write(worktree.path.join(OsStr::from_bytes(name)), "x\n").unwrap();
    }
    commit_worktree(&fixture, &worktree).unwrap().expect("work");
    let base = fixture.fetch_base_branch().commit;
    let work = fixture.with_client(|git| git.read_branch_work(&worktree.branch, &base)).unwrap();
    let mut found: Vec<_> = work.files.iter().map(|file| file.path.clone()).collect();
    let mut expected: Vec<_> = names.iter().map(|name| PathBuf::from(OsStr::from_bytes(name))).collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    assert_eq!((work.commits, work.merge_base), (1, base));
    assert!(work.files.iter().all(|file| (file.added, file.removed) == (1, 0)));
}

#[test]
fn conflict_markers_are_refused_unless_they_were_there() {
    let fixture = GitFixture::new();
    let marked = "<<<<<<< HEAD\n1\n=======\n2\n>>>>>>> x\n";
    fixture.write_file("sample", marked);
    fixture.commit_files(&fixture.root, "a sample of a conflict");
    let worktree = fixture.open_base_worktree("t1");
    write_file(&worktree.path, "sample", &format!("{marked}more\n"));
    assert!(commit_worktree(&fixture, &worktree).unwrap().is_some());
    write_file(&worktree.path, "b", marked);
    let error = commit_worktree(&fixture, &worktree).expect_err("markers");
    assert!(matches!(&error, Error::Markers { files } if files == &[PathBuf::from("b")]), "{error}");
    assert!(error.hint().is_some());
}

/// Creates two branches that change the same line, and checks out the second one.
fn create_conflicting_branches(fixture: &GitFixture) -> Worktree {
    let worktree = fixture.open_base_worktree("t1");
    fixture.run_git(&worktree.path, &["checkout", "--quiet", "-b", "side"]);
    write_file(&worktree.path, "a", "side\n");
    fixture.commit_files(&worktree.path, "side");
    fixture.run_git(&worktree.path, &["checkout", "--quiet", "windlass/t1"]);
    write_file(&worktree.path, "a", "mine\n");
    fixture.commit_files(&worktree.path, "mine");
    worktree
}

#[test]
fn resolved_merge_is_committed_and_everything_else_stays_the_agents() {
    for (words, operation) in [
        (&["merge", "side"][..], GitOperation::Merge),
        (&["rebase", "side"], GitOperation::Rebase),
        (&["cherry-pick", "side"], GitOperation::CherryPick),
        (&["revert", "--no-edit", "side"], GitOperation::Revert),
    ] {
        let fixture = GitFixture::new();
        let worktree = create_conflicting_branches(&fixture);
        fixture.try_run_git(&worktree.path, words);
        let error = commit_worktree(&fixture, &worktree).expect_err("a conflict");
        let is_named = matches!(&error, Error::Unfinished { operation: found, files }
            if *found == operation && files == &[PathBuf::from("a")]);
        assert!(is_named, "{words:?}: {error}");
        write_file(&worktree.path, "a", "both\n");
        fixture.run_git(&worktree.path, &["add", "a"]);
        write_file(&worktree.path, "beside", "more");
        let done = commit_worktree(&fixture, &worktree);
        if operation != GitOperation::Merge {
            let error = done.expect_err("it is not finished");
            assert!(matches!(&error, Error::Unfinished { operation: found, .. } if *found == operation), "{error}");
            continue;
        }
        let tip = fixture.resolve_commit(&fixture.root, "windlass/t1");
        assert!(done.unwrap().is_none_or(|done| done == tip));
        assert_eq!(fixture.run_git(&fixture.root, &["show", "windlass/t1:a"]), "both", "{words:?}");
        assert_eq!(fixture.run_git(&fixture.root, &["show", "windlass/t1:beside"]), "more", "{words:?}");
        assert_eq!(fixture.run_git(&worktree.path, &["status", "--porcelain"]), "");
        assert_eq!(fixture.run_git(&worktree.path, &["branch", "--show-current"]), "windlass/t1");
    }
}

#[test]
fn bisect_is_left_to_the_agent() {
    let fixture = GitFixture::new();
    let worktree = create_conflicting_branches(&fixture);
    fs::remove_dir_all(fixture.root.join(".git/hooks")).unwrap();
    fixture.run_git(&worktree.path, &["bisect", "start"]);
    let error = commit_worktree(&fixture, &worktree).expect_err("a bisect");
    assert!(matches!(error, Error::Unfinished { operation: GitOperation::Bisect, .. }), "{error}");
}

#[test]
fn work_on_a_detached_head_is_taken_onto_the_branch() {
    let fixture = GitFixture::new();
    let worktree = fixture.open_base_worktree("t1");
    fixture.run_git(&worktree.path, &["checkout", "--quiet", "--detach"]);
    write_file(&worktree.path, "b", "1");
    let theirs = fixture.commit_files(&worktree.path, "on no branch");
    write_file(&worktree.path, "c", "2");
    let done = commit_worktree(&fixture, &worktree).unwrap().expect("work");
    assert_eq!(fixture.resolve_commit(&fixture.root, "windlass/t1"), done);
    assert_eq!(fixture.resolve_commit(&fixture.root, "windlass/t1~1"), theirs);
    assert_eq!(fixture.run_git(&worktree.path, &["branch", "--show-current"]), "windlass/t1");
    assert_eq!(fixture.run_git(&worktree.path, &["status", "--porcelain"]), "");
}

#[test]
fn another_branch_is_followed_and_never_moved() {
    let fixture = GitFixture::new();
    let worktree = fixture.open_base_worktree("t1");
    fixture.run_git(&worktree.path, &["checkout", "--quiet", "-b", "agents-own"]);
    let theirs = fixture.commit_files(&worktree.path, "on another branch");
    write_file(&worktree.path, "c", "2");
    let done = commit_worktree(&fixture, &worktree).unwrap().expect("work");
    assert_eq!(fixture.resolve_commit(&fixture.root, "agents-own"), theirs);
    assert_eq!(fixture.resolve_commit(&fixture.root, "windlass/t1"), done);
    assert_eq!(fixture.run_git(&worktree.path, &["branch", "--show-current"]), "windlass/t1");
}

#[test]
fn branch_renamed_by_an_agent_is_made_again_with_its_work() {
    let fixture = GitFixture::new();
    let worktree = fixture.open_base_worktree("t1");
    let start = fixture.read_head(&worktree.path);
    let theirs = fixture.commit_files(&worktree.path, "before the rename");
    fixture.run_git(&worktree.path, &["branch", "-m", "renamed"]);
    write_file(&worktree.path, "c", "2");
    let done = commit_worktree(&fixture, &worktree).unwrap().expect("work");
    assert_eq!(fixture.resolve_commit(&fixture.root, "windlass/t1"), done);
    assert_eq!(fixture.resolve_commit(&fixture.root, "windlass/t1~1"), theirs);
    assert_eq!(fixture.run_git(&worktree.path, &["branch", "--show-current"]), "windlass/t1");
    assert_eq!(fixture.with_client(|git| git.commits_made_in(&worktree, &start, &done)).unwrap().len(), 2);
}

#[test]
fn work_that_does_not_go_on_from_the_branch_is_refused_and_kept() {
    let fixture = GitFixture::new();
    let (worktree, tip) = fixture.commit_work("t1", "b", "1");
    fixture.run_git(&worktree.path, &["checkout", "--quiet", "--detach", "HEAD~1"]);
    // The agent only checks out an older commit.
    assert_eq!(commit_worktree(&fixture, &worktree).unwrap(), None);
    assert_eq!(fixture.read_head(&worktree.path), tip);
    assert_eq!(fixture.run_git(&worktree.path, &["branch", "--show-current"]), "windlass/t1");
    fixture.run_git(&worktree.path, &["checkout", "--quiet", "--detach", "HEAD~1"]);
    let theirs = fixture.commit_files(&worktree.path, "elsewhere");
    write_file(&worktree.path, "c", "2");
    assert!(matches!(commit_worktree(&fixture, &worktree), Err(Error::Strayed { .. })));
    assert_eq!((fixture.read_head(&worktree.path), read_file(&worktree.path, "c")), (theirs, "2".to_owned()));
    assert_eq!(fixture.resolve_commit(&fixture.root, "windlass/t1"), tip);
}

#[test]
fn embedded_repository_is_refused_by_name() {
    for name in ["inside", ":"] {
        let fixture = GitFixture::new();
        let worktree = fixture.open_base_worktree("t1");
        let inside = worktree.path.join(name);
        write_file(&inside, "x", "1");
        fixture.run_git(&inside, &["init", "--quiet"]);
        fixture.commit_files(&inside, "inside");
        let error = commit_worktree(&fixture, &worktree).expect_err("a repository");
        assert!(matches!(&error, Error::Embedded { files } if files == &[PathBuf::from(name)]), "{error}");
        fs::remove_dir_all(inside.join(".git")).unwrap();
        assert!(commit_worktree(&fixture, &worktree).unwrap().is_some());
        assert_eq!(fixture.run_git(&fixture.root, &["show", &format!("windlass/t1:{name}/x")]), "1");
    }
}

/// Only the agent can repair such a tree.
#[test]
fn uncommittable_tree_is_reported_with_path_and_reason() {
    let fixture = GitFixture::new();
    let worktree = fixture.open_base_worktree("t1");
    write_file(&worktree.path, "inside/x", "1");
    fixture.run_git(&worktree.path.join("inside"), &["init", "--quiet"]);
    let check = |said: &str| {
        let error = commit_worktree(&fixture, &worktree).expect_err("it cannot be committed");
        assert!(matches!(&error, Error::Uncommittable { path, .. } if path == &worktree.path), "{error}");
        assert!(error.to_string().contains(said), "{error}");
    };
    check("`git add` says error: 'inside/' does not have a commit checked out");
    fs::remove_dir_all(worktree.path.join("inside")).unwrap();
    let index = fixture.root.join(".git/worktrees/t1/index");
    fs::write(&index, "junk").unwrap();
    check("index file smaller than expected");
    fs::remove_file(&index).unwrap();
    assert_eq!(commit_worktree(&fixture, &worktree).unwrap(), None);
}
