//! The change of one settings file, planned before anything is written.

use std::fs;
use std::path::{Path, PathBuf};

use similar::{ChangeTag, TextDiff};
use windlass_app::project::Project;
use windlass_app::{Failure, FailureCode};
use windlass_bridge::settings::{self, ProgramPath, SettingsError, SettingsFile, SettingsScope};
use windlass_text as text;

use super::settings_location::SettingsLocation;
use super::settings_record::{self, SettingsRecord};
use crate::output::{CommandResult, Output, TextTone};

/// A settings file with its present and its planned text.
#[derive(Debug)]
pub struct SettingsChange {
    pub place: SettingsLocation,
    pub old: Option<String>,
    pub new: Option<String>,
    /// The stored record of the file.
    known: Option<SettingsRecord>,
    /// The record to store.
    record: Option<SettingsRecord>,
    /// The directories that the change leaves empty.
    emptied_directories: Vec<PathBuf>,
}

fn settings_failure(place: &SettingsLocation, error: &SettingsError) -> Failure {
    let remedy = match error {
        SettingsError::ServerTaken => "remove that entry, or leave out --mcp",
        _ => "repair the file, and try again",
    };
    Failure::new(FailureCode::Refused, format!("cannot edit `{}`", place.path.display()))
        .with_cause(error)
        .with_hint(format!("nothing was written; {remedy}"))
}

/// Returns the text of a file from before the installation: the saved text if the file is as the installation left it, else the
/// present text without Windlass's entries. `server` says whether to remove an MCP server from a file without a record.
fn restore_text(
    file: &SettingsFile,
    text: Option<&str>,
    known: Option<&SettingsRecord>,
    server: bool,
) -> Result<Option<String>, SettingsError> {
    let Some(text) = text else { return Ok(None) };
    let (server, is_created) = match known {
        Some(record) if record.matches_text(text) => return Ok(record.before.clone()),
        // A server that was there before the installation belongs to the person.
        Some(SettingsRecord { before: Some(before), .. }) => (!file.has_our_server(before), false),
        Some(_) => (true, true),
        None => (server, file.is_exclusive),
    };
    let rest = file.remove_entries(text, server)?;
    Ok(if is_created && rest != text && settings::is_empty_settings(&rest) { None } else { Some(rest) })
}

impl SettingsChange {
    /// Plans the installation into a file.
    pub fn plan_installation(
        file: &SettingsFile,
        scope: SettingsScope,
        project: Option<&Project>,
        program: &ProgramPath,
        server: bool,
    ) -> Result<Self, Failure> {
        let place = SettingsLocation::locate(file, scope, project)?;
        let (old, known) = (place.read_text()?, settings_record::find_record(&place.real));
        let refused = |error: SettingsError| settings_failure(&place, &error);
        let new = file.add_entries(old.as_deref(), program, server).map_err(refused)?;
        let before = restore_text(file, old.as_deref(), known.as_ref(), false).map_err(refused)?;
        let mut made = known.as_ref().map(|record| record.made.clone()).unwrap_or_default();
        made.extend(place.missing_directories());
        let record = Some(SettingsRecord::new(&place.real, before, &new, made));
        Ok(Self { place, old, new: Some(new), known, record, emptied_directories: Vec::new() })
    }

    /// Plans the removal from a file. `server` matters for files without a record.
    pub fn plan_removal(
        file: &SettingsFile,
        scope: SettingsScope,
        project: Option<&Project>,
        server: bool,
    ) -> Result<Self, Failure> {
        let place = SettingsLocation::locate(file, scope, project)?;
        let (old, known) = (place.read_text()?, settings_record::find_record(&place.real));
        let restored = restore_text(file, old.as_deref(), known.as_ref(), server);
        let new = restored.map_err(|error| settings_failure(&place, &error))?;
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
        Ok(Self { place, old, new, known, record: None, emptied_directories: unmade })
    }

    pub fn is_unchanged(&self) -> bool {
        self.old == self.new
    }

    pub fn has_record(&self) -> bool {
        self.known.is_some()
    }

