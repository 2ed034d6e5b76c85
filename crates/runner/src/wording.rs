//! Words for people and agents: reports of hooks, and lists of names.

use std::fmt::Display;

use windlass_engine::{HookOutcome, HookReport};
use windlass_hooks::clean;

/// How many commits or files are named.
pub(crate) const NAMED: usize = 5;

/// Names of files that an agent is told at most.
const FILES: usize = 50;

pub(crate) fn report(outcome: HookOutcome, message: impl Into<String>) -> HookReport {
    HookReport { message: Some(message.into()), ..outcome.into() }
}

/// Names of files, one a line. They are hostile.
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

/// Returns the first names of so many things.
pub(crate) fn name_some<T>(things: &[T], count: usize, name: impl Fn(&T) -> String) -> String {
    let mut names: Vec<String> = things.iter().take(NAMED).map(name).collect();
    if count > NAMED {
        names.push(format!("{} more", count - NAMED));
    }
    names.join(", ")
}
