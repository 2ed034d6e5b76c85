//! The baseline of a worktree: the files of its commit, and those that differ in the worktree.
//!
//! Invariants:
//! - Files are compared byte for byte with git's objects of a commit. The worktree's index, attributes and filters do not
//!   count, because code in the worktree can write them.
//! - Inside of a checked-out submodule, the commit that the superproject names counts.
//!
//! Not here: which process made a difference.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use windlass_process::file;

use super::repository::{Head, text};
use super::{Commit, Error, Git, Worktree, canonical, paths};

/// The deepest directory in which submodules are followed.
const DEPTH: usize = 32;

/// The number of links that one call reads.
const LINKS_AT_ONCE: usize = 1_000;

/// A file of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Relative to the worktree.
    pub path: PathBuf,
    is_link: bool,
    is_executable: bool,
    id: String,
    /// The directory of the repository that stores it.
    place: PathBuf,
}

impl Kept {
    /// Returns whether a plain file has the executable bit of the commit.
    fn has_mode_of(&self, found: &fs::Metadata) -> bool {
        self.is_executable == (found.permissions().mode() & 0o100 != 0)
    }
}

impl Git<'_> {
    /// Returns the commit of a worktree; during a merge, the one that is merged in.
    pub fn at(&self, worktree: &Worktree) -> Result<Commit, Error> {
        let path = canonical(&worktree.path);
        let entry = self.repository.entry(&path).ok_or_else(|| Error::Vanished { path: path.clone() })?;
        if !entry.is_whole() {
            return Err(Error::Occupied { path });
        }
        let taken_in = text(&entry.admin.join("MERGE_HEAD"));
        if let Some(taken_in) = taken_in.and_then(|text| Commit::new(text.lines().next()?.trim()).ok()) {
            return Ok(taken_in);
        }
        match entry.head()? {
            Head::Detached(commit) => Ok(commit),
            Head::Branch(branch) => {
                self.resolve(&branch.full())?.ok_or_else(|| Error::UnknownCommit { commit: branch.to_string() })
            }
            Head::Unknown => Err(Error::UnknownCommit { commit: "HEAD".to_owned() }),
        }
    }

    /// Returns the wanted files of a commit, and of its submodules that are checked out in a worktree.
    pub fn kept(&self, worktree: &Path, commit: &Commit, wanted: &dyn Fn(&Path) -> bool) -> Result<Vec<Kept>, Error> {
        let (worktree, mut kept) = (canonical(worktree), Vec::new());
        // The path of a repository in the worktree, the directory in which git reads it, and its commit.
        let mut places = vec![(PathBuf::new(), self.repository.root.clone(), commit.clone())];
        while let Some((below, asked, commit)) = places.pop() {
            let listed = self.call(&["ls-tree", "-r", "-z", "--full-tree"]).word(&commit).within(&asked).done()?;
            for (mode, id, path) in listed.entries().into_iter().filter_map(read) {
                let path = below.join(path);
                let inside = worktree.join(&path);
                if mode != "160000" && wanted(&path) {
                    let place = worktree.join(&below);
                    kept.push(Kept { path, is_link: mode == "120000", is_executable: mode == "100755", id, place });
                } else if mode == "160000" && path.components().count() < DEPTH && inside.join(".git").exists() {
                    places.push((path, inside, Commit::new(&id)?));
                }
            }
        }
        Ok(kept)
    }

    /// Returns the files that differ in a worktree, by content or by mode.
    pub fn changed(&self, worktree: &Path, kept: &[Kept]) -> Result<Vec<PathBuf>, Error> {
        let root = canonical(worktree);
        let (mut changed, mut links) = (Vec::new(), Vec::new());
        let mut plain: HashMap<&Path, Vec<&Kept>> = HashMap::new();
        for file in kept {
            let place = root.join(&file.path);
            match fs::symlink_metadata(&place) {
                Ok(found) if file.is_link && found.is_symlink() => {
                    links.push((file, fs::read_link(&place).map_err(Error::io("read", &place))?));
                }
                Ok(found)
                    if !file.is_link && found.is_file() && file.has_mode_of(&found) && file::open(&place).is_ok() =>
                {
                    plain.entry(&file.place).or_default().push(file);
                }
                _ => changed.push(file.path.clone()),
            }
        }
        let targets = self.link_targets(&links.iter().map(|(file, _)| *file).collect::<Vec<_>>())?;
        let differs = |((_, now), target): &(&(&Kept, PathBuf), Vec<u8>)| now.as_os_str().as_bytes() != *target;
        changed.extend(links.iter().zip(targets).filter(differs).map(|((file, _), _)| file.path.clone()));
        for (place, files) in plain {
            let now = self.hashed(place, &root, &files)?;
            changed
                .extend(files.iter().zip(now).filter(|(file, now)| file.id != *now).map(|(file, _)| file.path.clone()));
        }
        changed.sort();
        Ok(changed)
    }

    /// Returns the targets of links in the commit.
    fn link_targets(&self, links: &[&Kept]) -> Result<Vec<Vec<u8>>, Error> {
        let mut targets = Vec::with_capacity(links.len());
        for run in links.chunk_by(|one, other| one.place == other.place).flat_map(|run| run.chunks(LINKS_AT_ONCE)) {
            let ids: String = run.iter().map(|link| format!("{}\n", link.id)).collect();
            let answer = self.call(&["cat-file", "--batch"]).within(&run[0].place).stdin(ids).done()?;
            let mut rest = answer.bytes.as_slice();
            for link in run {
                let unknown = || Error::UnknownCommit { commit: link.id.clone() };
                let (target, after) = blob(rest, &link.id).ok_or_else(unknown)?;
                targets.push(target.to_vec());
                rest = after;
            }
        }
        Ok(targets)
    }

    /// Returns the object ids of files in a worktree, without any filter.
    fn hashed(&self, place: &Path, root: &Path, files: &[&Kept]) -> Result<Vec<String>, Error> {
        // A quoted name may hold any byte.
        let line = |file: &&Kept| {
            let name = root.join(&file.path).strip_prefix(place).map(Path::to_owned).unwrap_or_default();
            let letters = name.as_os_str().as_bytes().iter().flat_map(|byte| match byte {
                b'"' => &b"\\\""[..],
                b'\\' => b"\\\\",
                b'\n' => b"\\n",
                other => std::slice::from_ref(other),
            });
            [&b"\""[..], &letters.copied().collect::<Vec<u8>>(), b"\"\n"].concat()
        };
        let names: Vec<u8> = files.iter().flat_map(line).collect();
        let call = self.call(&["hash-object", "--no-filters", "--stdin-paths"]).within(place);
        Ok(call.stdin(names).done()?.line().lines().map(str::to_owned).collect())
    }

    /// Returns the files that commits change; for a merge, those that differ from all parents.
    pub fn touched(&self, commits: &[Commit]) -> Result<BTreeSet<PathBuf>, Error> {
        let call = self.call(&["diff-tree", "--stdin", "-r", "-c", "-z", "--name-only", "--no-renames", "--root"]);
        let listed: String = commits.iter().map(|commit| format!("{commit}\n")).collect();
        let answer = call.word("--no-commit-id").stdin(listed).done()?;
        Ok(paths(answer.entries()).into_iter().collect())
    }
}

/// Parses `ID blob SIZE<newline>CONTENT<newline>`. Returns the content and the rest.
pub(super) fn blob<'b>(answer: &'b [u8], id: &str) -> Option<(&'b [u8], &'b [u8])> {
    let end = answer.iter().position(|byte| *byte == b'\n')?;
    let about = String::from_utf8_lossy(&answer[..end]).into_owned();
    let size: usize = about.strip_prefix(id)?.strip_prefix(" blob ")?.parse().ok()?;
    let (content, after) = answer[end + 1..].split_at_checked(size)?;
    Some((content, after.strip_prefix(b"\n")?))
}

/// Parses `100644 blob ID<tab>PATH`.
pub(super) fn read(entry: &[u8]) -> Option<(String, String, PathBuf)> {
    let tab = entry.iter().position(|byte| *byte == b'\t')?;
    let about = String::from_utf8_lossy(&entry[..tab]).into_owned();
    let mut words = about.split(' ');
    let (mode, id) = (words.next()?.to_owned(), words.nth(1)?.to_owned());
    Some((mode, id, paths([&entry[tab + 1..]]).pop()?))
}
