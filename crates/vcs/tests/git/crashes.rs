//! Kills at any point, and recovery.

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

use crate::scene::{Scene, branch, read, write};

/// Runs with a git that fails after a number of calls: every later one is cancelled.
fn until<T>(scene: &Scene, calls: usize, act: impl FnOnce(&GitClient<'_>) -> T) -> T {
    let left = std::cell::Cell::new(calls);
    let run = |spec: &ProgramSpec| {
        if left.get() == 0 {
            return Ok(ProgramOutcome {
                exit: ProgramExit::Cancelled,
                ..ProgramOutcome::success_with_stdout(Vec::new())
            });
        }
        left.set(left.get() - 1);
        scene.run(spec)
    };
    let repository = GitRepository::discover(&scene.root).unwrap().unwrap();
    act(&GitClient::new(repository, &run, &scene.environment()))
}

#[test]
fn interrupted_open_continues_after_any_call() {
    for calls in 0..12 {
        let scene = Scene::new();
        let start = [scene.base().commit];
        let (name, path) = (branch("windlass/t1"), scene.place("t1"));
        let wanted = WorktreeRequest { branch: &name, path: &path, start: &start, existing: ExistingBranch::IfOurs };
        let first = until(&scene, calls, |git| git.open_worktree(wanted));
        let second =
            scene.with(|git| git.open_worktree(wanted)).unwrap_or_else(|error| panic!("after {calls}: {error}"));
        assert_eq!(second.reused, first.is_ok(), "after {calls}");
        assert_eq!(scene.git(&path, &["status", "--porcelain", "--branch"]), "## windlass/t1");
    }
}

/// The states in which a kill of `git worktree add` leaves a repository, one after another.
#[test]
fn a_half_made_worktree_is_made_again() {
    for step in 0..7 {
        let scene = Scene::new();
        let start = scene.base().commit;
        scene.git(&scene.root, &["update-ref", "refs/windlass/start/windlass/t1", start.as_str()]);
        scene.git(&scene.root, &["branch", "windlass/t1"]);
        let (admin, path) = (scene.root.join(".git/worktrees/t1"), scene.place("t1"));
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
        let opened = scene.try_open("t1", &[start]).unwrap_or_else(|error| panic!("step {step}: {error}"));
        assert!(!opened.reused);
        assert_eq!(scene.git(&path, &["status", "--porcelain", "--branch"]), "## windlass/t1", "step {step}");
        assert!(scene.with(|git| git.commit_all(&opened.worktree, "x")).unwrap().is_none(), "step {step}");
    }
}

/// A real kill, at any action after a number of milliseconds.
#[test]
fn git_may_be_killed_while_it_makes_a_worktree() {
    let scene = Scene::new();
    for number in 0..300 {
        scene.write(&format!("many/{}/{number}", number % 7), "some text\n");
    }
    let start = [scene.commit(&scene.root, "many files")];
    for after in [1, 2, 3, 5, 8, 12, 20] {
        let run = |spec: &ProgramSpec| {
            let mut spec = spec.clone();
            let makes = |words: &[OsString]| ["add", "reset"].iter().any(|word| words.contains(&word.into()));
            if matches!(&spec.invocation, Invocation::Argv(words) if makes(words)) {
                (spec.timeout, spec.grace) = (Some(Duration::from_millis(after)), Duration::ZERO);
            }
            scene.run(&spec)
        };
        let name = format!("t{after}");
        let (branch, path) = (branch(&format!("windlass/{name}")), scene.place(&name));
        let wanted = WorktreeRequest { branch: &branch, path: &path, start: &start, existing: ExistingBranch::IfOurs };
        let making = scene.root.join(format!(".git/windlass/{name}.making"));
        let repository = || GitRepository::discover(&scene.root).unwrap().unwrap();
        // The panic stands for the crash: code that handles the error must not run.
        let killed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let run = |spec: &ProgramSpec| {
                let ran = run(spec);
                let was_killed = matches!(&ran, Ok(ran) if ran.exit == Exit::TimedOut);
                if was_killed { std::panic::resume_unwind(Box::new("killed")) } else { ran }
            };
            GitClient::new(repository(), &run, &scene.environment()).open_worktree(wanted).map(|_| ())
        }));
        assert_eq!(killed.is_err(), making.exists(), "after {after} ms");
        let opened =
            scene.with(|git| git.open_worktree(wanted)).unwrap_or_else(|error| panic!("after {after} ms: {error}"));
        assert_eq!(opened.reused, killed.is_ok());
        assert_eq!(scene.git(&path, &["status", "--porcelain", "--branch"]), format!("## windlass/{name}"));
        assert!(!making.exists());
    }
}

