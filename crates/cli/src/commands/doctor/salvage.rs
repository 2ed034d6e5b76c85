//! `windlass doctor --export` and `--restore`: move valid events from a damaged store to a new one.
//!
//! The file has one event per line, as `windlass events --json` prints it. Restored events get new positions, so every
//! reference to a position is moved along.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, ErrorKind, Read, Write};
use std::path::Path;

use serde_json::{Value, json};
use windlass_app::health::count_events;
use windlass_app::project::Project;
use windlass_app::{Failure, FailureCode, atomic_file, execution, hints, store_records};
use windlass_engine::{ApplyError, CommitId, EventCause, EventEnvelope, Seq, decode_event};
use windlass_process::file;
use windlass_store::{AppendOutcome, SqliteStore, StoreCommit, StoreError, StoreTransaction};
use windlass_text as text;

use crate::output::{CommandResult, Output, TextTone};

/// The longest accepted line. The engine makes no longer event.
const MAX_LINE_BYTES: u64 = 16 * 1024 * 1024;

/// The format of lines without `v`: `windlass events --json` prints none, and prints the first format.
const PRINTED_FORMAT: u64 = 1;

/// Exports the valid events. The file is new, and complete or absent.
pub fn export_sound_events(project: &Project, file: &Path, out: &mut Output) -> CommandResult {
    let fail = |error: io::Error| {
        let failure = Failure::new(FailureCode::System, format!("cannot write {}", file.display())).with_cause(&error);
        match error.kind() {
            ErrorKind::AlreadyExists => failure.with_hint("choose another name; nothing is overwritten"),
            _ => failure,
        }
    };
    let mut to = BufWriter::new(atomic_file::UnpublishedFile::create_unpublished(file).map_err(fail)?);
    let salvage = SqliteStore::salvage_events(&project.store_file(), |record| {
        serde_json::to_writer(&mut to, &record)
            .map_err(io::Error::from)
            .and_then(|()| to.write_all(b"\n"))
            .map_err(|source| StoreError::Io { path: file.to_owned(), source })
    })
    .map_err(|error| match error {
        StoreError::Io { path, source } if path == file => fail(source),
        error @ StoreError::Corrupt { .. } => {
            // The usual hint is `doctor --export`, which has just failed.
            hints::store_failure(error)
                .with_hint("no event can be read: restore a backup, as `windlass backup --help` shows")
        }
        error => hints::store_failure(error),
    })?;
    to.into_inner()
        .map_err(io::IntoInnerError::into_error)
        .and_then(atomic_file::UnpublishedFile::publish_file)
        .map_err(fail)?;
    if out.is_json() {
        let (file, saved, lost) = (file.to_string_lossy(), salvage.saved, salvage.lost);
        return out.print_json(&json!({"file": file, "saved": saved, "lost": lost, "openEnd": salvage.open_end}));
    }
    out.print_line(format_args!(
        "{} saved to {}",
        count_events(salvage.saved),
        text::clean_line(&file.display().to_string())
    ))?;
    for (first, last) in salvage.lost {
        let which = if first == last { format!("event {first}") } else { format!("events {first} to {last}") };
        out.print_line(format_args!("{} {which}", out.paint(TextTone::Bad, "lost")))?;
    }
    if salvage.open_end {
        let mark = out.paint(TextTone::Bad, "lost");
        out.print_line(format_args!("{mark} perhaps more: the end of the log cannot be found"))?;
    }
    Ok(())
}

/// Fills an empty store with saved events: with all of them or none.
pub fn restore_saved_events((project, trust): (&Project, bool), file: &Path, out: &mut Output) -> CommandResult {
    let from = file::open_named_file(file).map_err(|error| {
        Failure::new(FailureCode::System, format!("cannot read {}", file.display())).with_cause(error)
    })?;
    // Events from a file are data until a person has trusted the store.
    let (mut store, record) = store_records::disown_store(project, trust)?;
    let nonce = execution::random_u128()?;
    let mut wrong = None;
    let restored = store.run_transaction(|transaction| {
        let read = append_saved_events(transaction, &mut SavedEventReader::new(from, file), nonce);
        read.map_err(|stop| match stop {
            RestoreError::Store(error) => error,
            RestoreError::Failed(failure) => {
                wrong = Some(failure);
                StoreError::Io { path: file.to_owned(), source: io::Error::other("it cannot be restored") }
            }
        })
    });
    let restored = match restored {
        Ok(restored) => restored,
        Err(error) => {
            // The transaction wrote nothing, so the store is as trusted as before.
            store_records::restore_store_record(project, record)?;
            return Err(wrong.unwrap_or_else(|| hints::store_failure(error)).into());
        }
    };
    if out.is_json() {
        return out.print_json(&json!({"file": file.to_string_lossy(), "restored": restored, "trusted": false}));
    }
    out.print_line(format_args!(
        "{} restored from {}",
        count_events(restored),
        text::clean_line(&file.display().to_string())
    ))?;
    out.print_line("They come from a file: `windlass trust` shows what they hold, and asks, before any of it is used.")
}

