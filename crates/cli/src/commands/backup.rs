//! `windlass backup FILE`: copies the store while it is in use.

use std::path::PathBuf;

use serde_json::json;
use windlass_app::context::CommandContext;
use windlass_app::{Failure, FailureCode, hints};

use crate::output::{CommandResult, Output, TextTone};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass backup ../windlass-monday.db
  cp ../windlass-monday.db .windlass/windlass.db      restore the backup

Before you restore a backup, end all windlass processes, and remove `windlass.db-wal` and `windlass.db-shm`.")]
pub struct Args {
    /// The file to write; it must not exist
    file: PathBuf,
}

pub fn run_backup(context: &CommandContext, args: Args, out: &mut Output) -> CommandResult {
    let opened = context.open_project_to_read()?;
    let directory = args.file.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(missing) = directory.filter(|directory| !directory.is_dir()) {
        let failure = Failure::new(FailureCode::System, format!("cannot write {}", args.file.display()));
        return Err(failure.with_cause(format_args!("there is no directory {}", missing.display())).into());
    }
    opened.store.backup_to(&args.file).map_err(hints::store_failure)?;
    let file = args.file.display().to_string();
    if out.is_json() {
        return out.print_json(&json!({"file": file}));
    }
    out.print_line(format_args!("{} {}", out.paint(TextTone::Good, "saved to"), windlass_text::clean_line(&file)))
}
