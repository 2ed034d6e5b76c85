//! Checks of the names that refer to other steps within a step's expressions: their results and their stored values.
//! The check refuses a name that can never have a value.

use std::collections::{BTreeMap, BTreeSet};

use windlass_expr::{ValueExpression, join_path, suggest_name};

use super::check::{StepLocation, WorkflowError};
use super::{StepOperation, Workflow, WorkflowStep};

/// The paths under which expressions find the results of steps.
const RESULT_PATHS: [&[&str]; 2] = [&["steps"], &["context", "steps"]];
/// The fields of a result.
const RESULT_FIELDS: &[&str] = &["success", "data", "error", "durationMs", "stepId"];

/// Checks the names in all expressions of a workflow.
pub(super) fn check(workflow: &Workflow) -> Result<(), WorkflowError> {
    let mut known = WorkflowNames::default();
    for step in workflow.all_steps() {
        known.steps.insert(&step.id, step);
        if let StepOperation::Run(program) = &step.operation
            && let Some(name) = &program.store_as
        {
            known.stored.entry(name).or_default().push(&step.id);
        }
    }
    for step in &workflow.steps {
        let all = || std::iter::once(step).chain(step.nested_steps());
        // The steps of a parallel step run at the same time. Their results are known only in a later round.
        let is_known = step.nested_steps().is_empty() || workflow.leads_back_to(step);
        known.hidden = all().filter(|_| !is_known).map(|step| step.id.as_str()).collect();
        for own in all() {
            own.own_formulas().into_iter().try_for_each(|formula| known.check_formula(own, formula))?;
        }
    }
    Ok(())
}

/// The names that a step may use.
#[derive(Default)]
struct WorkflowNames<'w> {
    steps: BTreeMap<&'w str, &'w WorkflowStep>,
    /// The stored names, with the steps that store them.
    stored: BTreeMap<&'w str, Vec<&'w str>>,
    /// The steps that have not ended when the expression is evaluated.
    hidden: BTreeSet<&'w str>,
}

impl WorkflowNames<'_> {
    fn check_formula(&self, step: &WorkflowStep, formula: &ValueExpression) -> Result<(), WorkflowError> {
        let refuse = |path: &[&str], name: &str, known: &[&str]| WorkflowError {
            step: step.id.clone(),
            place: StepLocation::Expression(formula.text().to_owned()),
            message: format!("unknown name `{}`", join_path(&[path, &[name]].concat())),
            suggestion: Some(suggest_name(path, name, known)),
        };
        let check_fields = |path: &[&str], known: &[&str]| {
            let unknown = formula.names_below(path).into_iter().find(|name| !known.contains(name));
            unknown.map_or(Ok(()), |name| Err(refuse(path, name, known)))
        };
        let has_ended = |id: &&str| !self.hidden.contains(id);
        for results in RESULT_PATHS {
            for id in formula.names_below(results) {
                let Some(other) = self.steps.get(id).filter(|_| has_ended(&id)) else {
                    return Err(refuse(results, id, &self.steps.keys().copied().filter(has_ended).collect::<Vec<_>>()));
                };
                let result = [results, &[id]].concat();
                check_fields(&result, RESULT_FIELDS)?;
                check_fields(&[&result[..], &["data"]].concat(), result_data_fields(other))?;
            }
        }
        let is_stored = |name: &&str| self.stored.get(name).is_some_and(|steps| steps.iter().any(has_ended));
        match formula.names_below(&["data"]).into_iter().find(|name| !is_stored(name)) {
            Some(name) => {
                Err(refuse(&["data"], name, &self.stored.keys().copied().filter(is_stored).collect::<Vec<_>>()))
            }
            None => Ok(()),
        }
    }
}

/// Returns the fields of a step's `data`.
fn result_data_fields(step: &WorkflowStep) -> &'static [&'static str] {
    match &step.operation {
        StepOperation::CreateTask(_) => &["taskId"],
        StepOperation::UpdateTask(_) => &["taskId", "action", "state"],
        StepOperation::Run(program) if program.capture => &["exitCode", "stdout", "stderr"],
        StepOperation::Run(_) => &["exitCode"],
        StepOperation::Choose { .. } => &["result"],
        StepOperation::Parallel { .. } | StepOperation::Nothing => &[],
    }
}
