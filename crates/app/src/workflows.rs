//! The workflows that a project may run: the trusted ones of its files, and the shipped ones.
//!
//! Invariants:
//! - A hook that names a missing or unusable workflow is refused before anything runs.
//! - A run keeps the workflows that it began with: an agent that edits their files does not change trusted content.
//!
//! Not here: reading the files (`config::workflow`), running a workflow (`workflow_run`, `runner`).

use std::cell::OnceCell;
use std::sync::Arc;

use windlass_config::workflow::{
    UnusableReason, UnusableWorkflow, WorkflowDefinition, WorkflowLibrary, workflow_directory,
};
use windlass_config::{Config, ConfigError, ConfigProblem, HookSpec, quote_text};
use windlass_engine::workflow::Workflow;
use windlass_expr::nearest_name;
use windlass_runner::WorkflowFinder;
use windlass_text as text;

use crate::hints::HOW_TO_TRUST;
use crate::project::Project;
use crate::trust::{self, TrustState};
use crate::{Failure, FailureCode};

impl From<UnusableWorkflow> for Failure {
    fn from(unusable: UnusableWorkflow) -> Self {
        match unusable.reason {
            UnusableReason::Invalid(error) => error.into(),
            UnusableReason::Untrusted => Self::new(FailureCode::Trust, untrusted_workflow_message(&unusable.id))
                .with_hint(HOW_TO_TRUST)
                .with_trust_option(),
        }
    }
}

/// Returns why a workflow is unusable, in words.
pub fn describe_reason(unusable: &UnusableWorkflow) -> String {
    match &unusable.reason {
        UnusableReason::Invalid(error) => error.to_string(),
        UnusableReason::Untrusted => untrusted_workflow_message(&unusable.id),
    }
}

fn untrusted_workflow_message(id: &str) -> String {
    format!("the workflow `{id}` may not run: something has changed since it was trusted")
}

/// Finds a workflow by its id. Without a project, only shipped ones are known.
pub fn find_workflow(project: Option<&Project>, id: &str) -> Result<WorkflowDefinition, Failure> {
    let library = WorkflowLibrary::load(project.map(|project| project.root.as_path()))?;
    if let Some(definition) = library.find_definition(id) {
        return Ok(definition.clone());
    }
    match take_unusable(library, id) {
        Ok(unusable) => Err(unusable.into()),
        Err(library) => {
            let mut failure =
                Failure::new(FailureCode::NotFound, format!("there is no workflow `{}`", text::fit_to_width(id, 60)));
            let files = library.unusable.iter().map(describe_reason);
            failure.causes.extend(files.map(|reason| format!("a file that cannot be used: {reason}")));
            let ids: Vec<&str> = library.definitions.iter().map(|known| known.workflow.id.as_str()).collect();
            Err(failure.with_hint(match nearest_name(id, &ids) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("there are: {}", ids.join(", ")),
            }))
        }
    }
}

/// Takes out of a library the unusable file that explains a missing workflow.
fn take_unusable(mut library: WorkflowLibrary, id: &str) -> Result<UnusableWorkflow, WorkflowLibrary> {
    let blamed = library.find_unusable(id).map(|unusable| unusable.file.clone());
    match library.unusable.iter().position(|unusable| Some(&unusable.file) == blamed.as_ref()) {
        Some(position) => Ok(library.unusable.swap_remove(position)),
        None => Err(library),
    }
}

/// Refuses hooks that run a missing or unusable workflow. A disabled hook may name one.
pub fn check_workflow_hooks(project: &Project, config: &Config) -> Result<(), Failure> {
    let named: Vec<_> = config.workflow_hooks().into_iter().filter(|(hook, _)| hook.is_enabled()).collect();
    if named.is_empty() {
        return Ok(());
    }
    let mut library = WorkflowLibrary::load(Some(&project.root))?;
    for (hook, id) in named {
        if let Some(definition) = library.find_definition(id) {
            check_program_arguments(config, hook, &definition.workflow)?;
            continue;
        }
        library = match take_unusable(library, id) {
            Ok(unusable) => {
                let place = format!("{}:{}", config.file().display(), hook.line);
                let named = format!("the hook `{}` runs the workflow {}", text::clean_line(&hook.name), quote_text(id));
                return Err(Failure::from(unusable).with_cause(format!("{named}: {place}")));
            }
            Err(library) => library,
        };
        let ids: Vec<&str> = library.workflow_ids().collect();
        let near = nearest_name(id, &ids).map(|near| format!("did you mean `{near}`?"));
        let usual = "`windlass workflow list` names them; `enabled: false` keeps the hook off until there is one";
        let message =
            format!("the hook {} runs the workflow {}, and there is none", quote_text(&hook.name), quote_text(id));
        let problem =
            ConfigProblem::new(message).with_suggestion(near.unwrap_or(usual.to_owned())).with_range(id.at.clone());
        return Err(ConfigError::from_problem(config.file(), config.text(), problem).into());
    }
    Ok(())
}

