//! Trust in configurations: a person's decision, kept outside every project.
//!
//! One small file per project under the person's state directory records the trusted content. Its name comes from the project's
//! real path, so a copied or moved project needs a new decision.
//!
//! Invariants:
//! - Nothing inside a project can grant trust.
//! - A record that is damaged, or for other content, grants nothing.
//! - A record is replaced as a whole, and is on disk when `grant_trust` returns; its removal is on disk when `revoke_trust`
//!   returns.
//!
//! Not here: which commands need trust (those that run hooks); the question to the person (`commands::trust`).

use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use windlass_config::Config;
use windlass_engine::Digest;
use windlass_process::file;

use crate::atomic_file::{self, Readers};
use crate::project::Project;
use crate::{Code, Failure, FrontEnd, Notice, environment, hints};

/// The largest record that is read, in bytes. A usual one has a few hundred.
const RECORD: u64 = 64 * 1024;

/// A person's decision about a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    Trusted,
    /// The project was trusted; since then the configuration or a workflow has changed.
    Changed,
    Never,
}

impl Trust {
    pub fn name(self) -> &'static str {
        match self {
            Self::Trusted => "trusted",
            Self::Changed => "changed",
            Self::Never => "never",
        }
    }
}

/// Returns whether the project may run the programs of its configuration.
pub fn state(project: &Project, config: &Config) -> Result<Trust, Failure> {
    match environment::state_directory() {
        Some(directory) => Decisions::under(&directory).state(project, config),
        None => Ok(Trust::Never),
    }
}

/// Returns whether a configuration counts for a command. `told` is true with `--trust`, and inside a run that works with the
/// configuration. Without a file the defaults count, unless a trusted file was removed.
pub fn counts(project: &Project, config: &Config, told: bool) -> Result<bool, Failure> {
    if told {
        return Ok(true);
    }
    Ok(match state(project, config)? {
        Trust::Trusted => true,
        Trust::Changed => false,
        Trust::Never => !config.exists(),
    })
}

/// Returns the failure of a command that an untrusted configuration would constrain.
pub fn refuse(config: &Config, state: Trust) -> Failure {
    let failure = Failure::new(Code::Trust, "this project may not run what its configuration says");
    match state {
        Trust::Changed if !config.exists() => failure
            .caused_by("the configuration that was trusted is gone")
            .hint("restore the file; `windlass trust` accepts that there is none"),
        Trust::Changed => {
            failure.caused_by("it has changed since it was trusted").hint(hints::HOW_TO_TRUST).offer_trust()
        }
        Trust::Trusted | Trust::Never => failure.caused_by("it is not trusted").hint(hints::HOW_TO_TRUST).offer_trust(),
    }
}

/// Notes once that the defaults apply in place of an untrusted configuration.
pub fn note_defaults(front_end: &dyn FrontEnd) {
    front_end.show(Notice::NoteOnce(
        "the configuration is not trusted, so the defaults hold in its place; `windlass trust` shows it and asks",
    ));
}

/// Returns a warning about the configuration of a project, which may be invalid.
pub fn warning(project: &Project) -> Option<&'static str> {
    let looked = || -> Result<_, Failure> {
        let config = Config::load(&project.root)?;
        Ok((state(project, &config)?, config))
    };
    match looked() {
        Err(_) => Some("its configuration is wrong: `windlass config check` shows where"),
        Ok((Trust::Trusted, _)) => None,
        Ok((Trust::Changed, config)) if !config.exists() => Some(
            "the configuration that was trusted is gone: restore the file; `windlass trust` accepts that there is none",
        ),
        Ok((_, config)) if config.runs_something() => {
            Some("its hooks are not trusted: `windlass trust` shows what would run")
        }
        Ok((_, config)) if config.has_say() => {
            Some("its configuration is not trusted, so the defaults hold: `windlass trust` shows it and asks")
        }
        Ok(_) => None,
    }
}

