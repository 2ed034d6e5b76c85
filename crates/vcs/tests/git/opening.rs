//! Worktrees: created, found again, or refused with the reason.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

use windlass_process::{
    CapturedOutput, OwnerLock, ProgramExit, ProgramInvocation, ProgramOutcome, ProgramSpec, RunControl, run_program,
};
use windlass_vcs::git::{Error, ExistingBranch, GitClient, GitRepository, WorktreeRequest};

use crate::scene::{Scene, branch, read, write};

#[test]
fn a_worktree_is_made_and_found_again() {
    let scene = Scene::new();
    let base = scene.base();
    let opened = scene.try_open("t1", std::slice::from_ref(&base.commit)).unwrap();
    assert!(!opened.reused);
    assert_eq!((&opened.start, opened.worktree.path.as_path()), (&base.commit, scene.place("t1").as_path()));
    assert_eq!(scene.git(&opened.worktree.path, &["branch", "--show-current"]), "windlass/t1");
    write(&opened.worktree.path, "new", "unsaved");
    let again = scene.try_open("t1", &[]).unwrap();
    assert!(again.reused);
    assert_eq!((again.start, again.worktree), (base.commit, opened.worktree));
    assert_eq!(read(&scene.place("t1"), "new"), "unsaved");
    assert!(!scene.was_hooked());
}

#[test]
fn branches_that_are_not_ours_are_refused_by_name() {
    let scene = Scene::new();
    let start = [scene.base().commit];
    scene.git(&scene.root, &["branch", "windlass/t1"]);
    assert!(matches!(scene.try_open("t1", &start), Err(Error::BranchTaken { .. })));
    let (name, first, second) = (branch("windlass/t1"), scene.place("t1"), scene.place("t2"));
    let wanted = |path| WorktreeRequest { branch: &name, path, start: &start, existing: ExistingBranch::Take };
    let opened = scene.with(|git| git.open_worktree(wanted(&first))).unwrap();
    assert!(!opened.reused);
    // The same branch in two places.
    let error = scene.with(|git| git.open_worktree(wanted(&second))).expect_err("it is checked out");
    assert!(matches!(&error, Error::CheckedOut { path, .. } if *path == scene.place("t1")), "{error}");
    // A branch in the place of a directory of branches.
    scene.git(&scene.root, &["branch", "deep"]);
    let below = branch("deep/er");
    let (path, existing) = (scene.place("t3"), ExistingBranch::IfOurs);
    let error =
        scene.with(|git| git.open_worktree(WorktreeRequest { branch: &below, path: &path, start: &start, existing }));
    assert!(matches!(&error, Err(Error::BranchTaken { branch }) if branch.as_str() == "deep"), "{error:?}");
    assert_eq!(scene.git(&scene.root, &["for-each-ref", "refs/windlass/start/deep"]), "");
}

#[test]
fn a_path_that_is_something_else_is_refused() {
    let scene = Scene::new();
    let start = [scene.base().commit];
    write(&scene.place("t1"), "precious", "mine");
    assert!(matches!(scene.try_open("t1", &start), Err(Error::Occupied { .. })));
    assert_eq!(read(&scene.place("t1"), "precious"), "mine");
    // The agent has made a repository of its own of it.
    let worktree = scene.open("t2");
    fs::remove_file(worktree.path.join(".git")).unwrap();
    scene.git(&worktree.path, &["init", "--quiet"]);
    assert!(matches!(scene.try_open("t2", &start), Err(Error::Occupied { .. })));
    assert!(matches!(scene.with(|git| git.commit_all(&worktree, "x")), Err(Error::Occupied { .. })));
    fs::create_dir_all(scene.place("t3")).unwrap();
    assert!(scene.try_open("t3", &start).is_ok(), "an empty directory is nothing");
}

