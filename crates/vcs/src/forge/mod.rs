//! Changes on a forge: pull requests of GitHub, merge requests of GitLab.
//!
//! ```text
//! the remote's address, ForgeOptions ──► ForgeProject ─┐
//! Environment, gh or glab ─────────────► ForgeToken ───┴─► ForgeClient: find, open, view, merge ─► ForgeDialect ─► ForgeApi
//! ```
//!
//! Invariants:
//! - Every action checks the state first: a rerun, or one after a crash, opens no second change and merges nothing twice.
//! - A token goes to the API's host only, and one of the environment only if a person has named that host. No message and
//!   no `Debug` text contains it.
//! - A merge applies to the commit that the caller names, or does not happen.
//! - Responses are validated before use: commits are hexadecimal, branches and addresses hold no control characters, and no
//!   response is longer than 1 MiB.
//! - Of the environment, only what the caller passes in is used: neither another token nor another proxy.
//!
//! Not here: pushing (`git`), changes without a forge (they are in the log only), and waiting between attempts: an error
//! says whether and when another attempt helps.

mod address;
mod api;
mod dialect;
mod error;
mod github;
mod gitlab;
mod kind;
mod limit;
mod proxy;
mod remote;
mod site;
mod text;
mod token;

use std::fmt;
use std::time::Duration;

use api::Api;
use dialect::{Dialect, Looked, MergeAnswer};
use windlass_process::Environment;

pub use error::{ForgeError, Retry};
pub use kind::Kind;
pub use site::{Settings, Site};
pub use token::Token;

/// A pull request, or a merge request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub number: u64,
    /// The web page for people.
    pub url: String,
    pub branch: String,
    pub base: String,
    /// The newest commit that the forge knows.
    pub head: String,
    pub state: State,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    Open,
    /// With the commit that the base got.
    Merged {
        commit: String,
    },
    Closed,
}

/// A change to open. Its branch has been pushed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewChange {
    pub branch: String,
    pub base: String,
    /// The pushed commit. If a change of this commit is merged or closed already, it is not opened again.
    pub head: String,
    /// Any text; it is shortened if necessary.
    pub title: String,
    /// Any text; it is shortened if necessary.
    pub body: String,
}

/// How the base gets the commits. On GitLab the project's settings choose between a merge commit and a fast-forward; a
/// caller can only ask for a squash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Method {
    #[default]
    Merge,
    Squash,
    Rebase,
}

impl Method {
    pub fn named(name: &str) -> Option<Self> {
        [Self::Merge, Self::Squash, Self::Rebase].into_iter().find(|method| method.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Merge => "merge",
            Self::Squash => "squash",
            Self::Rebase => "rebase",
        }
    }
}

/// The outcome of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merging {
    /// With the commit that the base got.
    Merged { commit: String },
    /// Merged by another party, before or during the request; `head` is the merged commit.
    AlreadyMerged { commit: String, head: String },
    /// The branch is not at the expected commit, and nothing was merged.
    Stale { head: String },
    /// The forge refused, and nothing was merged.
    NotMergeable { obstacle: MergeObstacle, why: String },
}

/// The reason for a refused merge, by the action that helps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeObstacle {
    /// The branch has to be rebased onto its base: it is behind, or conflicts.
    Behind,
    /// Another attempt may help: checks are running, or the forge is still computing.
    Pending,
    /// A person has to act: a review, a draft, a rule of the project, or an unknown reason.
    Person,
}

/// A client for one project on a forge, with its token.
pub struct Forge {
    site: Site,
    dialect: Box<dyn Dialect>,
}

/// Shows everything but the token.
impl fmt::Debug for Forge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Forge").field("site", &self.site).finish_non_exhaustive()
    }
}

impl Forge {
    /// The default timeout of one request.
    pub const TIMEOUT: Duration = Duration::from_secs(30);

    /// Creates a client. The environment may name a proxy. Sends nothing yet.
    pub fn new(site: Site, token: Token, environment: &Environment, timeout: Duration) -> Self {
        let proxy = proxy::of(environment, &site.api);
        let api = |wishes| Api::new(&site, token, proxy, timeout, wishes);
        let dialect: Box<dyn Dialect> = match site.kind {
            Kind::GitHub => Box::new(github::GitHub { api: api(github::WISHES), project: site.project.clone() }),
            Kind::GitLab => Box::new(gitlab::GitLab { api: api(gitlab::WISHES), project: site.project.clone() }),
        };
        Self { site, dialect }
    }

    /// Returns the change of a branch of this repository: the open one, or else the newest that is merged or closed.
    pub fn find(&self, branch: &str, base: &str) -> Result<Option<Change>, ForgeError> {
        text::check_branch(branch)?;
        text::check_branch(base)?;
        let found = self.dialect.newest_changes(branch, base)?.into_iter();
        let found = found.filter(|change| change.branch == branch && change.base == base);
        Ok(found.max_by_key(|change| (change.state == State::Open, change.number)))
    }

    /// Opens a change, unless the branch has an open one, or one of the same commit was merged or closed.
    pub fn open(&self, new: &NewChange) -> Result<Change, ForgeError> {
        text::check_commit(&new.head)?;
        match self.find(&new.branch, &new.base)? {
            Some(change) if change.state == State::Open || change.head == new.head => return Ok(change),
            _ => {}
        }
        if let Some(change) = self.dialect.create(new)? {
            return Ok(change);
        }
        // Another party was faster, or the list was outdated.
        match self.find(&new.branch, &new.base)? {
            Some(change) if change.state == State::Open => Ok(change),
            _ => Err(ForgeError::Hidden { host: self.site.host.clone(), branch: new.branch.clone() }),
        }
    }

    pub fn look(&self, number: u64) -> Result<Change, ForgeError> {
        Ok(self.dialect.look(number)?.change)
    }

    /// Merges a change if its newest commit is `head`.
    pub fn merge(&self, number: u64, head: &str, method: Method) -> Result<Merging, ForgeError> {
        text::check_commit(head)?;
        if let Some(settled) = settled(&self.dialect.look(number)?, head) {
            return Ok(settled);
        }
        match self.dialect.accept(number, head, method)? {
            MergeAnswer::Merged { commit } => Ok(Merging::Merged { commit }),
            MergeAnswer::Refused(why) => {
                let after = self.dialect.look(number)?;
                let refused = || {
                    let (obstacle, why) = self.dialect.obstacle(&after, &why);
                    Merging::NotMergeable { obstacle, why }
                };
                Ok(settled(&after, head).unwrap_or_else(refused))
            }
        }
    }
}

/// Returns the outcome that already holds, if no merge is possible any more.
fn settled(looked: &Looked, head: &str) -> Option<Merging> {
    let Change { head: found, state, .. } = &looked.change;
    match state {
        State::Merged { commit } => Some(Merging::AlreadyMerged { commit: commit.clone(), head: found.clone() }),
        State::Closed => {
            Some(Merging::NotMergeable { obstacle: MergeObstacle::Person, why: "the change is closed".to_owned() })
        }
        State::Open if found != head => Some(Merging::Stale { head: found.clone() }),
        State::Open => None,
    }
}