/// Returns whether programs may run for the rules and hooks that agents register. Without a configuration there is nothing to
/// trust; but if a trusted one was removed, or the defaults apply in place of a file, a person has to decide.
pub fn serves_agents(project: &Project, config: &Config) -> Result<bool, Failure> {
    Ok(match state(project, config)? {
        Trust::Trusted => true,
        Trust::Never => !config.exists() && !is_there(&project.config_file()),
        Trust::Changed => false,
    })
}

fn is_there(file: &Path) -> bool {
    file.symlink_metadata().is_ok()
}

/// Trusts the configuration as it was read, and everything beside it as a person has seen it.
pub fn grant(project: &Project, config: &Config, seen: Digest) -> Result<(), Failure> {
    if config.digest()? != seen {
        return Err(Failure::new(Code::Trust, "the project stays untrusted")
            .caused_by("something has been changed while it was looked at")
            .hint("look at it again"));
    }
    decisions()?.grant(project, seen)
}

/// Removes the decision. Returns whether there was one.
pub fn revoke(project: &Project) -> Result<bool, Failure> {
    decisions()?.revoke(project)
}

fn decisions() -> Result<Decisions, Failure> {
    let directory = environment::state_directory().ok_or_else(|| {
        Failure::new(Code::System, "there is no place to keep trust decisions in")
            .caused_by("`WINDLASS_STATE_DIR`, `XDG_STATE_HOME` and `HOME` are unset or not absolute")
            .hint("set `WINDLASS_STATE_DIR` to a directory of your own")
    })?;
    Ok(Decisions::under(&directory))
}

/// The decisions of one person.
struct Decisions {
    directory: PathBuf,
}

#[derive(Debug, Serialize, Deserialize)]
struct Record {
    version: u32,
    /// For people who read the file; the name of the record file is what counts.
    project: String,
    digest: String,
}

impl Decisions {
    fn under(state: &Path) -> Self {
        Self { directory: state.join("trust") }
    }

    fn record_file(&self, project: &Project) -> PathBuf {
        self.directory.join(format!("{}.json", Digest::of(project.root.as_os_str().as_bytes())))
    }

    fn state(&self, project: &Project, config: &Config) -> Result<Trust, Failure> {
        Ok(match self.record(project) {
            None => Trust::Never,
            Some(record) if record.digest == config.digest()?.to_string() => Trust::Trusted,
            Some(_) => Trust::Changed,
        })
    }

    fn record(&self, project: &Project) -> Option<Record> {
        let bytes = file::read(&self.record_file(project), RECORD).ok()?;
        serde_json::from_slice(&bytes).ok().filter(|record: &Record| record.version == 1)
    }

    fn grant(&self, project: &Project, seen: Digest) -> Result<(), Failure> {
        let root = project.root.to_string_lossy().into_owned();
        let record = Record { version: 1, project: root, digest: seen.to_string() };
        let text = serde_json::to_string(&record).expect("a record is plain text");
        let file = self.record_file(project);
        let made = atomic_file::make_directories(&self.directory, 0o700);
        made.and_then(|()| atomic_file::replace(&file, text.as_bytes(), Readers::Owner)).map_err(|error| {
            Failure::new(Code::System, format!("cannot record the decision in `{}`", file.display()))
                .caused_by(error)
                .hint("set `WINDLASS_STATE_DIR` to a directory of your own; --trust allows it for one command alone")
        })
    }

