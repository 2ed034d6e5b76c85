//! `windlass init`: makes a project.
//!
//! Invariants:
//! - A project that is there already is never changed. One whose store this machine did not make is refused.
//! - `.windlass/` appears with its configuration, or not at all. A store that is missing, or that somebody has only begun
//!   to make, is made by the next `init`.
//! - Nothing is started; what is found is found by looking.

mod look;

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use rustix::io::Errno;
use rustix::process::{Pid, getpid, test_kill_process};
use serde_json::json;
use windlass_store::{Lifetime, Sqlite, StoreError};

pub use self::look::{Found, Git};
use crate::output::{Done, Output, Tone};
use crate::show;
use windlass_app::atomic_file;
use windlass_app::atomic_file::Readers;
use windlass_app::context::Context;
use windlass_app::person::require_person;
use windlass_app::project;
use windlass_app::project::{DIRECTORY, IGNORED, Project};
use windlass_app::trust;
use windlass_app::trust::Trust;
use windlass_app::{Code, Failure};
use windlass_app::{environment, hints, store_records, workflows};
use windlass_config::Config;
use windlass_text as text;

const TEMPLATE: &str = include_str!("init/template.yaml");
/// The stop gate of a project whose tests were found, and an example for others.
const STOP_TESTS: &str = "  stop:\n    - run_tests";
const STOP_EXAMPLE: &str = "  #stop:\n  #  - command: ./check.sh\n  #    timeout: 5m";

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass init                       make a project in this directory
  windlass init --project new/thing   make it there; the directory is made if it is missing

A project that is there already is left as it is.")]
pub struct Args {}

/// What `init` did.
#[derive(Debug)]
pub struct Report {
    pub project: Project,
    /// Whether the project is new.
    pub created: bool,
    pub found: Found,
}

pub fn run(context: &Context, _: Args, out: &mut Output) -> Done {
    // Where every other command will look for it.
    let root = match context.project.clone().or_else(environment::project) {
        Some(named) => context.directory.join(named),
        None => context.directory.clone(),
    };
    store_records::check_place()?;
    if let Some(project) = existing(&root)?
        && store_records::is_foreign(&project)?
    {
        return Err(hints::store(StoreError::Foreign(project.store_file())).into());
    }
    let outer = root.parent().and_then(|parent| project::around(parent).ok().flatten());
    let report = prepare(&root)?;
    // A fresh clone has the configuration but no store: that stays out of git.
    let new_store = Sqlite::is_unmade(&report.project.store_file());
    if new_store {
        // An agent can move away the store that it is held by.
        if store_records::has_record(&report.project) {
            require_person(&report.project)?;
        }
        store_records::create(&report.project, Lifetime::Command, false)?;
    }
    let untrusted = match report.created {
        true => trust_own(&report.project).err(),
        false => None,
    };
    match (out.is_json(), report.created) {
        (true, _) => out.object(&as_json(&report)),
        (false, true) => {
            if let Some(outer) = outer {
                let path = outer.root.to_string_lossy().into_owned();
                let note = format!("note: this is inside another project, {}; commands here now use this one", path);
                out.line(out.paint(Tone::Warning, text::line(&note)))?;
            }
            as_text(&report, untrusted.as_ref(), out)
        }
        (false, false) => already_there(&report, new_store, out),
    }
}

/// Trusts what was just written here. What others have written beside it is for a person to look at.
fn trust_own(project: &Project) -> Result<(), Failure> {
    if workflows::has_files(project)? {
        return Err(Failure::new(
            Code::Trust,
            "there are workflows already: `windlass trust` shows what they would run",
        ));
    }
    let config = Config::load(&project.root)?;
    if trust::state(project, &config)? == Trust::Changed {
        return Err(Failure::new(
            Code::Trust,
            "another configuration was trusted before: `windlass trust` shows this one and asks",
        ));
    }
    require_person(project)?;
    trust::grant(project, &config, config.digest()?)
}

fn already_there(report: &Report, new_store: bool, out: &mut Output) -> Done {
    let root = report.project.root.to_string_lossy();
    out.line(format_args!("There is a project already: {}", text::line(&root)))?;
    match new_store {
        true => out.line("It had no store; now it has an empty one.")?,
        false => out.line("Nothing was changed.")?,
    }
    match trust::warning(&report.project) {
        Some(warning) => out.line(out.paint(Tone::Warning, warning)),
        None => Ok(()),
    }
}

fn cannot_make(root: &Path, error: io::Error) -> Failure {
    Failure::new(Code::System, format!("cannot make a project in `{}`", root.display()))
        .caused_by(error)
        .hint("`windlass init --project DIR` makes one in a directory that you may write to")
}

