//! A project in a git repository, with an agent that is a script.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{CommandOutput, TestWorld};

/// A project in a repository with one commit on `main`.
pub struct GitProject {
    pub world: TestWorld,
}

impl GitProject {
    /// Creates the project and trusts its configuration, unless the configuration names files that do not exist yet.
    pub fn new(config: &str) -> Self {
        let repo = Self::untrusted(config);
        repo.world.run(&["trust", "--yes"]);
        repo
    }

    /// Creates the project without trust.
    pub fn untrusted(config: &str) -> Self {
        let world = TestWorld::empty();
        let repo = Self { world };
        repo.git(&["init", "-q", "-b", "main"]);
        repo.git(&["config", "user.name", "Ann"]);
        repo.git(&["config", "user.email", "ann@example.org"]);
        repo.world.write("a.txt", "one\ntwo\nthree\n");
        repo.world.run_ok(&["init"]);
        repo.world.write(".windlass/config.yaml", config);
        repo.git(&["add", "."]);
        repo.git(&["commit", "-q", "-m", "Begin"]);
        repo
    }

    /// Creates the project and pushes it to a bare repository.
    pub fn with_remote(config: &str) -> Self {
        Self::new(config).push_to_remote()
    }

    pub fn push_to_remote(self) -> Self {
        self.git(&["init", "-q", "--bare", "-b", "main", "../remote.git"]);
        self.git(&["remote", "add", "origin", "../remote.git"]);
        self.git(&["push", "-q", "origin", "main"]);
        self
    }

    pub fn remote_path(&self) -> PathBuf {
        self.world.path("../remote.git")
    }

    /// Sets the script of the agent, which may ignore the prompt on its standard input.
    pub fn set_agent(&self, script: &str) -> &Self {
        self.write_program("agent", &format!("{script}\necho '<promise>COMPLETE</promise>'"));
        self
    }

    pub fn write_program(&self, name: &str, script: &str) -> PathBuf {
        let path = self.world.program_directory().join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    pub fn git(&self, words: &[&str]) -> String {
        self.git_in(&self.world.directory, words)
    }

    pub fn git_in(&self, directory: &Path, words: &[&str]) -> String {
        let output = self.world.run_command(self.world.program("git").args(words).current_dir(directory));
        assert_eq!(output.code, 0, "git {words:?}\n{output}");
        output.stdout.trim_end().to_owned()
    }

    /// Runs the agent on all ready tasks.
    pub fn run_ready_tasks(&self) -> CommandOutput {
        self.world.run(&["run", "--trust", "--agent", "command:agent"])
    }

    pub fn add_task(&self, goal: &str) -> &Self {
        self.world.run_ok(&["task", "add", goal]);
        self
    }

    pub fn show_task(&self, id: &str) -> Value {
        self.world.json(&["task", "show", id])
    }

    /// Returns the content of a file in a branch or commit, such as `main:a.txt`.
    pub fn show_file(&self, revision: &str) -> String {
        self.git(&["show", revision])
    }

    /// Returns the events of a type.
    pub fn events_of_type(&self, kind: &str) -> Vec<Value> {
        self.world.json_lines(&["events", "--type", kind])
    }

    /// Writes a program that runs a script in another clone, and pushes the result to `main` as a commit of another author.
    pub fn push_from_other_clone(&self, script: &str) -> PathBuf {
        let remote = self.remote_path();
        let script = format!(
            "set -e\nrm -rf '{0}.other'; git clone -q '{0}' '{0}.other'; cd '{0}.other'\n\
             git config user.name Bob; git config user.email bob@example.org\n\
             {script}\ngit add .; git commit -q -m 'By others'; git push -q origin main",
            remote.display()
        );
        self.write_program("others", &script)
    }
}
