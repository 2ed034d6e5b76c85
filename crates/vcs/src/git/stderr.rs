//! Classifies the error messages of git.
//!
//! `LC_ALL=C` keeps git's wording stable. An unknown message stays git's own text.
//!
//! Invariant: no text of git leaves this module with credentials or control characters.

use std::path::{Path, PathBuf};

use super::Error;

/// The longest message of git that is passed on.
const MAX_MESSAGE_BYTES: usize = 2000;

/// Returns the error of a failed call.
pub(super) fn classify_failure(command: String, directory: &Path, stderr: &[u8]) -> Error {
    let said = clean_message(stderr);
    let has = |words: &[&str]| words.iter().any(|words| said.contains(words));
    let path = directory.to_owned();
    if has(&["detected dubious ownership"]) {
        Error::ForeignOwner { path }
    } else if has(&["No space left on device", "Disk quota exceeded"]) {
        Error::DiskFull { said }
    } else if has(&["not a git repository"]) {
        Error::NotARepository { path }
    } else if has(&["must be run in a work tree"]) {
        Error::Bare { path }
    } else if has(&["smudge filter", "clean filter", "external filter", "filter-process", "git-lfs:"]) {
        Error::Filter { said }
    } else if let Some(lock) = parse_lock_path(&said) {
        Error::Locked { path: lock, holder: None }
    } else {
        Error::Failed { command, said }
    }
}

/// Returns whether git reports a failure of the machine or of the repository as a whole, and not of files in a tree.
pub(super) fn is_environment_failure(said: &str) -> bool {
    let words = [
        "Read-only file system",
        "insufficient permission for adding an object",
        "Input/output error",
        "Cannot allocate memory",
        "out of memory",
        "Too many open files",
        "promisor remote",
    ];
    words.iter().any(|words| said.contains(words))
}

/// Returns the lock file of the message `Unable to create '/x/index.lock': File exists.`
fn parse_lock_path(said: &str) -> Option<PathBuf> {
    let (before, _) = said.split_once("': File exists")?;
    let (_, path) = before.rsplit_once("Unable to create '")?;
    path.ends_with(".lock").then(|| PathBuf::from(path))
}

/// Returns whether another attempt can succeed, because a concurrent process caused the failure.
pub(super) fn is_transient(error: &Error) -> bool {
    match error {
        Error::Locked { .. } => true,
        Error::Failed { said, .. } => {
            said.contains("cannot lock ref") && said.contains("File exists")
                || said.contains("could not create leading directories")
                || said.contains("failed to read") && said.contains("commondir")
        }
        _ => false,
    }
}

/// Returns git's messages, bounded, without credentials and hints.
pub(super) fn clean_message(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let lines = text.lines().map(str::trim_end).filter(|line| !line.is_empty() && !line.starts_with("hint:"));
    let joined = lines.collect::<Vec<_>>().join("; ");
    // Control characters go first, so that the next step recognises every address.
    let joined: String = joined.chars().filter(|letter| !letter.is_control()).collect();
    let mut said = strip_credentials(&joined);
    if said.len() > MAX_MESSAGE_BYTES {
        said.truncate(said.floor_char_boundary(MAX_MESSAGE_BYTES));
        said.push('…');
    }
    if said.is_empty() { "it gives no reason".to_owned() } else { said }
}

/// Removes the user, the password and the query from addresses. An address may hold another one in its path.
pub(super) fn strip_credentials(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        clean.push_str(before);
        // A password may hold quotes and other signs, so these do not end it.
        let authority = after.find(|letter: char| letter.is_whitespace() || letter == '/');
        let from = after[..authority.unwrap_or(after.len())].rfind('@').map_or(0, |at| at + 1);
        let address = &after[from..];
        let next = address.find("://").unwrap_or(address.len());
        let ends = |letter: char| letter.is_whitespace() || "'\"<>".contains(letter);
        let to = address[..next].find(|letter| ends(letter) || "?#".contains(letter)).unwrap_or(next);
        clean.push_str(&address[..to]);
        rest = &address[to..];
        if rest.starts_with(['?', '#']) {
            // Text behind the query must not become a part of the host.
            clean.push_str(if address[..to].contains('/') { "" } else { "/" });
            rest = &rest[rest.find(ends).unwrap_or(rest.len())..];
        }
    }
    clean.push_str(rest);
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_taken_out_of_addresses() {
        let check = |text: &str, expected: &str| assert_eq!(without_credentials(text), expected);
        check("fatal: 'https://me:secret@host/x.git/': no", "fatal: 'https://host/x.git/': no");
        check("https://token@host and ssh://git@host:22/x", "https://host and ssh://host:22/x");
        check("https://p@ss@host/a@b?private_token=x end", "https://host/a@b end");
        check("https://host", "https://host");
        check("a://", "a://");
        check("https://proxy/https://me:secret@host/x?t=y end", "https://proxy/https://host/x end");
        check("'https://me:it's-secret@host/x'", "'https://host/x'");
        check("https://me:it#'s?secret@host/x", "https://host/x");
        check("https://host?t=y/x<ann@shop.test>", "https://host/<ann@shop.test>");
    }

    #[test]
    fn git_messages_become_named_errors() {
        let of = |text: &str| classify_failure("x".to_owned(), Path::new("/r"), text.as_bytes());
        assert!(matches!(of("fatal: detected dubious ownership in repository at '/r'"), Error::ForeignOwner { .. }));
        assert!(matches!(of("error: unable to write file a: No space left on device"), Error::DiskFull { .. }));
        assert!(matches!(of("fatal: a.bin: smudge filter lfs failed"), Error::Filter { .. }));
        assert!(matches!(of("git-lfs filter-process: 1: git-lfs: not found"), Error::Filter { .. }));
        assert!(matches!(of("error: 'docs/git-lfs/' does not have a commit checked out"), Error::Failed { .. }));
        let locked = of("fatal: Unable to create '/r/.git/index.lock': File exists.\n\nAnother git process");
        assert!(matches!(&locked, Error::Locked { path, .. } if path == Path::new("/r/.git/index.lock")));
        let said = of("one\u{1b}[31m\nhint: never mind\ntwo").to_string();
        assert!(said.ends_with("one[31m; two"), "{said}");
    }
}
