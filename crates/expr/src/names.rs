//! The names that an expression may use: a closed set, so that the parser finds wrong ones.

use crate::spelling::{nearest_name, suggest_name};

/// The names that are known in one kind of expression.
#[derive(Debug, Clone, Copy)]
pub struct ExpressionNames(&'static [&'static [KnownName]]);

type KnownName = (&'static str, NameShape);

/// The names that can follow a name.
#[derive(Debug, Clone, Copy)]
enum NameShape {
    /// No fields.
    Plain,
    /// Any field.
    Open,
    /// Only these fields.
    Fields(&'static [KnownName]),
    /// All names of the same set, and any other.
    AllNames,
}

use NameShape::{AllNames, Fields, Open, Plain};

const HOOK_NAMES: &[KnownName] = &[
    ("point", Plain),
    ("hook", Plain),
    ("session", Plain),
    ("iteration", Plain),
    ("retries", Plain),
    ("goal", Plain),
    ("error", Plain),
    ("output", Plain),
    ("prompt", Plain),
    ("promise", Plain),
    ("agent", Plain),
    ("conversation", Plain),
    ("task_id", Plain),
    ("taskId", Plain),
    ("task_content", Plain),
    ("task", Fields(TASK_FIELDS)),
    ("task_title", Plain),
    ("task_path", Plain),
    ("task_type", Plain),
    ("branch_name", Plain),
    ("base_branch", Plain),
    ("worktree", Plain),
    ("agent_name", Plain),
    ("commits_count", Plain),
    ("extra", Fields(EXTRA_FIELDS)),
    ("event", Fields(EVENT_FIELDS)),
    ("tool_name", Plain),
    ("tool_input", Open),
    ("tool_response", Open),
    ("project_dir", Plain),
];

const TASK_FIELDS: &[KnownName] = &[
    ("id", Plain),
    ("goal", Plain),
    ("body", Plain),
    ("content", Plain),
    ("labels", Plain),
    ("priority", Plain),
    ("type", Plain),
    ("state", Plain),
    ("deliverables", Plain),
];

/// Fields of hooks between completion and acceptance of a task.
const EXTRA_FIELDS: &[KnownName] = &[
    ("remediations", Plain),
    ("rejections", Plain),
    ("change_url", Plain),
    ("change_number", Plain),
    ("stacked_on", Plain),
];

const EVENT_FIELDS: &[KnownName] = &[
    ("type", Plain),
    ("node_id", Plain),
    ("nodeId", Plain),
    ("timestamp", Plain),
    ("session", Plain),
    ("iteration", Plain),
    ("data", Open),
    ("triggered_by", Plain),
    ("triggeredBy", Plain),
    ("depth", Plain),
    ("metadata", Fields(METADATA_FIELDS)),
];

/// The same values, under their names in the log.
const METADATA_FIELDS: &[KnownName] = &[("triggeredBy", Plain), ("depth", Plain)];

/// Names of rules, besides those of hooks: the state of the agent's work.
const RULE_NAMES: &[KnownName] = &[
    ("executionPhase", Plain),
    ("filesModified", Plain),
    ("validationResults", Open),
    ("completionPromises", Open),
    ("agentOutput", Plain),
    ("draftContent", Plain),
    ("draftType", Plain),
];

/// Names of the rules of a registered stop hook: only the agent's context.
const STOP_HOOK_NAMES: &[KnownName] = &[("taskId", Plain), ("iteration", Plain)];

/// Names of feedback templates, besides those of hooks: how the hook ended.
const FEEDBACK_NAMES: &[KnownName] = &[
    ("reason", Plain),
    ("stdout", Plain),
    ("stderr", Plain),
    ("exit", Plain),
    ("retry", Plain),
    ("max_retries", Plain),
];

/// Names of prompt templates. Text by agents and hooks is fenced.
const PROMPT_NAMES: &[KnownName] = &[
    ("task", Fields(TASK_FIELDS)),
    ("goal", Plain),
    ("session", Plain),
    ("iteration", Plain),
    ("max_iterations", Plain),
    ("notes", Plain),
    ("history", Plain),
    ("last_output", Plain),
    ("feedback", Plain),
    ("signal", Plain),
];

/// Names of workflows, besides those of hooks: results of steps, and the given context.
const WORKFLOW_NAMES: &[KnownName] =
    &[("workflow", Fields(&[("id", Plain), ("name", Plain)])), ("steps", Open), ("data", Open), ("context", AllNames)];

impl ExpressionNames {
    /// Returns the names for a hook's condition and its prompt.
    pub const fn for_hook() -> Self {
        Self(&[HOOK_NAMES])
    }

    /// Returns the names for rules.
    pub const fn for_rules() -> Self {
        Self(&[HOOK_NAMES, RULE_NAMES])
    }

    /// Returns the names for rules of a registered stop hook.
    pub const fn for_stop_hook() -> Self {
        Self(&[STOP_HOOK_NAMES, RULE_NAMES])
    }

    /// Returns the names for feedback templates. There `output` is the output of the hook, not of the agent.
    pub const fn for_feedback() -> Self {
        Self(&[HOOK_NAMES, FEEDBACK_NAMES])
    }

    /// Returns the names for workflows.
    pub const fn for_workflow() -> Self {
        Self(&[HOOK_NAMES, WORKFLOW_NAMES])
    }

    /// Returns the names for the prompt of a session.
    pub const fn for_prompt() -> Self {
        Self(&[PROMPT_NAMES])
    }

    /// Returns every name, without fields.
    pub fn root_names(&self) -> impl Iterator<Item = &'static str> {
        self.root_entries().map(|(name, _)| *name)
    }

    fn root_entries(&self) -> impl Iterator<Item = &'static KnownName> {
        self.0.iter().copied().flatten()
    }

    /// Checks that all parts of a path are known. The error is the number of known parts.
    pub(super) fn check_known_path(&self, path: &[&str]) -> Result<(), usize> {
        self.entries_below(path).map(drop)
    }

    /// Returns the names below a path, or `None` if any name is allowed there.
    fn entries_below(&self, path: &[&str]) -> Result<Option<Vec<&'static KnownName>>, usize> {
        let mut fields: Vec<&'static KnownName> = self.root_entries().collect();
        for (depth, part) in path.iter().enumerate() {
            fields = match fields.iter().find(|(name, _)| name == part).map(|(_, shape)| shape) {
                None => return Err(depth),
                Some(Open) => return Ok(None),
                Some(AllNames) => {
                    // The context may hold a value with fields in place of a name that has none.
                    let is_next =
                        |(name, shape): &&KnownName| Some(name) == path.get(depth + 1) && !matches!(shape, Plain);
                    if self.root_entries().find(is_next).is_none() {
                        return Ok(None);
                    }
                    self.root_entries().collect()
                }
                Some(Plain) => Vec::new(),
                Some(Fields(below)) => below.iter().collect(),
            };
        }
        Ok(Some(fields))
    }

    /// Returns a suggestion for a path of which only the last part is unknown.
    pub(super) fn suggest_path(&self, path: &[&str]) -> String {
        let Some((last, parents)) = path.split_last() else { return String::new() };
        let below = self.entries_below(parents).ok().flatten().unwrap_or_default();
        let siblings: Vec<&str> = below.into_iter().map(|(name, _)| *name).collect();
        match self.find_field_owner(last).filter(|_| parents.is_empty() && nearest_name(last, &siblings).is_none()) {
            Some(owner) => format!("did you mean `{owner}.{last}`?"),
            None => suggest_name(parents, last, &siblings),
        }
    }

    /// Returns the first name that has this field.
    fn find_field_owner(&self, field: &str) -> Option<&'static str> {
        let owns = |shape: &NameShape| matches!(shape, Fields(below) if below.iter().any(|(name, _)| *name == field));
        self.root_entries().find(|(_, shape)| owns(shape)).map(|(name, _)| *name)
    }
}
