//! A user with a repository, a remote, and a hostile git configuration.

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

/// User settings that must not affect any git call of Windlass.
const HOSTILE_CONFIG: &str = r#"
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

/// Programs of the user that write a mark and fail: git hooks, and the file monitor, which is a setting.
const USER_HOOKS: [&str; 7] =
    ["pre-commit", "post-checkout", "pre-push", "commit-msg", "reference-transaction", "post-commit", "monitor"];

pub struct GitFixture {
    pub directory: tempfile::TempDir,
    pub root: PathBuf,
    pub owner_lock: OwnerLock,
    pub control: RunControl,
}

impl GitFixture {
    /// Creates a repository on `main` with one commit, and without a remote.
    pub fn new() -> Self {
        let fixture = Self::without_commits();
        fixture.write_file("a", "one\ntwo\nthree\nfour\nfive\n");
        fixture.write_file(".gitignore", "*.log\n.windlass/\n");
        fixture.commit_files(&fixture.root, "first");
        fixture
    }

    /// Creates the same repository, with a remote that has the commit.
    pub fn with_remote() -> Self {
        let fixture = Self::new();
        let remote = fixture.path("remote.git");
        fixture.run_git(&fixture.root, &["init", "--quiet", "--bare", "-b", "main", remote.to_str().unwrap()]);
        fixture.run_git(&fixture.root, &["remote", "add", "origin", remote.to_str().unwrap()]);
        fixture.run_git(&fixture.root, &["push", "--quiet", "-u", "origin", "main:main"]);
        fixture
    }

