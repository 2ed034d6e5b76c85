//! Who judges changes under a configuration, and by which briefs.
//!
//! Not here: asking them (`runner`).

use std::collections::BTreeMap;
use std::path::Path;

use windlass_agents::Agent;
use windlass_engine::{TypeName, nearest};
use windlass_runner::Gatekeepers;

use crate::config::{Builtin, Config, Hook, Kind, Roles};
use crate::failure::{Code, Failure};
use crate::{agents, plan};

/// The brief of a gatekeeper that is only named.
pub const REVIEW: &str = "review";

/// Those whom a session with this agent has judge, each as it lies in the project. A name that stands for nobody is refused before anything begins.
pub fn resolve(config: &Config, agent: &Agent, home: &Path) -> Result<Gatekeepers, Failure> {
    let mut of_types: BTreeMap<TypeName, Vec<Agent>> = BTreeMap::new();
    for (kind, roles) in config.task_types() {
        if roles.gatekeeper.is_none() || !is_judged(config, kind, &agent.name) {
            continue;
        }
        let kind_name = kind.parse().expect("the names of types were checked when they were read");
        // A change does not bring its own judge along.
        let agents = named(config, kind, roles)?.into_iter().map(|agent| agent.of(home));
        of_types.insert(kind_name, agents.collect());
    }
    let briefs = config.hooks.iter().flat_map(briefs).map(|name| (name.to_owned(), config.brief(name))).collect();
    let usual = Some(agents::gatekeeper(&agent.name, &config.settings)?.of(home));
    let silence = plan::allowance(config, agent).silence.or(Some(plan::SILENCE));
    Ok(Gatekeepers { of_types, usual, briefs, silence })
}

/// The briefs by which a hook has a change judged.
pub fn briefs(hook: &Hook) -> impl Iterator<Item = &str> {
    let (names, alone) = match &hook.kind {
        Kind::Gatekeeper(names) => (names.as_slice(), None),
        Kind::Builtin(Builtin::Gatekeeper) => (&[][..], Some(REVIEW)),
        _ => (&[][..], None),
    };
    names.iter().map(String::as_str).chain(alone)
}

/// Whether tasks of a type are judged by anybody.
fn is_judged(config: &Config, kind: &str, agent: &str) -> bool {
    let own = config.overrides().any(|(name, point)| name == kind && point.name() == "before_merge");
    let meant = |hook: &&Hook| plan::whose(hook).includes(Some(kind), Some(agent), own);
    config.hooks.iter().filter(|hook| hook.enabled()).filter(meant).any(|hook| briefs(hook).next().is_some())
}

fn named(config: &Config, kind: &str, roles: &Roles) -> Result<Vec<Agent>, Failure> {
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
