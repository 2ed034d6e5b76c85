//! The names that an expression may use: a closed set, so that the parser finds wrong ones.

use crate::spelling::{nearest, suggest_name};

/// The names that are known in one kind of expression.
#[derive(Debug, Clone, Copy)]
pub struct Names(&'static [&'static [Name]]);

type Name = (&'static str, Shape);

/// The names that can follow a name.
#[derive(Debug, Clone, Copy)]
enum Shape {
    /// No fields.
    Plain,
    /// Any field.
    Open,
    /// Only these fields.
    Fields(&'static [Name]),
    /// All names of the same set, and any other.
    Again,
}

use Shape::{Again, Fields, Open, Plain};

const HOOK: &[Name] = &[
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
    ("task", Fields(TASK)),
    ("task_title", Plain),
    ("task_path", Plain),
    ("task_type", Plain),
    ("branch_name", Plain),
    ("base_branch", Plain),
    ("worktree", Plain),
    ("agent_name", Plain),
    ("commits_count", Plain),
    ("extra", Fields(EXTRA)),
    ("event", Fields(EVENT)),
    ("tool_name", Plain),
    ("tool_input", Open),
    ("tool_response", Open),
    ("project_dir", Plain),
];

const TASK: &[Name] = &[
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
const EXTRA: &[Name] = &[
    ("remediations", Plain),
    ("rejections", Plain),
    ("change_url", Plain),
    ("change_number", Plain),
    ("stacked_on", Plain),
];

const EVENT: &[Name] = &[
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
    ("metadata", Fields(METADATA)),
];

/// The same values, under their names in the log.
const METADATA: &[Name] = &[("triggeredBy", Plain), ("depth", Plain)];

/// Names of rules, besides those of hooks: the state of the agent's work.
const RULES: &[Name] = &[
    ("executionPhase", Plain),
    ("filesModified", Plain),
    ("validationResults", Open),
    ("completionPromises", Open),
    ("agentOutput", Plain),
    ("draftContent", Plain),
    ("draftType", Plain),
];

/// Names of the rules of a registered stop hook: only the agent's context.
const STOP_HOOK: &[Name] = &[("taskId", Plain), ("iteration", Plain)];

/// Names of feedback templates, besides those of hooks: how the hook ended.
const FEEDBACK: &[Name] = &[
    ("reason", Plain),
    ("stdout", Plain),
    ("stderr", Plain),
    ("exit", Plain),
    ("retry", Plain),
    ("max_retries", Plain),
];

/// Names of prompt templates. Text by agents and hooks is fenced.
const PROMPT: &[Name] = &[
    ("task", Fields(TASK)),
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
const WORKFLOW: &[Name] =
    &[("workflow", Fields(&[("id", Plain), ("name", Plain)])), ("steps", Open), ("data", Open), ("context", Again)];

impl Names {
    /// Returns the names for a hook's condition and its prompt.
    pub const fn hook() -> Self {
        Self(&[HOOK])
    }

    /// Returns the names for rules.
    pub const fn rules() -> Self {
        Self(&[HOOK, RULES])
    }

    /// Returns the names for rules of a registered stop hook.
    pub const fn stop_hook() -> Self {
        Self(&[STOP_HOOK, RULES])
    }

    /// Returns the names for feedback templates. There `output` is the output of the hook, not of the agent.
    pub const fn feedback() -> Self {
        Self(&[HOOK, FEEDBACK])
    }

    /// Returns the names for workflows.
    pub const fn workflow() -> Self {
        Self(&[HOOK, WORKFLOW])
    }

    /// Returns the names for the prompt of a session.
    pub const fn prompt() -> Self {
        Self(&[PROMPT])
    }

    /// Returns every name, without fields.
    pub fn all(&self) -> impl Iterator<Item = &'static str> {
        self.roots().map(|(name, _)| *name)
    }

    fn roots(&self) -> impl Iterator<Item = &'static Name> {
        self.0.iter().copied().flatten()
    }

    /// Checks that all parts of a path are known. The error is the number of known parts.
    pub(super) fn known_part(&self, path: &[&str]) -> Result<(), usize> {
        self.names_below(path).map(drop)
    }

    /// Returns the names below a path, or `None` if any name is allowed there.
    fn names_below(&self, path: &[&str]) -> Result<Option<Vec<&'static Name>>, usize> {
        let mut fields: Vec<&'static Name> = self.roots().collect();
        for (depth, part) in path.iter().enumerate() {
            fields = match fields.iter().find(|(name, _)| name == part).map(|(_, shape)| shape) {
                None => return Err(depth),
                Some(Open) => return Ok(None),
                Some(Again) => {
                    // The context may hold a value with fields in place of a name that has none.
                    let is_next = |(name, shape): &&Name| Some(name) == path.get(depth + 1) && !matches!(shape, Plain);
                    if self.roots().find(is_next).is_none() {
                        return Ok(None);
                    }
                    self.roots().collect()
                }
                Some(Plain) => Vec::new(),
                Some(Fields(below)) => below.iter().collect(),
            };
        }
        Ok(Some(fields))
    }

    /// Returns a suggestion for a path of which only the last part is unknown.
    pub(super) fn suggestion(&self, path: &[&str]) -> String {
        let Some((last, parents)) = path.split_last() else { return String::new() };
        let below = self.names_below(parents).ok().flatten().unwrap_or_default();
        let siblings: Vec<&str> = below.into_iter().map(|(name, _)| *name).collect();
        match self.owner_of(last).filter(|_| parents.is_empty() && nearest(last, &siblings).is_none()) {
            Some(owner) => format!("did you mean `{owner}.{last}`?"),
            None => suggest_name(parents, last, &siblings),
        }
    }

    /// Returns the first name that has this field.
    fn owner_of(&self, field: &str) -> Option<&'static str> {
        let owns = |shape: &Shape| matches!(shape, Fields(below) if below.iter().any(|(name, _)| *name == field));
        self.roots().find(|(_, shape)| owns(shape)).map(|(name, _)| *name)
    }
}
