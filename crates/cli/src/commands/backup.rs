//! `windlass backup FILE`: copies the store while it is in use.

use std::path::PathBuf;

use serde_json::json;
use windlass_app::context::Context;
use windlass_app::{Code, Failure, hints};

use crate::output::{Done, Output, Tone};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass backup ../windlass-monday.db
  cp ../windlass-monday.db .windlass/windlass.db     restore it, while no windlass is running
                                                     (and remove windlass.db-wal and windlass.db-shm)")]
pub struct Args {
    /// The file to write; it must not exist yet
    file: PathBuf,
}

pub fn run(context: &Context, args: Args, out: &mut Output) -> Done {
    let opened = context.open_to_read()?;
    let directory = args.file.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(missing) = directory.filter(|directory| !directory.is_dir()) {
        let failure = Failure::new(Code::System, format!("cannot write {}", args.file.display()));
        return Err(failure.caused_by(format_args!("there is no directory {}", missing.display())).into());
    }
    opened.store.backup(&args.file).map_err(hints::store)?;
    let file = args.file.display().to_string();
    if out.is_json() {
        return out.object(&json!({"file": file}));
    }
    out.line(format_args!("{} {}", out.paint(Tone::Good, "saved to"), windlass_text::line(&file)))
}
