//! The workflows of a project: files under `.windlass/workflows/`, and those that come along.
//!
//! Invariants:
//! - What is wrong with a file is said with its place, and nothing of that file runs.
//! - A file of the project takes the place of a workflow of ours with the same id.
//!
//! Not here: how one is run (`runner`), what may be said in one (`engine::workflow`).

mod fields;
mod read;
mod tasks;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_engine::workflow::Workflow;
use windlass_engine::{Digest, nearest};
use windlass_runner::Workflows;

use crate::config::{ConfigError, Problem, source};
use crate::failure::{Code, Failure};
use crate::import::json;
use crate::project::Project;
use crate::{config, text};

/// Those that come along.
const SHIPPED: [(&str, &str); 3] = [
    ("create-review-task", include_str!("shipped/create-review-task.yaml")),
    ("stale-task-report", include_str!("shipped/stale-task-report.yaml")),
    ("notify-critical-completion", include_str!("shipped/notify-critical-completion.yaml")),
];

/// A workflow, and where it is written.
#[derive(Debug, Clone)]
pub struct Defined {
    pub workflow: Arc<Workflow>,
    /// None for one that comes along.
    pub file: Option<PathBuf>,
    pub text: String,
}

/// Every workflow of a project, in order of their ids.
pub fn all(project: &Project) -> Result<Vec<Defined>, ConfigError> {
    let mut found: Vec<Defined> = Vec::new();
    let directory = directory(project);
    for file in config::workflow_files(&directory)? {
        let file = directory.join(file);
        if !is_workflow(&file) {
            continue;
        }
        let defined = read_file(&file)?;
        if let Some(other) = found.iter().find(|other| other.workflow.id == defined.workflow.id) {
            let other = other.file.as_deref().unwrap_or(Path::new("")).display();
            let id = config::quoted(&defined.workflow.id);
            return Err(ConfigError::of_file(&file, format!("the id {id} is that of {other} too")));
        }
        found.push(defined);
    }
    for (id, text) in SHIPPED {
        if !found.iter().any(|defined| defined.workflow.id == id) {
            found.push(shipped(id, text)?);
        }
    }
    found.sort_by(|one, other| one.workflow.id.cmp(&other.workflow.id));
    Ok(found)
}

/// One of them, by its id.
pub fn find(project: &Project, id: &str) -> Result<Defined, Failure> {
    let known = all(project)?;
    let ids: Vec<&str> = known.iter().map(|defined| defined.workflow.id.as_str()).collect();
    let missing = || {
        let failure = Failure::new(Code::NotFound, format!("there is no workflow `{}`", text::fit(id, 60)));
        match nearest(id, &ids) {
            Some(near) => failure.hint(format!("did you mean `{near}`?")),
            None => failure.hint(format!("there are: {}", ids.join(", "))),
        }
    };
    let place = ids.iter().position(|known| *known == id).ok_or_else(missing)?;
    Ok(known[place].clone())
}

/// Those that a runner finds when they are owed.
pub fn runnable(project: &Project) -> Workflows {
    let project = project.clone();
    Workflows::found_by(move |id| {
        let known = all(&project).map_err(|error| Failure::from(error).message)?;
        Ok(known.into_iter().find(|defined| defined.workflow.id == id).map(|defined| defined.workflow))
    })
}

pub fn directory(project: &Project) -> PathBuf {
    project.config_file().with_file_name("workflows")
}

fn is_workflow(file: &Path) -> bool {
    file.extension().is_some_and(|kind| ["json", "yaml", "yml"].iter().any(|known| kind.eq_ignore_ascii_case(known)))
}

/// A workflow in a file.
pub fn read_file(file: &Path) -> Result<Defined, ConfigError> {
    let text = source::decode(file, source::read(file)?)?;
    let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let is_json = file.extension().is_some_and(|kind| kind.eq_ignore_ascii_case("json"));
    let workflow = parse(&text, stem, is_json).map_err(|problem| ConfigError::in_text(file, &text, problem))?;
    Ok(Defined { workflow: Arc::new(workflow), file: Some(fs::canonicalize(file).unwrap_or(file.to_owned())), text })
}

fn shipped(id: &str, text: &str) -> Result<Defined, ConfigError> {
    let workflow = parse(text, id, false).map_err(|problem| ConfigError::in_text(Path::new(id), text, problem))?;
    Ok(Defined { workflow: Arc::new(workflow), file: None, text: text.to_owned() })
}

/// A workflow in a text, whose file is called so.
pub fn parse(text: &str, stem: &str, is_json: bool) -> Result<Workflow, Problem> {
    let tree = if is_json { json::parse(text)? } else { config::tree(text)? };
    read::workflow(&tree, text, stem, Digest::of(text.as_bytes()))
}
