//! Checks of a workflow's definition, made when the configuration is read and not in the middle of a run.

use std::collections::BTreeSet;

use windlass_expr::{ExpressionNames, ValueExpression, suggest_name};

use super::{StepOperation, Workflow, WorkflowStep, name_check};

/// An error in a workflow, and its step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct WorkflowError {
    /// The id of the step.
    pub step: String,
    pub place: StepLocation,
    pub message: String,
    pub suggestion: Option<String>,
}

/// The place of an error within a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepLocation {
    Field(&'static str),
    /// The source text of an expression.
    Expression(String),
}

impl WorkflowError {
    fn in_field(step: &str, field: &'static str, message: String) -> Self {
        Self { step: step.to_owned(), place: StepLocation::Field(field), message, suggestion: None }
    }

    fn with_suggestion(self, suggestion: impl Into<Option<String>>) -> Self {
        Self { suggestion: suggestion.into(), ..self }
    }
}

impl Workflow {
    /// Checks that the workflow can run from start to end.
    pub fn check_definition(&self) -> Result<(), WorkflowError> {
        self.check_unique_ids()?;
        self.check_step_references()?;
        name_check::check(self)?;
        self.check_command_sources()?;
        self.check_reachability()?;
        self.check_termination()
    }

    fn check_unique_ids(&self) -> Result<(), WorkflowError> {
        let mut seen = BTreeSet::new();
        for step in self.all_steps() {
            if !seen.insert(step.id.as_str()) {
                let suggestion = format!("give each its own, as in `id: {}-2`", step.id);
                let message = format!("two steps are called `{}`", step.id);
                return Err(WorkflowError::in_field(&step.id, "id", message).with_suggestion(suggestion));
            }
        }
        Ok(())
    }

    fn check_step_references(&self) -> Result<(), WorkflowError> {
        for step in self.all_steps() {
            for (field, next) in step.outgoing_edges() {
                let Some(next) = next.filter(|next| self.find_step(next).is_none()) else { continue };
                return Err(self.unknown_step_error(step, field, next));
            }
        }
        Ok(())
    }

    /// Returns the error for a reference to a step that does not exist.
    fn unknown_step_error(&self, step: &WorkflowStep, field: &'static str, next: &str) -> WorkflowError {
        let known: Vec<&str> = self.steps.iter().map(|step| step.id.as_str()).collect();
        let message = format!("`{field}` names the step `{next}`, and no step outside a `parallel` has that id");
        WorkflowError::in_field(&step.id, field, message).with_suggestion(suggest_name(&[], next, &known))
    }

    /// Checks that only the given context chooses which programs run, and no text of a task, an agent or a program.
    fn check_command_sources(&self) -> Result<(), WorkflowError> {
        // In `context`, a stored value replaces a given one.
        let is_stored = |name: &str| {
            let stores = |step: &WorkflowStep| matches!(&step.operation, StepOperation::Run(program) if program.store_as.as_deref() == Some(name));
            self.all_steps().any(stores)
        };
        let known: Vec<&str> = ExpressionNames::for_workflow().root_names().collect();
        let is_given = |formula: &ValueExpression| {
            let given = formula.names_below(&["context"]);
            let is_own = given.iter().all(|name| !known.contains(name) && !is_stored(name));
            formula.names_below(&[]).iter().all(|name| *name == "context" && is_own && !given.is_empty())
        };
        for step in self.all_steps() {
            let StepOperation::Run(program) = &step.operation else { continue };
            let Some(formula) = program.command.collect_expressions().into_iter().find(|formula| !is_given(formula))
            else {
                continue;
            };
            let message =
                format!("cannot put `{}` in the place of a command: the text would choose what runs", formula.text());
            let suggestion =
                "write the program's name, or `${context.NAME}` for one that the workflow is given".to_owned();
            return Err(WorkflowError::in_field(&step.id, "command", message).with_suggestion(suggestion));
        }
        Ok(())
    }

    /// Returns the names in `context` that choose which programs the steps run.
    pub fn program_name_inputs(&self) -> BTreeSet<&str> {
        let commands = self.all_steps().filter_map(|step| match &step.operation {
            StepOperation::Run(program) => Some(program.command.collect_expressions()),
            _ => None,
        });
        commands.flatten().flat_map(|formula| formula.names_below(&["context"])).collect()
    }

    /// Checks that every step is the first one or follows another.
    fn check_reachability(&self) -> Result<(), WorkflowError> {
        let reached = self.reachable_from(self.steps.iter().take(1).collect());
        let Some(lost) = self.steps.iter().position(|step| !reached.contains(step.id.as_str())) else { return Ok(()) };
        let (before, lost) = (&self.steps[lost - 1], &self.steps[lost]);
        let message = format!("no step leads to `{}`", lost.id);
        let suggestion =
            format!("each step names the step that follows it: write `onSuccess: {}` in `{}`", lost.id, before.id);
        Err(WorkflowError::in_field(&lost.id, "id", message).with_suggestion(suggestion))
    }

    /// Returns the ids of these steps and of all steps that can follow them.
    fn reachable_from<'w>(&'w self, mut next: Vec<&'w WorkflowStep>) -> BTreeSet<&'w str> {
        let mut reached = BTreeSet::new();
        while let Some(step) = next.pop() {
            if reached.insert(step.id.as_str()) {
                next.extend(self.following_steps(step));
            }
        }
        reached
    }

    fn following_steps<'w>(&'w self, step: &WorkflowStep) -> Vec<&'w WorkflowStep> {
        step.outgoing_edges().into_iter().filter_map(|(_, way)| self.find_step(way?)).collect()
    }

    /// Returns whether a step can run again after itself.
    pub(super) fn leads_back_to(&self, step: &WorkflowStep) -> bool {
        self.reachable_from(self.following_steps(step)).contains(step.id.as_str())
    }

    /// Checks that the end can be reached from every step.
    fn check_termination(&self) -> Result<(), WorkflowError> {
        let may_end = |id: &&str| {
            self.find_step(id).is_some_and(|step| step.outgoing_edges().iter().any(|(_, way)| way.is_none()))
        };
        let ends = |step: &WorkflowStep| self.reachable_from(vec![step]).iter().any(&may_end);
        let Some(step) = self.steps.iter().find(|step| !ends(step)) else { return Ok(()) };
        let message = format!("from `{}` no path leads to the end: its steps repeat for ever", step.id);
        let suggestion = "leave `onSuccess` out of the last step, or let a `condition` end the loop".to_owned();
        Err(WorkflowError::in_field(&step.id, "onSuccess", message).with_suggestion(suggestion))
    }
}
