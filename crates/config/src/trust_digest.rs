//! The digest of everything that a person trusts: the configuration, its prompt file, and all files under `workflows/`.
//!
//! Invariants:
//! - Two configurations with the same digest have the same bytes and the same workflows, under the same names.
//! - An unreadable file counts as unreadable and is never left out. Hidden files do not count, because Windlass does not read them.

use std::fs;
use std::path::Path;

use windlass_engine::Digest;
use windlass_process::file;

use super::error::ConfigError;
use super::source;

/// The maximum nesting of directories under `workflows/`.
const MAX_DIRECTORY_DEPTH: usize = 8;
const MAX_WORKFLOW_FILES: usize = 1_000;

/// A file under `workflows/`, by its path there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WorkflowFile {
    pub path: String,
    digest: Digest,
}

/// Lists every file under a directory of a project, by name. A missing directory has no files.
pub fn list_workflow_files(project: &Path, directory: &Path) -> Result<Vec<WorkflowFile>, ConfigError> {
    let mut found = Vec::new();
    if directory.exists() {
        walk_directory(project, directory, "", MAX_DIRECTORY_DEPTH, &mut found)?;
    }
    found.sort();
    Ok(found)
}

fn walk_directory(
    project: &Path,
    directory: &Path,
    prefix: &str,
    depth: usize,
    found: &mut Vec<WorkflowFile>,
) -> Result<(), ConfigError> {
    let failed = |error| ConfigError::for_file(directory, "cannot be read").with_cause(error);
    if depth == 0 {
        let message = format!("is nested too deeply: at most {MAX_DIRECTORY_DEPTH} levels are allowed");
        return Err(ConfigError::for_file(directory, message)
            .with_suggestion("move it further up, or remove the link that leads back"));
    }
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            return Err(ConfigError::for_file(&path, "has a name that is not UTF-8 text").with_suggestion("rename it"));
        };
        if name.starts_with('.') {
            // Temporary files of editors.
            continue;
        }
        let name = format!("{prefix}{name}");
        // A link out of the project counts as an unreadable file.
        if path.is_dir() && file::resolve_within_directory(project, &path).is_ok() {
            walk_directory(project, &path, &format!("{name}/"), depth - 1, found)?;
        } else if found.len() == MAX_WORKFLOW_FILES {
            let message = format!("has too many files: at most {MAX_WORKFLOW_FILES} are allowed");
            return Err(
                ConfigError::for_file(directory, message).with_suggestion("move the files that are not workflows")
            );
        } else {
            // No file has the zero digest, so a file that becomes readable changes the digest.
            let digest =
                source::read_bytes_within(project, &path).map_or(Digest::ZERO, |bytes| Digest::of_bytes(&bytes));
            found.push(WorkflowFile { digest, path: name });
        }
    }
    Ok(())
}

/// Combines all digests. Each part has a unique name, and no name contains the separator byte.
pub fn combine_digests(configuration: Option<Digest>, prompt: Option<Digest>, workflows: &[WorkflowFile]) -> Digest {
    let mut parts = match configuration {
        Some(digest) => format!("config\0{digest}\0"),
        None => "no config\0".to_owned(),
    };
    if let Some(prompt) = prompt {
        parts.extend(["prompt\0", &prompt.to_string(), "\0"]);
    }
    for WorkflowFile { path, digest } in workflows {
        parts.extend(["workflow\0", path, "\0", &digest.to_string(), "\0"]);
    }
    Digest::of_bytes(parts.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest_of_files(files: &[(&str, &str)]) -> Digest {
        let directory = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let file = directory.path().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        combine_digests(None, None, &list_workflow_files(directory.path(), directory.path()).unwrap())
    }

    #[test]
    fn names_and_bytes_count() {
        let base = digest_of_files(&[("a.json", "{}"), ("b/c.json", "[]")]);
        assert_eq!(base, digest_of_files(&[("b/c.json", "[]"), ("a.json", "{}")]));
        assert_ne!(base, digest_of_files(&[("a.json", "{} "), ("b/c.json", "[]")]));
        assert_ne!(base, digest_of_files(&[("a.json", "{}"), ("b.json", "[]")]));
        assert_ne!(base, digest_of_files(&[("a.json", "{}")]));
        let empty = || Some(Digest::of_bytes(b""));
        assert_ne!(combine_digests(None, None, &[]), combine_digests(empty(), None, &[]));
        assert_ne!(combine_digests(None, empty(), &[]), combine_digests(empty(), None, &[]));
        let with_prompt =
            |prompt: Option<&str>| combine_digests(empty(), prompt.map(|text| Digest::of_bytes(text.as_bytes())), &[]);
        assert_ne!(with_prompt(None), with_prompt(Some("a")));
        assert_ne!(with_prompt(Some("a")), with_prompt(Some("b")));
    }

    #[cfg(unix)]
    #[test]
    fn hidden_editor_files_are_skipped() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(".a.yaml.swp"), "x").unwrap();
        std::os::unix::fs::symlink("ann@host.1", directory.path().join(".#a.yaml")).unwrap();
        assert_eq!(list_workflow_files(directory.path(), directory.path()).unwrap(), []);
    }

    #[cfg(unix)]
    #[test]
    fn unreadable_file_changes_digest_once_readable() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.yaml");
        std::os::unix::fs::symlink("nowhere", &file).unwrap();
        let unread = list_workflow_files(directory.path(), directory.path()).unwrap();
        assert_eq!(unread.len(), 1);
        fs::remove_file(&file).unwrap();
        fs::write(&file, "").unwrap();
        assert_ne!(unread, list_workflow_files(directory.path(), directory.path()).unwrap());
    }

    #[cfg(unix)]
    #[test]
    fn link_to_directory_outside_is_unread_entry() {
        let (project, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(outside.path().join("a.yaml"), "id: a").unwrap();
        std::os::unix::fs::symlink(outside.path(), project.path().join("shared")).unwrap();
        let found = list_workflow_files(project.path(), project.path()).unwrap();
        assert_eq!(found, [WorkflowFile { path: "shared".to_owned(), digest: Digest::ZERO }]);
    }

    #[cfg(unix)]
    #[test]
    fn link_cycle_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(directory.path(), directory.path().join("again")).unwrap();
        let refused = list_workflow_files(directory.path(), directory.path()).unwrap_err().to_string();
        assert!(refused.contains("again: is nested too deeply"), "{refused}");
    }
}