/// Makes the project's directory and its configuration; where there is one already, only looks.
pub fn prepare(root: &Path) -> Result<Report, Failure> {
    let cannot = |error| cannot_make(root, error);
    atomic_file::make_directories(root, 0o777).map_err(cannot)?;
    let look = |project: &Project| look::look(&project.root, &environment::program_directories());
    if let Some(project) = existing(root)? {
        let found = look(&project);
        let created = complete(&project, &configuration(&found)).map_err(cannot)?;
        return Ok(Report { found, project, created });
    }
    let project = Project { root: root.canonicalize().map_err(cannot)? };
    let found = look(&project);
    let created = write(&project, Some(&configuration(&found))).map_err(cannot)?;
    Ok(Report { project, created, found })
}

/// Writes the configuration of a project that was made without one; `false` where there is one.
pub fn complete(project: &Project, configuration: &str) -> io::Result<bool> {
    // Whole, or not at all; and nobody's is replaced.
    let added = atomic_file::add(&project.config_file(), configuration.as_bytes())?;
    if added {
        atomic_file::replace(&project.directory().join(".gitignore"), IGNORED.as_bytes(), Readers::AsBefore)?;
    }
    Ok(added)
}

/// Makes a project without a configuration, where there is none yet.
pub fn prepare_bare(root: &Path) -> Result<Project, Failure> {
    let cannot = |error| cannot_make(root, error);
    let project = Project { root: root.canonicalize().map_err(cannot)? };
    write(&project, None).map_err(cannot)?;
    Ok(project)
}

/// The project that is there already: in this directory, or for a linked git worktree in the main one.
fn existing(root: &Path) -> Result<Option<Project>, Failure> {
    match project::main_worktree(root) {
        Some(_) => project::around(root),
        None => Project::at(root),
    }
}

/// Writes everything beside its place, then moves it there at once; `false` where somebody else was faster.
fn write(project: &Project, configuration: Option<&str>) -> io::Result<bool> {
    clear_away(&project.root);
    let beside = project.root.join(format!("{DIRECTORY}.{}.new", std::process::id()));
    fs::create_dir(&beside)?;
    let moved = configuration
        .map_or(Ok(()), |configuration| atomic_file::write_into(&beside.join("config.yaml"), configuration.as_bytes()))
        .and_then(|()| {
            // Without a configuration there is nothing for git at all.
            let ignored = if configuration.is_some() { IGNORED.to_owned() } else { format!("{IGNORED}.gitignore\n") };
            atomic_file::write_into(&beside.join(".gitignore"), ignored.as_bytes())
        })
        .and_then(|()| atomic_file::sync_directory(&beside))
        .map(|()| fs::rename(&beside, project.directory()));
    if !matches!(moved, Ok(Ok(()))) {
        // Best effort: the error that matters is the one above.
        let _ = fs::remove_dir_all(&beside);
    }
    match moved? {
        Err(error) if matches!(error.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists) => Ok(false),
        moved => moved.and_then(|()| atomic_file::sync_directory(&project.root)).map(|()| true),
    }
}

