//! The survey of a project: its tests, its git repository, and the installed agents.
//!
//! Nothing is started. Large files and special files are not read.

use std::path::{Path, PathBuf};

use windlass_process::file;
use windlass_runner::test_command;
use windlass_vcs::git::has_git_entry;

use crate::agents;

/// The largest build file that is read, in bytes.
const MAX_BUILD_FILE: u64 = 1024 * 1024;

/// The tests, agents and repository of a project.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ProjectSurvey {
    /// The command that runs the tests.
    pub tests: Option<&'static str>,
    /// The installed agents.
    pub agents: Vec<&'static str>,
    pub git: Option<FoundRepository>,
}

/// A git repository.
#[derive(Debug, PartialEq, Eq)]
pub struct FoundRepository {
    /// The branch that work starts from: the remote's default if known, else the one that is checked out. Only an ordinary name
    /// is taken.
    pub branch: Option<String>,
    /// Whether it has the remote `origin`, to which the usual delivery pushes branches.
    pub has_origin: bool,
}

/// Surveys a project, and the agents in the directories of programs.
pub fn survey_project(root: &Path, programs: &[PathBuf]) -> ProjectSurvey {
    ProjectSurvey {
        tests: test_command::detect_test_command(root),
        agents: agents::list_installed_agents(programs),
        git: survey_git_repository(root),
    }
}

fn survey_git_repository(root: &Path) -> Option<FoundRepository> {
    let git = root.ancestors().find(|directory| has_git_entry(directory))?.join(".git");
    let named =
        |file: &str, prefix: &str| Some(read_small_file(&git.join(file))?.trim().strip_prefix(prefix)?.to_owned());
    let branch =
        named("refs/remotes/origin/HEAD", "ref: refs/remotes/origin/").or_else(|| named("HEAD", "ref: refs/heads/"));
    let ordinary = |name: &String| {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '/' | '-');
        name.len() <= 200 && name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(plain)
    };
    let settings = read_small_file(&git.join("config")).unwrap_or_default();
    let has_origin = settings.lines().any(|line| line.trim() == "[remote \"origin\"]");
    Some(FoundRepository { branch: branch.filter(ordinary), has_origin })
}

fn read_small_file(path: &Path) -> Option<String> {
    file::read_text_file(path, MAX_BUILD_FILE)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn survey_branch_prefers_remote_default_over_checked_out_branch() {
        let root = tempfile::tempdir().unwrap();
        let branch = |head: &str| {
            fs::create_dir_all(root.path().join(".git")).unwrap();
            fs::write(root.path().join(".git/HEAD"), head).unwrap();
            survey_git_repository(root.path()).unwrap().branch
        };
        assert_eq!(branch("ref: refs/heads/main\n"), Some("main".into()));
        assert_eq!(branch("ref: refs/heads/feature/x\n"), Some("feature/x".into()));
        assert_eq!(branch("0123456789abcdef\n"), None);
        assert_eq!(branch("ref: refs/heads/a: [b]\nhooks: {}\n"), None);

        // A person on a feature branch still starts from the remote's default.
        fs::create_dir_all(root.path().join(".git/refs/remotes/origin")).unwrap();
        fs::write(root.path().join(".git/refs/remotes/origin/HEAD"), "ref: refs/remotes/origin/trunk\n").unwrap();
        assert_eq!(branch("ref: refs/heads/feature/x\n"), Some("trunk".into()));
    }

    #[test]
    fn survey_finds_remote_named_origin_only() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join(".git")).unwrap();
        for (name, expected) in [("fork", false), ("origin", true)] {
            fs::write(root.path().join(".git/config"), format!("[remote \"{name}\"]\n\turl = x\n")).unwrap();
            assert_eq!(survey_git_repository(root.path()).unwrap().has_origin, expected, "{name}");
        }
    }
}
