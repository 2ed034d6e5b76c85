//! Who judges the work of others, and by which briefs.

use std::collections::BTreeMap;
use std::time::Duration;

use windlass_agents::Agent;
use windlass_engine::{Task, TypeName};

/// Who judges, and by what. All of them are set up to look, and not to change anything.
#[derive(Debug, Clone, Default)]
pub struct Gatekeepers {
    /// Those of types of tasks that name them: nobody else judges there.
    pub of_types: BTreeMap<TypeName, Vec<Agent>>,
    /// Whoever judges the rest.
    pub usual: Option<Agent>,
    /// What each brief says.
    pub briefs: BTreeMap<String, String>,
    /// How long one that writes while it works may be silent.
    pub silence: Option<Duration>,
}

impl Gatekeepers {
    /// Who judges a task by a brief, which is told by its place in the list: another one for each, as far as there are others, and not the one who did
    /// the work. The same brief of the same task is for the same one again.
    pub(crate) fn pick(&self, task: Option<&Task>, implementer: &str, brief: usize) -> Option<&Agent> {
        let own = task.and_then(|task| self.of_types.get(task.kind.as_ref()?));
        let all: Vec<&Agent> = match own {
            Some(agents) => agents.iter().collect(),
            None => self.usual.iter().collect(),
        };
        let others: Vec<&Agent> = all.iter().copied().filter(|agent| agent.name != implementer).collect();
        let from = if others.is_empty() { all } else { others };
        let first = task.and_then(|task| usize::try_from(task.id.0).ok()).unwrap_or(0);
        from.get(first.wrapping_add(brief).checked_rem(from.len())?).copied()
    }

    pub(crate) fn brief(&self, name: &str) -> &str {
        self.briefs.get(name).map_or("Judge whether this change may be merged as it is.", String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use windlass_agents::AgentKind;

    use super::*;

    fn agent(name: &str) -> Agent {
        Agent::plain(name, AgentKind::Command(name.to_owned()))
    }

    #[test]
    fn whoever_did_the_work_judges_it_only_where_nobody_else_may() {
        let usual = Gatekeepers { usual: Some(agent("claude")), ..Gatekeepers::default() };
        let picked = |brief| usual.pick(None, "claude", brief).map(|agent| agent.name.as_str());
        assert_eq!((picked(0), picked(1)), (Some("claude"), Some("claude")));
        assert!(Gatekeepers::default().pick(None, "claude", 0).is_none());
    }
}
