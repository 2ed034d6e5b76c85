//! The differences between forges: paths, JSON and words. `ForgeClient` and `ForgeApi` hold the rest.

use super::api::ForgeApi;
use super::{ForgeChange, ForgeChangeState, ForgeError, ForgeMergeMethod, MergeObstacle, NewChange, text};

/// The number of changes of a branch that are read. The open change is the newest one, unless it was reopened. A change may
/// have a long text, and no response may be longer than 1 MiB.
pub(super) const NEWEST_CHANGES: usize = 10;

pub(super) trait ForgeDialect: Send + Sync {
    /// Returns the newest changes of a branch of this repository, in any state.
    fn newest_changes(&self, branch: &str, base: &str) -> Result<Vec<ForgeChange>, ForgeError>;

    fn view_change(&self, number: u64) -> Result<ForgeChangeView, ForgeError>;

    /// Creates a change. Returns `None` if the forge answers that there is one already.
    fn create_change(&self, new: &NewChange) -> Result<Option<ForgeChange>, ForgeError>;

    /// Merges a change.
    fn merge_change(&self, number: u64, head: &str, method: ForgeMergeMethod) -> Result<MergeResponse, ForgeError>;

    /// Returns the obstacle to a merge, by the view of the change and the text of the refusal.
    fn classify_obstacle(&self, looked: &ForgeChangeView, refusal: &str) -> (MergeObstacle, String);
}

/// The response of a forge to a merge request.
pub(super) enum MergeResponse {
    Merged {
        /// The commit that the base got.
        commit: String,
    },
    /// The forge's reason for the refusal: the caller has to view the change again.
    Refused(String),
}

/// A change, and the forge's own word for whether it can be merged.
pub(super) struct ForgeChangeView {
    pub(super) change: ForgeChange,
    pub(super) mergeable: String,
}

impl ForgeChange {
    /// Validates a change from a forge: its parts become arguments of git, and are shown.
    pub(super) fn validate_fields(self, api: &ForgeApi) -> Result<Self, ForgeError> {
        let commits =
            [Some(&self.head), if let ForgeChangeState::Merged { commit } = &self.state { Some(commit) } else { None }];
        if !commits.into_iter().flatten().all(|commit| text::check_commit(commit).is_ok()) {
            return Err(api.malformed_error("it has an invalid commit"));
        }
        if text::check_branch(&self.branch).is_err() || text::check_branch(&self.base).is_err() {
            return Err(api.malformed_error("it has an invalid branch name"));
        }
        let is_web = self.url.starts_with("https://") || self.url.starts_with("http://");
        if !is_web || self.url.len() > 2048 || self.url.contains(|letter: char| letter.is_control() || letter == ' ') {
            return Err(api.malformed_error("it has an invalid address"));
        }
        Ok(self)
    }
}
