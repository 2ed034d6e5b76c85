//! Keeps secrets out of output and out of records.
//!
//! The mask searches for every configured value as it is, and as it looks in JSON, in a URL and in base64. It finds base64
//! also inside a longer text (`user:password` of a header) and in pieces, and of a multi-line value also each line. The
//! text `[secret NAME]` replaces each match.
//!
//! Invariants:
//! - Where values overlap, one marker covers all of them.
//! - The way in which a stream is split into chunks does not matter.
//! - If control sequences interrupt a value, the result is cleaned text: a terminal would put the value together.
//! - At a gap in the output, no part of a value is left at the edges.
//! - The `Debug` output of this module contains no value.
//!
//! Not here: which values are secret.

mod command;
mod display;

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::{fmt, mem};

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use serde_json::{Map, Value};
use tempfile::NamedTempFile;
use windlass_engine::{ChangeFact, HookReport};
use windlass_process::{CapturedOutput, ProgramOutcome, file};

use crate::excerpt::parse_missing_mark;
use crate::http::WebhookResponse;
use crate::secret_encodings::encode_secret_value;
use crate::text::{OutputCleaner, clean_output};

pub use display::MaskedDisplayStream;
use display::SecretSearch;

/// Shorter values occur everywhere: a mask for them would hide the text, not the secret.
pub const MIN_SECRET_BYTES: usize = 4;
/// The size of one read from a file.
const READ_CHUNK_BYTES: usize = 64 * 1024;

/// The secrets of a project.
#[derive(Clone, Default)]
pub struct SecretMask {
    finder: Option<AhoCorasick>,
    /// The patterns: all encodings of all values.
    forms: Arc<[Vec<u8>]>,
    /// For each pattern, the index of its marker.
    owners: Vec<usize>,
    markers: Vec<String>,
    longest: usize,
}

impl SecretMask {
    /// Builds a mask from values by their names, trimmed. It ignores values that are shorter than [`MIN_SECRET_BYTES`].
    pub fn new<N: Into<String>, V: AsRef<[u8]>>(values: impl IntoIterator<Item = (N, V)>) -> Self {
        let (mut patterns, mut owners, mut names) = (Vec::<Vec<u8>>::new(), Vec::new(), Vec::<String>::new());
        for (name, value) in values {
            // A value from a file often ends with a line end that other places do not repeat.
            let value = value.as_ref().trim_ascii();
            if value.len() < MIN_SECRET_BYTES {
                continue;
            }
            for form in encode_secret_value(value) {
                patterns.push(form);
                owners.push(names.len());
            }
            names.push(name.into());
        }
        // This automaton grows only with the values: a long key in a dozen encodings must not cost megabytes.
        let build = || AhoCorasick::builder().kind(Some(AhoCorasickKind::ContiguousNFA)).build(&patterns);
        let finder = (!patterns.is_empty()).then(build).map(|built| built.expect("values are far from two gigabytes"));
        let markers = names.iter().map(|name| choose_marker(name, finder.as_ref())).collect();
        let longest = patterns.iter().map(Vec::len).max().unwrap_or_default();
        Self { finder, forms: patterns.into(), owners, markers, longest }
    }

    /// Returns whether the mask has no values.
    pub fn is_empty(&self) -> bool {
        self.finder.is_none()
    }

