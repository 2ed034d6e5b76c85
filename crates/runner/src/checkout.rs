//! Whether a file is what a checkout makes of what git keeps. Attributes and filters are not asked: an agent can write them.
//!
//! ```text
//! byte for byte as it is kept             ─► as kept
//! the content that an LFS pointer names   ─► as kept
//! other line ends                         ─► as kept, if the file had them when the work began; a new one, if all had them
//! what a filter has made of it            ─► as kept, if that was there when the work began, what is kept is the same since,
//!                                            and the commit's own attributes ask for filters
//! all else                                ─► changed
//! ```

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use windlass_engine::Digest;
use windlass_process::file;
use windlass_vcs::git::{Commit, Error, Git, Kept};

use crate::protected::{digest_in, is_executable, was_executable};

/// The longest text that is taken for an LFS pointer.
const POINTER: usize = 1024;

/// The longest file that is compared with what git keeps, which tells no more of one.
const CONTENT: u64 = 64 * 1024 * 1024;

/// How things were when the work began.
pub(crate) struct Began<'a> {
    pub at: &'a Commit,
    pub kept: &'a [Kept],
    /// What stands for files as they were there then (`protected::held`), by their names in the worktree.
    pub found: &'a dyn Fn(&Path) -> Option<&'a str>,
}

/// A file as it was when the work began.
struct Before<'a> {
    digest: &'a str,
    kept: &'a [u8],
    /// What is kept now is the same, and may have gone through a filter.
    may_be_filtered: bool,
}

/// The files that a worktree has otherwise than a checkout would.
pub(crate) fn changed(
    git: &Git<'_>,
    worktree: &Path,
    files: &[Kept],
    began: &Began<'_>,
) -> Result<Vec<PathBuf>, Error> {
    let mut changed = git.changed(worktree, files)?;
    let other_modes = changed_modes(worktree, files, began);
    if changed.is_empty() {
        return Ok(other_modes);
    }
    let differing: Vec<&Kept> =
        files.iter().filter(|file| file.is_plain() && changed.binary_search(&file.path).is_ok()).collect();
    let former: HashMap<&Path, &Kept> = began.kept.iter().map(|file| (file.path.as_path(), file)).collect();
    let then: Vec<&Kept> =
        differing.iter().map(|file| former.get(file.path.as_path()).map_or(*file, |then| *then)).collect();
    let (kept, kept_then) = (git.contents(&differing)?, git.contents(&then)?);
    let asks_for_filters = asks_for_filters(git, worktree, began.at)?;
    let mut explained = Vec::new();
    let mut all = None;
    for (at, file) in differing.iter().enumerate() {
        let place = worktree.join(&file.path);
        let is_plain = fs::symlink_metadata(&place).is_ok_and(|found| found.is_file());
        let Some(now) = file::read(&place, CONTENT).ok().filter(|_| is_plain) else { continue };
        let was_there = former.contains_key(file.path.as_path());
        let before = (began.found)(&file.path).filter(|_| was_there).map(|held| Before {
            digest: digest_in(held),
            kept: &kept_then[at],
            may_be_filtered: asks_for_filters && file.is_like(then[at]),
        });
        let is_new = !was_there && now == with_other_ends(&kept[at]);
        if is_new && all.is_none() {
            all = Some(all_had_other_ends(git, began)?);
        }
        if is_checked_out(&now, &kept[at], before) || (is_new && all == Some(true)) {
            explained.push(&file.path);
        }
    }
    changed.retain(|path| !explained.contains(&path));
    changed.extend(other_modes);
    Ok(changed)
}

/// The files that can be executed although git keeps them otherwise, or the other way round, and could not when the work began:
/// there are file systems where all files can be.
fn changed_modes(worktree: &Path, files: &[Kept], began: &Began<'_>) -> Vec<PathBuf> {
    let differs = |file: &&Kept| {
        let Ok(found) = fs::symlink_metadata(worktree.join(&file.path)) else { return false };
        let is_like_before =
            || (began.found)(&file.path).is_some_and(|held| was_executable(held) != file.is_executable);
        found.is_file() && is_executable(&found) != file.is_executable && !is_like_before()
    };
    files.iter().filter(|file| file.is_plain()).filter(differs).map(|file| file.path.clone()).collect()
}

