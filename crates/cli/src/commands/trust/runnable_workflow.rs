//! A workflow that a trusted project may run, as `windlass trust` shows it.

use super::*;

/// A file under `workflows/`, or a built-in workflow that a hook runs.
pub struct RunnableWorkflow {
    pub path: String,
    pub what: Result<WorkflowDefinition, Option<Failure>>,
}

impl RunnableWorkflow {
    pub fn load_runnable(project: &Project, config: &Config) -> Result<Vec<Self>, Failure> {
        let WorkflowLibrary { definitions: found, unusable: mut wrong } = WorkflowLibrary::load(Some(&project.root))?;
        let directory = workflows::project_workflow_directory(project);
        let real = |file: &Path| file.canonicalize().unwrap_or(file.to_owned());
        let mut runs = Vec::new();
        for file in config.workflow_files()? {
            let place = directory.join(&file.path);
            let defined = found.iter().find(|defined| defined.file.as_ref() == Some(&real(&place)));
            let failure = wrong.iter().position(|wrong| real(&wrong.file) == real(&place));
            let what = match (defined, failure) {
                (Some(defined), _) => Ok(defined.clone()),
                (None, at) => Err(at.map(|at| wrong.swap_remove(at).into())),
            };
            runs.push(Self { path: file.path, what });
        }
        let named = config.workflow_hooks().into_iter().filter(|(hook, _)| hook.is_enabled());
        let named: BTreeSet<&str> = named.map(|(_, id)| id.as_str()).collect();
        let ours = found.into_iter().filter(|defined| defined.file.is_none());
        let ours = ours.filter(|defined| named.contains(defined.workflow.id.as_str()));
        runs.extend(ours.map(|defined| Self { path: defined.workflow.id.clone(), what: Ok(defined) }));
        Ok(runs)
    }

    pub fn print_workflow(&self, out: &mut Output) -> CommandResult {
        let path = text::clean_line(&self.path);
        let label = out.paint(TextTone::Name, "workflows");
        match &self.what {
            Ok(defined) => {
                let whose = if defined.file.is_some() { "" } else { "  (built-in)" };
                out.print_line(format_args!("  {label} {path}{}", out.paint(TextTone::Faint, whose)))?;
                commands::workflow::print_steps(defined, 6, out)
            }
            Err(None) => out.print_line(format_args!("  {label} {path}  (no workflow: nothing of it runs)")),
            Err(Some(failure)) => {
                let wrong = out.paint(TextTone::Bad, "wrong, and nothing of it runs");
                out.print_line(format_args!("  {label} {path}  {wrong}: {}", text::clean_line(&failure.message)))
            }
        }
    }

    pub fn to_json(&self) -> Value {
        match &self.what {
            Ok(defined) => {
                json!({"path": self.path, "id": defined.workflow.id, "steps": show::workflow::steps_to_json(defined)})
            }
            Err(failure) => json!({"path": self.path, "error": failure.as_ref().map(|failure| &failure.message)}),
        }
    }
}
