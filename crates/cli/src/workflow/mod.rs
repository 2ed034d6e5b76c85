//! The workflows of a project: files under `.windlass/workflows/`, and those that come along.
//!
//! Invariants:
//! - What is wrong with a file is said with its place, and nothing of that file runs. The others do.
//! - A file of the project takes the place of a workflow of ours with the same id, be it one that cannot be used. A file that
//!   does not parse may have any id, so none of ours runs beside it.
//!
//! Not here: how one is run (`runner`), what may be said in one (`engine::workflow`).

mod fields;
mod read;
mod tasks;
#[cfg(test)]
mod tests;

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value as Json;
use windlass_engine::workflow::Workflow;
use windlass_engine::{Digest, nearest};
use windlass_runner::WorkflowFinder;

use crate::config::{Config, ConfigError, Hook, Node, Problem, source};
use crate::failure::{Code, Failure};
use crate::import::json;
use crate::project::Project;
use crate::remedy::HOW_TO_TRUST;
use crate::trust::{self, Trust};
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
    /// What is written there, for people to look at.
    pub written: Json,
}

/// A file that is no workflow, and why.
#[derive(Debug)]
pub struct Wrong {
    pub file: PathBuf,
    /// The id that is written in it; the name of the file where none can be read.
    pub id: String,
    /// Whether it is YAML or JSON at all. If it is not, it may have any id.
    pub is_parsed: bool,
    pub failure: Failure,
}

/// What there is of workflows, in order of their ids.
#[derive(Debug)]
pub struct Known {
    pub found: Vec<Defined>,
    /// Files that cannot be used. The others can.
    pub wrong: Vec<Wrong>,
}

/// The workflows of a project and those that come along; without a project, these alone.
pub fn known(project: Option<&Project>) -> Result<Known, Failure> {
    let mut known = Known { found: Vec::new(), wrong: Vec::new() };
    if let Some(project) = project {
        let directory = directory(project);
        for file in config::workflow_files(&project.root, &directory)? {
            let file = directory.join(file);
            if is_workflow(&file) {
                known.read(project, &file);
            }
        }
        known.part_twins();
    }
    let is_parsed = known.wrong.iter().all(|wrong| wrong.is_parsed);
    for (id, text) in SHIPPED {
        if is_parsed && !known.ids().any(|taken| taken == id) {
            known.found.push(shipped(id, text)?);
        }
    }
    known.found.sort_by(|one, other| one.workflow.id.cmp(&other.workflow.id));
    Ok(known)
}

impl Known {
    fn read(&mut self, project: &Project, file: &Path) {
        let read = || source::read_within(&project.root, file).and_then(|bytes| source::decode(file, bytes));
        match read().and_then(|text| read_workflow(file, text)) {
            Ok(defined) => self.found.push(defined),
            Err(error) => {
                let tree = read().ok().and_then(|text| tree(&text, is_json(file)).ok());
                let id = tree.as_ref().and_then(read::id).unwrap_or(stem(file)).to_owned();
                self.wrong.push(Wrong { file: file.to_owned(), id, is_parsed: tree.is_some(), failure: error.into() });
            }
        }
    }

    /// Of two with one id neither is run: nobody could say which one is meant.
    fn part_twins(&mut self) {
        let mut ids: BTreeMap<String, usize> = BTreeMap::new();
        for defined in &self.found {
            *ids.entry(defined.workflow.id.clone()).or_default() += 1;
        }
        let is_twin = |defined: &Defined| ids.get(&defined.workflow.id).is_some_and(|count| *count > 1);
        let (twins, found) = std::mem::take(&mut self.found).into_iter().partition(is_twin);
        self.found = found;
        let twins: Vec<Defined> = twins;
        for twin in &twins {
            let id = &twin.workflow.id;
            let others = twins.iter().filter(|other| other.workflow.id == *id && other.file != twin.file);
            let others = others.filter_map(|other| Some(other.file.as_ref()?.display().to_string()));
            let others: Vec<String> = others.collect();
            let problem = Problem::new(format!("the id {} is that of {} too", config::quoted(id), others.join(", ")))
                .suggest("give each its own".to_owned());
            let file = twin.file.clone().unwrap_or_default();
            let failure = ConfigError::in_text(&file, &twin.text, problem).into();
            self.wrong.push(Wrong { file, id: id.clone(), is_parsed: true, failure });
        }
    }

