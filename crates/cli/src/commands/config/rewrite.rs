//! The project's configuration, replaced as a whole.
//!
//! Invariants:
//! - The file is the old one or the new one, whatever happens, and keeps its permissions; a link stays one.
//! - What somebody has changed meanwhile is not written over.

use std::io;

use windlass_app::atomic_file::{self, Readers};
use windlass_app::project::Project;
use windlass_app::{Code, Failure, project_setup};
use windlass_config as config;
use windlass_config::{Config, ConfigSource};
use windlass_process::file;

/// Replaces the configuration at once, as long as it is still what was looked at.
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
    // A link stays one.
    let real = file::resolve_within(&project.root, &file).map_err(cannot)?;
    let bytes = file::read(&real, config::SIZE).map_err(cannot)?;
    let now = ConfigSource::read(&real)?;
    if **now.text() != **config.text() {
        return Err(changed());
    }
    let mark = if bytes.starts_with(config::MARK.as_bytes()) { config::MARK } else { "" };
    atomic_file::replace(&real, format!("{mark}{text}").as_bytes(), Readers::AsBefore).map_err(cannot)
}
