//! Checks of a workflow's definition, made when the configuration is read and not in the middle of a run.

use std::collections::BTreeSet;

use windlass_expr::{Formula, Names, suggest_name};

use super::{Step, What, Workflow, names};

/// An error in a workflow, and its step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FlowError {
    /// The id of the step.
    pub step: String,
    pub place: Place,
    pub message: String,
    pub suggestion: Option<String>,
}

/// The place of an error within a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    Field(&'static str),
    /// The source text of an expression.
    Expression(String),
}

impl FlowError {
    fn of(step: &str, field: &'static str, message: String) -> Self {
        Self { step: step.to_owned(), place: Place::Field(field), message, suggestion: None }
    }

    fn suggest(self, suggestion: impl Into<Option<String>>) -> Self {
        Self { suggestion: suggestion.into(), ..self }
    }
}

impl Workflow {
    /// Checks that the workflow can run from start to end.
    pub fn check(&self) -> Result<(), FlowError> {
        self.unique()?;
        self.known_steps()?;
        names::check(self)?;
        self.commands_given()?;
        self.reached()?;
        self.ends()
    }

    fn unique(&self) -> Result<(), FlowError> {
        let mut seen = BTreeSet::new();
        for step in self.all_steps() {
            if !seen.insert(step.id.as_str()) {
                let suggestion = format!("give each its own, as in `id: {}-2`", step.id);
                let message = format!("two steps are called `{}`", step.id);
                return Err(FlowError::of(&step.id, "id", message).suggest(suggestion));
            }
        }
        Ok(())
    }

    fn known_steps(&self) -> Result<(), FlowError> {
        for step in self.all_steps() {
            for (field, next) in step.ways() {
                let Some(next) = next.filter(|next| self.step(next).is_none()) else { continue };
                return Err(self.nowhere(step, field, next));
            }
        }
        Ok(())
    }

    /// Returns the error for a reference to a step that does not exist.
    fn nowhere(&self, step: &Step, field: &'static str, next: &str) -> FlowError {
        let known: Vec<&str> = self.steps.iter().map(|step| step.id.as_str()).collect();
        let message = format!("`{field}` names the step `{next}`, and there is none outside of a `parallel`");
        FlowError::of(&step.id, field, message).suggest(suggest_name(&[], next, &known))
    }

    /// Checks that only the given context chooses which programs run, and no text of a task, an agent or a program.
    fn commands_given(&self) -> Result<(), FlowError> {
        // In `context`, a stored value replaces a given one.
        let is_stored = |name: &str| {
            let stores =
                |step: &Step| matches!(&step.what, What::Run(program) if program.store_as.as_deref() == Some(name));
            self.all_steps().any(stores)
        };
        let known: Vec<&str> = Names::workflow().all().collect();
        let is_given = |formula: &Formula| {
            let given = formula.below(&["context"]);
            let is_own = given.iter().all(|name| !known.contains(name) && !is_stored(name));
            formula.below(&[]).iter().all(|name| *name == "context" && is_own && !given.is_empty())
        };
        for step in self.all_steps() {
            let What::Run(program) = &step.what else { continue };
            let Some(formula) = program.command.formulas().into_iter().find(|formula| !is_given(formula)) else {
                continue;
            };
            let message =
                format!("cannot put `{}` in the place of a command: the text would choose what runs", formula.text());
            let suggestion =
                "write the program's name, or `${context.NAME}` for one that the workflow is given".to_owned();
            return Err(FlowError::of(&step.id, "command", message).suggest(suggestion));
        }
        Ok(())
    }

    /// Returns the names in `context` that choose which programs the steps run.
    pub fn names_of_programs(&self) -> BTreeSet<&str> {
        let commands = self.all_steps().filter_map(|step| match &step.what {
            What::Run(program) => Some(program.command.formulas()),
            _ => None,
        });
        commands.flatten().flat_map(|formula| formula.below(&["context"])).collect()
    }

    /// Checks that every step is the first one or follows another.
    fn reached(&self) -> Result<(), FlowError> {
        let reached = self.reached_from(self.steps.iter().take(1).collect());
        let Some(lost) = self.steps.iter().position(|step| !reached.contains(step.id.as_str())) else { return Ok(()) };
        let (before, lost) = (&self.steps[lost - 1], &self.steps[lost]);
        let message = format!("no step leads to `{}`", lost.id);
        let suggestion =
            format!("what follows a step is said by it: write `onSuccess: {}` in `{}`", lost.id, before.id);
        Err(FlowError::of(&lost.id, "id", message).suggest(suggestion))
    }

    /// Returns the ids of these steps and of all steps that can follow them.
    fn reached_from<'w>(&'w self, mut next: Vec<&'w Step>) -> BTreeSet<&'w str> {
        let mut reached = BTreeSet::new();
        while let Some(step) = next.pop() {
            if reached.insert(step.id.as_str()) {
                next.extend(self.after(step));
            }
        }
        reached
    }

    fn after<'w>(&'w self, step: &Step) -> Vec<&'w Step> {
        step.ways().into_iter().filter_map(|(_, way)| self.step(way?)).collect()
    }

    /// Returns whether a step can run again after itself.
    pub(super) fn leads_back_to(&self, step: &Step) -> bool {
        self.reached_from(self.after(step)).contains(step.id.as_str())
    }

    /// Checks that the end can be reached from every step.
    fn ends(&self) -> Result<(), FlowError> {
        let may_end = |id: &&str| self.step(id).is_some_and(|step| step.ways().iter().any(|(_, way)| way.is_none()));
        let ends = |step: &Step| self.reached_from(vec![step]).iter().any(&may_end);
        let Some(step) = self.steps.iter().find(|step| !ends(step)) else { return Ok(()) };
        let message = format!("from `{}` no way leads to the end: its steps go round for ever", step.id);
        let suggestion = "leave `onSuccess` out where it is done, or have a `condition` lead out of it".to_owned();
        Err(FlowError::of(&step.id, "onSuccess", message).suggest(suggestion))
    }
}
