//! Laws of all code here that reads the output of git and the files of repositories, for any input. For tests and fuzzing only.
//!
//! Each law takes bytes, and panics if it does not hold.

use std::path::{Component, Path};

use super::command::GitOutput;
use super::diff::{FileChange, normalize_diff};
use super::names::{BranchName, GitCommitId, RemoteName};
use super::stderr::{classify_failure, clean_message, is_transient, strip_credentials};
use super::submodules::SubmoduleEntry;
use super::{LoggedCommit, baseline, quote_path, reflog};

/// The longest message of git that is passed on, with the mark of a cut.
const MAX_MESSAGE_BYTES: usize = 2000 + '…'.len_utf8();

/// Checks that git's output is parsed byte by byte, and that its messages leave without credentials and terminal control
/// characters.
pub fn check_git_output(bytes: &[u8]) {
    let said = clean_message(bytes);
    assert!(!said.is_empty() && said.len() <= MAX_MESSAGE_BYTES, "{} bytes", said.len());
    assert!(!said.contains(char::is_control), "{said:?}");
    assert_eq!(find_address_user(&said), None, "in {said:?}");
    let error = classify_failure("fetch".to_owned(), Path::new("/r"), bytes);
    let message = error.to_string();
    assert!(!message.contains(char::is_control), "{message:?}");
    let _ = is_transient(&error);
    let text = String::from_utf8_lossy(bytes);
    let plain = strip_credentials(&text);
    assert!(plain.len() <= text.len(), "nothing is added");
    if !text.contains("://") {
        assert_eq!(plain, text, "what holds no address is not changed");
    }
    check_names(&text);
    check_entries(bytes);
    check_lines(&text);
}

/// Returns the user of an address, if one is left.
fn find_address_user(said: &str) -> Option<&str> {
    said.match_indices("://").find_map(|(at, sign)| {
        let rest = &said[at + sign.len()..];
        let authority = rest.split(|letter: char| letter.is_whitespace() || "/?#".contains(letter)).next()?;
        authority.rsplit_once('@').map(|(user, _)| user)
    })
}

/// Checks that an accepted name is one word to git, and no option.
fn check_names(text: &str) {
    let sound =
        |name: &str| !name.starts_with('-') && !name.contains(|letter: char| letter.is_control() || letter == ' ');
    if let Ok(branch) = BranchName::new(text) {
        assert!(sound(branch.as_str()) && branch.as_str() == text);
        assert_eq!(BranchName::from_full_ref(&branch.full_ref()), Some(branch), "a whole name is that of its branch");
    }
    if let Ok(remote) = RemoteName::new(text) {
        assert!(sound(remote.as_str()) && remote.as_str() == text);
    }
    match GitCommitId::new(text) {
        Ok(commit) => assert_eq!(commit.short_id(), &text[..10]),
        Err(error) => assert!(!error.to_string().contains(char::is_control)),
    }
    let shown = quote_path(Path::new(text));
    assert!(shown == text || shown.starts_with('\''), "{shown}");
}

/// Checks the parsers of entries in git's lists, which zero bytes separate.
fn check_entries(bytes: &[u8]) {
    let answer = GitOutput { code: 0, bytes: bytes.to_vec(), cut: false, said: String::new() };
    let listed = answer.split_entries();
    assert_eq!(listed.len(), bytes.iter().filter(|byte| **byte == 0).count());
    for entry in listed.iter().copied() {
        if let Some(change) = FileChange::parse_numstat(entry) {
            assert!(entry.ends_with(change.path.as_os_str().as_encoded_bytes()), "a name is read byte by byte");
        }
        if let Some(logged) = LoggedCommit::parse_entry(entry) {
            assert!(entry.starts_with(logged.commit.as_str().as_bytes()));
        }
        if let Some(module) = SubmoduleEntry::parse_entry(entry) {
            let below = |path: &Path| path.components().all(|part| matches!(part, Component::Normal(_)));
            assert!(below(&module.path) && below(Path::new(&module.name)), "it leads nowhere else");
        }
        if let Some((_, _, path)) = baseline::parse_tree_entry(entry) {
            assert!(entry.ends_with(path.as_os_str().as_encoded_bytes()), "a name is read byte by byte");
        }
    }
    assert!(FileChange::parse_numstat_list(&listed).len() <= listed.len());
    assert!(normalize_diff(bytes).len() <= bytes.len());
    if let Some((content, after)) = baseline::parse_blob(bytes, "0123456789") {
        assert!(content.len() + after.len() < bytes.len());
    }
}

fn check_lines(text: &str) {
    for line in text.lines() {
        let _ = reflog::parse_reflog_line(line);
        let _ = reflog::is_made_here(line, text.lines().last().unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn git_output_parsers_withstand_hostile_input() {
        windlass_testkit::hostile::check_law("git", super::check_git_output);
    }
}
