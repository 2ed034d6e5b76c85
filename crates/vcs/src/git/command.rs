//! Runs git: the one place that starts it.
//!
//! Invariants:
//! - Git gets no `GIT_*` variable of the caller, and asks a person nothing.
//! - The user's configuration cannot change the meaning of our calls, and runs no hooks. Its settings for access and
//!   storage (addresses, credentials, filters, line ends) apply.
//! - Replace refs and grafts have no effect: commits are what they are.
//! - Git searches for its repository only in the directory that it gets, not above.
//! - Every call is bounded in time and in output. While another process holds a lock, the call is repeated for a bounded time.
//! - No call starts that would block on a special file (`obstacle`).
//!
//! Not here: the meaning of git's messages (`stderr`).

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use windlass_process::{
    CaptureLimits, Environment, ProgramExit, ProgramInvocation, ProgramOutcome, ProgramSpec, ProgramStartError,
    overlay_environment,
};

use super::facts::{ConfigEntries, KnownFacts};
use super::locks;
use super::names::{GitCommitId, RemoteName};
use super::refs::RefTarget;
use super::stderr::{classify_failure, clean_message, is_transient};
use super::{Error, GitRepository, obstacle};

/// The timeout of a call, without and with network access.
const LOCAL_TIMEOUT: Duration = Duration::from_secs(120);
const NETWORK_TIMEOUT: Duration = Duration::from_secs(300);
const TERMINATION_GRACE: Duration = Duration::from_secs(5);
/// The longest output by default, and the smallest capture, which has to hold git's messages.
const MAX_OUTPUT_BYTES: usize = 64 * 1024 * 1024;
const MIN_CAPTURED_BYTES: usize = 16 * 1024;
/// The pauses between attempts while another process holds a lock: five seconds in all.
const RETRY_PAUSES_MS: [u64; 10] = [5, 15, 40, 100, 240, 400, 700, 1000, 1200, 1300];

/// Settings of our calls that override the user's configuration.
const FIXED_SETTINGS: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.safecrlf=false",
    "core.logAllRefUpdates=true",
    "commit.gpgSign=false",
    "push.gpgSign=false",
    "push.useForceIfIncludes=false",
    "push.pushOption=",
    "submodule.recurse=false",
    "merge.autoStash=false",
    "merge.conflictStyle=merge",
    "merge.verifySignatures=false",
    "rerere.enabled=false",
    "worktree.guessRemote=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "fetch.writeCommitGraph=false",
    "color.ui=false",
    "advice.detachedHead=false",
];

/// Commands that change no repository, no worktree and no remote.
const READ_ONLY_COMMANDS: [&str; 15] = [
    "cat-file",
    "config",
    "diff-files",
    "diff-index",
    "diff-tree",
    "for-each-ref",
    "log",
    "ls-files",
    "ls-remote",
    "ls-tree",
    "merge-base",
    "remote",
    "rev-list",
    "rev-parse",
    "status",
];

/// Returns whether a call of git changes something, as `add`, `commit` and `push` do, or only reads.
pub fn modifies_repository(spec: &ProgramSpec) -> bool {
    let ProgramInvocation::Argv(words) = &spec.invocation else { return true };
    let mut words = words.iter().skip(1).skip_while(|word| *word == "--no-pager");
    let mut command = words.next();
    while command.is_some_and(|word| word == "-c") {
        command = words.nth(1);
    }
    !command.is_some_and(|word| READ_ONLY_COMMANDS.iter().any(|name| word == name))
}

/// Runs a program. The caller decides under which owner, supervisor and control.
pub type RunProgram<'a> = &'a dyn Fn(&ProgramSpec) -> Result<ProgramOutcome, ProgramStartError>;

/// A client for git in one repository.
pub struct GitClient<'a> {
    pub(super) repository: GitRepository,
    run: RunProgram<'a>,
    environment: Environment,
    /// The remote that a person has named, if any.
    pub(super) remote: Option<RemoteName>,
    /// Facts that earlier calls found.
    pub(super) known: KnownFacts,
}

