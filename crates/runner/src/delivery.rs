//! Settings of where work is done, and where it goes.

use std::path::PathBuf;

use windlass_vcs::forge;

use crate::caches::CachePatterns;
use crate::gatekeepers::Gatekeepers;

/// Where work is done, and where it goes.
#[derive(Debug, Clone, Default)]
pub struct Delivery {
    /// The directory of all worktrees.
    pub worktrees: PathBuf,
    /// The directory of the checkouts that hooks and gatekeepers judge. It is outside the project: a program that looks for files
    /// in the directories above would find those of the person's tree.
    pub checkouts: PathBuf,
    /// A process that merges holds a lock on this file.
    pub lock: PathBuf,
    /// The branch that work starts from and goes to, if it is not for the repository to say.
    pub base: Option<String>,
    /// The remote that it goes to, if it is not for the repository to say.
    pub remote: Option<String>,
    pub forge: forge::Settings,
    pub method: forge::Method,
    /// What gates find in their checkout although git does not keep it.
    pub caches: CachePatterns,
    /// How the tests are run, if it is not for the project to show.
    pub tests: Option<String>,
    pub gatekeepers: Gatekeepers,
}
