//! Kills during any git operation, and the recovery from them.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use windlass_process::{ProgramExit, ProgramInvocation, ProgramOutcome, ProgramSpec};
use windlass_vcs::git::{
    BranchDisposal, BranchRebaseOutcome, Error, ExistingBranch, GitClient, GitRepository, WorktreeCloseOutcome,
    WorktreeRequest,
};

use crate::fixture::{GitFixture, branch_name, read_file, write_file};

/// Runs an action with a git client that cancels every call after a number of calls.
fn run_with_failing_git<T>(fixture: &GitFixture, calls: usize, action: impl FnOnce(&GitClient<'_>) -> T) -> T {
    let remaining = std::cell::Cell::new(calls);
    let run = |spec: &ProgramSpec| {
        if remaining.get() == 0 {
            return Ok(ProgramOutcome {
                exit: ProgramExit::Cancelled,
                ..ProgramOutcome::success_with_stdout(Vec::new())
            });
        }
        remaining.set(remaining.get() - 1);
        fixture.run_spec(spec)
    };
    let repository = GitRepository::discover(&fixture.root).unwrap().unwrap();
    action(&GitClient::new(repository, &run, &fixture.hostile_environment()))
}

#[test]
fn interrupted_open_continues_after_any_call() {
    for calls in 0..12 {
        let fixture = GitFixture::new();
        let start = [fixture.fetch_base_branch().commit];
        let (name, path) = (branch_name("windlass/t1"), fixture.worktree_path("t1"));
        let request = WorktreeRequest { branch: &name, path: &path, start: &start, existing: ExistingBranch::IfOurs };
        let first = run_with_failing_git(&fixture, calls, |git| git.open_worktree(request));
        let second = fixture
            .with_client(|git| git.open_worktree(request))
            .unwrap_or_else(|error| panic!("after {calls}: {error}"));
        assert_eq!(second.reused, first.is_ok(), "after {calls}");
        assert_eq!(fixture.run_git(&path, &["status", "--porcelain", "--branch"]), "## windlass/t1");
    }
}

/// Each state that a kill of `git worktree add` can leave.
#[test]
fn worktree_interrupted_at_any_creation_step_is_recreated() {
    for step in 0..7 {
        let fixture = GitFixture::new();
        let start = fixture.fetch_base_branch().commit;
        fixture.run_git(&fixture.root, &["update-ref", "refs/windlass/start/windlass/t1", start.as_str()]);
        fixture.run_git(&fixture.root, &["branch", "windlass/t1"]);
        let (admin, path) = (fixture.root.join(".git/worktrees/t1"), fixture.worktree_path("t1"));
        fs::create_dir_all(&admin).unwrap();
        if step >= 1 {
            fs::write(admin.join("locked"), "initializing").unwrap();
        }
        if step >= 2 {
            fs::write(admin.join("gitdir"), [path.join(".git").as_os_str().as_bytes(), b"\n"].concat()).unwrap();
        }
        if step >= 3 {
            fs::create_dir_all(&path).unwrap();
        }
        if step >= 4 {
            fs::write(path.join(".git"), [b"gitdir: ", admin.as_os_str().as_bytes(), b"\n"].concat()).unwrap();
        }
        if step >= 5 {
            fs::write(admin.join("commondir"), "../..\n").unwrap();
            fs::write(admin.join("HEAD"), "ref: refs/heads/windlass/t1\n").unwrap();
        }
        if step >= 6 {
            fs::write(admin.join("index.lock"), "half").unwrap();
            fs::write(path.join("a"), "ha").unwrap();
        }
        let opened = fixture.try_open_worktree("t1", &[start]).unwrap_or_else(|error| panic!("step {step}: {error}"));
        assert!(!opened.reused);
        assert_eq!(fixture.run_git(&path, &["status", "--porcelain", "--branch"]), "## windlass/t1", "step {step}");
        assert!(fixture.with_client(|git| git.commit_all(&opened.worktree, "x")).unwrap().is_none(), "step {step}");
    }
}

/// A real kill of git, a number of milliseconds after its start.
#[test]
fn git_may_be_killed_while_it_makes_a_worktree() {
    let fixture = GitFixture::new();
    for number in 0..300 {
        fixture.write_file(&format!("many/{}/{number}", number % 7), "some text\n");
    }
    let start = [fixture.commit_files(&fixture.root, "many files")];
    for after in [1, 2, 3, 5, 8, 12, 20] {
        let run = |spec: &ProgramSpec| {
            let mut spec = spec.clone();
            let is_creation = |words: &[OsString]| ["add", "reset"].iter().any(|word| words.contains(&word.into()));
            if matches!(&spec.invocation, ProgramInvocation::Argv(words) if is_creation(words)) {
                (spec.timeout, spec.grace) = (Some(Duration::from_millis(after)), Duration::ZERO);
            }
            fixture.run_spec(&spec)
        };
        let name = format!("t{after}");
        let (branch, path) = (branch_name(&format!("windlass/{name}")), fixture.worktree_path(&name));
        let request = WorktreeRequest { branch: &branch, path: &path, start: &start, existing: ExistingBranch::IfOurs };
        let creation_mark = fixture.root.join(format!(".git/windlass/{name}.making"));
        let repository = || GitRepository::discover(&fixture.root).unwrap().unwrap();
        // A panic simulates the crash, because the code that handles an error must not run.
        let killed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let run = |spec: &ProgramSpec| {
                let ran = run(spec);
                let was_killed = matches!(&ran, Ok(ran) if ran.exit == ProgramExit::TimedOut);
                if was_killed { std::panic::resume_unwind(Box::new("killed")) } else { ran }
            };
            GitClient::new(repository(), &run, &fixture.hostile_environment()).open_worktree(request).map(|_| ())
        }));
        assert_eq!(killed.is_err(), creation_mark.exists(), "after {after} ms");
        let opened = fixture
            .with_client(|git| git.open_worktree(request))
            .unwrap_or_else(|error| panic!("after {after} ms: {error}"));
        assert_eq!(opened.reused, killed.is_ok());
        assert_eq!(fixture.run_git(&path, &["status", "--porcelain", "--branch"]), format!("## windlass/{name}"));
        assert!(!creation_mark.exists());
    }
}

