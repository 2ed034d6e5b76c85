//! Parallel steps.
//!
//! If all branches have to end, programs run at the same time, and changes of the graph are made with the end of the step. If one
//! branch is enough, the branches without programs are tried first, in the order of the file. Programs start only if none of
//! these succeeds, and the first program that succeeds cancels the others.
//!
//! The log has a change of the graph with the end of the step, or the change was never made. So after a crash only
//! programs that may not run again have failed, and the rest is done then.

use std::time::Duration;

use serde_json::Map;
use windlass_engine::ActionRequest;
use windlass_engine::workflow::{Branch, Did, Program, Several, Step, StepResult, Wanted, What};
use windlass_expr::Allowance;
use windlass_process::run_apart;

use super::program::{Prepared, came_to, side_by_side, stored};
use super::{Doing, Done, interrupted};
use crate::EffectRunner;

impl EffectRunner<'_> {
    /// Returns the result of a step that needs no program, if one successful branch is enough.
    pub(super) fn at_once(&self, doing: &Doing<'_>) -> Option<Done> {
        let What::Parallel { steps, wait_for_all: false } = &doing.step.what else { return None };
        let mut left = Allowance::default();
        let branches: Vec<Branch> = steps.iter().filter_map(|step| instant(doing, step, &mut left)).collect();
        if branches.is_empty() && !steps.is_empty() {
            return None;
        }
        let wanted = if branches.len() < steps.len() { Wanted::OneOfMore } else { Wanted::One };
        let did = Did::Several(Several { branches, wanted });
        Some(Done { did, stored: Map::new(), on_success: doing.step.on_success.clone() })
    }

    /// Runs programs side by side. Changes of the graph are made with the end of the step.
    pub(super) fn do_several(&self, doing: &Doing<'_>, steps: &[Step], all: bool) -> Done {
        let mut left = Allowance::default();
        let mut branches: Vec<(usize, Branch)> = Vec::new();
        let mut programs: Vec<(usize, &Step, &Program, Prepared)> = Vec::new();
        for (place, step) in steps.iter().enumerate() {
            match &step.what {
                What::Run(program) if !doing.is_lost(program) => match self.prepared(doing, step, program, &mut left) {
                    Ok(prepared) => programs.push((place, step, program, prepared)),
                    Err(result) => branches.push((place, Branch::Ended(result))),
                },
                _ => branches.extend(instant(doing, step, &mut left).map(|branch| (place, branch))),
            }
        }
        let control = self.control.apart();
        let specs: Vec<_> = programs.iter().map(|(.., prepared)| &prepared.spec).collect();
        let launcher = self.settings.launcher.as_ref();
        let ran = side_by_side(&specs, &control, all, |spec, control| run_apart(launcher, spec, self.roster, control));
        self.known.forget_changeable();
        let mut left_behind = Map::new();
        for ((place, step, program, prepared), ran) in programs.iter().zip(ran) {
            let result = came_to(step, program, ran, &prepared.limit, |ran| self.read(ran));
            left_behind.extend(stored(program, &result));
            branches.push((*place, Branch::Ended(result)));
        }
        branches.sort_by_key(|(place, _)| *place);
        let branches = branches.into_iter().map(|(_, branch)| branch).collect();
        let wanted = if all { Wanted::All } else { Wanted::One };
        let did = Did::Several(Several { branches, wanted });
        Done { did, stored: left_behind, on_success: doing.step.on_success.clone() }
    }
}

/// Returns the result of a branch that runs no program.
fn instant(doing: &Doing<'_>, step: &Step, left: &mut Allowance) -> Option<Branch> {
    match &step.what {
        What::CreateTask(pattern) | What::UpdateTask(pattern) => Some(match pattern.fill_within(doing.context, left) {
            Ok(payload) => {
                let request = ActionRequest { kind: step.kind().to_owned(), payload };
                Branch::Act { step: step.id.clone(), request }
            }
            Err(fault) => Branch::Ended(StepResult::failed(&step.id, fault.to_string(), Duration::ZERO)),
        }),
        What::Run(program) => doing.is_lost(program).then(|| Branch::Ended(interrupted(step))),
        What::Choose { .. } | What::Parallel { .. } | What::Nothing => {
            Some(Branch::Ended(StepResult::succeeded(&step.id, None, Duration::ZERO)))
        }
    }
}
