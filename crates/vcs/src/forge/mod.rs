//! Changes on a forge: pull requests of GitHub, merge requests of GitLab.
//!
//! ```text
//! the remote's address, Settings ─► Site ──┐
//! Environment, gh or glab ────────► Token ─┴─► Forge: find, open, look, merge ─► Dialect ─► Api
//! ```
//!
//! Invariants:
//! - It is looked before anything is done: a rerun, or one after a crash, opens no second change and merges nothing twice.
//! - A token is sent to the API's host only, and one of the environment only where a person has named that host. It is in
//!   no message and in no `Debug` text.
//! - A merge is of the commit that the caller names, or none.
//! - What a forge says is checked before it is believed: commits are hexadecimal, branches and addresses hold no controls,
//!   and no answer is longer than 1 MiB.
//! - Nothing of the environment is used that was not given: neither a token nor a proxy.
//!
//! Not here: pushing (`git`), changes without a forge (they are in the log only), and waiting between tries: an error says
//! whether and when another try helps.

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
    /// Where a person can see it.
    pub url: String,
    pub branch: String,
    pub base: String,
    /// The newest commit of it that the forge knows.
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

/// A change to be opened. Its branch has been pushed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewChange {
    pub branch: String,
    pub base: String,
    /// The commit that was pushed. A change of this very commit that is merged or closed already is not opened again.
    pub head: String,
    /// Any text: it is made to fit.
    pub title: String,
    /// Any text: it is made to fit.
    pub body: String,
}

/// How the base gets the commits. On GitLab the project's own settings decide between a merge commit and moving the base
/// forward; only squashing can be asked for.
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

/// What came of a merge that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merging {
    /// With the commit that the base got.
    Merged { commit: String },
    /// Before we asked, or by somebody else meanwhile; `head` is what was merged.
    AlreadyMerged { commit: String, head: String },
    /// The branch is not where it is expected to be, and nothing was merged.
    Stale { head: String },
    /// The forge does not want to, and nothing was merged.
    NotMergeable { obstacle: MergeObstacle, why: String },
}

/// What follows from the refusal of a merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeObstacle {
    /// The branch has to be brought onto its base again: it is behind, or conflicts.
    Behind,
    /// Another try may help: checks have not ended, or the forge has not made up its mind.
    Pending,
    /// A person has to see to it: a review, a draft, a rule of the project, something that is not known here.
    Person,
}

/// A project on a forge, and the right to work with it.
pub struct Forge {
    site: Site,
    dialect: Box<dyn Dialect>,
}

/// Without the token.
impl fmt::Debug for Forge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Forge").field("site", &self.site).finish_non_exhaustive()
    }
}

impl Forge {
    /// How long one request may take if nothing else is said.
    pub const TIMEOUT: Duration = Duration::from_secs(30);

    /// The environment may name a proxy. Nothing is asked yet.
    pub fn new(site: Site, token: Token, environment: &Environment, timeout: Duration) -> Self {
        let proxy = proxy::of(environment, &site.api);
        let api = |wishes| Api::new(&site, token, proxy, timeout, wishes);
        let dialect: Box<dyn Dialect> = match site.kind {
            Kind::GitHub => Box::new(github::GitHub { api: api(github::WISHES), project: site.project.clone() }),
            Kind::GitLab => Box::new(gitlab::GitLab { api: api(gitlab::WISHES), project: site.project.clone() }),
        };
        Self { site, dialect }
    }

    /// The change of a branch of this very repository: the open one, else the newest that is merged or closed.
    pub fn find(&self, branch: &str, base: &str) -> Result<Option<Change>, ForgeError> {
        text::check_branch(branch)?;
        text::check_branch(base)?;
        let found = self.dialect.newest_changes(branch, base)?.into_iter();
        let found = found.filter(|change| change.branch == branch && change.base == base);
        Ok(found.max_by_key(|change| (change.state == State::Open, change.number)))
    }

    /// Opens a change, unless there is one: the open one of the branch, or one of the same commit that was merged or closed.
    pub fn open(&self, new: &NewChange) -> Result<Change, ForgeError> {
        text::check_commit(&new.head)?;
        match self.find(&new.branch, &new.base)? {
            Some(change) if change.state == State::Open || change.head == new.head => return Ok(change),
            _ => {}
        }
        if let Some(change) = self.dialect.create(new)? {
            return Ok(change);
        }
        // Somebody was faster, or the list was older than the forge.
        match self.find(&new.branch, &new.base)? {
            Some(change) if change.state == State::Open => Ok(change),
            _ => Err(ForgeError::Hidden { host: self.site.host.clone(), branch: new.branch.clone() }),
        }
    }

    pub fn look(&self, number: u64) -> Result<Change, ForgeError> {
        Ok(self.dialect.look(number)?.change)
    }

    /// Merges a change if its newest commit is this one.
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

/// What a change is beyond, whoever asks for its merge.
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