/// The worktree lacks only the last step of git.
#[test]
fn a_worktree_that_only_lacks_the_last_step_is_kept() {
    let scene = Scene::new();
    let worktree = scene.open("t1");
    write(&worktree.path, "new", "work");
    fs::write(scene.root.join(".git/worktrees/t1/locked"), "initializing\n").unwrap();
    assert!(scene.try_open("t1", &[]).unwrap().reused);
    assert_eq!(read(&worktree.path, "new"), "work");
    assert!(!scene.root.join(".git/worktrees/t1/locked").exists());
}

#[test]
fn interrupted_rebase_continues_after_any_call() {
    for calls in 0..20 {
        let scene = Scene::new();
        let (worktree, _) = scene.work("t1", "b", "1");
        write(&worktree.path, "new", "untracked");
        scene.write("c", "base");
        let base = scene.commit(&scene.root, "the base moves");
        let first = until(&scene, calls, |git| git.rebase_worktree(&worktree, &base));
        scene.try_open("t1", &[]).unwrap();
        let second = scene.with(|git| git.rebase_worktree(&worktree, &base));
        assert!(matches!(second, Ok(Rebased::Done { .. } | Rebased::UpToDate)), "after {calls}: {first:?}, {second:?}");
        assert_eq!(scene.git(&worktree.path, &["status", "--porcelain"]), "?? new", "after {calls}");
        assert_eq!(scene.commit_at(&scene.root, "windlass/t1~1"), base);
    }
}

/// A kill of git while it moves the tree: some files are new, and its lock remains.
#[test]
fn half_moved_tree_is_moved_completely() {
    let scene = Scene::new();
    let (worktree, _) = scene.work("t1", "b", "1");
    scene.write("c", "base");
    scene.write("a", "base");
    let base = scene.commit(&scene.root, "the base moves");
    // The kill precedes the step; the test then does half of the step by hand.
    let mut calls = 0;
    let moving = scene.root.join(".git/worktrees/t1/windlass-moving");
    while !moving.exists() {
        calls += 1;
        let _ = until(&scene, calls, |git| git.rebase_worktree(&worktree, &base));
    }
    write(&worktree.path, "c", "ba");
    fs::remove_file(worktree.path.join("a")).unwrap();
    fs::write(scene.root.join(".git/worktrees/t1/index.lock"), "half").unwrap();
    assert_eq!(scene.with(|git| git.commit_all(&worktree, "no")).unwrap(), None);
    assert_eq!((read(&worktree.path, "a"), read(&worktree.path, "c")), ("base".into(), "base".into()));
    assert_eq!(scene.commit_at(&scene.root, "windlass/t1~1"), base);
    assert!(!moving.exists());
}

