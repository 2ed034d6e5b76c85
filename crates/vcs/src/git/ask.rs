//! How git is asked: the one place where it is started.
//!
//! Invariants:
//! - Nothing of the caller's `GIT_*` gets in, and nothing is asked of a person.
//! - The user's configuration cannot change what our calls mean, and runs no hooks. Where it says how things are reached or
//!   stored (addresses, credentials, filters, line ends) it counts.
//! - Commits are what they are: nobody can put others in their place by refs or grafts.
//! - Git looks for its repository in the directory that it is given and nowhere above.
//! - Every call is bounded in time and in output. What somebody else holds for a moment is tried again, for a bounded time.
//! - No call begins that would wait for a file (`obstacle`).
//!
//! Not here: what its complaints mean (`trouble`).

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use windlass_process::{Capture, Environment, Exit, Finished, Invocation, NotStarted, Spec, overlay};

use super::known::{ConfigEntries, KnownFacts};
use super::locks;
use super::names::{Commit, RemoteName};
use super::refs::Place;
use super::trouble::{clean, explain, is_passing};
use super::{Error, Repository, obstacle};

/// How long a call may take, without and with a network in it.
const LOCAL: Duration = Duration::from_secs(120);
const NETWORK: Duration = Duration::from_secs(300);
const GRACE: Duration = Duration::from_secs(5);
/// The longest answer, unless told otherwise, and what is kept of complaints.
const ANSWER: usize = 64 * 1024 * 1024;
const COMPLAINT: usize = 16 * 1024;
/// The pauses between tries, while somebody else holds what we need: five seconds in all.
const PAUSES: [u64; 10] = [5, 15, 40, 100, 240, 400, 700, 1000, 1200, 1300];

