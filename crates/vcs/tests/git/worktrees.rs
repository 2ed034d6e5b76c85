//! Worktrees: creation, reuse, and refusals with their reasons.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

use windlass_process::{
    CapturedOutput, OwnerLock, ProgramExit, ProgramInvocation, ProgramOutcome, ProgramSpec, RunControl, run_program,
};
use windlass_vcs::git::{Error, ExistingBranch, GitClient, GitRepository, WorktreeRequest};

use crate::fixture::{GitFixture, branch_name, read_file, write_file};

#[test]
fn worktree_is_created_and_reused_with_unsaved_files() {
    let fixture = GitFixture::new();
    let base = fixture.fetch_base_branch();
    let opened = fixture.try_open_worktree("t1", std::slice::from_ref(&base.commit)).unwrap();
    assert!(!opened.reused);
    assert_eq!((&opened.start, opened.worktree.path.as_path()), (&base.commit, fixture.worktree_path("t1").as_path()));
    assert_eq!(fixture.run_git(&opened.worktree.path, &["branch", "--show-current"]), "windlass/t1");
    write_file(&opened.worktree.path, "new", "unsaved");
    let again = fixture.try_open_worktree("t1", &[]).unwrap();
    assert!(again.reused);
    assert_eq!((again.start, again.worktree), (base.commit, opened.worktree));
    assert_eq!(read_file(&fixture.worktree_path("t1"), "new"), "unsaved");
    assert!(!fixture.has_run_hook());
}

#[test]
fn branches_that_are_not_ours_are_refused_by_name() {
    let fixture = GitFixture::new();
    let start = [fixture.fetch_base_branch().commit];
    fixture.run_git(&fixture.root, &["branch", "windlass/t1"]);
    assert!(matches!(fixture.try_open_worktree("t1", &start), Err(Error::BranchTaken { .. })));
    let (name, first, second) = (branch_name("windlass/t1"), fixture.worktree_path("t1"), fixture.worktree_path("t2"));
    let request = |path| WorktreeRequest { branch: &name, path, start: &start, existing: ExistingBranch::Take };
    let opened = fixture.with_client(|git| git.open_worktree(request(&first))).unwrap();
    assert!(!opened.reused);
    // The branch is already checked out in another worktree.
    let error = fixture.with_client(|git| git.open_worktree(request(&second))).expect_err("it is checked out");
    assert!(matches!(&error, Error::CheckedOut { path, .. } if *path == fixture.worktree_path("t1")), "{error}");
    // A branch has the name of a directory of branches.
    fixture.run_git(&fixture.root, &["branch", "deep"]);
    let below = branch_name("deep/er");
    let (path, existing) = (fixture.worktree_path("t3"), ExistingBranch::IfOurs);
    let error = fixture
        .with_client(|git| git.open_worktree(WorktreeRequest { branch: &below, path: &path, start: &start, existing }));
    assert!(matches!(&error, Err(Error::BranchTaken { branch }) if branch.as_str() == "deep"), "{error:?}");
    assert_eq!(fixture.run_git(&fixture.root, &["for-each-ref", "refs/windlass/start/deep"]), "");
}

#[test]
fn occupied_worktree_path_is_refused_and_left_untouched() {
    let fixture = GitFixture::new();
    let start = [fixture.fetch_base_branch().commit];
    write_file(&fixture.worktree_path("t1"), "precious", "mine");
    assert!(matches!(fixture.try_open_worktree("t1", &start), Err(Error::Occupied { .. })));
    assert_eq!(read_file(&fixture.worktree_path("t1"), "precious"), "mine");
    // The agent has turned the worktree into its own repository.
    let worktree = fixture.open_base_worktree("t2");
    fs::remove_file(worktree.path.join(".git")).unwrap();
    fixture.run_git(&worktree.path, &["init", "--quiet"]);
    assert!(matches!(fixture.try_open_worktree("t2", &start), Err(Error::Occupied { .. })));
    assert!(matches!(fixture.with_client(|git| git.commit_all(&worktree, "x")), Err(Error::Occupied { .. })));
    fs::create_dir_all(fixture.worktree_path("t3")).unwrap();
    assert!(fixture.try_open_worktree("t3", &start).is_ok(), "an empty directory is nothing");
}

