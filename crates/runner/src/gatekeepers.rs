//! Gatekeepers, agents that judge the work of others, and their briefs.

use std::collections::BTreeMap;
use std::time::Duration;

use windlass_agents::Agent;
use windlass_engine::{Task, TypeName};

/// Agents that judge, and their briefs. All of them are set up to read, and not to change anything.
#[derive(Debug, Clone, Default)]
pub struct Gatekeepers {
    /// Gatekeepers of the task types that name their own. No other agent judges there.
    pub of_types: BTreeMap<TypeName, Vec<Agent>>,
    /// Gatekeeper of all other tasks.
    pub usual: Option<Agent>,
    /// Text of each brief.
    pub briefs: BTreeMap<String, String>,
    /// Output-idle timeout of a gatekeeper that writes while it works.
    pub silence: Option<Duration>,
}

impl Gatekeepers {
    /// Picks the gatekeeper for a brief, given by its index: another agent for each, as far as there are others, and not the one
    /// that did the work. The same brief of the same task gets the same agent again.
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
