//! The creation of a project: its directory, and a configuration that fits the place.
//!
//! Invariants:
//! - An existing project is never changed.
//! - `.windlass/` appears with its configuration, or not at all.
//! - Nothing is started: the survey only reads small files.

mod survey;

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use rustix::io::Errno;
use rustix::process::{Pid, getpid, test_kill_process};
use windlass_config::Config;

use crate::atomic_file::{self, FileReaders};
use crate::person::require_person;
use crate::project::{self, GITIGNORE_TEXT, PROJECT_DIRECTORY, Project};
use crate::trust::{self, TrustState};
use crate::{Failure, FailureCode, environment, workflows};

pub use self::survey::{FoundRepository, ProjectSurvey, survey_project};

const CONFIG_TEMPLATE: &str = include_str!("template.yaml");
/// The stop gate of a project with known tests, and an example for other projects.
const STOP_GATE_WITH_TESTS: &str = "  stop:\n    - run_tests";
const STOP_GATE_EXAMPLE: &str = "  #stop:\n  #  - command: ./check.sh\n  #    timeout: 5m";

/// A project that was created or found.
#[derive(Debug)]
pub struct ProjectReport {
    pub project: Project,
    /// Whether the project is new.
    pub created: bool,
    pub found: ProjectSurvey,
}

/// Trusts the configuration of a project that was just created. A person has to review files that were there before.
pub fn trust_new_project(project: &Project) -> Result<(), Failure> {
    if workflows::has_workflow_files(project)? {
        return Err(Failure::new(
            FailureCode::Trust,
            "there are workflows already: `windlass trust` shows what they would run",
        ));
    }
    let config = Config::load(&project.root)?;
    if trust::find_trust_state(project, &config)? == TrustState::Changed {
        return Err(Failure::new(
            FailureCode::Trust,
            "another configuration was trusted before: `windlass trust` shows this one and asks",
        ));
    }
    require_person(project)?;
    trust::grant_trust(project, &config, config.trust_digest()?)
}

fn cannot_create_failure(root: &Path, error: io::Error) -> Failure {
    Failure::new(FailureCode::System, format!("cannot make a project in `{}`", root.display()))
        .with_cause(error)
        .with_hint("`windlass init --project DIR` makes one in a directory that you may write to")
}

/// Creates the project's directory and its configuration, or surveys an existing project.
pub fn prepare_project(root: &Path) -> Result<ProjectReport, Failure> {
    let cannot = |error| cannot_create_failure(root, error);
    atomic_file::make_directories(root, 0o777).map_err(cannot)?;
    let look = |project: &Project| survey_project(&project.root, &environment::program_directories());
    if let Some(project) = find_existing_project(root)? {
        let found = look(&project);
        let created = add_missing_config(&project, &render_config_template(&found)).map_err(cannot)?;
        return Ok(ProjectReport { found, project, created });
    }
    let project = Project { root: root.canonicalize().map_err(cannot)? };
    let found = look(&project);
    let created = write_project_directory(&project, Some(&render_config_template(&found))).map_err(cannot)?;
    Ok(ProjectReport { project, created, found })
}

/// Writes the configuration of a project that was created without one. Returns false if there is one.
pub fn add_missing_config(project: &Project, configuration: &str) -> io::Result<bool> {
    // The file appears complete or not at all; an existing one is not replaced.
    let added = atomic_file::create_file_if_missing(&project.config_file(), configuration.as_bytes())?;
    if added {
        atomic_file::replace_file(
            &project.project_directory().join(".gitignore"),
            GITIGNORE_TEXT.as_bytes(),
            FileReaders::AsBefore,
        )?;
    }
    Ok(added)
}

/// Creates a project without a configuration, if there is none yet.
pub fn create_project_without_config(root: &Path) -> Result<Project, Failure> {
    let cannot = |error| cannot_create_failure(root, error);
    let project = Project { root: root.canonicalize().map_err(cannot)? };
    write_project_directory(&project, None).map_err(cannot)?;
    Ok(project)
}

/// Returns the existing project of this directory; for a linked git worktree, that of the main worktree.
pub fn find_existing_project(root: &Path) -> Result<Option<Project>, Failure> {
    match project::find_main_worktree_path(root) {
        Some(_) => project::find_enclosing_project(root),
        None => Project::open_at(root),
    }
}

/// Writes the directory under a temporary name, then renames it. Returns false if another process was faster.
fn write_project_directory(project: &Project, configuration: Option<&str>) -> io::Result<bool> {
    remove_dead_leftovers(&project.root);
    let beside = project.root.join(format!("{PROJECT_DIRECTORY}.{}.new", std::process::id()));
    fs::create_dir(&beside)?;
    let moved = configuration
        .map_or(Ok(()), |configuration| {
            atomic_file::write_into_new_directory(&beside.join("config.yaml"), configuration.as_bytes())
        })
        .and_then(|()| {
            // Without a configuration, git ignores the whole directory.
            let ignored = if configuration.is_some() {
                GITIGNORE_TEXT.to_owned()
            } else {
                format!("{GITIGNORE_TEXT}.gitignore\n")
            };
            atomic_file::write_into_new_directory(&beside.join(".gitignore"), ignored.as_bytes())
        })
        .and_then(|()| atomic_file::sync_directory(&beside))
        .map(|()| fs::rename(&beside, project.project_directory()));
    if !matches!(moved, Ok(Ok(()))) {
        // Best effort: the caller needs the error above.
        let _ = fs::remove_dir_all(&beside);
    }
    match moved? {
        Err(error) if matches!(error.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists) => Ok(false),
        moved => moved.and_then(|()| atomic_file::sync_directory(&project.root)).map(|()| true),
    }
}