/// The worktree lacks only the last step of git.
#[test]
fn worktree_left_with_initializing_lock_is_unlocked_and_reused() {
    let fixture = GitFixture::new();
    let worktree = fixture.open_base_worktree("t1");
    write_file(&worktree.path, "new", "work");
    fs::write(fixture.root.join(".git/worktrees/t1/locked"), "initializing\n").unwrap();
    assert!(fixture.try_open_worktree("t1", &[]).unwrap().reused);
    assert_eq!(read_file(&worktree.path, "new"), "work");
    assert!(!fixture.root.join(".git/worktrees/t1/locked").exists());
}

#[test]
fn interrupted_rebase_continues_after_any_call() {
    for calls in 0..20 {
        let fixture = GitFixture::new();
        let (worktree, _) = fixture.commit_work("t1", "b", "1");
        write_file(&worktree.path, "new", "untracked");
        fixture.write_file("c", "base");
        let base = fixture.commit_files(&fixture.root, "the base moves");
        let first = run_with_failing_git(&fixture, calls, |git| git.rebase_worktree(&worktree, &base));
        fixture.try_open_worktree("t1", &[]).unwrap();
        let second = fixture.with_client(|git| git.rebase_worktree(&worktree, &base));
        assert!(
            matches!(second, Ok(BranchRebaseOutcome::Done { .. } | BranchRebaseOutcome::UpToDate)),
            "after {calls}: {first:?}, {second:?}"
        );
        assert_eq!(fixture.run_git(&worktree.path, &["status", "--porcelain"]), "?? new", "after {calls}");
        assert_eq!(fixture.resolve_commit(&fixture.root, "windlass/t1~1"), base);
    }
}

/// A kill of git during a checkout: some files are new, and the lock of git remains.
#[test]
fn half_moved_tree_is_moved_completely() {
    let fixture = GitFixture::new();
    let (worktree, _) = fixture.commit_work("t1", "b", "1");
    fixture.write_file("c", "base");
    fixture.write_file("a", "base");
    let base = fixture.commit_files(&fixture.root, "the base moves");
    // The kill happens before the step. The test then performs half of the step.
    let mut calls = 0;
    let move_mark = fixture.root.join(".git/worktrees/t1/windlass-moving");
    while !move_mark.exists() {
        calls += 1;
        let _ = run_with_failing_git(&fixture, calls, |git| git.rebase_worktree(&worktree, &base));
    }
    write_file(&worktree.path, "c", "ba");
    fs::remove_file(worktree.path.join("a")).unwrap();
    fs::write(fixture.root.join(".git/worktrees/t1/index.lock"), "half").unwrap();
    assert_eq!(fixture.with_client(|git| git.commit_all(&worktree, "no")).unwrap(), None);
    assert_eq!((read_file(&worktree.path, "a"), read_file(&worktree.path, "c")), ("base".into(), "base".into()));
    assert_eq!(fixture.resolve_commit(&fixture.root, "windlass/t1~1"), base);
    assert!(!move_mark.exists());
}