fn is_checked_out(now: &[u8], kept: &[u8], before: Option<Before<'_>>) -> bool {
    if names(kept, now) {
        return true;
    }
    let Some(before) = before else { return false };
    let is_before = |bytes: &[u8]| Digest::of(bytes).to_string() == before.digest;
    let then = with_other_ends(before.kept);
    let had_other_ends = then != before.kept && is_before(&then);
    (had_other_ends && now == with_other_ends(kept)) || (before.may_be_filtered && is_before(now))
}

/// Whether every file with lines had other ends than what is kept, and there were such.
fn all_had_other_ends(git: &Git<'_>, began: &Began<'_>) -> Result<bool, Error> {
    let files: Vec<&Kept> = began.kept.iter().filter(|file| file.is_plain()).collect();
    let mut any = false;
    for (file, kept) in files.iter().zip(git.contents(&files)?) {
        let other = with_other_ends(&kept);
        if other == kept {
            continue;
        }
        if (began.found)(&file.path) != Some(Digest::of(&other).to_string().as_str()) {
            return Ok(false);
        }
        any = true;
    }
    Ok(any)
}

/// Lines as they are where `core.autocrlf` or `eol=crlf` is set.
fn with_other_ends(kept: &[u8]) -> Vec<u8> {
    let mut made = Vec::with_capacity(kept.len());
    for byte in kept {
        if *byte == b'\n' && made.last() != Some(&b'\r') {
            made.push(b'\r');
        }
        made.push(*byte);
    }
    made
}

/// Whether what is kept is an LFS pointer to this content.
fn names(kept: &[u8], content: &[u8]) -> bool {
    let Some(pointer) = std::str::from_utf8(kept).ok().filter(|text| text.len() <= POINTER) else { return false };
    let line = |start: &str| pointer.lines().find_map(|line| line.strip_prefix(start));
    pointer.starts_with("version https://git-lfs.github.com/spec/")
        && line("size ") == Some(content.len().to_string().as_str())
        && line("oid sha256:") == Some(Digest::of(content).to_string().as_str())
}

/// Whether the attributes that a commit has of its own let files go through anything but line ends.
fn asks_for_filters(git: &Git<'_>, worktree: &Path, commit: &Commit) -> Result<bool, Error> {
    let attributes =
        git.kept(worktree, commit, &|path| path.file_name().is_some_and(|name| name == ".gitattributes"))?;
    let attributes: Vec<&Kept> = attributes.iter().filter(|file| file.is_plain()).collect();
    let asks = |text: Vec<u8>| {
        let text = String::from_utf8_lossy(&text).into_owned();
        ["filter=", "working-tree-encoding=", "ident"].iter().any(|attribute| text.contains(attribute))
    };
    Ok(git.contents(&attributes)?.into_iter().any(asks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(now: &str, kept: &str, before: Option<(&str, &str, bool)>, expected: bool) {
        let digest = before.map(|(there, ..)| Digest::of(there.as_bytes()).to_string()).unwrap_or_default();
        let before =
            before.map(|(_, kept, may_be_filtered)| Before { digest: &digest, kept: kept.as_bytes(), may_be_filtered });
        let found = is_checked_out(now.as_bytes(), kept.as_bytes(), before);
        assert_eq!(found, expected, "{now:?} {kept:?}");
    }

    #[test]
    fn line_ends_are_those_that_were_there() {
        check("b\r\nc\r\n", "b\nc\n", Some(("a\r\n", "a\n", false)), true);
        check("a\r\n", "a\n", Some(("a\r\n", "a\n", false)), true);
        check("b\r\n", "b\n", Some(("a\n", "a\n", false)), false);
        check("b\r\n", "b\n", Some(("a", "a", false)), false);
        check("b\r\n", "b\n", None, false);
        check("x\r\n", "b\n", Some(("a\r\n", "a\n", false)), false);
    }

    #[test]
    fn a_filter_is_believed_for_what_it_made_before_the_work() {
        check("A", "a", Some(("A", "a", true)), true);
        check("A", "a", Some(("A", "a", false)), false);
        check("B", "a", Some(("A", "a", true)), false);
        check("A", "a", None, false);
    }

    #[test]
    fn a_pointer_says_what_it_stands_for() {
        let pointer =
            format!("version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize 5\n", Digest::of(b"large"));
        check("large", &pointer, None, true);
        check("Large", &pointer, None, false);
    }
}