/// Removes temporary directories that dead processes have left. A file that cannot be removed stays.
fn remove_dead_leftovers(root: &Path) {
    let writer = |name: &str| {
        let number = name.strip_prefix(PROJECT_DIRECTORY)?.strip_prefix('.')?.strip_suffix(".new")?;
        number.parse().ok().filter(|_| number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let writer = entry.file_name().to_str().and_then(writer).and_then(Pid::from_raw);
        if writer.is_some_and(|pid| pid == getpid() || test_kill_process(pid) == Err(Errno::SRCH)) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Returns the commented configuration, filled in from the survey.
fn render_config_template(found: &ProjectSurvey) -> String {
    let line = |key: &str, value: Option<&str>, example: &str| match value {
        Some(value) => format!("{key}: {value}"),
        None => format!("#{key}: {example}"),
    };
    let branch = found.git.as_ref().and_then(|git| git.branch.as_deref()).map(|branch| format!("\"{branch}\""));
    CONFIG_TEMPLATE
        .replace("{agent}", &line("agent", found.agents.first().copied(), "claude"))
        .replace("{test_command}", &line("test_command", found.tests, "make test"))
        .replace("{caches}", &line("caches", found.tests.and_then(default_cache_setting), "[node_modules]"))
        .replace("{stop}", if found.tests.is_some() { STOP_GATE_WITH_TESTS } else { STOP_GATE_EXAMPLE })
        .replace("{base_branch}", &line("base_branch", branch.as_deref(), "main"))
}

/// Returns the caches that a project's tools keep beside its files, by the command that runs its tests.
fn default_cache_setting(tests: &str) -> Option<&'static str> {
    match tests {
        "cargo test" => Some("[target]"),
        "pytest" => Some("[.venv]"),
        "npm test" | "pnpm test" | "yarn test" | "bun run test" => Some("[node_modules]"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_configuration(text: &str) -> Config {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("config.yaml");
        fs::write(&file, text).unwrap();
        Config::read_file(&file).map_err(Failure::from).unwrap_or_else(|failure| panic!("{failure}\n{text}"))
    }

    #[test]
    fn written_config_template_parses() {
        let git = |branch: &str| Some(FoundRepository { branch: Some(branch.to_owned()), has_origin: false });
        let found = ProjectSurvey { tests: Some("go test ./..."), agents: vec!["codex", "aider"], git: git("main") };
        let config = check_configuration(&render_config_template(&found));
        assert_eq!(config.settings.agent.as_deref().map(String::as_str), Some("codex"));
        assert_eq!(config.settings.test_command.unwrap().value, "go test ./...");
        assert_eq!(config.settings.base_branch.unwrap().value, "main");
        let hooks: Vec<String> = config.hooks.iter().map(|hook| format!("{} {}", hook.point, hook.name)).collect();
        assert_eq!(hooks, ["stop stop[0]:run_tests"], "the tests that were found are the stop gate");

        let config = check_configuration(&render_config_template(&ProjectSurvey::default()));
        assert!(config.settings.agent.is_none() && config.settings.base_branch.is_none() && config.hooks.is_empty());
    }

    /// A line that is commented out has no blank after the `#`, or two.
    #[test]
    fn uncommented_config_template_parses() {
        let uncommented = |line: &str| match line.trim_start().strip_prefix('#') {
            Some(rest) if !rest.starts_with(' ') || rest.starts_with("  ") => line.replacen('#', "", 1),
            _ => line.to_owned(),
        };
        let text: Vec<_> = render_config_template(&ProjectSurvey::default()).lines().map(uncommented).collect();
        let config = check_configuration(&text.join("\n"));
        assert!(config.hooks.len() >= 5, "{:?}", config.hooks);
        assert_eq!(config.settings.notify.len(), 1);
    }

    #[test]
    fn second_preparation_keeps_existing_config() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("new/thing");
        let report = prepare_project(&root).unwrap();
        assert!(report.created);
        assert_eq!(fs::read_dir(&root).unwrap().count(), 1);
        let config = fs::read_to_string(report.project.config_file()).unwrap();
        let ignored = fs::read_to_string(report.project.project_directory().join(".gitignore")).unwrap();
        assert!(ignored.contains("windlass.db*\n"));

        fs::write(report.project.config_file(), "version: 1\n").unwrap();
        assert!(!prepare_project(&root).unwrap().created);
        assert_ne!(fs::read_to_string(report.project.config_file()).unwrap(), config);
    }

    #[test]
    fn second_writer_leaves_first_project_unchanged() {
        let directory = tempfile::tempdir().unwrap();
        let project = Project { root: directory.path().to_owned() };
        assert!(write_project_directory(&project, Some("version: 1\n")).unwrap());
        assert!(!write_project_directory(&project, Some("version: 2\n")).unwrap());
        assert_eq!(fs::read_to_string(project.config_file()).unwrap(), "version: 1\n");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn file_at_project_directory_is_reported() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(".windlass"), "").unwrap();
        assert!(prepare_project(directory.path()).unwrap_err().message.contains("is not a directory"));
        let file = directory.path().join(".windlass");
        for failure in [prepare_project(&file).unwrap_err(), create_project_without_config(&file).unwrap_err()] {
            assert!(failure.message.starts_with("cannot make a project in"), "{failure}");
            assert!(failure.hint.is_some_and(|hint| hint.contains("--project DIR")), "it can be made elsewhere");
        }
    }
}