/// A real kill of git during a checkout of the new base.
#[test]
fn git_may_be_killed_while_it_moves_a_tree() {
    let fixture = GitFixture::new();
    let (worktree, _) = fixture.commit_work("t1", "b", "1");
    write_file(&worktree.path, "new", "untracked");
    for (round, after) in [1, 2, 3, 4, 6, 9, 14].into_iter().enumerate() {
        for number in 0..200 {
            fixture.write_file(&format!("many{}/{number}", round % 2), &format!("text of round {round}\n"));
        }
        let base = fixture.commit_files(&fixture.root, "the base moves");
        let run = |spec: &ProgramSpec| {
            let mut spec = spec.clone();
            if matches!(&spec.invocation, ProgramInvocation::Argv(words) if words.contains(&"reset".into())) {
                (spec.timeout, spec.grace) = (Some(Duration::from_millis(after)), Duration::ZERO);
            }
            fixture.run_spec(&spec)
        };
        let repository = GitRepository::discover(&fixture.root).unwrap().unwrap();
        let _ = GitClient::new(repository, &run, &fixture.hostile_environment()).rebase_worktree(&worktree, &base);
        assert_eq!(fixture.with_client(|git| git.commit_all(&worktree, "no")).map_err(|error| error.to_string()), {
            // The first round commits the untracked work. Later rounds commit nothing.
            let tip = fixture.resolve_commit(&fixture.root, "windlass/t1");
            Ok((round == 0).then_some(tip))
        });
        assert_eq!(fixture.run_git(&worktree.path, &["status", "--porcelain"]), "", "after {after} ms");
        assert_eq!(fixture.run_git(&fixture.root, &["merge-base", "windlass/t1", "main"]), base.as_str());
        assert_eq!(fixture.run_git(&fixture.root, &["diff", "--name-only", "main", "windlass/t1"]), "b\nnew");
    }
}

#[test]
fn stale_git_lock_is_removed_only_in_own_worktree() {
    let fixture = GitFixture::new();
    let worktree = fixture.open_base_worktree("t1");
    write_file(&worktree.path, "new", "work");
    fs::write(fixture.root.join(".git/index.lock"), "").unwrap();
    let lock_path = fixture.root.join(".git/worktrees/t1/index.lock");
    fs::write(&lock_path, "").unwrap();
    assert!(fixture.try_open_worktree("t1", &[]).unwrap().reused && !lock_path.exists());
    fs::write(&lock_path, "").unwrap();
    assert!(fixture.with_client(|git| git.commit_all(&worktree, "work")).unwrap().is_some());
    assert!(fixture.root.join(".git/index.lock").exists());
    // Another process has the lock open.
    let lock = fs::File::create(fixture.root.join(".git/refs/heads/windlass/t1.lock")).unwrap();
    write_file(&worktree.path, "new", "more");
    let error = fixture.with_client(|git| git.commit_all(&worktree, "work")).expect_err("the branch is locked");
    assert!(matches!(&error, Error::Locked { path, .. } if path.ends_with("t1.lock")), "{error:?}");
    assert!(error.hint().is_some());
    drop(lock);
}

/// Runs an action while a git process works in a directory.
fn run_while_git_runs<T>(fixture: &GitFixture, directory: &Path, action: impl FnOnce() -> T) -> T {
    let (started, go) = (directory.join("started"), directory.join("go"));
    let alias = "alias.busy=!touch started; while [ ! -e go ]; do sleep 0.01; done; rm started go";
    std::thread::scope(|scope| {
        let busy = scope.spawn(|| fixture.run_git(directory, &["-c", alias, "busy"]));
        while !started.exists() && !busy.is_finished() {
            std::thread::yield_now();
        }
        let acted = action();
        fs::write(&go, "").unwrap();
        busy.join().unwrap();
        acted
    })
}

/// Creates a lock of this age.
fn create_lock(fixture: &GitFixture, name: &str, age: Duration) -> PathBuf {
    let lock = fixture.root.join(".git").join(name);
    let file = fs::File::create(&lock).unwrap();
    let now = file.metadata().unwrap().modified().unwrap();
    file.set_modified(now - age).unwrap();
    lock
}

/// Adds a worktree that does not belong to Windlass.
fn add_foreign_worktree(fixture: &GitFixture) -> PathBuf {
    let path = fixture.worktree_path("elsewhere");
    fixture.run_git(&fixture.root, &["worktree", "add", "-q", "--detach", path.to_str().unwrap()]);
    path
}