    /// Those that come along; every file is one that may not be used.
    fn without_files(mut self) -> Self {
        let (files, ours) = std::mem::take(&mut self.found).into_iter().partition(|defined| defined.file.is_some());
        self.found = ours;
        let files: Vec<Defined> = files;
        self.wrong.extend(files.into_iter().map(|defined| {
            let (id, file) = (defined.workflow.id.clone(), defined.file.unwrap_or_default());
            let message = format!("the workflow `{id}` may not run: something has changed since it was trusted");
            Wrong {
                file,
                id,
                is_parsed: true,
                failure: Failure::new(Code::Trust, message).hint(HOW_TO_TRUST).offer_trust(),
            }
        }));
        self
    }

    /// Every id, of files that cannot be used too.
    fn ids(&self) -> impl Iterator<Item = &str> {
        let found = self.found.iter().map(|defined| defined.workflow.id.as_str());
        found.chain(self.wrong.iter().map(|wrong| wrong.id.as_str()))
    }

    pub fn get(&self, id: &str) -> Option<&Defined> {
        self.found.iter().find(|defined| defined.workflow.id == id)
    }

    /// Finds the file that is to blame for a missing workflow: the one with this id, or one that does not parse.
    fn find_wrong(&self, id: &str) -> Option<usize> {
        let named = self.wrong.iter().position(|wrong| wrong.id == id);
        named.or_else(|| self.wrong.iter().position(|wrong| !wrong.is_parsed))
    }

    /// The workflow with this id, or why there is none.
    pub fn take(self, id: &str) -> Result<Defined, Failure> {
        let at = self.find_wrong(id);
        let Self { found, mut wrong } = self;
        let ids: Vec<String> = found.iter().map(|defined| defined.workflow.id.clone()).collect();
        if let Some(defined) = found.into_iter().find(|defined| defined.workflow.id == id) {
            return Ok(defined);
        }
        if let Some(at) = at {
            return Err(wrong.swap_remove(at).failure);
        }
        let mut failure = Failure::new(Code::NotFound, format!("there is no workflow `{}`", text::fit(id, 60)));
        let files = wrong.iter().map(|wrong| format!("a file that cannot be used: {}", wrong.failure.message));
        failure.causes.extend(files);
        Err(failure.hint(instead(id, &ids)))
    }
}

fn instead(id: &str, known: &[String]) -> String {
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    match nearest(id, &known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are: {}", known.join(", ")),
    }
}

/// One of them, by its id.
pub fn find(project: Option<&Project>, id: &str) -> Result<Defined, Failure> {
    known(project)?.take(id)
}

/// Refuses hooks that run a workflow which is not there, or cannot be used. One that is to come later is for a hook that is
/// switched off until then.
pub fn check_hooks(project: &Project, config: &Config) -> Result<(), Failure> {
    let named: Vec<_> = config.named_workflows().into_iter().filter(|(hook, _)| hook.enabled()).collect();
    if named.is_empty() {
        return Ok(());
    }
    let mut known = known(Some(project))?;
    for (hook, id) in named {
        if let Some(defined) = known.get(id) {
            check_programs(config, hook, &defined.workflow)?;
            continue;
        }
        if let Some(wrong) = known.find_wrong(id) {
            let place = format!("{}:{}", config.file().display(), hook.line);
            let failure = known.wrong.swap_remove(wrong).failure;
            let named = format!("the hook `{}` runs the workflow {}", text::line(&hook.name), config::quoted(id));
            return Err(failure.caused_by(format!("{named}: {place}")));
        }
        let ids: Vec<&str> = known.ids().collect();
        let near = nearest(id, &ids).map(|near| format!("did you mean `{near}`?"));
        let usual = "`windlass workflow list` names them; `enabled: false` keeps the hook off until there is one";
        let message = format!(
            "the hook {} runs the workflow {}, and there is none",
            config::quoted(&hook.name),
            config::quoted(id)
        );
        let problem = Problem::new(message).suggest(near.unwrap_or(usual.to_owned())).at(id.at.clone());
        return Err(ConfigError::in_text(config.file(), config.text(), problem).into());
    }
    Ok(())
}

/// Refuses free text in what a hook gives a workflow for the name of a program.
fn check_programs(config: &Config, hook: &Hook, workflow: &Workflow) -> Result<(), Failure> {
    let programs = workflow.names_of_programs();
    let free = hook.context.iter().find(|(name, pattern)| programs.contains(name.as_str()) && pattern.is_free());
    let Some((name, _)) = free else { return Ok(()) };
    let written = hook.entry.context.as_ref().and_then(|context| context.get(name));
    let message = format!(
        "`{name}` names a program of the workflow {}: the text would choose what runs",
        config::quoted(&workflow.id)
    );
    let problem = Problem::new(message).suggest("write the program as plain text".to_owned());
    let problem = if let Some(written) = written { problem.at(written.at.clone()) } else { problem };
    Err(ConfigError::in_text(config.file(), config.text(), problem).into())
}

