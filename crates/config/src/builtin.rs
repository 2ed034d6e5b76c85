//! The hooks that ship with Windlass.

use std::fmt::{self, Display};

/// A hook that a configuration selects by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BuiltinHook {
    RebaseOnMain,
    RunTests,
    CreatePr,
    MergePr,
    Gatekeeper,
    AutoLabelByKeyword,
    AutoCreateReviewTask,
    CheckDependencySatisfaction,
    TrackAgentTaskLifecycle,
}

impl BuiltinHook {
    pub const ALL: &[Self] = &[
        Self::RebaseOnMain,
        Self::RunTests,
        Self::CreatePr,
        Self::MergePr,
        Self::Gatekeeper,
        Self::AutoLabelByKeyword,
        Self::AutoCreateReviewTask,
        Self::CheckDependencySatisfaction,
        Self::TrackAgentTaskLifecycle,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::RebaseOnMain => "rebase_on_main",
            Self::RunTests => "run_tests",
            Self::CreatePr => "create_pr",
            Self::MergePr => "merge_pr",
            Self::Gatekeeper => "gatekeeper",
            Self::AutoLabelByKeyword => "auto-label-by-keyword",
            Self::AutoCreateReviewTask => "auto-create-review-task",
            Self::CheckDependencySatisfaction => "check-dependency-satisfaction",
            Self::TrackAgentTaskLifecycle => "track-agent-task-lifecycle",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|builtin| builtin.name() == name)
    }

    pub fn all_names() -> Vec<&'static str> {
        Self::ALL.iter().map(|builtin| builtin.name()).collect()
    }

    /// Describes the hook's effect. Returns `None` for the hooks of the registry, which only read the graph.
    pub fn describe_effect(self) -> Option<&'static str> {
        match self {
            Self::RebaseOnMain => Some("git: fetch, and rebase onto the base branch"),
            Self::RunTests => Some("runs the project's tests"),
            Self::CreatePr => Some("git: push the branch, and open a change on the forge"),
            Self::MergePr => Some("git: merge the change into the base branch"),
            Self::Gatekeeper => Some("an agent judges the change, by the brief `review`"),
            Self::AutoLabelByKeyword
            | Self::AutoCreateReviewTask
            | Self::CheckDependencySatisfaction
            | Self::TrackAgentTaskLifecycle => None,
        }
    }

    /// Returns whether the hook is in the registry. Naming such a hook reconfigures it and adds no second one.
    pub fn is_registered(self) -> bool {
        self.describe_effect().is_none()
    }
}

impl Display for BuiltinHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for builtin in BuiltinHook::ALL {
            assert_eq!(Builtin::parse(builtin.name()), Some(*builtin));
        }
        assert_eq!(Builtin::parse("create-pr"), None);
    }
}
