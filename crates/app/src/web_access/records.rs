//! The records of logins in the person's own state directory, outside of the project: an agent cannot add itself there by a commit.
//!
//! Invariants:
//! - The file has digests of secrets, and no secret.
//! - A change is made under a lock, so that a server and `serve invite` do not undo each other's changes.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use windlass_process::file;

use super::ViewerRole;
use super::secret::{AccessSecret, digest_text, is_same_digest};
use crate::atomic_file::{self, FileReaders};
use crate::project::Project;
use crate::{Failure, FailureCode, environment};

/// The largest file of records.
const MAX_RECORD_BYTES: u64 = 1024 * 1024;
/// The most logins and codes. The oldest go first.
const MAX_LOGINS: usize = 200;
const MAX_CODES: usize = 200;
/// How long a browser stays logged in.
const LOGIN_MILLIS: i64 = 30 * 86_400_000;
/// The longest life of a link to a question.
const QUESTION_LINK_MILLIS: i64 = 7 * 86_400_000;

/// A person or a program that is logged in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageViewer {
    pub name: String,
    pub role: ViewerRole,
}

/// A code that logs a person in once.
#[derive(Debug, Clone)]
pub struct LoginLink {
    pub code: AccessSecret,
}

/// The question that a link is about. The link answers only a question that was asked before the link was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkedQuestion {
    pub subject: String,
    pub created_at: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LoginRecord {
    name: String,
    role: ViewerRole,
    digest: String,
    expires_at: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct QuestionRecord {
    /// The task or the session that the question is about.
    subject: String,
    digest: String,
    created_at: i64,
    expires_at: i64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AccessRecordFile {
    /// The address under which the page is served.
    url: Option<String>,
    /// The port at which the page was served last.
    port: Option<u16>,
    /// People and programs that are logged in.
    logins: Vec<LoginRecord>,
    /// Codes that log in once.
    codes: Vec<LoginRecord>,
    questions: Vec<QuestionRecord>,
}

/// The records of the logins to one project's page.
#[derive(Debug, Clone)]
pub struct AccessRecords {
    file: PathBuf,
    /// A name for the cookie: pages of several projects share a host.
    cookie: String,
}

impl AccessRecords {
    pub fn for_project(project: &Project) -> Result<Self, Failure> {
        let directory = environment::state_directory().ok_or_else(|| {
            Failure::new(FailureCode::System, "there is no directory for records of logins")
                .with_hint("set HOME, XDG_STATE_HOME or WINDLASS_STATE_DIR")
        })?;
        let digest = digest_text(&project.root.to_string_lossy());
        Ok(Self {
            file: directory.join("web").join(format!("{}.json", &digest[..32])),
            cookie: format!("__Host-windlass-{}", &digest[..8]),
        })
    }

    pub fn cookie_name(&self) -> &str {
        &self.cookie
    }

    /// Notes the address and the port at which the page is served.
    pub fn note_start(&self, url: &str, port: u16) -> Result<(), Failure> {
        self.change_records(|records| (records.url, records.port) = (Some(url.to_owned()), Some(port)))
    }

    /// Notes that the page is served no more at this address.
    pub fn note_end(&self, url: &str) -> Result<(), Failure> {
        self.change_records(|records| records.url = records.url.take().filter(|served| served != url))
    }

    /// Returns the port at which the page was served last, so that links and bookmarks stay valid.
    pub fn find_last_port(&self) -> Result<Option<u16>, Failure> {
        self.read_records().map(|records| records.port)
    }

    /// Returns the address under which the page is served.
    pub fn find_url(&self) -> Result<Option<String>, Failure> {
        self.read_records().map(|records| records.url)
    }

    /// Makes a code that logs a person in once.
    pub fn create_login_link(&self, name: &str, role: ViewerRole, valid_millis: i64) -> Result<LoginLink, Failure> {
        let code = AccessSecret::generate()?;
        let expires_at = now().saturating_add(valid_millis);
        let record = LoginRecord { name: name.to_owned(), role, digest: code.digest(), expires_at };
        self.change_records(|records| push_bounded(&mut records.codes, record, MAX_CODES))?;
        Ok(LoginLink { code })
    }

    /// Makes a token for a program.
    pub fn create_program_token(
        &self,
        name: &str,
        role: ViewerRole,
        valid_millis: i64,
    ) -> Result<AccessSecret, Failure> {
        self.add_login(name, role, valid_millis)
    }

    /// Exchanges a code for a secret that stays valid. A code works once.
    pub fn redeem_code(&self, code: &str) -> Result<Option<(AccessSecret, PageViewer)>, Failure> {
        let (digest, mut found) = (digest_text(code), None);
        // A wrong code changes nothing, so it takes no lock.
        if !self.read_records()?.codes.iter().any(|record| is_same_digest(&record.digest, &digest)) {
            return Ok(None);
        }
        self.change_records(|records| {
            let place = records.codes.iter().position(|record| is_same_digest(&record.digest, &digest));
            found = place.map(|place| records.codes.remove(place)).filter(|record| record.expires_at > now());
        })?;
        let Some(record) = found else { return Ok(None) };
        let secret = self.add_login(&record.name, record.role, LOGIN_MILLIS)?;
        Ok(Some((secret, PageViewer { name: record.name, role: record.role })))
    }

    /// Finds the viewer with a cookie or a token.
    pub fn find_viewer(&self, secret: &str) -> Result<Option<PageViewer>, Failure> {
        let digest = digest_text(secret);
        let records = self.read_records()?;
        let is_own = |record: &&LoginRecord| is_same_digest(&record.digest, &digest) && record.expires_at > now();
        Ok(records
            .logins
            .into_iter()
            .find(|record| is_own(&record))
            .map(|record| PageViewer { name: record.name, role: record.role }))
    }

    /// Logs a viewer out.
    pub fn remove_login(&self, secret: &str) -> Result<(), Failure> {
        let digest = digest_text(secret);
        self.change_records(|records| records.logins.retain(|record| !is_same_digest(&record.digest, &digest)))
    }

    /// Makes a link to the question about a task or a session. Returns none while the page is not served.
    pub fn create_question_link(&self, subject: &str) -> Result<Option<String>, Failure> {
        let Some(url) = self.find_url()? else { return Ok(None) };
        let token = AccessSecret::generate()?;
        let created_at = now();
        let expires_at = created_at.saturating_add(QUESTION_LINK_MILLIS);
        let record = QuestionRecord { subject: subject.to_owned(), digest: token.digest(), created_at, expires_at };
        self.change_records(|records| push_bounded(&mut records.questions, record, MAX_CODES))?;
        Ok(Some(format!("{url}/answer#{}", token.text())))
    }

    /// Finds the subject of a question link, and the time at which the link was made.
    pub fn find_question(&self, token: &str) -> Result<Option<LinkedQuestion>, Failure> {
        let digest = digest_text(token);
        let records = self.read_records()?;
        let is_own = |record: &&QuestionRecord| is_same_digest(&record.digest, &digest) && record.expires_at > now();
        let found = records.questions.into_iter().find(|record| is_own(&record));
        Ok(found.map(|record| LinkedQuestion { subject: record.subject, created_at: record.created_at }))
    }

    /// Ends a question link. Returns false if another answer has used it.
    pub fn redeem_question(&self, token: &str) -> Result<bool, Failure> {
        let (digest, mut was_there) = (digest_text(token), false);
        self.change_records(|records| {
            let before = records.questions.len();
            records.questions.retain(|record| !is_same_digest(&record.digest, &digest));
            was_there = records.questions.len() < before;
        })?;
        Ok(was_there)
    }

    fn add_login(&self, name: &str, role: ViewerRole, valid_millis: i64) -> Result<AccessSecret, Failure> {
        let secret = AccessSecret::generate()?;
        let expires_at = now().saturating_add(valid_millis);
        let record = LoginRecord { name: name.to_owned(), role, digest: secret.digest(), expires_at };
        self.change_records(|records| push_bounded(&mut records.logins, record, MAX_LOGINS))?;
        Ok(secret)
    }

    fn read_records(&self) -> Result<AccessRecordFile, Failure> {
        let bytes = match file::read_bounded(&self.file, MAX_RECORD_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(AccessRecordFile::default()),
            Err(error) => return Err(self.failure("read", &error)),
        };
        serde_json::from_slice(&bytes).map_err(|error| {
            self.failure("read", &error).with_hint("remove the file; then all viewers have to log in again")
        })
    }

    fn change_records(&self, change: impl FnOnce(&mut AccessRecordFile)) -> Result<(), Failure> {
        let _lock = self.lock().map_err(|error| self.failure("lock", &error))?;
        let mut records = self.read_records()?;
        let now = now();
        records.logins.retain(|record| record.expires_at > now);
        records.codes.retain(|record| record.expires_at > now);
        records.questions.retain(|record| record.expires_at > now);
        change(&mut records);
        let text = serde_json::to_vec_pretty(&records).map_err(|error| self.failure("write", &error))?;
        atomic_file::replace_file(&self.file, &text, FileReaders::Owner).map_err(|error| self.failure("write", &error))
    }

    fn lock(&self) -> io::Result<File> {
        atomic_file::make_directories(self.file.parent().unwrap_or(Path::new("/")), 0o700)?;
        let lock = file::open_lock_file(&self.file.with_extension("lock"))?;
        flock(&lock, FlockOperation::LockExclusive)?;
        Ok(lock)
    }

    fn failure(&self, action: &str, cause: &dyn std::fmt::Display) -> Failure {
        Failure::new(FailureCode::System, format!("cannot {action} the records of logins `{}`", self.file.display()))
            .with_cause(cause)
    }
}

fn now() -> i64 {
    environment::current_timestamp().millis()
}

fn push_bounded<T>(list: &mut Vec<T>, item: T, most: usize) {
    if list.len() >= most {
        list.drain(..=list.len() - most);
    }
    list.push(item);
}
