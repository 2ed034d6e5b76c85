//! What a workflow must be so that it can be begun: found when it is read, not when it is half done.

use std::collections::{BTreeMap, BTreeSet};

use super::{Step, What, Workflow};
use crate::naming::nearest;

/// What is wrong with a workflow, and with which of its steps.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FlowError {
    /// The step, and where in it.
    pub step: String,
    pub place: Place,
    pub message: String,
    pub suggestion: Option<String>,
}

/// Where in a step something is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    Field(&'static str),
    /// In an expression, as it is written.
    Expression(String),
}

impl FlowError {
    fn of(step: &str, field: &'static str, message: String) -> Self {
        Self::at(step, Place::Field(field), message)
    }

    fn at(step: &str, place: Place, message: String) -> Self {
        Self { step: step.to_owned(), place, message, suggestion: None }
    }

    fn suggest(self, suggestion: impl Into<Option<String>>) -> Self {
        Self { suggestion: suggestion.into(), ..self }
    }
}

impl Workflow {
    /// Looks whether it can be carried out.
    pub fn check(&self) -> Result<(), FlowError> {
        self.unique()?;
        self.known_steps()?;
        self.known_names()?;
        self.reached()?;
        self.ends()
    }

    fn unique(&self) -> Result<(), FlowError> {
        let mut seen = BTreeSet::new();
        for step in self.all_steps() {
            if !seen.insert(step.id.as_str()) {
                return Err(FlowError::of(&step.id, "id", format!("two steps are called `{}`", step.id)));
            }
        }
        Ok(())
    }

    fn known_steps(&self) -> Result<(), FlowError> {
        for step in self.all_steps() {
            for (field, next) in step.ways() {
                let Some(next) = next.filter(|next| self.step(next).is_none()) else { continue };
                let known: Vec<&str> = self.steps.iter().map(|step| step.id.as_str()).collect();
                let suggestion = match nearest(next, &known) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("known here: `{}`", known.join("`, `")),
                };
                let message = format!("`{field}` names the step `{next}`, and there is none");
                return Err(FlowError::of(&step.id, field, message).suggest(suggestion));
            }
        }
        Ok(())
    }

    /// Results of steps and stored data have names too.
    fn known_names(&self) -> Result<(), FlowError> {
        let steps: BTreeSet<&str> = self.all_steps().map(|step| step.id.as_str()).collect();
        let stored: BTreeSet<&str> = self.all_steps().filter_map(stored).collect();
        for step in self.steps.iter() {
            for formula in step.formulas() {
                for (path, known, what) in [
                    (&["steps"][..], &steps, "step"),
                    (&["context", "steps"], &steps, "step"),
                    (&["data"], &stored, "`storeAs`"),
                    (&["context", "data"], &stored, "`storeAs`"),
                ] {
                    let listed: Vec<&str> = known.iter().copied().collect();
                    let near = |name: &str| nearest(name, &listed);
                    // Data can be given, too: there, only what looks like a slip of the pen is one.
                    let is_open = path == ["context", "data"];
                    let is_wrong = |name: &&str| !known.contains(name) && (!is_open || near(name).is_some());
                    let Some(unknown) = formula.below(path).into_iter().find(is_wrong) else { continue };
                    let root = path.join(".");
                    let message = format!("`{}` names `{root}.{unknown}`, and no {what} is called so", formula.text());
                    let suggestion = match near(unknown) {
                        Some(near) => format!("did you mean `{root}.{near}`?"),
                        None if listed.is_empty() => format!("no step has a {what}"),
                        None => format!("known here: `{}`", listed.join("`, `")),
                    };
                    let place = Place::Expression(formula.text().to_owned());
                    return Err(FlowError::at(&step.id, place, message).suggest(suggestion));
                }
            }
        }
        Ok(())
    }

    /// Every step is the first one or comes after another.
    fn reached(&self) -> Result<(), FlowError> {
        let mut reached = BTreeSet::new();
        let mut next: Vec<&Step> = self.steps.iter().take(1).collect();
        while let Some(step) = next.pop() {
            if reached.insert(step.id.as_str()) {
                next.extend(step.ways().into_iter().filter_map(|(_, way)| self.step(way?)));
            }
        }
        let Some(lost) = self.steps.iter().position(|step| !reached.contains(step.id.as_str())) else { return Ok(()) };
        let (before, lost) = (&self.steps[lost - 1], &self.steps[lost]);
        let message = format!("no step leads to `{}`", lost.id);
        let suggestion =
            format!("what follows a step is said by it: write `onSuccess: {}` in `{}`", lost.id, before.id);
        Err(FlowError::of(&lost.id, "id", message).suggest(suggestion))
    }

    /// From every step some way leads to the end.
    fn ends(&self) -> Result<(), FlowError> {
        let ways: BTreeMap<&str, Vec<Option<&str>>> = self
            .steps
            .iter()
            .map(|step| (step.id.as_str(), step.ways().into_iter().map(|(_, way)| way).collect()))
            .collect();
        let mut ending = BTreeSet::new();
        loop {
            let leads = |way: &Option<&str>| way.is_none_or(|way| ending.contains(way));
            let more: Vec<&str> = ways
                .iter()
                .filter(|(id, ways)| !ending.contains(*id) && ways.iter().any(leads))
                .map(|(id, _)| *id)
                .collect();
            if more.is_empty() {
                break;
            }
            ending.extend(more);
        }
        let Some(step) = self.steps.iter().find(|step| !ending.contains(step.id.as_str())) else { return Ok(()) };
        let message = format!("from `{}` no way leads to the end: its steps go round for ever", step.id);
        let suggestion = "leave `onSuccess` out where it is done, or have a `condition` lead out of it".to_owned();
        Err(FlowError::of(&step.id, "onSuccess", message).suggest(suggestion))
    }
}

/// The name under which a step leaves something.
fn stored(step: &Step) -> Option<&str> {
    match &step.what {
        What::Run(program) => program.store_as.as_deref(),
        _ => None,
    }
}
