//! A user with a repository, a remote, and a configuration that tries to change the meaning of every call.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use windlass_process::{
    CaptureLimits, Environment, OwnerLock, ProgramExit, ProgramInvocation, ProgramOutcome, ProgramSpec,
    ProgramStartError, RunControl, overlay_environment, run_program,
};
use windlass_vcs::git::{
    BaseBranch, BranchName, Error, ExistingBranch, GitClient, GitCommitId, GitRepository, OpenedWorktree, RemoteName,
    Worktree, WorktreeRequest,
};

/// User settings that none of our calls may notice.
const HOSTILE: &str = r#"
[user]
    name = A User
    email = user@example.com
[commit]
    gpgSign = true
    template = /nowhere
    verbose = true
[gpg]
    program = false
[core]
    fsmonitor = MONITOR
    editor = false
    pager = false
    safecrlf = true
    quotePath = true
    askPass = false
[status]
    showUntrackedFiles = no
    relativePaths = true
    short = true
[diff]
    noprefix = true
    external = false
    renames = copies
    mnemonicPrefix = true
[color]
    ui = always
[merge]
    ff = only
    conflictStyle = diff3
[rebase]
    autoStash = true
    autoSquash = true
    updateRefs = true
    rebaseMerges = true
[rerere]
    enabled = true
    autoUpdate = true
[push]
    default = nothing
    followTags = true
    gpgSign = true
    recurseSubmodules = check
[fetch]
    prune = true
    pruneTags = true
[pull]
    rebase = true
[submodule]
    recurse = true
[worktree]
    guessRemote = true
[init]
    defaultBranch = main
[log]
    showSignature = true
[gc]
    auto = 1
"#;

/// Hooks that each leave a mark and fail. The file monitor is a setting, not a hook, but also a program of the user.
const HOOKS: [&str; 7] =
    ["pre-commit", "post-checkout", "pre-push", "commit-msg", "reference-transaction", "post-commit", "monitor"];

pub struct Scene {
    pub directory: tempfile::TempDir,
    pub root: PathBuf,
    pub roster: OwnerLock,
    pub control: RunControl,
}

impl Scene {
    /// A repository on `main` with one commit, and no remote.
    pub fn new() -> Self {
        let scene = Self::empty();
        scene.write("a", "one\ntwo\nthree\nfour\nfive\n");
        scene.write(".gitignore", "*.log\n.windlass/\n");
        scene.commit(&scene.root, "first");
        scene
    }

    /// The same, with a remote that has the commit.
    pub fn with_remote() -> Self {
        let scene = Self::new();
        let remote = scene.path("remote.git");
        scene.git(&scene.root, &["init", "--quiet", "--bare", "-b", "main", remote.to_str().unwrap()]);
        scene.git(&scene.root, &["remote", "add", "origin", remote.to_str().unwrap()]);
        scene.git(&scene.root, &["push", "--quiet", "-u", "origin", "main:main"]);
        scene
    }

