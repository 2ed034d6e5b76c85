//! The project's configuration, replaced as a whole.
//!
//! Invariants:
//! - The file is the old one or the new one, whatever happens, and keeps its permissions; a link stays one.
//! - What somebody has changed meanwhile is not written over.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use crate::commands::init;
use crate::config::{self, Config, Written};
use crate::failure::{Code, Failure};
use crate::project::Project;

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
        return match init::complete(project, text).map_err(cannot)? {
            true => Ok(()),
            false => Err(changed()),
        };
    }
    // A link stays one.
    let real = file.canonicalize().map_err(cannot)?;
    let now = Written::read(&real)?;
    if **now.text() != **config.text() {
        return Err(changed());
    }
    let mark = if fs::read(&real).map_err(cannot)?.starts_with(config::MARK.as_bytes()) { config::MARK } else { "" };
    let beside = real.with_extension(format!("{}.new", std::process::id()));
    let written = replace(&real, &beside, &format!("{mark}{text}"));
    if written.is_err() {
        // Best effort: the error that matters is the one above.
        let _ = fs::remove_file(&beside);
    }
    written.map_err(cannot)
}

/// Writes beside a file, then takes its place: it is the old one or the new one, whatever happens.
fn replace(file: &Path, beside: &Path, text: &str) -> io::Result<()> {
    let mut new = fs::OpenOptions::new().write(true).create_new(true).open(beside)?;
    new.write_all(text.as_bytes())?;
    new.set_permissions(fs::metadata(file)?.permissions())?;
    new.sync_all()?;
    fs::rename(beside, file)?;
    fs::File::open(file.parent().unwrap_or(file))?.sync_all()
}
