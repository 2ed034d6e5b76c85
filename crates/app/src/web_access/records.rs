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
use windlass_engine::Timestamp;
use windlass_process::{file, is_owner_alive};

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

/// The way in which a viewer proves its login.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoginKind {
    /// A code that logs in once.
    Code,
    /// The cookie of a browser.
    Cookie,
    /// The token of a program.
    Token,
    /// The record was written by a version that did not note it.
    #[default]
    Unknown,
}

impl LoginKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Cookie => "cookie",
            Self::Token => "token",
            Self::Unknown => "unknown",
        }
    }
}

/// A login without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginSummary {
    pub name: String,
    pub role: ViewerRole,
    pub kind: LoginKind,
    /// None in a record of a version that did not note it.
    pub created_at: Option<Timestamp>,
    pub expires_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LoginRecord {
    name: String,
    role: ViewerRole,
    #[serde(default)]
    kind: LoginKind,
    digest: String,
    /// Zero if it is not known.
    #[serde(default)]
    created_at: i64,
    expires_at: i64,
}

impl LoginRecord {
    fn summarize(&self) -> LoginSummary {
        LoginSummary {
            name: self.name.clone(),
            role: self.role,
            kind: self.kind,
            created_at: (self.created_at != 0).then(|| Timestamp::from_millis(self.created_at)),
            expires_at: Timestamp::from_millis(self.expires_at),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct QuestionRecord {
    /// The task or the session that the question is about.
    subject: String,
    digest: String,
    /// Zero if it is not known; the link then answers nothing.
    #[serde(default)]
    created_at: i64,
    expires_at: i64,
}

/// The address of the page, and the owner name of the server's process. A server that was killed leaves this behind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ServedAddress {
    url: String,
    owner: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AccessRecordFile {
    served: Option<ServedAddress>,
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
    /// The directory of the project's owners, one of which is the server.
    owners: PathBuf,
    clock: fn() -> Timestamp,
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
            owners: project.owner_directory(),
            clock: environment::current_timestamp,
        })
    }

    pub fn cookie_name(&self) -> &str {
        &self.cookie
    }

    /// Notes the address and the port at which the process with this owner name serves the page. Refuses a second server.
    pub fn note_start(&self, url: &str, port: u16, owner: &str) -> Result<(), Failure> {
        let mut other = None;
        self.change_records(|records| match records.served.as_ref().filter(|served| self.is_living(served)) {
            Some(served) => other = Some(served.url.clone()),
            None => {
                records.served = Some(ServedAddress { url: url.to_owned(), owner: owner.to_owned() });
                records.port = Some(port);
            }
        })?;
        other.map_or(Ok(()), |url| Err(second_server_failure(&url)))
    }

    /// Refuses a second server of the page.
    pub fn check_unserved(&self) -> Result<(), Failure> {
        self.find_url()?.map_or(Ok(()), |url| Err(second_server_failure(&url)))
    }

    /// Notes that the process with this owner name serves the page no more.
    pub fn note_end(&self, owner: &str) -> Result<(), Failure> {
        self.change_records(|records| records.served = records.served.take().filter(|served| served.owner != owner))
    }

    /// Returns the port at which the page was served last, so that links and bookmarks stay valid.
    pub fn find_last_port(&self) -> Result<Option<u16>, Failure> {
        self.read_records().map(|records| records.port)
    }

    /// Returns the address under which a living process serves the page.
    pub fn find_url(&self) -> Result<Option<String>, Failure> {
        let served = self.read_records()?.served;
        Ok(served.filter(|served| self.is_living(served)).map(|served| served.url))
    }

    fn is_living(&self, served: &ServedAddress) -> bool {
        is_owner_alive(&self.owners, &served.owner)
    }

    /// Lists the codes, cookies and tokens that are valid, by name.
    pub fn list_logins(&self) -> Result<Vec<LoginSummary>, Failure> {
        let (records, now) = (self.read_records()?, self.now());
        let valid = records.logins.iter().chain(&records.codes).filter(|record| record.expires_at > now);
        let mut logins: Vec<LoginSummary> = valid.map(LoginRecord::summarize).collect();
        logins.sort_by(|one, other| (&one.name, one.created_at).cmp(&(&other.name, other.created_at)));
        Ok(logins)
    }

    /// Ends all logins of a name, and returns their number.
    pub fn revoke_logins(&self, name: &str) -> Result<usize, Failure> {
        let mut revoked = 0;
        self.change_records(|records| {
            for list in [&mut records.logins, &mut records.codes] {
                let before = list.len();
                list.retain(|record| record.name != name);
                revoked += before - list.len();
            }
        })?;
        Ok(revoked)
    }

    /// Makes a code that logs a person in once.
    pub fn create_login_link(&self, name: &str, role: ViewerRole, valid_millis: i64) -> Result<LoginLink, Failure> {
        let (code, record) = self.generate_login(name, role, LoginKind::Code, valid_millis)?;
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
        let (secret, record) = self.generate_login(name, role, LoginKind::Token, valid_millis)?;
        self.change_records(|records| push_bounded(&mut records.logins, record, MAX_LOGINS))?;
        Ok(secret)
    }

