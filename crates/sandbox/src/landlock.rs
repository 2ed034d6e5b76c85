//! Landlock: which paths a process and its children may read and write, and where it may connect.
//!
//! Landlock allows a path with all that is below it, and cannot except a part. So each entry beside an excepted path gets a rule.
//!
//! Invariants:
//! - An entry that appears later beside a hidden path cannot be read, and no entry can be made beside a protected or hidden one.
//! - A directory around a hidden path can be listed only in a writable directory: names are then visible, contents are not.
//! - A kernel that cannot hold all of it is an error. Nothing is left out.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};

use crate::launch_setup::LandlockRules;
use crate::policy_check::{RESOLVER_FILE, SHARED_DIRECTORIES, find_innermost};
use crate::{NetworkPolicy, SandboxPolicy};

/// The version that the rules need: it keeps signals and abstract sockets inside.
const REQUIRED_VERSION: ABI = ABI::V6;

/// Devices that every program may use.
const DEVICES: [&str; 6] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// The reason why Landlock cannot hold a policy.
#[derive(Debug, thiserror::Error)]
pub enum LandlockError {
    #[error("the kernel has no Landlock; it needs Linux 6.12 or newer, with `landlock` among `lsm=` at boot")]
    Missing,
    #[error("the kernel's Landlock is too old: it does not keep signals inside; Linux 6.12 or newer does")]
    TooOld,
    #[error("cannot apply the rules of Landlock")]
    Rules(#[from] RulesetError),
    #[error("cannot list `{path}`, which is around a hidden or protected path")]
    Listing { path: PathBuf, source: io::Error },
}

/// Returns why Landlock cannot be used here, if it cannot.
pub(crate) fn check_kernel() -> Result<(), LandlockError> {
    let strict = || Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    strict().handle_access(AccessFs::from_all(ABI::V1)).map_err(|_| LandlockError::Missing)?;
    strict().scope(Scope::from_all(REQUIRED_VERSION)).map_err(|_| LandlockError::TooOld)?;
    Ok(())
}

/// Applies the rules to this thread, and to all processes that it starts from now on.
pub(crate) fn apply_rules(rules: &LandlockRules) -> Result<(), LandlockError> {
    check_kernel()?;
    let scoped =
        Ruleset::default().set_compatibility(CompatLevel::HardRequirement).scope(Scope::from_all(REQUIRED_VERSION))?;
    let LandlockRules::Policy(policy) = rules else {
        scoped.create()?.restrict_self()?;
        return Ok(());
    };
    let mut ruleset = scoped.handle_access(AccessFs::from_all(REQUIRED_VERSION))?;
    if policy.network != NetworkPolicy::All {
        ruleset = ruleset.handle_access(AccessNet::ConnectTcp)?;
    }
    let mut ruleset = ruleset.create()?;
    for rule in path_rules(policy)? {
        ruleset = add_path_rule(ruleset, &rule)?;
    }
    ruleset.restrict_self()?;
    Ok(())
}

/// The rights on a path and all that is below it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PathRule {
    path: PathBuf,
    rights: BitFlags<AccessFs>,
}

fn add_path_rule(ruleset: RulesetCreated, rule: &PathRule) -> Result<RulesetCreated, LandlockError> {
    // An entry that has gone since the listing needs no rule.
    let Ok(descriptor) = PathFd::new(&rule.path) else { return Ok(ruleset) };
    let is_directory = rule.path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
    let rights = if is_directory { rule.rights } else { rule.rights & AccessFs::from_file(REQUIRED_VERSION) };
    Ok(ruleset.add_rule(PathBeneath::new(descriptor, rights))?)
}

/// Returns the rules for the paths of a policy.
fn path_rules(policy: &SandboxPolicy) -> Result<Vec<PathRule>, LandlockError> {
    let read = AccessFs::from_read(REQUIRED_VERSION);
    let all = AccessFs::from_all(REQUIRED_VERSION);
    let mut builder = PathRuleBuilder::default();

    let shared = SHARED_DIRECTORIES.iter().chain(&["/dev"]).map(PathBuf::from);
    let hidden_outside: Vec<PathBuf> = policy.hidden.iter().cloned().chain(shared).collect();
    builder.allow(Path::new("/"), read, BitFlags::EMPTY, &hidden_outside)?;

    let writable: Vec<&PathBuf> = policy.write.iter().chain([&policy.temporary]).collect();
    let read_only: Vec<PathBuf> = policy.protected.iter().chain(&policy.hidden).cloned().collect();
    for path in writable {
        builder.allow(path, read, AccessFs::ReadDir.into(), &policy.hidden)?;
        builder.allow(path, all, BitFlags::EMPTY, &read_only)?;
    }
    for path in policy.protected.iter().filter(|path| find_innermost(&hidden_outside, path).is_some()) {
        builder.allow(path, read, BitFlags::EMPTY, &policy.hidden)?;
    }
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
    for path in DEVICES.iter().map(PathBuf::from).chain(own_terminals()) {
        builder.rules.push(PathRule { path, rights: device });
    }
    if policy.network == NetworkPolicy::All
        && let Ok(resolver) = Path::new(RESOLVER_FILE).canonicalize()
    {
        builder.rules.push(PathRule { path: resolver, rights: AccessFs::ReadFile.into() });
    }
    Ok(builder.rules)
}

