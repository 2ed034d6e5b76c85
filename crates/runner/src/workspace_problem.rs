//! Problems of worktrees, and errors of git as text.

use std::borrow::Cow;
use std::fmt::{self, Display};

use windlass_vcs::git::Error;

/// Reason why a worktree cannot be opened.
pub(crate) enum WorkspaceError {
    /// A problem of this task, for a person.
    Task(WorkspaceProblem),
    /// A problem of the repository or the machine: no agent can work here.
    Outside(WorkspaceProblem),
}

/// A problem with its cause and a hint.
#[derive(Debug)]
pub struct WorkspaceProblem {
    pub cause: String,
    pub hint: Option<String>,
}

impl Display for WorkspaceProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.cause)?;
        self.hint.iter().try_for_each(|hint| write!(f, "; {hint}"))
    }
}

impl WorkspaceProblem {
    pub(crate) fn from_cause(cause: String) -> Self {
        Self { cause, hint: None }
    }

    pub(crate) fn from_git_error(error: &Error) -> Self {
        Self { cause: describe_causes(error), hint: error.hint().map(Cow::into_owned) }
    }
}

impl From<Error> for WorkspaceError {
    fn from(error: Error) -> Self {
        let said = WorkspaceProblem::from_git_error(&error);
        match error {
            Error::Conflict { .. }
            | Error::BranchTaken { .. }
            | Error::CheckedOut { .. }
            | Error::Occupied { .. }
            | Error::WorktreeLocked { .. }
            | Error::BadName { .. } => Self::Task(said),
            _ => Self::Outside(said),
        }
    }
}

/// Describes an error of git with its causes and its hint.
pub(crate) fn explain_git_error(error: &Error) -> String {
    WorkspaceProblem::from_git_error(error).to_string()
}

/// Describes an error with its causes on one line.
pub(crate) fn describe_causes(error: &dyn std::error::Error) -> String {
    let mut said = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        said.push_str(&format!(": {next}"));
        cause = next.source();
    }
    said
}
