//! The workflows of a project: files under `.windlass/workflows/`, and those that ship with Windlass.
//!
//! Invariants:
//! - A problem in a file names its place, and makes only that file unusable.
//! - A file of the project replaces a shipped workflow with the same id, even if the file is unusable. A file that does not parse
//!   may have any id, so no shipped workflow runs beside it.
//!
//! Not here: whether a person trusts a file (`app`), running a workflow (`runner`), the rules for one (`engine::workflow`).

mod fields;
mod parser;
mod task_steps;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value as Json;
use windlass_engine::Digest;
use windlass_engine::workflow::Workflow;

use crate::import::json;
use crate::trust_digest::list_workflow_files;
use crate::yaml::{self, ConfigNode};
use crate::{ConfigError, ConfigProblem, PROJECT_DIRECTORY, quote_text, source};

const SHIPPED_WORKFLOWS: [(&str, &str); 3] = [
    ("create-review-task", include_str!("shipped/create-review-task.yaml")),
    ("stale-task-report", include_str!("shipped/stale-task-report.yaml")),
    ("notify-critical-completion", include_str!("shipped/notify-critical-completion.yaml")),
];

/// A workflow with the text that defines it.
#[derive(Debug, Clone)]
pub struct WorkflowDefinition {
    pub workflow: Arc<Workflow>,
    /// None for a shipped workflow.
    pub file: Option<PathBuf>,
    pub text: String,
    /// The content of the file, for display.
    pub content: Json,
}

/// A file that defines no runnable workflow.
#[derive(Debug)]
pub struct UnusableWorkflow {
    pub file: PathBuf,
    /// The id in the file, or the file's name if it has none.
    pub id: String,
    /// Whether the file is YAML or JSON. If it is not, it may have any id.
    pub is_parsed: bool,
    pub reason: UnusableReason,
}

/// Why a workflow file is unusable.
#[derive(Debug)]
pub enum UnusableReason {
    Invalid(ConfigError),
    /// The file has changed since a person trusted it.
    Untrusted,
}

/// The workflows that hooks and people can name, in the order of their ids.
#[derive(Debug)]
pub struct WorkflowLibrary {
    pub definitions: Vec<WorkflowDefinition>,
    pub unusable: Vec<UnusableWorkflow>,
}

impl WorkflowLibrary {
    /// Reads the workflows of a project, or the shipped ones alone.
    pub fn load(root: Option<&Path>) -> Result<Self, ConfigError> {
        let mut library = Self { definitions: Vec::new(), unusable: Vec::new() };
        if let Some(root) = root {
            for file in workflow_files(root)? {
                let file = workflow_directory(root).join(file);
                if has_workflow_extension(&file) {
                    library.add_file(root, &file);
                }
            }
            library.remove_duplicates();
        }
        let is_parsed = library.unusable.iter().all(|unusable| unusable.is_parsed);
        for (id, text) in SHIPPED_WORKFLOWS {
            if is_parsed && !library.workflow_ids().any(|taken| taken == id) {
                library.definitions.push(shipped_workflow(id, text)?);
            }
        }
        library.definitions.sort_by(|one, other| one.workflow.id.cmp(&other.workflow.id));
        Ok(library)
    }

    fn add_file(&mut self, root: &Path, file: &Path) {
        let read = || source::read_bytes_within(root, file).and_then(|bytes| source::decode_text(file, bytes));
        match read().and_then(|text| read_definition(file, text)) {
            Ok(definition) => self.definitions.push(definition),
            Err(error) => {
                let tree = read().ok().and_then(|text| parse_tree(&text, is_json_file(file)).ok());
                let id = tree.as_ref().and_then(parser::read_id).unwrap_or(default_workflow_id(file)).to_owned();
                let (is_parsed, reason) = (tree.is_some(), UnusableReason::Invalid(error));
                self.unusable.push(UnusableWorkflow { file: file.to_owned(), id, is_parsed, reason });
            }
        }
    }

