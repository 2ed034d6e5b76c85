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

use windlass_process::{
    CaptureLimits, OwnerLock, ProgramExit, ProgramInvocation, ProgramSpec, RunControl, file, overlay_environment,
    run_program,
};
use windlass_vcs::git::{GitCommitId, GitRepository};

use crate::environment;
use crate::project::Project;

/// A file beside the records of a session with the commit that the session started from. Its own time is the start of the session
/// by the clock of the file system.
pub const BASE_FILE: &str = "base";
/// The longest time that git may take.
const GIT_TIMEOUT: Duration = Duration::from_secs(2);
/// The longest list of names that is read, in bytes.
const MAX_NAME_LIST: usize = 256 * 1024;

/// The changed files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangedFiles {
    /// Sorted by name.
    pub files: Vec<String>,
    /// Whether there may be more.
    pub is_truncated: bool,
}

/// Records the commit that a session starts from. Without one, only uncommitted changes count.
pub fn record_base_commit(project: &Project, records: &Path) {
    if let Ok(Some(repository)) = GitRepository::discover(&project.root) {
        let commit = repository.head_commit();
        let _ = fs::write(records.join(BASE_FILE), commit.as_ref().map_or("", GitCommitId::as_str));
    }
}

/// A query of git, with the owner and the control that it runs under.
pub struct ChangedFilesQuery<'a> {
    pub project: &'a Project,
    pub owner_lock: &'a OwnerLock,
    pub control: &'a RunControl,
}

impl ChangedFilesQuery<'_> {
    /// Returns the files that have changed since the start; `Ok(None)` without a repository, an error if git fails.
    pub fn find_changed_files(&self, records: &Path) -> Result<Option<ChangedFiles>, String> {
        let (root, place) = (&self.project.root, records.join(BASE_FILE));
        let Some(since) = change_time(&place) else { return Ok(None) };
        let base = file::read_text_file(&place, 128).and_then(|base| GitCommitId::new(&base).ok());
        let (mut files, mut cut) = self.list_git_entries(&["ls-files", "--others", "--exclude-standard", "-z"])?;
        if let Some(base) = base {
            let words = ["diff", "--name-only", "-z", "--relative", "--no-ext-diff", "--no-renames"];
            let (listed, more) = self.list_git_entries(&[&words[..], &[base.as_str(), "--"]].concat())?;
            files.extend(listed);
            cut |= more;
        }
        let is_touched = |path: &Path| change_time_or_parents(path).is_none_or(|touched| touched >= since);
        files.retain(|file| !file.starts_with(".windlass/") && is_touched(&root.join(file)));
        files.sort();
        files.dedup();
        Ok(Some(ChangedFiles { files, is_truncated: cut }))
    }

    /// Returns git's entries, and whether there are more.
    fn list_git_entries(&self, words: &[&str]) -> Result<(Vec<String>, bool), String> {
        // The repository's own configuration may name programs.
        let git = ["git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"];
        let invocation = ProgramInvocation::Argv(git.iter().chain(words).map(Into::into).collect());
        let environment =
            overlay_environment(&environment::inherited_environment(), vec![("GIT_OPTIONAL_LOCKS", "0".into())]);
        let spec = ProgramSpec {
            timeout: Some(GIT_TIMEOUT),
            capture: CaptureLimits { head: MAX_NAME_LIST, tail: 0, spill: None },
            ..ProgramSpec::new(invocation, &self.project.root, environment)
        };
        let ran = run_program(&spec, self.owner_lock, &self.control.ignoring_cancel(), &mut |_, _| {});
        match ran {
            Ok(ran) if ran.exit == ProgramExit::Code(0) => {
                let (bytes, cut) = (ran.stdout.to_bytes(), ran.stdout.omitted_byte_count() > 0);
                let mut entries: Vec<String> =
                    bytes.split(|byte| *byte == 0).map(|entry| String::from_utf8_lossy(entry).into_owned()).collect();
                // The part after the last separator is empty or a truncated entry.
                entries.pop();
                Ok((entries, cut))
            }
            Ok(ran) if ran.exit == ProgramExit::TimedOut => {
                Err(format!("git took longer than {} s", GIT_TIMEOUT.as_secs()))
            }
            Ok(ran) if ran.exit == ProgramExit::Cancelled => Err("everything was ended at once".to_owned()),
            Ok(_) => Err("git cannot say".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Returns the status change time of a file, in seconds and nanoseconds. Programs cannot set it back.
fn change_time(path: &Path) -> Option<(i64, i64)> {
    fs::symlink_metadata(path).ok().map(|found| (found.ctime(), found.ctime_nsec()))
}

/// Returns the change time of a file, or if it is gone, of the nearest existing directory: that one changed with the removal.
fn change_time_or_parents(path: &Path) -> Option<(i64, i64)> {
    path.ancestors().find_map(change_time)
}
