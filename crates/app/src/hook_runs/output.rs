//! The recorded output of turns and hook runs, read from the file that an event names.

use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use windlass_engine::{EffectId, Event, EventRecord, SessionName};
use windlass_hooks::clean_output;
use windlass_process::file;

/// The most bytes of a recorded output that are read. Its file has the rest.
const MAX_OUTPUT_BYTES: u64 = 4 * 1024 * 1024;
/// The most bytes that are searched for the last lines.
const MAX_TAIL_BYTES: u64 = 256 * 1024;

/// Returns the name of the file with the output of a turn, in the directory of records.
pub fn turn_record_name(session: &SessionName, turn: EffectId) -> String {
    format!("{session}/{turn}.turn")
}

/// Returns the name of the file with the output of a turn that ended without an answer. The event names no file if the process
/// of the turn has died; its cause is the start of the turn.
pub fn find_turn_record(record: &EventRecord) -> Option<String> {
    let named = match &record.envelope.event {
        Event::IterationInterrupted(interrupted) => &interrupted.record,
        Event::IterationFailed(failed) => &failed.record,
        Event::IterationPostponed(postponed) => &postponed.record,
        Event::DeliveryInterrupted(_) | Event::DeliveryFailed(_) => &None,
        _ => return None,
    };
    let planned = || {
        let turn = EffectId { seq: record.cause_position()?, index: 0 };
        Some(turn_record_name(record.envelope.session.as_ref()?, turn))
    };
    named.clone().or_else(planned)
}

/// Reads a recorded output, if its file still exists. Paths out of the records directory are ignored.
pub fn read_recorded_output(record: Option<&str>, records: &Path) -> Option<String> {
    let bytes = file::read_file_start(&find_record(record, records)?, MAX_OUTPUT_BYTES).ok()?;
    Some(clean_output(&String::from_utf8_lossy(&bytes)))
}

/// Reads the last lines of a recorded output, if its file still exists. Paths out of the records directory are ignored.
pub fn read_last_recorded_lines(record: Option<&str>, records: &Path, most: usize) -> Option<Vec<String>> {
    let mut file = file::open_regular_file(&find_record(record, records)?).ok()?;
    let skipped = file.metadata().ok()?.len().saturating_sub(MAX_TAIL_BYTES);
    file.seek(SeekFrom::Start(skipped)).ok()?;
    let mut bytes = Vec::new();
    file.take(MAX_TAIL_BYTES).read_to_end(&mut bytes).ok()?;
    let text = clean_output(&String::from_utf8_lossy(&bytes));
    // The first line after a skipped part lacks its start.
    let lines: Vec<&str> = text.trim_end().lines().skip(usize::from(skipped > 0)).collect();
    Some(lines[lines.len().saturating_sub(most)..].iter().map(|&line| line.to_owned()).collect())
}

fn find_record(record: Option<&str>, records: &Path) -> Option<PathBuf> {
    let record = Path::new(record?);
    // A link in the path could lead out of the directory.
    let path = records.join(record).canonicalize().ok()?;
    let is_within = path == records.canonicalize().ok()?.join(record);
    is_within.then_some(path)
}