/// What there was of workflows at one moment. Whatever becomes of the files, that is what runs: an agent that writes there
/// changes nothing of what a person has trusted.
#[derive(Clone)]
pub struct Held(Arc<Result<Known, String>>);

impl Held {
    /// Those of now. What a person has trusted may have been changed since, by an agent that gives this very command: then
    /// only what comes along is run, unless somebody says otherwise.
    pub fn now(project: &Project, config: &Config, told: bool) -> Self {
        let known = known(Some(project)).map_err(|failure| failure.message);
        let is_refused = !told && has_changed(project, config);
        Self(Arc::new(if is_refused { known.map(Known::without_files) } else { known }))
    }

    /// Those that a runner finds when they are owed.
    pub fn runnable(&self) -> WorkflowFinder {
        let held = self.clone();
        Box::new(move |id| held.get(id))
    }

    fn get(&self, id: &str) -> Result<Option<Arc<Workflow>>, String> {
        let known = self.0.as_ref().as_ref().map_err(Clone::clone)?;
        let found = known.get(id).map(|defined| defined.workflow.clone());
        match known.find_wrong(id).map(|at| &known.wrong[at]) {
            Some(wrong) if found.is_none() || wrong.id == id => Err(wrong.failure.message.clone()),
            _ => Ok(found),
        }
    }
}

/// The same for a single command, as soon as one is owed.
pub fn runnable(project: &Project, config: &Arc<Config>, told: bool) -> WorkflowFinder {
    let (project, config, held) = (project.clone(), config.clone(), OnceCell::new());
    Box::new(move |id| held.get_or_init(|| Held::now(&project, &config, told)).get(id))
}

/// Whether something was trusted that is not there any more, neither with this configuration nor with the present one.
fn has_changed(project: &Project, config: &Config) -> bool {
    let state = |config: &Config| trust::state(project, config).ok();
    let is_trusted = || Config::load(project).is_ok_and(|present| state(&present) == Some(Trust::Trusted));
    state(config) == Some(Trust::Changed) && !is_trusted()
}

/// What lies where a project's workflows are.
pub fn files(project: &Project) -> Result<Vec<String>, ConfigError> {
    config::workflow_files(&project.root, &directory(project))
}

pub fn directory(project: &Project) -> PathBuf {
    project.config_file().with_file_name("workflows")
}

fn is_workflow(file: &Path) -> bool {
    file.extension().is_some_and(|kind| ["json", "yaml", "yml"].iter().any(|known| kind.eq_ignore_ascii_case(known)))
}

fn is_json(file: &Path) -> bool {
    file.extension().is_some_and(|kind| kind.eq_ignore_ascii_case("json"))
}

fn stem(file: &Path) -> &str {
    file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default()
}

/// The workflow in the text of a file.
fn read_workflow(file: &Path, text: String) -> Result<Defined, ConfigError> {
    let read = tree(&text, is_json(file)).and_then(|tree| {
        let workflow = read::workflow(&tree, &text, stem(file), Digest::of(text.as_bytes()))?;
        Ok((workflow, fields::json(&tree)))
    });
    let (workflow, written) = read.map_err(|problem| ConfigError::in_text(file, &text, problem))?;
    let file = fs::canonicalize(file).unwrap_or(file.to_owned());
    Ok(Defined { workflow: Arc::new(workflow), file: Some(file), text, written })
}

fn shipped(id: &str, text: &str) -> Result<Defined, ConfigError> {
    let wrong = |problem| ConfigError::in_text(Path::new(id), text, problem);
    let workflow = parse(text, id, false).map_err(wrong)?;
    let written = fields::json(&tree(text, false).map_err(wrong)?);
    Ok(Defined { workflow: Arc::new(workflow), file: None, text: text.to_owned(), written })
}

/// A workflow in a text, whose file is called so.
pub fn parse(text: &str, stem: &str, is_json: bool) -> Result<Workflow, Problem> {
    read::workflow(&tree(text, is_json)?, text, stem, Digest::of(text.as_bytes()))
}

fn tree(text: &str, is_json: bool) -> Result<Node, Problem> {
    if is_json { json::parse(text) } else { config::tree(text) }
}
