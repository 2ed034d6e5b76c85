//! Settings for the place of work and for its delivery.

use std::path::PathBuf;

use windlass_vcs::forge;

use crate::caches::CachePatterns;
use crate::gatekeepers::GatekeeperSettings;

/// Settings for the place of work and for its delivery.
#[derive(Debug, Clone, Default)]
pub struct DeliverySettings {
    /// The directory of all worktrees.
    pub worktrees: PathBuf,
    /// The directory of the checkouts that hooks and gatekeepers judge. It is outside the project: a program that looks for files
    /// in the directories above would find those of the person's tree.
    pub checkouts: PathBuf,
    /// Lock file of a process that merges.
    pub lock: PathBuf,
    /// Branch that work starts from and goes to, unless the repository decides.
    pub base: Option<String>,
    /// Remote that the branch goes to, unless the repository decides.
    pub remote: Option<String>,
    /// Whether other machines of a fleet go on with the work: then its branches are pushed after each turn.
    pub shares_work: bool,
    pub forge: forge::ForgeOptions,
    pub method: forge::ForgeMergeMethod,
    /// Ignored files that gates find in their checkout.
    pub caches: CachePatterns,
    /// Command that runs the tests, unless the project shows one.
    pub tests: Option<String>,
    pub gatekeepers: GatekeeperSettings,
}