#[test]
fn a_worktree_without_its_link_is_made_whole_and_never_taken_for_the_main_one() {
    let scene = Scene::new();
    let worktree = scene.open("t1");
    write(&worktree.path, "new", "work");
    fs::remove_file(worktree.path.join(".git")).unwrap();
    assert!(scene.with(|git| git.commit_all(&worktree, "x")).is_err());
    assert!(scene.try_open("t1", &[]).unwrap().reused);
    let commit = scene.with(|git| git.commit_all(&worktree, "x")).unwrap().expect("work");
    assert_eq!(commit, scene.commit_at(&scene.root, "windlass/t1"));
}

#[test]
fn a_locked_worktree_is_refused_with_its_reason() {
    let scene = Scene::new();
    let worktree = scene.open("t1");
    scene.git(&scene.root, &["worktree", "lock", "--reason", "on a stick", worktree.path.to_str().unwrap()]);
    let error = scene.try_open("t1", &[]).expect_err("it is locked");
    assert!(matches!(&error, Error::WorktreeLocked { reason, .. } if reason == "on a stick"), "{error}");
    fs::remove_dir_all(&worktree.path).unwrap();
    assert!(matches!(scene.try_open("t1", &[]), Err(Error::WorktreeLocked { .. })));
}

#[test]
fn locked_worktree_elsewhere_is_kept() {
    let scene = Scene::new();
    let worktree = scene.open("t1");
    let stick = scene.path("stick");
    scene.git(&scene.root, &["worktree", "move", worktree.path.to_str().unwrap(), stick.to_str().unwrap()]);
    scene.git(&scene.root, &["worktree", "lock", stick.to_str().unwrap()]);
    fs::remove_dir_all(&stick).unwrap();
    assert!(matches!(scene.try_open("t1", &[]), Err(Error::WorktreeLocked { .. })));
    assert!(scene.root.join(".git/worktrees/t1").exists());
}

#[test]
fn a_vanished_worktree_is_made_again_from_its_branch_and_others_are_left_alone() {
    let scene = Scene::new();
    let (worktree, commit) = scene.work("t1", "done", "work");
    let users = scene.path("users");
    scene.git(&scene.root, &["worktree", "add", "--quiet", "-b", "theirs", users.to_str().unwrap()]);
    fs::remove_dir_all(&users).unwrap();
    fs::remove_dir_all(&worktree.path).unwrap();
    assert!(matches!(scene.with(|git| git.commit_all(&worktree, "x")), Err(Error::Vanished { .. })));
    let opened = scene.try_open("t1", &[]).unwrap();
    assert!(!opened.reused);
    assert_eq!(scene.head(&opened.worktree.path), commit);
    assert_eq!(read(&opened.worktree.path, "done"), "work");
    assert!(scene.git(&scene.root, &["worktree", "list"]).contains("theirs"));
}

#[test]
fn a_project_that_was_moved_takes_its_worktrees_along() {
    let mut scene = Scene::new();
    let worktree = scene.open("t1");
    write(&worktree.path, "new", "unsaved");
    let moved = scene.root.with_file_name("moved");
    fs::rename(&scene.root, &moved).unwrap();
    scene.root = moved;
    let opened = scene.try_open("t1", &[]).unwrap();
    assert!(opened.reused);
    assert_eq!(read(&opened.worktree.path, "new"), "unsaved");
    assert!(scene.with(|git| git.commit_all(&opened.worktree, "x")).unwrap().is_some());
}

#[test]
fn several_starts_are_merged() {
    let scene = Scene::new();
    let base = scene.base().commit;
    let (_, one) = scene.work("one", "1", "1");
    let (_, two) = scene.work("two", "2", "2");
    let opened = scene.try_open("both", &[base.clone(), one.clone(), two.clone(), base]).unwrap();
    assert_eq!((read(&opened.worktree.path, "1"), read(&opened.worktree.path, "2")), ("1".into(), "2".into()));
    let parents = scene.git(&scene.root, &["log", "-1", "--format=%P", opened.start.as_str()]);
    assert_eq!(parents, format!("{one} {two}"));
}

