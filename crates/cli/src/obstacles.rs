//! What stands in the place of files that Windlass and git read in a project: a fifo, a socket, a device.

use windlass_process::file::{self, UnreadableFile};

use crate::project::Project;

/// Files that are read without being named in a configuration.
const READ_FILES: [&str; 8] = [
    ".windlass/config.yaml",
    ".gitattributes",
    ".gitignore",
    ".gitmodules",
    "package.json",
    "GNUmakefile",
    "makefile",
    "Makefile",
];

/// Says of each what stands in its place. A directory keeps no reader waiting.
pub fn find(project: &Project) -> Vec<String> {
    let told = |name: &&str| {
        let found = file::obstacle(&project.root.join(name))?;
        (found != UnreadableFile::NotRegular("a directory")).then(|| format!("`{name}` {}", found.cause()))
    };
    READ_FILES.iter().filter_map(told).collect()
}