#[test]
fn worktree_without_git_link_refuses_commit_until_reopened() {
    let fixture = GitFixture::new();
    let worktree = fixture.open_base_worktree("t1");
    write_file(&worktree.path, "new", "work");
    fs::remove_file(worktree.path.join(".git")).unwrap();
    assert!(fixture.with_client(|git| git.commit_all(&worktree, "x")).is_err());
    assert!(fixture.try_open_worktree("t1", &[]).unwrap().reused);
    let commit = fixture.with_client(|git| git.commit_all(&worktree, "x")).unwrap().expect("work");
    assert_eq!(commit, fixture.resolve_commit(&fixture.root, "windlass/t1"));
}

#[test]
fn locked_worktree_is_refused_with_lock_reason() {
    let fixture = GitFixture::new();
    let worktree = fixture.open_base_worktree("t1");
    fixture.run_git(&fixture.root, &["worktree", "lock", "--reason", "on a stick", worktree.path.to_str().unwrap()]);
    let error = fixture.try_open_worktree("t1", &[]).expect_err("it is locked");
    assert!(matches!(&error, Error::WorktreeLocked { reason, .. } if reason == "on a stick"), "{error}");
    fs::remove_dir_all(&worktree.path).unwrap();
    assert!(matches!(fixture.try_open_worktree("t1", &[]), Err(Error::WorktreeLocked { .. })));
}

#[test]
fn locked_worktree_elsewhere_is_kept() {
    let fixture = GitFixture::new();
    let worktree = fixture.open_base_worktree("t1");
    let stick = fixture.path("stick");
    fixture.run_git(&fixture.root, &["worktree", "move", worktree.path.to_str().unwrap(), stick.to_str().unwrap()]);
    fixture.run_git(&fixture.root, &["worktree", "lock", stick.to_str().unwrap()]);
    fs::remove_dir_all(&stick).unwrap();
    assert!(matches!(fixture.try_open_worktree("t1", &[]), Err(Error::WorktreeLocked { .. })));
    assert!(fixture.root.join(".git/worktrees/t1").exists());
}

#[test]
fn vanished_worktree_is_recreated_from_branch_without_pruning_others() {
    let fixture = GitFixture::new();
    let (worktree, commit) = fixture.commit_work("t1", "done", "work");
    let users = fixture.path("users");
    fixture.run_git(&fixture.root, &["worktree", "add", "--quiet", "-b", "theirs", users.to_str().unwrap()]);
    fs::remove_dir_all(&users).unwrap();
    fs::remove_dir_all(&worktree.path).unwrap();
    assert!(matches!(fixture.with_client(|git| git.commit_all(&worktree, "x")), Err(Error::Vanished { .. })));
    let opened = fixture.try_open_worktree("t1", &[]).unwrap();
    assert!(!opened.reused);
    assert_eq!(fixture.read_head(&opened.worktree.path), commit);
    assert_eq!(read_file(&opened.worktree.path, "done"), "work");
    assert!(fixture.run_git(&fixture.root, &["worktree", "list"]).contains("theirs"));
}

#[test]
fn moved_project_reopens_worktrees_with_unsaved_work() {
    let mut fixture = GitFixture::new();
    let worktree = fixture.open_base_worktree("t1");
    write_file(&worktree.path, "new", "unsaved");
    let moved = fixture.root.with_file_name("moved");
    fs::rename(&fixture.root, &moved).unwrap();
    fixture.root = moved;
    let opened = fixture.try_open_worktree("t1", &[]).unwrap();
    assert!(opened.reused);
    assert_eq!(read_file(&opened.worktree.path, "new"), "unsaved");
    assert!(fixture.with_client(|git| git.commit_all(&opened.worktree, "x")).unwrap().is_some());
}

