//! Commits of an agent's work, or refusals with the reason.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use windlass_vcs::git::{Error, GitOperation, Worktree};

use crate::scene::{Scene, read, write};

fn commit(scene: &Scene, worktree: &Worktree) -> Result<Option<windlass_vcs::git::GitCommitId>, Error> {
    scene.with(|git| git.commit_all(worktree, "-work on it\n\n# not a comment\n"))
}

#[test]
fn everything_but_what_is_ignored_is_committed() {
    let scene = Scene::new();
    let worktree = scene.open("t1");
    assert_eq!(commit(&scene, &worktree).unwrap(), None);
    write(&worktree.path, "new", "1");
    write(&worktree.path, "x.log", "ignored");
    fs::remove_file(worktree.path.join("a")).unwrap();
    let done = commit(&scene, &worktree).unwrap().expect("work");
    assert_eq!(done, scene.commit_at(&scene.root, "windlass/t1"));
    assert_eq!(scene.git(&scene.root, &["ls-tree", "--name-only", "windlass/t1"]), ".gitignore\nnew");
    let message = scene.git(&scene.root, &["log", "-1", "--format=%an%n%B", "windlass/t1"]);
    assert_eq!(message, "A User\n-work on it\n\n# not a comment");
    assert_eq!(commit(&scene, &worktree).unwrap(), None);
    assert!(!scene.was_hooked());
}

#[test]
fn a_user_without_a_name_gets_one() {
    let scene = Scene::new();
    fs::remove_file(scene.path("home/.gitconfig")).unwrap();
    let (_, commit) = scene.work("t1", "new", "1");
    let author = scene.git(&scene.root, &["log", "-1", "--format=%an <%ae>", commit.as_str()]);
    assert_eq!(author, "Windlass <windlass@localhost>");
}

#[test]
fn names_of_files_may_be_anything() {
    let scene = Scene::new();
    let worktree = scene.open("t1");
    let names: [&[u8]; 6] = [b"--all", b"a\nb", b"\xff\xfe", b":(glob)*", b"\"q\"\t", b" lead"];
    for name in names {
        fs::write(worktree.path.join(OsStr::from_bytes(name)), "x\n").unwrap();
    }
    commit(&scene, &worktree).unwrap().expect("work");
    let base = scene.base().commit;
    let work = scene.with(|git| git.read_branch_work(&worktree.branch, &base)).unwrap();
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
    let scene = Scene::new();
    let marked = "<<<<<<< HEAD\n1\n=======\n2\n>>>>>>> x\n";
    scene.write("sample", marked);
    scene.commit(&scene.root, "a sample of a conflict");
    let worktree = scene.open("t1");
    write(&worktree.path, "sample", &format!("{marked}more\n"));
    assert!(commit(&scene, &worktree).unwrap().is_some());
    write(&worktree.path, "b", marked);
    let error = commit(&scene, &worktree).expect_err("markers");
    assert!(matches!(&error, Error::Markers { files } if files == &[PathBuf::from("b")]), "{error}");
    assert!(error.hint().is_some());
}

/// Two branches that change the same line, the second one checked out.
fn conflicting(scene: &Scene) -> Worktree {
    let worktree = scene.open("t1");
    scene.git(&worktree.path, &["checkout", "--quiet", "-b", "side"]);
    write(&worktree.path, "a", "side\n");
    scene.commit(&worktree.path, "side");
    scene.git(&worktree.path, &["checkout", "--quiet", "windlass/t1"]);
    write(&worktree.path, "a", "mine\n");
    scene.commit(&worktree.path, "mine");
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
        let scene = Scene::new();
        let worktree = conflicting(&scene);
        scene.try_git(&worktree.path, words);
        let error = commit(&scene, &worktree).expect_err("a conflict");
        let is_named = matches!(&error, Error::Unfinished { operation: found, files }
            if *found == operation && files == &[PathBuf::from("a")]);
        assert!(is_named, "{words:?}: {error}");
        write(&worktree.path, "a", "both\n");
        scene.git(&worktree.path, &["add", "a"]);
        write(&worktree.path, "beside", "more");
        let done = commit(&scene, &worktree);
        if operation != GitOperation::Merge {
            let error = done.expect_err("it is not finished");
            assert!(matches!(&error, Error::Unfinished { operation: found, .. } if *found == operation), "{error}");
            continue;
        }
        let tip = scene.commit_at(&scene.root, "windlass/t1");
        assert!(done.unwrap().is_none_or(|done| done == tip));
        assert_eq!(scene.git(&scene.root, &["show", "windlass/t1:a"]), "both", "{words:?}");
        assert_eq!(scene.git(&scene.root, &["show", "windlass/t1:beside"]), "more", "{words:?}");
        assert_eq!(scene.git(&worktree.path, &["status", "--porcelain"]), "");
        assert_eq!(scene.git(&worktree.path, &["branch", "--show-current"]), "windlass/t1");
    }
}

#[test]
fn bisect_is_left_to_the_agent() {
    let scene = Scene::new();
    let worktree = conflicting(&scene);
    fs::remove_dir_all(scene.root.join(".git/hooks")).unwrap();
    scene.git(&worktree.path, &["bisect", "start"]);
    let error = commit(&scene, &worktree).expect_err("a bisect");
    assert!(matches!(error, Error::Unfinished { operation: Operation::Bisect, .. }), "{error}");
}