enum RestoreError {
    Store(StoreError),
    Failed(Failure),
}

impl From<Failure> for RestoreError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Appends each saved event in a commit of its own, so that an error can name the event that does not fit.
fn append_saved_events(
    transaction: &mut StoreTransaction<'_>,
    saved: &mut SavedEventReader<'_>,
    nonce: u128,
) -> Result<u64, RestoreError> {
    if transaction.head() != Seq::START {
        let failure = Failure::new(FailureCode::Refused, "the store has events already");
        return Err(failure
            .with_hint("events are restored into an empty store: move .windlass/windlass.db* away first")
            .into());
    }
    let mut restored = 0;
    while let Some(event) = saved.read_next_event()? {
        let id = CommitId { after: transaction.head(), nonce };
        let commit = StoreCommit { id, reads: BTreeMap::new(), events: vec![event] };
        match transaction.append_commit(&commit) {
            Ok(AppendOutcome::Durable(_)) => restored += 1,
            Ok(other) => unreachable!("a commit that read nothing is appended, not {other:?}"),
            Err(StoreError::InvalidEvent { source: ApplyError::InvalidEvent { why, .. }, .. }) => {
                return Err(saved.contradiction_failure(&why).into());
            }
            Err(error) => return Err(RestoreError::Store(error)),
        }
        saved.record_new_position(transaction.head());
    }
    Ok(restored)
}

/// A reader of saved events. It moves the references in each event to the new positions.
struct SavedEventReader<'f> {
    from: BufReader<File>,
    file: &'f Path,
    line: u64,
    /// The saved position of the last event that was read.
    seq: Seq,
    /// Saved positions, and the positions that the events have now.
    moved: BTreeMap<Seq, Seq>,
}

impl<'f> SavedEventReader<'f> {
    fn new(from: File, file: &'f Path) -> Self {
        Self { from: BufReader::new(from), file, line: 0, seq: Seq::START, moved: BTreeMap::new() }
    }

    fn read_next_event(&mut self) -> Result<Option<EventEnvelope>, Failure> {
        let mut bytes = Vec::new();
        loop {
            self.line += 1;
            bytes.clear();
            let read = self.from.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut bytes);
            match read.map_err(|error| self.line_failure("cannot be read").with_cause(error))? {
                0 => return Ok(None),
                _ if bytes.trim_ascii().is_empty() => {}
                _ => break,
            }
        }
        let mut object: Value = serde_json::from_slice(&bytes).map_err(|error| self.not_an_event_failure(&error))?;
        let seq = object.as_object_mut().and_then(|object| object.remove("seq"));
        let seq = seq.and_then(|seq| seq.as_u64()).ok_or_else(|| self.not_an_event_failure(&"it has no `seq`"))?;
        if Seq(seq) <= self.seq {
            return Err(self.line_failure(&format!("is event {seq}, but event {} came before it", self.seq)));
        }
        self.seq = Seq(seq);
        if object.get("v").is_none() {
            object["v"] = PRINTED_FORMAT.into();
        }
        let mut event = decode_event(object.to_string().as_bytes()).map_err(|error| {
            let failure = Failure::from_error(FailureCode::Usage, &error);
            self.not_an_event_failure(&failure.causes.last().unwrap_or(&failure.message))
        })?;
        event.relocate_positions(|seq| self.moved.get(&seq).copied()).map_err(|lost| {
            let names = format!("it names event {lost}, which is missing");
            self.contradiction_failure(&names)
        })?;
        event.metadata.cause = event.metadata.cause.map(|cause| self.relative_cause(cause));
        Ok(Some(event))
    }

    /// Returns the cause as a distance from its consequence.
    fn relative_cause(&self, cause: EventCause) -> EventCause {
        let EventCause::At(seq) = cause else { return cause };
        let here = self.moved.len() as u64 + 1;
        u32::try_from(here - seq.0).map_or(cause, EventCause::Back)
    }

    /// Records the new position of the last event that was read.
    fn record_new_position(&mut self, seq: Seq) {
        self.moved.insert(self.seq, seq);
    }

    fn line_failure(&self, why: &str) -> Failure {
        Failure::new(FailureCode::Refused, format!("line {} of {} {why}", self.line, self.file.display()))
    }

    fn not_an_event_failure(&self, cause: &dyn std::fmt::Display) -> Failure {
        let failure = self.line_failure("is not an event").with_cause(cause);
        failure.with_hint("--restore reads what `windlass doctor --export` or `windlass events --json` wrote")
    }

    fn contradiction_failure(&self, why: &str) -> Failure {
        let failure =
            self.line_failure(&format!("(event {}) contradicts the events before it", self.seq)).with_cause(why);
        match self.line - 1 {
            0 => failure.with_hint("nothing was restored"),
            before => failure.with_hint(format!(
                "nothing was restored; the first {before} lines fit together: `head -n {before}` keeps them"
            )),
        }
    }
}
