//! Detection of the project's test command.
//!
//! It starts no program, and reads only small regular files.

use std::path::Path;

use serde_json::Value;
use windlass_process::file;

/// Maximum size of a build file.
const SIZE: u64 = 1024 * 1024;

/// Returns the command that runs the tests, if the project shows one.
pub fn tests(root: &Path) -> Option<&'static str> {
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
    let makefile = ["GNUmakefile", "makefile", "Makefile"].iter().find_map(|name| read(root, name))?;
    makefile.lines().any(|line| line.starts_with("test:")).then_some("make test")
}

/// Returns the test command of a `package.json`, for the package manager whose lock file exists.
fn package_tests(root: &Path) -> Option<&'static str> {
    let package: Value = serde_json::from_str(&read(root, "package.json")?).ok()?;
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

/// Returns the text of a small regular file of the project.
fn read(root: &Path, name: &str) -> Option<String> {
    String::from_utf8(file::read_within(root, &root.join(name), SIZE).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::tests;

    fn check(files: &[(&str, &str)], expected: Option<&str>) {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(root.path().join(name), text).unwrap();
        }
        assert_eq!(tests(root.path()), expected, "{files:?}");
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
}
