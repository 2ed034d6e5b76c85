//! The files that have changed since a session started, according to git.
//!
//! Invariants:
//! - Nothing is started when a session starts; programs at its end have bounded time and output.
//! - Programs that the repository's own configuration names do not run.
//! - A file that was not touched since the start does not count, even if it had changes before.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use windlass_process::{Capture, Control, Exit, Invocation, Roster, Spec, file, overlay, run};
use windlass_vcs::git::{Commit, Repository};

use crate::environment;
use crate::project::Project;

/// A file beside the records of a session with the commit that the session started from. Its own time is the start of the session
/// by the clock of the file system.
pub const BASE_FILE: &str = "base";
/// The longest time that git may take.
const GIT_TIMEOUT: Duration = Duration::from_secs(2);
/// The longest list of names that is read, in bytes.
const MAX_NAMES: usize = 256 * 1024;

/// The changed files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangedFiles {
    /// Sorted by name.
    pub files: Vec<String>,
    /// Whether there may be more.
    pub cut: bool,
}

/// Records the commit that a session starts from. Without one, only uncommitted changes count.
pub fn record_base(project: &Project, records: &Path) {
    if let Ok(Some(repository)) = Repository::find(&project.root) {
        let commit = repository.head_commit();
        let _ = fs::write(records.join(BASE_FILE), commit.as_ref().map_or("", Commit::as_str));
    }
}

/// A query of git, with the owner and the control that it runs under.
pub struct ChangedFilesQuery<'a> {
    pub project: &'a Project,
    pub roster: &'a Roster,
    pub control: &'a Control,
}

impl ChangedFilesQuery<'_> {
    /// Returns the files that have changed since the start; `Ok(None)` without a repository, an error if git fails.
    pub fn run(&self, records: &Path) -> Result<Option<ChangedFiles>, String> {
        let (root, place) = (&self.project.root, records.join(BASE_FILE));
        let Some(since) = touched(&place) else { return Ok(None) };
        let base = file::read_text(&place, 128).and_then(|base| Commit::new(&base).ok());
        let (mut files, mut cut) = self.ask(&["ls-files", "--others", "--exclude-standard", "-z"])?;
        if let Some(base) = base {
            let words = ["diff", "--name-only", "-z", "--relative", "--no-ext-diff", "--no-renames"];
            let (listed, more) = self.ask(&[&words[..], &[base.as_str(), "--"]].concat())?;
            files.extend(listed);
            cut |= more;
        }
        let is_touched = |path: &Path| last_touched(path).is_none_or(|touched| touched >= since);
        files.retain(|file| !file.starts_with(".windlass/") && is_touched(&root.join(file)));
        files.sort();
        files.dedup();
        Ok(Some(ChangedFiles { files, cut }))
    }

    /// Returns git's entries, and whether there are more.
    fn ask(&self, words: &[&str]) -> Result<(Vec<String>, bool), String> {
        // The repository's own configuration may name programs.
        let git = ["git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"];
        let invocation = Invocation::Argv(git.iter().chain(words).map(Into::into).collect());
        let environment = overlay(&environment::inherited(), vec![("GIT_OPTIONAL_LOCKS", "0".into())]);
        let spec = Spec {
            timeout: Some(GIT_TIMEOUT),
            capture: Capture { head: MAX_NAMES, tail: 0, spill: None },
            ..Spec::new(invocation, &self.project.root, environment)
        };
        let ran = run(&spec, self.roster, &self.control.resolute(), &mut |_, _| {});
        match ran {
            Ok(ran) if ran.exit == Exit::Code(0) => {
                let (bytes, cut) = (ran.stdout.bytes(), ran.stdout.left_out() > 0);
                let mut entries: Vec<String> =
                    bytes.split(|byte| *byte == 0).map(|entry| String::from_utf8_lossy(entry).into_owned()).collect();
                // The part after the last separator is empty or a truncated entry.
                entries.pop();
                Ok((entries, cut))
            }
            Ok(ran) if ran.exit == Exit::TimedOut => Err(format!("git took longer than {} s", GIT_TIMEOUT.as_secs())),
            Ok(ran) if ran.exit == Exit::Cancelled => Err("everything was ended at once".to_owned()),
            Ok(_) => Err("git cannot say".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Returns the status change time of a file, in seconds and nanoseconds. Programs cannot set it back.
fn touched(path: &Path) -> Option<(i64, i64)> {
    fs::symlink_metadata(path).ok().map(|found| (found.ctime(), found.ctime_nsec()))
}

/// Returns the change time of a file, or if it is gone, of the nearest existing directory: that one changed with the removal.
fn last_touched(path: &Path) -> Option<(i64, i64)> {
    path.ancestors().find_map(touched)
}