#[test]
fn several_starts_are_merged() {
    let fixture = GitFixture::new();
    let base = fixture.fetch_base_branch().commit;
    let (_, one) = fixture.commit_work("one", "1", "1");
    let (_, two) = fixture.commit_work("two", "2", "2");
    let opened = fixture.try_open_worktree("both", &[base.clone(), one.clone(), two.clone(), base]).unwrap();
    assert_eq!(
        (read_file(&opened.worktree.path, "1"), read_file(&opened.worktree.path, "2")),
        ("1".into(), "2".into())
    );
    let parents = fixture.run_git(&fixture.root, &["log", "-1", "--format=%P", opened.start.as_str()]);
    assert_eq!(parents, format!("{one} {two}"));
}

#[test]
fn starts_that_conflict_leave_nothing_behind() {
    let fixture = GitFixture::new();
    let (_, one) = fixture.commit_work("one", "a", "1\n");
    let (_, two) = fixture.commit_work("two", "a", "2\n");
    let before = fixture.run_git(&fixture.root, &["for-each-ref"]);
    let error = fixture.try_open_worktree("both", &[one, two]).expect_err("they conflict");
    assert!(matches!(&error, Error::Conflict { files, .. } if files == &[std::path::PathBuf::from("a")]), "{error}");
    assert_eq!(fixture.run_git(&fixture.root, &["for-each-ref"]), before);
    assert!(!fixture.worktree_path("both").exists());
}

#[test]
fn missing_filter_or_sparse_checkout_is_refused_without_changes() {
    let fixture = GitFixture::new();
    fixture.write_file(".gitattributes", "*.bin filter=lfs\n");
    fixture.write_file("x.bin", "x");
    fixture.commit_files(&fixture.root, "large");
    fixture.run_git(&fixture.root, &["config", "filter.lfs.process", "git-lfs-that-is-missing filter-process"]);
    fixture.run_git(&fixture.root, &["config", "filter.lfs.required", "true"]);
    let start = [fixture.fetch_base_branch().commit];
    let before = fixture.run_git(&fixture.root, &["for-each-ref"]);
    let error = fixture.try_open_worktree("t1", &start).expect_err("no filter");
    assert!(matches!(error, Error::Filter { .. }), "{error}");
    assert!(!fixture.worktree_path("t1").exists());
    // The directory has no trace of Windlass any more.
    write_file(&fixture.worktree_path("t1"), "precious", "mine");
    assert!(matches!(fixture.try_open_worktree("t1", &start), Err(Error::Occupied { .. })));
    assert_eq!(read_file(&fixture.worktree_path("t1"), "precious"), "mine");
    fs::remove_dir_all(fixture.worktree_path("t1")).unwrap();
    assert_eq!(fixture.run_git(&fixture.root, &["for-each-ref"]), before);
    fixture.run_git(&fixture.root, &["config", "--unset", "filter.lfs.required"]);
    fixture.run_git(&fixture.root, &["config", "--unset", "filter.lfs.process"]);
    fixture.run_git(&fixture.root, &["config", "core.sparseCheckout", "true"]);
    assert!(matches!(fixture.try_open_worktree("t1", &start), Err(Error::Sparse { .. })));
    assert_eq!(fixture.run_git(&fixture.root, &["for-each-ref"]), before);
}

#[test]
fn disk_full_and_unknown_commit_are_named_errors() {
    let fixture = GitFixture::new();
    let (one, two) = (fixture.commit_work("one", "1", "1").1, fixture.commit_work("two", "2", "2").1);
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
            _ => fixture.run_spec(spec),
        };
        let git = GitClient::new(
            GitRepository::discover(&fixture.root).unwrap().unwrap(),
            &run,
            &fixture.hostile_environment(),
        );
        let (branch, path, start) =
            (branch_name("windlass/both"), fixture.worktree_path("both"), [one.clone(), two.clone()]);
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
    assert!(!fixture.worktree_path("both").exists());
    assert_eq!(fixture.with_client(|git| git.list_branches()).unwrap().len(), 2);
}

