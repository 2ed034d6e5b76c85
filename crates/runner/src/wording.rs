//! Texts for people and agents: reports of hooks, and lists of names.

use std::fmt::Display;

use windlass_engine::{HookOutcome, HookReport};
use windlass_hooks::clean;

/// Maximum number of commits or files in a sentence.
pub(crate) const NAMED: usize = 5;

/// Maximum number of file names in a list for an agent.
const FILES: usize = 50;

pub(crate) fn report(outcome: HookOutcome, message: impl Into<String>) -> HookReport {
    HookReport { message: Some(message.into()), ..outcome.into() }
}

/// Lists file names, one on each line. The names are not trusted.
pub(crate) fn listed(files: impl Iterator<Item = impl Display>) -> String {
    let mut names: Vec<String> =
        files.map(|file| format!("- {}\n", clean(&file.to_string()).replace('\n', " "))).collect();
    let more = names.len().saturating_sub(FILES);
    names.truncate(FILES);
    if more > 0 {
        names.push(format!("- and {more} more\n"));
    }
    names.concat()
}

/// Lists the first names, and the number of the others.
pub(crate) fn name_some<T>(things: &[T], count: usize, name: impl Fn(&T) -> String) -> String {
    let mut names: Vec<String> = things.iter().take(NAMED).map(name).collect();
    if count > NAMED {
        names.push(format!("{} more", count - NAMED));
    }
    names.join(", ")
}
