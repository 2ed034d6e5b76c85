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
use windlass_engine::workflow::{
    BranchOutcome, ParallelOutcome, StepExecution, StepOperation, StepProgram, StepResult, SuccessPolicy, WorkflowStep,
};
use windlass_expr::EvaluationBudget;
use windlass_process::run_with_own_supervisor;

use super::program::{PreparedProgram, program_result, run_side_by_side, stored_value};
use super::{ExecutedStep, StepRun, interrupted_result};
use crate::EffectRunner;

impl EffectRunner<'_> {
    /// Returns the result of a step that needs no program, if one successful branch is enough.
    pub(super) fn try_without_program(&self, doing: &StepRun<'_>) -> Option<ExecutedStep> {
        let StepOperation::Parallel { steps, wait_for_all: false } = &doing.step.operation else { return None };
        let mut left = EvaluationBudget::default();
        let branches: Vec<BranchOutcome> =
            steps.iter().filter_map(|step| branch_without_program(doing, step, &mut left)).collect();
        if branches.is_empty() && !steps.is_empty() {
            return None;
        }
        let wanted = if branches.len() < steps.len() { SuccessPolicy::OneOrContinue } else { SuccessPolicy::One };
        let did = StepExecution::Parallel(ParallelOutcome { branches, wanted });
        Some(ExecutedStep { did, stored: Map::new(), on_success: doing.step.on_success.clone() })
    }

    /// Runs programs side by side. Changes of the graph are made with the end of the step.
    pub(super) fn run_parallel_steps(&self, doing: &StepRun<'_>, steps: &[WorkflowStep], all: bool) -> ExecutedStep {
        let mut left = EvaluationBudget::default();
        let mut branches: Vec<(usize, BranchOutcome)> = Vec::new();
        let mut programs: Vec<(usize, &WorkflowStep, &StepProgram, PreparedProgram)> = Vec::new();
        for (place, step) in steps.iter().enumerate() {
            match &step.operation {
                StepOperation::Run(program) if !doing.is_program_lost(program) => {
                    match self.prepare_program(doing, step, program, &mut left) {
                        Ok(prepared) => programs.push((place, step, program, prepared)),
                        Err(result) => branches.push((place, BranchOutcome::Ended(result))),
                    }
                }
                _ => branches.extend(branch_without_program(doing, step, &mut left).map(|branch| (place, branch))),
            }
        }
        let control = self.control.with_own_cancel();
        let specs: Vec<_> = programs.iter().map(|(.., prepared)| &prepared.spec).collect();
        let launcher = self.settings.launcher.as_ref();
        let ran = run_side_by_side(&specs, &control, all, |spec, control| {
            run_with_own_supervisor(launcher, spec, self.owner_lock, control)
        });
        self.known.forget_changeable_facts();
        let mut left_behind = Map::new();
        for ((place, step, program, prepared), ran) in programs.iter().zip(ran) {
            let result = program_result(step, program, ran, &prepared.limit, |ran| self.mask_output(ran));
            left_behind.extend(stored_value(program, &result));
            branches.push((*place, BranchOutcome::Ended(result)));
        }
        branches.sort_by_key(|(place, _)| *place);
        let branches = branches.into_iter().map(|(_, branch)| branch).collect();
        let wanted = if all { SuccessPolicy::All } else { SuccessPolicy::One };
        let did = StepExecution::Parallel(ParallelOutcome { branches, wanted });
        ExecutedStep { did, stored: left_behind, on_success: doing.step.on_success.clone() }
    }
}

/// Returns the result of a branch that runs no program.
fn branch_without_program(
    doing: &StepRun<'_>,
    step: &WorkflowStep,
    left: &mut EvaluationBudget,
) -> Option<BranchOutcome> {
    match &step.operation {
        StepOperation::CreateTask(pattern) | StepOperation::UpdateTask(pattern) => {
            Some(match pattern.fill_within_budget(doing.context, left) {
                Ok(payload) => {
                    let request = ActionRequest { kind: step.kind_name().to_owned(), payload };
                    BranchOutcome::RunAction { step: step.id.clone(), request }
                }
                Err(fault) => BranchOutcome::Ended(StepResult::failed(&step.id, fault.to_string(), Duration::ZERO)),
            })
        }
        StepOperation::Run(program) => {
            doing.is_program_lost(program).then(|| BranchOutcome::Ended(interrupted_result(step)))
        }
        StepOperation::Choose { .. } | StepOperation::Parallel { .. } | StepOperation::Nothing => {
            Some(BranchOutcome::Ended(StepResult::succeeded(&step.id, None, Duration::ZERO)))
        }
    }
}
