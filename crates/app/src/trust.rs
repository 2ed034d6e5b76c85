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

use crate::atomic_file::{self, FileReaders};
use crate::project::Project;
use crate::{Failure, FailureCode, FrontEnd, Notice, environment, hints};

/// The largest record that is read, in bytes. A usual one has a few hundred.
const MAX_RECORD_FILE: u64 = 64 * 1024;

/// A person's decision about a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustState {
    Trusted,
    /// The project was trusted; since then the configuration or a workflow has changed.
    Changed,
    Never,
}

impl TrustState {
    pub fn state_name(self) -> &'static str {
        match self {
            Self::Trusted => "trusted",
            Self::Changed => "changed",
            Self::Never => "never",
        }
    }
}

/// Returns whether the project may run the programs of its configuration.
pub fn find_trust_state(project: &Project, config: &Config) -> Result<TrustState, Failure> {
    match environment::state_directory() {
        Some(directory) => TrustDecisions::in_state_directory(&directory).find_state(project, config),
        None => Ok(TrustState::Never),
    }
}

/// Returns whether a configuration counts for a command. `trust_option` is true with `--trust`, and inside a run that works
/// with the configuration. Without a file the defaults count, unless a trusted file was removed.
pub fn is_config_effective(project: &Project, config: &Config, trust_option: bool) -> Result<bool, Failure> {
    if trust_option {
        return Ok(true);
    }
    Ok(match find_trust_state(project, config)? {
        TrustState::Trusted => true,
        TrustState::Changed => false,
        TrustState::Never => !config.has_file(),
    })
}

/// Returns the failure of a command that an untrusted configuration would constrain.
pub fn trust_failure(config: &Config, state: TrustState) -> Failure {
    let failure = Failure::new(FailureCode::Trust, "cannot use the configuration of this project");
    match state {
        TrustState::Changed if !config.has_file() => failure
            .with_cause("the configuration that was trusted is gone")
            .with_hint("restore the file; `windlass trust` accepts that there is none"),
        TrustState::Changed => {
            failure.with_cause("it has changed since it was trusted").with_hint(hints::HOW_TO_TRUST).with_trust_option()
        }
        TrustState::Trusted | TrustState::Never => {
            failure.with_cause("it is not trusted").with_hint(hints::HOW_TO_TRUST).with_trust_option()
        }
    }
}

/// Notes once that the defaults apply in place of an untrusted configuration.
pub fn note_untrusted_defaults(front_end: &dyn FrontEnd) {
    front_end.show_notice(Notice::NoteOnce(
        "the configuration is not trusted, so the defaults apply; `windlass trust` shows it and asks",
    ));
}

/// Returns a warning about the configuration of a project, which may be invalid.
pub fn trust_warning(project: &Project) -> Option<&'static str> {
    let looked = || -> Result<_, Failure> {
        let config = Config::load(&project.root)?;
        Ok((find_trust_state(project, &config)?, config))
    };
    match looked() {
        Err(_) => Some("its configuration is wrong: `windlass config check` shows where"),
        Ok((TrustState::Trusted, _)) => None,
        Ok((TrustState::Changed, config)) if !config.has_file() => Some(
            "the configuration that was trusted is gone: restore the file; `windlass trust` accepts that there is none",
        ),
        Ok((_, config)) if config.has_hook_or_rule_effects() => {
            Some("its hooks are not trusted: `windlass trust` shows what would run")
        }
        Ok((_, config)) if config.has_trusted_settings() => {
            Some("its configuration is not trusted, so the defaults apply: `windlass trust` shows it and asks")
        }
        Ok(_) => None,
    }
}

/// Returns whether programs may run for the rules and hooks that agents register. Without a configuration there is nothing to
/// trust; but if a trusted one was removed, or the defaults apply in place of a file, a person has to decide.
pub fn may_run_agent_programs(project: &Project, config: &Config) -> Result<bool, Failure> {
    Ok(match find_trust_state(project, config)? {
        TrustState::Trusted => true,
        TrustState::Never => !config.has_file() && !path_exists(&project.config_file()),
        TrustState::Changed => false,
    })
}

