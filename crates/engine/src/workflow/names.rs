//! Names of other steps in the expressions of a step: what they come to, and what they store.
//!
//! Refused is what can never be there. What another round through the same steps has left is there, so within one that is
//! gone through again more may be named.

use std::collections::{BTreeMap, BTreeSet};

use super::check::{FlowError, Place};
use super::{Step, What, Workflow};
use crate::expression::Formula;
use crate::naming::nearest;

/// Where what steps came to is found.
const RESULTS: [&[&str]; 2] = [&["steps"], &["context", "steps"]];
/// Where what they stored is found, and nothing else. What is given lies in `context.data` too, and is known only then.
const STORED: &[&str] = &["data"];
/// What came of any step.
const RESULT: &[&str] = &["success", "data", "error", "durationMs", "stepId"];
const DATA: &str = "data";
/// Names that are listed at most.
const LISTED: usize = 13;

/// Looks whether what its steps name can be there.
pub(super) fn check(workflow: &Workflow) -> Result<(), FlowError> {
    let known = Known::of(workflow);
    for step in &workflow.steps {
        let within = step.within();
        let is_known = within.is_empty() || workflow.leads_back_to(step);
        let beside: Vec<&Step> = if is_known { Vec::new() } else { within.iter().chain([step]).collect() };
        let own = if within.is_empty() { std::slice::from_ref(step) } else { within };
        for (own, formula) in own.iter().flat_map(|own| own.formulas().into_iter().map(move |formula| (own, formula))) {
            let asking = Asking { step: own, beside: &beside, formula };
            known.check(&asking).map_err(|wrong| wrong.of(&asking))?;
        }
    }
    Ok(())
}

/// An expression, and who asks.
struct Asking<'w> {
    step: &'w Step,
    /// What is done at the same time, itself among it, and the step that all of it is a part of.
    beside: &'w [&'w Step],
    formula: &'w Formula,
}

impl Asking<'_> {
    /// A name as it would be written in it.
    fn name(&self, path: &[&str]) -> String {
        // In `{fromContext: steps.a}` it goes without saying, and nothing is in quotes.
        if let ["context", below @ ..] = path
            && !self.formula.text().contains("context")
        {
            return below.join(".");
        }
        let mut name = String::new();
        for part in path {
            let is_word = part.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
            match (name.is_empty(), is_word) {
                (true, _) => name.push_str(part),
                (false, true) => name.extend([".", part]),
                (false, false) => name.extend(["['", part, "']"]),
            }
        }
        name
    }

    fn listed(&self, path: &[&str], names: &[&str]) -> String {
        let full = names.iter().take(LISTED).map(|name| format!("`{}`", self.name(&[path, &[name]].concat())));
        let more = if names.len() > LISTED { ", …" } else { "" };
        format!("known here: {}{more}", full.collect::<Vec<_>>().join(", "))
    }

    /// The name that was probably meant, else all there are.
    fn instead(&self, path: &[&str], name: &str, known: &[&str]) -> String {
        match nearest(name, known) {
            Some(near) => format!("did you mean `{}`?", self.name(&[path, &[near]].concat())),
            None => self.listed(path, known),
        }
    }

    /// Whatever is done at the same time is of no use.
    fn too_early(&self, name: &[&str], step: &Step) -> Wrong {
        let (name, id) = (self.name(name), &step.id);
        let message = match step.id == self.step.id {
            true => format!("`{name}`: this very step leaves that, and has not ended then"),
            false => format!("`{name}`: the step `{id}` runs at the same time"),
        };
        let suggestion =
            "use it in a step that follows the `parallel`, or let the two be steps of their own".to_owned();
        Wrong { message, suggestion }
    }
}

/// A name that can never be there.
struct Wrong {
    message: String,
    suggestion: String,
}

impl Wrong {
    fn of(self, asking: &Asking<'_>) -> FlowError {
        FlowError {
            step: asking.step.id.clone(),
            place: Place::Expression(asking.formula.text().to_owned()),
            message: self.message,
            suggestion: Some(self.suggestion),
        }
    }
}

/// What there is to be named.
struct Known<'w> {
    steps: BTreeMap<&'w str, &'w Step>,
    /// What is stored, and who may do so.
    stored: BTreeMap<&'w str, Vec<&'w Step>>,
}

impl<'w> Known<'w> {
    fn of(workflow: &'w Workflow) -> Self {
        let mut stored: BTreeMap<&str, Vec<&Step>> = BTreeMap::new();
        for step in workflow.all_steps() {
            if let What::Run(program) = &step.what
                && let Some(name) = &program.store_as
            {
                stored.entry(name).or_default().push(step);
            }
        }
        Self { steps: workflow.all_steps().map(|step| (step.id.as_str(), step)).collect(), stored }
    }