    /// A repository without commits.
    pub fn empty() -> Self {
        static NONCE: AtomicU64 = AtomicU64::new(0);
        let directory = tempfile::tempdir().expect("a directory");
        let nonce = NONCE.fetch_add(1, Ordering::Relaxed);
        let roster = OwnerLock::acquire(&directory.path().join("owners"), nonce).expect("a roster");
        let root = fs::canonicalize(directory.path()).unwrap().join("repo");
        for name in ["repo", "home"] {
            fs::create_dir(directory.path().join(name)).unwrap();
        }
        let scene = Self { directory, root, roster, control: RunControl::new() };
        scene.git(&scene.root, &["init", "--quiet", "-b", "main"]);
        let hooks = scene.root.join(".git/hooks");
        for hook in HOOKS {
            let path = hooks.join(hook);
            fs::write(&path, format!("#!/bin/sh\necho {hook} >> {}\nexit 1\n", scene.path("hooked").display()))
                .unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let monitor = hooks.join("monitor");
        fs::write(scene.path("home/.gitconfig"), HOSTILE.replace("MONITOR", monitor.to_str().unwrap())).unwrap();
        scene
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The environment of the user's programs. Its `GIT_*` must not reach git.
    pub fn environment(&self) -> Environment {
        let told = [
            ("PATH", Path::new("/usr/local/bin:/usr/bin:/bin").to_owned()),
            ("HOME", self.path("home")),
            ("XDG_CONFIG_HOME", self.path("home/.config")),
            ("GIT_DIR", "/nowhere".into()),
            ("GIT_WORK_TREE", "/nowhere".into()),
            ("GIT_INDEX_FILE", "/nowhere/index".into()),
            ("GIT_AUTHOR_NAME", "Another Author".into()),
            ("GIT_CONFIG_COUNT", "x".into()),
            ("SSH_ASKPASS", "/nowhere/askpass".into()),
        ];
        told.into_iter().map(|(name, value)| (name.into(), value.into_os_string())).collect()
    }

    /// Runs a program as the code under test does.
    pub fn run(&self, spec: &ProgramSpec) -> Result<ProgramOutcome, ProgramStartError> {
        run_program(spec, &self.roster, &self.control, &mut |_, _| {})
    }

    /// Calls `act` with a client as the code under test has it.
    pub fn with<T>(&self, act: impl FnOnce(&GitClient<'_>) -> T) -> T {
        self.with_remote_named(None, act)
    }

    /// The same with a remote that a person has named.
    pub fn with_remote_named<T>(&self, remote: Option<RemoteName>, act: impl FnOnce(&GitClient<'_>) -> T) -> T {
        let run = |spec: &ProgramSpec| self.run(spec);
        let repository = GitRepository::discover(&self.root).unwrap().expect("a repository");
        act(&GitClient::new(repository, &run, &self.environment()).with_remote(remote))
    }

    /// Runs git as a person or an agent does, without the hostile configuration. It must succeed.
    pub fn git(&self, directory: &Path, words: &[&str]) -> String {
        let (code, out, err) = self.try_git(directory, words);
        assert_eq!(code, Exit::Code(0), "git {words:?} in {}: {err}", directory.display());
        out
    }

    pub fn try_git(&self, directory: &Path, words: &[&str]) -> (ProgramExit, String, String) {
        let clean = vec![
            ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()),
            ("HOME".into(), self.path("no-home").into_os_string()),
        ];
        let told = [
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_AUTHOR_NAME", "An Agent"),
            ("GIT_AUTHOR_EMAIL", "agent@example.com"),
            ("GIT_COMMITTER_NAME", "An Agent"),
            ("GIT_COMMITTER_EMAIL", "agent@example.com"),
            ("GIT_EDITOR", "true"),
            ("GIT_SEQUENCE_EDITOR", "true"),
        ];
        let environment = overlay_environment(&clean, told.map(|(name, value)| (name, OsString::from(value))).to_vec());
        let words = ["git", "-c", "core.hooksPath=/dev/null"].iter().chain(words).map(OsString::from).collect();
        let spec = ProgramSpec {
            timeout: Some(Duration::from_secs(60)),
            grace: Duration::from_secs(1),
            capture: CaptureLimits { head: 1 << 20, tail: 0, spill: None },
            ..ProgramSpec::new(ProgramInvocation::Argv(words), directory, environment)
        };
        let ran = run_program(&spec, &self.roster, &RunControl::new(), &mut |_, _| {}).expect("git starts");
        (ran.exit, ran.stdout.to_text_lossy().trim_end().to_owned(), ran.stderr.to_text_lossy())
    }

    pub fn write(&self, name: &str, text: &str) {
        write(&self.root, name, text);
    }

    /// Commits everything in a directory.
    pub fn commit(&self, directory: &Path, message: &str) -> GitCommitId {
        self.git(directory, &["add", "-A"]);
        self.git(directory, &["commit", "--quiet", "--allow-empty", "-m", message]);
        self.head(directory)
    }

    pub fn head(&self, directory: &Path) -> GitCommitId {
        self.commit_at(directory, "HEAD")
    }

    pub fn commit_at(&self, directory: &Path, name: &str) -> GitCommitId {
        GitCommitId::new(&self.git(directory, &["rev-parse", &format!("{name}^{{commit}}")])).unwrap()
    }

    pub fn base(&self) -> BaseBranch {
        self.with(|git| git.fetch_base(None)).expect("a base")
    }

    pub fn place(&self, name: &str) -> PathBuf {
        self.root.join(".windlass/worktrees").join(name)
    }

    pub fn try_open(&self, name: &str, start: &[GitCommitId]) -> Result<OpenedWorktree, Error> {
        let branch = branch(&format!("windlass/{name}"));
        let path = self.place(name);
        self.with(|git| {
            git.open_worktree(WorktreeRequest { branch: &branch, path: &path, start, existing: ExistingBranch::IfOurs })
        })
    }

    /// Opens a worktree of the base.
    pub fn open(&self, name: &str) -> Worktree {
        let base = self.base();
        self.try_open(name, &[base.commit]).expect("a worktree").worktree
    }

    /// The same, with a file committed in it.
    pub fn work(&self, name: &str, file: &str, text: &str) -> (Worktree, GitCommitId) {
        let worktree = self.open(name);
        write(&worktree.path, file, text);
        let commit = self.with(|git| git.commit_all(&worktree, "work")).expect("it commits").expect("something");
        (worktree, commit)
    }

    /// Returns whether a hook of the user ran.
    pub fn was_hooked(&self) -> bool {
        self.path("hooked").exists()
    }
}

pub fn branch(name: &str) -> BranchName {
    BranchName::new(name).unwrap()
}

pub fn write(directory: &Path, name: &str, text: &str) {
    let path = directory.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

pub fn read(directory: &Path, name: &str) -> String {
    fs::read_to_string(directory.join(name)).unwrap()
}
