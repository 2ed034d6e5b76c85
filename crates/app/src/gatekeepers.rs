//! The gatekeepers of a configuration, which judge changes, and their briefs.
//!
//! Not here: prompting them (`runner`).

use std::collections::BTreeMap;
use std::path::Path;

use windlass_agents::Agent;
use windlass_config::{Config, HookSpec, RoleSettings};
use windlass_engine::{HookPoint, TypeName};
use windlass_expr::nearest;
use windlass_runner::Gatekeepers;

use crate::runner_settings::{SILENCE, turn_allowance};
use crate::{Code, Failure, agents};

/// Task types that no known agent may judge, each with the reason.
pub type Unjudged = BTreeMap<TypeName, Failure>;

/// Returns the gatekeepers for a session with this agent, as the project defines them. A wrong gatekeeper of one task type does
/// not affect other types: tasks of that type are not judged, and so not merged.
pub fn resolve(config: &Config, agent: &Agent, home: &Path) -> Result<(Gatekeepers, Unjudged), Failure> {
    let (mut of_types, mut unjudged) = (BTreeMap::new(), Unjudged::new());
    for (kind, roles) in config.task_types() {
        if roles.gatekeeper.is_none() || !is_judged(config, kind, &agent.name) {
            continue;
        }
        let kind_name: TypeName = kind.parse().expect("the names of types were checked when they were read");
        let agents = named(config, kind, roles).unwrap_or_else(|failure| {
            unjudged.insert(kind_name.clone(), failure);
            Vec::new()
        });
        // A change must not bring its own gatekeeper along.
        of_types.insert(kind_name, agents.into_iter().map(|agent| agent.of(home)).collect());
    }
    let briefs =
        config.hooks.iter().flat_map(HookSpec::briefs).map(|name| (name.to_owned(), config.brief(name))).collect();
    let usual = Some(agents::gatekeeper(&agent.name, &config.settings)?.of(home));
    let silence = turn_allowance(config, agent).silence.or(Some(SILENCE));
    Ok((Gatekeepers { of_types, usual, briefs, silence }, unjudged))
}

/// Returns why tasks of a type cannot be judged after one of these agents has worked on them.
pub fn unjudged(config: &Config, kind: &str, roles: &RoleSettings, agents: &[&str]) -> Option<Failure> {
    let judged = roles.gatekeeper.is_some() && agents.iter().any(|agent| is_judged(config, kind, agent));
    named(config, kind, roles).err().filter(|_| judged)
}

/// Returns whether a gatekeeper judges tasks of a type.
fn is_judged(config: &Config, kind: &str, agent: &str) -> bool {
    let own = config.overrides().any(|(name, point)| name == kind && point == HookPoint::BeforeMerge);
    let meant = |hook: &&HookSpec| hook.scope.includes(Some(kind), Some(agent), own);
    config.hooks.iter().filter(|hook| hook.enabled()).filter(meant).any(|hook| hook.briefs().next().is_some())
}

fn named(config: &Config, kind: &str, roles: &RoleSettings) -> Result<Vec<Agent>, Failure> {
    let names = roles.gatekeeper.as_ref().map(|names| names.as_slice()).unwrap_or_default();
    let stranger = names.iter().find(|name| !config.is_agent(name));
    if let Some(name) = stranger {
        let line = config.text().get(..name.at.start).map_or(0, |before| before.matches('\n').count()) + 1;
        let known: Vec<&str> = config.settings.agents.keys().map(String::as_str).collect();
        return Err(Failure::new(Code::Config, format!("`{}` is no agent that is known here", name.value))
            .caused_by(format!("it is to judge tasks of the type `{kind}` (line {line}, `agents.gatekeeper`)"))
            .hint(match nearest(name, &known) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("say under `agents` how `{}` is started, or name another one", name.value),
            }));
    }
    names.iter().map(|name| agents::gatekeeper(name, &config.settings)).collect()
}
