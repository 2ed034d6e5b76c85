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
mod names;
mod progress;

use core::time::Duration;

use windlass_expr::{Formula, Pattern};

use crate::log::id::Digest;

pub use check::{FlowError, Place};

pub use progress::{Branch, Did, Known, Progress, Several, StepEnd, StepResult, Wanted, check_given};

/// The definition of a workflow.
#[derive(Debug, Clone)]
pub struct Workflow {
    pub id: String,
    pub name: Option<String>,
    pub description: Option<String>,
    pub steps: Vec<Step>,
    /// The digest of the source text.
    pub digest: Digest,
}

#[derive(Debug, Clone)]
pub struct Step {
    pub id: String,
    pub what: What,
    pub on_success: Option<String>,
    pub on_failure: Option<String>,
}

/// The operation of a step.
#[derive(Debug, Clone)]
pub enum What {
    /// Creates a task. The pattern is the payload of the action.
    CreateTask(Pattern),
    UpdateTask(Pattern),
    Run(Program),
    Choose {
        predicate: Formula,
        on_true: Option<String>,
        on_false: Option<String>,
    },
    /// Runs several steps at once.
    Parallel {
        steps: Vec<Step>,
        /// Whether all steps have to succeed, or one of them.
        wait_for_all: bool,
    },
    Nothing,
}

/// A program with its arguments. No shell interprets them.
#[derive(Debug, Clone)]
pub struct Program {
    pub command: Pattern,
    pub args: Vec<Pattern>,
    /// Whether the output of the program is captured.
    pub capture: bool,
    /// The name under which later steps find the output.
    pub store_as: Option<String>,
    pub timeout: Duration,
    /// Whether the program may run again after a crash.
    pub idempotent: bool,
}

impl Workflow {
    pub fn step(&self, id: &str) -> Option<&Step> {
        self.steps.iter().find(|step| step.id == id)
    }

    /// Returns every step, including nested ones.
    pub fn all_steps(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().flat_map(|step| std::iter::once(step).chain(step.within()))
    }
}

impl Step {
    /// Returns the nested steps of a parallel step.
    pub fn within(&self) -> &[Step] {
        match &self.what {
            What::Parallel { steps, .. } => steps,
            _ => &[],
        }
    }

    /// Returns the name of the operation in the configuration.
    pub fn kind(&self) -> &'static str {
        match self.what {
            What::CreateTask(_) => "create_task",
            What::UpdateTask(_) => "update_task",
            What::Run(_) => "execute_command",
            What::Choose { .. } => "condition",
            What::Parallel { .. } => "parallel",
            What::Nothing => "noop",
        }
    }

    /// Returns the step's own expressions, without those of nested steps.
    fn formulas(&self) -> Vec<&Formula> {
        match &self.what {
            What::CreateTask(pattern) | What::UpdateTask(pattern) => pattern.formulas(),
            What::Run(program) => {
                std::iter::once(&program.command).chain(&program.args).flat_map(Pattern::formulas).collect()
            }
            What::Choose { predicate, .. } => vec![predicate],
            What::Parallel { .. } | What::Nothing => Vec::new(),
        }
    }

    /// Returns the possible next steps, each with its field. `None` means that the workflow may end here.
    fn ways(&self) -> Vec<(&'static str, Option<&str>)> {
        let after = ("onSuccess", self.on_success.as_deref());
        let mut ways = match &self.what {
            What::Choose { on_true, on_false, .. } => vec![
                ("onTrue", on_true.as_deref().or(self.on_success.as_deref())),
                ("onFalse", on_false.as_deref().or(self.on_success.as_deref())),
            ],
            _ => vec![after],
        };
        ways.extend(self.on_failure.as_deref().map(|step| ("onFailure", Some(step))));
        ways
    }
}
