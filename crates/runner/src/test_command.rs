//! Detection of the project's test command.
//!
//! It starts no program, and reads only small regular files.

use std::path::Path;

use serde_json::Value;
use windlass_engine::{HookOutcome, HookReport};
use windlass_process::file;

/// Maximum size of a build file.
const MAX_BUILD_FILE_BYTES: u64 = 1024 * 1024;

/// Returns the command that runs the tests, if the project shows one.
pub fn detect_test_command(root: &Path) -> Option<&'static str> {
    let has = |name: &str| root.join(name).is_file();
    if has("Cargo.toml") {
        return Some("cargo test");
    }
    if let Some(tests) = package_test_command(root) {
        return Some(tests);
    }
    if has("pyproject.toml") || has("pytest.ini") || has("setup.cfg") {
        return Some("pytest");
    }
    if has("go.mod") {
        return Some("go test ./...");
    }
    let makefile = ["GNUmakefile", "makefile", "Makefile"].iter().find_map(|name| read_project_file(root, name))?;
    makefile.lines().any(|line| line.starts_with("test:")).then_some("make test")
}

/// Returns the test command of a `package.json`, for the package manager whose lock file exists.
fn package_test_command(root: &Path) -> Option<&'static str> {
    let package: Value = serde_json::from_str(&read_project_file(root, "package.json")?).ok()?;
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
fn read_project_file(root: &Path, name: &str) -> Option<String> {
    String::from_utf8(file::read_within_directory(root, &root.join(name), MAX_BUILD_FILE_BYTES).ok()?).ok()
}

/// The message of a `run_tests` step without a command.
pub const NO_TESTS: &str = "cannot find a test command; set `test_command`";

/// Returns the report of tests that ran: failing tests block, whatever their exit code is. Tests that could not start keep their
/// outcome.
pub fn judge_test_report(report: HookReport, command: &str) -> HookReport {
    let failed = matches!(report.outcome, HookOutcome::Failure | HookOutcome::TimedOut | HookOutcome::Block);
    match failed && report.feedback.is_some() && !report.unstarted {
        true => HookReport {
            outcome: HookOutcome::Block,
            feedback: report.feedback.map(|feedback| format!("`{command}` fails. Fix what it reports.\n\n{feedback}")),
            ..report
        },
        false => report,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::detect_test_command;

    fn check_detected_command(files: &[(&str, &str)], expected: Option<&str>) {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(root.path().join(name), text).unwrap();
        }
        assert_eq!(detect_test_command(root.path()), expected, "{files:?}");
    }

    #[test]
    fn test_command_is_detected_by_build_files() {
        check_detected_command(&[], None);
        check_detected_command(&[("Cargo.toml", ""), ("Makefile", "test:\n")], Some("cargo test"));
        check_detected_command(&[("package.json", r#"{"scripts": {"test": "vitest"}}"#)], Some("npm test"));
        check_detected_command(
            &[("package.json", r#"{"scripts": {"test": "vitest"}}"#), ("pnpm-lock.yaml", "")],
            Some("pnpm test"),
        );
        check_detected_command(
            &[("package.json", r#"{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}"#)],
            None,
        );
        check_detected_command(
            &[("package.json", r#"{"scripts": {"build": "tsc"}}"#), ("go.mod", "")],
            Some("go test ./..."),
        );
        check_detected_command(&[("package.json", "not json")], None);
        check_detected_command(&[("pytest.ini", "")], Some("pytest"));
        check_detected_command(&[("Makefile", "all: build\ntest: all\n\t./t\n")], Some("make test"));
        check_detected_command(&[("Makefile", "all:\n\ttest: x\n")], None);
    }
}
