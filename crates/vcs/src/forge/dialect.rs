//! What differs between forges: paths, shapes and words. Everything else is in `Forge` and `Api`.

use super::api::Api;
use super::{Change, ForgeError, MergeObstacle, Method, NewChange, State, text};

/// How many changes of a branch are looked at: none is newer than the open one, unless that was opened again. A change may carry a
/// long text, and no answer may be longer than 1 MiB.
pub(super) const NEWEST: usize = 10;

pub(super) trait Dialect: Send + Sync {
    /// Returns the newest changes of a branch of this repository, in whatever state.
    fn newest_changes(&self, branch: &str, base: &str) -> Result<Vec<Change>, ForgeError>;

    fn look(&self, number: u64) -> Result<Looked, ForgeError>;

    /// None: the forge says that there is one already.
    fn create(&self, new: &NewChange) -> Result<Option<Change>, ForgeError>;

    /// Merges a change.
    fn accept(&self, number: u64, head: &str, method: Method) -> Result<MergeAnswer, ForgeError>;

    /// What is in the way, by what is seen of a change and by the words with which its merge was refused.
    fn obstacle(&self, looked: &Looked, refusal: &str) -> (MergeObstacle, String);
}

/// What a forge says when it is to merge a change.
pub(super) enum MergeAnswer {
    Merged {
        /// The commit that the base got.
        commit: String,
    },
    /// Why it does not, in its words: then the change has to be looked at again.
    Refused(String),
}

/// A change, and in the forge's own word whether it can be merged.
pub(super) struct Looked {
    pub(super) change: Change,
    pub(super) mergeable: String,
}

impl Change {
    /// As a forge has said it, if it can be believed: parts of it become arguments of git, and are shown.
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
