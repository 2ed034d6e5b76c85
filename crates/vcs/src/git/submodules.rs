//! Submodules of a worktree, copied from those of the main worktree.
//!
//! Invariants:
//! - Nothing uses a network, and nothing is written into the user's configuration.
//! - Git reads from a path only inside of the main repository's own submodule directories, or of a Windlass worktree.
//! - The main repository gets every commit of a submodule before anything points to it: the worktree's own copy is deleted
//!   with the worktree.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use super::{Error, GitClient, GitCommitId};

/// The deepest nesting of submodules.
const MAX_SUBMODULE_DEPTH: usize = 4;

pub(super) struct SubmoduleEntry {
    pub(super) name: OsString,
    pub(super) path: PathBuf,
}

impl GitClient<'_> {
    /// Checks out the submodules of the worktree's commit that the main worktree has.
    pub(super) fn check_out_submodules(&self, worktree: &Path) -> Result<(), Error> {
        let modules = self.repository.common.join("modules");
        if modules.is_dir() {
            self.check_out_nested_submodules(worktree, &modules, MAX_SUBMODULE_DEPTH)
        } else {
            Ok(())
        }
    }

    fn check_out_nested_submodules(&self, worktree: &Path, modules: &Path, depth: usize) -> Result<(), Error> {
        if depth == 0 || !worktree.join(".gitmodules").is_file() {
            return Ok(());
        }
        for SubmoduleEntry { name, path } in self.list_submodules(worktree)? {
            let kept = modules.join(&name);
            let Some(commit) = self.gitlink_commit(worktree, &path)?.filter(|_| kept.join("HEAD").is_file()) else {
                continue;
            };
            let place = worktree.join(&path);
            let failed = |error| match error {
                Error::Failed { said, .. } => Error::Submodule { path: path.clone(), said },
                error => error,
            };
            let update = || self.update_submodule(worktree, &path, &name, &kept);
            if place.join(".git").exists() {
                self.fetch_submodule_commit(&place, &kept, &commit).and_then(|()| update()).map_err(failed)?;
            } else if let Err(error) = update() {
                // A copy lacks commits that no branch has: they need a fetch by id.
                if !place.join(".git").exists() {
                    return Err(failed(error));
                }
                self.fetch_submodule_commit(&place, &kept, &commit).and_then(|()| update()).map_err(failed)?;
            }
            self.copy_remote_address(&place, &kept)?;
            self.check_out_nested_submodules(&place, &kept.join("modules"), depth - 1)?;
        }
        Ok(())
    }

    /// Copies the submodule from the main repository, if it is not there, and checks it out.
    fn update_submodule(&self, worktree: &Path, path: &Path, name: &OsStr, kept: &Path) -> Result<(), Error> {
        let key = |field: &str| [b"submodule.", name.as_bytes(), field.as_bytes()].concat();
        let address = [&key(".url="), kept.as_os_str().as_bytes()].concat();
        let call =
            self.build_command(&["submodule", "--quiet", "update", "--checkout", "--force", "--"]).with_argument(path);
        let call = call.with_setting(OsStr::from_bytes(&address)).with_setting(OsStr::from_bytes(&key(".active=true")));
        let call =
            call.with_setting(OsStr::from_bytes(&key(".update=checkout"))).with_setting("protocol.file.allow=always");
        call.in_directory(worktree).run_checked().map(|_| ())
    }

    /// Fetches a commit from the main repository's copy, if it is not there.
    fn fetch_submodule_commit(&self, place: &Path, kept: &Path, commit: &GitCommitId) -> Result<(), Error> {
        if self.build_command(&["cat-file", "-e"]).with_argument(commit).in_directory(place).run_unchecked()?.code == 0
        {
            return Ok(());
        }
        let call =
            self.build_command(&["fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head"]);
        let any = "--upload-pack=git -c uploadpack.allowAnySHA1InWant=true upload-pack";
        let call = call
            .with_argument(any)
            .with_argument("--")
            .with_argument(kept)
            .with_argument(commit)
            .with_setting("protocol.file.allow=always");
        call.in_directory(place).run_checked().map(|_| ())
    }

    /// Stores the commits of a worktree's submodules in the main repository.
    pub(super) fn keep_submodules(&self, worktree: &Path) -> Result<(), Error> {
        self.keep_nested_submodules(worktree, &self.repository.common.join("modules"), MAX_SUBMODULE_DEPTH)
    }

    fn keep_nested_submodules(&self, worktree: &Path, modules: &Path, depth: usize) -> Result<(), Error> {
        if depth == 0 || !worktree.join(".gitmodules").is_file() {
            return Ok(());
        }
        for SubmoduleEntry { name, path } in self.list_submodules(worktree)? {
            let (place, kept) = (worktree.join(&path), modules.join(&name));
            let Some(commit) = self.gitlink_commit(worktree, &path)?.filter(|_| place.join(".git").exists()) else {
                continue;
            };
            if !self.keep_submodule_commit(&place, &kept, &commit)? {
                return Err(Error::Unkept { path });
            }
            self.keep_nested_submodules(&place, &kept.join("modules"), depth - 1)?;
        }
        Ok(())
    }

    /// Stores a commit of a copy in the main repository's submodule, under a Windlass ref. If there is none, the submodule's
    /// own remote must have the commit. Returns whether the commit is safe.
    fn keep_submodule_commit(&self, place: &Path, kept: &Path, commit: &GitCommitId) -> Result<bool, Error> {
        if !kept.join("HEAD").is_file() {
            let own = self
                .build_command(&["rev-list", "--max-count=1"])
                .with_argument(commit)
                .with_argument("--not")
                .with_argument("--remotes");
            return own.in_directory(place).run_checked().map(|own| own.trimmed_text().is_empty());
        }
        let within = |words: &[&str]| {
            words
                .iter()
                .fold(self.build_command(&["--git-dir"]).with_argument(kept), |call, word| call.with_argument(word))
        };
        if within(&["cat-file", "-e"]).with_argument(commit).run_unchecked()?.code == 0 {
            return Ok(true);
        }
        let any = "--upload-pack=git -c uploadpack.allowAnySHA1InWant=true upload-pack";
        let call = within(&["fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", any]);
        let call = call
            .with_argument("--")
            .with_argument(place)
            .with_argument(format!("{commit}:refs/windlass/kept/{commit}"));
        call.with_setting("protocol.file.allow=always").run_checked().map(|_| true)
    }

    /// Returns the paths of submodules that the main worktree has, too.
    pub(super) fn known_submodules(&self, worktree: &Path) -> Result<Vec<PathBuf>, Error> {
        let modules = self.repository.common.join("modules");
        let listed = self.list_submodules(worktree)?.into_iter();
        Ok(listed.filter(|found| modules.join(&found.name).join("HEAD").is_file()).map(|found| found.path).collect())
    }

    fn list_submodules(&self, worktree: &Path) -> Result<Vec<SubmoduleEntry>, Error> {
        let call =
            self.build_command(&["config", "-z", "--file", ".gitmodules", "--get-regexp", r"^submodule\..*\.path$"]);
        let answer = call.in_directory(worktree).run_unchecked()?;
        Ok(answer.split_entries().into_iter().filter_map(SubmoduleEntry::parse_entry).collect())
    }

    /// Returns the commit of a submodule in the index.
    fn gitlink_commit(&self, worktree: &Path, path: &Path) -> Result<Option<GitCommitId>, Error> {
        let listed = self
            .build_command(&["ls-files", "-z", "--stage", "--"])
            .with_argument(path)
            .in_directory(worktree)
            .run_checked()?;
        let text = String::from_utf8_lossy(&listed.bytes);
        let id = text.strip_prefix("160000 ").and_then(|rest| rest.split(' ').next());
        id.map(GitCommitId::new).transpose()
    }

    /// Sets the address of the submodule's real remote, which would otherwise be our copy.
    fn copy_remote_address(&self, place: &Path, kept: &Path) -> Result<(), Error> {
        let address = self
            .build_command(&["config", "--file"])
            .with_argument(kept.join("config"))
            .with_argument("--get")
            .with_argument("remote.origin.url");
        let address = address.run_unchecked()?;
        if address.code == 0 {
            self.build_command(&["config", "remote.origin.url"])
                .with_argument(address.trimmed_text())
                .in_directory(place)
                .run_checked()?;
        }
        Ok(())
    }
}

