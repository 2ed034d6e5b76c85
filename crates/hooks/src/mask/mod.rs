//! Keeps secrets out of what is shown and kept.
//!
//! Every configured value is looked for as it is, and as it looks in JSON, in a URL and in base64, there also in the
//! middle of something longer (`user:password` of a header) and in pieces; of a value of several lines also each line.
//! What is found becomes `[secret NAME]`.
//!
//! Invariants:
//! - Where values overlap, all of them are covered, by one marker.
//! - It does not matter how a stream is cut into pieces.
//! - Where control sequences stand within a value, only text is left: whoever shows it would put the value together.
//! - Where output has a gap, no part of a value is left at its edges.
//! - No value is in what this module prints about itself.
//!
//! Not here: which values are secret.

mod command;
mod shown;

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
use windlass_process::{Captured, Finished, file};

use crate::forms::forms;
use crate::http::Response;
use crate::telling::said_missing;
use crate::text::{Cleaner, clean};

use shown::Search;
pub use shown::Shown;

/// Shorter values are everywhere: masking them would hide the text, not the secret.
pub const SHORTEST: usize = 4;
/// What is read of a file at once.
const CHUNK: usize = 64 * 1024;

/// The secrets of a project.
#[derive(Clone, Default)]
pub struct Mask {
    finder: Option<AhoCorasick>,
    /// The patterns: all that a value looks like.
    forms: Arc<[Vec<u8>]>,
    /// For each pattern, the index of its marker.
    owners: Vec<usize>,
    markers: Vec<String>,
    longest: usize,
}

impl Mask {
    /// Values by their names, without blanks around them. Those that are shorter than [`SHORTEST`] are left alone.
    pub fn new<N: Into<String>, V: AsRef<[u8]>>(values: impl IntoIterator<Item = (N, V)>) -> Self {
        let (mut patterns, mut owners, mut names) = (Vec::<Vec<u8>>::new(), Vec::new(), Vec::<String>::new());
        for (name, value) in values {
            // A value that was read from a file often ends with a line end, which is not written with it.
            let value = value.as_ref().trim_ascii();
            if value.len() < SHORTEST {
                continue;
            }
            for form in forms(value) {
                patterns.push(form);
                owners.push(names.len());
            }
            names.push(name.into());
        }
        // The automaton that grows with the values only: a long key in a dozen forms is no reason for megabytes.
        let build = || AhoCorasick::builder().kind(Some(AhoCorasickKind::ContiguousNFA)).build(&patterns);
        let finder = (!patterns.is_empty()).then(build).map(|built| built.expect("values are far from two gigabytes"));
        let markers = names.iter().map(|name| marker(name, finder.as_ref())).collect();
        let longest = patterns.iter().map(Vec::len).max().unwrap_or_default();
        Self { finder, forms: patterns.into(), owners, markers, longest }
    }