/// A real kill while git moves the tree onto another base.
#[test]
fn git_may_be_killed_while_it_moves_a_tree() {
    let scene = Scene::new();
    let (worktree, _) = scene.work("t1", "b", "1");
    write(&worktree.path, "new", "untracked");
    for (round, after) in [1, 2, 3, 4, 6, 9, 14].into_iter().enumerate() {
        for number in 0..200 {
            scene.write(&format!("many{}/{number}", round % 2), &format!("text of round {round}\n"));
        }
        let base = scene.commit(&scene.root, "the base moves");
        let run = |spec: &ProgramSpec| {
            let mut spec = spec.clone();
            if matches!(&spec.invocation, Invocation::Argv(words) if words.contains(&"reset".into())) {
                (spec.timeout, spec.grace) = (Some(Duration::from_millis(after)), Duration::ZERO);
            }
            scene.run(&spec)
        };
        let repository = GitRepository::discover(&scene.root).unwrap().unwrap();
        let _ = GitClient::new(repository, &run, &scene.environment()).rebase_worktree(&worktree, &base);
        assert_eq!(scene.with(|git| git.commit_all(&worktree, "no")).map_err(|error| error.to_string()), {
            // Untracked work is committed once, and nothing else.
            let tip = scene.commit_at(&scene.root, "windlass/t1");
            Ok((round == 0).then_some(tip))
        });
        assert_eq!(scene.git(&worktree.path, &["status", "--porcelain"]), "", "after {after} ms");
        assert_eq!(scene.git(&scene.root, &["merge-base", "windlass/t1", "main"]), base.as_str());
        assert_eq!(scene.git(&scene.root, &["diff", "--name-only", "main", "windlass/t1"]), "b\nnew");
    }
}

#[test]
fn a_lock_of_git_is_removed_only_in_what_is_ours() {
    let scene = Scene::new();
    let worktree = scene.open("t1");
    write(&worktree.path, "new", "work");
    fs::write(scene.root.join(".git/index.lock"), "").unwrap();
    let left = scene.root.join(".git/worktrees/t1/index.lock");
    fs::write(&left, "").unwrap();
    assert!(scene.try_open("t1", &[]).unwrap().reused && !left.exists());
    fs::write(&left, "").unwrap();
    assert!(scene.with(|git| git.commit_all(&worktree, "work")).unwrap().is_some());
    assert!(scene.root.join(".git/index.lock").exists());
    // Another process has the lock open.
    let lock = fs::File::create(scene.root.join(".git/refs/heads/windlass/t1.lock")).unwrap();
    write(&worktree.path, "new", "more");
    let error = scene.with(|git| git.commit_all(&worktree, "work")).expect_err("the branch is locked");
    assert!(matches!(&error, Error::Locked { path, .. } if path.ends_with("t1.lock")), "{error:?}");
    assert!(error.hint().is_some());
    drop(lock);
}

/// Runs `act` while a git works in a directory.
fn while_busy<T>(scene: &Scene, directory: &Path, act: impl FnOnce() -> T) -> T {
    let (started, go) = (directory.join("started"), directory.join("go"));
    let alias = "alias.busy=!touch started; while [ ! -e go ]; do sleep 0.01; done; rm started go";
    std::thread::scope(|scope| {
        let busy = scope.spawn(|| scene.git(directory, &["-c", alias, "busy"]));
        while !started.exists() && !busy.is_finished() {
            std::thread::yield_now();
        }
        let acted = act();
        fs::write(&go, "").unwrap();
        busy.join().unwrap();
        acted
    })
}

/// Creates a lock of this age.
fn lock(scene: &Scene, name: &str, ago: Duration) -> PathBuf {
    let lock = scene.root.join(".git").join(name);
    let file = fs::File::create(&lock).unwrap();
    let now = file.metadata().unwrap().modified().unwrap();
    file.set_modified(now - ago).unwrap();
    lock
}

/// A worktree that is not ours.
fn elsewhere(scene: &Scene) -> PathBuf {
    let path = scene.place("elsewhere");
    scene.git(&scene.root, &["worktree", "add", "-q", "--detach", path.to_str().unwrap()]);
    path
}

/// Changes lock shared files only for moments. A process that started after the lock does not hold it.
#[test]
fn a_lock_on_refs_that_a_crash_has_left_is_removed() {
    let scene = Scene::new();
    let (worktree, other) = (scene.open("t1"), elsewhere(&scene));
    let ago = Duration::from_secs(60);
    write(&worktree.path, "new", "work");
    let left = lock(&scene, "refs/heads/windlass/t1.lock", ago);
    let committed = while_busy(&scene, &other, || scene.with(|git| git.commit_all(&worktree, "work")));
    assert!(committed.unwrap().is_some() && !left.exists());
    let left = lock(&scene, "packed-refs.lock", ago);
    scene.with(|git| git.close_worktree(&worktree, &BranchDisposal::Delete)).unwrap();
    assert!(!left.exists());
}

