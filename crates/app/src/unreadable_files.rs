//! Special files in place of files that Windlass and git read in a project: a fifo, a socket, a device.

use std::path::PathBuf;

use windlass_process::file::{self, UnreadableFile};
use windlass_vcs::git;

use crate::project::Project;

/// Files that Windlass reads although no configuration names them.
const READ_FILES: [&str; 5] = [".windlass/config.yaml", "package.json", "GNUmakefile", "makefile", "Makefile"];

/// Returns a description of each such file. Directories do not count: a reader does not block on them.
pub fn list_unreadable_files(project: &Project) -> Vec<String> {
    let own = READ_FILES.iter().map(|name| project.root.join(name));
    let own = own.filter_map(|path| file::find_obstacle(&path).map(|reason| (path, reason)));
    let all = own.filter(|(_, reason)| *reason != UnreadableFile::NotRegular("a directory"));
    let describe = |(path, reason): (PathBuf, UnreadableFile)| {
        format!("`{}` {}", path.strip_prefix(&project.root).unwrap_or(&path).display(), reason.describe_cause())
    };
    let repository = git::GitRepository::discover(&project.root).ok().flatten();
    let common = repository.iter().flat_map(|repository| git::find_common_obstacles(&repository.common));
    all.chain(git::find_directory_obstacles(&project.root)).chain(common).map(describe).collect()
}
