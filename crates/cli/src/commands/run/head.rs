//! Which commit a repository is at, read from its files: starting git would delay the agent.
//!
//! What cannot be read here (a repository that keeps its references otherwise) is not known; nothing depends on it but a
//! count of changes.

use std::path::{Path, PathBuf};

use windlass_process::file;
use windlass_vcs::git::has_git;

/// References are a line; packed ones are many.
const REFERENCE: u64 = 4096;
const PACKED: u64 = 16 * 1024 * 1024;

/// The commit that the repository around a directory is at.
pub fn commit(directory: &Path) -> Option<String> {
    let git = repository(directory)?;
    let head = line(&git.join("HEAD"))?;
    let Some(name) = head.strip_prefix("ref: ") else { return id(&head) };
    if !is_name(name) {
        return None;
    }
    // A linked worktree shares its references with the main one.
    let shared = line(&git.join("commondir")).map_or_else(|| git.clone(), |shared| git.join(shared));
    line(&shared.join(name)).and_then(|found| id(&found)).or_else(|| packed(&shared, name))
}

/// Whether there is a repository around a directory, as git would look for it.
pub fn is_in_repository(directory: &Path) -> bool {
    directory.ancestors().any(has_git)
}

fn repository(directory: &Path) -> Option<PathBuf> {
    let git = directory.ancestors().find(|directory| has_git(directory))?.join(".git");
    if git.is_dir() {
        return Some(git);
    }
    let elsewhere = line(&git)?;
    Some(git.parent()?.join(elsewhere.strip_prefix("gitdir: ")?))
}

fn line(path: &Path) -> Option<String> {
    let text = file::read_text(path, REFERENCE)?;
    Some(text.lines().next()?.trim_end().to_owned())
}

fn packed(shared: &Path, name: &str) -> Option<String> {
    let text = file::read_text(&shared.join("packed-refs"), PACKED)?;
    let found = text.lines().find_map(|line| line.split_once(' ').filter(|(_, named)| *named == name));
    found.and_then(|(commit, _)| id(commit))
}

/// A commit's id, and nothing that a command line could take for something else.
pub fn id(text: &str) -> Option<String> {
    let known = [40, 64].contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    known.then(|| text.to_owned())
}

fn is_name(name: &str) -> bool {
    name.starts_with("refs/") && !name.split('/').any(|part| part == "..")
}
