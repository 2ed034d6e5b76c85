//! Which agents call us.

use windlass_bridge::Agent;
use windlass_bridge::settings::{self, Scope};

use super::place::Place;
use crate::project::Project;

/// Whether the settings of an agent have a hook of ours.
pub fn calls(agent: Agent, scope: Scope, project: Option<&Project>) -> bool {
    let files = settings::files(agent, scope);
    files.iter().filter(|file| file.has_hooks()).any(|file| {
        let read = Place::of(file, scope, project).and_then(|place| place.read());
        read.ok().flatten().is_some_and(|text| file.has_ours(&text))
    })
}

/// The agents that call us, each with whose settings say so.
pub fn callers(project: &Project) -> Vec<String> {
    let mut callers = Vec::new();
    for agent in Agent::ALL {
        for (scope, whose) in [(Scope::Project, "project"), (Scope::User, "user")] {
            if calls(*agent, scope, Some(project)) {
                callers.push(format!("{agent} ({whose})"));
            }
        }
    }
    callers
}