/// What our calls mean, whatever the user's configuration says.
const SETTINGS: &[&str] = &[
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

/// What changes no repository, no worktree and no remote.
const LOOKING: [&str; 15] = [
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

/// Whether a call of git puts work away, as `add`, `commit` and `push` do, and does not only look.
pub fn puts_work_away(spec: &Spec) -> bool {
    let Invocation::Argv(words) = &spec.invocation else { return true };
    let mut words = words.iter().skip(1).skip_while(|word| *word == "--no-pager");
    let mut command = words.next();
    while command.is_some_and(|word| word == "-c") {
        command = words.nth(1);
    }
    !command.is_some_and(|word| LOOKING.iter().any(|name| word == name))
}

/// Runs a program. What it is run under (an owner, a supervisor, a control) is the caller's.
pub type Run<'a> = &'a dyn Fn(&Spec) -> Result<Finished, NotStarted>;

/// Git in one repository.
pub struct Git<'a> {
    pub(super) repository: Repository,
    run: Run<'a>,
    environment: Environment,
    /// The remote that counts, if a person has named one.
    pub(super) remote: Option<RemoteName>,
    /// What git has said before.
    pub(super) known: KnownFacts,
}

impl<'a> Git<'a> {
    /// `environment` is what programs of the user get; its `GIT_*` is taken out.
    pub fn new(repository: Repository, run: Run<'a>, environment: &Environment) -> Self {
        let is_kept = |name: &OsStr| {
            let name = name.as_encoded_bytes();
            !name.starts_with(b"GIT_") && !matches!(name, b"SSH_ASKPASS" | b"LANGUAGE")
        };
        let kept: Environment = environment.iter().filter(|(name, _)| is_kept(name)).cloned().collect();
        let told = [
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
        let environment = overlay(&kept, told.map(|(name, value)| (name, value.into())).to_vec());
        Self { repository, run, environment, remote: None, known: KnownFacts::default() }
    }

    /// The same with a remote that a person has named.
    pub fn through(self, remote: Option<RemoteName>) -> Self {
        Self { remote, ..self }
    }

    /// The same with what git has said before about this repository.
    pub fn with_known(self, known: &KnownFacts) -> Self {
        Self { known: known.clone(), ..self }
    }

    pub fn repository(&self) -> &Repository {
        &self.repository
    }

    /// A call, to be made in the main worktree unless told otherwise.
    pub(super) fn call(&self, words: &[&str]) -> Call<'_, 'a> {
        Call {
            git: self,
            settings: Vec::new(),
            words: words.iter().map(Into::into).collect(),
            directory: self.repository.root.clone(),
            environment: Vec::new(),
            stdin: Vec::new(),
            timeout: LOCAL,
            bound: None,
        }
    }

    /// The commit that a whole ref leads to.
    pub(super) fn resolve(&self, full: &str) -> Result<Option<Commit>, Error> {
        match self.repository.place_of_ref(full) {
            Place::At(commit) => return Ok(Some(commit)),
            Place::Nowhere => return Ok(None),
            Place::Unclear => {}
        }
        let answer = self.call(&["rev-parse", "--verify", "--quiet"]).word(format!("{full}^{{commit}}")).answer()?;
        if answer.code == 0 { Commit::new(&answer.line()).map(Some) } else { Ok(None) }
    }

    /// What the configuration says of a key, whose first and last part are in lower case.
    pub(super) fn setting(&self, key: &str) -> Result<Option<String>, Error> {
        let settings = self.settings()?;
        let found = settings.iter().rev().find(|(name, _)| name == key);
        Ok(found.map(|(_, value)| value.clone()).filter(|value| !value.is_empty()))
    }

    /// All that the configuration says. What is said last counts.
    pub(super) fn settings(&self) -> Result<ConfigEntries, Error> {
        if let Some(known) = &*self.known.0.settings.borrow() {
            return Ok(known.clone());
        }
        let answer = self.call(&["config", "--list", "-z"]).done()?;
        let pair = |entry: &[u8]| {
            let text = String::from_utf8_lossy(entry);
            let (key, value) = text.split_once('\n').unwrap_or((&text, ""));
            (key.to_owned(), value.to_owned())
        };
        let known: ConfigEntries = answer.entries().into_iter().map(pair).collect();
        if !known.iter().any(|(key, _)| key == "core.repositoryformatversion") {
            // Where git does not trust a repository it is silent about its configuration, and only of that.
            self.call(&["rev-parse", "--git-dir"]).done()?;
        }
        self.known.0.settings.replace(Some(known.clone()));
        Ok(known)
    }

    /// Whether the configuration says who commits.
    fn has_identity(&self) -> Result<bool, Error> {
        let is_said =
            |key| Ok::<_, Error>(self.setting(key)?.is_some_and(|value| value.contains(char::is_alphanumeric)));
        Ok(is_said("user.name")? && is_said("user.email")?)
    }
}

/// A call of git that is being put together.
#[must_use]
pub(super) struct Call<'g, 'a> {
    git: &'g Git<'a>,
    settings: Vec<OsString>,
    words: Vec<OsString>,
    directory: PathBuf,
    environment: Vec<(&'static str, OsString)>,
    stdin: Vec<u8>,
    timeout: Duration,
    /// How much of the answer is enough. Otherwise half an answer is none.
    bound: Option<usize>,
}

/// What git said. A code that is not zero may be an answer too.
#[derive(Debug)]
pub(super) struct Answer {
    pub code: i32,
    pub bytes: Vec<u8>,
    /// There was more.
    pub cut: bool,
    /// Cleaned.
    pub said: String,
}

impl Answer {
    pub fn line(&self) -> String {
        String::from_utf8_lossy(&self.bytes).trim_end_matches('\n').to_owned()
    }

    /// Entries that end with a zero byte. Half an entry at the end is none.
    pub fn entries(&self) -> Vec<&[u8]> {
        let mut entries: Vec<_> = self.bytes.split(|byte| *byte == 0).collect();
        entries.pop();
        entries
    }
}

impl Call<'_, '_> {
    pub fn word(mut self, word: impl AsRef<OsStr>) -> Self {
        self.words.push(word.as_ref().to_owned());
        self
    }

    pub fn set(mut self, setting: impl AsRef<OsStr>) -> Self {
        self.settings.push(setting.as_ref().to_owned());
        self
    }

    pub fn within(mut self, directory: &Path) -> Self {
        self.directory = directory.to_owned();
        self
    }

    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    pub fn bound(mut self, bytes: usize) -> Self {
        self.bound = Some(bytes);
        self
    }

    pub fn variable(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.environment.push((name, value.into()));
        self
    }

    /// Over a network, perhaps: without questions, unless the user has said how ssh is called.
    pub fn over_network(mut self) -> Result<Self, Error> {
        self.timeout = NETWORK;
        if self.git.setting("core.sshcommand")?.is_none() {
            self.environment.push(("GIT_SSH_COMMAND", "ssh -oBatchMode=yes".into()));
        }
        Ok(self)
    }

    /// Something that makes commits: by the user's name, or by ours where there is none.
    pub fn signed(self) -> Result<Self, Error> {
        if self.git.has_identity()? {
            return Ok(self);
        }
        Ok(self.set("user.name=Windlass").set("user.email=windlass@localhost"))
    }

    /// What git says, whatever its code.
    pub fn answer(self) -> Result<Answer, Error> {
        self.ask(false)
    }

    /// What git says, or why it did not do it.
    pub fn done(self) -> Result<Answer, Error> {
        self.ask(true)
    }

    /// One whole id.
    pub fn commit(self) -> Result<Commit, Error> {
        Commit::new(&self.done()?.line())
    }

    fn ask(self, must_succeed: bool) -> Result<Answer, Error> {
        obstacle::check(&self.directory)?;
        obstacle::check_common(&self.git.repository.common)?;
        let spec = self.spec();
        let mut pauses = PAUSES.into_iter();
        loop {
            let ran = (self.git.run)(&spec).map_err(Error::NotStarted)?;
            let code = match ran.exit {
                Exit::Code(code) => code,
                Exit::Cancelled => return Err(Error::Cancelled { command: self.command() }),
                Exit::TimedOut | Exit::Silent => {
                    obstacle::find(&self.directory)?;
                    obstacle::find_in_common(&self.git.repository.common)?;
                    return Err(Error::TimedOut { command: self.command(), after: ran.took });
                }
                Exit::Signal(number) => return Err(self.ended(&format!("it was ended by signal {number}"))),
                Exit::Lost => return Err(self.ended("it was lost")),
            };
            let (stdout, stderr) = (ran.stdout, ran.stderr.bytes().into_owned());
            let answer =
                || Answer { code, cut: stdout.left_out() > 0, bytes: stdout.head.clone(), said: clean(&stderr) };
            if code == 0 && self.bound.is_none() && stdout.left_out() > 0 {
                return Err(self.ended("its answer is too long"));
            }
            if code == 0 {
                return Ok(answer());
            }
            let error = explain(self.command(), &self.directory, &stderr);
            if matches!(&error, Error::Locked { path, .. } if locks::clear_shared(path, &self.git.repository)) {
                continue;
            }
            match pauses.next().filter(|_| is_passing(&error)) {
                Some(pause) => thread::sleep(Duration::from_millis(pause)),
                None if must_succeed || !matches!(error, Error::Failed { .. }) => {
                    return Err(locks::who(error, &self.git.repository));
                }
                None => return Ok(answer()),
            }
        }
    }

    fn ended(&self, how: &str) -> Error {
        Error::Ended { command: self.command(), how: how.to_owned() }
    }

    /// What is told of a call: its first word.
    fn command(&self) -> String {
        self.words.iter().take(1).map(|word| word.to_string_lossy().into_owned()).collect()
    }

    fn spec(&self) -> Spec {
        let settings = SETTINGS.iter().map(OsString::from).chain(self.settings.iter().cloned());
        let mut words = vec![OsString::from("git"), OsString::from("--no-pager")];
        words.extend(settings.flat_map(|setting| ["-c".into(), setting]));
        words.extend(self.words.iter().cloned());
        let above = self.directory.parent().unwrap_or(Path::new("/")).as_os_str().to_owned();
        let mut told = vec![("GIT_CEILING_DIRECTORIES", above)];
        told.extend(self.environment.iter().cloned());
        Spec {
            stdin: self.stdin.clone(),
            timeout: Some(self.timeout),
            grace: GRACE,
            capture: Capture { head: self.bound.unwrap_or(ANSWER).max(COMPLAINT), tail: 0, spill: None },
            ..Spec::new(Invocation::Argv(words), &self.directory, overlay(&self.git.environment, told))
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
        let late = |_: &Spec| Ok(Finished { exit: Exit::TimedOut, ..Finished::said(Vec::new()) });
        let repository = Repository { root: place.path().to_owned(), common: common.clone() };
        let git = Git::new(repository, &late, &Environment::default());
        let said = || git.call(&["status"]).done().unwrap_err().to_string();
        assert!(said().starts_with("cannot finish `git status`"), "{}", said());
        std::os::unix::fs::symlink("/dev/zero", common.join("refs/heads/other")).unwrap();
        assert!(said().ends_with("/refs/heads/other` is a device, not a file"), "{}", said());
    }

    #[test]
    fn calls_that_put_work_away_are_told_from_those_that_look() {
        let run = |_: &Spec| -> Result<Finished, NotStarted> { unreachable!("no call is made") };
        let repository = Repository { root: "/nowhere".into(), common: "/nowhere/.git".into() };
        let git = Git::new(repository, &run, &Environment::default());
        let check = |words: &[&str]| puts_work_away(&git.call(words).set("user.name=add").spec());
        for words in [&["add", "--all"][..], &["commit"], &["worktree", "add"], &["push"], &["merge"], &["update-ref"]]
        {
            assert!(check(words), "{words:?}");
        }
        for words in [&["status"][..], &["rev-parse", "add"], &["ls-files"], &["config", "--list"]] {
            assert!(!check(words), "{words:?}");
        }
    }
}