impl SubmoduleEntry {
    /// Parses `submodule.NAME.path`, a line end, the path. Refuses names and paths that lead elsewhere.
    pub(super) fn parse_entry(entry: &[u8]) -> Option<Self> {
        let end = entry.iter().position(|byte| *byte == b'\n')?;
        let name = entry[..end].strip_prefix(b"submodule.")?.strip_suffix(b".path")?;
        let (name, path) = (OsStr::from_bytes(name), Path::new(OsStr::from_bytes(&entry[end + 1..])));
        let is_below = |path: &Path| path.components().all(|part| matches!(part, Component::Normal(_)));
        let is_sound = is_below(path) && is_below(Path::new(name)) && !name.as_bytes().contains(&b'=');
        is_sound.then(|| Self { name: name.to_owned(), path: path.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_elsewhere_are_not_followed() {
        let read = |entry: &[u8]| SubmoduleEntry::parse_entry(entry).map(|found| (found.name, found.path));
        assert_eq!(read(b"submodule.a.b.path\nlib/a"), Some(("a.b".into(), "lib/a".into())));
        for bad in [&b"submodule.../x.path\na"[..], b"submodule.a.path\n../a", b"submodule./a.path\na", b"x.a.path\na"]
        {
            assert_eq!(read(bad), None, "{}", String::from_utf8_lossy(bad));
        }
    }
}