    /// Whether there is nothing to look for.
    pub fn is_empty(&self) -> bool {
        self.finder.is_none()
    }

    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            // A value that is no UTF-8 can cut a letter in two.
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// What was kept of a long text, with a line where something was left out.
    pub fn kept<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let is_gap = |line: &str| said_missing(line).is_some();
        if self.is_empty() || !text.lines().any(is_gap) {
            return self.text(text);
        }
        let (mut kept, mut piece, mut is_after) = (String::with_capacity(text.len()), String::new(), false);
        for line in text.split_inclusive('\n') {
            if !is_gap(line) {
                piece.push_str(line);
                continue;
            }
            // The end of the line before is ours.
            let before = piece.strip_suffix('\n').unwrap_or(&piece);
            kept += &self.without_halves(before, is_after, true);
            kept += &piece[before.len()..];
            kept += line;
            (piece, is_after) = (String::new(), true);
        }
        Cow::Owned(kept + &self.without_halves(&piece, is_after, false))
    }

    /// Masks what may have a gap before and after it. People quote such lines: only what could be half of a value is dropped.
    fn without_halves(&self, text: &str, is_after: bool, is_before: bool) -> String {
        let masked = self.text(text);
        let start = if is_after { self.ended(masked.as_bytes()) } else { 0 };
        let end = masked.len() - if is_before { self.begun(masked.as_bytes()) } else { 0 };
        let (start, end) = (masked.ceil_char_boundary(start), masked.floor_char_boundary(end));
        masked.get(start..end).unwrap_or_default().to_owned()
    }

    /// How much of the end of a text could be the beginning of a value.
    fn begun(&self, text: &[u8]) -> usize {
        self.half(text.len(), |form, many| text.ends_with(&form[..many]))
    }

    /// How much of its start could be the end of one.
    fn ended(&self, text: &[u8]) -> usize {
        self.half(text.len(), |form, many| text.starts_with(&form[form.len() - many..]))
    }

    /// The longest half of any form: of so many bytes at most, because a short text has no longer one.
    fn half(&self, most: usize, is_half: impl Fn(&[u8], usize) -> bool) -> usize {
        let longest = |form: &Vec<u8>| (1..form.len().min(most + 1)).rev().find(|many| is_half(form, *many));
        self.forms.iter().filter_map(longest).max().unwrap_or(0)
    }

    /// What was kept of a run.
    pub fn run(&self, mut run: Finished) -> Finished {
        self.captured(&mut run.stdout);
        self.captured(&mut run.stderr);
        run
    }

    /// What was kept of one of its streams.
    pub(crate) fn captured(&self, kept: &mut Captured) {
        if self.is_empty() {
            return;
        }
        let mut missing = kept.left_out();
        if missing == 0 {
            // A value may begin in the one and end in the other.
            kept.head.append(&mut kept.tail);
            kept.head = self.bytes(&kept.head).into_owned();
        } else {
            let ((head, after), (tail, before)) = (self.before_gap(&kept.head), self.after_gap(&kept.tail));
            missing += (after + before) as u64;
            (kept.head, kept.tail) = (head, tail);
        }
        kept.total = missing + (kept.head.len() + kept.tail.len()) as u64;
    }

    /// What came from a server.
    pub fn response(&self, mut response: Response) -> Response {
        response.body = match response.cut {
            true => self.before_gap(&response.body).0,
            false => self.bytes(&response.body).into_owned(),
        };
        response
    }

    /// Masks what something is missing after, and answers how many bytes more are missing now. A value may reach into the
    /// gap, and its beginning cannot be told from other text: as many bytes are always dropped as one could leave there.
    fn before_gap(&self, bytes: &[u8]) -> (Vec<u8>, usize) {
        let cleaned = self.cleaned(bytes);
        let bytes = cleaned.as_ref().map_or(bytes, String::as_bytes);
        let sure = bytes.len().saturating_sub(self.longest.saturating_sub(1));
        let (mut masked, mut covered) = (Vec::new(), 0);
        self.cover(bytes, sure, &mut covered, &mut masked);
        (masked, (bytes.len() - sure).saturating_sub(covered))
    }

    /// The same for what something is missing before.
    pub(crate) fn after_gap(&self, bytes: &[u8]) -> (Vec<u8>, usize) {
        let cleaned = self.cleaned(bytes);
        let bytes = cleaned.as_ref().map_or(bytes, String::as_bytes);
        let dropped = self.longest.saturating_sub(1).min(bytes.len());
        let (mut masked, mut covered) = (Vec::new(), 0);
        self.cover(bytes, dropped, &mut covered, &mut Vec::new());
        // The rest of a value that begins in what is dropped goes with it.
        let cut = dropped + covered;
        self.cover(&bytes[dropped..], bytes.len() - dropped, &mut covered, &mut masked);
        (masked, cut)
    }

    pub fn bytes<'b>(&self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        let masked = self.as_they_are(bytes);
        match self.hidden(&masked) {
            Some(cleaned) => Cow::Owned(self.as_they_are(cleaned.as_bytes()).into_owned()),
            None => masked,
        }
    }

    /// The text of bytes that have a value only once they are cleaned.
    fn hidden(&self, masked: &[u8]) -> Option<String> {
        let finder = self.finder.as_ref()?;
        self.cleaned(masked).filter(|cleaned| finder.is_match(cleaned))
    }

    /// Returns the text of bytes in which control characters or broken letters can hide a value.
    fn cleaned(&self, bytes: &[u8]) -> Option<String> {
        // The last one begins control characters beyond ASCII.
        let hides = |byte: &u8| byte.is_ascii_control() && !matches!(byte, b'\n' | b'\t') || *byte == 0xc2;
        let is_changed = bytes.iter().any(hides) || str::from_utf8(bytes).is_err();
        (self.finder.is_some() && is_changed).then(|| clean(&String::from_utf8_lossy(bytes)))
    }

    fn as_they_are<'b>(&self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        if !self.finder.as_ref().is_some_and(|finder| finder.is_match(bytes)) {
            return Cow::Borrowed(bytes);
        }
        let (mut masked, mut covered) = (Vec::with_capacity(bytes.len()), 0);
        self.cover(bytes, bytes.len(), &mut covered, &mut masked);
        Cow::Owned(masked)
    }

    /// What a hook has come to, in all of its words. What it asks for is among them.
    pub fn report(&self, mut report: HookReport) -> HookReport {
        let masked = |text: String| self.text(&text).into_owned();
        report.message = report.message.map(masked);
        report.feedback = report.feedback.map(masked);
        for action in &mut report.actions {
            action.kind = masked(mem::take(&mut action.kind));
            action.payload = self.value(action.payload.take());
        }
        report.context = self.fields(report.context);
        report.checkpoint = report.checkpoint.map(|data| self.value(data));
        if let Some(ChangeFact::Opened(change)) = &mut report.change {
            change.url = change.url.take().map(masked);
        }
        report
    }

    pub fn value(&self, value: Value) -> Value {
        match value {
            _ if self.is_empty() => value,
            Value::String(text) => Value::String(self.text(&text).into_owned()),
            Value::Array(items) => items.into_iter().map(|item| self.value(item)).collect(),
            Value::Object(fields) => Value::Object(self.fields(fields)),
            other => other,
        }
    }

    fn fields(&self, fields: Map<String, Value>) -> Map<String, Value> {
        fields.into_iter().map(|(name, value)| (self.text(&name).into_owned(), self.value(value))).collect()
    }

    /// For output that comes in pieces.
    pub fn stream(&self) -> Stream<'_> {
        Stream { mask: self, held: Vec::new(), covered: 0 }
    }

    /// For output that comes in pieces and is shown: where there is anything to look for, as text.
    pub fn shown(&self) -> Shown<'_> {
        Shown::new(self)
    }

    /// What is kept of a run in files. One that cannot be rewritten is not kept.
    pub fn spilled(&self, ran: &Finished) {
        for spilled in [&ran.stdout.spilled, &ran.stderr.spilled].into_iter().flatten() {
            if self.file(&spilled.path).is_err() {
                let _ = fs::remove_file(&spilled.path);
            }
        }
    }

    /// Masks a file. One without a secret is not touched; another is replaced as a whole, or not at all. It keeps its bytes,
    /// unless control sequences hide a value: then it is text.
    pub fn file(&self, path: &Path) -> io::Result<()> {
        let found = fs::symlink_metadata(path)?;
        if !found.is_file() {
            return Err(io::Error::other("cannot mask what is not a regular file"));
        }
        let (plain, hidden) = self.look(file::open(path)?)?;
        if !plain && !hidden {
            return Ok(());
        }
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut beside = NamedTempFile::new_in(directory)?;
        let (mut input, mut output) = (file::open(path)?, BufWriter::new(beside.as_file_mut()));
        let (mut stream, mut shown) = (self.stream(), self.shown());
        pieces(&mut input, |piece| {
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

    /// Whether a file has values as they are, and whether it has others once it is cleaned.
    fn look(&self, mut input: File) -> io::Result<(bool, bool)> {
        if self.is_empty() {
            return Ok((false, false));
        }
        let (mut plain, mut hidden) = (Search::new(self), Search::new(self));
        let (mut stream, mut cleaner) = (self.stream(), Cleaner::default());
        pieces(&mut input, |piece| {
            plain.push(piece);
            hidden.push(cleaner.push(&stream.push(piece)).as_bytes());
            Ok(!hidden.found)
        })?;
        hidden.push(cleaner.push(&stream.finish()).as_bytes());
        hidden.push(cleaner.finish().as_bytes());
        Ok((plain.found, hidden.found))
    }

    /// Writes what is before `sure`, where every value that begins there is seen whole. `covered` is how much of the start
    /// belongs to a marker that has been written, and then how much of what follows `sure` does.
    fn cover(&self, bytes: &[u8], sure: usize, covered: &mut usize, masked: &mut Vec<u8>) {
        let mut found: Vec<(usize, usize, usize)> = Vec::new();
        for next in self.finder.iter().flat_map(|finder| finder.find_overlapping_iter(bytes)) {
            let (start, end, pattern) = (next.start(), next.end(), next.pattern().as_usize());
            match found.last_mut() {
                // Of those that end together, the longest covers the others.
                Some(last) if last.1 == end => *last = if start < last.0 { (start, end, pattern) } else { *last },
                _ => found.push((start, end, pattern)),
            }
        }
        // Of those that begin together, the longest gives its name.
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

/// Names only.
impl fmt::Debug for Mask {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Mask").field("markers", &self.markers).finish_non_exhaustive()
    }
}

/// Masks output as it comes. What could be the beginning of a value is held back: less than the longest form of one.
pub struct Stream<'m> {
    mask: &'m Mask,
    held: Vec<u8>,
    covered: usize,
}

impl Stream<'_> {
    /// Takes more, and gives what is sure.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(bytes);
        // Whoever watches waits for no more than a value that may have begun.
        self.give(self.held.len() - self.mask.begun(&self.held))
    }

    /// Gives what was held back.
    pub fn finish(mut self) -> Vec<u8> {
        self.give(self.held.len())
    }

    fn give(&mut self, sure: usize) -> Vec<u8> {
        if self.mask.is_empty() {
            return mem::take(&mut self.held);
        }
        let mut masked = Vec::with_capacity(sure);
        self.mask.cover(&self.held, sure, &mut self.covered, &mut masked);
        self.held.drain(..sure);
        masked
    }
}

impl fmt::Debug for Stream<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Stream").field("mask", self.mask).field("held", &self.held.len()).finish()
    }
}

/// Reads to the end, or until nothing more is wanted.
pub(crate) fn pieces(input: &mut impl Read, mut take: impl FnMut(&[u8]) -> io::Result<bool>) -> io::Result<()> {
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

/// What stands for a value: its name, unless that would give a value away.
fn marker(name: &str, finder: Option<&AhoCorasick>) -> String {
    let named = format!("[secret {name}]");
    let plain = ["[secret]", "[***]", "[...]"].map(str::to_owned);
    let tells = |marker: &String| finder.is_some_and(|finder| finder.is_match(marker));
    std::iter::once(named).chain(plain).find(|marker| !tells(marker)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