    /// Returns the kind of the change in one word.
    pub fn change_kind(&self) -> &'static str {
        match (&self.old, &self.new) {
            (old, new) if old == new => "unchanged",
            (None, _) => "created",
            (_, None) => "deleted",
            _ => "edited",
        }
    }

    /// Returns the changed lines with two lines of context, each behind a sign.
    pub fn diff_lines(&self) -> Vec<(TextTone, String)> {
        let [old, new] = [&self.old, &self.new].map(|text| text.as_deref().unwrap_or_default());
        let diff = TextDiff::from_lines(old, new);
        let mut rows = Vec::new();
        for group in diff.grouped_ops(2) {
            if !rows.is_empty() {
                rows.push((TextTone::Faint, "  ...".to_owned()));
            }
            for change in group.iter().flat_map(|operation| diff.iter_changes(operation)) {
                let tone = match change.tag() {
                    ChangeTag::Equal => TextTone::Plain,
                    ChangeTag::Insert => TextTone::Good,
                    ChangeTag::Delete => TextTone::Bad,
                };
                rows.push((tone, format!("{} {}", change.tag(), change.value()).trim_end().to_owned()));
            }
        }
        rows
    }

    /// Prints the diff of the file.
    pub fn print_diff(&self, out: &mut Output) -> CommandResult {
        let path = self.place.path.to_string_lossy();
        let note = match self.change_kind() {
            "created" => "  new file",
            "deleted" => "  deleted",
            _ => "",
        };
        out.print_line(format_args!(
            "{}{}",
            out.paint(TextTone::Strong, text::clean_line(&path)),
            out.paint(TextTone::Faint, note)
        ))?;
        if self.place.real != self.place.path {
            let real = self.place.real.to_string_lossy();
            out.print_line(out.paint(TextTone::Faint, format_args!("  which is {}", text::clean_line(&real))))?;
        }
        for (tone, row) in self.diff_lines() {
            out.print_line(out.paint(tone, text::clean_line(&row)))?;
        }
        out.print_line("")
    }

    /// Writes the change if the file is still as it was shown.
    fn write_change(&self) -> Result<(), Failure> {
        if self.place.read_text()? != self.old {
            return Err(Failure::new(FailureCode::Refused, format!("cannot edit `{}`", self.place.path.display()))
                .with_cause("another program has changed it in the meantime")
                .with_hint("look at the file, and try again"));
        }
        // The record comes first, so that a crash leaves no changed file without one.
        if let Some(record) = &self.record {
            settings_record::store_record(&self.place.real, record)?;
        }
        self.place.write_text(self.new.as_deref())?;
        if self.record.is_none() {
            settings_record::remove_record(&self.place.real)?;
        }
        // `remove_dir` fails for directories that hold other files, and those stay.
        let _ = self.emptied_directories.iter().rev().try_for_each(fs::remove_dir);
        Ok(())
    }

    /// Restores the file and its record.
    fn revert_change(&self) {
        let _ = self.place.write_text(self.old.as_deref());
        let _ = match &self.known {
            Some(known) => settings_record::store_record(&self.place.real, known),
            None => settings_record::remove_record(&self.place.real),
        };
        let made = self.record.iter().flat_map(|record| &record.made).rev();
        made.for_each(|directory| drop(fs::remove_dir(directory)));
    }
}

/// Checks that every change can be written.
pub fn check_writable(changes: &[SettingsChange]) -> Result<(), Failure> {
    changes.iter().filter(|change| !change.is_unchanged()).try_for_each(|change| change.place.check_writable())
}

/// Writes all changes or, after a failure, none.
pub fn write_all_changes(changes: &[SettingsChange]) -> Result<(), Failure> {
    let changes: Vec<_> = changes.iter().filter(|change| !change.is_unchanged()).collect();
    for (index, change) in changes.iter().enumerate() {
        if let Err(failure) = change.write_change() {
            changes[..index].iter().rev().for_each(|change| change.revert_change());
            return Err(failure);
        }
    }
    Ok(())
}