    pub fn mask_text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.mask_bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            // A value that is not UTF-8 can cut a letter in two.
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// Masks an excerpt of a long text, which has a line at each gap.
    pub fn mask_excerpt<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let is_gap = |line: &str| parse_missing_mark(line).is_some();
        if self.is_empty() || !text.lines().any(is_gap) {
            return self.mask_text(text);
        }
        let (mut kept, mut piece, mut is_after) = (String::with_capacity(text.len()), String::new(), false);
        for line in text.split_inclusive('\n') {
            if !is_gap(line) {
                piece.push_str(line);
                continue;
            }
            // The line end before the gap belongs to the mark of the gap.
            let before = piece.strip_suffix('\n').unwrap_or(&piece);
            kept += &self.mask_without_fragments(before, is_after, true);
            kept += &piece[before.len()..];
            kept += line;
            (piece, is_after) = (String::new(), true);
        }
        Cow::Owned(kept + &self.mask_without_fragments(&piece, is_after, false))
    }

    /// Masks text that may have a gap before and after it. People also quote such lines, so only possible fragments of a
    /// value are dropped.
    fn mask_without_fragments(&self, text: &str, is_after: bool, is_before: bool) -> String {
        let masked = self.mask_text(text);
        let start = if is_after { self.partial_prefix_bytes(masked.as_bytes()) } else { 0 };
        let end = masked.len() - if is_before { self.partial_suffix_bytes(masked.as_bytes()) } else { 0 };
        let (start, end) = (masked.ceil_char_boundary(start), masked.floor_char_boundary(end));
        masked.get(start..end).unwrap_or_default().to_owned()
    }

    /// Returns how many bytes at the end of a text could begin a value.
    fn partial_suffix_bytes(&self, text: &[u8]) -> usize {
        self.longest_partial_match(text.len(), |form, many| text.ends_with(&form[..many]))
    }

    /// Returns how many bytes at the start of a text could end a value.
    fn partial_prefix_bytes(&self, text: &[u8]) -> usize {
        self.longest_partial_match(text.len(), |form, many| text.starts_with(&form[form.len() - many..]))
    }

    /// Returns the longest partial match of any encoding, up to `most` bytes.
    fn longest_partial_match(&self, most: usize, is_half: impl Fn(&[u8], usize) -> bool) -> usize {
        let longest = |form: &Vec<u8>| (1..form.len().min(most + 1)).rev().find(|many| is_half(form, *many));
        self.forms.iter().filter_map(longest).max().unwrap_or(0)
    }

    /// Masks the captured output of a run.
    pub fn mask_run(&self, mut run: ProgramOutcome) -> ProgramOutcome {
        self.mask_captured(&mut run.stdout);
        self.mask_captured(&mut run.stderr);
        run
    }

    /// Masks the captured part of one stream.
    pub(crate) fn mask_captured(&self, kept: &mut CapturedOutput) {
        if self.is_empty() {
            return;
        }
        let mut missing = kept.omitted_byte_count();
        if missing == 0 {
            // A value may begin in the head and end in the tail.
            kept.head.append(&mut kept.tail);
            kept.head = self.mask_bytes(&kept.head).into_owned();
        } else {
            let ((head, after), (tail, before)) = (self.mask_before_gap(&kept.head), self.mask_after_gap(&kept.tail));
            missing += (after + before) as u64;
            (kept.head, kept.tail) = (head, tail);
        }
        kept.total = missing + (kept.head.len() + kept.tail.len()) as u64;
    }

    /// Masks the response of a server.
    pub fn mask_response(&self, mut response: WebhookResponse) -> WebhookResponse {
        response.body = match response.cut {
            true => self.mask_before_gap(&response.body).0,
            false => self.mask_bytes(&response.body).into_owned(),
        };
        response
    }

    /// Masks text before a gap, and returns how many more bytes are missing now. A value may reach into the gap, and its
    /// beginning looks like any other text: the mask always drops the most bytes that a value could leave there.
    fn mask_before_gap(&self, bytes: &[u8]) -> (Vec<u8>, usize) {
        let cleaned = self.clean_obscured_text(bytes);
        let bytes = cleaned.as_ref().map_or(bytes, String::as_bytes);
        let sure = bytes.len().saturating_sub(self.longest.saturating_sub(1));
        let (mut masked, mut covered) = (Vec::new(), 0);
        self.write_masked(bytes, sure, &mut covered, &mut masked);
        (masked, (bytes.len() - sure).saturating_sub(covered))
    }

    /// Masks text after a gap in the same way.
    pub(crate) fn mask_after_gap(&self, bytes: &[u8]) -> (Vec<u8>, usize) {
        let cleaned = self.clean_obscured_text(bytes);
        let bytes = cleaned.as_ref().map_or(bytes, String::as_bytes);
        let dropped = self.longest.saturating_sub(1).min(bytes.len());
        let (mut masked, mut covered) = (Vec::new(), 0);
        self.write_masked(bytes, dropped, &mut covered, &mut Vec::new());
        // The rest of a value that begins in the dropped part is dropped, too.
        let cut = dropped + covered;
        self.write_masked(&bytes[dropped..], bytes.len() - dropped, &mut covered, &mut masked);
        (masked, cut)
    }

    pub fn mask_bytes<'b>(&self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        let masked = self.mask_raw_bytes(bytes);
        match self.reveal_hidden_secret(&masked) {
            Some(cleaned) => Cow::Owned(self.mask_raw_bytes(cleaned.as_bytes()).into_owned()),
            None => masked,
        }
    }

    /// Returns the cleaned text of bytes if a value appears only after cleaning.
    fn reveal_hidden_secret(&self, masked: &[u8]) -> Option<String> {
        let finder = self.finder.as_ref()?;
        self.clean_obscured_text(masked).filter(|cleaned| finder.is_match(cleaned))
    }

    /// Returns the cleaned text of bytes if control characters or invalid UTF-8 can hide a value.
    fn clean_obscured_text(&self, bytes: &[u8]) -> Option<String> {
        // 0xC2 begins the UTF-8 encoding of the C1 control characters.
        let hides = |byte: &u8| byte.is_ascii_control() && !matches!(byte, b'\n' | b'\t') || *byte == 0xc2;
        let is_changed = bytes.iter().any(hides) || str::from_utf8(bytes).is_err();
        (self.finder.is_some() && is_changed).then(|| clean_output(&String::from_utf8_lossy(bytes)))
    }

    fn mask_raw_bytes<'b>(&self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        if !self.finder.as_ref().is_some_and(|finder| finder.is_match(bytes)) {
            return Cow::Borrowed(bytes);
        }
        let (mut masked, mut covered) = (Vec::with_capacity(bytes.len()), 0);
        self.write_masked(bytes, bytes.len(), &mut covered, &mut masked);
        Cow::Owned(masked)
    }

    /// Masks every text of a hook's report, including its actions.
    pub fn mask_report(&self, mut report: HookReport) -> HookReport {
        let masked = |text: String| self.mask_text(&text).into_owned();
        report.message = report.message.map(masked);
        report.feedback = report.feedback.map(masked);
        for action in &mut report.actions {
            action.kind = masked(mem::take(&mut action.kind));
            action.payload = self.mask_value(action.payload.take());
        }
        report.context = self.mask_fields(report.context);
        report.checkpoint = report.checkpoint.map(|data| self.mask_value(data));
        if let Some(ChangeFact::Opened(change)) = &mut report.change {
            change.url = change.url.take().map(masked);
        }
        report
    }

    pub fn mask_value(&self, value: Value) -> Value {
        match value {
            _ if self.is_empty() => value,
            Value::String(text) => Value::String(self.mask_text(&text).into_owned()),
            Value::Array(items) => items.into_iter().map(|item| self.mask_value(item)).collect(),
            Value::Object(fields) => Value::Object(self.mask_fields(fields)),
            other => other,
        }
    }

    fn mask_fields(&self, fields: Map<String, Value>) -> Map<String, Value> {
        fields.into_iter().map(|(name, value)| (self.mask_text(&name).into_owned(), self.mask_value(value))).collect()
    }

    /// Opens a stream for output that arrives in chunks.
    pub fn stream(&self) -> MaskedStream<'_> {
        MaskedStream { mask: self, held: Vec::new(), covered: 0 }
    }

    /// Opens a stream for output that arrives in chunks and is displayed. If the mask has values, the result is text.
    pub fn open_display_stream(&self) -> MaskedDisplayStream<'_> {
        MaskedDisplayStream::new(self)
    }

    /// Masks the spill files of a run, and deletes a file that it cannot rewrite.
    pub fn mask_spill_files(&self, ran: &ProgramOutcome) {
        for spilled in [&ran.stdout.spilled, &ran.stderr.spilled].into_iter().flatten() {
            if self.mask_file(&spilled.path).is_err() {
                let _ = fs::remove_file(&spilled.path);
            }
        }
    }

    /// Masks a file. A file without a secret stays untouched; any other is replaced as a whole, or not at all. Bytes stay
    /// as they are unless control sequences hide a value: then the file becomes text.
    pub fn mask_file(&self, path: &Path) -> io::Result<()> {
        let found = fs::symlink_metadata(path)?;
        if !found.is_file() {
            return Err(io::Error::other("cannot mask what is not a regular file"));
        }
        let (plain, hidden) = self.find_secrets_in_file(file::open_regular_file(path)?)?;
        if !plain && !hidden {
            return Ok(());
        }
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut beside = NamedTempFile::new_in(directory)?;
        let (mut input, mut output) = (file::open_regular_file(path)?, BufWriter::new(beside.as_file_mut()));
        let (mut stream, mut shown) = (self.stream(), self.open_display_stream());
        read_chunks(&mut input, |piece| {
            let masked = if hidden { shown.push(piece) } else { stream.push(piece) };
            output.write_all(&masked).map(|()| true)
        })?;
        output.write_all(&if hidden { shown.finish() } else { stream.finish() })?;
        output.flush()?;
        drop(output);
        beside.as_file().set_permissions(found.permissions())?;
        beside.as_file().sync_all()?;
        beside.persist(path).map(drop).map_err(|refused| refused.error)
    }

    /// Returns whether a file has plain values, and whether it has others that appear after cleaning.
    fn find_secrets_in_file(&self, mut input: File) -> io::Result<(bool, bool)> {
        if self.is_empty() {
            return Ok((false, false));
        }
        let (mut plain, mut hidden) = (SecretSearch::new(self), SecretSearch::new(self));
        let (mut stream, mut cleaner) = (self.stream(), OutputCleaner::default());
        read_chunks(&mut input, |piece| {
            plain.push(piece);
            hidden.push(cleaner.push(&stream.push(piece)).as_bytes());
            Ok(!hidden.found)
        })?;
        hidden.push(cleaner.push(&stream.finish()).as_bytes());
        hidden.push(cleaner.finish().as_bytes());
        Ok((plain.found, hidden.found))
    }

    /// Writes the text before `sure`, up to which every value is complete. `covered` is the number of bytes at the start
    /// that belong to a marker already written; on return, the number after `sure` that do.
    fn write_masked(&self, bytes: &[u8], sure: usize, covered: &mut usize, masked: &mut Vec<u8>) {
        let mut found: Vec<(usize, usize, usize)> = Vec::new();
        for next in self.finder.iter().flat_map(|finder| finder.find_overlapping_iter(bytes)) {
            let (start, end, pattern) = (next.start(), next.end(), next.pattern().as_usize());
            match found.last_mut() {
                // Of matches that end together, the longest covers the others.
                Some(last) if last.1 == end => *last = if start < last.0 { (start, end, pattern) } else { *last },
                _ => found.push((start, end, pattern)),
            }
        }
        // Of matches that begin together, the longest gives its name.
        found.sort_by_key(|(start, end, _)| (*start, usize::MAX - end));
        for (start, end, pattern) in found.into_iter().take_while(|(start, ..)| *start < sure) {
            if start >= *covered {
                masked.extend_from_slice(&bytes[*covered..start]);
                masked.extend_from_slice(self.markers[self.owners[pattern]].as_bytes());
            }
            *covered = end.max(*covered);
        }
        masked.extend_from_slice(&bytes[(*covered).min(sure)..sure]);
        *covered = covered.saturating_sub(sure);
    }
}