    fn check(&self, asking: &Asking<'_>) -> Result<(), Wrong> {
        for path in RESULTS {
            asking.formula.below(path).into_iter().try_for_each(|id| self.result(asking, path, id))?;
        }
        asking.formula.below(STORED).into_iter().try_for_each(|name| self.stored(asking, name))
    }

    /// What came of a step.
    fn result(&self, asking: &Asking<'_>, path: &[&str], id: &str) -> Result<(), Wrong> {
        let full = [path, &[id]].concat();
        let Some(step) = self.steps.get(id) else {
            let known: Vec<&str> = self.steps.keys().copied().collect();
            let message = format!("`{}`: no step is called so", asking.name(&full));
            return Err(Wrong { message, suggestion: asking.instead(path, id, &known) });
        };
        if asking.beside.iter().any(|other| other.id == id) {
            return Err(asking.too_early(&full, step));
        }
        asking.formula.below(&full).into_iter().try_for_each(|field| field_of(asking, &full, step, field))
    }

    /// What was stored.
    fn stored(&self, asking: &Asking<'_>, name: &str) -> Result<(), Wrong> {
        let full = [STORED, &[name]].concat();
        let known: Vec<&str> = self.stored.keys().copied().collect();
        let Some(by) = self.stored.get(name) else {
            let message = format!("`{}`: no `storeAs` is called so", asking.name(&full));
            let suggestion = match known.is_empty() {
                true => format!("no step has a `storeAs`; what the workflow is given is `context.{name}`"),
                false => asking.instead(STORED, name, &known),
            };
            return Err(Wrong { message, suggestion });
        };
        let beside: BTreeSet<&str> = asking.beside.iter().map(|step| step.id.as_str()).collect();
        match by.iter().find(|step| !beside.contains(step.id.as_str())) {
            Some(_) => Ok(()),
            None => Err(asking.too_early(&full, by[0])),
        }
    }
}

/// A field of what came of a step, and what is below it.
fn field_of(asking: &Asking<'_>, path: &[&str], step: &Step, field: &str) -> Result<(), Wrong> {
    let (full, left) = ([path, &[field]].concat(), data_of(step));
    let name = asking.name(&full);
    if field == DATA {
        return match left.is_empty() {
            true => Err(Wrong {
                message: format!("`{name}`: no `{}` leaves data", step.kind()),
                suggestion: without_data(asking, path, step),
            }),
            false => asking.formula.below(&full).into_iter().try_for_each(|field| datum_of(asking, &full, step, field)),
        };
    }
    if RESULT.contains(&field) {
        return Ok(());
    }
    let suggestion = match nearest(field, left).filter(|_| nearest(field, RESULT).is_none()) {
        Some(near) => format!("did you mean `{}`?", asking.name(&[path, &[DATA, near]].concat())),
        None => asking.instead(path, field, RESULT),
    };
    Err(Wrong { message: format!("`{name}`: what came of a step has no such field"), suggestion })
}

fn datum_of(asking: &Asking<'_>, path: &[&str], step: &Step, field: &str) -> Result<(), Wrong> {
    let left = data_of(step);
    if left.contains(&field) {
        return Ok(());
    }
    let message = format!("`{}`: no `{}` leaves such a thing", asking.name(&[path, &[field]].concat()), step.kind());
    let suggestion = match PRINTED.contains(&field) && matches!(step.what, What::Run(_)) {
        true => format!("leave `captureOutput: false` out of `{}`", step.id),
        false => asking.instead(path, field, left),
    };
    Err(Wrong { message, suggestion })
}

fn without_data(asking: &Asking<'_>, path: &[&str], step: &Step) -> String {
    match step.within().first() {
        Some(inner) => format!("each of its steps has its own, as `{}`", asking.name(&["steps", &inner.id, DATA])),
        None => asking.listed(path, &["success", "error", "durationMs"]),
    }
}

/// What a program prints.
const PRINTED: &[&str] = &["exitCode", "stdout", "stderr"];

/// What a step leaves as its `data`.
fn data_of(step: &Step) -> &'static [&'static str] {
    match &step.what {
        What::CreateTask(_) => &["taskId"],
        What::UpdateTask(_) => &["taskId", "action", "state"],
        What::Run(program) if program.capture => PRINTED,
        What::Run(_) => &["exitCode"],
        What::Choose { .. } => &["result"],
        What::Parallel { .. } | What::Nothing => &[],
    }
}
