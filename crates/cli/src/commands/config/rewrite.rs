//! Replacement of the project's configuration file as a whole.
//!
//! Invariants:
//! - The file holds the old or the new content at every moment, and keeps its permissions; a link stays a link.
//! - Changes that were made meanwhile are never overwritten.

use std::io;

use windlass_app::atomic_file::{self, Readers};
use windlass_app::project::Project;
use windlass_app::{Code, Failure, project_setup};
use windlass_config as config;
use windlass_config::{Config, ConfigSource};
use windlass_process::file;

/// Replaces the configuration atomically, provided that the file still has the content of `config`.
pub fn write(project: &Project, config: &Config, text: &str) -> Result<(), Failure> {
    let file = project.config_file();
    let cannot =
        |error: io::Error| Failure::new(Code::System, format!("cannot write `{}`", file.display())).caused_by(error);
    let changed = || {
        Failure::new(Code::Refused, format!("`{}` was changed meanwhile", file.display()))
            .hint("look at it, and try again")
    };
    if !config.exists() {
        return match project_setup::complete(project, text).map_err(cannot)? {
            true => Ok(()),
            false => Err(changed()),
        };
    }
    // A link stays a link: the file that it points to is replaced.
    let real = file::resolve_within(&project.root, &file).map_err(cannot)?;
    let bytes = file::read(&real, config::SIZE).map_err(cannot)?;
    let now = ConfigSource::read(&real)?;
    if **now.text() != **config.text() {
        return Err(changed());
    }
    let mark = if bytes.starts_with(config::MARK.as_bytes()) { config::MARK } else { "" };
    atomic_file::replace(&real, format!("{mark}{text}").as_bytes(), Readers::AsBefore).map_err(cannot)
}
