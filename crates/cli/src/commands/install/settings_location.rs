//! The location of settings files on this machine; reading and replacing them.
//!
//! Invariants:
//! - A file is replaced as a whole and keeps its mode; a link to it stays a link.
//! - No link in a project leads to a file outside of it.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use windlass_app::atomic_file::{self, FileReaders};
use windlass_app::project::Project;
use windlass_app::{Failure, FailureCode, environment};
use windlass_bridge::settings::{SettingsFile, SettingsScope};
use windlass_process::file;

/// Claude Code keeps all its state in one settings file, which grows to a few megabytes in a year.
const MAX_SETTINGS_BYTES: u64 = 32 * 1024 * 1024;

/// The location of a settings file on this machine.
#[derive(Debug, Clone)]
pub struct SettingsLocation {
    /// The path at which the agent looks for the file.
    pub path: PathBuf,
    /// The path with all links resolved.
    pub real: PathBuf,
}

/// Returns the directory that holds the settings of a scope.
pub fn settings_root(file: &SettingsFile, scope: SettingsScope, project: Option<&Project>) -> Result<PathBuf, Failure> {
    if let (SettingsScope::Project, Some(project)) = (scope, project) {
        return Ok(project.root.join(file.folder));
    }
    if let Some(directory) = file.folder_variable.and_then(|name| environment::find_directory_variable(&[name])) {
        return Ok(directory);
    }
    environment::home_directory().map(|home| home.join(file.folder)).ok_or_else(|| {
        Failure::new(FailureCode::System, "cannot find the home directory")
            .with_cause("`HOME` is unset or not absolute")
            .with_hint("set `HOME`, or use `--scope project`")
    })
}

impl SettingsLocation {
    pub fn locate(file: &SettingsFile, scope: SettingsScope, project: Option<&Project>) -> Result<Self, Failure> {
        let path = settings_root(file, scope, project)?.join(file.name);
        let real = resolve_real_path(&path).map_err(|error| unusable_path_failure(&path, error))?;
        match project.filter(|project| scope == SettingsScope::Project && !real.starts_with(&project.root)) {
            None => Ok(Self { path, real }),
            Some(project) => Err(Failure::new(FailureCode::Refused, format!("cannot use `{}`", path.display()))
                .with_cause(format!("it leads out of the project, to `{}`", real.display()))
                .with_hint(format!("make it a file inside of `{}`, or use `--scope user`", project.root.display()))),
        }
    }

    /// Reads the text; returns `None` if there is no file.
    pub fn read_text(&self) -> Result<Option<String>, Failure> {
        let cannot = |cause: String| {
            Failure::new(FailureCode::System, format!("cannot read `{}`", self.path.display()))
                .with_cause(cause)
                .with_hint("nothing was written; check the path, and try again")
        };
        let bytes = match file::read_bounded(&self.real, MAX_SETTINGS_BYTES) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            read => read.map_err(|error| cannot(error.to_string()))?,
        };
        String::from_utf8(bytes).map(Some).map_err(|_| cannot("it is not UTF-8 text".to_owned()))
    }

    /// Returns the directories to create for the file, the outermost first.
    pub fn missing_directories(&self) -> Vec<PathBuf> {
        let parents = self.real.ancestors().skip(1);
        let mut missing: Vec<_> = parents.take_while(|parent| !parent.exists()).map(Path::to_owned).collect();
        missing.reverse();
        missing
    }

    /// Checks that the file can be written.
    pub fn check_writable(&self) -> Result<(), Failure> {
        let parent = self.real.ancestors().skip(1).find(|parent| parent.exists()).unwrap_or(Path::new("/"));
        let read_only = match fs::metadata(&self.real) {
            Ok(metadata) => metadata.permissions().readonly() || access(&self.real, Access::WRITE_OK).is_err(),
            Err(_) => false,
        };
        let (cause, what) = match access(parent, Access::WRITE_OK) {
            _ if read_only => ("it is read-only".to_owned(), &*self.real),
            Err(error) => (format!("`{}`: {}", parent.display(), io::Error::from(error)), parent),
            Ok(()) => return Ok(()),
        };
        Err(Failure::new(FailureCode::System, format!("cannot write `{}`", self.path.display()))
            .with_cause(cause)
            .with_hint(format!("nothing was written; make `{}` writable, and try again", what.display())))
    }

    /// Replaces the text of the file, or removes the file.
    pub fn write_text(&self, text: Option<&str>) -> Result<(), Failure> {
        let written = match text {
            None => atomic_file::remove_file(&self.real),
            Some(text) => atomic_file::replace_file(&self.real, text.as_bytes(), FileReaders::AsBefore),
        };
        written.map_err(|error| {
            Failure::new(FailureCode::System, format!("cannot write `{}`", self.path.display())).with_cause(error)
        })
    }
}

fn unusable_path_failure(path: &Path, error: io::Error) -> Failure {
    Failure::new(FailureCode::System, format!("cannot use `{}`", path.display()))
        .with_cause(error)
        .with_hint("nothing was written; repair or remove what is in its place")
}

/// Returns the real path of a file that may not exist yet.
fn resolve_real_path(path: &Path) -> io::Result<PathBuf> {
    match path.canonicalize() {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
        resolved => return resolved,
    }
    if path.symlink_metadata().is_ok() {
        return Err(io::Error::other("it is a link that leads nowhere"));
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(path.to_owned()) };
    let parent = resolve_real_path(parent)?;
    if parent.exists() && !parent.is_dir() {
        return Err(io::Error::other(format!("`{}` is not a directory", parent.display())));
    }
    Ok(parent.join(name))
}