impl<'a> GitClient<'a> {
    /// Creates a client. `environment` is that of the user's programs; its `GIT_*` variables are removed.
    pub fn new(repository: GitRepository, run: RunProgram<'a>, environment: &Environment) -> Self {
        let is_kept = |name: &OsStr| {
            let name = name.as_encoded_bytes();
            !name.starts_with(b"GIT_") && !matches!(name, b"SSH_ASKPASS" | b"LANGUAGE")
        };
        let kept: Environment = environment.iter().filter(|(name, _)| is_kept(name)).cloned().collect();
        let variables = [
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_ASKPASS", ""),
            ("SSH_ASKPASS_REQUIRE", "never"),
            ("GCM_INTERACTIVE", "never"),
            ("GIT_EDITOR", "true"),
            ("GIT_SEQUENCE_EDITOR", "true"),
            ("GIT_PAGER", "cat"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_LITERAL_PATHSPECS", "1"),
            ("GIT_NO_REPLACE_OBJECTS", "1"),
            ("GIT_GRAFT_FILE", "/dev/null"),
            ("LC_ALL", "C"),
        ];
        let environment = overlay_environment(&kept, variables.map(|(name, value)| (name, value.into())).to_vec());
        Self { repository, run, environment, remote: None, known: KnownFacts::default() }
    }

    /// Sets the remote that a person has named.
    pub fn with_remote(self, remote: Option<RemoteName>) -> Self {
        Self { remote, ..self }
    }

    /// Shares the facts that earlier calls found about this repository.
    pub fn with_known_facts(self, known: &KnownFacts) -> Self {
        Self { known: known.clone(), ..self }
    }

    pub fn repository(&self) -> &GitRepository {
        &self.repository
    }

    /// Builds a call, by default in the main worktree.
    pub(super) fn build_command(&self, words: &[&str]) -> GitCommand<'_, 'a> {
        GitCommand {
            git: self,
            settings: Vec::new(),
            words: words.iter().map(Into::into).collect(),
            directory: self.repository.root.clone(),
            environment: Vec::new(),
            stdin: Vec::new(),
            timeout: LOCAL_TIMEOUT,
            bound: None,
        }
    }

    /// Returns the commit that a full ref leads to.
    pub(super) fn resolve_ref(&self, full: &str) -> Result<Option<GitCommitId>, Error> {
        match self.repository.ref_target(full) {
            RefTarget::At(commit) => return Ok(Some(commit)),
            RefTarget::Missing => return Ok(None),
            RefTarget::Unclear => {}
        }
        let answer = self
            .build_command(&["rev-parse", "--verify", "--quiet"])
            .with_argument(format!("{full}^{{commit}}"))
            .run_unchecked()?;
        if answer.code == 0 { GitCommitId::new(&answer.trimmed_text()).map(Some) } else { Ok(None) }
    }

    /// Returns the configured value of a key, whose first and last part are in lower case.
    pub(super) fn read_setting(&self, key: &str) -> Result<Option<String>, Error> {
        let settings = self.read_settings()?;
        let found = settings.iter().rev().find(|(name, _)| name == key);
        Ok(found.map(|(_, value)| value.clone()).filter(|value| !value.is_empty()))
    }

    /// Returns all configured values. The last one of a key counts.
    pub(super) fn read_settings(&self) -> Result<ConfigEntries, Error> {
        if let Some(known) = &*self.known.0.settings.borrow() {
            return Ok(known.clone());
        }
        let answer = self.build_command(&["config", "--list", "-z"]).run_checked()?;
        let pair = |entry: &[u8]| {
            let text = String::from_utf8_lossy(entry);
            let (key, value) = text.split_once('\n').unwrap_or((&text, ""));
            (key.to_owned(), value.to_owned())
        };
        let known: ConfigEntries = answer.split_entries().into_iter().map(pair).collect();
        if !known.iter().any(|(key, _)| key == "core.repositoryformatversion") {
            // In a repository that git does not trust, `config` silently omits the repository's settings. `rev-parse`
            // reports the error.
            self.build_command(&["rev-parse", "--git-dir"]).run_checked()?;
        }
        self.known.0.settings.replace(Some(known.clone()));
        Ok(known)
    }

    /// Returns whether the configuration names a committer.
    fn has_identity(&self) -> Result<bool, Error> {
        let is_said =
            |key| Ok::<_, Error>(self.read_setting(key)?.is_some_and(|value| value.contains(char::is_alphanumeric)));
        Ok(is_said("user.name")? && is_said("user.email")?)
    }
}

/// A call of git under construction.
#[must_use]
pub(super) struct GitCommand<'g, 'a> {
    git: &'g GitClient<'a>,
    settings: Vec<OsString>,
    words: Vec<OsString>,
    directory: PathBuf,
    environment: Vec<(&'static str, OsString)>,
    stdin: Vec<u8>,
    timeout: Duration,
    /// The number of output bytes that suffice. Without it, incomplete output is an error.
    bound: Option<usize>,
}

/// The output of git. An exit code other than zero may be an answer, too.
#[derive(Debug)]
pub(super) struct GitOutput {
    pub code: i32,
    pub bytes: Vec<u8>,
    /// Whether there was more output.
    pub cut: bool,
    /// Cleaned.
    pub said: String,
}

impl GitOutput {
    pub fn trimmed_text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).trim_end_matches('\n').to_owned()
    }