#[test]
fn starts_that_conflict_leave_nothing_behind() {
    let scene = Scene::new();
    let (_, one) = scene.work("one", "a", "1\n");
    let (_, two) = scene.work("two", "a", "2\n");
    let before = scene.git(&scene.root, &["for-each-ref"]);
    let error = scene.try_open("both", &[one, two]).expect_err("they conflict");
    assert!(matches!(&error, Error::Conflict { files, .. } if files == &[std::path::PathBuf::from("a")]), "{error}");
    assert_eq!(scene.git(&scene.root, &["for-each-ref"]), before);
    assert!(!scene.place("both").exists());
}

#[test]
fn a_filter_that_is_missing_and_a_sparse_checkout_are_named() {
    let scene = Scene::new();
    scene.write(".gitattributes", "*.bin filter=lfs\n");
    scene.write("x.bin", "x");
    scene.commit(&scene.root, "large");
    scene.git(&scene.root, &["config", "filter.lfs.process", "git-lfs-that-is-missing filter-process"]);
    scene.git(&scene.root, &["config", "filter.lfs.required", "true"]);
    let start = [scene.base().commit];
    let before = scene.git(&scene.root, &["for-each-ref"]);
    let error = scene.try_open("t1", &start).expect_err("no filter");
    assert!(matches!(error, Error::Filter { .. }), "{error}");
    assert!(!scene.place("t1").exists());
    // No trace shows any more that the directory is ours.
    write(&scene.place("t1"), "precious", "mine");
    assert!(matches!(scene.try_open("t1", &start), Err(Error::Occupied { .. })));
    assert_eq!(read(&scene.place("t1"), "precious"), "mine");
    fs::remove_dir_all(scene.place("t1")).unwrap();
    assert_eq!(scene.git(&scene.root, &["for-each-ref"]), before);
    scene.git(&scene.root, &["config", "--unset", "filter.lfs.required"]);
    scene.git(&scene.root, &["config", "--unset", "filter.lfs.process"]);
    scene.git(&scene.root, &["config", "core.sparseCheckout", "true"]);
    assert!(matches!(scene.try_open("t1", &start), Err(Error::Sparse { .. })));
    assert_eq!(scene.git(&scene.root, &["for-each-ref"]), before);
}

#[test]
fn disk_full_and_unknown_commit_are_named_errors() {
    let scene = Scene::new();
    let (one, two) = (scene.work("one", "1", "1").1, scene.work("two", "2", "2").1);
    let open = |command: &str, code, said: &str| {
        let run = |spec: &ProgramSpec| match &spec.invocation {
            ProgramInvocation::Argv(words) if words.contains(&command.into()) => {
                let stderr =
                    CapturedOutput { head: said.into(), total: said.len() as u64, ..CapturedOutput::default() };
                Ok(ProgramOutcome {
                    exit: ProgramExit::Code(code),
                    stderr,
                    ..ProgramOutcome::success_with_stdout(Vec::new())
                })
            }
            _ => scene.run(spec),
        };
        let git = GitClient::new(GitRepository::discover(&scene.root).unwrap().unwrap(), &run, &scene.environment());
        let (branch, path, start) = (branch("windlass/both"), scene.place("both"), [one.clone(), two.clone()]);
        git.open_worktree(WorktreeRequest {
            branch: &branch,
            path: &path,
            start: &start,
            existing: ExistingBranch::IfOurs,
        })
    };
    let full = open("reset", 128, "error: unable to write file a: No space left on device\n");
    assert!(matches!(full, Err(Error::DiskFull { .. })), "{full:?}");
    let old = open("merge-tree", 129, "usage: git merge-tree <base-tree> <branch1> <branch2>\n");
    assert!(matches!(old, Err(Error::TooOld { .. })), "{old:?}");
    assert!(!scene.place("both").exists());
    assert_eq!(scene.with(|git| git.branches()).unwrap().len(), 2);
}

