//! What happens to one settings file, worked out before anything is written.

use std::fs;
use std::path::{Path, PathBuf};

use windlass_bridge::settings::{Before, File, Program, Scope, Unfit};

use super::diff;
use super::place::Place;
use super::record::{self, Record};
use crate::failure::{Code, Failure};
use crate::output::{Done, Output, Tone};
use crate::project::Project;
use crate::text;

/// A settings file as it is, and as it is to be.
#[derive(Debug)]
pub struct Change {
    pub place: Place,
    pub old: Option<String>,
    pub new: Option<String>,
    /// What is remembered of it.
    known: Option<Record>,
    /// What is to be remembered of it.
    record: Option<Record>,
    /// The directories that are left empty.
    unmade: Vec<PathBuf>,
}

fn unfit(place: &Place, error: &Unfit) -> Failure {
    let remedy = match error {
        Unfit::Taken { .. } => "take that entry away, or do without --mcp",
        Unfit::Closed { .. } => "write it as tables of their own, and try again",
        Unfit::Syntax { .. } | Unfit::Kind { .. } | Unfit::Twice { .. } => "repair the file, and try again",
    };
    Failure::new(Code::Refused, format!("cannot edit `{}`", place.path.display()))
        .caused_by(error)
        .hint(format!("nothing was written; {remedy}"))
}

impl Change {
    /// What installing does to a file.
    pub fn adding(
        file: &File,
        scope: Scope,
        project: Option<&Project>,
        program: &Program,
        server: bool,
    ) -> Result<Self, Failure> {
        let place = Place::of(file, scope, project)?;
        let (old, known) = (place.read()?, record::find(&place.real));
        let new = file.with(old.as_deref(), program, server).map_err(|error| unfit(&place, &error))?;
        let before = match (&old, &known) {
            (None, _) => None,
            (Some(text), Some(record)) if record.is_for(text) => record.before.clone(),
            (Some(text), Some(record)) => file
                .without(text, Before::Known(record.before.as_deref()), true)
                .map_err(|error| unfit(&place, &error))?,
            // A server of our name is somebody's own here.
            (Some(text), None) => file.without(text, Before::Unknown, false).map_err(|error| unfit(&place, &error))?,
        };
        let mut made = known.as_ref().map(|record| record.made.clone()).unwrap_or_default();
        made.extend(place.missing_directories());
        let record = Some(Record::new(&place.real, before, &new, made));
        Ok(Self { place, old, new: Some(new), known, record, unmade: Vec::new() })
    }

    /// What uninstalling does to a file. `server` is about one that nothing is remembered of.
    pub fn removing(file: &File, scope: Scope, project: Option<&Project>, server: bool) -> Result<Self, Failure> {
        let place = Place::of(file, scope, project)?;
        let (old, known) = (place.read()?, record::find(&place.real));
        let new = match (&old, &known) {
            (None, _) => None,
            (Some(text), Some(record)) if record.is_for(text) => record.before.clone(),
            (Some(text), known) => {
                let before = known.as_ref().map_or(Before::Unknown, |known| Before::Known(known.before.as_deref()));
                let server = server || known.is_some();
                file.without(text, before, server).map_err(|error| unfit(&place, &error))?
            }
        };
        let unmade = match (&new, &known) {
            (Some(_), _) => Vec::new(),
            (None, Some(known)) => known.made.clone(),
            // Nobody else puts anything into a directory of our name.
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

    /// What happens to the file, in one word.
    pub fn name(&self) -> &'static str {
        match (&self.old, &self.new) {
            (old, new) if old == new => "unchanged",
            (None, _) => "created",
            (_, None) => "deleted",
            _ => "edited",
        }
    }

    pub fn diff(&self) -> Vec<diff::Row<'_>> {
        diff::rows(self.old.as_deref().unwrap_or_default(), self.new.as_deref().unwrap_or_default())
    }

    /// Shows what changes.
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
        for row in self.diff() {
            let tone = match row {
                diff::Row::Same(_) => Tone::Plain,
                diff::Row::Added(_) => Tone::Good,
                diff::Row::Removed(_) => Tone::Bad,
                diff::Row::Skipped(_) => Tone::Faint,
            };
            out.line(out.paint(tone, text::line(row.to_string().trim_end())))?;
        }
        out.line("")
    }

    /// Does it, if the file still is what it was when it was shown.
    fn carry_out(&self) -> Result<(), Failure> {
        if self.place.read()? != self.old {
            return Err(Failure::new(Code::Refused, format!("cannot edit `{}`", self.place.path.display()))
                .caused_by("somebody has changed it in the meantime")
                .hint("look at it again"));
        }
        // First what it was, so that no crash leaves a file of which nothing is remembered.
        if let Some(record) = &self.record {
            record::keep(&self.place.real, record)?;
        }
        self.place.write(self.new.as_deref())?;
        if self.record.is_none() {
            record::forget(&self.place.real)?;
        }
        // Only those that are empty: others have somebody else's files in them.
        let _ = self.unmade.iter().rev().try_for_each(fs::remove_dir);
        Ok(())
    }

    /// Puts back what was there.
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

/// Says beforehand if a change cannot be carried out.
pub fn check_writable(changes: &[Change]) -> Result<(), Failure> {
    changes.iter().filter(|change| !change.is_nothing()).try_for_each(|change| change.place.check_writable())
}

/// Carries all changes out, or none.
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