    /// Returns the entries that end with a zero byte, without an incomplete one at the end.
    pub fn split_entries(&self) -> Vec<&[u8]> {
        let mut entries: Vec<_> = self.bytes.split(|byte| *byte == 0).collect();
        entries.pop();
        entries
    }
}

impl GitCommand<'_, '_> {
    pub fn with_argument(mut self, word: impl AsRef<OsStr>) -> Self {
        self.words.push(word.as_ref().to_owned());
        self
    }

    pub fn with_setting(mut self, setting: impl AsRef<OsStr>) -> Self {
        self.settings.push(setting.as_ref().to_owned());
        self
    }

    pub fn in_directory(mut self, directory: &Path) -> Self {
        self.directory = directory.to_owned();
        self
    }

    pub fn with_stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    pub fn with_output_limit(mut self, bytes: usize) -> Self {
        self.bound = Some(bytes);
        self
    }

    pub fn with_variable(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.environment.push((name, value.into()));
        self
    }

    /// Prepares a call that may use the network: without questions, unless the user configured the ssh command.
    pub fn over_network(mut self) -> Result<Self, Error> {
        self.timeout = NETWORK_TIMEOUT;
        if self.git.read_setting("core.sshcommand")?.is_none() {
            self.environment.push(("GIT_SSH_COMMAND", "ssh -oBatchMode=yes".into()));
        }
        Ok(self)
    }

    /// Prepares a call that makes commits: with the user's name, or with ours if there is none.
    pub fn with_identity(self) -> Result<Self, Error> {
        if self.git.has_identity()? {
            return Ok(self);
        }
        Ok(self.with_setting("user.name=Windlass").with_setting("user.email=windlass@localhost"))
    }

    /// Runs the call, and returns its output for any exit code.
    pub fn run_unchecked(self) -> Result<GitOutput, Error> {
        self.run_with_retries(false)
    }

    /// Runs the call, and turns an exit code other than zero into an error.
    pub fn run_checked(self) -> Result<GitOutput, Error> {
        self.run_with_retries(true)
    }

    /// Runs the call, and returns its output as one full commit id.
    pub fn run_for_commit(self) -> Result<GitCommitId, Error> {
        GitCommitId::new(&self.run_checked()?.trimmed_text())
    }

    fn run_with_retries(self, must_succeed: bool) -> Result<GitOutput, Error> {
        obstacle::check_directory(&self.directory)?;
        obstacle::check_common_directory(&self.git.repository.common)?;
        let spec = self.build_spec();
        let mut pauses = RETRY_PAUSES_MS.into_iter();
        loop {
            let ran = (self.git.run)(&spec).map_err(Error::NotStarted)?;
            let code = match ran.exit {
                ProgramExit::Code(code) => code,
                ProgramExit::Cancelled => return Err(Error::Cancelled { command: self.command_name() }),
                ProgramExit::TimedOut | ProgramExit::OutputIdle => {
                    obstacle::check_tree(&self.directory)?;
                    obstacle::check_common_tree(&self.git.repository.common)?;
                    return Err(Error::TimedOut { command: self.command_name(), after: ran.took });
                }
                ProgramExit::Signal(number) => {
                    return Err(self.ended_error(&format!("it was ended by signal {number}")));
                }
                ProgramExit::Lost => return Err(self.ended_error("it was lost")),
            };
            let (stdout, stderr) = (ran.stdout, ran.stderr.to_bytes().into_owned());
            let answer = || GitOutput {
                code,
                cut: stdout.omitted_byte_count() > 0,
                bytes: stdout.head.clone(),
                said: clean_message(&stderr),
            };
            if code == 0 && self.bound.is_none() && stdout.omitted_byte_count() > 0 {
                return Err(self.ended_error("its answer is too long"));
            }
            if code == 0 {
                return Ok(answer());
            }
            let error = classify_failure(self.command_name(), &self.directory, &stderr);
            if matches!(&error, Error::Locked { path, .. } if locks::clear_shared_lock(path, &self.git.repository)) {
                continue;
            }
            match pauses.next().filter(|_| is_transient(&error)) {
                Some(pause) => thread::sleep(Duration::from_millis(pause)),
                None if must_succeed || !matches!(error, Error::Failed { .. }) => {
                    return Err(locks::name_lock_holder(error, &self.git.repository));
                }
                None => return Ok(answer()),
            }
        }
    }