#[test]
fn a_repository_whose_refs_are_no_files_is_named() {
    let scene = Scene::new();
    let place = scene.path("tables");
    fs::create_dir(&place).unwrap();
    scene.git(&place, &["init", "--quiet", "--ref-format=reftable"]);
    let run = |spec: &ProgramSpec| scene.run(spec);
    let git = GitClient::new(GitRepository::discover(&place).unwrap().unwrap(), &run, &scene.environment());
    assert!(matches!(git.base(None), Err(Error::Reftable { .. })));
}

#[test]
fn foreign_repository_is_refused_by_name() {
    let scene = Scene::new();
    let run = |spec: &ProgramSpec| {
        let mut spec = spec.clone();
        // Git's own switch for tests.
        spec.environment.push(("GIT_TEST_ASSUME_DIFFERENT_OWNER".into(), "1".into()));
        scene.run(&spec)
    };
    let repository = GitRepository::discover(&scene.root).unwrap().unwrap();
    let git = GitClient::new(repository, &run, &scene.environment());
    assert!(matches!(git.base(None), Err(Error::ForeignOwner { .. })));
}

/// Eight at once, each with its own control and owner, like separate processes.
#[test]
fn many_worktrees_open_concurrently() {
    let scene = Scene::new();
    let start = [scene.base().commit];
    let (root, environment) = (scene.root.clone(), scene.environment());
    static NONCE: AtomicU64 = AtomicU64::new(1000);
    let owners = scene.path("owners");
    let open = |name: String| {
        let roster = OwnerLock::acquire(&owners, NONCE.fetch_add(1, Ordering::Relaxed)).unwrap();
        let control = RunControl::new();
        let run = |spec: &ProgramSpec| run_program(spec, &roster, &control, &mut |_, _| {});
        let git = GitClient::new(GitRepository::discover(&root).unwrap().unwrap(), &run, &environment);
        let path = root.join(".windlass/worktrees").join(&name);
        let branch = branch(&format!("windlass/{name}"));
        let opened = git.open_worktree(WorktreeRequest {
            branch: &branch,
            path: &path,
            start: &start,
            existing: ExistingBranch::IfOurs,
        });
        let opened = opened.unwrap_or_else(|error| panic!("{name}: {error}"));
        write(&path, "own", &name);
        git.commit_all(&opened.worktree, &name).unwrap_or_else(|error| panic!("{name}: {error}"));
    };
    std::thread::scope(|scope| {
        for number in 0..8 {
            let open = &open;
            scope.spawn(move || open(format!("t{number}")));
        }
    });
    assert_eq!(scene.git(&scene.root, &["worktree", "list"]).lines().count(), 9);
    for number in 0..8 {
        assert_eq!(scene.git(&scene.root, &["show", &format!("windlass/t{number}:own")]), format!("t{number}"));
    }
}

/// Several processes open the same worktree: one creates it, the others find it.
#[test]
fn the_same_worktree_is_made_once() {
    let scene = Scene::new();
    let start = [scene.base().commit];
    let (root, environment, owners) = (scene.root.clone(), scene.environment(), scene.path("owners"));
    static NONCE: AtomicU64 = AtomicU64::new(2000);
    let made = std::thread::scope(|scope| {
        let open = || {
            let roster = OwnerLock::acquire(&owners, NONCE.fetch_add(1, Ordering::Relaxed)).unwrap();
            let control = RunControl::new();
            let run = |spec: &ProgramSpec| run_program(spec, &roster, &control, &mut |_, _| {});
            let git = GitClient::new(GitRepository::discover(&root).unwrap().unwrap(), &run, &environment);
            let (branch, path) = (branch("windlass/t1"), root.join(".windlass/worktrees/t1"));
            git.open_worktree(WorktreeRequest {
                branch: &branch,
                path: &path,
                start: &start,
                existing: ExistingBranch::IfOurs,
            })
            .unwrap()
            .reused
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(open)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).filter(|reused| !reused).count()
    });
    assert_eq!(made, 1);
}