fn path_exists(file: &Path) -> bool {
    file.symlink_metadata().is_ok()
}

/// Trusts the configuration as it was read, and everything beside it as a person has seen it.
pub fn grant_trust(project: &Project, config: &Config, seen: Digest) -> Result<(), Failure> {
    if config.trust_digest()? != seen {
        return Err(Failure::new(FailureCode::Trust, "the project stays untrusted")
            .with_cause("something was changed during the check")
            .with_hint("look at it again"));
    }
    find_trust_decisions()?.record_trust(project, seen)
}

/// Removes the decision. Returns whether there was one.
pub fn revoke_trust(project: &Project) -> Result<bool, Failure> {
    find_trust_decisions()?.remove_record(project)
}

fn find_trust_decisions() -> Result<TrustDecisions, Failure> {
    let directory = environment::state_directory().ok_or_else(|| {
        Failure::new(FailureCode::System, "there is no place to keep trust decisions in")
            .with_cause("`WINDLASS_STATE_DIR`, `XDG_STATE_HOME` and `HOME` are unset or not absolute")
            .with_hint("set `WINDLASS_STATE_DIR` to a directory of your own")
    })?;
    Ok(TrustDecisions::in_state_directory(&directory))
}

/// The decisions of one person.
struct TrustDecisions {
    directory: PathBuf,
}

#[derive(Debug, Serialize, Deserialize)]
struct TrustRecord {
    version: u32,
    /// For people who read the file; the name of the record file is what counts.
    project: String,
    digest: String,
}

impl TrustDecisions {
    fn in_state_directory(state: &Path) -> Self {
        Self { directory: state.join("trust") }
    }

    fn record_file(&self, project: &Project) -> PathBuf {
        self.directory.join(format!("{}.json", Digest::of_bytes(project.root.as_os_str().as_bytes())))
    }

    fn find_state(&self, project: &Project, config: &Config) -> Result<TrustState, Failure> {
        Ok(match self.read_record(project) {
            None => TrustState::Never,
            Some(record) if record.digest == config.trust_digest()?.to_string() => TrustState::Trusted,
            Some(_) => TrustState::Changed,
        })
    }

    fn read_record(&self, project: &Project) -> Option<TrustRecord> {
        let bytes = file::read_bounded(&self.record_file(project), MAX_RECORD_FILE).ok()?;
        serde_json::from_slice(&bytes).ok().filter(|record: &TrustRecord| record.version == 1)
    }

    fn record_trust(&self, project: &Project, seen: Digest) -> Result<(), Failure> {
        let root = project.root.to_string_lossy().into_owned();
        let record = TrustRecord { version: 1, project: root, digest: seen.to_string() };
        let text = serde_json::to_string(&record).expect("a record is plain text");
        let file = self.record_file(project);
        let made = atomic_file::make_directories(&self.directory, 0o700);
        made.and_then(|()| atomic_file::replace_file(&file, text.as_bytes(), FileReaders::Owner)).map_err(|error| {
            Failure::new(FailureCode::System, format!("cannot record the decision in `{}`", file.display()))
                .with_cause(error)
                .with_hint(
                    "set `WINDLASS_STATE_DIR` to a directory of your own; --trust allows it for one command alone",
                )
        })
    }