#[test]
fn work_on_a_detached_head_is_taken_onto_the_branch() {
    let scene = Scene::new();
    let worktree = scene.open("t1");
    scene.git(&worktree.path, &["checkout", "--quiet", "--detach"]);
    write(&worktree.path, "b", "1");
    let theirs = scene.commit(&worktree.path, "on no branch");
    write(&worktree.path, "c", "2");
    let done = commit(&scene, &worktree).unwrap().expect("work");
    assert_eq!(scene.commit_at(&scene.root, "windlass/t1"), done);
    assert_eq!(scene.commit_at(&scene.root, "windlass/t1~1"), theirs);
    assert_eq!(scene.git(&worktree.path, &["branch", "--show-current"]), "windlass/t1");
    assert_eq!(scene.git(&worktree.path, &["status", "--porcelain"]), "");
}

#[test]
fn another_branch_is_followed_and_never_moved() {
    let scene = Scene::new();
    let worktree = scene.open("t1");
    scene.git(&worktree.path, &["checkout", "--quiet", "-b", "agents-own"]);
    let theirs = scene.commit(&worktree.path, "on another branch");
    write(&worktree.path, "c", "2");
    let done = commit(&scene, &worktree).unwrap().expect("work");
    assert_eq!(scene.commit_at(&scene.root, "agents-own"), theirs);
    assert_eq!(scene.commit_at(&scene.root, "windlass/t1"), done);
    assert_eq!(scene.git(&worktree.path, &["branch", "--show-current"]), "windlass/t1");
}

#[test]
fn branch_renamed_by_an_agent_is_made_again_with_its_work() {
    let scene = Scene::new();
    let worktree = scene.open("t1");
    let start = scene.head(&worktree.path);
    let theirs = scene.commit(&worktree.path, "before the rename");
    scene.git(&worktree.path, &["branch", "-m", "renamed"]);
    write(&worktree.path, "c", "2");
    let done = commit(&scene, &worktree).unwrap().expect("work");
    assert_eq!(scene.commit_at(&scene.root, "windlass/t1"), done);
    assert_eq!(scene.commit_at(&scene.root, "windlass/t1~1"), theirs);
    assert_eq!(scene.git(&worktree.path, &["branch", "--show-current"]), "windlass/t1");
    assert_eq!(scene.with(|git| git.made_in(&worktree, &start, &done)).unwrap().len(), 2);
}

#[test]
fn work_that_does_not_go_on_from_the_branch_is_refused_and_kept() {
    let scene = Scene::new();
    let (worktree, tip) = scene.work("t1", "b", "1");
    scene.git(&worktree.path, &["checkout", "--quiet", "--detach", "HEAD~1"]);
    // Only a checkout of an older commit.
    assert_eq!(commit(&scene, &worktree).unwrap(), None);
    assert_eq!(scene.head(&worktree.path), tip);
    assert_eq!(scene.git(&worktree.path, &["branch", "--show-current"]), "windlass/t1");
    scene.git(&worktree.path, &["checkout", "--quiet", "--detach", "HEAD~1"]);
    let theirs = scene.commit(&worktree.path, "elsewhere");
    write(&worktree.path, "c", "2");
    assert!(matches!(commit(&scene, &worktree), Err(Error::Strayed { .. })));
    assert_eq!((scene.head(&worktree.path), read(&worktree.path, "c")), (theirs, "2".to_owned()));
    assert_eq!(scene.commit_at(&scene.root, "windlass/t1"), tip);
}

#[test]
fn embedded_repository_is_refused_by_name() {
    for name in ["inside", ":"] {
        let scene = Scene::new();
        let worktree = scene.open("t1");
        let inside = worktree.path.join(name);
        write(&inside, "x", "1");
        scene.git(&inside, &["init", "--quiet"]);
        scene.commit(&inside, "inside");
        let error = commit(&scene, &worktree).expect_err("a repository");
        assert!(matches!(&error, Error::Embedded { files } if files == &[PathBuf::from(name)]), "{error}");
        fs::remove_dir_all(inside.join(".git")).unwrap();
        assert!(commit(&scene, &worktree).unwrap().is_some());
        assert_eq!(scene.git(&scene.root, &["show", &format!("windlass/t1:{name}/x")]), "1");
    }
}

/// The agent that worked there has to repair the tree.
#[test]
fn a_tree_that_git_cannot_read_is_named() {
    let scene = Scene::new();
    let worktree = scene.open("t1");
    write(&worktree.path, "inside/x", "1");
    scene.git(&worktree.path.join("inside"), &["init", "--quiet"]);
    let check = |said: &str| {
        let error = commit(&scene, &worktree).expect_err("it cannot be committed");
        assert!(matches!(&error, Error::Uncommittable { path, .. } if path == &worktree.path), "{error}");
        assert!(error.to_string().contains(said), "{error}");
    };
    check("`git add` says error: 'inside/' does not have a commit checked out");
    fs::remove_dir_all(worktree.path.join("inside")).unwrap();
    let index = scene.root.join(".git/worktrees/t1/index");
    fs::write(&index, "junk").unwrap();
    check("index file smaller than expected");
    fs::remove_file(&index).unwrap();
    assert_eq!(commit(&scene, &worktree).unwrap(), None);
}
