//! Texts for people and agents: reports of hooks, and lists of names.

use std::fmt::Display;

use windlass_engine::{HookOutcome, HookReport};
use windlass_hooks::clean_output;

/// Maximum number of commits or files in a sentence.
pub(crate) const MAX_NAMED_ITEMS: usize = 5;

/// Maximum number of file names in a list for an agent.
const MAX_LISTED_FILES: usize = 50;

pub(crate) fn report_with_message(outcome: HookOutcome, message: impl Into<String>) -> HookReport {
    HookReport { message: Some(message.into()), ..outcome.into() }
}

/// Lists file names, one on each line. The names are not trusted.
pub(crate) fn list_file_names(files: impl Iterator<Item = impl Display>) -> String {
    let mut names: Vec<String> =
        files.map(|file| format!("- {}\n", clean(&file.to_string()).replace('\n', " "))).collect();
    let more = names.len().saturating_sub(MAX_LISTED_FILES);
    names.truncate(MAX_LISTED_FILES);
    if more > 0 {
        names.push(format!("- and {more} more\n"));
    }
    names.concat()
}

/// Lists the first names, and the number of the others.
pub(crate) fn list_first_names<T>(things: &[T], count: usize, name: impl Fn(&T) -> String) -> String {
    let mut names: Vec<String> = things.iter().take(MAX_NAMED_ITEMS).map(name).collect();
    if count > MAX_NAMED_ITEMS {
        names.push(format!("{} more", count - NAMED));
    }
    names.join(", ")
}