    fn revoke(&self, project: &Project) -> Result<bool, Failure> {
        let file = self.record_file(project);
        match atomic_file::remove(&file) {
            Ok(()) => Ok(true),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(false),
            Err(error) => {
                Err(Failure::new(Code::System, format!("cannot remove `{}`", file.display())).caused_by(error))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    struct Setting {
        _directory: tempfile::TempDir,
        project: Project,
        decisions: Decisions,
    }

    impl Setting {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let root = directory.path().join("project");
            fs::create_dir_all(root.join(".windlass/workflows")).unwrap();
            let project = Project::at(&root).unwrap().unwrap();
            let decisions = Decisions::under(&directory.path().join("state"));
            let setting = Self { _directory: directory, project, decisions };
            setting.write("config.yaml", "hooks: {stop: [{command: make test}]}\n");
            setting
        }

        fn write(&self, path: &str, text: &str) {
            fs::write(self.project.directory().join(path), text).unwrap();
        }

        fn state(&self) -> Trust {
            self.decisions.state(&self.project, &Config::load(&self.project.root).unwrap()).unwrap()
        }

        fn grant(&self) {
            let seen = Config::load(&self.project.root).unwrap().digest().unwrap();
            self.decisions.grant(&self.project, seen).unwrap();
        }
    }

    #[test]
    fn a_decision_holds_for_what_was_seen() {
        let setting = Setting::new();
        assert_eq!(setting.state(), Trust::Never);
        setting.grant();
        assert_eq!(setting.state(), Trust::Trusted);

        setting.write("config.yaml", "hooks: {stop: [{command: rm -rf .}]}\n");
        assert_eq!(setting.state(), Trust::Changed);
        setting.grant();
        setting.write("workflows/w.json", "{}");
        assert_eq!(setting.state(), Trust::Changed);
        setting.grant();
        assert_eq!(setting.state(), Trust::Trusted);

        assert!(setting.decisions.revoke(&setting.project).unwrap());
        assert_eq!(setting.state(), Trust::Never);
        assert!(!setting.decisions.revoke(&setting.project).unwrap());
    }

    #[test]
    fn what_was_read_is_trusted_and_not_what_came_later() {
        let setting = Setting::new();
        let seen = Config::load(&setting.project.root).unwrap();
        setting.write("config.yaml", "hooks: {stop: [{command: something else}]}\n");
        setting.decisions.grant(&setting.project, seen.digest().unwrap()).unwrap();
        assert_eq!(setting.state(), Trust::Changed);
    }

    #[test]
    fn a_damaged_record_grants_nothing() {
        let setting = Setting::new();
        setting.grant();
        let file = setting.decisions.record_file(&setting.project);
        for text in ["", "{", "{}", "[]", "{\"version\":2,\"project\":\"\",\"digest\":\"\"}"] {
            fs::write(&file, text).unwrap();
            assert_eq!(setting.state(), Trust::Never, "{text}");
        }
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        assert_eq!(setting.state(), Trust::Never);
    }

    #[test]
    fn another_place_is_another_project() {
        let setting = Setting::new();
        setting.grant();
        let copy = setting.project.root.with_file_name("copy");
        fs::rename(&setting.project.root, &copy).unwrap();
        let moved = Project::at(&copy).unwrap().unwrap();
        let config = Config::load(&moved.root).unwrap();
        assert_eq!(setting.decisions.state(&moved, &config).unwrap(), Trust::Never);
    }

    #[test]
    fn records_are_private_and_leave_nothing_beside_them() {
        let setting = Setting::new();
        setting.grant();
        setting.grant();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&setting.decisions.directory), 0o700);
        assert_eq!(mode(&setting.decisions.record_file(&setting.project)), 0o600);
        assert_eq!(fs::read_dir(&setting.decisions.directory).unwrap().count(), 1);
    }

    #[test]
    fn a_state_directory_that_cannot_be_made_is_named() {
        let setting = Setting::new();
        let file = setting.project.root.join("file");
        fs::write(&file, "").unwrap();
        let config = Config::load(&setting.project.root).unwrap();
        let failure = Decisions::under(&file).grant(&setting.project, config.digest().unwrap()).unwrap_err();
        assert!(failure.message.starts_with("cannot record the decision in"), "{failure}");
        assert!(failure.hint.is_some_and(|hint| hint.contains("WINDLASS_STATE_DIR")), "a person can act on the hint");
        assert_eq!(Decisions::under(&file).state(&setting.project, &config).unwrap(), Trust::Never);
    }
}