#[test]
fn reftable_repository_is_refused_with_specific_error() {
    let fixture = GitFixture::new();
    let place = fixture.path("tables");
    fs::create_dir(&place).unwrap();
    fixture.run_git(&place, &["init", "--quiet", "--ref-format=reftable"]);
    let run = |spec: &ProgramSpec| fixture.run_spec(spec);
    let git = GitClient::new(GitRepository::discover(&place).unwrap().unwrap(), &run, &fixture.hostile_environment());
    assert!(matches!(git.fetch_base(None), Err(Error::Reftable { .. })));
}

#[test]
fn foreign_repository_is_refused_by_name() {
    let fixture = GitFixture::new();
    let run = |spec: &ProgramSpec| {
        let mut spec = spec.clone();
        // Git's own switch for tests.
        spec.environment.push(("GIT_TEST_ASSUME_DIFFERENT_OWNER".into(), "1".into()));
        fixture.run_spec(&spec)
    };
    let repository = GitRepository::discover(&fixture.root).unwrap().unwrap();
    let git = GitClient::new(repository, &run, &fixture.hostile_environment());
    assert!(matches!(git.fetch_base(None), Err(Error::ForeignOwner { .. })));
}

/// Eight concurrent clients, each with its own control and owner lock, like separate processes.
#[test]
fn many_worktrees_open_concurrently() {
    let fixture = GitFixture::new();
    let start = [fixture.fetch_base_branch().commit];
    let (root, environment) = (fixture.root.clone(), fixture.hostile_environment());
    static NONCE: AtomicU64 = AtomicU64::new(1000);
    let owners = fixture.path("owners");
    let open = |name: String| {
        let owner_lock = OwnerLock::acquire(&owners, NONCE.fetch_add(1, Ordering::Relaxed)).unwrap();
        let control = RunControl::new();
        let run = |spec: &ProgramSpec| run_program(spec, &owner_lock, &control, &mut |_, _| {});
        let git = GitClient::new(GitRepository::discover(&root).unwrap().unwrap(), &run, &environment);
        let path = root.join(".windlass/worktrees").join(&name);
        let branch = branch_name(&format!("windlass/{name}"));
        let opened = git.open_worktree(WorktreeRequest {
            branch: &branch,
            path: &path,
            start: &start,
            existing: ExistingBranch::IfOurs,
        });
        let opened = opened.unwrap_or_else(|error| panic!("{name}: {error}"));
        write_file(&path, "own", &name);
        git.commit_all(&opened.worktree, &name).unwrap_or_else(|error| panic!("{name}: {error}"));
    };
    std::thread::scope(|scope| {
        for number in 0..8 {
            let open = &open;
            scope.spawn(move || open(format!("t{number}")));
        }
    });
    assert_eq!(fixture.run_git(&fixture.root, &["worktree", "list"]).lines().count(), 9);
    for number in 0..8 {
        assert_eq!(fixture.run_git(&fixture.root, &["show", &format!("windlass/t{number}:own")]), format!("t{number}"));
    }
}

/// Several processes open the same worktree: one creates it, the others find it.
#[test]
fn worktree_opened_concurrently_is_created_once() {
    let fixture = GitFixture::new();
    let start = [fixture.fetch_base_branch().commit];
    let (root, environment, owners) = (fixture.root.clone(), fixture.hostile_environment(), fixture.path("owners"));
    static NONCE: AtomicU64 = AtomicU64::new(2000);
    let created_count = std::thread::scope(|scope| {
        let open = || {
            let owner_lock = OwnerLock::acquire(&owners, NONCE.fetch_add(1, Ordering::Relaxed)).unwrap();
            let control = RunControl::new();
            let run = |spec: &ProgramSpec| run_program(spec, &owner_lock, &control, &mut |_, _| {});
            let git = GitClient::new(GitRepository::discover(&root).unwrap().unwrap(), &run, &environment);
            let (branch, path) = (branch_name("windlass/t1"), root.join(".windlass/worktrees/t1"));
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
    assert_eq!(created_count, 1);
}