    fn ended_error(&self, how: &str) -> Error {
        Error::Ended { command: self.command_name(), how: how.to_owned() }
    }

    /// Returns the name of the call for messages: its first word.
    fn command_name(&self) -> String {
        self.words.iter().take(1).map(|word| word.to_string_lossy().into_owned()).collect()
    }

    fn build_spec(&self) -> ProgramSpec {
        let settings = FIXED_SETTINGS.iter().map(OsString::from).chain(self.settings.iter().cloned());
        let mut words = vec![OsString::from("git"), OsString::from("--no-pager")];
        words.extend(settings.flat_map(|setting| ["-c".into(), setting]));
        words.extend(self.words.iter().cloned());
        let above = self.directory.parent().unwrap_or(Path::new("/")).as_os_str().to_owned();
        let mut variables = vec![("GIT_CEILING_DIRECTORIES", above)];
        variables.extend(self.environment.iter().cloned());
        ProgramSpec {
            stdin: self.stdin.clone(),
            timeout: Some(self.timeout),
            grace: TERMINATION_GRACE,
            capture: CaptureLimits {
                head: self.bound.unwrap_or(MAX_OUTPUT_BYTES).max(MIN_CAPTURED_BYTES),
                tail: 0,
                spill: None,
            },
            ..ProgramSpec::new(
                ProgramInvocation::Argv(words),
                &self.directory,
                overlay_environment(&self.git.environment, variables),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_that_took_too_long_names_what_git_waits_for() {
        let place = tempfile::tempdir().unwrap();
        let common = place.path().join(".git");
        std::fs::create_dir_all(common.join("refs/heads")).unwrap();
        let late = |_: &ProgramSpec| {
            Ok(ProgramOutcome { exit: ProgramExit::TimedOut, ..ProgramOutcome::success_with_stdout(Vec::new()) })
        };
        let repository = GitRepository { root: place.path().to_owned(), common: common.clone() };
        let git = GitClient::new(repository, &late, &Environment::default());
        let said = || git.build_command(&["status"]).run_checked().unwrap_err().to_string();
        assert!(said().starts_with("cannot finish `git status`"), "{}", said());
        std::os::unix::fs::symlink("/dev/zero", common.join("refs/heads/other")).unwrap();
        assert!(said().ends_with("/refs/heads/other` is a device, not a file"), "{}", said());
    }

    #[test]
    fn modifying_calls_differ_from_read_only_ones() {
        let run = |_: &ProgramSpec| -> Result<ProgramOutcome, ProgramStartError> { unreachable!("no call is made") };
        let repository = GitRepository { root: "/nowhere".into(), common: "/nowhere/.git".into() };
        let git = GitClient::new(repository, &run, &Environment::default());
        let check =
            |words: &[&str]| modifies_repository(&git.build_command(words).with_setting("user.name=add").build_spec());
        for words in [&["add", "--all"][..], &["commit"], &["worktree", "add"], &["push"], &["merge"], &["update-ref"]]
        {
            assert!(check(words), "{words:?}");
        }
        for words in [&["status"][..], &["rev-parse", "add"], &["ls-files"], &["config", "--list"]] {
            assert!(!check(words), "{words:?}");
        }
    }
}
