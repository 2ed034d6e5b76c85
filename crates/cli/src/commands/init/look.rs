//! What a project shows to somebody who only looks: its tests, its git repository, and the agents on this machine.
//!
//! Nothing is started, and files are read only as far as they are small and plain.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::agents;
use crate::small_file;

/// Larger build files are not read.
const SIZE: u64 = 1024 * 1024;

/// What was found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The command that runs the tests.
    pub tests: Option<&'static str>,
    /// Agents that are installed.
    pub agents: Vec<&'static str>,
    pub git: Option<Git>,
}

/// A git repository.
#[derive(Debug, PartialEq, Eq)]
pub struct Git {
    /// The branch that work starts from: the remote's default where that is known, else the one that is checked out.
    /// Only an ordinary name is taken.
    pub branch: Option<String>,
}

/// Looks at a project, and for agents in the directories of programs.
pub fn look(root: &Path, programs: &[PathBuf]) -> Found {
    Found { tests: tests(root), agents: agents::installed(programs), git: git(root) }
}

fn tests(root: &Path) -> Option<&'static str> {
    let has = |name: &str| root.join(name).is_file();
    if has("Cargo.toml") {
        return Some("cargo test");
    }
    if let Some(tests) = package_tests(root) {
        return Some(tests);
    }
    if has("pyproject.toml") || has("pytest.ini") || has("setup.cfg") {
        return Some("pytest");
    }
    if has("go.mod") {
        return Some("go test ./...");
    }
    let makefile = ["GNUmakefile", "makefile", "Makefile"].iter().find_map(|name| read(&root.join(name)))?;
    makefile.lines().any(|line| line.starts_with("test:")).then_some("make test")
}

/// The tests of a `package.json` that has some, by the package manager whose lock file is there.
fn package_tests(root: &Path) -> Option<&'static str> {
    let package: Value = serde_json::from_str(&read(&root.join("package.json"))?).ok()?;
    let script = package.get("scripts")?.get("test")?.as_str()?;
    if script.trim().is_empty() || script.contains("no test specified") {
        return None;
    }
    let managers = [
        ("pnpm-lock.yaml", "pnpm test"),
        ("yarn.lock", "yarn test"),
        ("bun.lock", "bun run test"),
        ("bun.lockb", "bun run test"),
    ];
    let managed = managers.iter().find(|(lock, _)| root.join(lock).is_file());
    Some(managed.map_or("npm test", |(_, command)| command))
}

fn git(root: &Path) -> Option<Git> {
    let git = root.ancestors().map(|directory| directory.join(".git")).find(|git| git.symlink_metadata().is_ok())?;
    let named = |file: &str, prefix: &str| Some(read(&git.join(file))?.trim().strip_prefix(prefix)?.to_owned());
    let branch =
        named("refs/remotes/origin/HEAD", "ref: refs/remotes/origin/").or_else(|| named("HEAD", "ref: refs/heads/"));
    let ordinary = |name: &String| {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '/' | '-');
        name.len() <= 200 && name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(plain)
    };
    Some(Git { branch: branch.filter(ordinary) })
}

fn read(file: &Path) -> Option<String> {
    small_file::text(file, SIZE)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn check(files: &[(&str, &str)], tests: Option<&str>) {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(root.path().join(name), text).unwrap();
        }
        assert_eq!(look(root.path(), &[]).tests, tests, "{files:?}");
    }

    #[test]
    fn the_tests_that_a_project_shows() {
        check(&[], None);
        check(&[("Cargo.toml", ""), ("Makefile", "test:\n")], Some("cargo test"));
        check(&[("package.json", r#"{"scripts": {"test": "vitest"}}"#)], Some("npm test"));
        check(&[("package.json", r#"{"scripts": {"test": "vitest"}}"#), ("pnpm-lock.yaml", "")], Some("pnpm test"));
        check(&[("package.json", r#"{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}"#)], None);
        check(&[("package.json", r#"{"scripts": {"build": "tsc"}}"#), ("go.mod", "")], Some("go test ./..."));
        check(&[("package.json", "not json")], None);
        check(&[("pytest.ini", "")], Some("pytest"));
        check(&[("Makefile", "all: build\ntest: all\n\t./t\n")], Some("make test"));
        check(&[("Makefile", "all:\n\ttest: x\n")], None);
    }

    #[test]
    fn the_branch_that_work_starts_from() {
        let root = tempfile::tempdir().unwrap();
        let branch = |head: &str| {
            fs::create_dir_all(root.path().join(".git")).unwrap();
            fs::write(root.path().join(".git/HEAD"), head).unwrap();
            git(root.path()).unwrap().branch
        };
        assert_eq!(branch("ref: refs/heads/main\n"), Some("main".into()));
        assert_eq!(branch("ref: refs/heads/feature/x\n"), Some("feature/x".into()));
        assert_eq!(branch("0123456789abcdef\n"), None);
        assert_eq!(branch("ref: refs/heads/a: [b]\nhooks: {}\n"), None);

        // Whoever stands on a branch of his own still starts from the remote's.
        fs::create_dir_all(root.path().join(".git/refs/remotes/origin")).unwrap();
        fs::write(root.path().join(".git/refs/remotes/origin/HEAD"), "ref: refs/remotes/origin/trunk\n").unwrap();
        assert_eq!(branch("ref: refs/heads/feature/x\n"), Some("trunk".into()));
    }
}
