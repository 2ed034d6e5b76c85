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
mod error;
mod forge_dialect;
mod forge_project;
mod github;
mod gitlab;
mod kind;
mod proxy;
mod rate_limit;
mod remote;
mod text;
mod token;

use std::fmt;
use std::time::Duration;

use api::ForgeApi;
use forge_dialect::{ForgeChangeView, ForgeDialect, MergeResponse};
use windlass_process::Environment;

pub use error::{ForgeError, RetryAdvice};
pub use forge_project::{ForgeOptions, ForgeProject};
pub use kind::ForgeVendor;
pub use token::ForgeToken;

/// A pull request, or a merge request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForgeChange {
    pub number: u64,
    /// The web page for people.
    pub url: String,
    pub branch: String,
    pub base: String,
    /// The newest commit that the forge knows.
    pub head: String,
    pub state: ForgeChangeState,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ForgeChangeState {
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
pub enum ForgeMergeMethod {
    #[default]
    Merge,
    Squash,
    Rebase,
}

impl ForgeMergeMethod {
    pub fn parse_name(name: &str) -> Option<Self> {
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
pub enum ForgeMergeOutcome {
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
pub struct ForgeClient {
    site: ForgeProject,
    dialect: Box<dyn ForgeDialect>,
}

/// Shows everything but the token.
impl fmt::Debug for ForgeClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Forge").field("site", &self.site).finish_non_exhaustive()
    }
}

impl ForgeClient {
    /// The default timeout of one request.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

    /// Creates a client. The environment may name a proxy. Sends nothing yet.
    pub fn new(site: ForgeProject, token: ForgeToken, environment: &Environment, timeout: Duration) -> Self {
        let proxy = proxy::find_proxy(environment, &site.api);
        let api = |wishes| ForgeApi::new(&site, token, proxy, timeout, wishes);
        let dialect: Box<dyn ForgeDialect> = match site.kind {
            ForgeVendor::GitHub => {
                Box::new(github::GitHubDialect { api: api(github::EXTRA_HEADERS), project: site.project.clone() })
            }
            ForgeVendor::GitLab => {
                Box::new(gitlab::GitLabDialect { api: api(gitlab::EXTRA_HEADERS), project: site.project.clone() })
            }
        };
        Self { site, dialect }
    }

    /// Returns the change of a branch of this repository: the open one, or else the newest that is merged or closed.
    pub fn find_change(&self, branch: &str, base: &str) -> Result<Option<ForgeChange>, ForgeError> {
        text::check_branch(branch)?;
        text::check_branch(base)?;
        let found = self.dialect.newest_changes(branch, base)?.into_iter();
        let found = found.filter(|change| change.branch == branch && change.base == base);
        Ok(found.max_by_key(|change| (change.state == ForgeChangeState::Open, change.number)))
    }

    /// Opens a change, unless the branch has an open one, or one of the same commit was merged or closed.
    pub fn open_change(&self, new: &NewChange) -> Result<ForgeChange, ForgeError> {
        text::check_commit(&new.head)?;
        match self.find_change(&new.branch, &new.base)? {
            Some(change) if change.state == ForgeChangeState::Open || change.head == new.head => return Ok(change),
            _ => {}
        }
        if let Some(change) = self.dialect.create_change(new)? {
            return Ok(change);
        }
        // Another party was faster, or the list was outdated.
        match self.find_change(&new.branch, &new.base)? {
            Some(change) if change.state == ForgeChangeState::Open => Ok(change),
            _ => Err(ForgeError::Hidden { host: self.site.host.clone(), branch: new.branch.clone() }),
        }
    }

    pub fn view_change(&self, number: u64) -> Result<ForgeChange, ForgeError> {
        Ok(self.dialect.view_change(number)?.change)
    }

    /// Merges a change if its newest commit is `head`.
    pub fn merge_change(
        &self,
        number: u64,
        head: &str,
        method: ForgeMergeMethod,
    ) -> Result<ForgeMergeOutcome, ForgeError> {
        text::check_commit(head)?;
        if let Some(settled) = final_outcome(&self.dialect.view_change(number)?, head) {
            return Ok(settled);
        }
        match self.dialect.merge_change(number, head, method)? {
            MergeResponse::Merged { commit } => Ok(ForgeMergeOutcome::Merged { commit }),
            MergeResponse::Refused(why) => {
                let after = self.dialect.view_change(number)?;
                let refused = || {
                    let (obstacle, why) = self.dialect.classify_obstacle(&after, &why);
                    ForgeMergeOutcome::NotMergeable { obstacle, why }
                };
                Ok(final_outcome(&after, head).unwrap_or_else(refused))
            }
        }
    }
}

/// Returns the outcome that already holds, if no merge is possible any more.
fn final_outcome(looked: &ForgeChangeView, head: &str) -> Option<ForgeMergeOutcome> {
    let ForgeChange { head: found, state, .. } = &looked.change;
    match state {
        ForgeChangeState::Merged { commit } => {
            Some(ForgeMergeOutcome::AlreadyMerged { commit: commit.clone(), head: found.clone() })
        }
        ForgeChangeState::Closed => Some(ForgeMergeOutcome::NotMergeable {
            obstacle: MergeObstacle::Person,
            why: "the change is closed".to_owned(),
        }),
        ForgeChangeState::Open if found != head => Some(ForgeMergeOutcome::Stale { head: found.clone() }),
        ForgeChangeState::Open => None,
    }
}
