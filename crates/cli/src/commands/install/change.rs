//! The change of one settings file, planned before anything is written.

use std::fs;
use std::path::{Path, PathBuf};

use similar::{ChangeTag, TextDiff};
use windlass_app::project::Project;
use windlass_app::{Code, Failure};
use windlass_bridge::settings::{self, Program, Scope, SettingsError, SettingsFile};
use windlass_text as text;

use super::place::Place;
use super::record::{self, Record};
use crate::output::{Done, Output, Tone};

/// A settings file with its present and its planned text.
#[derive(Debug)]
pub struct Change {
    pub place: Place,
    pub old: Option<String>,
    pub new: Option<String>,
    /// The stored record of the file.
    known: Option<Record>,
    /// The record to store.
    record: Option<Record>,
    /// The directories that the change leaves empty.
    unmade: Vec<PathBuf>,
}

fn refusal(place: &Place, error: &SettingsError) -> Failure {
    let remedy = match error {
        SettingsError::ServerTaken => "remove that entry, or leave out --mcp",
        _ => "repair the file, and try again",
    };
    Failure::new(Code::Refused, format!("cannot edit `{}`", place.path.display()))
        .caused_by(error)
        .hint(format!("nothing was written; {remedy}"))
}

/// Returns the text of a file from before the installation: the saved text if the file is as the installation left it, else the
/// present text without Windlass's entries. `server` says whether to remove an MCP server from a file without a record.
fn restore_text(
    file: &SettingsFile,
    text: Option<&str>,
    known: Option<&Record>,
    server: bool,
) -> Result<Option<String>, SettingsError> {
    let Some(text) = text else { return Ok(None) };
    let (server, is_created) = match known {
        Some(record) if record.is_for(text) => return Ok(record.before.clone()),
        // A server that was there before the installation belongs to the person.
        Some(Record { before: Some(before), .. }) => (!file.has_our_server(before), false),
        Some(_) => (true, true),
        None => (server, file.is_own),
    };
    let rest = file.remove_entries(text, server)?;
    Ok(if is_created && rest != text && settings::is_empty(&rest) { None } else { Some(rest) })
}

impl Change {
    /// Plans the installation into a file.
    pub fn adding(
        file: &SettingsFile,
        scope: Scope,
        project: Option<&Project>,
        program: &Program,
        server: bool,
    ) -> Result<Self, Failure> {
        let place = Place::of(file, scope, project)?;
        let (old, known) = (place.read()?, record::find(&place.real));
        let refused = |error: SettingsError| refusal(&place, &error);
        let new = file.add_entries(old.as_deref(), program, server).map_err(refused)?;
        let before = restore_text(file, old.as_deref(), known.as_ref(), false).map_err(refused)?;
        let mut made = known.as_ref().map(|record| record.made.clone()).unwrap_or_default();
        made.extend(place.missing_directories());
        let record = Some(Record::new(&place.real, before, &new, made));
        Ok(Self { place, old, new: Some(new), known, record, unmade: Vec::new() })
    }

    /// Plans the removal from a file. `server` matters for files without a record.
    pub fn removing(
        file: &SettingsFile,
        scope: Scope,
        project: Option<&Project>,
        server: bool,
    ) -> Result<Self, Failure> {
        let place = Place::of(file, scope, project)?;
        let (old, known) = (place.read()?, record::find(&place.real));
        let restored = restore_text(file, old.as_deref(), known.as_ref(), server);
        let new = restored.map_err(|error| refusal(&place, &error))?;
        let unmade = match (&new, &known) {
            (Some(_), _) => Vec::new(),
            (None, Some(known)) => known.made.clone(),
            // A directory named `windlass` holds Windlass's files only.
            (None, None) => {
                let own = file.name.split('/').skip_while(|part| *part != "windlass").count().saturating_sub(1);
                let parents: Vec<_> = place.real.ancestors().skip(1).take(own).map(Path::to_owned).collect();
                parents.into_iter().rev().collect()
            }
        };
        Ok(Self { place, old, new, known, record: None, unmade })
    }