/// Prints names only.
impl fmt::Debug for SecretMask {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Mask").field("markers", &self.markers).finish_non_exhaustive()
    }
}

/// Masks output as it arrives. The stream holds back a possible beginning of a value: less than its longest encoding.
pub struct MaskedStream<'m> {
    mask: &'m SecretMask,
    held: Vec<u8>,
    covered: usize,
}

impl MaskedStream<'_> {
    /// Takes a chunk, and returns the text that is complete.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(bytes);
        // A viewer waits only for a value that may have begun.
        self.release_masked(self.held.len() - self.mask.partial_suffix_bytes(&self.held))
    }

    /// Returns the rest.
    pub fn finish(mut self) -> Vec<u8> {
        self.release_masked(self.held.len())
    }

    fn release_masked(&mut self, sure: usize) -> Vec<u8> {
        if self.mask.is_empty() {
            return mem::take(&mut self.held);
        }
        let mut masked = Vec::with_capacity(sure);
        self.mask.write_masked(&self.held, sure, &mut self.covered, &mut masked);
        self.held.drain(..sure);
        masked
    }
}

impl fmt::Debug for MaskedStream<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Stream").field("mask", self.mask).field("held", &self.held.len()).finish()
    }
}

/// Reads to the end, or until `take` returns false.
pub(crate) fn read_chunks(input: &mut impl Read, mut take: impl FnMut(&[u8]) -> io::Result<bool>) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    loop {
        match input.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                if !take(&buffer[..count])? {
                    return Ok(());
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Returns the marker of a value: its name, unless that would reveal a value.
fn choose_marker(name: &str, finder: Option<&AhoCorasick>) -> String {
    let named = format!("[secret {name}]");
    let plain = ["[secret]", "[***]", "[...]"].map(str::to_owned);
    let tells = |marker: &String| finder.is_some_and(|finder| finder.is_match(marker));
    std::iter::once(named).chain(plain).find(|marker| !tells(marker)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
