//! Workflows: several steps, one after another, each of which names the next one.
//!
//! ```text
//! first step ─► does something ─┬─ success ─► onSuccess, or the workflow is completed
//!                               └─ failure ─► onFailure, or the workflow has failed
//! ```
//!
//! Invariants:
//! - Every step that is named exists, every step can be reached, and each can reach the end.
//! - The progress of a run is in its effect: the next step, the running one, and the events with the results of the finished
//!   ones. So a crash costs at most the running step.
//!
//! Not here: files and positions in them (`config`), how programs run (`runner`).

mod check;
mod name_check;
mod progress;

use core::time::Duration;

use windlass_expr::{ValueExpression, ValuePattern};

use crate::log::id::Digest;

pub use check::{StepLocation, WorkflowError};

pub use progress::{
    BranchOutcome, ParallelOutcome, StepExecution, StepReport, StepResult, StepVariables, SuccessPolicy,
    WorkflowProgress, check_context_entry,
};

/// The definition of a workflow.
#[derive(Debug, Clone)]
pub struct Workflow {
    pub id: String,
    pub name: Option<String>,
    pub description: Option<String>,
    pub steps: Vec<WorkflowStep>,
    /// The digest of the source text.
    pub digest: Digest,
}

#[derive(Debug, Clone)]
pub struct WorkflowStep {
    pub id: String,
    pub operation: StepOperation,
    pub on_success: Option<String>,
    pub on_failure: Option<String>,
}

/// The operation of a step.
#[derive(Debug, Clone)]
pub enum StepOperation {
    /// Creates a task. The pattern is the payload of the action.
    CreateTask(ValuePattern),
    UpdateTask(ValuePattern),
    Run(StepProgram),
    Choose {
        predicate: ValueExpression,
        on_true: Option<String>,
        on_false: Option<String>,
    },
    /// Runs several steps at once.
    Parallel {
        steps: Vec<WorkflowStep>,
        /// Whether all steps have to succeed, or one of them.
        wait_for_all: bool,
    },
    Nothing,
}

/// A program with its arguments. No shell interprets them.
#[derive(Debug, Clone)]
pub struct StepProgram {
    pub command: ValuePattern,
    pub args: Vec<ValuePattern>,
    /// Whether the output of the program is captured.
    pub capture: bool,
    /// The name under which later steps find the output.
    pub store_as: Option<String>,
    pub timeout: Duration,
    /// Whether the program may run again after a crash.
    pub idempotent: bool,
}

impl Workflow {
    pub fn find_step(&self, id: &str) -> Option<&WorkflowStep> {
        self.steps.iter().find(|step| step.id == id)
    }

    /// Returns every step, including nested ones.
    pub fn all_steps(&self) -> impl Iterator<Item = &WorkflowStep> {
        self.steps.iter().flat_map(|step| std::iter::once(step).chain(step.nested_steps()))
    }
}

impl WorkflowStep {
    /// Returns the nested steps of a parallel step.
    pub fn nested_steps(&self) -> &[WorkflowStep] {
        match &self.operation {
            StepOperation::Parallel { steps, .. } => steps,
            _ => &[],
        }
    }

    /// Returns the name of the operation in the configuration.
    pub fn kind_name(&self) -> &'static str {
        match self.operation {
            StepOperation::CreateTask(_) => "create_task",
            StepOperation::UpdateTask(_) => "update_task",
            StepOperation::Run(_) => "execute_command",
            StepOperation::Choose { .. } => "condition",
            StepOperation::Parallel { .. } => "parallel",
            StepOperation::Nothing => "noop",
        }
    }

    /// Returns the step's own expressions, without those of nested steps.
    fn own_formulas(&self) -> Vec<&ValueExpression> {
        match &self.operation {
            StepOperation::CreateTask(pattern) | StepOperation::UpdateTask(pattern) => pattern.collect_expressions(),
            StepOperation::Run(program) => std::iter::once(&program.command)
                .chain(&program.args)
                .flat_map(ValuePattern::collect_expressions)
                .collect(),
            StepOperation::Choose { predicate, .. } => vec![predicate],
            StepOperation::Parallel { .. } | StepOperation::Nothing => Vec::new(),
        }
    }

    /// Returns the possible next steps, each with its field. `None` means that the workflow may end here.
    fn outgoing_edges(&self) -> Vec<(&'static str, Option<&str>)> {
        let after = ("onSuccess", self.on_success.as_deref());
        let mut ways = match &self.operation {
            StepOperation::Choose { on_true, on_false, .. } => vec![
                ("onTrue", on_true.as_deref().or(self.on_success.as_deref())),
                ("onFalse", on_false.as_deref().or(self.on_success.as_deref())),
            ],
            _ => vec![after],
        };
        ways.extend(self.on_failure.as_deref().map(|step| ("onFailure", Some(step))));
        ways
    }
}
