//! Gatekeepers, agents that judge the work of others, and their briefs.

use std::collections::BTreeMap;
use std::time::Duration;

use windlass_agents::Agent;
use windlass_engine::{Task, TypeName};

/// Agents that judge, and their briefs. All of them are set up to read, and not to change anything.
#[derive(Debug, Clone, Default)]
pub struct GatekeeperSettings {
    /// Gatekeepers of the task types that name their own. No other agent judges there.
    pub by_task_type: BTreeMap<TypeName, Vec<Agent>>,
    /// Gatekeeper of all other tasks.
    pub default_agent: Option<Agent>,
    /// Text of each brief.
    pub briefs: BTreeMap<String, String>,
    /// Output-idle timeout of a gatekeeper that writes while it works.
    pub idle_timeout: Option<Duration>,
}

impl GatekeeperSettings {
    /// Picks the gatekeeper for a brief, given by its index: another agent for each, as far as there are others, and not the one
    /// that did the work. The same brief of the same task gets the same agent again.
    pub(crate) fn pick_gatekeeper(&self, task: Option<&Task>, implementer: &str, brief: usize) -> Option<&Agent> {
        let own = task.and_then(|task| self.by_task_type.get(task.kind.as_ref()?));
        let all: Vec<&Agent> = match own {
            Some(agents) => agents.iter().collect(),
            None => self.default_agent.iter().collect(),
        };
        let others: Vec<&Agent> = all.iter().copied().filter(|agent| agent.name != implementer).collect();
        let from = if others.is_empty() { all } else { others };
        let first = task.and_then(|task| usize::try_from(task.id.0).ok()).unwrap_or(0);
        from.get(first.wrapping_add(brief).checked_rem(from.len())?).copied()
    }

    pub(crate) fn brief_text(&self, name: &str) -> &str {
        self.briefs.get(name).map_or("Judge whether this change may be merged as it is.", String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use windlass_agents::AgentKind;

    use super::*;

    fn agent(name: &str) -> Agent {
        Agent::with_default_setup(name, AgentKind::Command(name.to_owned()))
    }

    #[test]
    fn implementer_judges_only_without_another_gatekeeper() {
        let usual = GatekeeperSettings { default_agent: Some(agent("claude")), ..GatekeeperSettings::default() };
        let picked = |brief| usual.pick_gatekeeper(None, "claude", brief).map(|agent| agent.name.as_str());
        assert_eq!((picked(0), picked(1)), (Some("claude"), Some("claude")));
        assert!(GatekeeperSettings::default().pick_gatekeeper(None, "claude", 0).is_none());
    }
}
