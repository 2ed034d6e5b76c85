//! The gatekeepers of a configuration, which judge changes, and their briefs.
//!
//! Not here: prompting them (`runner`).

use std::collections::BTreeMap;
use std::path::Path;

use windlass_agents::Agent;
use windlass_config::{Config, HookSpec, RoleSettings};
use windlass_engine::{HookPoint, TypeName};
use windlass_expr::nearest_name;
use windlass_runner::GatekeeperSettings;

use crate::runner_settings::{DEFAULT_OUTPUT_IDLE_TIMEOUT, turn_allowance};
use crate::{Failure, FailureCode, agents};

/// Task types that no known agent may judge, each with the reason.
pub type UnjudgedTypes = BTreeMap<TypeName, Failure>;

/// Returns the gatekeepers for a session with this agent, as the project defines them. A wrong gatekeeper of one task type does
/// not affect other types: tasks of that type are not judged, and so not merged.
pub fn resolve_gatekeepers(
    config: &Config,
    agent: &Agent,
    home: &Path,
) -> Result<(GatekeeperSettings, UnjudgedTypes), Failure> {
    let (mut of_types, mut unjudged) = (BTreeMap::new(), UnjudgedTypes::new());
    for (kind, roles) in config.task_types() {
        if roles.gatekeeper.is_none() || !has_gatekeeper_hook(config, kind, &agent.name) {
            continue;
        }
        let kind_name: TypeName = kind.parse().expect("the names of types were checked when they were read");
        let agents = resolve_named_gatekeepers(config, kind, roles).unwrap_or_else(|failure| {
            unjudged.insert(kind_name.clone(), failure);
            Vec::new()
        });
        // A change must not bring its own gatekeeper along.
        of_types.insert(kind_name, agents.into_iter().map(|agent| agent.resolve_relative_paths(home)).collect());
    }
    let briefs = config
        .hooks
        .iter()
        .flat_map(HookSpec::review_briefs)
        .map(|name| (name.to_owned(), config.review_brief(name)))
        .collect();
    let usual = Some(agents::resolve_gatekeeper_agent(&agent.name, &config.settings)?.resolve_relative_paths(home));
    let silence = turn_allowance(config, agent).idle_timeout.or(Some(DEFAULT_OUTPUT_IDLE_TIMEOUT));
    Ok((GatekeeperSettings { by_task_type: of_types, default_agent: usual, briefs, idle_timeout: silence }, unjudged))
}

/// Returns why tasks of a type cannot be judged after one of these agents has worked on them.
pub fn explain_unjudged_type(config: &Config, kind: &str, roles: &RoleSettings, agents: &[&str]) -> Option<Failure> {
    let judged = roles.gatekeeper.is_some() && agents.iter().any(|agent| has_gatekeeper_hook(config, kind, agent));
    resolve_named_gatekeepers(config, kind, roles).err().filter(|_| judged)
}

/// Returns whether a gatekeeper judges tasks of a type.
fn has_gatekeeper_hook(config: &Config, kind: &str, agent: &str) -> bool {
    let own = config.task_type_overrides().any(|(name, point)| name == kind && point == HookPoint::BeforeMerge);
    let meant = |hook: &&HookSpec| hook.scope.includes_work(Some(kind), Some(agent), own);
    config.hooks.iter().filter(|hook| hook.is_enabled()).filter(meant).any(|hook| hook.review_briefs().next().is_some())
}

fn resolve_named_gatekeepers(config: &Config, kind: &str, roles: &RoleSettings) -> Result<Vec<Agent>, Failure> {
    let names = roles.gatekeeper.as_ref().map(|names| names.as_slice()).unwrap_or_default();
    let stranger = names.iter().find(|name| !config.knows_agent(name));
    if let Some(name) = stranger {
        let line = config.text().get(..name.at.start).map_or(0, |before| before.matches('\n').count()) + 1;
        let known: Vec<&str> = config.settings.agents.keys().map(String::as_str).collect();
        return Err(Failure::new(FailureCode::Config, format!("`{}` is not a known agent", name.value))
            .with_cause(format!("it is to judge tasks of the type `{kind}` (line {line}, `agents.gatekeeper`)"))
            .with_hint(match nearest_name(name, &known) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("define `{}` under `agents`, or name another agent", name.value),
            }));
    }
    names.iter().map(|name| agents::resolve_gatekeeper_agent(name, &config.settings)).collect()
}