    /// Creates a repository without commits.
    pub fn without_commits() -> Self {
        static NONCE: AtomicU64 = AtomicU64::new(0);
        let directory = tempfile::tempdir().expect("a directory");
        let nonce = NONCE.fetch_add(1, Ordering::Relaxed);
        let owner_lock = OwnerLock::acquire(&directory.path().join("owners"), nonce).expect("an owner lock");
        let root = fs::canonicalize(directory.path()).unwrap().join("repo");
        for name in ["repo", "home"] {
            fs::create_dir(directory.path().join(name)).unwrap();
        }
        let fixture = Self { directory, root, owner_lock, control: RunControl::new() };
        fixture.run_git(&fixture.root, &["init", "--quiet", "-b", "main"]);
        let hooks = fixture.root.join(".git/hooks");
        for hook in USER_HOOKS {
            let path = hooks.join(hook);
            fs::write(&path, format!("#!/bin/sh\necho {hook} >> {}\nexit 1\n", fixture.path("hooked").display()))
                .unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let monitor = hooks.join("monitor");
        fs::write(fixture.path("home/.gitconfig"), HOSTILE_CONFIG.replace("MONITOR", monitor.to_str().unwrap()))
            .unwrap();
        fixture
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Returns the environment of the user's programs. Its `GIT_*` variables must not reach git.
    pub fn hostile_environment(&self) -> Environment {
        let variables = [
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
        variables.into_iter().map(|(name, value)| (name.into(), value.into_os_string())).collect()
    }

    /// Runs a program for the code under test.
    pub fn run_spec(&self, spec: &ProgramSpec) -> Result<ProgramOutcome, ProgramStartError> {
        run_program(spec, &self.owner_lock, &self.control, &mut |_, _| {})
    }

    /// Runs an action with the client of the code under test.
    pub fn with_client<T>(&self, action: impl FnOnce(&GitClient<'_>) -> T) -> T {
        self.with_client_for_remote(None, action)
    }

    /// Runs an action with a client for a remote that a person has named.
    pub fn with_client_for_remote<T>(&self, remote: Option<RemoteName>, action: impl FnOnce(&GitClient<'_>) -> T) -> T {
        let run = |spec: &ProgramSpec| self.run_spec(spec);
        let repository = GitRepository::discover(&self.root).unwrap().expect("a repository");
        action(&GitClient::new(repository, &run, &self.hostile_environment()).with_remote(remote))
    }

    /// Runs git for a person or an agent, without the hostile configuration. The command must succeed.
    pub fn run_git(&self, directory: &Path, words: &[&str]) -> String {
        let (code, out, err) = self.try_run_git(directory, words);
        assert_eq!(code, ProgramExit::Code(0), "git {words:?} in {}: {err}", directory.display());
        out
    }

    pub fn try_run_git(&self, directory: &Path, words: &[&str]) -> (ProgramExit, String, String) {
        let clean = vec![
            ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()),
            ("HOME".into(), self.path("no-home").into_os_string()),
        ];
        let variables = [
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_AUTHOR_NAME", "An Agent"),
            ("GIT_AUTHOR_EMAIL", "agent@example.com"),
            ("GIT_COMMITTER_NAME", "An Agent"),
            ("GIT_COMMITTER_EMAIL", "agent@example.com"),
            ("GIT_EDITOR", "true"),
            ("GIT_SEQUENCE_EDITOR", "true"),
        ];
        let environment =
            overlay_environment(&clean, variables.map(|(name, value)| (name, OsString::from(value))).to_vec());
        let words = ["git", "-c", "core.hooksPath=/dev/null"].iter().chain(words).map(OsString::from).collect();
        let spec = ProgramSpec {
            timeout: Some(Duration::from_secs(60)),
            grace: Duration::from_secs(1),
            capture: CaptureLimits { head: 1 << 20, tail: 0, spill: None },
            ..ProgramSpec::new(ProgramInvocation::Argv(words), directory, environment)
        };
        let outcome = run_program(&spec, &self.owner_lock, &RunControl::new(), &mut |_, _| {}).expect("git starts");
        (outcome.exit, outcome.stdout.to_text_lossy().trim_end().to_owned(), outcome.stderr.to_text_lossy())
    }

    pub fn write_file(&self, name: &str, text: &str) {
        write_file(&self.root, name, text);
    }

    /// Commits all files in a directory.
    pub fn commit_files(&self, directory: &Path, message: &str) -> GitCommitId {
        self.run_git(directory, &["add", "-A"]);
        self.run_git(directory, &["commit", "--quiet", "--allow-empty", "-m", message]);
        self.read_head(directory)
    }

    pub fn read_head(&self, directory: &Path) -> GitCommitId {
        self.resolve_commit(directory, "HEAD")
    }

    pub fn resolve_commit(&self, directory: &Path, name: &str) -> GitCommitId {
        GitCommitId::new(&self.run_git(directory, &["rev-parse", &format!("{name}^{{commit}}")])).unwrap()
    }

    pub fn fetch_base_branch(&self) -> BaseBranch {
        self.with_client(|git| git.fetch_base(None)).expect("a base")
    }

    pub fn worktree_path(&self, name: &str) -> PathBuf {
        self.root.join(".windlass/worktrees").join(name)
    }

    pub fn try_open_worktree(&self, name: &str, start: &[GitCommitId]) -> Result<OpenedWorktree, Error> {
        let branch = branch_name(&format!("windlass/{name}"));
        let path = self.worktree_path(name);
        self.with_client(|git| {
            git.open_worktree(WorktreeRequest { branch: &branch, path: &path, start, existing: ExistingBranch::IfOurs })
        })
    }

    /// Opens a worktree of the base.
    pub fn open_base_worktree(&self, name: &str) -> Worktree {
        let base = self.fetch_base_branch();
        self.try_open_worktree(name, &[base.commit]).expect("a worktree").worktree
    }

    /// Opens a worktree of the base, and commits a file in it.
    pub fn commit_work(&self, name: &str, file: &str, text: &str) -> (Worktree, GitCommitId) {
        let worktree = self.open_base_worktree(name);
        write_file(&worktree.path, file, text);
        let commit = self.with_client(|git| git.commit_all(&worktree, "work")).expect("it commits").expect("something");
        (worktree, commit)
    }

    /// Returns whether a hook of the user ran.
    pub fn has_run_hook(&self) -> bool {
        self.path("hooked").exists()
    }
}

pub fn branch_name(name: &str) -> BranchName {
    BranchName::new(name).unwrap()
}

pub fn write_file(directory: &Path, name: &str, text: &str) {
    let path = directory.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

pub fn read_file(directory: &Path, name: &str) -> String {
    fs::read_to_string(directory.join(name)).unwrap()
}
