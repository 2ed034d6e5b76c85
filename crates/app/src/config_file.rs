//! Replacement of the project's configuration file as a whole.
//!
//! Invariants:
//! - The file holds the old or the new content at every moment, and keeps its permissions; a link stays a link.
//! - Changes that were made meanwhile are never overwritten.

use std::io;

use windlass_config as config;
use windlass_config::{Config, ConfigSource};
use windlass_process::file;

use crate::atomic_file::{self, FileReaders};
use crate::project::Project;
use crate::{Failure, FailureCode, project_setup};

/// Replaces the configuration atomically, provided that the file still has the content of `config`.
pub fn replace_config_file(project: &Project, config: &Config, text: &str) -> Result<(), Failure> {
    let file = project.config_file();
    let cannot = |error: io::Error| {
        Failure::new(FailureCode::System, format!("cannot write `{}`", file.display())).with_cause(error)
    };
    let changed = || {
        Failure::new(FailureCode::Refused, format!("`{}` was changed in the meantime", file.display()))
            .with_hint("look at the file, and try again")
    };
    if !config.has_file() {
        return match project_setup::add_missing_config(project, text).map_err(cannot)? {
            true => Ok(()),
            false => Err(changed()),
        };
    }
    // A link stays a link: the file that it points to is replaced.
    let real = file::resolve_within_directory(&project.root, &file).map_err(cannot)?;
    let bytes = file::read_bounded(&real, config::MAX_CONFIG_BYTES).map_err(cannot)?;
    let now = ConfigSource::read_file(&real)?;
    if **now.text() != **config.text() {
        return Err(changed());
    }
    let mark = if bytes.starts_with(config::BYTE_ORDER_MARK.as_bytes()) { config::BYTE_ORDER_MARK } else { "" };
    atomic_file::replace_file(&real, format!("{mark}{text}").as_bytes(), FileReaders::AsBefore).map_err(cannot)
}
