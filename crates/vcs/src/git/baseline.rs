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

use super::repository::{WorktreeHead, read_small_text};
use super::{Error, GitClient, GitCommitId, Worktree, canonical_path, parse_paths};

/// The deepest directory in which submodules are followed.
const MAX_SUBMODULE_DEPTH: usize = 32;

/// The number of links that one call reads.
const MAX_LINKS_PER_CALL: usize = 1_000;

/// A file of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaselineFile {
    /// Relative to the worktree.
    pub path: PathBuf,
    is_link: bool,
    is_executable: bool,
    id: String,
    /// The directory of the repository that stores it.
    place: PathBuf,
}

impl BaselineFile {
    /// Returns whether a plain file has the executable bit of the commit.
    fn has_same_mode(&self, found: &fs::Metadata) -> bool {
        self.is_executable == (found.permissions().mode() & 0o100 != 0)
    }
}

impl GitClient<'_> {
    /// Returns the commit of a worktree; during a merge, the one that is merged in.
    pub fn worktree_commit(&self, worktree: &Worktree) -> Result<GitCommitId, Error> {
        let path = canonical_path(&worktree.path);
        let entry = self.repository.worktree_entry(&path).ok_or_else(|| Error::Vanished { path: path.clone() })?;
        if !entry.is_linked_back() {
            return Err(Error::Occupied { path });
        }
        let taken_in = read_small_text(&entry.admin.join("MERGE_HEAD"));
        if let Some(taken_in) = taken_in.and_then(|text| GitCommitId::new(text.lines().next()?.trim()).ok()) {
            return Ok(taken_in);
        }
        match entry.read_head()? {
            WorktreeHead::Detached(commit) => Ok(commit),
            WorktreeHead::Branch(branch) => {
                self.resolve_ref(&branch.full_ref())?.ok_or_else(|| Error::UnknownCommit { commit: branch.to_string() })
            }
            WorktreeHead::Unknown => Err(Error::UnknownCommit { commit: "HEAD".to_owned() }),
        }
    }

    /// Returns the wanted files of a commit, and of its submodules that are checked out in a worktree.
    pub fn baseline_files(
        &self,
        worktree: &Path,
        commit: &GitCommitId,
        wanted: &dyn Fn(&Path) -> bool,
    ) -> Result<Vec<BaselineFile>, Error> {
        let (worktree, mut kept) = (canonical_path(worktree), Vec::new());
        // The path of a repository in the worktree, the directory in which git reads it, and its commit.
        let mut places = vec![(PathBuf::new(), self.repository.root.clone(), commit.clone())];
        while let Some((below, asked, commit)) = places.pop() {
            let listed = self
                .build_command(&["ls-tree", "-r", "-z", "--full-tree"])
                .with_argument(&commit)
                .in_directory(&asked)
                .run_checked()?;
            for (mode, id, path) in listed.split_entries().into_iter().filter_map(parse_tree_entry) {
                let path = below.join(path);
                let inside = worktree.join(&path);
                if mode != "160000" && wanted(&path) {
                    let place = worktree.join(&below);
                    kept.push(BaselineFile {
                        path,
                        is_link: mode == "120000",
                        is_executable: mode == "100755",
                        id,
                        place,
                    });
                } else if mode == "160000"
                    && path.components().count() < MAX_SUBMODULE_DEPTH
                    && inside.join(".git").exists()
                {
                    places.push((path, inside, GitCommitId::new(&id)?));
                }
            }
        }
        Ok(kept)
    }

    /// Returns the files that differ in a worktree, by content or by mode.
    pub fn changed_since_baseline(&self, worktree: &Path, kept: &[BaselineFile]) -> Result<Vec<PathBuf>, Error> {
        let root = canonical_path(worktree);
        let (mut changed, mut links) = (Vec::new(), Vec::new());
        let mut plain: HashMap<&Path, Vec<&BaselineFile>> = HashMap::new();
        for file in kept {
            let place = root.join(&file.path);
            match fs::symlink_metadata(&place) {
                Ok(found) if file.is_link && found.is_symlink() => {
                    links.push((file, fs::read_link(&place).map_err(Error::io_error("read", &place))?));
                }
                Ok(found)
                    if !file.is_link
                        && found.is_file()
                        && file.has_same_mode(&found)
                        && file::open_regular_file(&place).is_ok() =>
                {
                    plain.entry(&file.place).or_default().push(file);
                }
                _ => changed.push(file.path.clone()),
            }
        }
        let targets = self.read_link_targets(&links.iter().map(|(file, _)| *file).collect::<Vec<_>>())?;
        let differs = |((_, now), target): &(&(&BaselineFile, PathBuf), Vec<u8>)| now.as_os_str().as_bytes() != *target;
        changed.extend(links.iter().zip(targets).filter(differs).map(|((file, _), _)| file.path.clone()));
        for (place, files) in plain {
            let now = self.hash_files(place, &root, &files)?;
            changed
                .extend(files.iter().zip(now).filter(|(file, now)| file.id != *now).map(|(file, _)| file.path.clone()));
        }
        changed.sort();
        Ok(changed)
    }

    /// Returns the targets of links in the commit.
    fn read_link_targets(&self, links: &[&BaselineFile]) -> Result<Vec<Vec<u8>>, Error> {
        let mut targets = Vec::with_capacity(links.len());
        for run in links.chunk_by(|one, other| one.place == other.place).flat_map(|run| run.chunks(MAX_LINKS_PER_CALL))
        {
            let ids: String = run.iter().map(|link| format!("{}\n", link.id)).collect();
            let answer = self
                .build_command(&["cat-file", "--batch"])
                .in_directory(&run[0].place)
                .with_stdin(ids)
                .run_checked()?;
            let mut rest = answer.bytes.as_slice();
            for link in run {
                let unknown = || Error::UnknownCommit { commit: link.id.clone() };
                let (target, after) = parse_blob(rest, &link.id).ok_or_else(unknown)?;
                targets.push(target.to_vec());
                rest = after;
            }
        }
        Ok(targets)
    }

    /// Returns the object ids of files in a worktree, without any filter.
    fn hash_files(&self, place: &Path, root: &Path, files: &[&BaselineFile]) -> Result<Vec<String>, Error> {
        // A quoted name may hold any byte.
        let line = |file: &&BaselineFile| {
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
        let call = self.build_command(&["hash-object", "--no-filters", "--stdin-paths"]).in_directory(place);
        Ok(call.with_stdin(names).run_checked()?.trimmed_text().lines().map(str::to_owned).collect())
    }

    /// Returns the files that commits change; for a merge, those that differ from all parents.
    pub fn touched_files(&self, commits: &[GitCommitId]) -> Result<BTreeSet<PathBuf>, Error> {
        let call =
            self.build_command(&["diff-tree", "--stdin", "-r", "-c", "-z", "--name-only", "--no-renames", "--root"]);
        let listed: String = commits.iter().map(|commit| format!("{commit}\n")).collect();
        let answer = call.with_argument("--no-commit-id").with_stdin(listed).run_checked()?;
        Ok(parse_paths(answer.split_entries()).into_iter().collect())
    }
}

/// Parses `ID blob SIZE<newline>CONTENT<newline>`. Returns the content and the rest.
pub(super) fn parse_blob<'b>(answer: &'b [u8], id: &str) -> Option<(&'b [u8], &'b [u8])> {
    let end = answer.iter().position(|byte| *byte == b'\n')?;
    let about = String::from_utf8_lossy(&answer[..end]).into_owned();
    let size: usize = about.strip_prefix(id)?.strip_prefix(" blob ")?.parse().ok()?;
    let (content, after) = answer[end + 1..].split_at_checked(size)?;
    Some((content, after.strip_prefix(b"\n")?))
}

/// Parses `100644 blob ID<tab>PATH`.
pub(super) fn parse_tree_entry(entry: &[u8]) -> Option<(String, String, PathBuf)> {
    let tab = entry.iter().position(|byte| *byte == b'\t')?;
    let about = String::from_utf8_lossy(&entry[..tab]).into_owned();
    let mut words = about.split(' ');
    let (mode, id) = (words.next()?.to_owned(), words.nth(1)?.to_owned());
    Some((mode, id, parse_paths([&entry[tab + 1..]]).pop()?))
}