/// Git locks shared files only for moments. A process that started after the lock does not hold it.
#[test]
fn stale_ref_lock_left_by_crash_is_removed() {
    let fixture = GitFixture::new();
    let (worktree, other) = (fixture.open_base_worktree("t1"), add_foreign_worktree(&fixture));
    let age = Duration::from_secs(60);
    write_file(&worktree.path, "new", "work");
    let lock_path = create_lock(&fixture, "refs/heads/windlass/t1.lock", age);
    let committed =
        run_while_git_runs(&fixture, &other, || fixture.with_client(|git| git.commit_all(&worktree, "work")));
    assert!(committed.unwrap().is_some() && !lock_path.exists());
    let lock_path = create_lock(&fixture, "packed-refs.lock", age);
    fixture.with_client(|git| git.close_worktree(&worktree, &BranchDisposal::Delete)).unwrap();
    assert!(!lock_path.exists());
}

/// An invisible process may hold a new lock; a process in another worktree may hold an old one.
#[test]
fn ref_lock_with_possible_holder_stays() {
    let fixture = GitFixture::new();
    let (worktree, other) = (fixture.open_base_worktree("t1"), add_foreign_worktree(&fixture));
    write_file(&worktree.path, "new", "work");
    let commit = || fixture.with_client(|git| git.commit_all(&worktree, "work"));
    let name = "refs/heads/windlass/t1.lock";
    // The lock ages during the wait.
    let (committed, held) = run_while_git_runs(&fixture, &other, || {
        let held = create_lock(&fixture, name, Duration::ZERO);
        (commit(), held)
    });
    assert!(matches!(&committed, Err(Error::Locked { path, holder: Some(_), .. }) if *path == held), "{committed:?}");
    assert!(held.exists());
    // The lock never ages on a disk whose clock is ahead of the clock of this machine.
    let file = fs::File::open(&held).unwrap();
    let modified = file.metadata().unwrap().modified().unwrap();
    file.set_modified(modified + Duration::from_secs(600)).unwrap();
    let committed = commit();
    assert!(matches!(&committed, Err(Error::Locked { path, .. }) if *path == held), "{committed:?}");
}

/// A live git in the worktree may hold the lock: the lock stays, and the error names the process.
#[test]
fn worktree_lock_with_possible_holder_stays() {
    let fixture = GitFixture::new();
    let worktree = fixture.open_base_worktree("t1");
    let lock = fixture.root.join(".git/worktrees/t1/index.lock");
    let error = run_while_git_runs(&fixture, &worktree.path, || {
        fs::write(&lock, "").unwrap();
        fixture.try_open_worktree("t1", &[])
    });
    assert!(matches!(&error, Err(Error::Locked { path, holder: Some(_), .. }) if *path == lock), "{error:?}");
    assert!(lock.exists());
    assert!(fixture.try_open_worktree("t1", &[]).unwrap().reused && !lock.exists());
}

/// Each state that a kill during a removal can leave.
#[test]
fn interrupted_removal_is_finished() {
    for (keeps_admin, is_made_again) in [(true, false), (false, false), (true, true), (false, true)] {
        let fixture = GitFixture::new();
        let worktree = fixture.open_base_worktree("t1");
        let removal_path = worktree.path.with_file_name(".going-t1");
        fs::rename(&worktree.path, &removal_path).unwrap();
        fs::remove_file(removal_path.join(".git")).unwrap();
        if !keeps_admin {
            fs::remove_dir_all(fixture.root.join(".git/worktrees/t1")).unwrap();
        }
        if is_made_again {
            fixture.open_base_worktree("t1");
            write_file(&worktree.path, "new", "work");
        }
        fixture.with_client(|git| git.finish_removal(&worktree.path)).unwrap();
        assert!(!removal_path.exists(), "{keeps_admin} {is_made_again}");
        assert_eq!(fixture.root.join(".git/worktrees/t1").exists(), is_made_again, "{keeps_admin}");
        if is_made_again {
            assert_eq!(fixture.run_git(&worktree.path, &["status", "--porcelain"]), "?? new");
        }
    }
}

/// A directory that cannot be removed has the same effect as a kill.
#[test]
fn failed_worktree_removal_leaves_it_intact_and_retryable() {
    let fixture = GitFixture::new();
    let worktree = fixture.open_base_worktree("t1");
    let removal_path = worktree.path.with_file_name(".going-t1");
    // A file cannot be removed as a directory.
    fs::write(&removal_path, "in the way").unwrap();
    assert!(fixture.with_client(|git| git.close_worktree(&worktree, &BranchDisposal::Keep)).is_err());
    assert_eq!(fixture.run_git(&worktree.path, &["status", "--porcelain"]), "", "it is whole");
    fs::remove_file(&removal_path).unwrap();
    assert_eq!(
        fixture.with_client(|git| git.close_worktree(&worktree, &BranchDisposal::Keep)).unwrap(),
        WorktreeCloseOutcome::Removed
    );
}