/// Returns the terminals that the program has already. Other terminals belong to other programs.
fn own_terminals() -> Vec<PathBuf> {
    let descriptors = [0, 1, 2].into_iter().filter_map(|number| fs::read_link(format!("/proc/self/fd/{number}")).ok());
    descriptors.filter(|path| path.starts_with("/dev/pts") || path.starts_with("/dev/tty")).collect()
}

#[derive(Debug, Default)]
struct PathRuleBuilder {
    rules: Vec<PathRule>,
}

impl PathRuleBuilder {
    /// Allows rights on a path and all below it, except on and below the excepted paths. A directory around one of those gets
    /// `around` instead.
    fn allow(
        &mut self,
        path: &Path,
        rights: BitFlags<AccessFs>,
        around: BitFlags<AccessFs>,
        excepted: &[PathBuf],
    ) -> Result<(), LandlockError> {
        // What lies around the path does not count: the innermost path decides.
        let inner: Vec<PathBuf> = excepted.iter().filter(|except| except.starts_with(path)).cloned().collect();
        self.allow_except(path, rights, around, &inner)
    }

    fn allow_except(
        &mut self,
        path: &Path,
        rights: BitFlags<AccessFs>,
        around: BitFlags<AccessFs>,
        excepted: &[PathBuf],
    ) -> Result<(), LandlockError> {
        if excepted.iter().any(|except| path.starts_with(except)) {
            return Ok(());
        }
        if !excepted.iter().any(|except| except.starts_with(path)) {
            self.rules.push(PathRule { path: path.to_owned(), rights });
            return Ok(());
        }
        if !around.is_empty() {
            self.rules.push(PathRule { path: path.to_owned(), rights: around });
        }
        let failure = |source| LandlockError::Listing { path: path.to_owned(), source };
        let entries = match fs::read_dir(path) {
            Ok(entries) => entries,
            // This user cannot list it, so no program in the sandbox could find its entries.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(()),
            // The excepted path does not exist and the directory is a file, or has gone.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotADirectory | io::ErrorKind::NotFound) => {
                return Ok(());
            }
            Err(error) => return Err(failure(error)),
        };
        for entry in entries {
            let entry = entry.map_err(failure)?;
            // A link leads to a path with a rule of its own, or to none.
            if !entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
                self.allow_except(&entry.path(), rights, around, excepted)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_beside_hidden_and_protected_paths_get_rules() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        for directory in ["work/.git/hooks", "work/.git/objects", "work/src", "temporary"] {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        for file in ["work/secret", "work/readme", "work/.git/HEAD"] {
            fs::write(root.join(file), "").unwrap();
        }
        std::os::unix::fs::symlink("secret", root.join("work/link")).unwrap();
        let policy = SandboxPolicy {
            write: vec![root.join("work")],
            protected: vec![root.join("work/.git/hooks")],
            hidden: vec![root.join("work/secret")],
            temporary: root.join("temporary"),
            ..Default::default()
        };
        let all = AccessFs::from_all(REQUIRED_VERSION);
        let rules = path_rules(&policy).unwrap();
        let mut found: Vec<_> = rules
            .iter()
            .filter_map(|rule| Some((rule.path.strip_prefix(&root).ok()?.display().to_string(), rule.rights)))
            .map(|(path, rights)| {
                let kind = match rights {
                    rights if rights == all => "all",
                    rights if rights == AccessFs::ReadDir => "list",
                    _ => "read",
                };
                format!("{path} {kind}")
            })
            .filter(|rule| !rule.ends_with("read"))
            .collect();
        found.sort();
        let expected = ["temporary all", "work list", "work/.git/HEAD all", "work/.git/objects all", "work/readme all"];
        assert_eq!(found, [&expected[..], &["work/src all"]].concat());
        assert!(rules.iter().any(|rule| rule.path == root.join("work/.git")), "it can be read as a whole");
    }
}