/// Removes what dead processes have written beside its place. A file that cannot be removed stays.
fn clear_away(root: &Path) {
    let writer = |name: &str| {
        let number = name.strip_prefix(DIRECTORY)?.strip_prefix('.')?.strip_suffix(".new")?;
        number.parse().ok().filter(|_| number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let writer = entry.file_name().to_str().and_then(writer).and_then(Pid::from_raw);
        if writer.is_some_and(|pid| pid == getpid() || test_kill_process(pid) == Err(Errno::SRCH)) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The commented configuration, with what was found in it.
fn configuration(found: &Found) -> String {
    let line = |key: &str, value: Option<&str>, example: &str| match value {
        Some(value) => format!("{key}: {value}"),
        None => format!("#{key}: {example}"),
    };
    let branch = found.git.as_ref().and_then(|git| git.branch.as_deref()).map(|branch| format!("\"{branch}\""));
    TEMPLATE
        .replace("{agent}", &line("agent", found.agents.first().copied(), "claude"))
        .replace("{test_command}", &line("test_command", found.tests, "make test"))
        .replace("{caches}", &line("caches", found.tests.and_then(caches), "[node_modules]"))
        .replace("{stop}", if found.tests.is_some() { STOP_TESTS } else { STOP_EXAMPLE })
        .replace("{base_branch}", &line("base_branch", branch.as_deref(), "main"))
}

/// Returns what the tools of a project keep beside its files, by the command that runs its tests.
fn caches(tests: &str) -> Option<&'static str> {
    match tests {
        "cargo test" => Some("[target]"),
        "pytest" => Some("[.venv]"),
        "npm test" | "pnpm test" | "yarn test" | "bun run test" => Some("[node_modules]"),
        _ => None,
    }
}

fn as_json(report: &Report) -> serde_json::Value {
    let Report { project, created, found } = report;
    json!({
        "project": project.root.to_string_lossy(),
        "created": created,
        "config": project.config_file().to_string_lossy(),
        "found": {
            "tests": found.tests,
            "agents": found.agents,
            "git": found.git.as_ref().map(|git| json!({"branch": git.branch})),
        },
    })
}

fn as_text(report: &Report, untrusted: Option<&Failure>, out: &mut Output) -> Done {
    let Report { project, found, .. } = report;
    let file = project.config_file();
    out.line(format_args!("{} {}", out.paint(Tone::Good, "created"), text::line(&file.to_string_lossy())))?;
    let git = match &found.git {
        None => "no repository",
        Some(Git { branch: None }) => "a repository",
        Some(Git { branch: Some(branch) }) => branch,
    };
    let agents = if found.agents.is_empty() { "none found".to_owned() } else { found.agents.join(", ") };
    for (label, value) in [("tests", found.tests.unwrap_or("none found")), ("agents", &agents), ("git", git)] {
        out.line(format_args!("  {} {value}", text::pad(label, 8)))?;
    }
    if let Some(failure) = untrusted {
        let reason = text::line(&failure.message).into_owned();
        out.line(format_args!("{}: it is not trusted yet: {reason}", out.paint(Tone::Warning, "warning")))?;
    }
    show::obstacles(&report.project, out)?;
    out.line("")?;
    out.line("Next:")?;
    out.line("  windlass config check              what the configuration says")?;
    out.line("  windlass run \"what to do\"          have an agent do it")?;
    out.line("  windlass task add \"what to do\"     or plan it: the first task")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_configuration(text: &str) -> Config {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("config.yaml");
        fs::write(&file, text).unwrap();
        Config::read(&file).map_err(Failure::from).unwrap_or_else(|failure| panic!("{failure}\n{text}"))
    }

    #[test]
    fn what_is_written_is_valid() {
        let git = |branch: &str| Some(Git { branch: Some(branch.to_owned()) });
        let found = Found { tests: Some("go test ./..."), agents: vec!["codex", "aider"], git: git("main") };
        let config = check_configuration(&configuration(&found));
        assert_eq!(config.settings.agent.as_deref().map(String::as_str), Some("codex"));
        assert_eq!(config.settings.test_command.unwrap().value, "go test ./...");
        assert_eq!(config.settings.base_branch.unwrap().value, "main");
        let hooks: Vec<String> = config.hooks.iter().map(|hook| format!("{} {}", hook.point, hook.name)).collect();
        assert_eq!(hooks, ["stop stop[0]:run_tests"], "the tests that were found are the stop gate");

        let config = check_configuration(&configuration(&Found::default()));
        assert!(config.settings.agent.is_none() && config.settings.base_branch.is_none() && config.hooks.is_empty());
    }

    /// Lines that are commented out have no blank after the `#`, or two.
    #[test]
    fn what_is_commented_out_is_valid_too() {
        let uncommented = |line: &str| match line.trim_start().strip_prefix('#') {
            Some(rest) if !rest.starts_with(' ') || rest.starts_with("  ") => line.replacen('#', "", 1),
            _ => line.to_owned(),
        };
        let text: Vec<_> = configuration(&Found::default()).lines().map(uncommented).collect();
        let config = check_configuration(&text.join("\n"));
        assert!(config.hooks.len() >= 5, "{:?}", config.hooks);
        assert_eq!(config.settings.notify.len(), 1);
    }

    #[test]
    fn a_project_is_made_once() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("new/thing");
        let report = prepare(&root).unwrap();
        assert!(report.created);
        assert_eq!(fs::read_dir(&root).unwrap().count(), 1);
        let config = fs::read_to_string(report.project.config_file()).unwrap();
        let ignored = fs::read_to_string(report.project.directory().join(".gitignore")).unwrap();
        assert!(ignored.contains("windlass.db*\n"));

        fs::write(report.project.config_file(), "version: 1\n").unwrap();
        assert!(!prepare(&root).unwrap().created);
        assert_ne!(fs::read_to_string(report.project.config_file()).unwrap(), config);
    }

    #[test]
    fn whoever_comes_second_changes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let project = Project { root: directory.path().to_owned() };
        assert!(write(&project, Some("version: 1\n")).unwrap());
        assert!(!write(&project, Some("version: 2\n")).unwrap());
        assert_eq!(fs::read_to_string(project.config_file()).unwrap(), "version: 1\n");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_in_the_way_is_named() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(".windlass"), "").unwrap();
        assert!(prepare(directory.path()).unwrap_err().message.contains("is not a directory"));
        let file = directory.path().join(".windlass");
        for failure in [prepare(&file).unwrap_err(), prepare_bare(&file).unwrap_err()] {
            assert!(failure.message.starts_with("cannot make a project in"), "{failure}");
            assert!(failure.hint.is_some_and(|hint| hint.contains("--project DIR")), "it can be made elsewhere");
        }
    }
}
