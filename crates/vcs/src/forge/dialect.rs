//! The differences between forges: paths, JSON and words. `ForgeClient` and `ForgeApi` hold the rest.

use super::api::Api;
use super::{Change, ForgeError, MergeObstacle, Method, NewChange, State, text};

/// The number of changes of a branch that are read. The open change is the newest one, unless it was reopened. A change may
/// have a long text, and no response may be longer than 1 MiB.
pub(super) const NEWEST: usize = 10;

pub(super) trait Dialect: Send + Sync {
    /// Returns the newest changes of a branch of this repository, in any state.
    fn newest_changes(&self, branch: &str, base: &str) -> Result<Vec<Change>, ForgeError>;

    fn look(&self, number: u64) -> Result<Looked, ForgeError>;

    /// Creates a change. Returns `None` if the forge answers that there is one already.
    fn create(&self, new: &NewChange) -> Result<Option<Change>, ForgeError>;

    /// Merges a change.
    fn accept(&self, number: u64, head: &str, method: Method) -> Result<MergeAnswer, ForgeError>;

    /// Returns the obstacle to a merge, by the view of the change and the text of the refusal.
    fn obstacle(&self, looked: &Looked, refusal: &str) -> (MergeObstacle, String);
}

/// The response of a forge to a merge request.
pub(super) enum MergeAnswer {
    Merged {
        /// The commit that the base got.
        commit: String,
    },
    /// The forge's reason for the refusal: the caller has to view the change again.
    Refused(String),
}

/// A change, and the forge's own word for whether it can be merged.
pub(super) struct Looked {
    pub(super) change: Change,
    pub(super) mergeable: String,
}

impl Change {
    /// Validates a change from a forge: its parts become arguments of git, and are shown.
    pub(super) fn checked(self, api: &Api) -> Result<Self, ForgeError> {
        let commits = [Some(&self.head), if let State::Merged { commit } = &self.state { Some(commit) } else { None }];
        if !commits.into_iter().flatten().all(|commit| text::check_commit(commit).is_ok()) {
            return Err(api.malformed("a commit in it is none"));
        }
        if text::check_branch(&self.branch).is_err() || text::check_branch(&self.base).is_err() {
            return Err(api.malformed("a branch in it is none"));
        }
        let is_web = self.url.starts_with("https://") || self.url.starts_with("http://");
        if !is_web || self.url.len() > 2048 || self.url.contains(|letter: char| letter.is_control() || letter == ' ') {
            return Err(api.malformed("an address in it is none"));
        }
        Ok(self)
    }
}
