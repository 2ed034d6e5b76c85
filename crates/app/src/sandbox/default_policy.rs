//! The policy of a program for which the configuration says nothing else.

use std::fs;
use std::path::{Path, PathBuf};

use windlass_process::file;
use windlass_sandbox::{NetworkPolicy, ResourceLimits, SandboxBackend, SandboxPolicy};
use windlass_vcs::git::{GitRepository, has_git_entry};

use super::secret_paths::find_secret_paths;
use crate::project::{self, PROJECT_DIRECTORY, Project};
use crate::{Failure, FailureCode, environment};

/// Entries of `.windlass` that a program may read.
const READABLE_PROJECT_ENTRIES: [&str; 2] = ["config.yaml", "workflows"];

/// Entries of a git directory that make git run programs, or that belong to other worktrees.
const PROTECTED_GIT_ENTRIES: [&str; 5] = ["config", "hooks", "info", "modules", "worktrees"];

/// Entries of the shared git directory that commits in a linked worktree change.
const SHARED_GIT_ENTRIES: [&str; 5] = ["objects", "refs", "logs", "rr-cache", "lfs"];

/// Entries of a linked worktree's git directory that say where its repository is.
const GIT_POINTER_ENTRIES: [&str; 3] = ["commondir", "gitdir", "config.worktree"];

/// The largest pointer file of git that is read, in bytes.
const MAX_GIT_POINTER: u64 = 16 * 1024;

/// What a default policy is made from.
#[derive(Debug)]
pub struct PolicyRequest<'r> {
    pub backend: SandboxBackend,
    /// The working directory of the program.
    pub directory: &'r Path,
    pub project: Option<&'r Project>,
    /// Paths that may be written, too. A relative one is below `directory`.
    pub write: &'r [PathBuf],
    /// Paths that are hidden, too.
    pub hide: &'r [PathBuf],
    pub network: NetworkPolicy,
    pub limits: ResourceLimits,
    /// An empty directory for the program's temporary files.
    pub temporary: PathBuf,
}

/// Returns a policy with which a program may write its directory, or its project's, and reads neither secrets nor the store.
///
/// The git directory of a main worktree is read-only: git follows a file `commondir` in it to another configuration, and a file
/// that does not exist cannot be protected. With `.git` among the writable paths, all but git's configuration can be written.
///
/// With Landlock, the files that lead from a linked worktree to its repository are not protected: no file could be made beside
/// them, so that git could not commit.
pub fn default_policy(request: PolicyRequest<'_>) -> Result<SandboxPolicy, Failure> {
    let work = match request.project {
        Some(project) => project::find_project_worktree(project, request.directory),
        None => request.directory.to_owned(),
    };
    let work = resolve_path(&work)?;
    refuse_home_directory(&work)?;
    let mut policy = SandboxPolicy {
        write: vec![work.clone()],
        temporary: resolve_path(&request.temporary)?,
        network: request.network,
        limits: request.limits,
        hidden: find_secret_paths(environment::home_directory().as_deref()),
        ..SandboxPolicy::default()
    };
    for path in request.write {
        policy.write.push(resolve_path(&request.directory.join(path))?);
    }
    for path in request.hide {
        policy.hidden.push(resolve_path(&request.directory.join(path))?);
    }
    if let Some(project) = request.project {
        let directory = project.project_directory();
        let readable = READABLE_PROJECT_ENTRIES.iter().map(|name| directory.join(name));
        policy.protected.extend(readable.filter(|path| is_real_path(path)));
        policy.hidden.push(directory);
    }
    protect_repository(&mut policy, &work, request.backend);
    // A directory with a project of its own, as a worktree has one, is no project here.
    let own = work.join(PROJECT_DIRECTORY);
    if is_real_path(&own) && !policy.hidden.contains(&own) && request.backend == SandboxBackend::Bubblewrap {
        policy.protected.push(own);
    }
    Ok(policy)
}

/// Refuses a directory that holds the settings of the person's programs, and so lets a program outside run what is written.
fn refuse_home_directory(work: &Path) -> Result<(), Failure> {
    let home = environment::home_directory().and_then(|home| home.canonicalize().ok());
    match home.filter(|home| home.starts_with(work)) {
        Some(home) => {
            let message = format!("cannot let a program write `{}`", work.display());
            Err(Failure::new(FailureCode::Refused, message)
                .with_cause(format!("it holds the home directory `{}`", home.display()))
                .with_hint("change to the directory of a project"))
        }
        None => Ok(()),
    }
}

/// Lets git commit where that is safe, and protects what git runs.
fn protect_repository(policy: &mut SandboxPolicy, work: &Path, backend: SandboxBackend) {
    // Without a repository there is nothing to protect; a broken one is protected by its `.git`.
    let Ok(Some(repository)) = GitRepository::discover(work) else {
        policy.protected.extend(Some(work.join(".git")).filter(|path| is_real_path(path)));
        return;
    };
    let worktree = work.ancestors().find(|above| has_git_entry(above)).filter(|above| above.join(".git").is_file());
    match worktree.and_then(|worktree| Some((worktree, read_git_pointer(worktree)?))) {
        Some((worktree, admin)) if admin != repository.common => {
            let shared = SHARED_GIT_ENTRIES.iter().map(|name| repository.common.join(name));
            policy.write.extend(shared.filter(|path| is_real_path(path)));
            policy.write.push(admin.clone());
            if backend == SandboxBackend::Bubblewrap {
                let pointers = GIT_POINTER_ENTRIES.iter().map(|name| admin.join(name)).chain([worktree.join(".git")]);
                policy.protected.extend(pointers.filter(|path| is_real_path(path)));
            }
        }
        _ if policy.write.contains(&repository.common) => {
            let entries = PROTECTED_GIT_ENTRIES.iter().map(|name| repository.common.join(name));
            policy.protected.extend(entries.filter(|path| is_real_path(path)));
        }
        _ => policy.protected.push(repository.common),
    }
}

/// Returns the git directory to which the `.git` file of a worktree leads.
fn read_git_pointer(worktree: &Path) -> Option<PathBuf> {
    let text = file::read_text_file(&worktree.join(".git"), MAX_GIT_POINTER)?;
    worktree.join(text.strip_prefix("gitdir:")?.trim()).canonicalize().ok()
}

/// Returns whether a path exists and has no links in it.
fn is_real_path(path: &Path) -> bool {
    path.canonicalize().is_ok_and(|real| real == path)
}

fn resolve_path(path: &Path) -> Result<PathBuf, Failure> {
    fs::canonicalize(path).map_err(|error| {
        Failure::new(FailureCode::System, format!("cannot use `{}` in a sandbox", path.display()))
            .with_cause(error)
            .with_hint("create it first, or name another path")
    })
}
