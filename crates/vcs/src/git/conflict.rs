//! The text of a conflict for the agent that resolves it: git's messages, and both sides of each place.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::error::list_files;
use super::{Error, GitClient, GitCommitId};

/// Lines of a file before and after a place where the sides differ.
const CONTEXT_LINES: usize = 3;
/// Larger files are not shown.
const MAX_FILE_BYTES: usize = 1024 * 1024;

impl GitClient<'_> {
    /// Returns the conflicts of a merge of a branch with a base of that name: the messages of git, then the places of each
    /// file between conflict markers. A file whose places do not fit into `most` bytes is only named. The text is hostile,
    /// and empty if the merge has no conflict.
    pub fn conflict_text(
        &self,
        (ours, theirs): (&GitCommitId, &GitCommitId),
        files: &[PathBuf],
        base: &str,
        most: usize,
    ) -> Result<String, Error> {
        let call = self
            .build_command(&["merge-tree", "--write-tree", "--messages", "--name-only"])
            .with_argument(ours)
            .with_argument(theirs);
        let answer = call.with_output_limit(most.max(4096)).run_unchecked()?;
        let said = String::from_utf8_lossy(&answer.bytes).into_owned();
        let Some(tree) = said.lines().next().filter(|_| answer.code == 1) else { return Ok(String::new()) };
        let tree = GitCommitId::new(tree)?;
        let mut text: String =
            said.lines().filter(|line| line.starts_with("CONFLICT")).map(|line| format!("{line}\n")).collect();
        let mut left_out = Vec::new();
        for file in files {
            let Some(places) = self.conflict_places(&tree, file)? else {
                left_out.push(file.clone());
                continue;
            };
            if places.is_empty() {
                continue;
            }
            let places = places.replace(&format!("<<<<<<< {ours}"), "<<<<<<< this branch");
            let places = places.replace(&format!(">>>>>>> {theirs}"), &format!(">>>>>>> {base}"));
            let name = file.display().to_string().replace('\n', " ");
            let section = format!("\n{name}:\n{places}");
            if text.len() + section.len() > most {
                left_out.push(file.clone());
                continue;
            }
            text.push_str(&section);
        }
        if !left_out.is_empty() {
            text.push_str(&format!("\nToo long to show here: {}\n", list_files(&left_out)));
        }
        Ok(text)
    }

    /// Returns the places of a file in a merged tree where its sides differ, with the lines around them, or `None` if the
    /// file is too long. A file that is not text has no places.
    fn conflict_places(&self, tree: &GitCommitId, file: &Path) -> Result<Option<String>, Error> {
        let object = [tree.as_str().as_bytes(), b":", file.as_os_str().as_bytes()].concat();
        let call = self
            .build_command(&["cat-file", "blob"])
            .with_argument(OsStr::from_bytes(&object))
            .with_output_limit(MAX_FILE_BYTES);
        let answer = call.run_unchecked()?;
        let is_text = answer.code == 0 && !answer.bytes.contains(&0);
        Ok(match (is_text, answer.cut) {
            (false, _) => Some(String::new()),
            (true, true) => None,
            (true, false) => Some(marked_places(&String::from_utf8_lossy(&answer.bytes))),
        })
    }
}

/// Returns the lines between conflict markers, with a few around them.
fn marked_places(content: &str) -> String {
    let lines: Vec<&str> = content.lines().collect();
    let mut shown = vec![false; lines.len()];
    let mut open = None;
    for (at, line) in lines.iter().enumerate() {
        if line.starts_with("<<<<<<< ") {
            open = Some(at);
        } else if line.starts_with(">>>>>>> ")
            && let Some(from) = open.take()
        {
            let (from, to) = (from.saturating_sub(CONTEXT_LINES), (at + CONTEXT_LINES + 1).min(lines.len()));
            shown[from..to].fill(true);
        }
    }
    let mut text = String::new();
    let mut last = None;
    for at in (0..lines.len()).filter(|at| shown[*at]) {
        if last.is_some_and(|last| last + 1 < at) {
            text.push_str("...\n");
        }
        text.push_str(lines[at]);
        text.push('\n');
        last = Some(at);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marked_places_keep_both_sides_and_lines_around() {
        let conflict = "<<<<<<< a\nours\n=======\ntheirs\n>>>>>>> b\n";
        let lines = |from: u32, to: u32| (from..to).map(|line| format!("{line}\n")).collect::<String>();
        let content = format!("{}{conflict}{}{conflict}", lines(0, 6), lines(10, 20));
        let expected = format!("{}{conflict}{}...\n{}{conflict}", lines(3, 6), lines(10, 13), lines(17, 20));
        assert_eq!(marked_places(&content), expected);
        assert_eq!(marked_places("plain\n>>>>>>> quoted\n"), "");
    }
}
