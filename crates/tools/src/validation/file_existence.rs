//! Rules about files and directories that have to exist.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use windlass_engine::validation::FilesRule;

use super::{RuleFinding, quote_excerpt};

/// Maximum number of names in a message.
const MAX_NAMED_PATHS: usize = 10;

pub fn check_files_exist(rule: &FilesRule, directory: &Path) -> RuleFinding {
    let missing: Vec<String> =
        rule.paths.iter().filter_map(|path| describe_missing_path(&directory.join(path), path)).collect();
    let (count, there) = (rule.paths.len(), rule.paths.len() - missing.len());
    let passed = if rule.all_must_exist() { missing.is_empty() } else { there > 0 };
    if passed {
        return RuleFinding::passed(match missing.is_empty() {
            true if count == 1 => format!("{} is there", quoted(&rule.paths[0])),
            true => format!("all {count} paths are there"),
            false => format!("{there} of {count} paths are there, and one is enough"),
        });
    }
    let more =
        if missing.len() > MAX_NAMED_PATHS { format!(" and {} more", missing.len() - NAMED) } else { String::new() };
    let names = missing.iter().take(MAX_NAMED_PATHS).map(String::as_str).collect::<Vec<_>>().join(", ");
    let wanted = if rule.all_must_exist() { "make what is missing" } else { "make one of them" };
    RuleFinding::failed(format!(
        "{} of {count} paths missing: {names}{more}. Paths are relative to the project's directory: {wanted}, or correct the \
         rule's `paths`",
        missing.len(),
    ))
}

/// Returns the path if it is missing, with the reason unless it simply does not exist.
fn describe_missing_path(file: &Path, path: &str) -> Option<String> {
    let error = fs::metadata(file).err()?;
    let is_link = fs::symlink_metadata(file).is_ok();
    Some(match error.kind() {
        ErrorKind::NotFound if is_link => format!("{} (a link to nothing)", quoted(path)),
        ErrorKind::NotFound => quote_excerpt(path),
        _ => format!("{} ({error})", quoted(path)),
    })
}