/// Refuses free text in a hook's context that becomes the name of a program in the workflow.
fn check_program_arguments(config: &Config, hook: &HookSpec, workflow: &Workflow) -> Result<(), Failure> {
    let programs = workflow.program_name_inputs();
    let free = hook.context.iter().find(|(name, pattern)| programs.contains(name.as_str()) && pattern.has_free_text());
    let Some((name, _)) = free else { return Ok(()) };
    let written = hook.entry.context.as_ref().and_then(|context| context.get(name));
    let message = format!(
        "`{name}` names a program of the workflow {}: the text would choose what runs",
        quote_text(&workflow.id)
    );
    let problem = ConfigProblem::new(message).with_suggestion("write the program as plain text".to_owned());
    let problem = if let Some(written) = written { problem.with_range(written.at.clone()) } else { problem };
    Err(ConfigError::from_problem(config.file(), config.text(), problem).into())
}

/// The workflows of a project at one moment.
#[derive(Clone)]
pub struct WorkflowSnapshot(Arc<Result<WorkflowLibrary, String>>);

impl WorkflowSnapshot {
    /// Reads the workflows. If trusted content has changed since, only the shipped ones may run, unless this command has
    /// `--trust` (`trust_option`).
    pub fn load_snapshot(project: &Project, config: &Config, trust_option: bool) -> Self {
        let mut library = WorkflowLibrary::load(Some(&project.root)).map_err(|error| error.to_string());
        if let Ok(library) = &mut library
            && !trust_option
            && has_trusted_content_changed(project, config)
        {
            library.distrust_files();
        }
        Self(Arc::new(library))
    }

    /// Returns a finder for a runner.
    pub fn to_workflow_finder(&self) -> WorkflowFinder {
        let snapshot = self.clone();
        Box::new(move |id| snapshot.find_runnable_workflow(id))
    }

    fn find_runnable_workflow(&self, id: &str) -> Result<Option<Arc<Workflow>>, String> {
        let library = self.0.as_ref().as_ref().map_err(Clone::clone)?;
        let found = library.find_definition(id).map(|definition| definition.workflow.clone());
        match library.find_unusable(id) {
            Some(unusable) if found.is_none() || unusable.id == id => Err(describe_reason(unusable)),
            _ => Ok(found),
        }
    }
}

/// Returns a finder for a single command, which reads the workflows only when an effect needs one.
pub fn build_workflow_finder(project: &Project, config: &Arc<Config>, trust_option: bool) -> WorkflowFinder {
    let (project, config, snapshot) = (project.clone(), config.clone(), OnceCell::new());
    Box::new(move |id| {
        snapshot
            .get_or_init(|| WorkflowSnapshot::load_snapshot(&project, &config, trust_option))
            .find_runnable_workflow(id)
    })
}

/// Returns whether trusted content has changed: the trust fits neither this configuration nor the present one.
fn has_trusted_content_changed(project: &Project, config: &Config) -> bool {
    let state = |config: &Config| trust::find_trust_state(project, config).ok();
    let is_trusted = || Config::load(&project.root).is_ok_and(|present| state(&present) == Some(TrustState::Trusted));
    state(config) == Some(TrustState::Changed) && !is_trusted()
}

/// Returns whether the project has workflow files.
pub fn has_workflow_files(project: &Project) -> Result<bool, ConfigError> {
    Ok(!windlass_config::workflow::workflow_files(&project.root)?.is_empty())
}

/// Returns the directory of a project's workflows.
pub fn project_workflow_directory(project: &Project) -> std::path::PathBuf {
    workflow_directory(&project.root)
}