/// An invisible process may hold a new lock; a process in another worktree may hold an old one.
#[test]
fn ref_lock_with_possible_holder_stays() {
    let scene = Scene::new();
    let (worktree, other) = (scene.open("t1"), elsewhere(&scene));
    write(&worktree.path, "new", "work");
    let commit = || scene.with(|git| git.commit_all(&worktree, "work"));
    let name = "refs/heads/windlass/t1.lock";
    // The lock ages during the wait.
    let (committed, held) = while_busy(&scene, &other, || {
        let held = lock(&scene, name, Duration::ZERO);
        (commit(), held)
    });
    assert!(matches!(&committed, Err(Error::Locked { path, holder: Some(_), .. }) if *path == held), "{committed:?}");
    assert!(held.exists());
    // The lock never ages on a disk whose clock is ahead of ours.
    let file = fs::File::open(&held).unwrap();
    let made = file.metadata().unwrap().modified().unwrap();
    file.set_modified(made + Duration::from_secs(600)).unwrap();
    let committed = commit();
    assert!(matches!(&committed, Err(Error::Locked { path, .. }) if *path == held), "{committed:?}");
}

/// A live git in the worktree may hold the lock: the lock stays, and the error names the process.
#[test]
fn worktree_lock_with_possible_holder_stays() {
    let scene = Scene::new();
    let worktree = scene.open("t1");
    let lock = scene.root.join(".git/worktrees/t1/index.lock");
    let error = while_busy(&scene, &worktree.path, || {
        fs::write(&lock, "").unwrap();
        scene.try_open("t1", &[])
    });
    assert!(matches!(&error, Err(Error::Locked { path, holder: Some(_), .. }) if *path == lock), "{error:?}");
    assert!(lock.exists());
    assert!(scene.try_open("t1", &[]).unwrap().reused && !lock.exists());
}

/// The states in which a kill in the middle of a removal leaves a repository.
#[test]
fn interrupted_removal_is_finished() {
    for (keeps_admin, is_made_again) in [(true, false), (false, false), (true, true), (false, true)] {
        let scene = Scene::new();
        let worktree = scene.open("t1");
        let going = worktree.path.with_file_name(".going-t1");
        fs::rename(&worktree.path, &going).unwrap();
        fs::remove_file(going.join(".git")).unwrap();
        if !keeps_admin {
            fs::remove_dir_all(scene.root.join(".git/worktrees/t1")).unwrap();
        }
        if is_made_again {
            scene.open("t1");
            write(&worktree.path, "new", "work");
        }
        scene.with(|git| git.finish_removal(&worktree.path)).unwrap();
        assert!(!going.exists(), "{keeps_admin} {is_made_again}");
        assert_eq!(scene.root.join(".git/worktrees/t1").exists(), is_made_again, "{keeps_admin}");
        if is_made_again {
            assert_eq!(scene.git(&worktree.path, &["status", "--porcelain"]), "?? new");
        }
    }
}

/// A directory that cannot be removed has the same effect as a kill.
#[test]
fn what_is_left_of_a_removal_is_no_worktree() {
    let scene = Scene::new();
    let worktree = scene.open("t1");
    let going = worktree.path.with_file_name(".going-t1");
    // A file cannot be removed as a directory.
    fs::write(&going, "in the way").unwrap();
    assert!(scene.with(|git| git.close_worktree(&worktree, &BranchDisposal::Keep)).is_err());
    assert_eq!(scene.git(&worktree.path, &["status", "--porcelain"]), "", "it is whole");
    fs::remove_file(&going).unwrap();
    assert_eq!(scene.with(|git| git.close(&worktree, &BranchAfter::Kept)).unwrap(), Closed::Gone);
}