    /// Exchanges a code for a secret that stays valid. A code works once.
    pub fn redeem_code(&self, code: &str) -> Result<Option<(AccessSecret, PageViewer)>, Failure> {
        let (digest, mut found) = (digest_text(code), None);
        // A wrong code changes nothing, so it takes no lock.
        if !self.read_records()?.codes.iter().any(|record| is_same_digest(&record.digest, &digest)) {
            return Ok(None);
        }
        let (secret, created_at) = (AccessSecret::generate()?, self.now());
        self.change_records(|records| {
            let place = records.codes.iter().position(|record| is_same_digest(&record.digest, &digest));
            let Some(code) = place.map(|place| records.codes.remove(place)) else { return };
            found = Some(PageViewer { name: code.name.clone(), role: code.role });
            let (digest, expires_at) = (secret.digest(), created_at.saturating_add(LOGIN_MILLIS));
            let login = LoginRecord { kind: LoginKind::Cookie, digest, created_at, expires_at, ..code };
            push_bounded(&mut records.logins, login, MAX_LOGINS);
        })?;
        Ok(found.map(|viewer| (secret, viewer)))
    }

    /// Finds the viewer with a cookie or a token.
    pub fn find_viewer(&self, secret: &str) -> Result<Option<PageViewer>, Failure> {
        let digest = digest_text(secret);
        let (records, now) = (self.read_records()?, self.now());
        let is_own = |record: &&LoginRecord| is_same_digest(&record.digest, &digest) && record.expires_at > now;
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
        let created_at = self.now();
        let expires_at = created_at.saturating_add(QUESTION_LINK_MILLIS);
        let record = QuestionRecord { subject: subject.to_owned(), digest: token.digest(), created_at, expires_at };
        self.change_records(|records| push_bounded(&mut records.questions, record, MAX_CODES))?;
        Ok(Some(format!("{url}/answer#{}", token.text())))
    }

    /// Finds the subject of a question link, and the time at which the link was made.
    pub fn find_question(&self, token: &str) -> Result<Option<LinkedQuestion>, Failure> {
        let digest = digest_text(token);
        let (records, now) = (self.read_records()?, self.now());
        let is_own = |record: &&QuestionRecord| is_same_digest(&record.digest, &digest) && record.expires_at > now;
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

    /// Makes a secret and its record.
    fn generate_login(
        &self,
        name: &str,
        role: ViewerRole,
        kind: LoginKind,
        valid_millis: i64,
    ) -> Result<(AccessSecret, LoginRecord), Failure> {
        let (secret, created_at) = (AccessSecret::generate()?, self.now());
        let (name, digest, expires_at) = (name.to_owned(), secret.digest(), created_at.saturating_add(valid_millis));
        Ok((secret, LoginRecord { name, role, kind, digest, created_at, expires_at }))
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
        let now = self.now();
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
        Failure::new(FailureCode::Access, format!("cannot {action} the records of logins `{}`", self.file.display()))
            .with_cause(cause)
    }

    fn now(&self) -> i64 {
        (self.clock)().millis()
    }
}

fn second_server_failure(url: &str) -> Failure {
    Failure::new(FailureCode::Refused, "cannot serve the page a second time")
        .with_cause(format!("another process serves it at {url}"))
        .with_hint("`windlass serve invite NAME` prints a link that logs in there")
}

fn push_bounded<T>(list: &mut Vec<T>, item: T, most: usize) {
    if list.len() >= most {
        list.drain(..=list.len() - most);
    }
    list.push(item);
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60_000;

    fn create_records(directory: &Path) -> AccessRecords {
        AccessRecords {
            file: directory.join("web/project.json"),
            cookie: "cookie".to_owned(),
            owners: directory.join("owners"),
            clock: || Timestamp::from_millis(1_000_000),
        }
    }

    #[test]
    fn login_code_expires_exactly_after_its_validity() {
        let directory = tempfile::tempdir().unwrap();
        let records = create_records(directory.path());
        let [first, second] =
            [(); 2].map(|()| records.create_login_link("ann", ViewerRole::Manage, MINUTE).unwrap().code);
        let before = AccessRecords { clock: || Timestamp::from_millis(1_059_999), ..records.clone() };
        let after = AccessRecords { clock: || Timestamp::from_millis(1_060_000), ..records };
        let (secret, viewer) = before.redeem_code(first.text()).unwrap().unwrap();
        assert_eq!((viewer.name.as_str(), viewer.role), ("ann", ViewerRole::Manage));
        assert!(after.redeem_code(second.text()).unwrap().is_none());
        assert!(after.redeem_code(first.text()).unwrap().is_none(), "a code works once");
        let listed: Vec<LoginKind> = after.list_logins().unwrap().into_iter().map(|login| login.kind).collect();
        assert_eq!(listed, [LoginKind::Cookie]);
        assert_eq!(after.find_viewer(secret.text()).unwrap(), Some(viewer));
    }

    #[test]
    fn records_without_kind_and_time_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let records = create_records(directory.path());
        let digest = digest_text("secret");
        let login = format!(r#"{{"name": "ann", "role": "look", "digest": "{digest}", "expiresAt": 2000000}}"#);
        let question = r#"{"subject": "T1", "digest": "0", "expiresAt": 2000000}"#;
        std::fs::create_dir(directory.path().join("web")).unwrap();
        std::fs::write(&records.file, format!(r#"{{"logins": [{login}], "questions": [{question}]}}"#)).unwrap();
        assert_eq!(records.find_viewer("secret").unwrap().unwrap().role, ViewerRole::Look);
        let login = records.list_logins().unwrap().remove(0);
        assert_eq!((login.kind, login.created_at), (LoginKind::Unknown, None));
    }
}
