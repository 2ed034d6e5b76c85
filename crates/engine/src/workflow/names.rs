//! Checks of the names that refer to other steps within a step's expressions: their results and their stored values.
//! The check refuses a name that can never have a value.

use std::collections::{BTreeMap, BTreeSet};

use windlass_expr::{Formula, join_path, suggest_name};

use super::check::{FlowError, Place};
use super::{Step, What, Workflow};

/// The paths under which expressions find the results of steps.
const RESULTS: [&[&str]; 2] = [&["steps"], &["context", "steps"]];
/// The fields of a result.
const RESULT_FIELDS: &[&str] = &["success", "data", "error", "durationMs", "stepId"];

/// Checks the names in all expressions of a workflow.
pub(super) fn check(workflow: &Workflow) -> Result<(), FlowError> {
    let mut known = KnownNames::default();
    for step in workflow.all_steps() {
        known.steps.insert(&step.id, step);
        if let What::Run(program) = &step.what
            && let Some(name) = &program.store_as
        {
            known.stored.entry(name).or_default().push(&step.id);
        }
    }
    for step in &workflow.steps {
        let all = || std::iter::once(step).chain(step.within());
        // The steps of a parallel step run at the same time. Their results are known only in a later round.
        let is_known = step.within().is_empty() || workflow.leads_back_to(step);
        known.hidden = all().filter(|_| !is_known).map(|step| step.id.as_str()).collect();
        for own in all() {
            own.formulas().into_iter().try_for_each(|formula| known.check(own, formula))?;
        }
    }
    Ok(())
}

/// The names that a step may use.
#[derive(Default)]
struct KnownNames<'w> {
    steps: BTreeMap<&'w str, &'w Step>,
    /// The stored names, with the steps that store them.
    stored: BTreeMap<&'w str, Vec<&'w str>>,
    /// The steps that have not ended when the expression is evaluated.
    hidden: BTreeSet<&'w str>,
}

impl KnownNames<'_> {
    fn check(&self, step: &Step, formula: &Formula) -> Result<(), FlowError> {
        let refuse = |path: &[&str], name: &str, known: &[&str]| FlowError {
            step: step.id.clone(),
            place: Place::Expression(formula.text().to_owned()),
            message: format!("unknown name `{}`", join_path(&[path, &[name]].concat())),
            suggestion: Some(suggest_name(path, name, known)),
        };
        let check_fields = |path: &[&str], known: &[&str]| {
            let unknown = formula.below(path).into_iter().find(|name| !known.contains(name));
            unknown.map_or(Ok(()), |name| Err(refuse(path, name, known)))
        };
        let has_ended = |id: &&str| !self.hidden.contains(id);
        for results in RESULTS {
            for id in formula.below(results) {
                let Some(other) = self.steps.get(id).filter(|_| has_ended(&id)) else {
                    return Err(refuse(results, id, &self.steps.keys().copied().filter(has_ended).collect::<Vec<_>>()));
                };
                let result = [results, &[id]].concat();
                check_fields(&result, RESULT_FIELDS)?;
                check_fields(&[&result[..], &["data"]].concat(), data_fields(other))?;
            }
        }
        let is_stored = |name: &&str| self.stored.get(name).is_some_and(|steps| steps.iter().any(has_ended));
        match formula.below(&["data"]).into_iter().find(|name| !is_stored(name)) {
            Some(name) => {
                Err(refuse(&["data"], name, &self.stored.keys().copied().filter(is_stored).collect::<Vec<_>>()))
            }
            None => Ok(()),
        }
    }
}

/// Returns the fields of a step's `data`.
fn data_fields(step: &Step) -> &'static [&'static str] {
    match &step.what {
        What::CreateTask(_) => &["taskId"],
        What::UpdateTask(_) => &["taskId", "action", "state"],
        What::Run(program) if program.capture => &["exitCode", "stdout", "stderr"],
        What::Run(_) => &["exitCode"],
        What::Choose { .. } => &["result"],
        What::Parallel { .. } | What::Nothing => &[],
    }
}