    pub fn is_nothing(&self) -> bool {
        self.old == self.new
    }

    pub fn is_known(&self) -> bool {
        self.known.is_some()
    }

    /// Returns the kind of the change in one word.
    pub fn name(&self) -> &'static str {
        match (&self.old, &self.new) {
            (old, new) if old == new => "unchanged",
            (None, _) => "created",
            (_, None) => "deleted",
            _ => "edited",
        }
    }

    /// Returns the changed lines with two lines of context, each behind a sign.
    pub fn diff(&self) -> Vec<(Tone, String)> {
        let [old, new] = [&self.old, &self.new].map(|text| text.as_deref().unwrap_or_default());
        let diff = TextDiff::from_lines(old, new);
        let mut rows = Vec::new();
        for group in diff.grouped_ops(2) {
            if !rows.is_empty() {
                rows.push((Tone::Faint, "  ...".to_owned()));
            }
            for change in group.iter().flat_map(|operation| diff.iter_changes(operation)) {
                let tone = match change.tag() {
                    ChangeTag::Equal => Tone::Plain,
                    ChangeTag::Insert => Tone::Good,
                    ChangeTag::Delete => Tone::Bad,
                };
                rows.push((tone, format!("{} {}", change.tag(), change.value()).trim_end().to_owned()));
            }
        }
        rows
    }

    /// Prints the diff of the file.
    pub fn show(&self, out: &mut Output) -> Done {
        let path = self.place.path.to_string_lossy();
        let note = match self.name() {
            "created" => "  new file",
            "deleted" => "  deleted",
            _ => "",
        };
        out.line(format_args!("{}{}", out.paint(Tone::Strong, text::line(&path)), out.paint(Tone::Faint, note)))?;
        if self.place.real != self.place.path {
            let real = self.place.real.to_string_lossy();
            out.line(out.paint(Tone::Faint, format_args!("  which is {}", text::line(&real))))?;
        }
        for (tone, row) in self.diff() {
            out.line(out.paint(tone, text::line(&row)))?;
        }
        out.line("")
    }

    /// Writes the change if the file is still as it was shown.
    fn carry_out(&self) -> Result<(), Failure> {
        if self.place.read()? != self.old {
            return Err(Failure::new(Code::Refused, format!("cannot edit `{}`", self.place.path.display()))
                .caused_by("somebody has changed it in the meantime")
                .hint("look at it again"));
        }
        // The record comes first, so that a crash leaves no changed file without one.
        if let Some(record) = &self.record {
            record::keep(&self.place.real, record)?;
        }
        self.place.write(self.new.as_deref())?;
        if self.record.is_none() {
            record::forget(&self.place.real)?;
        }
        // `remove_dir` fails for directories that hold other files, and those stay.
        let _ = self.unmade.iter().rev().try_for_each(fs::remove_dir);
        Ok(())
    }

    /// Restores the file and its record.
    fn take_back(&self) {
        let _ = self.place.write(self.old.as_deref());
        let _ = match &self.known {
            Some(known) => record::keep(&self.place.real, known),
            None => record::forget(&self.place.real),
        };
        let made = self.record.iter().flat_map(|record| &record.made).rev();
        made.for_each(|directory| drop(fs::remove_dir(directory)));
    }
}

/// Checks that every change can be written.
pub fn check_writable(changes: &[Change]) -> Result<(), Failure> {
    changes.iter().filter(|change| !change.is_nothing()).try_for_each(|change| change.place.check_writable())
}

/// Writes all changes or, after a failure, none.
pub fn carry_out(changes: &[Change]) -> Result<(), Failure> {
    let changes: Vec<_> = changes.iter().filter(|change| !change.is_nothing()).collect();
    for (index, change) in changes.iter().enumerate() {
        if let Err(failure) = change.carry_out() {
            changes[..index].iter().rev().for_each(|change| change.take_back());
            return Err(failure);
        }
    }
    Ok(())
}
