//! A project in a git repository, with an agent that is a script.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Ran, World};

/// A repository with one commit on `main`, and a project in it.
pub struct Repo {
    pub world: World,
}

impl Repo {
    /// Trusts the configuration, which may be empty, unless it names files that do not exist yet.
    pub fn new(config: &str) -> Self {
        let repo = Self::untrusted(config);
        repo.world.run(&["trust", "--yes"]);
        repo
    }

    /// Creates the project without trust.
    pub fn untrusted(config: &str) -> Self {
        let world = World::empty();
        let repo = Self { world };
        repo.git(&["init", "-q", "-b", "main"]);
        repo.git(&["config", "user.name", "Ann"]);
        repo.git(&["config", "user.email", "ann@example.org"]);
        repo.world.write("a.txt", "one\ntwo\nthree\n");
        repo.world.ok(&["init"]);
        repo.world.write(".windlass/config.yaml", config);
        repo.git(&["add", "."]);
        repo.git(&["commit", "-q", "-m", "Begin"]);
        repo
    }

    /// Creates the project and pushes it to a bare repository.
    pub fn with_remote(config: &str) -> Self {
        Self::new(config).pushed()
    }

    pub fn pushed(self) -> Self {
        self.git(&["init", "-q", "--bare", "-b", "main", "../remote.git"]);
        self.git(&["remote", "add", "origin", "../remote.git"]);
        self.git(&["push", "-q", "origin", "main"]);
        self
    }

    pub fn remote(&self) -> PathBuf {
        self.world.path("../remote.git")
    }

    /// Sets the agent's script. It reads its prompt from standard input, or not.
    pub fn agent(&self, script: &str) -> &Self {
        self.program("agent", &format!("{script}\necho '<promise>COMPLETE</promise>'"));
        self
    }

    pub fn program(&self, name: &str, script: &str) -> PathBuf {
        let path = self.world.programs().join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    pub fn git(&self, words: &[&str]) -> String {
        self.git_in(&self.world.directory, words)
    }

    pub fn git_in(&self, directory: &Path, words: &[&str]) -> String {
        let ran = self.world.finish(self.world.program("git").args(words).current_dir(directory));
        assert_eq!(ran.code, 0, "git {words:?}\n{ran}");
        ran.stdout.trim_end().to_owned()
    }

    /// Works on all ready tasks.
    pub fn run(&self) -> Ran {
        self.world.run(&["run", "--trust", "--agent", "command:agent"])
    }

    pub fn add(&self, goal: &str) -> &Self {
        self.world.ok(&["task", "add", goal]);
        self
    }

    pub fn task(&self, id: &str) -> Value {
        self.world.json(&["task", "show", id])
    }

    /// A file of a branch, or of a commit.
    pub fn file(&self, place: &str) -> String {
        self.git(&["show", place])
    }

    /// The events of a type.
    pub fn events(&self, kind: &str) -> Vec<Value> {
        self.world.lines(&["events", "--type", kind])
    }

    /// Pushes a commit of another author to the remote's main, by these commands in a clone of it.
    pub fn push_from_other_clone(&self, script: &str) -> PathBuf {
        let remote = self.remote();
        let script = format!(
            "set -e\nrm -rf '{0}.other'; git clone -q '{0}' '{0}.other'; cd '{0}.other'\n\
             git config user.name Bob; git config user.email bob@example.org\n\
             {script}\ngit add .; git commit -q -m 'By others'; git push -q origin main",
            remote.display()
        );
        self.program("others", &script)
    }
}