    fn remove_record(&self, project: &Project) -> Result<bool, Failure> {
        let file = self.record_file(project);
        match atomic_file::remove_file(&file) {
            Ok(()) => Ok(true),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(false),
            Err(error) => {
                Err(Failure::new(FailureCode::System, format!("cannot remove `{}`", file.display())).with_cause(error))
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
        decisions: TrustDecisions,
    }

    impl Setting {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let root = directory.path().join("project");
            fs::create_dir_all(root.join(".windlass/workflows")).unwrap();
            let project = Project::open_at(&root).unwrap().unwrap();
            let decisions = TrustDecisions::in_state_directory(&directory.path().join("state"));
            let setting = Self { _directory: directory, project, decisions };
            setting.write("config.yaml", "hooks: {stop: [{command: make test}]}\n");
            setting
        }

        fn write(&self, path: &str, text: &str) {
            fs::write(self.project.project_directory().join(path), text).unwrap();
        }

        fn state(&self) -> TrustState {
            self.decisions.find_state(&self.project, &Config::load(&self.project.root).unwrap()).unwrap()
        }

        fn grant(&self) {
            let seen = Config::load(&self.project.root).unwrap().trust_digest().unwrap();
            self.decisions.record_trust(&self.project, seen).unwrap();
        }
    }

    #[test]
    fn trust_holds_until_config_or_workflow_changes() {
        let setting = Setting::new();
        assert_eq!(setting.state(), TrustState::Never);
        setting.grant();
        assert_eq!(setting.state(), TrustState::Trusted);

        setting.write("config.yaml", "hooks: {stop: [{command: rm -rf .}]}\n");
        assert_eq!(setting.state(), TrustState::Changed);
        setting.grant();
        setting.write("workflows/w.json", "{}");
        assert_eq!(setting.state(), TrustState::Changed);
        setting.grant();
        assert_eq!(setting.state(), TrustState::Trusted);

        assert!(setting.decisions.remove_record(&setting.project).unwrap());
        assert_eq!(setting.state(), TrustState::Never);
        assert!(!setting.decisions.remove_record(&setting.project).unwrap());
    }

    #[test]
    fn trust_is_granted_to_digest_that_was_read() {
        let setting = Setting::new();
        let seen = Config::load(&setting.project.root).unwrap();
        setting.write("config.yaml", "hooks: {stop: [{command: something else}]}\n");
        setting.decisions.record_trust(&setting.project, seen.trust_digest().unwrap()).unwrap();
        assert_eq!(setting.state(), TrustState::Changed);
    }

    #[test]
    fn damaged_trust_record_leaves_project_untrusted() {
        let setting = Setting::new();
        setting.grant();
        let file = setting.decisions.record_file(&setting.project);
        for text in ["", "{", "{}", "[]", "{\"version\":2,\"project\":\"\",\"digest\":\"\"}"] {
            fs::write(&file, text).unwrap();
            assert_eq!(setting.state(), TrustState::Never, "{text}");
        }
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        assert_eq!(setting.state(), TrustState::Never);
    }

    #[test]
    fn moved_project_is_not_trusted() {
        let setting = Setting::new();
        setting.grant();
        let copy = setting.project.root.with_file_name("copy");
        fs::rename(&setting.project.root, &copy).unwrap();
        let moved = Project::open_at(&copy).unwrap().unwrap();
        let config = Config::load(&moved.root).unwrap();
        assert_eq!(setting.decisions.find_state(&moved, &config).unwrap(), TrustState::Never);
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
    fn trust_recording_fails_with_hint_if_state_directory_is_unusable() {
        let setting = Setting::new();
        let file = setting.project.root.join("file");
        fs::write(&file, "").unwrap();
        let config = Config::load(&setting.project.root).unwrap();
        let failure = TrustDecisions::in_state_directory(&file)
            .record_trust(&setting.project, config.trust_digest().unwrap())
            .unwrap_err();
        assert!(failure.message.starts_with("cannot record the decision in"), "{failure}");
        assert!(failure.hint.is_some_and(|hint| hint.contains("WINDLASS_STATE_DIR")), "a person can act on the hint");
        assert_eq!(
            TrustDecisions::in_state_directory(&file).find_state(&setting.project, &config).unwrap(),
            TrustState::Never
        );
    }
}
