//! Workflows: several steps, one after another, each of which says what comes next.
//!
//! ```text
//! first step ─► does something ─┬─ success ─► onSuccess, or the workflow is completed
//!                               └─ failure ─► onFailure, or the workflow has failed
//! ```
//!
//! Invariants:
//! - Every step that is named is there, every step can be reached, and from each the end can be.
//! - How far a run has come is in its effect: the step that comes next, the one that is under way, and which events say what
//!   the others came to. So a crash costs at most the step that was under way.
//!
//! Not here: files and where something stands in them (`config`), how a program is run (`runner`).

mod check;
mod names;
mod progress;

use core::time::Duration;

use windlass_expr::{Formula, Pattern};

use crate::log::id::Digest;

pub use check::{FlowError, Place};

pub use progress::{Branch, Did, Known, Progress, Several, StepEnd, StepResult, Wanted, check_given};

/// A workflow, as it was written.
#[derive(Debug, Clone)]
pub struct Workflow {
    pub id: String,
    pub name: Option<String>,
    pub description: Option<String>,
    pub steps: Vec<Step>,
    /// Of the text that it was read from.
    pub digest: Digest,
}

#[derive(Debug, Clone)]
pub struct Step {
    pub id: String,
    pub what: What,
    pub on_success: Option<String>,
    pub on_failure: Option<String>,
}

/// What a step does.
#[derive(Debug, Clone)]
pub enum What {
    /// The payload of the action.
    CreateTask(Pattern),
    UpdateTask(Pattern),
    Run(Program),
    Choose {
        predicate: Formula,
        on_true: Option<String>,
        on_false: Option<String>,
    },
    /// Several at once.
    Parallel {
        steps: Vec<Step>,
        /// Whether it succeeds with all of them, or as soon as one has.
        wait_for_all: bool,
    },
    Nothing,
}

/// A program with its arguments. No shell has a look at them.
#[derive(Debug, Clone)]
pub struct Program {
    pub command: Pattern,
    pub args: Vec<Pattern>,
    /// Whether what it prints is kept.
    pub capture: bool,
    /// The name under which later steps find what it printed.
    pub store_as: Option<String>,
    pub timeout: Duration,
    /// Whether it may run again after a crash.
    pub idempotent: bool,
}

impl Workflow {
    pub fn step(&self, id: &str) -> Option<&Step> {
        self.steps.iter().find(|step| step.id == id)
    }

    /// Every step, those within others too.
    pub fn all_steps(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().flat_map(|step| std::iter::once(step).chain(step.within()))
    }
}

impl Step {
    /// The steps of a parallel one.
    pub fn within(&self) -> &[Step] {
        match &self.what {
            What::Parallel { steps, .. } => steps,
            _ => &[],
        }
    }

    /// As it is written.
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

    /// The expressions of it, without those of steps within it.
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

    /// The names of steps that may come after it. Without one of them it may be the last.
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