    /// Makes files with the same id unusable: the id would be ambiguous.
    fn remove_duplicates(&mut self) {
        let mut ids: BTreeMap<String, usize> = BTreeMap::new();
        for definition in &self.definitions {
            *ids.entry(definition.workflow.id.clone()).or_default() += 1;
        }
        let is_duplicate = |definition: &WorkflowDefinition| ids.get(&definition.workflow.id).is_some_and(|n| *n > 1);
        let duplicates: Vec<_> = self.definitions.extract_if(.., |definition| is_duplicate(definition)).collect();
        for duplicate in &duplicates {
            let id = &duplicate.workflow.id;
            let others = duplicates.iter().filter(|other| other.workflow.id == *id && other.file != duplicate.file);
            let others = others.filter_map(|other| Some(other.file.as_ref()?.display().to_string()));
            let others: Vec<String> = others.collect();
            let problem = ConfigProblem::new(format!("the id {} is that of {} too", quoted(id), others.join(", ")))
                .with_suggestion("give each its own".to_owned());
            let file = duplicate.file.clone().unwrap_or_default();
            let reason = UnusableReason::Invalid(ConfigError::from_problem(&file, &duplicate.text, problem));
            self.unusable.push(UnusableWorkflow { file, id: id.clone(), is_parsed: true, reason });
        }
    }

    /// Makes every file of the project unusable, and keeps the shipped workflows.
    pub fn distrust_files(&mut self) {
        for definition in self.definitions.extract_if(.., |definition| definition.file.is_some()) {
            let (id, file) = (definition.workflow.id.clone(), definition.file.unwrap_or_default());
            self.unusable.push(UnusableWorkflow { file, id, is_parsed: true, reason: UnusableReason::Untrusted });
        }
    }

    /// Returns every id, those of unusable files included.
    pub fn workflow_ids(&self) -> impl Iterator<Item = &str> {
        let definitions = self.definitions.iter().map(|definition| definition.workflow.id.as_str());
        definitions.chain(self.unusable.iter().map(|unusable| unusable.id.as_str()))
    }

    pub fn find_definition(&self, id: &str) -> Option<&WorkflowDefinition> {
        self.definitions.iter().find(|definition| definition.workflow.id == id)
    }

    /// Finds the file that explains a missing workflow: the one with this id, or one that does not parse.
    pub fn find_unusable(&self, id: &str) -> Option<&UnusableWorkflow> {
        let named = self.unusable.iter().find(|unusable| unusable.id == id);
        named.or_else(|| self.unusable.iter().find(|unusable| !unusable.is_parsed))
    }
}

/// Returns the paths of the files below the directory of workflows.
pub fn workflow_files(root: &Path) -> Result<Vec<String>, ConfigError> {
    Ok(list_workflow_files(root, &workflow_directory(root))?.into_iter().map(|file| file.path).collect())
}

pub fn workflow_directory(root: &Path) -> PathBuf {
    root.join(PROJECT_DIRECTORY).join("workflows")
}

fn has_workflow_extension(file: &Path) -> bool {
    file.extension().is_some_and(|kind| ["json", "yaml", "yml"].iter().any(|known| kind.eq_ignore_ascii_case(known)))
}

fn is_json_file(file: &Path) -> bool {
    file.extension().is_some_and(|kind| kind.eq_ignore_ascii_case("json"))
}

fn default_workflow_id(file: &Path) -> &str {
    file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default()
}

fn read_definition(file: &Path, text: String) -> Result<WorkflowDefinition, ConfigError> {
    let read = parse_tree(&text, is_json_file(file)).and_then(|tree| {
        let workflow =
            parser::read_workflow(&tree, &text, default_workflow_id(file), Digest::of_bytes(text.as_bytes()))?;
        Ok((workflow, fields::node_to_json(&tree)))
    });
    let (workflow, written) = read.map_err(|problem| ConfigError::from_problem(file, &text, problem))?;
    let file = fs::canonicalize(file).unwrap_or(file.to_owned());
    Ok(WorkflowDefinition { workflow: Arc::new(workflow), file: Some(file), text, content: written })
}

fn shipped_workflow(id: &str, text: &str) -> Result<WorkflowDefinition, ConfigError> {
    let wrong = |problem| ConfigError::from_problem(Path::new(id), text, problem);
    let workflow = parse_workflow(text, id, false).map_err(wrong)?;
    let written = fields::node_to_json(&parse_tree(text, false).map_err(wrong)?);
    Ok(WorkflowDefinition { workflow: Arc::new(workflow), file: None, text: text.to_owned(), content: written })
}

/// Parses a workflow from the text of a file with this name.
pub fn parse_workflow(text: &str, stem: &str, is_json: bool) -> Result<Workflow, ConfigProblem> {
    parser::read_workflow(&parse_tree(text, is_json)?, text, stem, Digest::of_bytes(text.as_bytes()))
}

fn parse_tree(text: &str, is_json: bool) -> Result<ConfigNode, ConfigProblem> {
    if is_json { json::parse_json(text) } else { yaml::parse_yaml(text) }
}
