//! Submodules of a worktree, copied from those of the main worktree.
//!
//! Invariants:
//! - Nothing uses a network, and nothing is written into the user's configuration.
//! - Git reads from a path only inside of the main repository's own submodule directories, or of a worktree of ours.
//! - The main repository gets every commit of a submodule before anything points to it: the worktree's own copy is deleted
//!   with the worktree.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use super::{Commit, Error, Git};

/// The deepest nesting of submodules.
const DEPTH: usize = 4;

pub(super) struct Submodule {
    pub(super) name: OsString,
    pub(super) path: PathBuf,
}

impl Git<'_> {
    /// Checks out the submodules of the worktree's commit that the main worktree has.
    pub(super) fn submodules(&self, worktree: &Path) -> Result<(), Error> {
        let modules = self.repository.common.join("modules");
        if modules.is_dir() { self.submodules_of(worktree, &modules, DEPTH) } else { Ok(()) }
    }

    fn submodules_of(&self, worktree: &Path, modules: &Path, depth: usize) -> Result<(), Error> {
        if depth == 0 || !worktree.join(".gitmodules").is_file() {
            return Ok(());
        }
        for Submodule { name, path } in self.listed(worktree)? {
            let kept = modules.join(&name);
            let Some(commit) = self.link(worktree, &path)?.filter(|_| kept.join("HEAD").is_file()) else { continue };
            let place = worktree.join(&path);
            let failed = |error| match error {
                Error::Failed { said, .. } => Error::Submodule { path: path.clone(), said },
                error => error,
            };
            let update = || self.update(worktree, &path, &name, &kept);
            if place.join(".git").exists() {
                self.bring(&place, &kept, &commit).and_then(|()| update()).map_err(failed)?;
            } else if let Err(error) = update() {
                // A copy lacks commits that no branch has: they need a fetch by id.
                if !place.join(".git").exists() {
                    return Err(failed(error));
                }
                self.bring(&place, &kept, &commit).and_then(|()| update()).map_err(failed)?;
            }
            self.tell_address(&place, &kept)?;
            self.submodules_of(&place, &kept.join("modules"), depth - 1)?;
        }
        Ok(())
    }

    /// Copies the submodule from the main repository, if it is not there, and checks it out.
    fn update(&self, worktree: &Path, path: &Path, name: &OsStr, kept: &Path) -> Result<(), Error> {
        let key = |field: &str| [b"submodule.", name.as_bytes(), field.as_bytes()].concat();
        let address = [&key(".url="), kept.as_os_str().as_bytes()].concat();
        let call = self.call(&["submodule", "--quiet", "update", "--checkout", "--force", "--"]).word(path);
        let call = call.set(OsStr::from_bytes(&address)).set(OsStr::from_bytes(&key(".active=true")));
        let call = call.set(OsStr::from_bytes(&key(".update=checkout"))).set("protocol.file.allow=always");
        call.within(worktree).done().map(|_| ())
    }

    /// Fetches a commit from the main repository's copy, if it is not there.
    fn bring(&self, place: &Path, kept: &Path, commit: &Commit) -> Result<(), Error> {
        if self.call(&["cat-file", "-e"]).word(commit).within(place).answer()?.code == 0 {
            return Ok(());
        }
        let call = self.call(&["fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head"]);
        let any = "--upload-pack=git -c uploadpack.allowAnySHA1InWant=true upload-pack";
        let call = call.word(any).word("--").word(kept).word(commit).set("protocol.file.allow=always");
        call.within(place).done().map(|_| ())
    }

    /// Stores the commits of a worktree's submodules in the main repository.
    pub(super) fn keep_submodules(&self, worktree: &Path) -> Result<(), Error> {
        self.keep_submodules_of(worktree, &self.repository.common.join("modules"), DEPTH)
    }

    fn keep_submodules_of(&self, worktree: &Path, modules: &Path, depth: usize) -> Result<(), Error> {
        if depth == 0 || !worktree.join(".gitmodules").is_file() {
            return Ok(());
        }
        for Submodule { name, path } in self.listed(worktree)? {
            let (place, kept) = (worktree.join(&path), modules.join(&name));
            let Some(commit) = self.link(worktree, &path)?.filter(|_| place.join(".git").exists()) else { continue };
            if !self.keep(&place, &kept, &commit)? {
                return Err(Error::Unkept { path });
            }
            self.keep_submodules_of(&place, &kept.join("modules"), depth - 1)?;
        }
        Ok(())
    }

    /// Stores a commit of a copy in the main repository's submodule, under a ref of ours. If there is none, the submodule's
    /// own remote must have the commit. Returns whether the commit is safe.
    fn keep(&self, place: &Path, kept: &Path, commit: &Commit) -> Result<bool, Error> {
        if !kept.join("HEAD").is_file() {
            let own = self.call(&["rev-list", "--max-count=1"]).word(commit).word("--not").word("--remotes");
            return own.within(place).done().map(|own| own.line().is_empty());
        }
        let within =
            |words: &[&str]| words.iter().fold(self.call(&["--git-dir"]).word(kept), |call, word| call.word(word));
        if within(&["cat-file", "-e"]).word(commit).answer()?.code == 0 {
            return Ok(true);
        }
        let any = "--upload-pack=git -c uploadpack.allowAnySHA1InWant=true upload-pack";
        let call = within(&["fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", any]);
        let call = call.word("--").word(place).word(format!("{commit}:refs/windlass/kept/{commit}"));
        call.set("protocol.file.allow=always").done().map(|_| true)
    }

    /// Returns the paths of submodules that the main worktree has, too.
    pub(super) fn known_submodules(&self, worktree: &Path) -> Result<Vec<PathBuf>, Error> {
        let modules = self.repository.common.join("modules");
        let listed = self.listed(worktree)?.into_iter();
        Ok(listed.filter(|found| modules.join(&found.name).join("HEAD").is_file()).map(|found| found.path).collect())
    }

    fn listed(&self, worktree: &Path) -> Result<Vec<Submodule>, Error> {
        let call = self.call(&["config", "-z", "--file", ".gitmodules", "--get-regexp", r"^submodule\..*\.path$"]);
        let answer = call.within(worktree).answer()?;
        Ok(answer.entries().into_iter().filter_map(Submodule::read).collect())
    }

    /// Returns the commit of a submodule in the index.
    fn link(&self, worktree: &Path, path: &Path) -> Result<Option<Commit>, Error> {
        let listed = self.call(&["ls-files", "-z", "--stage", "--"]).word(path).within(worktree).done()?;
        let text = String::from_utf8_lossy(&listed.bytes);
        let id = text.strip_prefix("160000 ").and_then(|rest| rest.split(' ').next());
        id.map(Commit::new).transpose()
    }

    /// Sets the address of the submodule's real remote, which would otherwise be our copy.
    fn tell_address(&self, place: &Path, kept: &Path) -> Result<(), Error> {
        let address =
            self.call(&["config", "--file"]).word(kept.join("config")).word("--get").word("remote.origin.url");
        let address = address.answer()?;
        if address.code == 0 {
            self.call(&["config", "remote.origin.url"]).word(address.line()).within(place).done()?;
        }
        Ok(())
    }
}

impl Submodule {
    /// Parses `submodule.NAME.path`, a line end, the path. Refuses names and paths that lead elsewhere.
    pub(super) fn read(entry: &[u8]) -> Option<Self> {
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
        let read = |entry: &[u8]| Submodule::read(entry).map(|found| (found.name, found.path));
        assert_eq!(read(b"submodule.a.b.path\nlib/a"), Some(("a.b".into(), "lib/a".into())));
        for bad in [&b"submodule.../x.path\na"[..], b"submodule.a.path\n../a", b"submodule./a.path\na", b"x.a.path\na"]
        {
            assert_eq!(read(bad), None, "{}", String::from_utf8_lossy(bad));
        }
    }
}
